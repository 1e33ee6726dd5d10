/* sim.c - a plan carried out for every rank in one thread: the oracle, and the debugger. */
#include "bound.h"

#include "base/number.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- one region ---- */

struct mover {
    const struct wf_parts *parts;
    const void *const *inputs; /* by position in the step's source mesh */
    const weft_mesh *mesh;     /* the step's source mesh */
    uint32_t dtype;
    size_t element;
    const char **holders; /* the inputs of one block */
    const void **starts;  /* where COUNT elements of each begin */
};

/* COUNT elements without gaps. */
static void move_elements(const struct mover *m, int64_t source, char *to, int64_t count)
{
    const struct wf_parts *parts = m->parts;
    struct wf_reduction r = {.dtype = m->dtype,
                             .reduction = parts->reduction,
                             .size = parts->holders,
                             .divisor = (uint32_t)parts->divisor};

    for (uint32_t h = 0; h < parts->holders; h++)
        m->starts[h] = m->holders[h] + (size_t)source * m->element;
    if (parts->holders == 1)
        memcpy(to, m->starts[0], (size_t)count * m->element);
    else
        wf_elements_reduce(&r, m->starts, to, (size_t)count);
}

/* COUNT elements along one dimension. */
static void move_row(const struct mover *m, int64_t source, int64_t source_step, char *output,
                     int64_t target, int64_t target_step, int64_t count)
{
    int64_t together = source_step == 1 && target_step == 1 ? count : 1;

    for (int64_t i = 0; i < count; i += together)
        move_elements(m, source + i * source_step,
                      output + (size_t)(target + i * target_step) * m->element, together);
}

static void move_region(const struct mover *m, const weft_region *r, char *output)
{
    int64_t at[WEFT_MAX_DIMS] = {0}, source = r->source_offset, target = r->target_offset;
    uint32_t last = r->dims == 0 ? 0 : r->dims - 1;
    int64_t count = r->dims == 0 ? 1 : r->extent[last];
    int64_t source_step = r->dims == 0 ? 1 : r->source_stride[last];
    int64_t target_step = r->dims == 0 ? 1 : r->target_stride[last];
    uint32_t d;

    do {
        move_row(m, source, source_step, output, target, target_step, count);
        for (d = last; d-- > 0;) {
            source += r->source_stride[d];
            target += r->target_stride[d];
            if (++at[d] < r->extent[d]) break;
            source -= r->source_stride[d] * r->extent[d];
            target -= r->target_stride[d] * r->extent[d];
            at[d] = 0;
        }
    } while (d != UINT32_MAX);
}

/* ---- one step ---- */

static void fill_output(const struct wf_share *share, uint32_t dtype, char *output)
{
    size_t element = wf_dtype_bytes(dtype);
    _Alignas(16) char identity[16];

    wf_element_identity(dtype, share->fill, identity);
    for (int64_t i = 0; i < share->elements; i++)
        memcpy(output + (size_t)i * element, identity, element);
}

static weft_status move_regions(struct mover *m, char *output)
{
    const struct wf_parts *parts = m->parts;

    m->holders = wf_alloc(2 * parts->holders * sizeof *m->holders);
    if (m->holders == NULL) return wf_fail_memory(2 * parts->holders * sizeof *m->holders);
    m->starts = (const void **)(m->holders + parts->holders);
    for (uint64_t i = 0; i < parts->region_count; i++) {
        const weft_region *r = &parts->regions[i];
        for (uint32_t h = 0; h < parts->holders; h++)
            m->holders[h] = m->inputs[wf_mesh_index(m->mesh, parts->ranks[r->source + h])];
        move_region(m, r, output);
    }
    wf_free(m->holders);
    return WEFT_OK;
}

static weft_status run_rank(const struct wf_step *step, int32_t rank, const void *const *inputs,
                            char *output)
{
    uint32_t dtype = step->from->layout.dtype;
    struct wf_share share;
    struct mover m = {.parts = &share.parts,
                      .inputs = inputs,
                      .mesh = step->from->layout.mesh,
                      .dtype = dtype,
                      .element = wf_dtype_bytes(dtype)};
    weft_status status;

    WF_TRY(wf_share_of(step, rank, NULL, NULL, &share));
    if (share.filled) fill_output(&share, dtype, output);
    status = move_regions(&m, output);
    wf_share_free(&share);
    return status;
}

/* Only an empty shard, or that of a lost rank, may be NULL.  LIVING: as in struct wf_step. */
static weft_status check_shards(const char *function, const char *list, const weft_spec *spec,
                                int32_t living, const void *const *shards)
{
    const weft_mesh *mesh = spec->layout.mesh;
    struct wf_shard shard;

    for (int32_t i = 0; i < mesh->size; i++) {
        if (shards[i] != NULL) continue;
        if (living != 0 && weft_mesh_rank_at(mesh, i) >= living) continue;
        wf_shard_of(spec, weft_mesh_rank_at(mesh, i), &shard);
        if (shard.elements > 0)
            return wf_fail(WEFT_ERR_INVALID,
                           "%s: %s[%d] is NULL; that shard has %" PRId64 " elements", function,
                           list, i, shard.elements);
    }
    return WEFT_OK;
}

/* STEP, which does not cast. */
static weft_status move_step(const struct wf_step *step, const void *const *inputs,
                             void *const *outputs)
{
    const weft_mesh *mesh = step->to->layout.mesh;

    for (int32_t i = 0; i < mesh->size; i++)
        WF_TRY(run_rank(step, weft_mesh_rank_at(mesh, i), inputs, outputs[i]));
    return WEFT_OK;
}

/* STEP, which casts and does nothing else. */
static weft_status cast_step(const struct wf_step *step, const void *const *inputs,
                             void *const *outputs)
{
    const weft_mesh *mesh = step->to->layout.mesh;
    uint32_t from = step->from->layout.dtype, to = step->to->layout.dtype;
    struct wf_share share;

    for (int32_t i = 0; i < mesh->size; i++) {
        WF_TRY(wf_share_of(step, weft_mesh_rank_at(mesh, i), NULL, NULL, &share));
        if (share.filled)
            fill_output(&share, to, outputs[i]);
        else
            wf_elements_cast(from, to, inputs[i], outputs[i], (size_t)share.elements);
        wf_share_free(&share);
    }
    return WEFT_OK;
}

static weft_status run_split(const struct wf_step *step, const void *const *inputs,
                             void *const *outputs);

weft_status wf_simulate_step(const char *function, const struct wf_step *step,
                             const void *const *inputs, void *const *outputs)
{
    WF_TRY(check_shards(function, "sources", step->from, step->living, inputs));
    WF_TRY(check_shards(function, "targets", step->to, 0, (const void *const *)outputs));
    if (wf_step_cast(step) == WEFT_CAST_NONE) return move_step(step, inputs, outputs);
    if (!wf_step_only_casts(step)) return run_split(step, inputs, outputs);
    return cast_step(step, inputs, outputs);
}

/* ---- the whole plan ---- */

/* Shards of every rank of a spec, in one block. */
struct shards {
    void **at; /* by position in the mesh */
    char *memory;
};

static void free_shards(struct shards *shards)
{
    wf_free(shards->at);
    wf_free(shards->memory);
    *shards = (struct shards){0};
}

static weft_status make_shards(const weft_spec *spec, struct shards *out)
{
    const weft_mesh *mesh = spec->layout.mesh;
    size_t element = wf_dtype_bytes(spec->layout.dtype), bytes = 0;
    struct wf_shard shard;

    for (int32_t i = 0; i < mesh->size; i++) {
        wf_shard_of(spec, weft_mesh_rank_at(mesh, i), &shard);
        bytes += (size_t)shard.elements * element;
    }
    out->at = wf_alloc((size_t)mesh->size * sizeof *out->at);
    out->memory = wf_alloc(bytes);
    if (out->at == NULL || out->memory == NULL) {
        free_shards(out);
        return wf_fail_memory(bytes);
    }
    bytes = 0;
    for (int32_t i = 0; i < mesh->size; i++) {
        out->at[i] = out->memory + bytes;
        wf_shard_of(spec, weft_mesh_rank_at(mesh, i), &shard);
        bytes += (size_t)shard.elements * element;
    }
    return WEFT_OK;
}

/* STEP, which casts and does more. */
static weft_status run_split(const struct wf_step *step, const void *const *inputs,
                             void *const *outputs)
{
    struct wf_cast_steps two;
    struct shards between = {0};
    weft_status status;

    WF_TRY(wf_cast_split(step, &two));
    status = make_shards(two.between, &between);
    for (int i = 0; i < 2 && status == WEFT_OK; i++) {
        const void *const *from = i == 0 ? inputs : (const void *const *)between.at;
        void *const *to = i == 0 ? between.at : outputs;
        if (wf_step_only_casts(&two.steps[i]))
            status = cast_step(&two.steps[i], from, to);
        else
            status = move_step(&two.steps[i], from, to);
    }
    free_shards(&between);
    wf_cast_clear(&two);
    return status;
}

static weft_status run_plan(const char *function, const weft_plan *plan, const void *const *sources,
                            void *const *targets)
{
    struct wf_step copy = {.kind = WEFT_STEP_SLICE, .from = plan->to, .to = plan->to};
    struct shards have = {0}, next = {0};
    weft_status status = WEFT_OK;

    if (plan->to->elements == 0) return WEFT_OK; /* and the meshes may differ in size */
    if (plan->step_count == 0) return wf_simulate_step(function, &copy, sources, targets);
    for (uint32_t i = 0; i < plan->step_count && status == WEFT_OK; i++) {
        const void *const *inputs = i == 0 ? sources : (const void *const *)have.at;
        bool last = i + 1 == plan->step_count;
        if (!last) status = make_shards(plan->steps[i].to, &next);
        if (status == WEFT_OK)
            status = wf_simulate_step(function, &plan->steps[i], inputs, last ? targets : next.at);
        free_shards(&have);
        have = next;
        next = (struct shards){0};
    }
    free_shards(&have);
    return status;
}

/* Tensor INDEX: its own plan ALONE, or its part of the shared exchange of a batch. */
static weft_status run_tensor(const weft_plan *alone, const struct wf_member *member,
                              uint32_t index, const void *const *sources, void *const *targets)
{
    struct wf_step exchange;
    char function[64];

    if (sources == NULL || targets == NULL)
        return wf_fail(WEFT_ERR_INVALID, "weft_simulate: %s[%u] is NULL",
                       sources == NULL ? "sources" : "targets", index);
    snprintf(function, sizeof function, "weft_simulate: tensor %u", index);
    if (alone != NULL) return run_plan(function, alone, sources, targets);
    exchange = (struct wf_step){.kind = WEFT_STEP_EXCHANGE, .from = member->from, .to = member->to};
    return wf_simulate_step(function, &exchange, sources, targets);
}

weft_status weft_simulate(const weft_plan *plan, const void *const *const *sources,
                          void *const *const *targets)
{
    WF_TRY(wf_require_kind(plan, WF_KIND_PLAN, "weft_simulate: plan"));
    WF_TRY(wf_require(sources, "weft_simulate: sources"));
    WF_TRY(wf_require(targets, "weft_simulate: targets"));
    if (plan->members == NULL) return run_tensor(plan, NULL, 0, sources[0], targets[0]);
    for (uint32_t i = 0; i < plan->member_count; i++)
        WF_TRY(run_tensor(plan->members[i].alone, &plan->members[i], i, sources[i], targets[i]));
    return WEFT_OK;
}
