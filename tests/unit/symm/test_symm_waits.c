#include "alone.h"

static void wait_on(const void *stream, uint32_t channel)
{
    struct wf_symm_wait wait = {
        .stream = stream, .channel = channel, .compare = WEFT_COMPARE_EQ, .value = 1};

    wf_symm_note_wait(symm, &wait);
}

TEST(what_a_failed_stream_waited_for_is_named)
{
    int stream, other;

    begin();
    wait_on(&stream, 1);
    wait_on(&other, 2);
    wait_on(&stream, 3);
    ck_assert_int_eq(weft_symm_signal_to(symm, 0, 3, 1, WEFT_SIGNAL_SET, NULL),
                     WEFT_OK); /* the signal has arrived */
    (void)wf_fail(WEFT_ERR_TIMEOUT, "the plugin's words");
    ck_assert_int_eq(wf_symm_check_wait(context, &stream, false, WEFT_ERR_TIMEOUT),
                     WEFT_ERR_TIMEOUT);
    ck_assert_str_eq(weft_last_error(),
                     "weft_symm_wait_from on world: rank 0 waited for channel 1 of "
                     "rank 0 to be == 1 (it is 0): the plugin's words");
    ck_assert_int_eq(weft_comm_async_error(weft_world(context)), WEFT_ERR_TIMEOUT);
    end();
}

TEST(without_a_stream_all_that_did_not_come_are_named)
{
    int stream, other;

    begin();
    wait_on(&stream, 1);
    wait_on(&other, 2);
    (void)wf_fail(WEFT_ERR_TIMEOUT, "words");
    ck_assert_int_eq(wf_symm_check_wait(context, NULL, true, WEFT_ERR_TIMEOUT), WEFT_ERR_TIMEOUT);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "channel 1 of rank 0 to be == 1 (it is 0), or "
                                                    "for channel 2 of rank 0"));
    end();
}

TEST(no_wait_no_blame)
{
    int stream, other;

    begin();
    wait_on(&other, 1);
    (void)wf_fail(WEFT_ERR_TIMEOUT, "a collective's words");
    ck_assert_int_eq(wf_symm_check_wait(context, &stream, false, WEFT_ERR_TIMEOUT),
                     WEFT_ERR_TIMEOUT);
    ck_assert_str_eq(weft_last_error(), "a collective's words");
    ck_assert_int_eq(weft_comm_async_error(weft_world(context)), WEFT_OK);
    end();
}

TEST(only_the_last_waits_are_kept)
{
    int stream;

    begin();
    for (uint32_t i = 0; i < 3 * WF_SYMM_WAITS; i++)
        wait_on(&stream, i % 8);
    wait_on(&stream, 7);
    symm->host_memory = false; /* the slots are then unknown */
    (void)wf_fail(WEFT_ERR_TIMEOUT, "words");
    ck_assert_int_eq(wf_symm_check_wait(context, &stream, false, WEFT_ERR_TIMEOUT),
                     WEFT_ERR_TIMEOUT);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "waited for channel 1 of rank 0 to be == 1, "));
    symm->host_memory = true;
    end();
}

/* A device's stream continues after a wait that timed out.  The communicator reports the
 * timeout. */
TEST(a_drained_stream_asks_the_communicator)
{
    weft_stream *stream, *other;

    begin();
    ck_assert_int_eq(weft_stream_create(context, &stream), WEFT_OK);
    ck_assert_int_eq(weft_stream_create(context, &other), WEFT_OK);
    ck_assert_int_eq(weft_symm_wait_from(symm, 0, 3, WEFT_COMPARE_EQ, 1, 0, stream), WEFT_OK);
    ck_assert_int_eq(weft_context_wait(context, other, 0), WEFT_OK);
    ck_assert_uint_eq(wf_symm_state(context)->noted_waits, 1);
    ck_assert_int_eq(weft_stream_test(stream), WEFT_OK);
    ck_assert_uint_eq(wf_symm_state(context)->noted_waits, 0);
    ck_assert_int_eq(weft_symm_wait_from(symm, 0, 3, WEFT_COMPARE_EQ, 1, 0, stream), WEFT_OK);
    fake.async_status = WEFT_ERR_TIMEOUT;
    ck_assert_int_eq(weft_context_wait(context, other, 0), WEFT_OK);
    ck_assert_int_eq(weft_context_wait(context, stream, 0), WEFT_ERR_TIMEOUT);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "waited for channel 3 of rank 0 to be == 1"));
    weft_stream_release(&other);
    weft_stream_release(&stream);
    end();
}

TEST(a_work_that_is_done_asks_too)
{
    weft_stream *stream;
    weft_work *work;

    begin();
    ck_assert_int_eq(weft_stream_create(context, &stream), WEFT_OK);
    ck_assert_int_eq(weft_symm_wait_from(symm, 0, 3, WEFT_COMPARE_EQ, 1, 0, stream), WEFT_OK);
    ck_assert_int_eq(weft_work_record(context, stream, &work), WEFT_OK);
    ck_assert_int_eq(weft_work_wait(work, 0), WEFT_OK);
    fake.async_status = WEFT_ERR_DEVICE;
    ck_assert_int_eq(weft_work_test(work), WEFT_ERR_DEVICE);
    ck_assert_int_eq(weft_symm_fence(symm, NULL), WEFT_ERR_DEVICE);
    weft_work_release(&work);
    weft_stream_release(&stream);
    end();
}
