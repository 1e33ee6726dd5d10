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

START_TEST(no_step_takes_less_than_it_brings_nearer)
{
    static const char *const meshes[] = {"8", "2x3", "16x4/8", "2x2x2", "64x128x128", "2x4x2x3/4"};
    static const char *const shapes[] = {"16", "16,16", "600,7,64"};
    static const char *const tables[] = {"default", "cpu", "dtensor"};
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
        ck_assert_int_eq(weft_cost_table_find(tables[random_in(&r, 0, 2)], &costs), WEFT_OK);
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
END_TEST

START_TEST(what_is_local_is_near)
{
    struct wf_problem problem;
    struct wf_lower_bound bound;
    struct pair pair;

    open_problem(&problem, &pair, "4x8", "64,64", "R,R", "S(0),P");
    wf_lower_bound_set(&bound, &problem);
    ck_assert_uint_eq(wf_lower_bound_ns(&bound, &problem.source), 0);
    close_pair(&pair);
}
END_TEST

START_TEST(what_must_be_gathered_waits_on_all_its_ranks)
{
    struct wf_problem problem;
    struct wf_lower_bound bound;
    struct pair pair;

    open_problem(&problem, &pair, "64x128", "64,64", "S(0),S(1)", "R,R");
    wf_lower_bound_set(&bound, &problem);
    ck_assert_uint_eq(wf_lower_bound_ns(&bound, &problem.source), 2 * 6600 + (63 + 127) * 600);
    close_pair(&pair);
}
END_TEST

SUITE(plan_lower_bound, no_step_takes_less_than_it_brings_nearer, what_is_local_is_near,
      what_must_be_gathered_waits_on_all_its_ranks)
