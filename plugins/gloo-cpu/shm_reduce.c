/* shm_reduce.c - collectives that combine data.
 *
 * Small all-reduces are done whole by every rank.  Large ones are cut into a slice for each rank,
 * which reads it from all the others and writes the result into everybody's memory.  Buffers are
 * always combined in rank order, so all ranks get the same bits, every time. */
#include "shm.h"

#include "reduce.h"

#include <string.h>

#define PIECE_BYTES (UINT64_C(64) << 10) /* reduced at once, then copied while in the cache */

static void find_sources(struct wf_shm_group *group)
{
    for (int32_t p = 0; p < group->size; p++) {
        group->sources[p] = wf_shm_sent(group, p);
        group->scales[p] = wf_shm_slot(group, p)->scale;
    }
}

static void reduce_range(struct wf_shm_group *group, const struct wf_shm_op *op, uint64_t first,
                         uint64_t count, void *target)
{
    struct wf_cpu_reducer reducer = {.dtype = op->dtype,
                                     .reduction = op->reduction,
                                     .size = (uint32_t)group->size,
                                     .parts = op->parts,
                                     .scales = group->scales};

    for (int32_t p = 0; p < group->size; p++)
        group->starts[p] = (const unsigned char *)group->sources[p] + first * op->element;
    wf_cpu_reduce(wf_cpu_kernels(), &reducer, group->starts, target, count);
}

static const void *scale_of(const struct wf_shm_op *op)
{
    return op->reduction == WEFT_REDUCE_PREMUL_SUM ? op->scale : NULL;
}

static weft_status all_reduce_small(struct wf_shm_group *group, const struct wf_shm_op *op)
{
    struct wf_shm_call call = wf_shm_call_of(op, group->size);
    struct wf_shm_share share = {
        .send = op->send, .send_bytes = op->count * op->element, .scale = scale_of(op)};

    CPU_TRY(wf_shm_begin(group, &call, &share));
    CPU_TRY(wf_shm_meet_all(group));
    find_sources(group);
    reduce_range(group, op, 0, op->count, op->recv);
    wf_shm_done(group);
    return WEFT_OK;
}

/* Elements [first, last) of COUNT that rank works on; boundaries lie on cache lines. */
static void slice(const struct wf_shm_group *group, const struct wf_shm_op *op, uint64_t *first,
                  uint64_t *last)
{
    uint64_t line = 256 / op->element, size = (uint64_t)group->size;
    uint64_t lines = (op->count + line - 1) / line;
    uint64_t rank = (uint64_t)group->rank;

    *first = lines * rank / size * line;
    *last = lines * (rank + 1) / size * line;
    if (*first > op->count) *first = op->count;
    if (*last > op->count) *last = op->count;
}

/* Reduce this rank's slice and write it to ROOT, or to every rank when ROOT is -1. */
static void push_slice(struct wf_shm_group *group, const struct wf_shm_op *op, int32_t root)
{
    uint64_t first, last, piece = PIECE_BYTES / op->element;
    int32_t home = root < 0 ? group->rank : root;
    unsigned char *base = wf_shm_target(group, home);

    find_sources(group);
    slice(group, op, &first, &last);
    for (; first < last; first += piece) {
        uint64_t count = last - first < piece ? last - first : piece;
        uint64_t offset = first * op->element;

        reduce_range(group, op, first, count, base + offset);
        for (int32_t p = 0; root < 0 && p < group->size; p++)
            if (p != home)
                memcpy((unsigned char *)wf_shm_target(group, p) + offset, base + offset,
                       count * op->element);
    }
}

static weft_status reduce_slices(struct wf_shm_group *group, const struct wf_shm_op *op,
                                 int32_t root)
{
    struct wf_shm_call call = wf_shm_call_of(op, group->size);
    uint64_t bytes = op->count * op->element;
    bool receives = root < 0 || root == group->rank;
    struct wf_shm_share share = {.send = op->send,
                                 .send_bytes = bytes,
                                 .recv = receives ? op->recv : NULL,
                                 .recv_bytes = bytes,
                                 .scale = scale_of(op)};

    CPU_TRY(wf_shm_begin(group, &call, &share));
    CPU_TRY(wf_shm_meet_all(group));
    push_slice(group, op, root);
    wf_shm_done(group);
    CPU_TRY(wf_shm_settle(group, -1));
    if (receives && group->target != op->recv) memcpy(op->recv, group->target, bytes);
    return WEFT_OK;
}

weft_status wf_shm_all_reduce(struct wf_shm_group *group, const struct wf_shm_op *op)
{
    if (op->count * op->element <= SHM_INLINE) return all_reduce_small(group, op);
    return reduce_slices(group, op, -1);
}

static weft_status reduce_small(struct wf_shm_group *group, const struct wf_shm_op *op)
{
    struct wf_shm_call call = wf_shm_call_of(op, group->size);
    struct wf_shm_share share = {
        .send = op->send, .send_bytes = op->count * op->element, .scale = scale_of(op)};

    CPU_TRY(wf_shm_begin(group, &call, &share));
    if (group->rank == op->root) {
        CPU_TRY(wf_shm_meet_all(group));
        find_sources(group);
        reduce_range(group, op, 0, op->count, op->recv);
    } else {
        CPU_TRY(wf_shm_meet(group, op->root));
    }
    wf_shm_done(group);
    return WEFT_OK;
}

weft_status wf_shm_reduce(struct wf_shm_group *group, const struct wf_shm_op *op)
{
    if (op->count * op->element <= SHM_INLINE) return reduce_small(group, op);
    return reduce_slices(group, op, op->root);
}

weft_status wf_shm_reduce_scatter(struct wf_shm_group *group, const struct wf_shm_op *op)
{
    struct wf_shm_call call = wf_shm_call_of(op, group->size);
    bool per_rank = op->send_counts != NULL;
    uint64_t count = per_rank ? op->send_counts[group->rank] : op->count, end = 0;
    struct wf_shm_share share = {.send = op->send, .spans = group->spans, .scale = scale_of(op)};
    const unsigned char *own;

    for (int32_t p = 0; p < group->size; p++) {
        struct wf_shm_span *span = &group->spans[p];

        span->offset = (per_rank ? op->send_offsets[p] : (uint64_t)p * op->count) * op->element;
        span->bytes = (per_rank ? op->send_counts[p] : op->count) * op->element;
        if (span->bytes > 0 && span->offset + span->bytes > end) end = span->offset + span->bytes;
    }
    own = (const unsigned char *)op->send + group->spans[group->rank].offset;
    share.send_bytes = end;
    share.copy_send = own != op->recv &&
                      (uintptr_t)op->send < (uintptr_t)op->recv + count * op->element &&
                      (uintptr_t)op->recv < (uintptr_t)op->send + end;
    CPU_TRY(wf_shm_begin(group, &call, &share));
    CPU_TRY(wf_shm_meet_all(group));
    find_sources(group);
    for (int32_t p = 0; p < group->size; p++)
        group->sources[p] =
            (const unsigned char *)group->sources[p] + wf_shm_spans(group, p)[group->rank].offset;
    reduce_range(group, op, 0, count, op->recv);
    wf_shm_done(group);
    return wf_shm_settle(group, -1);
}
