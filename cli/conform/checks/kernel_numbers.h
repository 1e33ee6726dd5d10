/* kernel_numbers.h - the second half of level kernel. */
#ifndef WEFT_CONFORM_KERNEL_NUMBERS_H
#define WEFT_CONFORM_KERNEL_NUMBERS_H

#include "conform/kit.h"

void kit_kernel_numbers(struct kit *kit);

#endif
