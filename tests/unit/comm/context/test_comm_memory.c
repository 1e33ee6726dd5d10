#include "support/allocfail.h"
#include "support/caught.h"
#include "support/fake_world.h"
#include "support/suite.h"

static weft_context *context;

TEST(memory_comes_from_the_plugin)
{
    weft_pointer_info info = {.struct_size = sizeof info};
    void *pointer = NULL;
    char copy[4] = "";

    fake_reset();
    context = world_alone();
    ck_assert_int_eq(weft_alloc(context, 16, WEFT_MEMORY_DEVICE, &pointer), WEFT_OK);
    ck_assert_int_eq(weft_memory_fill(context, pointer, 'x', 16, NULL), WEFT_OK);
    ck_assert_int_eq(weft_memory_copy(context, pointer, copy, 3, NULL), WEFT_OK);
    ck_assert_str_eq(copy, "xxx");
    ck_assert_int_eq(weft_pointer_get(context, pointer, &info), WEFT_OK);
    ck_assert_uint_eq(info.kind, WEFT_MEMORY_HOST);
    ck_assert_int_eq(weft_free(context, pointer), WEFT_OK);
    ck_assert_int_eq(weft_free(context, NULL), WEFT_OK);
    weft_context_release(&context);
}

TEST(leaks_are_reported)
{
    void *pieces[3];
    weft_stream *stream;

    fake_reset();
    context = world_alone();
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(weft_alloc(context, 16, WEFT_MEMORY_DEVICE, &pieces[i]), WEFT_OK);
    ck_assert_int_eq(weft_free(context, pieces[1]), WEFT_OK);
    ck_assert_int_eq(weft_stream_create(context, &stream), WEFT_OK);
    catch_begin();
    weft_context_release(&context);
    ck_assert_str_eq(catch_end(),
                     "weft: warning: weft_context_release: streams not released: 1\nweft: warning: "
                     "weft_context_release: pieces of memory not released: 2\n");
    wf_free(pieces[0]); /* as the fake plugin does */
    wf_free(pieces[2]);
    weft_stream_release(&stream);
    ck_assert_ptr_null(stream);
    context = world_alone();
    catch_begin();
    weft_context_release(&context);
    ck_assert_str_eq(catch_end(), "");
    fake_reset();
}

TEST(arguments_are_checked)
{
    void *pointer = NULL;
    weft_stream *stream;

    fake_reset();
    context = world_alone();
    ck_assert_int_eq(weft_alloc(NULL, 1, 0, &pointer), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_alloc(context, 1, 0, NULL), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_alloc(context, 1, WEFT_MEMORY_HOST, &pointer), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_alloc(context, UINT64_MAX, 0, &pointer), WEFT_ERR_INVALID);
    ck_assert_ptr_null(pointer);
    ck_assert_int_eq(weft_memory_copy(context, "x", NULL, 1, NULL), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_memory_copy(context, NULL, NULL, 0, NULL), WEFT_OK);
    ck_assert_int_eq(weft_memory_fill(context, NULL, 0, 1, NULL), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_pointer_get(context, "x", NULL), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_stream_create(context, NULL), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_stream_wrap(context, NULL, &stream), WEFT_ERR_UNSUPPORTED);
    ck_assert_ptr_null(weft_stream_native(NULL));
    ck_assert_int_eq(weft_stream_test(NULL), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_stream_wait(NULL, 0), WEFT_ERR_INVALID);
    ck_assert_str_eq(weft_last_error(), "weft_stream_wait: stream is NULL; for the default stream, "
                                        "use weft_context_wait");
    ck_assert_int_eq(weft_context_wait(NULL, NULL, 0), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_context_bind_thread(NULL), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_context_bind_thread(context), WEFT_OK);
    weft_stream_release(NULL);
    weft_context_release(&context);
}

TEST(streams_have_names)
{
    weft_stream *stream, *other;

    fake_reset();
    context = world_alone();
    ck_assert_int_eq(weft_stream_create(context, &stream), WEFT_OK);
    ck_assert_int_eq(weft_stream_create(context, &other), WEFT_OK);
    ck_assert_str_eq(wf_stream_name(context, stream), "");
    ck_assert_int_eq(weft_stream_set_name(context, stream, "a name of more than 31 bytes, cut"),
                     WEFT_OK);
    ck_assert_str_eq(wf_stream_name(context, stream), "a name of more than 31 bytes, c");
    ck_assert_str_eq(wf_stream_name(context, other), "");
    ck_assert_str_eq(wf_stream_name(context, NULL), "");
    ck_assert_int_eq(weft_stream_set_name(context, NULL, "main"), WEFT_OK);
    ck_assert_str_eq(wf_stream_name(context, NULL), "main");
    ck_assert_int_eq(weft_stream_set_name(context, NULL, ""), WEFT_OK);
    ck_assert_str_eq(wf_stream_name(context, NULL), "");
    ck_assert_int_eq(weft_stream_set_name(context, stream, NULL), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_stream_set_name(NULL, stream, "x"), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_stream_set_name(context, (weft_stream *)(void *)&context, "x"),
                     WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_stream_set_name(context, stream, "copy"), WEFT_OK);
    catch_begin();
    weft_context_release(&context);
    ck_assert_str_eq(catch_end(), "weft: warning: weft_context_release: streams not released: 2; "
                                  "these have names: copy\n");
    weft_stream_release(&stream);
    weft_stream_release(&other);
}

/* A barrier on FAILING returns an error.  An earlier one on POSTED, unless that is FAILING, had
 * returned WEFT_OK. */
static void fail_on(weft_stream *failing, weft_stream *posted)
{
    weft_comm *world = weft_world(context);

    if (posted != failing) ck_assert_int_eq(weft_barrier(world, posted), WEFT_OK);
    fake.collective_fails = 0;
    ck_assert_int_eq(weft_barrier(world, failing), WEFT_ERR_DEVICE);
    fake.collective_fails = NOBODY;
}

TEST(a_wait_does_not_repeat_the_error_of_a_call)
{
    weft_work *work = NULL;
    weft_stream *stream;

    for (int inlined = 0; inlined < 2; inlined++) {
        fake_reset();
        fake.inlined = inlined != 0;
        context = world_alone();
        ck_assert_int_eq(weft_stream_create(context, &stream), WEFT_OK);
        fail_on(NULL, stream);
        ck_assert_int_eq(weft_work_record(context, NULL, &work), WEFT_OK);
        ck_assert_int_eq(weft_work_wait(work, WEFT_FOREVER), WEFT_OK);
        ck_assert_int_eq(weft_context_wait(context, NULL, 0), WEFT_OK);
        ck_assert_int_eq(weft_context_wait(context, NULL, WEFT_FOREVER), WEFT_OK);
        ck_assert_int_eq(weft_context_wait(context, NULL, -2), WEFT_ERR_INVALID);
        ck_assert_str_eq(weft_last_error(), "weft_context_wait: timeout_ns is -2; it must be 0, "
                                            "positive or WEFT_FOREVER");
        ck_assert_int_eq(weft_stream_wait(stream, WEFT_FOREVER), WEFT_ERR_DEVICE);
        weft_work_release(&work);
        weft_stream_release(&stream);
        weft_context_release(&context);
    }
    fake_reset();
    fake.inlined = false;
    context = world_alone();
    ck_assert_int_eq(weft_barrier(weft_world(context), NULL), WEFT_OK);
    fail_on(NULL, NULL);
    ck_assert_int_eq(weft_context_wait(context, NULL, WEFT_FOREVER), WEFT_ERR_DEVICE);
    weft_context_release(&context);
    fake_reset();
}

TEST(a_stream_is_waited_for_with_a_limit)
{
    weft_stream *stream;

    fake_reset();
    context = world_alone();
    ck_assert_int_eq(weft_stream_create(context, &stream), WEFT_OK);
    ck_assert_int_eq(weft_stream_wait(stream, WEFT_FOREVER), WEFT_OK);
    *(atomic_int *)(void *)stream = 1; /* busy */
    ck_assert_int_eq(weft_barrier(weft_world(context), stream), WEFT_OK);
    ck_assert_int_eq(weft_stream_test(stream), WEFT_IN_PROGRESS);
    ck_assert_int_eq(weft_stream_wait(stream, 1000000), WEFT_ERR_TIMEOUT);
    ck_assert_str_eq(weft_last_error(),
                     "weft_stream_wait on rank 0: the work is not complete after 0.001 s");
    ck_assert_int_eq(weft_stream_wait(stream, 2 * WF_SECOND_NS), WEFT_ERR_TIMEOUT);
    ck_assert_str_eq(weft_last_error(),
                     "weft_stream_wait on rank 0: the work is not complete after 2.000 s");
    ck_assert_int_eq(weft_stream_set_name(context, stream, "copy"), WEFT_OK);
    ck_assert_int_eq(weft_stream_wait(stream, 1000000), WEFT_ERR_TIMEOUT);
    ck_assert_str_eq(
        weft_last_error(),
        "weft_stream_wait on rank 0: the work on stream copy is not complete after 0.001 s");
    *(atomic_int *)(void *)stream = 0;
    weft_stream_release(&stream);
    ck_assert_ptr_null(stream);
    weft_context_release(&context);
}

TEST(no_allocation_that_fails_leaves_anything)
{
    weft_stream *stream = NULL;

    fake_reset();
    context = world_alone();
    ALLOCATIONS_FAIL(weft_stream_create(context, &stream), weft_stream_release(&stream));
    weft_context_release(&context);
}
