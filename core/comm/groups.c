/* groups.c - communicators of groups of ranks within another, made once and kept with it. */
#include "comm.h"

#include <stdio.h>

static bool is_group(const weft_comm *comm, const weft_comm *parent, const int32_t *ranks,
                     int32_t count)
{
    bool same = comm->size == count;

    for (int32_t i = 0; same && i < count; i++)
        same = comm->world_ranks[i] == weft_comm_world_rank(parent, ranks[i]);
    return same;
}

/* Tell the others, who are making the communicator, that it will not be. */
static weft_status decline(weft_comm *parent, const int32_t *ranks, int32_t count,
                           weft_status status)
{
    int32_t *world_ranks = wf_alloc((size_t)count * sizeof *world_ranks);
    struct wf_gathered got;
    char label[160];

    if (world_ranks == NULL) return status;
    for (int32_t i = 0; i < count; i++)
        world_ranks[i] = weft_comm_world_rank(parent, ranks[i]);
    snprintf(label, sizeof label, "a communicator made of %s", parent->name);
    status = wf_agree(parent->context, world_ranks, count, label, parent->timeout_ns, status,
                      (weft_blob){"", 0}, &got);
    wf_free(world_ranks);
    return status;
}

weft_status wf_comm_group(weft_comm *parent, const int32_t *ranks, int32_t count,
                          weft_status status, weft_comm **out)
{
    weft_comm *group = parent->groups;

    if (is_group(parent, parent, ranks, count)) {
        *out = parent;
        return status;
    }
    while (group != NULL && !is_group(group, parent, ranks, count))
        group = group->next_group;
    if (group == NULL) {
        if (status != WEFT_OK) return decline(parent, ranks, count, status);
        WF_TRY(weft_comm_create(parent, count, ranks, NULL, &group));
        group->next_group = parent->groups;
        parent->groups = group;
        group->owner = parent;
    }
    *out = group;
    return status;
}
