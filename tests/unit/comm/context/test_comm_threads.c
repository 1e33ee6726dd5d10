#include "support/fake_world.h"
#include "support/suite.h"

static atomic_int sum, calls;

static weft_status add_rank(void *argument)
{
    OWNED(weft_context) *context = NULL;
    weft_init_options options = {.struct_size = sizeof options};

    *(atomic_int *)argument += 1;
    WF_TRY(wf_context_create(&options, fake_plugin(), &context));
    sum += weft_rank(context) + 100 * weft_size(context) + 10000 * weft_local_rank(context);
    return WEFT_OK;
}

TEST(every_rank_runs_once_in_one_world)
{
    fake_reset();
    sum = calls = 0;
    ck_assert_int_eq(weft_threads_run(4, add_rank, &calls), WEFT_OK);
    ck_assert_int_eq(calls, 4);
    ck_assert_int_eq(sum, 6 + 1600 + 60000);
    sum = calls = 0;
    ck_assert_int_eq(weft_threads_run(1, add_rank, &calls), WEFT_OK);
    ck_assert_int_eq(sum, 100);
    ck_assert_int_eq(weft_threads_run(0, add_rank, &calls), WEFT_ERR_INVALID);
    ck_assert_str_eq(weft_last_error(), "weft_threads_run: size is 0; it must be at least 1");
}

static weft_status ignore_launchers(void *argument)
{
    OWNED(weft_context) *context = NULL;

    WF_TRY(wf_context_create(NULL, fake_plugin(), &context));
    if (weft_size(context) != 2) *(atomic_int *)argument = 1;
    return WEFT_OK;
}

TEST(launchers_variables_do_not_matter_inside)
{
    atomic_int wrong = 0;

    fake_reset();
    setenv("RANK", "7", 1);
    setenv("WORLD_SIZE", "9", 1);
    ck_assert_int_eq(weft_threads_run(2, ignore_launchers, &wrong), WEFT_OK);
    unsetenv("RANK");
    unsetenv("WORLD_SIZE");
    ck_assert_int_eq(wrong, 0);
}

static atomic_bool two_has_ended;

static void note_end(void *unused)
{
    (void)unused;
    two_has_ended = true;
}

static weft_status fail_on_two(void *argument)
{
    pthread_key_t *at_end = argument;
    int32_t rank;

    (void)wf_threads_current(&rank);
    if (rank == 2) {
        pthread_setspecific(*at_end, at_end); /* note_end runs when its thread ends */
        return wf_fail(WEFT_ERR_DEVICE, "it broke");
    }
    while (!two_has_ended)
        fake_sleep_ms(1);
    return rank == 3 ? wf_fail(WEFT_ERR_SYSTEM, "me too") : WEFT_OK;
}

TEST(the_first_failure_is_returned_with_its_rank)
{
    pthread_key_t at_end;

    fake_reset();
    ck_assert_int_eq(pthread_key_create(&at_end, note_end), 0);
    ck_assert_int_eq(weft_threads_run(4, fail_on_two, &at_end), WEFT_ERR_DEVICE);
    ck_assert_str_eq(weft_last_error(), "rank 2: it broke");
    pthread_key_delete(at_end);
}

static weft_status return_number(void *argument)
{
    const weft_status *number = argument;

    return *number;
}

TEST(a_failure_without_a_text_is_described)
{
    static const struct {
        weft_status returned, want;
        const char *text;
    } cases[] = {
        {5, WEFT_ERR_INVALID, "rank 0: rank_main returned 5, which is not an error of weft"},
        {WEFT_IN_PROGRESS, WEFT_ERR_INVALID,
         "rank 0: rank_main returned 1, which is not an error of weft"},
        {-77, WEFT_ERR_INVALID, "rank 0: rank_main returned -77, which is not an error of weft"},
        {WEFT_ERR_DEVICE, WEFT_ERR_DEVICE,
         "rank 0: rank_main returned ERR_DEVICE: the device or its vendor library failed"},
    };

    fake_reset();
    for (size_t i = 0; i < WF_COUNT(cases); i++) {
        weft_status number = cases[i].returned;

        ck_assert_int_eq(weft_threads_run(1, return_number, &number), cases[i].want);
        ck_assert_str_eq(weft_last_error(), cases[i].text);
    }
}

/* Rank 1 fails before it joins.  Rank 0 must not wait until the time limit for joining. */
static weft_status fail_before_joining(void *argument)
{
    OWNED(weft_context) *context = NULL;
    int32_t rank;

    (void)argument;
    (void)wf_threads_current(&rank);
    if (rank == 1) {
        fake_sleep_ms(100);
        return wf_fail(WEFT_ERR_DEVICE, "not even begun");
    }
    WF_TRY(wf_context_create(NULL, fake_plugin(), &context));
    return WEFT_OK;
}

TEST(a_rank_that_never_joins_is_not_waited_for)
{
    fake_reset();
    ck_assert_int_eq(weft_threads_run(2, fail_before_joining, NULL), WEFT_ERR_DEVICE);
    ck_assert_str_eq(weft_last_error(), "rank 1: not even begun");
}

TEST(arguments_are_checked)
{
    weft_threads *threads = NULL;

    ck_assert_int_eq(weft_threads_run(0, fail_on_two, NULL), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_threads_run(2, NULL, NULL), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_threads_create(-1, &threads), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_threads_create(1, NULL), WEFT_ERR_INVALID);
    ck_assert_ptr_null(threads);
    weft_threads_release(&threads);
    weft_threads_release(NULL);
}

TEST(nothing_is_left_behind)
{
    int64_t live;

    fake_reset();
    ck_assert_int_eq(weft_threads_run(3, add_rank, &calls), WEFT_OK);
    live = wf_mem_live();
    for (int i = 0; i < 20; i++)
        ck_assert_int_eq(weft_threads_run(3, add_rank, &calls), WEFT_OK);
    ck_assert_int_eq(wf_mem_live(), live);
}
