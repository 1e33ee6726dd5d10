/* action.c - a step turned into what this rank does.
 *
 * A backend whose ranks read each other's memory pulls: every byte goes straight from where it is
 * to where it belongs.  Reducing to copies is the plugin's all-reduce.  Elsewhere bytes are packed,
 * exchanged and unpacked. */
#include "bound.h"

#include <string.h>

static bool is_local(uint32_t kind)
{
    return kind == WEFT_STEP_SLICE || kind == WEFT_STEP_PARTIAL;
}

/* The reduction of a partial that the step makes. */
static uint32_t made_reduction(const struct wf_step *step)
{
    const struct wf_layout *from = &step->from->layout, *to = &step->to->layout;

    for (int32_t a = 0; a < to->mesh->axes; a++) {
        bool kept = from->mesh == to->mesh && from->placements[a].kind == WEFT_PLACE_PARTIAL;
        if (to->placements[a].kind == WEFT_PLACE_PARTIAL && !kept &&
            to->placements[a].reduction != WEFT_REDUCE_AVG)
            return to->placements[a].reduction;
    }
    return WEFT_REDUCE_SUM;
}

static weft_status make_list(struct weft_bound *bound, struct wf_action *action,
                             const struct wf_parts *parts)
{
    weft_status status;

    status = bound->kernel->regions_create(bound->device, (uint32_t)wf_dtype_bytes(action->dtype),
                                           parts->region_count, parts->regions, &action->regions);
    return status == WEFT_OK ? status : wf_fail_context(status, "listing a step's regions");
}

/* RANKS as ranks of the action's communicator. */
static weft_status translate(const struct weft_bound *bound, const struct wf_action *action,
                             struct wf_parts *parts)
{
    for (uint32_t i = 0; i < parts->rank_count; i++) {
        int32_t world = weft_comm_world_rank(bound->parent, parts->ranks[i]);
        int32_t rank = weft_comm_find_rank(action->comm, world);
        if (rank < 0)
            return wf_fail(WEFT_ERR_INTERNAL, "rank %d is read but takes no part", parts->ranks[i]);
        parts->ranks[i] = rank;
    }
    return WEFT_OK;
}

/* Local steps read their own rank's input, whose strides may be the user's. */
static weft_status set_copy(struct weft_bound *bound, struct wf_action *action,
                            const int64_t *in_strides, const int64_t *out_strides, bool identity)
{
    const struct wf_step *step = action->step;
    int32_t rank = weft_comm_rank(bound->parent);
    int64_t a_strides[WEFT_MAX_DIMS], b_strides[WEFT_MAX_DIMS];
    struct wf_region_list list = {0};
    struct wf_shard a, b;
    weft_status status;

    action->way = WF_COPY;
    if (identity) return WEFT_OK;
    wf_shard_of(step->from, rank, &a);
    wf_shard_of(step->to, rank, &b);
    wf_row_major(a.dims, a.shape, a_strides);
    wf_row_major(b.dims, b.shape, b_strides);
    status = wf_regions_add(&list, &a, in_strides != NULL ? in_strides : a_strides, &b,
                            out_strides != NULL ? out_strides : b_strides, 0, 0);
    if (status == WEFT_OK)
        status = make_list(bound, action,
                           &(struct wf_parts){.regions = list.regions, .region_count = list.count});
    wf_free(list.regions);
    return status;
}

/* A shard of a sum's contribution has zeros around it. */
static bool needs_zeros(const struct wf_step *step)
{
    const struct wf_layout *from = &step->from->layout, *to = &step->to->layout;

    for (int32_t a = 0; a < from->mesh->axes && step->kind == WEFT_STEP_PARTIAL; a++)
        if (wf_placement_splits(&from->placements[a]) &&
            to->placements[a].kind == WEFT_PLACE_PARTIAL)
            return true;
    return false;
}

static void set_all_reduce(struct wf_action *action)
{
    action->way = WF_COLLECTIVE;
    action->collective = (weft_collective_args){.struct_size = sizeof(weft_collective_args),
                                                .collective = WEFT_COLL_ALL_REDUCE,
                                                .dtype = action->dtype,
                                                .reduction = action->reduction,
                                                .root = -1,
                                                .count = action->elements};
}

static weft_status set_elements(struct wf_action *action, const struct wf_parts *parts)
{
    if (parts->identity || needs_zeros(action->step)) {
        action->filled = true;
        wf_element_identity(action->dtype, made_reduction(action->step), action->identity);
    }
    if (parts->divisor == 1) return WEFT_OK;
    if (action->dtype < WEFT_DTYPE_F16)
        return wf_fail(WEFT_ERR_UNSUPPORTED,
                       "P(sum) and P(avg) of %s cannot be reduced in one step",
                       wf_dtype_name(action->dtype));
    action->scaled = true;
    wf_element_inverse(action->dtype, parts->divisor, action->scale);
    return WEFT_OK;
}

static weft_status set_way(struct weft_bound *bound, struct wf_action *action,
                           const int64_t *in_strides, const int64_t *out_strides,
                           struct wf_parts *parts)
{
    WF_TRY(set_elements(action, parts));
    if (is_local(action->step->kind))
        return set_copy(bound, action, in_strides, out_strides,
                        parts->identity && !needs_zeros(action->step));
    if (action->step->kind == WEFT_STEP_ALL_REDUCE) {
        set_all_reduce(action);
        return WEFT_OK;
    }
    WF_TRY(translate(bound, action, parts));
    if (!WF_HAS(action->comm->table, pull)) {
        action->way = WF_PACKED;
        return wf_packing_set(bound, action, parts);
    }
    action->way = WF_PULL;
    WF_TRY(make_list(bound, action, parts));
    action->sources = parts->ranks;
    parts->ranks = NULL;
    return WEFT_OK;
}

weft_status wf_action_set_copy(struct weft_bound *bound, struct wf_action *action,
                               const int64_t *in_strides, const int64_t *out_strides)
{
    action->dtype = action->step->from->layout.dtype;
    return set_copy(bound, action, in_strides, out_strides, false);
}

weft_status wf_action_set(struct weft_bound *bound, struct wf_action *action,
                          const int64_t *in_strides, const int64_t *out_strides)
{
    const struct wf_step *step = action->step;
    int32_t rank = weft_comm_rank(bound->parent);
    struct wf_parts parts;
    struct wf_shard shard;
    weft_status status;

    WF_TRY(wf_parts_read(step->from, step->to, rank, out_strides, &parts));
    wf_shard_of(step->to, rank, &shard);
    action->elements = (uint64_t)shard.elements;
    action->dtype = step->from->layout.dtype;
    action->reduction = parts.reduction;
    action->holders = parts.holders;
    status = set_way(bound, action, in_strides, out_strides, &parts);
    wf_parts_free(&parts);
    return status;
}

void wf_action_clear(struct weft_bound *bound, struct wf_action *action)
{
    if (action->regions != NULL) bound->kernel->regions_destroy(action->regions);
    if (action->way == WF_PACKED) wf_packing_clear(bound, action);
    wf_free(action->sources);
    *action = (struct wf_action){0};
}
