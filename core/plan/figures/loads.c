/* loads.c - the bytes that each of up to 64 ranks receives in a step, and must still receive.
 *
 * A mesh of more ranks is represented by 64 of them, spread over all axes.  Then loads and bounds
 * are estimates. */
#include "plan/plan.h"

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
        while (g < loads->groups &&
               memcmp(loads->coord[loads->leader[g]], first, sizeof first) != 0)
            g++;
        if (g == loads->groups) loads->leader[loads->groups++] = r;
        loads->group[r] = g;
    }
}

/* ---- lengths ---- */

/* The codes of STATE on which its shards depend in dimension DIM.  Equal codes mean equal shards.
 */
static void find_key(const struct wf_problem *problem, const struct wf_state *state, int32_t dim,
                     struct wf_code *key)
{
    for (int32_t i = 0; i < problem->axes; i++) {
        struct wf_code code = state->axis[i];
        bool counts =
            wf_code_splits(code) ? code.value == dim : dim == 0 && code.kind != WF_CODE_PARTIAL;
        key[i] = counts ? code : (struct wf_code){0};
    }
}

/* Set the lengths of dimension OUT->dim in LAYOUT, and the numbers of indices that the target has
 * in common with it. */
static void list_dim(const struct wf_loads *loads, const struct wf_layout *layout,
                     struct wf_load_dim *out)
{
    const struct wf_layout *target = &loads->target;
    uint32_t axes = wf_layout_axes(layout, out->dim) | wf_layout_axes(target, out->dim);
    int32_t known[WF_LOADS_MAX];
    struct wf_shard has, wants;
    struct wf_table table;

    memset(known, 0xff, sizeof known); /* no rank */
    wf_table_set(&table, layout->mesh, axes);
    for (int32_t r = 0; r < loads->ranks; r++) {
        int64_t at = loads->all ? 0 : r;
        for (int32_t x = 0; loads->all && x < layout->mesh->axes; x++)
            at += (int64_t)table.stride[x] * loads->coord[r][x];
        if (known[at] >= 0) {
            out->lengths[r] = out->lengths[known[at]];
            out->common[r] = out->common[known[at]];
            continue;
        }
        known[at] = r;
        wf_shard_at(layout, loads->coord[r], &has);
        wf_shard_at(target, loads->coord[r], &wants);
        out->lengths[r] = out->dim < layout->dims ? has.shape[out->dim] : has.elements;
        out->common[r] = wf_shards_common(&has, &wants, out->dim);
    }
}

/* The lists of dimension DIM of STATE.  States share them. */
static weft_status find_dim(struct wf_loads *loads, const struct wf_state *state, int32_t dim,
                            int32_t *out)
{
    struct wf_code key[WEFT_MAX_AXES] = {{0}};
    struct wf_layout layout;
    struct wf_load_dim *list;

    find_key(loads->problem, state, dim, key);
    for (*out = 0; *out < loads->list_count; ++*out)
        if (loads->lists[*out].dim == dim && memcmp(loads->lists[*out].key, key, sizeof key) == 0)
            return WEFT_OK;
    if (loads->list_count == loads->list_room) {
        int32_t room = loads->list_room == 0 ? 16 : 2 * loads->list_room;
        list = wf_realloc(loads->lists, (size_t)room * sizeof *list);
        if (list == NULL) return wf_fail_memory((size_t)room * sizeof *list);
        loads->lists = list;
        loads->list_room = room;
    }
    WF_TRY(wf_problem_layout(loads->problem, state, &layout));
    list = &loads->lists[loads->list_count++];
    memcpy(list->key, key, sizeof key);
    list->dim = dim;
    list_dim(loads, &layout, list);
    return WEFT_OK;
}

weft_status wf_loads_open(struct wf_loads *loads, const struct wf_problem *problem)
{
    struct wf_load_state target;

    memset(loads, 0, sizeof *loads);
    loads->problem = problem;
    loads->element =
        problem->elements[0] < problem->elements[1] ? problem->elements[0] : problem->elements[1];
    WF_TRY(wf_problem_layout(problem, &problem->target, &loads->target));
    loads->dims = wf_table_dims(&loads->target);
    choose_ranks(loads);
    choose_groups(loads);
    WF_TRY(wf_loads_measure(loads, &problem->target, &target));
    memcpy(loads->wants, target.elements, sizeof loads->wants);
    return WEFT_OK;
}

void wf_loads_close(struct wf_loads *loads)
{
    wf_free(loads->lists);
    loads->lists = NULL;
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

/* Set the elements of every rank, and those that the target has in common with them. */
static weft_status list_elements(struct wf_loads *loads, const struct wf_state *state,
                                 struct wf_load_state *out)
{
    for (int32_t r = 0; r < loads->ranks; r++)
        out->elements[r] = out->common[r] = 1;
    for (int32_t d = 0; d < loads->dims; d++) {
        const struct wf_load_dim *list;
        WF_TRY(find_dim(loads, state, d, &out->list[d]));
        list = &loads->lists[out->list[d]];
        for (int32_t r = 0; r < loads->ranks; r++) {
            out->elements[r] *= (uint64_t)list->lengths[r];
            out->common[r] *= (uint64_t)list->common[r];
        }
    }
    return WEFT_OK;
}

weft_status wf_loads_measure(struct wf_loads *loads, const struct wf_state *state,
                             struct wf_load_state *out)
{
    uint64_t holders = pending_of(loads->problem, state);

    WF_TRY(list_elements(loads, state, out));
    out->total = reduction_total(loads, holders);
    for (int32_t g = 0; g < loads->groups; g++)
        out->missing[g] = loads->wants[loads->leader[g]];
    for (int32_t r = 0; r < loads->ranks && holders == 1; r++) {
        uint64_t *missing = &out->missing[loads->group[r]], held = out->common[r];
        if (loads->group_size > 1 && !adds_elements(loads, state, r)) continue;
        *missing = *missing > held ? *missing - held : 0;
    }
    for (int32_t g = 0; g < loads->groups; g++)
        out->missing[g] *= loads->element;
    return WEFT_OK;
}

/* As wf_loads_bound, with partials in the target. */
static uint64_t bound_groups(const struct wf_loads *loads, const uint64_t *loaded,
                             const struct wf_load_state *state)
{
    uint64_t sums[WF_LOADS_MAX] = {0}, most = 0, unit = loads->element;
    uint64_t ranks = (uint64_t)loads->group_size;

    for (int32_t r = 0; r < loads->ranks; r++) {
        if (loaded[r] > most) most = loaded[r];
        sums[loads->group[r]] = wf_add_capped(sums[loads->group[r]], loaded[r]);
    }
    for (int32_t g = 0; g < loads->groups && loads->all; g++) {
        uint64_t all = wf_add_capped(sums[g], state->missing[g]);
        uint64_t mean = (all / unit + ranks - 1) / ranks * unit;
        if (mean > most) most = mean;
    }
    return most;
}

uint64_t wf_loads_bound(const struct wf_loads *loads, const uint64_t *loaded,
                        const struct wf_load_state *state)
{
    uint64_t most = 0, sum = 0, unit = loads->element, ranks = (uint64_t)loads->ranks, mean;

    if (loads->group_size > 1) return bound_groups(loads, loaded, state);
    for (int32_t r = 0; r < loads->ranks; r++) {
        uint64_t mine = wf_add_capped(loaded[r], state->missing[r]);
        if (mine > most) most = mine;
        sum = wf_add_capped(sum, loaded[r]);
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

/* Elements that every rank has in FROM and in TO. */
static weft_status list_common(const struct wf_loads *loads, const struct wf_state *from,
                               const struct wf_state *to, uint64_t *common)
{
    struct wf_layout before, after;
    struct wf_shard has, wants;

    WF_TRY(wf_problem_layout(loads->problem, from, &before));
    WF_TRY(wf_problem_layout(loads->problem, to, &after));
    for (int32_t r = 0; r < loads->ranks; r++) {
        wf_shard_at(&before, loads->coord[r], &has);
        wf_shard_at(&after, loads->coord[r], &wants);
        common[r] = wf_shards_common_elements(&has, &wants);
    }
    return WEFT_OK;
}

static weft_status load_exchange(const struct wf_loads *loads, const struct wf_state *from,
                                 const struct wf_load_state *before, const struct wf_edge *edge,
                                 const struct wf_load_state *after, uint64_t element,
                                 uint64_t *received)
{
    const struct wf_problem *problem = loads->problem;
    uint64_t room[WF_LOADS_MAX], holders = 1;
    const uint64_t *common = before->common;

    if (!wf_state_same(&edge->to, &problem->target)) {
        WF_TRY(list_common(loads, from, &edge->to, room));
        common = room;
    }
    for (int32_t i = 0; i < problem->axes; i++)
        if (from->axis[i].kind == WF_CODE_PARTIAL && edge->to.axis[i].kind != WF_CODE_PARTIAL)
            holders *= (uint64_t)problem->size[i];
    for (int32_t r = 0; r < loads->ranks; r++) {
        bool identity = false;
        for (int32_t i = 0; i < problem->axes; i++) {
            struct wf_code to = edge->to.axis[i];
            identity |= to.kind == WF_CODE_PARTIAL && from->axis[i].kind != WF_CODE_PARTIAL &&
                        to.value != WEFT_REDUCE_AVG && loads->coord[r][problem->mesh_axis[i]] != 0;
        }
        received[r] = identity ? 0 : wf_bytes_from(after->elements[r], holders, common[r], element);
    }
    return WEFT_OK;
}

/* Elements that every rank has before and after a collective.  In every dimension one of the two
 * shards contains the other. */
static void list_kept(const struct wf_loads *loads, const struct wf_load_state *before,
                      const struct wf_load_state *after, uint64_t *kept)
{
    for (int32_t r = 0; r < loads->ranks; r++)
        kept[r] = 1;
    for (int32_t d = 0; d < loads->dims; d++) {
        const int64_t *had = loads->lists[before->list[d]].lengths;
        const int64_t *has = loads->lists[after->list[d]].lengths;
        for (int32_t r = 0; r < loads->ranks; r++)
            kept[r] *= (uint64_t)wf_min_i64(had[r], has[r]);
    }
}

weft_status wf_loads_edge(const struct wf_loads *loads, const struct wf_state *from,
                          const struct wf_load_state *before, const struct wf_edge *edge,
                          const struct wf_load_state *after, uint64_t *received)
{
    uint64_t ranks = group_ranks(loads->problem, edge->axes), holders = 1;
    uint64_t room[WF_LOADS_MAX];
    const uint64_t *kept = room;
    struct wf_cast_work cast;

    memset(received, 0, (size_t)loads->ranks * sizeof *received);
    if (edge->kind == WEFT_STEP_SLICE || edge->kind == WEFT_STEP_PARTIAL) return WEFT_OK;
    wf_cast_price(loads->problem, from, edge, &cast);
    if (edge->kind == WEFT_STEP_EXCHANGE || edge->kind == WEFT_STEP_PERMUTE)
        return load_exchange(loads, from, before, edge, after, cast.element, received);
    if (edge->kind == WEFT_STEP_REDUCE_SCATTER || edge->kind == WEFT_STEP_REDUCE) holders = ranks;
    if (edge->kind == WEFT_STEP_ALL_GATHER) /* of which the shard is a part */
        kept = before->elements;
    else if (holders > 1) /* a part of the shard */
        kept = after->elements;
    else if (edge->kind != WEFT_STEP_ALL_REDUCE)
        list_kept(loads, before, after, room);
    for (int32_t r = 0; r < loads->ranks; r++) {
        uint64_t wants = after->elements[r];
        if (edge->kind == WEFT_STEP_ALL_REDUCE)
            received[r] =
                wf_mul_capped(2 * (ranks - 1), (wants + ranks - 1) / ranks * cast.element);
        else if (holders == 1)
            received[r] = (wants - kept[r]) * cast.element;
        else
            received[r] = wf_bytes_from(wants, holders, kept[r], cast.element);
    }
    return WEFT_OK;
}
