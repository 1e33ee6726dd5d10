/* kernel_casts.h - casts whose every bit is defined. */
#ifndef WEFT_KIT_KERNEL_CASTS_H
#define WEFT_KIT_KERNEL_CASTS_H

#include "frame/kit.h"

/* True if weft asks for the cast. */
bool kit_cast_is_offered(uint32_t from, uint32_t to);
/* Write the element of dtype TO that ELEMENT, of dtype FROM, becomes. */
void kit_cast_want(uint32_t from, uint32_t to, const void *element, void *out);

#endif
