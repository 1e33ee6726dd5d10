/* ccl_reduce.c - reductions that the library does not have.
 *
 * By keys: minimum and maximum of f32 and f64 are reduced as integers of the same order, in which
 * NaN wins.  By exchange: each rank receives one part of every rank's data in messages and reduces
 * it with a kernel, in rank order.  All-reduce and reduce then broadcast the parts.  For premul_sum
 * each rank multiplies its data first. */
#include "ccl.h"
#include "kernel_args.h"

/* BUFFER + BYTES.  BUFFER may be NULL if it is not accessed. */
static char *plus(const void *buffer, uint64_t bytes)
{
    return (char *)((uintptr_t)buffer + bytes);
}

/* ---- keys ---- */

static weft_status to_keys(struct gpu_comm *comm, const struct gpu_op *op, uint64_t count,
                           const void *from, void *to)
{
    uint32_t flags = op->reduction == WEFT_REDUCE_MIN ? WK_KEY_MIN : 0;

    return gpu_keys(comm->device, op->dtype, flags, count, from, to, op->stream);
}

static weft_status from_keys(struct gpu_comm *comm, const struct gpu_op *op, uint64_t count)
{
    uint32_t flags = WK_KEY_BACK | (op->reduction == WEFT_REDUCE_MIN ? WK_KEY_MIN : 0);

    return gpu_keys(comm->device, op->dtype, flags, count, op->recv, op->recv, op->stream);
}

/* Reduce the shares of reduce_scatter_v, as keys, one after the other. */
static weft_status scatter_keys(struct gpu_comm *comm, struct ccl_task *task, ccl_result *result)
{
    const struct gpu_op *op = &task->op;
    uint64_t total = 0, first = 0;

    for (int32_t r = 0; r < comm->size; r++)
        total += op->send_counts[r];
    if (total == 0) return WEFT_OK;
    PLUG_TRY(gpu_borrow(comm->device, total * op->bytes, op->stream, &task->scratch));
    for (int32_t r = 0; r < comm->size && *result == CCL_SUCCESS; r++) {
        char *keys = plus(task->scratch, first * op->bytes);
        if (op->send_counts[r] == 0) continue;
        PLUG_TRY(to_keys(comm, op, op->send_counts[r],
                         plus(op->send, op->send_offsets[r] * op->bytes), keys));
        *result = ccl_api.ncclReduce(keys, r == comm->rank ? op->recv : NULL, op->send_counts[r],
                                     task->way.dtype, task->way.op, r, comm->work, op->stream);
        first += op->send_counts[r];
    }
    return WEFT_OK;
}

static weft_status reduce_keys(struct gpu_comm *comm, struct ccl_task *task, ccl_result *result)
{
    const struct gpu_op *op = &task->op;
    bool in_recv = op->kind == WEFT_COLL_ALL_REDUCE ||
                   (op->kind == WEFT_COLL_REDUCE && op->root == comm->rank);
    uint64_t count = op->count;
    void *keys = op->recv;

    if (op->count == 0) return WEFT_OK;
    if (op->kind == WEFT_COLL_REDUCE_SCATTER) count *= (uint64_t)comm->size;
    if (!in_recv) {
        PLUG_TRY(gpu_borrow(comm->device, count * op->bytes, op->stream, &task->scratch));
        keys = task->scratch;
    }
    PLUG_TRY(to_keys(comm, op, count, op->send, keys));
    if (op->kind == WEFT_COLL_ALL_REDUCE)
        *result = ccl_api.ncclAllReduce(keys, op->recv, count, task->way.dtype, task->way.op,
                                        comm->work, op->stream);
    else if (op->kind == WEFT_COLL_REDUCE)
        *result = ccl_api.ncclReduce(keys, op->recv, count, task->way.dtype, task->way.op, op->root,
                                     comm->work, op->stream);
    else
        *result = ccl_api.ncclReduceScatter(keys, op->recv, op->count, task->way.dtype,
                                            task->way.op, comm->work, op->stream);
    return WEFT_OK;
}

weft_status ccl_issue_keys(struct gpu_comm *comm, struct ccl_task *task, int stage,
                           ccl_result *result)
{
    const struct gpu_op *op = &task->op;

    if (stage == 0) {
        if (op->kind == WEFT_COLL_REDUCE_SCATTER_V) return scatter_keys(comm, task, result);
        return reduce_keys(comm, task, result);
    }
    if (op->kind == WEFT_COLL_REDUCE && op->root != comm->rank) return WEFT_OK;
    if (op->kind == WEFT_COLL_REDUCE_SCATTER_V)
        return from_keys(comm, op, op->send_counts[comm->rank]);
    return from_keys(comm, op, op->count);
}

/* ---- exchange ---- */

/* The elements of SEND that rank R reduces. */
struct part {
    uint64_t first, count;
};

/* Number of elements of every part but the last: whole 16-byte words. */
static uint64_t part_length(const struct gpu_comm *comm, const struct gpu_op *op)
{
    uint64_t size = (uint64_t)comm->size, word = 16 / op->bytes;
    uint64_t each = op->count / size + (op->count % size != 0);

    return (each + word - 1) / word * word;
}

static struct part part_of(const struct gpu_comm *comm, const struct gpu_op *op, int32_t r)
{
    struct part part;
    uint64_t each;

    if (op->kind == WEFT_COLL_REDUCE_SCATTER_V)
        return (struct part){op->send_offsets[r], op->send_counts[r]};
    if (op->kind == WEFT_COLL_REDUCE_SCATTER)
        return (struct part){(uint64_t)r * op->count, op->count};
    each = part_length(comm, op);
    part.first = (uint64_t)r * each < op->count ? (uint64_t)r * each : op->count;
    part.count = op->count - part.first < each ? op->count - part.first : each;
    return part;
}

static bool has_whole_result(const struct gpu_op *op)
{
    return op->kind == WEFT_COLL_ALL_REDUCE || op->kind == WEFT_COLL_REDUCE;
}

/* Number of elements of SEND up to the end of the last part. */
static uint64_t parts_end(const struct gpu_comm *comm, const struct gpu_op *op)
{
    uint64_t end = 0;

    for (int32_t r = 0; r < comm->size; r++) {
        struct part part = part_of(comm, op, r);
        if (part.count > 0 && part.first + part.count > end) end = part.first + part.count;
    }
    return end;
}

/* Scratch: every rank's version of this rank's part, each aligned to 16 bytes; then, on non-root
 * ranks of a reduce, the whole result; then, for premul_sum, SEND times this rank's factor. */
static uint64_t slot_bytes(const struct gpu_op *op, uint64_t count)
{
    return (count * op->bytes + 15) / 16 * 16;
}

static void *result_at(const struct gpu_comm *comm, const struct ccl_task *task)
{
    const struct gpu_op *op = &task->op;
    struct part mine = part_of(comm, op, comm->rank);

    if (op->kind != WEFT_COLL_REDUCE || op->root == comm->rank) return op->recv;
    return plus(task->scratch, (uint64_t)comm->size * slot_bytes(op, mine.count));
}

/* Allocate the scratch.  *SEND receives this rank's input of the reduction. */
static weft_status prepare(struct gpu_comm *comm, struct ccl_task *task, const void **send)
{
    const struct gpu_op *op = &task->op;
    uint64_t total = slot_bytes(op, part_of(comm, op, comm->rank).count) * (uint64_t)comm->size;
    uint64_t scaled = gpu_op_scales(op) ? parts_end(comm, op) : 0, at;

    if (op->kind == WEFT_COLL_REDUCE && op->root != comm->rank) total += slot_bytes(op, op->count);
    at = total;
    total += slot_bytes(op, scaled);
    if (total > 0) PLUG_TRY(gpu_borrow(comm->device, total, op->stream, &task->scratch));
    *send = op->send;
    if (scaled == 0) return WEFT_OK;
    *send = plus(task->scratch, at);
    return gpu_scale_elements(comm->device, op->dtype, scaled, op->scale, op->send,
                              plus(task->scratch, at), op->stream);
}

static weft_status exchange_parts(struct gpu_comm *comm, struct ccl_task *task, ccl_result *result)
{
    const struct gpu_op *op = &task->op;
    struct part mine = part_of(comm, op, comm->rank);
    uint64_t slot = slot_bytes(op, mine.count);
    const void *send;

    PLUG_TRY(prepare(comm, task, &send));
    if (mine.count > 0)
        PLUG_TRY(gpu_check(gpu_vendor_copy(plus(task->scratch, slot * (uint64_t)comm->rank),
                                           plus(send, mine.first * op->bytes),
                                           mine.count * op->bytes, op->stream),
                           "copying a rank's own part"));
    for (int32_t r = 0; r < comm->size && *result == CCL_SUCCESS; r++) {
        struct part part = part_of(comm, op, r);
        if (r == comm->rank) continue;
        if (part.count > 0)
            *result = ccl_api.ncclSend(plus(send, part.first * op->bytes), part.count * op->bytes,
                                       CCL_U8, r, comm->work, op->stream);
        if (mine.count > 0 && *result == CCL_SUCCESS)
            *result = ccl_api.ncclRecv(plus(task->scratch, slot * (uint64_t)r),
                                       mine.count * op->bytes, CCL_U8, r, comm->work, op->stream);
    }
    return WEFT_OK;
}

static weft_status reduce_part(struct gpu_comm *comm, struct ccl_task *task)
{
    const struct gpu_op *op = &task->op;
    struct part mine = part_of(comm, op, comm->rank);
    char *whole = result_at(comm, task);
    struct gpu_strided job = {.dtype = op->dtype,
                              .reduction = gpu_op_scales(op) ? WEFT_REDUCE_SUM : op->reduction,
                              .size = (uint32_t)comm->size,
                              .divisor = op->divisor,
                              .count = mine.count,
                              .stride = slot_bytes(op, mine.count),
                              .base = task->scratch,
                              .target = whole};

    if (has_whole_result(op)) job.target = plus(whole, mine.first * op->bytes);
    return gpu_reduce_strided(comm->device, &job, op->stream);
}

static ccl_result broadcast_parts(struct gpu_comm *comm, const struct ccl_task *task)
{
    const struct gpu_op *op = &task->op;
    char *whole = result_at(comm, task);
    ccl_result result = CCL_SUCCESS;

    for (int32_t r = 0; r < comm->size && result == CCL_SUCCESS; r++) {
        struct part part = part_of(comm, op, r);
        char *bytes = plus(whole, part.first * op->bytes);
        if (part.count > 0)
            result = ccl_api.ncclBroadcast(bytes, bytes, part.count * op->bytes, CCL_U8, r,
                                           comm->work, op->stream);
    }
    return result;
}

weft_status ccl_issue_exchange(struct gpu_comm *comm, struct ccl_task *task, int stage,
                               ccl_result *result)
{
    if (stage == 0) return exchange_parts(comm, task, result);
    PLUG_TRY(reduce_part(comm, task));
    if (has_whole_result(&task->op)) *result = broadcast_parts(comm, task);
    return WEFT_OK;
}
