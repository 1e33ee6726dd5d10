/* least_time.c - a lower bound on the time of a move, for searches that compare many layouts. */
#include "plan.h"

#include <string.h>

/* Does a partial of FROM become anything but itself? */
static bool changes_partial(const struct wf_layout *from, const struct wf_layout *to)
{
    for (int32_t a = 0; a < from->axes; a++)
        if (from->placements[a].kind == WEFT_PLACE_PARTIAL && from->ranks[a] > 1 &&
            (to->placements[a].kind != WEFT_PLACE_PARTIAL ||
             to->placements[a].reduction != from->placements[a].reduction))
            return true;
    return false;
}

/* Do the prices of all plans to LAYOUT count the bytes that the rank with the largest shard lacks?
 * They estimate bytes where a shard is not a run of indices, or has an owner; and ranks along a
 * partial axis hold the value together, so that none of them need receive what it lacks. */
static bool has_priced_bytes(const struct wf_layout *layout, bool is_target)
{
    for (int32_t a = 0; a < layout->axes; a++) {
        uint32_t kind = layout->placements[a].kind;
        if (kind != WEFT_PLACE_REPLICATE && kind != WEFT_PLACE_SHARD && layout->ranks[a] > 1 &&
            (is_target || kind != WEFT_PLACE_PARTIAL))
            return false;
    }
    return true;
}

/* The bytes that the rank which has the most in TO lacks. */
static uint64_t missing_bytes(const struct wf_layout *from, const struct wf_layout *to)
{
    int32_t coord[WEFT_MAX_AXES] = {0};
    struct wf_shard have, want;
    int64_t common = 1;

    wf_layout_largest(to, coord);
    wf_shard_at(from, coord, &have);
    wf_shard_at(to, coord, &want);
    for (int32_t d = 0; d < from->dims; d++) {
        struct wf_index a = wf_shard_index(&have, d), b = wf_shard_index(&want, d);
        common *= wf_index_common(&a, &b);
    }
    return (uint64_t)(want.elements - common) * wf_dtype_bytes(from->dtype);
}

/* The layout of FROM's tensor with PLACEMENTS, settled. */
static weft_status set_target(const weft_spec *from, const weft_placement *placements,
                              weft_spec *out)
{
    struct wf_layout *layout = &out->layout;

    out->elements = from->elements;
    layout->mesh = from->layout.mesh;
    layout->axes = from->layout.axes;
    memcpy(layout->ranks, from->layout.ranks, sizeof layout->ranks);
    layout->dtype = from->layout.dtype;
    layout->dims = from->layout.dims;
    memcpy(layout->shape, from->layout.shape, sizeof layout->shape);
    memcpy(layout->placements, placements, (size_t)layout->axes * sizeof *placements);
    return wf_layout_settle(layout);
}

weft_status weft_plan_lower_bound_ns(const weft_spec *from, const weft_placement *placements,
                                     const weft_plan_options *options, uint64_t *ns)
{
    static const char function[] = "weft_plan_lower_bound_ns";
    weft_plan_options given = {0};
    struct wf_lower_bound bound;
    struct wf_problem problem;
    uint64_t missing, received;
    weft_status status;
    weft_spec target;

    WF_TRY(wf_require_kind(from, WF_KIND_SPEC, "weft_plan_lower_bound_ns: from"));
    WF_TRY(wf_require(placements, "weft_plan_lower_bound_ns: placements"));
    WF_TRY(wf_require(ns, "weft_plan_lower_bound_ns: ns"));
    WF_TRY(wf_options_read("weft_plan_options", options, &given, sizeof given));
    WF_TRY(wf_plan_refuse_holders(function, &given));
    WF_TRY(wf_placements_check_fields(placements, from->layout.axes, function));
    status = set_target(from, placements, &target);
    if (status != WEFT_OK) return wf_fail_named(status, function);
    *ns = 0;
    if (from->elements == 0) return WEFT_OK;
    missing = missing_bytes(&from->layout, &target.layout);
    if (missing == 0 && !changes_partial(&from->layout, &target.layout)) return WEFT_OK;
    status = wf_problem_set(&problem, from, &target, &given);
    if (status != WEFT_OK) return wf_fail_named(status, function);
    wf_lower_bound_set(&bound, &problem);
    *ns = wf_lower_bound_ns(&bound, &problem.source);
    if (!has_priced_bytes(&from->layout, false) || !has_priced_bytes(&target.layout, true))
        return WEFT_OK;
    received = wf_transfer_ns(missing, bound.transfers.rate);
    /* the time of each step is rounded down */
    received -= received < WF_PATH_MAX ? received : WF_PATH_MAX;
    received = wf_add_capped(wf_lower_bound_latency(&bound, &problem.source), received);
    if (received > *ns) *ns = received;
    return WEFT_OK;
}
