/* random_formulas.h - random bits, and the functions that turn them into numbers.
 *
 * Philox-4x32-10 gives the bits.  Logarithm, sine, cosine and the normal quantile are polynomials
 * of this file: a C library's own would give other bits on another machine.  Each function consists
 * of single operations that IEEE 754 rounds in one way.  Compile it without fused multiply-add, so
 * that every compiler, processor and level of vector hardware gives the same bits.  No function of
 * f32 branches, so that loops over them are vectorized. */
#ifndef WEFT_RANDOM_FORMULAS_H
#define WEFT_RANDOM_FORMULAS_H

#include <stdint.h>

#if !defined(RANDOM_FUNCTION)
#include <math.h>
#define RANDOM_FUNCTION static inline
#define RANDOM_ROOT_F32 sqrtf
#define RANDOM_ROOT_F64 sqrt
#endif
/* The lesser of two numbers that are neither NaN nor -0. */
#if !defined(RANDOM_LESSER_F32)
#define RANDOM_LESSER_F32(a, b) ((a) < (b) ? (a) : (b))
#endif

/* ---- bits ---- */

#define PHILOX_MULTIPLIER_0 UINT32_C(0xD2511F53)
#define PHILOX_MULTIPLIER_1 UINT32_C(0xCD9E8D57)
#define PHILOX_WEYL_0       UINT32_C(0x9E3779B9)
#define PHILOX_WEYL_1       UINT32_C(0xBB67AE85)

enum { PHILOX_ROUNDS = 10 };

/* One round of the four words of a counter. */
RANDOM_FUNCTION void philox_round(uint32_t *a, uint32_t *b, uint32_t *c, uint32_t *d,
                                  uint32_t key_0, uint32_t key_1)
{
    uint64_t left = (uint64_t)PHILOX_MULTIPLIER_0 * *a, right = (uint64_t)PHILOX_MULTIPLIER_1 * *c;
    uint32_t second = *b, fourth = *d;

    *a = (uint32_t)(right >> 32) ^ second ^ key_0;
    *b = (uint32_t)right;
    *c = (uint32_t)(left >> 32) ^ fourth ^ key_1;
    *d = (uint32_t)left;
}

/* ---- f32 ---- */

/* LOW + n * UNIT, at most LAST; n has the bits of WORD without the lowest DROPPED. */
RANDOM_FUNCTION float uniform_f32(uint32_t word, uint32_t dropped, float low, float unit,
                                  float last)
{
    float value = low + (float)(int32_t)(word >> dropped) * unit;

    return RANDOM_LESSER_F32(value, last);
}

RANDOM_FUNCTION float float_of_bits(uint32_t bits)
{
    float value;

    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}

RANDOM_FUNCTION uint32_t bits_of_float(float value)
{
    uint32_t bits;

    __builtin_memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* In (0, 1]; the least is 2^-33. */
RANDOM_FUNCTION float unit_f32(uint32_t word)
{
    return (float)word * 0x1p-32f + 0x1p-33f;
}

/* -log(X), for X in (0, 1], not denormal. */
RANDOM_FUNCTION float minus_log_f32(float x)
{
    uint32_t bits = bits_of_float(x);
    /* x = 2^exponent * m, with m from sqrt(1/2) to sqrt(2) */
    uint32_t shifted = bits - UINT32_C(0x3F3504F3);
    int32_t exponent = (int32_t)shifted >> 23;
    float m = float_of_bits((shifted & UINT32_C(0x007FFFFF)) + UINT32_C(0x3F3504F3));
    float e = (float)exponent, f = m - 1.0f, z = f * f, p = 7.0376836292e-2f;

    p = p * f - 1.1514610310e-1f;
    p = p * f + 1.1676998740e-1f;
    p = p * f - 1.2420140846e-1f;
    p = p * f + 1.4249322787e-1f;
    p = p * f - 1.6668057665e-1f;
    p = p * f + 2.0000714765e-1f;
    p = p * f - 2.4999993993e-1f;
    p = p * f + 3.3333331174e-1f;
    p = p * f * z;
    p = p + e * -2.12194440e-4f;
    p = p - 0.5f * z;
    return -(f + p + e * 0.693359375f);
}

/* Sine and cosine of WORD / 2^32 turns. */
RANDOM_FUNCTION void turn_f32(uint32_t word, float *sine, float *cosine)
{
    uint32_t quarter = (word + (UINT32_C(1) << 29)) >> 30;
    int32_t rest = (int32_t)(word - (quarter << 30)); /* at most an eighth of a turn either way */
    float x = (float)rest * 1.4629180793e-9f, z = x * x;
    float s = ((-1.9515295891e-4f * z + 8.3321608736e-3f) * z - 1.6666654611e-1f) * z * x + x;
    float c =
        ((2.443315711809948e-5f * z - 1.388731625493765e-3f) * z + 4.166664568298827e-2f) * z * z -
        0.5f * z + 1.0f;
    uint32_t swap = 0 - (quarter & 1);
    uint32_t of_sine = (bits_of_float(s) & ~swap) | (bits_of_float(c) & swap);
    uint32_t of_cosine = (bits_of_float(c) & ~swap) | (bits_of_float(s) & swap);

    *sine = float_of_bits(of_sine ^ (quarter & 2) << 30);
    *cosine = float_of_bits(of_cosine ^ ((quarter + 1) & 2) << 30);
}

/* Two independent numbers of the standard normal distribution. */
RANDOM_FUNCTION void normal_pair_f32(uint32_t radius, uint32_t angle, float *first, float *second)
{
    float r = RANDOM_ROOT_F32(2.0f * minus_log_f32(unit_f32(radius))), sine, cosine;

    turn_f32(angle, &sine, &cosine);
    *first = r * cosine;
    *second = r * sine;
}

/* ---- f64 ---- */

/* As uniform_f32, with the upper 53 bits of WORD. */
RANDOM_FUNCTION double uniform_f64(uint64_t word, double low, double unit, double last)
{
    double value = low + (double)(int64_t)(word >> 11) * unit;

    return value < last ? value : last;
}

/* In (0, 1); the least is 2^-53. */
RANDOM_FUNCTION double unit_f64(uint64_t word)
{
    return ((double)(word >> 12) + 0.5) * 0x1p-52;
}

/* log(X), for X > 0, not denormal. */
RANDOM_FUNCTION double log_f64(double x)
{
    uint64_t bits, shifted;
    int64_t exponent;
    double f, s, z, w, even, odd, half, e;

    __builtin_memcpy(&bits, &x, sizeof bits);
    shifted = bits - UINT64_C(0x3FE6A09E667F3BCD);
    exponent = (int64_t)shifted >> 52;
    bits = (shifted & UINT64_C(0x000FFFFFFFFFFFFF)) + UINT64_C(0x3FE6A09E667F3BCD);
    __builtin_memcpy(&f, &bits, sizeof f);
    f = f - 1.0;
    e = (double)exponent;
    s = f / (2.0 + f);
    z = s * s;
    w = z * z;
    even = w * (3.999999999940941908e-01 +
                w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01));
    odd = z * (6.666666666666735130e-01 +
               w * (2.857142874366239149e-01 +
                    w * (1.818357216161805012e-01 + w * 1.479819860511658591e-01)));
    half = 0.5 * f * f;
    return e * 6.93147180369123816490e-01 -
           ((half - (s * (half + (even + odd)) + e * 1.90821492927058770002e-10)) - f);
}

/* Sine and cosine of WORD / 2^64 turns. */
RANDOM_FUNCTION void turn_f64(uint64_t word, double *sine, double *cosine)
{
    uint64_t quarter = (word + (UINT64_C(1) << 61)) >> 62;
    int64_t rest = (int64_t)(word - (quarter << 62));
    double x = (double)rest * 3.4061215800865545e-19, z = x * x, s, c;

    s = x +
        z * x *
            (-1.66666666666666324348e-01 +
             z * (8.33333333332248946124e-03 +
                  z * (-1.98412698298579493134e-04 +
                       z * (2.75573137070700676789e-06 +
                            z * (-2.50507602534068634195e-08 + z * 1.58969099521155010221e-10)))));
    c = 1.0 - (0.5 * z - z * z *
                             (4.16666666666666019037e-02 +
                              z * (-1.38888888888741095749e-03 +
                                   z * (2.48015872894767294178e-05 +
                                        z * (-2.75573143513906633035e-07 +
                                             z * (2.08757232129817482790e-09 +
                                                  z * -1.13596475577881948265e-11))))));
    *sine = quarter & 1 ? c : s;
    *cosine = quarter & 1 ? s : c;
    if (quarter & 2) *sine = -*sine;
    if ((quarter + 1) & 2) *cosine = -*cosine;
}

RANDOM_FUNCTION void normal_pair_f64(uint64_t radius, uint64_t angle, double *first, double *second)
{
    double r = RANDOM_ROOT_F64(-2.0 * log_f64(unit_f64(radius))), sine, cosine;

    turn_f64(angle, &sine, &cosine);
    *first = r * cosine;
    *second = r * sine;
}

/* ---- the normal quantile (Wichura, algorithm AS 241, PPND16) ---- */

/* The value of the polynomial with the coefficients P[7] .. P[0], the highest power last. */
RANDOM_FUNCTION double polynomial_7(const double *p, double x)
{
    double value = p[7];

    for (int i = 6; i >= 0; i--)
        value = value * x + p[i];
    return value;
}

/* The standard normal number below which a share P of all numbers is, for P in (0, 1). */
RANDOM_FUNCTION double normal_quantile(double p)
{
    static const double near[2][8] = {
        {3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3,
         1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4,
         3.3430575583588128105e4, 2.5090809287301226727e3},
        {1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3,
         2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4,
         5.2264952788528545610e3},
    };
    static const double middle[2][8] = {
        {1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0,
         3.64784832476320460504e0, 1.27045825245236838258e0, 2.41780725177450611770e-1,
         2.27238449892691845833e-2, 7.74545014278341407640e-4},
        {1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
         1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4,
         1.05075007164441684324e-9},
    };
    static const double far[2][8] = {
        {6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0,
         2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
         2.71155556874348757815e-5, 2.01033439929228813265e-7},
        {1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
         7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7,
         2.04426310338993978564e-15},
    };
    double q = p - 0.5, r, value;

    if (q <= 0.425 && q >= -0.425) {
        r = 0.180625 - q * q;
        return q * polynomial_7(near[0], r) / polynomial_7(near[1], r);
    }
    r = RANDOM_ROOT_F64(-log_f64(q < 0 ? p : 1.0 - p));
    if (r <= 5.0)
        value = polynomial_7(middle[0], r - 1.6) / polynomial_7(middle[1], r - 1.6);
    else
        value = polynomial_7(far[0], r - 5.0) / polynomial_7(far[1], r - 5.0);
    return q < 0 ? -value : value;
}

/* In (0, 1); the least is 2^-33. */
RANDOM_FUNCTION double unit_of_word_32(uint32_t word)
{
    return ((double)word + 0.5) * 0x1p-32;
}

/* The number of the normal distribution below which a share P of all numbers is, within FIRST and
 * LAST. */
RANDOM_FUNCTION double truncated_normal(double p, double mean, double deviation, double first,
                                        double last)
{
    double x;

    p = p < 1e-300 ? 1e-300 : p > 0x1.fffffffffffffp-1 ? 0x1.fffffffffffffp-1 : p;
    x = mean + deviation * normal_quantile(p);
    return x < first ? first : x > last ? last : x;
}

#endif
