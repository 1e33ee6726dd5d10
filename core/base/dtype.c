/* dtype.c - names, sizes and meanings of the ABI's vocabulary. */
#include "base.h"

#include "weft/status.h"

#include <string.h>

static const struct {
    const char *name;
    size_t bytes;
} dtypes[] = {
#define ROW(name, value, text, bytes) [value] = {text, bytes},
    WEFT_DTYPE_LIST(ROW)
#undef ROW
};

#define ROW(name, value, text) [value] = text,
static const char *const reductions[] = {WEFT_REDUCTION_LIST(ROW)};
static const char *const collectives[] = {WEFT_COLLECTIVE_LIST(ROW)};
#undef ROW

const char *wf_dtype_name(uint32_t dtype)
{
    return dtype < WF_COUNT(dtypes) ? dtypes[dtype].name : NULL;
}

size_t wf_dtype_bytes(uint32_t dtype)
{
    return dtype < WF_COUNT(dtypes) ? dtypes[dtype].bytes : 0;
}

const char *weft_dtype_name(uint32_t dtype)
{
    return wf_dtype_name(dtype);
}

size_t weft_dtype_bytes(uint32_t dtype)
{
    return wf_dtype_bytes(dtype);
}

const char *wf_reduction_name(uint32_t reduction)
{
    return reduction < WF_COUNT(reductions) ? reductions[reduction] : NULL;
}

const char *wf_collective_name(uint32_t collective)
{
    return collective < WF_COUNT(collectives) ? collectives[collective] : NULL;
}

static bool same(const char *known, const char *name, size_t length)
{
    return strlen(known) == length && memcmp(known, name, length) == 0;
}

bool wf_dtype_find(const char *name, size_t length, uint32_t *out)
{
    for (uint32_t i = 0; i < WF_COUNT(dtypes); i++)
        if (same(dtypes[i].name, name, length)) {
            *out = i;
            return true;
        }
    return false;
}

bool wf_reduction_find(const char *name, size_t length, uint32_t *out)
{
    for (uint32_t i = 0; i < WF_COUNT(reductions); i++)
        if (same(reductions[i], name, length)) {
            *out = i;
            return true;
        }
    return false;
}

bool wf_collective_reduces(uint32_t collective)
{
    return collective == WEFT_COLL_ALL_REDUCE || collective == WEFT_COLL_REDUCE_SCATTER ||
           collective == WEFT_COLL_REDUCE || collective == WEFT_COLL_REDUCE_SCATTER_V;
}

static bool is_complex(uint32_t dtype)
{
    return dtype == WEFT_DTYPE_C64 || dtype == WEFT_DTYPE_C128;
}

static bool is_integer(uint32_t dtype)
{
    return dtype >= WEFT_DTYPE_I8 && dtype <= WEFT_DTYPE_U64;
}

bool wf_reduction_defined(uint32_t reduction, uint32_t dtype)
{
    if (dtype >= WEFT_DTYPE_COUNT) return false;
    switch (reduction) {
    case WEFT_REDUCE_SUM:
    case WEFT_REDUCE_PROD:
        return true;
    case WEFT_REDUCE_MIN:
    case WEFT_REDUCE_MAX:
        return !is_complex(dtype);
    case WEFT_REDUCE_AVG:
    case WEFT_REDUCE_PREMUL_SUM:
        return dtype != WEFT_DTYPE_BOOL;
    case WEFT_REDUCE_BAND:
    case WEFT_REDUCE_BOR:
    case WEFT_REDUCE_BXOR:
        return is_integer(dtype) || dtype == WEFT_DTYPE_BOOL;
    default:
        return false;
    }
}
