/* hosts.h - communicators whose ranks are on several hosts.
 *
 * Within a host ranks share memory (shm.h).  If all hosts have the same number of ranks, every rank
 * communicates over the network (network/network.h) with the ranks at its place of the other hosts:
 * these are a lane.
 *
 * Otherwise, and for some collectives always, the first rank of each host is its leader, and only
 * leaders communicate.  A collective then uses the leader's stage, a piece of shared memory.  The
 * ranks of a host copy data for other hosts into the stage, the leaders exchange the stages, and
 * the ranks copy the received data out.  Data larger than the stage is sent in several rounds.
 *
 * Reductions combine the ranks of each host first, in rank order, and then the hosts, in their
 * order.  Results therefore do not depend on timing.
 *
 * Messages between ranks of different hosts go directly.  So do the blocks of collectives with one
 * block per pair of ranks.
 *
 * A failure anywhere ends the communicator everywhere: within the host through cpu_shm_fail, and
 * beyond by disconnecting with the cause. */
#ifndef WEFT_CPU_HOSTS_H
#define WEFT_CPU_HOSTS_H

#include "cpu_comm.h"

#include "network/network.h"

/* Shared memory of the leader, through which the other ranks of its host pass data. */
struct cpu_hosts_stage {
    void *memory;
    uint64_t bytes;
};

struct cpu_hosts {
    const struct net_carrier *carrier;
    struct net_group *network; /* all ranks; connected between different hosts */

    int32_t count, own;     /* number of hosts, in the order of their first ranks; this host */
    int32_t *ranks, *first; /* host h has the ranks RANKS[FIRST[h]] to RANKS[FIRST[h + 1]] */
    int32_t most;           /* maximum number of ranks on a host */
    bool is_even;           /* all hosts have as many */
    int32_t lane;           /* of the collective: the place of the ranks that talk to each other */

    uint64_t stage_bytes; /* maximum bytes staged at a time; the same on all ranks */
    struct cpu_hosts_stage stage;
    _Atomic(bool) disconnected;

    /* Scratch of one collective. */
    uint64_t *rank_room, *matrix; /* one number per rank, and one per pair of ranks */
    size_t *host_room;            /* one number per host */
    uint64_t *local_room;         /* four numbers per rank */
    struct net_part *parts;       /* two per rank */
    struct cpu_shm_call call;     /* the collective, as all ranks should make it */
    unsigned char *room;          /* private memory */
    size_t room_bytes;
    const void **sources; /* one per host */

    /* Windows (hosts_windows.c). */
    _Atomic(uint32_t) requests; /* of this rank */
    bool serves;                /* SERVER runs */
    pthread_t server;
};

static inline bool cpu_hosts_leads(const struct cpu_comm *comm)
{
    return comm->group.rank == 0;
}
/* The rank of HOST that talks to those of other hosts. */
static inline int32_t cpu_hosts_talker(const struct cpu_hosts *hosts, int32_t host)
{
    return hosts->ranks[hosts->first[host] + hosts->lane];
}
static inline int32_t cpu_hosts_size(const struct cpu_hosts *hosts, int32_t host)
{
    return hosts->first[host + 1] - hosts->first[host];
}

/* ---- hosts_address.c: the choice of the network address of a host ---- */

#define HOSTS_ADDRESSES 12

struct cpu_hosts_address {
    uint8_t family, prefix; /* AF_INET or AF_INET6, and bits of the network */
    uint8_t loopback, unused;
    uint8_t bytes[16];
};

/* All addresses of one rank's host, or those that WEFT_GLOO_INTERFACE selects. */
struct cpu_hosts_addresses {
    uint64_t network; /* equal iff the ranks see the same network interfaces */
    uint32_t count, unused;
    struct cpu_hosts_address list[HOSTS_ADDRESSES];
};

weft_status cpu_hosts_addresses_find(struct cpu_hosts_addresses *out);
/* True if the fields are within their bounds.  Another rank may have sent them. */
bool cpu_hosts_addresses_valid(const struct cpu_hosts_addresses *addresses);
/* The index in ALL[own] of the address that all ranks can reach.  ALL is equal on all ranks and
 * valid. */
uint32_t cpu_hosts_address_choose(const struct cpu_hosts_addresses *all, size_t stride,
                                  int32_t count, int32_t own);
/* "10.0.0.1" */
void cpu_hosts_address_print(const struct cpu_hosts_address *address, char *text, size_t bytes);
/* The name of this host's interface that has the printed ADDRESS; "" if none has it. */
void cpu_hosts_interface_find(const char *address, char *name, size_t bytes);

/* ---- hosts_fail.c ---- */

/* Fail the communicator during DOING.  The cause is the one that the disconnected peer sent, if
 * any. */
weft_status cpu_hosts_fail(struct cpu_comm *comm, const char *doing,
                           const struct net_failure *failure);
/* If the communicator has failed, send the cause to the other hosts, once, and disconnect. */
void cpu_hosts_disconnect(struct cpu_comm *comm);

/* ---- hosts_stage.c ---- */

/* The leader's stage of at least BYTES; NULL on other ranks. */
weft_status cpu_hosts_stage(struct cpu_comm *comm, uint64_t bytes, unsigned char **stage);
/* On all ranks of the host: the leader's stage of at least BYTES. */
weft_status cpu_hosts_share(struct cpu_comm *comm, const struct cpu_shm_call *call, uint64_t bytes,
                            unsigned char **stage);
/* End the use of the stage.  The leader waits for the other ranks. */
weft_status cpu_hosts_finish(struct cpu_comm *comm);
/* Private memory of at least BYTES, until the next call of this. */
weft_status cpu_hosts_room(struct cpu_comm *comm, size_t bytes, unsigned char **room);

/* ---- hosts_network.c: what a lane does; on ranks of other lanes these do nothing ---- */

/* Start messages of the collective.  PARTS name hosts as peers, and messages of one tag between two
 * hosts match in order.  The caller waits for *WORK, also after another failure. */
weft_status cpu_hosts_start(struct cpu_comm *comm, uint32_t send_count, struct net_part *sends,
                            uint32_t receive_count, struct net_part *receives,
                            struct net_work **work);
/* The same, for all ranks, with PARTS that name ranks. */
weft_status cpu_hosts_start_to_ranks(struct cpu_comm *comm, uint32_t send_count,
                                     struct net_part *sends, uint32_t receive_count,
                                     struct net_part *receives, struct net_work **work);
weft_status cpu_hosts_wait(struct cpu_comm *comm, struct net_work *work);
/* Both. */
weft_status cpu_hosts_exchange(struct cpu_comm *comm, uint32_t send_count, struct net_part *sends,
                               uint32_t receive_count, struct net_part *receives);
/* In place: DATA has the parts of all hosts one after the other, BYTES[i] long. */
weft_status cpu_hosts_all_gather(struct cpu_comm *comm, unsigned char *data, const size_t *bytes);
weft_status cpu_hosts_send_to_all(struct cpu_comm *comm, void *data, size_t bytes, int32_t host);
weft_status cpu_hosts_synchronize(struct cpu_comm *comm);

static inline bool cpu_hosts_overlap(const void *a, uint64_t a_bytes, const void *b,
                                     uint64_t b_bytes)
{
    uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;

    return a_bytes > 0 && b_bytes > 0 && x < y + b_bytes && y < x + a_bytes;
}

/* Rounds of at most STEP elements over blocks of at most MOST. */
static inline uint64_t cpu_hosts_rounds(uint64_t most, uint64_t step)
{
    return most == 0 ? 0 : (most - 1) / step + 1;
}
/* The number of elements of COUNT that belong to ROUND. */
static inline uint64_t cpu_hosts_part(uint64_t count, uint64_t step, uint64_t round)
{
    uint64_t begin = step * round;

    if (begin >= count) return 0;
    return count - begin < step ? count - begin : step;
}

/* ---- collectives; arguments are checked, and ranks are those of the communicator ---- */

/* hosts_move.c */
weft_status cpu_hosts_barrier(struct cpu_comm *comm, const struct cpu_shm_op *op);
weft_status cpu_hosts_broadcast(struct cpu_comm *comm, const struct cpu_shm_op *op);
weft_status cpu_hosts_all_gather_any(struct cpu_comm *comm, const struct cpu_shm_op *op);
/* hosts_swap.c: collectives with one block per pair of ranks */
weft_status cpu_hosts_swap(struct cpu_comm *comm, const struct cpu_shm_op *op);
/* hosts_reduce.c: all_reduce and reduce; reduce_scatter */
weft_status cpu_hosts_reduce(struct cpu_comm *comm, const struct cpu_shm_op *op);
weft_status cpu_hosts_reduce_scatter(struct cpu_comm *comm, const struct cpu_shm_op *op);
/* True if the reduction needs no stage.  Averages and scales are applied within hosts, and need it.
 * The same answer on all ranks. */
static inline bool cpu_hosts_combine_directly(const struct cpu_shm_op *op)
{
    return op->reduction != WEFT_REDUCE_AVG && op->reduction != WEFT_REDUCE_PREMUL_SUM;
}
/* hosts_direct.c: reductions without a stage, by one rank of each host: that of the lane. */
weft_status cpu_hosts_direct_all_reduce(struct cpu_comm *comm, const struct cpu_shm_op *op);
weft_status cpu_hosts_direct_reduce_scatter(struct cpu_comm *comm, const struct cpu_shm_op *op);
/* hosts_lanes.c: the same where every host has the same number of ranks, and several */
bool cpu_hosts_have_lanes(const struct cpu_comm *comm);
weft_status cpu_hosts_lanes_all_reduce(struct cpu_comm *comm, const struct cpu_shm_op *op);
weft_status cpu_hosts_lanes_broadcast(struct cpu_comm *comm, const struct cpu_shm_op *op);
weft_status cpu_hosts_lanes_all_gather(struct cpu_comm *comm, const struct cpu_shm_op *op);
weft_status cpu_hosts_lanes_reduce_scatter(struct cpu_comm *comm, const struct cpu_shm_op *op);
/* hosts_windows.c: one-sided operations */
enum cpu_hosts_access_kind { HOSTS_SIGNAL, HOSTS_PUT, HOSTS_GET };
struct cpu_hosts_access {
    uint32_t window; /* its number */
    int32_t peer;
    uint32_t kind;
    uint64_t offset, bytes; /* in the window */
    void *memory;           /* of this rank; a put only reads it */
    bool signals;           /* SIGNAL changes, after a put */
    uint32_t signal, op;
    uint64_t value;
};
/* Access a window of a rank on another host.  Returns when the peer has done its part. */
weft_status cpu_hosts_access(struct cpu_comm *comm, const struct cpu_hosts_access *access);
/* True if the carrier can do that. */
bool cpu_hosts_can_serve(const struct cpu_comm *comm);
/* Serve the accesses of other hosts to this rank's windows, until the end. */
weft_status cpu_hosts_serve(struct cpu_comm *comm);
/* hosts_check.c: compare the calls of all ranks */
weft_status cpu_hosts_check(struct cpu_comm *comm, const struct cpu_shm_op *op);

#endif
