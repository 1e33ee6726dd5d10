/* dtype.c - names, sizes and meanings of the ABI's vocabulary, which the plugin kit has, and what
 * users write for them. */
#include "base.h"

#include "kit/names.h"
#include "number.h"

#include <stdio.h>
#include <string.h>

const char *wf_dtype_name(uint32_t dtype)
{
    return dtype < WEFT_DTYPE_COUNT ? kit_dtype_name(dtype) : NULL;
}

size_t wf_dtype_bytes(uint32_t dtype)
{
    return kit_dtype_bytes(dtype);
}

size_t wf_dtype_alignment(uint32_t dtype)
{
    return wf_dtype_bytes(dtype) / (wf_dtype_is_complex(dtype) ? 2 : 1);
}

const char *wf_reduction_name(uint32_t reduction)
{
    return reduction < WEFT_REDUCE_COUNT ? kit_reduction_name(reduction) : NULL;
}

const char *wf_collective_name(uint32_t collective)
{
    return collective < WEFT_COLL_COUNT ? kit_collective_name(collective) : NULL;
}

static bool same_name(const char *known, const char *name, size_t length)
{
    return strlen(known) == length && memcmp(known, name, length) == 0;
}

bool wf_dtype_find(const char *name, size_t length, uint32_t *out)
{
    for (uint32_t i = 0; i < WEFT_DTYPE_COUNT; i++)
        if (same_name(kit_dtype_name(i), name, length)) {
            *out = i;
            return true;
        }
    return false;
}

/* Names of the dtypes in PyTorch, NumPy, JAX, safetensors and C. */
static const struct {
    const char *theirs, *ours;
} foreign[] = {
    {"float", "f32"},
    {"float32", "f32"},
    {"fp32", "f32"},
    {"single", "f32"},
    {"half", "f16"},
    {"float16", "f16"},
    {"fp16", "f16"},
    {"bfloat16", "bf16"},
    {"bfloat", "bf16"},
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
    {"cfloat", "c64"},
    {"complex64", "c64"},
    {"cdouble", "c128"},
    {"complex128", "c128"},
    {"f8", "f8e4m3 or f8e5m2"},
    {"float8", "f8e4m3 or f8e5m2"},
    {"fp8", "f8e4m3 or f8e5m2"},
    {"e4m3", "f8e4m3"},
    {"float8_e4m3", "f8e4m3"},
    {"float8_e4m3fn", "f8e4m3"},
    {"f8_e4m3", "f8e4m3"},
    {"e5m2", "f8e5m2"},
    {"float8_e5m2", "f8e5m2"},
    {"f8_e5m2", "f8e5m2"},
    {"boolean", "bool"},
    {"bool_", "bool"},
};

/* True if A and B have the same digits, in any order.  A name with other digits means another size.
 */
static bool same_digits(const char *a, const char *b)
{
    int counts[10] = {0};

    for (; *a != '\0'; a++)
        if (*a >= '0' && *a <= '9') counts[*a - '0']++;
    for (; *b != '\0'; b++)
        if (*b >= '0' && *b <= '9') counts[*b - '0']--;
    for (size_t i = 0; i < WF_COUNT(counts); i++)
        if (counts[i] != 0) return false;
    return true;
}

static const char *nearest_dtype(const char *name)
{
    const char *names[WEFT_DTYPE_COUNT], *dot = strrchr(name, '.');
    int nearest;

    if (dot != NULL) name = dot + 1; /* torch.float16 */
    for (size_t i = 0; i < WF_COUNT(foreign); i++)
        if (wf_same_letters(foreign[i].theirs, name, SIZE_MAX)) return foreign[i].ours;
    for (uint32_t i = 0; i < WEFT_DTYPE_COUNT; i++) {
        names[i] = kit_dtype_name(i);
        if (wf_same_letters(names[i], name, SIZE_MAX)) return names[i];
    }
    nearest = wf_nearest(name, names, WF_COUNT(names));
    if (nearest < 0 || !same_digits(names[nearest], name)) return NULL;
    return wf_same_letters(names[nearest], name, 1) ? names[nearest] : NULL;
}

void wf_dtype_explain(const char *name, size_t length, struct wf_text *out)
{
    char word[32];
    const char *nearest;

    snprintf(word, sizeof word, "%.*s", (int)(length < sizeof word ? length : sizeof word), name);
    nearest = nearest_dtype(word);
    wf_text_add(out, "\"%s\" is not a dtype; the dtypes are ", word);
    for (uint32_t i = 0; i < WEFT_DTYPE_COUNT; i++)
        wf_text_add(out, "%s%s", i > 0 ? ", " : "", kit_dtype_name(i));
    if (nearest != NULL) wf_text_add(out, "; did you mean %s?", nearest);
}

weft_status wf_dtype_refuse(const struct wf_scan *at, const char *kind, size_t length)
{
    struct wf_text reason = {0};
    weft_status status;

    wf_dtype_explain(at->text + at->at, length, &reason);
    status = wf_text_status(&reason);
    if (status == WEFT_OK) status = wf_scan_refuse(at, kind, "%s", reason.data);
    wf_text_free(&reason);
    return status;
}

bool wf_reduction_find(const char *name, size_t length, uint32_t *out)
{
    for (uint32_t i = 0; i < WEFT_REDUCE_COUNT; i++)
        if (same_name(kit_reduction_name(i), name, length)) {
            *out = i;
            return true;
        }
    return false;
}

bool wf_collective_reduces(uint32_t collective)
{
    return kit_collective_reduces(collective);
}

bool wf_reduction_defined(uint32_t reduction, uint32_t dtype)
{
    return kit_reduction_defined(reduction, dtype);
}
