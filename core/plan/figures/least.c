/* least.c - the bytes that some rank receives in every method, not only in weft's steps.
 *
 * Without reductions, a rank must receive the elements that it wants and does not hold.  With them,
 * K contributions become one value that T ranks want.  The first rank that has the value needs at
 * least K - 1 messages, its own or others' on the way, and each of the other T - 1 ranks needs one
 * more.  Some rank therefore receives at least the mean over all ranks, and a rank at least one
 * message per element that it wants.
 * If the target has partials, the ranks along their axes hold the value together, in contributions
 * of any kind.  Together they must receive the elements for which they lack a contribution. */
#include "figures.h"

#include <string.h>

/* The question, and its answer so far. */
struct need {
    const struct wf_layout *from, *to;
    struct wf_step step;
    uint64_t holders;
    uint32_t partial; /* axes of the target's partials */
    uint64_t element; /* bytes of the narrower dtype */
    bool walks;       /* common elements are counted; otherwise the smaller shard stands for them */
    uint64_t most;    /* bytes that a visited rank must receive */
};

static void open_need(struct need *need, const weft_spec *from, const weft_spec *to)
{
    uint64_t a = wf_dtype_bytes(from->layout.dtype), b = wf_dtype_bytes(to->layout.dtype);

    *need = (struct need){.from = &from->layout, .to = &to->layout, .element = a < b ? a : b};
    need->step = (struct wf_step){.kind = WEFT_STEP_EXCHANGE,
                                  .from = (weft_spec *)(uintptr_t)from,
                                  .to = (weft_spec *)(uintptr_t)to};
    need->holders = wf_step_holders(&need->step);
    need->walks = wf_steps_walk(&need->step, 1, wf_min_i64(to->layout.mesh->size, WF_DISTINCT_MAX));
    for (int32_t i = 0; i < to->layout.mesh->axes; i++)
        if (to->layout.placements[i].kind == WEFT_PLACE_PARTIAL &&
            to->layout.mesh->axis[i].size > 1)
            need->partial |= UINT32_C(1) << i;
}

/* Elements of WANTS that the rank at TARGET holds, or more. */
static uint64_t held_by(const struct need *need, const int32_t *target,
                        const struct wf_shard *wants)
{
    int32_t source[WEFT_MAX_AXES];
    struct wf_shard has;
    uint64_t most = 1;

    if (!wf_mesh_coord(need->from->mesh, wf_mesh_rank(need->to->mesh, target), source)) return 0;
    wf_shard_at(need->from, source, &has);
    if (need->walks) return wf_shards_common_elements(&has, wants);
    for (int32_t d = 0; d < wants->dims; d++)
        most *= (uint64_t)wf_min_i64(has.shape[d], wants->shape[d]);
    return most;
}

/* Elements of WANTS that the ranks along the target's partials lack.  MEMBER is the first one. */
static uint64_t missing_at(const struct need *need, int32_t *member, const struct wf_shard *wants)
{
    uint64_t missing = (uint64_t)wants->elements;
    uint32_t others = 0;
    int32_t visited = 0;

    if (need->holders > 1) /* on one mesh, each of them holds the same contribution */
        return need->partial == 0 || need->from->mesh == need->to->mesh ? missing : 0;
    for (int32_t a = 0; a < need->to->mesh->axes; a++)
        if ((need->partial >> a & 1) && !wf_step_keeps_partial(&need->step, a))
            others |= UINT32_C(1) << a;
    do {
        uint64_t held = held_by(need, member, wants);
        missing = missing > held ? missing - held : 0;
        if (++visited > WF_SAMPLES) return 0; /* too many: the others may hold the rest */
    } while (missing > 0 && wf_coord_next(need->to->mesh, others, member));
    return missing;
}

/* Bytes that the rank at TARGET must receive or, with partials, the mean over the ranks along their
 * axes. */
static uint64_t needed_at(const struct need *need, const int32_t *target)
{
    int32_t member[WEFT_MAX_AXES];
    struct wf_shard wants;
    uint64_t ranks = 1;

    wf_shard_at(need->to, target, &wants);
    memcpy(member, target, sizeof member);
    for (int32_t a = 0; a < need->to->mesh->axes; a++) {
        if (need->partial >> a & 1) ranks *= (uint64_t)need->to->mesh->axis[a].size;
    }
    return (missing_at(need, member, &wants) + ranks - 1) / ranks * need->element;
}

/* Visit the rank at TARGET, unless it is not the first one along the target's partials: these ranks
 * need the same in the mean. */
static void visit_rank(struct need *need, const int32_t *target)
{
    uint64_t bytes;

    for (int32_t a = 0; a < need->to->mesh->axes; a++)
        if ((need->partial >> a & 1) && target[a] != 0) return;
    bytes = needed_at(need, target);
    if (bytes > need->most) need->most = bytes;
}

/* If all shards have one size, a rank at an end of every axis needs the most (see exchange.c). */
static void visit_corners(struct need *need)
{
    const weft_mesh *mesh = need->to->mesh;
    int32_t target[WEFT_MAX_AXES];

    for (uint32_t last = 0; last < UINT32_C(1) << mesh->axes; last++) {
        for (int32_t a = 0; a < mesh->axes; a++)
            target[a] = last >> a & 1 ? mesh->axis[a].size - 1 : 0;
        visit_rank(need, target);
    }
}

/* Every visited rank gives a lower bound, so some may be left out. */
static void visit_ranks(struct need *need)
{
    bool across = need->from->mesh != need->to->mesh;
    int32_t target[WEFT_MAX_AXES];
    struct wf_visit visit;

    visit_corners(need);
    wf_layout_largest(need->to, target);
    visit_rank(need, target);
    if (!across && wf_layout_is_regular(need->from) && wf_layout_is_regular(need->to)) return;
    if (across || wf_visit_distinct(&visit, &need->step, 1) > WF_DISTINCT_MAX)
        wf_visit_readers(&visit, &need->step, across ? WF_DISTINCT_MAX : WF_SAMPLES);
    while (wf_visit_next(&visit)) {
        memcpy(target, visit.target, sizeof target);
        for (int32_t a = 0; a < need->to->mesh->axes; a++)
            if ((need->partial >> a & 1) && !across && !visit.is_distinct) target[a] = 0;
        visit_rank(need, target);
    }
}

/* Ranks of either mesh, at least. */
static uint64_t ranks_of(const struct need *need)
{
    uint64_t a = (uint64_t)need->from->mesh->size, b = (uint64_t)need->to->mesh->size;

    return need->from->mesh == need->to->mesh ? a : a + b; /* more ranks: a lower bound */
}

/* Bytes of all messages of a reduction; 0 without a reduction. */
static uint64_t total_of(const struct need *need)
{
    const struct wf_layout *to = need->to;
    uint64_t values = 1, wanted = 1, in = wf_dtype_bytes(need->from->dtype);

    if (need->holders == 1 || need->partial != 0) return 0;
    for (int32_t d = 0; d < to->dims; d++)
        values *= (uint64_t)to->shape[d];
    for (int32_t a = 0; a < to->mesh->axes; a++) {
        uint64_t size = (uint64_t)to->mesh->axis[a].size;
        if (to->placements[a].kind == WEFT_PLACE_REPLICATE) wanted = wf_mul_capped(wanted, size);
    }
    return wf_add_capped(wf_mul_capped(values, wf_mul_capped(need->holders - 1, in)),
                         wf_mul_capped(values, wf_mul_capped(wanted - 1, need->element)));
}

/* The mean over RANKS ranks, in whole elements. */
static uint64_t mean_of(uint64_t total, uint64_t ranks, uint64_t element)
{
    uint64_t unit = ranks * element;

    return (total / unit + (total % unit != 0)) * element;
}

static uint64_t least_of_pair(const weft_spec *from, const weft_spec *to)
{
    struct need need;
    uint64_t mean;

    if (from->elements == 0) return 0;
    open_need(&need, from, to);
    visit_ranks(&need);
    mean = mean_of(total_of(&need), ranks_of(&need), need.element);
    return mean > need.most ? mean : need.most;
}

/* ---- batches ---- */

/* Add what each rank of one tensor must receive to BYTES[rank]. */
static void add_needs(const struct wf_member *member, uint64_t *bytes, uint64_t *total)
{
    struct wf_visit visit;
    struct need need;

    if (member->from->elements == 0) return;
    open_need(&need, member->from, member->to);
    *total = wf_add_capped(*total, total_of(&need));
    if (need.partial != 0) return;
    wf_visit_readers(&visit, &need.step, INT32_MAX);
    while (wf_visit_next(&visit)) {
        uint64_t mine = needed_at(&need, visit.target);
        bytes[visit.rank] += mine;
        if (need.holders == 1) *total = wf_add_capped(*total, mine);
    }
}

static weft_status least_of_batch(const weft_plan *plan, uint64_t *least)
{
    int64_t ranks = wf_members_ranks(plan->members, plan->member_count);
    uint64_t *bytes, total = 0;

    *least = 0;
    if (!plan->exact) return WEFT_OK; /* too many ranks */
    bytes = wf_calloc((size_t)ranks, sizeof *bytes);
    if (bytes == NULL) return wf_fail_memory((size_t)ranks * sizeof *bytes);
    for (uint32_t i = 0; i < plan->member_count; i++)
        add_needs(&plan->members[i], bytes, &total);
    *least = mean_of(total, (uint64_t)ranks, 1);
    for (int64_t i = 0; i < ranks; i++)
        if (bytes[i] > *least) *least = bytes[i];
    wf_free(bytes);
    return WEFT_OK;
}

weft_status wf_plan_least(const weft_plan *plan, uint64_t *bytes)
{
    if (plan->members != NULL) return least_of_batch(plan, bytes);
    *bytes = least_of_pair(plan->from, plan->to);
    return WEFT_OK;
}

weft_status weft_plan_lower_bound(const weft_plan *plan, uint64_t *bytes)
{
    WF_TRY(wf_require_kind(plan, WF_KIND_PLAN, "weft_plan_lower_bound: plan"));
    WF_TRY(wf_require(bytes, "weft_plan_lower_bound: bytes"));
    return wf_plan_least(plan, bytes);
}
