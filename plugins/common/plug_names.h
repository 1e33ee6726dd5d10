/* plug_names.h - names and sizes of dtypes, and names of reductions and collectives of the ABI. */
#ifndef WEFT_PLUG_NAMES_H
#define WEFT_PLUG_NAMES_H

#include "plug_host.h"

const char *plug_dtype_name(uint32_t dtype);
size_t plug_dtype_bytes(uint32_t dtype) PLUG_HOT; /* 0 if unknown */
const char *plug_reduction_name(uint32_t reduction);
const char *plug_collective_name(uint32_t collective) PLUG_HOT;
bool plug_collective_reduces(uint32_t collective) PLUG_HOT;
/* True if REDUCTION is defined on DTYPE. */
bool plug_reduction_defined(uint32_t reduction, uint32_t dtype) PLUG_HOT;

#endif
