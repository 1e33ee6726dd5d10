/* cpu_number.h - conversion of the small floating-point formats, bit by bit.
 *
 * The code has no branches, so that compilers vectorize loops over it.  Widening is exact.
 * Narrowing rounds to nearest even.  NaN stays NaN with its sign.  In f16 and bf16 it becomes quiet
 * and keeps the upper bits of its payload, as in hardware. */
#ifndef WEFT_CPU_NUMBER_H
#define WEFT_CPU_NUMBER_H

#include <stdint.h>
#include <string.h>

#define F32_INFINITY UINT32_C(0x7f800000)
#define F32_QUIET    UINT32_C(0x00400000) /* the quiet bit of a NaN */

static inline uint32_t cpu_bits_of_f32(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float cpu_f32_of_bits(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Widen a format with MANTISSA stored bits.  SCALE converts its exponent to f32's.  Codes from
 * SPECIAL on are infinity and NaN. */
static inline float cpu_widen_small(uint32_t bits, uint32_t sign, int mantissa, float scale,
                                    uint32_t special)
{
    /* The multiplication converts the exponent and normalizes subnormals. */
    uint32_t magnitude = cpu_bits_of_f32(cpu_f32_of_bits(bits << (23 - mantissa)) * scale);
    uint32_t wide = bits >= special ? F32_INFINITY | bits << (23 - mantissa) : magnitude;
    uint32_t quiet = bits > special ? F32_QUIET : 0;

    return cpu_f32_of_bits(wide | quiet | sign << 31);
}

/* MOST is the f32, as bits, from which on all values have one code.  NAN is the code of NaN. */
static inline uint32_t cpu_narrow_small(float value, int mantissa, int bias, uint32_t most,
                                        uint32_t nan)
{
    uint32_t given = cpu_bits_of_f32(value) & 0x7fffffffu;
    uint32_t magnitude = given < most ? given : most;
    int shift = 23 - mantissa;
    uint32_t least_normal = (uint32_t)(128 - bias) << 23;
    /* Adding this aligns the last bit of a subnormal with the last bit of an f32. */
    uint32_t align = (uint32_t)(128 - bias + shift) << 23;
    uint32_t subnormal =
        cpu_bits_of_f32(cpu_f32_of_bits(magnitude) + cpu_f32_of_bits(align)) - align;
    uint32_t odd = (magnitude >> shift) & 1u;
    uint32_t normal =
        (magnitude - ((uint32_t)(127 - bias) << 23) + ((1u << (shift - 1)) - 1u) + odd) >> shift;
    uint32_t code = magnitude < least_normal ? subnormal : normal;

    return given > F32_INFINITY ? nan : code;
}

static inline float cpu_f32_of_f16(uint16_t bits)
{
    return cpu_widen_small(bits & 0x7fffu, (uint32_t)bits >> 15, 10, 0x1p112f, 0x7c00);
}

static inline uint16_t cpu_f16_of_f32(float value)
{
    uint32_t bits = cpu_bits_of_f32(value), sign = bits >> 31;
    uint32_t nan = 0x7e00u | (bits >> 13 & 0x3ffu);

    return (uint16_t)(sign << 15 | cpu_narrow_small(value, 10, 15, 0x47800000, nan));
}

static inline float cpu_f32_of_bf16(uint16_t bits)
{
    return cpu_f32_of_bits((uint32_t)bits << 16);
}

static inline uint16_t cpu_bf16_of_f32(float value)
{
    uint32_t bits = cpu_bits_of_f32(value);
    uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    uint32_t quiet = bits >> 16 | 0x40u;

    return (uint16_t)((bits & 0x7fffffffu) > F32_INFINITY ? quiet : rounded);
}

/* The format has no infinity.  Larger values become the largest finite value, 448. */
static inline float cpu_f32_of_f8e4m3(uint8_t bits)
{
    return cpu_widen_small(bits & 0x7fu, (uint32_t)bits >> 7, 3, 0x1p120f, 0x7f);
}

static inline uint8_t cpu_f8e4m3_of_f32(float value)
{
    uint32_t sign = cpu_bits_of_f32(value) >> 31;

    return (uint8_t)(sign << 7 | cpu_narrow_small(value, 3, 7, 0x43e00000, 0x7f));
}

/* The format has infinity, but casts saturate: larger values become the largest finite value,
 * 57344. */
static inline float cpu_f32_of_f8e5m2(uint8_t bits)
{
    return cpu_widen_small(bits & 0x7fu, (uint32_t)bits >> 7, 2, 0x1p112f, 0x7c);
}

static inline uint8_t cpu_f8e5m2_of_f32(float value)
{
    uint32_t sign = cpu_bits_of_f32(value) >> 31;

    return (uint8_t)(sign << 7 | cpu_narrow_small(value, 2, 15, 0x47600000, 0x7e));
}

/* The same, but infinity stays infinity.  Its code follows that of the largest finite value. */
static inline uint8_t cpu_f8e5m2_of_f32_kept(float value)
{
    uint32_t bits = cpu_bits_of_f32(value), magnitude = bits & 0x7fffffffu;
    uint32_t code = cpu_narrow_small(value, 2, 15, 0x47600000, 0x7e);

    return (uint8_t)(bits >> 31 << 7 | (code + (magnitude == F32_INFINITY)));
}

#endif
