/* The exact pattern has to be exact: storing partial results in any order must not change sums. */
#include "frame/kit.h"
#include "support/suite.h"

#include <string.h>

static const int32_t sizes[] = {1, 2, 3, 4, 5, 8, 16, 31, 32};

/* VALUE of RANK times its factor, rounded as if stored. */
static struct wf_number scaled(uint32_t dtype, int32_t rank, struct wf_number value)
{
    uint8_t element[16];

    kit_pattern_scale(dtype, rank, element);
    value = wf_number_combine(dtype, WEFT_REDUCE_PROD, value, wf_number_load(dtype, element));
    wf_number_store(dtype, value, element);
    ck_assert_msg(!wf_dtype_is_float(dtype) || wf_number_load(dtype, element).re == value.re,
                  "%s: the product on rank %d is not exact", wf_dtype_name(dtype), rank);
    return wf_number_load(dtype, element);
}

/* Reduce VALUES two at a time in the order of STEP, storing every partial result. */
static void reduce_in_steps(uint32_t dtype, uint32_t reduction, const struct wf_number *values,
                            int32_t size, int32_t step, uint8_t *out)
{
    struct wf_number one[2];

    for (int32_t i = 0; i < size; i++) {
        one[1] = values[(i * step + step) % size];
        if (i > 0) one[1] = wf_number_reduce(dtype, reduction, one, 2);
        wf_number_store(dtype, one[1], out);
        one[0] = wf_number_load(dtype, out);
    }
}

/* A step that visits every rank once: it has no common divisor with SIZE. */
static int32_t step_for(int32_t size)
{
    return size % 7 == 0 ? 5 : 7;
}

TEST(exact_patterns_do_not_depend_on_order)
{
    for (uint32_t d = 0; d < WEFT_DTYPE_COUNT; d++)
        for (uint32_t r = 0; r < WEFT_REDUCE_COUNT; r++) {
            if (!wf_reduction_defined(r, d) || r == WEFT_REDUCE_AVG) continue;
            for (size_t s = 0; s < WF_COUNT(sizes); s++)
                for (uint64_t index = 0; index < 40; index++) {
                    struct wf_number values[KIT_MAX_RANKS];
                    uint8_t element[16], whole[16] = {0}, steps[16] = {0};
                    for (int32_t rank = 0; rank < sizes[s]; rank++) {
                        kit_pattern_element(KIT_EXACT, 42, d, r, sizes[s], rank, index, element);
                        values[rank] = wf_number_load(d, element);
                        if (r == WEFT_REDUCE_PREMUL_SUM)
                            values[rank] = scaled(d, rank, values[rank]);
                    }
                    wf_number_store(d, wf_number_reduce(d, r, values, sizes[s]), whole);
                    reduce_in_steps(d, r, values, sizes[s], step_for(sizes[s]), steps);
                    ck_assert_msg(wf_number_load(d, whole).re == wf_number_load(d, steps).re &&
                                      wf_number_load(d, whole).im == wf_number_load(d, steps).im &&
                                      wf_number_load(d, whole).integer ==
                                          wf_number_load(d, steps).integer,
                                  "%s, %s, %d ranks, element %d", wf_dtype_name(d),
                                  wf_reduction_name(r), sizes[s], (int)index);
                }
        }
}

TEST(neighbours_have_different_factors)
{
    for (uint32_t d = WEFT_DTYPE_BOOL + 1; d < WEFT_DTYPE_COUNT; d++)
        for (int32_t rank = 0; rank < KIT_MAX_RANKS; rank++)
            for (int32_t next = rank + 1; next < rank + 4; next++) {
                uint8_t one[16] = {0}, other[16] = {0};
                kit_pattern_scale(d, rank, one);
                kit_pattern_scale(d, next, other);
                ck_assert_msg(memcmp(one, other, sizeof one) != 0, "%s, ranks %d and %d",
                              wf_dtype_name(d), rank, next);
            }
}

TEST(ranks_and_elements_differ)
{
    uint8_t first[64], other[64];

    for (uint32_t d = 0; d < WEFT_DTYPE_COUNT; d++) {
        uint64_t bytes = wf_dtype_bytes(d);
        for (uint64_t i = 0; i < 64 / bytes; i++) {
            kit_pattern_bits(1, d, 0, i, first + i * bytes);
            kit_pattern_bits(1, d, 1, i, other + i * bytes);
        }
        ck_assert_msg(memcmp(first, other, sizeof first) != 0, "%s", wf_dtype_name(d));
    }
}

TEST(bools_are_zero_or_one_and_both)
{
    uint8_t element;

    for (uint32_t r = 0; r < WEFT_REDUCE_COUNT; r++) {
        bool seen[2] = {false, false};
        if (!wf_reduction_defined(r, WEFT_DTYPE_BOOL)) continue;
        for (uint64_t i = 0; i < 200; i++) {
            kit_pattern_element(KIT_EXACT, 1, WEFT_DTYPE_BOOL, r, 3, (int32_t)(i % 3), i, &element);
            ck_assert_uint_le(element, 1);
            seen[element] = true;
        }
        ck_assert(seen[0] && seen[1]);
    }
}

/* Averages without a remainder could not distinguish truncation from rounding. */
TEST(integer_averages_have_remainders_of_both_signs)
{
    bool positive = false, negative = false;

    for (uint64_t i = 0; i < 200; i++) {
        int64_t sum = 0;
        for (int32_t rank = 0; rank < 4; rank++) {
            int8_t element;
            kit_pattern_element(KIT_EXACT, 1, WEFT_DTYPE_I8, WEFT_REDUCE_AVG, 4, rank, i, &element);
            sum += element;
        }
        ck_assert(sum >= -128 && sum <= 127);
        positive = positive || sum % 4 > 0;
        negative = negative || sum % 4 < 0;
    }
    ck_assert(positive && negative);
}

TEST(the_nan_pattern_has_nans_on_single_ranks)
{
    int nans = 0;

    for (int32_t rank = 0; rank < 4; rank++)
        for (uint64_t i = 0; i < 17; i++) {
            float element;
            kit_pattern_element(KIT_NAN, 1, WEFT_DTYPE_F32, WEFT_REDUCE_MAX, 4, rank, i, &element);
            nans += element != element;
        }
    ck_assert_int_eq(nans, 6); /* every third element, on one rank */
}
