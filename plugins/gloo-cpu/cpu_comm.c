/* cpu_comm.c - making and ending communicators.
 *
 * prepare puts a control block into this rank's heap and publishes its address.  commit maps the
 * heaps of the other ranks, verifies that their control blocks are there, and agrees with all ranks
 * on the outcome. */
#include "cpu_spin.h"
#include "memory/cpu_symm.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define PATIENCE_NS INT64_C(2000000000)

/* The address that a rank publishes. */
struct cpu_address {
    uint32_t bytes; /* of this struct: all ranks run the same build */
    int32_t world_rank;
    struct cpu_segment_address segment;
    uint64_t control; /* its offset in the heap */
    uint64_t token;   /* which the control block begins with */
};

static weft_status copy_name(struct cpu_comm *comm, const char *name)
{
    size_t bytes = strlen(name != NULL ? name : "") + 1;

    comm->name = plug_alloc(bytes);
    if (comm->name == NULL) return plug_fail_memory(bytes);
    if (name != NULL) memcpy(comm->name, name, bytes);
    comm->group.label = comm->name;
    return WEFT_OK;
}

static weft_status keep_ranks(struct cpu_comm *comm, const weft_comm_options *options)
{
    size_t size = (size_t)options->size;
    size_t bytes = size * (sizeof *comm->host_ids + 4 * sizeof *comm->members);

    comm->rank = options->rank;
    comm->size = options->size;
    comm->world_rank = options->world_ranks[options->rank];
    comm->host_ids = plug_alloc(bytes);
    if (comm->host_ids == NULL) return plug_fail_memory(bytes);
    comm->members = (int32_t *)(comm->host_ids + size);
    comm->places = comm->members + size;
    comm->names = comm->places + size;
    comm->host_of = comm->names + size;
    memcpy(comm->host_ids, options->host_ids, size * sizeof *comm->host_ids);
    memcpy(comm->names, options->world_ranks, size * sizeof *comm->names);
    return WEFT_OK;
}

/* List the ranks of this host, according to the options. */
static weft_status find_members(struct cpu_comm *comm)
{
    comm->hosts = 1;
    for (int32_t p = 0; p < comm->size; p++) {
        bool here = comm->host_ids[p] == comm->host_ids[comm->rank];

        if (!here) comm->hosts = 2;
        comm->places[p] = here ? comm->group.size : -1;
        if (here) comm->members[comm->group.size++] = p;
    }
    comm->group.rank = comm->places[comm->rank];
    return comm->hosts > 1 ? cpu_hosts_possible() : WEFT_OK;
}

static weft_status prepare_group(struct cpu_comm *comm, const weft_comm_options *options)
{
    struct cpu_shm_group *group = &comm->group;
    struct cpu_address *address;
    uint64_t token;

    group->heap = &comm->device->heap;
    group->flags = options->flags;
    group->timeout_ns = options->timeout_ns;
    group->doing = "commit";
    cpu_heap_sweep(group->heap);
    group->peers = plug_alloc((size_t)group->size * sizeof *group->peers);
    if (group->peers == NULL) return plug_fail_memory((size_t)group->size * sizeof *group->peers);
    PLUG_TRY(cpu_random(&token, sizeof token));
    PLUG_TRY(cpu_shm_group_prepare(group, token));
    comm->address = address = plug_alloc(sizeof *address);
    if (address == NULL) return plug_fail_memory(sizeof *address);
    address->bytes = sizeof *address;
    address->world_rank = comm->world_rank;
    address->token = token;
    address->control = (uint64_t)((uint8_t *)group->control - group->heap->segment.base);
    return cpu_segment_describe(&group->heap->segment, &address->segment);
}

static weft_status prepare(struct cpu_comm *comm, const weft_comm_options *options)
{
    PLUG_TRY(copy_name(comm, options->name));
    PLUG_TRY(keep_ranks(comm, options));
    PLUG_TRY(find_members(comm));
    return prepare_group(comm, options);
}

static weft_status check_options(const weft_comm_options *options)
{
    if (options->size < 1 || options->rank < 0 || options->rank >= options->size)
        return plug_fail(WEFT_ERR_INVALID,
                         "rank is %d and size is %d; rank must be from 0 to size - 1",
                         (int)options->rank, (int)options->size);
    if (options->world_ranks == NULL || options->host_ids == NULL)
        return plug_fail(WEFT_ERR_INVALID, "world_ranks or host_ids is NULL");
    return WEFT_OK;
}

weft_status cpu_comm_prepare(void *device, const weft_comm_options *given, void **out,
                             weft_blob *address)
{
    struct cpu_comm *comm;
    weft_comm_options options;
    weft_status status;

    plug_take_struct(&options, given, sizeof options);
    PLUG_TRY(check_options(&options));
    comm = plug_alloc(sizeof *comm);
    if (comm == NULL) return plug_fail_memory(sizeof *comm);
    comm->device = device;
    pthread_mutex_init(&comm->windows_lock, NULL);
    status = prepare(comm, &options);
    if (status != WEFT_OK) {
        cpu_comm_destroy(comm);
        return status;
    }
    *out = comm;
    *address = (weft_blob){.data = comm->address, .bytes = sizeof(struct cpu_address)};
    return WEFT_OK;
}

/* ADDRESS is not trusted; the peer's heap has BYTES. */
static bool control_fits(const struct cpu_shm_group *group, const struct cpu_address *address,
                         uint64_t bytes)
{
    uint64_t wanted = cpu_shm_control_bytes(group);

    return address->control % _Alignof(struct cpu_shm_control) == 0 && wanted <= bytes &&
           address->control <= bytes - wanted;
}

static weft_status attach_peer(struct cpu_comm *comm, int32_t place, const weft_blob *blob,
                               char *text, size_t bytes)
{
    struct cpu_shm_peer *peer = &comm->group.peers[place];
    const struct cpu_address *own = comm->address;
    struct cpu_address address;
    struct cpu_shm_control *control;
    uint64_t heap_bytes = 0;
    weft_status status;

    if (blob->bytes != sizeof address) {
        snprintf(text, bytes,
                 "its address has %llu bytes; expected %zu; it may be another build of gloo-cpu",
                 (unsigned long long)blob->bytes, sizeof address);
        return WEFT_ERR_VERSION;
    }
    memcpy(&address, blob->data, sizeof address);
    peer->name = comm->names[comm->members[place]];
    if (address.bytes != sizeof address || address.world_rank != peer->name) {
        snprintf(text, bytes, "its address is that of rank %d", (int)address.world_rank);
        return WEFT_ERR_MISMATCH;
    }
    peer->address = address.segment;
    peer->same_process = cpu_process_same(&address.segment.process, &own->segment.process);
    status = cpu_segment_attach(&address.segment, &peer->heap, &heap_bytes);
    if (status != WEFT_OK) {
        snprintf(text, bytes, "%s", plug_last_text());
        return status;
    }
    peer->attached = true;
    if (!control_fits(&comm->group, &address, heap_bytes)) {
        snprintf(text, bytes, "its control block is at %llu, in a heap of %llu bytes",
                 (unsigned long long)address.control, (unsigned long long)heap_bytes);
        return WEFT_ERR_MISMATCH;
    }
    control = (struct cpu_shm_control *)(peer->heap + address.control);
    if (control->token != address.token) {
        snprintf(text, bytes, "its shared memory is not the expected one");
        return WEFT_ERR_SYSTEM;
    }
    peer->control = control;
    peer->readable = cpu_shm_readable(&comm->group, place);
    return WEFT_OK;
}

/* A rank whose memory cannot be mapped counts as a rank of another host.  If address space ran out,
 * all ranks are asked to use less. */
static weft_status attach_all(struct cpu_comm *comm, const weft_blob *addresses)
{
    struct cpu_shm_group *group = &comm->group;
    char text[320];

    for (int32_t p = 0; p < group->size; p++) {
        weft_status status = attach_peer(comm, p, &addresses[comm->members[p]], text, sizeof text);

        if (status == WEFT_OK) continue;
        if (status == WEFT_ERR_VERSION || status == WEFT_ERR_MISMATCH ||
            status == WEFT_ERR_NO_MEMORY || comm->members[p] == comm->rank)
            return plug_fail(status, "memory of rank %d: %s", (int)comm->names[comm->members[p]],
                             text);
        if (comm->apart[0] == '\0')
            snprintf(comm->apart, sizeof comm->apart,
                     "rank %d cannot share memory with rank %d (%s)", (int)comm->world_rank,
                     (int)comm->names[comm->members[p]], text);
        plug_log(2, "rank %d cannot share memory with rank %d (%s), though both are on one host",
                 (int)comm->world_rank, (int)comm->names[comm->members[p]], text);
    }
    return WEFT_OK;
}

void cpu_outcome_set(const struct cpu_comm *comm, struct cpu_outcome *outcome, weft_status status)
{
    outcome->status = status;
    if (status != WEFT_OK)
        snprintf(outcome->text, sizeof outcome->text, "rank %d: %s", (int)comm->world_rank,
                 plug_last_text());
}

weft_status cpu_agree(const struct cpu_comm *comm, const void *mine, void *all, size_t bytes,
                      const weft_exchange *exchange)
{
    const struct cpu_outcome *cause = NULL;

    PLUG_TRY(exchange->all_gather(exchange->user, mine, all, bytes));
    for (int32_t p = 0; p < comm->size; p++) {
        const struct cpu_outcome *outcome =
            (const void *)((const unsigned char *)all + bytes * (size_t)p);

        if (outcome->status > WEFT_OK || outcome->status < WEFT_ERR_NO_DEVICE)
            return plug_fail(WEFT_ERR_PEER, "communicator \"%s\": rank %d sent an unknown status",
                             comm->name, (int)comm->names[p]);
        /* Ranks that waited for one that failed otherwise have reached their time limits. */
        if (outcome->status != WEFT_OK && (cause == NULL || (cause->status == WEFT_ERR_TIMEOUT &&
                                                             outcome->status != WEFT_ERR_TIMEOUT)))
            cause = outcome;
    }
    if (cause == NULL) return WEFT_OK;
    return plug_fail(cause->status, "communicator \"%s\": %.*s", comm->name,
                     (int)sizeof cause->text, cause->text);
}

enum { ATTACHED = 1, READABLE = 2 };

/* Only the peer can find out whether it can read this rank's private memory. */
static void note_readability(struct cpu_comm *comm, const unsigned char *seen)
{
    struct cpu_shm_group *group = &comm->group;
    size_t size = (size_t)comm->size;

    group->all_readable = group->one_process = true;
    for (int32_t p = 0; p < group->size; p++) {
        const unsigned char *row = seen + (size_t)comm->members[p] * size;

        group->peers[p].reads_us = (row[comm->rank] & READABLE) != 0;
        if (!group->peers[p].same_process)
            group->one_process = false;
        else if (p != group->rank)
            group->shares_process = true;
        for (int32_t q = 0; q < group->size; q++)
            if ((row[comm->members[q]] & READABLE) == 0) group->all_readable = false;
    }
    cpu_spin_expect(group->size);
}

/* Exchange which ranks' memory each rank has mapped. */
static weft_status compare_views(struct cpu_comm *comm, const weft_exchange *exchange,
                                 unsigned char *mine, unsigned char *seen)
{
    size_t size = (size_t)comm->size;

    for (int32_t p = 0; p < comm->group.size; p++) {
        const struct cpu_shm_peer *peer = &comm->group.peers[p];

        if (peer->control != NULL)
            mine[comm->members[p]] = ATTACHED | (peer->readable ? READABLE : 0);
    }
    PLUG_TRY(exchange->all_gather(exchange->user, mine, seen, size));
    if (memcmp(seen + (size_t)comm->rank * size, mine, size) != 0)
        return plug_fail(WEFT_ERR_PEER,
                         "communicator \"%s\": rank %d got back other data than it sent",
                         comm->name, (int)comm->world_rank);
    PLUG_TRY(cpu_hosts_arrange(comm, seen));
    note_readability(comm, seen);
    return WEFT_OK;
}

static weft_status commit(struct cpu_comm *comm, const weft_blob *addresses,
                          const weft_exchange *exchange)
{
    struct cpu_outcome mine = {.status = WEFT_OK}, *all;
    size_t size = (size_t)comm->size, bytes = size * sizeof *all + size + size * size;
    unsigned char *views;
    weft_status status;

    all = plug_alloc(bytes);
    if (all == NULL) return plug_fail_memory(bytes);
    views = (unsigned char *)(all + size);
    cpu_outcome_set(comm, &mine, attach_all(comm, addresses));
    status = cpu_agree(comm, &mine, all, sizeof mine, exchange);
    if (status == WEFT_OK) status = compare_views(comm, exchange, views, views + size);
    plug_free(all);
    return status;
}

weft_status cpu_comm_commit(void *handle, const weft_blob *addresses, const weft_exchange *exchange)
{
    struct cpu_comm *comm = handle;

    comm->group.met = true;
    PLUG_TRY(commit(comm, addresses, exchange));
    if (comm->hosts > 1) return cpu_hosts_open(comm, exchange);
    if (comm->size > 1) snprintf(comm->carrier, sizeof comm->carrier, "shared memory");
    return WEFT_OK;
}

static void end_work(struct cpu_comm *comm, const char *cause)
{
    cpu_shm_fail(&comm->group, WEFT_ERR_ABORTED, "%s by rank %d", cause, (int)comm->world_rank);
    cpu_hosts_abort(comm);
    cpu_turns_end(comm);
}

static bool is_idle(const struct cpu_comm *comm)
{
    return atomic_load(&comm->under_way) == 0 && cpu_windows_are_idle(comm);
}

/* Pending work on streams uses the communicator.  It ends soon after an abort, unless it is queued
 * behind other work. */
static bool await_work(struct cpu_comm *comm)
{
    uint64_t deadline = cpu_deadline(PATIENCE_NS);

    if (is_idle(comm)) return true;
    end_work(comm, "released while its work was pending");
    while (!is_idle(comm) && plug_now() < deadline)
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    return is_idle(comm);
}

void cpu_comm_destroy(void *handle)
{
    struct cpu_comm *comm = handle;

    if (comm == NULL) return;
    if (!await_work(comm)) {
        comm->device->is_held = true;
        plug_log(1, "communicator \"%s\" is not freed: its work is still pending on a stream",
                 comm->name);
        return;
    }
    cpu_group_clear(comm);
    cpu_hosts_serve_end(comm);
    cpu_windows_drop(comm);
    cpu_hosts_close(comm);
    cpu_shm_group_close(&comm->group);
    plug_free(comm->address);
    plug_free(comm->host_ids);
    plug_free(comm->name);
    pthread_mutex_destroy(&comm->windows_lock);
    plug_free(comm);
}

void cpu_comm_abort(void *handle)
{
    end_work(handle, "aborted");
}

weft_status cpu_comm_async_error(void *handle)
{
    struct cpu_comm *comm = handle;

    return cpu_shm_fault(&comm->group);
}

const char *cpu_comm_carrier(void *handle)
{
    return ((const struct cpu_comm *)handle)->carrier;
}
