/* shm_move.c - collectives that move data: every rank reads its part out of its peers' memory. */
#include "shm.h"

#include <string.h>

#define SPLIT_BYTES (UINT64_C(128) << 10) /* from here on a broadcast's root helps its readers */

/* One collective seen from one rank. */
struct move {
    const struct cpu_shm_op *op;
    struct cpu_shm_share share;
    int32_t from; /* the rank to read from; -1: all; -2: none */
    /* Parts of RECV: COUNTS[p] elements at OFFSETS[p], or else COUNT elements at p x COUNT. */
    const uint64_t *counts, *offsets;
    bool whole; /* RECV is one part, at its beginning */
};

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

/* The same where RANK, which was met, has SOURCE. */
static weft_status copy_met(struct cpu_shm_group *group, int32_t rank, void *target,
                            uint64_t offset, const void *source, uint64_t bytes)
{
    PLUG_TRY(cpu_shm_enter(group, rank));
    copy(target, offset, source, bytes);
    cpu_shm_leave(group, rank);
    return WEFT_OK;
}

/* Part RANK of a buffer that COUNTS and OFFSETS divide, or COUNT elements for each rank. */
static struct cpu_shm_span part(const struct cpu_shm_op *op, const uint64_t *counts,
                                const uint64_t *offsets, int32_t rank)
{
    struct cpu_shm_span span = {.offset = (uint64_t)rank * op->count * op->element,
                                .bytes = op->count * op->element};

    if (counts != NULL)
        span = (struct cpu_shm_span){offsets[rank] * op->element, counts[rank] * op->element};
    return span;
}

/* Bytes from the start of a buffer to the end of its last part. */
static uint64_t reach_of(const struct cpu_shm_group *group, const struct cpu_shm_op *op,
                         const uint64_t *counts, const uint64_t *offsets)
{
    uint64_t end = 0;

    for (int32_t p = 0; p < group->size; p++) {
        struct cpu_shm_span span = part(op, counts, offsets, p);

        if (span.bytes > 0 && span.offset + span.bytes > end) end = span.offset + span.bytes;
    }
    return end;
}

/* Where in a buffer each rank's part lies, to be told to all. */
static const struct cpu_shm_span *spans_of(struct cpu_shm_group *group, const struct cpu_shm_op *op,
                                           const uint64_t *counts, const uint64_t *offsets)
{
    for (int32_t p = 0; p < group->size; p++)
        group->spans[p] = part(op, counts, offsets, p);
    return group->spans;
}

/* ---- reading ---- */

static struct cpu_shm_span target_of(const struct move *move, int32_t rank)
{
    struct cpu_shm_span span = part(move->op, move->counts, move->offsets, rank);

    if (move->whole) span.offset = 0;
    return span;
}

static bool is_spread(const struct move *move)
{
    return move->share.spans != NULL || move->whole;
}

/* Our part of RANK's data. */
static struct cpu_shm_span source_of(const struct cpu_shm_group *group, const struct move *move,
                                     int32_t rank)
{
    struct cpu_shm_span span = {.bytes = cpu_shm_slot(group, rank)->bytes};

    return is_spread(move) ? cpu_shm_spans(group, rank)[group->rank] : span;
}

/* True if data of RANK is read in pieces: its owner publishes it in pieces, or this rank's RECV
 * overlaps SEND, whose pieces must not be overwritten before they are published. */
static bool in_steps(const struct cpu_shm_group *group, const struct move *move, int32_t rank)
{
    return rank != group->rank && (move->share.in_pieces || cpu_shm_is_in_pieces(group, rank));
}

/* Piece INDEX of what RANK has for us, or at once all of it. */
static weft_status read_from(struct cpu_shm_group *group, const struct move *move, int32_t rank,
                             uint64_t index)
{
    uint64_t piece = cpu_shm_piece_bytes(group, is_spread(move)), at = index * piece, bytes;
    struct cpu_shm_span from, to = target_of(move, rank);
    const unsigned char *data = move->op->send;

    if (index == 0) PLUG_TRY(cpu_shm_wait_peer(group, rank));
    from = source_of(group, move, rank);
    if (index == 0) PLUG_TRY(cpu_shm_check_bytes(group, rank, from.bytes, group->rank, to.bytes));
    if (!in_steps(group, move, rank)) {
        if (index > 0) return WEFT_OK;
        if (rank != group->rank) data = cpu_shm_sent(group, rank);
        return copy_met(group, rank, move->op->recv, to.offset, data + from.offset, to.bytes);
    }
    if (at >= to.bytes) return WEFT_OK;
    bytes = to.bytes - at < piece ? to.bytes - at : piece;
    if (cpu_shm_is_in_pieces(group, rank))
        PLUG_TRY(cpu_shm_piece(group, rank, index, is_spread(move), &data));
    else
        data = (const unsigned char *)cpu_shm_sent(group, rank) + from.offset + at;
    return copy_met(group, rank, move->op->recv, to.offset + at, data, bytes);
}

/* In how many steps we read. */
static uint64_t count_steps(const struct cpu_shm_group *group, const struct move *move)
{
    uint64_t piece = cpu_shm_piece_bytes(group, is_spread(move)), most = 1;

    for (int32_t p = 0; p < group->size; p++) {
        uint64_t bytes = target_of(move, p).bytes;

        if (move->from != -1 && move->from != p) continue;
        if (in_steps(group, move, p) && (bytes + piece - 1) / piece > most)
            most = (bytes + piece - 1) / piece;
    }
    return most;
}

static weft_status read_all(struct cpu_shm_group *group, const struct move *move, uint64_t index)
{
    if (move->from >= 0) return read_from(group, move, move->from, index);
    for (int32_t i = 0; move->from == -1 && i < group->size; i++)
        PLUG_TRY(read_from(group, move, (group->rank + i) % group->size, index));
    return WEFT_OK;
}

static weft_status run(struct cpu_shm_group *group, const struct move *move)
{
    struct cpu_shm_call call = cpu_shm_call_of(move->op, group->size);
    uint64_t own, theirs;

    PLUG_TRY(cpu_shm_begin(group, &call, &move->share));
    PLUG_TRY(read_all(group, move, 0));
    if (move->from != -1) PLUG_TRY(cpu_shm_compare_all(group));
    if (group->in_pieces) {
        own = cpu_shm_piece_count(group, &move->share);
        theirs = move->from == -2 ? 0 : count_steps(group, move);
        cpu_shm_drained(group, 0);
        for (uint64_t i = 1; i < own || i < theirs; i++) {
            if (i < own) PLUG_TRY(cpu_shm_fill(group, &move->share, i));
            if (i < theirs) PLUG_TRY(read_all(group, move, i));
            cpu_shm_drained(group, i);
        }
    }
    if (move->from >= -1) PLUG_TRY(cpu_shm_confirm(group, move->from));
    cpu_shm_done(group);
    return cpu_shm_settle(group, move->share.reader);
}

/* ---- the collectives ---- */

weft_status cpu_shm_barrier(struct cpu_shm_group *group, const struct cpu_shm_op *op)
{
    struct cpu_shm_call call = cpu_shm_call_of(op, group->size);
    struct cpu_shm_share share = {0};

    PLUG_TRY(cpu_shm_begin(group, &call, &share));
    PLUG_TRY(cpu_shm_wait_peers(group));
    cpu_shm_done(group);
    return WEFT_OK;
}

weft_status cpu_shm_all_gather(struct cpu_shm_group *group, const struct cpu_shm_op *op)
{
    struct cpu_shm_span mine = part(op, op->recv_counts, op->recv_offsets, group->rank);
    uint64_t end = reach_of(group, op, op->recv_counts, op->recv_offsets);
    bool in_place = (const unsigned char *)op->recv + mine.offset == op->send;
    struct move move = {.op = op,
                        .share = {.send = op->send, .send_bytes = mine.bytes, .reader = -1},
                        .from = -1,
                        .counts = op->recv_counts,
                        .offsets = op->recv_offsets};

    move.share.in_pieces = !in_place && overlap(op->send, mine.bytes, op->recv, end);
    return run(group, &move);
}

weft_status cpu_shm_all_to_all(struct cpu_shm_group *group, const struct cpu_shm_op *op)
{
    uint64_t send_end = reach_of(group, op, op->send_counts, op->send_offsets);
    uint64_t recv_end = reach_of(group, op, op->recv_counts, op->recv_offsets);
    struct move move = {.op = op,
                        .share = {.send = op->send,
                                  .send_bytes = send_end,
                                  .spans = spans_of(group, op, op->send_counts, op->send_offsets),
                                  .reader = -1,
                                  .in_pieces = overlap(op->send, send_end, op->recv, recv_end)},
                        .from = -1,
                        .counts = op->recv_counts,
                        .offsets = op->recv_offsets};

    return run(group, &move);
}

weft_status cpu_shm_gather(struct cpu_shm_group *group, const struct cpu_shm_op *op)
{
    bool root = group->rank == op->root;
    uint64_t bytes = op->count * op->element;
    struct move move = {.op = op,
                        .share = {.send = op->send, .send_bytes = bytes, .reader = op->root},
                        .from = root ? -1 : -2,
                        .counts = op->recv_counts,
                        .offsets = op->recv_offsets};

    move.share.by_reference = root; /* nobody reads it */
    return run(group, &move);
}

weft_status cpu_shm_scatter(struct cpu_shm_group *group, const struct cpu_shm_op *op)
{
    bool root = group->rank == op->root;
    struct move move = {.op = op, .share = {.reader = -1}, .from = op->root, .whole = true};

    if (root) {
        move.share.send = op->send;
        move.share.send_bytes = reach_of(group, op, op->send_counts, op->send_offsets);
        move.share.spans = spans_of(group, op, op->send_counts, op->send_offsets);
    }
    return run(group, &move);
}

/* ---- broadcast, in which the root helps ---- */

/* How much of a large broadcast each reader should read itself: the root copies the rest into its
 * memory, unless it must fill its own anyway. */
static uint64_t head_of(const struct cpu_shm_group *group, uint64_t bytes)
{
    uint64_t size = (uint64_t)group->size;

    return bytes / size * (size - 1) / 4096 * 4096;
}

static weft_status push_tails(struct cpu_shm_group *group, const struct cpu_shm_op *op,
                              uint64_t head)
{
    uint64_t bytes = op->count * op->element;

    for (int32_t i = 1; i < group->size; i++) {
        int32_t p = (group->rank + i) % group->size;

        PLUG_TRY(cpu_shm_wait_peer(group, p));
        if (!cpu_shm_address_reachable(group, &cpu_shm_slot(group, p)->at.recv)) continue;
        PLUG_TRY(cpu_shm_enter(group, p));
        memcpy((unsigned char *)cpu_shm_target(group, p) + head,
               (const unsigned char *)op->send + head, bytes - head);
        cpu_shm_leave(group, p);
    }
    return WEFT_OK;
}

static weft_status broadcast_root(struct cpu_shm_group *group, const struct cpu_shm_op *op)
{
    struct cpu_shm_call call = cpu_shm_call_of(op, group->size);
    uint64_t bytes = op->count * op->element;
    struct cpu_shm_share share = {
        .send = op->send, .send_bytes = bytes, .shift = bytes, .reader = -1};
    uint64_t pieces;

    if (op->send == op->recv && bytes >= SPLIT_BYTES && cpu_shm_reachable(group, op->send, bytes))
        share.shift = head_of(group, bytes);
    PLUG_TRY(cpu_shm_begin(group, &call, &share));
    if (share.shift < bytes) PLUG_TRY(push_tails(group, op, share.shift));
    copy(op->recv, 0, op->send, bytes);
    PLUG_TRY(cpu_shm_compare_all(group));
    pieces = cpu_shm_piece_count(group, &share);
    for (uint64_t i = 1; i < pieces; i++)
        PLUG_TRY(cpu_shm_fill(group, &share, i));
    cpu_shm_done(group);
    return cpu_shm_settle(group, -1);
}

weft_status cpu_shm_broadcast(struct cpu_shm_group *group, const struct cpu_shm_op *op)
{
    struct cpu_shm_call call = cpu_shm_call_of(op, group->size);
    uint64_t bytes = op->count * op->element, piece = cpu_shm_piece_bytes(group, false), head;
    struct cpu_shm_share share = {.recv = bytes >= SPLIT_BYTES ? op->recv : NULL};
    const unsigned char *data = NULL;

    if (group->rank == op->root) return broadcast_root(group, op);
    PLUG_TRY(cpu_shm_begin(group, &call, &share));
    PLUG_TRY(cpu_shm_wait_peer(group, op->root));
    if (!cpu_shm_is_in_pieces(group, op->root)) {
        head = cpu_shm_slot(group, op->root)->shift;
        if (!cpu_shm_reachable(group, op->recv, bytes)) head = bytes;
        PLUG_TRY(copy_met(group, op->root, op->recv, 0, cpu_shm_sent(group, op->root), head));
        PLUG_TRY(cpu_shm_compare_all(group));
        PLUG_TRY(cpu_shm_confirm(group, op->root));
        cpu_shm_done(group);
        if (head == bytes) return WEFT_OK;
        return cpu_shm_wait(group, &group->peers[op->root].control->done, group->number, op->root);
    }
    PLUG_TRY(cpu_shm_compare_all(group));
    for (uint64_t i = 0; i * piece < bytes; i++) {
        PLUG_TRY(cpu_shm_piece(group, op->root, i, false, &data));
        copy(op->recv, i * piece, data, bytes - i * piece < piece ? bytes - i * piece : piece);
        cpu_shm_drained(group, i);
    }
    cpu_shm_done(group);
    return WEFT_OK;
}
