/* dtypes.c - dtypes of files, by their names in safetensors, weft, NumPy and torch. */
#include "file.h"

#include <string.h>

/* In the order of safetensors' enumeration.  NumPy does not have bf16 and f8: their bits are
 * written as unsigned integers, and read as such. */
static const struct wf_file_dtype rows[] = {
    {"BOOL", 8, WEFT_DTYPE_BOOL, "|b1", "bool", false},
    {"F4", 4, WEFT_DTYPE_COUNT, NULL, NULL, false},
    {"F6_E2M3", 6, WEFT_DTYPE_COUNT, NULL, NULL, false},
    {"F6_E3M2", 6, WEFT_DTYPE_COUNT, NULL, NULL, false},
    {"U8", 8, WEFT_DTYPE_U8, "|u1", "uint8", false},
    {"I8", 8, WEFT_DTYPE_I8, "|i1", "int8", false},
    {"F8_E5M2", 8, WEFT_DTYPE_F8E5M2, "|u1", "float8_e5m2", false},
    {"F8_E4M3", 8, WEFT_DTYPE_F8E4M3, "|u1", "float8_e4m3fn", false},
    {"F8_E8M0", 8, WEFT_DTYPE_COUNT, "|u1", "float8_e8m0fnu", false},
    {"F8_E4M3FNUZ", 8, WEFT_DTYPE_COUNT, "|u1", "float8_e4m3fnuz", false},
    {"F8_E5M2FNUZ", 8, WEFT_DTYPE_COUNT, "|u1", "float8_e5m2fnuz", false},
    {"I16", 16, WEFT_DTYPE_I16, "<i2", "int16", false},
    {"U16", 16, WEFT_DTYPE_U16, "<u2", "uint16", false},
    {"F16", 16, WEFT_DTYPE_F16, "<f2", "float16", false},
    {"BF16", 16, WEFT_DTYPE_BF16, "<u2", "bfloat16", false},
    {"I32", 32, WEFT_DTYPE_I32, "<i4", "int32", false},
    {"U32", 32, WEFT_DTYPE_U32, "<u4", "uint32", false},
    {"F32", 32, WEFT_DTYPE_F32, "<f4", "float32", false},
    {"C64", 64, WEFT_DTYPE_C64, "<c8", "complex64", false},
    {"F64", 64, WEFT_DTYPE_F64, "<f8", "float64", false},
    {"I64", 64, WEFT_DTYPE_I64, "<i8", "int64", false},
    {"U64", 64, WEFT_DTYPE_U64, "<u8", "uint64", false},
    {"C128", 128, WEFT_DTYPE_C128, "<c16", "complex128", true},
};

const struct wf_file_dtype *wf_file_dtype(size_t row)
{
    return row < WF_COUNT(rows) ? &rows[row] : NULL;
}

int wf_file_dtype_find(const char *name)
{
    for (size_t i = 0; i < WF_COUNT(rows); i++) {
        const char *own = rows[i].dtype < WEFT_DTYPE_COUNT ? wf_dtype_name(rows[i].dtype) : NULL;
        if (strcmp(rows[i].name, name) == 0 || (own != NULL && strcmp(own, name) == 0))
            return (int)i;
    }
    return -1;
}

int wf_file_dtype_of_numpy(const char *name)
{
    for (size_t i = 0; i < WF_COUNT(rows); i++)
        if (rows[i].numpy != NULL && strcmp(rows[i].numpy, name) == 0) return (int)i;
    return -1;
}

int wf_file_dtype_of_torch(const char *name)
{
    for (size_t i = 0; i < WF_COUNT(rows); i++)
        if (rows[i].torch != NULL && strcmp(rows[i].torch, name) == 0) return (int)i;
    return -1;
}

bool wf_file_bytes(size_t dtype, int32_t dims, const int64_t *shape, int64_t *bytes)
{
    int64_t bits = rows[dtype].bits;
    bool empty = false;

    for (int32_t d = 0; d < dims; d++) {
        if (shape[d] < 0) return false;
        if (shape[d] == 0)
            empty = true;
        else if (!wf_mul_i64(bits, shape[d], &bits) || bits > INT64_C(1) << 62)
            return false;
    }
    if (empty) bits = 0;
    if (bits % 8 != 0) return false;
    *bytes = bits / 8;
    return true;
}
