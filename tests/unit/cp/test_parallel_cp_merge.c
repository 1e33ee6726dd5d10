/* Merging of results of attention, and sums of gradients. */
#include "cp/cp.h"
#include "support/suite.h"

#include <math.h>

static const struct wf_cp_box one_row = {1, 1, 1, 2};

static void merge_rows(float *total, float *total_lse, const float *out, float lse)
{
    float row[2] = {out[0], out[1]};
    weft_cp_local o = {row, 2, 2, 2}, l = {&lse, 1, 1, 1}, t = {total, 2, 2, 2},
                  tl = {total_lse, 1, 1, 1};

    wf_cp_merge(&one_row, WEFT_DTYPE_F32, &o, &l, &t, &tl);
}

TEST(two_rows_are_weighted_by_their_sums)
{
    float total[2] = {1, -2}, lse = logf(3);

    merge_rows(total, &lse, (float[]){5, 2}, logf(1));
    ck_assert_float_eq_tol(total[0], 2, 1e-6f);
    ck_assert_float_eq_tol(total[1], -1, 1e-6f);
    ck_assert_float_eq_tol(lse, logf(4), 1e-6f);
}

TEST(a_row_without_keys_changes_nothing)
{
    float total[2] = {1, -2}, lse = 7;

    merge_rows(total, &lse, (float[]){NAN, NAN}, -INFINITY);
    ck_assert(total[0] == 1 && total[1] == -2 && lse == 7);
}

TEST(two_rows_without_keys_stay_zero)
{
    float total[2] = {0, 0}, lse = -INFINITY;

    merge_rows(total, &lse, (float[]){0, 0}, -INFINITY);
    ck_assert(total[0] == 0 && total[1] == 0 && lse == -INFINITY);
}

TEST(the_first_row_is_taken_as_it_is)
{
    float total[2] = {0, 0}, lse = -INFINITY;

    merge_rows(total, &lse, (float[]){0.1f, -3e38f}, 80);
    ck_assert(total[0] == 0.1f && total[1] == -3e38f && lse == 80);
}

TEST(large_logarithms_do_not_overflow)
{
    float total[2] = {1, 1}, lse = 3e4f;

    merge_rows(total, &lse, (float[]){2, 2}, -3e4f);
    ck_assert(total[0] == 1 && lse == 3e4f);
    merge_rows(total, &lse, (float[]){2, 2}, 9e4f);
    ck_assert(total[0] == 2 && lse == 9e4f);
}

/* [batch 1][head 2][sequence 2][depth 300] with gaps, of bf16: longer than one chunk. */
TEST(gradients_of_16_bits_are_added_in_f32)
{
    static uint16_t values[2 * 2 * 300];
    static float total[2 * 3 * 300];
    struct wf_cp_box box = {1, 2, 2, 300};
    weft_cp_local from = {values, 1200, 600, 300}, to = {total, 1800, 900, 300};

    for (int i = 0; i < 1200; i++)
        values[i] = 0x3f80; /* 1 */
    for (int i = 0; i < 1800; i++)
        total[i] = 256 + 0x1p-10f; /* of which bf16 has neither 257 nor the rest */
    wf_cp_add(&box, WEFT_DTYPE_BF16, &from, &to);
    for (int i = 0; i < 1800; i++)
        ck_assert(total[i] == (i % 900 < 600 ? 257 : 256) + 0x1p-10f);
}
