#include "exec/exec.h"
#include "support/layout.h"
#include "support/suite.h"

static void check_received(const char *mesh, const char *from, const char *to, uint64_t most,
                           uint64_t total)
{
    weft_spec *a = spec_of(mesh, from), *b = spec_of(mesh, to);
    weft_plan *plan = NULL;
    uint64_t have_most, have_total;

    ck_assert_int_eq(weft_plan_create(a, b, NULL, &plan), WEFT_OK);
    ck_assert_int_eq(wf_plan_measure(plan, &have_most, &have_total), WEFT_OK);
    ck_assert_msg(have_most == most && have_total == total, "%s -> %s: %llu and %llu", from, to,
                  (unsigned long long)have_most, (unsigned long long)have_total);
    weft_plan_release(&plan);
    weft_spec_release(&a);
    weft_spec_release(&b);
}

START_TEST(every_byte_that_comes_from_another_rank_is_counted)
{
    check_received("4", "f32[8] S(0)", "f32[8] R", 24, 96);
    check_received("4", "f32[8] R", "f32[8] S(0)", 0, 0);
    check_received("2", "f32[4,4] S(0)", "f32[4,4] S(1)", 16, 32);
    check_received("2", "f32[8] P", "f32[8] S(0)", 16, 32);
    check_received("4", "f32[8] P", "f32[8] R", 48, 192);
}
END_TEST

START_TEST(uneven_shards_differ_between_ranks)
{
    check_received("2", "f32[3] S(0)", "f32[3] R", 8, 12);
}
END_TEST

SUITE(exec_measure, every_byte_that_comes_from_another_rank_is_counted,
      uneven_shards_differ_between_ranks)
