/* gpu_rank.c - one rank of the tests of faults and of wrapped objects, on a GPU backend:
 *
 *     weft run -n 3 gpu_rank SCENARIO
 *
 * Ranks that see the expected result print "as expected" and their error, and return 0. */
#include "bind.h"
#include "weft/weft.h"
#include "weft/symm.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { COUNT = 1000 };
#define LIMIT_NS INT64_C(300000000000)
static weft_context *context;
static weft_comm *world;
static weft_stream *stream;
static int32_t rank, size;
static void *in, *out;

static void must(weft_status status, const char *what)
{
    if (status == WEFT_OK) return;
    fprintf(stderr, "rank %d: %s: %s\n", rank, what, weft_last_error());
    exit(3);
}

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

/* Longer than TIMES the time limit of the job. */
static void outlast(double times)
{
    const char *limit = getenv("WEFT_TIMEOUT");

    pause_ms((long)(1000 * times * (limit != NULL ? atof(limit) : 1)) + 500);
}

static int tell(bool holds, weft_status status)
{
    printf("%s: %s: %s\n", holds ? "as expected" : "NOT as expected", weft_status_name(status),
           status != WEFT_OK ? weft_last_error() : "");
    return holds ? 0 : 4;
}

/* Sum over the ranks of COMM, in device memory.  Waits. */
static weft_status reduce(weft_comm *comm)
{
    int32_t members = weft_comm_size(comm);
    float values[COUNT];
    weft_status status;

    for (int i = 0; i < COUNT; i++)
        values[i] = (float)(weft_comm_rank(comm) + i);
    must(weft_memory_copy(context, values, in, sizeof values, stream), "copy");
    status = weft_all_reduce(comm, in, out, COUNT, WEFT_DTYPE_F32, WEFT_REDUCE_SUM, stream);
    if (status == WEFT_OK) status = weft_context_wait(context, stream, LIMIT_NS);
    if (status == WEFT_OK) status = weft_comm_async_error(comm);
    if (status != WEFT_OK) return status;
    must(weft_memory_copy(context, out, values, sizeof values, stream), "copy");
    must(weft_context_wait(context, stream, LIMIT_NS), "wait");
    for (int i = 0; i < COUNT; i++)
        if (values[i] != (float)(members * (members - 1) / 2 + members * i)) {
            fprintf(stderr, "element %d is %g\n", i, (double)values[i]);
            exit(5);
        }
    return WEFT_OK;
}

/* ---- scenarios ---- */

/* The last rank is killed while the others wait for it.  The others then continue without it. */
static int killed(void)
{
    int32_t list[64];
    weft_comm *rest = NULL;
    weft_status status;
    int code;

    for (int i = 0; i < 3; i++)
        must(reduce(world), "while all are there");
    if (rank == size - 1) {
        pause_ms(300);
        raise(SIGKILL);
    }
    status = reduce(world);
    code = tell(status == WEFT_ERR_PEER || status == WEFT_ERR_TIMEOUT, status);
    for (int32_t i = 0; i < size - 1; i++)
        list[i] = i;
    must(weft_comm_create(world, (size_t)size - 1, list, NULL, &rest), "a new communicator");
    for (int i = 0; i < 3; i++)
        must(reduce(rest), "among those that are left");
    weft_comm_release(&rest);
    return code;
}

/* Work that waits a little for another rank, after pauses without pending work.  A watch that
 * confuses the two would report a timeout. */
static int lazy(void)
{
    for (int i = 0; i < 40; i++) {
        pause_ms(40 + i * 7 % 30); /* to hit the periodic watch at any point */
        if (rank == 1) pause_ms(15);
        must(reduce(world), "well within its time limit");
    }
    return tell(true, WEFT_OK);
}

static int host_pointer(void)
{
    static float plain[COUNT];
    weft_status status =
        weft_all_reduce(world, plain, plain, COUNT, WEFT_DTYPE_F32, WEFT_REDUCE_SUM, stream);
    int code = tell(status == WEFT_ERR_INVALID, status);

    must(reduce(world), "after a call that was refused");
    return code;
}

static int no_memory(void)
{
    void *memory = NULL;
    weft_status status = weft_alloc(context, UINT64_C(1) << 50, WEFT_MEMORY_DEVICE, &memory);

    return tell(status == WEFT_ERR_NO_MEMORY && memory == NULL, status);
}

/* Split world and a part of it by colour, in reversed order. */
static int split(void)
{
    weft_comm *half = NULL, *quarter = NULL, *none = NULL;

    must(weft_comm_split(world, rank % 2, -rank, NULL, &half), "split");
    must(reduce(half), "on a part");
    must(weft_comm_split(half, weft_comm_rank(half) / 2, 0, NULL, &quarter), "split of a part");
    must(reduce(quarter), "on a part of a part");
    must(weft_comm_split(world, rank == 0 ? WEFT_NO_COLOR : 3, 0, NULL, &none), "split");
    if ((none == NULL) != (rank == 0)) return 6;
    if (none != NULL) must(reduce(none), "on all but one");
    weft_comm_release(&quarter);
    weft_comm_release(&half); /* the parts do not depend on it */
    must(reduce(world), "when all are done with the last part");
    if (none != NULL) weft_comm_abort(none);
    weft_comm_release(&none);
    must(reduce(world), "after its parts");
    return tell(true, WEFT_OK);
}

/* Wrap a stream of the caller. */
static int wrapped_stream(void)
{
    void *native = weft_stream_native(stream);
    weft_stream *own = stream, *wrapped = NULL;
    int code;

    must(weft_stream_wrap(context, native, &wrapped), "weft_stream_wrap");
    stream = wrapped;
    must(reduce(world), "on a wrapped stream");
    code = tell(native != NULL && weft_stream_native(wrapped) == native, WEFT_OK);
    weft_stream_release(&stream);
    stream = own;
    must(reduce(world), "on the stream, whose wrapping is gone");
    return code;
}

/* Wrap a communicator of the caller, here the native one of another communicator. */
static int wrapped_comm(void)
{
    weft_subcomm_options options = {.struct_size = sizeof options};
    weft_comm *first = NULL, *wrapped = NULL;
    int32_t list[64];

    for (int32_t i = 0; i < size; i++)
        list[i] = size - 1 - i;
    must(weft_comm_create(world, (size_t)size, list, NULL, &first), "weft_comm_create");
    options.native = weft_comm_native(first);
    must(weft_comm_create(world, (size_t)size, list, &options, &wrapped), "wrapping it");
    must(reduce(wrapped), "on a wrapped communicator");
    weft_comm_release(&wrapped);
    must(reduce(first), "on the communicator, whose wrapping is gone");
    weft_comm_release(&first);
    return tell(true, WEFT_OK);
}

/* Wrap an event that the caller recorded. */
static int wrapped_event(void)
{
    weft_work *own = NULL, *wrapped = NULL;
    void *native;
    bool same;

    must(weft_work_record(context, stream, &own), "weft_work_record");
    native = weft_work_native(own);
    must(weft_work_wrap(context, native, &wrapped), "weft_work_wrap");
    same = native != NULL && weft_work_native(wrapped) == native;
    must(weft_stream_wait_work(stream, wrapped), "weft_stream_wait_work");
    must(reduce(world), "behind a wrapped event");
    must(weft_work_wait(wrapped, LIMIT_NS), "weft_work_wait");
    weft_work_release(&wrapped);
    must(weft_work_test(own), "the event, whose wrapping is gone");
    weft_work_release(&own);
    return tell(same, WEFT_OK);
}

/* Rank 0 sends to rank 2, and rank 1 to rank 3, which comes after 0 and 2 are done.  Ranks 0 and 2
 * do not wait for it. */
static int unrelated(void)
{
    static const int32_t met[] = {0, 2, 3};
    weft_bound *bound = NULL;
    weft_comm *group = NULL;

    must(bind_rows(world, "2@0,1", "2@2,3", &bound), "bind_rows");
    if (rank == 3) must(weft_comm_create(world, 3, met, NULL, &group), "waiting for 0 and 2");
    must(weft_redistribute(bound, in, out, stream, NULL), "weft_redistribute");
    must(weft_context_wait(context, stream, LIMIT_NS), "weft_context_wait");
    if (rank == 0 || rank == 2)
        must(weft_comm_create(world, 3, met, NULL, &group), "waiting for 3");
    weft_comm_release(&group);
    weft_bound_release(&bound);
    return tell(true, WEFT_OK);
}

/* ---- work that rank 0 never joins, and how it ends on rank 1 ---- */

static weft_symm *symm;

static weft_status put_reduce(void)
{
    return weft_all_reduce(world, in, out, COUNT, WEFT_DTYPE_F32, WEFT_REDUCE_SUM, stream);
}

static weft_status put_receive(void)
{
    return weft_receive(world, out, COUNT, WEFT_DTYPE_F32, 0, 0, stream);
}

/* A receive after the sender's time limit fails with the sender's cause. */
static int sent_too_late(void)
{
    weft_status status;

    if (rank == 1) outlast(2);
    status = rank == 0 ? weft_send(world, in, COUNT, WEFT_DTYPE_F32, 1, 0, stream) : put_receive();
    if (status == WEFT_OK) status = weft_context_wait(context, stream, LIMIT_NS);
    if (rank == 0) outlast(2);
    return tell(status == WEFT_ERR_TIMEOUT, status);
}

static weft_status put_barrier(void)
{
    return weft_symm_barrier(symm, stream);
}

/* No wait for the work reports success.  Afterwards the stream can be used for other work. */
static int expect_undone(weft_status (*put)(void), weft_status want)
{
    weft_work *before = NULL, *work = NULL;
    weft_status status;
    bool holds;
    int code;

    must(weft_work_record(context, stream, &before), "weft_work_record");
    must(put(), "what rank 0 does not join");
    must(weft_work_record(context, stream, &work), "weft_work_record");
    holds = weft_work_wait(work, LIMIT_NS) == want && weft_work_test(work) == want &&
            weft_context_wait(context, stream, 0) == want;
    status = weft_context_wait(context, stream, LIMIT_NS);
    code = tell(holds && status == want, status);
    must(weft_work_wait(before, LIMIT_NS), "what was done before");
    must(weft_memory_fill(context, out, 0, COUNT, stream), "weft_memory_fill");
    must(weft_context_wait(context, stream, LIMIT_NS), "what comes after");
    if (weft_work_test(work) != want) return 7;
    weft_work_release(&before);
    weft_work_release(&work);
    return code;
}

static int aborted(weft_status (*put)(void))
{
    int code = 0;

    must(reduce(world), "while all are there");
    if (put == put_barrier) must(weft_symm_create(world, 64, NULL, &symm), "weft_symm_create");
    if (rank == 0) {
        pause_ms(300);
        weft_comm_abort(world);
        pause_ms(300); /* the other rank must not see the exit as the cause */
    } else {
        code = expect_undone(put, WEFT_ERR_ABORTED);
    }
    weft_symm_release(&symm);
    return code;
}

static int aborted_reduce(void)
{
    return aborted(put_reduce);
}

static int aborted_receive(void)
{
    return aborted(put_receive);
}

static int aborted_barrier(void)
{
    return aborted(put_barrier);
}

static int aborted_on_default(void)
{
    weft_stream *own = stream;
    int code;

    stream = NULL;
    code = aborted(put_reduce);
    stream = own;
    return code;
}

static int deserted(void)
{
    must(reduce(world), "while all are there");
    if (rank > 0) return expect_undone(put_reduce, WEFT_ERR_PEER);
    pause_ms(300);
    _exit(0);
}

static int too_late(void)
{
    must(reduce(world), "while all are there");
    if (rank > 0) return expect_undone(put_reduce, WEFT_ERR_TIMEOUT);
    outlast(2);
    return 0;
}

/* Work that cannot be ended blocks its stream. */
static int left_behind(void)
{
    weft_bound *bound = NULL;
    weft_status status;

    must(bind_rows(world, "2@0,1", "2@1,0", &bound), "bind_rows");
    must(reduce(world), "while all are there");
    if (rank == 0) {
        outlast(4);
        return 0;
    }
    must(put_reduce(), "what rank 0 does not join");
    status = weft_context_wait(context, stream, LIMIT_NS);
    weft_bound_release(&bound); /* which frees memory of the device */
    return tell(status == WEFT_ERR_TIMEOUT && weft_stream_test(stream) == status &&
                    weft_comm_async_error(world) == status,
                status);
}

/* Wait for a signal that the other rank never sends. */
static void wait_endlessly(weft_stream *on, int milliseconds)
{
    must(weft_symm_wait_from(symm, 1, 0, WEFT_COMPARE_GE, 5, milliseconds * INT64_C(1000000), on),
         "weft_symm_wait_from");
}

/* Memory is released while a kernel reads it.  It is freed only after the kernel has ended.  If the
 * communicator fails first (SOONER, by another wait), it is never freed. */
static int released_under_a_wait(bool sooner)
{
    weft_stream *other = NULL;
    weft_status status = WEFT_OK;

    must(weft_symm_create(world, 64, NULL, &symm), "weft_symm_create");
    if (rank == 0) {
        must(weft_stream_create(context, &other), "weft_stream_create");
        wait_endlessly(other, 1500);
        if (sooner) wait_endlessly(stream, 200);
        status = weft_context_wait(context, sooner ? stream : other, INT64_C(700000000));
    }
    weft_symm_release(&symm);
    pause_ms(2000);
    if (rank == 0) {
        if (weft_context_wait(context, other, LIMIT_NS) == WEFT_ERR_DEVICE) return 6;
        must(weft_memory_fill(context, out, 0, COUNT, stream), "weft_memory_fill");
        must(weft_context_wait(context, stream, LIMIT_NS), "what comes after");
        weft_stream_release(&other);
    }
    return tell(rank != 0 || status == WEFT_ERR_TIMEOUT, status);
}

static int released_early(void)
{
    return released_under_a_wait(false);
}

static int released_stuck(void)
{
    return released_under_a_wait(true);
}

/* ---- simulated libraries only, which the environment makes fail ---- */

/* A kernel faults, so every later call on the device fails. */
static int device_faulted(void)
{
    weft_comm *other = NULL;
    int code;

    must(weft_comm_split(world, 0, -rank, NULL, &other), "split");
    must(reduce(other), "while the device is well");
    setenv("STANDIN_FAIL_LAUNCH", "1", 1);
    code = tell(put_reduce() == WEFT_ERR_DEVICE, WEFT_ERR_DEVICE);
    weft_comm_release(&other);
    return code;
}

/* The program allocates all device memory. */
static int device_full(void)
{
    weft_comm *other = NULL;

    setenv("STANDIN_FREE", "1000000", 1);
    must(weft_comm_split(world, 0, -rank, NULL, &other), "split");
    must(reduce(other), "on a device that is full");
    weft_comm_release(&other);
    return tell(true, WEFT_OK);
}

/* The program captures another stream, which makes the default stream unusable. */
static int recording(void)
{
    weft_status status;
    int code;

    setenv("STANDIN_RECORDING", "1", 1);
    status = weft_all_reduce(world, in, out, COUNT, WEFT_DTYPE_F32, WEFT_REDUCE_SUM, NULL);
    unsetenv("STANDIN_RECORDING");
    code = tell(status == WEFT_ERR_INVALID, status);
    must(reduce(world), "after a call that was refused");
    return code;
}

static const struct {
    const char *name;
    int (*run)(void);
} scenarios[] = {{"killed", killed},
                 {"lazy", lazy},
                 {"host_pointer", host_pointer},
                 {"no_memory", no_memory},
                 {"split", split},
                 {"wrapped_stream", wrapped_stream},
                 {"wrapped_comm", wrapped_comm},
                 {"wrapped_event", wrapped_event},
                 {"unrelated", unrelated},
                 {"sent_too_late", sent_too_late},
                 {"aborted_reduce", aborted_reduce},
                 {"aborted_receive", aborted_receive},
                 {"aborted_barrier", aborted_barrier},
                 {"aborted_on_default", aborted_on_default},
                 {"deserted", deserted},
                 {"too_late", too_late},
                 {"left_behind", left_behind},
                 {"released_early", released_early},
                 {"released_stuck", released_stuck},
                 {"device_faulted", device_faulted},
                 {"device_full", device_full},
                 {"recording", recording}};

static int run(const char *name)
{
    int code = 2;

    if (weft_init(NULL, &context) != WEFT_OK) {
        fprintf(stderr, "weft_init: %s\n", weft_last_error());
        return 11;
    }
    world = weft_world(context);
    rank = weft_rank(context);
    size = weft_size(context);
    must(weft_stream_create(context, &stream), "weft_stream_create");
    must(weft_alloc(context, COUNT * sizeof(float), WEFT_MEMORY_DEVICE, &in), "weft_alloc");
    must(weft_alloc(context, COUNT * sizeof(float), WEFT_MEMORY_DEVICE, &out), "weft_alloc");
    for (size_t i = 0; i < sizeof scenarios / sizeof scenarios[0]; i++)
        if (strcmp(scenarios[i].name, name) == 0) code = scenarios[i].run();
    must(weft_free(context, in), "weft_free");
    must(weft_free(context, out), "weft_free");
    weft_stream_release(&stream);
    weft_context_release(&context);
    return code;
}

int main(int argc, char **argv)
{
    return argc < 2 ? 2 : run(argv[1]);
}
