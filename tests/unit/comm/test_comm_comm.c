#include "support/fake_world.h"
#include "support/suite.h"

TEST(null_communicators_have_an_answer)
{
    uint32_t level;

    ck_assert_int_eq(weft_comm_rank(NULL), -1);
    ck_assert_int_eq(weft_comm_size(NULL), 0);
    ck_assert_ptr_null(weft_comm_name(NULL));
    ck_assert_ptr_null(weft_comm_context(NULL));
    ck_assert_int_eq(weft_comm_world_rank(NULL, 0), -1);
    ck_assert_int_eq(weft_comm_find_rank(NULL, 0), -1);
    ck_assert_int_eq(weft_comm_same_host(NULL, 0, 0), 0);
    ck_assert_int_eq(weft_comm_timeout(NULL), 0);
    ck_assert_ptr_null(weft_comm_native(NULL));
    ck_assert_int_eq(weft_comm_support(NULL, 0, 0, 0, &level), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_comm_async_error(NULL), WEFT_ERR_INVALID);
    weft_comm_release(NULL);
}

TEST(a_communicator_answers)
{
    OWNED(weft_context) *context = NULL;
    weft_comm *world;
    uint32_t level = 9;

    fake_reset();
    context = world_alone();
    world = weft_world(context);
    ck_assert_ptr_eq(weft_comm_context(world), context);
    ck_assert_int_eq(weft_comm_world_rank(world, 0), 0);
    ck_assert_int_eq(weft_comm_world_rank(world, 1), -1);
    ck_assert_int_eq(weft_comm_world_rank(world, -1), -1);
    ck_assert_int_eq(weft_comm_same_host(world, 0, 1), 0);
    ck_assert_int_eq(weft_comm_timeout(world), world->timeout_ns);
    ck_assert_ptr_null(weft_comm_native(world));
    ck_assert_int_eq(weft_comm_support(world, WEFT_COLL_BARRIER, 0, 0, &level), WEFT_OK);
    ck_assert_uint_eq(level, WEFT_SUPPORT_NATIVE);
    ck_assert_int_eq(weft_comm_async_error(world), WEFT_OK);
}

TEST(the_world_is_not_released_by_hand)
{
    OWNED(weft_context) *context = NULL;
    weft_comm *world;

    fake_reset();
    context = world_alone();
    world = weft_world(context);
    wf_log_set_level(WF_LOG_ERROR);
    weft_comm_release(&world);
    wf_log_set_level(WF_LOG_NOTICE);
    ck_assert_ptr_null(world);
    ck_assert_int_eq(weft_barrier(weft_world(context), NULL), WEFT_OK);
}
