/* shmem_match.c - small things told by every rank to all, through the arena; and WEFT_COMM_CHECK,
 * by which ranks compare their calls before each collective. */
#include "shmem.h"

#include <stdio.h>
#include <string.h>

/* The memory holds what all ranks said, then what this rank says.  Within a scope. */
static weft_status make_memory(struct wf_comm *comm)
{
    if (comm->side == NULL)
        WF_TRY(wf_gpu_check(wf_gpu.stream_create(&comm->side, GPU_STREAM_NON_BLOCKING),
                            "creating a stream"));
    if (comm->match_memory != NULL) return WEFT_OK;
    return wf_arena_take(((uint64_t)comm->size + 1) * WF_GATHER_MOST, &comm->match_memory);
}

/* Within a scope. */
static weft_status gather(struct wf_comm *comm, const void *mine, void *all, uint64_t bytes)
{
    gpu_stream stream = comm->side;
    char *memory = comm->match_memory, *own = memory + (uint64_t)comm->size * WF_GATHER_MOST;
    struct wf_op op = {.kind = WEFT_COLL_ALL_GATHER,
                       .dtype = WEFT_DTYPE_U8,
                       .bytes = 1,
                       .send = own,
                       .recv = memory,
                       .count = bytes,
                       .stream = stream};

    WF_TRY(wf_turn_begin(comm, stream));
    WF_TRY(wf_gpu_check(wf_vendor_copy(own, mine, bytes, stream), "telling all ranks something"));
    WF_TRY(wf_collective_run(comm, &op));
    WF_TRY(wf_turn_await(comm, stream));
    WF_TRY(wf_gpu_check(wf_vendor_copy(all, memory, bytes * (uint64_t)comm->size, stream),
                        "hearing what all ranks say"));
    return wf_turn_await(comm, stream);
}

weft_status wf_gather_small(struct wf_comm *comm, const void *mine, void *all, uint64_t bytes)
{
    struct wf_scope scope;
    weft_status status;

    WF_TRY(wf_enter(comm->device, &scope));
    status = make_memory(comm);
    if (status == WEFT_OK) status = gather(comm, mine, all, bytes);
    wf_leave(&scope);
    return status;
}

/* ---- calls ---- */

struct call {
    uint32_t kind, dtype, reduction;
    int32_t root;
    uint64_t count, counts_hash;
};
_Static_assert(sizeof(struct call) <= WF_GATHER_MOST, "a call is a small thing");

static uint64_t hash(const uint64_t *values, int32_t count)
{
    uint64_t h = 14695981039346656037u;

    for (int32_t i = 0; i < count; i++)
        h = (h ^ values[i]) * 1099511628211u;
    return h;
}

/* What must be the same on all ranks; the rest is zero. */
static struct call call_of(const struct wf_comm *comm, const struct wf_op *op)
{
    struct call call = {.kind = op->kind};

    if (op->kind == WEFT_COLL_BARRIER) return call;
    call.dtype = op->dtype;
    if (wf_collective_reduces(op->kind)) call.reduction = op->reduction;
    if (op->kind < WEFT_COLL_BARRIER) call.count = op->count;
    if (op->kind == WEFT_COLL_ALL_GATHER_V) call.counts_hash = hash(op->recv_counts, comm->size);
    if (op->kind == WEFT_COLL_REDUCE_SCATTER_V)
        call.counts_hash = hash(op->send_counts, comm->size);
    if ((op->kind >= WEFT_COLL_BROADCAST && op->kind <= WEFT_COLL_SCATTER) ||
        op->kind >= WEFT_COLL_GATHER_V)
        call.root = op->root;
    return call;
}

static void print(const struct call *call, char *out, size_t size)
{
    snprintf(out, size, "%s of %llu elements of dtype %u, reduction %u, root %d",
             call->kind < WEFT_COLL_COUNT ? wf_collective_name(call->kind) : "?",
             (unsigned long long)call->count, call->dtype, call->reduction, call->root);
}

static weft_status compare(struct wf_comm *comm, const struct call *calls)
{
    char first[128], other[128];

    for (int32_t r = 1; r < comm->size; r++) {
        if (memcmp(&calls[0], &calls[r], sizeof calls[0]) == 0) continue;
        print(&calls[0], first, sizeof first);
        print(&calls[r], other, sizeof other);
        return wf_comm_stick(comm,
                             wf_fail(WEFT_ERR_MISMATCH,
                                     "on %s rank %d calls %s, but rank %d calls %s", comm->name,
                                     comm->world_ranks[0], first, comm->world_ranks[r], other),
                             NULL);
    }
    return WEFT_OK;
}

weft_status wf_match(struct wf_comm *comm, const struct wf_op *op)
{
    struct call mine = call_of(comm, op), *calls;
    weft_status status;

    if (comm->size == 1 || wf_is_capturing(op->stream)) return WEFT_OK;
    calls = wf_new((size_t)comm->size * sizeof *calls);
    if (calls == NULL) return WEFT_ERR_NO_MEMORY;
    status = wf_gather_small(comm, &mine, calls, sizeof mine);
    if (status == WEFT_OK) status = compare(comm, calls);
    wf_delete(calls);
    return status;
}
