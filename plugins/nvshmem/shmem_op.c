/* shmem_op.c - calls read and checked before anything happens, and what is supported. */
#include "shmem.h"

#include <stdio.h>
#include <string.h>

static const char *const names[] = {
#define NAME(name, value, text) [value] = text,
    WEFT_COLLECTIVE_LIST(NAME)
#undef NAME
};

/* What each collective needs: bits for every rank, or for the root alone. */
enum need {
    SEND = 1,
    RECV = 2,
    SEND_ARRAYS = 4,
    RECV_ARRAYS = 8,
    ROOT_SEND = 16,
    ROOT_RECV = 32,
    ROOTED = 64,
    REDUCES = 128
};
static const uint32_t needs[WEFT_COLL_COUNT] = {
    [WEFT_COLL_ALL_REDUCE] = SEND | RECV | REDUCES,
    [WEFT_COLL_ALL_GATHER] = SEND | RECV,
    [WEFT_COLL_REDUCE_SCATTER] = SEND | RECV | REDUCES,
    [WEFT_COLL_ALL_TO_ALL] = SEND | RECV,
    [WEFT_COLL_BROADCAST] = ROOTED | ROOT_SEND | RECV,
    [WEFT_COLL_REDUCE] = ROOTED | SEND | ROOT_RECV | REDUCES,
    [WEFT_COLL_GATHER] = ROOTED | SEND | ROOT_RECV,
    [WEFT_COLL_SCATTER] = ROOTED | ROOT_SEND | RECV,
    [WEFT_COLL_ALL_GATHER_V] = SEND | RECV | RECV_ARRAYS,
    [WEFT_COLL_REDUCE_SCATTER_V] = SEND | RECV | SEND_ARRAYS | REDUCES,
    [WEFT_COLL_ALL_TO_ALL_V] = SEND | RECV | SEND_ARRAYS | RECV_ARRAYS,
    [WEFT_COLL_GATHER_V] = ROOTED | SEND | ROOT_RECV | RECV_ARRAYS,
    [WEFT_COLL_SCATTER_V] = ROOTED | ROOT_SEND | RECV | SEND_ARRAYS,
};

const char *wf_collective_name(uint32_t collective)
{
    if (collective == WF_OP_SEND) return "send";
    if (collective == WF_OP_RECEIVE) return "receive";
    return names[collective];
}

bool wf_collective_reduces(uint32_t collective)
{
    return (needs[collective] & REDUCES) != 0;
}

/* Every collective is one of the plugin's own kernels; NVSHMEM's are not used. */
weft_status wf_comm_support(void *device, const weft_support_query *given, uint32_t *level)
{
    weft_support_query query;
    bool known;

    (void)device;
    wf_read(&query, given, sizeof query);
    known = query.collective == WEFT_COLL_BARRIER ||
            (query.collective < WEFT_COLL_COUNT && query.dtype < WEFT_DTYPE_COUNT &&
             (!wf_collective_reduces(query.collective) ||
              (query.reduction < WEFT_REDUCE_COUNT &&
               wf_reduction_defined(query.reduction, query.dtype))));
    *level = known ? WEFT_SUPPORT_NATIVE : WEFT_SUPPORT_NO;
    return WEFT_OK;
}

/* Guesses between devices that NVLink connects; ranks that share one come out about as fast. */
#define CALL_NS     UINT64_C(8000)
#define PEER_NS     UINT64_C(1000)
#define FS_PER_BYTE UINT64_C(2500)

weft_status wf_comm_cost(void *device, const weft_support_query *given, uint64_t bytes,
                         weft_cost *out)
{
    weft_cost cost = {.struct_size = sizeof cost, .femtoseconds_per_byte = FS_PER_BYTE};
    weft_support_query query;

    (void)device;
    (void)bytes;
    wf_read(&query, given, sizeof query);
    if (query.collective >= WEFT_COLL_COUNT)
        return wf_fail(WEFT_ERR_UNSUPPORTED, "collective %u is unknown", query.collective);
    cost.latency_ns = CALL_NS + PEER_NS * (query.size > 1 ? (uint64_t)query.size - 1 : 0);
    wf_answer(out, &cost, sizeof cost);
    return WEFT_OK;
}

static weft_status check_kind(const struct wf_comm *comm, const struct wf_op *op)
{
    if (op->kind >= WEFT_COLL_COUNT)
        return wf_fail(WEFT_ERR_UNSUPPORTED, "collective %u is unknown", op->kind);
    if (op->kind == WEFT_COLL_BARRIER) return WEFT_OK;
    if (op->bytes == 0) return wf_fail(WEFT_ERR_UNSUPPORTED, "dtype %u is unknown", op->dtype);
    if (wf_collective_reduces(op->kind) &&
        (op->reduction >= WEFT_REDUCE_COUNT || !wf_reduction_defined(op->reduction, op->dtype)))
        return wf_fail(WEFT_ERR_UNSUPPORTED, "%s: reduction %u is not defined on dtype %u",
                       wf_collective_name(op->kind), op->reduction, op->dtype);
    if ((needs[op->kind] & ROOTED) != 0 && (op->root < 0 || op->root >= comm->size))
        return wf_fail(WEFT_ERR_INVALID, "root %d of %s is not one of %d ranks", op->root,
                       wf_collective_name(op->kind), comm->size);
    return WEFT_OK;
}

static bool any(const uint64_t *counts, int32_t size)
{
    for (int32_t r = 0; r < size; r++)
        if (counts[r] > 0) return true;
    return false;
}

/* Has this rank something to send, or to receive? */
static bool sends(const struct wf_comm *comm, const struct wf_op *op)
{
    bool at_root = op->root == comm->rank;

    if ((needs[op->kind] & SEND) == 0 && ((needs[op->kind] & ROOT_SEND) == 0 || !at_root))
        return false;
    if (op->kind == WEFT_COLL_ALL_GATHER_V) return op->recv_counts[comm->rank] > 0;
    if ((needs[op->kind] & SEND_ARRAYS) != 0) return any(op->send_counts, comm->size);
    return op->count > 0;
}

static bool receives(const struct wf_comm *comm, const struct wf_op *op)
{
    bool at_root = op->root == comm->rank;

    if ((needs[op->kind] & RECV) == 0 && ((needs[op->kind] & ROOT_RECV) == 0 || !at_root))
        return false;
    if (op->kind == WEFT_COLL_REDUCE_SCATTER_V) return op->send_counts[comm->rank] > 0;
    if ((needs[op->kind] & RECV_ARRAYS) != 0) return any(op->recv_counts, comm->size);
    return op->count > 0;
}

static weft_status check_arrays(const struct wf_comm *comm, const struct wf_op *op)
{
    bool everywhere = (needs[op->kind] & ROOTED) == 0 || op->root == comm->rank;

    if (everywhere && (needs[op->kind] & SEND_ARRAYS) != 0 &&
        (op->send_counts == NULL || op->send_offsets == NULL))
        return wf_fail(WEFT_ERR_INVALID, "%s needs send_counts and send_offsets",
                       wf_collective_name(op->kind));
    if (everywhere && (needs[op->kind] & RECV_ARRAYS) != 0 &&
        (op->recv_counts == NULL || op->recv_offsets == NULL))
        return wf_fail(WEFT_ERR_INVALID, "%s needs recv_counts and recv_offsets",
                       wf_collective_name(op->kind));
    return WEFT_OK;
}

/* As wf_gpu_usable, without asking the driver about what is our own. */
static weft_status usable(const void *pointer, const char *what)
{
    uint64_t offset;

    return wf_arena_holds(pointer, 1, &offset) ? WEFT_OK : wf_gpu_usable(pointer, what);
}

static weft_status check_memory(const struct wf_comm *comm, const struct wf_op *op)
{
    char what[64];

    if (op->kind == WEFT_COLL_BARRIER) return WEFT_OK;
    if (op->count > INT64_MAX / op->bytes / (uint64_t)comm->size)
        return wf_fail(WEFT_ERR_INVALID, "a count of %llu elements on %d ranks is too large",
                       (unsigned long long)op->count, comm->size);
    if (sends(comm, op)) {
        snprintf(what, sizeof what, "the send buffer of %s", wf_collective_name(op->kind));
        WF_TRY(usable(op->send, what));
    }
    if (receives(comm, op)) {
        snprintf(what, sizeof what, "the receive buffer of %s", wf_collective_name(op->kind));
        WF_TRY(usable(op->recv, what));
    }
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
    WF_TRY(check_kind(comm, op));
    if (op->kind == WEFT_COLL_BARRIER) return WEFT_OK;
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
        WF_TRY(usable(message.buffer,
                      kind == WF_OP_SEND ? "the buffer of a send" : "the buffer of a receive"));
    *op = (struct wf_op){.kind = kind,
                         .dtype = message.dtype,
                         .root = message.peer,
                         .bytes = bytes,
                         .send = message.buffer,
                         .recv = message.buffer,
                         .count = message.count,
                         .stream = wf_native(message.stream)};
    return WEFT_OK;
}
