/* Random pairs of specs, run for all ranks in one thread.  After every step of a plan the tensor is
 * complete: each step is checked as a plan of its own. */
#include "exec/exec.h"
#include "system/redistribute/pairs.h"
#include "support/simulate.h"
#include "support/suite.h"
#include "weft/exec.h"

static const void *const *as_inputs(const struct shards *shards)
{
    return (const void *const *)shards->at;
}

static void check_all(const struct pair *pair, const struct values *values, const weft_spec *spec,
                      const struct shards *shards, const char *where)
{
    ck_assert_msg(values_check(values, spec, as_inputs(shards)) == WEFT_OK, "%s: %s\n%s", where,
                  weft_last_error(), pair_command(pair, "sim"));
}

static void check_steps(const struct pair *pair, const struct values *values, const weft_plan *plan)
{
    struct shards have = shards_of(pair->from), next;
    const weft_spec *spec = pair->from;
    weft_plan_step_info step = {.struct_size = sizeof step};

    shards_fill(values, pair->from, &have);
    check_all(pair, values, pair->from, &have, "the source itself");
    if (weft_plan_step_get(plan, 0, &step) == WEFT_OK && step.from != spec) {
        ck_assert_ptr_ne(pair->from->layout.mesh, pair->to->layout.mesh);
        spec = step.from;
        check_all(pair, values, spec, &have, "the source on the mesh of the steps");
    }
    for (uint32_t i = 0; weft_plan_step_get(plan, i, &step) == WEFT_OK; i++) {
        ck_assert_msg(step.from == spec, "step %u does not go on\n%s", i,
                      pair_command(pair, "sim"));
        next = shards_of(step.to);
        ck_assert_msg(wf_simulate_step("step", &plan->steps[i], as_inputs(&have), next.at) ==
                          WEFT_OK,
                      "%s\n%s", weft_last_error(), pair_command(pair, "sim"));
        check_all(pair, values, step.to, &next, weft_step_name(step.kind));
        shards_free(spec, &have);
        have = next;
        spec = step.to;
    }
    shards_free(spec, &have);
}

static void check_whole(const struct pair *pair, const struct values *values, const weft_plan *plan)
{
    struct shards source = shards_of(pair->from), target = shards_of(pair->to);

    shards_fill(values, pair->from, &source);
    ck_assert_int_eq(simulate_one(plan, as_inputs(&source), target.at), WEFT_OK);
    check_all(pair, values, pair->to, &target, "the whole plan");
    shards_free(pair->from, &source);
    shards_free(pair->to, &target);
}

TEST(every_step_of_random_plans_keeps_every_element)
{
    struct random r = random_begin("every_step_of_random_plans_keeps_every_element");
    int cases = test_cases(20500), refused = 0;

    for (int i = 0; i < cases; i++) {
        struct pair pair = random_pair(&r, 24);
        struct values values = values_between(pair.from, pair.to);
        weft_plan *plan = NULL;
        weft_status status = dtensor_plan_create(pair.from, pair.to, &pair.options, &plan);
        if (status == WEFT_OK) {
            check_steps(&pair, &values, plan);
            check_whole(&pair, &values, plan);
        } else {
            ck_assert_msg(pair_may_be_refused(&pair), "%s\n%s", weft_last_error(),
                          pair_command(&pair, "plan"));
            refused++;
        }
        weft_plan_release(&plan);
        pair_release(&pair);
    }
    printf("%d pairs, %d of them refused\n", cases, refused);
    ck_assert_int_lt(refused, cases / 40 + 10);
    ck_assert_int_eq(wf_mem_live(), 0);
}
