/* Plans after a loss of ranks, carried out for all ranks and compared with every element's value.
 */
#include "exec/exec.h"
#include "plan/plan.h"
#include "support/layout.h"
#include "support/random_layout.h"
#include "support/simulate.h"
#include "support/suite.h"

#include <math.h>

enum { RANKS_MOST = 32, ELEMENTS_MOST = 400, NUMBERS = 700 };

static struct random r;

#define HOLDS(spec, claim)                                                                         \
    do {                                                                                           \
        if (!(claim))                                                                              \
            ck_abort_msg("not so: %s: %s\nWEFT_TEST_SEED=%llu\n%s", #claim, weft_last_error(),     \
                         (unsigned long long)r.seed, as_command(spec));                            \
    } while (0)

/* ---- values ---- */

static const weft_placement *placement(const weft_spec *spec, int32_t axis)
{
    return &weft_spec_placements(spec)[axis];
}

/* The reduction of SPEC's contributions, of which all its axes have the same. */
static uint32_t reduction_of(const weft_spec *spec)
{
    for (int32_t a = 0; a < weft_mesh_axes(weft_spec_mesh(spec)); a++)
        if (placement(spec, a)->kind == WEFT_PLACE_PARTIAL) return placement(spec, a)->reduction;
    return WEFT_REDUCE_SUM;
}

/* The number of the contribution that the rank at COORD holds; *COUNT: of all. */
static int32_t contribution_at(const weft_spec *spec, const int32_t *coord, int32_t *count)
{
    int32_t at = 0;

    *count = 1;
    for (int32_t a = 0; a < weft_mesh_axes(weft_spec_mesh(spec)); a++)
        if (placement(spec, a)->kind == WEFT_PLACE_PARTIAL) {
            at = at * weft_mesh_axis_size(weft_spec_mesh(spec), a) + coord[a];
            *count *= weft_mesh_axis_size(weft_spec_mesh(spec), a);
        }
    return at;
}

static double contribution(uint32_t reduction, int64_t flat, int32_t index)
{
    int64_t mixed = flat * 7 + index * 3 + flat / 5;

    return (double)(1 + mixed % (reduction == WEFT_REDUCE_PROD ? 2 : 97));
}

static double value_of(const weft_spec *from, int64_t flat)
{
    static const int32_t origin[WEFT_MAX_AXES];
    uint32_t reduction = reduction_of(from);
    double value = 0;
    int32_t count;

    (void)contribution_at(from, origin, &count);
    for (int32_t i = 0; i < count; i++) {
        double next = contribution(reduction, flat, i);
        if (i == 0)
            value = next;
        else if (reduction == WEFT_REDUCE_MIN)
            value = fmin(value, next);
        else if (reduction == WEFT_REDUCE_MAX)
            value = fmax(value, next);
        else if (reduction == WEFT_REDUCE_PROD)
            value *= next;
        else
            value += next;
    }
    return reduction == WEFT_REDUCE_AVG ? value / count : value;
}

/* ---- memory of all ranks ---- */

struct memory {
    void *at[RANKS_MOST]; /* by position */
};

static void make_memory(const weft_spec *spec, struct memory *out)
{
    const weft_mesh *mesh = weft_spec_mesh(spec);

    for (int32_t i = 0; i < weft_mesh_size(mesh); i++) {
        weft_shard shard;
        weft_spec_shard(spec, weft_mesh_rank_at(mesh, i), &shard);
        out->at[i] = calloc((size_t)shard.elements + 1, sizeof(float));
        ck_assert_ptr_nonnull(out->at[i]);
    }
}

static void free_memory(struct memory *memory)
{
    for (int32_t i = 0; i < RANKS_MOST; i++)
        free(memory->at[i]);
}

static void fill_sources(const weft_spec *from, struct memory *memory)
{
    const weft_mesh *mesh = weft_spec_mesh(from);

    for (int32_t i = 0; i < weft_mesh_size(mesh); i++) {
        int32_t coord[WEFT_MAX_AXES], count, index;
        weft_segment s;
        wf_mesh_coord_at(mesh, i, coord);
        index = contribution_at(from, coord, &count);
        for (int64_t at = 0; weft_spec_segment(from, weft_mesh_rank_at(mesh, i), NULL, at, &s);
             at += s.length)
            for (int64_t k = 0; k < s.length; k++)
                ((float *)memory->at[i])[s.local + k] =
                    (float)contribution(reduction_of(from), s.global + k, index);
    }
}

/* True if VALUE is what a rank at COORD of TO's mesh holds of an element of value WANT: the
 * identity, if another coordinate of a new contribution has the value. */
static bool is_right(const weft_spec *to, const int32_t *coord, float value, double want)
{
    uint32_t reduction = reduction_of(to);

    for (int32_t a = 0; a < weft_mesh_axes(weft_spec_mesh(to)); a++) {
        if (placement(to, a)->kind != WEFT_PLACE_PARTIAL || coord[a] == 0) continue;
        if (reduction == WEFT_REDUCE_SUM) return value == 0;
        if (reduction == WEFT_REDUCE_PROD) return value == 1;
        if (reduction != WEFT_REDUCE_AVG) return isinf(value);
    }
    return fabs((double)value - want) <= 1e-5 * fabs(want);
}

static void check_targets(const weft_spec *from, const weft_spec *to, const struct memory *memory)
{
    const weft_mesh *mesh = weft_spec_mesh(to);

    for (int32_t i = 0; i < weft_mesh_size(mesh); i++) {
        int32_t coord[WEFT_MAX_AXES];
        weft_segment s;
        wf_mesh_coord_at(mesh, i, coord);
        for (int64_t at = 0; weft_spec_segment(to, weft_mesh_rank_at(mesh, i), NULL, at, &s);
             at += s.length)
            for (int64_t k = 0; k < s.length; k++)
                HOLDS(from, is_right(to, coord, ((float *)memory->at[i])[s.local + k],
                                     value_of(from, s.global + k)));
    }
}

/* ---- who reads what ---- */

/* Add to TRAFFIC[source][reader] the elements that ranks read, or serve, in the one step of
 * PLAN. */
static void add_reads(const weft_plan *plan, int64_t (*traffic)[NUMBERS])
{
    const weft_spec *from = plan->steps[0].from, *to = plan->steps[0].to;

    for (int32_t i = 0; i < weft_mesh_size(weft_spec_mesh(to)); i++) {
        int32_t rank = weft_mesh_rank_at(weft_spec_mesh(to), i);
        struct wf_parts parts;
        weft_shard shard;
        int64_t read = 0;
        ck_assert_int_eq(wf_parts_read(from, to, plan->living, rank, NULL, &parts), WEFT_OK);
        for (uint64_t k = 0; k < parts.region_count; k++)
            for (uint32_t h = 0; h < parts.holders; h++) {
                int32_t source = parts.ranks[parts.regions[k].source + h];
                HOLDS(from, plan->living == 0 || source < plan->living);
                traffic[source][rank] += (int64_t)wf_region_elements(&parts.regions[k]);
                read += (int64_t)wf_region_elements(&parts.regions[k]);
            }
        weft_spec_shard(to, rank, &shard);
        HOLDS(from, parts.identity || read == shard.elements * parts.holders); /* each once */
        wf_parts_free(&parts);
    }
}

static void take_served(const weft_plan *plan, int64_t (*traffic)[NUMBERS])
{
    const weft_spec *from = plan->steps[0].from, *to = plan->steps[0].to;

    for (int32_t i = 0; i < weft_mesh_size(weft_spec_mesh(from)); i++) {
        int32_t rank = weft_mesh_rank_at(weft_spec_mesh(from), i);
        struct wf_parts parts;
        if (plan->living != 0 && rank >= plan->living) continue;
        ck_assert_int_eq(wf_parts_serve(from, to, plan->living, rank, NULL, &parts), WEFT_OK);
        for (uint64_t k = 0; k < parts.region_count; k++)
            traffic[rank][parts.ranks[parts.regions[k].target]] -=
                (int64_t)wf_region_elements(&parts.regions[k]);
        wf_parts_free(&parts);
    }
}

/* Elements that both shards have. */
static int64_t common_elements(const weft_spec *a, const weft_spec *b, int32_t rank)
{
    struct wf_shard has, wants;

    wf_shard_of(a, rank, &has);
    wf_shard_of(b, rank, &wants);
    if (has.elements == 0 || wants.elements == 0) return 0;
    for (int32_t d = 0; d < has.dims; d++) {
        struct wf_index mine = wf_shard_index(&has, d), theirs = wf_shard_index(&wants, d);
        has.elements = d == 0 ? 1 : has.elements;
        has.elements *= wf_index_common(&mine, &theirs);
    }
    return has.elements;
}

static void check_traffic(const weft_plan *plan)
{
    static int64_t traffic[NUMBERS][NUMBERS];
    weft_plan_step_info info = {.struct_size = sizeof info};
    const weft_spec *from = plan->steps[0].from, *to = plan->steps[0].to;
    int64_t received = 0, sent = 0;

    memset(traffic, 0, sizeof traffic);
    add_reads(plan, traffic);
    for (int32_t i = 0; i < NUMBERS; i++) {
        int64_t in = 0, out = 0;
        for (int32_t k = 0; k < NUMBERS; k++) {
            in += k != i ? traffic[k][i] : 0;
            out += k != i ? traffic[i][k] : 0;
        }
        received = wf_max_i64(received, in);
        sent = wf_max_i64(sent, out);
        /* what a rank has, it does not receive */
        if (in + traffic[i][i] > 0) HOLDS(from, traffic[i][i] == common_elements(from, to, i));
    }
    ck_assert_int_eq(weft_plan_step_get(plan, 0, &info), WEFT_OK);
    HOLDS(from, !info.exact || (info.bytes_received == 4 * (uint64_t)received &&
                                info.bytes_sent == 4 * (uint64_t)sent));
    take_served(plan, traffic);
    for (int32_t i = 0; i < NUMBERS; i++)
        for (int32_t k = 0; k < NUMBERS; k++)
            HOLDS(from, traffic[i][k] == 0); /* what is read is served */
}

/* ---- random losses ---- */

struct loss {
    int32_t holders[NUMBERS], lost[RANKS_MOST];
    size_t count;
};

/* Lose some of the ranks of MESH and number the others anew, in any order, with gaps. */
static void lose_ranks(const weft_mesh *mesh, struct loss *out)
{
    int32_t size = weft_mesh_size(mesh), of = random_in(&r, 0, 4), order[2 * RANKS_MOST];
    bool renumbers = random_chance(&r, 2);

    out->count = 0;
    random_order(&r, 2 * RANKS_MOST, order);
    for (int32_t i = 0; i < NUMBERS; i++)
        out->holders[i] = -1;
    for (int32_t i = 0; i < size; i++) {
        int32_t rank = weft_mesh_rank_at(mesh, i);
        if (random_in(&r, 1, 6) <= of)
            out->lost[out->count++] = rank;
        else
            out->holders[rank] = renumbers ? order[i] : rank;
    }
}

static void check_loss(const weft_spec *from, const weft_spec *to, const struct loss *loss,
                       int *with_loss)
{
    weft_plan_options options = {
        .struct_size = sizeof options, .holder_count = NUMBERS, .holders = loss->holders};
    weft_lost_info lost = {.struct_size = sizeof lost};
    weft_plan_info info = {.struct_size = sizeof info};
    struct memory sources = {{0}}, targets = {{0}};
    OWNED(weft_plan) *plan = NULL;
    weft_status status = weft_plan_create(from, to, &options, &plan);

    ck_assert_int_eq(weft_spec_lost(from, loss->count, loss->lost, NULL, &lost), WEFT_OK);
    if (lost.elements > 0) {
        HOLDS(from, status == WEFT_ERR_NOT_FOUND && plan == NULL);
        return;
    }
    if (loss->count == 0 && status == WEFT_ERR_UNSUPPORTED) return; /* partials on one mesh */
    HOLDS(from, status == WEFT_OK);
    ck_assert_int_eq(weft_plan_get(plan, &info), WEFT_OK);
    make_memory(from, &sources);
    make_memory(to, &targets);
    fill_sources(from, &sources);
    for (size_t i = 0; i < loss->count; i++) { /* nobody touches them */
        int32_t at = wf_mesh_index(weft_spec_mesh(from), loss->lost[i]);
        free(sources.at[at]);
        sources.at[at] = NULL;
    }
    HOLDS(from, simulate_one(plan, (const void *const *)sources.at, targets.at) == WEFT_OK);
    if (loss->count > 0) check_targets(from, to, &targets);
    if (loss->count > 0 && info.steps > 0) {
        HOLDS(from, info.steps == 1);
        check_traffic(plan);
        ++*with_loss;
    }
    free_memory(&sources);
    free_memory(&targets);
}

TEST(every_element_comes_from_a_living_rank)
{
    int cases, with_loss = 0;

    r = random_begin("test_plan_holders");
    cases = test_cases(6000);
    for (int i = 0; i < cases; i++) {
        OWNED(weft_mesh) *mesh = random_mesh(&r), *next = random_mesh(&r);
        int64_t shape[WEFT_MAX_DIMS];
        int32_t dims = random_shape(&r, shape);
        OWNED(weft_spec) *from = random_spec(&r, mesh, dims, shape);
        OWNED(weft_spec) *to = random_spec(&r, next, dims, shape);
        struct loss loss;

        if (weft_spec_elements(from) > ELEMENTS_MOST || weft_mesh_size(mesh) > RANKS_MOST ||
            weft_mesh_size(next) > RANKS_MOST)
            continue;
        lose_ranks(mesh, &loss);
        check_loss(from, to, &loss, &with_loss);
    }
    ck_assert_int_gt(with_loss, cases / 50);
}

/* ---- known cases ---- */

static weft_status plan_after(const weft_spec *from, const weft_spec *to, size_t count,
                              const int32_t *holders, weft_plan **out)
{
    weft_plan_options options = {
        .struct_size = sizeof options, .holder_count = count, .holders = holders};

    return weft_plan_create(from, to, &options, out);
}

TEST(a_newcomer_alone_receives)
{
    OWNED(weft_spec) *from = spec_of("dp=2,tp=2", "f32[8,8] R,S(1)");
    OWNED(weft_spec) *to = spec_of("dp=2,tp=2@0,1,2,3", "f32[8,8] R,S(1)");
    OWNED(weft_plan) *plan = NULL, *whole = NULL;
    weft_plan_info info = {.struct_size = sizeof info}, other = info;

    /* rank 1 is lost; rank 3 is new, has its place in the mesh, and old rank 3 is rank 1 now */
    ck_assert_int_eq(plan_after(from, to, 4, (const int32_t[]){0, -1, 2, 1}, &plan), WEFT_OK);
    ck_assert_int_eq(weft_plan_get(plan, &info), WEFT_OK);
    ck_assert_uint_eq(info.steps, 1);
    ck_assert_uint_eq(info.bytes_received_max, 128); /* by rank 3; the others have their shards */
    ck_assert_ptr_ne(info.from, from);
    ck_assert_int_eq(plan_after(from, to, 4, (const int32_t[]){0, 1, 2, 3}, &whole), WEFT_OK);
    ck_assert_int_eq(weft_plan_get(whole, &other), WEFT_OK);
    ck_assert(other.steps == 0 && other.from == from);
    ck_assert(info.digest != other.digest);
}

TEST(wrong_holders_are_refused)
{
    OWNED(weft_spec) *from = spec_of("4", "f32[8] S(0)"), *to = spec_of("2", "f32[8] S(0)");
    OWNED(weft_spec) *copies = spec_of("4", "f32[8] R"), *wide = spec_of("2", "f64[8] S(0)");
    weft_plan *plan = NULL;
    weft_plan_options options = {.struct_size = sizeof options, .holder_count = 1};
    const int32_t three[] = {0, 1, -1, 2}, twice[] = {0, 1, 1, 2}, below[] = {0, 1, -2, 2};

    options.holders = three;
    check_refused(plan_after(from, to, 4, three, &plan), WEFT_ERR_NOT_FOUND,
                  "no rank of holders has 2 of the 8 elements; the first is [4], and rank 2");
    check_refused(plan_after(copies, to, 3, three, &plan), WEFT_ERR_INVALID,
                  "holders has 3 entries, but the source has rank 3");
    check_refused(plan_after(copies, to, 4, twice, &plan), WEFT_ERR_INVALID, "holders");
    check_refused(plan_after(copies, to, 4, below, &plan), WEFT_ERR_INVALID, "holders[2] is -2");
    check_refused(plan_after(copies, to, 4, NULL, &plan), WEFT_ERR_INVALID, "holders");
    check_refused(plan_after(copies, wide, 4, three, &plan), WEFT_ERR_UNSUPPORTED, "f32 to f64");
    check_refused(weft_plan_create_batch(1, (const weft_spec *const *)&copies,
                                         (const weft_spec *const *)&to, &options, &plan),
                  WEFT_ERR_UNSUPPORTED, "weft_plan_create_batch");
    ck_assert_ptr_null(plan);
}
