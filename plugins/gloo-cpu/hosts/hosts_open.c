/* hosts_open.c - groups ranks by host and connects the hosts. */
#include "hosts.h"

#include "network/carriers.h"

#include <stdio.h>
#include <string.h>

/* ---- which ranks share memory ---- */

static bool together(const struct cpu_comm *comm, const unsigned char *attached, int32_t a,
                     int32_t b)
{
    size_t size = (size_t)comm->size;

    return comm->host_ids[a] == comm->host_ids[b] && attached[(size_t)a * size + (size_t)b] != 0 &&
           attached[(size_t)b * size + (size_t)a] != 0;
}

static bool fits(const struct cpu_comm *comm, const unsigned char *attached, int32_t host,
                 int32_t rank)
{
    for (int32_t p = 0; p < rank; p++)
        if (comm->host_of[p] == host && !together(comm, attached, p, rank)) return false;
    return true;
}

/* The first host all of whose ranks so far share memory with RANK, or a new host. */
static int32_t find_host(const struct cpu_comm *comm, const unsigned char *attached, int32_t rank)
{
    int32_t tried = -1;

    for (int32_t p = 0; p < rank; p++) {
        if (comm->host_ids[p] != comm->host_ids[rank] || comm->host_of[p] <= tried) continue;
        tried = comm->host_of[p];
        if (fits(comm, attached, tried, rank)) return tried;
    }
    return comm->hosts;
}

/* Remove the ranks of other hosts from the group. */
static void shrink_group(struct cpu_comm *comm)
{
    struct cpu_shm_group *group = &comm->group;
    int32_t kept = 0;

    for (int32_t p = 0; p < group->size; p++) {
        int32_t rank = comm->members[p];

        if (comm->host_of[rank] != comm->host_of[comm->rank]) {
            if (group->peers[p].attached) cpu_segment_detach(&group->peers[p].address);
            comm->places[rank] = -1;
            continue;
        }
        group->peers[kept] = group->peers[p];
        comm->places[rank] = kept;
        comm->members[kept++] = rank;
    }
    group->size = kept;
    group->rank = comm->places[comm->rank];
}

weft_status cpu_hosts_arrange(struct cpu_comm *comm, const unsigned char *attached)
{
    comm->hosts = 0;
    for (int32_t rank = 0; rank < comm->size; rank++) {
        comm->host_of[rank] = find_host(comm, attached, rank);
        if (comm->host_of[rank] == comm->hosts) comm->hosts++;
    }
    shrink_group(comm);
    return WEFT_OK;
}

weft_status cpu_hosts_possible(void)
{
    struct net_offer offer;

    return net_offer_find(&offer);
}

/* ---- creation ---- */

#define STAGE_BYTES (UINT64_C(16) << 20)
#define STAGE_MIN   UINT64_C(4096)
/* Longer than any address that a carrier publishes, in bytes: a rank that claims more is wrong. */
#define ADDRESS_MOST (UINT64_C(16) << 20)

/* The data that every rank publishes before any rank listens. */
struct card {
    struct cpu_outcome outcome;
    struct cpu_hosts_addresses addresses;
    uint64_t key, stage_bytes; /* rank 0's values are used */
    struct net_offer offer;
};

static void *take(unsigned char **room, size_t bytes)
{
    void *taken = *room;

    *room += (bytes + 15) / 16 * 16;
    return taken;
}

static weft_status allocate(struct cpu_comm *comm)
{
    size_t size = (size_t)comm->size, hosts = (size_t)comm->hosts;
    size_t bytes = sizeof(struct cpu_hosts) + size * (size + 7) * sizeof(uint64_t) +
                   2 * size * sizeof(struct net_part) + 4 * hosts * sizeof(uint64_t) + 256;
    unsigned char *room = plug_alloc(bytes);
    struct cpu_hosts *it;

    if (room == NULL) return plug_fail_memory(bytes);
    comm->other_hosts = it = take(&room, sizeof *it);
    it->ranks = take(&room, size * sizeof *it->ranks);
    it->first = take(&room, (hosts + 1) * sizeof *it->first);
    it->rank_room = take(&room, size * sizeof *it->rank_room);
    it->local_room = take(&room, 4 * size * sizeof *it->local_room);
    it->matrix = take(&room, size * size * sizeof *it->matrix);
    it->host_room = take(&room, hosts * sizeof *it->host_room);
    it->parts = take(&room, 2 * size * sizeof *it->parts);
    it->sources = take(&room, hosts * sizeof *it->sources);
    it->count = comm->hosts;
    it->own = comm->host_of[comm->rank];
    return WEFT_OK;
}

static void list_ranks(const struct cpu_comm *comm)
{
    struct cpu_hosts *hosts = comm->other_hosts;
    int32_t at = 0;

    for (int32_t h = 0; h < hosts->count; h++) {
        hosts->first[h] = at;
        for (int32_t rank = 0; rank < comm->size; rank++)
            if (comm->host_of[rank] == h) hosts->ranks[at++] = rank;
        if (at - hosts->first[h] > hosts->most) hosts->most = at - hosts->first[h];
    }
    hosts->first[hosts->count] = at;
    hosts->is_even = hosts->most * hosts->count == comm->size;
}

static weft_status describe(struct cpu_comm *comm, struct card *card)
{
    weft_status status;

    PLUG_TRY(allocate(comm));
    list_ranks(comm);
    status = net_offer_find(&card->offer);
    if (status != WEFT_OK && comm->apart[0] != '\0')
        return plug_fail(status, "%s, and nothing connects them: %s", comm->apart,
                         plug_last_text());
    if (status != WEFT_OK) return status;
    PLUG_TRY(cpu_random(&card->key, sizeof card->key));
    PLUG_TRY(plug_knob_bytes("WEFT_GLOO_STAGE", STAGE_BYTES, &card->stage_bytes));
    if (card->stage_bytes < STAGE_MIN) card->stage_bytes = STAGE_MIN;
    return cpu_hosts_addresses_find(&card->addresses);
}

/* Of several ranks that wait, each for the next, the one that waits for the rank that is late must
 * fail first, because its error names that rank.  A rank that does not come to its host is late;
 * then one that does not answer over the network; and at last one that waits for the network. */
static int64_t network_timeout(const struct cpu_comm *comm)
{
    int64_t timeout = comm->group.timeout_ns;

    return timeout < 0 ? timeout : timeout - timeout / 4;
}

static int64_t near_timeout(const struct cpu_comm *comm)
{
    int64_t timeout = comm->group.timeout_ns;

    return timeout < 0 ? timeout : timeout - timeout / 8 * 3;
}

/* Cards are not trusted: their counts and lengths are bounds of loops. */
static weft_status check_cards(const struct cpu_comm *comm, const struct card *mine,
                               const struct card *cards)
{
    for (int32_t rank = 0; rank < comm->size; rank++)
        if (!cpu_hosts_addresses_valid(&cards[rank].addresses) ||
            cards[rank].stage_bytes < STAGE_MIN)
            return plug_fail(WEFT_ERR_MISMATCH, "rank %d sent network addresses that are not valid",
                             (int)comm->names[rank]);
    if (memcmp(mine, &cards[comm->rank], sizeof *mine) != 0)
        return plug_fail(WEFT_ERR_PEER, "rank %d got back other addresses than it sent",
                         (int)comm->world_rank);
    return WEFT_OK;
}

static weft_status choose_carrier(struct cpu_comm *comm, const struct card *cards)
{
    struct cpu_hosts *hosts = comm->other_hosts;
    char why[256];

    PLUG_TRY(net_choose(&cards->offer, sizeof *cards, comm->size, comm->names, &hosts->carrier, why,
                        sizeof why));
    plug_log(3, "communicator \"%s\": %s serves between hosts: %s", comm->name,
             hosts->carrier->library, why);
    snprintf(comm->carrier, sizeof comm->carrier, "%s", why);
    return WEFT_OK;
}

/* The text of the carrier, which has only the reason for it so far. */
static void describe_carrier(struct cpu_comm *comm)
{
    const struct cpu_hosts *hosts = comm->other_hosts;
    char why[sizeof comm->carrier], transport[128];

    memcpy(why, comm->carrier, sizeof why);
    hosts->carrier->transport(hosts->network, transport, sizeof transport);
    snprintf(comm->carrier, sizeof comm->carrier, "%s%s%s%s between %d hosts: %.255s%s%.399s",
             hosts->carrier->library, transport[0] != '\0' ? " (" : "", transport,
             transport[0] != '\0' ? ")" : "", (int)comm->hosts, why,
             comm->apart[0] != '\0' ? "; " : "", comm->apart);
}

static weft_status listen(struct cpu_comm *comm, const struct card *cards)
{
    struct cpu_hosts *hosts = comm->other_hosts;
    uint32_t chosen =
        cpu_hosts_address_choose(&cards->addresses, sizeof *cards, comm->size, comm->rank);
    uint8_t *wanted = (uint8_t *)hosts->matrix;
    struct net_ranks ranks = {.rank = comm->rank,
                              .size = comm->size,
                              .wanted = wanted,
                              .timeout_ns = network_timeout(comm)};
    struct net_failure failure;
    char address[64], interface[64];

    cpu_hosts_address_print(&cards[comm->rank].addresses.list[chosen], address, sizeof address);
    cpu_hosts_interface_find(address, interface, sizeof interface);
    ranks.address = address;
    ranks.interface = interface;
    for (int32_t rank = 0; rank < comm->size; rank++)
        wanted[rank] = comm->host_of[rank] != hosts->own;
    plug_log(3, "communicator \"%s\": %d hosts; the address of this host is %s", comm->name,
             (int)hosts->count, address);
    if (hosts->carrier->listen(&ranks, &hosts->network, &failure) == WEFT_OK) return WEFT_OK;
    return plug_fail(failure.status, "%s: %s: %s", hosts->carrier->library, address, failure.text);
}

/* ADDRESSES: what every rank published, behind its outcome. */
static weft_status connect(struct cpu_comm *comm, const unsigned char *addresses, size_t stride,
                           uint64_t key)
{
    struct cpu_hosts *hosts = comm->other_hosts;
    const struct net_carrier *carrier = hosts->carrier;
    struct net_failure failure;

    if (carrier->connect(hosts->network, addresses + sizeof(struct cpu_outcome), stride, key,
                         &failure) == WEFT_OK)
        return WEFT_OK;
    if (failure.peer < 0)
        return plug_fail(failure.status, "%s: connecting: %s", carrier->library, failure.text);
    return plug_fail(failure.status, "%s: no connection to rank %d: %s", carrier->library,
                     (int)comm->names[failure.peer], failure.text);
}

/* The third step: every rank publishes its address, and connects. */
static weft_status meet(struct cpu_comm *comm, size_t bytes, uint64_t key,
                        const weft_exchange *exchange)
{
    struct cpu_hosts *hosts = comm->other_hosts;
    size_t stride = sizeof(struct cpu_outcome) + (bytes + 7) / 8 * 8, size = (size_t)comm->size;
    unsigned char *mine = plug_alloc(stride + size * stride), *all;
    struct cpu_outcome *outcome = (struct cpu_outcome *)mine;
    weft_status status;

    if (mine == NULL) return plug_fail_memory(stride + size * stride);
    all = mine + stride;
    hosts->carrier->address(hosts->network, mine + sizeof *outcome);
    status = cpu_agree(comm, mine, all, stride, exchange);
    if (status == WEFT_OK) {
        cpu_outcome_set(comm, outcome, connect(comm, all, stride, key));
        status = cpu_agree(comm, outcome, all, sizeof *outcome, exchange);
    }
    plug_free(mine);
    return status;
}

struct listening {
    struct cpu_outcome outcome;
    uint64_t address_bytes;
};

/* The second step: every rank listens, and all agree on the length of the longest address. */
static weft_status join(struct cpu_comm *comm, const struct card *card, const struct card *cards,
                        const weft_exchange *exchange)
{
    struct cpu_hosts *hosts = comm->other_hosts;
    size_t size = (size_t)comm->size, most = 0;
    struct listening mine = {0}, *all = plug_alloc(size * sizeof *all);
    weft_status status;

    if (all == NULL) return plug_fail_memory(size * sizeof *all);
    hosts->stage_bytes = cards[0].stage_bytes;
    status = check_cards(comm, card, cards);
    if (status == WEFT_OK) status = choose_carrier(comm, cards);
    if (status == WEFT_OK) status = listen(comm, cards);
    cpu_outcome_set(comm, &mine.outcome, status);
    if (status == WEFT_OK) mine.address_bytes = hosts->carrier->address_bytes(hosts->network);
    status = cpu_agree(comm, &mine, all, sizeof mine, exchange);
    for (size_t r = 0; status == WEFT_OK && r < size; r++) {
        if (all[r].address_bytes > most) most = all[r].address_bytes;
        if (most > ADDRESS_MOST || memcmp(&all[comm->rank], &mine, sizeof mine) != 0)
            status = plug_fail(WEFT_ERR_MISMATCH, "rank %d has a network address of %llu bytes",
                               (int)comm->names[r], (unsigned long long)all[r].address_bytes);
    }
    plug_free(all);
    return status == WEFT_OK ? meet(comm, most, cards[0].key, exchange) : status;
}

weft_status cpu_hosts_open(struct cpu_comm *comm, const weft_exchange *exchange)
{
    size_t size = (size_t)comm->size;
    struct card mine = {0}, *cards = plug_alloc(size * sizeof *cards);
    weft_status status;

    if (cards == NULL) return plug_fail_memory(size * sizeof *cards);
    cpu_outcome_set(comm, &mine.outcome, describe(comm, &mine));
    status = cpu_agree(comm, &mine, cards, sizeof mine, exchange);
    if (status == WEFT_OK) status = join(comm, &mine, cards, exchange);
    if (status == WEFT_OK) describe_carrier(comm);
    plug_free(cards);
    comm->group.near_timeout_ns = near_timeout(comm);
    return status;
}

/* ---- release ---- */

void cpu_hosts_close(struct cpu_comm *comm)
{
    struct cpu_hosts *hosts = comm->other_hosts;

    if (hosts == NULL) return;
    if (hosts->carrier != NULL) hosts->carrier->close(hosts->network);
    cpu_shm_retire(&comm->group, hosts->stage.memory); /* after a failure, peers may still use it */
    plug_free(hosts->room);
    plug_free(hosts);
    comm->other_hosts = NULL;
}

void cpu_hosts_abort(struct cpu_comm *comm)
{
    struct cpu_hosts *hosts = comm->other_hosts;

    if (hosts == NULL || hosts->network == NULL) return;
    hosts->carrier->abort(hosts->network);
}
