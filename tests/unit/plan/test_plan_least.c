/* The lower bound on the bytes that the busiest rank receives. */
#include "support/planning.h"
#include "support/random_layout.h"
#include "support/suite.h"

#include <string.h>

static uint64_t bound_of(const weft_plan *plan)
{
    uint64_t bytes = UINT64_MAX;

    ck_assert_int_eq(weft_plan_lower_bound(plan, &bytes), WEFT_OK);
    return bytes;
}

static void check_bound(const char *mesh, const char *to_mesh, const char *shape, const char *from,
                        const char *to, uint64_t bound)
{
    OWNED_PAIR pair = {0};
    OWNED(weft_plan) *plan = NULL;

    open_pair(&pair, mesh, to_mesh, shape, from, to);
    plan = plan_pair(&pair, NULL);
    ck_assert_msg(bound_of(plan) == bound, "%s -> %s: %llu", from, to,
                  (unsigned long long)bound_of(plan));
}

TEST(a_rank_receives_what_it_wants_and_does_not_hold)
{
    check_bound("4", NULL, "8", "S(0)", "R", 24);
    check_bound("4", NULL, "8", "R", "S(0)", 0);
    check_bound("2", NULL, "3", "S(0)", "R", 8); /* the rank with the shorter shard */
    check_bound("4", NULL, "8,8", "S(0)", "S(1)", 48);
    check_bound("2x2", NULL, "8", "S(0)[0],S(0)[1]", "S(0)[1],S(0)[0]", 8);
    check_bound("2", "2@2-3", "8", "R", "S(0)", 16);
    check_bound("2", "2@1-2", "8", "R", "R", 32);
}

TEST(a_reduction_needs_a_message_per_contribution_and_per_rank)
{
    check_bound("4", NULL, "8", "P", "S(0)", 24);
    check_bound("4", NULL, "8", "P", "R", 48);
    check_bound("2x3", NULL, "7,10", "P,P", "S(0),S(1)", 236); /* 5 * 280 / 6, in elements */
    check_bound("2x2", NULL, "8", "P,R", "R,R", 32);
}

/* The ranks along a partial axis may share the work. */
TEST(partials_need_the_value_once)
{
    check_bound("2x2", NULL, "8", "P,P", "R,P", 16);
    check_bound("2x2", NULL, "8", "P,S(0)", "P,R", 8);
    check_bound("4", NULL, "8", "S(0)", "P", 0);
    check_bound("4", NULL, "8", "R", "P(avg)", 0);
    check_bound("2", "2@2-3", "8", "R", "P", 16);
}

/* No plan is below the bound, and without reductions and new partials an exchange reaches it. */
static void check_random(struct random *r, bool crosses)
{
    weft_plan_options options = {.struct_size = sizeof options};
    weft_plan_info info = {.struct_size = sizeof info};
    int64_t shape[WEFT_MAX_DIMS];
    int32_t dims = random_shape(r, shape);
    OWNED(weft_mesh) *mesh = random_mesh(r),
                     *other = crosses ? random_mesh(r) : weft_mesh_retain(mesh);
    OWNED(weft_spec) *from = random_spec(r, mesh, dims, shape),
                     *to = random_spec(r, other, dims, shape);
    static char source[8192];
    OWNED(weft_plan) *plan = NULL;
    bool copies = true;

    for (int32_t a = 0; a < weft_mesh_axes(mesh); a++)
        copies = copies && weft_spec_placements(from)[a].kind != WEFT_PLACE_PARTIAL;
    for (int32_t a = 0; a < weft_mesh_axes(other); a++)
        copies = copies && weft_spec_placements(to)[a].kind != WEFT_PLACE_PARTIAL;
    options.minimize = (uint32_t)random_in(r, 0, 2);
    if (copies) options.planner = WEFT_PLANNER_EXCHANGE;
    if (weft_plan_create(from, to, &options, &plan) == WEFT_OK) {
        ck_assert_int_eq(weft_plan_get(plan, &info), WEFT_OK);
        ck_assert_msg(copies ? bound_of(plan) == info.bytes_received_max
                             : bound_of(plan) <= info.bytes_received_max,
                      "%s %s: %llu bytes, bound %llu", strcpy(source, as_command(from)),
                      as_command(to), (unsigned long long)info.bytes_received_max,
                      (unsigned long long)bound_of(plan));
    }
}

TEST(no_plan_is_below_the_bound)
{
    struct random r = {.state = test_seed_begin("plan_least") | 1};

    for (int i = test_cases(3000); i > 0; i--)
        check_random(&r, i % 2 == 0);
}

TEST(a_batch_needs_what_its_tensors_need)
{
    static const char *const pairs[][2] = {{"f32[8] S(0)", "f32[8] R"}, {"f32[8] P", "f32[8] R"}};
    const weft_spec *from[2], *to[2];
    OWNED(weft_mesh) *mesh = NULL;
    weft_plan *batch;

    ck_assert_int_eq(weft_mesh_parse("4", &mesh), WEFT_OK);
    for (size_t i = 0; i < 2; i++) {
        ck_assert_int_eq(weft_spec_parse(mesh, pairs[i][0], (weft_spec **)&from[i]), WEFT_OK);
        ck_assert_int_eq(weft_spec_parse(mesh, pairs[i][1], (weft_spec **)&to[i]), WEFT_OK);
    }
    ck_assert_int_eq(weft_plan_create_batch(2, from, to, NULL, &batch), WEFT_OK);
    ck_assert_uint_eq(bound_of(batch), 24 + 48);
    weft_plan_release(&batch);
    for (size_t i = 0; i < 2; i++) {
        weft_spec_release((weft_spec **)&from[i]);
        weft_spec_release((weft_spec **)&to[i]);
    }
}

TEST(wrong_arguments_are_refused)
{
    OWNED_PAIR pair = {0};
    OWNED(weft_plan) *plan = NULL;
    uint64_t bytes = 7;

    open_pair(&pair, "2", NULL, "8", "S(0)", "R");
    plan = plan_pair(&pair, NULL);
    ck_assert_int_eq(weft_plan_lower_bound(NULL, &bytes), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_plan_lower_bound(plan, NULL), WEFT_ERR_INVALID);
    ck_assert_uint_eq(bytes, 7);
}

/* With too many ranks to count them, the figures are those of some ranks. */
TEST(estimates_are_not_below_the_bound)
{
    static const struct {
        const char *mesh, *to_mesh, *shape, *from, *to;
        uint64_t bound;
    } cases[] = {
        {"300x300", NULL, "3007,3011", "S(0),S(1)", "S(1),S(0)", 484},
        {"70000", "70000@70000-139999", "70001,5", "O(1)", "O(40000)", 70001 * 20},
        {"70000", NULL, "70001,5", "S(0)", "O(40000)", 70001 * 20},
        {"70000", NULL, "70001,5", "O(40000)", "S(0)", 40},
    };

    for (size_t i = 0; i < WF_COUNT(cases); i++) {
        weft_plan_options least = {.struct_size = sizeof least, .minimize = WEFT_MINIMIZE_BYTES};
        weft_plan_info info = {.struct_size = sizeof info};
        struct pair pair;
        weft_plan *plan;

        open_pair(&pair, cases[i].mesh, cases[i].to_mesh, cases[i].shape, cases[i].from,
                  cases[i].to);
        plan = plan_pair(&pair, &least);
        ck_assert_int_eq(weft_plan_get(plan, &info), WEFT_OK);
        ck_assert(!info.exact);
        ck_assert_uint_eq(info.bytes_received_max, cases[i].bound);
        ck_assert_uint_le(bound_of(plan), cases[i].bound);
        ck_assert_uint_ge(bound_of(plan), cases[i].bound * 9 / 10);
        weft_plan_release(&plan);
        close_pair(&pair);
    }
}
