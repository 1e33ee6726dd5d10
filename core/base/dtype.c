/* dtype.c - names, sizes and meanings of the ABI's vocabulary. */
#include "base.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

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

/* Names of the dtypes in other systems. */
static const struct {
    const char *theirs, *ours;
} foreign[] = {
    {"float", "f32"},
    {"float32", "f32"},
    {"fp32", "f32"},
    {"half", "f16"},
    {"float16", "f16"},
    {"fp16", "f16"},
    {"bfloat16", "bf16"},
    {"double", "f64"},
    {"float64", "f64"},
    {"fp64", "f64"},
    {"char", "i8"},
    {"int8", "i8"},
    {"byte", "u8"},
    {"uint8", "u8"},
    {"short", "i16"},
    {"int16", "i16"},
    {"uint16", "u16"},
    {"int", "i32"},
    {"int32", "i32"},
    {"uint32", "u32"},
    {"long", "i64"},
    {"int64", "i64"},
    {"uint64", "u64"},
    {"complex64", "c64"},
    {"complex128", "c128"},
    {"f8", "f8e4m3"},
    {"float8", "f8e4m3"},
    {"float8_e4m3", "f8e4m3"},
    {"fp8", "f8e4m3"},
    {"float8_e4m3fn", "f8e4m3"},
    {"float8_e5m2", "f8e5m2"},
    {"boolean", "bool"},
};

static const char *nearest_dtype(const char *name)
{
    const char *names[WF_COUNT(dtypes)];
    int nearest;

    for (size_t i = 0; i < WF_COUNT(foreign); i++)
        if (strcasecmp(foreign[i].theirs, name) == 0) return foreign[i].ours;
    for (size_t i = 0; i < WF_COUNT(dtypes); i++) {
        if (strcasecmp(dtypes[i].name, name) == 0) return dtypes[i].name;
        names[i] = dtypes[i].name;
    }
    nearest = wf_nearest(name, names, WF_COUNT(names));
    return nearest >= 0 ? names[nearest] : NULL;
}

void wf_dtype_explain(const char *name, size_t length, struct wf_text *out)
{
    char word[32];
    const char *nearest;

    snprintf(word, sizeof word, "%.*s", (int)(length < sizeof word ? length : sizeof word), name);
    nearest = nearest_dtype(word);
    wf_text_add(out, "\"%s\" is not a dtype; the dtypes are ", word);
    for (size_t i = 0; i < WF_COUNT(dtypes); i++)
        wf_text_add(out, "%s%s", i > 0 ? ", " : "", dtypes[i].name);
    if (nearest != NULL) wf_text_add(out, "; did you mean %s?", nearest);
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
