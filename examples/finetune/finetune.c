/* finetune.c - train on from a checkpoint of another program: load, fully sharded data parallel,
 * save.
 *
 *     weft run -n 2 ./finetune /tmp/model
 *
 * /tmp/model/base.safetensors is what the other program wrote: a linear layer, under names of its
 * own.  Each rank loads its shards under the names of this program and trains on data of its own.
 * A copy of the weights is written to /tmp/model/tuned.safetensors while the training goes on.  In
 * the end it tries averages of the weights over the last steps, which often are better, and writes
 * them to /tmp/model/averaged.safetensors.  The steps compute on the host, so the backend must work
 * in host memory. */
#include <weft/file.h>
#include <weft/parallel.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { OUTPUTS = 6, INPUTS = 5, SAMPLES = 16, STEPS = 60, SAVED = 40 };
enum { WEIGHT, BIAS, PARAMETERS };

#define MUST(call)                                                                                 \
    do {                                                                                           \
        if ((call) != WEFT_OK) {                                                                   \
            fprintf(stderr, "%s: %s\n", #call, weft_last_error());                                 \
            exit(EXIT_FAILURE);                                                                    \
        }                                                                                          \
    } while (0)

/* What another program wrote. */
static void write_base(const char *path)
{
    static const int64_t shapes[PARAMETERS][2] = {{OUTPUTS, INPUTS}, {OUTPUTS}};
    const weft_checkpoint_entry entries[PARAMETERS] = {
        {.name = "transformer.head.weight", .dtype = "f32", .dims = 2, .shape = shapes[WEIGHT]},
        {.name = "transformer.head.bias", .dtype = "f32", .dims = 1, .shape = shapes[BIAS]}};
    weft_checkpoint_writer_options options = {.struct_size = sizeof options, .replace = true};
    weft_checkpoint_writer *writer;
    float elements[OUTPUTS * INPUTS];

    for (int i = 0; i < OUTPUTS * INPUTS; i++)
        elements[i] = (float)(i % 7) / 7;
    MUST(weft_checkpoint_writer_create(path, PARAMETERS, entries, sizeof *entries, &options,
                                       &writer));
    for (size_t i = 0; i < PARAMETERS; i++)
        MUST(weft_checkpoint_writer_write(writer, i, NULL, NULL, elements));
    MUST(weft_checkpoint_writer_commit(writer));
    weft_checkpoint_writer_release(&writer);
}

/* How far SHARD, this rank's part of the tensor NAME, is from what the checkpoint at PATH has: the
 * largest difference of an element. */
static float distance(const char *path, const char *name, const weft_tensor *shard)
{
    const weft_spec *spec = weft_tensor_spec(shard);
    int rank = weft_rank(weft_tensor_context(shard));
    const float *now = weft_tensor_memory(shard);
    float *saved = calloc(weft_spec_shard_bytes(spec, rank) + 1, 1), largest = 0;
    weft_checkpoint *in;
    size_t index;

    if (saved == NULL) abort();
    MUST(weft_checkpoint_open(path, &in));
    MUST(weft_checkpoint_find(in, name, &index));
    MUST(weft_checkpoint_read_shard(in, index, spec, rank, saved));
    for (int64_t i = 0; i < weft_tensor_shard(shard)->elements; i++)
        largest = fmaxf(largest, fabsf(now[i] - saved[i]));
    weft_checkpoint_close(&in);
    free(saved);
    return largest;
}

static const char *const names[PARAMETERS] = {"weight", "bias"};

/* Make SHARDS, each split over the ranks along its first dimension, and AVERAGES, which begin as
 * the same elements. */
static void load(weft_context *ctx, const weft_mesh *mesh, const char *path, weft_tensor **shards,
                 weft_tensor **averages)
{
    weft_load_options options = {
        .struct_size = sizeof options, .name_count = PARAMETERS, .names = names};
    weft_checkpoint *written, *model;
    weft_checkpoint_rules *rules;
    weft_layout_file *layout;

    MUST(weft_checkpoint_open(path, &written));
    MUST(weft_checkpoint_rules_parse("* = transformer.head.*", NULL, &rules));
    MUST(weft_checkpoint_map(written, rules, &model));
    MUST(weft_layout_file_parse("* S(0)\n", mesh, &layout));
    if (weft_load_count(model, &options) != PARAMETERS) abort();
    MUST(weft_load(ctx, model, layout, &options, shards));
    for (int i = 0; i < PARAMETERS; i++) {
        const weft_tensor_options named = {.struct_size = sizeof named, .name = names[i]};

        MUST(weft_tensor_create(ctx, weft_tensor_spec(shards[i]), &named, &averages[i]));
    }
    MUST(weft_load_into(ctx, model, PARAMETERS, averages, NULL));
    weft_layout_file_release(&layout);
    weft_checkpoint_close(&model);
    weft_checkpoint_rules_release(&rules);
    weft_checkpoint_close(&written);
}

/* The loss of WEIGHT and BIAS on the samples of RANK; adds to the gradients. */
static float learn(const float *weight, const float *bias, int rank, float *d_weight, float *d_bias)
{
    float loss = 0;

    for (int s = 0; s < SAMPLES; s++) {
        float x[INPUTS], scale = 2.0F / (SAMPLES * OUTPUTS);

        for (int i = 0; i < INPUTS; i++)
            x[i] = (float)((s * 5 + i * 3 + rank * 11) % 13) / 13;
        for (int o = 0; o < OUTPUTS; o++) {
            float error = bias[o] - (x[o % INPUTS] - x[(o + 1) % INPUTS]);

            for (int i = 0; i < INPUTS; i++)
                error += weight[o * INPUTS + i] * x[i];
            for (int i = 0; i < INPUTS; i++)
                d_weight[o * INPUTS + i] += scale * error * x[i];
            d_bias[o] += scale * error;
            loss += error * error / (SAMPLES * OUTPUTS);
        }
    }
    return loss;
}

/* One step of gradient descent: returns the loss on this rank's data, and sets *NORM to that of the
 * gradients of all ranks. */
static float step(weft_context *ctx, weft_fsdp_group *group, weft_tensor *const *shards,
                  double *norm)
{
    weft_tensor *gradients[PARAMETERS], *reduced[PARAMETERS];
    float loss;

    MUST(weft_fsdp_unshard_begin(group, WEFT_FSDP_FORWARD));
    MUST(weft_fsdp_unshard_end(group));
    for (size_t i = 0; i < weft_fsdp_group_count(group); i++)
        MUST(weft_fsdp_gradient_create(group, i, &gradients[i]));
    MUST(weft_context_wait(ctx, NULL, WEFT_FOREVER));
    loss = learn(weft_tensor_memory(weft_fsdp_parameter(group, WEIGHT)),
                 weft_tensor_memory(weft_fsdp_parameter(group, BIAS)), weft_rank(ctx),
                 weft_tensor_memory(gradients[WEIGHT]), weft_tensor_memory(gradients[BIAS]));
    MUST(weft_fsdp_reduce_begin(group, gradients, 0));
    MUST(weft_fsdp_reduce_end(group));
    for (size_t i = 0; i < weft_fsdp_group_count(group); i++)
        reduced[i] = weft_fsdp_gradient(group, i);
    MUST(weft_clip_gradient_norm_wait(ctx, PARAMETERS, reduced, 1.0, NULL, NULL, norm));
    for (size_t i = 0; i < weft_fsdp_group_count(group); i++) {
        const float *slope = weft_tensor_memory(reduced[i]);
        float *shard = weft_tensor_memory(shards[i]);

        for (int64_t k = 0; k < weft_tensor_shard(shards[i])->elements; k++)
            shard[k] -= 0.5F * slope[k];
        weft_tensor_release(&gradients[i]);
    }
    MUST(weft_fsdp_gradients_clear(group));
    return loss;
}

/* Keep running averages of SHARDS, which the ranks hold as they hold SHARDS. */
static void average(weft_tensor *const *shards, weft_tensor *const *averages)
{
    for (size_t i = 0; i < PARAMETERS; i++) {
        const float *now = weft_tensor_memory(shards[i]);
        float *mean = weft_tensor_memory(averages[i]);

        for (int64_t k = 0; k < weft_tensor_shard(shards[i])->elements; k++)
            mean[k] += 0.1F * (now[k] - mean[k]);
    }
}

/* The loss with AVERAGES in place of the weights. */
static float evaluate(weft_context *ctx, weft_fsdp_group *group, weft_tensor *const *averages)
{
    float d_weight[OUTPUTS * INPUTS] = {0}, d_bias[OUTPUTS] = {0}, loss;

    for (size_t i = 0; i < weft_fsdp_group_count(group); i++)
        MUST(weft_fsdp_rebind(group, i, averages[i]));
    MUST(weft_fsdp_unshard_begin(group, WEFT_FSDP_FORWARD));
    MUST(weft_fsdp_unshard_end(group));
    MUST(weft_context_wait(ctx, NULL, WEFT_FOREVER));
    loss = learn(weft_tensor_memory(weft_fsdp_parameter(group, WEIGHT)),
                 weft_tensor_memory(weft_fsdp_parameter(group, BIAS)), weft_rank(ctx), d_weight,
                 d_bias);
    MUST(weft_fsdp_reshard(group));
    MUST(weft_all_reduce(weft_world(ctx), &loss, &loss, 1, WEFT_DTYPE_F32, WEFT_REDUCE_AVG, NULL));
    MUST(weft_context_wait(ctx, NULL, WEFT_FOREVER));
    return loss;
}

static void train(weft_context *ctx, weft_fsdp_group *group, weft_tensor *const *shards,
                  weft_tensor *const *averages, const char *path)
{
    weft_save_options options = {.struct_size = sizeof options, .replace = true};
    weft_saving_info info = {.struct_size = sizeof info};
    weft_saving *saving = NULL;

    for (int k = 1; k <= STEPS; k++) {
        double norm;
        float loss = step(ctx, group, shards, &norm);

        average(shards, averages);
        MUST(weft_all_reduce(weft_world(ctx), &loss, &loss, 1, WEFT_DTYPE_F32, WEFT_REDUCE_AVG,
                             NULL));
        MUST(weft_context_wait(ctx, NULL, WEFT_FOREVER));
        if (k == SAVED) MUST(weft_save_begin(ctx, path, PARAMETERS, shards, &options, &saving));
        if (weft_rank(ctx) == 0 && k % 20 == 0)
            printf("step %d norm %.3f loss %.5f\n", k, norm, (double)loss);
    }
    MUST(weft_saving_wait(saving, WEFT_FOREVER));
    MUST(weft_saving_get(saving, &info));
    printf("rank %d wrote %llu bytes beside the training, and has gone on by %.4f since\n",
           weft_rank(ctx), (unsigned long long)info.written,
           (double)distance(path, "weight", shards[WEIGHT]));
    weft_saving_release(&saving);
}

int main(int argc, char **argv)
{
    weft_fsdp_param params[PARAMETERS] = {{0}};
    weft_tensor *shards[PARAMETERS], *averages[PARAMETERS];
    weft_fsdp_group *group;
    weft_context *ctx;
    float loss;
    weft_fsdp *fsdp;
    weft_mesh *mesh;
    weft_save_options replace = {.struct_size = sizeof replace, .replace = true};
    weft_fsdp_info memory = {.struct_size = sizeof memory};
    char base[4096], tuned[4096], averaged[4096];

    snprintf(base, sizeof base, "%s/base.safetensors", argc > 1 ? argv[1] : "model");
    snprintf(tuned, sizeof tuned, "%s/tuned.safetensors", argc > 1 ? argv[1] : "model");
    snprintf(averaged, sizeof averaged, "%s/averaged.safetensors", argc > 1 ? argv[1] : "model");
    MUST(weft_init(NULL, &ctx));
    MUST(weft_mesh_parse_for("dp=*", weft_size(ctx), &mesh));
    if (weft_rank(ctx) == 0) {
        (void)mkdir(argc > 1 ? argv[1] : "model", 0777);
        write_base(base);
    }
    MUST(weft_barrier(weft_world(ctx), NULL));
    MUST(weft_context_wait(ctx, NULL, WEFT_FOREVER));
    load(ctx, mesh, base, shards, averages);
    for (int i = 0; i < PARAMETERS; i++)
        params[i].tensor = shards[i];
    MUST(weft_fsdp_create(ctx, mesh, "dp", NULL, &fsdp));
    MUST(weft_fsdp_group_create(fsdp, PARAMETERS, params, sizeof *params, NULL, &group));
    train(ctx, group, shards, averages, tuned);
    loss = evaluate(ctx, group, averages);
    if (weft_rank(ctx) == 0) printf("loss with averaged weights %.5f\n", (double)loss);
    MUST(weft_save(ctx, averaged, PARAMETERS, averages, &replace));
    MUST(weft_fsdp_get(fsdp, &memory));
    printf("rank %d keeps %llu bytes of parameters, and %llu of gradients\n", weft_rank(ctx),
           (unsigned long long)memory.bytes_shard, (unsigned long long)memory.bytes_gradients);

    weft_fsdp_group_release(&group);
    weft_fsdp_release(&fsdp);
    for (int i = 0; i < PARAMETERS; i++) {
        weft_tensor_release(&shards[i]);
        weft_tensor_release(&averages[i]);
    }
    weft_mesh_release(&mesh);
    weft_context_release(&ctx);
    return EXIT_SUCCESS;
}
