#include "support/costs.h"
#include "support/planning.h"
#include "support/random.h"
#include "support/suite.h"

#include <string.h>

/* A random walk: one of the steps out of each state is taken. */
struct walk {
    struct random *random;
    const struct wf_problem *problem;
    const struct wf_lower_bound *bound;
    struct wf_state at, next;
    int edges;
};

static void check_step(const struct walk *walk, const struct wf_edge *edge,
                       const struct wf_price *price)
{
    uint64_t before = wf_lower_bound_ns(walk->bound, &walk->at);
    uint64_t after = wf_lower_bound_ns(walk->bound, &edge->to);

    ck_assert_msg(before <= price->ns + after, "%s takes %llu ns, but leaves %llu of %llu",
                  weft_step_name(edge->kind), (unsigned long long)price->ns,
                  (unsigned long long)after, (unsigned long long)before);
}

static void take(void *self, const struct wf_edge *edge)
{
    struct walk *walk = self;
    struct wf_price price;

    wf_price_edge(walk->problem, &walk->at, edge, &price);
    check_step(walk, edge, &price);
    walk->edges++;
    if (random_in(walk->random, 1, walk->edges) == 1) walk->next = edge->to;
}

static void check_exchange(const struct walk *walk)
{
    struct wf_edge edge;
    struct wf_price price;

    if (!wf_may_exchange(walk->problem, &walk->at)) return;
    wf_edge_exchange(walk->problem, &walk->at, &edge);
    if (edge.axes == 0) return;
    ck_assert_int_eq(wf_price_exchange(walk->problem, &walk->at, &edge, &price), WEFT_OK);
    check_step(walk, &edge, &price);
}

static void random_text(struct random *r, int axes, int dims, char *out, size_t capacity)
{
    static const char *const kinds[] = {"R", "P", "S(%d)", "S(%d)", "SS(%d,2)"};
    size_t at = 0;

    for (int a = 0; a < axes; a++) {
        at += (size_t)snprintf(out + at, capacity - at, "%s", a > 0 ? "," : "");
        at += (size_t)snprintf(out + at, capacity - at, kinds[random_in(r, 0, 4)],
                               random_in(r, 0, dims - 1));
    }
}

TEST(no_step_takes_less_than_it_brings_nearer)
{
    static const char *const meshes[] = {"8", "2x3", "16x4/8", "2x2x2", "64x128x128", "2x4x2x3/4"};
    static const char *const shapes[] = {"16", "16,16", "600,7,64"};
    static const char *const tables[] = {"default", "cpu", "dtensor", "domains"};
    struct random r = random_begin("no_step_takes_less_than_it_brings_nearer");

    for (int i = test_cases(2000); i > 0; i--) {
        const char *mesh = meshes[random_in(&r, 0, 5)];
        int dims = random_in(&r, 1, 3), axes = 1;
        weft_plan_options options = {.struct_size = sizeof options};
        char from[96], to[96];
        weft_cost_table *costs;
        struct wf_problem problem;
        struct wf_lower_bound bound;
        struct walk walk = {.random = &r, .problem = &problem, .bound = &bound};
        struct pair pair;

        for (const char *c = mesh; *c != '\0' && *c != '/'; c++)
            axes += *c == 'x';
        random_text(&r, axes, dims, from, sizeof from);
        random_text(&r, axes, dims, to, sizeof to);
        open_pair(&pair, mesh, NULL, shapes[dims - 1], from, to);
        open_costs(tables[random_in(&r, 0, 3)], &costs);
        options.costs = costs;
        ck_assert_int_eq(wf_problem_set(&problem, pair.from, pair.to, &options), WEFT_OK);
        wf_lower_bound_set(&bound, &problem);
        ck_assert_uint_eq(wf_lower_bound_ns(&bound, &problem.target), 0);
        walk.at = problem.source;
        for (int step = 0; step < 6; step++) {
            check_exchange(&walk);
            walk.edges = 0;
            wf_edges(&problem, &walk.at, take, &walk);
            if (walk.edges == 0) break;
            walk.at = walk.next;
        }
        weft_cost_table_release(&costs);
        close_pair(&pair);
    }
}

TEST(what_is_local_is_near_and_what_is_gathered_waits_on_all_its_ranks)
{
    static const struct {
        const char *mesh, *from, *to;
        uint64_t ns;
    } cases[] = {{"4x8", "R,R", "S(0),P", 0},
                 {"64x128", "S(0),S(1)", "R,R", 2 * 6600 + (63 + 127) * 600}};

    for (size_t i = 0; i < WF_COUNT(cases); i++) {
        struct wf_problem problem;
        struct wf_lower_bound bound;
        struct pair pair;

        open_problem(&problem, &pair, cases[i].mesh, "64,64", cases[i].from, cases[i].to);
        wf_lower_bound_set(&bound, &problem);
        ck_assert_uint_eq(wf_lower_bound_ns(&bound, &problem.source), cases[i].ns);
        close_pair(&pair);
    }
}

/* ---- weft_plan_lower_bound_ns, for layouts of which there is no spec ---- */

static uint64_t bound_pair(const struct pair *pair, const weft_plan_options *options)
{
    uint64_t ns = UINT64_MAX;

    ck_assert_int_eq(
        weft_plan_lower_bound_ns(pair->from, weft_spec_placements(pair->to), options, &ns),
        WEFT_OK);
    return ns;
}

TEST(no_plan_takes_less_than_the_bound)
{
    static const char *const meshes[] = {"8", "2x3", "16x4/8", "2x2x2"};
    static const char *const shapes[] = {"16", "160,16", "600,7,64"};
    static const char *const tables[] = {"default", "cpu", "dtensor", "domains"};
    struct random r = random_begin("no_plan_takes_less_than_the_bound");
    uint64_t equal = 0, more = 0;

    for (int i = test_cases(1500); i > 0; i--) {
        const char *mesh = meshes[random_in(&r, 0, 3)];
        int dims = random_in(&r, 1, 3), axes = 1;
        weft_plan_options options = {.struct_size = sizeof options,
                                     .minimize = (uint32_t)random_in(&r, 0, 2)};
        char from[96], to[96];
        weft_cost_table *costs;
        struct pair pair;
        weft_plan *plan;
        uint64_t bound;

        for (const char *c = mesh; *c != '\0' && *c != '/'; c++)
            axes += *c == 'x';
        random_text(&r, axes, dims, from, sizeof from);
        random_text(&r, axes, dims, to, sizeof to);
        open_pair(&pair, mesh, NULL, shapes[dims - 1], from, to);
        open_costs(tables[random_in(&r, 0, 3)], &costs);
        options.costs = costs;
        plan = plan_pair(&pair, &options);
        bound = bound_pair(&pair, &options);
        ck_assert_msg(bound <= weft_plan_cost_ns(plan), "%s: %s -> %s: %llu > %llu", mesh, from, to,
                      (unsigned long long)bound, (unsigned long long)weft_plan_cost_ns(plan));
        equal += bound == weft_plan_cost_ns(plan);
        more += bound > 0;
        weft_plan_release(&plan);
        weft_cost_table_release(&costs);
        close_pair(&pair);
    }
    ck_assert_uint_gt(more, 0);
    ck_assert_uint_gt(equal, 0);
}

/* The largest shard lacks 3 of 4 quarters: the time of an all-gather, but for copies. */
TEST(bytes_that_a_rank_lacks_count)
{
    weft_plan_options cpu = {.struct_size = sizeof cpu}, gpu = {.struct_size = sizeof gpu};
    OWNED(weft_cost_table) *costs = NULL, *dtensor = NULL;
    struct pair pair;

    ck_assert_int_eq(weft_cost_table_open("cpu", &costs), WEFT_OK);
    ck_assert_int_eq(weft_cost_table_open("dtensor", &dtensor), WEFT_OK);
    cpu.costs = costs;
    gpu.costs = dtensor;
    open_pair(&pair, "4", NULL, "1000000", "S(0)", "R");
    ck_assert_uint_ge(bound_pair(&pair, &gpu), 6600 + 3 * 600 + 31857 - 32);
    ck_assert_uint_le(bound_pair(&pair, &gpu), 6600 + 3 * 600 + 31857);
    ck_assert_uint_gt(bound_pair(&pair, &cpu), bound_pair(&pair, &gpu));
    close_pair(&pair);
    open_pair(&pair, "4", NULL, "1000000", "R", "S(0)");
    ck_assert_uint_eq(bound_pair(&pair, NULL), 0);
    close_pair(&pair);
}

TEST(a_bound_needs_placements_that_the_tensor_can_have)
{
    weft_placement sum = {.kind = WEFT_PLACE_PARTIAL, .reduction = WEFT_REDUCE_SUM};
    weft_placement third = {.kind = WEFT_PLACE_SHARD, .dim = 2};
    weft_placement unused = {.kind = WEFT_PLACE_REPLICATE, .owner = 1};
    OWNED_PAIR pair = {0};
    uint64_t ns = 7;

    open_pair(&pair, "4", NULL, "8,8", "P(max)", "R");
    ck_assert_int_eq(weft_plan_lower_bound_ns(pair.from, &sum, NULL, &ns), WEFT_ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "weft_plan_lower_bound_ns: axis 0: P(max)"));
    ck_assert_int_eq(weft_plan_lower_bound_ns(pair.from, &third, NULL, &ns), WEFT_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "weft_plan_lower_bound_ns: placement 0, S(2)"));
    ck_assert_int_eq(weft_plan_lower_bound_ns(pair.from, &unused, NULL, &ns), WEFT_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "weft_placement.owner is set"));
    ck_assert_int_eq(weft_plan_lower_bound_ns(NULL, &sum, NULL, &ns), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_plan_lower_bound_ns(pair.from, NULL, NULL, &ns), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_plan_lower_bound_ns(pair.from, &third, NULL, NULL), WEFT_ERR_INVALID);
}

TEST(a_local_plan_communicates_nothing)
{
    static const struct {
        const char *from, *to;
        bool local;
    } cases[] = {
        {"R", "R", true},     {"R", "S(0)", true}, {"R", "P", true},
        {"S(0)", "R", false}, {"P", "R", false},
    };

    ck_assert(!weft_plan_communicates(NULL));
    ck_assert_uint_eq(weft_plan_cost_ns(NULL), 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        weft_plan_info info = {.struct_size = sizeof info};
        struct pair pair;
        weft_plan *plan;

        open_pair(&pair, "4", NULL, "8,8", cases[i].from, cases[i].to);
        plan = plan_pair(&pair, NULL);
        ck_assert_int_eq(weft_plan_communicates(plan), !cases[i].local);
        ck_assert_int_eq(weft_plan_get(plan, &info), WEFT_OK);
        ck_assert_uint_eq(weft_plan_cost_ns(plan), info.cost_ns);
        weft_plan_release(&plan);
        close_pair(&pair);
    }
}
