/* Refusals of running; tests/system/redistribute tests it on ranks. */
#include "exec/context/kept.h"
#include "support/lone_rank.h"
#include "support/suite.h"

TEST(null_is_not_a_bound_plan)
{
    check_refused(weft_redistribute(NULL, NULL, NULL, NULL, NULL), WEFT_ERR_INVALID, "bound");
    check_refused(weft_redistribute_batch(NULL, NULL, NULL, NULL, NULL), WEFT_ERR_INVALID, "bound");
}

TEST(a_rank_without_a_part_does_nothing)
{
    struct lone_rank lone;

    lone_begin(&lone, 0, 1);
    ck_assert_int_eq(weft_redistribute(lone.bound, NULL, NULL, NULL, NULL), WEFT_OK);
    ck_assert_int_eq(fake.collectives, 0);
    lone_end(&lone);
}

TEST(messages_have_the_name_of_the_tensor)
{
    struct lone_rank lone;

    lone_begin(&lone, 0, 1);
    lone.bound->memory.source = (struct wf_extent){16, 64, false, WEFT_DTYPE_I8};
    check_refused(weft_redistribute(lone.bound, NULL, NULL, NULL, NULL), WEFT_ERR_INVALID,
                  "weft_redistribute: source is NULL");
    lone.bound->label = wf_trace_intern(lone.context->trace, "W");
    lone.bound->is_named = true;
    check_refused(weft_redistribute(lone.bound, NULL, NULL, NULL, NULL), WEFT_ERR_INVALID,
                  "weft_redistribute: tensor W: source is NULL");
    (void)wf_fail(WEFT_ERR_PEER, "rank 1 is lost");
    check_refused(wf_fail_tensor(WEFT_ERR_PEER, "weft_plan_bind", "batch", "layer 3"),
                  WEFT_ERR_PEER, "weft_plan_bind: batch layer 3: rank 1 is lost");
    lone_end(&lone);
}
