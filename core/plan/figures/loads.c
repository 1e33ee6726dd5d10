/* loads.c - the bytes that each of up to 64 ranks receives in a step, and must still receive.
 *
 * A mesh of more ranks is represented by 64 of them, spread over all axes.  Then loads and bounds
 * are estimates. */
#include "figures.h"

#include <string.h>

enum { WAYS_MAX = 64 }; /* to share elements along dimensions; of more, no bound is computed */

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

/* True if a sum along axis I of the target may be shared among the ranks along it. */
static bool is_shared(const struct wf_problem *problem, int32_t i)
{
    struct wf_code code = problem->target.axis[i];

    return code.kind == WF_CODE_PARTIAL && code.value == WEFT_REDUCE_SUM;
}

/* Ranks along the target's sums form a group, which holds its elements together.  Along other
 * partials, which no step makes of shards, the ranks at coordinate 0 hold them, and the others may
 * receive nothing. */
static void choose_groups(struct wf_loads *loads)
{
    const struct wf_problem *problem = loads->problem;

    loads->group_size = 1;
    for (int32_t i = 0; i < problem->axes; i++)
        if (is_shared(problem, i)) loads->group_size *= problem->size[i];
    for (int32_t r = 0; r < loads->ranks; r++) {
        int32_t first[WEFT_MAX_AXES], g = 0;
        memcpy(first, loads->coord[r], sizeof first);
        for (int32_t i = 0; i < problem->axes; i++) {
            if (is_shared(problem, i))
                first[problem->mesh_axis[i]] = 0;
            else if (problem->target.axis[i].kind == WF_CODE_PARTIAL)
                loads->idle[r] |= first[problem->mesh_axis[i]] != 0;
        }
        while (g < loads->groups &&
               memcmp(loads->coord[loads->leader[g]], first, sizeof first) != 0)
            g++;
        if (g == loads->groups) loads->leader[loads->groups++] = r;
        loads->group[r] = g;
    }
}

/* The largest of the parts of SHAPE that sharing it among the axes of AXES leaves, at least: each
 * axis divides the indices of one dimension, and some part has no less than the mean. */
static uint64_t least_part(const struct wf_loads *loads, uint32_t axes, const int64_t *shape,
                           const int64_t *parts)
{
    const struct wf_problem *problem = loads->problem;
    uint64_t least = UINT64_MAX, part = 1;
    int32_t axis = 0;

    for (int32_t d = 0; d < problem->dims && axes == 0; d++)
        part *= (uint64_t)((shape[d] + parts[d] - 1) / parts[d]);
    if (axes == 0) return part;
    while (!(axes >> axis & 1))
        axis++;
    for (int32_t d = 0; d < problem->dims; d++) {
        int64_t more[WEFT_MAX_DIMS];
        memcpy(more, parts, sizeof more);
        more[d] *= problem->size[axis];
        part = least_part(loads, axes & ~(UINT32_C(1) << axis), shape, more);
        if (part < least) least = part;
    }
    return least;
}

/* Set what some rank of each group must hold.  A step makes a sum of shards, so the ranks of a
 * group share its elements along dimensions; contributions that the source has are where they are.
 */
static void choose_parts(struct wf_loads *loads)
{
    const struct wf_problem *problem = loads->problem;
    static const int64_t whole[WEFT_MAX_DIMS] = {1, 1, 1, 1, 1, 1, 1, 1};
    uint32_t axes = 0;
    int64_t ways = 1;
    struct wf_shard wants;

    for (int32_t i = 0; i < problem->axes; i++) {
        if (!is_shared(problem, i)) continue;
        if (problem->source.axis[i].kind == WF_CODE_PARTIAL) return;
        axes |= UINT32_C(1) << i;
        ways *= problem->dims;
    }
    if (loads->group_size == 1 || ways == 0 || ways > WAYS_MAX) return;
    for (int32_t g = 0; g < loads->groups; g++) {
        if (loads->idle[loads->leader[g]]) continue;
        wf_shard_at(&loads->target, loads->coord[loads->leader[g]], &wants);
        if (wants.elements > 0) loads->part[g] = least_part(loads, axes, wants.shape, whole);
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
    choose_parts(loads);
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

/* Messages that the reduction of all elements needs, and that bring its values to all ranks.  Ranks
 * along the target's partials, of which KEPT have a contribution, hold a value together.  All other
 * contributions must leave their ranks before the first of these groups has it, and each further
 * group then needs one message more. */
static uint64_t reduction_total(const struct wf_loads *loads, const struct wf_state *state,
                                uint64_t holders)
{
    const struct wf_problem *problem = loads->problem;
    uint64_t values = (uint64_t)problem->from->elements, wanted = 1, kept = 1;

    if (holders == 1) return 0;
    for (int32_t i = 0; i < problem->axes; i++) {
        uint64_t size = (uint64_t)problem->size[i];
        struct wf_code to = problem->target.axis[i];
        if (to.kind == WF_CODE_REPLICATE) wanted = wf_mul_capped(wanted, size);
        if (to.kind == WF_CODE_PARTIAL && state->axis[i].kind == WF_CODE_PARTIAL)
            kept = wf_mul_capped(kept, size);
    }
    values = wf_mul_capped(values, wf_add_capped(wf_mul_capped(holders - 1, kept), wanted - 1));
    return wf_mul_capped(values, loads->element);
}

/* Does a rank besides the leader of a group add to what the group holds?  Replicas do not. */
static bool adds_elements(const struct wf_loads *loads, const struct wf_state *state, int32_t rank)
{
    const struct wf_problem *problem = loads->problem;

    for (int32_t i = 0; i < problem->axes; i++)
        if (is_shared(problem, i) && !wf_code_splits(state->axis[i]) &&
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
    out->pending = holders > 1;
    out->total = reduction_total(loads, state, holders);
    for (int32_t g = 0; g < loads->groups; g++)
        out->missing[g] = loads->idle[loads->leader[g]] ? 0 : loads->wants[loads->leader[g]];
    for (int32_t r = 0; r < loads->ranks && holders == 1; r++) {
        uint64_t *missing = &out->missing[loads->group[r]], held = out->common[r];
        if (loads->group_size > 1 && !adds_elements(loads, state, r)) continue;
        *missing = *missing > held ? *missing - held : 0;
    }
    for (int32_t g = 0; g < loads->groups; g++)
        out->missing[g] *= loads->element;
    return WEFT_OK;
}

/* The mean of what all ranks receive, SUM of it before STATE. */
static uint64_t bound_mean(const struct wf_loads *loads, uint64_t sum,
                           const struct wf_load_state *state)
{
    uint64_t unit = loads->element, ranks = (uint64_t)loads->ranks;

    if (state->total == 0) return 0;
    if (loads->all) return (wf_add_capped(sum, state->total) / unit + ranks - 1) / ranks * unit;
    return sum / ranks + state->total / (uint64_t)loads->target.mesh->size;
}

/* As wf_loads_bound, with sums in the target. */
static uint64_t bound_groups(const struct wf_loads *loads, const uint64_t *loaded,
                             const struct wf_load_state *state)
{
    uint64_t sums[WF_LOADS_MAX] = {0}, most = 0, sum = 0, unit = loads->element, mean;
    uint64_t ranks = (uint64_t)loads->group_size, parts[WF_LOADS_MAX];

    memset(parts, 0xff, sizeof parts);
    for (int32_t r = 0; r < loads->ranks; r++) {
        uint64_t part = loads->part[loads->group[r]] * unit;
        uint64_t held = state->pending ? 0 : state->common[r] * unit;
        part = wf_add_capped(loaded[r], part > held ? part - held : 0);
        if (part < parts[loads->group[r]]) parts[loads->group[r]] = part;
        if (loaded[r] > most) most = loaded[r];
        sums[loads->group[r]] = wf_add_capped(sums[loads->group[r]], loaded[r]);
        sum = wf_add_capped(sum, loaded[r]);
    }
    for (int32_t g = 0; g < loads->groups && loads->all; g++) {
        uint64_t all = wf_add_capped(sums[g], state->missing[g]);
        mean = (all / unit + ranks - 1) / ranks * unit;
        if (mean > most) most = mean;
        if (parts[g] > most) most = parts[g];
    }
    mean = bound_mean(loads, sum, state);
    return mean > most ? mean : most;
}

uint64_t wf_loads_bound(const struct wf_loads *loads, const uint64_t *loaded,
                        const struct wf_load_state *state)
{
    uint64_t most = 0, sum = 0, mean;

    if (loads->group_size > 1) return bound_groups(loads, loaded, state);
    for (int32_t r = 0; r < loads->ranks; r++) {
        uint64_t mine = wf_add_capped(loaded[r], state->missing[r]);
        if (mine > most) most = mine;
        sum = wf_add_capped(sum, loaded[r]);
    }
    mean = bound_mean(loads, sum, state);
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
