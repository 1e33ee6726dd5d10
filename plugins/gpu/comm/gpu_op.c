/* gpu_op.c - parses and checks the arguments of collectives and messages. */
#include "vendor.h"
#include VENDOR_COMM

#include "kit/collective.h"

#include <stdio.h>
#include <string.h>

const char *gpu_op_name(uint32_t kind)
{
    if (kind == GPU_OP_SEND) return "send";
    if (kind == GPU_OP_PULL) return "pull";
    return kind == GPU_OP_RECEIVE ? "receive" : kit_collective_name(kind);
}

bool gpu_op_scales(const struct gpu_op *op)
{
    return kit_collective_reduces(op->kind) && op->reduction == WEFT_REDUCE_PREMUL_SUM;
}

static weft_status check_kind(const struct gpu_comm *comm, const struct gpu_op *op)
{
    if (op->kind >= WEFT_COLL_COUNT)
        return plug_fail(WEFT_ERR_UNSUPPORTED, "collective %u is unknown", op->kind);
    if (op->kind == WEFT_COLL_BARRIER) return WEFT_OK;
    if (op->bytes == 0) return plug_fail(WEFT_ERR_UNSUPPORTED, "dtype %u is unknown", op->dtype);
    PLUG_TRY(gpu_op_supported(comm, op));
    if ((kit_collective_needs(op->kind) & KIT_ROOTED) != 0 &&
        (op->root < 0 || op->root >= comm->size))
        return plug_fail(WEFT_ERR_INVALID, "root %d of %s is outside the communicator of %d ranks",
                         op->root, gpu_op_name(op->kind), comm->size);
    return WEFT_OK;
}

/* Check the arrays that this rank must pass.  Set the others to NULL. */
static weft_status check_arrays(const struct gpu_comm *comm, struct gpu_op *op)
{
    struct kit_use use = kit_collective_arrays(op->kind, op->root, comm->rank);

    if (!use.send_arrays)
        op->send_counts = op->send_offsets = NULL;
    else if (op->send_counts == NULL || op->send_offsets == NULL)
        return plug_fail(WEFT_ERR_INVALID, "%s needs send_counts and send_offsets",
                         gpu_op_name(op->kind));
    if (!use.recv_arrays)
        op->recv_counts = op->recv_offsets = NULL;
    else if (op->recv_counts == NULL || op->recv_offsets == NULL)
        return plug_fail(WEFT_ERR_INVALID, "%s needs recv_counts and recv_offsets",
                         gpu_op_name(op->kind));
    return WEFT_OK;
}

/* Format the text only on the slow path. */
static weft_status check_buffer(const void *buffer, const char *which, const struct gpu_op *op)
{
    char what[64];

    if (gpu_is_known(buffer)) return WEFT_OK;
    snprintf(what, sizeof what, "the %s buffer of %s", which, gpu_op_name(op->kind));
    return gpu_usable(buffer, what);
}

static weft_status check_memory(const struct gpu_comm *comm, const weft_collective_args *args,
                                const struct gpu_op *op)
{
    struct kit_use use = kit_collective_use(args, comm->rank, comm->size);

    if (op->count > INT64_MAX / op->bytes / (uint64_t)comm->size)
        return plug_fail(WEFT_ERR_INVALID, "a count of %llu elements on %d ranks is too large",
                         (unsigned long long)op->count, comm->size);
    if (use.send > 0) PLUG_TRY(check_buffer(op->send, "send", op));
    if (use.recv > 0) PLUG_TRY(check_buffer(op->recv, "receive", op));
    return WEFT_OK;
}

weft_status gpu_op_read(struct gpu_comm *comm, const weft_collective_args *given, struct gpu_op *op)
{
    weft_collective_args args;

    plug_take_struct(&args, given, sizeof args);
    *op = (struct gpu_op){.kind = args.collective,
                          .dtype = args.dtype,
                          .reduction = args.reduction,
                          .divisor = args.divisor != 0 ? args.divisor : (uint32_t)comm->size,
                          .root = args.root,
                          .bytes = kit_dtype_bytes(args.dtype),
                          .send = args.send,
                          .recv = args.recv,
                          .count = args.count,
                          .send_counts = args.send_counts,
                          .send_offsets = args.send_offsets,
                          .recv_counts = args.recv_counts,
                          .recv_offsets = args.recv_offsets,
                          .stream = gpu_native(args.stream),
                          .plan = args.plan,
                          .binding = args.binding,
                          .step = args.step};
    PLUG_TRY(check_kind(comm, op));
    PLUG_TRY(check_arrays(comm, op));
    if (op->kind == WEFT_COLL_BARRIER) return WEFT_OK;
    if (gpu_op_scales(op)) {
        if (args.scale == NULL)
            return plug_fail(WEFT_ERR_INVALID, "premul_sum needs a scale, but scale is NULL");
        memcpy(op->scale, args.scale, op->bytes);
    }
    return check_memory(comm, &args, op);
}

weft_status gpu_op_read_message(struct gpu_comm *comm, const weft_message *given, uint32_t kind,
                                struct gpu_op *op)
{
    weft_message message;
    uint64_t bytes;

    plug_take_struct(&message, given, sizeof message);
    bytes = kit_dtype_bytes(message.dtype);
    if (bytes == 0) return plug_fail(WEFT_ERR_UNSUPPORTED, "dtype %u is unknown", message.dtype);
    if (message.peer < 0 || message.peer >= comm->size)
        return plug_fail(WEFT_ERR_INVALID, "peer is %d; the communicator has %d ranks",
                         message.peer, comm->size);
    if (message.peer == comm->rank && comm->group.depth == 0)
        return plug_fail(WEFT_ERR_INVALID,
                         "a rank that sends to itself calls send and receive in one group");
    if (message.count > INT64_MAX / bytes)
        return plug_fail(WEFT_ERR_INVALID, "a message of %llu elements is too large",
                         (unsigned long long)message.count);
    if (message.count > 0)
        PLUG_TRY(gpu_usable(message.buffer, kind == GPU_OP_SEND ? "the buffer of a send"
                                                                : "the buffer of a receive"));
    *op = (struct gpu_op){.kind = kind,
                          .dtype = message.dtype,
                          .root = message.peer,
                          .bytes = bytes,
                          .send = message.buffer,
                          .recv = message.buffer,
                          .count = message.count,
                          .stream = gpu_native(message.stream)};
    return WEFT_OK;
}
