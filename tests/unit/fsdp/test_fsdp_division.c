/* The divisors of gradients: every rule, and the factors of dtypes with a small range. */
#include "fsdp/fsdp.h"
#include "support/suite.h"

static void expect(struct wf_division is, double before, uint32_t shard_op, uint32_t replicate_op,
                   double after)
{
    ck_assert_double_eq(is.before, before);
    ck_assert_uint_eq(is.shard_op, shard_op);
    ck_assert_uint_eq(is.replicate_op, replicate_op);
    ck_assert_double_eq(is.after, after);
}

TEST(dtypes_with_a_large_range_divide_once)
{
    static const uint32_t dtypes[] = {WEFT_DTYPE_F32, WEFT_DTYPE_BF16};
    const uint32_t sum = WEFT_REDUCE_SUM, avg = WEFT_REDUCE_AVG;

    for (size_t i = 0; i < WF_COUNT(dtypes); i++) {
        expect(wf_fsdp_division(dtypes[i], 1, 1, 0, false), 1, sum, sum, 1);
        expect(wf_fsdp_division(dtypes[i], 4, 1, 0, false), 1, avg, avg, 1);
        expect(wf_fsdp_division(dtypes[i], 4, 2, 0, false), 1, avg, avg, 1);
        expect(wf_fsdp_division(dtypes[i], 4, 2, 4, false), 1, avg, sum, 1);
        expect(wf_fsdp_division(dtypes[i], 4, 2, 8, false), 1.0 / 8, sum, sum, 1);
        expect(wf_fsdp_division(dtypes[i], 4, 2, 1, false), 1, sum, sum, 1);
        expect(wf_fsdp_division(dtypes[i], 1, 1, 3, false), 1.0 / 3, sum, sum, 1);
        expect(wf_fsdp_division(dtypes[i], 4, 2, 0, true), 1, sum, sum, 1.0 / 8);
        expect(wf_fsdp_division(dtypes[i], 4, 2, 5, true), 1, sum, sum, 1.0 / 5);
    }
}

TEST(dtypes_with_a_small_range_divide_before_and_after)
{
    static const struct {
        double total, before, after;
    } known[] = {{2, 2, 1},  {3, 2, 1.5}, {4, 2, 2},  {6, 4, 1.5},  {8, 4, 2},    {12, 4, 3},
                 {16, 4, 4}, {32, 8, 4},  {64, 8, 8}, {128, 16, 8}, {512, 32, 16}};

    for (size_t i = 0; i < WF_COUNT(known); i++) {
        struct wf_division given =
            wf_fsdp_division(WEFT_DTYPE_F16, 1, 1, known[i].total, i % 2 == 0);
        struct wf_division counted =
            wf_fsdp_division(WEFT_DTYPE_F16, (int32_t)known[i].total, 1, 0, false);

        expect(given, 1 / known[i].before, WEFT_REDUCE_SUM, WEFT_REDUCE_SUM, 1 / known[i].after);
        expect(counted, 1 / known[i].before, WEFT_REDUCE_SUM, WEFT_REDUCE_SUM, 1 / known[i].after);
    }
    expect(wf_fsdp_division(WEFT_DTYPE_F64, 1, 1, 0x1p66, true), 0x1p-33, WEFT_REDUCE_SUM,
           WEFT_REDUCE_SUM, 0x1p-33);
    expect(wf_fsdp_division(WEFT_DTYPE_F16, 1, 1, 0, false), 1, WEFT_REDUCE_SUM, WEFT_REDUCE_SUM,
           1);
}
