/* action.c - a step turned into this rank's action.
 *
 * If ranks can read each other's memory, the action is a pull: every byte goes straight from its
 * source to its target.  A reduction to replicas is the plugin's all-reduce, if it has one.
 * Otherwise bytes are packed, exchanged and unpacked, with two exceptions: whole buffers are
 * gathered, broadcast from or reduced to an owner by the plugin's collectives; and a plugin with
 * exchange moves elements that nobody reduces or casts. */
#include "bound.h"

#include "base/number.h"

#include <string.h>

static weft_status make_list(const struct weft_bound *bound, const struct wf_action *action,
                             const struct wf_parts *parts, void **list)
{
    weft_status status;

    status =
        bound->kernel->regions_create(bound->kernel_device, (uint32_t)wf_dtype_bytes(action->from),
                                      parts->region_count, parts->regions, list);
    return status == WEFT_OK ? status : wf_fail_context(status, "listing a step's regions");
}

static void set_all_reduce(struct wf_action *action)
{
    action->type = WF_ACTION_COLLECTIVE;
    action->collective = (weft_collective_args){.struct_size = sizeof(weft_collective_args),
                                                .collective = WEFT_COLL_ALL_REDUCE,
                                                .dtype = action->kind.dtype,
                                                .reduction = action->kind.reduction,
                                                .root = -1,
                                                .count = action->elements,
                                                .divisor = wf_divisor_of(&action->kind)};
}

/* The rank of ACTION's communicator that owns SPEC's shard in this rank's group. */
static int32_t find_owner(const struct weft_bound *bound, const struct wf_action *action,
                          const weft_spec *spec)
{
    const struct wf_layout *layout = &spec->layout;
    int32_t coord[WEFT_MAX_AXES], world;

    if (!wf_mesh_coord(layout->mesh, weft_comm_rank(bound->parent), coord)) return -1;
    for (int32_t a = 0; a < layout->mesh->axes; a++)
        if (action->step->axes >> a & 1) coord[a] = layout->placements[a].owner;
    world = weft_comm_world_rank(bound->parent, wf_mesh_rank(layout->mesh, coord));
    return weft_comm_find_rank(action->comm, world);
}

/* True if the backend's broadcast or reduction runs STEP. */
static bool is_rooted(const struct weft_bound *bound, const struct wf_action *action)
{
    uint32_t kind = action->step->kind;

    if (!bound->packed || (kind != WEFT_STEP_BROADCAST && kind != WEFT_STEP_REDUCE)) return false;
    return wf_ways_have(&bound->ways,
                        kind == WEFT_STEP_BROADCAST ? WEFT_COLL_BROADCAST : WEFT_COLL_REDUCE,
                        action->kind.dtype);
}

/* A broadcast of the owner's buffer, or a reduction to it.  Other ranks than the owner have an
 * empty shard on one side. */
static void set_rooted(const struct weft_bound *bound, struct wf_action *action)
{
    bool broadcasts = action->step->kind == WEFT_STEP_BROADCAST;
    const weft_spec *owned = broadcasts ? action->step->from : action->step->to;
    uint64_t inputs = action->input_bytes / wf_dtype_bytes(action->kind.dtype);

    action->type = WF_ACTION_COLLECTIVE;
    action->collective =
        (weft_collective_args){.struct_size = sizeof(weft_collective_args),
                               .collective = broadcasts ? WEFT_COLL_BROADCAST : WEFT_COLL_REDUCE,
                               .dtype = action->kind.dtype,
                               .reduction = broadcasts ? 0 : action->kind.reduction,
                               .root = find_owner(bound, action, owned),
                               .count = broadcasts ? action->elements : inputs,
                               .divisor = broadcasts ? 0 : wf_divisor_of(&action->kind)};
}

/* For an exchange, list what the readers read, too. */
static weft_status set_readers(const struct weft_bound *bound, struct wf_action *action)
{
    const struct wf_step *step = action->step;
    struct wf_parts parts;
    weft_status status;

    WF_TRY(wf_parts_serve(step->from, step->to, step->living, weft_comm_rank(bound->parent), NULL,
                          &parts));
    status = wf_parts_renumber(&parts, bound->parent, action->comm);
    if (status == WEFT_OK && action->type == WF_ACTION_EXCHANGE)
        status = make_list(bound, action, &parts, &action->served);
    if (status == WEFT_OK) {
        action->readers = parts.ranks;
        action->reader_count = parts.rank_count;
        parts.ranks = NULL;
    }
    wf_parts_free(&parts);
    return status;
}

/* True if the backend's exchange runs ACTION.  The same answer on all members. */
static bool is_exchanged(const struct weft_bound *bound, const struct wf_action *action)
{
    return bound->exchanges && action->kind.holders == 1 && action->from == action->to &&
           wf_packing_collective(bound, action) == WEFT_COLL_ALL_TO_ALL_V;
}

static weft_status set_way(struct weft_bound *bound, struct wf_action *action,
                           struct wf_parts *parts)
{
    bool averages;

    if (wf_step_is_local(action->step)) {
        action->type = WF_ACTION_COPY;
        if (wf_cast_is_dense(bound->casts, action->step)) return WEFT_OK;
        return parts->region_count > 0 ? make_list(bound, action, parts, &action->regions)
                                       : WEFT_OK;
    }
    averages = wf_average_is_native(bound, &action->kind);
    if (action->step->kind == WEFT_STEP_ALL_REDUCE && averages &&
        wf_ways_have(&bound->ways, WEFT_COLL_ALL_REDUCE, action->kind.dtype)) {
        set_all_reduce(action);
        return WEFT_OK;
    }
    if (averages && is_rooted(bound, action)) {
        set_rooted(bound, action);
        return WEFT_OK;
    }
    WF_TRY(wf_parts_renumber(parts, bound->parent, action->comm));
    if (is_exchanged(bound, action)) {
        action->type = WF_ACTION_EXCHANGE;
    } else if (bound->packed || !averages) {
        action->type = WF_ACTION_PACKED;
        return wf_packing_set(bound, action, parts);
    } else {
        action->type = WF_ACTION_PULL;
    }
    WF_TRY(make_list(bound, action, parts, &action->regions));
    action->sources = parts->ranks;
    parts->ranks = NULL;
    return set_readers(bound, action);
}

static uint64_t input_bytes(const struct weft_bound *bound, const struct wf_action *action)
{
    const weft_spec *from = action->step->from;
    struct wf_shard shard;

    wf_shard_of(from, weft_comm_rank(bound->parent), &shard);
    return (uint64_t)shard.elements * wf_dtype_bytes(from->layout.dtype);
}

weft_status wf_action_set(struct weft_bound *bound, struct wf_action *action,
                          const int64_t *in_strides, const int64_t *out_strides)
{
    struct wf_share share;
    weft_status status;

    WF_TRY(
        wf_share_of(action->step, weft_comm_rank(bound->parent), in_strides, out_strides, &share));
    action->input_bytes = input_bytes(bound, action);
    action->elements = (uint64_t)share.elements;
    action->from = action->step->from->layout.dtype;
    action->to = action->step->to->layout.dtype;
    action->kind = (struct wf_arrival_kind){.dtype = wf_step_dtype(action->step),
                                            .reduction = share.parts.reduction,
                                            .holders = share.parts.holders,
                                            .divisor = share.parts.divisor};
    action->filled = share.filled;
    if (share.filled) wf_element_identity(action->to, share.fill, action->identity);
    status = set_way(bound, action, &share.parts);
    wf_share_free(&share);
    return status;
}

void wf_action_clear(struct weft_bound *bound, struct wf_action *action)
{
    if (action->regions != NULL) bound->kernel->regions_destroy(action->regions);
    if (action->served != NULL) bound->kernel->regions_destroy(action->served);
    if (action->type == WF_ACTION_PACKED) wf_packing_clear(bound, action);
    wf_free(action->sources);
    wf_free(action->readers);
    *action = (struct wf_action){0};
}
