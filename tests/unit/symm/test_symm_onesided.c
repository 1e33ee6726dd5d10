#include "alone.h"

TEST(moves_and_signals_reach_the_plugin)
{
    uint64_t value = 77, seen = 0;

    begin();
    ck_assert_int_eq(weft_symm_put_to(symm, &value, 0, 8, 8, NULL), WEFT_OK);
    ck_assert_int_eq(weft_symm_get_from(symm, 0, 8, &seen, 8, NULL), WEFT_OK);
    ck_assert_uint_eq(seen, 77);
    ck_assert_int_eq(weft_symm_put_signal_to(symm, &value, 0, 0, 8, 5, 3, WEFT_SIGNAL_SET, NULL),
                     WEFT_OK);
    ck_assert_uint_eq(fake.last_signal, 5); /* channel x size + sender */
    ck_assert_int_eq(weft_symm_signal_to(symm, 0, 5, 4, WEFT_SIGNAL_ADD, NULL), WEFT_OK);
    ck_assert_int_eq(weft_symm_test_from(symm, 0, 5, WEFT_COMPARE_EQ, 7), WEFT_OK);
    ck_assert_int_eq(weft_symm_test_from(symm, 0, 5, WEFT_COMPARE_GT, 7), WEFT_IN_PROGRESS);
    ck_assert_int_eq(weft_symm_wait_from(symm, 0, 6, WEFT_COMPARE_GE, 1, 0, NULL), WEFT_OK);
    ck_assert_uint_eq(fake.last_signal, 6);
    ck_assert_int_eq(weft_symm_fence(symm, NULL), WEFT_OK);
    ck_assert_int_eq(weft_symm_quiet(symm, NULL), WEFT_OK);
    ck_assert_int_eq(weft_symm_barrier(symm, NULL), WEFT_OK);
    end();
}

TEST(slots_on_a_device_are_read_through_it)
{
    begin();
    ck_assert_int_eq(weft_symm_signal_to(symm, 0, 1, 9, WEFT_SIGNAL_SET, NULL), WEFT_OK);
    symm->host_memory = false;
    ck_assert_int_eq(weft_symm_test_from(symm, 0, 1, WEFT_COMPARE_EQ, 9), WEFT_OK);
    ck_assert_int_eq(weft_symm_test_from(symm, 0, 1, WEFT_COMPARE_LT, 9), WEFT_IN_PROGRESS);
    symm->host_memory = true;
    end();
}

TEST(a_wait_that_runs_out_sticks_and_names_what_it_waited_for)
{
    begin();
    fake.wait_status = WEFT_ERR_TIMEOUT;
    ck_assert_int_eq(weft_symm_wait_from(symm, 0, 2, WEFT_COMPARE_LE, 3, 250000000, NULL),
                     WEFT_ERR_TIMEOUT);
    ck_assert_str_eq(weft_last_error(),
                     "weft_symm_wait_from on world: rank 0 waited 0.250 s for channel "
                     "2 of rank 0 to be <= 3 (it is 0)");
    ck_assert_int_eq(weft_symm_quiet(symm, NULL), WEFT_ERR_TIMEOUT);
    ck_assert_int_eq(weft_barrier(weft_world(context), NULL), WEFT_ERR_TIMEOUT);
    end();
}

TEST(a_wait_may_fail_otherwise)
{
    begin();
    fake.wait_status = WEFT_ERR_DEVICE;
    ck_assert_int_eq(weft_symm_wait_from(symm, 0, 2, WEFT_COMPARE_NE, 3, 0, NULL), WEFT_ERR_DEVICE);
    ck_assert_str_eq(weft_last_error(),
                     "weft_symm_wait_from for channel 2 of rank 0 to be != 3 (it is "
                     "0) on world: scripted: wait");
    end();
}

TEST(null_and_groups_are_refused)
{
    uint64_t value = 0;

    begin();
    ck_assert_int_eq(weft_symm_put_to(NULL, &value, 0, 0, 8, NULL), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_symm_get_from(NULL, 0, 0, &value, 8, NULL), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_symm_put_signal_to(NULL, &value, 0, 0, 8, 0, 1, 0, NULL),
                     WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_symm_signal_to(NULL, 0, 0, 1, 0, NULL), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_symm_wait_from(NULL, 0, 0, 0, 0, 0, NULL), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_symm_test_from(NULL, 0, 0, 0, 0), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_symm_fence(NULL, NULL), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_symm_quiet(NULL, NULL), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_symm_barrier(NULL, NULL), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_group_begin(weft_world(context)), WEFT_OK);
    ck_assert_int_eq(weft_symm_fence(symm, NULL), WEFT_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "not allowed inside a call group"));
    ck_assert_int_eq(weft_group_end(weft_world(context)), WEFT_OK);
    end();
}

/* As WEFT_CHECK would; the fake plugin calls all memory host memory. */
TEST(checks_ask_whether_the_device_reaches_memory)
{
    uint64_t value = 0;

    begin();
    context->config->check = true;
    ck_assert_int_eq(weft_symm_put_to(symm, &value, 0, 0, 8, NULL), WEFT_OK);
    symm->host_memory = false;
    ck_assert_int_eq(weft_symm_put_to(symm, &value, 0, 0, 8, NULL), WEFT_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "is plain host memory"));
    symm->host_memory = true;
    context->config->check = false;
    end();
}
