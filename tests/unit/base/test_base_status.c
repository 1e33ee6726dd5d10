#include "base/base.h"
#include "support/suite.h"
#include "weft/status.h"

#include <pthread.h>

TEST(every_status_has_a_name_and_a_text)
{
#define ROW(name, value, text)                                                                     \
    ck_assert_str_eq(weft_status_name(value), #name);                                              \
    ck_assert_str_eq(weft_status_text(value), text);
    WEFT_STATUS_LIST(ROW)
#undef ROW
    ck_assert_str_eq(weft_status_name(-999), "unknown");
    ck_assert_str_eq(weft_status_text(2), "unknown");
}

TEST(a_failure_is_described_for_its_thread)
{
    ck_assert_int_eq(wf_fail(WEFT_ERR_INVALID, "rank %d of %d", 4, 4), WEFT_ERR_INVALID);
    ck_assert_str_eq(weft_last_error(), "rank 4 of 4");
}

static void *read_error(void *unused)
{
    (void)unused;
    return weft_last_error()[0] == '\0' ? NULL : "not empty";
}

TEST(another_thread_has_failures_of_its_own)
{
    pthread_t thread;
    void *answer = NULL;

    wf_fail(WEFT_ERR_INVALID, "mine");
    pthread_create(&thread, NULL, read_error, NULL);
    pthread_join(thread, &answer);
    ck_assert_ptr_null(answer);
    ck_assert_str_eq(weft_last_error(), "mine");
}

TEST(context_goes_before_the_text)
{
    wf_fail(WEFT_ERR_SYSTEM, "no such file");
    ck_assert_int_eq(wf_fail_context(WEFT_ERR_SYSTEM, "plugin %s", "nccl"), WEFT_ERR_SYSTEM);
    ck_assert_str_eq(weft_last_error(), "plugin nccl: no such file");
}

TEST(a_vendors_code_stays_until_the_next_failure)
{
    int64_t code = 0;

    wf_fail_vendor(WEFT_ERR_DEVICE, "NCCL", 5, "unhandled system error");
    ck_assert_str_eq(weft_last_error_vendor(&code), "NCCL");
    ck_assert_int_eq(code, 5);
    ck_assert_str_eq(weft_last_error(), "unhandled system error");
    wf_fail_context(WEFT_ERR_DEVICE, "all_reduce");
    ck_assert_str_eq(weft_last_error_vendor(NULL), "NCCL");
    wf_fail(WEFT_ERR_INVALID, "something else");
    ck_assert_ptr_null(weft_last_error_vendor(&code));
    ck_assert_int_eq(code, 0);
}

TEST(a_vendor_without_words_gets_the_statuss)
{
    wf_fail_vendor(WEFT_ERR_TIMEOUT, NULL, 7, NULL);
    ck_assert_str_eq(weft_last_error(), "the time limit passed");
    ck_assert_ptr_null(weft_last_error_vendor(NULL));
}

TEST(the_last_text_may_be_part_of_the_next)
{
    wf_fail(WEFT_ERR_INVALID, "inner");
    wf_fail(WEFT_ERR_INVALID, "outer (%s)", weft_last_error());
    ck_assert_str_eq(weft_last_error(), "outer (inner)");
    wf_fail_vendor(WEFT_ERR_DEVICE, "HIP", 1, weft_last_error());
    ck_assert_str_eq(weft_last_error(), "outer (inner)");
}

TEST(long_texts_are_cut_and_ended)
{
    char text[5000];

    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    wf_fail(WEFT_ERR_INVALID, "%s", text);
    ck_assert_uint_eq(strlen(weft_last_error()), 2047);
    wf_fail_context(WEFT_ERR_INVALID, "%s", text);
    ck_assert_uint_eq(strlen(weft_last_error()), 2047);
    wf_fail_vendor(WEFT_ERR_DEVICE, text, 1, text);
    ck_assert_uint_eq(strlen(weft_last_error()), 2047);
    ck_assert_uint_eq(strlen(weft_last_error_vendor(NULL)), 31);
}

TEST(memory_failures_say_how_much_was_wanted)
{
    ck_assert_int_eq(wf_fail_memory(4096), WEFT_ERR_NO_MEMORY);
    ck_assert_str_eq(weft_last_error(), "out of memory: cannot allocate 4096 bytes");
}

TEST(callers_describe_failures_of_their_own)
{
    char name[] = "left";

    ck_assert_int_eq(weft_fail(WEFT_ERR_PEER, "the %s shard, %d", name, 3), WEFT_ERR_PEER);
    ck_assert_str_eq(weft_last_error(), "the left shard, 3");
    weft_fail(WEFT_ERR_SYSTEM, "behind it: %s", weft_last_error());
    ck_assert_str_eq(weft_last_error(), "behind it: the left shard, 3");
    ck_assert_int_eq(weft_fail(WEFT_ERR_TIMEOUT, NULL), WEFT_ERR_TIMEOUT);
    ck_assert_str_eq(weft_last_error(), "the time limit passed");
}

TEST(a_function_is_named_once)
{
    wf_fail(WEFT_ERR_PEER, "rank 1 has left");
    ck_assert_int_eq(wf_fail_named(WEFT_ERR_PEER, "weft_move"), WEFT_ERR_PEER);
    ck_assert_str_eq(weft_last_error(), "weft_move: rank 1 has left");
    ck_assert_int_eq(wf_fail_named(WEFT_ERR_PEER, "weft_move"), WEFT_ERR_PEER);
    ck_assert_str_eq(weft_last_error(), "weft_move: rank 1 has left");
    wf_fail(WEFT_ERR_PEER, "rank 1 is at weft_move_clear");
    ck_assert_int_eq(wf_fail_named(WEFT_ERR_PEER, "weft_move"), WEFT_ERR_PEER);
    ck_assert_str_eq(weft_last_error(), "weft_move: rank 1 is at weft_move_clear");
    ck_assert_int_eq(wf_fail_named(WEFT_OK, "weft_alloc"), WEFT_OK);
    ck_assert_str_eq(weft_last_error(), "weft_move: rank 1 is at weft_move_clear");
}
