/* pipeline.c - see pipeline.h.
 *
 *     weft run -n 4 gpt --schedule zbv                  four ranks, two stages on each
 *     weft run -n 4 gpt --schedule 1f1b pp=2,dp=2       two pipelines, which share each stage's
 *                                                       parameters and its gradients
 *
 *     weft run -n 2 gpt --schedule 1f1b --times FILE    write measured times for `weft step FILE`
 *
 * weft_pipeline_run calls `compute_forward` and `compute_backward` in the order of the schedule.  A
 * stage keeps nothing between its actions: the backward pass computes its inside again from its
 * inputs, which weft holds. */
#include "pipeline.h"

#include "gpt.h"

#include <string.h>

#define TRY(call)                                                                                  \
    do {                                                                                           \
        weft_status status_ = (call);                                                              \
        if (status_ != WEFT_OK) return status_;                                                    \
    } while (0)

/* The gradients of a block that this rank has. */
struct sums {
    weft_tensor *gradients[MOST_PARAMETERS]; /* over microbatches; NULL: none yet */
    float *dropped[MOST_PARAMETERS];         /* for gradients that nobody wants */
};

struct model {
    weft_mesh *all;  /* ranks; `mesh` has those that share this rank's parameters */
    weft_comm *line; /* the ranks of this pipeline */
    int32_t rank, stages, microbatches, shares;
    struct sums sums[MOST_BLOCKS];
    struct batch *batch;         /* one microbatch */
    int64_t sequence;            /* the first of this step and pipeline */
    float loss;                  /* sum over microbatches; the last stage has it */
    weft_pipeline_tensor passed; /* what each stage but the last passes on */
};

/* ---- distribution: 1. which stage has which blocks ---- */

/* The first stage has the embedding, the last one the head.  Layers are dealt evenly, as `weft
 * step` does: the first stages have one more, and if there are more stages than layers, the last
 * stages have none. */
static int32_t stage_of(const struct model *model, int block)
{
    int32_t layer = block - 1, each = sizes.layers / model->stages,
            more = sizes.layers % model->stages;

    if (block == 0) return 0;
    if (block == sizes.blocks - 1) return model->stages - 1;
    if (layer < more * (each + 1)) return layer / (each + 1);
    return more + (layer - more * (each + 1)) / each;
}

static bool has_block(const struct model *model, const weft_schedule *schedule, int block)
{
    return weft_schedule_rank_of(schedule, stage_of(model, block)) == model->rank;
}

static void make_sums(struct model *model, int index)
{
    const struct parameter *p = parameters_of(index, &blocks[index].count);

    for (int i = 0; i < blocks[index].count; i++)
        model->sums[index].dropped[i] =
            calloc((size_t)p[i].rows * (size_t)(p[i].columns + 1), sizeof(float));
}

/* ---- distribution: 2. parameters and gradients of a stage ---- */

static weft_status unshard(void *user, const weft_pipeline_call *call)
{
    struct model *model = user;

    for (int b = 0; b < sizes.blocks; b++)
        if (stage_of(model, b) == call->stage)
            TRY(weft_fsdp_unshard_begin(blocks[b].group, WEFT_FSDP_FORWARD));
    return WEFT_OK;
}

static weft_status reshard(void *user, const weft_pipeline_call *call)
{
    struct model *model = user;

    for (int b = 0; b < sizes.blocks; b++)
        if (stage_of(model, b) == call->stage) TRY(weft_fsdp_reshard(blocks[b].group));
    return WEFT_OK;
}

static weft_status reduce(void *user, const weft_pipeline_call *call)
{
    struct model *model = user;

    for (int b = 0; b < sizes.blocks; b++) {
        weft_tensor **gradients = model->sums[b].gradients;

        if (stage_of(model, b) != call->stage) continue;
        TRY(weft_fsdp_reduce_begin(blocks[b].group, gradients, WEFT_FSDP_KEEP));
        for (int i = 0; i < blocks[b].count; i++)
            weft_tensor_release(&gradients[i]);
    }
    return WEFT_OK;
}

/* Wait for the gathered parameters of BLOCK. */
static weft_status take_parameters(struct block *block, const float **whole)
{
    weft_fsdp_group_info info = {.struct_size = sizeof info};

    TRY(weft_fsdp_group_get(block->group, &info));
    if (info.state == WEFT_FSDP_GATHERING) {
        TRY(weft_fsdp_unshard_end(block->group));
        TRY(weft_context_wait(ctx, NULL, WEFT_FOREVER)); /* the kernels compute on the host */
    }
    take_whole(block, whole);
    return WEFT_OK;
}

/* Where the gradients of block INDEX are added up, or, if they are not wanted, dropped. */
static void take_gradients(struct model *model, int index, bool wanted, float **out)
{
    struct sums *sums = &model->sums[index];

    for (int i = 0; i < blocks[index].count; i++) {
        if (wanted && sums->gradients[i] == NULL)
            sums->gradients[i] = new_gradient(&blocks[index], i);
        out[i] = wanted ? weft_tensor_memory(sums->gradients[i]) : sums->dropped[i];
    }
}

/* ---- distribution: 3. the computation of a stage ---- */

/* Note the time of BLOCK, which has begun at BEGUN.  A backward action computes forward AGAIN. */
static void note_time(const weft_pipeline_call *call, int block, double begun, bool again)
{
    double taken = seconds_now() - begun;

    if (call->kind == WEFT_SCHEDULE_ACTION_F) times_add(&times, FORWARD, block, taken, 1);
    if (call->kind == WEFT_SCHEDULE_ACTION_B) taken /= 2; /* half for each of the two parts */
    if ((call->parts & WEFT_PIPELINE_INPUTS) != 0) times_add(&times, INPUTS, block, taken, !again);
    if ((call->parts & WEFT_PIPELINE_WEIGHTS) != 0)
        times_add(&times, WEIGHTS, block, taken, !again);
}

/* Set the input of each block of the stage, and the output of the stage. */
static weft_status compute_inside(struct model *model, const weft_pipeline_call *call, float *out)
{
    const float *whole[MOST_PARAMETERS];
    struct batch *batch = model->batch;
    size_t bytes = (size_t)(batch->count * sizes.length * sizes.width) * sizeof(float);
    int first = 0, next;

    while (first < sizes.blocks && stage_of(model, first) < call->stage)
        first++;
    next = first;
    batch_fill(batch, model->sequence + (int64_t)call->microbatch * batch->count);
    if (call->stage > 0) memcpy(batch->inputs[first], weft_tensor_memory(call->inputs[0]), bytes);
    for (; next < sizes.blocks - 1 && stage_of(model, next) == call->stage; next++) {
        double begun = seconds_now();

        TRY(take_parameters(&blocks[next], whole));
        forward(next, whole, batch);
        note_time(call, next, begun, true);
    }
    if (out != NULL) memcpy(out, batch->inputs[next], bytes);
    return WEFT_OK;
}

static weft_status compute_forward(void *user, const weft_pipeline_call *call)
{
    /* The head computes in its backward pass. */
    return compute_inside(user, call,
                          call->output_count > 0 ? weft_tensor_memory(call->outputs[0]) : NULL);
}

/* The kernels compute gradients of inputs and of weights at once.  If only one of them is asked
 * for, the other is dropped. */
static weft_status compute_backward(void *user, const weft_pipeline_call *call)
{
    struct model *model = user;
    struct batch *batch = model->batch;
    size_t bytes = (size_t)(batch->count * sizes.length * sizes.width) * sizeof(float);
    bool wanted = (call->parts & WEFT_PIPELINE_WEIGHTS) != 0;
    const float *whole[MOST_PARAMETERS];
    float *gradients[MOST_PARAMETERS];

    TRY(compute_inside(model, call, NULL));
    if (call->output_count > 0) memcpy(batch->slope, weft_tensor_memory(call->d_outputs[0]), bytes);
    batch->loss_scale = (float)call->loss_scale;
    for (int b = sizes.blocks - 1; b >= 0; b--) {
        double begun = seconds_now();
        float loss;

        if (stage_of(model, b) != call->stage) continue;
        TRY(take_parameters(&blocks[b], whole));
        take_gradients(model, b, wanted, gradients);
        loss = backward(b, whole, gradients, batch);
        if (wanted) model->loss += loss;
        note_time(call, b, begun, false);
    }
    if (call->d_inputs != NULL) memcpy(weft_tensor_memory(call->d_inputs[0]), batch->slope, bytes);
    return WEFT_OK;
}

/* Every stage but the last passes on the activations of one microbatch, whose sequences the
 * pipelines share. */
static weft_spec *passed_on(const struct model *model)
{
    const int64_t shape[] = {model->batch->count * model->shares, sizes.length, sizes.width};
    int32_t axes = weft_mesh_axes(model->all), dp;
    char placements[8 * WEFT_MAX_AXES] = "";
    weft_spec *spec;

    MUST(weft_mesh_find_axis(model->all, "dp", &dp));
    for (int32_t a = 0; a < axes; a++)
        snprintf(placements + strlen(placements), sizeof placements - strlen(placements), "%s%s",
                 a > 0 ? "," : "", a == dp ? "S(0)" : "R");
    MUST(weft_spec_parse_placements(model->all, WEFT_DTYPE_F32, 3, shape, placements, &spec));
    return spec;
}

static weft_status shapes(void *user, int32_t stage, const weft_pipeline_values *in,
                          weft_pipeline_values *out)
{
    struct model *model = user;

    (void)stage, (void)in;
    *out = (weft_pipeline_values){1, &model->passed, sizeof model->passed};
    return WEFT_OK;
}

/* ---- a step ---- */

static void update(struct model *model, int step)
{
    weft_clip_options options = {.struct_size = sizeof options, .stages = model->line};

    update_all(step, &options);
}

/* The mean of the losses of all microbatches, on every rank. */
static float mean_of(const struct model *model)
{
    float loss = model->loss / (float)(model->microbatches * model->shares);

    MUST(weft_all_reduce(weft_world(ctx), &loss, &loss, 1, WEFT_DTYPE_F32, WEFT_REDUCE_SUM, NULL));
    return loss;
}

static void train(struct model *model, weft_pipeline *pipeline, int32_t share, int steps)
{
    for (int step = 1; step <= steps; step++) {
        double begun;
        float loss;

        model->sequence =
            (int64_t)step * sizes.sequences + share * (sizes.sequences / model->shares);
        model->loss = 0;
        begun = seconds_now();
        MUST(weft_pipeline_run(pipeline));
        loss = mean_of(model);
        update(model, step);
        times_end_step(&times, seconds_now() - begun);
        if (weft_rank(ctx) == 0 && step % 10 == 0)
            printf("step %d loss %.6f\n", step, (double)loss);
    }
}

/* ---- the program ---- */

/* The mesh has the axes pp, along which stages are, and dp; without one of them, it has one rank.
 */
static void make_mesh(struct model *model, const char *given)
{
    char text[128], whole[192];

    snprintf(text, sizeof text, "pp=%d", weft_size(ctx));
    if (given == NULL) given = text;
    snprintf(whole, sizeof whole, "%s%s%s", strstr(given, "pp=") == NULL ? "pp=1," : "", given,
             strstr(given, "dp=") == NULL ? ",dp=1" : "");
    MUST(weft_mesh_parse(whole, &model->all));
    if (weft_mesh_size(model->all) != weft_size(ctx)) {
        fprintf(stderr, "the mesh %s must have all ranks\n", whole);
        exit(EXIT_FAILURE);
    }
    MUST(weft_mesh_slice(model->all, "dp", weft_rank(ctx), &mesh));
    MUST(weft_comm_along(weft_world(ctx), model->all, "pp", NULL, &model->line));
    model->rank = weft_comm_rank(model->line);
    model->shares = weft_mesh_size(mesh);
}

static weft_schedule *make_schedule(struct model *model, const struct arguments *given)
{
    weft_schedule_info info = {.struct_size = sizeof info};
    int32_t sequences = sizes.sequences / model->shares; /* of a pipeline */
    weft_schedule *schedule;

    model->microbatches = given->microbatches > 0 ? given->microbatches : sequences;
    if (sizes.sequences % model->shares != 0 || sequences % model->microbatches != 0) {
        fprintf(stderr, "dp x microbatches must divide %d\n", sizes.sequences);
        exit(EXIT_FAILURE);
    }
    MUST(weft_schedule_create(given->schedule, weft_comm_size(model->line), given->chunks,
                              model->microbatches, &schedule));
    MUST(weft_schedule_get(schedule, &info));
    model->stages = info.stages;
    model->batch = batch_create(sequences / model->microbatches);
    return schedule;
}

int pipeline_main(const struct arguments *given)
{
    struct model model = {0};
    weft_pipeline_options options = {.struct_size = sizeof options,
                                     .user = &model,
                                     .forward = compute_forward,
                                     .backward = compute_backward,
                                     .unshard = unshard,
                                     .reshard = reshard,
                                     .reduce = reduce,
                                     .shapes = shapes};
    weft_pipeline_info info = {.struct_size = sizeof info};
    weft_pipeline_values passed = {0};
    int32_t coord[WEFT_MAX_AXES];
    weft_pipeline *pipeline;
    weft_schedule *schedule;
    weft_spec *spec;

    MUST(weft_init(NULL, &ctx));
    make_mesh(&model, given->mesh);
    schedule = make_schedule(&model, given);
    spec = passed_on(&model);
    model.passed.spec = spec;
    MUST(weft_fsdp_create(ctx, mesh, "dp", NULL, &fsdp));
    for (int b = 0; b < sizes.blocks; b++)
        if (has_block(&model, schedule, b)) {
            make_block(b);
            make_sums(&model, b);
        }
    options.schedule = schedule;
    MUST(weft_pipeline_create(ctx, model.all, "pp", &options, &pipeline));
    MUST(weft_mesh_coord_of(mesh, weft_rank(ctx), coord));
    train(&model, pipeline, coord[0], given->steps);
    MUST(times_sum(ctx, &times));
    MUST(weft_pipeline_get(pipeline, &info));
    if (model.stages > 1) MUST(weft_pipeline_values_get(pipeline, 0, &passed));
    if (weft_rank(ctx) == 0)
        printf("stage 0 passes %zu tensors on; a step sends %llu bytes to other stages\n"
               "median step %.0f us\n",
               passed.count, (unsigned long long)info.sent, times_step_us(&times));
    if (weft_rank(ctx) == 0 && given->times != NULL &&
        !times_write(&times, model.batch->count, given->times))
        fprintf(stderr, "%s cannot be written\n", given->times);
    weft_pipeline_release(&pipeline);
    weft_schedule_release(&schedule);
    weft_spec_release(&spec);
    for (int b = 0; b < sizes.blocks; b++) {
        end_block(&blocks[b]);
        for (int i = 0; i < MOST_PARAMETERS; i++)
            free(model.sums[b].dropped[i]);
    }
    weft_fsdp_release(&fsdp);
    batch_free(model.batch);
    weft_mesh_release(&mesh);
    weft_mesh_release(&model.all);
    weft_context_release(&ctx);
    return EXIT_SUCCESS;
}
