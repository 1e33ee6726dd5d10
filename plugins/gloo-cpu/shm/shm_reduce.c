/* shm_reduce.c - collectives that combine data.
 *
 * Small all-reduces are done whole by every rank.  Large ones are cut into a slice for each rank,
 * which reads it from all the others and writes the result into everybody's memory.  Buffers are
 * always combined in rank order, so all ranks get the same bits, every time. */
#include "shm.h"

#include "kernel/cpu_level.h"

#include <string.h>

#define PIECE_BYTES (UINT64_C(64) << 10) /* reduced at once, then copied while in the cache */

static void find_sources(struct cpu_shm_group *group)
{
    for (int32_t p = 0; p < group->size; p++) {
        group->sources[p] = cpu_shm_sent(group, p);
        group->scales[p] = cpu_shm_slot(group, p)->scale;
    }
}

static void reduce_range(struct cpu_shm_group *group, const struct cpu_shm_op *op, uint64_t first,
                         uint64_t count, void *target)
{
    struct cpu_reducer reducer = {.dtype = op->dtype,
                                  .reduction = op->reduction,
                                  .size = (uint32_t)group->size,
                                  .parts = op->parts,
                                  .wide = op->wide,
                                  .scales = group->scales};

    for (int32_t p = 0; p < group->size; p++)
        group->starts[p] = (const unsigned char *)group->sources[p] + first * op->element;
    cpu_reduce(cpu_kernels(), &reducer, group->starts, target, count);
}

/* The same where the sources are those of all ranks, which were met. */
static weft_status reduce_met(struct cpu_shm_group *group, const struct cpu_shm_op *op,
                              uint64_t first, uint64_t count, void *target)
{
    PLUG_TRY(cpu_shm_enter(group, -1));
    reduce_range(group, op, first, count, target);
    cpu_shm_leave(group, -1);
    return WEFT_OK;
}

/* Bytes of one element of the result. */
static size_t result_bytes(const struct cpu_shm_op *op)
{
    return op->wide ? sizeof(cpu_wide) : op->element;
}

static const void *scale_of(const struct cpu_shm_op *op)
{
    return op->reduction == WEFT_REDUCE_PREMUL_SUM ? op->scale : NULL;
}

static weft_status all_reduce_small(struct cpu_shm_group *group, const struct cpu_shm_op *op)
{
    struct cpu_shm_call call = cpu_shm_call_of(op, group->size);
    struct cpu_shm_share share = {
        .send = op->send, .send_bytes = op->count * op->element, .scale = scale_of(op)};

    PLUG_TRY(cpu_shm_begin(group, &call, &share));
    PLUG_TRY(cpu_shm_wait_peers(group));
    find_sources(group);
    reduce_range(group, op, 0, op->count, op->recv);
    cpu_shm_done(group);
    return WEFT_OK;
}

/* ---- slices: one for each rank ---- */

/* Elements [*FIRST, *LAST) of COUNT that RANK works on; boundaries lie on cache lines. */
static void slice(const struct cpu_shm_group *group, const struct cpu_shm_op *op, int32_t rank,
                  uint64_t count, uint64_t *first, uint64_t *last)
{
    uint64_t line = 256 / op->element, size = (uint64_t)group->size;
    uint64_t lines = (count + line - 1) / line;

    *first = lines * (uint64_t)rank / size * line;
    *last = lines * ((uint64_t)rank + 1) / size * line;
    if (*first > count) *first = count;
    if (*last > count) *last = count;
}

/* Reduce this rank's slice and write it to ROOT, or to every rank when ROOT is -1. */
static weft_status push_slice(struct cpu_shm_group *group, const struct cpu_shm_op *op,
                              int32_t root)
{
    uint64_t first, last, piece = PIECE_BYTES / op->element;
    int32_t home = root < 0 ? group->rank : root;
    unsigned char *base = cpu_shm_target(group, home);

    find_sources(group);
    slice(group, op, group->rank, op->count, &first, &last);
    PLUG_TRY(cpu_shm_enter(group, -1));
    for (; first < last; first += piece) {
        uint64_t count = last - first < piece ? last - first : piece;
        uint64_t offset = first * result_bytes(op);

        reduce_range(group, op, first, count, base + offset);
        for (int32_t p = 0; root < 0 && p < group->size; p++)
            if (p != home)
                memcpy((unsigned char *)cpu_shm_target(group, p) + offset, base + offset,
                       count * result_bytes(op));
    }
    cpu_shm_leave(group, -1);
    return WEFT_OK;
}

/* True if every rank can reach all sources and targets. */
static bool all_reachable(const struct cpu_shm_group *group, int32_t root)
{
    for (int32_t p = 0; p < group->size; p++) {
        const struct cpu_shm_slot *slot = cpu_shm_slot(group, p);

        if (!cpu_shm_address_reachable(group, &slot->at.send)) return false;
        if ((root < 0 || root == p) && !cpu_shm_address_reachable(group, &slot->at.recv))
            return false;
    }
    return true;
}

/* ---- private memory: pieces of it go up, and pieces of the result ---- */

/* Pointers to elements from FIRST on of what everybody sends, in group->sources. */
static weft_status find_pieces(struct cpu_shm_group *group, const struct cpu_shm_op *op,
                               uint64_t first, uint64_t index)
{
    for (int32_t p = 0; p < group->size; p++) {
        const unsigned char *data;

        group->scales[p] = cpu_shm_slot(group, p)->scale;
        if (p == group->rank) {
            data = (const unsigned char *)op->send + first * op->element;
        } else if (cpu_shm_is_in_pieces(group, p)) {
            PLUG_TRY(cpu_shm_piece(group, p, index, false, &data));
        } else {
            data = (const unsigned char *)cpu_shm_sent(group, p) + first * op->element;
        }
        group->sources[p] = data;
    }
    return WEFT_OK;
}

/* COUNT elements from FIRST on.  Our piece of what is sent has an even number and is up already;
 * our slice of the result becomes the next, odd one. */
static weft_status all_reduce_piece(struct cpu_shm_group *group, const struct cpu_shm_op *op,
                                    uint64_t first, uint64_t count, uint64_t index)
{
    unsigned char *target = (unsigned char *)op->recv + first * op->element, *room = NULL;
    uint64_t low, high;

    PLUG_TRY(find_pieces(group, op, first, index));
    slice(group, op, group->rank, count, &low, &high);
    PLUG_TRY(cpu_shm_stage_room(group, index + 1, -1, &room));
    PLUG_TRY(reduce_met(group, op, low, high - low, room));
    cpu_shm_stage_put_up(group, index + 1, -1);
    cpu_shm_drained(group, index);
    for (int32_t i = 0; i < group->size; i++) {
        int32_t p = (group->rank + i) % group->size;
        const unsigned char *result = room;

        if (p != group->rank) PLUG_TRY(cpu_shm_piece(group, p, index + 1, false, &result));
        slice(group, op, p, count, &low, &high);
        memcpy(target + low * op->element, result, (high - low) * op->element);
    }
    cpu_shm_drained(group, index + 1);
    return WEFT_OK;
}

static weft_status put_up(struct cpu_shm_group *group, const void *data, uint64_t bytes,
                          uint64_t index)
{
    unsigned char *room = NULL;

    PLUG_TRY(cpu_shm_stage_room(group, index, -1, &room));
    memcpy(room, data, bytes);
    cpu_shm_stage_put_up(group, index, -1);
    return WEFT_OK;
}

static weft_status all_reduce_in_pieces(struct cpu_shm_group *group, const struct cpu_shm_op *op)
{
    uint64_t most = cpu_shm_piece_bytes(group, false) / op->element, index = 0;
    bool own = cpu_shm_is_in_pieces(group, group->rank);

    group->in_pieces = true;
    for (uint64_t first = 0, count; first < op->count; first += count, index += 2) {
        count = op->count - first < most ? op->count - first : most;
        if (own && index > 0)
            PLUG_TRY(put_up(group, (const unsigned char *)op->send + first * op->element,
                            count * op->element, index));
        PLUG_TRY(all_reduce_piece(group, op, first, count, index));
    }
    return WEFT_OK;
}

static weft_status reduce_slices(struct cpu_shm_group *group, const struct cpu_shm_op *op)
{
    struct cpu_shm_call call = cpu_shm_call_of(op, group->size);
    struct cpu_shm_share share = {.send = op->send,
                                  .send_bytes = op->count * op->element,
                                  .recv = op->recv,
                                  .scale = scale_of(op),
                                  .reader = -1};

    PLUG_TRY(cpu_shm_begin(group, &call, &share));
    PLUG_TRY(cpu_shm_wait_peers(group));
    if (all_reachable(group, -1))
        PLUG_TRY(push_slice(group, op, -1));
    else
        PLUG_TRY(all_reduce_in_pieces(group, op));
    PLUG_TRY(cpu_shm_confirm(group, -1));
    cpu_shm_done(group);
    return cpu_shm_settle(group, -1);
}

weft_status cpu_shm_all_reduce(struct cpu_shm_group *group, const struct cpu_shm_op *op)
{
    if (op->count * op->element <= SHM_INLINE) return all_reduce_small(group, op);
    return reduce_slices(group, op);
}

/* ---- reduce ---- */

/* The root reduces all by itself, piece by piece. */
static weft_status reduce_at_root(struct cpu_shm_group *group, const struct cpu_shm_op *op,
                                  const struct cpu_shm_share *share)
{
    uint64_t most = group->in_pieces ? cpu_shm_piece_bytes(group, false) / op->element : op->count;
    uint64_t own = cpu_shm_piece_count(group, share), index = 0;

    if (group->rank != op->root) {
        for (uint64_t i = 1; i < own; i++)
            PLUG_TRY(cpu_shm_fill(group, share, i));
        return WEFT_OK;
    }
    for (uint64_t first = 0, count; first < op->count; first += count, index++) {
        count = op->count - first < most ? op->count - first : most;
        PLUG_TRY(find_pieces(group, op, first, index));
        PLUG_TRY(
            reduce_met(group, op, 0, count, (unsigned char *)op->recv + first * result_bytes(op)));
        if (group->in_pieces) cpu_shm_drained(group, index);
    }
    return WEFT_OK;
}

weft_status cpu_shm_reduce(struct cpu_shm_group *group, const struct cpu_shm_op *op)
{
    struct cpu_shm_call call = cpu_shm_call_of(op, group->size);
    bool root = group->rank == op->root, large = op->count * op->element > SHM_INLINE;
    struct cpu_shm_share share = {.send = op->send,
                                  .send_bytes = op->count * op->element,
                                  .recv = root && large ? op->recv : NULL,
                                  .scale = scale_of(op),
                                  .reader = op->root};
    bool together = false;

    PLUG_TRY(cpu_shm_begin(group, &call, &share));
    PLUG_TRY(cpu_shm_wait_peers(group));
    if (large) together = all_reachable(group, op->root);
    if (together)
        PLUG_TRY(push_slice(group, op, op->root));
    else
        PLUG_TRY(reduce_at_root(group, op, &share));
    if (together || root) PLUG_TRY(cpu_shm_confirm(group, -1));
    cpu_shm_done(group);
    return cpu_shm_settle(group, -1);
}

/* ---- reduce_scatter ---- */

static void find_spans(struct cpu_shm_group *group, const struct cpu_shm_op *op, uint64_t *end)
{
    bool per_rank = op->send_counts != NULL;

    *end = 0;
    for (int32_t p = 0; p < group->size; p++) {
        struct cpu_shm_span *span = &group->spans[p];

        span->offset = (per_rank ? op->send_offsets[p] : (uint64_t)p * op->count) * op->element;
        span->bytes = (per_rank ? op->send_counts[p] : op->count) * op->element;
        if (span->bytes > 0 && span->offset + span->bytes > *end) *end = span->offset + span->bytes;
    }
}

/* As find_pieces, but of the part that is for this rank. */
static weft_status find_parts(struct cpu_shm_group *group, const struct cpu_shm_op *op,
                              uint64_t offset, uint64_t index)
{
    for (int32_t p = 0; p < group->size; p++) {
        const struct cpu_shm_span *span = &cpu_shm_spans(group, p)[group->rank];
        const unsigned char *data = p == group->rank ? op->send : cpu_shm_sent(group, p);

        group->scales[p] = cpu_shm_slot(group, p)->scale;
        if (p != group->rank && cpu_shm_is_in_pieces(group, p))
            PLUG_TRY(cpu_shm_piece(group, p, index, true, &data));
        else
            data += span->offset + offset;
        group->sources[p] = data;
    }
    return WEFT_OK;
}

static weft_status reduce_part(struct cpu_shm_group *group, const struct cpu_shm_op *op,
                               const struct cpu_shm_share *share)
{
    uint64_t bytes = group->spans[group->rank].bytes, own = cpu_shm_piece_count(group, share);
    uint64_t piece = group->in_pieces ? cpu_shm_piece_bytes(group, true) : bytes;

    for (uint64_t index = 0; index * piece < bytes || index < own; index++) {
        uint64_t offset = index * piece;

        if (index > 0 && index < own) PLUG_TRY(cpu_shm_fill(group, share, index));
        if (offset < bytes) {
            uint64_t now = bytes - offset < piece ? bytes - offset : piece;

            PLUG_TRY(find_parts(group, op, offset, index));
            PLUG_TRY(
                reduce_met(group, op, 0, now / op->element, (unsigned char *)op->recv + offset));
        }
        if (group->in_pieces) cpu_shm_drained(group, index);
    }
    return WEFT_OK;
}

weft_status cpu_shm_reduce_scatter(struct cpu_shm_group *group, const struct cpu_shm_op *op)
{
    struct cpu_shm_call call = cpu_shm_call_of(op, group->size);
    struct cpu_shm_share share = {
        .send = op->send, .spans = group->spans, .scale = scale_of(op), .reader = -1};
    const struct cpu_shm_span *mine = &group->spans[group->rank];
    const unsigned char *own;

    find_spans(group, op, &share.send_bytes);
    own = (const unsigned char *)op->send + mine->offset;
    share.in_pieces = own != op->recv && (uintptr_t)op->send < (uintptr_t)op->recv + mine->bytes &&
                      (uintptr_t)op->recv < (uintptr_t)op->send + share.send_bytes;
    PLUG_TRY(cpu_shm_begin(group, &call, &share));
    PLUG_TRY(cpu_shm_wait_peers(group));
    PLUG_TRY(reduce_part(group, op, &share));
    PLUG_TRY(cpu_shm_confirm(group, -1));
    cpu_shm_done(group);
    return cpu_shm_settle(group, -1);
}
