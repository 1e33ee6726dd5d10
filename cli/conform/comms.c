/* comms.c - communicators made as weft makes them, but over the kit's own exchange. */
#include "kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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
};

static weft_status exchange_gather(void *self, const void *mine, void *all, uint64_t bytes)
{
    struct exchange *exchange = self;

    kit_gather(exchange->kit, exchange->group, mine, all, bytes);
    return WEFT_OK;
}

/* Do all ranks of the group say yes?  Collective. */
static bool agree(struct kit *kit, const struct kit_group *group, bool mine)
{
    uint8_t yes = mine, all[KIT_MAX_RANKS];
    bool result = true;

    kit_gather(kit, group, &yes, all, sizeof yes);
    for (int32_t i = 0; i < group->size; i++)
        result = result && all[i];
    return result;
}

static weft_status prepare(struct kit *kit, const struct kit_group *group, int64_t timeout_ns,
                           uint32_t flags, void **comm, weft_blob *address)
{
    uint64_t host_ids[KIT_MAX_RANKS];
    char name[64];
    weft_comm_options options = {
        .struct_size = sizeof options,
        .flags = flags,
        .rank = group->mine,
        .size = group->size,
        .world_ranks = group->ranks,
        .host_ids = host_ids,
        .name = name,
        .job = kit->job,
        .timeout_ns = timeout_ns,
    };

    for (int32_t i = 0; i < group->size; i++)
        host_ids[i] = 1;
    snprintf(name, sizeof name, "conform-%u-%s", kit->comms_made, group->name);
    return kit->plugin->comm->prepare(kit->device, &options, comm, address);
}

/* Everyone's address, in one block that the caller frees; NULL when out of memory anywhere. */
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

void *kit_comm_make(struct kit *kit, const struct kit_group *group, int64_t timeout_ns,
                    uint32_t flags)
{
    const weft_comm_table *table = kit->plugin->comm;
    struct exchange exchange = {kit, group};
    weft_exchange services = {&exchange, exchange_gather};
    weft_blob addresses[KIT_MAX_RANKS], address = {0};
    void *comm = NULL, *block;
    bool fine;

    kit->comms_made++;
    fine = kit_ok(kit, "prepare", prepare(kit, group, timeout_ns, flags, &comm, &address));
    if (fine && comm == NULL) kit_fail(kit, "prepare: WEFT_OK without a communicator");
    if (!agree(kit, group, fine && comm != NULL)) goto give_up;
    block = gather_addresses(kit, group, &address, addresses);
    if (block == NULL) goto give_up;
    fine = kit_ok(kit, "commit", table->commit(comm, addresses, &services));
    free(block);
    if (agree(kit, group, fine)) return comm;

give_up:
    table->destroy(comm);
    kit_fail(kit, "another rank could not make the communicator");
    return NULL;
}

void *kit_comm(struct kit *kit, struct kit_group *group)
{
    if (group->mine < 0) return NULL;
    if (group->comm == NULL) group->comm = kit_comm_make(kit, group, kit->options->timeout_ns, 0);
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

    for (;;) {
        weft_status status = device->stream_query(kit->device, stream);
        weft_status stuck = comm != NULL ? kit->plugin->comm->async_error(comm) : WEFT_OK;
        if (stuck != WEFT_OK) return stuck;
        if (status != WEFT_IN_PROGRESS) return status;
        if (wf_now_ns() > deadline)
            return wf_fail(WEFT_ERR_TIMEOUT, "the stream was not done after %.1f s",
                           (double)limit_ns * 1e-9);
        nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
    }
}
