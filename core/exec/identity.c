/* identity.c - single elements of a dtype that executing needs: identities and inverses. */
#include "bound.h"

#include <math.h>
#include <string.h>

/* Bit patterns of f16, bf16, f8e4m3 and f8e5m2, in this order, of what the reductions begin with
 * (lowest and highest are infinities where there are such). */
enum small_value { ONE, LOWEST, HIGHEST };

static uint16_t small_float(uint32_t dtype, enum small_value value)
{
    static const uint16_t bits[][3] = {
        {0x3c00, 0xfc00, 0x7c00}, {0x3f80, 0xff80, 0x7f80}, {0x38, 0xfe, 0x7e}, {0x3c, 0xfc, 0x7c}};

    switch (dtype) {
    case WEFT_DTYPE_F16:
        return bits[0][value];
    case WEFT_DTYPE_BF16:
        return bits[1][value];
    case WEFT_DTYPE_F8E4M3:
        return bits[2][value];
    default:
        return bits[3][value];
    }
}

static void put_float(uint32_t dtype, enum small_value value, void *out)
{
    static const float f32[] = {1.0f, -INFINITY, INFINITY};
    static const double f64[] = {1.0, -INFINITY, INFINITY};
    uint16_t small;

    if (dtype == WEFT_DTYPE_F32 || dtype == WEFT_DTYPE_C64) {
        memcpy(out, &f32[value], sizeof f32[0]);
    } else if (dtype == WEFT_DTYPE_F64 || dtype == WEFT_DTYPE_C128) {
        memcpy(out, &f64[value], sizeof f64[0]);
    } else {
        small = small_float(dtype, value);
        if (wf_dtype_bytes(dtype) == 2)
            memcpy(out, &small, 2);
        else
            *(uint8_t *)out = (uint8_t)small;
    }
}

/* Two's complement of BYTES bytes, the least significant first on every machine weft runs on. */
static void put_integer(uint32_t dtype, enum small_value value, void *out)
{
    bool is_signed = dtype == WEFT_DTYPE_I8 || dtype == WEFT_DTYPE_I16 || dtype == WEFT_DTYPE_I32 ||
                     dtype == WEFT_DTYPE_I64;
    size_t bytes = wf_dtype_bytes(dtype);
    uint64_t highest = UINT64_MAX >> (64 - 8 * bytes + is_signed);
    uint64_t number = value == ONE ? 1 : value == HIGHEST ? highest : is_signed ? ~highest : 0;

    if (dtype == WEFT_DTYPE_BOOL) number = value != LOWEST;
    memcpy(out, &number, bytes);
}

void wf_element_identity(uint32_t dtype, uint32_t reduction, void *out)
{
    enum small_value value = reduction == WEFT_REDUCE_MIN   ? HIGHEST
                             : reduction == WEFT_REDUCE_MAX ? LOWEST
                                                            : ONE;

    memset(out, 0, wf_dtype_bytes(dtype));
    if (reduction == WEFT_REDUCE_SUM || reduction == WEFT_REDUCE_AVG) return;
    if (dtype >= WEFT_DTYPE_F16)
        put_float(dtype, value, out);
    else
        put_integer(dtype, value, out);
}

/* F as bf16, f16 or f8, rounded to nearest even.  F is positive and at most 1. */
static uint16_t narrow(double f, int fraction_bits, int bias)
{
    int exponent;
    uint32_t whole;

    (void)frexp(f, &exponent); /* F is at least 2^(exponent - 1) */
    exponent = exponent - 1 > 1 - bias ? exponent - 1 : 1 - bias;
    whole = (uint32_t)rint(ldexp(f, fraction_bits - exponent));
    return (uint16_t)(whole + ((uint32_t)(exponent + bias - 1) << fraction_bits));
}

void wf_element_inverse(uint32_t dtype, int64_t divisor, void *out)
{
    double inverse = 1.0 / (double)divisor;
    float single = (float)inverse;
    uint16_t small = 0;

    memset(out, 0, wf_dtype_bytes(dtype));
    switch (dtype) {
    case WEFT_DTYPE_F64:
    case WEFT_DTYPE_C128:
        memcpy(out, &inverse, sizeof inverse);
        return;
    case WEFT_DTYPE_F32:
    case WEFT_DTYPE_C64:
        memcpy(out, &single, sizeof single);
        return;
    case WEFT_DTYPE_F16:
        small = narrow(inverse, 10, 15);
        break;
    case WEFT_DTYPE_BF16:
        small = narrow(inverse, 7, 127);
        break;
    case WEFT_DTYPE_F8E4M3:
        small = narrow(inverse, 3, 7);
        break;
    default:
        small = narrow(inverse, 2, 15);
    }
    memcpy(out, &small, wf_dtype_bytes(dtype));
}
