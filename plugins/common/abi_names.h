/* abi_names.h - names, sizes and meanings of the ABI's vocabulary, for all plugins. */
#ifndef WEFT_PLUGINS_ABI_NAMES_H
#define WEFT_PLUGINS_ABI_NAMES_H

#include "weft_plugin.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* On the way of every collective, so that these lie together. */
#define WF_ABI_HOT __attribute__((hot))

const char *wf_abi_dtype_name(uint32_t dtype);
size_t wf_abi_dtype_bytes(uint32_t dtype) WF_ABI_HOT; /* 0 if unknown */
const char *wf_abi_reduction_name(uint32_t reduction);
const char *wf_abi_collective_name(uint32_t collective) WF_ABI_HOT;
bool wf_abi_collective_reduces(uint32_t collective) WF_ABI_HOT;
/* Is REDUCTION defined on DTYPE? */
bool wf_abi_reduction_defined(uint32_t reduction, uint32_t dtype) WF_ABI_HOT;

#endif
