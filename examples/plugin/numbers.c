/* numbers.c - arithmetic on every dtype, one element at a time. */
#include "example.h"

#include <math.h>
#include <string.h>

static uint32_t bytes_of(uint32_t dtype)
{
    return (uint32_t)kit_dtype_bytes(dtype);
}

static bool is_complex(uint32_t dtype)
{
    return dtype == WEFT_DTYPE_C64 || dtype == WEFT_DTYPE_C128;
}

static bool is_real(uint32_t dtype)
{
    return dtype >= WEFT_DTYPE_F16 && !is_complex(dtype);
}

static bool is_signed(uint32_t dtype)
{
    return dtype <= WEFT_DTYPE_I64 && dtype % 2 == 1;
}

/* ---- 8 and 16 bit floats, through f32 ---- */

struct format {
    uint32_t exponent_bits, mantissa_bits;
    bool finite, saturates; /* FINITE: the largest exponent is not reserved for infinity and NaN */
};

static const struct format formats[WEFT_DTYPE_COUNT] = {
    [WEFT_DTYPE_F16] = {5, 10, false, false},
    [WEFT_DTYPE_BF16] = {8, 7, false, false},
    [WEFT_DTYPE_F8E4M3] = {4, 3, true, true},
    [WEFT_DTYPE_F8E5M2] = {5, 2, false, true},
};

static float widen(const struct format *format, uint32_t bits)
{
    uint32_t m = format->mantissa_bits, e = format->exponent_bits;
    uint32_t mantissa = bits & ((1u << m) - 1), exponent = bits >> m & ((1u << e) - 1);
    int bias = (1 << (e - 1)) - 1;
    float value;

    if (exponent == (1u << e) - 1 && !format->finite)
        value = mantissa != 0 ? NAN : INFINITY;
    else if (format->finite && (bits & 0x7f) == 0x7f)
        value = NAN;
    else if (exponent == 0)
        value = ldexpf((float)mantissa, 1 - bias - (int)m);
    else
        value = ldexpf((float)(mantissa | 1u << m), (int)exponent - bias - (int)m);
    return bits >> (m + e) != 0 ? -value : value;
}

/* Bits of the largest finite number. */
static uint32_t largest(const struct format *format)
{
    uint32_t top = (1u << (format->exponent_bits + format->mantissa_bits)) - 1;

    return format->finite ? top - 1 : top - (1u << format->mantissa_bits);
}

static uint32_t narrow(const struct format *format, float value)
{
    uint32_t m = format->mantissa_bits, e = format->exponent_bits;
    int bias = (1 << (e - 1)) - 1, exponent = 0;
    uint32_t sign = signbit(value) ? 1u << (m + e) : 0, past;
    float scaled;

    if (isnan(value)) return (1u << (m + e)) - 1;
    past = format->saturates ? largest(format) : largest(format) + 1;
    if (isinf(value)) return sign | past;
    if (value == 0) return sign;
    frexpf(value, &exponent);
    exponent += bias - 1;
    if (exponent < 1) exponent = 1;
    if (exponent > (1 << e)) return sign | past;
    scaled = nearbyintf(ldexpf(fabsf(value), (int)m + bias - exponent));
    past = (uint32_t)scaled + ((uint32_t)(exponent - 1) << m);
    if (past <= largest(format)) return sign | past;
    return sign | (format->saturates ? largest(format) : largest(format) + 1);
}

/* ---- elements ---- */

/* An element of any dtype: integers in `i`, reals in `re`, complex in both. */
struct number {
    uint64_t i;
    double re, im;
};

/* Holds any sum of integers. */
__extension__ typedef __int128 wide_sum;

static double load_real(uint32_t dtype, const uint8_t *from)
{
    uint16_t bits;
    float single;
    double wide;

    switch (dtype) {
    case WEFT_DTYPE_F64:
    case WEFT_DTYPE_C128:
        memcpy(&wide, from, sizeof wide);
        return wide;
    case WEFT_DTYPE_F32:
    case WEFT_DTYPE_C64:
        memcpy(&single, from, sizeof single);
        return (double)single;
    case WEFT_DTYPE_F16:
    case WEFT_DTYPE_BF16:
        memcpy(&bits, from, sizeof bits);
        return (double)widen(&formats[dtype], bits);
    default:
        return (double)widen(&formats[dtype], *from);
    }
}

static void store_real(uint32_t dtype, double value, uint8_t *to)
{
    float single = (float)value;
    uint16_t bits;

    switch (dtype) {
    case WEFT_DTYPE_F64:
    case WEFT_DTYPE_C128:
        memcpy(to, &value, sizeof value);
        break;
    case WEFT_DTYPE_F32:
    case WEFT_DTYPE_C64:
        memcpy(to, &single, sizeof single);
        break;
    case WEFT_DTYPE_F16:
    case WEFT_DTYPE_BF16:
        bits = (uint16_t)narrow(&formats[dtype], single);
        memcpy(to, &bits, sizeof bits);
        break;
    default:
        *to = (uint8_t)narrow(&formats[dtype], single);
    }
}

static struct number load(uint32_t dtype, const void *from)
{
    uint32_t bytes = bytes_of(dtype);
    struct number out = {0};

    if (is_complex(dtype)) {
        out.re = load_real(dtype, from);
        out.im = load_real(dtype, (const uint8_t *)from + bytes / 2);
    } else if (is_real(dtype)) {
        out.re = load_real(dtype, from);
    } else {
        memcpy(&out.i, from, bytes); /* assumes a little-endian machine */
        if (is_signed(dtype) && bytes < 8 && (out.i >> (8 * bytes - 1)) != 0)
            out.i |= ~UINT64_C(0) << (8 * bytes);
    }
    return out;
}

static void store(uint32_t dtype, struct number value, void *to)
{
    uint32_t bytes = bytes_of(dtype);

    if (is_complex(dtype)) {
        store_real(dtype, value.re, to);
        store_real(dtype, value.im, (uint8_t *)to + bytes / 2);
    } else if (is_real(dtype)) {
        store_real(dtype, value.re, to);
    } else {
        memcpy(to, &value.i, bytes);
    }
}

static struct number multiply(uint32_t dtype, struct number a, struct number b)
{
    if (!is_complex(dtype)) return (struct number){.i = a.i * b.i, .re = a.re * b.re};
    return (struct number){.re = a.re * b.re - a.im * b.im, .im = a.re * b.im + a.im * b.re};
}

static bool is_less(uint32_t dtype, struct number a, struct number b)
{
    if (is_real(dtype)) return a.re < b.re;
    return is_signed(dtype) ? (int64_t)a.i < (int64_t)b.i : a.i < b.i;
}

static struct number combine(uint32_t dtype, uint32_t reduction, struct number a, struct number b)
{
    switch (reduction) {
    case WEFT_REDUCE_PROD:
        return multiply(dtype, a, b);
    case WEFT_REDUCE_MIN:
        return isnan(a.re) || is_less(dtype, a, b) ? a : b;
    case WEFT_REDUCE_MAX:
        return isnan(a.re) || is_less(dtype, b, a) ? a : b;
    case WEFT_REDUCE_BAND:
        return (struct number){.i = a.i & b.i};
    case WEFT_REDUCE_BOR:
        return (struct number){.i = a.i | b.i};
    case WEFT_REDUCE_BXOR:
        return (struct number){.i = a.i ^ b.i};
    default:
        if (dtype == WEFT_DTYPE_BOOL) return (struct number){.i = a.i | b.i};
        return (struct number){.i = a.i + b.i, .re = a.re + b.re, .im = a.im + b.im};
    }
}

/* Sums of integers are exact and divided at the end.  Floats are divided before they are added. */
static struct number average(uint32_t dtype, uint32_t size, const void *const *sources, uint64_t at,
                             uint32_t divisor)
{
    struct number result = {0};
    wide_sum sum = 0;

    for (uint32_t k = 0; k < size; k++) {
        struct number next = load(dtype, (const uint8_t *)sources[k] + at);
        sum += is_signed(dtype) ? (wide_sum)(int64_t)next.i : (wide_sum)next.i;
        next.re /= divisor;
        next.im /= divisor;
        result = k == 0 ? next : combine(dtype, WEFT_REDUCE_SUM, result, next);
    }
    result.i = (uint64_t)(sum / divisor);
    return result;
}

/* A minimum or maximum is one of the inputs, so infinity does not saturate. */
static void store_reduced(uint32_t dtype, uint32_t reduction, struct number value, void *to)
{
    store(dtype, value, to);
    if (dtype == WEFT_DTYPE_F8E5M2 && isinf(value.re) &&
        (reduction == WEFT_REDUCE_MIN || reduction == WEFT_REDUCE_MAX))
        *(uint8_t *)to = value.re > 0 ? 0x7c : 0xfc;
}

void example_reduce(uint32_t dtype, uint32_t reduction, uint32_t divisor, uint64_t count,
                    uint32_t size, const void *const *sources, void *target)
{
    uint64_t bytes = bytes_of(dtype);

    for (uint64_t at = 0; at < count * bytes; at += bytes) {
        struct number result = {0};
        if (reduction == WEFT_REDUCE_AVG)
            result = average(dtype, size, sources, at, divisor != 0 ? divisor : size);
        for (uint32_t k = 0; k < size && reduction != WEFT_REDUCE_AVG; k++) {
            struct number next = load(dtype, (const uint8_t *)sources[k] + at);
            result = k == 0 ? next : combine(dtype, reduction, result, next);
        }
        store_reduced(dtype, reduction, result, (uint8_t *)target + at);
    }
}

void example_scale(uint32_t dtype, uint64_t count, const void *factor, void *data)
{
    struct number by = load(dtype, factor);

    for (uint64_t i = 0; i < count; i++) {
        uint8_t *at = (uint8_t *)data + i * bytes_of(dtype);
        store(dtype, multiply(dtype, load(dtype, at), by), at);
    }
}

/* Truncates toward zero and saturates.  NaN becomes 0. */
static uint64_t to_integer(uint32_t dtype, double value)
{
    int bits = (int)bytes_of(dtype) * 8;
    double end = ldexp(1, is_signed(dtype) ? bits - 1 : bits);

    if (dtype == WEFT_DTYPE_BOOL) return value != 0;
    if (isnan(value)) return 0;
    if (value >= end)
        return is_signed(dtype) ? (UINT64_C(1) << (bits - 1)) - 1 : ~UINT64_C(0) >> (64 - bits);
    if (!is_signed(dtype)) return value <= 0 ? 0 : (uint64_t)value;
    return (uint64_t)(int64_t)(value < -end ? -end : value);
}

static uint32_t mantissa_of(uint32_t dtype)
{
    if (dtype == WEFT_DTYPE_F64) return 52;
    return dtype == WEFT_DTYPE_F32 ? 23 : formats[dtype].mantissa_bits;
}

/* A NaN keeps its sign and the leading bits of its payload, and becomes quiet; f8 has one code for
 * all NaN of a sign. */
static void store_nan(uint32_t from, uint32_t to, const void *source, void *target)
{
    uint32_t in = mantissa_of(from), out = mantissa_of(to), width = 8 * bytes_of(to);
    uint64_t bits = 0, code = ((UINT64_C(1) << (width - 1 - out)) - 1) << out;

    memcpy(&bits, source, bytes_of(from));
    code |= UINT64_C(1) << (out - 1) | bits << (64 - in) >> (64 - out);
    if (to == WEFT_DTYPE_F8E4M3) code = 0x7f;
    if (to == WEFT_DTYPE_F8E5M2) code = 0x7e;
    code |= bits >> (8 * bytes_of(from) - 1) << (width - 1);
    memcpy(target, &code, bytes_of(to));
}

bool example_cast(uint32_t from, uint32_t to, uint64_t count, const void *source, void *target)
{
    if (from >= WEFT_DTYPE_COUNT || to >= WEFT_DTYPE_COUNT || is_complex(from) != is_complex(to))
        return false;
    for (uint64_t i = 0; i < count; i++) {
        const uint8_t *in = (const uint8_t *)source + i * bytes_of(from);
        uint8_t *out = (uint8_t *)target + i * bytes_of(to);
        struct number value = load(from, in);
        if (is_real(from) && is_real(to) && isnan(value.re)) {
            store_nan(from, to, in, out);
            continue;
        }
        if (from < WEFT_DTYPE_F16)
            value.re = is_signed(from) ? (double)(int64_t)value.i : (double)value.i;
        if (to < WEFT_DTYPE_F16 && (from >= WEFT_DTYPE_F16 || to == WEFT_DTYPE_BOOL))
            value.i = to_integer(to, value.re);
        store(to, value, out);
    }
    return true;
}
