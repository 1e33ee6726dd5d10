#include "support/layout.h"
#include "support/simulate.h"
#include "support/suite.h"
#include "weft/exec.h"

static weft_plan *plan_between(const char *mesh, const char *from_text, const char *to_text)
{
    weft_spec *from = spec_of(mesh, from_text), *to = spec_of(mesh, to_text);
    weft_plan *plan = NULL;

    ck_assert_int_eq(weft_plan_create(from, to, NULL, &plan), WEFT_OK);
    weft_spec_release(&from);
    weft_spec_release(&to);
    return plan;
}

TEST(shards_are_gathered)
{
    OWNED(weft_plan) *plan = plan_between("2", "i32[3] S(0)", "i32[3] R");
    int32_t first[] = {0, 1}, second[] = {2}, results[2][3];
    const void *sources[] = {first, second};
    void *targets[] = {results[0], results[1]};

    ck_assert_int_eq(simulate_one(plan, sources, targets), WEFT_OK);
    for (int rank = 0; rank < 2; rank++)
        for (int i = 0; i < 3; i++)
            ck_assert_int_eq(results[rank][i], i);
}

TEST(contributions_are_reduced_and_identities_filled_in)
{
    weft_plan *plan = plan_between("2", "i16[2] P(max)", "i16[2] R");
    int16_t first[] = {5, -3}, second[] = {4, 9}, results[2][2];
    const void *sources[] = {first, second};
    void *targets[] = {results[0], results[1]};

    ck_assert_int_eq(simulate_one(plan, sources, targets), WEFT_OK);
    ck_assert_int_eq(results[1][0], 5);
    ck_assert_int_eq(results[1][1], 9);
    weft_plan_release(&plan);
    plan = plan_between("2", "i16[2] R", "i16[2] P(min)");
    sources[1] = first;
    ck_assert_int_eq(simulate_one(plan, sources, targets), WEFT_OK);
    ck_assert_int_eq(results[0][1], -3);
    ck_assert_int_eq(results[1][1], INT16_MAX);
    weft_plan_release(&plan);
}

TEST(a_batch_is_simulated_tensor_by_tensor)
{
    OWNED(weft_spec) *rows = spec_of("2", "u8[4] S(0)"), *all = spec_of("2", "u8[4] R");
    const weft_spec *from[] = {rows, all}, *to[] = {all, rows};
    uint8_t first[] = {1, 2}, second[] = {3, 4}, whole[] = {5, 6, 7, 8};
    uint8_t gathered[2][4], sliced[2][2];
    const void *sources0[] = {first, second}, *sources1[] = {whole, whole};
    void *targets0[] = {gathered[0], gathered[1]}, *targets1[] = {sliced[0], sliced[1]};
    const void *const *sources[] = {sources0, sources1};
    void *const *targets[] = {targets0, targets1};
    OWNED(weft_plan) *plan = NULL;

    ck_assert_int_eq(weft_plan_create_batch(2, from, to, NULL, &plan), WEFT_OK);
    ck_assert_int_eq(weft_simulate(plan, sources, targets), WEFT_OK);
    ck_assert_uint_eq(gathered[1][3], 4);
    ck_assert_uint_eq(sliced[1][0], 7);
    sources[1] = NULL;
    check_refused(weft_simulate(plan, sources, targets), WEFT_ERR_INVALID, "sources[1] is NULL");
    check_refused(weft_simulate(NULL, sources, targets), WEFT_ERR_INVALID, "plan");
}
