/* Gathers and reductions beside the compute of other layers. */
#include "prediction/prediction.h"
#include "support/suite.h"

static uint64_t overlap(uint64_t compute, uint64_t gather, uint64_t reduce, uint64_t layers)
{
    struct wf_step_pass pass = {.layer = {compute, gather, reduce}, .layers = layers};

    return wf_step_overlap(&pass);
}

TEST(compute_alone_is_a_sum)
{
    struct wf_step_pass pass = {
        .before = {.compute = 3}, .layer = {.compute = 5}, .behind = {.compute = 7}, .layers = 4};

    ck_assert_uint_eq(wf_step_overlap(&pass), 3 + 4 * 5 + 7);
    ck_assert_uint_eq(overlap(0, 0, 0, 0), 0);
}

/* The first gather is beside nothing; each other one is beside the layer before. */
TEST(gathers_hide_behind_longer_compute)
{
    ck_assert_uint_eq(overlap(10, 4, 0, 5), 4 + 5 * 10);
    ck_assert_uint_eq(overlap(4, 10, 0, 5), 5 * 10 + 4);
}

TEST(what_is_before_the_layers_hides_their_first_gather)
{
    struct wf_step_pass pass = {
        .before = {.compute = 6, .gather = 2}, .layer = {.compute = 10, .gather = 4}, .layers = 2};

    ck_assert_uint_eq(wf_step_overlap(&pass), 2 + 6 + 2 * 10);
}

/* The last reduction is beside nothing. */
TEST(reductions_hide_behind_longer_compute)
{
    ck_assert_uint_eq(overlap(10, 0, 4, 5), 5 * 10 + 4);
    ck_assert_uint_eq(overlap(4, 0, 10, 5), 4 + 5 * 10);
}

/* Both use one lane: 3 + 4 of it beside 10 of compute, or 6 + 7. */
TEST(gathers_and_reductions_share_the_links)
{
    ck_assert_uint_eq(overlap(10, 3, 4, 5), 3 + 5 * 10 + 4);
    ck_assert_uint_gt(overlap(10, 6, 7, 5), 6 + 5 * 10 + 7);
    ck_assert_uint_le(overlap(10, 6, 7, 5), 5 * (6 + 7) + 10);
}

TEST(times_do_not_wrap)
{
    ck_assert_uint_eq(overlap(UINT64_MAX / 2, 0, UINT64_MAX / 2, 5), UINT64_MAX);
}
