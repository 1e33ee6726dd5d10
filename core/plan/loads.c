/* loads.c - the bytes that each of up to 64 ranks receives in a step, and must still receive.
 *
 * A mesh of more ranks is represented by 64 of them, spread over all axes.  Then loads and bounds
 * are estimates. */
#include "plan.h"

#include <string.h>

/* ---- the ranks ---- */

/* Coordinate number I of COUNT, spread over SIZE. */
static int32_t spread_coord(int32_t i, int32_t count, int64_t size)
{
    return count == 1 ? 0 : (int32_t)((int64_t)i * (size - 1) / (count - 1));
}

/* Choose how many coordinates of each axis are visited. */
static void choose_counts(struct wf_loads *loads, int32_t *count)
{
    const struct wf_problem *problem = loads->problem;
    int32_t grown = 1;

    for (int32_t i = 0; i < problem->axes; i++)
        count[i] = 1;
    for (int32_t goal = 2; grown > 0; goal++) {
        grown = 0;
        for (int32_t i = 0; i < problem->axes; i++) {
            if (count[i] >= goal || problem->size[i] < goal) continue;
            if (loads->ranks / count[i] * goal > WF_LOADS_MAX) continue;
            loads->ranks = loads->ranks / count[i] * goal;
            count[i] = goal;
            grown++;
        }
    }
}

static void choose_ranks(struct wf_loads *loads)
{
    const struct wf_problem *problem = loads->problem;
    int32_t count[WEFT_MAX_AXES];
    int64_t all = 1;

    for (int32_t i = 0; i < problem->axes; i++)
        all = all <= WF_LOADS_MAX ? all * problem->size[i] : all;
    loads->ranks = 1;
    choose_counts(loads, count);
    loads->all = all == loads->ranks;
    for (int32_t r = 0; r < loads->ranks; r++) {
        int32_t rest = r;
        memset(loads->coord[r], 0, sizeof loads->coord[r]);
        for (int32_t i = problem->axes - 1; i >= 0; rest /= count[i--])
            loads->coord[r][problem->mesh_axis[i]] =
                spread_coord(rest % count[i], count[i], problem->size[i]);
    }
}

/* Ranks along the target's partials form a group, which holds its elements together. */
static void choose_groups(struct wf_loads *loads)
{
    const struct wf_problem *problem = loads->problem;

    loads->group_size = 1;
    for (int32_t i = 0; i < problem->axes; i++)
        if (problem->target.axis[i].kind == WF_CODE_PARTIAL) loads->group_size *= problem->size[i];
    for (int32_t r = 0; r < loads->ranks; r++) {
        int32_t first[WEFT_MAX_AXES], g = 0;
        memcpy(first, loads->coord[r], sizeof first);
        for (int32_t i = 0; i < problem->axes; i++)
            if (problem->target.axis[i].kind == WF_CODE_PARTIAL) first[problem->mesh_axis[i]] = 0;
        while (g < loads->groups && memcmp(loads->coord[loads->leader[g]], first, sizeof first))
            g++;
        if (g == loads->groups) loads->leader[loads->groups++] = r;
        loads->group[r] = g;
    }
}

/* ---- lengths ---- */

/* Write, for every rank, the length of dimension DIM in LAYOUT or, if OTHER is not NULL, the number
 * of its indices that OTHER has too. */
static void list_dim(const struct wf_loads *loads, const struct wf_layout *layout,
                     const struct wf_layout *other, int32_t dim, int64_t *out)
{
    int64_t values[WF_LOADS_MAX];
    bool known[WF_LOADS_MAX] = {false};
    struct wf_shard a, b;
    struct wf_table table;
    uint32_t axes = wf_layout_axes(layout, dim);

    if (other != NULL) axes |= wf_layout_axes(other, dim);
    if (axes == 0) {
        for (int32_t r = 0; r < loads->ranks; r++)
            out[r * loads->dims] = dim < layout->dims ? layout->shape[dim] : 1;
        return;
    }
    wf_table_set(&table, layout->mesh, axes);
    for (int32_t r = 0; r < loads->ranks; r++) {
        int64_t at = loads->all ? 0 : r;
        for (int32_t x = 0; loads->all && x < layout->mesh->axes; x++)
            at += (int64_t)table.stride[x] * loads->coord[r][x];
        if (!known[at]) {
            wf_shard_at(layout, loads->coord[r], &a);
            if (other != NULL) wf_shard_at(other, loads->coord[r], &b);
            values[at] = other != NULL        ? wf_shards_common(&a, &b, dim)
                         : dim < layout->dims ? a.shape[dim]
                                              : a.elements;
            known[at] = true;
        }
        out[r * loads->dims] = values[at];
    }
}

static void list_dims(const struct wf_loads *loads, const struct wf_layout *layout,
                      const struct wf_layout *other, int64_t *out)
{
    for (int32_t d = 0; d < loads->dims; d++)
        list_dim(loads, layout, other, d, out + d);
}

static uint64_t product_of(const struct wf_loads *loads, const int64_t *lengths, int32_t rank)
{
    uint64_t product = 1;

    for (int32_t d = 0; d < loads->dims; d++)
        product *= (uint64_t)lengths[rank * loads->dims + d];
    return product;
}

weft_status wf_loads_open(struct wf_loads *loads, const struct wf_problem *problem)
{
    int64_t lengths[WF_LOADS_MAX * WEFT_MAX_DIMS];

    memset(loads, 0, sizeof *loads);
    loads->problem = problem;
    loads->element =
        problem->elements[0] < problem->elements[1] ? problem->elements[0] : problem->elements[1];
    WF_TRY(wf_problem_layout(problem, &problem->target, &loads->target));
    loads->dims = wf_table_dims(&loads->target);
    choose_ranks(loads);
    choose_groups(loads);
    list_dims(loads, &loads->target, NULL, lengths);
    for (int32_t r = 0; r < loads->ranks; r++)
        loads->wants[r] = product_of(loads, lengths, r);
    return WEFT_OK;
}

/* ---- what is missing ---- */

/* Contributions of STATE that must be reduced to one value. */
static uint64_t pending_of(const struct wf_problem *problem, const struct wf_state *state)
{
    uint64_t holders = 1;

    for (int32_t i = 0; i < problem->axes; i++)
        if (state->axis[i].kind == WF_CODE_PARTIAL &&
            problem->target.axis[i].kind != WF_CODE_PARTIAL)
            holders *= (uint64_t)problem->size[i];
    return holders;
}

/* Messages that the reduction of all elements needs, and that bring its values to all ranks. */
static uint64_t reduction_total(const struct wf_loads *loads, uint64_t holders)
{
    const struct wf_problem *problem = loads->problem;
    uint64_t values = (uint64_t)problem->from->elements, wanted = 1;

    if (holders == 1 || loads->group_size > 1) return 0;
    for (int32_t i = 0; i < problem->axes; i++)
        if (problem->target.axis[i].kind == WF_CODE_REPLICATE)
            wanted = wf_mul_capped(wanted, (uint64_t)problem->size[i]);
    return wf_mul_capped(wf_mul_capped(values, holders + wanted - 2), loads->element);
}

/* Does a rank besides the leader of a group add to what the group holds?  Replicas do not. */
static bool adds_elements(const struct wf_loads *loads, const struct wf_state *state, int32_t rank)
{
    const struct wf_problem *problem = loads->problem;

    for (int32_t i = 0; i < problem->axes; i++)
        if (problem->target.axis[i].kind == WF_CODE_PARTIAL && !wf_code_splits(state->axis[i]) &&
            loads->coord[rank][problem->mesh_axis[i]] != 0)
            return false;
    return true;
}

weft_status wf_loads_measure(const struct wf_loads *loads, const struct wf_state *state,
                             struct wf_load_state *out)
{
    uint64_t holders = pending_of(loads->problem, state);
    int64_t common[WF_LOADS_MAX * WEFT_MAX_DIMS];
    struct wf_layout layout;

    WF_TRY(wf_problem_layout(loads->problem, state, &layout));
    list_dims(loads, &layout, NULL, out->lengths);
    out->total = reduction_total(loads, holders);
    for (int32_t g = 0; g < loads->groups; g++)
        out->missing[g] = loads->wants[loads->leader[g]];
    if (holders == 1) list_dims(loads, &layout, &loads->target, common);
    for (int32_t r = 0; r < loads->ranks && holders == 1; r++) {
        uint64_t *missing = &out->missing[loads->group[r]], held;
        if (!adds_elements(loads, state, r)) continue;
        held = product_of(loads, common, r);
        *missing = *missing > held ? *missing - held : 0;
    }
    for (int32_t g = 0; g < loads->groups; g++)
        out->missing[g] *= loads->element;
    if (loads->group_size > 1 && !loads->all) memset(out->missing, 0, sizeof out->missing);
    return WEFT_OK;
}

/* The least that a plan with LOADED bytes so far reaches, at the rank that has the most. */
uint64_t wf_loads_bound(const struct wf_loads *loads, const uint64_t *loaded,
                        const struct wf_load_state *state)
{
    uint64_t sums[WF_LOADS_MAX] = {0}, most = 0, sum = 0, unit = loads->element;
    uint64_t ranks = (uint64_t)loads->ranks, mean;

    for (int32_t r = 0; r < loads->ranks; r++) {
        if (loaded[r] > most) most = loaded[r];
        sums[loads->group[r]] = wf_add_capped(sums[loads->group[r]], loaded[r]);
        sum = wf_add_capped(sum, loaded[r]);
    }
    for (int32_t g = 0; g < loads->groups; g++) {
        mean = wf_add_capped(sums[g], state->missing[g]);
        if (loads->group_size > 1)
            mean = (mean / unit + (uint64_t)loads->group_size - 1) / (uint64_t)loads->group_size *
                   unit;
        if (mean > most) most = mean;
    }
    if (state->total == 0) return most;
    if (loads->all)
        mean = (wf_add_capped(sum, state->total) / unit + ranks - 1) / ranks * unit;
    else
        mean = sum / ranks + state->total / (uint64_t)loads->target.mesh->size;
    return mean > most ? mean : most;
}

/* ---- steps ---- */

static uint64_t group_ranks(const struct wf_problem *problem, uint32_t axes)
{
    uint64_t ranks = 1;

    for (int32_t i = 0; i < problem->axes; i++)
        if (axes >> i & 1) ranks *= (uint64_t)problem->size[i];
    return ranks;
}

static weft_status load_exchange(const struct wf_loads *loads, const struct wf_state *from,
                                 uint64_t element, uint64_t *received)
{
    const struct wf_problem *problem = loads->problem;
    int64_t common[WF_LOADS_MAX * WEFT_MAX_DIMS];
    uint64_t holders = pending_of(problem, from);
    struct wf_layout layout;

    WF_TRY(wf_problem_layout(problem, from, &layout));
    list_dims(loads, &layout, &loads->target, common);
    for (int32_t r = 0; r < loads->ranks; r++) {
        bool identity = false;
        for (int32_t i = 0; i < problem->axes; i++) {
            struct wf_code to = problem->target.axis[i];
            identity |= to.kind == WF_CODE_PARTIAL && from->axis[i].kind != WF_CODE_PARTIAL &&
                        to.value != WEFT_REDUCE_AVG && loads->coord[r][problem->mesh_axis[i]] != 0;
        }
        received[r] = identity ? 0
                               : wf_sub_capped(wf_mul_capped(loads->wants[r] * element, holders),
                                               product_of(loads, common, r) * element);
    }
    return WEFT_OK;
}

weft_status wf_loads_edge(const struct wf_loads *loads, const struct wf_state *from,
                          const struct wf_load_state *before, const struct wf_edge *edge,
                          const struct wf_load_state *after, uint64_t *received)
{
    uint64_t ranks = group_ranks(loads->problem, edge->axes), holders = 1;
    struct wf_cast_work cast;

    memset(received, 0, (size_t)loads->ranks * sizeof *received);
    if (edge->kind == WEFT_STEP_SLICE || edge->kind == WEFT_STEP_PARTIAL) return WEFT_OK;
    wf_cast_price(loads->problem, from, edge, &cast);
    if (edge->kind == WEFT_STEP_EXCHANGE || edge->kind == WEFT_STEP_PERMUTE)
        return load_exchange(loads, from, cast.element, received);
    if (edge->kind == WEFT_STEP_REDUCE_SCATTER) holders = ranks;
    for (int32_t r = 0; r < loads->ranks; r++) {
        const int64_t *had = &before->lengths[r * loads->dims];
        const int64_t *has = &after->lengths[r * loads->dims];
        uint64_t wants = 1, common = 1;
        for (int32_t d = 0; d < loads->dims; d++) {
            wants *= (uint64_t)has[d];
            /* one of the two shards contains the other in every dimension */
            common *= (uint64_t)wf_min_i64(had[d], has[d]);
        }
        if (edge->kind == WEFT_STEP_ALL_REDUCE)
            received[r] =
                wf_mul_capped(2 * (ranks - 1), (wants + ranks - 1) / ranks * cast.element);
        else
            received[r] =
                wf_sub_capped(wf_mul_capped(wants * cast.element, holders), common * cast.element);
    }
    return WEFT_OK;
}
