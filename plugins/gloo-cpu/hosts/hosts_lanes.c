/* hosts_lanes.c - collectives where every host has the same number of ranks, and several.
 *
 * The ranks at one place of their hosts are a lane: they talk to each other over the network, each
 * about a part of the data of its own.  Ranks of a host pass data to each other within the host
 * (shm.h), before and after.  Small data is the same on all ranks of a host before it leaves, so
 * that nothing is left to do once it has arrived.
 *
 * The ranks of a host compare their calls when they first meet within it, and those of a lane by
 * their messages. */
#include "hosts.h"

#include "kernel/cpu_level.h"

#include <string.h>

#define SMALL_BYTES (UINT64_C(16) << 10) /* of all ranks together */
#define PART_BYTES  (UINT64_C(1) << 20)  /* of large data, that one rank combines at a time */

bool cpu_hosts_have_lanes(const struct cpu_comm *comm)
{
    return comm->other_hosts->is_even && comm->other_hosts->most > 1;
}

/* One collective. */
struct lanes {
    struct cpu_comm *comm;
    const struct cpu_shm_op *op;
    struct cpu_shm_call call;   /* that all ranks compare */
    uint64_t *counts, *offsets; /* by place within the host: elements */
};

static struct lanes lanes_of(struct cpu_comm *comm, const struct cpu_shm_op *op)
{
    struct cpu_hosts *hosts = comm->other_hosts;

    hosts->lane = comm->group.rank;
    return (struct lanes){.comm = comm,
                          .op = op,
                          .call = cpu_shm_call_of(op, comm->size),
                          .counts = hosts->local_room,
                          .offsets = hosts->local_room + comm->size};
}

/* The rank of HOST at PLACE. */
static int32_t rank_at(const struct cpu_comm *comm, int32_t host, int32_t place)
{
    return comm->other_hosts->ranks[comm->other_hosts->first[host] + place];
}

/* OP for the ranks of this host alone, which compare the whole collective. */
static struct cpu_shm_op within_host(const struct lanes *it, uint32_t collective)
{
    struct cpu_shm_op local = *it->op;

    local.collective = collective;
    local.as = &it->call;
    local.send_counts = local.send_offsets = local.recv_counts = local.recv_offsets = NULL;
    return local;
}

static unsigned char *at(const void *buffer, uint64_t elements, const struct cpu_shm_op *op)
{
    return (unsigned char *)buffer + elements * op->element;
}

/* Every rank of the host has its part of RECV: then all have all parts. */
static weft_status gather_parts(const struct lanes *it, void *recv)
{
    struct cpu_shm_op gather = within_host(it, WEFT_COLL_ALL_GATHER_V);

    gather.recv = recv;
    gather.send = at(recv, it->offsets[it->comm->group.rank], it->op);
    gather.recv_counts = it->counts;
    gather.recv_offsets = it->offsets;
    return cpu_shm_all_gather(&it->comm->group, &gather);
}

/* A part of COUNT elements from FIRST on for every rank of the host. */
static void divide(const struct lanes *it, uint64_t first, uint64_t count)
{
    uint64_t size = (uint64_t)it->comm->group.size;

    for (uint64_t p = 0; p < size; p++) {
        it->offsets[p] = first + count * p / size;
        it->counts[p] = first + count * (p + 1) / size - it->offsets[p];
    }
}

/* How many elements all ranks together handle at a time. */
static uint64_t step_of(const struct lanes *it)
{
    return PART_BYTES / it->op->element * (uint64_t)it->comm->size;
}

/* ---- all_reduce ---- */

static weft_status reduce_step(const struct lanes *it, uint64_t first, uint64_t count)
{
    struct cpu_comm *comm = it->comm;
    struct cpu_shm_op scatter = within_host(it, WEFT_COLL_REDUCE_SCATTER_V), cross = *it->op;

    divide(it, first, count);
    cross.send = cross.recv = at(it->op->recv, it->offsets[comm->group.rank], it->op);
    cross.count = it->counts[comm->group.rank];
    scatter.recv = cross.recv;
    scatter.send_counts = it->counts;
    scatter.send_offsets = it->offsets;
    PLUG_TRY(cpu_shm_reduce_scatter(&comm->group, &scatter));
    PLUG_TRY(cpu_hosts_direct_all_reduce(comm, &cross));
    return gather_parts(it, it->op->recv);
}

weft_status cpu_hosts_lanes_all_reduce(struct cpu_comm *comm, const struct cpu_shm_op *given)
{
    struct cpu_shm_op op = *given;
    struct lanes it = lanes_of(comm, &op);
    uint64_t bytes = op.count * op.element, step = step_of(&it);
    struct cpu_shm_op local;

    if (bytes * (uint64_t)comm->other_hosts->count <= SMALL_BYTES) {
        local = within_host(&it, WEFT_COLL_ALL_REDUCE);
        PLUG_TRY(cpu_shm_all_reduce(&comm->group, &local));
        op.send = op.recv;
        return cpu_hosts_direct_all_reduce(comm, &op);
    }
    if (op.send != op.recv && cpu_hosts_overlap(op.send, bytes, op.recv, bytes))
        op.send = memmove(op.recv, op.send, bytes);
    for (uint64_t first = 0; first < op.count; first += step)
        PLUG_TRY(reduce_step(&it, first, op.count - first < step ? op.count - first : step));
    return WEFT_OK;
}

/* ---- broadcast ---- */

static weft_status broadcast_step(const struct lanes *it, uint64_t first, uint64_t count)
{
    struct cpu_comm *comm = it->comm;
    int32_t home = comm->host_of[it->op->root], own = comm->group.rank;
    struct cpu_shm_op local;

    if (comm->other_hosts->own == home) {
        local = within_host(it, WEFT_COLL_BROADCAST);
        local.root = comm->places[it->op->root];
        local.send = at(it->op->send, first, it->op);
        local.recv = at(it->op->recv, first, it->op);
        local.count = count;
        PLUG_TRY(cpu_shm_broadcast(&comm->group, &local));
    }
    divide(it, first, count);
    if (it->counts[own] > 0)
        PLUG_TRY(cpu_hosts_send_to_all(comm, at(it->op->recv, it->offsets[own], it->op),
                                       it->counts[own] * it->op->element, home));
    return comm->other_hosts->own == home ? WEFT_OK : gather_parts(it, it->op->recv);
}

static weft_status broadcast_small(const struct lanes *it)
{
    struct cpu_comm *comm = it->comm;
    int32_t home = comm->host_of[it->op->root];
    struct cpu_shm_op local;

    if (comm->other_hosts->own == home) {
        local = within_host(it, WEFT_COLL_BROADCAST);
        local.root = comm->places[it->op->root];
        PLUG_TRY(cpu_shm_broadcast(&comm->group, &local));
    } else {
        local = within_host(it, WEFT_COLL_BARRIER);
        PLUG_TRY(cpu_shm_barrier(&comm->group, &local));
    }
    if (it->op->count == 0) return WEFT_OK;
    return cpu_hosts_send_to_all(comm, it->op->recv, it->op->count * it->op->element, home);
}

weft_status cpu_hosts_lanes_broadcast(struct cpu_comm *comm, const struct cpu_shm_op *op)
{
    struct lanes it = lanes_of(comm, op);
    uint64_t step = step_of(&it);

    if (op->count * op->element <= SMALL_BYTES) return broadcast_small(&it);
    for (uint64_t first = 0; first < op->count; first += step)
        PLUG_TRY(broadcast_step(&it, first, op->count - first < step ? op->count - first : step));
    return WEFT_OK;
}

/* ---- all_gather ---- */

static uint64_t share_of(const struct lanes *it, int32_t rank)
{
    return it->op->recv_counts != NULL ? it->op->recv_counts[rank] : it->op->count;
}

static uint64_t place_of(const struct lanes *it, int32_t rank)
{
    return it->op->recv_offsets != NULL ? it->op->recv_offsets[rank]
                                        : (uint64_t)rank * it->op->count;
}

/* What the ranks of HOST contribute.  Returns how many elements that is. */
static uint64_t find_shares(const struct lanes *it, int32_t host)
{
    uint64_t sum = 0;

    for (int32_t p = 0; p < it->comm->group.size; p++) {
        it->counts[p] = share_of(it, rank_at(it->comm, host, p));
        it->offsets[p] = place_of(it, rank_at(it->comm, host, p));
        sum += it->counts[p];
    }
    return sum;
}

/* Copy what the ranks of HOST contribute out of RECV, one after the other, or into it. */
static void pack_shares(const struct lanes *it, int32_t host, unsigned char *room, bool out)
{
    (void)find_shares(it, host);
    for (int32_t p = 0; p < it->comm->group.size; p++) {
        unsigned char *place = at(it->op->recv, it->offsets[p], it->op);
        size_t bytes = it->counts[p] * it->op->element;

        if (bytes > 0) memcpy(out ? room : place, out ? place : room, bytes);
        room += bytes;
    }
}

/* All ranks of this host have its shares.  Each of them gets those of all other hosts. */
static weft_status gather_small(const struct lanes *it)
{
    struct cpu_hosts *hosts = it->comm->other_hosts;
    unsigned char *room, *end;

    PLUG_TRY(cpu_hosts_room(it->comm, SMALL_BYTES, &room));
    end = room;
    for (int32_t h = 0; h < hosts->count; h++) {
        hosts->host_room[h] = find_shares(it, h) * it->op->element;
        if (h == hosts->own) pack_shares(it, h, end, true);
        end += hosts->host_room[h];
    }
    PLUG_TRY(cpu_hosts_all_gather(it->comm, room, hosts->host_room));
    for (int32_t h = 0; h < hosts->count; room += hosts->host_room[h], h++)
        if (h != hosts->own) pack_shares(it, h, room, false);
    return WEFT_OK;
}

/* Every rank exchanges shares with its lane. */
static weft_status exchange_shares(const struct lanes *it, const void *send)
{
    struct cpu_comm *comm = it->comm;
    struct cpu_hosts *hosts = comm->other_hosts;
    struct net_part *sends = hosts->parts, *receives = hosts->parts + hosts->count;
    uint64_t own = share_of(it, comm->rank) * it->op->element;
    uint32_t send_count = 0, receive_count = 0;

    for (int32_t i = 1; i < hosts->count; i++) {
        int32_t to = (hosts->own + i) % hosts->count;
        int32_t from = (hosts->own - i + hosts->count) % hosts->count;
        int32_t rank = rank_at(comm, from, comm->group.rank);
        uint64_t bytes = share_of(it, rank) * it->op->element;

        if (own > 0)
            sends[send_count++] = (struct net_part){.peer = to, .data = (void *)send, .bytes = own};
        if (bytes > 0)
            receives[receive_count++] = (struct net_part){
                .peer = from, .data = at(it->op->recv, place_of(it, rank), it->op), .bytes = bytes};
    }
    return cpu_hosts_exchange(comm, send_count, sends, receive_count, receives);
}

weft_status cpu_hosts_lanes_all_gather(struct cpu_comm *comm, const struct cpu_shm_op *op)
{
    struct lanes it = lanes_of(comm, op);
    struct cpu_hosts *hosts = comm->other_hosts;
    struct cpu_shm_op local = within_host(&it, WEFT_COLL_ALL_GATHER_V);
    uint64_t all = 0;

    for (int32_t h = 0; h < hosts->count; h++)
        all += find_shares(&it, h) * op->element;
    (void)find_shares(&it, hosts->own);
    local.recv_counts = it.counts;
    local.recv_offsets = it.offsets;
    PLUG_TRY(cpu_shm_all_gather(&comm->group, &local));
    if (all <= SMALL_BYTES) return gather_small(&it);
    PLUG_TRY(exchange_shares(&it, at(op->recv, place_of(&it, comm->rank), op)));
    for (int32_t h = 0; h < hosts->count; h++) {
        if (h == hosts->own || find_shares(&it, h) == 0) continue;
        PLUG_TRY(gather_parts(&it, op->recv));
    }
    return WEFT_OK;
}

/* ---- reduce_scatter ---- */

static uint64_t block_count(const struct lanes *it, int32_t rank)
{
    return it->op->send_counts != NULL ? it->op->send_counts[rank] : it->op->count;
}

static uint64_t block_offset(const struct lanes *it, int32_t rank)
{
    return it->op->send_counts != NULL ? it->op->send_offsets[rank]
                                       : (uint64_t)rank * it->op->count;
}

/* A round: STEP elements of every block.  ROOM has, for every host, this host's sum for the rank of
 * that host in this lane, and behind all of them what the other hosts sent for this rank. */
struct round {
    const struct lanes *lanes;
    uint64_t step, number;
    unsigned char *room;
};

static uint64_t part_of(const struct round *round, int32_t rank)
{
    return cpu_hosts_part(block_count(round->lanes, rank), round->step, round->number);
}

static unsigned char *slot(const struct round *round, int32_t index)
{
    return at(round->room, (uint64_t)index * round->step, round->lanes->op);
}

/* Each rank of this host sums up what its lane's rank of HOST gets from this host. */
static weft_status sum_up(const struct round *round, int32_t host)
{
    const struct lanes *it = round->lanes;
    struct cpu_shm_op scatter = within_host(it, WEFT_COLL_REDUCE_SCATTER_V);

    for (int32_t p = 0; p < it->comm->group.size; p++) {
        int32_t rank = rank_at(it->comm, host, p);

        it->counts[p] = part_of(round, rank);
        it->offsets[p] = block_offset(it, rank) + round->step * round->number;
    }
    scatter.recv = slot(round, host);
    scatter.send_counts = it->counts;
    scatter.send_offsets = it->offsets;
    return cpu_shm_reduce_scatter(&it->comm->group, &scatter);
}

/* The sums for the other hosts go there, and theirs for this rank are combined. */
static weft_status combine_sums(const struct round *round)
{
    struct cpu_comm *comm = round->lanes->comm;
    struct cpu_hosts *hosts = comm->other_hosts;
    const struct cpu_shm_op *op = round->lanes->op;
    struct net_part *sends = hosts->parts, *receives = hosts->parts + hosts->count;
    struct cpu_reducer reducer = {
        .dtype = op->dtype, .reduction = op->reduction, .size = (uint32_t)hosts->count};
    uint64_t own = part_of(round, comm->rank);
    uint32_t send_count = 0, receive_count = 0;

    for (int32_t h = 0; h < hosts->count; h++) {
        uint64_t count = part_of(round, rank_at(comm, h, comm->group.rank));

        hosts->sources[h] = h == hosts->own ? slot(round, h) : slot(round, hosts->count + h);
        if (h == hosts->own) continue;
        if (count > 0)
            sends[send_count++] =
                (struct net_part){.peer = h, .data = slot(round, h), .bytes = count * op->element};
        if (own > 0)
            receives[receive_count++] = (struct net_part){
                .peer = h, .data = slot(round, hosts->count + h), .bytes = own * op->element};
    }
    PLUG_TRY(cpu_hosts_exchange(comm, send_count, sends, receive_count, receives));
    if (own > 0)
        cpu_reduce(cpu_kernels(), &reducer, hosts->sources,
                   at(op->recv, round->step * round->number, op), own);
    return WEFT_OK;
}

static weft_status scatter_rounds(const struct lanes *it)
{
    struct cpu_hosts *hosts = it->comm->other_hosts;
    struct round round = {.lanes = it, .step = PART_BYTES / it->op->element};
    uint64_t most = 0;

    for (int32_t r = 0; r < it->comm->size; r++)
        if (block_count(it, r) > most) most = block_count(it, r);
    if (round.step > most) round.step = most;
    PLUG_TRY(cpu_hosts_room(it->comm, 2 * (uint64_t)hosts->count * round.step * it->op->element,
                            &round.room));
    for (; round.number < cpu_hosts_rounds(most, round.step); round.number++) {
        for (int32_t h = 0; h < hosts->count; h++)
            PLUG_TRY(sum_up(&round, h));
        PLUG_TRY(combine_sums(&round));
    }
    return WEFT_OK;
}

weft_status cpu_hosts_lanes_reduce_scatter(struct cpu_comm *comm, const struct cpu_shm_op *given)
{
    struct cpu_shm_op op = *given;
    struct lanes it = lanes_of(comm, &op);
    uint64_t end = 0, mine = block_count(&it, comm->rank) * op.element;
    const unsigned char *own = at(op.send, block_offset(&it, comm->rank), &op);
    void *copy = NULL;
    weft_status status;

    for (int32_t r = 0; r < comm->size; r++)
        if (block_count(&it, r) > 0 && block_offset(&it, r) + block_count(&it, r) > end)
            end = block_offset(&it, r) + block_count(&it, r);
    if (end == 0) return WEFT_OK;
    /* A result must not overwrite what is combined in a later round. */
    if (own != op.recv && cpu_hosts_overlap(op.send, end * op.element, op.recv, mine)) {
        copy = plug_alloc(end * op.element);
        if (copy == NULL) return cpu_shm_fail(&comm->group, WEFT_ERR_NO_MEMORY, "out of memory");
        op.send = memcpy(copy, op.send, end * op.element);
    }
    status = scatter_rounds(&it);
    if (status != WEFT_OK) cpu_shm_access_wait(&comm->group);
    plug_free(copy);
    return status;
}
