/* The small floats, compared with their definition by sign, exponent and mantissa, in exact
 * arithmetic. */
#include "kit/arithmetic/cpu_number.h"

#include "support/suite.h"

#include <math.h>
#include <stdio.h>

struct format {
    const char *name;
    int bits, mantissa, bias;
    uint32_t largest;  /* code of the largest finite value */
    uint32_t infinity; /* code of infinity, or 0 */
    uint32_t overflow; /* code of values that are too large */
    float (*widen)(uint32_t code);
    uint32_t (*narrow)(float value);
};

#define CODEC(name, type)                                                                          \
    static float widen_##name(uint32_t code)                                                       \
    {                                                                                              \
        return cpu_f32_of_##name((type)code);                                                      \
    }                                                                                              \
    static uint32_t narrow_##name(float value)                                                     \
    {                                                                                              \
        return cpu_##name##_of_f32(value);                                                         \
    }

CODEC(f16, uint16_t)
CODEC(bf16, uint16_t)
CODEC(f8e4m3, uint8_t)
CODEC(f8e5m2, uint8_t)

static const struct format formats[] = {
    {"f16", 16, 10, 15, 0x7bff, 0x7c00, 0x7c00, widen_f16, narrow_f16},
    {"bf16", 16, 7, 127, 0x7f7f, 0x7f80, 0x7f80, widen_bf16, narrow_bf16},
    {"f8e4m3", 8, 3, 7, 0x7e, 0, 0x7e, widen_f8e4m3, narrow_f8e4m3},
    {"f8e5m2", 8, 2, 15, 0x7b, 0x7c, 0x7b, widen_f8e5m2, narrow_f8e5m2},
};

static double value_of(const struct format *f, uint32_t code)
{
    uint32_t sign = code >> (f->bits - 1), magnitude = code & ((1u << (f->bits - 1)) - 1);
    int exponent = (int)(magnitude >> f->mantissa);
    double fraction = magnitude & ((1u << f->mantissa) - 1), value;

    if (exponent == 0)
        value = ldexp(fraction, 1 - f->bias - f->mantissa);
    else
        value = ldexp(fraction + (1 << f->mantissa), exponent - f->bias - f->mantissa);
    return sign != 0 ? -value : value;
}

TEST(every_code_widens_to_its_value)
{
    for (size_t i = 0; i < 4; i++) {
        const struct format *f = &formats[i];

        for (uint32_t code = 0; code < 1u << f->bits; code++) {
            uint32_t magnitude = code & ((1u << (f->bits - 1)) - 1);
            double wide = (double)f->widen(code);

            if (f->infinity != 0 && magnitude == f->infinity)
                ck_assert(isinf(wide));
            else if (magnitude > f->largest)
                ck_assert(isnan(wide));
            else
                ck_assert_msg(wide == value_of(f, code), "%s %x: %g", f->name, code, wide);
            ck_assert(isnan(wide) || (signbit(wide) != 0) == (magnitude != code));
        }
    }
}

TEST(every_finite_code_comes_back)
{
    for (size_t i = 0; i < 4; i++) {
        const struct format *f = &formats[i];

        for (uint32_t code = 0; code < 1u << f->bits; code++)
            if ((code & ((1u << (f->bits - 1)) - 1)) <= f->largest)
                ck_assert_uint_eq(f->narrow(f->widen(code)), code);
    }
}

/* A value between two neighbours rounds to the nearer one, and a tie rounds to even. */
TEST(narrowing_rounds_to_nearest_even)
{
    for (size_t i = 0; i < 4; i++) {
        const struct format *f = &formats[i];

        for (uint32_t code = 0; code < f->largest; code++) {
            double low = value_of(f, code), high = value_of(f, code + 1);
            float middle = (float)((low + high) / 2);

            ck_assert((double)middle == (low + high) / 2);
            ck_assert_uint_eq(f->narrow(middle), (code & 1) == 0 ? code : code + 1);
            ck_assert_uint_eq(f->narrow(nextafterf(middle, 0)), code);
            ck_assert_uint_eq(f->narrow(nextafterf(middle, INFINITY)), code + 1);
        }
    }
}

TEST(what_is_too_large_overflows_or_saturates)
{
    for (size_t i = 0; i < 4; i++) {
        const struct format *f = &formats[i];
        uint32_t sign = 1u << (f->bits - 1);
        float largest = f->widen(f->largest);
        float step = largest - f->widen(f->largest - 1);

        ck_assert_uint_eq(f->narrow(largest + step / 4), f->largest);
        if (f->mantissa != 7) ck_assert_uint_eq(f->narrow(largest + 2 * step), f->overflow);
        ck_assert_uint_eq(f->narrow(INFINITY), f->overflow);
        ck_assert_uint_eq(f->narrow(-INFINITY), f->overflow | sign);
        ck_assert(isnan(f->widen(f->narrow(NAN))));
        ck_assert_uint_eq(f->narrow(-0.0f), sign);
    }
}
