/* Gathers and reductions beside the compute of other layers. */
#include "prediction/prediction.h"
#include "support/suite.h"

static const struct wf_step_slowdown none;

static uint64_t overlap(uint64_t compute, uint64_t gather, uint64_t reduce, uint64_t layers)
{
    struct wf_step_pass pass = {.layer = {compute, gather, reduce}, .layers = layers};

    return wf_step_overlap(&pass, &none);
}

TEST(compute_alone_is_a_sum)
{
    struct wf_step_pass pass = {
        .before = {.compute = 3}, .layer = {.compute = 5}, .behind = {.compute = 7}, .layers = 4};

    ck_assert_uint_eq(wf_step_overlap(&pass, &none), 3 + 4 * 5 + 7);
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

    ck_assert_uint_eq(wf_step_overlap(&pass, &none), 2 + 6 + 2 * 10);
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

/* 15 % and 30 %: 115 ns of compute end before 130 of a move, of which 115 / 1.3 are done. */
TEST(what_runs_beside_each_other_takes_longer)
{
    const struct wf_step_slowdown slow = {15, 30};
    struct wf_step_pass pass = {.layer = {100, 0, 100}, .layers = 2};
    uint64_t compute = 100, move = 100;

    ck_assert_uint_eq(wf_step_beside(&slow, &compute, &move), 115);
    ck_assert(compute == 0 && move == 12);
    compute = 1000;
    move = 100;
    ck_assert_uint_eq(wf_step_beside(&slow, &compute, &move), 130);
    ck_assert(move == 0 && compute == 887);
    compute = move = UINT64_MAX;
    ck_assert_uint_eq(wf_step_beside(&slow, &compute, &move), UINT64_MAX);
    /* 100 alone, 115 beside the first reduction, what is left of it, and the second one. */
    ck_assert_uint_eq(wf_step_overlap(&pass, &slow), 100 + 115 + 12 + 100);
    pass = (struct wf_step_pass){.layer = {100, 100, 0}, .layers = 2};
    ck_assert_uint_eq(wf_step_overlap(&pass, &slow), 100 + 115 + 12 + 100);
}

/* Reductions that are slower than compute queue up, however many there are. */
TEST(reductions_that_wait_are_one_move)
{
    const struct wf_step_slowdown slow = {15, 30};
    struct wf_step_pass pass = {.layer = {10, 0, 1000}, .layers = 1000};
    uint64_t time = wf_step_overlap(&pass, &slow);

    ck_assert_uint_ge(time, 10 + 1000 * 1000);
    ck_assert_uint_le(time, 10 + 1000 * 1000 + 1000 * 10);
    pass.layer.gather = 5;
    ck_assert_uint_ge(wf_step_overlap(&pass, &slow), 1000 * 1005);
}
