/* fsdp_model.c - see fsdp_model.h. */
#include "fsdp_model.h"

#include <stdio.h>

enum { VOCABULARY = 50257, LENGTH = 1024, CHANNELS = 768 };

/* ---- parameters ---- */

static weft_tensor *make_tensor(int64_t rows, int64_t columns)
{
    weft_spec *spec = NULL;
    weft_tensor *tensor = NULL;
    char text[64];

    if (columns > 0)
        snprintf(text, sizeof text, "f32[%lld,%lld] S(0)", (long long)rows, (long long)columns);
    else
        snprintf(text, sizeof text, "f32[%lld] S(0)", (long long)rows);
    must(weft_spec_parse(mesh, text, &spec), text);
    must(weft_tensor_create(context, spec, NULL, &tensor), "weft_tensor_create");
    must(weft_tensor_fill(tensor, 1, stream), "weft_tensor_fill");
    weft_spec_release(&spec);
    return tensor;
}

static void add(struct model *model, int group, int64_t rows, int64_t columns)
{
    model->bytes[group] += (uint64_t)(rows * (columns > 0 ? columns : 1)) * sizeof(float);
    model->stored[group][model->counts[group]++] = make_tensor(rows, columns);
}

static void add_block(struct model *model, int group, int64_t channels)
{
    for (int i = 0; i < 4; i++) /* weights and biases of two norms */
        add(model, group, channels, 0);
    add(model, group, 3 * channels, channels);
    add(model, group, 3 * channels, 0);
    add(model, group, channels, channels);
    add(model, group, channels, 0);
    add(model, group, 4 * channels, channels);
    add(model, group, 4 * channels, 0);
    add(model, group, channels, 4 * channels);
    add(model, group, channels, 0);
}

static void add_rest(struct model *model, int64_t vocabulary, int64_t channels)
{
    add(model, MODEL_BLOCKS, vocabulary, channels);
    add(model, MODEL_BLOCKS, LENGTH, channels);
    add(model, MODEL_BLOCKS, channels, 0);
    add(model, MODEL_BLOCKS, channels, 0);
}

static void set_prefetch(struct model *model)
{
    for (int i = 0; i + 1 < MODEL_BLOCKS; i++) {
        must(weft_fsdp_prefetch_set(model->groups[i], WEFT_FSDP_FORWARD, 1, &model->groups[i + 1]),
             "weft_fsdp_prefetch_set");
        must(weft_fsdp_prefetch_set(model->groups[i + 1], WEFT_FSDP_BACKWARD, 1, &model->groups[i]),
             "weft_fsdp_prefetch_set");
    }
}

void model_begin(struct model *model, int divisor)
{
    const weft_fsdp_options options = {.struct_size = sizeof options, .compute = stream};

    *model = (struct model){0};
    must(weft_fsdp_create(context, mesh, "0", &options, &model->fsdp), "weft_fsdp_create");
    for (int i = 0; i < MODEL_BLOCKS; i++)
        add_block(model, i, CHANNELS / divisor);
    add_rest(model, VOCABULARY / divisor, CHANNELS / divisor);
    for (int i = 0; i < MODEL_GROUPS; i++) {
        weft_fsdp_param params[MODEL_MOST] = {{0}};

        for (uint32_t p = 0; p < model->counts[i]; p++)
            params[p].tensor = model->stored[i][p];
        must(weft_fsdp_group_create(model->fsdp, model->counts[i], params, sizeof *params, NULL,
                                    &model->groups[i]),
             "weft_fsdp_group_create");
    }
    set_prefetch(model);
}

static void release_all(uint32_t count, weft_tensor **tensors)
{
    for (uint32_t i = 0; i < count; i++)
        weft_tensor_release(&tensors[i]);
}

void model_end(struct model *model)
{
    for (int i = 0; i < MODEL_GROUPS; i++)
        must(weft_fsdp_prefetch_set(model->groups[i], WEFT_FSDP_BACKWARD, 0, NULL),
             "weft_fsdp_prefetch_set");
    for (int i = 0; i < MODEL_GROUPS; i++) {
        weft_fsdp_group_release(&model->groups[i]);
        release_all(model->counts[i], model->gradients[i]);
        release_all(model->counts[i], model->stored[i]);
    }
    weft_fsdp_release(&model->fsdp);
}

/* ---- a step ---- */

static void unshard(const struct model *model, int group, enum weft_fsdp_phase phase)
{
    must(weft_fsdp_unshard_begin(model->groups[group], phase), "weft_fsdp_unshard_begin");
    must(weft_fsdp_unshard_end(model->groups[group]), "weft_fsdp_unshard_end");
}

static void make_gradients(const struct model *model, int group, weft_tensor **out)
{
    for (uint32_t i = 0; i < model->counts[group]; i++)
        must(weft_fsdp_gradient_create(model->groups[group], i, &out[i]),
             "weft_fsdp_gradient_create");
}

void model_make_gradients(struct model *model)
{
    for (int i = 0; i < MODEL_GROUPS; i++)
        make_gradients(model, i, model->gradients[i]);
}

static void reduce_zeros(const struct model *model, int group)
{
    weft_tensor *made[MODEL_MOST] = {NULL}, *const *gradients = model->gradients[group];

    if (gradients[0] == NULL) {
        make_gradients(model, group, made);
        gradients = made;
    }
    must(weft_fsdp_reduce_begin(model->groups[group], gradients, 0), "weft_fsdp_reduce_begin");
    release_all(model->counts[group], made);
}

static void pass_blocks(const struct model *model, void (*compute)(void))
{
    for (int i = 0; i < MODEL_BLOCKS; i++) {
        unshard(model, i, WEFT_FSDP_FORWARD);
        if (compute != NULL) compute();
        must(weft_fsdp_reshard(model->groups[i]), "weft_fsdp_reshard");
    }
    for (int i = MODEL_BLOCKS - 1; i >= 0; i--) {
        unshard(model, i, WEFT_FSDP_BACKWARD);
        for (int part = 0; compute != NULL && part < 2;
             part++) /* gradients of inputs, of weights */
            compute();
        reduce_zeros(model, i);
    }
}

static void end_reductions(const struct model *model, int groups)
{
    for (int i = 0; i < groups; i++) {
        must(weft_fsdp_reduce_end(model->groups[i]), "weft_fsdp_reduce_end");
        must(weft_fsdp_gradients_clear(model->groups[i]), "weft_fsdp_gradients_clear");
    }
}

void model_step_blocks(struct model *model, void (*compute)(void))
{
    pass_blocks(model, compute);
    end_reductions(model, MODEL_BLOCKS);
}

void model_step(struct model *model, void (*compute)(void))
{
    unshard(model, MODEL_BLOCKS, WEFT_FSDP_FORWARD);
    pass_blocks(model, compute);
    reduce_zeros(model, MODEL_BLOCKS);
    end_reductions(model, MODEL_GROUPS);
}

void model_gather(struct model *model, int group)
{
    unshard(model, group, WEFT_FSDP_FORWARD);
    rank_wait();
}

void model_reduce(struct model *model, int group, weft_tensor *const *gradients)
{
    must(weft_fsdp_reduce_begin(model->groups[group], gradients, 0), "weft_fsdp_reduce_begin");
    must(weft_fsdp_reduce_end(model->groups[group]), "weft_fsdp_reduce_end");
    must(weft_fsdp_gradients_clear(model->groups[group]), "weft_fsdp_gradients_clear");
    rank_wait();
}
