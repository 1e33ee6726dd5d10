/* number.c - elements of every dtype as exact numbers.
 *
 * Small floats are converted by hand, from their bit layout alone.  Compiler types and conversion
 * instructions, which a plugin may use too, are not trusted here. */
#include "number.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

struct small_float {
    int mantissa_bits, bias;
    uint32_t largest, infinity, nan; /* bit patterns, without sign */
    uint32_t sign;
    bool saturates;
};

static const struct small_float f16 = {10, 15, 0x7bff, 0x7c00, 0x7e00, 0x8000, false};
static const struct small_float bf16 = {7, 127, 0x7f7f, 0x7f80, 0x7fc0, 0x8000, false};
static const struct small_float f8e4m3 = {3, 7, 0x7e, 0x7f, 0x7f, 0x80, true}; /* 0x7f is NaN */
static const struct small_float f8e5m2 = {2, 15, 0x7b, 0x7c, 0x7e, 0x80, true};

static const struct small_float *small_float(uint32_t dtype)
{
    switch (dtype) {
    case WEFT_DTYPE_F16:
        return &f16;
    case WEFT_DTYPE_BF16:
        return &bf16;
    case WEFT_DTYPE_F8E4M3:
        return &f8e4m3;
    case WEFT_DTYPE_F8E5M2:
        return &f8e5m2;
    default:
        return NULL;
    }
}

static double decode(const struct small_float *format, uint32_t bits)
{
    uint32_t magnitude = bits & ~format->sign;
    int exponent = (int)(magnitude >> format->mantissa_bits);
    uint32_t mantissa = magnitude & ((1u << format->mantissa_bits) - 1);
    double value;

    if (magnitude > format->largest)
        value = magnitude == format->infinity && format->infinity != format->nan ? INFINITY
                                                                                 : (double)NAN;
    else if (exponent == 0)
        value = ldexp(mantissa, 1 - format->bias - format->mantissa_bits);
    else
        value = ldexp(mantissa + (1u << format->mantissa_bits),
                      exponent - format->bias - format->mantissa_bits);
    return (bits & format->sign) != 0 ? -value : value;
}

static uint32_t encode(const struct small_float *format, double value)
{
    uint32_t sign = signbit(value) ? format->sign : 0;
    uint32_t past = format->saturates ? format->largest : format->infinity;
    int exponent;
    double steps;

    if (isnan(value)) return format->nan;
    if (value == 0) return sign;
    if (isinf(value)) return sign | past;
    frexp(value, &exponent);
    exponent--; /* now |value| is in [1, 2) x 2^exponent */
    if (exponent < 1 - format->bias) exponent = 1 - format->bias;
    if (exponent > format->bias + 1) return sign | past;
    steps = nearbyint(ldexp(fabs(value), format->mantissa_bits - exponent));
    /* STEPS keeps the leading one of a normal number: it adds 1 to the exponent field, and so does
     * a carry out of rounding. */
    uint32_t bits =
        ((uint32_t)(exponent + format->bias - 1) << format->mantissa_bits) + (uint32_t)steps;
    return sign | (bits > format->largest ? past : bits);
}

bool wf_dtype_is_complex(uint32_t dtype)
{
    return dtype == WEFT_DTYPE_C64 || dtype == WEFT_DTYPE_C128;
}

bool wf_dtype_is_float(uint32_t dtype)
{
    return dtype >= WEFT_DTYPE_F16 && !wf_dtype_is_complex(dtype);
}

bool wf_dtype_is_signed(uint32_t dtype)
{
    return dtype == WEFT_DTYPE_I8 || dtype == WEFT_DTYPE_I16 || dtype == WEFT_DTYPE_I32 ||
           dtype == WEFT_DTYPE_I64;
}

double wf_dtype_epsilon(uint32_t dtype)
{
    const struct small_float *format = small_float(dtype);

    if (format != NULL) return ldexp(1, -format->mantissa_bits - 1);
    if (dtype == WEFT_DTYPE_F32 || dtype == WEFT_DTYPE_C64) return ldexp(1, -24);
    if (dtype == WEFT_DTYPE_F64 || dtype == WEFT_DTYPE_C128) return ldexp(1, -53);
    return 0;
}

double wf_dtype_exact_limit(uint32_t dtype)
{
    double epsilon = wf_dtype_epsilon(dtype);

    return epsilon > 0 ? 1 / epsilon : ldexp(1, (int)wf_dtype_bytes(dtype) * 8 - 1) - 1;
}

static double load_real(uint32_t dtype, const uint8_t *bytes)
{
    if (dtype == WEFT_DTYPE_F64 || dtype == WEFT_DTYPE_C128) {
        double value;
        memcpy(&value, bytes, sizeof value);
        return value;
    }
    if (dtype == WEFT_DTYPE_F32 || dtype == WEFT_DTYPE_C64) {
        float value;
        memcpy(&value, bytes, sizeof value);
        return (double)value;
    }
    if (wf_dtype_bytes(dtype) == 2) {
        uint16_t bits;
        memcpy(&bits, bytes, sizeof bits);
        return decode(small_float(dtype), bits);
    }
    return decode(small_float(dtype), *bytes);
}

static void store_real(uint32_t dtype, double value, uint8_t *bytes)
{
    if (dtype == WEFT_DTYPE_F64 || dtype == WEFT_DTYPE_C128) {
        memcpy(bytes, &value, sizeof value);
    } else if (dtype == WEFT_DTYPE_F32 || dtype == WEFT_DTYPE_C64) {
        float narrow = (float)value;
        memcpy(bytes, &narrow, sizeof narrow);
    } else if (wf_dtype_bytes(dtype) == 2) {
        uint16_t bits = (uint16_t)encode(small_float(dtype), value);
        memcpy(bytes, &bits, sizeof bits);
    } else {
        *bytes = (uint8_t)encode(small_float(dtype), value);
    }
}

static uint64_t load_integer(uint32_t dtype, const uint8_t *bytes)
{
    uint8_t byte;
    uint16_t half;
    uint32_t word;
    uint64_t wide;

    switch (wf_dtype_bytes(dtype)) {
    case 1:
        byte = *bytes;
        return wf_dtype_is_signed(dtype) ? (uint64_t)(int64_t)(int8_t)byte : byte;
    case 2:
        memcpy(&half, bytes, sizeof half);
        return wf_dtype_is_signed(dtype) ? (uint64_t)(int64_t)(int16_t)half : half;
    case 4:
        memcpy(&word, bytes, sizeof word);
        return wf_dtype_is_signed(dtype) ? (uint64_t)(int64_t)(int32_t)word : word;
    default:
        memcpy(&wide, bytes, sizeof wide);
        return wide;
    }
}

static void store_integer(uint32_t dtype, uint64_t value, uint8_t *bytes)
{
    uint16_t half = (uint16_t)value;
    uint32_t word = (uint32_t)value;

    switch (wf_dtype_bytes(dtype)) {
    case 1:
        *bytes = (uint8_t)value;
        break;
    case 2:
        memcpy(bytes, &half, sizeof half);
        break;
    case 4:
        memcpy(bytes, &word, sizeof word);
        break;
    default:
        memcpy(bytes, &value, sizeof value);
    }
}

struct wf_number wf_number_load(uint32_t dtype, const void *element)
{
    const uint8_t *bytes = element;
    struct wf_number number = {0};

    if (wf_dtype_is_complex(dtype)) {
        number.re = load_real(dtype, bytes);
        number.im = load_real(dtype, bytes + wf_dtype_bytes(dtype) / 2);
    } else if (wf_dtype_is_float(dtype)) {
        number.re = load_real(dtype, bytes);
    } else {
        number.integer = load_integer(dtype, bytes);
    }
    return number;
}

void wf_number_store(uint32_t dtype, struct wf_number number, void *element)
{
    uint8_t *bytes = element;

    if (wf_dtype_is_complex(dtype)) {
        store_real(dtype, number.re, bytes);
        store_real(dtype, number.im, bytes + wf_dtype_bytes(dtype) / 2);
    } else if (wf_dtype_is_float(dtype)) {
        store_real(dtype, number.re, bytes);
    } else {
        store_integer(dtype, number.integer, bytes);
    }
}

void wf_number_print(uint32_t dtype, const void *element, char *out, size_t capacity)
{
    const uint8_t *bytes = element;
    struct wf_number number = wf_number_load(dtype, element);
    size_t size = wf_dtype_bytes(dtype);
    int used;

    if (wf_dtype_is_complex(dtype))
        used = kit_print(out, capacity, "%.17g%+.17gi", number.re, number.im);
    else if (wf_dtype_is_float(dtype))
        used = kit_print(out, capacity, "%.9g", number.re);
    else if (wf_dtype_is_signed(dtype))
        used = snprintf(out, capacity, "%" PRId64, (int64_t)number.integer);
    else
        used = snprintf(out, capacity, "%" PRIu64, number.integer);
    if (used < 0 || (size_t)used + 2 * size + 6 > capacity) return;
    out += used;
    out += snprintf(out, 5, " (0x");
    for (size_t i = size; i-- > 0;) /* as a little-endian number reads */
        out += snprintf(out, 3, "%02x", bytes[i]);
    snprintf(out, 2, ")");
}
