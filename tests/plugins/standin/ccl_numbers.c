/* ccl_numbers.c - reductions as NCCL computes them, in independent plain arithmetic. */
#include "ccl.h"

#include <math.h>
#include <string.h>

struct format {
    int mantissa, bias;
    unsigned largest, past, nan, sign;
};
static const struct format formats[SC_DTYPES] = {
    [SC_F16] = {10, 15, 0x7bff, 0x7c00, 0x7e00, 0x8000},
    [SC_BF16] = {7, 127, 0x7f7f, 0x7f80, 0x7fc0, 0x8000},
    [SC_E4M3] = {3, 7, 0x7e, 0x7e, 0x7f, 0x80},
    [SC_E5M2] = {2, 15, 0x7b, 0x7b, 0x7e, 0x80},
};

size_t sc_dtype_bytes(int dtype)
{
    static const unsigned char bytes[SC_DTYPES] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};

    return bytes[dtype];
}

static bool is_integer(int dtype)
{
    return dtype <= SC_U64;
}

static double decode(const struct format *f, unsigned bits)
{
    unsigned magnitude = bits & ~f->sign, step = 1u << f->mantissa;
    int exponent = (int)(magnitude >> f->mantissa);
    double value = exponent == 0 ? ldexp(magnitude, 1 - f->bias - f->mantissa)
                                 : ldexp(magnitude % step + step, exponent - f->bias - f->mantissa);

    if (magnitude > f->largest)
        value = magnitude == f->largest + 1 && f->nan != f->largest + 1 ? (double)INFINITY
                                                                        : (double)NAN;
    return (bits & f->sign) != 0 ? -value : value;
}

static unsigned encode(const struct format *f, double value)
{
    unsigned sign = signbit(value) ? f->sign : 0;
    double magnitude = fabs(value), steps;
    int exponent = 0;

    if (isnan(value)) return f->nan;
    if (magnitude == 0) return sign;
    if (isinf(value)) return sign | f->past;
    frexp(magnitude, &exponent);
    exponent = exponent - 1 < 1 - f->bias ? 1 - f->bias : exponent - 1;
    if (exponent > f->bias + 1) return sign | f->past;
    steps = nearbyint(ldexp(magnitude, f->mantissa - exponent)) +
            ldexp(exponent + f->bias - 1, f->mantissa);
    return sign | (steps > f->largest ? f->past : (unsigned)steps);
}

double sc_load(int dtype, const void *element)
{
    uint16_t half;
    float single;
    double value;

    if (dtype == SC_F64) {
        memcpy(&value, element, sizeof value);
        return value;
    }
    if (dtype == SC_F32) {
        memcpy(&single, element, sizeof single);
        return (double)single;
    }
    if (sc_dtype_bytes(dtype) == 1) return decode(&formats[dtype], *(const unsigned char *)element);
    memcpy(&half, element, sizeof half);
    return decode(&formats[dtype], half);
}

static double rounded(int dtype, double value)
{
    if (dtype == SC_F64) return value;
    if (dtype == SC_F32) return (double)(float)value;
    return decode(&formats[dtype], encode(&formats[dtype], value));
}

static void store(int dtype, double value, unsigned char *element)
{
    float single = (float)value;
    uint16_t half;

    if (dtype == SC_F64) {
        memcpy(element, &value, sizeof value);
    } else if (dtype == SC_F32) {
        memcpy(element, &single, sizeof single);
    } else if (sc_dtype_bytes(dtype) == 1) {
        *element = (unsigned char)encode(&formats[dtype], value);
    } else {
        half = (uint16_t)encode(&formats[dtype], value);
        memcpy(element, &half, sizeof half);
    }
}

static int64_t load_integer(int dtype, const unsigned char *element)
{
    uint64_t raw = 0;
    size_t bytes = sc_dtype_bytes(dtype);
    bool is_signed = dtype == SC_I8 || dtype == SC_I32 || dtype == SC_I64;

    memcpy(&raw, element, bytes); /* little-endian */
    if (is_signed && bytes < 8 && (raw >> (bytes * 8 - 1)) != 0) raw |= ~UINT64_C(0) << (bytes * 8);
    return (int64_t)raw;
}

static int64_t combine_integers(int dtype, int op, int64_t a, int64_t b)
{
    bool less = dtype == SC_U64 ? (uint64_t)a < (uint64_t)b : a < b;

    switch (op) {
    case SC_PROD:
        return (int64_t)((uint64_t)a * (uint64_t)b);
    case SC_MAX:
        return less ? b : a;
    case SC_MIN:
        return less ? a : b;
    default:
        return (int64_t)((uint64_t)a + (uint64_t)b);
    }
}

static void reduce_integer(int dtype, int op, int n, const unsigned char *parts, size_t stride,
                           unsigned char *target)
{
    size_t bytes = sc_dtype_bytes(dtype);
    unsigned char element[8];
    int64_t sum = 0;

    for (int k = 0; k < n; k++) {
        int64_t value = load_integer(dtype, parts + (size_t)k * stride);
        sum = k == 0 ? value : combine_integers(dtype, op, sum, value);
        memcpy(element, &sum, bytes); /* wraps */
        sum = load_integer(dtype, element);
    }
    if (op == SC_AVG && dtype == SC_U64)
        sum = (int64_t)((uint64_t)sum / (uint64_t)n);
    else if (op == SC_AVG)
        sum /= n;
    memcpy(target, &sum, bytes);
}

static double combine_floats(int op, double a, double b)
{
    switch (op) {
    case SC_PROD:
        return a * b;
    case SC_MAX:
        return fmax(a, b);
    case SC_MIN:
        return fmin(a, b);
    default:
        return a + b;
    }
}

static void reduce_float(int dtype, int op, int n, const unsigned char *parts, size_t stride,
                         unsigned char *target)
{
    double sum = 0, factor = rounded(dtype, 1.0 / n);

    for (int k = 0; k < n; k++) {
        double value = sc_load(dtype, parts + (size_t)k * stride);
        if (op == SC_AVG) value = rounded(dtype, value * factor);
        sum = k == 0 ? value : rounded(dtype, combine_floats(op, sum, value));
    }
    store(dtype, sum, target);
}

void sc_reduce(int dtype, int op, size_t count, int parts_count, const unsigned char *parts,
               size_t stride, unsigned char *target)
{
    size_t bytes = sc_dtype_bytes(dtype);

    for (size_t i = 0; i < count; i++) {
        if (is_integer(dtype))
            reduce_integer(dtype, op, parts_count, parts + i * bytes, stride, target + i * bytes);
        else
            reduce_float(dtype, op, parts_count, parts + i * bytes, stride, target + i * bytes);
    }
}

void sc_scale(int dtype, double scale, size_t count, const unsigned char *source,
              unsigned char *target)
{
    size_t bytes = sc_dtype_bytes(dtype);

    for (size_t at = 0; at < count * bytes; at += bytes) {
        uint64_t whole;
        if (is_integer(dtype)) {
            whole = (uint64_t)load_integer(dtype, source + at) * (uint64_t)(int64_t)scale;
            memcpy(target + at, &whole, bytes); /* wraps */
        } else {
            store(dtype, sc_load(dtype, source + at) * scale, target + at);
        }
    }
}
