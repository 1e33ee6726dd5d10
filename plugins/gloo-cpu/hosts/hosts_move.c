/* hosts_move.c - collectives that send the same data to every host. */
#include "hosts.h"

#include <string.h>

weft_status cpu_hosts_barrier(struct cpu_comm *comm, const struct cpu_shm_op *op)
{
    struct cpu_shm_call call = cpu_shm_call_of(op, comm->size);
    unsigned char *stage;

    PLUG_TRY(cpu_hosts_share(comm, &call, 1, &stage));
    PLUG_TRY(cpu_hosts_finish(comm));
    PLUG_TRY(cpu_hosts_synchronize(comm));
    PLUG_TRY(cpu_hosts_share(comm, &call, 1, &stage));
    return cpu_hosts_finish(comm);
}

static weft_status broadcast_round(struct cpu_comm *comm, const struct cpu_shm_op *op,
                                   uint64_t begin, uint64_t bytes)
{
    struct cpu_shm_call call = cpu_shm_call_of(op, comm->size);
    unsigned char *stage;

    PLUG_TRY(cpu_hosts_share(comm, &call, bytes, &stage));
    if (comm->rank == op->root) memcpy(stage, (const unsigned char *)op->send + begin, bytes);
    PLUG_TRY(cpu_hosts_finish(comm));
    PLUG_TRY(cpu_hosts_send_to_all(comm, stage, bytes, comm->host_of[op->root]));
    PLUG_TRY(cpu_hosts_share(comm, &call, bytes, &stage));
    if (comm->rank != op->root) memcpy((unsigned char *)op->recv + begin, stage, bytes);
    return cpu_hosts_finish(comm);
}

weft_status cpu_hosts_broadcast(struct cpu_comm *comm, const struct cpu_shm_op *op)
{
    uint64_t bytes = op->count * op->element, step = comm->other_hosts->stage_bytes;

    if (bytes > 0 && comm->rank == op->root && op->send != op->recv)
        memmove(op->recv, op->send, bytes);
    if (comm->other_hosts->most == 1)
        return bytes > 0 ? cpu_hosts_send_to_all(comm, op->recv, bytes, op->root) : WEFT_OK;
    if (cpu_hosts_have_lanes(comm)) return cpu_hosts_lanes_broadcast(comm, op);
    for (uint64_t round = 0; round < cpu_hosts_rounds(bytes, step); round++)
        PLUG_TRY(broadcast_round(comm, op, round * step, cpu_hosts_part(bytes, step, round)));
    return WEFT_OK;
}

/* ---- all_gather ---- */

struct gathering {
    struct cpu_comm *comm;
    const struct cpu_shm_op *op;
    const unsigned char *send;
    uint64_t step, round; /* elements of each rank's share per round */
};

static uint64_t share_of(const struct cpu_shm_op *op, int32_t rank)
{
    return op->recv_counts != NULL ? op->recv_counts[rank] : op->count;
}

static unsigned char *target_of(const struct cpu_shm_op *op, int32_t rank)
{
    uint64_t offset = op->recv_counts != NULL ? op->recv_offsets[rank] : (uint64_t)rank * op->count;

    return (unsigned char *)op->recv + offset * op->element;
}

/* Compute the offset of each rank's part in the stage: ordered by host, then by rank.  Returns the
 * total number of bytes. */
static uint64_t lay_out(const struct gathering *it, uint64_t *at, size_t *host_bytes)
{
    const struct cpu_hosts *hosts = it->comm->other_hosts;
    uint64_t end = 0;

    for (int32_t h = 0; h < hosts->count; h++) {
        uint64_t begin = end;

        for (int32_t i = hosts->first[h]; i < hosts->first[h + 1]; i++) {
            int32_t rank = hosts->ranks[i];

            at[rank] = end;
            end += cpu_hosts_part(share_of(it->op, rank), it->step, it->round) * it->op->element;
        }
        host_bytes[h] = end - begin;
    }
    return end;
}

static uint64_t part_bytes(const struct gathering *it, int32_t rank)
{
    return cpu_hosts_part(share_of(it->op, rank), it->step, it->round) * it->op->element;
}

static weft_status gather_round(const struct gathering *it)
{
    struct cpu_comm *comm = it->comm;
    struct cpu_hosts *hosts = comm->other_hosts;
    struct cpu_shm_call call = cpu_shm_call_of(it->op, comm->size);
    uint64_t *at = hosts->rank_room, begin = it->step * it->round * it->op->element;
    uint64_t bytes = lay_out(it, at, hosts->host_room);
    unsigned char *stage;

    PLUG_TRY(cpu_hosts_share(comm, &call, bytes, &stage));
    if (part_bytes(it, comm->rank) > 0)
        memcpy(stage + at[comm->rank], it->send + begin, part_bytes(it, comm->rank));
    PLUG_TRY(cpu_hosts_finish(comm));
    PLUG_TRY(cpu_hosts_all_gather(comm, stage, hosts->host_room));
    PLUG_TRY(cpu_hosts_share(comm, &call, bytes, &stage));
    for (int32_t r = 0; r < comm->size; r++)
        if (part_bytes(it, r) > 0)
            memcpy(target_of(it->op, r) + begin, stage + at[r], part_bytes(it, r));
    return cpu_hosts_finish(comm);
}

/* Every rank is alone on its host: straight into the buffers. */
static weft_status gather_directly(const struct gathering *it)
{
    struct cpu_comm *comm = it->comm;
    struct cpu_hosts *hosts = comm->other_hosts;
    struct net_part *sends = hosts->parts, *receives = hosts->parts + hosts->count;
    uint64_t own = share_of(it->op, comm->rank) * it->op->element;
    uint32_t send_count = 0, receive_count = 0;

    for (int32_t i = 1; i < hosts->count; i++) {
        int32_t to = (hosts->own + i) % hosts->count;
        int32_t from = (hosts->own - i + hosts->count) % hosts->count;
        uint64_t bytes = share_of(it->op, from) * it->op->element;

        if (own > 0)
            sends[send_count++] =
                (struct net_part){.peer = to, .data = (void *)it->send, .bytes = own};
        if (bytes > 0)
            receives[receive_count++] =
                (struct net_part){.peer = from, .data = target_of(it->op, from), .bytes = bytes};
    }
    if (own > 0 && it->send != target_of(it->op, comm->rank))
        memcpy(target_of(it->op, comm->rank), it->send, own);
    return cpu_hosts_exchange(comm, send_count, sends, receive_count, receives);
}

/* Where all parts of RECV end, in bytes. */
static uint64_t end_of(const struct cpu_comm *comm, const struct cpu_shm_op *op)
{
    uint64_t end = 0;

    for (int32_t r = 0; r < comm->size; r++) {
        uint64_t at = (uint64_t)(target_of(op, r) - (unsigned char *)op->recv);

        if (at + share_of(op, r) * op->element > end) end = at + share_of(op, r) * op->element;
    }
    return end;
}

weft_status cpu_hosts_all_gather_any(struct cpu_comm *comm, const struct cpu_shm_op *op)
{
    struct gathering it = {.comm = comm, .op = op, .send = op->send};
    uint64_t most = 0, own = share_of(op, comm->rank) * op->element;
    unsigned char *copy = NULL;
    weft_status status = WEFT_OK;

    if (cpu_hosts_have_lanes(comm)) return cpu_hosts_lanes_all_gather(comm, op);
    for (int32_t r = 0; r < comm->size; r++)
        if (share_of(op, r) > most) most = share_of(op, r);
    /* What arrives must not overwrite data that is sent later. */
    if (op->send != target_of(op, comm->rank) &&
        cpu_hosts_overlap(op->send, own, op->recv, end_of(comm, op))) {
        copy = plug_alloc(own);
        if (copy == NULL) return cpu_shm_fail(&comm->group, WEFT_ERR_NO_MEMORY, "out of memory");
        memcpy(copy, op->send, own);
        it.send = copy;
    }
    if (comm->other_hosts->most == 1) {
        status = gather_directly(&it);
        plug_free(copy);
        return status;
    }
    it.step = comm->other_hosts->stage_bytes / ((uint64_t)comm->size * op->element);
    if (it.step == 0) it.step = 1;
    for (; status == WEFT_OK && it.round < cpu_hosts_rounds(most, it.step); it.round++)
        status = gather_round(&it);
    plug_free(copy);
    return status;
}
