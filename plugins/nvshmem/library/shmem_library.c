/* shmem_library.c - NVSHMEM's own collectives on streams.
 *
 * They need buffers at the same offset on all ranks, but the caller's buffers can be anywhere.
 * Data to send is first copied into the team's slot of the arena, and received data is copied out
 * of it at the end, in as many rounds as the size of the slot requires.  Every round begins with a
 * kernel of this plugin that synchronizes all ranks, because NVSHMEM writes into the memory of
 * peers without synchronization.  That kernel has the time limit, can be aborted, and reports
 * missing ranks.  The kernels of NVSHMEM behind it have none of this: without a peer they do not
 * end. */
#include "shmem.h"

#include <dlfcn.h>
#include <stdio.h>

enum { WHOLE, SCATTERED, WAYS };
static const char *const ways[WAYS] = {[WHOLE] = "reduce", [SCATTERED] = "reducescatter"};
static const char *const types[WEFT_DTYPE_COUNT] = {
    [WEFT_DTYPE_I8] = "int8",       [WEFT_DTYPE_U8] = "uint8",   [WEFT_DTYPE_I16] = "int16",
    [WEFT_DTYPE_U16] = "uint16",    [WEFT_DTYPE_I32] = "int32",  [WEFT_DTYPE_U32] = "uint32",
    [WEFT_DTYPE_I64] = "int64",     [WEFT_DTYPE_U64] = "uint64", [WEFT_DTYPE_F16] = "half",
    [WEFT_DTYPE_BF16] = "bfloat16", [WEFT_DTYPE_F32] = "float",  [WEFT_DTYPE_F64] = "double"};
static const char *const reductions[WEFT_REDUCE_COUNT] = {
    [WEFT_REDUCE_SUM] = "sum", [WEFT_REDUCE_PROD] = "prod", [WEFT_REDUCE_MIN] = "min",
    [WEFT_REDUCE_MAX] = "max", [WEFT_REDUCE_BAND] = "and",  [WEFT_REDUCE_BOR] = "or",
    [WEFT_REDUCE_BXOR] = "xor"};

static shmem_reduce reducers[WAYS][WEFT_DTYPE_COUNT][WEFT_REDUCE_COUNT];
static uint64_t found;

/* ---- available collectives ---- */

static void note(bool is_there)
{
    found = (found ^ (is_there ? 3 : 5)) * UINT64_C(1099511628211);
}

/* True if NVSHMEM's result equals weft's.  NVSHMEM's min and max of floats drop NaN; weft's return
 * NaN. */
static bool is_equal(uint32_t dtype, uint32_t reduction)
{
    return dtype <= WEFT_DTYPE_U64 ||
           (reduction != WEFT_REDUCE_MIN && reduction != WEFT_REDUCE_MAX);
}

static shmem_reduce look_up(int way, uint32_t dtype, uint32_t reduction)
{
    shmem_reduce function = NULL;
    char name[96];

    if (types[dtype] == NULL || reductions[reduction] == NULL || !is_equal(dtype, reduction))
        return NULL;
    snprintf(name, sizeof name, "nvshmemx_%s_%s_%s_on_stream", types[dtype], reductions[reduction],
             ways[way]);
    *(void **)(void *)&function = dlsym(shmem_library.handle, name);
    return function;
}

void shmem_library_find(void)
{
    found = UINT64_C(14695981039346656037);
    for (int way = 0; way < WAYS; way++)
        for (uint32_t dtype = 0; dtype < WEFT_DTYPE_COUNT; dtype++)
            for (uint32_t reduction = 0; reduction < WEFT_REDUCE_COUNT; reduction++) {
                reducers[way][dtype][reduction] = look_up(way, dtype, reduction);
                note(reducers[way][dtype][reduction] != NULL);
            }
    note(shmem_api.nvshmem_team_split_strided != NULL);
    note(shmem_api.nvshmemx_team_init != NULL && shmem_api.nvshmemx_team_get_uniqueid != NULL);
    note(shmem_api.nvshmemx_barrier_on_stream != NULL);
    note(shmem_api.nvshmemx_broadcastmem_on_stream != NULL);
    note(shmem_api.nvshmemx_fcollectmem_on_stream != NULL);
    note(shmem_api.nvshmemx_alltoallmem_on_stream != NULL);
    found |= 1;
}

uint64_t shmem_library_found(void)
{
    return found;
}

/* ---- the size of a round ---- */

static uint64_t sent_parts(const struct gpu_comm *comm, const struct gpu_op *op)
{
    return op->kind == WEFT_COLL_REDUCE_SCATTER || op->kind == WEFT_COLL_ALL_TO_ALL
               ? (uint64_t)comm->size
               : 1;
}

static uint64_t received_parts(const struct gpu_comm *comm, const struct gpu_op *op)
{
    return op->kind == WEFT_COLL_ALL_GATHER || op->kind == WEFT_COLL_ALL_TO_ALL
               ? (uint64_t)comm->size
               : 1;
}

/* Elements of each part in a round.  Every part but the last is aligned to 16 bytes. */
static uint64_t most_elements(const struct gpu_comm *comm, const struct gpu_op *op)
{
    uint64_t sent = sent_parts(comm, op), received = received_parts(comm, op);
    uint64_t bytes = shmem_job.slot_bytes / 2 / (sent > received ? sent : received) / 16 * 16;

    return bytes / op->bytes < op->count ? bytes / op->bytes : op->count;
}

static bool has(const struct gpu_op *op)
{
    switch (op->kind) {
    case WEFT_COLL_ALL_REDUCE:
        return reducers[WHOLE][op->dtype][op->reduction] != NULL;
    case WEFT_COLL_REDUCE_SCATTER:
        return reducers[SCATTERED][op->dtype][op->reduction] != NULL;
    case WEFT_COLL_ALL_GATHER:
        return shmem_api.nvshmemx_fcollectmem_on_stream != NULL;
    case WEFT_COLL_ALL_TO_ALL:
        return shmem_api.nvshmemx_alltoallmem_on_stream != NULL;
    case WEFT_COLL_BROADCAST:
        return shmem_api.nvshmemx_broadcastmem_on_stream != NULL;
    case WEFT_COLL_BARRIER:
        return shmem_api.nvshmemx_barrier_on_stream != NULL;
    default:
        return false;
    }
}

bool shmem_library_takes(const struct gpu_comm *comm, const struct gpu_op *op)
{
    if (comm->team == 0 || !has(op)) return false;
    return op->kind == WEFT_COLL_BARRIER || (op->count > 0 && most_elements(comm, op) > 0);
}

/* ---- one round ---- */

/* COUNT elements from element FIRST on, of each part. */
struct round {
    struct gpu_comm *comm;
    const struct gpu_op *op;
    uint64_t first, count;
    char *send, *recv; /* in the slot */
};

static weft_status copy(const struct round *round, char *target, const char *source, uint64_t bytes)
{
    return gpu_check(gpu_vendor_copy(target, source, bytes, round->op->stream),
                     "copying into or out of symmetric memory");
}

/* Copy PARTS between the caller's BUFFER and the SLOT. */
static weft_status copy_parts(const struct round *round, char *buffer, char *slot, uint64_t parts,
                              bool into_slot)
{
    uint64_t bytes = round->count * round->op->bytes, step = round->op->count * round->op->bytes;

    if (round->count == round->op->count) {
        bytes *= parts;
        parts = 1;
    }
    buffer += round->first * round->op->bytes;
    for (uint64_t i = 0; i < parts; i++) {
        char *outside = buffer + i * step, *inside = slot + i * bytes;
        PLUG_TRY(into_slot ? copy(round, inside, outside, bytes)
                           : copy(round, outside, inside, bytes));
    }
    return WEFT_OK;
}

static weft_status copy_in(const struct round *round)
{
    const struct gpu_op *op = round->op;
    char *send = (char *)(uintptr_t)op->send;

    if (op->kind == WEFT_COLL_BROADCAST && op->root != round->comm->rank) return WEFT_OK;
    return copy_parts(round, send, round->send, sent_parts(round->comm, op), true);
}

static weft_status copy_out(const struct round *round)
{
    const struct gpu_op *op = round->op;

    if (op->kind == WEFT_COLL_BROADCAST && op->root == round->comm->rank)
        return op->recv != op->send ? copy_parts(round, op->recv, round->send, 1, false) : WEFT_OK;
    return copy_parts(round, op->recv, round->recv, received_parts(round->comm, op), false);
}

static int call(const struct round *round)
{
    const struct gpu_op *op = round->op;
    uint64_t bytes = round->count * op->bytes;
    int team = round->comm->team;
    void *stream = op->stream;

    switch (op->kind) {
    case WEFT_COLL_ALL_REDUCE:
        return reducers[WHOLE][op->dtype][op->reduction](team, round->recv, round->send,
                                                         round->count, stream);
    case WEFT_COLL_REDUCE_SCATTER:
        return reducers[SCATTERED][op->dtype][op->reduction](team, round->recv, round->send,
                                                             round->count, stream);
    case WEFT_COLL_ALL_GATHER:
        return shmem_api.nvshmemx_fcollectmem_on_stream(team, round->recv, round->send, bytes,
                                                        stream);
    case WEFT_COLL_ALL_TO_ALL:
        return shmem_api.nvshmemx_alltoallmem_on_stream(team, round->recv, round->send, bytes,
                                                        stream);
    case WEFT_COLL_BROADCAST:
        return shmem_api.nvshmemx_broadcastmem_on_stream(team, round->recv, round->send, bytes,
                                                         op->root, stream);
    default:
        return shmem_api.nvshmemx_barrier_on_stream(team, stream);
    }
}

static weft_status run(const struct round *round)
{
    bool moves = round->op->kind != WEFT_COLL_BARRIER;
    int code;

    if (moves) PLUG_TRY(copy_in(round));
    PLUG_TRY(shmem_sync_all(round->comm, round->op->stream));
    code = call(round);
    if (code != 0)
        return plug_fail_vendor(WEFT_ERR_DEVICE, VENDOR_SHMEM, code,
                                "NVSHMEM's %s failed (code %d)", gpu_op_name(round->op->kind),
                                code);
    return moves ? copy_out(round) : WEFT_OK;
}

weft_status shmem_library_run(struct gpu_comm *comm, const struct gpu_op *op)
{
    char *slots = shmem_job.arena + shmem_job.heap.bytes + shmem_job.own.bytes;
    char *slot = slots + (uint64_t)comm->team * shmem_job.slot_bytes;
    struct round round = {comm, op, 0, 0, slot, slot + shmem_job.slot_bytes / 2};
    uint64_t most;

    if (op->kind == WEFT_COLL_BARRIER) return run(&round);
    most = most_elements(comm, op);
    for (; round.first < op->count; round.first += most) {
        round.count = op->count - round.first < most ? op->count - round.first : most;
        PLUG_TRY(run(&round));
    }
    return WEFT_OK;
}
