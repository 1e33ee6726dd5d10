/* The bytes that plans state, compared with a count of every index of every rank. */
#include "plan/figures/figures.h"
#include "exec/exec.h"
#include "support/planning.h"
#include "support/random_layout.h"
#include "support/suite.h"

#include <string.h>

/* ---- the oracle ---- */

/* The indices of one rank in every dimension, listed one by one.  A rank that is a non-member, or
 * does not own the tensor, has none. */
struct listed {
    bool member, holds;
    int32_t coord[WEFT_MAX_AXES];
    int64_t count[WEFT_MAX_DIMS], index[WEFT_MAX_DIMS][ORACLE_LONGEST];
};

static void list_shard(const weft_spec *spec, int32_t rank, struct listed *out)
{
    out->member = wf_mesh_coord(spec->layout.mesh, rank, out->coord);
    out->holds = out->member && oracle_owns(spec, out->coord);
    for (int32_t d = 0; out->member && d < spec->layout.dims; d++)
        out->count[d] = oracle_indices(spec, out->coord, d, out->index[d]);
}

static uint64_t listed_elements(const struct listed *list, int32_t dims)
{
    uint64_t elements = list->holds;

    for (int32_t d = 0; d < dims && list->holds; d++)
        elements *= (uint64_t)list->count[d];
    return elements;
}

static uint64_t listed_common(const struct listed *a, const struct listed *b, int32_t dims)
{
    uint64_t common = a->holds && b->holds;

    for (int32_t d = 0; d < dims && common > 0; d++) {
        uint64_t same = 0;
        for (int64_t i = 0; i < a->count[d]; i++)
            for (int64_t j = 0; j < b->count[d]; j++)
                same += a->index[d][i] == b->index[d][j];
        common *= same;
    }
    return common;
}

static bool partial_stays(const weft_plan_step_info *step, int32_t axis)
{
    return step->from->layout.mesh == step->to->layout.mesh &&
           step->from->layout.placements[axis].kind == WEFT_PLACE_PARTIAL &&
           step->to->layout.placements[axis].kind == WEFT_PLACE_PARTIAL;
}

static uint64_t group_of(const weft_plan_step_info *step)
{
    uint64_t ranks = 1;

    for (int32_t a = 0; a < step->from->layout.mesh->axes; a++)
        if (step->axes >> a & 1) ranks *= (uint64_t)step->from->layout.mesh->axis[a].size;
    return ranks;
}

/* Elements that RANK receives in STEP. */
static uint64_t received_elements(const weft_plan_step_info *step, int32_t rank)
{
    static struct listed has, wants;
    const struct wf_layout *from = &step->from->layout, *to = &step->to->layout;
    uint64_t holders = 1, ranks = group_of(step), elements;

    if (step->kind == WEFT_STEP_SLICE || step->kind == WEFT_STEP_PARTIAL) return 0;
    list_shard(step->from, rank, &has);
    list_shard(step->to, rank, &wants);
    elements = listed_elements(&wants, to->dims);
    if (step->kind == WEFT_STEP_ALL_REDUCE)
        return 2 * (ranks - 1) * ((elements + ranks - 1) / ranks);
    if (!wants.member) return 0;
    for (int32_t a = 0; a < to->mesh->axes; a++)
        if (to->placements[a].kind == WEFT_PLACE_PARTIAL && !partial_stays(step, a) &&
            to->placements[a].reduction != WEFT_REDUCE_AVG && wants.coord[a] != 0)
            return 0;
    for (int32_t a = 0; a < from->mesh->axes; a++)
        if (from->placements[a].kind == WEFT_PLACE_PARTIAL && !partial_stays(step, a))
            holders *= (uint64_t)from->mesh->axis[a].size;
    return holders * elements - listed_common(&has, &wants, to->dims);
}

static uint64_t travelling_bytes(const weft_plan_step_info *step)
{
    return wf_dtype_bytes(step->cast == WEFT_CAST_AFTER ? step->from->layout.dtype
                                                        : step->to->layout.dtype);
}

static int32_t greatest_rank(const weft_mesh *mesh)
{
    int32_t most = 0;

    for (int32_t i = 0; i < weft_mesh_size(mesh); i++)
        if (weft_mesh_rank_at(mesh, i) > most) most = weft_mesh_rank_at(mesh, i);
    return most;
}

static void check_plan(const weft_plan *plan, const char *what)
{
    weft_plan_info info = {.struct_size = sizeof info};
    weft_plan_step_info step = {.struct_size = sizeof step};
    uint64_t most = 0, of_step[WF_PATH_MAX] = {0};
    int32_t last;

    ck_assert_int_eq(weft_plan_get(plan, &info), WEFT_OK);
    last = greatest_rank(info.from->layout.mesh);
    if (greatest_rank(info.to->layout.mesh) > last) last = greatest_rank(info.to->layout.mesh);
    for (int32_t rank = 0; rank <= last; rank++) {
        uint64_t sum = 0;
        for (uint32_t i = 0; weft_plan_step_get(plan, i, &step) == WEFT_OK; i++) {
            uint64_t bytes = received_elements(&step, rank) * travelling_bytes(&step);
            if (bytes > of_step[i]) of_step[i] = bytes;
            sum += bytes;
        }
        if (sum > most) most = sum;
    }
    ck_assert_msg(info.bytes_received_max == most, "%s: %llu bytes, counted %llu", what,
                  (unsigned long long)info.bytes_received_max, (unsigned long long)most);
    for (uint32_t i = 0; weft_plan_step_get(plan, i, &step) == WEFT_OK; i++)
        ck_assert_msg(step.bytes_received == of_step[i], "%s: step %u: %llu bytes, counted %llu",
                      what, i + 1, (unsigned long long)step.bytes_received,
                      (unsigned long long)of_step[i]);
}

/* The bytes sent, compared with the lists of all readers. */
static void check_sent(const weft_plan *plan, const char *what)
{
    weft_plan_step_info step = {.struct_size = sizeof step};

    for (uint32_t i = 0; weft_plan_step_get(plan, i, &step) == WEFT_OK; i++) {
        uint64_t sent, received;
        ck_assert(step.exact);
        ck_assert_int_eq(wf_step_measure(&plan->steps[i], &sent, &received), WEFT_OK);
        ck_assert_msg(step.bytes_sent == sent, "%s: step %u sends %llu bytes, listed %llu", what,
                      i + 1, (unsigned long long)step.bytes_sent, (unsigned long long)sent);
    }
}

/* ---- random plans ---- */

static const char *describe(const weft_spec *from, const weft_spec *to, uint32_t minimize,
                            const char *costs)
{
    static const char *const names[] = {"time", "bytes", "memory"};
    static char text[16384];
    struct wf_text out = {0};

    wf_text_add(&out, "weft plan --mesh '");
    wf_mesh_add_text(from->layout.mesh, &out);
    wf_text_add(&out, "' --to-mesh '");
    wf_mesh_add_text(to->layout.mesh, &out);
    wf_text_add(&out, "' --shape '");
    wf_shape_add_text(from->layout.dims, from->layout.shape, &out);
    wf_text_add(&out, "' --from '");
    wf_placements_add_text(from->layout.placements, from->layout.mesh->axes, &out);
    wf_text_add(&out, "' --to '");
    wf_placements_add_text(to->layout.placements, to->layout.mesh->axes, &out);
    wf_text_add(&out, "' --minimize %s --costs %s", names[minimize], costs);
    ck_assert_int_eq(wf_text_copy_out(&out, text, sizeof text, NULL), WEFT_OK);
    return text;
}

/* The quantity that OPTIONS minimize is not less in the plan by time, unless that plan is long. */
static void check_not_worse(const weft_plan *plan, const weft_plan_options *options,
                            const char *text)
{
    weft_plan_info mine = {.struct_size = sizeof mine}, other = {.struct_size = sizeof other};
    weft_plan_options by_time = *options;
    OWNED(weft_plan) *fast = NULL;

    by_time.minimize = WEFT_MINIMIZE_TIME;
    ck_assert_int_eq(weft_plan_get(plan, &mine), WEFT_OK);
    ck_assert_int_eq(weft_plan_create(mine.from, mine.to, &by_time, &fast), WEFT_OK);
    ck_assert_int_eq(weft_plan_get(fast, &other), WEFT_OK);
    ck_assert_msg(other.steps > 6 || (options->minimize == WEFT_MINIMIZE_BYTES
                                          ? mine.bytes_received_max <= other.bytes_received_max
                                          : mine.peak_bytes <= other.peak_bytes),
                  "%s: by time %llu bytes, scratch %llu", text,
                  (unsigned long long)other.bytes_received_max,
                  (unsigned long long)other.peak_bytes);
}

/* Plan one random redistribution and count it; false if there is no such plan. */
static bool check_random(struct random *r, bool crosses)
{
    static const char *const tables[] = {"default", "cpu", "dtensor"};
    weft_plan_options options = {.struct_size = sizeof options};
    int64_t shape[WEFT_MAX_DIMS];
    int32_t dims = random_shape(r, shape);
    weft_mesh *mesh = random_mesh(r), *other = crosses ? random_mesh(r) : weft_mesh_retain(mesh);
    weft_spec *from = random_spec(r, mesh, dims, shape), *to = random_spec(r, other, dims, shape);
    const char *table = tables[random_in(r, 0, 2)];
    weft_cost_table *costs = NULL;
    weft_plan *plan = NULL;
    bool planned;

    ck_assert_int_eq(weft_cost_table_open(table, &costs), WEFT_OK);
    options.costs = costs;
    options.minimize = (uint32_t)random_in(r, 0, 2);
    if (random_chance(r, 8)) options.planner = WEFT_PLANNER_EXCHANGE;
    planned = weft_plan_create(from, to, &options, &plan) == WEFT_OK;
    if (planned) {
        check_plan(plan, describe(from, to, options.minimize, table));
        check_sent(plan, describe(from, to, options.minimize, table));
        if (options.minimize != WEFT_MINIMIZE_TIME)
            check_not_worse(plan, &options, describe(from, to, options.minimize, table));
    }
    weft_plan_release(&plan);
    weft_cost_table_release(&costs);
    weft_spec_release(&from);
    weft_spec_release(&to);
    weft_mesh_release(&mesh);
    weft_mesh_release(&other);
    return planned;
}

static void check_many(const char *name, bool crosses)
{
    struct random r = {.state = test_seed_begin(name) | 1};
    int wanted = test_cases(1500), planned = 0;

    for (int i = 0; i < wanted; i++)
        planned += check_random(&r, crosses);
    printf("%s: %d plans\n", name, planned);
    ck_assert_int_gt(planned, wanted / 3);
}

TEST(random_plans_on_one_mesh_state_what_ranks_receive)
{
    check_many("plan_count_one_mesh", false);
}

TEST(random_plans_between_meshes_state_what_ranks_receive)
{
    check_many("plan_count_meshes", true);
}

/* ---- known cases ---- */

static uint64_t stated(const char *mesh, const char *to_mesh, const char *shape, const char *from,
                       const char *to, uint32_t minimize)
{
    weft_plan_options options = {.struct_size = sizeof options, .minimize = minimize};
    weft_plan_info info = {.struct_size = sizeof info};
    struct pair pair;
    weft_plan *plan;

    open_pair(&pair, mesh, to_mesh, shape, from, to);
    plan = plan_pair(&pair, &options);
    check_plan(plan, describe(pair.from, pair.to, minimize, "default"));
    ck_assert_int_eq(weft_plan_get(plan, &info), WEFT_OK);
    weft_plan_release(&plan);
    close_pair(&pair);
    return info.bytes_received_max;
}

TEST(different_ranks_receive_most_in_different_steps)
{
    ck_assert_uint_le(stated("2x3", NULL, "7,10", "P,P", "S(0),S(1)", WEFT_MINIMIZE_BYTES), 316);
}

TEST(strided_targets_are_counted)
{
    stated("5x2", NULL, "23,5,23", "R,SS(2,1)", "SS(1,7),R", WEFT_MINIMIZE_BYTES);
}

TEST(what_is_already_there_costs_nothing_between_meshes)
{
    static const char to[] = "2x2x3@0,2,3,4,5,6,7,8,9,11,12,13";

    ck_assert_uint_eq(stated("4x3", to, "17,17", "R,R", "R,P,R", WEFT_MINIMIZE_TIME), 0);
    ck_assert_uint_eq(stated("4x3", to, "17,17", "R,R", "R,P,R", WEFT_MINIMIZE_BYTES), 0);
}

/* ---- estimates ---- */

static bool is_exact(const char *mesh, const char *shape, const char *from, const char *to)
{
    weft_plan_info info = {.struct_size = sizeof info};
    weft_plan_step_info step = {.struct_size = sizeof step};
    struct pair pair;
    weft_plan *plan;
    char text[1024];

    open_pair(&pair, mesh, NULL, shape, from, to);
    plan = plan_pair(&pair, NULL);
    ck_assert_int_eq(weft_plan_get(plan, &info), WEFT_OK);
    ck_assert_int_eq(weft_plan_step_get(plan, 0, &step), WEFT_OK);
    ck_assert(step.exact == info.exact);
    ck_assert_int_eq(weft_plan_print(plan, text, sizeof text, NULL), WEFT_OK);
    ck_assert((strstr(text, "about ") == NULL) == (info.exact && info.scratch_exact));
    ck_assert((strstr(text, "estimated") == NULL) == info.exact);
    weft_plan_release(&plan);
    close_pair(&pair);
    return info.exact;
}

TEST(many_distinct_shards_are_estimated_and_marked)
{
    ck_assert(is_exact("256x256", "1000,1001", "S(0),S(1)", "R,R"));
    ck_assert(!is_exact("512x256", "1000,1001", "S(0),S(1)", "R,R"));
    ck_assert(is_exact("512x256", "1024,1024", "S(0),S(1)", "R,R")); /* all of one size */
    ck_assert(is_exact("512x256x64", "1000,1001", "S(0),R,R", "R,R,R"));
    ck_assert(is_exact("100000", "1001", "S(0)", "P")); /* no communication */
}

TEST(shards_of_many_runs_are_estimated_and_marked)
{
    ck_assert(is_exact("8", "10000,3", "SS(0,999)", "SS(0,1001)"));
    ck_assert(!is_exact("8", "10000000,3", "SS(0,1000003)", "SS(0,999983)"));
    ck_assert(is_exact("8", "10000000,3", "SS(0,1000003)", "R"));
    ck_assert(!is_exact("8x8", "1000000007,3", "SS(0,100000007),SS(0,1000003)",
                        "SS(0,99999989)[1],SS(0,1000033)[0]"));
}

/* The scratch of one exchange among RANKS ranks. */
static weft_plan_info exchange_among(const char *ranks, const char *shape, const char *from,
                                     const char *to)
{
    weft_plan_options options = {.struct_size = sizeof options, .planner = WEFT_PLANNER_EXCHANGE};
    weft_plan_info info = {.struct_size = sizeof info};
    weft_plan_step_info step = {.struct_size = sizeof step};
    OWNED_PAIR pair = {0};
    weft_plan *plan;
    char text[4096];

    open_pair(&pair, ranks, NULL, shape, from, to);
    plan = plan_pair(&pair, &options);
    ck_assert_int_eq(weft_plan_get(plan, &info), WEFT_OK);
    ck_assert_int_eq(weft_plan_step_get(plan, 0, &step), WEFT_OK);
    ck_assert(step.scratch_exact == info.scratch_exact && step.scratch_bytes == info.peak_bytes);
    ck_assert(info.exact && info.peak_bytes % WF_SCRATCH_UNIT == 0);
    ck_assert_int_eq(weft_plan_print(plan, text, sizeof text, NULL), WEFT_OK);
    ck_assert((strstr(text, " of the least possible), about ") == NULL) == info.scratch_exact);
    ck_assert_int_eq(weft_plan_get(plan, &info), WEFT_OK); /* as it was kept */
    ck_assert(step.scratch_exact == info.scratch_exact);
    weft_plan_release(&plan);
    return info;
}

TEST(scratch_of_many_ranks_is_estimated_and_marked)
{
    static const char parts[] = "B(0;4096,1024,1024)";
    weft_plan_info few = exchange_among("182", "6144,64", parts, "S(0)");
    weft_plan_info most = exchange_among("256", "6144,64", parts, "S(0)");

    ck_assert(few.scratch_exact && few.peak_bytes == 0);
    ck_assert(most.scratch_exact && most.peak_bytes == 0);
    ck_assert(!exchange_among("257", "6144,64", parts, "S(0)").scratch_exact);
    ck_assert(!exchange_among("257", "1001,1003", "S(0)", "S(1)").scratch_exact);
}

/* ---- more than 2^64 - 1 bytes ---- */

/* The exchange that reduces 2^61 or more bytes from each of 8 ranks. */
static weft_plan_info reduce_huge(const char *shape, const char *to, uint64_t limit,
                                  weft_status expected)
{
    weft_plan_options options = {
        .struct_size = sizeof options, .planner = WEFT_PLANNER_EXCHANGE, .memory_limit = limit};
    weft_plan_info info = {.struct_size = sizeof info};
    weft_plan_step_info step = {.struct_size = sizeof step};
    OWNED_PAIR pair = {0};
    weft_plan *plan = NULL;

    open_pair_of(&pair, "i8", "8", NULL, shape, "P", to);
    ck_assert_int_eq(weft_plan_create(pair.from, pair.to, &options, &plan), expected);
    if (plan != NULL) {
        ck_assert_int_eq(weft_plan_get(plan, &info), WEFT_OK);
        ck_assert_int_eq(weft_plan_step_get(plan, 0, &step), WEFT_OK);
        ck_assert_uint_eq(step.bytes_received, info.bytes_received_max);
        ck_assert(step.exact == (info.exact && step.bytes_sent != UINT64_MAX));
        ck_assert(step.scratch_bytes == info.peak_bytes);
        ck_assert(step.scratch_exact == info.scratch_exact);
    }
    weft_plan_release(&plan);
    return info;
}

TEST(figures_saturate_and_are_marked)
{
    static const char *const targets[] = {"R", "O(0)", "G(0;2305843009213693952,0,0,0,0,0,0,0)"};

    for (size_t i = 0; i < WF_COUNT(targets); i++) {
        weft_plan_info fits = reduce_huge("2305843009213693952", targets[i], 0, WEFT_OK);
        ck_assert_uint_eq(fits.bytes_received_max, UINT64_C(7) << 61);
        ck_assert_uint_eq(fits.peak_bytes, UINT64_MAX); /* 2^64 */
        ck_assert(fits.exact && !fits.scratch_exact);
        (void)reduce_huge("2305843009213693952", targets[i], 65536, WEFT_ERR_INVALID);
    }
    for (size_t i = 0; i < 2; i++) {
        weft_plan_info beyond = reduce_huge("4611686018427387904", targets[i], 0, WEFT_OK);
        ck_assert_uint_eq(beyond.bytes_received_max, UINT64_MAX);
        ck_assert(!beyond.exact && !beyond.scratch_exact);
    }
    ck_assert_uint_eq(reduce_huge("1152921504606846976", "R", 0, WEFT_OK).peak_bytes, UINT64_C(1)
                                                                                          << 63);
}
