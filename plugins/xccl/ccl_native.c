/* ccl_native.c - collectives that are calls of the library, or groups of calls. */
#include "ccl.h"

/* Address of element K in a buffer of elements of BYTES. */
static const char *at(const void *buffer, uint64_t k, uint64_t bytes)
{
    return buffer == NULL ? NULL : (const char *)buffer + k * bytes;
}

static char *into(void *buffer, uint64_t k, uint64_t bytes)
{
    return buffer == NULL ? NULL : (char *)buffer + k * bytes;
}

/* The op to use.  An op with a factor is created for this call.  Release it with end_op. */
static ccl_result begin_op(const struct gpu_comm *comm, const struct ccl_task *task, ccl_op *out)
{
    *out = task->way.op;
    if (!task->way.premultiplied) return CCL_SUCCESS;
    return ccl_api.ncclRedOpCreatePreMulSum(out, (void *)(uintptr_t)task->op.scale, task->way.dtype,
                                            CCL_SCALAR_HOST, comm->work);
}

static void end_op(const struct gpu_comm *comm, const struct ccl_task *task, ccl_op made)
{
    if (task->way.premultiplied) ccl_api.ncclRedOpDestroy(made, comm->work);
}

static ccl_result reduce_something(const struct gpu_comm *comm, const struct ccl_task *task)
{
    const struct gpu_op *op = &task->op;
    uint64_t count = op->count * task->way.factor;
    ccl_result result;
    ccl_op reduction;

    result = begin_op(comm, task, &reduction);
    if (result != CCL_SUCCESS) return result;
    if (op->kind == WEFT_COLL_ALL_REDUCE)
        result = ccl_api.ncclAllReduce(op->send, op->recv, count, task->way.dtype, reduction,
                                       comm->work, op->stream);
    else if (op->kind == WEFT_COLL_REDUCE)
        result = ccl_api.ncclReduce(op->send, op->recv, count, task->way.dtype, reduction, op->root,
                                    comm->work, op->stream);
    else
        result = ccl_api.ncclReduceScatter(op->send, op->recv, count, task->way.dtype, reduction,
                                           comm->work, op->stream);
    end_op(comm, task, reduction);
    return result;
}

ccl_result ccl_issue_native(struct gpu_comm *comm, struct ccl_task *task)
{
    const struct gpu_op *op = &task->op;
    uint64_t count = op->count * task->way.factor;

    switch (op->kind) {
    case WEFT_COLL_BARRIER:
        return ccl_api.ncclAllReduce(comm->token, comm->token, 1, CCL_U8, CCL_MAX, comm->work,
                                     op->stream);
    case GPU_OP_SEND:
        return ccl_api.ncclSend(op->send, count, task->way.dtype, op->root, comm->work, op->stream);
    case GPU_OP_RECEIVE:
        return ccl_api.ncclRecv(op->recv, count, task->way.dtype, op->root, comm->work, op->stream);
    default:
        break;
    }
    if (op->count == 0) return CCL_SUCCESS;
    switch (op->kind) {
    case WEFT_COLL_ALL_GATHER:
        return ccl_api.ncclAllGather(op->send, op->recv, count, task->way.dtype, comm->work,
                                     op->stream);
    case WEFT_COLL_BROADCAST:
        return ccl_api.ncclBroadcast(op->root == comm->rank ? op->send : op->recv, op->recv, count,
                                     task->way.dtype, op->root, comm->work, op->stream);
    default:
        return reduce_something(comm, task);
    }
}

static ccl_result gather_pieces(const struct gpu_comm *comm, const struct ccl_task *task)
{
    const struct gpu_op *op = &task->op;
    ccl_result result = CCL_SUCCESS;

    for (int32_t r = 0; r < comm->size && result == CCL_SUCCESS; r++) {
        char *share = into(op->recv, op->recv_offsets[r], op->bytes);
        if (op->recv_counts[r] == 0) continue;
        result = ccl_api.ncclBroadcast(r == comm->rank ? op->send : share, share,
                                       op->recv_counts[r] * task->way.factor, task->way.dtype, r,
                                       comm->work, op->stream);
    }
    return result;
}

ccl_result ccl_issue_pieces(struct gpu_comm *comm, const struct ccl_task *task)
{
    const struct gpu_op *op = &task->op;
    ccl_result result;
    ccl_op reduction;

    if (op->kind == WEFT_COLL_ALL_GATHER_V) return gather_pieces(comm, task);
    result = begin_op(comm, task, &reduction);
    if (result != CCL_SUCCESS) return result;
    for (int32_t r = 0; r < comm->size && result == CCL_SUCCESS; r++) {
        const char *share = at(op->send, op->send_offsets[r], op->bytes);
        if (op->send_counts[r] == 0) continue;
        result = ccl_api.ncclReduce(share, r == comm->rank ? op->recv : NULL,
                                    op->send_counts[r] * task->way.factor, task->way.dtype,
                                    reduction, r, comm->work, op->stream);
    }
    end_op(comm, task, reduction);
    return result;
}

/* ---- messages ---- */

/* Send COUNT elements to each peer and receive COUNT from each.  This rank's own elements are
 * copied. */
static ccl_result send(const struct gpu_comm *comm, const struct ccl_task *task, const void *from,
                       uint64_t count, int32_t peer)
{
    if (count == 0 || peer == comm->rank) return CCL_SUCCESS;
    return ccl_api.ncclSend(from, count * task->way.factor, task->way.dtype, peer, comm->work,
                            task->op.stream);
}

static ccl_result receive(const struct gpu_comm *comm, const struct ccl_task *task, void *to,
                          uint64_t count, int32_t peer)
{
    if (count == 0 || peer == comm->rank) return CCL_SUCCESS;
    return ccl_api.ncclRecv(to, count * task->way.factor, task->way.dtype, peer, comm->work,
                            task->op.stream);
}

static weft_status copy_own(const struct gpu_op *op, void *to, const void *from, uint64_t count)
{
    if (count == 0 || to == from) return WEFT_OK;
    return gpu_check(gpu_vendor_copy(to, from, count * op->bytes, op->stream),
                     "copying a rank's own share");
}

/* Receives would overwrite data that is not sent yet, so send from a copy. */
static weft_status move_aside(struct gpu_comm *comm, struct ccl_task *task, uint64_t count)
{
    struct gpu_op *op = &task->op;

    if (op->send != op->recv || count == 0) return WEFT_OK;
    PLUG_TRY(gpu_borrow(comm->device, count * op->bytes, op->stream, &task->scratch));
    PLUG_TRY(gpu_check(gpu_vendor_copy(task->scratch, op->send, count * op->bytes, op->stream),
                       "copying the send buffer of an in-place call"));
    op->send = task->scratch;
    return WEFT_OK;
}

static weft_status all_to_all(struct gpu_comm *comm, struct ccl_task *task, ccl_result *result)
{
    const struct gpu_op *op = &task->op;
    uint64_t n = op->count;

    PLUG_TRY(move_aside(comm, task, n * (uint64_t)comm->size));
    if (n == 0) return WEFT_OK;
    if (ccl_api.ncclAlltoAll != NULL) {
        *result = ccl_api.ncclAlltoAll(op->send, op->recv, n * task->way.factor, task->way.dtype,
                                       comm->work, op->stream);
        return WEFT_OK;
    }
    for (int32_t r = 0; r < comm->size && *result == CCL_SUCCESS; r++) {
        uint64_t first = (uint64_t)r * n;
        *result = send(comm, task, at(op->send, first, op->bytes), n, r);
        *result = ccl_first(*result, receive(comm, task, into(op->recv, first, op->bytes), n, r));
    }
    return copy_own(op, into(op->recv, (uint64_t)comm->rank * n, op->bytes),
                    at(op->send, (uint64_t)comm->rank * n, op->bytes), n);
}

static weft_status all_to_all_v(struct gpu_comm *comm, struct ccl_task *task, ccl_result *result)
{
    const struct gpu_op *op = &task->op;
    int32_t me = comm->rank;
    uint64_t end = 0;

    for (int32_t r = 0; r < comm->size; r++)
        if (op->send_counts[r] > 0 && op->send_offsets[r] + op->send_counts[r] > end)
            end = op->send_offsets[r] + op->send_counts[r];
    PLUG_TRY(move_aside(comm, task, end));
    for (int32_t r = 0; r < comm->size && *result == CCL_SUCCESS; r++) {
        *result =
            send(comm, task, at(op->send, op->send_offsets[r], op->bytes), op->send_counts[r], r);
        *result =
            ccl_first(*result, receive(comm, task, into(op->recv, op->recv_offsets[r], op->bytes),
                                       op->recv_counts[r], r));
    }
    return copy_own(op, into(op->recv, op->recv_offsets[me], op->bytes),
                    at(op->send, op->send_offsets[me], op->bytes), op->send_counts[me]);
}

/* Rank R's share of the root's buffer. */
static void share_of(const struct gpu_op *op, const uint64_t *counts, const uint64_t *offsets,
                     int32_t r, uint64_t *count, uint64_t *offset)
{
    bool uneven = op->kind == WEFT_COLL_GATHER_V || op->kind == WEFT_COLL_SCATTER_V;

    *count = uneven ? counts[r] : op->count;
    *offset = uneven ? offsets[r] : (uint64_t)r * op->count;
}

/* GATHERS, or scatters. */
static weft_status move_rooted(const struct gpu_comm *comm, const struct ccl_task *task,
                               bool gathers, ccl_result *result)
{
    const struct gpu_op *op = &task->op;
    const uint64_t *counts = gathers ? op->recv_counts : op->send_counts;
    const uint64_t *offsets = gathers ? op->recv_offsets : op->send_offsets;
    uint64_t count, offset;

    if (comm->rank != op->root) {
        *result = gathers ? send(comm, task, op->send, op->count, op->root)
                          : receive(comm, task, op->recv, op->count, op->root);
        return WEFT_OK;
    }
    for (int32_t r = 0; r < comm->size && *result == CCL_SUCCESS; r++) {
        share_of(op, counts, offsets, r, &count, &offset);
        *result = gathers ? receive(comm, task, into(op->recv, offset, op->bytes), count, r)
                          : send(comm, task, at(op->send, offset, op->bytes), count, r);
    }
    share_of(op, counts, offsets, comm->rank, &count, &offset);
    return gathers ? copy_own(op, into(op->recv, offset, op->bytes), op->send, count)
                   : copy_own(op, op->recv, at(op->send, offset, op->bytes), count);
}

weft_status ccl_issue_messages(struct gpu_comm *comm, struct ccl_task *task, ccl_result *result)
{
    uint32_t kind = task->op.kind;

    *result = CCL_SUCCESS;
    if (kind == WEFT_COLL_ALL_TO_ALL) return all_to_all(comm, task, result);
    if (kind == WEFT_COLL_ALL_TO_ALL_V) return all_to_all_v(comm, task, result);
    return move_rooted(comm, task, kind == WEFT_COLL_GATHER || kind == WEFT_COLL_GATHER_V, result);
}
