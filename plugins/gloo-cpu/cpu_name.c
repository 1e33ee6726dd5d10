/* cpu_name.c - names and sizes of the ABI's vocabulary. */
#include "cpu.h"

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

const char *wf_cpu_dtype_name(uint32_t dtype)
{
    return dtype < CPU_LENGTH(dtypes) ? dtypes[dtype].name : "unknown dtype";
}

size_t wf_cpu_dtype_bytes(uint32_t dtype)
{
    return dtype < CPU_LENGTH(dtypes) ? dtypes[dtype].bytes : 0;
}

const char *wf_cpu_reduction_name(uint32_t reduction)
{
    return reduction < CPU_LENGTH(reductions) ? reductions[reduction] : "unknown reduction";
}

const char *wf_cpu_collective_name(uint32_t collective)
{
    if (collective == WEFT_COLL_COUNT) return "pull";
    if (collective == WEFT_COLL_COUNT + 1) return "check";
    return collective < CPU_LENGTH(collectives) ? collectives[collective] : "unknown collective";
}

bool wf_cpu_collective_reduces(uint32_t collective)
{
    return collective == WEFT_COLL_ALL_REDUCE || collective == WEFT_COLL_REDUCE_SCATTER ||
           collective == WEFT_COLL_REDUCE || collective == WEFT_COLL_REDUCE_SCATTER_V;
}

bool wf_cpu_reduction_defined(uint32_t reduction, uint32_t dtype)
{
    bool complex = dtype == WEFT_DTYPE_C64 || dtype == WEFT_DTYPE_C128;
    bool whole = dtype <= WEFT_DTYPE_U64; /* bool and the integers */

    if (dtype >= WEFT_DTYPE_COUNT) return false;
    switch (reduction) {
    case WEFT_REDUCE_SUM:
    case WEFT_REDUCE_PROD:
        return true;
    case WEFT_REDUCE_MIN:
    case WEFT_REDUCE_MAX:
        return !complex;
    case WEFT_REDUCE_AVG:
    case WEFT_REDUCE_PREMUL_SUM:
        return dtype != WEFT_DTYPE_BOOL;
    case WEFT_REDUCE_BAND:
    case WEFT_REDUCE_BOR:
    case WEFT_REDUCE_BXOR:
        return whole;
    default:
        return false;
    }
}
