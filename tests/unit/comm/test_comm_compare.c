/* Where no plugin sees all calls, the core compares which steps of which plans ranks run. */
#include "support/fake_world.h"
#include "support/suite.h"

static struct world_rank ranks[WORLD_MAX];

/* What the calls of a world of three are. */
struct calls {
    bool compared;
    uint32_t binding; /* of the last rank; the others have 1 */
};

static void run_three(struct calls calls, void (*body)(struct world_rank *))
{
    fake_reset();
    world_begin(ranks, 3, body, &calls);
    world_go(ranks, 3);
}

static weft_collective_args call_of(const struct world_rank *self, float *memory)
{
    const struct calls *calls = self->argument;

    weft_world(self->context)->compares = calls->compared; /* as a second plugin sets it */
    return (weft_collective_args){.struct_size = sizeof(weft_collective_args),
                                  .collective = WEFT_COLL_ALL_REDUCE,
                                  .dtype = WEFT_DTYPE_F32,
                                  .root = -1,
                                  .send = &memory[0],
                                  .recv = &memory[1],
                                  .count = 1,
                                  .plan = 0xabc,
                                  .binding = self->rank == 2 ? calls->binding : 1,
                                  .step = 1};
}

static void run_a_step(struct world_rank *self)
{
    float memory[2] = {0};
    weft_collective_args args = call_of(self, memory);

    note_seen(&self->seen, weft_collective(weft_world(self->context), &args));
}

TEST(steps_that_differ_are_found_for_a_plugin_that_does_not_look)
{
    run_three((struct calls){true, 2}, run_a_step);
    all_saw(ranks, 3, WEFT_ERR_MISMATCH,
            "rank 0 runs step 1 of plan 0000000000000abc (binding 1) as all_reduce, rank 2 runs "
            "step 1 of plan 0000000000000abc (binding 2) as all_reduce");
    all_saw(ranks, 3, WEFT_ERR_MISMATCH, "must run bound plans in the same order");
    ck_assert_int_eq(fake.collectives, 0);
}

TEST(equal_steps_go_on)
{
    run_three((struct calls){true, 1}, run_a_step);
    all_saw(ranks, 3, WEFT_OK, "");
    ck_assert_int_eq(fake.collectives, 3);
}

TEST(calls_that_plugins_compare_are_not_delayed)
{
    run_three((struct calls){false, 2}, run_a_step);
    all_saw(ranks, 3, WEFT_OK, "");
}

static void run_a_step_or_a_call(struct world_rank *self)
{
    float memory[2] = {0};
    weft_collective_args args = call_of(self, memory);

    if (self->rank == 2) args.plan = args.binding = args.step = 0;
    note_seen(&self->seen, weft_collective(weft_world(self->context), &args));
}

TEST(a_call_without_a_plan_is_not_a_step)
{
    run_three((struct calls){true, 2}, run_a_step_or_a_call);
    all_saw(ranks, 3, WEFT_ERR_MISMATCH, "rank 2 calls all_reduce;");
}

static void call_with_a_short_struct(struct world_rank *self)
{
    float memory[2] = {0};
    weft_collective_args args = call_of(self, memory);

    args.struct_size--;
    note_seen(&self->seen, weft_collective(weft_world(self->context), &args));
}

TEST(a_struct_that_is_too_short_is_refused)
{
    run_three((struct calls){true, 2}, call_with_a_short_struct);
    all_saw(ranks, 3, WEFT_ERR_INVALID, "weft_collective_args.struct_size is");
}
