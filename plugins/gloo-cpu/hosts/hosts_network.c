/* hosts_network.c - what the ranks of a lane, one of each host, do among each other, by messages.
 */
#include "hosts.h"

#include <string.h>

/* What is compared of a call.  These are set in a part of the head that is each rank's own choice
 * within a host.  Of a window, root and signature are the step and the window's number. */
#define BOUND  (UINT32_C(1) << SHM_WHERE_SHIFT)
#define WINDOW (UINT32_C(2) << SHM_WHERE_SHIFT)

static struct net_call net_call_of(const struct cpu_shm_call *call)
{
    struct cpu_shm_head head = cpu_shm_head_of(call);
    struct net_call words;

    if (call->identity.binding == SHM_WINDOW) {
        head.kind |= WINDOW;
        head.root = (int32_t)call->identity.step;
        head.signature = call->identity.plan;
    } else if (call->identity.binding != 0) {
        head.kind |= BOUND;
    }
    memcpy(&words, &head, sizeof words);
    return words;
}

static struct cpu_shm_call read_call(const struct cpu_shm_head *head)
{
    struct cpu_shm_call call = {.collective = (uint8_t)head->kind,
                                .dtype = (uint8_t)(head->kind >> 8),
                                .reduction = (uint8_t)(head->kind >> 16),
                                .root = head->root,
                                .count = head->signature};

    if ((head->kind & WINDOW) != 0) {
        call.identity = (struct cpu_shm_identity){
            .plan = head->signature, .binding = SHM_WINDOW, .step = (uint32_t)head->root};
        call.root = -1;
        call.count = 0;
    }
    return call;
}

/* The other rank may be at a step of a plan, of which it sends a hash only. */
static bool is_of_plan(const struct cpu_shm_call *ours, const struct cpu_shm_head *theirs)
{
    return (ours->identity.binding != 0 && ours->identity.binding != SHM_WINDOW) ||
           (theirs->kind & BOUND) != 0;
}

static weft_status fail_calls(struct cpu_comm *comm, const struct net_failure *failure)
{
    const struct cpu_shm_call *ours = &comm->other_hosts->call;
    struct cpu_shm_call theirs;
    struct cpu_shm_head head;
    int32_t own = comm->world_rank, peer = comm->names[failure->peer];

    memcpy(&head, &failure->theirs, sizeof head);
    if (is_of_plan(ours, &head))
        return cpu_shm_fail(&comm->group, WEFT_ERR_MISMATCH,
                            "collective %llu, %s: rank %d and rank %d are at different calls; all "
                            "ranks must run bound plans in the same order",
                            (unsigned long long)comm->group.called, comm->group.doing,
                            (int)(own < peer ? own : peer), (int)(own < peer ? peer : own));
    theirs = read_call(&head);
    if (own < peer) return cpu_shm_call_differs(&comm->group, own, ours, peer, &theirs);
    return cpu_shm_call_differs(&comm->group, peer, &theirs, own, ours);
}

static void describe_parts(const struct cpu_hosts *hosts, uint32_t count, struct net_part *parts)
{
    struct net_call call = net_call_of(&hosts->call);

    for (uint32_t i = 0; i < count; i++) {
        parts[i].kind = NET_COLLECTIVE;
        parts[i].call = call;
    }
}

weft_status cpu_hosts_start_to_ranks(struct cpu_comm *comm, uint32_t send_count,
                                     struct net_part *sends, uint32_t receive_count,
                                     struct net_part *receives, struct net_work **work)
{
    struct cpu_hosts *hosts = comm->other_hosts;
    struct net_failure failure = {0};

    *work = NULL;
    describe_parts(hosts, send_count, sends);
    describe_parts(hosts, receive_count, receives);
    if (hosts->carrier->start(hosts->network, send_count, sends, receive_count, receives, work,
                              &failure) == WEFT_OK)
        return WEFT_OK;
    return cpu_hosts_fail(comm, comm->group.doing, &failure);
}

static void address_talkers(const struct cpu_hosts *hosts, uint32_t count, struct net_part *parts)
{
    for (uint32_t i = 0; i < count; i++)
        parts[i].peer = cpu_hosts_talker(hosts, parts[i].peer);
}

weft_status cpu_hosts_start(struct cpu_comm *comm, uint32_t send_count, struct net_part *sends,
                            uint32_t receive_count, struct net_part *receives,
                            struct net_work **work)
{
    const struct cpu_hosts *hosts = comm->other_hosts;

    *work = NULL;
    if (comm->group.rank != hosts->lane) return WEFT_OK;
    address_talkers(hosts, send_count, sends);
    address_talkers(hosts, receive_count, receives);
    return cpu_hosts_start_to_ranks(comm, send_count, sends, receive_count, receives, work);
}

weft_status cpu_hosts_wait(struct cpu_comm *comm, struct net_work *work)
{
    struct cpu_hosts *hosts = comm->other_hosts;
    struct net_failure failure = {0};
    weft_status status;

    if (work == NULL) return WEFT_OK;
    atomic_fetch_add(&comm->group.control->away, 1);
    status = hosts->carrier->wait(hosts->network, work, &failure);
    atomic_fetch_sub(&comm->group.control->away, 1);
    if (status == WEFT_OK) return WEFT_OK;
    if (failure.other_call && !cpu_shm_has_failed(&comm->group)) return fail_calls(comm, &failure);
    return cpu_hosts_fail(comm, comm->group.doing, &failure);
}

weft_status cpu_hosts_exchange(struct cpu_comm *comm, uint32_t send_count, struct net_part *sends,
                               uint32_t receive_count, struct net_part *receives)
{
    struct net_work *work;

    PLUG_TRY(cpu_hosts_start(comm, send_count, sends, receive_count, receives, &work));
    return cpu_hosts_wait(comm, work);
}

weft_status cpu_hosts_all_gather(struct cpu_comm *comm, unsigned char *data, const size_t *bytes)
{
    struct cpu_hosts *hosts = comm->other_hosts;
    struct net_part *sends = hosts->parts, *receives = hosts->parts + hosts->count;
    uint32_t send_count = 0, receive_count = 0;
    unsigned char *at = data, *own = data;

    if (comm->group.rank != hosts->lane) return WEFT_OK;
    for (int32_t h = 0; h < hosts->own; h++)
        own += bytes[h];
    for (int32_t h = 0; h < hosts->count; at += bytes[h], h++) {
        if (h == hosts->own) continue;
        if (bytes[hosts->own] > 0)
            sends[send_count++] =
                (struct net_part){.peer = h, .data = own, .bytes = bytes[hosts->own]};
        if (bytes[h] > 0)
            receives[receive_count++] = (struct net_part){.peer = h, .data = at, .bytes = bytes[h]};
    }
    return cpu_hosts_exchange(comm, send_count, sends, receive_count, receives);
}

/* A binomial tree: a host that has the data sends it to hosts at half the distance each time. */
weft_status cpu_hosts_send_to_all(struct cpu_comm *comm, void *data, size_t bytes, int32_t host)
{
    struct cpu_hosts *hosts = comm->other_hosts;
    int32_t count = hosts->count, own = (hosts->own - host + count) % count, reach = 1;
    struct net_part part = {.data = data, .bytes = bytes};
    uint32_t sends = 0;

    while (reach < count && (own & reach) == 0)
        reach *= 2;
    if (own > 0) {
        part.peer = (own - reach + host) % count;
        PLUG_TRY(cpu_hosts_exchange(comm, 0, NULL, 1, &part));
    }
    for (reach /= 2; reach > 0; reach /= 2)
        if (own + reach < count)
            hosts->parts[sends++] = (struct net_part){
                .peer = (own + reach + host) % count, .data = data, .bytes = bytes};
    return cpu_hosts_exchange(comm, sends, hosts->parts, 0, NULL);
}

/* In round i each host hears of 2^i more of the hosts before it. */
weft_status cpu_hosts_synchronize(struct cpu_comm *comm)
{
    struct cpu_hosts *hosts = comm->other_hosts;
    int32_t count = hosts->count;
    uint64_t ours = 0, theirs;

    for (int32_t reach = 1; reach < count; reach *= 2) {
        struct net_part send = {
            .peer = (hosts->own + reach) % count, .data = &ours, .bytes = sizeof ours};
        struct net_part receive = {
            .peer = (hosts->own - reach + count) % count, .data = &theirs, .bytes = sizeof theirs};

        PLUG_TRY(cpu_hosts_exchange(comm, 1, &send, 1, &receive));
    }
    return WEFT_OK;
}
