/* cpu_comm.c - making and ending communicators.
 *
 * prepare puts a board into the own heap and says where it is; commit maps the others' heaps, sees
 * with its own eyes that their boards are there, and agrees with all ranks on the outcome. */
#include "symm.h"

#include <stdio.h>
#include <string.h>

/* What a rank tells the others. */
struct wf_cpu_address {
    uint32_t bytes; /* of this struct: all ranks run the same build */
    int32_t world_rank;
    struct wf_cpu_segment_address segment;
    uint64_t board; /* its offset in the heap */
    uint64_t token; /* which the board begins with */
};

/* How commit went on one rank. */
struct outcome {
    int32_t status;
    char text[252];
};

static weft_status copy_name(struct wf_cpu_comm *comm, const char *name)
{
    size_t bytes = strlen(name != NULL ? name : "") + 1;

    comm->name = wf_cpu_alloc(bytes);
    if (comm->name == NULL) return wf_cpu_fail_memory(bytes);
    if (name != NULL) memcpy(comm->name, name, bytes);
    comm->group.label = comm->name;
    return WEFT_OK;
}

/* Which ranks share this host, by what the options say. */
static weft_status find_members(struct wf_cpu_comm *comm, const weft_comm_options *options)
{
    size_t size = (size_t)options->size;
    uint64_t here = options->host_ids[options->rank];

    comm->rank = options->rank;
    comm->size = options->size;
    comm->world_rank = options->world_ranks[options->rank];
    comm->members = wf_cpu_alloc(2 * size * sizeof *comm->members);
    if (comm->members == NULL) return wf_cpu_fail_memory(2 * size * sizeof *comm->members);
    comm->places = comm->members + size;
    for (int32_t p = 0; p < options->size; p++) {
        int32_t first = 0;

        while (options->host_ids[first] != options->host_ids[p])
            first++;
        if (first == p) comm->hosts++;
        comm->places[p] = -1;
        if (options->host_ids[p] != here) continue;
        comm->places[p] = comm->group.size;
        comm->members[comm->group.size++] = p;
    }
    comm->group.rank = comm->places[comm->rank];
    return WEFT_OK;
}

static weft_status prepare_group(struct wf_cpu_comm *comm, const weft_comm_options *options)
{
    struct wf_shm_group *group = &comm->group;
    struct wf_cpu_address *address;
    uint64_t token;

    group->heap = &comm->device->heap;
    group->flags = options->flags;
    group->timeout_ns = options->timeout_ns;
    group->doing = "commit";
    wf_cpu_heap_sweep(group->heap);
    group->peers = wf_cpu_alloc((size_t)group->size * sizeof *group->peers);
    if (group->peers == NULL) return wf_cpu_fail_memory((size_t)group->size * sizeof *group->peers);
    CPU_TRY(wf_cpu_random(&token, sizeof token));
    CPU_TRY(wf_shm_group_prepare(group, token));
    comm->address = address = wf_cpu_alloc(sizeof *address);
    if (address == NULL) return wf_cpu_fail_memory(sizeof *address);
    address->bytes = sizeof *address;
    address->world_rank = comm->world_rank;
    address->token = token;
    address->board = (uint64_t)((uint8_t *)group->board - group->heap->segment.base);
    return wf_cpu_segment_describe(&group->heap->segment, &address->segment);
}

static weft_status prepare(struct wf_cpu_comm *comm, const weft_comm_options *options)
{
    CPU_TRY(copy_name(comm, options->name));
    CPU_TRY(find_members(comm, options));
    CPU_TRY(prepare_group(comm, options));
    return comm->hosts > 1 ? wf_cpu_hosts_prepare(comm, options) : WEFT_OK;
}

static weft_status check_options(const weft_comm_options *options)
{
    if (options->size < 1 || options->rank < 0 || options->rank >= options->size)
        return wf_cpu_fail(WEFT_ERR_INVALID, "rank %d of %d ranks", (int)options->rank,
                           (int)options->size);
    if (options->world_ranks == NULL || options->host_ids == NULL)
        return wf_cpu_fail(WEFT_ERR_INVALID, "world_ranks or host_ids is NULL");
    return WEFT_OK;
}

weft_status wf_cpu_comm_prepare(void *device, const weft_comm_options *given, void **out,
                                weft_blob *address)
{
    struct wf_cpu_comm *comm;
    weft_comm_options options;
    weft_status status;

    wf_cpu_take_struct(&options, sizeof options, given);
    CPU_TRY(check_options(&options));
    comm = wf_cpu_alloc(sizeof *comm);
    if (comm == NULL) return wf_cpu_fail_memory(sizeof *comm);
    comm->device = device;
    pthread_mutex_init(&comm->turn_lock, NULL);
    wf_cpu_condition_create(&comm->turn_changed);
    status = prepare(comm, &options);
    if (status != WEFT_OK) {
        wf_cpu_comm_destroy(comm);
        return status;
    }
    *out = comm;
    *address = (weft_blob){.data = comm->address, .bytes = sizeof(struct wf_cpu_address)};
    return WEFT_OK;
}

static weft_status attach_peer(struct wf_cpu_comm *comm, int32_t place, const weft_blob *blob,
                               char *text, size_t bytes)
{
    struct wf_shm_peer *peer = &comm->group.peers[place];
    const struct wf_cpu_address *own = comm->address;
    struct wf_cpu_address address;
    struct wf_shm_board *board;
    weft_status status;

    if (blob->bytes != sizeof address) {
        snprintf(text, bytes, "its address has %llu bytes, not %zu: another build?",
                 (unsigned long long)blob->bytes, sizeof address);
        return WEFT_ERR_VERSION;
    }
    memcpy(&address, blob->data, sizeof address);
    peer->name = address.world_rank;
    peer->address = address.segment;
    peer->same_process = wf_cpu_process_same(&address.segment.process, &own->segment.process);
    status = wf_cpu_segment_attach(&address.segment, &peer->heap);
    if (status != WEFT_OK) {
        snprintf(text, bytes, "%s", wf_cpu_last_words());
        return status;
    }
    peer->attached = true;
    board = (struct wf_shm_board *)(peer->heap + address.board);
    if (board->token != address.token) {
        snprintf(text, bytes, "its shared memory is not what it should be");
        return WEFT_ERR_SYSTEM;
    }
    peer->board = board;
    peer->readable = wf_shm_readable(&comm->group, place);
    return WEFT_OK;
}

static void attach_all(struct wf_cpu_comm *comm, const weft_blob *addresses,
                       struct outcome *outcome)
{
    struct wf_shm_group *group = &comm->group;
    char text[160];

    group->one_process = true;
    for (int32_t p = 0; p < group->size; p++) {
        outcome->status = attach_peer(comm, p, &addresses[comm->members[p]], text, sizeof text);
        if (outcome->status != WEFT_OK) {
            snprintf(outcome->text, sizeof outcome->text,
                     "rank %d cannot share memory with rank %d: %s", (int)comm->world_rank, (int)p,
                     text);
            return;
        }
        if (!group->peers[p].same_process) group->one_process = false;
    }
    wf_shm_wait_expect(group->size);
}

/* All ranks learn the first failure, so all fail alike. */
static weft_status agree(struct wf_cpu_comm *comm, const struct outcome *mine,
                         const weft_exchange *exchange)
{
    size_t bytes = (size_t)comm->size * sizeof *mine;
    struct outcome *all = wf_cpu_alloc(bytes);
    weft_status status;

    if (all == NULL) return wf_cpu_fail_memory(bytes);
    status = exchange->all_gather(exchange->self, mine, all, sizeof *mine);
    for (int32_t p = 0; status == WEFT_OK && p < comm->size; p++)
        if (all[p].status != WEFT_OK)
            status = wf_cpu_fail(all[p].status, "communicator \"%s\": %.*s", comm->name,
                                 (int)sizeof all[p].text, all[p].text);
    wf_cpu_free(all);
    return status;
}

/* Whether a peer can read our private memory only the peer can tell. */
static weft_status exchange_readability(struct wf_cpu_comm *comm, const weft_exchange *exchange)
{
    size_t size = (size_t)comm->size;
    unsigned char *mine = wf_cpu_alloc(size + size * size), *all = mine + size;
    weft_status status;

    if (mine == NULL) return wf_cpu_fail_memory(size + size * size);
    for (int32_t p = 0; p < comm->group.size; p++)
        mine[comm->members[p]] = comm->group.peers[p].readable;
    status = exchange->all_gather(exchange->self, mine, all, size);
    comm->group.all_readable = true;
    for (int32_t p = 0; status == WEFT_OK && p < comm->group.size; p++) {
        const unsigned char *row = all + (size_t)comm->members[p] * size;

        comm->group.peers[p].reads_us = row[comm->rank] != 0;
        for (int32_t q = 0; q < comm->group.size; q++)
            if (row[comm->members[q]] == 0) comm->group.all_readable = false;
    }
    wf_cpu_free(mine);
    return status;
}

weft_status wf_cpu_comm_commit(void *handle, const weft_blob *addresses,
                               const weft_exchange *exchange)
{
    struct wf_cpu_comm *comm = handle;
    struct outcome mine = {.status = WEFT_OK};

    comm->group.met = true;
    attach_all(comm, addresses, &mine);
    CPU_TRY(agree(comm, &mine, exchange));
    return exchange_readability(comm, exchange);
}

void wf_cpu_comm_destroy(void *handle)
{
    struct wf_cpu_comm *comm = handle;

    if (comm == NULL) return;
    wf_cpu_group_clear(comm);
    wf_cpu_windows_drop(comm);
    wf_shm_group_close(&comm->group);
    pthread_cond_destroy(&comm->turn_changed);
    pthread_mutex_destroy(&comm->turn_lock);
    wf_cpu_free(comm->address);
    wf_cpu_free(comm->members);
    wf_cpu_free(comm->name);
    wf_cpu_free(comm);
}

void wf_cpu_comm_abort(void *handle)
{
    struct wf_cpu_comm *comm = handle;

    wf_shm_fail(&comm->group, WEFT_ERR_ABORTED, "aborted by rank %d", (int)comm->world_rank);
    wf_cpu_turns_end(comm);
}

weft_status wf_cpu_comm_async_error(void *handle)
{
    struct wf_cpu_comm *comm = handle;

    return wf_shm_fault(&comm->group);
}
