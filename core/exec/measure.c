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

static uint64_t received_at(const struct wf_step *step, const int32_t *coord)
{
    return received_by(step, wf_mesh_rank(step->to->layout.mesh, coord));
}

/* True if every rank of the target's mesh receives the same in STEP, unless it gets the identity of
 * a partial. */
static bool receive_alike(const struct wf_step *step)
{
    const struct wf_layout *from = &step->from->layout, *to = &step->to->layout;

    if (!wf_layout_is_regular(from) || !wf_layout_is_regular(to)) return false;
    if (from->mesh != to->mesh) return wf_meshes_are_apart(from->mesh, to->mesh);
    return step->kind != WEFT_STEP_EXCHANGE && step->kind != WEFT_STEP_PERMUTE;
}

/* Ranks of STEP, of one mesh, that receive what the one at COORD does.  RANGE is as in
 * wf_steps_ranges. */
static uint64_t ranks_alike(const struct wf_step *step, const int32_t *range, const int32_t *coord)
{
    const weft_mesh *mesh = step->to->layout.mesh;
    uint64_t ranks = 1;

    for (int32_t a = 0; a < mesh->axes; a++) {
        if (range[a] == 1)
            ranks *= (uint64_t)mesh->axis[a].size;
        else if (range[a] < mesh->axis[a].size && coord[a] > 0)
            ranks *= (uint64_t)(mesh->axis[a].size - 1);
    }
    return ranks;
}

/* Bytes that all ranks receive in STEP, estimated from some of them. */
static uint64_t total_about(const struct wf_step *step)
{
    const weft_mesh *mesh = step->to->layout.mesh;
    int32_t coord[WEFT_MAX_AXES];
    uint64_t sum = 0;

    for (int32_t i = 0; i < WF_SAMPLES; i++) {
        wf_spread_coord(mesh, i, WF_SAMPLES, coord);
        sum = wf_add_capped(sum, received_at(step, coord));
    }
    return wf_mul_capped(sum / WF_SAMPLES, (uint64_t)mesh->size);
}

/* Bytes that all ranks receive in STEP.  Sets *EXACT to false if they are estimated. */
static uint64_t total_of(const struct wf_step *step, bool *exact)
{
    const weft_mesh *mesh = step->to->layout.mesh;
    int32_t coord[WEFT_MAX_AXES] = {0}, range[WEFT_MAX_AXES];
    int64_t distinct;
    uint64_t sum = 0;

    if (wf_step_is_local(step)) return 0;
    if (receive_alike(step)) {
        uint64_t ranks = (uint64_t)mesh->size;
        for (int32_t a = 0; a < mesh->axes; a++)
            if (wf_step_made(step) >> a & 1) ranks /= (uint64_t)mesh->axis[a].size;
        return wf_mul_capped(received_at(step, coord), ranks);
    }
    distinct = step->from->layout.mesh == mesh ? wf_steps_ranges(step, 1, range) : mesh->size;
    if (distinct > WF_DISTINCT_MAX || !wf_steps_walk(step, 1, distinct)) {
        *exact = false;
        return total_about(step);
    }
    if (step->from->layout.mesh != mesh)
        for (int32_t a = 0; a < mesh->axes; a++)
            range[a] = mesh->axis[a].size;
    do {
        sum = wf_add_capped(
            sum, wf_mul_capped(received_at(step, coord), ranks_alike(step, range, coord)));
    } while (wf_ranges_next(mesh, range, coord));
    return sum;
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
    const weft_mesh *meshes[] = {plan->from->layout.mesh, plan->to->layout.mesh};
    struct wf_measure out = {.exact = true};
    uint32_t idle = idle_axes(plan);
    uint64_t alike = 1;

    if (!visits_ranks(plan)) return measure_steps(plan);
    for (int32_t a = 0; a < meshes[0]->axes; a++)
        if (idle >> a & 1) alike *= (uint64_t)meshes[0]->axis[a].size;
    for (int m = 0; m < (meshes[0] == meshes[1] ? 1 : 2); m++)
        for (int32_t i = 0; i < meshes[m]->size; i++) {
            int32_t rank = weft_mesh_rank_at(meshes[m], i), coord[WEFT_MAX_AXES];
            uint64_t sum = 0;
            bool counted = m == 1 && wf_mesh_coord(meshes[0], rank, coord);
            wf_mesh_coord_at(meshes[m], i, coord);
            for (int32_t a = 0; a < meshes[m]->axes; a++)
                counted = counted || ((idle >> a & 1) && coord[a] != 0);
            if (counted) continue;
            for (uint32_t s = 0; s < plan->step_count; s++)
                sum = wf_add_capped(sum, received_by(&plan->steps[s], rank));
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
    const weft_mesh *to = step->to->layout.mesh;
    weft_status status = WEFT_OK;

    for (int32_t i = 0; i < to->size && status == WEFT_OK; i++)
        status = add_sent(step, weft_mesh_rank_at(to, i), sent);
    return status;
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
    const weft_mesh *to = step->to->layout.mesh;
    uint64_t most = 0;

    for (int32_t i = 0; i < to->size; i++) {
        uint64_t bytes = received_by(step, weft_mesh_rank_at(to, i));
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
