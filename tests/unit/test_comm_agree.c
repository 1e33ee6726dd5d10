#include "support/fake_world.h"
#include "support/suite.h"

static struct world_rank ranks[WORLD_MOST];

START_TEST(a_list_of_one_agrees_with_itself)
{
    weft_context *context;
    struct wf_gathered first, second;
    int32_t me = 0;

    fake_reset();
    context = world_alone();
    ck_assert_int_eq(wf_agree(context, &me, 1, "x", 0, WEFT_OK, (weft_blob){"abc", 3}, &first),
                     WEFT_OK);
    ck_assert_int_eq(first.count, 1);
    ck_assert_uint_eq(first.blobs[0].bytes, 3);
    ck_assert_mem_eq(first.blobs[0].data, "abc", 3);
    ck_assert_int_eq(wf_agree(context, &me, 1, "x", 0, WEFT_OK, (weft_blob){"", 0}, &second),
                     WEFT_OK);
    ck_assert_uint_ne(first.serial, second.serial);
    wf_gathered_free(&first);
    wf_gathered_free(&second);
    ck_assert_int_eq(wf_agree(context, &me, 1, "x", 0, wf_fail(WEFT_ERR_DEVICE, "no"),
                              (weft_blob){"", 0}, &first),
                     WEFT_ERR_DEVICE);
    ck_assert_str_eq(weft_last_error(), "no");
    weft_context_release(&context);
}
END_TEST

/* Rank 1 failed; its words are everyone's. */
static void one_failed(struct world_rank *self)
{
    int32_t list[] = {0, 1, 2};
    weft_status status = self->rank == 1 ? wf_fail(WEFT_ERR_DEVICE, "too warm") : WEFT_OK;
    struct wf_gathered got;

    note_seen(&self->seen, wf_agree(self->context, list, 3, "a step", 10 * WF_SECOND_NS, status,
                                    (weft_blob){"", 0}, &got));
}

START_TEST(a_failure_is_everyones)
{
    fake_reset();
    world_run(ranks, 3, one_failed, NULL);
    all_saw(ranks, 3, WEFT_ERR_DEVICE, "rank 1: too warm");
}
END_TEST

SUITE(comm_agree, a_list_of_one_agrees_with_itself, a_failure_is_everyones)
