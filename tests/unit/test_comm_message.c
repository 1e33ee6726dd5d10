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

START_TEST(messages_reach_the_plugin_as_they_are)
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
END_TEST

START_TEST(arguments_are_checked)
{
    begin();
    ck_assert_int_eq(weft_send(NULL, buffer, 1, 0, 0, 0, NULL), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_send(world, buffer, 1, 0, 1, 0, NULL), WEFT_ERR_INVALID);
    ck_assert_ptr_nonnull(
        strstr(weft_last_error(), "send on world: peer 1; there are ranks 0 to 0"));
    ck_assert_int_eq(weft_receive(world, buffer, 1, 0, -1, 0, NULL), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_receive(world, NULL, 1, 0, 0, 0, NULL), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_receive(world, buffer, 1, 99, 0, 0, NULL), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_receive(world, buffer, UINT64_MAX, WEFT_DTYPE_F64, 0, 0, NULL),
                     WEFT_ERR_INVALID);
    ck_assert_int_eq(fake.messages, 0);
    weft_context_release(&context);
}
END_TEST

START_TEST(groups_nest_and_end)
{
    begin();
    ck_assert_int_eq(weft_group_end(world), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_group_begin(world), WEFT_OK);
    ck_assert_int_eq(weft_group_begin(world), WEFT_OK);
    ck_assert_int_eq(fake.group_depth, 2);
    ck_assert_int_eq(weft_barrier(world, NULL), WEFT_OK);
    ck_assert_uint_eq(world->ring.finished, 0);
    ck_assert_int_eq(weft_group_end(world), WEFT_OK);
    ck_assert_uint_eq(world->ring.finished, 0);
    ck_assert_int_eq(weft_group_end(world), WEFT_OK);
    ck_assert_uint_eq(world->ring.finished, 1);
    ck_assert_int_eq(fake.group_depth, 0);
    weft_context_release(&context);
}
END_TEST

START_TEST(an_error_inside_is_the_ends_and_the_end_still_happens)
{
    begin();
    ck_assert_int_eq(weft_group_begin(world), WEFT_OK);
    ck_assert_int_eq(weft_send(world, buffer, 1, 0, 5, 0, NULL), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_receive(world, NULL, 1, 0, 0, 0, NULL), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_group_end(world), WEFT_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "peer 5"));
    ck_assert_int_eq(fake.group_depth, 0);
    ck_assert_int_eq(weft_group_begin(world), WEFT_OK);
    ck_assert_int_eq(weft_group_end(world), WEFT_OK);
    weft_context_release(&context);
}
END_TEST

SUITE(comm_message, messages_reach_the_plugin_as_they_are, arguments_are_checked,
      groups_nest_and_end, an_error_inside_is_the_ends_and_the_end_still_happens)
