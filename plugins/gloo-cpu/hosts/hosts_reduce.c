/* hosts_reduce.c - reductions, first within each host and then between hosts.
 *
 * The leader's stage holds the partial result of its host, followed by room for data from other
 * hosts.  Each host owns a range of the partial result.  It receives that range from all other
 * hosts and combines the ranges in the order of hosts.  Every byte therefore leaves a host once,
 * and all hosts get the same bits.  Averages of integers are sent as 128-bit sums, which each rank
 * divides. */
#include "hosts.h"

#include "kernel/cpu_level.h"

#include <string.h>

#define SMALL_BYTES (UINT64_C(16) << 10) /* all hosts together */

struct reduction {
    struct cpu_comm *comm;
    const struct cpu_shm_op *op;
    size_t element; /* bytes per element of the partial result */
    bool wide;      /* elements are cpu_wide and not yet divided */
    uint64_t *ends; /* by host: end of its range of the partial result, in elements */
};

static uint64_t range_begin(const struct reduction *it, int32_t host)
{
    return host == 0 ? 0 : it->ends[host - 1];
}

static uint64_t range_count(const struct reduction *it, int32_t host)
{
    return it->ends[host] - range_begin(it, host);
}

/* Combine COUNT elements at FIRST of all local ranks' SEND, into the stage at OFFSET bytes. */
static weft_status reduce_locally(const struct reduction *it, uint64_t first, uint64_t count,
                                  uint64_t offset)
{
    struct cpu_shm_op local = *it->op;
    unsigned char *stage = it->comm->other_hosts->stage.memory;

    if (count == 0) return WEFT_OK;
    local.collective = WEFT_COLL_REDUCE;
    local.root = 0;
    local.count = count;
    local.send = (const unsigned char *)it->op->send + first * it->op->element;
    local.recv = cpu_hosts_leads(it->comm) ? stage + offset : NULL;
    local.send_counts = local.send_offsets = NULL;
    local.wide = it->wide;
    return cpu_shm_run(&it->comm->group, &local);
}

static void add_wide(cpu_wide *target, const void *const *sources, int32_t size, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        cpu_wide sum = 0;

        for (int32_t k = 0; k < size; k++)
            sum += ((const cpu_wide *)sources[k])[i];
        target[i] = sum;
    }
}

/* Combine COUNT elements of each host, in the order of hosts.  SOURCES are hosts->sources.  Data is
 * already averaged or premultiplied, so this adds only. */
static void reduce_hosts(const struct reduction *it, uint64_t count, void *target)
{
    struct cpu_hosts *hosts = it->comm->other_hosts;
    struct cpu_reducer reducer = {
        .dtype = it->op->dtype, .reduction = it->op->reduction, .size = (uint32_t)hosts->count};

    if (it->wide) {
        add_wide(target, hosts->sources, hosts->count, count);
        return;
    }
    if (reducer.reduction == WEFT_REDUCE_AVG && it->op->parts >= (uint32_t)it->comm->size)
        reducer.divided = true;
    else if (reducer.reduction == WEFT_REDUCE_PREMUL_SUM || reducer.reduction == WEFT_REDUCE_AVG)
        reducer.reduction = WEFT_REDUCE_SUM;
    cpu_reduce(cpu_kernels(), &reducer, hosts->sources, target, count);
}

/* Convert COUNT elements of the result from PARTIAL to TARGET. */
static void take_result(const struct reduction *it, const void *partial, void *target,
                        uint64_t count)
{
    if (it->wide)
        cpu_divide_wide(cpu_kernels(), it->op->dtype, it->op->parts, partial, target, count);
    else
        memcpy(target, partial, count * it->element);
}

static struct reduction reduction_of(struct cpu_comm *comm, const struct cpu_shm_op *op)
{
    bool wide = op->reduction == WEFT_REDUCE_AVG && op->dtype < WEFT_DTYPE_F16;

    return (struct reduction){.comm = comm,
                              .op = op,
                              .element = wide ? sizeof(cpu_wide) : op->element,
                              .wide = wide,
                              .ends = comm->other_hosts->rank_room};
}

/* Leaders: send each host its range of the COUNT elements at PARTIAL, and combine this host's range
 * in place. */
static weft_status combine(const struct reduction *it, unsigned char *partial, uint64_t count)
{
    struct cpu_hosts *hosts = it->comm->other_hosts;
    struct net_part *sends = hosts->parts, *receives = hosts->parts + hosts->count;
    uint64_t own = range_count(it, hosts->own);
    unsigned char *mine, *room;
    uint32_t send_count = 0, receive_count = 0;

    if (!cpu_hosts_leads(it->comm)) return WEFT_OK;
    mine = partial + range_begin(it, hosts->own) * it->element;
    room = partial + count * it->element;
    for (int32_t h = 0; h < hosts->count; h++) {
        uint64_t begin = range_begin(it, h) * it->element;
        size_t bytes = range_count(it, h) * it->element;

        hosts->sources[h] = h == hosts->own ? mine : room;
        if (h == hosts->own) continue;
        if (bytes > 0)
            sends[send_count++] =
                (struct net_part){.peer = h, .data = partial + begin, .bytes = bytes};
        if (own == 0) continue;
        receives[receive_count++] =
            (struct net_part){.peer = h, .data = room, .bytes = own * it->element};
        room += own * it->element;
    }
    PLUG_TRY(cpu_hosts_exchange(it->comm, send_count, sends, receive_count, receives));
    if (own > 0) reduce_hosts(it, own, mine);
    return WEFT_OK;
}

/* Divide COUNT elements into equal ranges, one per host. */
static void divide(const struct reduction *it, uint64_t count)
{
    int32_t hosts = it->comm->other_hosts->count;

    for (int32_t h = 0; h < hosts; h++)
        it->ends[h] = count * ((uint64_t)h + 1) / (uint64_t)hosts;
}

/* Bytes of stage for a partial result of COUNT elements, with room for the largest range of each
 * host. */
static uint64_t stage_needed(const struct reduction *it, uint64_t count)
{
    const struct cpu_hosts *hosts = it->comm->other_hosts;
    uint64_t own = range_count(it, hosts->own);

    return (count + own * ((uint64_t)hosts->count - 1)) * it->element;
}

/* Number of elements of the partial result that fit in the stage for any ranges. */
static uint64_t partial_room(const struct reduction *it)
{
    const struct cpu_hosts *hosts = it->comm->other_hosts;
    uint64_t room = hosts->stage_bytes / ((uint64_t)hosts->count * it->element);

    return room > 0 ? room : 1;
}

/* ---- all_reduce and reduce ---- */

static weft_status spread(const struct reduction *it, unsigned char *partial)
{
    struct cpu_hosts *hosts = it->comm->other_hosts;

    for (int32_t h = 0; h < hosts->count; h++)
        hosts->host_room[h] = range_count(it, h) * it->element;
    return cpu_hosts_all_gather(it->comm, partial, hosts->host_room);
}

/* Leaders: send all ranges to the host of the root. */
static weft_status collect(const struct reduction *it, unsigned char *partial)
{
    struct cpu_hosts *hosts = it->comm->other_hosts;
    int32_t home = it->comm->host_of[it->op->root];
    struct net_part *parts = hosts->parts;
    uint32_t count = 0;

    if (!cpu_hosts_leads(it->comm)) return WEFT_OK;
    for (int32_t h = 0; h < hosts->count; h++) {
        bool concerns_us = hosts->own == home ? h != home : h == hosts->own;

        if (!concerns_us || range_count(it, h) == 0) continue;
        parts[count++] = (struct net_part){.peer = hosts->own == home ? h : home,
                                           .data = partial + range_begin(it, h) * it->element,
                                           .bytes = range_count(it, h) * it->element};
    }
    if (hosts->own == home) return cpu_hosts_exchange(it->comm, 0, NULL, count, parts);
    return cpu_hosts_exchange(it->comm, count, parts, 0, NULL);
}

/* One step for small data: every host gets all data and combines it. */
static weft_status combine_small(const struct reduction *it, unsigned char *stage, uint64_t count)
{
    struct cpu_hosts *hosts = it->comm->other_hosts;
    size_t bytes = count * it->element;

    if (!cpu_hosts_leads(it->comm)) return WEFT_OK;
    for (int32_t h = 0; h < hosts->count; h++) {
        hosts->host_room[h] = bytes;
        hosts->sources[h] = stage + bytes * (size_t)h;
    }
    PLUG_TRY(cpu_hosts_all_gather(it->comm, stage, hosts->host_room));
    reduce_hosts(it, count, stage);
    return WEFT_OK;
}

static weft_status reduce_round(const struct reduction *it, uint64_t first, uint64_t count)
{
    struct cpu_comm *comm = it->comm;
    struct cpu_hosts *hosts = comm->other_hosts;
    struct cpu_shm_call call = cpu_shm_call_of(it->op, comm->size);
    uint64_t bytes = count * it->element, all = bytes * (uint64_t)hosts->count;
    bool to_all = it->op->collective == WEFT_COLL_ALL_REDUCE, small = all <= SMALL_BYTES;
    unsigned char *stage;

    divide(it, count);
    PLUG_TRY(cpu_hosts_stage(comm, small ? all : stage_needed(it, count), &stage));
    PLUG_TRY(reduce_locally(it, first, count, small ? bytes * (uint64_t)hosts->own : 0));
    if (small) {
        PLUG_TRY(combine_small(it, stage, count));
    } else {
        PLUG_TRY(combine(it, stage, count));
        PLUG_TRY(to_all ? spread(it, stage) : collect(it, stage));
    }
    PLUG_TRY(cpu_hosts_share(comm, &call, bytes, &stage));
    if (to_all || comm->rank == it->op->root)
        take_result(it, stage, (unsigned char *)it->op->recv + first * it->op->element, count);
    return cpu_hosts_finish(comm);
}

weft_status cpu_hosts_reduce(struct cpu_comm *comm, const struct cpu_shm_op *op)
{
    struct reduction it = reduction_of(comm, op);
    uint64_t step = partial_room(&it);

    if (op->collective == WEFT_COLL_ALL_REDUCE && cpu_hosts_combine_directly(op)) {
        if (comm->other_hosts->most == 1) return cpu_hosts_direct_all_reduce(comm, op);
        if (cpu_hosts_have_lanes(comm)) return cpu_hosts_lanes_all_reduce(comm, op);
    }
    for (uint64_t round = 0; round < cpu_hosts_rounds(op->count, step); round++)
        PLUG_TRY(reduce_round(&it, round * step, cpu_hosts_part(op->count, step, round)));
    return WEFT_OK;
}

/* ---- reduce_scatter ---- */

static uint64_t block_count(const struct cpu_shm_op *op, int32_t rank)
{
    return op->send_counts != NULL ? op->send_counts[rank] : op->count;
}

static uint64_t block_offset(const struct cpu_shm_op *op, int32_t rank)
{
    return op->send_counts != NULL ? op->send_offsets[rank] : (uint64_t)rank * op->count;
}

/* The partial result has the round's part of every block, in the order of hosts.  Blocks that are
 * adjacent in SEND on all ranks are combined in one operation. */
static weft_status reduce_blocks(const struct reduction *it, uint64_t step, uint64_t round)
{
    const struct cpu_hosts *hosts = it->comm->other_hosts;
    uint64_t first = 0, count = 0, at = 0;

    for (int32_t i = 0; i < it->comm->size; i++) {
        int32_t rank = hosts->ranks[i];
        uint64_t begin = block_offset(it->op, rank) + step * round;
        uint64_t length = cpu_hosts_part(block_count(it->op, rank), step, round);

        if (length == 0) continue;
        if (count > 0 && (it->op->send_counts != NULL || begin != first + count)) {
            PLUG_TRY(reduce_locally(it, first, count, at));
            at += count * it->element;
            count = 0;
        }
        if (count == 0) first = begin;
        count += length;
    }
    return reduce_locally(it, first, count, at);
}

/* Set the ranges to the sum of the blocks of each host's ranks, and *OWN to the position of this
 * rank's part. */
static uint64_t lay_out(const struct reduction *it, uint64_t step, uint64_t round, uint64_t *own)
{
    const struct cpu_hosts *hosts = it->comm->other_hosts;
    uint64_t end = 0;

    for (int32_t h = 0; h < hosts->count; h++) {
        for (int32_t i = hosts->first[h]; i < hosts->first[h + 1]; i++) {
            if (hosts->ranks[i] == it->comm->rank) *own = end;
            end += cpu_hosts_part(block_count(it->op, hosts->ranks[i]), step, round);
        }
        it->ends[h] = end;
    }
    return end;
}

static weft_status scatter_round(const struct reduction *it, uint64_t step, uint64_t round)
{
    struct cpu_comm *comm = it->comm;
    struct cpu_shm_call call = cpu_shm_call_of(it->op, comm->size);
    uint64_t own = 0, total = lay_out(it, step, round, &own);
    uint64_t mine = cpu_hosts_part(block_count(it->op, comm->rank), step, round);
    uint64_t bytes = stage_needed(it, total);
    unsigned char *stage;

    PLUG_TRY(cpu_hosts_stage(comm, bytes, &stage));
    PLUG_TRY(reduce_blocks(it, step, round));
    PLUG_TRY(combine(it, stage, total));
    PLUG_TRY(cpu_hosts_share(comm, &call, bytes, &stage));
    if (mine > 0)
        take_result(it, stage + own * it->element,
                    (unsigned char *)it->op->recv + step * round * it->op->element, mine);
    return cpu_hosts_finish(comm);
}

weft_status cpu_hosts_reduce_scatter(struct cpu_comm *comm, const struct cpu_shm_op *op)
{
    struct reduction it = reduction_of(comm, op);
    uint64_t most = 0, step = partial_room(&it) / (uint64_t)comm->size;

    if (cpu_hosts_combine_directly(op)) {
        if (comm->other_hosts->most == 1) return cpu_hosts_direct_reduce_scatter(comm, op);
        if (cpu_hosts_have_lanes(comm)) return cpu_hosts_lanes_reduce_scatter(comm, op);
    }
    for (int32_t r = 0; r < comm->size; r++)
        if (block_count(op, r) > most) most = block_count(op, r);
    if (step == 0) step = 1;
    for (uint64_t round = 0; round < cpu_hosts_rounds(most, step); round++)
        PLUG_TRY(scatter_round(&it, step, round));
    return WEFT_OK;
}
