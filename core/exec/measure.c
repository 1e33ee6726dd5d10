/* measure.c - exactly how many bytes every rank receives in a plan, counted rank by rank. */
#include "exec.h"

#include <string.h>

static uint64_t region_elements(const weft_region *r)
{
    uint64_t elements = 1;

    for (uint32_t d = 0; d < r->dims; d++)
        elements *= (uint64_t)r->extent[d];
    return elements;
}

static uint64_t group_size(const struct wf_step *step)
{
    const weft_mesh *mesh = step->from->layout.mesh;
    uint64_t ranks = 1;

    for (int32_t a = 0; a < mesh->axes; a++)
        if (step->axes >> a & 1) ranks *= (uint64_t)mesh->axis[a].size;
    return ranks;
}

/* An all-reduce passes slices on, there and back. */
static uint64_t all_reduce_bytes(const struct wf_step *step, int32_t rank)
{
    uint64_t ranks = group_size(step);
    struct wf_shard shard;

    wf_shard_of(step->from, rank, &shard);
    return 2 * (ranks - 1) * (((uint64_t)shard.elements + ranks - 1) / ranks) *
           wf_dtype_bytes(step->from->layout.dtype);
}

static weft_status measure_rank(const struct wf_step *step, int32_t rank, uint64_t *received)
{
    struct wf_parts parts;

    *received = 0;
    if (step->kind == WEFT_STEP_SLICE || step->kind == WEFT_STEP_PARTIAL) return WEFT_OK;
    if (step->kind == WEFT_STEP_ALL_REDUCE) {
        *received = all_reduce_bytes(step, rank);
        return WEFT_OK;
    }
    WF_TRY(wf_parts_read(step->from, step->to, rank, NULL, &parts));
    for (uint64_t i = 0; i < parts.region_count; i++)
        for (uint32_t h = 0; h < parts.holders; h++)
            if (parts.ranks[parts.regions[i].source + h] != rank)
                *received += region_elements(&parts.regions[i]);
    *received *= wf_dtype_bytes(step->from->layout.dtype);
    wf_parts_free(&parts);
    return WEFT_OK;
}

weft_status wf_plan_measure(const weft_plan *plan, uint64_t *most, uint64_t *total)
{
    const weft_mesh *meshes[] = {plan->from->layout.mesh, plan->to->layout.mesh};
    int32_t coord[WEFT_MAX_AXES];

    *most = *total = 0;
    for (int m = 0; m < (meshes[0] == meshes[1] ? 1 : 2); m++)
        for (int32_t i = 0; i < meshes[m]->size; i++) {
            int32_t rank = weft_mesh_rank_at(meshes[m], i);
            uint64_t sum = 0, received;
            if (m == 1 && weft_mesh_coord(meshes[0], rank, coord)) continue;
            for (uint32_t s = 0; s < plan->step_count; s++) {
                WF_TRY(measure_rank(&plan->steps[s], rank, &received));
                sum += received;
            }
            *total += sum;
            if (sum > *most) *most = sum;
        }
    return WEFT_OK;
}
