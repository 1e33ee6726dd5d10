/* groups.c - communicators of groups of ranks within another, made once and kept with it. */
#include "comm.h"
#include "recording.h"
#include "mesh/mesh.h"

#include <stdio.h>

static bool is_group(const weft_comm *comm, const weft_comm *parent, const int32_t *ranks,
                     int32_t count)
{
    bool same = comm->size == count;

    for (int32_t i = 0; same && i < count; i++)
        same = comm->world_ranks[i] == weft_comm_world_rank(parent, ranks[i]);
    return same;
}

/* The world ranks of COUNT RANKS of PARENT; valid until the next call. */
static const int32_t *world_ranks(weft_comm *parent, const int32_t *ranks, int32_t count)
{
    for (int32_t i = 0; i < count; i++)
        parent->room[i] = weft_comm_world_rank(parent, ranks[i]);
    return parent->room;
}

/* Fail the making of the communicator on the other ranks. */
static weft_status decline(weft_comm *parent, const char *function, const int32_t *ranks,
                           int32_t count, weft_status status)
{
    struct wf_gathered got;

    return wf_agree_on_list(parent, function, world_ranks(parent, ranks, count), count,
                            parent->timeout_ns, status, (weft_blob){"", 0}, &got);
}

/* Make the communicator of COUNT RANKS, if STATUS is OK on all of them.  With RECORDED, the wait
 * for them gets a record. */
static weft_status make(weft_comm *parent, const char *function, const int32_t *ranks,
                        int32_t count, weft_status status, bool recorded, weft_comm **out)
{
    struct wf_submitted record = {NULL, 0};

    if (recorded)
        record = wf_record_agreement(parent, function, world_ranks(parent, ranks, count), count);
    if (status == WEFT_OK)
        status = wf_comm_create(parent, function, count, ranks, NULL, out);
    else
        status = decline(parent, function, ranks, count, status);
    return wf_record_created(parent, record, status);
}

static weft_comm *find(weft_comm *list, const weft_comm *parent, const int32_t *ranks,
                       int32_t count)
{
    while (list != NULL && (list->is_tied || !is_group(list, parent, ranks, count)))
        list = list->next_group;
    return list;
}

/* From now on, GROUP fails with PARENT. */
static void keep(weft_comm *parent, weft_comm *group, bool is_tied)
{
    pthread_mutex_lock(&parent->context->lock);
    group->is_tied = is_tied;
    group->next_group = parent->groups;
    parent->groups = group;
    group->owner = parent;
    if (atomic_load(&parent->cause) != WEFT_OK)
        wf_comm_fail_locked(group, atomic_load(&parent->cause), parent->cause_text);
    pthread_mutex_unlock(&parent->context->lock);
}

weft_status wf_comm_group(weft_comm *parent, const char *function, const int32_t *ranks,
                          int32_t count, weft_status status, bool recorded, weft_comm **out)
{
    weft_comm *group = find(parent->groups, parent, ranks, count);

    if (is_group(parent, parent, ranks, count)) {
        *out = parent;
        return status;
    }
    if (group == NULL) {
        WF_TRY(make(parent, function, ranks, count, status, recorded, &group));
        keep(parent, group, false);
    }
    *out = group;
    return status;
}

void wf_comm_tie(weft_comm *parent, weft_comm *group)
{
    keep(parent, group, true);
}

void wf_comm_untie(weft_comm *group)
{
    weft_comm **at;

    if (!group->is_tied) return;
    pthread_mutex_lock(&group->context->lock);
    for (at = &group->owner->groups; *at != group; at = &(*at)->next_group)
        continue;
    *at = group->next_group;
    group->next_group = group->owner = NULL;
    group->is_tied = false;
    pthread_mutex_unlock(&group->context->lock);
}

/* The ranks of MESH.  The caller frees *OUT. */
static weft_status list_ranks(const weft_comm *parent, const weft_mesh *mesh, int32_t **out)
{
    int32_t *ranks = wf_calloc((size_t)mesh->size, sizeof *ranks);

    if (ranks == NULL) return wf_fail_memory((size_t)mesh->size * sizeof *ranks);
    for (int32_t i = 0; i < mesh->size; i++) {
        ranks[i] = weft_mesh_rank_at(mesh, i);
        if (ranks[i] < parent->size) continue;
        wf_free(ranks);
        return wf_fail(WEFT_ERR_INVALID, "`mesh` has rank %d; the communicator \"%s\" has %d ranks",
                       weft_mesh_rank_at(mesh, i), parent->name, parent->size);
    }
    *out = ranks;
    return WEFT_OK;
}

weft_status wf_comm_mesh_group(weft_comm *parent, const weft_mesh *mesh, const char *function,
                               weft_status status, weft_comm **out)
{
    int32_t coord[WEFT_MAX_AXES], *ranks = NULL;

    *out = NULL;
    WF_TRY(wf_require_kind(mesh, WF_KIND_MESH, "`mesh`"));
    if (!wf_mesh_coord(mesh, parent->rank, coord)) return status;
    WF_TRY(list_ranks(parent, mesh, &ranks));
    status = wf_comm_group(parent, function, ranks, mesh->size, status, true, out);
    wf_free(ranks);
    return status;
}

bool wf_comm_has_axis_group(const weft_comm *parent, const int32_t *ranks, int32_t count)
{
    return is_group(parent, parent, ranks, count) ||
           find(parent->axis_groups, parent, ranks, count) != NULL;
}

weft_status wf_comm_axis_group(weft_comm *parent, const int32_t *ranks, int32_t count,
                               const char *name, const weft_subcomm_options *options,
                               weft_comm **out)
{
    weft_comm *group = find(parent->axis_groups, parent, ranks, count);
    char function[WF_SUBCOMM_NAME + 32];

    if (is_group(parent, parent, ranks, count)) group = parent;
    if (group == NULL) {
        snprintf(function, sizeof function, "weft_comm_along of %s", name);
        WF_TRY(wf_comm_create(parent, function, count, ranks, options, &group));
        pthread_mutex_lock(&parent->context->lock);
        group->next_group = parent->axis_groups;
        parent->axis_groups = group;
        group->owner = parent;
        group->fails_alone = true;
        pthread_mutex_unlock(&parent->context->lock);
    }
    *out = group;
    return WEFT_OK;
}
