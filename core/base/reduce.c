/* reduce.c - what each reduction of the ABI gives, in exact numbers. */
#include "number.h"

#include <math.h>

static struct wf_number multiply(uint32_t dtype, struct wf_number a, struct wf_number b)
{
    struct wf_number out = {.integer = a.integer * b.integer, .re = a.re * b.re};

    if (wf_dtype_is_complex(dtype)) {
        out.re = a.re * b.re - a.im * b.im;
        out.im = a.re * b.im + a.im * b.re;
    }
    return out;
}

static struct wf_number add(struct wf_number a, struct wf_number b)
{
    return (struct wf_number){a.integer + b.integer, a.re + b.re, a.im + b.im};
}

static bool less(uint32_t dtype, struct wf_number a, struct wf_number b)
{
    if (wf_dtype_is_float(dtype)) return a.re < b.re;
    if (wf_dtype_is_signed(dtype)) return (int64_t)a.integer < (int64_t)b.integer;
    return a.integer < b.integer;
}

static struct wf_number extreme(uint32_t dtype, bool largest, struct wf_number a,
                                struct wf_number b)
{
    if (wf_dtype_is_float(dtype) && isnan(a.re)) return a;
    if (wf_dtype_is_float(dtype) && isnan(b.re)) return b;
    return less(dtype, a, b) == largest ? b : a;
}

static struct wf_number combine_bool(uint32_t reduction, struct wf_number a, struct wf_number b)
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

struct wf_number wf_number_combine(uint32_t dtype, uint32_t reduction, struct wf_number a,
                                   struct wf_number b)
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

/* Integers wrap before they are divided, as those of a backend do. */
struct wf_number wf_number_divide(uint32_t dtype, struct wf_number number, int64_t divisor)
{
    unsigned char bytes[16];

    if (dtype < WEFT_DTYPE_F16) {
        wf_number_store(dtype, number, bytes);
        number = wf_number_load(dtype, bytes);
    }
    if (wf_dtype_is_signed(dtype))
        number.integer = (uint64_t)((int64_t)number.integer / divisor);
    else
        number.integer /= (uint64_t)divisor;
    number.re /= (double)divisor;
    number.im /= (double)divisor;
    return number;
}

struct wf_number wf_number_reduce(uint32_t dtype, uint32_t reduction,
                                  const struct wf_number *values, int32_t size)
{
    struct wf_number result = values[0];

    for (int32_t i = 1; i < size; i++)
        result = wf_number_combine(dtype, reduction, result, values[i]);
    return reduction == WEFT_REDUCE_AVG ? wf_number_divide(dtype, result, size) : result;
}
