/* Calls of a pipeline on one rank: what is refused, and what is left behind. */
#include "../tensor/holds.h"
#include "model.h"

#include "support/suite.h"
#include "weft/launch.h"

#include <stdatomic.h>
#include <time.h>

struct one {
    weft_context *ctx;
    weft_schedule *schedule; /* one rank, two stages, two microbatches */
    struct model model;
    weft_pipeline_tensor tensors[2];
    weft_pipeline_values values[1];
    weft_pipeline_options options;
    weft_pipeline *pipeline;
};

static bool all_written(const weft_pipeline_tensor *tensors, size_t count, bool is_written)
{
    for (size_t i = 0; tensors != NULL && i < count; i++)
        if (tensors[i].is_written != is_written) return false;
    return true;
}

/* A callback is told which tensors it writes. */
static weft_status check_written(const weft_pipeline_call *call)
{
    if (all_written(call->inputs, call->input_count, false) &&
        all_written(call->outputs, call->output_count, call->kind == WEFT_SCHEDULE_ACTION_F) &&
        all_written(call->d_outputs, call->output_count, false) &&
        all_written(call->d_inputs, call->input_count, true))
        return WEFT_OK;
    return weft_fail(WEFT_ERR_INVALID, "is_written is wrong");
}

static weft_status forward(void *user, const weft_pipeline_call *call)
{
    WF_TRY(check_written(call));
    return model_forward(user, call);
}

static weft_status backward(void *user, const weft_pipeline_call *call)
{
    WF_TRY(check_written(call));
    return model_backward(user, call);
}

static weft_status begin(struct one *one)
{
    WF_TRY(weft_init(NULL, &one->ctx));
    WF_TRY(weft_schedule_create("looped-bfs", 1, 2, 2, &one->schedule));
    one->model = (struct model){.seed = 5, .stages = 2};
    one->tensors[0] = (weft_pipeline_tensor){.dtype = WEFT_DTYPE_F32, .dims = 2, .shape = {3, 5}};
    one->tensors[1] = (weft_pipeline_tensor){.dtype = WEFT_DTYPE_I32, .dims = 1, .shape = {3}};
    one->values[0] = (weft_pipeline_values){2, one->tensors, sizeof *one->tensors};
    one->options = (weft_pipeline_options){.struct_size = sizeof one->options,
                                           .user = &one->model,
                                           .forward = forward,
                                           .backward = backward,
                                           .values = one->values,
                                           .value_count = 1,
                                           .value_size = sizeof *one->values};
    return WEFT_OK;
}

static weft_status end(struct one *one)
{
    weft_memory_info memory = {.struct_size = sizeof memory};

    weft_pipeline_release(&one->pipeline);
    HOLDS(one->pipeline == NULL);
    weft_pipeline_release(&one->pipeline);
    weft_pipeline_release(NULL);
    WF_TRY(weft_memory_get(one->ctx, &memory));
    HOLDS(memory.pieces == 0 && memory.bytes == 0);
    weft_schedule_release(&one->schedule);
    weft_context_release(&one->ctx);
    return WEFT_OK;
}

static weft_status make(struct one *one)
{
    return create_pipeline(weft_world(one->ctx), one->schedule, &one->options, &one->pipeline);
}

/* ---- what is refused ---- */

static weft_status refuse_shapes(struct one *one)
{
    one->options.values = NULL;
    REFUSES(make(one), "set `values` or the callback `shapes`");
    one->options.values = one->values;
    one->options.value_count = 2;
    REFUSES(make(one), "`values` has 2 entries (value_count); expected 1, one for each stage but");
    one->options.value_count = 1;
    one->tensors[0].dims = 9;
    REFUSES(make(one), "output 0 of stage 0 has 9 dimensions; expected 0 to");
    one->tensors[0].dims = 2;
    one->tensors[1].dtype = 99;
    REFUSES(make(one), "output 1 of stage 0 has dtype 99; expected a value of enum weft_dtype");
    one->tensors[1].dtype = WEFT_DTYPE_I32;
    one->tensors[1].shape[0] = -3;
    REFUSES(make(one), "output 1 of stage 0 is i32[-3], which has a negative size");
    one->tensors[1].shape[0] = INT64_MAX;
    REFUSES(make(one), "output 1 of stage 0");
    one->tensors[1].shape[0] = 3;
    one->values[0].tensor_size = 7;
    REFUSES(make(one), "the size of a weft_pipeline_tensor is given as 7; pass "
                       "sizeof(weft_pipeline_tensor)");
    one->values[0].tensor_size = sizeof *one->tensors;
    one->options.value_size = 0;
    REFUSES(make(one), "the size of a weft_pipeline_values is given as 0; pass "
                       "sizeof(weft_pipeline_values)");
    one->options.value_size = sizeof *one->values;
    one->values[0].tensors = NULL;
    REFUSES(make(one), "stage 0 passes on 2 tensors, and `tensors` is NULL");
    return WEFT_OK;
}

TEST_ON_RANKS(1, wrong_options_are_refused)
{
    weft_pipeline_values values;
    weft_schedule *two, *lowered;
    struct one one = {0};

    WF_TRY(begin(&one));
    WF_TRY(weft_schedule_create("1f1b", 2, 0, 2, &two));
    REFUSES(create_pipeline(weft_world(one.ctx), two, &one.options, &one.pipeline),
            "the schedule has 2 ranks, and world");
    weft_schedule_release(&two);
    one.options.backward = NULL;
    REFUSES(make(&one), "the callback `backward` is NULL");
    one.options.backward = backward;
    WF_TRY(weft_schedule_lower(one.schedule, WEFT_LOWER_REDUCE, &lowered));
    REFUSES(create_pipeline(weft_world(one.ctx), lowered, &one.options, &one.pipeline),
            "the callback `reduce` is NULL");
    weft_schedule_release(&lowered);
    WF_TRY(make(&one));
    REFUSES(weft_pipeline_values_get(one.pipeline, 1, &values), "stage 1 passes nothing on");
    REFUSES(weft_pipeline_values_get(one.pipeline, -1, &values), "stage -1 passes nothing on");
    weft_pipeline_release(&one.pipeline);
    WF_TRY(refuse_shapes(&one));
    return end(&one);
}

/* ---- callbacks that do wrong ---- */

static weft_status run_inside(void *user, const weft_pipeline_call *call)
{
    struct one *one = user;

    (void)call;
    return weft_pipeline_run(one->pipeline);
}

static weft_status release_inside(void *user, const weft_pipeline_call *call)
{
    struct one *one = user;

    (void)call;
    weft_pipeline_release(&one->pipeline);
    return WEFT_OK;
}

static weft_status change_dtype(void *user, const weft_pipeline_call *call)
{
    (void)user;
    if (call->microbatch == 1 && call->output_count > 0) call->outputs[1].dtype = WEFT_DTYPE_F64;
    return WEFT_OK;
}

static weft_status change_gradient(void *user, const weft_pipeline_call *call)
{
    (void)user;
    if (call->input_count > 0) call->d_inputs[0].shape[1] = 4;
    return WEFT_OK;
}

TEST_ON_RANKS(1, a_callback_that_does_wrong_is_named)
{
    struct one one = {0};

    WF_TRY(begin(&one));
    one.options.user = &one;
    one.options.forward = run_inside;
    WF_TRY(make(&one));
    REFUSES(weft_pipeline_run(one.pipeline),
            "stage 0, microbatch 0 (0F0): the callback returned ERR_INVALID: weft_pipeline_run: a "
            "callback has called it");
    REFUSES(weft_pipeline_run(one.pipeline), "an earlier run has failed");
    weft_pipeline_release(&one.pipeline);
    one.options.forward = release_inside;
    WF_TRY(make(&one));
    REFUSES(weft_pipeline_run(one.pipeline),
            "stage 0, microbatch 0 (0F0): the callback has released the pipeline that runs");
    HOLDS(one.pipeline == NULL);
    one.options.forward = change_dtype;
    WF_TRY(make(&one));
    FAILS(weft_pipeline_run(one.pipeline), WEFT_ERR_MISMATCH,
          "stage 0, microbatch 1 (0F1): output 1 is f64[3]; it must be i32[3]");
    weft_pipeline_release(&one.pipeline);
    one.options.user = &one.model;
    one.options.forward = model_forward;
    one.options.backward = change_gradient;
    WF_TRY(make(&one));
    FAILS(weft_pipeline_run(one.pipeline), WEFT_ERR_MISMATCH,
          "the gradient of input 0 is f32[3,4]; it must be f32[3,5]");
    return end(&one);
}

/* ---- memory ---- */

/* GPipe holds every microbatch, 1F1B with one rank one of them. */
TEST_ON_RANKS(1, memory_is_what_the_schedule_holds)
{
    weft_pipeline_info info = {.struct_size = sizeof info};
    struct one one = {0};

    WF_TRY(begin(&one));
    weft_schedule_release(&one.schedule);
    WF_TRY(weft_schedule_parse("0F0,1F0,1B0,0B0,0F1,1F1,1B1,0B1,0F2,1F2,1B2,0B2", &one.schedule));
    WF_TRY(make(&one));
    WF_TRY(weft_pipeline_get(one.pipeline, &info));
    HOLDS(info.pieces == 2); /* tensors and gradients of one microbatch */
    HOLDS(info.bytes == 2 * 512 && info.sent == 0 && info.received == 0 && info.actions == 12);
    weft_pipeline_release(&one.pipeline);
    weft_schedule_release(&one.schedule);
    WF_TRY(weft_schedule_create("looped-bfs", 1, 2, 9, &one.schedule));
    WF_TRY(make(&one));
    WF_TRY(weft_pipeline_get(one.pipeline, &info));
    HOLDS(info.pieces == 18);
    return end(&one);
}

TEST_ON_RANKS(1, a_pipeline_refuses_calls_after_its_context)
{
    struct one one = {0};

    WF_TRY(begin(&one));
    WF_TRY(make(&one));
    weft_context_release(&one.ctx);
    REFUSES(weft_pipeline_run(one.pipeline), "the pipeline ended with it");
    weft_pipeline_release(&one.pipeline);
    weft_schedule_release(&one.schedule);
    return WEFT_OK;
}

/* Each allocation of the creation fails once. */
TEST_ON_RANKS(1, without_memory_nothing_is_left_behind)
{
    struct one one = {0};
    weft_status status;

    WF_TRY(begin(&one));
    for (uint64_t at = 1;; at++) {
        wf_mem_fail_at(at);
        status = make(&one);
        wf_mem_fail_at(0);
        if (status == WEFT_OK) break;
        HOLDS(at < 10000);
    }
    WF_TRY(weft_pipeline_run(one.pipeline));
    return end(&one);
}

/* ---- pairs ---- */

static atomic_bool has_next_begun;

static weft_status note_next(void *user, const weft_pipeline_call *call)
{
    if (call->stage == 1 && call->microbatch == 1) atomic_store(&has_next_begun, true);
    return model_forward(user, call);
}

/* The backward of the pair ends after the other rank has got the forward of the pair. */
static weft_status await_next(void *user, const weft_pipeline_call *call)
{
    const struct timespec pause = {.tv_nsec = 1000000};

    for (int i = 0; call->stage == 0 && i < 20000 && !atomic_load(&has_next_begun); i++)
        nanosleep(&pause, NULL);
    HOLDS(call->stage != 0 || atomic_load(&has_next_begun));
    return model_backward(user, call);
}

TEST_ON_RANKS(2, a_pair_in_order_sends_its_first_result_early)
{
    struct one one = {0};

    WF_TRY(begin(&one));
    weft_schedule_release(&one.schedule);
    WF_TRY(weft_schedule_parse("0F0,(0F1;0B0)OVERLAP_F_B,0B1\n1F0,1B0,1F1,1B1\n", &one.schedule));
    one.options.forward = note_next;
    one.options.backward = await_next;
    WF_TRY(make(&one));
    WF_TRY(weft_pipeline_run(one.pipeline));
    return end(&one);
}
