/* measure.c - exactly how many bytes ranks receive in a plan, counted rank by rank. */
#include "exec.h"

#include <string.h>

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
    return wf_mul_capped(2 * (ranks - 1), ((uint64_t)shard.elements + ranks - 1) / ranks *
                                              wf_dtype_bytes(step->from->layout.dtype));
}

/* A partial that the step makes leaves the value with coordinate 0; the others get nothing. */
static bool gets_identity(const struct wf_step *step, const int32_t *coord)
{
    const struct wf_layout *from = &step->from->layout, *to = &step->to->layout;

    for (int32_t a = 0; a < to->mesh->axes; a++) {
        const weft_placement *p = &to->placements[a];
        bool kept = from->mesh == to->mesh && from->placements[a].kind == WEFT_PLACE_PARTIAL;
        if (p->kind == WEFT_PLACE_PARTIAL && p->reduction != WEFT_REDUCE_AVG && !kept &&
            coord[a] != 0)
            return true;
    }
    return false;
}

/* Contributions that are reduced to one element. */
static uint64_t holders_of(const struct wf_step *step)
{
    const struct wf_layout *from = &step->from->layout, *to = &step->to->layout;
    uint64_t holders = 1;

    for (int32_t a = 0; a < from->mesh->axes; a++)
        if (from->placements[a].kind == WEFT_PLACE_PARTIAL &&
            !(from->mesh == to->mesh && to->placements[a].kind == WEFT_PLACE_PARTIAL))
            holders *= (uint64_t)from->mesh->axis[a].size;
    return holders;
}

/* A rank reads each element of its shard from every holder, and what it has itself at home. */
static uint64_t received_by(const struct wf_step *step, int32_t rank)
{
    const struct wf_layout *from = &step->from->layout, *to = &step->to->layout;
    int32_t source[WEFT_MAX_AXES], target[WEFT_MAX_AXES];
    struct wf_shard has, wants;
    uint64_t own = 1;

    if (wf_step_is_local(step)) return 0;
    if (step->kind == WEFT_STEP_ALL_REDUCE) return all_reduce_bytes(step, rank);
    if (!weft_mesh_coord(to->mesh, rank, target) || gets_identity(step, target)) return 0;
    wf_shard_at(to, target, &wants);
    if (weft_mesh_coord(from->mesh, rank, source)) {
        wf_shard_at(from, source, &has);
        for (int32_t d = 0; d < to->dims; d++) {
            struct wf_index a = wf_shard_index(&has, d), b = wf_shard_index(&wants, d);
            own *= (uint64_t)wf_index_common(&a, &b);
        }
    } else {
        own = 0;
    }
    return wf_sub_capped(
        wf_mul_capped((uint64_t)wants.elements * wf_dtype_bytes(to->dtype), holders_of(step)),
        own * wf_dtype_bytes(to->dtype));
}

/* Axes along which all ranks do the same, since every step has copies there. */
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

struct wf_measure wf_plan_measure(const weft_plan *plan)
{
    const weft_mesh *meshes[] = {plan->from->layout.mesh, plan->to->layout.mesh};
    struct wf_measure out = {0};
    uint32_t idle = idle_axes(plan);
    uint64_t alike = 1;

    for (int32_t a = 0; a < meshes[0]->axes; a++)
        if (idle >> a & 1) alike *= (uint64_t)meshes[0]->axis[a].size;
    for (int m = 0; m < (meshes[0] == meshes[1] ? 1 : 2); m++)
        for (int32_t i = 0; i < meshes[m]->size; i++) {
            int32_t rank = weft_mesh_rank_at(meshes[m], i), coord[WEFT_MAX_AXES];
            uint64_t sum = 0;
            bool counted = m == 1 && weft_mesh_coord(meshes[0], rank, coord);
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

/* ---- one step ---- */

enum { LISTED_RANKS = 1024 };

static int32_t greatest_rank(const weft_mesh *mesh)
{
    int32_t most = 0;

    for (int32_t i = 0; i < mesh->size; i++)
        if (weft_mesh_rank_at(mesh, i) > most) most = weft_mesh_rank_at(mesh, i);
    return most;
}

/* Add what RANK reads to what SENT says of those it reads from. */
static weft_status add_sent(const struct wf_step *step, int32_t rank, uint64_t *sent)
{
    struct wf_parts parts;

    WF_TRY(wf_parts_read(step->from, step->to, rank, NULL, &parts));
    for (uint64_t i = 0; i < parts.region_count; i++)
        for (uint32_t h = 0; h < parts.holders; h++) {
            int32_t source = parts.ranks[parts.regions[i].source + h];
            if (source != rank) sent[source] += wf_region_elements(&parts.regions[i]);
        }
    wf_parts_free(&parts);
    return WEFT_OK;
}

static weft_status most_sent(const struct wf_step *step, uint64_t *out)
{
    const weft_mesh *from = step->from->layout.mesh, *to = step->to->layout.mesh;
    size_t ranks = (size_t)greatest_rank(from) + 1;
    uint64_t *sent = wf_calloc(ranks, sizeof *sent), most = 0;
    weft_status status = WEFT_OK;

    if (sent == NULL) return wf_fail_memory(ranks * sizeof *sent);
    for (int32_t i = 0; i < to->size && status == WEFT_OK; i++)
        status = add_sent(step, weft_mesh_rank_at(to, i), sent);
    for (size_t i = 0; i < ranks; i++)
        if (sent[i] > most) most = sent[i];
    wf_free(sent);
    if (status == WEFT_OK) *out = most * wf_dtype_bytes(step->from->layout.dtype);
    return status;
}

weft_status wf_step_measure(const struct wf_step *step, uint64_t *sent, uint64_t *received)
{
    const weft_mesh *from = step->from->layout.mesh, *to = step->to->layout.mesh;

    *sent = *received = 0;
    if (wf_step_is_local(step)) return WEFT_OK;
    for (int32_t i = 0; i < to->size; i++) {
        uint64_t bytes = received_by(step, weft_mesh_rank_at(to, i));
        if (bytes > *received) *received = bytes;
    }
    *sent = step->kind == WEFT_STEP_ALL_REDUCE ? *received : step->sent;
    if (step->kind == WEFT_STEP_ALL_REDUCE || from->size > LISTED_RANKS || to->size > LISTED_RANKS)
        return WEFT_OK;
    return most_sent(step, sent);
}
