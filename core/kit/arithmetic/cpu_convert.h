/* cpu_convert.h - conversion of small floats to and from f32, many at a time; part of
 * cpu_kernels.h.
 *
 * This uses the processor's instructions where they exist: f16 on ARM and with F16C on x86, bf16 on
 * ARM with that extension.  Otherwise the compiler vectorizes the loops over cpu_number.h. */

#if defined(__aarch64__)
#include <arm_neon.h>
#elif defined(__F16C__)
#include <immintrin.h>
#endif

#define WIDEN(name, type)                                                                          \
    static void widen_##name(void *target, const void *source, size_t count)                       \
    {                                                                                              \
        float *t = target;                                                                         \
        const type *s = source;                                                                    \
        INDEPENDENT for (size_t i = 0; i < count; i++) t[i] = cpu_f32_of_##name(s[i]);             \
    }
#define NARROW(name, type)                                                                         \
    static void narrow_##name(void *target, const void *source, size_t count)                      \
    {                                                                                              \
        type *t = target;                                                                          \
        const float *s = source;                                                                   \
        INDEPENDENT for (size_t i = 0; i < count; i++) t[i] = cpu_##name##_of_f32(s[i]);           \
    }

/* The same by SEVERAL, which converts STEP elements, and the rest by ONE. */
#define IN_STEPS(name, target_type, source_type, step, several, one)                               \
    static void name(void *target, const void *source, size_t count)                               \
    {                                                                                              \
        target_type *t = target;                                                                   \
        const source_type *s = source;                                                             \
        size_t i = 0;                                                                              \
        for (; i + (step) <= count; i += (step))                                                   \
            several(t + i, s + i);                                                                 \
        for (; i < count; i++)                                                                     \
            t[i] = one(s[i]);                                                                      \
    }

#if defined(__aarch64__)

static inline void widen_8_f16(float *t, const uint16_t *s)
{
    float16x8_t wide = vreinterpretq_f16_u16(vld1q_u16(s));

    vst1q_f32(t, vcvt_f32_f16(vget_low_f16(wide)));
    vst1q_f32(t + 4, vcvt_high_f32_f16(wide));
}

static inline void narrow_8_f16(uint16_t *t, const float *s)
{
    float16x4_t low = vcvt_f16_f32(vld1q_f32(s));

    vst1q_u16(t, vreinterpretq_u16_f16(vcvt_high_f16_f32(low, vld1q_f32(s + 4))));
}

#elif defined(__F16C__)

static inline void widen_8_f16(float *t, const uint16_t *s)
{
    _mm256_storeu_ps(t, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)s)));
}

static inline void narrow_8_f16(uint16_t *t, const float *s)
{
    _mm_storeu_si128((__m128i *)t, _mm256_cvtps_ph(_mm256_loadu_ps(s), _MM_FROUND_TO_NEAREST_INT));
}

#endif

#if defined(__aarch64__) || defined(__F16C__)
IN_STEPS(widen_f16, float, uint16_t, 8, widen_8_f16, cpu_f32_of_f16)
IN_STEPS(narrow_f16, uint16_t, float, 8, narrow_8_f16, cpu_f16_of_f32)
#else
WIDEN(f16, uint16_t)
NARROW(f16, uint16_t)
#endif

WIDEN(bf16, uint16_t)
#if defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)

static inline void narrow_8_bf16(uint16_t *t, const float *s)
{
    bfloat16x8_t low = vcvtq_low_bf16_f32(vld1q_f32(s));

    vst1q_u16(t, vreinterpretq_u16_bf16(vcvtq_high_bf16_f32(low, vld1q_f32(s + 4))));
}
IN_STEPS(narrow_bf16, uint16_t, float, 8, narrow_8_bf16, cpu_bf16_of_f32)

#elif defined(__aarch64__)

/* Without NaN.  The narrowing shift rounds ties up; a tie whose result is odd goes down again. */
static uint16x8_t round_to_bf16(float32x4_t low, float32x4_t high)
{
    uint32x4_t a = vreinterpretq_u32_f32(low), b = vreinterpretq_u32_f32(high);
    uint16x8_t rounded = vrshrn_high_n_u32(vrshrn_n_u32(a, 16), b, 16);
    uint16x8_t rest = vuzp1q_u16(vreinterpretq_u16_u32(a), vreinterpretq_u16_u32(b));
    uint16x8_t tie = vceqq_u16(rest, vdupq_n_u16(0x8000));

    return vbicq_u16(rounded, vandq_u16(tie, vdupq_n_u16(1)));
}

static inline void narrow_32_bf16(uint16_t *t, const float *s)
{
    float32x4_t in[8];
    float largest;

    for (int k = 0; k < 8; k++)
        in[k] = vld1q_f32(s + 4 * k);
    largest = vmaxvq_f32(vmaxq_f32(vmaxq_f32(vmaxq_f32(in[0], in[1]), vmaxq_f32(in[2], in[3])),
                                   vmaxq_f32(vmaxq_f32(in[4], in[5]), vmaxq_f32(in[6], in[7]))));
    if (largest != largest) { /* one of them is NaN */
        for (int k = 0; k < 32; k++)
            t[k] = cpu_bf16_of_f32(s[k]);
        return;
    }
    for (int k = 0; k < 4; k++)
        vst1q_u16(t + 8 * k, round_to_bf16(in[2 * k], in[2 * k + 1]));
}
IN_STEPS(narrow_bf16, uint16_t, float, 32, narrow_32_bf16, cpu_bf16_of_f32)

#else
NARROW(bf16, uint16_t)
#endif

/* f8e5m2 is the upper half of an f16.  f8e4m3 fits into an f16 scaled by 2^-8. */
#define F8_BLOCK 512

static void widen_f8e5m2(void *target, const void *source, size_t count)
{
    float *t = target;
    const uint8_t *s = source;
    uint16_t half[F8_BLOCK];

    for (size_t at = 0, length; at < count; at += length) {
        length = count - at < F8_BLOCK ? count - at : F8_BLOCK;
        INDEPENDENT for (size_t i = 0; i < length; i++) half[i] = (uint16_t)(s[at + i] << 8);
        widen_f16(t + at, half, length);
    }
}

static uint16_t half_of_f8e4m3(uint8_t code)
{
    uint32_t magnitude = code & 0x7fu, nan = (magnitude + 1) >> 7;

    return (uint16_t)((code & 0x80u) << 8 | magnitude << 7 | nan << 14);
}

static void widen_f8e4m3(void *target, const void *source, size_t count)
{
    float *t = target;
    const uint8_t *s = source;
    uint16_t half[F8_BLOCK];

    for (size_t at = 0, length; at < count; at += length) {
        length = count - at < F8_BLOCK ? count - at : F8_BLOCK;
        INDEPENDENT for (size_t i = 0; i < length; i++) half[i] = half_of_f8e4m3(s[at + i]);
        widen_f16(t + at, half, length);
        INDEPENDENT for (size_t i = 0; i < length; i++) t[at + i] *= 256;
    }
}

NARROW(f8e4m3, uint8_t)
NARROW(f8e5m2, uint8_t)

/* Narrowing of a result of a reduction: infinities stay, while casts saturate. */
static void narrow_reduced_f8e5m2(void *target, const void *source, size_t count)
{
    uint8_t *t = target;
    const float *s = source;

    INDEPENDENT for (size_t i = 0; i < count; i++) t[i] = cpu_f8e5m2_of_f32_kept(s[i]);
}
