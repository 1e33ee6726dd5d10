/* names.c - see names.h. */
#include "names.h"
#include "collective.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

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

const char *kit_dtype_name(uint32_t dtype)
{
    return dtype < COUNT(dtypes) ? dtypes[dtype].name : "an unknown dtype";
}

size_t kit_dtype_bytes(uint32_t dtype)
{
    return dtype < COUNT(dtypes) ? dtypes[dtype].bytes : 0;
}

const char *kit_reduction_name(uint32_t reduction)
{
    return reduction < COUNT(reductions) ? reductions[reduction] : "an unknown reduction";
}

const char *kit_collective_name(uint32_t collective)
{
    return collective < COUNT(collectives) ? collectives[collective] : "an unknown collective";
}

bool kit_collective_reduces(uint32_t collective)
{
    return (kit_collective_needs(collective) & KIT_REDUCES) != 0;
}

bool kit_reduction_defined(uint32_t reduction, uint32_t dtype)
{
    bool is_complex = dtype == WEFT_DTYPE_C64 || dtype == WEFT_DTYPE_C128;
    bool is_float = dtype >= WEFT_DTYPE_F16 && !is_complex;

    if (dtype >= WEFT_DTYPE_COUNT) return false;
    switch (reduction) {
    case WEFT_REDUCE_SUM:
    case WEFT_REDUCE_PROD:
        return true;
    case WEFT_REDUCE_MIN:
    case WEFT_REDUCE_MAX:
        return !is_complex;
    case WEFT_REDUCE_AVG:
    case WEFT_REDUCE_PREMUL_SUM:
        return dtype != WEFT_DTYPE_BOOL;
    default:
        return reduction < WEFT_REDUCE_COUNT && !is_complex && !is_float;
    }
}
