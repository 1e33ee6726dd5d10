/* ccl_check.c - arguments of collectives and messages, checked before anything happens. */
#include "ccl.h"

#include <stdio.h>
#include <string.h>

static bool has_root(uint32_t collective)
{
    switch (collective) {
    case WEFT_COLL_BROADCAST:
    case WEFT_COLL_REDUCE:
    case WEFT_COLL_GATHER:
    case WEFT_COLL_SCATTER:
    case WEFT_COLL_GATHER_V:
    case WEFT_COLL_SCATTER_V:
        return true;
    default:
        return false;
    }
}

static bool any(const uint64_t *counts, int32_t size)
{
    for (int32_t r = 0; r < size; r++)
        if (counts[r] > 0) return true;
    return false;
}

/* Arrays that this rank must give. */
static weft_status check_arrays(const struct wf_comm *comm, const struct wf_op *op)
{
    bool is_root = op->root == comm->rank;
    bool sends = op->kind == WEFT_COLL_REDUCE_SCATTER_V || op->kind == WEFT_COLL_ALL_TO_ALL_V ||
                 (op->kind == WEFT_COLL_SCATTER_V && is_root);
    bool receives = op->kind == WEFT_COLL_ALL_GATHER_V || op->kind == WEFT_COLL_ALL_TO_ALL_V ||
                    (op->kind == WEFT_COLL_GATHER_V && is_root);

    if (sends && (op->send_counts == NULL || op->send_offsets == NULL))
        return wf_fail(WEFT_ERR_INVALID, "%s needs send_counts and send_offsets",
                       wf_collective_name(op->kind));
    if (receives && (op->recv_counts == NULL || op->recv_offsets == NULL))
        return wf_fail(WEFT_ERR_INVALID, "%s needs recv_counts and recv_offsets",
                       wf_collective_name(op->kind));
    return WEFT_OK;
}

static bool needs_send(const struct wf_comm *comm, const struct wf_op *op)
{
    switch (op->kind) {
    case WEFT_COLL_BROADCAST:
    case WEFT_COLL_SCATTER:
        return op->count > 0 && op->root == comm->rank;
    case WEFT_COLL_ALL_GATHER_V:
        return op->recv_counts[comm->rank] > 0;
    case WEFT_COLL_REDUCE_SCATTER_V:
    case WEFT_COLL_ALL_TO_ALL_V:
        return any(op->send_counts, comm->size);
    case WEFT_COLL_SCATTER_V:
        return op->root == comm->rank && any(op->send_counts, comm->size);
    default:
        return op->count > 0;
    }
}

static bool needs_recv(const struct wf_comm *comm, const struct wf_op *op)
{
    switch (op->kind) {
    case WEFT_COLL_REDUCE:
    case WEFT_COLL_GATHER:
        return op->count > 0 && op->root == comm->rank;
    case WEFT_COLL_ALL_GATHER_V:
    case WEFT_COLL_ALL_TO_ALL_V:
        return any(op->recv_counts, comm->size);
    case WEFT_COLL_REDUCE_SCATTER_V:
        return op->send_counts[comm->rank] > 0;
    case WEFT_COLL_GATHER_V:
        return op->root == comm->rank && any(op->recv_counts, comm->size);
    default:
        return op->count > 0;
    }
}

static weft_status check_memory(const struct wf_comm *comm, const struct wf_op *op)
{
    char what[64];

    if (op->kind == WEFT_COLL_BARRIER) return WEFT_OK;
    if (op->count > INT64_MAX / op->bytes / (uint64_t)comm->size)
        return wf_fail(WEFT_ERR_INVALID, "a count of %llu elements on %d ranks is too large",
                       (unsigned long long)op->count, comm->size);
    if (needs_send(comm, op)) {
        snprintf(what, sizeof what, "the send buffer of %s", wf_collective_name(op->kind));
        WF_TRY(wf_gpu_usable(op->send, what));
    }
    if (needs_recv(comm, op)) {
        snprintf(what, sizeof what, "the receive buffer of %s", wf_collective_name(op->kind));
        WF_TRY(wf_gpu_usable(op->recv, what));
    }
    return WEFT_OK;
}

static weft_status check_kind(const struct wf_comm *comm, const struct wf_op *op)
{
    if (op->kind >= WEFT_COLL_COUNT)
        return wf_fail(WEFT_ERR_UNSUPPORTED, "collective %u is unknown", op->kind);
    if (op->kind != WEFT_COLL_BARRIER && op->bytes == 0)
        return wf_fail(WEFT_ERR_UNSUPPORTED, "dtype %u is unknown", op->dtype);
    if (op->way.kind == WF_WAY_NONE)
        return wf_fail(WEFT_ERR_UNSUPPORTED, "%s cannot do reduction %u on dtype %u%s",
                       wf_collective_name(op->kind), op->reduction, op->dtype,
                       comm->means.kernels ? "" : ", as there are no kernels");
    if (has_root(op->kind) && (op->root < 0 || op->root >= comm->size))
        return wf_fail(WEFT_ERR_INVALID, "root %d of %s is not one of %d ranks", op->root,
                       wf_collective_name(op->kind), comm->size);
    return WEFT_OK;
}

weft_status wf_op_read(struct wf_comm *comm, const weft_collective_args *given, struct wf_op *op)
{
    weft_collective_args args;

    wf_read(&args, given, sizeof args);
    *op = (struct wf_op){.kind = args.collective,
                         .dtype = args.dtype,
                         .reduction = args.reduction,
                         .root = args.root,
                         .bytes = wf_dtype_bytes(args.dtype),
                         .send = args.send,
                         .recv = args.recv,
                         .count = args.count,
                         .send_counts = args.send_counts,
                         .send_offsets = args.send_offsets,
                         .recv_counts = args.recv_counts,
                         .recv_offsets = args.recv_offsets,
                         .stream = wf_native(args.stream)};
    op->way = wf_way_find(&comm->means, op->kind, op->dtype, op->reduction);
    WF_TRY(check_kind(comm, op));
    WF_TRY(check_arrays(comm, op));
    if (wf_collective_reduces(op->kind) && op->reduction == WEFT_REDUCE_PREMUL_SUM) {
        if (args.scale == NULL)
            return wf_fail(WEFT_ERR_INVALID, "premul_sum needs a scale, which is NULL");
        memcpy(op->scale, args.scale, op->bytes);
    }
    return check_memory(comm, op);
}

weft_status wf_op_read_message(struct wf_comm *comm, const weft_message *given, uint32_t kind,
                               struct wf_op *op)
{
    weft_message message;
    uint64_t bytes;

    wf_read(&message, given, sizeof message);
    bytes = wf_dtype_bytes(message.dtype);
    if (bytes == 0) return wf_fail(WEFT_ERR_UNSUPPORTED, "dtype %u is unknown", message.dtype);
    if (message.peer < 0 || message.peer >= comm->size)
        return wf_fail(WEFT_ERR_INVALID, "peer %d is not one of %d ranks", message.peer,
                       comm->size);
    if (message.peer == comm->rank && comm->depth == 0)
        return wf_fail(WEFT_ERR_INVALID,
                       "a message to oneself needs a group with both sides of it");
    if (message.count > INT64_MAX / bytes)
        return wf_fail(WEFT_ERR_INVALID, "a message of %llu elements is too large",
                       (unsigned long long)message.count);
    if (message.count > 0)
        WF_TRY(wf_gpu_usable(message.buffer, kind == WF_OP_SEND ? "the buffer of a send"
                                                                : "the buffer of a receive"));
    *op =
        (struct wf_op){.kind = kind,
                       .dtype = message.dtype,
                       .root = message.peer,
                       .bytes = bytes,
                       .send = message.buffer,
                       .recv = message.buffer,
                       .count = message.count,
                       .stream = wf_native(message.stream),
                       .way = {.kind = WF_WAY_NATIVE, .dtype = CCL_U8, .factor = (uint32_t)bytes}};
    return WEFT_OK;
}
