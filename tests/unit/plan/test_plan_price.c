#include "support/planning.h"
#include "support/suite.h"

/* The price of the single step of KIND from the source to the target. */
struct search_for {
    const struct wf_problem *problem;
    uint32_t kind;
    struct wf_price price;
    int found;
};

static void take(void *self, const struct wf_edge *edge)
{
    struct search_for *wanted = self;

    if (edge->kind != wanted->kind || !wf_state_same(&edge->to, &wanted->problem->target)) return;
    wf_price_edge(wanted->problem, &wanted->problem->source, edge, &wanted->price);
    wanted->found++;
}

static struct wf_price price_of(uint32_t kind, const char *mesh, const char *shape,
                                const char *from, const char *to)
{
    struct wf_problem problem;
    struct search_for wanted = {.problem = &problem, .kind = kind};
    struct pair pair;

    open_problem(&problem, &pair, mesh, shape, from, to);
    wf_edges(&problem, &problem.source, take, &wanted);
    ck_assert_int_ge(wanted.found, 1);
    close_pair(&pair);
    return wanted.price;
}

TEST(gathering_receives_what_the_others_have)
{
    struct wf_price price = price_of(WEFT_STEP_ALL_GATHER, "4", "8,16", "S(0)", "R");

    ck_assert_uint_eq(price.received, 8 * 16 * 4 * 3 / 4);
    ck_assert_uint_eq(price.sent, 8 * 16 * 4 / 4 * 3);
    ck_assert_uint_eq(price.scratch, 0);
    /* uneven: the rank that holds least receives most */
    ck_assert_uint_eq(price_of(WEFT_STEP_ALL_GATHER, "4", "9", "S(0)", "R").received, 9 * 4);
    /* an inner dimension must be reordered */
    price = price_of(WEFT_STEP_ALL_GATHER, "4", "8,16", "S(1)", "R");
    ck_assert_uint_eq(price.scratch, 8 * 16 * 4);
}

TEST(what_does_not_arrive_in_place_takes_scratch)
{
    uint64_t all = 12 * 4;

    ck_assert_uint_eq(price_of(WEFT_STEP_ALL_GATHER, "2x3", "12", "R,SS(0,2)", "R,R").scratch, all);
    ck_assert_uint_eq(price_of(WEFT_STEP_REDUCE_SCATTER, "4", "12", "P", "S(0)").scratch, 0);
    /* unequal shards: every contribution arrives */
    ck_assert_uint_eq(price_of(WEFT_STEP_REDUCE_SCATTER, "5", "12", "P", "S(0)").scratch,
                      5 * 3 * 4);
    ck_assert_uint_eq(price_of(WEFT_STEP_REDUCE_SCATTER, "4", "12", "P", "SS(0,2)").scratch,
                      all + 4 * 4 * 4);
}

TEST(reducing_receives_a_shard_from_each_or_twice_a_share)
{
    ck_assert_uint_eq(price_of(WEFT_STEP_REDUCE_SCATTER, "4", "8,16", "P", "S(0)").received,
                      8 * 16 * 4 / 4 * 3);
    ck_assert_uint_eq(price_of(WEFT_STEP_ALL_REDUCE, "4", "8,16", "P", "R").received,
                      2 * 8 * 16 * 4 / 4 * 3);
}

TEST(changing_the_dimension_receives_a_shard_less_what_was_there)
{
    struct wf_price price = price_of(WEFT_STEP_ALL_TO_ALL, "4", "8,16", "S(0)", "S(1)");

    ck_assert_uint_eq(price.received, 8 * 16 * 4 / 4 * 3 / 4);
    ck_assert_uint_eq(price.sent, price.received);
}

TEST(local_steps_receive_nothing)
{
    ck_assert_uint_eq(price_of(WEFT_STEP_SLICE, "4", "8,16", "R", "S(1)").received, 0);
    ck_assert_uint_eq(price_of(WEFT_STEP_PARTIAL, "4", "8,16", "R", "P").received, 0);
    ck_assert_uint_gt(price_of(WEFT_STEP_SLICE, "4", "8,16", "R", "S(1)").ns, 0);
}
