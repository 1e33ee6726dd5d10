/* pairs.h - random pairs of specs to redistribute between, small enough for thousands of cases. */
#ifndef WEFT_TESTS_PAIRS_H
#define WEFT_TESTS_PAIRS_H

#include "dtensor_planner.h"
#include "comm/carry/carry.h"
#include "exec/bound.h"
#include "plan/plan.h"
#include "redistribute/values.h"
#include "support/random_layout.h"
#include "weft/exec.h"
#include "weft/plan.h"

#include <string.h>

struct pair {
    weft_spec *from, *to;
    weft_plan_options options;
    const char *costs;
    weft_cost_table *cost_table;
};

/* A mesh of some of WORLD ranks. */
static inline weft_mesh *pair_mesh(struct random *r, int32_t world)
{
    int32_t axes, sizes[4], ranks[64], total;
    weft_mesh_options options = {.struct_size = sizeof options, .ranks = ranks};
    weft_mesh *mesh = NULL;

    do {
        axes = random_in(r, 1, random_chance(r, 8) ? 4 : 3);
        total = 1;
        for (int32_t i = 0; i < axes; i++)
            total *= sizes[i] = random_in(r, 1, 4);
    } while (total > world);
    if (random_chance(r, 2))
        options.ranks = NULL;
    else
        random_order(r, world, ranks);
    ck_assert_int_eq(weft_mesh_create(axes, sizes, &options, &mesh), WEFT_OK);
    return mesh;
}

/* Another mesh: of other ranks, or of MESH's ranks as one axis. */
static inline weft_mesh *pair_other_mesh(struct random *r, const weft_mesh *mesh, int32_t world)
{
    weft_mesh *flat = NULL;

    if (!random_chance(r, 3)) return pair_mesh(r, world);
    ck_assert_int_eq(weft_mesh_flatten(mesh, NULL, NULL, &flat), WEFT_OK);
    return flat;
}

static inline void pair_placements(struct random *r, const weft_mesh *mesh, int32_t dims,
                                   const int64_t *shape, weft_placement *out)
{
    random_placements(r, mesh, dims, shape, out);
    for (int32_t i = 0; i < weft_mesh_axes(mesh); i++) /* sums and averages may be mixed */
        if (out[i].kind == WEFT_PLACE_PARTIAL && random_chance(r, 3) &&
            (out[i].reduction == WEFT_REDUCE_SUM || out[i].reduction == WEFT_REDUCE_AVG))
            out[i].reduction = WEFT_REDUCE_SUM + WEFT_REDUCE_AVG - out[i].reduction;
}

static inline weft_spec *pair_spec(struct random *r, const weft_mesh *mesh, uint32_t dtype,
                                   int32_t dims, const int64_t *shape)
{
    weft_placement placements[WEFT_MAX_AXES];
    weft_spec *spec = NULL;
    bool defined;

    do {
        pair_placements(r, mesh, dims, shape, placements);
        defined = true;
        for (int32_t a = 0; a < weft_mesh_axes(mesh); a++)
            if (placements[a].kind == WEFT_PLACE_PARTIAL)
                defined = defined && wf_reduction_defined(placements[a].reduction, dtype);
    } while (!defined);
    ck_assert_msg(weft_spec_create(mesh, dtype, dims, shape, placements, &spec) == WEFT_OK, "%s",
                  weft_last_error());
    return spec;
}

/* FROM with a new placement of one axis, as for a single collective step. */
static inline weft_spec *pair_neighbour(struct random *r, const weft_spec *from)
{
    const struct wf_layout *layout = &from->layout;
    int32_t axes = layout->mesh->axes, axis = random_in(r, 0, axes - 1);
    weft_placement placements[WEFT_MAX_AXES], drawn[WEFT_MAX_AXES];
    weft_spec *spec = NULL;

    for (int tries = 0; tries < 20 && spec == NULL; tries++) {
        memcpy(placements, layout->placements, sizeof placements);
        random_placements(r, layout->mesh, layout->dims, layout->shape, drawn);
        placements[axis] = drawn[axis];
        for (int32_t a = 0; a < axes; a++)
            placements[a].turn = 0;
        if (drawn[axis].kind == WEFT_PLACE_PARTIAL &&
            !wf_reduction_defined(drawn[axis].reduction, layout->dtype))
            continue;
        if (weft_spec_create(layout->mesh, layout->dtype, layout->dims, layout->shape, placements,
                             &spec) != WEFT_OK)
            spec = NULL;
    }
    return spec != NULL ? spec : weft_spec_retain(from);
}

static inline bool pair_casts(const struct pair *pair)
{
    return weft_spec_dtype(pair->from) != weft_spec_dtype(pair->to);
}

/* Give the target another dtype, if a cast to the one that is drawn is offered. */
static inline void pair_cast(struct random *r, struct pair *pair)
{
    uint32_t dtype = (uint32_t)random_in(r, WEFT_DTYPE_I8, WEFT_DTYPE_F8E5M2);
    weft_spec *to = NULL;

    if (wf_cast_kind(weft_spec_dtype(pair->from), dtype) == WF_CAST_REFUSED) return;
    ck_assert_int_eq(weft_spec_with_dtype(pair->to, dtype, &to), WEFT_OK);
    weft_spec_release(&pair->to);
    pair->to = to;
}

static inline void pair_options(struct random *r, struct pair *out)
{
    static const char *const tables[] = {"default", "cpu", "dtensor"};

    out->costs = tables[random_in(r, 0, 2)];
    ck_assert_int_eq(weft_cost_table_open(out->costs, &out->cost_table), WEFT_OK);
    out->options = (weft_plan_options){.struct_size = sizeof out->options,
                                       .costs = out->cost_table,
                                       .minimize = (uint32_t)random_in(r, 0, 2)};
    if (random_chance(r, 4)) out->options.planner = WEFT_PLANNER_EXCHANGE;
    if (out->from->layout.mesh == out->to->layout.mesh && !pair_casts(out) &&
        !has_new_kinds(out->from) && !has_new_kinds(out->to) && random_chance(r, 4))
        out->options.planner = random_chance(r, 2) ? DTENSOR_GREEDY : DTENSOR_GRAPH;
    if (random_chance(r, 4)) out->options.without = 1u << WEFT_STEP_PERMUTE;
    /* Between two meshes, and with that planner, there is mostly no plan without an exchange. */
    if (out->options.without != 0 && out->from->layout.mesh == out->to->layout.mesh &&
        out->options.planner != WEFT_PLANNER_EXCHANGE)
        out->options.without |= 1u << WEFT_STEP_EXCHANGE;
}

/* MOST[d]: maximum length of the dimensions of a tensor with d dimensions. */
static inline struct pair random_pair_within(struct random *r, int32_t world, const int32_t *most)
{
    static const uint32_t dtypes[] = {
        WEFT_DTYPE_F32, WEFT_DTYPE_F64,    WEFT_DTYPE_BF16,   WEFT_DTYPE_F16, WEFT_DTYPE_I8,
        WEFT_DTYPE_U8,  WEFT_DTYPE_I16,    WEFT_DTYPE_U16,    WEFT_DTYPE_I32, WEFT_DTYPE_U32,
        WEFT_DTYPE_I64, WEFT_DTYPE_F8E4M3, WEFT_DTYPE_F8E5M2, WEFT_DTYPE_C64, WEFT_DTYPE_C128,
        WEFT_DTYPE_U64, WEFT_DTYPE_BOOL};
    uint32_t dtype = dtypes[random_in(r, 0, (int32_t)WF_COUNT(dtypes) - 1)];
    int32_t dims = random_in(r, 0, 3);
    int64_t shape[WEFT_MAX_DIMS];
    weft_mesh *mesh = pair_mesh(r, world), *other;
    struct pair pair = {0};

    other = random_chance(r, 3) ? pair_other_mesh(r, mesh, world) : weft_mesh_retain(mesh);
    if (random_chance(r, 2)) {
        weft_mesh *swapped = mesh;
        mesh = other;
        other = swapped;
    }
    for (int32_t d = 0; d < dims; d++)
        shape[d] = random_in(r, random_chance(r, 8) ? 0 : 1, most[dims]);
    pair.from = pair_spec(r, mesh, dtype, dims, shape);
    pair.to = mesh == other && random_chance(r, 3) ? pair_neighbour(r, pair.from)
                                                   : pair_spec(r, other, dtype, dims, shape);
    if (random_chance(r, 2)) pair_cast(r, &pair);
    pair_options(r, &pair);
    weft_mesh_release(&mesh);
    weft_mesh_release(&other);
    return pair;
}

static inline struct pair random_pair(struct random *r, int32_t world)
{
    static const int32_t most[] = {0, 40, 9, 6};

    return random_pair_within(r, world, most);
}

static inline void pair_release(struct pair *pair)
{
    weft_spec_release(&pair->from);
    weft_spec_release(&pair->to);
    weft_cost_table_release(&pair->cost_table);
}

/* A pair that is released where its block ends. */
#define OWNED_PAIR __attribute__((cleanup(pair_release))) struct pair

/* True if the pair may have no plan.  Partials cannot change their kind, and are not narrowed
 * before they are reduced.  With excluded steps, or in one step, the planner decides. */
static inline bool pair_may_be_refused(const struct pair *pair)
{
    const struct wf_layout *from = &pair->from->layout, *to = &pair->to->layout;

    if (pair->options.without != 0 || pair->options.planner != WEFT_PLANNER_SEARCH) return true;
    for (int32_t a = 0; from->mesh == to->mesh && a < from->mesh->axes; a++)
        if (from->placements[a].kind == WEFT_PLACE_PARTIAL &&
            to->placements[a].kind == WEFT_PLACE_PARTIAL &&
            (from->placements[a].reduction != to->placements[a].reduction ||
             wf_cast_kind(from->dtype, to->dtype) == WF_CAST_NARROWS))
            return true;
    return false;
}

/* PAIR as a line of tests/data/known.txt for DTensor's planners, which the tool does not have. */
static inline void pair_dtensor_line(const struct pair *pair, struct wf_text *out)
{
    const weft_spec *sides[] = {pair->from, pair->to};

    wf_text_add(out, "dtensor_sim %s ",
                pair->options.planner == DTENSOR_GREEDY ? "greedy" : "graph");
    wf_mesh_add_text(pair->from->layout.mesh, out);
    for (int i = 0; i < 2; i++) {
        char spec[1024];
        ck_assert_int_eq(weft_spec_print(sides[i], spec, sizeof spec, NULL), WEFT_OK);
        wf_text_add(out, " '%s'", spec);
    }
}

/* PAIR as a command line. */
static inline const char *pair_command(const struct pair *pair, const char *command)
{
    static _Thread_local char text[4096];
    static const char *const measures[] = {"time", "bytes", "memory"};
    const struct wf_layout *from = &pair->from->layout, *to = &pair->to->layout;
    struct wf_text out = {0};

    if (pair->options.planner > WEFT_PLANNER_EXCHANGE) {
        pair_dtensor_line(pair, &out);
        ck_assert_int_eq(wf_text_copy_out(&out, text, sizeof text, NULL), WEFT_OK);
        return text;
    }
    wf_text_add(&out, "weft %s --mesh ", command);
    wf_mesh_add_text(from->mesh, &out);
    if (to->mesh != from->mesh) {
        wf_text_add(&out, " --to-mesh ");
        wf_mesh_add_text(to->mesh, &out);
    }
    wf_text_add(&out, " --dtype %s", wf_dtype_name(from->dtype));
    if (to->dtype != from->dtype) wf_text_add(&out, " --to-dtype %s", wf_dtype_name(to->dtype));
    wf_text_add(&out, " --shape '");
    wf_shape_add_text(from->dims, from->shape, &out);
    wf_text_add(&out, "' --from '");
    wf_placements_add_text(from->placements, from->mesh->axes, &out);
    wf_text_add(&out, "' --to '");
    wf_placements_add_text(to->placements, to->mesh->axes, &out);
    wf_text_add(&out, "' --costs %s --minimize %s", pair->costs, measures[pair->options.minimize]);
    wf_text_add(&out, " --planner %s", dtensor_planner_name(pair->options.planner));
    for (uint32_t kind = 0, given = 0; kind < WEFT_STEP_KINDS; kind++)
        if (pair->options.without >> kind & 1)
            wf_text_add(&out, "%s%s", given++ == 0 ? " --without " : ",", weft_step_name(kind));
    ck_assert_int_eq(wf_text_copy_out(&out, text, sizeof text, NULL), WEFT_OK);
    return text;
}

/* ---- shards of all ranks in one process ---- */

struct shards {
    void **at; /* by position in the spec's mesh */
};

static inline struct shards shards_of(const weft_spec *spec)
{
    const weft_mesh *mesh = weft_spec_mesh(spec);
    size_t element = weft_dtype_bytes(weft_spec_dtype(spec));
    struct shards shards = {.at = calloc((size_t)weft_mesh_size(mesh), sizeof(void *))};
    weft_shard shard;

    for (int32_t i = 0; i < weft_mesh_size(mesh); i++) {
        weft_spec_shard(spec, weft_mesh_rank_at(mesh, i), &shard);
        shards.at[i] = malloc((size_t)shard.elements * element + 1);
        memset(shards.at[i], 0xa5, (size_t)shard.elements * element + 1);
    }
    return shards;
}

static inline void shards_free(const weft_spec *spec, struct shards *shards)
{
    for (int32_t i = 0; i < weft_mesh_size(weft_spec_mesh(spec)); i++)
        free(shards->at[i]);
    free(shards->at);
    shards->at = NULL;
}

static inline void shards_fill(const struct values *values, const weft_spec *spec,
                               const struct shards *shards)
{
    const weft_mesh *mesh = weft_spec_mesh(spec);

    for (int32_t i = 0; i < weft_mesh_size(mesh); i++)
        values_fill(values, spec, weft_mesh_rank_at(mesh, i), NULL, shards->at[i]);
}

/* True if either side has an SS placement. */
static inline bool pair_is_strided(const struct pair *pair)
{
    const weft_spec *sides[] = {pair->from, pair->to};

    for (int i = 0; i < 2; i++)
        for (int32_t a = 0; a < weft_mesh_axes(weft_spec_mesh(sides[i])); a++)
            if (weft_spec_placements(sides[i])[a].kind == WEFT_PLACE_STRIDED) return true;
    return false;
}

/* The bytes of RANK's shard of FROM or of TO in the wider of their dtypes, of the larger shard. */
static inline uint64_t cast_room(const weft_spec *from, const weft_spec *to, int32_t rank)
{
    uint64_t before = weft_dtype_bytes(weft_spec_dtype(from));
    uint64_t after = weft_dtype_bytes(weft_spec_dtype(to)), wider = before > after ? before : after;
    uint64_t sources = weft_spec_shard_bytes(from, rank) / before;
    uint64_t targets = weft_spec_shard_bytes(to, rank) / after;

    return (sources > targets ? sources : targets) * wider;
}

/* True if the backend of COMM has no reduce-scatter of its own for a step from FROM to TO. */
static inline bool packs_contributions(const weft_spec *from, const weft_spec *to,
                                       const weft_comm *comm)
{
    const weft_spec *sides[] = {from, to};

    for (int32_t a = 0; a < from->layout.mesh->axes; a++)
        for (int i = 0; i < 2 && from->layout.placements[a].kind == WEFT_PLACE_PARTIAL; i++)
            if (!wf_backend_has(comm, WEFT_COLL_REDUCE_SCATTER, sides[i]->layout.dtype,
                                from->layout.placements[a].reduction, WEFT_SUPPORT_NATIVE))
                return true;
    return false;
}

/* What a step from FROM to TO takes on the rank of COMM beyond its plan, if the backend casts in a
 * separate step (CASTS_APART), or has no reduce-scatter for it: the contributions of all ranks of
 * the mesh then arrive before they are reduced. */
static inline uint64_t room_beyond(const weft_spec *from, const weft_spec *to,
                                   const weft_comm *comm, bool casts_apart)
{
    uint64_t shard = cast_room(from, to, weft_comm_rank(comm)) + 255, sum = 0;

    if (casts_apart && weft_spec_dtype(from) != weft_spec_dtype(to)) sum += shard;
    if (packs_contributions(from, to, comm))
        sum += (uint64_t)weft_mesh_size(weft_spec_mesh(from)) * shard;
    return sum;
}

/* What all steps of PLAN take so, and all members of a plan of a batch. */
static inline uint64_t scratch_beyond(const weft_plan *plan, const weft_comm *comm,
                                      bool casts_apart)
{
    weft_plan_step_info step = {.struct_size = sizeof step};
    uint64_t sum = 0;

    for (size_t i = 0; weft_plan_step_get(plan, i, &step) == WEFT_OK; i++)
        if (step.from != NULL) sum += room_beyond(step.from, step.to, comm, casts_apart);
    for (uint32_t i = 0; plan->members != NULL && i < plan->member_count; i++)
        sum += room_beyond(plan->members[i].from, plan->members[i].to, comm, casts_apart);
    return sum;
}

/* Fails if BOUND has a size of scratch that weft_plan_scratch does not state for COMM and OPTIONS.
 * If COMPARED, it must not be larger than the scratch that PLAN states, in pieces of 256 bytes.
 * Ranks may take more that pack although COSTS, the costs of the plan, are the costs of pulls.  A
 * backend without kernels for the casts may take the cast shards more, and one without
 * the reduce-scatter the contributions. */
static inline weft_status scratch_check(const weft_plan *plan, weft_comm *comm,
                                        const weft_bind_options *options, const weft_bound *bound,
                                        const weft_cost_table *costs, bool compared)
{
    weft_plan_info info = {.struct_size = sizeof info};
    uint64_t has = weft_bound_scratch(bound), stated = 0, most;
    uint32_t casts = 0;

    WF_TRY(weft_plan_get(plan, &info));
    WF_TRY(wf_casts_find(plan, comm, &casts));
    WF_TRY(weft_plan_scratch(plan, comm, options, &stated));
    if (has != stated)
        return wf_fail(WEFT_ERR_INTERNAL,
                       "rank %d has %llu bytes of scratch, weft_plan_scratch states %llu",
                       weft_comm_rank(comm), (unsigned long long)has, (unsigned long long)stated);
    most = info.peak_bytes + 4 * 255;
    most += scratch_beyond(plan, comm, (casts & WF_CASTS_REGIONS) == 0);
    if (!compared || (weft_bound_is_packed(bound) && costs->one_sided) || has <= most)
        return WEFT_OK;
    return wf_fail(WEFT_ERR_INTERNAL, "rank %d has %llu bytes of scratch, the plan %llu",
                   weft_comm_rank(comm), (unsigned long long)has,
                   (unsigned long long)info.peak_bytes);
}

#endif
