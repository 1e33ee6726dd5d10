#include "support/caught.h"
#include "support/fake_world.h"
#include "support/suite.h"

static weft_context *context;
static weft_comm *world;
static char buffer[64];

static void begin(void)
{
    fake_reset();
    context = world_alone();
    world = weft_world(context);
}

TEST(messages_reach_the_plugin_as_they_are)
{
    begin();
    ck_assert_int_eq(weft_send(world, buffer, 3, WEFT_DTYPE_I16, 0, 77, NULL), WEFT_OK);
    ck_assert_ptr_eq(fake.last_message.buffer, buffer);
    ck_assert_uint_eq(fake.last_message.count, 3);
    ck_assert_uint_eq(fake.last_message.tag, 77);
    ck_assert_uint_eq(fake.last_message.dtype, WEFT_DTYPE_I16);
    ck_assert_int_eq(weft_receive(world, NULL, 0, WEFT_DTYPE_I16, 0, 0, NULL), WEFT_OK);
    ck_assert_int_eq(fake.messages, 2);
    weft_context_release(&context);
}

TEST(arguments_are_checked)
{
    begin();
    ck_assert_int_eq(weft_send(NULL, buffer, 1, 0, 0, 0, NULL), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_send(world, buffer, 1, 0, 1, 0, NULL), WEFT_ERR_INVALID);
    ck_assert_ptr_nonnull(
        strstr(weft_last_error(), "send on world: peer is 1; the ranks are 0 to 0"));
    ck_assert_int_eq(weft_receive(world, buffer, 1, 0, -1, 0, NULL), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_receive(world, NULL, 1, 0, 0, 0, NULL), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_receive(world, buffer, 1, 99, 0, 0, NULL), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_receive(world, buffer, UINT64_MAX, WEFT_DTYPE_F64, 0, 0, NULL),
                     WEFT_ERR_INVALID);
    ck_assert_int_eq(fake.messages, 0);
    weft_context_release(&context);
}

TEST(an_open_group_is_told_at_the_end)
{
    begin();
    ck_assert_int_eq(weft_barrier(world, NULL), WEFT_OK);
    ck_assert_int_eq(weft_group_begin(world), WEFT_OK);
    ck_assert_int_eq(weft_barrier(world, NULL), WEFT_OK);
    ck_assert_int_eq(weft_barrier(world, NULL), WEFT_OK);
    catch_begin();
    weft_context_release(&context);
    ck_assert_str_eq(catch_end(),
                     "weft: warning: communicator world ends inside a call group, and 2 operations "
                     "of the group are not started; call weft_group_end before the release\n");
}

TEST(groups_nest_and_end)
{
    begin();
    ck_assert_int_eq(weft_group_end(world), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_group_begin(world), WEFT_OK);
    ck_assert_int_eq(weft_group_begin(world), WEFT_OK);
    ck_assert_int_eq(fake.group_depth, 2);
    ck_assert_int_eq(weft_barrier(world, NULL), WEFT_OK);
    ck_assert_uint_eq(world->recent.finished, 0);
    ck_assert_int_eq(weft_group_end(world), WEFT_OK);
    ck_assert_uint_eq(world->recent.finished, 0);
    ck_assert_int_eq(weft_group_end(world), WEFT_OK);
    ck_assert_uint_eq(world->recent.finished, 1);
    ck_assert_int_eq(fake.group_depth, 0);
    weft_context_release(&context);
}

TEST(an_error_inside_is_the_ends_and_the_end_still_happens)
{
    begin();
    ck_assert_int_eq(weft_group_begin(world), WEFT_OK);
    ck_assert_int_eq(weft_send(world, buffer, 1, 0, 5, 0, NULL), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_receive(world, NULL, 1, 0, 0, 0, NULL), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_group_end(world), WEFT_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "peer is 5"));
    ck_assert_int_eq(fake.group_depth, 0);
    ck_assert_int_eq(weft_group_begin(world), WEFT_OK);
    ck_assert_int_eq(weft_group_end(world), WEFT_OK);
    weft_context_release(&context);
}

/* ---- memory that runs out on rank 1, while rank 0 waits for it ---- */

static struct world_rank ranks[WORLD_MAX];

static void run_out_in_a_group(struct world_rank *self)
{
    weft_comm *all = weft_world(self->context);

    if (self->rank == 1) {
        HOLDS(weft_group_begin(all) == WEFT_OK);
        HOLDS(weft_group_begin(all) == WEFT_OK);
        HOLDS(weft_barrier(all, NULL) == WEFT_ERR_NO_MEMORY);
        HOLDS(weft_group_end(all) == WEFT_ERR_NO_MEMORY);
        HOLDS(weft_comm_async_error(all) == WEFT_OK); /* its calls may still follow */
        note_seen(&self->seen, weft_group_end(all));
        HOLDS(weft_barrier(all, NULL) == WEFT_ERR_NO_MEMORY);
    } else {
        note_seen(&self->seen, weft_barrier(all, NULL));
        if (self->rank != 0) self->seen.status = WEFT_OK; /* it may arrive earlier or later */
    }
    while (weft_comm_async_error(all) == WEFT_OK)
        fake_sleep_ms(1); /* no rank leaves before all have the error */
}

TEST(a_group_without_memory_on_one_rank_fails_on_all)
{
    fake_reset();
    fake.collective_fails = 1;
    fake.collective_status = WEFT_ERR_NO_MEMORY;
    fake.hangs = 0;
    world_begin(ranks, 3, run_out_in_a_group, NULL);
    for (int i = 0; i < 3; i++)
        ranks[i].timeout_ns = 100 * WF_SECOND_NS;
    world_go(ranks, 3);
    ck_assert_int_eq(ranks[0].seen.status, WEFT_ERR_ABORTED);
    ck_assert_int_eq(ranks[1].seen.status, WEFT_ERR_NO_MEMORY);
    for (int i = 0; i < 2; i++)
        ck_assert_msg(strstr(ranks[i].seen.text,
                             "weft_group_end on world: rank 1 had no memory "
                             "for its group: barrier on world: scripted") != NULL,
                      "%s", ranks[i].seen.text);
}

TEST(a_group_alone_without_memory_goes_on)
{
    begin();
    fake.collective_fails = 0;
    fake.collective_status = WEFT_ERR_NO_MEMORY;
    ck_assert_int_eq(weft_group_begin(world), WEFT_OK);
    ck_assert_int_eq(weft_barrier(world, NULL), WEFT_ERR_NO_MEMORY);
    ck_assert_int_eq(weft_group_end(world), WEFT_ERR_NO_MEMORY);
    fake.collective_fails = NOBODY;
    ck_assert_int_eq(weft_barrier(world, NULL), WEFT_OK);
    weft_context_release(&context);
}
