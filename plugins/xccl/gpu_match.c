/* gpu_match.c - WEFT_COMM_CHECK: what all ranks must call alike, and whether they do. */
#include "vendor.h"
#include VENDOR_COMM

#include <stdio.h>
#include <string.h>

static uint64_t hash(const uint64_t *values, int32_t count)
{
    uint64_t h = 14695981039346656037u;

    for (int32_t i = 0; i < count; i++)
        h = (h ^ values[i]) * 1099511628211u;
    return h;
}

struct wf_call wf_call_of(const struct wf_comm *comm, const struct wf_op *op)
{
    struct wf_call call = {.kind = op->kind};

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

static void print(const struct wf_call *call, char *out, size_t size)
{
    snprintf(out, size, "%s of %llu elements of dtype %u, reduction %u, root %d",
             call->kind < WEFT_COLL_COUNT ? wf_collective_name(call->kind) : "?",
             (unsigned long long)call->count, call->dtype, call->reduction, call->root);
}

weft_status wf_calls_match(struct wf_comm *comm, const struct wf_call *calls)
{
    char first[128], other[128];
    weft_status status;

    for (int32_t r = 1; r < comm->size; r++) {
        if (memcmp(&calls[0], &calls[r], sizeof calls[0]) == 0) continue;
        print(&calls[0], first, sizeof first);
        print(&calls[r], other, sizeof other);
        status = wf_fail(WEFT_ERR_MISMATCH, "on %s rank %d calls %s, but rank %d calls %s",
                         comm->name, comm->world_ranks[0], first, comm->world_ranks[r], other);
        return wf_comm_stick(comm, status, NULL);
    }
    return WEFT_OK;
}
