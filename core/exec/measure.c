/* measure.c - exactly how many bytes ranks receive in a plan, counted rank by rank.
 *
 * With many ranks, the sum over ranks is found step by step: where all ranks receive the same,
 * without visiting them, otherwise from distinct shards, or estimated if these are too many. */
#include "plan/figures/figures.h"
#include "exec.h"
#include "weft/exec.h"

#include <string.h>

/* All-reduce = reduce-scatter + all-gather of slices. */
static uint64_t all_reduce_bytes(const struct wf_step *step, int32_t rank)
{
    uint64_t ranks = wf_step_ranks(step);
    struct wf_shard shard;

    wf_shard_of(step->from, rank, &shard);
    return wf_mul_capped(2 * (ranks - 1), ((uint64_t)shard.elements + ranks - 1) / ranks *
                                              wf_dtype_bytes(wf_step_dtype(step)));
}

/* If the step creates a partial, coordinate 0 receives the value and the others receive nothing. */
static bool gets_identity(const struct wf_step *step, const int32_t *coord)
{
    uint32_t made = wf_step_made(step);

    for (int32_t a = 0; a < step->to->layout.mesh->axes; a++)
        if ((made >> a & 1) && coord[a] != 0) return true;
    return false;
}

/* A rank reads each element of its shard from every holder, and elements that it already holds from
 * its own memory. */
static uint64_t received_by(const struct wf_step *step, int32_t rank)
{
    const struct wf_layout *from = &step->from->layout, *to = &step->to->layout;
    int32_t source[WEFT_MAX_AXES], target[WEFT_MAX_AXES];
    struct wf_shard has, wants;
    uint64_t own = 0, element = wf_dtype_bytes(wf_step_dtype(step));

    if (wf_step_is_local(step)) return 0;
    if (step->kind == WEFT_STEP_ALL_REDUCE) return all_reduce_bytes(step, rank);
    if (!wf_mesh_coord(to->mesh, rank, target) || gets_identity(step, target)) return 0;
    wf_shard_at(to, target, &wants);
    if (wf_mesh_coord(from->mesh, rank, source)) {
        wf_shard_at(from, source, &has);
        own = wf_shards_common_elements(&has, &wants);
    }
    return wf_bytes_from((uint64_t)wants.elements, wf_step_holders(step), own, element);
}

/* Axes along which all ranks do the same, because every step is replicated there. */
static uint32_t idle_axes(const weft_plan *plan)
{
    const weft_mesh *mesh = plan->from->layout.mesh;
    uint32_t idle = 0;

    if (mesh != plan->to->layout.mesh) return 0;
    for (int32_t a = 0; a < mesh->axes; a++) {
        bool copies = plan->from->layout.placements[a].kind == WEFT_PLACE_REPLICATE;
        for (uint32_t s = 0; s < plan->step_count; s++)
            copies = copies && plan->steps[s].to->layout.placements[a].kind == WEFT_PLACE_REPLICATE;
        if (copies) idle |= UINT32_C(1) << a;
    }
    return idle;
}

/* ---- many ranks ---- */

/* True if every rank of the target's mesh receives the same in STEP, unless it gets the identity of
 * a partial. */
static bool receive_alike(const struct wf_step *step)
{
    const struct wf_layout *from = &step->from->layout, *to = &step->to->layout;

    if (!wf_layout_is_regular(from) || !wf_layout_is_regular(to)) return false;
    if (from->mesh != to->mesh) return wf_meshes_are_apart(from->mesh, to->mesh);
    return step->kind != WEFT_STEP_EXCHANGE && step->kind != WEFT_STEP_PERMUTE;
}

/* Bytes that the ranks of VISIT receive in STEP, with those that receive the same. */
static uint64_t sum_of(const struct wf_step *step, struct wf_visit *visit)
{
    uint64_t sum = 0;

    while (wf_visit_next(visit))
        sum = wf_add_capped(sum, wf_mul_capped(received_by(step, visit->rank), visit->alike));
    return sum;
}

/* Bytes that all ranks receive in STEP.  Sets *EXACT to false if they are estimated. */
static uint64_t total_of(const struct wf_step *step, bool *exact)
{
    const weft_mesh *mesh = step->to->layout.mesh;
    uint64_t ranks = (uint64_t)mesh->size;
    struct wf_visit visit;
    int64_t distinct = mesh->size;

    if (wf_step_is_local(step)) return 0;
    if (receive_alike(step)) {
        for (int32_t a = 0; a < mesh->axes; a++)
            if (wf_step_made(step) >> a & 1) ranks /= (uint64_t)mesh->axis[a].size;
        return wf_mul_capped(received_by(step, weft_mesh_rank_at(mesh, 0)), ranks);
    }
    if (step->from->layout.mesh == mesh)
        distinct = wf_visit_distinct(&visit, step, 1);
    else
        wf_visit_readers(&visit, step, INT32_MAX);
    if (distinct <= WF_DISTINCT_MAX && wf_steps_walk(step, 1, distinct))
        return sum_of(step, &visit);
    *exact = false;
    wf_visit_readers(&visit, step, WF_SAMPLES);
    return wf_mul_capped(sum_of(step, &visit) / (uint64_t)visit.count, ranks);
}

/* As wf_plan_measure, step by step. */
static struct wf_measure measure_steps(const weft_plan *plan)
{
    struct wf_measure out = {.most = plan->received, .exact = plan->exact};

    for (uint32_t s = 0; s < plan->step_count; s++)
        out.total = wf_add_capped(out.total, total_of(&plan->steps[s], &out.exact));
    return out;
}

/* ---- a plan ---- */

/* True if every rank of PLAN may be visited. */
static bool visits_ranks(const weft_plan *plan)
{
    int64_t ranks = wf_max_i64(plan->from->layout.mesh->size, plan->to->layout.mesh->size);

    return ranks <= WF_DISTINCT_MAX && wf_steps_walk(plan->steps, plan->step_count, ranks);
}

struct wf_measure wf_plan_measure(const weft_plan *plan)
{
    const struct wf_step whole = {.from = plan->from, .to = plan->to};
    struct wf_measure out = {.exact = true};
    uint32_t idle = idle_axes(plan);
    struct wf_visit visit;

    if (!visits_ranks(plan)) return measure_steps(plan);
    wf_visit_ranks(&visit, &whole);
    while (wf_visit_next(&visit)) {
        uint64_t sum = 0, alike = 1;
        bool counted = false;
        for (int32_t a = 0; a < visit.to->axes; a++) {
            if (!(idle >> a & 1)) continue;
            counted = counted || visit.target[a] != 0;
            alike *= (uint64_t)visit.to->axis[a].size;
        }
        if (counted) continue;
        for (uint32_t s = 0; s < plan->step_count; s++)
            sum = wf_add_capped(sum, received_by(&plan->steps[s], visit.rank));
        out.total = wf_add_capped(out.total, wf_mul_capped(sum, alike));
        if (sum > out.most) out.most = sum;
    }
    return out;
}

/* ---- a batch ---- */

/* The part of one tensor in the common exchange, as a step. */
static struct wf_step exchange_of(const struct wf_member *member)
{
    return (struct wf_step){.kind = WEFT_STEP_EXCHANGE, .from = member->from, .to = member->to};
}

static uint64_t received_in_member(const struct wf_member *member, int32_t rank)
{
    struct wf_step exchange = exchange_of(member);
    uint64_t sum = 0;

    if (member->alone == NULL) return received_by(&exchange, rank);
    for (uint32_t s = 0; s < member->alone->step_count; s++)
        sum = wf_add_capped(sum, received_by(&member->alone->steps[s], rank));
    return sum;
}

/* Total and largest number of bytes of PLAN, a batch. */
static struct wf_measure measure_batch(const weft_plan *plan)
{
    struct wf_measure out = {.exact = plan->exact};
    int64_t ranks = wf_members_ranks(plan->members, plan->member_count);

    for (uint32_t i = 0; i < plan->member_count && !plan->exact; i++) {
        struct wf_step exchange = exchange_of(&plan->members[i]);
        const weft_plan *alone = plan->members[i].alone;
        out.total = wf_add_capped(out.total, alone != NULL ? wf_plan_measure(alone).total
                                                           : total_of(&exchange, &out.exact));
        out.most = plan->received;
    }
    for (int32_t rank = 0; rank < ranks && plan->exact; rank++) {
        uint64_t sum = 0;
        for (uint32_t i = 0; i < plan->member_count; i++)
            sum = wf_add_capped(sum, received_in_member(&plan->members[i], rank));
        out.total = wf_add_capped(out.total, sum);
        if (sum > out.most) out.most = sum;
    }
    return out;
}

struct wf_measure wf_plan_total(const weft_plan *plan)
{
    return plan->members != NULL ? measure_batch(plan) : wf_plan_measure(plan);
}

weft_status weft_plan_measure(const weft_plan *plan, uint64_t *received_max,
                              uint64_t *received_total)
{
    struct wf_measure measure;

    WF_TRY(wf_require_kind(plan, WF_KIND_PLAN, "weft_plan_measure: plan"));
    WF_TRY(wf_require(received_max, "weft_plan_measure: received_max"));
    WF_TRY(wf_require(received_total, "weft_plan_measure: received_total"));
    measure = wf_plan_total(plan);
    *received_max = measure.most;
    *received_total = measure.total;
    return WEFT_OK;
}

/* ---- one step ---- */

/* Add the bytes that RANK reads from each rank to SENT. */
static weft_status add_sent(const struct wf_step *step, int32_t rank, uint64_t *sent)
{
    struct wf_parts parts;

    WF_TRY(wf_parts_read(step->from, step->to, step->living, rank, NULL, &parts));
    for (uint64_t i = 0; i < parts.region_count; i++)
        for (uint32_t h = 0; h < parts.holders; h++) {
            int32_t source = parts.ranks[parts.regions[i].source + h];
            if (source != rank)
                sent[source] +=
                    wf_region_elements(&parts.regions[i]) * wf_dtype_bytes(wf_step_dtype(step));
        }
    wf_parts_free(&parts);
    return WEFT_OK;
}

static weft_status add_all_sent(const struct wf_step *step, uint64_t *sent)
{
    struct wf_visit visit;

    wf_visit_readers(&visit, step, INT32_MAX);
    while (wf_visit_next(&visit))
        WF_TRY(add_sent(step, visit.rank, sent));
    return WEFT_OK;
}

static uint64_t largest_of(const uint64_t *list, size_t count)
{
    uint64_t most = 0;

    for (size_t i = 0; i < count; i++)
        if (list[i] > most) most = list[i];
    return most;
}

static weft_status most_sent(const struct wf_step *step, uint64_t *out)
{
    struct wf_member member = {.from = step->from, .to = step->to};
    size_t ranks = (size_t)wf_members_ranks(&member, 1);
    uint64_t *sent = wf_calloc(ranks, sizeof *sent);
    weft_status status;

    if (sent == NULL) return wf_fail_memory(ranks * sizeof *sent);
    status = add_all_sent(step, sent);
    if (status == WEFT_OK) *out = largest_of(sent, ranks);
    wf_free(sent);
    return status;
}

/* True if every rank that receives in STEP may be visited. */
static bool visits_receivers(const struct wf_step *step)
{
    int32_t ranks = step->to->layout.mesh->size;

    return ranks <= WF_DISTINCT_MAX && wf_steps_walk(step, 1, ranks);
}

static uint64_t most_received(const struct wf_step *step)
{
    struct wf_visit visit;
    uint64_t most = 0;

    wf_visit_readers(&visit, step, INT32_MAX);
    while (wf_visit_next(&visit)) {
        uint64_t bytes = received_by(step, visit.rank);
        if (bytes > most) most = bytes;
    }
    return most;
}

weft_status wf_step_measure(const struct wf_step *step, uint64_t *sent, uint64_t *received)
{
    const weft_mesh *from = step->from->layout.mesh, *to = step->to->layout.mesh;

    *sent = *received = 0;
    if (wf_step_is_local(step)) return WEFT_OK;
    *received = visits_receivers(step) ? most_received(step) : step->received;
    *sent = step->kind == WEFT_STEP_ALL_REDUCE ? *received : step->sent;
    if (step->kind == WEFT_STEP_ALL_REDUCE || from->size > WF_LISTED_RANKS ||
        to->size > WF_LISTED_RANKS)
        return WEFT_OK;
    return most_sent(step, sent);
}

/* The common exchange of a batch. */
static weft_status measure_fused(const weft_plan *plan, uint64_t *sent_max, uint64_t *received_max)
{
    size_t ranks = (size_t)wf_members_ranks(plan->members, plan->member_count);
    uint64_t *received;
    bool exact;

    *sent_max = plan->steps[0].sent;
    *received_max = plan->steps[0].received;
    WF_TRY(wf_batch_sent(plan, sent_max, &exact));
    if (!plan->exact) return WEFT_OK;
    received = wf_calloc(ranks, sizeof *received);
    if (received == NULL) return wf_fail_memory(ranks * sizeof *received);
    for (uint32_t i = 0; i < plan->member_count; i++) {
        struct wf_step step = exchange_of(&plan->members[i]);
        if (plan->members[i].alone != NULL) continue;
        for (size_t rank = 0; rank < ranks; rank++)
            received[rank] += received_by(&step, (int32_t)rank);
    }
    *received_max = largest_of(received, ranks);
    wf_free(received);
    return WEFT_OK;
}

weft_status weft_plan_measure_step(const weft_plan *plan, size_t index, uint64_t *sent_max,
                                   uint64_t *received_max)
{
    uint64_t sent = 0, received = 0;

    WF_TRY(wf_require_kind(plan, WF_KIND_PLAN, "weft_plan_measure_step: plan"));
    WF_TRY(wf_require(sent_max, "weft_plan_measure_step: sent_max"));
    WF_TRY(wf_require(received_max, "weft_plan_measure_step: received_max"));
    if (index >= plan->step_count)
        return wf_fail(WEFT_ERR_INVALID,
                       "weft_plan_measure_step: index is %zu; the plan has %u step%s", index,
                       plan->step_count, WF_PLURAL(plan->step_count));
    if (plan->steps[index].from == NULL)
        WF_TRY(measure_fused(plan, &sent, &received));
    else
        WF_TRY(wf_step_measure(&plan->steps[index], &sent, &received));
    *sent_max = sent;
    *received_max = received;
    return WEFT_OK;
}
