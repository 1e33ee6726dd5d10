/* hosts_direct.c - reductions without a stage, by one rank of each host.
 *
 * Small data is gathered by every rank in steps that double what it has, and combined there.  Large
 * data is cut into chunks.  While a rank combines one chunk of its range, the next one and the
 * result of the one before are on their way.  Sources are always combined in the order of hosts. */
#include "hosts.h"

#include "kernel/cpu_level.h"

#include <string.h>

#define SMALL_BYTES (UINT64_C(16) << 10) /* all hosts together */
#define CHUNK_BYTES (UINT64_C(512) << 10)

enum { PARTS, RESULTS }; /* tags of messages */

/* Combine COUNT elements of each of hosts->sources. */
static void combine(const struct cpu_hosts *hosts, const struct cpu_shm_op *op, void *target,
                    uint64_t count)
{
    struct cpu_reducer reducer = {
        .dtype = op->dtype, .reduction = op->reduction, .size = (uint32_t)hosts->count};

    cpu_reduce(cpu_kernels(), &reducer, hosts->sources, target, count);
}

/* ---- small data ---- */

/* ROOM has BYTES of this host, and gets those of the next hosts behind it. */
static weft_status gather_doubling(struct cpu_comm *comm, unsigned char *room, size_t bytes)
{
    const struct cpu_hosts *hosts = comm->other_hosts;
    int32_t count = hosts->count, own = hosts->own;

    for (int32_t have = 1; have < count; have *= 2) {
        size_t length = bytes * (size_t)(have < count - have ? have : count - have);
        struct net_part send = {.peer = (own - have + count) % count, .data = room};
        struct net_part receive = {.peer = (own + have) % count,
                                   .data = room + bytes * (size_t)have};

        send.bytes = receive.bytes = length;
        PLUG_TRY(cpu_hosts_exchange(comm, 1, &send, 1, &receive));
    }
    return WEFT_OK;
}

static weft_status reduce_small(struct cpu_comm *comm, const struct cpu_shm_op *op)
{
    struct cpu_hosts *hosts = comm->other_hosts;
    size_t bytes = op->count * op->element;
    unsigned char *room;

    PLUG_TRY(cpu_hosts_room(comm, SMALL_BYTES, &room));
    memcpy(room, op->send, bytes);
    PLUG_TRY(gather_doubling(comm, room, bytes));
    for (int32_t h = 0; h < hosts->count; h++)
        hosts->sources[h] = room + bytes * (size_t)((h - hosts->own + hosts->count) % hosts->count);
    combine(hosts, op, op->recv, op->count);
    return WEFT_OK;
}

/* ---- large data ---- */

/* One reduction.  Host h combines COUNTS[h] elements at OFFSETS[h] of what all hosts send. */
struct chunks {
    struct cpu_comm *comm;
    const struct cpu_shm_op *op;
    const unsigned char *send;
    unsigned char *result; /* of this host's range */
    bool to_all;           /* everybody gets all results */
    uint64_t *offsets, *counts;
    uint64_t step, number; /* elements of a chunk, and how many chunks */
    unsigned char *room;   /* for the parts of two chunks */
    struct net_work *parts[2], *results[2];
};

static uint64_t chunk_bytes(const struct chunks *it, int32_t host, uint64_t index)
{
    return cpu_hosts_part(it->counts[host], it->step, index) * it->op->element;
}

static const unsigned char *chunk_of(const struct chunks *it, int32_t host, uint64_t index)
{
    return it->send + (it->offsets[host] + it->step * index) * it->op->element;
}

/* Where the parts of HOST of this host's chunk INDEX arrive. */
static unsigned char *room_of(const struct chunks *it, int32_t host, uint64_t index)
{
    const struct cpu_hosts *hosts = it->comm->other_hosts;
    uint64_t place = (uint64_t)(host < hosts->own ? host : host - 1);

    return it->room +
           ((index % 2) * (uint64_t)(hosts->count - 1) + place) * it->step * it->op->element;
}

static weft_status start_parts(struct chunks *it, uint64_t index)
{
    struct cpu_hosts *hosts = it->comm->other_hosts;
    struct net_part *sends = hosts->parts, *receives = hosts->parts + hosts->count;
    size_t own = chunk_bytes(it, hosts->own, index);
    uint32_t send_count = 0, receive_count = 0;

    for (int32_t h = 0; h < hosts->count; h++) {
        size_t bytes = chunk_bytes(it, h, index);

        if (h == hosts->own) continue;
        if (bytes > 0)
            sends[send_count++] = (struct net_part){
                .peer = h, .tag = PARTS, .data = (void *)chunk_of(it, h, index), .bytes = bytes};
        if (own > 0)
            receives[receive_count++] = (struct net_part){
                .peer = h, .tag = PARTS, .data = room_of(it, h, index), .bytes = own};
    }
    return cpu_hosts_start(it->comm, send_count, sends, receive_count, receives,
                           &it->parts[index % 2]);
}

static weft_status start_results(struct chunks *it, uint64_t index)
{
    struct cpu_hosts *hosts = it->comm->other_hosts;
    struct net_part *sends = hosts->parts, *receives = hosts->parts + hosts->count;
    size_t own = chunk_bytes(it, hosts->own, index), element = it->op->element;
    uint32_t send_count = 0, receive_count = 0;

    for (int32_t h = 0; h < hosts->count; h++) {
        size_t bytes = chunk_bytes(it, h, index);

        if (h == hosts->own) continue;
        if (own > 0)
            sends[send_count++] = (struct net_part){.peer = h,
                                                    .tag = RESULTS,
                                                    .data = it->result + it->step * index * element,
                                                    .bytes = own};
        if (bytes > 0)
            receives[receive_count++] =
                (struct net_part){.peer = h,
                                  .tag = RESULTS,
                                  .data = (unsigned char *)it->op->recv +
                                          (it->offsets[h] + it->step * index) * element,
                                  .bytes = bytes};
    }
    return cpu_hosts_start(it->comm, send_count, sends, receive_count, receives,
                           &it->results[index % 2]);
}

static weft_status finish(struct chunks *it, struct net_work **work)
{
    struct net_work *ended = *work;

    *work = NULL;
    return cpu_hosts_wait(it->comm, ended);
}

static void combine_chunk(const struct chunks *it, uint64_t index)
{
    struct cpu_hosts *hosts = it->comm->other_hosts;
    uint64_t count = cpu_hosts_part(it->counts[hosts->own], it->step, index);

    if (count == 0) return;
    for (int32_t h = 0; h < hosts->count; h++)
        hosts->sources[h] = h == hosts->own ? chunk_of(it, h, index) : room_of(it, h, index);
    combine(hosts, it->op, it->result + it->step * index * it->op->element, count);
}

static weft_status run_chunks(struct chunks *it)
{
    PLUG_TRY(start_parts(it, 0));
    for (uint64_t i = 0; i < it->number; i++) {
        if (i + 1 < it->number) PLUG_TRY(start_parts(it, i + 1));
        PLUG_TRY(finish(it, &it->parts[i % 2]));
        combine_chunk(it, i);
        if (!it->to_all) continue;
        PLUG_TRY(finish(it, &it->results[i % 2]));
        PLUG_TRY(start_results(it, i));
    }
    for (int i = 0; i < 2; i++)
        PLUG_TRY(finish(it, &it->results[i]));
    return WEFT_OK;
}

/* OFFSETS and COUNTS are set. */
static weft_status reduce_large(struct chunks *it)
{
    struct cpu_comm *comm = it->comm;
    struct cpu_hosts *hosts = comm->other_hosts;
    struct net_failure ignored;
    uint64_t most = 0;
    weft_status status;

    for (int32_t h = 0; h < hosts->count; h++)
        if (it->counts[h] > most) most = it->counts[h];
    if (most == 0) return WEFT_OK;
    it->step = CHUNK_BYTES / it->op->element;
    if (it->step > most) it->step = most;
    it->number = cpu_hosts_rounds(most, it->step);
    PLUG_TRY(cpu_hosts_room(comm, 2 * (size_t)(hosts->count - 1) * it->step * it->op->element,
                            &it->room));
    status = run_chunks(it);
    if (status == WEFT_OK) return status;
    cpu_hosts_disconnect(comm); /* ends the remaining messages */
    for (int i = 0; i < 2; i++) {
        (void)hosts->carrier->wait(hosts->network, it->parts[i], &ignored);
        (void)hosts->carrier->wait(hosts->network, it->results[i], &ignored);
    }
    return status;
}

weft_status cpu_hosts_direct_all_reduce(struct cpu_comm *comm, const struct cpu_shm_op *op)
{
    struct cpu_hosts *hosts = comm->other_hosts;
    uint64_t count = op->count, bytes = count * op->element;
    struct chunks it = {.comm = comm,
                        .op = op,
                        .send = op->send,
                        .to_all = true,
                        .offsets = hosts->rank_room,
                        .counts = hosts->matrix};

    if (bytes * (uint64_t)hosts->count <= SMALL_BYTES)
        return count > 0 ? reduce_small(comm, op) : WEFT_OK;
    if (cpu_hosts_overlap(op->send, bytes, op->recv, bytes)) {
        memmove(op->recv, op->send, bytes);
        it.send = op->recv;
    }
    for (int32_t h = 0; h < hosts->count; h++) {
        it.offsets[h] = count * (uint64_t)h / (uint64_t)hosts->count;
        it.counts[h] = count * ((uint64_t)h + 1) / (uint64_t)hosts->count - it.offsets[h];
    }
    it.result = (unsigned char *)op->recv + it.offsets[hosts->own] * op->element;
    return reduce_large(&it);
}

weft_status cpu_hosts_direct_reduce_scatter(struct cpu_comm *comm, const struct cpu_shm_op *op)
{
    struct cpu_hosts *hosts = comm->other_hosts;
    struct chunks it = {.comm = comm,
                        .op = op,
                        .send = op->send,
                        .result = op->recv,
                        .offsets = hosts->rank_room,
                        .counts = hosts->matrix};
    const unsigned char *own;
    unsigned char *copy = NULL;
    uint64_t end = 0, mine;
    weft_status status;

    for (int32_t h = 0; h < hosts->count; h++) {
        it.offsets[h] = op->send_counts != NULL ? op->send_offsets[h] : (uint64_t)h * op->count;
        it.counts[h] = op->send_counts != NULL ? op->send_counts[h] : op->count;
        if (it.offsets[h] + it.counts[h] > end) end = it.offsets[h] + it.counts[h];
    }
    mine = it.counts[hosts->own] * op->element;
    own = it.send + it.offsets[hosts->own] * op->element;
    if (own != op->recv && cpu_hosts_overlap(op->send, end * op->element, op->recv, mine)) {
        copy = plug_alloc(end * op->element);
        if (copy == NULL) return cpu_shm_fail(&comm->group, WEFT_ERR_NO_MEMORY, "out of memory");
        it.send = memcpy(copy, op->send, end * op->element);
    }
    status = reduce_large(&it);
    plug_free(copy);
    return status;
}
