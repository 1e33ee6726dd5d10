#include "symm/symm.h"
#include "support/fake_symm.h"
#include "support/fake_world.h"
#include "support/suite.h"

static weft_context *context;
static weft_comm *world;
static weft_stream *stream, *other;

static void begin(void)
{
    fake_reset();
    fake.inlined = false;
    context = world_alone_on(fake_symm_plugin());
    world = weft_world(context);
    ck_assert_int_eq(weft_stream_create(context, &stream), WEFT_OK);
    ck_assert_int_eq(weft_stream_create(context, &other), WEFT_OK);
}

static void end(void)
{
    weft_stream_release(&stream);
    weft_stream_release(&other);
    weft_context_release(&context);
}

static void post(weft_comm *comm, weft_stream *on)
{
    ck_assert_int_eq(weft_barrier(comm, on), WEFT_OK);
}

static weft_work *record(weft_stream *on)
{
    weft_work *work = NULL;

    ck_assert_int_eq(weft_work_record(context, on, &work), WEFT_OK);
    return work;
}

static weft_status wait_stream(weft_stream *on)
{
    return weft_context_wait(context, on, WEFT_FOREVER);
}

static void set_busy(weft_stream *on, int busy)
{
    *(atomic_int *)(void *)on = busy;
}

static weft_comm *make_another(void)
{
    weft_comm *another = NULL;

    ck_assert_int_eq(weft_comm_create(world, 1, (int32_t[]){0}, NULL, &another), WEFT_OK);
    return another;
}

TEST(work_that_an_abort_ended_was_not_done)
{
    weft_work *work;

    begin();
    post(world, stream);
    work = record(stream);
    set_busy(stream, 1);
    weft_comm_abort(world);
    ck_assert_int_eq(weft_work_test(work), WEFT_IN_PROGRESS);
    ck_assert_int_eq(weft_stream_test(stream), WEFT_IN_PROGRESS);
    set_busy(stream, 0); /* it continues as without an error */
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(weft_work_wait(work, WEFT_FOREVER), WEFT_ERR_ABORTED);
        ck_assert_str_eq(weft_last_error(), "world was aborted by rank 0");
        ck_assert_int_eq(weft_work_test(work), WEFT_ERR_ABORTED);
        ck_assert_int_eq(wait_stream(stream), WEFT_ERR_ABORTED);
        ck_assert_str_eq(weft_last_error(), "world was aborted by rank 0");
        ck_assert_int_eq(weft_stream_test(stream), WEFT_ERR_ABORTED);
    }
    weft_work_release(&work);
    end();
}

TEST(so_it_is_on_the_default_stream)
{
    begin();
    post(world, NULL);
    weft_comm_abort(world);
    ck_assert_int_eq(wait_stream(NULL), WEFT_ERR_ABORTED);
    ck_assert_int_eq(wait_stream(stream), WEFT_OK);
    end();
}

TEST(work_on_an_inline_default_stream_is_done)
{
    fake_reset();
    context = world_alone();
    world = weft_world(context);
    post(world, NULL);
    ck_assert_int_eq(weft_group_begin(world), WEFT_OK);
    post(world, NULL);
    ck_assert_int_eq(weft_group_end(world), WEFT_OK);
    weft_comm_abort(world);
    ck_assert_int_eq(wait_stream(NULL), WEFT_OK);
    ck_assert(!context->uses_streams);
    weft_context_release(&context);
}

TEST(what_was_found_done_stays_done)
{
    weft_work *first, *second;

    begin();
    post(world, stream);
    first = record(stream);
    ck_assert_int_eq(weft_work_wait(first, WEFT_FOREVER), WEFT_OK);
    post(world, other);
    ck_assert_int_eq(wait_stream(other), WEFT_OK);
    post(world, stream);
    second = record(stream);
    weft_comm_abort(world);
    ck_assert_int_eq(weft_work_test(first), WEFT_OK);
    ck_assert_int_eq(wait_stream(other), WEFT_OK);
    ck_assert_int_eq(weft_work_test(second), WEFT_ERR_ABORTED);
    weft_work_release(&first);
    weft_work_release(&second);
    end();
}

TEST(a_work_answers_for_what_was_before_it_alone)
{
    weft_work *before;

    begin();
    post(world, other); /* so that the context counts */
    before = record(stream);
    post(world, stream);
    weft_comm_abort(world);
    ck_assert_int_eq(weft_work_test(before), WEFT_OK);
    ck_assert_int_eq(wait_stream(stream), WEFT_ERR_ABORTED);
    weft_work_release(&before);
    end();
}

TEST(the_plugin_may_be_the_only_one_that_knows)
{
    begin();
    ck_assert_int_eq(weft_stream_set_name(context, stream, "copy"), WEFT_OK);
    post(world, stream);
    fake.async_status = WEFT_ERR_DEVICE;
    ck_assert_int_eq(wait_stream(other), WEFT_OK);
    ck_assert_int_eq(wait_stream(stream), WEFT_ERR_DEVICE);
    ck_assert_str_eq(weft_last_error(), "work on stream copy on world: scripted: async");
    fake.async_status = WEFT_OK;
    ck_assert_int_eq(weft_barrier(world, NULL), WEFT_ERR_DEVICE); /* the error is permanent */
    end();
}

TEST(one_that_failed_does_not_touch_another)
{
    weft_comm *another;

    begin();
    another = make_another();
    post(another, stream);
    post(world, other);
    weft_comm_abort(world);
    ck_assert_int_eq(wait_stream(stream), WEFT_OK);
    ck_assert_int_eq(wait_stream(other), WEFT_ERR_ABORTED);
    weft_comm_release(&another);
    end();
}

/* A caller that has received the error may use the stream again.  Earlier works have still
 * failed. */
TEST(new_work_ends_a_reported_failure)
{
    weft_work *lost, *untold, *later;
    weft_comm *another;
    char byte;

    begin();
    another = make_another();
    post(world, stream);
    lost = record(stream);
    untold = record(stream);
    weft_comm_abort(world);
    ck_assert_int_eq(weft_work_wait(lost, WEFT_FOREVER), WEFT_ERR_ABORTED);
    ck_assert_uint_eq(context->reported, 1);
    post(another, other); /* on another stream */
    ck_assert_int_eq(wait_stream(stream), WEFT_ERR_ABORTED);
    post(another, stream);
    ck_assert_uint_eq(context->reported, 0);
    later = record(stream);
    ck_assert_int_eq(wait_stream(stream), WEFT_OK);
    ck_assert_int_eq(weft_work_test(later), WEFT_OK);
    ck_assert_int_eq(weft_work_test(lost), WEFT_ERR_ABORTED);
    ck_assert_int_eq(weft_work_test(untold), WEFT_ERR_ABORTED);
    post(another, other);
    weft_comm_abort(another);
    ck_assert_int_eq(wait_stream(other), WEFT_ERR_ABORTED);
    ck_assert_int_eq(weft_memory_copy(context, "x", &byte, 1, other), WEFT_OK);
    ck_assert_int_eq(wait_stream(other), WEFT_OK);
    weft_work_release(&lost);
    weft_work_release(&untold);
    weft_work_release(&later);
    weft_comm_release(&another);
    end();
}

TEST(new_work_hides_no_unreported_failure)
{
    char byte;

    begin();
    post(world, stream);
    weft_comm_abort(world);
    ck_assert_int_eq(weft_memory_copy(context, "x", &byte, 1, stream), WEFT_OK);
    ck_assert_int_eq(wait_stream(stream), WEFT_ERR_ABORTED);
    end();
}

TEST(a_group_counts_from_its_end)
{
    begin();
    ck_assert_int_eq(weft_group_begin(world), WEFT_OK);
    post(world, stream);
    ck_assert_int_eq(wait_stream(stream), WEFT_OK); /* no work has been posted to it */
    ck_assert_int_eq(weft_group_end(world), WEFT_OK);
    weft_comm_abort(world);
    ck_assert_int_eq(wait_stream(stream), WEFT_ERR_ABORTED);
    end();
}

TEST(messages_and_one_sided_work_count)
{
    weft_comm *another;
    weft_symm *symm;
    char bytes[8] = {0};

    begin();
    another = make_another();
    ck_assert_int_eq(weft_symm_create(another, 64, NULL, &symm), WEFT_OK);
    ck_assert_int_eq(weft_receive(world, bytes, 8, WEFT_DTYPE_U8, 0, 0, stream), WEFT_OK);
    ck_assert_int_eq(weft_symm_put_to(symm, bytes, 0, 0, 8, other), WEFT_OK);
    weft_comm_abort(world);
    weft_comm_abort(another);
    ck_assert_int_eq(wait_stream(stream), WEFT_ERR_ABORTED);
    ck_assert_str_eq(weft_last_error(), "world was aborted by rank 0");
    ck_assert_int_eq(wait_stream(other), WEFT_ERR_ABORTED);
    ck_assert_ptr_null(strstr(weft_last_error(), "world was"));
    weft_symm_release(&symm);
    weft_comm_release(&another);
    end();
}

TEST(a_released_stream_leaves_its_works_what_they_are)
{
    weft_work *lost;

    begin();
    post(world, stream);
    lost = record(stream);
    weft_comm_abort(world);
    ck_assert_int_eq(wait_stream(stream), WEFT_ERR_ABORTED);
    for (int i = 0; i < 3; i++) { /* one may have the address of an earlier one */
        weft_stream_release(&stream);
        ck_assert_uint_eq(context->reported, 0);
        ck_assert_int_eq(weft_stream_create(context, &stream), WEFT_OK);
        ck_assert_int_eq(wait_stream(stream), WEFT_OK);
    }
    ((struct fake_event *)lost->event)->stream = NULL; /* freed */
    ck_assert_int_eq(weft_work_test(lost), WEFT_ERR_ABORTED);
    weft_work_release(&lost);
    end();
}

/* With more streams than are distinguished, a failure is reported on all.  No failure is missed. */
TEST(many_streams_are_distinguished_up_to_a_limit)
{
    weft_stream *streams[3 * WF_POST_STREAMS];

    begin();
    for (size_t i = 0; i < WF_COUNT(streams); i++) {
        ck_assert_int_eq(weft_stream_create(context, &streams[i]), WEFT_OK);
        post(world, streams[i]);
        if (i < 2 * WF_POST_STREAMS) ck_assert_int_eq(wait_stream(streams[i]), WEFT_OK);
    }
    weft_comm_abort(world);
    ck_assert_int_eq(wait_stream(streams[0]), WEFT_OK);
    for (size_t i = 2 * WF_POST_STREAMS; i < WF_COUNT(streams); i++)
        ck_assert_int_eq(wait_stream(streams[i]), WEFT_ERR_ABORTED);
    for (size_t i = 0; i < WF_COUNT(streams); i++)
        weft_stream_release(&streams[i]);
    end();

    begin();
    for (size_t i = 0; i < WF_COUNT(streams); i++) {
        ck_assert_int_eq(weft_stream_create(context, &streams[i]), WEFT_OK);
        post(world, streams[i]);
    }
    weft_comm_abort(world);
    for (size_t i = 0; i < WF_COUNT(streams); i++)
        ck_assert_int_eq(wait_stream(streams[i]), WEFT_ERR_ABORTED);
    for (size_t i = 0; i < WF_COUNT(streams); i++)
        weft_stream_release(&streams[i]);
    end();
}

TEST(a_communicator_that_ends_takes_its_failure_along)
{
    weft_comm *another;

    begin();
    another = make_another();
    post(another, stream);
    weft_comm_abort(another);
    ck_assert_int_eq(wait_stream(stream), WEFT_ERR_ABORTED);
    weft_comm_release(&another);
    ck_assert_uint_eq(context->reported, 0);
    ck_assert_int_eq(wait_stream(stream), WEFT_OK);
    end();
}

TEST(a_failure_that_was_not_reported_outlives_its_communicator)
{
    weft_comm *another;
    weft_work *before, *behind, *after;

    begin();
    another = make_another();
    post(another, stream);
    before = record(stream);
    weft_comm_abort(another);
    behind = record(stream);
    weft_comm_release(&another);
    after = record(stream);
    ck_assert_int_eq(wait_stream(other), WEFT_OK);
    ck_assert_int_eq(weft_work_test(before), WEFT_ERR_ABORTED);
    ck_assert_int_eq(wait_stream(stream), WEFT_ERR_ABORTED);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "was aborted by rank 0"));
    ck_assert_int_eq(weft_work_test(behind), WEFT_ERR_ABORTED);
    ck_assert_int_eq(weft_work_test(after), WEFT_ERR_ABORTED);
    post(world, stream); /* after a wait returned the error */
    ck_assert_uint_eq(context->reported, 0);
    ck_assert_int_eq(wait_stream(stream), WEFT_OK);
    ck_assert_int_eq(weft_work_test(before), WEFT_ERR_ABORTED);
    weft_work_release(&before);
    weft_work_release(&behind);
    weft_work_release(&after);
    end();
    ck_assert_int_eq(wf_mem_live(), 0);
}

TEST(what_ended_well_before_its_communicator_failed_stays_well)
{
    weft_comm *another;

    begin();
    another = make_another();
    post(another, stream);
    ck_assert_int_eq(wait_stream(stream), WEFT_OK);
    weft_comm_abort(another);
    weft_comm_release(&another);
    ck_assert_ptr_null(context->remains);
    ck_assert_int_eq(wait_stream(stream), WEFT_OK);
    end();
}

TEST(the_last_communicators_that_failed_are_remembered)
{
    weft_stream *streams[WF_REMAINS + 3];
    int told = 0;

    begin();
    for (size_t i = 0; i < WF_COUNT(streams); i++) {
        weft_comm *another = make_another();

        ck_assert_int_eq(weft_stream_create(context, &streams[i]), WEFT_OK);
        post(another, streams[i]);
        weft_comm_abort(another);
        weft_comm_release(&another);
    }
    for (size_t i = 0; i < WF_COUNT(streams); i++)
        told += wait_stream(streams[i]) == WEFT_ERR_ABORTED;
    ck_assert_int_eq(told, WF_REMAINS);
    for (size_t i = 0; i < WF_COUNT(streams); i++)
        weft_stream_release(&streams[i]);
    ck_assert_uint_eq(context->reported, 0);
    end();
}

TEST(a_wait_that_ended_with_its_communicator_is_reported)
{
    weft_comm *another;
    weft_symm *symm = NULL;
    void *window;

    begin();
    another = make_another();
    ck_assert_int_eq(weft_symm_create(another, 64, NULL, &symm), WEFT_OK);
    ck_assert_int_eq(weft_symm_wait_from(symm, 0, 0, WEFT_COMPARE_EQ, 5, WEFT_FOREVER, stream),
                     WEFT_OK);
    window = symm->window;
    weft_comm_release(&another);
    (void)fake_window_destroy(window); /* a plugin does so with its communicator */
    weft_symm_release(&symm);
    ck_assert_int_eq(wait_stream(stream), WEFT_ERR_ABORTED);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "with waits for signals"));
    end();
}

static weft_symm *shared;
static atomic_bool over;

static void *post_until_over(void *unused)
{
    (void)unused;
    for (int i = 0; weft_barrier(world, i % 3 == 0 ? other : stream) == WEFT_OK; i++)
        continue;
    return NULL;
}

static void *put_until_over(void *unused)
{
    char byte = 0;

    (void)unused;
    while (weft_symm_put_to(shared, &byte, 0, 0, 1, stream) == WEFT_OK)
        continue;
    return NULL;
}

static void *wait_until_over(void *unused)
{
    weft_work *work;

    (void)unused;
    while (!over && weft_stream_test(other) == WEFT_OK &&
           weft_work_record(context, other, &work) == WEFT_OK) {
        (void)!weft_work_test(work);
        weft_work_release(&work);
    }
    return NULL;
}

TEST(threads_post_put_and_wait_at_a_time)
{
    void *(*const bodies[])(void *) = {post_until_over, put_until_over, wait_until_over};
    pthread_t threads[WF_COUNT(bodies)];

    begin();
    over = false;
    ck_assert_int_eq(weft_symm_create(world, 64, NULL, &shared), WEFT_OK);
    for (size_t i = 0; i < WF_COUNT(bodies); i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, bodies[i], NULL), 0);
    for (int i = 0; i < 2000; i++)
        ck_assert_int_eq(wait_stream(stream), WEFT_OK);
    weft_comm_abort(world);
    for (size_t i = 0; i < WF_COUNT(bodies); i++) {
        over = i > 0;
        pthread_join(threads[i], NULL);
    }
    weft_symm_release(&shared);
    end();
}
