#include "support/allocfail.h"
#include "support/planning.h"
#include "support/suite.h"

static void check_one(const char *mesh, const char *to_mesh, const char *shape, const char *from,
                      const char *to, const char *both)
{
    OWNED_PAIR pair = {0};
    OWNED(weft_spec) *a = NULL, *b = NULL;
    char have[256] = "", mine[96], theirs[96];

    open_pair(&pair, mesh, to_mesh, shape, from, to);
    ck_assert_int_eq(wf_refine(pair.from, pair.to, &a, &b), WEFT_OK);
    if (a != NULL) {
        ck_assert_ptr_eq(weft_spec_mesh(a), weft_spec_mesh(b));
        ck_assert_int_eq(weft_spec_print(a, mine, sizeof mine, NULL), WEFT_OK);
        ck_assert_int_eq(weft_spec_print(b, theirs, sizeof theirs, NULL), WEFT_OK);
        snprintf(have, sizeof have, "%s -> %s", mine, theirs);
    }
    ck_assert_msg(strcmp(have, both) == 0, "%s %s -> %s %s: %s", mesh, from, to_mesh, to, have);
}

TEST(axes_are_cut_where_the_other_mesh_has_them)
{
    check_one("8", "2x4", "64", "S(0)", "R,S(0)", "f32[64] S(0),S(0) -> f32[64] R,S(0)");
    check_one("4x2", "2x4", "64", "P,R", "S(0),R", "f32[64] P(sum),P(sum),R -> f32[64] S(0),R,R");
    check_one("dp=4", "4", "9", "SS(0,2)", "S(0)", "f32[9] SS(0,2) -> f32[9] S(0)");
    check_one("1x4", "2x1x2", "8", "P,S(0)", "S(0),P,S(0)", "f32[8] S(0),S(0) -> f32[8] S(0),S(0)");
    check_one("2x4", "8", "8", "S(0)[1],S(0)[0]", "S(0)",
              "f32[8] S(0)[1],S(0)[0] -> f32[8] S(0),S(0)");
    check_one("1", "x=1", "8", "P", "S(0)", "f32[8] P(sum) -> f32[8] S(0)");
}

TEST(other_layouts_and_other_meshes_stay_two)
{
    check_one("8", "2x4", "9", "S(0)", "R,S(0)", "");      /* chunks of chunks of 9 differ */
    check_one("8", "2x4", "64", "SS(0,2)", "R,S(0)", "");  /* no strides of strides */
    check_one("2x3", "3x2", "36", "S(0),R", "S(0),R", ""); /* axes that cut across */
    check_one("4", "2x2@4-7", "64", "S(0)", "S(0),R", ""); /* other ranks */
    check_one("4", "2x2@0,2,1,3", "64", "R", "R,R", "");   /* in another order */
    check_one("4/2", "2x2", "64", "S(0)", "S(0),R", "");   /* on other hosts */
    check_one("4", "2x2x2", "64", "S(0)", "S(0),R,R", ""); /* more of them */
}

TEST(a_replica_on_every_rank_needs_no_steps)
{
    OWNED_PAIR pair = {0};
    weft_plan_info info = {.struct_size = sizeof info};
    OWNED(weft_plan) *plan = NULL;

    open_pair(&pair, "4", "2x2", "64", "S(0)", "S(0),S(0)");
    plan = plan_pair(&pair, NULL);
    ck_assert_int_eq(weft_plan_get(plan, &info), WEFT_OK);
    ck_assert_uint_eq(info.steps, 0);
    ck_assert_ptr_eq(info.from, pair.from);
    ck_assert_ptr_eq(info.to, pair.to);
}

TEST(partials_may_still_change_their_kind_between_meshes)
{
    OWNED_PAIR pair = {0};
    OWNED(weft_plan) *plan = NULL;

    open_pair(&pair, "4", "2x2", "64", "P(max)", "P,P");
    plan = plan_pair(&pair, NULL);
    ck_assert_uint_gt(plan->step_count, 0);
}

TEST(allocation_failure_is_an_error_without_a_leak)
{
    weft_spec *from = NULL, *to = NULL;
    struct pair pair;

    open_pair(&pair, "4@3,1,0,2", "2x2@3,1,0,2", "64", "S(0)", "S(0),R");
    ALLOCATIONS_FAIL(wf_refine(pair.from, pair.to, &from, &to),
                     (weft_spec_release(&from), weft_spec_release(&to)));
    close_pair(&pair);
}
