/* cross.c - plans between two meshes.
 *
 * Three parts: collectives on the source's mesh, one exchange, collectives on the target's mesh.
 * Reducing partials first, and sending each byte to one of several copies which then pass it on
 * among themselves, are worth it or not as the costs say; every combination is priced. */
#include "plan.h"

#include <string.h>

enum { MOST = WEFT_MAX_DIMS + 2 };

/* A spec beside the given one, on its mesh, and the steps between the two. */
struct side {
    weft_spec *spec;
    weft_plan *plan;
};

struct sides {
    struct side list[MOST];
    int count;
};

struct best {
    const struct side *source, *target;
    struct wf_step exchange;
    uint64_t first, second, peak;
};

static void drop_sides(struct sides *sides)
{
    for (int i = 0; i < sides->count; i++) {
        weft_spec_release(&sides->list[i].spec);
        weft_plan_release(&sides->list[i].plan);
    }
}

/* SPEC with every axis of kind FROM as the innermost split of DIM, or copied if DIM is -1. */
static weft_status variant(const weft_spec *spec, uint32_t from, int32_t dim, weft_spec **out)
{
    struct wf_layout layout = spec->layout;
    int32_t turn = WEFT_MAX_AXES;

    for (int32_t a = 0; a < layout.mesh->axes; a++) {
        weft_placement *p = &layout.placements[a];
        if (p->kind != from) continue;
        *p = (weft_placement){.kind = WEFT_PLACE_REPLICATE};
        if (dim >= 0) *p = (weft_placement){.kind = WEFT_PLACE_SHARD, .dim = dim, .turn = ++turn};
    }
    return wf_spec_intern(&layout, out);
}

static bool has_kind(const weft_spec *spec, uint32_t kind)
{
    for (int32_t a = 0; a < spec->layout.mesh->axes; a++)
        if (spec->layout.placements[a].kind == kind && spec->layout.mesh->axis[a].size > 1)
            return true;
    return false;
}

static weft_status add_side(struct sides *sides, const weft_spec *given, weft_spec *spec,
                            bool source, const weft_plan_options *options)
{
    struct side *side = &sides->list[sides->count++];

    side->spec = spec;
    return source ? weft_plan_create(given, spec, options, &side->plan)
                  : weft_plan_create(spec, given, options, &side->plan);
}

/* Integers cannot be added and averaged in one step. */
static bool sums_and_averages(const weft_spec *spec)
{
    uint32_t seen = 0;

    if (spec->layout.dtype >= WEFT_DTYPE_F16) return false;
    for (int32_t a = 0; a < spec->layout.mesh->axes; a++)
        if (spec->layout.placements[a].kind == WEFT_PLACE_PARTIAL &&
            spec->layout.mesh->axis[a].size > 1)
            seen |= UINT32_C(1) << spec->layout.placements[a].reduction;
    return (seen >> WEFT_REDUCE_SUM & 1) && (seen >> WEFT_REDUCE_AVG & 1);
}

/* GIVEN itself, and its variants with the axes of KIND as shards. */
static weft_status list_sides(struct sides *sides, const weft_spec *given, bool source,
                              const weft_plan_options *options)
{
    uint32_t kind = source ? WEFT_PLACE_PARTIAL : WEFT_PLACE_REPLICATE;
    weft_spec *spec;

    if (!source || !sums_and_averages(given))
        WF_TRY(add_side(sides, given, weft_spec_retain(given), source, options));
    if (!has_kind(given, kind)) return WEFT_OK;
    for (int32_t dim = source ? -1 : 0; dim < given->layout.dims; dim++) {
        WF_TRY(variant(given, kind, dim, &spec));
        WF_TRY(add_side(sides, given, spec, source, options));
    }
    return WEFT_OK;
}

static uint64_t largest_shard(const weft_spec *spec)
{
    int32_t first[WEFT_MAX_AXES] = {0};
    struct wf_shard shard;

    wf_shard_at(&spec->layout, first, &shard);
    return (uint64_t)shard.elements * wf_dtype_bytes(spec->layout.dtype);
}

/* Ranks that hold different things, or contributions to the same; the others hold copies. */
static uint64_t different_ranks(const weft_spec *spec, uint64_t *contributions)
{
    uint64_t ranks = 1;

    *contributions = 1;
    for (int32_t a = 0; a < spec->layout.mesh->axes; a++) {
        uint32_t kind = spec->layout.placements[a].kind;
        uint64_t size = (uint64_t)spec->layout.mesh->axis[a].size;
        if (kind == WEFT_PLACE_REPLICATE) continue;
        ranks *= size;
        if (kind == WEFT_PLACE_PARTIAL) *contributions *= size;
    }
    return ranks;
}

static bool one_host(const weft_mesh *a, const weft_mesh *b)
{
    return weft_mesh_hosts(a) == 1 && weft_mesh_hosts(b) == 1 &&
           weft_mesh_host_of(a, weft_mesh_rank_at(a, 0)) ==
               weft_mesh_host_of(b, weft_mesh_rank_at(b, 0));
}

/* The exchange takes as long as the busiest rank is sending or receiving. */
static void price(const weft_cost_table *costs, struct wf_step *step)
{
    const weft_mesh *source = step->from->layout.mesh, *target = step->to->layout.mesh;
    uint64_t has = largest_shard(step->from), wants = largest_shard(step->to), holders, made;
    uint64_t sources = different_ranks(step->from, &holders), readers = (uint64_t)target->size;
    uint64_t whole = (uint64_t)step->from->elements * wf_dtype_bytes(step->from->layout.dtype);
    struct wf_work work = {.kind = WEFT_STEP_EXCHANGE, .copied = 0};

    (void)different_ranks(step->to, &made);
    work.link = one_host(source, target) ? WF_WITHIN_HOST : WF_BETWEEN_HOSTS;
    work.ranks = (int64_t)(sources < readers ? sources : readers) + 1;
    step->received = wants * holders;
    /* Every reader takes its shard from each holder; all copies of the source share that. */
    step->sent = wants * (readers / made) * holders / (uint64_t)source->size;
    if (step->sent < has && whole > 0) step->sent = has < wants * readers ? has : wants * readers;
    work.received = step->received > step->sent ? step->received : step->sent;
    if (holders > 1) work.reduced = wants * holders;
    if (!costs->one_sided) work.packed = has + wants * holders;
    step->scratch = work.packed;
    step->cost_ns = wf_cost_ns(costs, &work);
}

static void consider(struct best *best, const struct side *source, const struct side *target,
                     const struct wf_step *exchange, const weft_plan_options *options)
{
    const weft_plan *a = source->plan, *b = target->plan;
    uint64_t ns = a->cost_ns + exchange->cost_ns + b->cost_ns;
    uint64_t received = a->received + exchange->received + b->received;
    uint64_t scratch = exchange->scratch, peak, first, second;

    if (a->step_count > 0) scratch += largest_shard(source->spec);
    if (b->step_count > 0) scratch += largest_shard(target->spec);
    peak = scratch > a->peak ? scratch : a->peak;
    if (b->peak > peak) peak = b->peak;
    first = options->minimize == WEFT_MINIMIZE_TIME    ? ns
            : options->minimize == WEFT_MINIMIZE_BYTES ? received
                                                       : peak;
    second = options->minimize == WEFT_MINIMIZE_TIME ? received : ns;
    if (options->memory_limit != 0 && peak > options->memory_limit) return;
    if (best->source != NULL &&
        (first > best->first || (first == best->first && second >= best->second)))
        return;
    *best = (struct best){source, target, *exchange, first, second, peak};
    best->exchange.scratch = scratch;
}

static void put_steps(weft_plan *plan, const weft_plan *part)
{
    for (uint32_t i = 0; i < part->step_count; i++) {
        struct wf_step *step = &plan->steps[plan->step_count++];
        *step = part->steps[i];
        weft_spec_retain(step->from);
        weft_spec_retain(step->to);
    }
}

static weft_status join(const struct best *best, const weft_spec *from, const weft_spec *to,
                        weft_plan **out)
{
    uint32_t steps = best->source->plan->step_count + 1 + best->target->plan->step_count;
    weft_plan *plan = NULL;
    struct wf_step *step;

    WF_TRY(wf_plan_make(from, to, steps, &plan));
    put_steps(plan, best->source->plan);
    step = &plan->steps[plan->step_count++];
    *step = best->exchange;
    step->from = weft_spec_retain(best->source->spec);
    step->to = weft_spec_retain(best->target->spec);
    put_steps(plan, best->target->plan);
    wf_plan_add_up(plan);
    *out = plan;
    return WEFT_OK;
}

weft_status wf_plan_cross(const weft_spec *from, const weft_spec *to,
                          const weft_plan_options *options, weft_plan **out)
{
    const weft_cost_table *costs = options->costs != NULL ? options->costs : wf_cost_default();
    weft_plan_options inside = *options;
    struct sides sources = {0}, targets = {0};
    struct best best = {0};
    weft_status status;

    if (from->elements == 0) {
        WF_TRY(wf_plan_make(from, to, 0, out));
        wf_plan_add_up(*out);
        return WEFT_OK;
    }
    inside.memory_limit = 0; /* the whole is held to it */
    inside.without |= UINT32_C(1) << WEFT_STEP_EXCHANGE;
    status = list_sides(&sources, from, true, &inside);
    if (status == WEFT_OK) status = list_sides(&targets, to, false, &inside);
    for (int i = 0; status == WEFT_OK && i < sources.count; i++)
        for (int j = 0; j < targets.count; j++) {
            struct wf_step exchange = {.kind = WEFT_STEP_EXCHANGE,
                                       .from = sources.list[i].spec,
                                       .to = targets.list[j].spec};
            price(costs, &exchange);
            consider(&best, &sources.list[i], &targets.list[j], &exchange, options);
        }
    if (status == WEFT_OK && best.source == NULL)
        status = wf_fail(WEFT_ERR_INVALID, "no plan between the meshes stays within %llu bytes",
                         (unsigned long long)options->memory_limit);
    if (status == WEFT_OK) status = join(&best, from, to, out);
    drop_sides(&sources);
    drop_sides(&targets);
    return status;
}
