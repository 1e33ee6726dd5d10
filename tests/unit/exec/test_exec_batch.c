/* Refusals of binding a batch; tests/system/redistribute tests it on ranks. */
#include "support/lone_rank.h"
#include "support/suite.h"

static weft_plan *batch_of_one(const char *mesh, const char *from_text, const char *to_text)
{
    weft_spec *from = spec_of(mesh, from_text), *to = spec_of(mesh, to_text);
    const weft_spec *source = from, *target = to;
    weft_plan *plan = NULL;

    ck_assert_int_eq(weft_plan_create_batch(1, &source, &target, NULL, &plan), WEFT_OK);
    weft_spec_release(&from);
    weft_spec_release(&to);
    return plan;
}

TEST(a_batch_needs_ranks)
{
    weft_plan *plan = batch_of_one("2", "f32[4] S(0)", "f32[4] R");
    struct lone_rank lone;
    weft_bound *bound = NULL;

    lone_begin(&lone, 0, 1);
    check_refused(weft_plan_bind(plan, weft_world(lone.context), NULL, &bound), WEFT_ERR_INVALID,
                  "need 2 ranks; world has 1");
    weft_plan_release(&plan);
    plan = batch_of_one("1", "f32[4] S(0)", "f32[4] R");
    ck_assert_int_eq(weft_plan_bind(plan, weft_world(lone.context), NULL, &bound), WEFT_OK);
    weft_bound_release(&bound); /* without a kernel table, the host moves the data */
    weft_plan_release(&plan);
    lone_end(&lone);
    ck_assert_int_eq(wf_mem_live(), 0);
}
