/* names.h - names and sizes of dtypes, and names of reductions and collectives of the ABI. */
#ifndef WEFT_KIT_NAMES_H
#define WEFT_KIT_NAMES_H

#include "weft_plugin.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Called for every collective: kept together in the library. */
#define KIT_HOT __attribute__((hot))

const char *kit_dtype_name(uint32_t dtype);
size_t kit_dtype_bytes(uint32_t dtype) KIT_HOT; /* 0 if unknown */
const char *kit_reduction_name(uint32_t reduction);
const char *kit_collective_name(uint32_t collective) KIT_HOT;
bool kit_collective_reduces(uint32_t collective) KIT_HOT;
/* True if REDUCTION is defined on DTYPE. */
bool kit_reduction_defined(uint32_t reduction, uint32_t dtype) KIT_HOT;

#endif
