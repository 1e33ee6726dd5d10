/* shmem_collective.c - each collective as one operation: the data that each rank offers, the ranks
 * that read it, and the kernel that moves or reduces it.
 *
 * Peers read a rank's data in place, so memory that is written while peers read it is copied first.
 * A rank's own slice needs no copy, because only the rank itself reads it. */
#include "shmem.h"

#include <string.h>

/* In all-reduces up to this size every rank reads all data.  In larger ones each rank reduces a
 * slice and writes the result to all ranks. */
#define ONE_SHOT_BYTES UINT64_C(8192)

enum { TILE_BYTES = 16384, BLOCKS_MAX = 2048 };

/* One rank's part of a collective. */
struct job {
    struct shmem_sync sync;
    const uint64_t *at, *length; /* in elements, by part; NULL: all parts are equal */
    uint64_t count;              /* elements of each part, or elements to reduce */
    uint32_t parts;
    int32_t root[1];
    uint64_t *offers;    /* owned */
    uint64_t send_bytes; /* bytes from SEND on that peers may read */
    uint64_t recv_bytes;
};

static uint64_t reach(const uint64_t *counts, const uint64_t *offsets, int32_t size)
{
    uint64_t most = 0;

    for (int32_t r = 0; r < size; r++)
        if (counts[r] > 0 && offsets[r] + counts[r] > most) most = offsets[r] + counts[r];
    return most;
}

/* ---- the send side ---- */

static uint64_t send_elements(const struct gpu_comm *comm, const struct gpu_op *op)
{
    bool at_root = op->root == comm->rank;
    uint64_t size = (uint64_t)comm->size;

    switch (op->kind) {
    case WEFT_COLL_REDUCE_SCATTER:
    case WEFT_COLL_ALL_TO_ALL:
        return size * op->count;
    case WEFT_COLL_SCATTER:
        return at_root ? size * op->count : 0;
    case WEFT_COLL_BROADCAST:
        return at_root ? op->count : 0;
    case WEFT_COLL_ALL_GATHER_V:
        return op->recv_counts[comm->rank];
    case WEFT_COLL_REDUCE_SCATTER_V:
    case WEFT_COLL_ALL_TO_ALL_V:
        return reach(op->send_counts, op->send_offsets, comm->size);
    case WEFT_COLL_SCATTER_V:
        return at_root ? reach(op->send_counts, op->send_offsets, comm->size) : 0;
    default:
        return op->count;
    }
}

static uint64_t recv_elements(const struct gpu_comm *comm, const struct gpu_op *op)
{
    bool at_root = op->root == comm->rank;
    uint64_t size = (uint64_t)comm->size;

    switch (op->kind) {
    case WEFT_COLL_ALL_GATHER:
    case WEFT_COLL_ALL_TO_ALL:
        return size * op->count;
    case WEFT_COLL_GATHER:
        return at_root ? size * op->count : 0;
    case WEFT_COLL_REDUCE:
        return at_root ? op->count : 0;
    case WEFT_COLL_ALL_GATHER_V:
    case WEFT_COLL_ALL_TO_ALL_V:
        return reach(op->recv_counts, op->recv_offsets, comm->size);
    case WEFT_COLL_GATHER_V:
        return at_root ? reach(op->recv_counts, op->recv_offsets, comm->size) : 0;
    case WEFT_COLL_REDUCE_SCATTER_V:
        return op->send_counts[comm->rank];
    default:
        return op->count;
    }
}

/* Offset of the rank's own share in the buffer of all shares, in elements. */
static uint64_t own_slice(const struct gpu_comm *comm, const struct gpu_op *op)
{
    switch (op->kind) {
    case WEFT_COLL_ALL_GATHER_V:
    case WEFT_COLL_GATHER_V:
        return op->recv_offsets[comm->rank];
    case WEFT_COLL_REDUCE_SCATTER_V:
    case WEFT_COLL_SCATTER_V:
        return op->send_offsets[comm->rank];
    case WEFT_COLL_REDUCE:
    case WEFT_COLL_BROADCAST:
        return 0;
    default:
        return (uint64_t)comm->rank * op->count;
    }
}

/* True if this rank writes memory that a peer, or the rank itself, still reads. */
static bool collides(const struct gpu_comm *comm, const struct gpu_op *op, const struct job *job)
{
    const char *send = op->send, *recv = op->recv;
    uint64_t slice;

    if (job->send_bytes == 0 || job->recv_bytes == 0 || send >= recv + job->recv_bytes ||
        recv >= send + job->send_bytes)
        return false;
    if (op->kind == WEFT_COLL_ALL_TO_ALL || op->kind == WEFT_COLL_ALL_TO_ALL_V) return true;
    if (op->kind == WEFT_COLL_ALL_REDUCE) return op->count * op->bytes <= ONE_SHOT_BYTES;
    slice = own_slice(comm, op) * op->bytes;
    return send != recv + slice && recv != send + slice;
}

/* Publish this rank's data to its peers.  For premul_sum it is multiplied by the rank's factor. */
static weft_status stage(struct gpu_comm *comm, const struct gpu_op *op, struct job *job)
{
    uint64_t *offset = &job->sync.wk.send;

    if (!gpu_op_scales(op) || job->send_bytes == 0)
        return shmem_stage_send(comm, op->send, job->send_bytes, collides(comm, op, job),
                                op->stream, offset);
    PLUG_TRY(shmem_stage_grow(comm, &comm->send_stage, job->send_bytes));
    shmem_arena_holds(comm->send_stage.memory, job->send_bytes, offset);
    return gpu_scale_elements(comm->device, op->dtype, job->send_bytes / op->bytes, op->scale,
                              op->send, comm->send_stage.memory, op->stream);
}

static weft_status set_offers(struct gpu_comm *comm, const struct gpu_op *op, struct job *job)
{
    struct wk_sync *wk = &job->sync.wk;
    bool at_root = op->root == comm->rank;

    if (op->kind == WEFT_COLL_REDUCE_SCATTER || op->kind == WEFT_COLL_ALL_TO_ALL ||
        op->kind == WEFT_COLL_SCATTER)
        wk->send_step = op->count * op->bytes;
    if (op->kind != WEFT_COLL_REDUCE_SCATTER_V && op->kind != WEFT_COLL_ALL_TO_ALL_V &&
        (op->kind != WEFT_COLL_SCATTER_V || !at_root))
        return WEFT_OK;
    job->offers = plug_new((size_t)comm->size * sizeof *job->offers);
    if (job->offers == NULL) return WEFT_ERR_NO_MEMORY;
    for (int32_t r = 0; r < comm->size; r++)
        job->offers[r] = wk->send + op->send_offsets[r] * op->bytes;
    job->sync.offers = job->offers;
    return WEFT_OK;
}

/* ---- the receive side ---- */

static void set_reads(const struct gpu_comm *comm, const struct gpu_op *op, struct job *job)
{
    struct wk_sync *wk = &job->sync.wk;
    bool at_root = op->root == comm->rank;

    wk->listed = (uint32_t)comm->size;
    job->count = op->count;
    switch (op->kind) {
    case WEFT_COLL_BROADCAST:
    case WEFT_COLL_SCATTER:
    case WEFT_COLL_SCATTER_V:
        job->root[0] = op->root;
        job->sync.list = job->root;
        wk->listed = 1;
        break;
    case WEFT_COLL_REDUCE:
    case WEFT_COLL_GATHER:
    case WEFT_COLL_GATHER_V:
        if (!at_root) wk->listed = 0;
        break;
    case WEFT_COLL_REDUCE_SCATTER_V:
        job->count = op->send_counts[comm->rank];
        break;
    default:
        break;
    }
    job->parts = wk->listed;
    if ((op->kind == WEFT_COLL_GATHER_V && at_root) || op->kind == WEFT_COLL_ALL_GATHER_V ||
        op->kind == WEFT_COLL_ALL_TO_ALL_V) {
        job->at = op->recv_offsets;
        job->length = op->recv_counts;
    }
}

/* ---- kernels ---- */

static uint32_t blocks_for(uint64_t bytes, uint64_t most)
{
    uint64_t blocks = bytes / TILE_BYTES + (bytes % TILE_BYTES != 0);

    return (uint32_t)(blocks < 1 ? 1 : blocks < most ? blocks : most);
}

static uint64_t longest(const struct job *job)
{
    uint64_t most = job->length != NULL ? 0 : job->count;

    for (uint32_t i = 0; job->length != NULL && i < job->parts; i++)
        if (job->length[i] > most) most = job->length[i];
    return most;
}

/* Set the parts from FIRST on, as many as fit into the arguments. */
static void set_parts(const struct gpu_op *op, const struct job *job, uint32_t first,
                      struct wk_move_args *args)
{
    uint32_t left = job->parts - first;

    args->first = first;
    args->varied = 1;
    args->parts = left < WK_LIST ? left : WK_LIST;
    for (uint32_t i = 0; i < args->parts; i++) {
        uint64_t part = first + i;
        args->at[i] = (job->at != NULL ? job->at[part] : part * job->count) * op->bytes;
        args->length[i] = (job->length != NULL ? job->length[part] : job->count) * op->bytes;
    }
}

static weft_status move(struct gpu_comm *comm, const struct gpu_op *op, struct job *job)
{
    uint64_t bytes = longest(job) * op->bytes;
    uint32_t per_part = blocks_for(bytes, BLOCKS_MAX / (job->parts < 64 ? job->parts : 64));
    struct wk_move_args args = {.per_part = per_part};
    struct shmem_sync *sync = &job->sync;

    if (shmem_sync_is_small(comm, sync, (uint64_t)per_part * job->parts) && job->parts <= WK_LIST) {
        shmem_sync_fuse(sync, (uint64_t)per_part * job->parts);
        args.sync = sync->wk;
        set_parts(op, job, 0, &args);
        return shmem_onesided_launch(comm, SHMEM_MOVE, 1, (uint64_t)per_part * job->parts, &args,
                                     sync->stream);
    }
    PLUG_TRY(shmem_sync_open(comm, sync));
    for (uint32_t first = 0; first < job->parts; first += args.parts) {
        set_parts(op, job, first, &args);
        if (first + args.parts == job->parts)
            shmem_sync_close(sync, (uint64_t)per_part * args.parts);
        args.sync = sync->wk;
        PLUG_TRY(shmem_onesided_launch(comm, SHMEM_MOVE, 1, (uint64_t)per_part * args.parts, &args,
                                       sync->stream));
    }
    return WEFT_OK;
}

static weft_status reduce(struct gpu_comm *comm, const struct gpu_op *op, struct job *job,
                          uint64_t begin, uint64_t end)
{
    struct shmem_sync *sync = &job->sync;
    struct wk_gather_reduce_args args = {.begin = begin,
                                         .end = end,
                                         .reduction =
                                             gpu_op_scales(op) ? WEFT_REDUCE_SUM : op->reduction,
                                         .size = (uint32_t)comm->size,
                                         .divisor = op->divisor};
    uint32_t blocks = blocks_for((end - begin) * op->bytes, BLOCKS_MAX);

    if (sync->wk.pushes) args.pushes = (uint32_t)comm->size;
    if (shmem_sync_is_small(comm, sync, blocks)) {
        shmem_sync_fuse(sync, blocks);
    } else {
        PLUG_TRY(shmem_sync_open(comm, sync));
        shmem_sync_close(sync, blocks);
    }
    args.sync = sync->wk;
    return shmem_onesided_launch(comm, SHMEM_GATHER_REDUCE, op->dtype, blocks, &args, sync->stream);
}

/* This rank reads nothing, but peers may read from it. */
static weft_status only_offer(struct gpu_comm *comm, struct job *job)
{
    struct shmem_sync *sync = &job->sync;

    if (!shmem_sync_is_small(comm, sync, 1)) {
        PLUG_TRY(shmem_sync_open(comm, sync));
        return shmem_sync_close_alone(comm, sync);
    }
    shmem_sync_fuse(sync, 1);
    return shmem_onesided_launch(comm, SHMEM_SYNC, 1, 1, &sync->wk, sync->stream);
}

/* Send this rank's slice of the result to all ranks, through the stage if peers cannot access
 * RECV. */
static weft_status all_reduce_two_shot(struct gpu_comm *comm, const struct gpu_op *op,
                                       struct job *job)
{
    struct wk_sync *wk = &job->sync.wk;
    uint64_t bytes = op->count * op->bytes, wide = 16 / op->bytes;
    uint64_t each = (op->count + (uint64_t)comm->size - 1) / (uint64_t)comm->size;
    uint64_t begin, end;
    bool staged = (uintptr_t)op->recv % 16 != 0 || !shmem_arena_holds(op->recv, bytes, &wk->recv);

    each = (each + wide - 1) / wide * wide;
    begin = (uint64_t)comm->rank * each < op->count ? (uint64_t)comm->rank * each : op->count;
    end = begin + each < op->count ? begin + each : op->count;
    if (staged) {
        PLUG_TRY(shmem_stage_grow(comm, &comm->recv_stage, bytes));
        shmem_arena_holds(comm->recv_stage.memory, bytes, &wk->recv);
    }
    wk->pushes = 1;
    wk->local = 0;
    PLUG_TRY(reduce(comm, op, job, begin, end));
    if (!staged) return WEFT_OK;
    return gpu_check(gpu_vendor_copy(op->recv, comm->recv_stage.memory, bytes, job->sync.stream),
                     "copying out of symmetric memory");
}

static weft_status run_job(struct gpu_comm *comm, const struct gpu_op *op, struct job *job)
{
    if (op->kind == WEFT_COLL_ALL_REDUCE && op->count * op->bytes > ONE_SHOT_BYTES)
        return all_reduce_two_shot(comm, op, job);
    if (job->parts == 0) return only_offer(comm, job);
    if (kit_collective_reduces(op->kind)) return reduce(comm, op, job, 0, job->count);
    return move(comm, op, job);
}

weft_status shmem_collective_run(struct gpu_comm *comm, const struct gpu_op *op)
{
    weft_status status;

    if (!shmem_library_takes(comm, op)) return shmem_collective_run_alone(comm, op);
    PLUG_TRY(shmem_turn_begin(comm, op->stream));
    status = shmem_library_run(comm, op);
    shmem_turn_end(comm, op->stream);
    return status == WEFT_OK ? status : shmem_decline(comm, status, op->stream);
}

weft_status shmem_collective_run_alone(struct gpu_comm *comm, const struct gpu_op *op)
{
    struct job job = {.sync = shmem_sync_make(comm, op->stream)};
    weft_status status;

    PLUG_TRY(shmem_turn_begin(comm, op->stream));
    if (op->kind == WEFT_COLL_BARRIER) {
        status = shmem_sync_all(comm, op->stream);
    } else {
        job.send_bytes = send_elements(comm, op) * op->bytes;
        job.recv_bytes = recv_elements(comm, op) * op->bytes;
        job.sync.wk.local = (uintptr_t)op->recv;
        set_reads(comm, op, &job);
        status = stage(comm, op, &job);
        if (status == WEFT_OK) status = set_offers(comm, op, &job);
        if (status == WEFT_OK) status = run_job(comm, op, &job);
        plug_free(job.offers);
    }
    shmem_turn_end(comm, op->stream);
    return status == WEFT_OK ? status : shmem_decline(comm, status, op->stream);
}
