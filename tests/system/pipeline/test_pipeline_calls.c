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
    weft_mesh *mesh; /* of the pipeline */
    weft_pipeline_tensor tensors[2];
    weft_pipeline_values values[1];
    weft_pipeline_options options;
    weft_pipeline *pipeline;
};

static weft_status begin(struct one *one)
{
    WF_TRY(weft_init(NULL, &one->ctx));
    WF_TRY(weft_schedule_create("looped-bfs", 1, 2, 2, &one->schedule));
    one->model = (struct model){.seed = 5, .stages = 2};
    one->mesh = mesh_of(weft_world(one->ctx));
    one->values[0] = one_value(one->mesh, "f32[3,5] R", &one->tensors[0]);
    (void)one_value(one->mesh, "i32[3] R", &one->tensors[1]);
    one->values[0].count = 2;
    one->options = (weft_pipeline_options){.struct_size = sizeof one->options,
                                           .user = &one->model,
                                           .forward = model_forward,
                                           .backward = model_backward,
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
    free_values(&one->values[0]);
    weft_mesh_release(&one->mesh);
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
    const weft_spec *spec;
    weft_spec *other;
    weft_mesh *named;

    one->options.values = NULL;
    REFUSES(make(one), "set `values` or the callback `shapes`");
    one->options.values = one->values;
    one->options.value_count = 2;
    REFUSES(make(one), "`values` has 2 entries (value_count); expected 1, one for each stage but");
    one->options.value_count = 1;
    spec = one->tensors[1].spec;
    one->tensors[1].spec = NULL;
    REFUSES(make(one), "output 1 of stage 0 has no layout: `spec` is NULL");
    WF_TRY(weft_mesh_parse("pp=1", &named));
    WF_TRY(weft_spec_parse(named, "i32[3] R", &other));
    one->tensors[1].spec = other;
    REFUSES(make(one), "output 1 of stage 0 has a layout on the mesh pp=1; expected one on the "
                       "mesh of the pipeline, 1");
    weft_spec_release(&other);
    WF_TRY(weft_spec_parse(one->mesh, "i32[3] S(0)", &other));
    one->tensors[1].spec = other;
    REFUSES(make(one), "output 1 of stage 0 has the layout i32[3] S(0); it must have R on axis 0");
    weft_spec_release(&other);
    weft_mesh_release(&named);
    one->tensors[1].spec = spec;
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
    one->values[0].tensors = one->tensors;
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
    one.options.backward = model_backward;
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
    return end(&one);
}

/* ---- tensors ---- */

/* The value of an element that stage 0 passes on for a microbatch. */
static float value_of(int32_t microbatch, int64_t row, int64_t column)
{
    return (float)(100 * microbatch + 10 * row + column);
}

/* This rank's shard of a tensor f32[4,6] has all rows and half of the columns. */
static weft_status visit(weft_tensor *tensor, int32_t microbatch, bool writes)
{
    const weft_shard *shard = weft_tensor_shard(tensor);
    float *elements = weft_tensor_memory(tensor);

    HOLDS(shard->shape[0] == 4 && shard->shape[1] == 3);
    for (int64_t i = 0; i < 12; i++) {
        float value = value_of(microbatch, i / 3, i % 3 + shard->offset[1]);

        if (writes) elements[i] = value;
        HOLDS(elements[i] == value);
    }
    return WEFT_OK;
}

struct kept {
    weft_mesh *tp; /* the ranks of this rank's stage */
    weft_tensor *input;
    int32_t microbatch; /* of the elements of INPUT */
    bool moved;
};

static weft_status forward_of_shards(void *user, const weft_pipeline_call *call)
{
    struct kept *kept = user;
    weft_tensor *tensor = call->stage == 0 ? call->outputs[0] : call->inputs[0], *whole;
    weft_spec *replicated;

    HOLDS(weft_spec_mesh(weft_tensor_spec(tensor)) == kept->tp);
    WF_TRY(visit(tensor, call->microbatch, call->stage == 0));
    if (call->stage == 0) return WEFT_OK;
    WF_TRY(weft_spec_with(weft_tensor_spec(tensor), "R", &replicated));
    WF_TRY(weft_tensor_move(tensor, replicated, NULL, call->stream, &whole));
    WF_TRY(weft_context_wait(weft_tensor_context(tensor), call->stream, WEFT_FOREVER));
    for (int64_t i = 0; i < 24; i++)
        HOLDS(((float *)weft_tensor_memory(whole))[i] == value_of(call->microbatch, i / 6, i % 6));
    kept->moved = true;
    weft_spec_release(&replicated);
    weft_tensor_release(&whole);
    weft_tensor_release(&kept->input);
    kept->input = weft_tensor_retain(tensor);
    kept->microbatch = call->microbatch;
    return WEFT_OK;
}

static weft_status backward_of_shards(void *user, const weft_pipeline_call *call)
{
    (void)user;
    if (call->stage == 0) {
        HOLDS(call->d_inputs == NULL && call->d_outputs[1] == NULL);
        return visit(call->d_outputs[0], -call->microbatch, false);
    }
    HOLDS(call->d_outputs == NULL && call->d_inputs[1] == NULL);
    HOLDS(weft_tensor_spec(call->d_inputs[0]) == weft_tensor_spec(call->inputs[0]));
    return visit(call->d_inputs[0], -call->microbatch, true);
}

TEST_ON_RANKS(4, tensors_have_the_layout_of_their_stage)
{
    struct kept kept = {0};
    weft_pipeline_options options = {.struct_size = sizeof options,
                                     .user = &kept,
                                     .forward = forward_of_shards,
                                     .backward = backward_of_shards,
                                     .value_count = 1,
                                     .value_size = sizeof(weft_pipeline_values)};
    weft_pipeline_tensor tensors[2];
    weft_pipeline_values values;
    weft_pipeline *pipeline;
    weft_schedule *schedule;
    weft_context *ctx;
    weft_mesh *mesh;

    WF_TRY(weft_init(NULL, &ctx));
    WF_TRY(weft_mesh_parse("tp=2,pp=2", &mesh));
    WF_TRY(weft_mesh_slice(mesh, "tp", weft_rank(ctx), &kept.tp));
    WF_TRY(weft_schedule_create("1f1b", 2, 0, 3, &schedule));
    values = one_value(mesh, "f32[4,6] S(1),R", &tensors[0]);
    (void)one_value(mesh, "i32[] R,R", &tensors[1]);
    values.count = 2;
    options.schedule = schedule;
    options.values = &values;
    WF_TRY(weft_pipeline_create(ctx, mesh, "pp", &options, &pipeline));
    WF_TRY(weft_pipeline_run(pipeline));
    weft_pipeline_release(&pipeline);
    HOLDS(kept.moved == (weft_rank(ctx) % 2 == 1));
    if (kept.input != NULL) WF_TRY(visit(kept.input, kept.microbatch, false));
    weft_tensor_release(&kept.input);
    free_values(&values);
    weft_schedule_release(&schedule);
    weft_mesh_release(&kept.tp);
    weft_mesh_release(&mesh);
    weft_context_release(&ctx);
    return WEFT_OK;
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
    free_values(&one.values[0]);
    weft_mesh_release(&one.mesh);
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
