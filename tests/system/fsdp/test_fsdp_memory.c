/* Training steps with several groups, prefetch and streams: with an allocator that spoils freed
 * memory they compute the same, and they repeat the blocks of the step before. */
#include "serial.h"
#include "../tensor/holds.h"
#include "support/poison.h"
#include "support/suite.h"
#include "weft/launch.h"

enum { RANKS = 4, GROUPS = 3, STEPS = 4 };

struct model {
    weft_context *context;
    weft_stream *compute;
    weft_mesh *mesh;
    weft_spec *specs[GROUPS];
    weft_tensor *params[GROUPS];
    weft_tensor *seen[GROUPS], *given[GROUPS]; /* what is computed with, and contributions */
    weft_fsdp *fsdp;
    weft_fsdp_group *groups[GROUPS];
    bool poisons;
    struct poison_plugin plugin;
};

static weft_status begin(struct model *model)
{
    static const char *const texts[GROUPS] = {"f32[701,3] R,S(0)", "f32[5,300] R,S(1)",
                                              "f32[2000] R,S(0)"};
    weft_fsdp_options options = {.struct_size = sizeof options};
    weft_fsdp_group_options group_options = {
        .struct_size = sizeof group_options, .shard = "dp", .replicate = "rep"};

    WF_TRY(weft_init(NULL, &model->context));
    if (model->poisons) poison_begin(model->context, &model->plugin);
    WF_TRY(weft_stream_create(model->context, &model->compute));
    options.compute = model->compute;
    WF_TRY(weft_mesh_parse("rep=2,dp=2", &model->mesh));
    WF_TRY(weft_fsdp_create(model->context, model->mesh, "dp", &options, &model->fsdp));
    for (uint64_t i = 0; i < GROUPS; i++) {
        struct elements of = {.which = i};
        weft_fsdp_param param = {0};

        WF_TRY(weft_spec_parse(model->mesh, texts[i], &model->specs[i]));
        WF_TRY(weft_tensor_create(model->context, model->specs[i], NULL, &model->params[i]));
        WF_TRY(each_element(model->params[i], set_parameter, &of));
        param.tensor = model->params[i];
        group_options.reduce_dtype =
            i == 0 ? "f64" : NULL; /* of a copy, or of the gradient itself */
        WF_TRY(weft_fsdp_group_create(model->fsdp, 1, &param, sizeof param, &group_options,
                                      &model->groups[i]));
    }
    for (int i = 0; i + 1 < GROUPS; i++) {
        WF_TRY(
            weft_fsdp_prefetch_set(model->groups[i], WEFT_FSDP_FORWARD, 1, &model->groups[i + 1]));
        WF_TRY(
            weft_fsdp_prefetch_set(model->groups[i + 1], WEFT_FSDP_BACKWARD, 1, &model->groups[i]));
    }
    return WEFT_OK;
}

static weft_status end(struct model *model)
{
    for (int i = GROUPS - 1; i >= 0; i--) {
        weft_fsdp_group_release(&model->groups[i]);
        weft_tensor_release(&model->params[i]);
        weft_tensor_release(&model->seen[i]);
        weft_tensor_release(&model->given[i]);
        weft_spec_release(&model->specs[i]);
    }
    weft_fsdp_release(&model->fsdp);
    WF_TRY(weft_context_wait(model->context, model->compute, WEFT_FOREVER));
    weft_stream_release(&model->compute);
    if (model->poisons) WF_TRY(poison_end(model->context, &model->plugin));
    weft_mesh_release(&model->mesh);
    weft_context_release(&model->context);
    return WEFT_OK;
}

/* Bytes of SOURCE are copied to TARGET, of the same shape, on the compute stream. */
static weft_status post_copy(struct model *model, weft_tensor *source, weft_tensor *target)
{
    const weft_spec *spec = weft_tensor_spec(source);

    return weft_memory_copy(model->context, weft_tensor_memory(source), weft_tensor_memory(target),
                            weft_spec_shard_bytes(spec, weft_rank(model->context)), model->compute);
}

/* The compute stream reads the gathered parameter, when the device gets there. */
static weft_status use_parameter(struct model *model, int index)
{
    weft_tensor *parameter;

    WF_TRY(weft_fsdp_unshard_end(model->groups[index]));
    parameter = weft_fsdp_parameter(model->groups[index], 0);
    if (model->seen[index] == NULL)
        WF_TRY(weft_tensor_create(model->context, weft_tensor_spec(parameter), NULL,
                                  &model->seen[index]));
    return post_copy(model, parameter, model->seen[index]);
}

static weft_status check_seen(struct model *model)
{
    WF_TRY(weft_context_wait(model->context, model->compute, WEFT_FOREVER));
    for (int i = 0; i < GROUPS; i++) {
        struct elements of = {.which = (uint64_t)i};

        WF_TRY(each_element(model->seen[i], check_parameter, &of));
        WF_TRY(weft_tensor_fill(model->seen[i], 0, model->compute));
    }
    return WEFT_OK;
}

static weft_status forward(struct model *model)
{
    WF_TRY(weft_fsdp_unshard_begin(model->groups[0], WEFT_FSDP_FORWARD));
    for (int i = 0; i < GROUPS; i++) {
        WF_TRY(use_parameter(model, i));
        WF_TRY(weft_fsdp_reshard(model->groups[i]));
    }
    return check_seen(model);
}

/* The contributions of ROUND, which the compute stream copies. */
static weft_status make_contributions(struct model *model, uint64_t round)
{
    for (int i = 0; i < GROUPS; i++) {
        struct elements of = {.which = (uint64_t)i,
                              .round = round,
                              .spec = weft_fsdp_gradient_spec(model->groups[i], 0)};

        if (model->given[i] == NULL)
            WF_TRY(weft_tensor_create(model->context, of.spec, NULL, &model->given[i]));
        WF_TRY(each_element(model->given[i], set_gradient, &of));
    }
    return WEFT_OK;
}

static weft_status backward(struct model *model, uint64_t round, uint32_t flags)
{
    WF_TRY(make_contributions(model, round));
    WF_TRY(weft_fsdp_unshard_begin(model->groups[GROUPS - 1], WEFT_FSDP_BACKWARD));
    for (int i = GROUPS - 1; i >= 0; i--) {
        weft_tensor *gradient = NULL;

        WF_TRY(use_parameter(model, i));
        WF_TRY(weft_fsdp_gradient_create(model->groups[i], 0, &gradient));
        WF_TRY(post_copy(model, model->given[i], gradient));
        WF_TRY(weft_fsdp_reduce_begin(model->groups[i], &gradient, flags));
        weft_tensor_release(&gradient);
    }
    for (int i = 0; i < GROUPS; i++)
        WF_TRY(weft_fsdp_reduce_end(model->groups[i]));
    return check_seen(model);
}

static weft_status check_step(struct model *model)
{
    WF_TRY(weft_context_wait(model->context, model->compute, WEFT_FOREVER));
    for (int i = 0; i < GROUPS; i++) {
        struct elements of = {.which = (uint64_t)i,
                              .rounds = 3,
                              .spec = weft_fsdp_gradient_spec(model->groups[i], 0),
                              .factor = 0.25,
                              .tolerance = 1e-6};

        WF_TRY(each_element(weft_fsdp_gradient(model->groups[i], 0), check_gradient, &of));
        WF_TRY(weft_fsdp_gradients_clear(model->groups[i]));
    }
    return WEFT_OK;
}

static weft_status train(void *poisons)
{
    struct model model = {.poisons = poisons != NULL};
    weft_memory_info before = {.struct_size = sizeof before}, after = before;

    WF_TRY(begin(&model));
    for (int step = 0; step < STEPS; step++) {
        WF_TRY(forward(&model));
        WF_TRY(backward(&model, 0, WEFT_FSDP_LOCAL));
        WF_TRY(backward(&model, 1, WEFT_FSDP_SHARD_ONLY));
        WF_TRY(backward(&model, 2, 0));
        WF_TRY(check_step(&model));
        if (step == 1) WF_TRY(weft_memory_get(model.context, &before));
    }
    WF_TRY(weft_memory_get(model.context, &after));
    HOLDS(before.pieces == after.pieces && before.bytes == after.bytes);
    HOLDS(before.bytes_peak == after.bytes_peak);
    return end(&model);
}

TEST(memory_that_was_freed_is_not_used)
{
    ck_assert_msg(weft_threads_run(RANKS, train, "") == WEFT_OK, "%s", weft_last_error());
}

TEST(steps_repeat_their_memory)
{
    ck_assert_msg(weft_threads_run(RANKS, train, NULL) == WEFT_OK, "%s", weft_last_error());
}
