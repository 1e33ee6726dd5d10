/* ccl_calls.c - operations and groups of the simulated library. */
#include "ccl.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef STANDIN_OLD_NCCL
#define MAX_DTYPES SC_E4M3 /* f8 came with 2.24 */
#else
#define MAX_DTYPES SC_DTYPES
#endif

static _Thread_local int depth, group_result;
static _Thread_local struct sc_task *tasks, **last_task;

/* ---- launching ---- */

/* The tasks of one communicator in one group.  Their streams synchronize before and after. */
struct launch {
    struct sc_comm *comm;
    struct sc_task *tasks;
    uint64_t number;
    void *streams[8];
    int stream_count;
    atomic_int arrived, holders;
    atomic_bool is_done;
};

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
}

static void drop(struct launch *launch)
{
    if (atomic_fetch_sub(&launch->holders, 1) != 1) return;
    for (struct sc_task *t = launch->tasks, *next; t != NULL; t = next) {
        next = t->next;
        free(t);
    }
    free(launch);
}

static void run_launch(void *given)
{
    struct launch *launch = given;
    struct sc_comm *comm = launch->comm;

    while (atomic_load(&launch->arrived) < launch->stream_count - 1 ||
           atomic_load(&comm->finished) < launch->number)
        nap();
    if (!atomic_load(&comm->abort->is_set)) sc_run_tasks(comm, launch->tasks);
    atomic_store(&launch->is_done, true);
    atomic_fetch_add(&comm->finished, 1);
    drop(launch);
}

static void meet_launch(void *given)
{
    struct launch *launch = given;

    atomic_fetch_add(&launch->arrived, 1);
    while (!atomic_load(&launch->is_done))
        nap();
    drop(launch);
}

static int connect(struct sc_comm *comm, const struct sc_task *first)
{
    char mine = 0, all[SC_MAX_RANKS];

    for (const struct sc_task *t = first; t != NULL && !comm->is_connected; t = t->next) {
        if (t->kind == SC_SEND || t->kind == SC_RECV) continue;
        comm->is_connected = true;
        return sc_gather_now(comm, &mine, all, 1);
    }
    return SC_OK;
}

static int launch_now(struct sc_comm *comm, void *given)
{
    struct launch *launch = given;
    int result = connect(comm, launch->tasks);

    atomic_store(&launch->holders, launch->stream_count);
    if (result != SC_OK) {
        atomic_store(&launch->holders, 1);
        drop(launch);
        return result;
    }
    launch->number = atomic_fetch_add(&comm->issued, 1);
    for (int i = 1; i < launch->stream_count && result == SC_OK; i++)
        result = sc_enqueue(launch->streams[i], meet_launch, launch);
    if (result == SC_OK) result = sc_enqueue(launch->streams[0], run_launch, launch);
    return result;
}

static void add_stream(struct launch *launch, void *stream)
{
    for (int i = 0; i < launch->stream_count; i++)
        if (launch->streams[i] == stream) return;
    if (launch->stream_count == 8) abort();
    launch->streams[launch->stream_count++] = stream;
}

/* Remove the tasks of the first task's communicator from the list. */
static struct launch *take_launch(struct sc_task **list)
{
    struct launch *launch = calloc(1, sizeof *launch);
    struct sc_task **last, **at = list;

    if (launch == NULL) abort();
    launch->comm = (*list)->comm;
    last = &launch->tasks;
    while (*at != NULL) {
        struct sc_task *task = *at;
        if (task->comm != launch->comm) {
            at = &task->next;
            continue;
        }
        *at = task->next;
        task->next = NULL;
        *last = task;
        last = &task->next;
        add_stream(launch, task->stream);
    }
    return launch;
}

API(int, ncclGroupStart, void)
{
    if (depth++ == 0) {
        tasks = NULL;
        last_task = &tasks;
        group_result = SC_OK;
    }
    return SC_OK;
}

API(int, ncclGroupEnd, void)
{
    int result = group_result;

    if (depth == 0) return sc_fail(SC_USAGE, "not in a group");
    if (--depth > 0) return SC_OK;
    while (tasks != NULL) {
        struct launch *launch = take_launch(&tasks);
        int one;
        if (result != SC_OK && result != SC_IN_PROGRESS) {
            atomic_store(&launch->holders, 1);
            drop(launch);
            continue;
        }
        one = sc_do(launch->comm, launch_now, launch);
        if (one != SC_OK) result = one;
    }
    return result;
}

/* ---- operations ---- */

static int submit(struct sc_task task)
{
    struct sc_comm *comm = task.comm;
    struct sc_task *kept;
    int result = SC_OK;

    if (comm == NULL) return sc_fail(SC_ARGUMENT, "the communicator is NULL");
    if (atomic_load(&comm->result) == SC_IN_PROGRESS)
        result = sc_fail(SC_ARGUMENT, "the communicator is still busy with the call before");
    if (task.dtype < 0 || task.dtype >= MAX_DTYPES) result = sc_fail(SC_ARGUMENT, "the dtype");
    if (task.peer < 0 || task.peer >= comm->size) result = sc_fail(SC_ARGUMENT, "the peer or root");
    if (task.op >= SC_FIRST_MADE && comm->made_dtype[task.op - SC_FIRST_MADE] != task.dtype)
        result = sc_fail(SC_ARGUMENT, "the op was made for another dtype");
    if (comm->size == 1 && task.op >= SC_FIRST_MADE && task.dtype >= SC_E4M3)
        result = sc_fail(SC_ARGUMENT, "no such kernel for a rank alone");
    if (++comm->operations == sc_setting("STANDIN_CCL_FAIL_CALL", -1))
        result = sc_fail(SC_GPU, "told to fail");
    if (comm->operations == sc_setting("STANDIN_CCL_FAIL_ASYNC", -1))
        atomic_store(&comm->result, SC_REMOTE);
    if (result != SC_OK) {
        if (depth > 0) group_result = result;
        return result;
    }
    if (task.op >= SC_FIRST_MADE) {
        task.scale = comm->made_scale[task.op - SC_FIRST_MADE];
        task.op = SC_FIRST_MADE;
    }
    if (task.count == 0 && task.kind != SC_SEND && task.kind != SC_RECV) return SC_OK;
    kept = malloc(sizeof *kept);
    if (kept == NULL) abort();
    *kept = task;
    ncclGroupStart();
    *last_task = kept;
    last_task = &kept->next;
    return ncclGroupEnd();
}

API(int, ncclAllReduce, const void *send, void *recv, size_t count, int dtype, int op,
    struct sc_comm *comm, void *stream)
{
    return submit(
        (struct sc_task){NULL, comm, SC_ALL_REDUCE, send, recv, count, dtype, op, 0, 1, stream});
}

API(int, ncclReduce, const void *send, void *recv, size_t count, int dtype, int op, int root,
    struct sc_comm *comm, void *stream)
{
    return submit(
        (struct sc_task){NULL, comm, SC_REDUCE, send, recv, count, dtype, op, root, 1, stream});
}

API(int, ncclBroadcast, const void *send, void *recv, size_t count, int dtype, int root,
    struct sc_comm *comm, void *stream)
{
    return submit(
        (struct sc_task){NULL, comm, SC_BROADCAST, send, recv, count, dtype, 0, root, 1, stream});
}

API(int, ncclReduceScatter, const void *send, void *recv, size_t count, int dtype, int op,
    struct sc_comm *comm, void *stream)
{
    return submit((struct sc_task){NULL, comm, SC_REDUCE_SCATTER, send, recv, count, dtype, op, 0,
                                   1, stream});
}

API(int, ncclAllGather, const void *send, void *recv, size_t count, int dtype, struct sc_comm *comm,
    void *stream)
{
    return submit(
        (struct sc_task){NULL, comm, SC_ALL_GATHER, send, recv, count, dtype, 0, 0, 1, stream});
}

API(int, ncclSend, const void *send, size_t count, int dtype, int peer, struct sc_comm *comm,
    void *stream)
{
    return submit(
        (struct sc_task){NULL, comm, SC_SEND, send, NULL, count, dtype, 0, peer, 1, stream});
}

API(int, ncclRecv, void *recv, size_t count, int dtype, int peer, struct sc_comm *comm,
    void *stream)
{
    return submit(
        (struct sc_task){NULL, comm, SC_RECV, NULL, recv, count, dtype, 0, peer, 1, stream});
}

#ifndef STANDIN_OLD_NCCL
static int all_to_all(const void *send, void *recv, size_t count, int dtype, struct sc_comm *comm,
                      void *stream)
{
    size_t bytes = count * sc_dtype_bytes(dtype);
    int result = SC_OK;

    ncclGroupStart();
    for (int r = 0; r < comm->size && result == SC_OK; r++) {
        result = ncclSend((const char *)send + (size_t)r * bytes, count, dtype, r, comm, stream);
        if (result == SC_OK)
            result = ncclRecv((char *)recv + (size_t)r * bytes, count, dtype, r, comm, stream);
    }
    return ncclGroupEnd();
}

/* RCCL had it long before NCCL, with a capital T. */
#ifdef STANDIN_RCCL
#define ALL_TO_ALL ncclAllToAll
#else
#define ALL_TO_ALL ncclAlltoAll
#endif
API(int, ALL_TO_ALL, const void *send, void *recv, size_t count, int dtype, struct sc_comm *comm,
    void *stream)
{
    return all_to_all(send, recv, count, dtype, comm, stream);
}
#endif

API(int, ncclRedOpCreatePreMulSum, int *op, void *scalar, int dtype, int residence,
    struct sc_comm *comm)
{
    int64_t whole = 0;
    int slot = 0;

    if (residence != 1) return sc_fail(SC_ARGUMENT, "the factor is not in host memory");
    while (slot < SC_MADE_OPS && comm->made_dtype[slot] >= 0)
        slot++;
    if (slot == SC_MADE_OPS) return sc_fail(SC_INTERNAL, "too many ops");
    memcpy(&whole, scalar, sc_dtype_bytes(dtype));
    comm->made_scale[slot] = dtype <= SC_U64 ? (double)whole : sc_load(dtype, scalar);
    comm->made_dtype[slot] = dtype;
    *op = SC_FIRST_MADE + slot;
    return SC_OK;
}

API(int, ncclRedOpDestroy, int op, struct sc_comm *comm)
{
    if (op < SC_FIRST_MADE || comm->made_dtype[op - SC_FIRST_MADE] < 0)
        return sc_fail(SC_ARGUMENT, "no such op");
    comm->made_dtype[op - SC_FIRST_MADE] = -1;
    return SC_OK;
}
