/* gpt.c - a GPT of letters, trained with fully sharded data parallel.
 *
 *     weft run -n 4 gpt                a shard of each parameter on every rank
 *     weft run -n 4 gpt rep=2,dp=2     replicas of sharded parameters (HSDP)
 *     gpt                              one rank, for comparison
 *     weft run -n 8 gpt --mesh dp=2,cp=2,tp=2 [--sp]    context and tensor parallel: parallel.c
 *     weft run -n 4 gpt --schedule zbv                  a pipeline of stages: pipeline.c
 *
 * This file has the distribution; kernels.c has the model and computes on the host, so a CPU
 * backend is needed.  The loss is the same for every mesh, up to rounding. */
#include "gpt.h"
#include "pipeline.h"

#include <string.h>
#include <time.h>

weft_context *ctx;
weft_mesh *mesh;
weft_fsdp *fsdp;
struct block blocks[BLOCKS];

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

void make_block(int index, const char *replicas)
{
    struct block *block = &blocks[index];
    const struct parameter *p = parameters_of(index, &block->count);
    weft_fsdp_param params[MOST_PARAMETERS] = {{0}};
    weft_fsdp_group_options options = {.struct_size = sizeof options, .shard = "dp"};
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
    options.replicate = replicas;
    MUST(weft_fsdp_group_create(fsdp, (uint32_t)block->count, params, &options, &block->group));
}

/* While a block computes, the next one is gathered.  The backward pass begins with the head. */
void set_prefetch(void)
{
    for (int b = 0; b + 2 < BLOCKS; b++)
        MUST(weft_fsdp_prefetch_set(blocks[b].group, WEFT_FSDP_FORWARD, 1, &blocks[b + 1].group));
    for (int b = 0; b + 1 < BLOCKS; b++)
        MUST(weft_fsdp_prefetch_set(blocks[b + 1].group, WEFT_FSDP_BACKWARD, 1, &blocks[b].group));
}

/* ---- distribution: 2. a step ---- */

void gather(const struct block *block, enum weft_fsdp_phase phase, const float **whole)
{
    MUST(weft_fsdp_unshard_begin(block->group, phase));
    MUST(weft_fsdp_unshard_end(block->group));
    MUST(weft_stream_wait(ctx, NULL, WEFT_FOREVER)); /* the kernels compute on the host */
    for (int i = 0; i < block->count; i++)
        whole[i] = weft_tensor_memory(weft_fsdp_parameter(block->group, (uint32_t)i));
}

static void forward_all(struct batch *batch)
{
    const float *whole[MOST_PARAMETERS];

    for (int b = 0; b + 1 < BLOCKS; b++) { /* the head is done in the backward pass */
        gather(&blocks[b], WEFT_FSDP_FORWARD, whole);
        forward(b, whole, batch);
        MUST(weft_fsdp_reshard(blocks[b].group));
    }
}

static float backward_all(struct batch *batch)
{
    const float *whole[MOST_PARAMETERS];
    float *memory[MOST_PARAMETERS], loss = 0;
    weft_tensor *gradients[MOST_PARAMETERS];

    for (int b = BLOCKS - 1; b >= 0; b--) {
        gather(&blocks[b], WEFT_FSDP_BACKWARD, whole);
        for (int i = 0; i < blocks[b].count; i++) {
            MUST(weft_fsdp_gradient_create(blocks[b].group, (uint32_t)i, &gradients[i]));
            memory[i] = weft_tensor_memory(gradients[i]);
        }
        loss += backward(b, whole, memory, batch);
        MUST(weft_fsdp_reduce_begin(blocks[b].group, gradients, 0));
        for (int i = 0; i < blocks[b].count; i++)
            weft_tensor_release(&gradients[i]);
    }
    return loss;
}

void update_all(int step)
{
    weft_tensor *gradients[BLOCKS * MOST_PARAMETERS] = {NULL};
    uint32_t found = 0;

    for (int b = 0; b < BLOCKS; b++) {
        MUST(weft_fsdp_reduce_end(blocks[b].group));
        for (int i = 0; i < blocks[b].count; i++)
            gradients[found++] = weft_fsdp_gradient(blocks[b].group, (uint32_t)i);
    }
    MUST(weft_clip_grad_norm(ctx, found, gradients, 1.0, NULL, NULL, NULL));
    MUST(weft_stream_wait(ctx, NULL, WEFT_FOREVER));
    for (int b = BLOCKS - 1; b >= 0; b--) {
        const struct block *block = &blocks[b];

        for (int i = 0; i < block->count; i++)
            adamw(weft_tensor_shard(block->stored[i])->elements,
                  weft_tensor_memory(block->stored[i]),
                  weft_tensor_memory(weft_fsdp_gradient(block->group, (uint32_t)i)),
                  weft_tensor_memory(block->first[i]), weft_tensor_memory(block->second[i]), step);
        MUST(weft_fsdp_gradients_clear(block->group));
    }
}

/* The mean of the losses of all ranks. */
static float mean_of(float loss)
{
    MUST(weft_all_reduce(weft_world(ctx), &loss, &loss, 1, WEFT_DTYPE_F32, WEFT_REDUCE_AVG, NULL));
    return loss;
}

/* ---- the program ---- */

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void train(struct batch *batch, int64_t first)
{
    weft_counts counts = {.struct_size = sizeof counts};
    weft_memory_info memory = {.struct_size = sizeof memory};
    double begun = seconds();
    float loss = 0;

    MUST(weft_counts_begin(ctx, &counts));
    for (int step = 1; step <= STEPS; step++) {
        batch_fill(batch, (int64_t)step * SEQUENCES + first);
        forward_all(batch);
        loss = mean_of(backward_all(batch));
        update_all(step);
        if (weft_rank(ctx) == 0 && step % 10 == 0)
            printf("step %d loss %.6f\n", step, (double)loss);
    }
    MUST(weft_counts_end(ctx, &counts));
    MUST(weft_memory_get(ctx, &memory));
    if (weft_rank(ctx) != 0) return;
    printf("%.0f tokens/s, %llu bytes received a step, %llu bytes of memory at most\n",
           STEPS * SEQUENCES * LENGTH / (seconds() - begun),
           (unsigned long long)counts.received / STEPS, (unsigned long long)memory.bytes_peak);
}

void end_block(struct block *block)
{
    weft_fsdp_group_release(&block->group);
    for (int i = 0; i < block->count; i++) {
        weft_tensor_release(&block->stored[i]);
        weft_tensor_release(&block->first[i]);
        weft_tensor_release(&block->second[i]);
    }
}

int main(int argc, char **argv)
{
    struct batch *batch;
    char text[32];

    if (argc > 1 && strcmp(argv[1], "--schedule") == 0) return pipeline_main(argc, argv);
    MUST(weft_init(NULL, &ctx));
    if (argc > 2 && strcmp(argv[1], "--mesh") == 0) {
        bool is_split = argc > 3 && strcmp(argv[3], "--sp") == 0;

        if (argc > 3 + is_split) {
            fprintf(stderr, "%s is not known\n", argv[3 + is_split]);
            return EXIT_FAILURE;
        }
        train_parallel(argv[2], is_split, STEPS);
        weft_context_release(&ctx);
        return EXIT_SUCCESS;
    }
    snprintf(text, sizeof text, "dp=%d", weft_size(ctx));
    MUST(weft_mesh_parse(argc > 1 ? argv[1] : text, &mesh));
    if (weft_mesh_size(mesh) != weft_size(ctx) || SEQUENCES % weft_size(ctx) != 0) {
        fprintf(stderr, "the mesh must have all ranks, and their number must divide %d\n",
                SEQUENCES);
        return EXIT_FAILURE;
    }
    batch = batch_create(SEQUENCES / weft_size(ctx));
    MUST(weft_fsdp_create(ctx, NULL, &fsdp));
    for (int b = 0; b < BLOCKS; b++)
        make_block(b, weft_mesh_axes(mesh) > 1 ? "rep" : NULL);
    set_prefetch();
    train(batch, (int64_t)weft_rank(ctx) * batch->count);
    for (int b = 0; b < BLOCKS; b++)
        end_block(&blocks[b]);
    weft_fsdp_release(&fsdp);
    batch_free(batch);
    weft_mesh_release(&mesh);
    weft_context_release(&ctx);
    return EXIT_SUCCESS;
}
