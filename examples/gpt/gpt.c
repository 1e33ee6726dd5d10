/* gpt.c - a GPT of letters, trained with fully sharded data parallel.
 *
 *     weft run -n 4 gpt                a shard of each parameter on every rank
 *     weft run -n 4 gpt rep=2,dp=2     replicas of sharded parameters (HSDP)
 *     gpt                              one rank, for comparison
 *     weft run -n 8 gpt --mesh dp=2,cp=2,tp=2 [--sp]    context and tensor parallel: parallel.c
 *     weft run -n 4 gpt --schedule zbv                  a pipeline of stages: pipeline.c
 *     gpt --times FILE --for dp=2,tp=2 [--mesh dp=1]    what `weft step FILE` predicts for a mesh
 *
 *     weft run -n 4 gpt --keep 2       the backward pass gathers from 2 ranks, not from all 4
 *     gpt --clip-value 0.001           each element of a gradient is limited, not the norm of all
 *
 * Options set the sizes.  Those of GPT-2, except that its head is the embedding:
 *
 *     gpt --layers 12 --width 768 --heads 12 --length 1024 --vocabulary 50257 --batch 4 --bf16
 *
 * This file has the distribution; kernels.c has the model and computes on the host, so a CPU
 * backend is needed.  The loss is the same for every mesh, up to rounding. */
#include "gpt.h"
#include "pipeline.h"
#include "weft/trace.h"

#include <string.h>

weft_context *ctx;
weft_mesh *mesh;
weft_fsdp *fsdp;
struct block blocks[MOST_BLOCKS];
struct times times;
bool is_bf16;
int32_t keep;
double clip_value;

/* ---- distribution: 1. where parameters are ---- */

/* A tensor whose rows are split along the axis "dp", and on an axis "tp" as the parameter says. */
static weft_tensor *make(const struct parameter *p, const char *name)
{
    const weft_tensor_options options = {.struct_size = sizeof options, .name = name};
    const int64_t shape[2] = {p->rows, p->columns};
    weft_placement placements[WEFT_MAX_AXES] = {{0}};
    weft_spec *whole, *sharded;
    weft_tensor *tensor;
    int32_t tp = weft_mesh_axes(mesh);

    if (p->tp != NULL && weft_mesh_find_axis(mesh, "tp", &tp) == WEFT_OK)
        MUST(weft_placements_parse(p->tp, 1, &placements[tp]));
    MUST(weft_spec_create(mesh, WEFT_DTYPE_F32, p->columns > 0 ? 2 : 1, shape, placements, &whole));
    weft_placements_free(weft_mesh_axes(mesh), placements);
    MUST(weft_fsdp_shard_spec(whole, "dp", 0, &sharded));
    MUST(weft_tensor_create(ctx, sharded, &options, &tensor));
    MUST(weft_tensor_fill(tensor, 0, NULL));
    weft_spec_release(&whole);
    weft_spec_release(&sharded);
    return tensor;
}

void make_block(int index)
{
    struct block *block = &blocks[index];
    const struct parameter *p = parameters_of(index, &block->count);
    weft_fsdp_param params[MOST_PARAMETERS] = {{0}};
    weft_fsdp_group_options options = {.struct_size = sizeof options,
                                       .gather_dtype = is_bf16 ? "bf16" : NULL,
                                       .reduce_dtype = is_bf16 ? "bf16" : NULL};
    char name[64];

    for (int i = 0; i < block->count; i++) {
        weft_random random = {.seed = (uint64_t)(100 * index + i)};

        snprintf(name, sizeof name, "block%d.%s", index, p[i].name);
        params[i].tensor = block->stored[i] = make(&p[i], name);
        block->first[i] = make(&p[i], name);
        block->second[i] = make(&p[i], name);
        MUST(weft_tensor_fill(block->stored[i], (double)p[i].start, NULL));
        if (p[i].deviation > 0) /* the same numbers on any number of ranks */
            MUST(weft_tensor_normal(block->stored[i], &random, 0, (double)p[i].deviation, NULL));
    }
    snprintf(name, sizeof name, "block%d", index);
    options.name = name;
    MUST(weft_fsdp_group_create(fsdp, (size_t)block->count, params, sizeof *params, &options,
                                &block->group));
}

/* While a block computes, the next one is gathered.  The backward pass begins with the head. */
void set_prefetch(void)
{
    for (int b = 0; b + 2 < sizes.blocks; b++)
        MUST(weft_fsdp_prefetch_set(blocks[b].group, WEFT_FSDP_FORWARD, 1, &blocks[b + 1].group));
    for (int b = 0; b + 1 < sizes.blocks; b++)
        MUST(weft_fsdp_prefetch_set(blocks[b + 1].group, WEFT_FSDP_BACKWARD, 1, &blocks[b].group));
}

/* ---- distribution: 2. a step ---- */

static void widen(struct block *block, int i, const weft_tensor *gathered)
{
    const uint16_t *narrow = weft_tensor_memory(gathered);
    size_t count = (size_t)weft_tensor_shard(gathered)->elements;

    if (block->wide[i] == NULL) block->wide[i] = malloc(count * sizeof(float) + 1);
    if (block->wide[i] == NULL) abort();
    for (size_t e = 0; e < count; e++) {
        uint32_t bits = (uint32_t)narrow[e] << 16; /* bf16 is the upper half of f32 */

        memcpy(&block->wide[i][e], &bits, sizeof bits);
    }
}

void take_whole(struct block *block, const float **whole)
{
    for (int i = 0; i < block->count; i++) {
        const weft_tensor *gathered = weft_fsdp_parameter(block->group, (size_t)i);

        if (is_bf16) widen(block, i, gathered);
        whole[i] = is_bf16 ? block->wide[i] : weft_tensor_memory(gathered);
    }
}

weft_tensor *new_gradient(const struct block *block, int i)
{
    weft_tensor *gradient;
    weft_spec *spec;

    MUST(weft_spec_with_dtype(weft_fsdp_gradient_spec(block->group, (size_t)i), WEFT_DTYPE_F32,
                              &spec));
    MUST(weft_tensor_create(ctx, spec, NULL, &gradient));
    MUST(weft_tensor_fill(gradient, 0, NULL));
    weft_spec_release(&spec);
    return gradient;
}

void gather(struct block *block, enum weft_fsdp_phase phase, const float **whole)
{
    MUST(weft_fsdp_unshard_begin(block->group, phase));
    MUST(weft_fsdp_unshard_end(block->group));
    MUST(weft_context_wait(ctx, NULL, WEFT_FOREVER)); /* the kernels compute on the host */
    take_whole(block, whole);
}

static void forward_all(struct batch *batch)
{
    const float *whole[MOST_PARAMETERS];

    for (int b = 0; b + 1 < sizes.blocks; b++) { /* the head is done in the backward pass */
        double begun;

        gather(&blocks[b], WEFT_FSDP_FORWARD, whole);
        begun = seconds_now();
        forward(b, whole, batch);
        times_add(&times, FORWARD, b, seconds_now() - begun, 1);
        end_forward(b);
    }
}

void end_forward(int b)
{
    if (keep > 0)
        MUST(weft_fsdp_reshard_to(blocks[b].group, keep));
    else
        MUST(weft_fsdp_reshard(blocks[b].group));
}

void begin_backward(int b, const float **whole, weft_tensor **gradients, float **memory)
{
    gather(&blocks[b], WEFT_FSDP_BACKWARD, whole);
    for (int i = 0; i < blocks[b].count; i++) {
        gradients[i] = new_gradient(&blocks[b], i);
        memory[i] = weft_tensor_memory(gradients[i]);
    }
}

void end_backward(int b, weft_tensor **gradients)
{
    MUST(weft_fsdp_reduce_begin(blocks[b].group, gradients, 0));
    for (int i = 0; i < blocks[b].count; i++)
        weft_tensor_release(&gradients[i]);
}

static float backward_all(struct batch *batch)
{
    const float *whole[MOST_PARAMETERS];
    float *memory[MOST_PARAMETERS], loss = 0;
    weft_tensor *gradients[MOST_PARAMETERS];

    for (int b = sizes.blocks - 1; b >= 0; b--) {
        double begun;

        begin_backward(b, whole, gradients, memory);
        begun = seconds_now();
        loss += backward(b, whole, memory, batch);
        times_add_backward(&times, b, seconds_now() - begun);
        end_backward(b, gradients);
    }
    return loss;
}

void update_all(int step, const weft_clip_options *options)
{
    weft_tensor *gradients[MOST_BLOCKS * MOST_PARAMETERS] = {NULL};
    uint32_t found = 0;

    for (int b = 0; b < sizes.blocks; b++) {
        if (blocks[b].group == NULL) continue;
        MUST(weft_fsdp_reduce_end(blocks[b].group));
        for (int i = 0; i < blocks[b].count; i++)
            gradients[found++] = weft_fsdp_gradient(blocks[b].group, (size_t)i);
    }
    if (clip_value > 0)
        MUST(weft_clip_gradient_value(ctx, found, gradients, clip_value, NULL, NULL));
    else
        MUST(weft_clip_gradient_norm(ctx, found, gradients, 1.0, options, NULL, NULL, NULL));
    MUST(weft_context_wait(ctx, NULL, WEFT_FOREVER));
    for (int b = sizes.blocks - 1; b >= 0; b--) {
        const struct block *block = &blocks[b];
        double begun = seconds_now();

        if (block->group == NULL) continue;
        for (int i = 0; i < block->count; i++)
            adamw(weft_tensor_shard(block->stored[i])->elements,
                  weft_tensor_memory(block->stored[i]),
                  weft_tensor_memory(weft_fsdp_gradient(block->group, (size_t)i)),
                  weft_tensor_memory(block->first[i]), weft_tensor_memory(block->second[i]), step);
        MUST(weft_fsdp_gradients_clear(block->group));
        times_add(&times, UPDATE, b, seconds_now() - begun, 1);
    }
}

/* The mean of the losses of all ranks. */
static float mean_of(float loss)
{
    MUST(weft_all_reduce(weft_world(ctx), &loss, &loss, 1, WEFT_DTYPE_F32, WEFT_REDUCE_AVG, NULL));
    return loss;
}

/* ---- the program ---- */

static void train(struct batch *batch, int64_t first, int steps)
{
    weft_record_counts_info sums = {.struct_size = sizeof sums};
    weft_record_counts *counts;
    weft_memory_info memory = {.struct_size = sizeof memory};
    double begun = seconds_now();
    float loss = 0;

    MUST(weft_record_counts_create(ctx, &counts));
    for (int step = 1; step <= steps; step++) {
        double step_begun = seconds_now();

        batch_fill(batch, (int64_t)step * sizes.sequences + first);
        forward_all(batch);
        loss = mean_of(backward_all(batch));
        update_all(step, NULL);
        times_end_step(&times, seconds_now() - step_begun);
        if (weft_rank(ctx) == 0 && step % 10 == 0)
            printf("step %d loss %.6f\n", step, (double)loss);
    }
    MUST(weft_record_counts_end(counts));
    MUST(weft_record_counts_get(counts, &sums));
    weft_record_counts_release(&counts);
    MUST(weft_memory_get(ctx, &memory));
    if (weft_rank(ctx) != 0) return;
    printf("%.0f tokens/s, %llu bytes received a step, %llu bytes of memory at most\n",
           steps * sizes.sequences * sizes.length / (seconds_now() - begun),
           (unsigned long long)sums.received / (unsigned)steps,
           (unsigned long long)memory.bytes_peak);
}

void end_block(struct block *block)
{
    weft_fsdp_group_release(&block->group);
    for (int i = 0; i < block->count; i++) {
        weft_tensor_release(&block->stored[i]);
        weft_tensor_release(&block->first[i]);
        weft_tensor_release(&block->second[i]);
        free(block->wide[i]);
    }
}

static void train_sharded(const char *given, int steps)
{
    weft_fsdp_options options = {.struct_size = sizeof options};
    struct batch *batch;
    char text[32];

    snprintf(text, sizeof text, "dp=%d", weft_size(ctx));
    MUST(weft_mesh_parse(given != NULL ? given : text, &mesh));
    if (weft_mesh_size(mesh) != weft_size(ctx) || sizes.sequences % weft_size(ctx) != 0) {
        fprintf(stderr, "the mesh must have all ranks, and their number must divide %d\n",
                sizes.sequences);
        exit(EXIT_FAILURE);
    }
    batch = batch_create(sizes.sequences / weft_size(ctx));
    options.replicate = weft_mesh_axes(mesh) > 1 ? "rep" : NULL;
    MUST(weft_fsdp_create(ctx, mesh, "dp", &options, &fsdp));
    for (int b = 0; b < sizes.blocks; b++)
        make_block(b);
    set_prefetch();
    train(batch, (int64_t)weft_rank(ctx) * batch->count, steps);
    for (int b = 0; b < sizes.blocks; b++)
        end_block(&blocks[b]);
    weft_fsdp_release(&fsdp);
    batch_free(batch);
    weft_mesh_release(&mesh);
}

/* Print the time of a step and, if wanted, write what was measured. */
static bool report(const struct arguments *given)
{
    weft_mesh *target = NULL;
    bool written;

    MUST(times_sum(ctx, &times));
    if (weft_rank(ctx) != 0) return true;
    printf("median step %.0f us\n", times_step_us(&times));
    if (given->times == NULL) return true;
    MUST(weft_mesh_parse(given->target != NULL ? given->target : "dp=1", &target));
    written =
        weft_size(ctx) == 1 && times_write_mesh(&times, sizes.sequences, axis_size(target, "dp"),
                                                axis_size(target, "tp"), given->times);
    weft_mesh_release(&target);
    if (!written) fprintf(stderr, "%s is written by one rank, if it can be\n", given->times);
    return written;
}

int main(int argc, char **argv)
{
    struct arguments given = arguments_of(argc, argv);
    bool written;

    is_bf16 = given.is_bf16;
    keep = given.keep;
    clip_value = given.clip_value;
    if (given.schedule != NULL) return pipeline_main(&given);
    MUST(weft_init(NULL, &ctx));
    if (given.is_parallel)
        train_parallel(given.mesh, given.is_split, given.steps);
    else
        train_sharded(given.mesh, given.steps);
    written = report(&given);
    weft_context_release(&ctx);
    return written ? EXIT_SUCCESS : EXIT_FAILURE;
}
