/* count.c - exactly how many bytes ranks receive in the steps of a plan.
 *
 * If all shards of all steps in which something travels have one size, the prices of the steps are
 * exact, and no rank is visited (see price.c and exchange.c).  Otherwise the bytes are counted for
 * every coordinate that has shards of its own.  Lengths and overlaps come from tables, one per step
 * and dimension. */
#include "figures.h"

#include <string.h>

/* ---- steps of one mesh ---- */

/* Set the tables of STEP.  Returns the number of their entries. */
static int64_t set_tables(const struct wf_step *step, struct wf_counted_step *out)
{
    int64_t entries = 0;

    *out = (struct wf_counted_step){.kind = step->kind};
    if (wf_step_stays(step)) return 0;
    out->element = wf_dtype_bytes(wf_step_dtype(step));
    out->holders = wf_step_holders(step);
    out->made = wf_step_made(step);
    out->ranks = wf_step_ranks(step);
    out->dims = wf_table_dims(&step->to->layout);
    for (int32_t d = 0; d < out->dims; d++) {
        wf_table_set(&out->dim[d].table, step->to->layout.mesh, wf_step_dim_axes(step, d));
        entries += out->dim[d].table.count;
    }
    return entries;
}

static void fill_tables(const struct wf_step *step, int64_t **room, struct wf_counted_step *out)
{
    for (int32_t d = 0; d < out->dims; d++) {
        struct wf_counted_dim *dim = &out->dim[d];
        dim->wants = *room;
        dim->common = *room + dim->table.count;
        *room += 2 * dim->table.count;
        wf_table_fill(&dim->table, &step->from->layout, &step->to->layout, d, dim->wants,
                      dim->common);
    }
}

weft_status wf_counter_open(struct wf_counter *counter, const struct wf_step *steps, uint32_t count)
{
    size_t bytes = count * sizeof *counter->steps;
    int64_t entries = 0, *room;

    *counter = (struct wf_counter){.count = count};
    if (count == 0) return WEFT_OK;
    counter->mesh = steps[0].from->layout.mesh;
    counter->steps = wf_alloc(bytes);
    if (counter->steps == NULL) return wf_fail_memory(bytes);
    for (uint32_t i = 0; i < count; i++)
        entries += set_tables(&steps[i], &counter->steps[i]);
    bytes = (size_t)(2 * entries) * sizeof *room;
    counter->room = room = wf_alloc(bytes);
    if (room == NULL) {
        wf_counter_close(counter);
        return wf_fail_memory(bytes);
    }
    for (uint32_t i = 0; i < count; i++)
        fill_tables(&steps[i], &room, &counter->steps[i]);
    return WEFT_OK;
}

void wf_counter_close(struct wf_counter *counter)
{
    wf_free(counter->steps);
    wf_free(counter->room);
    *counter = (struct wf_counter){0};
}

static uint64_t received_at(const struct wf_counted_step *step, const weft_mesh *mesh,
                            const int32_t *coord)
{
    uint64_t wants = 1, common = 1;

    for (int32_t a = 0; a < mesh->axes; a++)
        if ((step->made >> a & 1) && coord[a] != 0) return 0;
    for (int32_t d = 0; d < step->dims; d++) {
        const struct wf_counted_dim *dim = &step->dim[d];
        int64_t at = 0;
        for (int32_t a = 0; a < mesh->axes; a++)
            at += (int64_t)dim->table.stride[a] * coord[a];
        wants *= (uint64_t)dim->wants[at];
        common *= (uint64_t)dim->common[at];
    }
    if (step->kind == WEFT_STEP_ALL_REDUCE) /* reduce-scatter and all-gather of slices */
        return wf_mul_capped(2 * (step->ranks - 1),
                             (wants + step->ranks - 1) / step->ranks * step->element);
    return wf_bytes_from(wants, step->holders, common, step->element);
}

uint64_t wf_counter_at(struct wf_counter *counter, const int32_t *coord)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < counter->count; i++) {
        struct wf_counted_step *step = &counter->steps[i];
        uint64_t bytes = step->element != 0 ? received_at(step, counter->mesh, coord) : 0;
        if (bytes > step->most) step->most = bytes;
        sum = wf_add_capped(sum, bytes);
    }
    return sum;
}

/* ---- estimates ---- */

/* Bytes that the rank at COORD receives in STEP, of one mesh, without tables. */
static uint64_t received_alone(const struct wf_step *step, const int32_t *coord)
{
    const struct wf_layout *from = &step->from->layout, *to = &step->to->layout;
    uint64_t element = wf_dtype_bytes(wf_step_dtype(step)), ranks = wf_step_ranks(step);
    uint32_t made = wf_step_made(step);
    struct wf_shard has, wants;

    if (wf_step_stays(step)) return 0;
    for (int32_t a = 0; a < to->mesh->axes; a++)
        if ((made >> a & 1) && coord[a] != 0) return 0;
    wf_shard_at(from, coord, &has);
    wf_shard_at(to, coord, &wants);
    if (step->kind == WEFT_STEP_ALL_REDUCE)
        return wf_mul_capped(2 * (ranks - 1),
                             ((uint64_t)wants.elements + ranks - 1) / ranks * element);
    return wf_bytes_from((uint64_t)wants.elements, wf_step_holders(step),
                         wf_shards_common_elements(&has, &wants), element);
}

static void sample_rank(weft_plan *plan, const int32_t *coord)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < plan->step_count; i++) {
        struct wf_step *step = &plan->steps[i];
        uint64_t bytes = received_alone(step, coord);
        if (bytes > step->received) step->received = bytes;
        sum = wf_add_capped(sum, bytes);
    }
    if (sum > plan->received) plan->received = sum;
}

/* Ranks that are spread over the mesh stand for all, with those that hold most. */
static void estimate_on_one_mesh(weft_plan *plan)
{
    int32_t coord[WEFT_MAX_AXES];
    struct wf_visit visit;

    plan->received = 0;
    wf_visit_readers(&visit, plan->steps, WF_SAMPLES);
    while (wf_visit_next(&visit))
        sample_rank(plan, visit.target);
    for (uint32_t i = 0; i < plan->step_count; i++) {
        wf_layout_largest(&plan->steps[i].to->layout, coord);
        sample_rank(plan, coord);
    }
    for (uint32_t i = 0; i < plan->step_count; i++) /* a price may know more */
        if (plan->steps[i].received > plan->received) plan->received = plan->steps[i].received;
}

/* PLAN, whose steps are on one mesh. */
static weft_status count_on_one_mesh(weft_plan *plan)
{
    struct wf_visit visit;
    int64_t distinct = wf_visit_distinct(&visit, plan->steps, plan->step_count);
    struct wf_counter counter;
    uint64_t most = 0;

    plan->exact =
        distinct <= WF_DISTINCT_MAX && wf_steps_walk(plan->steps, plan->step_count, distinct);
    if (!plan->exact) {
        estimate_on_one_mesh(plan);
        return WEFT_OK;
    }
    WF_TRY(wf_counter_open(&counter, plan->steps, plan->step_count));
    while (wf_visit_next(&visit)) {
        uint64_t sum = wf_counter_at(&counter, visit.target);
        if (sum > most) most = sum;
    }
    for (uint32_t i = 0; i < plan->step_count; i++)
        plan->steps[i].received = counter.steps[i].most;
    plan->received = most;
    wf_counter_close(&counter);
    return WEFT_OK;
}

/* ---- the whole plan ---- */

/* The step between two meshes, or NULL. */
static const struct wf_step *find_crossing(const weft_plan *plan)
{
    for (uint32_t i = 0; i < plan->step_count; i++)
        if (plan->steps[i].from->layout.mesh != plan->steps[i].to->layout.mesh)
            return &plan->steps[i];
    return NULL;
}

weft_status wf_plan_count(weft_plan *plan)
{
    bool regular = true;

    plan->exact = true;
    if (plan->step_count == 0) return WEFT_OK;
    if (find_crossing(plan) != NULL) return wf_plan_count_cross(plan, find_crossing(plan));
    for (uint32_t i = 0; i < plan->step_count && regular; i++)
        regular =
            wf_step_stays(&plan->steps[i]) || (wf_layout_is_regular(&plan->steps[i].from->layout) &&
                                               wf_layout_is_regular(&plan->steps[i].to->layout));
    return regular ? WEFT_OK : count_on_one_mesh(plan);
}
