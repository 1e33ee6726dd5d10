/* comms.c - creates communicators as weft does, with an exchange of the kit. */
#include "kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add_group(struct kit *kit, const char *name, const int32_t *ranks, int32_t size)
{
    struct kit_group *group = &kit->groups[kit->group_count++];
    size_t used = 0;

    group->size = size;
    group->mine = -1;
    memcpy(group->ranks, ranks, (size_t)size * sizeof *ranks);
    for (int32_t i = 0; i < size; i++)
        if (ranks[i] == kit->rank) group->mine = i;
    if (name != NULL) {
        snprintf(group->name, sizeof group->name, "%s", name);
        return;
    }
    for (int32_t i = 0; i < size; i++)
        used += (size_t)snprintf(group->name + used, sizeof group->name - used, "%s%d",
                                 i > 0 ? "," : "", ranks[i]);
}

void kit_groups_make(struct kit *kit)
{
    int32_t n = kit->size;
    int32_t ranks[KIT_MAX_RANKS];

    for (int32_t i = 0; i < n; i++)
        ranks[i] = i;
    add_group(kit, "all", ranks, n);
    if (n == 1) return;
    add_group(kit, NULL, (int32_t[]){n - 1}, 1);
    for (int32_t i = 0; i < n; i++)
        ranks[i] = n - 1 - i;
    add_group(kit, NULL, ranks, n);
    if (n < 3) return;
    add_group(kit, NULL, (int32_t[]){n - 1, n == 3 ? 0 : 1}, 2);
    if (n < 4) return;
    add_group(kit, NULL, (int32_t[]){2, 0, n - 1}, 3);
}

/* ---- making one ---- */

struct exchange {
    struct kit *kit;
    const struct kit_group *group;
    int fails_at, calls; /* fails_at: the call that fails on every rank; 0: none */
};

static weft_status exchange_gather(void *self, const void *mine, void *all, uint64_t bytes)
{
    struct exchange *exchange = self;

    if (++exchange->calls == exchange->fails_at)
        return wf_fail(WEFT_ERR_PEER, "the kit let the exchange fail");
    kit_gather(exchange->kit, exchange->group, mine, all, bytes);
    return WEFT_OK;
}

/* True if MINE is true on all ranks of the group. Collective. */
static bool agree(struct kit *kit, const struct kit_group *group, bool mine)
{
    uint8_t yes = mine, all[KIT_MAX_RANKS];
    bool result = true;

    kit_gather(kit, group, &yes, all, sizeof yes);
    for (int32_t i = 0; i < group->size; i++)
        result = result && all[i];
    return result;
}

/* Gather the addresses of all ranks, in one block that the caller frees.  NULL if a rank is out
 * of memory. */
static void *gather_addresses(struct kit *kit, const struct kit_group *group, const weft_blob *mine,
                              weft_blob *all)
{
    uint64_t sizes[KIT_MAX_RANKS], largest = 0;
    uint8_t *block, *padded;

    kit_gather(kit, group, &mine->bytes, sizes, sizeof mine->bytes);
    for (int32_t i = 0; i < group->size; i++)
        if (sizes[i] > largest) largest = sizes[i];
    block = calloc((size_t)group->size + 1, largest + 1);
    if (!agree(kit, group, block != NULL)) {
        free(block);
        return NULL;
    }
    padded = block + largest * (uint64_t)group->size;
    if (mine->bytes > 0) memcpy(padded, mine->data, mine->bytes);
    kit_gather(kit, group, padded, block, largest);
    for (int32_t i = 0; i < group->size; i++)
        all[i] = (weft_blob){block + largest * (uint64_t)i, sizes[i]};
    return block;
}

void kit_comm_options(struct kit *kit, const struct kit_group *group,
                      struct kit_comm_request request, struct kit_comm_setup *out)
{
    snprintf(out->name, sizeof out->name, "conform-%u-%s", kit->comms_made, group->name);
    for (int32_t i = 0; i < group->size; i++)
        out->host_ids[i] = 1 + (uint64_t)(group->ranks[i] % kit->options->hosts);
    out->options = (weft_comm_options){
        .struct_size = sizeof out->options,
        .flags = request.flags,
        .rank = group->mine,
        .size = group->size,
        .world_ranks = group->ranks,
        .host_ids = out->host_ids,
        .name = out->name,
        .job = kit->job,
        .timeout_ns = request.timeout_ns > 0 ? request.timeout_ns : kit->options->timeout_ns,
    };
}

static weft_status prepare(struct kit *kit, const struct kit_group *group,
                           struct kit_comm_request request, void **comm, weft_blob *address)
{
    struct kit_comm_setup setup;
    weft_status status;

    kit_comm_options(kit, group, request, &setup);
    status = kit->plugin->comm->prepare(kit->device, &setup.options, comm, address);
    if (status == WEFT_OK && *comm == NULL)
        return wf_fail(WEFT_ERR_INTERNAL, "prepare: WEFT_OK without a communicator");
    return status;
}

/* A name is unique, and the same on all ranks of the group, which may have created different
 * numbers of communicators. */
static void agree_on_number(struct kit *kit, const struct kit_group *group)
{
    uint32_t all[KIT_MAX_RANKS];

    kit_gather(kit, group, &kit->comms_made, all, sizeof kit->comms_made);
    for (int32_t i = 0; i < group->size; i++)
        if (all[i] > kit->comms_made) kit->comms_made = all[i];
    kit->comms_made++;
}

weft_status kit_comm_try(struct kit *kit, const struct kit_group *group,
                         struct kit_comm_request request, void **out)
{
    const weft_comm_table *table = kit->plugin->comm;
    struct exchange exchange = {kit, group, request.exchange_fails_at, 0};
    weft_exchange services = {&exchange, exchange_gather};
    weft_blob addresses[KIT_MAX_RANKS], address = {0};
    void *comm = NULL, *block = NULL;
    weft_status status;

    agree_on_number(kit, group);
    status = prepare(kit, group, request, &comm, &address);
    if (agree(kit, group, status == WEFT_OK))
        block = gather_addresses(kit, group, &address, addresses);
    if (block != NULL) {
        status = table->commit(comm, addresses, &services);
        free(block);
        if (agree(kit, group, status == WEFT_OK)) {
            *out = comm;
            return WEFT_OK;
        }
    }
    table->destroy(comm);
    if (status != WEFT_OK) return status;
    return wf_fail(WEFT_ERR_PEER, "another rank could not make the communicator");
}

void *kit_comm_make(struct kit *kit, const struct kit_group *group, struct kit_comm_request request)
{
    void *comm = NULL;

    kit_ok(kit, "creating a communicator", kit_comm_try(kit, group, request, &comm));
    return comm;
}

void *kit_comm(struct kit *kit, struct kit_group *group)
{
    if (group->mine < 0) return NULL;
    if (group->comm == NULL) group->comm = kit_comm_make(kit, group, (struct kit_comm_request){0});
    return group->comm;
}

void kit_comm_drop(struct kit *kit, void *comm)
{
    if (comm == NULL) return;
    kit->plugin->comm->abort(comm);
    kit->plugin->comm->destroy(comm);
}

void kit_comms_drop(struct kit *kit)
{
    for (int i = 0; i < kit->group_count; i++) {
        kit_comm_drop(kit, kit->groups[i].comm);
        kit->groups[i].comm = NULL;
    }
}

weft_status kit_finish(struct kit *kit, void *comm, void *stream, int64_t limit_ns)
{
    const weft_device_table *device = kit->plugin->device;
    uint64_t deadline = wf_now_ns() + (uint64_t)limit_ns;

    for (uint32_t tries = 0;; tries++) {
        weft_status status = device->stream_query(kit->device, stream);
        weft_status stuck = comm != NULL ? kit->plugin->comm->async_error(comm) : WEFT_OK;
        if (stuck != WEFT_OK) return stuck;
        if (status != WEFT_IN_PROGRESS) return status;
        if (wf_now_ns() > deadline)
            return wf_fail(WEFT_ERR_TIMEOUT, "the stream was not done after %.1f s",
                           (double)limit_ns * 1e-9);
        kit_pause(tries);
    }
}

bool kit_done(struct kit *kit, const char *what, weft_status status)
{
    return kit_ok(kit, what, status) &&
           kit_ok(kit, what, kit_finish(kit, NULL, NULL, 10 * KIT_SECOND));
}

bool kit_stream_make(struct kit *kit, void **stream)
{
    return kit_ok(kit, "stream_create", kit->plugin->device->stream_create(kit->device, stream));
}

void kit_stream_drop(struct kit *kit, void *stream)
{
    if (stream != NULL) kit->plugin->device->stream_destroy(kit->device, stream);
}

bool kit_stream_wait(struct kit *kit, void *stream)
{
    return kit_ok(kit, "stream_wait",
                  kit->plugin->device->stream_wait(kit->device, stream, 10 * KIT_SECOND));
}
