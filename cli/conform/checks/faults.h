/* faults.h - the second half of level errors: failures that involve several ranks. */
#ifndef WEFT_CONFORM_FAULTS_H
#define WEFT_CONFORM_FAULTS_H

#include "conform/kit.h"

void kit_faults(struct kit *kit);

#endif
