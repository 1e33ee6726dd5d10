/* shm_move.c - collectives that move data: every rank reads its part out of its peers' memory. */
#include "shm.h"

#include <string.h>

static bool overlap(const void *a, uint64_t a_bytes, const void *b, uint64_t b_bytes)
{
    uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;

    return a_bytes > 0 && b_bytes > 0 && x < y + b_bytes && y < x + a_bytes;
}

static void copy(void *target, uint64_t offset, const void *source, uint64_t bytes)
{
    unsigned char *at = (unsigned char *)target + offset;

    if (bytes > 0 && at != (const unsigned char *)source) memmove(at, source, bytes);
}

/* Part RANK of a buffer that COUNTS and OFFSETS divide, or COUNT elements for each rank. */
static struct wf_shm_span part(const struct wf_shm_op *op, const uint64_t *counts,
                               const uint64_t *offsets, int32_t rank)
{
    struct wf_shm_span span = {.offset = (uint64_t)rank * op->count * op->element,
                               .bytes = op->count * op->element};

    if (counts != NULL)
        span = (struct wf_shm_span){offsets[rank] * op->element, counts[rank] * op->element};
    return span;
}

/* Bytes from the start of a buffer to the end of its last part. */
static uint64_t reach_of(const struct wf_shm_group *group, const struct wf_shm_op *op,
                         const uint64_t *counts, const uint64_t *offsets)
{
    uint64_t end = 0;

    for (int32_t p = 0; p < group->size; p++) {
        struct wf_shm_span span = part(op, counts, offsets, p);

        if (span.bytes > 0 && span.offset + span.bytes > end) end = span.offset + span.bytes;
    }
    return end;
}

/* Done reading; wait until the others are done with our memory. */
static weft_status finish(struct wf_shm_group *group)
{
    wf_shm_done(group);
    return wf_shm_settle(group, -1);
}

weft_status wf_shm_barrier(struct wf_shm_group *group, const struct wf_shm_op *op)
{
    struct wf_shm_call call = wf_shm_call_of(op, group->size);
    struct wf_shm_share share = {0};

    CPU_TRY(wf_shm_begin(group, &call, &share));
    CPU_TRY(wf_shm_meet_all(group));
    return finish(group);
}

weft_status wf_shm_all_gather(struct wf_shm_group *group, const struct wf_shm_op *op)
{
    struct wf_shm_call call = wf_shm_call_of(op, group->size);
    struct wf_shm_span mine = part(op, op->recv_counts, op->recv_offsets, group->rank);
    uint64_t end = reach_of(group, op, op->recv_counts, op->recv_offsets);
    bool in_place = (const unsigned char *)op->recv + mine.offset == op->send;
    struct wf_shm_share share = {.send = op->send,
                                 .send_bytes = mine.bytes,
                                 .copy_send =
                                     !in_place && overlap(op->send, mine.bytes, op->recv, end)};

    CPU_TRY(wf_shm_begin(group, &call, &share));
    for (int32_t i = 0; i < group->size; i++) {
        int32_t p = (group->rank + i) % group->size;
        struct wf_shm_span span = part(op, op->recv_counts, op->recv_offsets, p);

        CPU_TRY(wf_shm_meet(group, p));
        if (p == group->rank && in_place) continue;
        copy(op->recv, span.offset, wf_shm_sent(group, p), span.bytes);
    }
    return finish(group);
}

/* Where in a buffer each rank's part lies, to be told to all. */
static const struct wf_shm_span *spans_of(struct wf_shm_group *group, const struct wf_shm_op *op,
                                          const uint64_t *counts, const uint64_t *offsets)
{
    for (int32_t p = 0; p < group->size; p++)
        group->spans[p] = part(op, counts, offsets, p);
    return group->spans;
}

weft_status wf_shm_all_to_all(struct wf_shm_group *group, const struct wf_shm_op *op)
{
    struct wf_shm_call call = wf_shm_call_of(op, group->size);
    uint64_t send_end = reach_of(group, op, op->send_counts, op->send_offsets);
    uint64_t recv_end = reach_of(group, op, op->recv_counts, op->recv_offsets);
    struct wf_shm_share share = {.send = op->send,
                                 .send_bytes = send_end,
                                 .spans = spans_of(group, op, op->send_counts, op->send_offsets),
                                 .copy_send = overlap(op->send, send_end, op->recv, recv_end)};

    CPU_TRY(wf_shm_begin(group, &call, &share));
    for (int32_t i = 0; i < group->size; i++) {
        int32_t p = (group->rank + i) % group->size;
        struct wf_shm_span from, to = part(op, op->recv_counts, op->recv_offsets, p);

        CPU_TRY(wf_shm_meet(group, p));
        from = wf_shm_spans(group, p)[group->rank];
        CPU_TRY(wf_shm_check_bytes(group, p, from.bytes, group->rank, to.bytes));
        copy(op->recv, to.offset, (const unsigned char *)wf_shm_sent(group, p) + from.offset,
             to.bytes);
    }
    return finish(group);
}

weft_status wf_shm_broadcast(struct wf_shm_group *group, const struct wf_shm_op *op)
{
    struct wf_shm_call call = wf_shm_call_of(op, group->size);
    uint64_t bytes = op->count * op->element;
    bool root = group->rank == op->root;
    struct wf_shm_share share = {.send = op->send, .send_bytes = root ? bytes : 0};

    share.copy_send = root && op->send != op->recv && overlap(op->send, bytes, op->recv, bytes);
    CPU_TRY(wf_shm_begin(group, &call, &share));
    CPU_TRY(wf_shm_meet(group, op->root));
    copy(op->recv, 0, root && !share.copy_send ? op->send : wf_shm_sent(group, op->root), bytes);
    return finish(group);
}

weft_status wf_shm_gather(struct wf_shm_group *group, const struct wf_shm_op *op)
{
    struct wf_shm_call call = wf_shm_call_of(op, group->size);
    bool root = group->rank == op->root;
    uint64_t bytes = op->count * op->element, end;
    struct wf_shm_share share = {.send = op->send, .send_bytes = bytes};

    if (root) {
        struct wf_shm_span mine = part(op, op->recv_counts, op->recv_offsets, group->rank);
        end = reach_of(group, op, op->recv_counts, op->recv_offsets);
        share.copy_send = (const unsigned char *)op->recv + mine.offset != op->send &&
                          overlap(op->send, bytes, op->recv, end);
    }
    CPU_TRY(wf_shm_begin(group, &call, &share));
    for (int32_t i = 0; root && i < group->size; i++) {
        int32_t p = (group->rank + i) % group->size;
        struct wf_shm_span span = part(op, op->recv_counts, op->recv_offsets, p);

        CPU_TRY(wf_shm_meet(group, p));
        CPU_TRY(
            wf_shm_check_bytes(group, p, wf_shm_slot(group, p)->bytes, group->rank, span.bytes));
        copy(op->recv, span.offset, wf_shm_sent(group, p), span.bytes);
    }
    if (!root) CPU_TRY(wf_shm_meet(group, op->root));
    wf_shm_done(group);
    return wf_shm_settle(group, op->root);
}

weft_status wf_shm_scatter(struct wf_shm_group *group, const struct wf_shm_op *op)
{
    struct wf_shm_call call = wf_shm_call_of(op, group->size);
    bool root = group->rank == op->root;
    uint64_t bytes = op->count * op->element;
    struct wf_shm_share share = {0};
    struct wf_shm_span from;

    if (root) {
        struct wf_shm_span mine = part(op, op->send_counts, op->send_offsets, group->rank);

        share.send = op->send;
        share.send_bytes = reach_of(group, op, op->send_counts, op->send_offsets);
        share.spans = spans_of(group, op, op->send_counts, op->send_offsets);
        share.copy_send = (const unsigned char *)op->send + mine.offset != op->recv &&
                          overlap(op->send, share.send_bytes, op->recv, bytes);
    }
    CPU_TRY(wf_shm_begin(group, &call, &share));
    CPU_TRY(wf_shm_meet(group, op->root));
    from = wf_shm_spans(group, op->root)[group->rank];
    CPU_TRY(wf_shm_check_bytes(group, op->root, from.bytes, group->rank, bytes));
    copy(op->recv, 0, (const unsigned char *)wf_shm_sent(group, op->root) + from.offset, bytes);
    return finish(group);
}
