#include "support/planning.h"
#include "support/random_layout.h"
#include "support/suite.h"

#include <string.h>

/* Every edge out of the source, as "kind axes placements" lines. */
struct listing {
    const struct wf_problem *problem;
    struct wf_text text;
};

static void list_edge(void *self, const struct wf_edge *edge)
{
    struct listing *listing = self;
    OWNED(weft_spec) *spec = NULL;

    ck_assert_int_eq(wf_problem_spec(listing->problem, &edge->to, &spec), WEFT_OK);
    wf_text_add(&listing->text, "%s %x ", weft_step_name(edge->kind), edge->axes);
    wf_placements_add_text(weft_spec_placements(spec), weft_mesh_axes(weft_spec_mesh(spec)),
                           &listing->text);
    wf_text_char(&listing->text, '\n');
}

static char *edges_of(const char *mesh, const char *shape, const char *from, const char *to)
{
    struct wf_problem problem;
    struct listing listing = {.problem = &problem};
    struct pair pair;
    char *text;

    open_problem(&problem, &pair, mesh, shape, from, to);
    wf_edges(&problem, &problem.source, list_edge, &listing);
    ck_assert_int_eq(wf_text_take(&listing.text, &text), WEFT_OK);
    close_pair(&pair);
    return text;
}

TEST(innermost_axes_leave_alone_or_together)
{
    char *edges = edges_of("2x2", "8,8", "S(0),S(0)", "R,R");

    ck_assert_str_eq(edges, "all-gather 2 S(0),R\n"
                            "all-to-all 2 S(0),S(1)\n"
                            "all-gather 3 R,R\n"
                            "all-to-all 3 S(1),S(1)\n");
    wf_free(edges);
}

TEST(partials_are_reduced_in_every_combination)
{
    char *edges = edges_of("2x2", "8", "P,P", "R,R");

    ck_assert_str_eq(edges, "all-reduce 3 R,R\n"
                            "reduce-scatter 3 S(0),S(0)\n"
                            "all-reduce 2 P(sum),R\n"
                            "reduce-scatter 2 P(sum),S(0)\n"
                            "all-reduce 1 R,P(sum)\n"
                            "reduce-scatter 1 S(0),P(sum)\n");
    wf_free(edges);
}

TEST(reduced_axes_join_in_the_order_of_the_target)
{
    char *edges = edges_of("2x2", "8", "P,P", "S(0)[1],S(0)[0]");

    ck_assert_ptr_nonnull(strstr(edges, "reduce-scatter 3 S(0)[1],S(0)[0]\n"));
    wf_free(edges);
}

TEST(copies_are_sliced_one_by_one_or_all_as_the_target_wants)
{
    char *edges = edges_of("2x2", "8", "R,R", "SS(0,2),S(0)");

    ck_assert_str_eq(edges, "slice 3 SS(0,2),S(0)\n"
                            "slice 1 SS(0,2),R\n"
                            "slice 2 R,S(0)\n");
    wf_free(edges);
}

TEST(partials_are_made_only_where_the_target_has_them)
{
    char *copies = edges_of("2", "8", "R", "P(max)"), *shards = edges_of("2", "8", "S(0)", "P");

    ck_assert_ptr_nonnull(strstr(copies, "partial 1 P(max)\n"));
    ck_assert_ptr_nonnull(strstr(shards, "partial 1 P(sum)\n"));
    wf_free(copies);
    wf_free(shards);
}

static struct wf_edge exchange_of(const char *mesh, const char *shape, const char *from,
                                  const char *to)
{
    struct wf_problem problem;
    struct wf_edge edge;
    struct pair pair;

    open_problem(&problem, &pair, mesh, shape, from, to);
    wf_edge_exchange(&problem, &problem.source, &edge);
    ck_assert(wf_state_same(&edge.to, &problem.target));
    close_pair(&pair);
    return edge;
}

TEST(an_exchange_takes_every_axis_behind_the_first_difference)
{
    /* Axis 1 keeps its turn, but the axes outside of it change. */
    ck_assert_uint_eq(exchange_of("2x2x2", "8", "S(0),S(0),R", "R,S(0)[1],S(0)[0]").axes, 7);
    /* Axis 0 is outside of the change. */
    ck_assert_uint_eq(exchange_of("2x2x2", "8", "S(0),S(0),R", "S(0),R,S(0)").axes, 6);
}

TEST(an_even_change_of_order_is_a_permute)
{
    ck_assert_uint_eq(exchange_of("2x2", "8", "S(0)[1],S(0)[0]", "S(0),S(0)").kind,
                      WEFT_STEP_PERMUTE);
    ck_assert_uint_eq(exchange_of("2x2", "7", "S(0)[1],S(0)[0]", "S(0),S(0)").kind,
                      WEFT_STEP_EXCHANGE);
    ck_assert_uint_eq(exchange_of("2x2", "8,8", "S(0),S(1)", "S(1),S(0)").kind, WEFT_STEP_EXCHANGE);
}

/* ---- the layouts on the way, as docs/planner.md lists them ---- */

struct tour {
    const struct wf_problem *problem;
    struct wf_state state, next; /* next: one of the states that steps lead to */
    struct random *random;
    int32_t edges;
};

/* May AXIS become CODE in a step out of STATE? */
static bool is_listed(const struct tour *tour, int32_t axis, struct wf_code code, bool exchange)
{
    struct wf_code wanted = tour->problem->target.axis[axis], had = tour->state.axis[axis];

    if (memcmp(&code, &had, sizeof code) == 0 || code.kind == WF_CODE_REPLICATE) return true;
    if (code.kind == WF_CODE_PARTIAL || code.kind == WF_CODE_OWNER)
        return memcmp(&code, &wanted, sizeof code) == 0;
    if (code.kind != WF_CODE_SHARD) return wanted.kind == code.kind && wanted.value == code.value;
    /* a plain split, where the target has another one, needs a wide problem */
    return exchange || tour->problem->wide || wanted.kind == WF_CODE_SHARD ||
           !wf_code_splits(wanted) || wanted.value != code.value ||
           wf_code_lists(tour->problem, axis, wanted);
}

static void visit_edge(void *self, const struct wf_edge *edge)
{
    struct tour *tour = self;
    bool exchange = edge->kind == WEFT_STEP_EXCHANGE || edge->kind == WEFT_STEP_PERMUTE;

    for (int32_t i = 0; i < tour->problem->axes; i++)
        ck_assert_msg(is_listed(tour, i, edge->to.axis[i], exchange), "from %s, axis %d of a %s",
                      as_command(tour->problem->from), i, weft_step_name(edge->kind));
    tour->edges++;
    if (random_in(tour->random, 1, tour->edges) == 1) tour->next = edge->to;
}

/* An exchange starts where only axes that are partial in the source have changed. */
static bool starts_exchange(const struct tour *tour)
{
    for (int32_t i = 0; i < tour->problem->axes; i++)
        if (tour->problem->source.axis[i].kind != WF_CODE_PARTIAL &&
            memcmp(&tour->state.axis[i], &tour->problem->source.axis[i], sizeof(struct wf_code)) !=
                0)
            return false;
    return true;
}

static void visit_exchange(void *self, const struct wf_edge *edge)
{
    ck_assert(starts_exchange(self));
    visit_edge(self, edge);
}

TEST(steps_lead_to_listed_layouts_only)
{
    struct random r = random_begin("steps_lead_to_listed_layouts_only");
    int32_t edges = 0;

    for (int cases = test_cases(1000); cases > 0; cases--) {
        OWNED(weft_mesh) *mesh = random_mesh(&r);
        int64_t shape[WEFT_MAX_DIMS];
        int32_t dims = random_shape(&r, shape);
        OWNED(weft_spec) *from = random_spec(&r, mesh, dims, shape);
        OWNED(weft_spec) *to = random_spec(&r, mesh, dims, shape);
        weft_plan_options options = {.struct_size = sizeof options,
                                     .minimize = (uint32_t)random_in(&r, 0, 2)};
        struct wf_problem problem;
        struct tour tour = {.problem = &problem, .random = &r};
        if (wf_problem_set(&problem, from, to, &options) == WEFT_OK) {
            tour.next = problem.source;
            for (int steps = 0; steps < 6; steps++) {
                tour.state = tour.next;
                tour.edges = 0;
                wf_edges(&problem, &tour.state, visit_edge, &tour);
                wf_exchanges(&problem, &tour.state, visit_exchange, &tour);
                edges += tour.edges;
            }
        }
    }
    ck_assert_int_gt(edges, test_cases(1000));
}
