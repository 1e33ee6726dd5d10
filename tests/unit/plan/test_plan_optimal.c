/* Plans are optimal: compared with exhaustive search, and never more expensive than PyTorch 2.11
 * for the pairs recorded in tests/data/plans.txt. */
#include "support/costs.h"
#include "support/exhaustive.h"
#include "support/planning.h"
#include "support/suite.h"

#include <string.h>

/* ---- PyTorch's steps, priced by our table ---- */

static uint32_t kind_of(char from, char to)
{
    static const struct {
        char from, to;
        uint32_t kind;
    } kinds[] = {{'S', 'R', WEFT_STEP_ALL_GATHER}, {'P', 'S', WEFT_STEP_REDUCE_SCATTER},
                 {'P', 'R', WEFT_STEP_ALL_REDUCE}, {'S', 'S', WEFT_STEP_ALL_TO_ALL},
                 {'R', 'S', WEFT_STEP_SLICE},      {'R', 'P', WEFT_STEP_PARTIAL},
                 {'S', 'P', WEFT_STEP_PARTIAL}};

    for (size_t i = 0; i < WF_COUNT(kinds); i++)
        if (kinds[i].from == from && kinds[i].to == to) return kinds[i].kind;
    ck_abort_msg("a step from %c to %c", from, to);
    return 0;
}

/* Close the gap that AXIS leaves in its dimension's turns. */
static void leave_dimension(struct wf_state *state, int axis)
{
    struct wf_code left = state->axis[axis];

    state->axis[axis] = (struct wf_code){0};
    if (!wf_code_splits(left)) return;
    for (int i = 0; i < WEFT_MAX_AXES; i++)
        if (wf_code_splits(state->axis[i]) && state->axis[i].value == left.value &&
            state->axis[i].turn > left.turn)
            state->axis[i].turn--;
}

static void join_dimension(struct wf_state *state, int axis, uint8_t dim)
{
    uint8_t turn = 1;

    for (int i = 0; i < WEFT_MAX_AXES; i++)
        if (wf_code_splits(state->axis[i]) && state->axis[i].value == dim) turn++;
    state->axis[axis] = (struct wf_code){WF_CODE_SHARD, dim, turn, 0};
}

/* "1:S(0)>R;0:P(sum)>S(1)" */
static struct wf_price price_steps(const struct wf_problem *problem, char *steps)
{
    struct wf_price sum = {0}, price;
    struct wf_state at = problem->source;
    char *rest = NULL;

    for (char *step = strtok_r(steps, ";", &rest); step != NULL;
         step = strtok_r(NULL, ";", &rest)) {
        int axis = step[0] - '0';
        const char *to = strchr(step, '>') + 1;
        struct wf_edge edge = {kind_of(step[2], to[0]), UINT32_C(1) << axis, at};
        leave_dimension(&edge.to, axis);
        if (to[0] == 'S') join_dimension(&edge.to, axis, (uint8_t)(to[2] - '0'));
        if (to[0] == 'P')
            edge.to.axis[axis] = (struct wf_code){WF_CODE_PARTIAL, WEFT_REDUCE_SUM, 0, 0};
        wf_price_edge(problem, &at, &edge, &price);
        sum.ns += price.ns;
        sum.received += price.received;
        at = edge.to;
    }
    return sum;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Line of tests/data/plans.txt: mesh|shape|from|to|greedy|graph. */
static void compare_with_incumbent(char *line, const weft_cost_table *costs)
{
    weft_plan_options options = {.struct_size = sizeof options, .costs = costs};
    struct wf_price greedy, graph;
    struct wf_problem problem;
    weft_plan_info info = {.struct_size = sizeof info};
    OWNED_PAIR pair = {0};
    char *field[6], *rest = line;

    for (size_t i = 0; i < WF_COUNT(field); i++)
        field[i] = strsep(&rest, "|");
    for (char *c = field[1]; *c != '\0'; c++)
        if (*c == 'x') *c = ',';
    open_pair(&pair, field[0], NULL, field[1], field[2], field[3]);
    ck_assert_int_eq(wf_problem_set(&problem, pair.from, pair.to, &options), WEFT_OK);
    greedy = price_steps(&problem, field[4]);
    graph = price_steps(&problem, field[5]);
    info = plan_info(&pair, &options);
    ck_assert_msg(info.cost_ns <= least(greedy.ns, graph.ns),
                  "--mesh %s --shape %s --from \"%s\" --to \"%s\": %llu ns, the incumbent %llu",
                  field[0], field[1], field[2], field[3], (unsigned long long)info.cost_ns,
                  (unsigned long long)least(greedy.ns, graph.ns));
    options.minimize = WEFT_MINIMIZE_BYTES;
    info = plan_info(&pair, &options);
    ck_assert_msg(info.bytes_received_max <= least(greedy.received, graph.received),
                  "--mesh %s --shape %s --from \"%s\" --to \"%s\": %llu bytes, the incumbent %llu",
                  field[0], field[1], field[2], field[3],
                  (unsigned long long)info.bytes_received_max,
                  (unsigned long long)least(greedy.received, graph.received));
}

TEST(no_recorded_pair_costs_more_than_with_either_planner_of_the_incumbent)
{
    static const char *const tables[] = {"dtensor", "default", "cpu"};
    char line[1024];

    for (size_t t = 0; t < WF_COUNT(tables); t++) {
        FILE *file = fopen(WEFT_TEST_DATA "/plans.txt", "r");
        OWNED(weft_cost_table) *costs = NULL;
        int pairs = 0;
        ck_assert_ptr_nonnull(file);
        ck_assert_int_eq(weft_cost_table_open(tables[t], &costs), WEFT_OK);
        while (fgets(line, sizeof line, file) != NULL) {
            if (line[0] == '#') continue;
            line[strcspn(line, "\n")] = '\0';
            compare_with_incumbent(line, costs);
            pairs++;
        }
        fclose(file);
        ck_assert_int_eq(pairs, 843);
    }
}

/* ---- scratch ---- */

static uint64_t largest_shard(const weft_spec *spec)
{
    int32_t first[WEFT_MAX_AXES] = {0};
    struct wf_shard shard;

    wf_shard_at(&spec->layout, first, &shard);
    return (uint64_t)shard.elements * wf_dtype_bytes(spec->layout.dtype);
}

/* If ranks read each other's memory, one pass performs any redistribution. */
static void check_scratch(char *line, bool large, const weft_cost_table *costs)
{
    weft_plan_options options = {.struct_size = sizeof options, .costs = costs};
    uint64_t source, target, most;
    OWNED_PAIR pair = {0};
    char *field[4], *rest = line;

    for (size_t i = 0; i < WF_COUNT(field); i++)
        field[i] = strsep(&rest, "|");
    for (char *c = field[1]; *c != '\0'; c++)
        if (*c == 'x') *c = ',';
    if (large)
        field[1] = strchr(field[1], ',') == strrchr(field[1], ',') ? "4096,4096" : "512,512,512";
    open_pair(&pair, field[0], NULL, field[1], field[2], field[3]);
    source = largest_shard(pair.from);
    target = largest_shard(pair.to);
    most = source > target ? source : target;
    ck_assert_msg(
        plan_info(&pair, &options).peak_bytes <= most + most / 10,
        "--mesh %s --shape %s --from \"%s\" --to \"%s\" --costs cpu: more than %llu bytes",
        field[0], field[1], field[2], field[3], (unsigned long long)most);
}

TEST(scratch_stays_under_a_shard_where_one_pass_does_it)
{
    char line[1024];
    OWNED(weft_cost_table) *costs = NULL;

    ck_assert_int_eq(weft_cost_table_open("cpu", &costs), WEFT_OK);
    for (int large = 0; large < 2; large++) {
        FILE *file = fopen(WEFT_TEST_DATA "/plans.txt", "r");
        ck_assert_ptr_nonnull(file);
        while (fgets(line, sizeof line, file) != NULL)
            if (line[0] != '#') check_scratch(line, large, costs);
        fclose(file);
    }
}

/* ---- comparison with exhaustive search ---- */

static uint64_t random_below(uint64_t *seed, uint64_t n)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (*seed >> 33) % n;
}

static void random_placements(uint64_t *seed, int axes, int dims, const char *partial, char *out,
                              size_t capacity)
{
    size_t at = 0;

    for (int a = 0; a < axes; a++) {
        uint64_t kind = random_below(seed, 6);
        at += (size_t)snprintf(out + at, capacity - at, "%s", a > 0 ? "," : "");
        if (kind == 0)
            at += (size_t)snprintf(out + at, capacity - at, "R");
        else if (kind == 1)
            at += (size_t)snprintf(out + at, capacity - at, "%s", partial);
        else if (kind == 2)
            at += (size_t)snprintf(out + at, capacity - at, "SS(%d,2)",
                                   (int)random_below(seed, (uint64_t)dims));
        else
            at += (size_t)snprintf(out + at, capacity - at, "S(%d)",
                                   (int)random_below(seed, (uint64_t)dims));
    }
}

/* A request for the planner and for the exhaustive search. */
struct question {
    const char *dtype;
    char mesh[32], shape[64], from[64], to[64];
    const char *costs;
    uint32_t minimize;
};

static void compare_answers(const struct question *q)
{
    weft_plan_options options = {.struct_size = sizeof options, .minimize = q->minimize};
    OWNED(weft_cost_table) *costs = NULL;
    struct wf_problem problem;
    weft_plan_info info = {.struct_size = sizeof info};
    OWNED_PAIR pair = {0};

    open_pair_of(&pair, q->dtype, q->mesh, NULL, q->shape, q->from, q->to);
    open_costs(q->costs, &costs);
    options.costs = costs;
    ck_assert_int_eq(wf_problem_set(&problem, pair.from, pair.to, &options), WEFT_OK);
    info = plan_info(&pair, &options);
    ck_assert_msg(
        q->minimize == WEFT_MINIMIZE_BYTES
            ? !exhaustive_beats(&problem, info.bytes_received_max)
            : (q->minimize == WEFT_MINIMIZE_MEMORY ? info.peak_bytes : info.cost_ns) ==
                  exhaustive_least(&problem),
        "weft plan --mesh %s --dtype %s --shape %s --from \"%s\" --to \"%s\" --minimize %s "
        "--costs %s",
        q->mesh, q->dtype, q->shape, q->from, q->to,
        q->minimize == WEFT_MINIMIZE_BYTES    ? "bytes"
        : q->minimize == WEFT_MINIMIZE_MEMORY ? "memory"
                                              : "time",
        q->costs);
}

/* Meshes of up to RANKS ranks, and shapes that do not divide evenly. */
static void compare_exact(uint64_t *seed, int ranks, uint32_t minimize)
{
    int axes = 1 + (int)random_below(seed, 3), dims = 1 + (int)random_below(seed, 3), size = 1;
    struct question q = {.dtype = "f32", .minimize = minimize, .costs = "default"};
    const char *partial;

    for (int a = 0; a < axes; a++) {
        int most = ranks / size < 6 ? ranks / size : 6;
        int next = most < 2 ? 1 : 2 + (int)random_below(seed, (uint64_t)most - 1);
        size *= next;
        snprintf(q.mesh + strlen(q.mesh), sizeof q.mesh - strlen(q.mesh), "%s%d", a > 0 ? "x" : "",
                 next);
    }
    for (int d = 0; d < dims; d++)
        snprintf(q.shape + strlen(q.shape), sizeof q.shape - strlen(q.shape), "%s%d",
                 d > 0 ? "," : "", 1 + (int)random_below(seed, 30));
    partial = random_below(seed, 2) == 0 ? "P" : "P(max)"; /* no step makes P(max) of shards */
    random_placements(seed, axes, dims, partial, q.from, sizeof q.from);
    random_placements(seed, axes, dims, partial, q.to, sizeof q.to);
    compare_answers(&q);
}

static void compare_with_exhaustive(uint64_t *seed)
{
    static const char *const tables[] = {"dtensor", "default", "cpu", "domains"};
    int axes = 1 + (int)random_below(seed, 3), dims = 1 + (int)random_below(seed, 3);
    struct question q = {.dtype = "f32"};

    for (int a = 0; a < axes; a++)
        snprintf(q.mesh + strlen(q.mesh), sizeof q.mesh - strlen(q.mesh), "%s%d", a > 0 ? "x" : "",
                 2 + (int)random_below(seed, 2));
    for (int d = 0; d < dims; d++)
        snprintf(q.shape + strlen(q.shape), sizeof q.shape - strlen(q.shape), "%s%d",
                 d > 0 ? "," : "", 1 + (int)random_below(seed, 600));
    random_placements(seed, axes, dims, "P", q.from, sizeof q.from);
    random_placements(seed, axes, dims, "P", q.to, sizeof q.to);
    q.costs = tables[random_below(seed, 4)];
    q.minimize = (uint32_t)random_below(seed, 2);
    compare_answers(&q);
}

/* ---- every pair ---- */

/* Placement number CODE of DIMS + 2: R, P, or a shard of some dimension. */
static void add_placement(char *text, size_t capacity, int axis, int code)
{
    size_t at = strlen(text);

    if (axis > 0) at += (size_t)snprintf(text + at, capacity - at, ",");
    if (code < 2)
        snprintf(text + at, capacity - at, "%s", code == 0 ? "R" : "P");
    else
        snprintf(text + at, capacity - at, "S(%d)", code - 2);
}

/* Pair number INDEX of those on AXES axes of size 2 or 3 with DIMS dimensions; false after the
 * last.  Sizes divide evenly, do not, or are too small for all ranks. */
static bool number_pair(int axes, int dims, long index, struct question *out)
{
    static const char *const shapes[] = {"36", "36,7", "36,7,2"};

    *out = (struct question){.dtype = "f32", .costs = "default"};
    snprintf(out->shape, sizeof out->shape, "%s", shapes[dims - 1]);
    for (int a = 0; a < axes; a++, index /= 2)
        snprintf(out->mesh + strlen(out->mesh), sizeof out->mesh - strlen(out->mesh), "%s%ld",
                 a > 0 ? "x" : "", 2 + index % 2);
    for (int a = 0; a < axes; a++, index /= dims + 2)
        add_placement(out->from, sizeof out->from, a, (int)(index % (dims + 2)));
    for (int a = 0; a < axes; a++, index /= dims + 2)
        add_placement(out->to, sizeof out->to, a, (int)(index % (dims + 2)));
    return index == 0;
}

static void add_partial(char *text, size_t capacity, int axis, long code)
{
    static const char *const places[] = {"R", "P(avg)", "P(sum)", "S(0)"};
    size_t at = strlen(text);

    snprintf(text + at, capacity - at, "%s%s", axis > 0 ? "," : "", places[code]);
}

/* Averages of integers together with sums.  An axis that stays partial keeps its kind. */
TEST(averages_of_integers_are_planned_as_well_as_by_exhaustive_search)
{
    for (long i = 0; i < 4096; i++) {
        struct question q = {.dtype = "i32", .mesh = "2x3x2", .shape = "37"};
        long code = i;
        bool possible = true;
        q.costs = i % 2 == 0 ? "default" : "cpu";
        q.minimize = (uint32_t)(i / 2 % 2);
        for (int a = 0; a < 3; a++, code /= 16) {
            long from = code % 4, to = code / 4 % 4;
            possible =
                possible && !(from != to && (from == 1 || from == 2) && (to == 1 || to == 2));
            add_partial(q.from, sizeof q.from, a, from);
            add_partial(q.to, sizeof q.to, a, to);
        }
        if (possible) compare_answers(&q);
    }
}

/* All of one and two axes; of three, every WEFT_TEST_PAIRS_STEP-th (1: all 161,000). */
TEST(every_pair_is_planned_as_well_as_by_exhaustive_search)
{
    long step = (long)test_number("WEFT_TEST_PAIRS_STEP", 31), pairs = 0;
    struct question q;

    for (int axes = 1; axes <= 3; axes++)
        for (int dims = 1; dims <= 3; dims++)
            for (long i = 0; number_pair(axes, dims, i, &q); i += axes < 3 ? 1 : step, pairs++)
                compare_answers(&q);
    printf("%ld pairs\n", pairs);
}

TEST(the_search_finds_what_exhaustive_search_finds)
{
    uint64_t state = test_seed_begin("the_search_finds_what_exhaustive_search_finds");

    for (int plans = test_cases(400); plans > 0; plans--)
        compare_with_exhaustive(&state);
}

/* WEFT_TEST_CASES=4000 or WEFT_TEST_TIMES=10 compares more. */
TEST(no_sequence_of_steps_receives_less_than_the_plan_by_bytes)
{
    uint64_t state = test_seed_begin("no_sequence_of_steps_receives_less_than_the_plan_by_bytes");

    for (int plans = test_cases(400); plans > 0; plans--)
        compare_exact(&state, 16, WEFT_MINIMIZE_BYTES);
}

TEST(no_sequence_of_steps_takes_less_scratch_than_the_plan_by_memory)
{
    uint64_t state =
        test_seed_begin("no_sequence_of_steps_takes_less_scratch_than_the_plan_by_memory");

    for (int plans = test_cases(100); plans > 0; plans--)
        compare_exact(&state, 8, WEFT_MINIMIZE_MEMORY);
}
