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

/* ---- averages ---- */

static wf_wide widen(uint32_t dtype, struct wf_number number)
{
    return wf_dtype_is_signed(dtype) ? (wf_wide)(int64_t)number.integer : (wf_wide)number.integer;
}

void wf_reducing_add(struct wf_reducing *r, struct wf_number value)
{
    bool first = !r->begun;

    r->begun = true;
    if (r->reduction == WEFT_REDUCE_AVG) {
        r->sum += widen(r->dtype, value);
        value.re /= (double)r->divisor;
        value.im /= (double)r->divisor;
    }
    r->value = first ? value : wf_number_combine(r->dtype, r->reduction, r->value, value);
}

struct wf_number wf_reducing_end(const struct wf_reducing *r)
{
    struct wf_number result = r->value;

    if (r->reduction == WEFT_REDUCE_AVG) result.integer = (uint64_t)(r->sum / r->divisor);
    return result;
}

void wf_reducing_store(const struct wf_reducing *r, void *element)
{
    struct wf_number result = wf_reducing_end(r);

    wf_number_store(r->dtype, result, element);
    if (r->dtype == WEFT_DTYPE_F8E5M2 && isinf(result.re))
        *(uint8_t *)element = result.re > 0 ? 0x7c : 0xfc;
}

void wf_number_store_reduced(uint32_t dtype, uint32_t reduction, const struct wf_number *values,
                             int32_t size, int64_t divisor, void *element)
{
    struct wf_reducing r = {.dtype = dtype, .reduction = reduction, .divisor = divisor};

    for (int32_t i = 0; i < size; i++)
        wf_reducing_add(&r, values[i]);
    wf_reducing_store(&r, element);
}

struct wf_number wf_number_reduce(uint32_t dtype, uint32_t reduction,
                                  const struct wf_number *values, int32_t size)
{
    struct wf_reducing r = {.dtype = dtype, .reduction = reduction, .divisor = size};

    for (int32_t i = 0; i < size; i++)
        wf_reducing_add(&r, values[i]);
    return wf_reducing_end(&r);
}
