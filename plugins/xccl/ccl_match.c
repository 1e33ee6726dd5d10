/* ccl_match.c - WEFT_COMM_CHECK: before each collective the ranks tell each other what they call.
 *
 * It costs a small all-gather and a wait each time, which is why it is asked for. */
#include "ccl.h"

#include <stdio.h>
#include <string.h>

struct call {
    uint32_t kind, dtype, reduction;
    int32_t root;
    uint64_t count, counts_hash;
};

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
    bool uneven = op->kind >= WEFT_COLL_ALL_GATHER_V;

    if (op->kind == WEFT_COLL_BARRIER) return call;
    call.dtype = op->dtype;
    if (wf_collective_reduces(op->kind)) call.reduction = op->reduction;
    if (!uneven) call.count = op->count;
    if (op->kind == WEFT_COLL_ALL_GATHER_V) call.counts_hash = hash(op->recv_counts, comm->size);
    if (op->kind == WEFT_COLL_REDUCE_SCATTER_V)
        call.counts_hash = hash(op->send_counts, comm->size);
    if (op->kind >= WEFT_COLL_BROADCAST && op->kind <= WEFT_COLL_SCATTER) call.root = op->root;
    if (op->kind >= WEFT_COLL_GATHER_V) call.root = op->root;
    return call;
}

static void print(const struct call *call, char *out, size_t size)
{
    snprintf(out, size, "%s of %llu elements of dtype %u, reduction %u, root %d",
             call->kind < WEFT_COLL_COUNT ? wf_collective_name(call->kind) : "?",
             (unsigned long long)call->count, call->dtype, call->reduction, call->root);
}

weft_status wf_match(struct wf_comm *comm, const struct wf_op *op)
{
    char first[128], other[128];
    struct call mine = call_of(comm, op);
    const struct call *calls;
    const void *all = NULL;
    weft_status status;

    if (wf_is_capturing(op->stream)) return WEFT_OK;
    WF_TRY(wf_talk(comm, op->stream, &mine, sizeof mine, &all));
    calls = all;
    for (int32_t r = 1; r < comm->size; r++) {
        if (memcmp(&calls[0], &calls[r], sizeof mine) == 0) continue;
        print(&calls[0], first, sizeof first);
        print(&calls[r], other, sizeof other);
        status = wf_fail(WEFT_ERR_MISMATCH, "on %s rank 0 calls %s, but rank %d calls %s",
                         comm->name, first, r, other);
        return wf_comm_stick(comm, status, NULL);
    }
    return WEFT_OK;
}
