#include "symm/symm.h"
#include "support/caught.h"
#include "support/fake_symm.h"
#include "support/fake_world.h"
#include "support/suite.h"
#include "weft/mesh.h"

/* STATUS must be that of a call on an object whose context or communicator was released. */
static void is_refused(weft_status status, const char *text)
{
    ck_assert_msg(status == WEFT_ERR_INVALID, "%s", weft_status_name(status));
    ck_assert_msg(strstr(weft_last_error(), text) != NULL, "no \"%s\" in: %s", text,
                  weft_last_error());
}

static weft_comm *forget_comm(void)
{
    weft_context *context;
    weft_comm *comm;

    fake_reset();
    context = world_alone_on(fake_symm_plugin());
    ck_assert_int_eq(weft_comm_split(weft_world(context), 0, 0, NULL, &comm), WEFT_OK);
    catch_begin();
    weft_context_release(&context);
    ck_assert_ptr_nonnull(strstr(catch_end(), "was not released"));
    return comm;
}

TEST(a_communicator_without_its_context_refuses_every_call)
{
    static const char text[] = "the context was released; its communicators ended with it";
    weft_comm *comm = forget_comm(), *out = NULL;
    weft_symm *symm = NULL;
    float x = 1, y = 0;
    uint64_t one = 1, zero = 0;
    uint32_t level;

    is_refused(weft_barrier(comm, NULL), text);
    is_refused(weft_all_reduce(comm, &x, &y, 1, WEFT_DTYPE_F32, WEFT_REDUCE_SUM, NULL), text);
    is_refused(weft_all_gather_v(comm, &x, &y, &one, &zero, WEFT_DTYPE_F32, NULL), text);
    is_refused(weft_send(comm, &x, 1, WEFT_DTYPE_F32, 0, 0, NULL), text);
    is_refused(weft_receive(comm, &y, 1, WEFT_DTYPE_F32, 0, 0, NULL), text);
    is_refused(weft_group_begin(comm), text);
    is_refused(weft_group_end(comm), text);
    is_refused(weft_comm_split(comm, 0, 0, NULL, &out), text);
    is_refused(weft_comm_create(comm, 1, (int32_t[]){0}, NULL, &out), text);
    is_refused(weft_comm_support(comm, WEFT_COLL_BARRIER, 0, 0, &level), text);
    is_refused(weft_comm_async_error(comm), text);
    is_refused(weft_symm_create(comm, 64, NULL, &symm), text);
    is_refused(weft_symm_register(comm, &x, sizeof x, NULL, &symm), text);
    weft_comm_abort(comm);
    is_refused(weft_comm_report_print(comm, NULL, 0, NULL), text);
    ck_assert_ptr_null(weft_comm_native(comm));
    ck_assert_ptr_null(weft_comm_context(comm));
    ck_assert_int_eq(weft_comm_rank(comm), 0);
    ck_assert_int_eq(weft_comm_size(comm), 1);
    ck_assert_int_eq(weft_comm_world_rank(comm, 0), 0);
    ck_assert_int_eq(fake.prepared, fake.destroyed);
    weft_comm_release(&comm);
    ck_assert_ptr_null(comm);
}

/* Copies of the pointers to a released communicator and to released symmetric memory. */
TEST(a_released_object_is_refused)
{
    int64_t live = wf_mem_live();
    weft_context *context;
    weft_symm *symm, *old_symm;
    weft_comm *comm, *old;
    float x = 1, y = 0;

    fake_reset();
    context = world_alone_on(fake_symm_plugin());
    ck_assert_int_eq(weft_comm_split(weft_world(context), 0, 0, NULL, &comm), WEFT_OK);
    ck_assert_int_eq(weft_symm_create(comm, 64, NULL, &symm), WEFT_OK);
    old_symm = symm;
    old = comm;
    weft_symm_release(&symm);
    weft_comm_release(&comm);
    is_refused(weft_barrier(old, NULL), "weft_barrier: comm is a weft_comm that was released");
    is_refused(weft_all_reduce(old, &x, &y, 1, WEFT_DTYPE_F32, WEFT_REDUCE_SUM, NULL),
               "weft_all_reduce: comm is a weft_comm that was released");
    is_refused(weft_comm_async_error(old), "comm is a weft_comm that was released");
    is_refused(weft_symm_fence(old_symm, NULL),
               "weft_symm_fence: symm is a weft_symm that was released");
    weft_comm_abort(old);
    ck_assert_ptr_null(weft_comm_context(old));
    ck_assert_int_eq(weft_comm_rank(old), -1);
    ck_assert_int_eq(weft_comm_world_rank(old, 0), -1);
    ck_assert_int_eq(weft_comm_find_rank(old, 0), -1);
    ck_assert_ptr_null(weft_symm_comm(old_symm));
    catch_begin();
    weft_comm_release(&old);
    weft_symm_release(&old_symm);
    ck_assert_str_eq(catch_end(),
                     "weft: warning: weft_comm_release: this weft_comm was released before\n"
                     "weft: warning: weft_symm_release: this weft_symm was released before\n");
    weft_context_release(&context);
    ck_assert_int_eq(wf_mem_live(), live);
}

/* The memory of released objects does not grow with their number. */
TEST(few_released_objects_are_kept)
{
    OWNED(weft_context) *context = NULL;
    weft_comm *comm;
    int64_t live = 0;

    fake_reset();
    context = world_alone();
    for (int i = 0; i < 1000; i++) {
        ck_assert_int_eq(weft_comm_split(weft_world(context), 0, 0, NULL, &comm), WEFT_OK);
        weft_comm_release(&comm);
        if (i == WF_REMNANTS) live = wf_mem_live();
    }
    ck_assert_int_eq(wf_mem_live(), live);
}

/* Bindings of other languages have one type for all handles. */
TEST(an_object_of_another_kind_is_named)
{
    OWNED(weft_context) *context = NULL;
    OWNED(weft_mesh) *mesh = NULL;
    weft_symm *symm = NULL;
    void *comm, *memory = NULL;
    _Alignas(16) float x[4] = {1}, y = 0;

    fake_reset();
    context = world_alone_on(fake_symm_plugin());
    comm = weft_world(context);
    ck_assert_int_eq(weft_symm_create(comm, 64, NULL, &symm), WEFT_OK);
    ck_assert_int_eq(weft_mesh_parse("1", &mesh), WEFT_OK);
    is_refused(weft_barrier((void *)context, NULL),
               "weft_barrier: comm is a weft_context; expected a weft_comm; weft_world returns");
    is_refused(weft_all_reduce((void *)context, x, &y, 1, WEFT_DTYPE_F32, WEFT_REDUCE_SUM, NULL),
               "weft_all_reduce: comm is a weft_context; expected a weft_comm");
    is_refused(weft_send((void *)context, x, 1, WEFT_DTYPE_F32, 0, 0, NULL),
               "weft_send: comm is a weft_context; expected a weft_comm");
    is_refused(weft_barrier((void *)symm, NULL), "comm is a weft_symm; expected a weft_comm");
    is_refused(weft_barrier((void *)mesh, NULL), "comm is a weft_mesh; expected a weft_comm");
    is_refused(weft_barrier((void *)x, NULL), "comm does not point to a weft_comm; it may have");
    is_refused(weft_alloc(comm, 8, WEFT_MEMORY_HOST, &memory),
               "weft_alloc: context is a weft_comm; expected a weft_context");
    is_refused(weft_symm_fence(comm, NULL), "symm is a weft_comm; expected a weft_symm");
    is_refused(weft_symm_create((void *)context, 64, NULL, &symm), "comm is a weft_context");
    is_refused(weft_work_wait(comm, 0),
               "weft_work_wait: work is a weft_comm; expected a weft_work");
    is_refused(weft_work_test((void *)mesh), "work is a weft_mesh; expected a weft_work");
    is_refused(weft_comm_along(comm, (void *)symm, "0", NULL, (weft_comm **)&memory),
               "weft_comm_along: mesh is a weft_symm; expected a weft_mesh");
    ck_assert_ptr_null(weft_work_native(comm));
    ck_assert_int_eq(weft_barrier(comm, NULL), WEFT_OK);
    weft_symm_release(&symm);
}

static void every_call_is_refused(weft_symm *symm, const char *text)
{
    weft_symm_device device;
    uint64_t offset, x = 0;

    is_refused(weft_symm_put_to(symm, &x, 0, 0, 8, NULL), text);
    is_refused(weft_symm_get_from(symm, 0, 0, &x, 8, NULL), text);
    is_refused(weft_symm_put_signal_to(symm, &x, 0, 0, 8, 0, 1, WEFT_SIGNAL_SET, NULL), text);
    is_refused(weft_symm_signal_to(symm, 0, 0, 1, WEFT_SIGNAL_SET, NULL), text);
    is_refused(weft_symm_wait_from(symm, 0, 0, WEFT_COMPARE_EQ, 1, 0, NULL), text);
    is_refused(weft_symm_test_from(symm, 0, 0, WEFT_COMPARE_EQ, 1), text);
    is_refused(weft_symm_fence(symm, NULL), text);
    is_refused(weft_symm_quiet(symm, NULL), text);
    is_refused(weft_symm_barrier(symm, NULL), text);
    is_refused(weft_symm_offset(symm, &x, 8, &offset), text);
    is_refused(weft_symm_device_get(symm, &device), text);
    ck_assert_ptr_null(weft_symm_comm(symm));
    ck_assert_ptr_null(weft_symm_local(symm));
    ck_assert_ptr_null(weft_symm_peer(symm, 0));
    ck_assert_uint_eq(weft_symm_bytes(symm), 64);
}

TEST(symmetric_memory_without_its_communicator_or_context_refuses_every_call)
{
    for (int with_context = 0; with_context < 2; with_context++) {
        weft_context *context;
        weft_comm *comm;
        weft_symm *symm = NULL;
        void *window;

        fake_reset();
        context = world_alone_on(fake_symm_plugin());
        ck_assert_int_eq(weft_comm_split(weft_world(context), 0, 0, NULL, &comm), WEFT_OK);
        ck_assert_int_eq(weft_symm_create(comm, 64, NULL, &symm), WEFT_OK);
        window = symm->window;
        catch_begin();
        if (with_context)
            weft_context_release(&context);
        else
            weft_comm_release(&comm);
        (void)catch_end();
        every_call_is_refused(symm, with_context ? "the context was released; its symmetric"
                                                 : " was released; its symmetric memory");
        if (!with_context)
            is_refused(weft_symm_fence(symm, NULL), "weft_symm_fence: communicator comm#");
        weft_symm_release(&symm);
        ck_assert_ptr_null(symm);
        weft_comm_release(&comm);
        weft_context_release(&context);
        (void)fake_window_destroy(window); /* a plugin does so with its communicator */
    }
}

TEST(works_without_their_context_refuse_every_call)
{
    static const char text[] =
        "the context of this work was released; the work is from weft_work_record";
    weft_context *context;
    weft_stream *stream;
    weft_work *work;
    int64_t ns;

    fake_reset();
    context = world_alone();
    ck_assert_int_eq(weft_stream_create(context, &stream), WEFT_OK);
    ck_assert_int_eq(weft_work_record(context, stream, &work), WEFT_OK);
    catch_begin();
    weft_context_release(&context);
    (void)catch_end();
    is_refused(weft_work_test(work), text);
    is_refused(weft_work_wait(work, 0), text);
    is_refused(weft_stream_wait_work(stream, work), text);
    is_refused(weft_work_elapsed(work, work, &ns), text);
    ck_assert_ptr_null(weft_work_native(work));
    weft_work_release(&work);
    weft_stream_release(&stream);
    ck_assert_ptr_null(work);
    ck_assert_ptr_null(stream);
}

/* A program may have another copy of the pointer to the context, or the pointer that is now
 * NULL. */
TEST(streams_without_their_context_refuse_every_call)
{
    int64_t live = wf_mem_live();

    for (int has_copy = 0; has_copy < 2; has_copy++) {
        weft_context *context, *copy;
        weft_stream *streams[2];
        const char *text =
            has_copy ? "the context was released" : "or weft_context_release released it";
        char x = 0, y;

        fake_reset();
        copy = context = world_alone();
        for (int i = 0; i < 2; i++)
            ck_assert_int_eq(weft_stream_create(context, &streams[i]), WEFT_OK);
        *(atomic_int *)(void *)streams[0] = 1; /* busy: the communicators are ended first */
        catch_begin();
        weft_context_release(&context);
        ck_assert_str_eq(catch_end(),
                         "weft: warning: weft_context_release: streams not released: 2\n");
        ck_assert_int_eq(fake.aborted, 1);
        if (!has_copy) copy = NULL;
        is_refused(weft_stream_test(streams[0]), "the context was released");
        is_refused(weft_stream_wait(streams[0], 0), "the context was released");
        is_refused(weft_context_wait(copy, streams[0], 0), text);
        is_refused(weft_memory_copy(copy, &x, &y, 1, streams[0]), text);
        is_refused(weft_memory_fill(copy, &y, 0, 1, streams[0]), text);
        ck_assert_ptr_null(weft_stream_native(streams[0]));
        ck_assert_ptr_null(weft_world(copy));
        weft_context_release(&copy); /* once more: nothing */
        ck_assert_ptr_null(copy);
        weft_stream_release(&streams[0]);
        ck_assert_ptr_null(streams[0]);
        weft_stream_release(&streams[1]);
        ck_assert_int_eq(wf_mem_live(), live);
    }
}

/* The plugin may give a new stream the address of one that ended with its context. */
TEST(a_stream_has_another_handle_than_one_that_is_not_released)
{
    weft_context *context;
    weft_stream *old, *streams[4];

    fake_reset();
    context = world_alone();
    ck_assert_int_eq(weft_stream_create(context, &old), WEFT_OK);
    catch_begin();
    weft_context_release(&context);
    ck_assert_ptr_nonnull(strstr(catch_end(), "streams not released: 1"));
    context = world_alone();
    for (size_t i = 0; i < WF_COUNT(streams); i++) {
        ck_assert_int_eq(weft_stream_create(context, &streams[i]), WEFT_OK);
        ck_assert_ptr_ne(streams[i], old);
    }
    is_refused(weft_stream_test(old), "the context was released");
    weft_stream_release(&old);
    for (size_t i = 0; i < WF_COUNT(streams); i++) {
        ck_assert_int_eq(weft_stream_wait(streams[i], WEFT_FOREVER), WEFT_OK);
        weft_stream_release(&streams[i]);
    }
    weft_context_release(&context);
}

TEST(a_stream_that_was_released_is_refused)
{
    OWNED(weft_context) *context = NULL;
    weft_stream *stream, *copy;

    fake_reset();
    context = world_alone();
    ck_assert_int_eq(weft_stream_create(context, &stream), WEFT_OK);
    copy = stream;
    weft_stream_release(&stream);
    is_refused(weft_stream_wait(copy, 0), "weft_stream_wait: the stream was released, or is not a");
    catch_begin();
    weft_stream_release(&copy);
    ck_assert_str_eq(catch_end(), "weft: warning: weft_stream_release: the stream was released, or "
                                  "is not a weft_stream\n");
    ck_assert_ptr_null(copy);
}

TEST(memory_without_its_context_is_not_freed_again)
{
    weft_context *context, *copy;
    void *memory;

    fake_reset();
    copy = context = world_alone();
    ck_assert_int_eq(weft_alloc(context, 16, WEFT_MEMORY_DEVICE, &memory), WEFT_OK);
    catch_begin();
    weft_context_release(&context);
    (void)catch_end();
    is_refused(weft_free(copy, memory), "weft_free: the context was released");
    is_refused(weft_alloc(copy, 16, WEFT_MEMORY_DEVICE, &memory), "the context was released");
    wf_free(memory); /* as the fake plugin does */
}
