#include "base/number.h"
#include "support/suite.h"

#include <math.h>
#include <string.h>

static const uint32_t small_floats[] = {WEFT_DTYPE_F16, WEFT_DTYPE_BF16, WEFT_DTYPE_F8E4M3,
                                        WEFT_DTYPE_F8E5M2};

static double value_of(uint32_t dtype, uint32_t bits)
{
    uint8_t bytes[2] = {(uint8_t)bits, (uint8_t)(bits >> 8)};

    return wf_number_load(dtype, bytes).re;
}

static uint32_t bits_of(uint32_t dtype, double value)
{
    uint8_t bytes[2] = {0, 0};

    wf_number_store(dtype, (struct wf_number){.re = value}, bytes);
    return bytes[0] | (uint32_t)bytes[1] << 8;
}

static uint32_t pattern_count(uint32_t dtype)
{
    return 1u << (8 * wf_dtype_bytes(dtype));
}

TEST(values_from_the_formats_definitions)
{
    static const struct {
        uint32_t dtype, bits;
        double value;
    } known[] = {
        {WEFT_DTYPE_F16, 0x3c00, 1},           {WEFT_DTYPE_F16, 0x0001, 0x1p-24},
        {WEFT_DTYPE_F16, 0x0400, 0x1p-14},     {WEFT_DTYPE_F16, 0x7bff, 65504},
        {WEFT_DTYPE_F16, 0xc000, -2},          {WEFT_DTYPE_F16, 0x3555, 0x1.554p-2},
        {WEFT_DTYPE_BF16, 0x3f80, 1},          {WEFT_DTYPE_BF16, 0x4049, 3.140625},
        {WEFT_DTYPE_BF16, 0x7f7f, 0x1.fep127}, {WEFT_DTYPE_BF16, 0x0001, 0x1p-133},
        {WEFT_DTYPE_F8E4M3, 0x38, 1},          {WEFT_DTYPE_F8E4M3, 0x7e, 448},
        {WEFT_DTYPE_F8E4M3, 0x78, 256},        {WEFT_DTYPE_F8E4M3, 0x01, 0x1p-9},
        {WEFT_DTYPE_F8E4M3, 0x08, 0x1p-6},     {WEFT_DTYPE_F8E4M3, 0xb9, -1.125},
        {WEFT_DTYPE_F8E5M2, 0x3c, 1},          {WEFT_DTYPE_F8E5M2, 0x7b, 57344},
        {WEFT_DTYPE_F8E5M2, 0x01, 0x1p-16},    {WEFT_DTYPE_F8E5M2, 0x04, 0x1p-14},
        {WEFT_DTYPE_F8E5M2, 0x7c, INFINITY},   {WEFT_DTYPE_F8E5M2, 0xfc, -INFINITY},
        {WEFT_DTYPE_F16, 0x7c00, INFINITY},    {WEFT_DTYPE_BF16, 0xff80, -INFINITY},
    };

    for (size_t i = 0; i < WF_COUNT(known); i++)
        ck_assert_msg(value_of(known[i].dtype, known[i].bits) == known[i].value,
                      "%s 0x%x: %g, not %g", wf_dtype_name(known[i].dtype), known[i].bits,
                      value_of(known[i].dtype, known[i].bits), known[i].value);
}

TEST(nan_where_the_formats_have_it_and_nowhere_else)
{
    static const uint32_t expected[] = {2 * 1023, 2 * 127, 2, 2 * 3};

    for (size_t f = 0; f < WF_COUNT(small_floats); f++) {
        uint32_t nans = 0;
        for (uint32_t bits = 0; bits < pattern_count(small_floats[f]); bits++)
            nans += isnan(value_of(small_floats[f], bits)) != 0;
        ck_assert_uint_eq(nans, expected[f]);
        ck_assert(isnan(value_of(small_floats[f], bits_of(small_floats[f], (double)NAN))));
    }
}

TEST(every_pattern_comes_back_from_its_value)
{
    for (size_t f = 0; f < WF_COUNT(small_floats); f++)
        for (uint32_t bits = 0; bits < pattern_count(small_floats[f]); bits++) {
            double value = value_of(small_floats[f], bits);
            bool saturated = isinf(value) && small_floats[f] == WEFT_DTYPE_F8E5M2;
            if (isnan(value) || saturated) continue;
            ck_assert_msg(bits_of(small_floats[f], value) == bits, "%s: 0x%x became 0x%x",
                          wf_dtype_name(small_floats[f]), bits, bits_of(small_floats[f], value));
        }
}

/* A tie between two neighbours rounds to even, any other value to the nearer one. */
TEST(rounding_is_to_nearest_and_ties_to_even)
{
    for (size_t f = 0; f < WF_COUNT(small_floats); f++) {
        uint32_t dtype = small_floats[f];
        for (uint32_t bits = 0; bits < pattern_count(dtype) / 2; bits++) {
            double low = value_of(dtype, bits), high = value_of(dtype, bits + 1), middle;
            if (!isfinite(low) || !isfinite(high)) continue;
            middle = low + (high - low) / 2;
            ck_assert_uint_eq(bits_of(dtype, middle), bits + bits % 2);
            ck_assert_uint_eq(bits_of(dtype, nextafter(middle, low)), bits);
            ck_assert_uint_eq(bits_of(dtype, nextafter(middle, high)), bits + 1);
            ck_assert_uint_eq(bits_of(dtype, -middle),
                              (bits + bits % 2) | pattern_count(dtype) / 2);
        }
    }
}

TEST(zero_keeps_its_sign)
{
    for (size_t f = 0; f < WF_COUNT(small_floats); f++) {
        ck_assert_uint_eq(bits_of(small_floats[f], 0.0), 0);
        ck_assert_uint_eq(bits_of(small_floats[f], -0.0), pattern_count(small_floats[f]) / 2);
    }
}

TEST(past_the_largest_number_f8_saturates_and_the_rest_is_infinite)
{
    ck_assert_uint_eq(bits_of(WEFT_DTYPE_F8E4M3, 449), 0x7e);
    ck_assert_uint_eq(bits_of(WEFT_DTYPE_F8E4M3, 1e300), 0x7e);
    ck_assert_uint_eq(bits_of(WEFT_DTYPE_F8E4M3, -INFINITY), 0xfe);
    ck_assert_uint_eq(bits_of(WEFT_DTYPE_F8E5M2, 1e9), 0x7b);
    ck_assert_uint_eq(bits_of(WEFT_DTYPE_F16, 65519), 0x7bff);
    ck_assert_uint_eq(bits_of(WEFT_DTYPE_F16, 65520), 0x7c00);
    ck_assert_uint_eq(bits_of(WEFT_DTYPE_F16, -1e300), 0xfc00);
    ck_assert_uint_eq(bits_of(WEFT_DTYPE_BF16, 1e300), 0x7f80);
}

TEST(integers_are_signed_or_not_and_wrap_when_stored)
{
    int8_t minus = -5;
    uint8_t large = 251;
    int32_t word = INT32_MIN;
    uint8_t out[8];

    ck_assert_int_eq((int64_t)wf_number_load(WEFT_DTYPE_I8, &minus).integer, -5);
    ck_assert_uint_eq(wf_number_load(WEFT_DTYPE_U8, &large).integer, 251);
    ck_assert_int_eq((int64_t)wf_number_load(WEFT_DTYPE_I32, &word).integer, INT32_MIN);
    wf_number_store(WEFT_DTYPE_U8, (struct wf_number){.integer = 0x1234}, out);
    ck_assert_uint_eq(out[0], 0x34);
}

TEST(complex_numbers_have_two_parts)
{
    float pair[2] = {1.5f, -2.5f};
    double wide[2];
    struct wf_number number = wf_number_load(WEFT_DTYPE_C64, pair);

    ck_assert(number.re == 1.5 && number.im == -2.5);
    wf_number_store(WEFT_DTYPE_C128, number, wide);
    ck_assert(wide[0] == 1.5 && wide[1] == -2.5);
}

TEST(epsilon_is_half_the_step_above_one)
{
    ck_assert(wf_dtype_epsilon(WEFT_DTYPE_F32) == 0x1p-24);
    for (size_t f = 0; f < WF_COUNT(small_floats); f++) {
        uint32_t one = bits_of(small_floats[f], 1);
        ck_assert(value_of(small_floats[f], one + 1) - 1 == 2 * wf_dtype_epsilon(small_floats[f]));
    }
    ck_assert(wf_dtype_epsilon(WEFT_DTYPE_I32) == 0);
}

TEST(numbers_print_with_their_bits)
{
    float f = 1.5f;
    int16_t i = -2;
    char text[64], tiny[4];

    wf_number_print(WEFT_DTYPE_F32, &f, text, sizeof text);
    ck_assert_str_eq(text, "1.5 (0x3fc00000)");
    wf_number_print(WEFT_DTYPE_I16, &i, text, sizeof text);
    ck_assert_str_eq(text, "-2 (0xfffe)");
    wf_number_print(WEFT_DTYPE_F32, &f, tiny, sizeof tiny);
    ck_assert_str_eq(tiny, "1.5");
}
