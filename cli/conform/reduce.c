/* reduce.c - what each reduction of the ABI gives, in exact numbers. */
#include "kit.h"

#include <math.h>

static struct kit_number multiply(uint32_t dtype, struct kit_number a, struct kit_number b)
{
    struct kit_number out = {.integer = a.integer * b.integer, .re = a.re * b.re};

    if (kit_is_complex(dtype)) {
        out.re = a.re * b.re - a.im * b.im;
        out.im = a.re * b.im + a.im * b.re;
    }
    return out;
}

static struct kit_number add(struct kit_number a, struct kit_number b)
{
    return (struct kit_number){a.integer + b.integer, a.re + b.re, a.im + b.im};
}

static bool less(uint32_t dtype, struct kit_number a, struct kit_number b)
{
    if (kit_is_float(dtype)) return a.re < b.re;
    if (kit_is_signed(dtype)) return (int64_t)a.integer < (int64_t)b.integer;
    return a.integer < b.integer;
}

static struct kit_number extreme(uint32_t dtype, bool largest, struct kit_number a,
                                 struct kit_number b)
{
    if (kit_is_float(dtype) && isnan(a.re)) return a;
    if (kit_is_float(dtype) && isnan(b.re)) return b;
    return less(dtype, a, b) == largest ? b : a;
}

static struct kit_number combine_bool(uint32_t reduction, struct kit_number a, struct kit_number b)
{
    switch (reduction) {
    case WEFT_REDUCE_SUM:
    case WEFT_REDUCE_MAX:
    case WEFT_REDUCE_BOR:
        a.integer |= b.integer;
        break;
    case WEFT_REDUCE_BXOR:
        a.integer ^= b.integer;
        break;
    default:
        a.integer &= b.integer;
    }
    return a;
}

static struct kit_number combine(uint32_t dtype, uint32_t reduction, struct kit_number a,
                                 struct kit_number b)
{
    if (dtype == WEFT_DTYPE_BOOL) return combine_bool(reduction, a, b);
    switch (reduction) {
    case WEFT_REDUCE_PROD:
        return multiply(dtype, a, b);
    case WEFT_REDUCE_MIN:
    case WEFT_REDUCE_MAX:
        return extreme(dtype, reduction == WEFT_REDUCE_MAX, a, b);
    case WEFT_REDUCE_BAND:
        a.integer &= b.integer;
        return a;
    case WEFT_REDUCE_BOR:
        a.integer |= b.integer;
        return a;
    case WEFT_REDUCE_BXOR:
        a.integer ^= b.integer;
        return a;
    default:
        return add(a, b);
    }
}

static struct kit_number divide(uint32_t dtype, struct kit_number sum, int32_t size)
{
    if (kit_is_signed(dtype))
        sum.integer = (uint64_t)((int64_t)sum.integer / size);
    else
        sum.integer /= (uint64_t)size;
    sum.re /= size;
    sum.im /= size;
    return sum;
}

struct kit_number kit_reduce(uint32_t dtype, uint32_t reduction, const struct kit_number *values,
                             int32_t size, struct kit_number scale)
{
    bool scaled = reduction == WEFT_REDUCE_PREMUL_SUM;
    struct kit_number result = scaled ? multiply(dtype, values[0], scale) : values[0];

    for (int32_t i = 1; i < size; i++)
        result = combine(dtype, reduction, result,
                         scaled ? multiply(dtype, values[i], scale) : values[i]);
    return reduction == WEFT_REDUCE_AVG ? divide(dtype, result, size) : result;
}
