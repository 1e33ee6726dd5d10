/* Errors name the public call, the plan, its step, and the remedy. */
#include "support/expect.h"
#include "support/layout.h"
#include "support/suite.h"
#include "weft/exec.h"
#include "weft/weft.h"

#include <string.h>

enum { FLOATS = 64 };

static bool says(const char *text)
{
    return strstr(weft_last_error(), text) != NULL;
}

/* A communicator of all ranks with a short time limit. */
static weft_status make(weft_context **context, weft_comm **comm)
{
    weft_subcomm_options options = {.struct_size = sizeof options, .timeout_ns = 300000000};

    WF_TRY(weft_init(NULL, context));
    return weft_comm_split(weft_world(*context), 0, 0, &options, comm);
}

/* All ranks have finished their calls and COMM. */
static weft_status finish(weft_context **context, weft_comm **comm)
{
    weft_status status = weft_barrier(weft_world(*context), NULL);

    weft_comm_release(comm);
    weft_context_release(context);
    return status;
}

static weft_status make_plan(const char *mesh, bool batch, weft_plan **out)
{
    OWNED(weft_spec) *from = spec_of(mesh, "f32[8,8] S(0)"), *to = spec_of(mesh, "f32[8,8] S(1)");
    const weft_spec *froms[] = {from, from}, *tos[] = {to, to};
    weft_status status = batch ? weft_plan_create_batch(2, froms, tos, NULL, out)
                               : weft_plan_create(from, to, NULL, out);

    return status;
}

TEST_ON_RANKS(2, a_failed_step_names_its_plan)
{
    float source[FLOATS] = {0}, target[FLOATS];
    weft_context *context = NULL;
    weft_comm *comm = NULL;
    OWNED(weft_plan) *plan = NULL;
    weft_bound *bound = NULL;

    WF_TRY(make_plan("2", false, &plan));
    WF_TRY(make(&context, &comm));
    WF_TRY(weft_plan_bind(plan, comm, NULL, &bound));
    if (weft_rank(context) == 0) {
        EXPECT(weft_redistribute(bound, source, target, NULL, NULL) == WEFT_ERR_TIMEOUT);
        EXPECT(says("weft_redistribute: f32[8,8] S(0) -> f32[8,8] S(1) on 2, "
                    "step 1 of 1 (all-to-all): "));
        EXPECT(says("rank 1"));
    }
    WF_TRY(finish(&context, &comm));
    weft_bound_release(&bound);
    return WEFT_OK;
}

TEST_ON_RANKS(2, a_failed_stream_names_its_plan)
{
    float source[FLOATS] = {0}, target[FLOATS];
    weft_context *context = NULL;
    weft_comm *comm = NULL;
    OWNED(weft_plan) *plan = NULL;
    weft_bound *bound = NULL;
    weft_stream *stream = NULL;
    weft_status status;

    WF_TRY(make_plan("2", false, &plan));
    WF_TRY(make(&context, &comm));
    WF_TRY(weft_plan_bind(plan, comm, NULL, &bound));
    WF_TRY(weft_stream_create(context, &stream));
    if (weft_rank(context) == 0) {
        status = weft_redistribute(bound, source, target, stream, NULL);
        if (status == WEFT_OK) status = weft_context_wait(context, stream, WEFT_FOREVER);
        EXPECT(status == WEFT_ERR_TIMEOUT);
        EXPECT(says("weft_redistribute: f32[8,8] S(0) -> f32[8,8] S(1) on 2"));
    }
    weft_stream_release(&stream);
    WF_TRY(finish(&context, &comm));
    weft_bound_release(&bound);
    return WEFT_OK;
}

TEST_ON_RANKS(2, a_failed_batch_names_its_tensors)
{
    static float memory[2][4][FLOATS];
    weft_context *context = NULL;
    weft_comm *comm = NULL;
    OWNED(weft_plan) *plan = NULL;
    weft_bound *bound = NULL;

    WF_TRY(make_plan("2", true, &plan));
    WF_TRY(make(&context, &comm));
    WF_TRY(weft_plan_bind(plan, comm, NULL, &bound));
    if (weft_rank(context) == 0) {
        const void *sources[] = {memory[0][0], memory[0][1]};
        void *targets[] = {memory[0][2], memory[0][3]};
        weft_plan_info info = {.struct_size = sizeof info};

        WF_TRY(weft_plan_get(plan, &info));
        EXPECT(weft_redistribute_batch(bound, sources, targets, NULL, NULL) == WEFT_ERR_TIMEOUT);
        EXPECT(says("weft_redistribute_batch: "));
        EXPECT(info.together > 0 ? says("the exchange of 2 tensors: ")
                                 : says("tensor 0 of 2: f32[8,8] S(0) -> f32[8,8] S(1) on 2, "));
    }
    WF_TRY(finish(&context, &comm));
    weft_bound_release(&bound);
    return WEFT_OK;
}

TEST_ON_RANKS(3, a_binding_names_the_missing_rank)
{
    weft_context *context = NULL;
    weft_comm *comm = NULL;
    weft_plan *plan = NULL;
    weft_bound *bound = NULL;

    WF_TRY(make_plan("3", false, &plan));
    WF_TRY(make(&context, &comm));
    if (weft_rank(context) != 1) {
        EXPECT(weft_plan_bind(plan, comm, NULL, &bound) == WEFT_ERR_TIMEOUT);
        EXPECT(says("rank 1 of 3 did not reach weft_plan_bind on "));
    }
    weft_plan_release(&plan);
    return finish(&context, &comm);
}

/* The groups of the steps differ, so only the first comparison detects the mismatch. */
TEST_ON_RANKS(4, plans_of_different_groups_do_not_bind)
{
    OWNED(weft_spec) *from = NULL, *to = NULL;
    OWNED(weft_context) *context = NULL;
    OWNED(weft_plan) *plan = NULL;
    weft_bound *bound = NULL;

    WF_TRY(weft_init(NULL, &context));
    from = spec_of("2x2", weft_rank(context) % 2 ? "f32[8,8] S(0),R" : "f32[8,8] R,S(0)");
    to = spec_of("2x2", "f32[8,8] R,R");
    WF_TRY(weft_plan_create(from, to, NULL, &plan));
    EXPECT(weft_plan_bind(plan, weft_world(context), NULL, &bound) == WEFT_ERR_MISMATCH);
    EXPECT(says("S(0),R -> ") && says("R,S(0) -> "));
    return WEFT_OK;
}

TEST_ON_RANKS(3, lists_in_different_orders_are_reported_at_once)
{
    const int32_t forth[] = {0, 1, 2}, back[] = {2, 1, 0};
    weft_context *context = NULL;
    weft_comm *comm = NULL;

    WF_TRY(weft_init(NULL, &context));
    EXPECT(weft_comm_create(weft_world(context), 3, weft_rank(context) == 2 ? back : forth, NULL,
                            &comm) == WEFT_ERR_MISMATCH);
    EXPECT(says("weft_comm_create on world: ") && says("0,1,2 on rank ") &&
           says("2,1,0 on rank 2"));
    WF_TRY(weft_comm_create(weft_world(context), 3, back, NULL, &comm));
    EXPECT(weft_comm_world_rank(comm, 0) == 2);
    return finish(&context, &comm);
}

TEST_ON_RANKS(2, more_ranks_help_only_the_world)
{
    weft_context *context = NULL;
    weft_comm *comm = NULL;
    weft_plan *plan = NULL;
    weft_bound *bound = NULL;

    WF_TRY(make_plan("4", false, &plan));
    WF_TRY(make(&context, &comm));
    EXPECT(weft_plan_bind(plan, weft_world(context), NULL, &bound) == WEFT_ERR_INVALID);
    EXPECT(says("weft_plan_bind: ") && says("`weft run -n 4`"));
    EXPECT(weft_plan_bind(plan, comm, NULL, &bound) == WEFT_ERR_INVALID);
    EXPECT(says("use a larger communicator") && !says("weft run"));
    weft_plan_release(&plan);
    return finish(&context, &comm);
}

TEST_ON_RANKS(2, two_sends_that_wait_hint_at_groups)
{
    static float memory[2][50000];
    weft_context *context = NULL;
    weft_comm *comm = NULL;
    int32_t rank;

    WF_TRY(make(&context, &comm));
    rank = weft_rank(context);
    EXPECT(weft_send(comm, memory[rank], 50000, WEFT_DTYPE_F32, 1 - rank, 0, NULL) ==
           WEFT_ERR_TIMEOUT);
    EXPECT(says("weft_group_begin"));
    return finish(&context, &comm);
}

TEST_ON_RANKS(2, a_second_begin_is_reported)
{
    weft_context *context = NULL, *second = NULL;

    WF_TRY(weft_init(NULL, &context));
    EXPECT(weft_init(NULL, &second) == WEFT_ERR_MISMATCH);
    EXPECT(says("called weft_init twice") && !says("two processes"));
    WF_TRY(weft_barrier(weft_world(context), NULL));
    weft_context_release(&context);
    return WEFT_OK;
}
