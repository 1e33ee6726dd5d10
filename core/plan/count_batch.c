/* count_batch.c - exactly how many bytes ranks receive in a batch: the sum over its tensors, rank
 * by rank. */
#include "plan.h"

enum { COUNTS_MAX = 1 << 20 }; /* tensors times ranks; more are estimated */

static int64_t greatest_rank(const weft_mesh *mesh)
{
    int64_t most = mesh->origin;

    if (mesh->ranks == NULL)
        for (int32_t i = 0; i < mesh->mode_count; i++)
            most += (int64_t)(mesh->modes[i].size - 1) * mesh->modes[i].stride;
    for (int32_t i = 0; mesh->ranks != NULL && i < mesh->size; i++)
        if (i == 0 || mesh->ranks[i] > most) most = mesh->ranks[i];
    return most;
}

int64_t wf_batch_ranks(const weft_plan *plan)
{
    int64_t most = 0;

    for (uint32_t i = 0; i < plan->member_count; i++) {
        most = wf_max_i64(most, greatest_rank(plan->members[i].from->layout.mesh));
        most = wf_max_i64(most, greatest_rank(plan->members[i].to->layout.mesh));
    }
    return most + 1;
}

/* Add the bytes of COUNT steps of one mesh to RECEIVED, by rank. */
static weft_status add_steps(const struct wf_step *steps, uint32_t count, uint64_t *received)
{
    int32_t coord[WEFT_MAX_AXES];
    struct wf_counter counter;

    if (count == 0) return WEFT_OK;
    WF_TRY(wf_counter_open(&counter, steps, count));
    for (int32_t i = 0; i < counter.mesh->size; i++) {
        int32_t rank = weft_mesh_rank_at(counter.mesh, i);
        wf_mesh_coord_at(counter.mesh, i, coord);
        received[rank] = wf_add_capped(received[rank], wf_counter_at(&counter, coord));
    }
    wf_counter_close(&counter);
    return WEFT_OK;
}

static weft_status add_plan(const weft_plan *plan, uint64_t *received)
{
    uint32_t first = 0;

    for (uint32_t i = 0; i < plan->step_count; i++) {
        const struct wf_step *step = &plan->steps[i];
        if (step->from->layout.mesh == step->to->layout.mesh) continue;
        WF_TRY(add_steps(&plan->steps[first], i - first, received));
        wf_exchange_add_received(step, received);
        first = i + 1;
    }
    return add_steps(&plan->steps[first], plan->step_count - first, received);
}

static weft_status add_members(const weft_plan *plan, uint64_t *together, uint64_t *alone)
{
    for (uint32_t i = 0; i < plan->member_count; i++) {
        const struct wf_member *member = &plan->members[i];
        struct wf_step step = {.kind = WEFT_STEP_EXCHANGE, .from = member->from, .to = member->to};
        if (member->alone != NULL)
            WF_TRY(add_plan(member->alone, alone));
        else
            wf_exchange_add_received(&step, together);
    }
    return WEFT_OK;
}

weft_status wf_batch_count(weft_plan *plan)
{
    int64_t ranks = wf_batch_ranks(plan);
    uint64_t *together, *alone, most = 0;
    weft_status status;

    plan->exact = ranks <= WF_DISTINCT_MAX && ranks * plan->member_count <= COUNTS_MAX;
    if (!plan->exact) return WEFT_OK;
    together = wf_calloc(2 * (size_t)ranks, sizeof *together);
    if (together == NULL) return wf_fail_memory(2 * (size_t)ranks * sizeof *together);
    alone = together + ranks;
    status = add_members(plan, together, alone);
    plan->received = 0;
    for (int64_t i = 0; i < ranks; i++) {
        uint64_t sum = wf_add_capped(together[i], alone[i]);
        if (together[i] > most) most = together[i];
        if (sum > plan->received) plan->received = sum;
    }
    if (plan->together > 0) plan->steps[0].received = most;
    wf_free(together);
    return status;
}
