/* hosts_swap.c - collectives with a block for each pair of ranks: all_to_all, gather, scatter, and
 * their variants with counts.
 *
 * All sizes are in bytes.  First every rank gets the lengths of all blocks, from its arguments if
 * these are equal on all ranks, else from the other ranks.  Then every block goes directly to its
 * rank.  Small blocks between many ranks go through the leaders' stages instead, in rounds of STEP
 * bytes per block. */
#include "hosts.h"

#include <string.h>

#define DIRECT_BYTES 4096 /* blocks from here on go directly, between however many ranks */

struct swap {
    struct cpu_comm *comm;
    const struct cpu_shm_op *op;
    uint64_t *lengths; /* SIZE x SIZE: bytes that the row's rank sends to the column's rank */
    uint64_t step, round;
    unsigned char *stage;
};

/* ---- the blocks of this rank ---- */

struct block {
    uint64_t offset, bytes;
};

static bool has_counts(const struct cpu_shm_op *op)
{
    return op->collective == WEFT_COLL_ALL_TO_ALL_V || op->collective == WEFT_COLL_GATHER_V ||
           op->collective == WEFT_COLL_SCATTER_V;
}

static bool gathers(const struct cpu_shm_op *op)
{
    return op->collective == WEFT_COLL_GATHER || op->collective == WEFT_COLL_GATHER_V;
}

static bool scatters(const struct cpu_shm_op *op)
{
    return op->collective == WEFT_COLL_SCATTER || op->collective == WEFT_COLL_SCATTER_V;
}

static struct block block_in(const struct cpu_shm_op *op, const uint64_t *counts,
                             const uint64_t *offsets, int32_t rank)
{
    if (counts == NULL)
        return (struct block){(uint64_t)rank * op->count * op->element, op->count * op->element};
    return (struct block){offsets[rank] * op->element, counts[rank] * op->element};
}

/* The block that this rank sends to RANK, and its offset in SEND. */
static struct block outgoing(const struct swap *swap, int32_t rank)
{
    const struct cpu_shm_op *op = swap->op;

    if (gathers(op)) return (struct block){0, rank == op->root ? op->count * op->element : 0};
    if (scatters(op) && swap->comm->rank != op->root) return (struct block){0, 0};
    return block_in(op, op->send_counts, op->send_offsets, rank);
}

/* The block that this rank receives from RANK, and its offset in RECV. */
static struct block incoming(const struct swap *swap, int32_t rank)
{
    const struct cpu_shm_op *op = swap->op;

    if (scatters(op)) return (struct block){0, rank == op->root ? op->count * op->element : 0};
    if (gathers(op) && swap->comm->rank != op->root) return (struct block){0, 0};
    return block_in(op, op->recv_counts, op->recv_offsets, rank);
}

/* ---- the lengths of all blocks ---- */

static uint64_t *length(const struct swap *swap, int32_t from, int32_t to)
{
    return &swap->lengths[(size_t)from * (size_t)swap->comm->size + (size_t)to];
}

static void lengths_from_arguments(const struct swap *swap)
{
    const struct cpu_shm_op *op = swap->op;

    for (int32_t from = 0; from < swap->comm->size; from++)
        for (int32_t to = 0; to < swap->comm->size; to++) {
            bool none = (gathers(op) && to != op->root) || (scatters(op) && from != op->root);

            *length(swap, from, to) = none ? 0 : op->count * op->element;
        }
}

/* Rows are sent in the order of hosts and stored in the order of ranks. */
static weft_status lengths_from_others(const struct swap *swap)
{
    struct cpu_comm *comm = swap->comm;
    struct cpu_hosts *hosts = comm->other_hosts;
    struct cpu_shm_call call = cpu_shm_call_of(swap->op, comm->size);
    size_t row = (size_t)comm->size * sizeof(uint64_t);
    int32_t own = hosts->first[hosts->own] + comm->places[comm->rank];
    unsigned char *stage;

    for (int32_t to = 0; to < comm->size; to++)
        hosts->rank_room[to] = outgoing(swap, to).bytes;
    for (int32_t h = 0; h < hosts->count; h++)
        hosts->host_room[h] = (size_t)cpu_hosts_size(hosts, h) * row;
    PLUG_TRY(cpu_hosts_share(comm, &call, row * (size_t)comm->size, &stage));
    memcpy(stage + row * (size_t)own, hosts->rank_room, row);
    PLUG_TRY(cpu_hosts_finish(comm));
    PLUG_TRY(cpu_hosts_all_gather(comm, stage, hosts->host_room));
    PLUG_TRY(cpu_hosts_share(comm, &call, row * (size_t)comm->size, &stage));
    for (int32_t i = 0; i < comm->size; i++)
        memcpy(length(swap, hosts->ranks[i], 0), stage + row * (size_t)i, row);
    return cpu_hosts_finish(comm);
}

static weft_status check_lengths(const struct swap *swap)
{
    struct cpu_comm *comm = swap->comm;

    for (int32_t from = 0; from < comm->size; from++) {
        uint64_t sent = *length(swap, from, comm->rank), wanted = incoming(swap, from).bytes;

        if (sent != wanted)
            return cpu_shm_fail(&comm->group, WEFT_ERR_MISMATCH,
                                "%s: rank %d sends %llu bytes to rank %d, which expects %llu",
                                comm->group.doing, (int)comm->names[from], (unsigned long long)sent,
                                (int)comm->world_rank, (unsigned long long)wanted);
    }
    return WEFT_OK;
}

/* ---- the rounds ---- */

static uint64_t part(const struct swap *swap, int32_t from, int32_t to)
{
    return cpu_hosts_part(*length(swap, from, to), swap->step, swap->round);
}

/* The stage of a round has, for every host, the blocks for that host, then, for every other host,
 * the blocks from that host.  Each part is ordered by sender, then by receiver.  Calls VISIT with
 * the offset of every block. */
typedef void visitor(const struct swap *swap, int32_t from, int32_t to, uint64_t at);

static uint64_t visit_pair(const struct swap *swap, int32_t from_host, int32_t to_host, uint64_t at,
                           visitor *visit)
{
    const struct cpu_hosts *hosts = swap->comm->other_hosts;

    for (int32_t i = hosts->first[from_host]; i < hosts->first[from_host + 1]; i++)
        for (int32_t k = hosts->first[to_host]; k < hosts->first[to_host + 1]; k++) {
            if (visit != NULL) visit(swap, hosts->ranks[i], hosts->ranks[k], at);
            at += part(swap, hosts->ranks[i], hosts->ranks[k]);
        }
    return at;
}

static void put_in(const struct swap *swap, int32_t from, int32_t to, uint64_t at)
{
    uint64_t bytes = part(swap, from, to);

    if (from != swap->comm->rank || bytes == 0) return;
    memcpy(swap->stage + at,
           (const unsigned char *)swap->op->send + outgoing(swap, to).offset +
               swap->step * swap->round,
           bytes);
}

static void take_out(const struct swap *swap, int32_t from, int32_t to, uint64_t at)
{
    uint64_t bytes = part(swap, from, to);

    if (to != swap->comm->rank || bytes == 0) return;
    memcpy((unsigned char *)swap->op->recv + incoming(swap, from).offset + swap->step * swap->round,
           swap->stage + at, bytes);
}

static uint64_t visit_all(const struct swap *swap, visitor *visit)
{
    const struct cpu_hosts *hosts = swap->comm->other_hosts;
    uint64_t at = 0;

    for (int32_t h = 0; h < hosts->count; h++)
        at = visit_pair(swap, hosts->own, h, at, visit);
    for (int32_t h = 0; h < hosts->count; h++)
        if (h != hosts->own) at = visit_pair(swap, h, hosts->own, at, visit);
    return at;
}

/* Leaders: one message to and one from every host, where there is data. */
static weft_status exchange(const struct swap *swap)
{
    struct cpu_hosts *hosts = swap->comm->other_hosts;
    struct net_part *sends = hosts->parts, *receives = hosts->parts + hosts->count;
    uint32_t send_count = 0, receive_count = 0;
    uint64_t at = 0, end;

    for (int32_t h = 0; h < hosts->count; h++, at = end) {
        end = visit_pair(swap, hosts->own, h, at, NULL);
        if (h != hosts->own && end > at)
            sends[send_count++] =
                (struct net_part){.peer = h, .data = swap->stage + at, .bytes = end - at};
    }
    for (int32_t h = 0; h < hosts->count; h++, at = end) {
        end = at;
        if (h == hosts->own) continue;
        end = visit_pair(swap, h, hosts->own, at, NULL);
        if (end > at)
            receives[receive_count++] =
                (struct net_part){.peer = h, .data = swap->stage + at, .bytes = end - at};
    }
    return cpu_hosts_exchange(swap->comm, send_count, sends, receive_count, receives);
}

static weft_status swap_round(struct swap *swap)
{
    struct cpu_comm *comm = swap->comm;
    struct cpu_shm_call call = cpu_shm_call_of(swap->op, comm->size);
    uint64_t bytes = visit_all(swap, NULL);

    PLUG_TRY(cpu_hosts_share(comm, &call, bytes, &swap->stage));
    visit_all(swap, put_in);
    PLUG_TRY(cpu_hosts_finish(comm));
    PLUG_TRY(exchange(swap));
    PLUG_TRY(cpu_hosts_share(comm, &call, bytes, &swap->stage));
    visit_all(swap, take_out);
    return cpu_hosts_finish(comm);
}

/* ---- without a stage: every block goes directly to its rank ---- */

/* Where all blocks of a buffer end, and what arrives, in bytes. */
struct extent {
    uint64_t send_end, begin, end;
};

static struct extent extent_of(const struct swap *swap)
{
    struct extent it = {.begin = UINT64_MAX};

    for (int32_t r = 0; r < swap->comm->size; r++) {
        struct block out = outgoing(swap, r), in = incoming(swap, r);

        if (out.bytes > 0 && out.offset + out.bytes > it.send_end)
            it.send_end = out.offset + out.bytes;
        /* A rank that is alone on its host takes its own block when all else is done. */
        if (in.bytes == 0 || (r == swap->comm->rank && swap->comm->group.size == 1)) continue;
        if (in.offset < it.begin) it.begin = in.offset;
        if (in.offset + in.bytes > it.end) it.end = in.offset + in.bytes;
    }
    return it;
}

/* What arrives would overwrite what is sent. */
static bool overwrites(const struct swap *swap, const struct extent *it)
{
    return it->end > 0 && cpu_hosts_overlap(swap->op->send, it->send_end,
                                            (const unsigned char *)swap->op->recv + it->begin,
                                            it->end - it->begin);
}

static weft_status start_messages(const struct swap *swap, struct net_work **work)
{
    struct cpu_comm *comm = swap->comm;
    struct net_part *sends = comm->other_hosts->parts, *receives = sends + comm->size;
    uint32_t send_count = 0, receive_count = 0;

    for (int32_t i = 1; i < comm->size; i++) {
        int32_t to = (comm->rank + i) % comm->size;
        int32_t from = (comm->rank - i + comm->size) % comm->size;
        struct block out = outgoing(swap, to), in = incoming(swap, from);

        if (comm->places[to] < 0 && out.bytes > 0)
            sends[send_count++] =
                (struct net_part){.peer = to,
                                  .data = (unsigned char *)swap->op->send + out.offset,
                                  .bytes = out.bytes};
        if (comm->places[from] < 0 && in.bytes > 0)
            receives[receive_count++] =
                (struct net_part){.peer = from,
                                  .data = (unsigned char *)swap->op->recv + in.offset,
                                  .bytes = in.bytes};
    }
    return cpu_hosts_start_to_ranks(comm, send_count, sends, receive_count, receives, work);
}

static weft_status swap_within_host(const struct swap *swap)
{
    struct cpu_comm *comm = swap->comm;
    size_t size = (size_t)comm->group.size;
    uint64_t *room = comm->other_hosts->local_room;
    struct cpu_shm_call call = cpu_shm_call_of(swap->op, comm->size);
    struct cpu_shm_op local = *swap->op;

    local.collective = WEFT_COLL_ALL_TO_ALL_V;
    local.as = &call;
    local.element = 1;
    local.send_counts = room;
    local.send_offsets = room + size;
    local.recv_counts = room + 2 * size;
    local.recv_offsets = room + 3 * size;
    for (size_t p = 0; p < size; p++) {
        struct block out = outgoing(swap, comm->members[p]), in = incoming(swap, comm->members[p]);

        room[p] = out.bytes;
        room[size + p] = out.offset;
        room[2 * size + p] = in.bytes;
        room[3 * size + p] = in.offset;
    }
    return cpu_shm_all_to_all(&comm->group, &local);
}

static weft_status swap_blocks(const struct swap *swap)
{
    struct cpu_comm *comm = swap->comm;
    struct cpu_hosts *hosts = comm->other_hosts;
    struct block own = outgoing(swap, comm->rank);
    struct net_failure ignored;
    struct net_work *work;
    weft_status status;

    PLUG_TRY(start_messages(swap, &work));
    status = comm->group.size > 1 ? swap_within_host(swap) : WEFT_OK;
    if (status != WEFT_OK) {
        cpu_hosts_disconnect(comm); /* ends the messages */
        (void)hosts->carrier->wait(hosts->network, work, &ignored);
        return status;
    }
    PLUG_TRY(cpu_hosts_wait(comm, work));
    if (comm->group.size == 1 && own.bytes > 0)
        memmove((unsigned char *)swap->op->recv + incoming(swap, comm->rank).offset,
                (const unsigned char *)swap->op->send + own.offset, own.bytes);
    return WEFT_OK;
}

static weft_status swap_directly(const struct swap *given)
{
    struct extent extent = extent_of(given);
    struct cpu_shm_op moved = *given->op;
    struct swap swap = *given;
    unsigned char *copy = NULL;
    weft_status status;

    if (overwrites(given, &extent)) {
        copy = plug_alloc(extent.send_end);
        if (copy == NULL)
            return cpu_shm_fail(&given->comm->group, WEFT_ERR_NO_MEMORY, "out of memory");
        moved.send = memcpy(copy, given->op->send, extent.send_end);
        swap.op = &moved;
    }
    status = swap_blocks(&swap);
    if (copy != NULL && status != WEFT_OK) cpu_shm_access_wait(&given->comm->group);
    plug_free(copy);
    return status;
}

/* Small blocks of many ranks leave a host in one message.  The same answer on all ranks. */
static bool goes_directly(const struct swap *swap)
{
    uint64_t size = (uint64_t)swap->comm->size, most = 0;

    if (swap->comm->other_hosts->most <= 8) return true;
    for (uint64_t i = 0; i < size * size; i++)
        if (swap->lengths[i] > most) most = swap->lengths[i];
    return most >= DIRECT_BYTES;
}

/* The length of the longest block that leaves or enters this host. */
static uint64_t longest(const struct swap *swap)
{
    const struct cpu_hosts *hosts = swap->comm->other_hosts;
    uint64_t most = 0;

    for (int32_t i = hosts->first[hosts->own]; i < hosts->first[hosts->own + 1]; i++)
        for (int32_t r = 0; r < swap->comm->size; r++) {
            uint64_t out = *length(swap, hosts->ranks[i], r);
            uint64_t in = *length(swap, r, hosts->ranks[i]);

            if (out > most) most = out;
            if (in > most) most = in;
        }
    return most;
}

weft_status cpu_hosts_swap(struct cpu_comm *comm, const struct cpu_shm_op *op)
{
    struct cpu_hosts *hosts = comm->other_hosts;
    struct swap swap = {.comm = comm, .op = op, .lengths = hosts->matrix};
    uint64_t own = op->count * op->element, rounds;
    struct cpu_shm_op moved = *op;
    unsigned char *copy = NULL;
    weft_status status = WEFT_OK;

    if (has_counts(op)) {
        PLUG_TRY(lengths_from_others(&swap));
        PLUG_TRY(check_lengths(&swap));
    } else {
        lengths_from_arguments(&swap);
    }
    if (goes_directly(&swap)) return swap_directly(&swap);
    /* A root that gathers in place may overwrite in one round data that it sends in a later
     * round. */
    if (gathers(op) && comm->rank == op->root && own > 0 && op->send == op->recv) {
        copy = plug_alloc(own);
        if (copy == NULL) return cpu_shm_fail(&comm->group, WEFT_ERR_NO_MEMORY, "out of memory");
        moved.send = memcpy(copy, op->send, own);
        swap.op = &moved;
    }
    swap.step = hosts->stage_bytes / (2 * (uint64_t)hosts->most * (uint64_t)comm->size);
    if (swap.step == 0) swap.step = 1;
    rounds = cpu_hosts_rounds(longest(&swap), swap.step);
    for (; status == WEFT_OK && swap.round < rounds; swap.round++)
        status = swap_round(&swap);
    plug_free(copy);
    return status;
}
