/* With WEFT_CHECK=1 and a plugin of ABI 1.0 the core compares which steps of which plans ranks run.
 */
#include "support/fake_world.h"
#include "support/suite.h"

static struct world_rank ranks[WORLD_MAX];
static weft_plugin plugin;

/* A world of three on a plugin of ABI 1.MINOR, whose last rank's call belongs to BINDING. */
static void run_three(uint32_t minor, const char *check, uint32_t binding,
                      void (*body)(struct world_rank *))
{
    fake_reset();
    plugin = *fake_plugin();
    plugin.abi_minor = minor;
    setenv("WEFT_CHECK", check, 1);
    world_begin(ranks, 3, body, &binding);
    for (int i = 0; i < 3; i++)
        ranks[i].plugin = &plugin;
    world_go(ranks, 3);
    unsetenv("WEFT_CHECK");
}

static weft_collective_args call_of(const struct world_rank *self, float *memory)
{
    uint32_t binding = *(const uint32_t *)self->argument;

    return (weft_collective_args){.struct_size = sizeof(weft_collective_args),
                                  .collective = WEFT_COLL_ALL_REDUCE,
                                  .dtype = WEFT_DTYPE_F32,
                                  .root = -1,
                                  .send = &memory[0],
                                  .recv = &memory[1],
                                  .count = 1,
                                  .plan = 0xabc,
                                  .binding = self->rank == 2 ? binding : 1,
                                  .step = 1};
}

static void run_a_step(struct world_rank *self)
{
    float memory[2] = {0};
    weft_collective_args args = call_of(self, memory);

    note_seen(&self->seen, weft_collective(weft_world(self->context), &args));
}

START_TEST(steps_that_differ_are_found_for_a_plugin_that_does_not_look)
{
    run_three(0, "1", 2, run_a_step);
    all_saw(ranks, 3, WEFT_ERR_MISMATCH,
            "rank 0 runs step 1 of plan 0000000000000abc (binding 1) as all_reduce, rank 2 runs "
            "step 1 of plan 0000000000000abc (binding 2) as all_reduce");
    all_saw(ranks, 3, WEFT_ERR_MISMATCH, "must run bound plans in the same order");
    ck_assert_int_eq(fake.collectives, 0);
}
END_TEST

START_TEST(equal_steps_go_on)
{
    run_three(0, "1", 1, run_a_step);
    all_saw(ranks, 3, WEFT_OK, "");
    ck_assert_int_eq(fake.collectives, 3);
}
END_TEST

START_TEST(unchecked_ranks_and_newer_plugins_are_not_delayed)
{
    run_three(0, "0", 2, run_a_step);
    all_saw(ranks, 3, WEFT_OK, "");
    run_three(1, "1", 2, run_a_step); /* which compares itself */
    all_saw(ranks, 3, WEFT_OK, "");
}
END_TEST

static void run_a_step_or_a_call(struct world_rank *self)
{
    float memory[2] = {0};
    weft_collective_args args = call_of(self, memory);

    if (self->rank == 2) args.plan = args.binding = args.step = 0;
    note_seen(&self->seen, weft_collective(weft_world(self->context), &args));
}

START_TEST(a_call_without_a_plan_is_not_a_step)
{
    run_three(0, "1", 2, run_a_step_or_a_call);
    all_saw(ranks, 3, WEFT_ERR_MISMATCH, "rank 2 calls all_reduce;");
}
END_TEST

/* A program that was compiled before identities existed. */
static void call_as_in_1_0(struct world_rank *self)
{
    float memory[2] = {0};
    weft_collective_args args = call_of(self, memory);

    args.struct_size = offsetof(weft_collective_args, plan);
    note_seen(&self->seen, weft_collective(weft_world(self->context), &args));
    args.struct_size--;
    HOLDS(weft_collective(weft_world(self->context), &args) == WEFT_ERR_INVALID);
}

START_TEST(callers_of_1_0_make_calls_without_plans)
{
    run_three(0, "1", 2, call_as_in_1_0);
    all_saw(ranks, 3, WEFT_OK, "");
}
END_TEST

SUITE(comm_compare, steps_that_differ_are_found_for_a_plugin_that_does_not_look, equal_steps_go_on,
      unchecked_ranks_and_newer_plugins_are_not_delayed, a_call_without_a_plan_is_not_a_step,
      callers_of_1_0_make_calls_without_plans)
