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

static weft_status prepare(struct wf_comm *comm)
{
    uint64_t bytes = (uint64_t)(comm->size + 1) * sizeof(struct call);

    if (comm->match_host != NULL) return WEFT_OK;
    if (comm->match_device == NULL)
        WF_TRY(wf_gpu_allocate(comm->device, bytes, WEFT_MEMORY_DEVICE, &comm->match_device));
    return wf_gpu_allocate(comm->device, bytes, WEFT_MEMORY_PINNED, &comm->match_host);
}

void wf_match_end(struct wf_comm *comm)
{
    if (wf_gpu_free(comm->device, comm->match_device) != WEFT_OK ||
        wf_gpu_free(comm->device, comm->match_host) != WEFT_OK)
        wf_log(1, "a communicator's memory could not be freed");
}

static weft_status await(struct wf_comm *comm, gpu_stream stream)
{
    uint64_t began = wf_now_ns();
    gpu_result result;

    wf_mark(comm, stream);
    while ((result = wf_gpu.stream_query(stream)) == GPU_NOT_READY) {
        WF_TRY(wf_comm_stuck(comm));
        wf_pause(began);
    }
    WF_TRY(wf_comm_stuck(comm));
    return wf_gpu_check(result, "comparing calls");
}

/* All ranks' calls, in host memory. */
static weft_status exchange(struct wf_comm *comm, gpu_stream stream, const struct call **out)
{
    struct call *host = comm->match_host, *device = comm->match_device;
    size_t bytes = sizeof *host;
    ccl_result result;

    WF_TRY(wf_gpu_check(wf_vendor_copy(device, host, bytes, stream), "comparing calls"));
    result = wf_ccl.ncclAllGather(device, device + 1, bytes, CCL_U8, comm->work, stream);
    WF_TRY(wf_settle(comm, comm->work, result, comm->timeout_ns, "comparing calls"));
    WF_TRY(wf_gpu_check(wf_vendor_copy(host + 1, device + 1, bytes * (size_t)comm->size, stream),
                        "comparing calls"));
    WF_TRY(await(comm, stream));
    *out = host + 1;
    return WEFT_OK;
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
    const struct call *calls = NULL;
    struct call mine = call_of(comm, op);
    weft_status status;

    if (wf_is_capturing(op->stream)) return WEFT_OK;
    WF_TRY(prepare(comm));
    memcpy(comm->match_host, &mine, sizeof mine);
    WF_TRY(exchange(comm, op->stream, &calls));
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
