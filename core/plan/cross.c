/* cross.c - plans between two meshes.
 *
 * A plan has three parts: collectives on the source's mesh, one exchange, collectives on the
 * target's mesh.  Partials may be reduced before the exchange.  Each byte may be sent to only one
 * of several replicas, which then gather.  Every combination is priced.  A part that receives least
 * alone may load the ranks that the other parts load, so unless time is minimized, each part is
 * planned by time, by bytes and by memory.  If both meshes are reshapes of the same rank list, the
 * plan is one of a single mesh. */
#include "plan/figures/figures.h"
#include "plan.h"

#include <string.h>

enum {
    VARIANTS_MAX = WEFT_MAX_DIMS + 2,
    SIDES_MAX = 4 * VARIANTS_MAX, /* by time, bytes and memory, and by time within a limit */
    STEPS_MAX = 6,                /* of a plan, if there is one: none is shown to be the least */
    PRICED_RANKS = 4096           /* more ranks are not visited for each combination */
};

/* A variant of the given spec on its mesh, and the plan between the two. */
struct side {
    weft_spec *spec;
    weft_plan *plan;
};

struct sides {
    struct side list[SIDES_MAX];
    int count;
};

/* One combination of a source side and a target side. */
struct candidate {
    const struct side *source, *target; /* NULL: no candidate */
    struct wf_step exchange;
    bool is_long;                 /* more than STEPS_MAX steps */
    uint64_t first, second, peak; /* the quantity to minimize, the tie-breaker, scratch */
};

struct search {
    const weft_plan_options *options;
    struct sides sources, targets;
    struct candidate best, runner_up;
    uint64_t least; /* least scratch of any candidate */
    int32_t living; /* as in struct wf_step */
};

static void drop_sides(struct sides *sides)
{
    for (int i = 0; i < sides->count; i++) {
        weft_spec_release(&sides->list[i].spec);
        weft_plan_release(&sides->list[i].plan);
    }
    sides->count = 0;
}

/* SPEC in DTYPE, with every axis of kind FROM as the innermost split of DIM, or replicated if DIM
 * is -1. */
static weft_status make_variant(const weft_spec *spec, uint32_t dtype, uint32_t from, int32_t dim,
                                weft_spec **out)
{
    struct wf_layout layout = spec->layout;
    int32_t turn = WEFT_MAX_AXES;

    layout.dtype = dtype;
    for (int32_t a = 0; a < layout.mesh->axes; a++) {
        weft_placement *p = &layout.placements[a];
        if (p->kind != from) continue;
        *p = (weft_placement){.kind = WEFT_PLACE_REPLICATE};
        if (dim >= 0) *p = (weft_placement){.kind = WEFT_PLACE_SHARD, .dim = dim, .turn = turn++};
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

static bool has_side(const struct sides *sides, const weft_plan *plan)
{
    for (int i = 0; i < sides->count; i++)
        if (sides->list[i].plan->digest == plan->digest) return true;
    return false;
}

/* Add SPEC and take ownership of it.  A SPEC that no plan reaches, or with a plan that SIDES has,
 * is released. */
static weft_status add_side(struct sides *sides, const weft_spec *given, weft_spec *spec,
                            bool source, const weft_plan_options *options)
{
    weft_plan *plan = NULL;
    weft_status status = source ? wf_plan_create(given, spec, options, &plan)
                                : wf_plan_create(spec, given, options, &plan);

    if (status != WEFT_OK) {
        weft_spec_release(&spec);
        return status == WEFT_ERR_NO_MEMORY ? status : WEFT_OK;
    }
    if (has_side(sides, plan)) {
        weft_plan_release(&plan);
        weft_spec_release(&spec);
        return WEFT_OK;
    }
    sides->list[sides->count++] = (struct side){spec, plan};
    return WEFT_OK;
}

/* GIVEN itself and, if the planner searches, its variants in DTYPE: partials reduced, or replicas
 * sharded. */
static weft_status list_sides(struct sides *sides, const weft_spec *given, uint32_t dtype,
                              bool source, const weft_plan_options *options)
{
    uint32_t kind = source ? WEFT_PLACE_PARTIAL : WEFT_PLACE_REPLICATE;
    weft_spec *spec;

    WF_TRY(add_side(sides, given, weft_spec_retain(given), source, options));
    if (!has_kind(given, kind)) return WEFT_OK;
    if (options->planner == WEFT_PLANNER_EXCHANGE) return WEFT_OK;
    for (int32_t dim = source ? -1 : 0; dim < given->layout.dims; dim++) {
        WF_TRY(make_variant(given, dtype, kind, dim, &spec));
        WF_TRY(add_side(sides, given, spec, source, options));
    }
    return WEFT_OK;
}

static uint64_t largest_elements(const weft_spec *spec)
{
    int32_t coord[WEFT_MAX_AXES];
    struct wf_shard shard;

    wf_layout_largest(&spec->layout, coord);
    wf_shard_at(&spec->layout, coord, &shard);
    return (uint64_t)shard.elements;
}

static uint64_t largest_shard(const weft_spec *spec)
{
    return largest_elements(spec) * wf_dtype_bytes(spec->layout.dtype);
}

/* Ranks that hold one element, as replicas or as contributions. */
static uint64_t ranks_of_kind(const weft_spec *spec, uint32_t kind)
{
    uint64_t ranks = 1;

    for (int32_t a = 0; a < spec->layout.mesh->axes; a++)
        if (spec->layout.placements[a].kind == kind)
            ranks *= (uint64_t)spec->layout.mesh->axis[a].size;
    return ranks;
}

/* Ranks of the target that receive one element: its replicas, and all contributions to an average,
 * which are equal.  With other partials one rank receives it, and the others hold the identity. */
static uint64_t ranks_that_want(const weft_spec *target)
{
    uint64_t ranks = ranks_of_kind(target, WEFT_PLACE_REPLICATE);

    for (int32_t a = 0; a < target->layout.mesh->axes; a++)
        if (target->layout.placements[a].kind == WEFT_PLACE_PARTIAL &&
            target->layout.placements[a].reduction == WEFT_REDUCE_AVG)
            ranks *= (uint64_t)target->layout.mesh->axis[a].size;
    return ranks;
}

static bool one_host(const weft_mesh *a, const weft_mesh *b)
{
    return weft_mesh_hosts(a) == 1 && weft_mesh_hosts(b) == 1 &&
           weft_mesh_host_of(a, weft_mesh_rank_at(a, 0)) ==
               weft_mesh_host_of(b, weft_mesh_rank_at(b, 0));
}

/* Extend ENDS, the lowest and the highest rank, by those of MESH. */
static void add_ends(const weft_mesh *mesh, int32_t ends[2])
{
    int32_t size = weft_mesh_size(mesh);

    for (int32_t i = 0; i < size; i++) {
        int32_t rank = weft_mesh_rank_at(mesh, i);
        if (rank < ends[0]) ends[0] = rank;
        if (rank > ends[1]) ends[1] = rank;
    }
}

/* The farthest link between ranks of A and B. */
static uint32_t link_of(const weft_mesh *a, const weft_mesh *b, const weft_cost_table *costs)
{
    int32_t ends[2] = {INT32_MAX, 0};

    if (costs->domains[WF_WITHIN_HOST] == 0 && costs->domains[WF_BETWEEN_HOSTS] == 0)
        return one_host(a, b) ? WF_WITHIN_HOST : WF_BETWEEN_HOSTS;
    add_ends(a, ends);
    add_ends(b, ends);
    return wf_link_between(a->devices_per_host > 0 ? a : b, costs, ends[0], ends[1]);
}

/* Bytes, in the wider dtype, of the shard that STEP casts. */
static uint64_t cast_bytes(const struct wf_step *step)
{
    uint64_t from = wf_dtype_bytes(step->from->layout.dtype);
    uint64_t to = wf_dtype_bytes(step->to->layout.dtype);

    return largest_elements(wf_step_cast(step) == WEFT_CAST_AFTER ? step->to : step->from) *
           (from > to ? from : to);
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* The exchange takes as long as its busiest rank sends or receives. */
void wf_cross_work(const weft_cost_table *costs, struct wf_step *step, struct wf_work *out)
{
    const weft_mesh *source = step->from->layout.mesh, *target = step->to->layout.mesh;
    uint64_t element = wf_dtype_bytes(wf_step_dtype(step));
    uint64_t has = largest_elements(step->from) * element;
    uint64_t wants = largest_elements(step->to) * element;
    uint64_t holders = ranks_of_kind(step->from, WEFT_PLACE_PARTIAL);
    uint64_t copies = ranks_of_kind(step->from, WEFT_PLACE_REPLICATE);
    uint64_t readers = (uint64_t)target->size, sources = (uint64_t)source->size / copies;
    struct wf_work work = {.kind = WEFT_STEP_EXCHANGE, .copied = 0};
    struct wf_cross_count count;

    wf_cross_count(step, PRICED_RANKS, &count);
    work.link = link_of(source, target, costs);
    work.ranks = (int64_t)(sources < readers ? sources : readers) + 1;
    step->received = wf_mul_capped(count.most, element);
    /* A shard goes to every rank that needs it; the source's replicas share the sending. */
    step->sent = wf_add_capped(wf_mul_capped(has, ranks_that_want(step->to)), copies - 1) / copies;
    step->sent = smaller(step->sent, wf_mul_capped(count.total, element));
    work.received = step->received > step->sent ? step->received : step->sent;
    if (holders > 1) work.reduced = wf_mul_capped(wants, holders);
    work.packed = wf_add_capped(has > step->sent ? has : step->sent, wf_mul_capped(wants, holders));
    if (wf_step_cast(step) != WEFT_CAST_NONE) work.copied = cast_bytes(step);
    *out = work;
}

static void price_exchange(const weft_cost_table *costs, struct wf_step *step)
{
    uint32_t cast = wf_step_cast(step);
    struct wf_work work;

    wf_cross_work(costs, step, &work);
    if (costs->one_sided) work.packed = 0;
    step->scratch = work.packed;
    if (cast != WEFT_CAST_NONE &&
        !(costs->one_sided && wf_cast_fuses(step->kind, cast, wf_step_reduces(step))))
        step->scratch = wf_add_capped(
            step->scratch, largest_elements(cast == WEFT_CAST_AFTER ? step->to : step->from) *
                               wf_dtype_bytes(wf_step_dtype(step)));
    step->cost_ns = wf_cost_ns(costs, &work);
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static struct candidate combine_sides(const struct side *source, const struct side *target,
                                      const struct wf_step *exchange, uint32_t minimize)
{
    const weft_plan *a = source->plan, *b = target->plan;
    uint64_t ns = wf_add_capped(wf_add_capped(a->cost_ns, exchange->cost_ns), b->cost_ns);
    uint64_t received = wf_add_capped(wf_add_capped(a->received, exchange->received), b->received);
    uint64_t between[2] = {a->step_count > 0 ? largest_shard(source->spec) : 0,
                           b->step_count > 0 ? largest_shard(target->spec) : 0};
    struct candidate candidate = {.source = source, .target = target, .exchange = *exchange};

    candidate.is_long = a->step_count + 1 + b->step_count > STEPS_MAX;
    candidate.exchange.scratch = wf_add_capped(exchange->scratch, between[0] + between[1]);
    candidate.peak = larger(wf_add_capped(a->peak, between[0]), wf_add_capped(b->peak, between[1]));
    candidate.peak = larger(candidate.peak, candidate.exchange.scratch);
    candidate.first = minimize == WEFT_MINIMIZE_TIME    ? ns
                      : minimize == WEFT_MINIMIZE_BYTES ? received
                                                        : candidate.peak;
    candidate.second = minimize == WEFT_MINIMIZE_TIME ? received : ns;
    return candidate;
}

static bool is_better(const struct candidate *a, const struct candidate *b)
{
    if (b->source == NULL) return true;
    if (a->is_long != b->is_long) return b->is_long;
    return a->first < b->first || (a->first == b->first && a->second < b->second);
}

static void consider_candidate(struct search *s, const struct candidate *candidate)
{
    if (candidate->peak < s->least) s->least = candidate->peak;
    if (s->options->memory_limit != 0 && candidate->peak > s->options->memory_limit) return;
    if (is_better(candidate, &s->best)) {
        s->runner_up = s->best;
        s->best = *candidate;
    } else if (is_better(candidate, &s->runner_up)) {
        s->runner_up = *candidate;
    }
}

/* EXTRA: bytes of the part's source or target, which are scratch of PLAN. */
static void put_steps(weft_plan *plan, const weft_plan *part, uint64_t extra)
{
    for (uint32_t i = 0; i < part->step_count; i++) {
        struct wf_step *step = &plan->steps[plan->step_count++];
        *step = part->steps[i];
        step->scratch = wf_add_capped(step->scratch, extra);
        weft_spec_retain(step->from);
        weft_spec_retain(step->to);
    }
}

static weft_status join_plans(const struct candidate *best, const weft_spec *from,
                              const weft_spec *to, weft_plan **out)
{
    uint32_t steps = best->source->plan->step_count + 1 + best->target->plan->step_count;
    weft_plan *plan = NULL;
    struct wf_step *step;

    WF_TRY(wf_plan_make(from, to, steps, &plan));
    put_steps(plan, best->source->plan, largest_shard(best->source->spec));
    step = &plan->steps[plan->step_count++];
    *step = best->exchange;
    step->from = weft_spec_retain(best->source->spec);
    step->to = weft_spec_retain(best->target->spec);
    put_steps(plan, best->target->plan, largest_shard(best->target->spec));
    plan->living = best->exchange.living;
    wf_plan_add_up(plan);
    return wf_plan_finish_take(plan, out);
}

/* Replace estimates by the exact figures of the whole plan. */
static weft_status count_candidate(struct candidate *candidate, const weft_spec *from,
                                   const weft_spec *to, const weft_cost_table *costs,
                                   uint32_t minimize)
{
    weft_plan *plan = NULL;
    weft_status status;
    bool exact;

    WF_TRY(join_plans(candidate, from, to, &plan));
    wf_plan_set_costs(plan, costs);
    status = wf_plan_scratch(plan, &candidate->peak, &exact);
    if (minimize == WEFT_MINIMIZE_BYTES) candidate->first = plan->received;
    if (minimize == WEFT_MINIMIZE_MEMORY) candidate->first = candidate->peak;
    weft_plan_release(&plan);
    return status;
}

/* List the parts that the options INSIDE give. */
static weft_status add_parts(struct search *s, const weft_spec *from, const weft_spec *to,
                             const weft_plan_options *inside)
{
    /* Data that nothing reduces is widened in the last step, which may be on the target's mesh. The
     * exchange creates the target's partials. */
    bool is_cast_before = wf_cast_kind(from->layout.dtype, to->layout.dtype) != WF_CAST_WIDENS ||
                          has_kind(from, WEFT_PLACE_PARTIAL) || wf_cast_precedes_partials(to);

    WF_TRY(list_sides(&s->sources, from, to->layout.dtype, true, inside));
    return list_sides(&s->targets, to, is_cast_before ? to->layout.dtype : from->layout.dtype,
                      false, inside);
}

/* Price every combination of the parts that are listed. */
static weft_status price_candidates(struct search *s, const weft_spec *from, const weft_spec *to,
                                    const weft_cost_table *costs)
{
    s->best = s->runner_up = (struct candidate){0};
    for (int i = 0; i < s->sources.count; i++)
        for (int j = 0; j < s->targets.count; j++) {
            const struct side *source = &s->sources.list[i], *target = &s->targets.list[j];
            struct wf_step exchange = {.kind = WEFT_STEP_EXCHANGE,
                                       .from = source->spec,
                                       .to = target->spec,
                                       .living = s->living};
            struct candidate candidate;
            price_exchange(costs, &exchange);
            candidate = combine_sides(source, target, &exchange, s->options->minimize);
            if (s->options->minimize != WEFT_MINIMIZE_TIME || s->options->memory_limit != 0)
                WF_TRY(count_candidate(&candidate, from, to, costs, s->options->minimize));
            consider_candidate(s, &candidate);
        }
    return WEFT_OK;
}

/* If the fastest parts need too much memory, try the parts that need the least. */
static weft_status find_best(struct search *s, const weft_spec *from, const weft_spec *to)
{
    weft_plan_options inside = *s->options;
    const weft_cost_table *costs = inside.costs != NULL ? inside.costs : wf_cost_default();

    s->least = UINT64_MAX;
    inside.without |= UINT32_C(1) << WEFT_STEP_EXCHANGE;
    inside.minimize = WEFT_MINIMIZE_TIME;
    WF_TRY(add_parts(s, from, to, &inside));
    while (s->options->minimize != WEFT_MINIMIZE_TIME && inside.minimize++ < WEFT_MINIMIZE_MEMORY)
        WF_TRY(add_parts(s, from, to, &inside));
    WF_TRY(price_candidates(s, from, to, costs));
    if (s->best.source == NULL) {
        inside.memory_limit = 0;
        inside.minimize = WEFT_MINIMIZE_MEMORY;
        WF_TRY(add_parts(s, from, to, &inside));
    } else if (s->options->minimize == WEFT_MINIMIZE_MEMORY && s->best.peak > 0) {
        inside.memory_limit = s->best.peak;
        inside.minimize = WEFT_MINIMIZE_TIME;
        WF_TRY(add_parts(s, from, to, &inside));
    } else {
        return WEFT_OK;
    }
    WF_TRY(price_candidates(s, from, to, costs));
    return s->best.source != NULL
               ? WEFT_OK
               : wf_plan_refuse_memory(" between the meshes", s->options->memory_limit, s->least);
}

static weft_status refuse_exchange(uint32_t without)
{
    struct wf_text names = {0};

    wf_plan_add_step_names(&names, without);
    return wf_fail_text(WEFT_ERR_UNSUPPORTED, &names,
                        "every plan between these two meshes needs an exchange, and the options "
                        "exclude: %s; do not exclude exchange",
                        names.data);
}

static weft_status create_cross(const weft_spec *from, const weft_spec *to, int32_t living,
                                const weft_plan_options *options, bool second, weft_plan **out)
{
    struct search s = {.options = options, .living = living};
    const struct candidate *chosen = second ? &s.runner_up : &s.best;
    weft_status status;

    if (from->elements == 0) {
        weft_plan *plan = NULL;
        WF_TRY(wf_plan_make(from, to, 0, &plan));
        plan->least = true;
        wf_plan_add_up(plan);
        return wf_plan_finish_take(plan, out);
    }
    if (options->without >> WEFT_STEP_EXCHANGE & 1) return refuse_exchange(options->without);
    status = find_best(&s, from, to);
    if (status == WEFT_OK && chosen->source == NULL)
        status = wf_fail(WEFT_ERR_NOT_FOUND, "no other plan exists");
    if (status == WEFT_OK) status = join_plans(chosen, from, to, out);
    drop_sides(&s.sources);
    drop_sides(&s.targets);
    return status;
}

/* The plan from A to B, which have the shards of FROM and TO, as a plan from FROM to TO. */
static weft_status plan_as_one(const weft_spec *from, const weft_spec *to, const weft_spec *a,
                               const weft_spec *b, const weft_plan_options *options,
                               weft_plan **out)
{
    weft_plan *inner = NULL, *plan = NULL;
    weft_status status = wf_plan_create(a, b, options, &inner);

    if (status == WEFT_OK) status = wf_plan_make(from, to, inner->step_count, &plan);
    if (status == WEFT_OK) {
        put_steps(plan, inner, 0);
        plan->least = inner->least;
        wf_plan_add_up(plan);
        status = wf_plan_finish_take(plan, out);
    }
    weft_plan_release(&inner);
    return status;
}

weft_status wf_plan_cross(const weft_spec *from, const weft_spec *to,
                          const weft_plan_options *options, weft_plan **out)
{
    weft_spec *a = NULL, *b = NULL;
    weft_status status = WEFT_ERR_UNSUPPORTED;

    WF_TRY(wf_refine(from, to, &a, &b));
    if (a != NULL) status = plan_as_one(from, to, a, b, options, out);
    weft_spec_release(&a);
    weft_spec_release(&b);
    /* Between meshes a partial may become one of another reduction, through its value. */
    return status == WEFT_ERR_UNSUPPORTED ? create_cross(from, to, 0, options, false, out) : status;
}

weft_status wf_plan_cross_runner_up(const weft_spec *from, const weft_spec *to,
                                    const weft_plan_options *options, weft_plan **out)
{
    return create_cross(from, to, 0, options, true, out);
}

weft_status wf_plan_exchange(const weft_spec *from, const weft_spec *to, int32_t living,
                             const weft_plan_options *options, weft_plan **out)
{
    weft_plan_options exchange = *options;

    exchange.planner = WEFT_PLANNER_EXCHANGE;
    return create_cross(from, to, living, &exchange, false, out);
}
