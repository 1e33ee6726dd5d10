/* cpu_kernels.h - the arithmetic, compiled once for each vector instruction set.
 *
 * The including file defines LEVEL (a table's name) and LEVEL_NAME.  The compiler vectorizes the
 * loops.  A target may equal a source, but elements do not depend on each other, which INDEPENDENT
 * asserts. */
#include "cpu_number.h"
#include "cpu_reduce.h"
#include "random_formulas.h"

#include <float.h>

#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

#define BINARY(name, type, expression)                                                             \
    static void name(void *target, const void *left, const void *right, size_t count)              \
    {                                                                                              \
        type *t = target;                                                                          \
        const type *l = left, *r = right;                                                          \
        INDEPENDENT for (size_t i = 0; i < count; i++)                                             \
        {                                                                                          \
            type a = l[i], b = r[i];                                                               \
            t[i] = (type)(expression);                                                             \
        }                                                                                          \
    }

#define SCALE(name, type, wide)                                                                    \
    static void name(void *target, const void *value, const void *scale, size_t count)             \
    {                                                                                              \
        type *t = target;                                                                          \
        const type *v = value;                                                                     \
        wide k = (wide) * (const type *)scale;                                                     \
        INDEPENDENT for (size_t i = 0; i < count; i++) t[i] = (type)((wide)v[i] * k);              \
    }

#define SCALE_ADD(name, type, wide)                                                                \
    static void name(void *target, const void *sum, const void *value, const void *scale,          \
                     size_t count)                                                                 \
    {                                                                                              \
        type *t = target;                                                                          \
        const type *s = sum, *v = value;                                                           \
        wide k = (wide) * (const type *)scale;                                                     \
        INDEPENDENT for (size_t i = 0; i < count; i++) t[i] = (type)((wide)s[i] + (wide)v[i] * k); \
    }

/* Integers.  WRAP is an unsigned type in which products cannot overflow. */
#define INTEGER(name, type, wrap)                                                                  \
    BINARY(add_##name, type, (wrap)a + (wrap)b)                                                    \
    BINARY(multiply_##name, type, (wrap)a *(wrap)b)                                                \
    BINARY(least_##name, type, a < b ? a : b)                                                      \
    BINARY(most_##name, type, a > b ? a : b)                                                       \
    BINARY(and_##name, type, a &b)                                                                 \
    BINARY(or_##name, type, a | b)                                                                 \
    BINARY(xor_##name, type, a ^ b)                                                                \
    SCALE(scale_##name, type, wrap)                                                                \
    SCALE_ADD(scale_add_##name, type, wrap)

INTEGER(i8, int8_t, uint32_t)
INTEGER(u8, uint8_t, uint32_t)
INTEGER(i16, int16_t, uint32_t)
INTEGER(u16, uint16_t, uint32_t)
INTEGER(i32, int32_t, uint32_t)
INTEGER(u32, uint32_t, uint32_t)
INTEGER(i64, int64_t, uint64_t)
INTEGER(u64, uint64_t, uint64_t)

/* NaN wins over every number: the result is `a` if `a` is NaN, and `b`, by a false comparison, if
 * `b` is NaN. */
#define REAL(name, type)                                                                           \
    BINARY(add_##name, type, a + b)                                                                \
    BINARY(multiply_##name, type, a *b)                                                            \
    BINARY(least_##name, type, ((a < b) | (a != a)) ? a : b)                                       \
    BINARY(most_##name, type, ((a > b) | (a != a)) ? a : b)                                        \
    SCALE(scale_##name, type, type)                                                                \
    SCALE_ADD(scale_add_##name, type, type)

REAL(f32, float)
REAL(f64, double)

/* Averages.  Multiplication by the reciprocal of a power of two gives the same bits and is
 * faster. */
#define DIVIDE(name, type)                                                                         \
    static void divide_##name(void *target, const void *value, uint32_t parts, size_t count)       \
    {                                                                                              \
        type *t = target, n = (type)parts, reciprocal = (type)1 / n;                               \
        const type *v = value;                                                                     \
        if ((parts & (parts - 1)) == 0) {                                                          \
            scale_##name(target, value, &reciprocal, count);                                       \
            return;                                                                                \
        }                                                                                          \
        INDEPENDENT for (size_t i = 0; i < count; i++) t[i] = v[i] / n;                            \
    }                                                                                              \
    static void divide_add_##name(void *target, const void *sum, const void *value,                \
                                  uint32_t parts, size_t count)                                    \
    {                                                                                              \
        type *t = target, n = (type)parts, reciprocal = (type)1 / n;                               \
        const type *s = sum, *v = value;                                                           \
        if ((parts & (parts - 1)) == 0) {                                                          \
            scale_add_##name(target, sum, value, &reciprocal, count);                              \
            return;                                                                                \
        }                                                                                          \
        INDEPENDENT for (size_t i = 0; i < count; i++) t[i] = s[i] + v[i] / n;                     \
    }                                                                                              \
    static void divide_pair_##name(void *target, const void *left, const void *right,              \
                                   uint32_t parts, size_t count)                                   \
    {                                                                                              \
        type *t = target, n = (type)parts, reciprocal = (type)1 / n;                               \
        const type *l = left, *r = right;                                                          \
        if ((parts & (parts - 1)) == 0) {                                                          \
            INDEPENDENT for (size_t i = 0; i < count; i++) t[i] =                                  \
                l[i] * reciprocal + r[i] * reciprocal;                                             \
            return;                                                                                \
        }                                                                                          \
        INDEPENDENT for (size_t i = 0; i < count; i++) t[i] = l[i] / n + r[i] / n;                 \
    }

DIVIDE(f32, float)
DIVIDE(f64, double)

/* The mean of finite numbers is finite.  If the parts are rounded up, the last addition may round
 * to infinity.  The largest finite number is then nearer to the mean. */
#define MEAN_ADD(name, type, largest, magnitude, with_sign)                                        \
    static void mean_add_##name(void *target, const void *sum, const void *value, uint32_t parts,  \
                                size_t count)                                                      \
    {                                                                                              \
        type *t = target, n = (type)parts;                                                         \
        const type *s = sum, *v = value;                                                           \
        INDEPENDENT for (size_t i = 0; i < count; i++)                                             \
        {                                                                                          \
            type a = s[i], b = v[i] / n, c = a + b;                                                \
            bool finite = (magnitude(a) <= largest) & (magnitude(b) <= largest);                   \
            t[i] = (finite & (magnitude(c) > largest)) ? with_sign(largest, c) : c;                \
        }                                                                                          \
    }

MEAN_ADD(f32, float, FLT_MAX, __builtin_fabsf, __builtin_copysignf)
MEAN_ADD(f64, double, DBL_MAX, __builtin_fabs, __builtin_copysign)

/* Limit finite means that are rounded up past the LARGEST number of a smaller format. */
static void limit_f32(float *data, float largest, size_t count)
{
    INDEPENDENT for (size_t i = 0; i < count; i++)
    {
        float value = data[i], size = __builtin_fabsf(value);
        data[i] =
            ((size > largest) & (size <= FLT_MAX)) ? __builtin_copysignf(largest, value) : value;
    }
}

/* Products of complex VALUES and FACTORs; the results are terms of re[k], im[k] and the index i.
 * Both parts go through arrays of their own: where they are stored side by side, gcc 12 fuses the
 * multiplications with the sum and the difference, in spite of -ffp-contract=off. */
#define PRODUCTS_AT_ONCE 128
#define PRODUCTS(type, values, factor_re, factor_im, result_re, result_im)                         \
    type *t = target;                                                                              \
    for (size_t first = 0; first < count; first += PRODUCTS_AT_ONCE) {                             \
        type re[PRODUCTS_AT_ONCE], im[PRODUCTS_AT_ONCE];                                           \
        size_t here = count - first < PRODUCTS_AT_ONCE ? count - first : PRODUCTS_AT_ONCE;         \
        INDEPENDENT for (size_t k = 0; k < here; k++)                                              \
        {                                                                                          \
            size_t i = 2 * (first + k);                                                            \
            type a = (values)[i], b = (values)[i + 1], p = (factor_re), q = (factor_im);           \
            re[k] = a * p - b * q;                                                                 \
            im[k] = a * q + b * p;                                                                 \
        }                                                                                          \
        INDEPENDENT for (size_t k = 0; k < here; k++)                                              \
        {                                                                                          \
            size_t i = 2 * (first + k);                                                            \
            t[i] = (result_re);                                                                    \
            t[i + 1] = (result_im);                                                                \
        }                                                                                          \
    }

#define COMPLEX(name, type, part)                                                                  \
    static void add_##name(void *target, const void *a, const void *b, size_t count)               \
    {                                                                                              \
        add_##part(target, a, b, 2 * count);                                                       \
    }                                                                                              \
    static void divide_##name(void *target, const void *value, uint32_t parts, size_t count)       \
    {                                                                                              \
        divide_##part(target, value, parts, 2 * count);                                            \
    }                                                                                              \
    static void divide_add_##name(void *target, const void *sum, const void *value,                \
                                  uint32_t parts, size_t count)                                    \
    {                                                                                              \
        divide_add_##part(target, sum, value, parts, 2 * count);                                   \
    }                                                                                              \
    static void divide_pair_##name(void *target, const void *left, const void *right,              \
                                   uint32_t parts, size_t count)                                   \
    {                                                                                              \
        divide_pair_##part(target, left, right, parts, 2 * count);                                 \
    }                                                                                              \
    static void mean_add_##name(void *target, const void *sum, const void *value, uint32_t parts,  \
                                size_t count)                                                      \
    {                                                                                              \
        mean_add_##part(target, sum, value, parts, 2 * count);                                     \
    }                                                                                              \
    static void multiply_##name(void *target, const void *left, const void *right, size_t count)   \
    {                                                                                              \
        const type *l = left, *r = right;                                                          \
        PRODUCTS(type, l, r[i], r[i + 1], re[k], im[k])                                            \
    }                                                                                              \
    static void scale_##name(void *target, const void *value, const void *scale, size_t count)     \
    {                                                                                              \
        const type *v = value;                                                                     \
        type c = *(const type *)scale, d = ((const type *)scale)[1];                               \
        PRODUCTS(type, v, c, d, re[k], im[k])                                                      \
    }                                                                                              \
    static void scale_add_##name(void *target, const void *sum, const void *value,                 \
                                 const void *scale, size_t count)                                  \
    {                                                                                              \
        const type *s = sum, *v = value;                                                           \
        type c = *(const type *)scale, d = ((const type *)scale)[1];                               \
        PRODUCTS(type, v, c, d, s[i] + re[k], s[i + 1] + im[k])                                    \
    }

COMPLEX(c64, float, f32)
COMPLEX(c128, double, f64)

#include "cpu_average.h"
#include "cpu_convert.h"
#include "cpu_draws.h"

#define ROW_INTEGER(name)                                                                          \
    {                                                                                              \
        .binary = {add_##name, multiply_##name, least_##name, most_##name,                         \
                   and_##name, or_##name,       xor_##name},                                       \
        .scale = scale_##name, .scale_add = scale_add_##name, .average = AVERAGE_OF_##name         \
    }
#define ROW_REAL(name)                                                                             \
    {                                                                                              \
        .binary = {add_##name, multiply_##name, least_##name, most_##name},                        \
        .divide = divide_##name, .divide_add = divide_add_##name,                                  \
        .divide_pair = divide_pair_##name, .mean_add = mean_add_##name, .scale = scale_##name,     \
        .scale_add = scale_add_##name                                                              \
    }
#define ROW_COMPLEX(name)                                                                          \
    {                                                                                              \
        .binary = {add_##name, multiply_##name}, .divide = divide_##name,                          \
        .divide_add = divide_add_##name, .divide_pair = divide_pair_##name,                        \
        .mean_add = mean_add_##name, .scale = scale_##name, .scale_add = scale_add_##name          \
    }

const struct cpu_kernels LEVEL = {
    .level = LEVEL_NAME,
    .draw_words = draw_words,
    .draw_uniform = draw_uniform,
    .draw_normal = draw_normal,
    .limit = limit_f32,
    .of = {
        [WEFT_DTYPE_BOOL] = {.binary = {or_u8, and_u8, and_u8, or_u8, and_u8, or_u8, xor_u8}},
        [WEFT_DTYPE_I8] = ROW_INTEGER(i8),
        [WEFT_DTYPE_U8] = ROW_INTEGER(u8),
        [WEFT_DTYPE_I16] = ROW_INTEGER(i16),
        [WEFT_DTYPE_U16] = ROW_INTEGER(u16),
        [WEFT_DTYPE_I32] = ROW_INTEGER(i32),
        [WEFT_DTYPE_U32] = ROW_INTEGER(u32),
        [WEFT_DTYPE_I64] = ROW_INTEGER(i64),
        [WEFT_DTYPE_U64] = ROW_INTEGER(u64),
        [WEFT_DTYPE_F16] = {.widen = widen_f16, .narrow = narrow_f16, .largest = 65504},
        [WEFT_DTYPE_BF16] = {.widen = widen_bf16, .narrow = narrow_bf16, .largest = 0x1.fep127f},
        [WEFT_DTYPE_F32] = ROW_REAL(f32),
        [WEFT_DTYPE_F64] = ROW_REAL(f64),
        [WEFT_DTYPE_F8E4M3] = {.widen = widen_f8e4m3, .narrow = narrow_f8e4m3},
        [WEFT_DTYPE_F8E5M2] = {.widen = widen_f8e5m2,
                               .narrow = narrow_f8e5m2,
                               .narrow_reduced = narrow_reduced_f8e5m2},
        [WEFT_DTYPE_C64] = ROW_COMPLEX(c64),
        [WEFT_DTYPE_C128] = ROW_COMPLEX(c128),
    }};
