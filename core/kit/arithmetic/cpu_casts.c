/* cpu_casts.c - conversion between dtypes.
 *
 * Vector kernels convert small floats to and from f32.  Other conversions use the widest type of
 * the kind as an intermediate, one block at a time: f64 for floats, i64 or u64 for integers.  These
 * are exact.  A conversion from an intermediate to a small float rounds to f32 first.  That step
 * rounds to odd, so the second rounding gives the correctly rounded result. */
#include "cpu_casts.h"

#include "cpu_number.h"

#include <string.h>

#define BLOCK 512 /* elements */

enum wide_kind { WIDE_REAL, WIDE_SIGNED, WIDE_UNSIGNED };

union wide {
    double real[BLOCK];
    int64_t whole[BLOCK];
    uint64_t natural[BLOCK];
    float single[BLOCK];
};

static enum wide_kind kind_of(uint32_t dtype)
{
    if (dtype == WEFT_DTYPE_U64) return WIDE_UNSIGNED;
    return dtype <= WEFT_DTYPE_I64 ? WIDE_SIGNED : WIDE_REAL;
}

static bool is_small(uint32_t dtype)
{
    return dtype == WEFT_DTYPE_F16 || dtype == WEFT_DTYPE_BF16 || dtype == WEFT_DTYPE_F8E4M3 ||
           dtype == WEFT_DTYPE_F8E5M2;
}

static double magnitude(double value)
{
    return value < 0 ? -value : value;
}

/* VALUE if it is an f32, else the adjacent f32 whose last bit is odd. */
static float round_to_odd(double value)
{
    float near = (float)value;
    double back = (double)near;
    uint32_t bits = cpu_bits_of_f32(near);
    uint32_t inexact = (back < value) | (back > value); /* not for NaN */
    uint32_t larger = magnitude(back) > magnitude(value);

    return cpu_f32_of_bits((bits - (inexact & larger)) | inexact);
}

/* The same for integers too large for f64: discarded bits set the last bit. */
static double odd_natural(uint64_t value)
{
    if (value >> 53 != 0) value = (value & ~UINT64_C(0x7ff)) | ((value & 0x7ff) != 0 ? 0x800u : 0u);
    return (double)value;
}

#define LOAD(type, field)                                                                          \
    for (size_t i = 0; i < count; i++)                                                             \
        out->field[i] = ((const type *)source)[i];                                                 \
    break

static void load_whole(uint32_t dtype, const void *source, size_t count, union wide *out)
{
    switch (dtype) {
    case WEFT_DTYPE_I8:
        LOAD(int8_t, whole);
    case WEFT_DTYPE_I16:
        LOAD(int16_t, whole);
    case WEFT_DTYPE_U16:
        LOAD(uint16_t, whole);
    case WEFT_DTYPE_I32:
        LOAD(int32_t, whole);
    case WEFT_DTYPE_U32:
        LOAD(uint32_t, whole);
    case WEFT_DTYPE_I64:
        LOAD(int64_t, whole);
    case WEFT_DTYPE_U64:
        LOAD(uint64_t, natural);
    default: /* bool and u8 */
        LOAD(uint8_t, whole);
    }
}

/* Converts the bits, and makes a signalling NaN quiet, as hardware does in other dtypes. */
static void widen_bf16(const uint16_t *source, uint32_t *target, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t bits = (uint32_t)source[i] << 16;

        target[i] = bits | ((bits & 0x7fffffffu) > F32_INFINITY ? F32_QUIET : 0);
    }
}

static void widen_small(const struct cpu_kernels *kernels, uint32_t dtype, const void *source,
                        float *target, size_t count)
{
    if (dtype == WEFT_DTYPE_BF16)
        widen_bf16(source, (uint32_t *)(void *)target, count);
    else
        kernels->of[dtype].widen(target, source, count);
}

static void load_real(const struct cpu_kernels *kernels, uint32_t dtype, const void *source,
                      size_t count, union wide *out)
{
    float single[BLOCK];

    switch (dtype) {
    case WEFT_DTYPE_F64:
        LOAD(double, real);
    case WEFT_DTYPE_F32:
        LOAD(float, real);
    default:
        widen_small(kernels, dtype, source, single, count);
        for (size_t i = 0; i < count; i++)
            out->real[i] = (double)single[i];
    }
}

/* Values outside the range saturate.  Others are truncated toward zero.  NaN becomes 0. */
#define STORE_WHOLE(type, least, most)                                                             \
    for (size_t i = 0; i < count; i++) {                                                           \
        type *to = (type *)target + i;                                                             \
        if (kind == WIDE_REAL) {                                                                   \
            double v = in->real[i];                                                                \
            *to = v != v                 ? 0                                                       \
                  : v <= (double)(least) ? (type)(least)                                           \
                  : v >= (double)(most)  ? (type)(most)                                            \
                                         : (type)v;                                                 \
        } else if (kind == WIDE_SIGNED) {                                                          \
            int64_t v = in->whole[i];                                                              \
            *to = v < (int64_t)(least)                        ? (type)(least)                      \
                  : (v > 0 && (uint64_t)v > (uint64_t)(most)) ? (type)(most)                       \
                                                              : (type)v;                           \
        } else {                                                                                   \
            uint64_t v = in->natural[i];                                                           \
            *to = v > (uint64_t)(most) ? (type)(most) : (type)v;                                   \
        }                                                                                          \
    }                                                                                              \
    break

static void store_bool(enum wide_kind kind, const union wide *in, size_t count, uint8_t *target)
{
    for (size_t i = 0; i < count; i++)
        target[i] = kind == WIDE_REAL ? in->real[i] != 0 : in->natural[i] != 0;
}

static void store_whole(uint32_t dtype, enum wide_kind kind, const union wide *in, size_t count,
                        void *target)
{
    switch (dtype) {
    case WEFT_DTYPE_I8:
        STORE_WHOLE(int8_t, INT8_MIN, INT8_MAX);
    case WEFT_DTYPE_U8:
        STORE_WHOLE(uint8_t, 0, UINT8_MAX);
    case WEFT_DTYPE_I16:
        STORE_WHOLE(int16_t, INT16_MIN, INT16_MAX);
    case WEFT_DTYPE_U16:
        STORE_WHOLE(uint16_t, 0, UINT16_MAX);
    case WEFT_DTYPE_I32:
        STORE_WHOLE(int32_t, INT32_MIN, INT32_MAX);
    case WEFT_DTYPE_U32:
        STORE_WHOLE(uint32_t, 0, UINT32_MAX);
    case WEFT_DTYPE_I64:
        STORE_WHOLE(int64_t, INT64_MIN, INT64_MAX);
    case WEFT_DTYPE_U64:
        STORE_WHOLE(uint64_t, 0, UINT64_MAX);
    default:
        store_bool(kind, in, count, target);
    }
}

static double odd_whole(int64_t value)
{
    return value < 0 ? -odd_natural(-(uint64_t)value) : odd_natural((uint64_t)value);
}

static void store_small(const struct cpu_kernels *kernels, uint32_t dtype, enum wide_kind kind,
                        const union wide *in, size_t count, void *target)
{
    float single[BLOCK];

    for (size_t i = 0; i < count; i++) {
        double value = kind == WIDE_REAL     ? in->real[i]
                       : kind == WIDE_SIGNED ? odd_whole(in->whole[i])
                                             : odd_natural(in->natural[i]);

        single[i] = round_to_odd(value);
    }
    kernels->of[dtype].narrow(target, single, count);
}

#define STORE_REAL(type)                                                                           \
    for (size_t i = 0; i < count; i++)                                                             \
        ((type *)target)[i] = kind == WIDE_REAL     ? (type)in->real[i]                            \
                              : kind == WIDE_SIGNED ? (type)in->whole[i]                           \
                                                    : (type)in->natural[i];                        \
    break

static void store_real(const struct cpu_kernels *kernels, uint32_t dtype, enum wide_kind kind,
                       const union wide *in, size_t count, void *target)
{
    switch (dtype) {
    case WEFT_DTYPE_F64:
        STORE_REAL(double);
    case WEFT_DTYPE_F32:
        STORE_REAL(float);
    default:
        store_small(kernels, dtype, kind, in, count, target);
    }
}

/* Converts a small float through f32.  Widening is exact, so only narrowing rounds. */
static void cast_small(const struct cpu_kernels *kernels, uint32_t from, uint32_t to, size_t count,
                       const void *source, void *target)
{
    float single[BLOCK];

    widen_small(kernels, from, source, single, count);
    kernels->of[to].narrow(target, single, count);
}

static void cast_block(const struct cpu_kernels *kernels, uint32_t from, uint32_t to, size_t count,
                       const void *source, void *target)
{
    enum wide_kind kind = kind_of(from);
    union wide wide;

    if (is_small(from) && is_small(to)) {
        cast_small(kernels, from, to, count, source, target);
        return;
    }
    if (kind == WIDE_REAL)
        load_real(kernels, from, source, count, &wide);
    else
        load_whole(from, source, count, &wide);
    if (kind_of(to) == WIDE_REAL)
        store_real(kernels, to, kind, &wide, count, target);
    else
        store_whole(to, kind, &wide, count, target);
}

static void cast_complex(uint32_t from, size_t count, const void *source, void *target)
{
    if (from == WEFT_DTYPE_C64)
        for (size_t i = 0; i < 2 * count; i++)
            ((double *)target)[i] = (double)((const float *)source)[i];
    else
        for (size_t i = 0; i < 2 * count; i++)
            ((float *)target)[i] = (float)((const double *)source)[i];
}

#define EXTEND(name, narrow, wide)                                                                 \
    static void name(const narrow *source, wide *target, size_t count)                             \
    {                                                                                              \
        for (size_t i = 0; i < count; i++)                                                         \
            target[i] = (wide)source[i];                                                           \
    }

EXTEND(extend_i8_16, int8_t, int16_t)
EXTEND(extend_i8_32, int8_t, int32_t)
EXTEND(extend_i8_64, int8_t, int64_t)
EXTEND(extend_i16_32, int16_t, int32_t)
EXTEND(extend_i16_64, int16_t, int64_t)
EXTEND(extend_i32_64, int32_t, int64_t)
EXTEND(extend_u8_16, uint8_t, uint16_t)
EXTEND(extend_u8_32, uint8_t, uint32_t)
EXTEND(extend_u8_64, uint8_t, uint64_t)
EXTEND(extend_u16_32, uint16_t, uint32_t)
EXTEND(extend_u16_64, uint16_t, uint64_t)
EXTEND(extend_u32_64, uint32_t, uint64_t)

/* Widens integers.  The bits do not depend on whether the target is signed.
 * False if FROM and TO are not such a pair. */
static bool extend(uint32_t from, uint32_t to, const void *source, void *target, size_t count)
{
    size_t width = kit_dtype_bytes(to), narrow = kit_dtype_bytes(from);
    bool is_signed = from == WEFT_DTYPE_I8 || from == WEFT_DTYPE_I16 || from == WEFT_DTYPE_I32;

    if (from < WEFT_DTYPE_I8 || from > WEFT_DTYPE_U64 || to > WEFT_DTYPE_U64 || width <= narrow)
        return false;
    if (is_signed && (to == WEFT_DTYPE_U16 || to == WEFT_DTYPE_U32 || to == WEFT_DTYPE_U64))
        return false;
    if (narrow == 4)
        is_signed ? extend_i32_64(source, target, count) : extend_u32_64(source, target, count);
    else if (narrow == 2 && width == 4)
        is_signed ? extend_i16_32(source, target, count) : extend_u16_32(source, target, count);
    else if (narrow == 2)
        is_signed ? extend_i16_64(source, target, count) : extend_u16_64(source, target, count);
    else if (width == 2)
        is_signed ? extend_i8_16(source, target, count) : extend_u8_16(source, target, count);
    else if (width == 4)
        is_signed ? extend_i8_32(source, target, count) : extend_u8_32(source, target, count);
    else
        is_signed ? extend_i8_64(source, target, count) : extend_u8_64(source, target, count);
    return true;
}

static bool is_complex(uint32_t dtype)
{
    return dtype == WEFT_DTYPE_C64 || dtype == WEFT_DTYPE_C128;
}

void cpu_cast_elements(const struct cpu_kernels *kernels, uint32_t from, uint32_t to,
                       const void *source, void *target, size_t count)
{
    size_t in = kit_dtype_bytes(from), out = kit_dtype_bytes(to);

    if (count == 0) return;
    if (from == to) {
        memmove(target, source, count * in);
    } else if (from == WEFT_DTYPE_F32 && is_small(to)) {
        kernels->of[to].narrow(target, source, count);
    } else if (extend(from, to, source, target, count)) {
        return;
    } else if (is_complex(from)) {
        cast_complex(from, count, source, target);
    } else {
        for (size_t at = 0; at < count; at += BLOCK) {
            size_t block = count - at < BLOCK ? count - at : BLOCK;
            const unsigned char *begin = (const unsigned char *)source + at * in;

            if (is_small(from) && to == WEFT_DTYPE_F32)
                widen_small(kernels, from, begin, (float *)target + at, block);
            else
                cast_block(kernels, from, to, block, begin, (unsigned char *)target + at * out);
        }
    }
}
