#include "support/caught.h"
#include "support/fake_world.h"
#include "support/suite.h"

TEST(a_work_is_done_when_its_stream_is)
{
    OWNED(weft_context) *context = NULL;
    weft_stream *stream;
    weft_work *work;
    int64_t ns;

    fake_reset();
    context = world_alone();
    ck_assert_int_eq(weft_stream_create(context, &stream), WEFT_OK);
    *(atomic_int *)(void *)stream = 1;
    ck_assert_int_eq(weft_work_record(context, stream, &work), WEFT_OK);
    ck_assert_int_eq(weft_work_test(work), WEFT_IN_PROGRESS);
    ck_assert_int_eq(weft_work_wait(work, 0), WEFT_ERR_TIMEOUT);
    ck_assert_int_eq(weft_work_wait(work, 5), WEFT_ERR_TIMEOUT);
    ck_assert_str_eq(weft_last_error(),
                     "weft_work_wait on rank 0: the work is not complete after 5 ns");
    ck_assert_int_eq(weft_work_wait(work, 1500), WEFT_ERR_TIMEOUT);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), " after 1.5 us"));
    ck_assert_int_eq(weft_work_wait(work, 2000000), WEFT_ERR_TIMEOUT);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), " after 0.002 s"));
    ck_assert_int_eq(weft_stream_wait_work(NULL, work), WEFT_OK);
    *(atomic_int *)(void *)stream = 0;
    ck_assert_int_eq(weft_work_test(work), WEFT_OK);
    ck_assert_int_eq(weft_work_wait(work, WEFT_FOREVER), WEFT_OK);
    ck_assert_int_eq(weft_work_elapsed(work, work, &ns), WEFT_ERR_UNSUPPORTED);
    weft_work_release(&work);
    ck_assert_ptr_null(work);
    weft_work_release(&work);
    weft_work_release(NULL);
    weft_stream_release(&stream);
}

TEST(events_of_a_vendor_are_wrapped_where_there_are_some)
{
    OWNED(weft_context) *context = NULL;
    weft_work *work = NULL;
    int native;

    fake_reset();
    context = world_alone();
    ck_assert_int_eq(weft_work_wrap(context, &native, &work), WEFT_ERR_UNSUPPORTED);
    ck_assert_int_eq(weft_work_wrap(context, NULL, &work), WEFT_ERR_INVALID);
    ck_assert_ptr_null(weft_work_native(NULL));
    ck_assert_int_eq(weft_work_record(context, NULL, &work), WEFT_OK);
    ck_assert_ptr_null(weft_work_native(work));
    weft_work_release(&work);
}

TEST(released_works_are_used_again)
{
    weft_context *context;
    weft_work *works[WF_SPARE_WORKS + 10];

    fake_reset();
    context = world_alone();
    for (size_t i = 0; i < WF_COUNT(works); i++)
        ck_assert_int_eq(weft_work_record(context, NULL, &works[i]), WEFT_OK);
    ck_assert_int_eq(fake.events, WF_COUNT(works));
    for (size_t i = 0; i < WF_COUNT(works); i++)
        weft_work_release(&works[i]);
    ck_assert_int_eq(fake.events, WF_SPARE_WORKS);
    wf_mem_fail_at(0);
    for (int round = 0; round < 100; round++) {
        for (size_t i = 0; i < WF_SPARE_WORKS; i++)
            ck_assert_int_eq(weft_work_record(context, NULL, &works[i]), WEFT_OK);
        for (size_t i = 0; i < WF_SPARE_WORKS; i++)
            weft_work_release(&works[i]);
    }
    ck_assert_uint_eq(wf_mem_made(), 0);
    weft_context_release(&context);
    ck_assert_int_eq(fake.events, 0);
}

/* A copy of the pointer to a released work. */
static void is_refused(weft_work *old)
{
    int64_t ns;

    ck_assert_int_eq(weft_work_test(old), WEFT_ERR_INVALID);
    ck_assert_str_eq(weft_last_error(), "weft_work_test: work is a weft_work that was released");
    ck_assert_int_eq(weft_work_wait(old, 0), WEFT_ERR_INVALID);
    ck_assert_str_eq(weft_last_error(), "weft_work_wait: work is a weft_work that was released");
    ck_assert_int_eq(weft_stream_wait_work(NULL, old), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_work_elapsed(old, old, &ns), WEFT_ERR_INVALID);
    ck_assert_ptr_null(weft_work_native(old));
    catch_begin();
    weft_work_release(&old);
    ck_assert_str_eq(catch_end(),
                     "weft: warning: weft_work_release: this weft_work was released before\n");
    ck_assert_ptr_null(old);
}

TEST(a_released_work_is_refused)
{
    int64_t live = wf_mem_live();
    weft_context *context;
    weft_work *works[WF_SPARE_WORKS + 10], *old[WF_SPARE_WORKS + 10];

    fake_reset();
    context = world_alone();
    for (size_t i = 0; i < WF_COUNT(works); i++) {
        ck_assert_int_eq(weft_work_record(context, NULL, &works[i]), WEFT_OK);
        old[i] = works[i];
    }
    for (size_t i = 0; i < WF_COUNT(works); i++) /* for reuse, and beyond */
        weft_work_release(&works[i]);
    for (size_t i = 0; i < WF_COUNT(works); i++)
        is_refused(old[i]);
    ck_assert_int_eq(weft_work_record(context, NULL, &works[0]), WEFT_OK);
    ck_assert_int_eq(weft_work_wait(works[0], 0), WEFT_OK);
    weft_work_release(&works[0]);
    weft_context_release(&context);
    ck_assert_int_eq(fake.events, 0);
    ck_assert_int_eq(wf_mem_live(), live);
}

TEST(arguments_are_checked)
{
    OWNED(weft_context) *context = NULL;
    weft_work *work;

    fake_reset();
    context = world_alone();
    ck_assert_int_eq(weft_work_record(NULL, NULL, &work), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_work_record(context, NULL, NULL), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_work_test(NULL), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_work_wait(NULL, 0), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_stream_wait_work(NULL, NULL), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_work_elapsed(NULL, NULL, NULL), WEFT_ERR_INVALID);
    wf_mem_fail_at(1);
    ck_assert_int_eq(weft_work_record(context, NULL, &work), WEFT_ERR_NO_MEMORY);
    wf_mem_fail_at(2);
    ck_assert_int_eq(weft_work_record(context, NULL, &work), WEFT_ERR_NO_MEMORY);
    wf_mem_fail_at(0);
}

TEST(unreleased_works_are_reported_with_their_creator)
{
    weft_context *context;
    weft_work *works[5];

    fake_reset();
    context = world_alone();
    for (size_t i = 0; i < 3; i++)
        ck_assert_int_eq(weft_work_record(context, NULL, &works[i]), WEFT_OK);
    ck_assert_int_eq(wf_work_record(context, NULL, "weft_redistribute", &works[3]), WEFT_OK);
    ck_assert_int_eq(wf_work_record(context, NULL, "weft_move", &works[4]), WEFT_OK);
    weft_work_release(&works[1]);
    catch_begin();
    weft_context_release(&context);
    ck_assert_str_eq(catch_end(), "weft: warning: weft_context_release: works not released: 2 of "
                                  "weft_work_record, 1 of weft_redistribute, 1 of "
                                  "weft_move\n");
    ck_assert_int_eq(fake.events, 0);
    ck_assert_int_eq(weft_work_test(works[3]), WEFT_ERR_INVALID);
    ck_assert_str_eq(weft_last_error(), "weft_work_test: the context of this work was released; "
                                        "the work is from weft_redistribute");
    weft_work_release(&works[0]);
    weft_work_release(&works[2]);
    for (size_t i = 3; i < WF_COUNT(works); i++)
        weft_work_release(&works[i]);
    ck_assert_ptr_null(works[3]);
}

static atomic_int errors;
static weft_context *shared;

static void *hammer(void *argument)
{
    (void)argument;
    for (int i = 0; i < 5000; i++) {
        weft_work *a, *b;

        if (weft_work_record(shared, NULL, &a) != WEFT_OK) errors++;
        if (weft_work_record(shared, NULL, &b) != WEFT_OK || a == b) errors++;
        weft_work_release(&a);
        weft_work_release(&b);
    }
    return NULL;
}

TEST(threads_share_the_works_without_a_lock)
{
    pthread_t threads[4];

    fake_reset();
    shared = world_alone();
    for (size_t i = 0; i < WF_COUNT(threads); i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, hammer, NULL), 0);
    for (size_t i = 0; i < WF_COUNT(threads); i++)
        pthread_join(threads[i], NULL);
    ck_assert_int_eq(errors, 0);
    weft_context_release(&shared);
    ck_assert_int_eq(fake.events, 0);
}
