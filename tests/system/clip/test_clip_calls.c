/* Clipping on ranks that are threads: arguments, values that are not finite, gaps, stages. */
#include "../tensor/holds.h"
#include "comm/comm.h"
#include "support/suite.h"
#include "weft/clip.h"
#include "weft/launch.h"

#include <math.h>

enum { RANKS = 4, ROWS = 6 };

struct model {
    weft_context *context;
    weft_mesh *mesh;
    weft_tensor *tensor;
    double *total; /* device memory */
};

static weft_status begin(struct model *model, const char *spec_text)
{
    OWNED(weft_spec) *spec = NULL;

    WF_TRY(weft_init(NULL, &model->context));
    WF_TRY(weft_mesh_parse("dp=4", &model->mesh));
    WF_TRY(weft_spec_parse(model->mesh, spec_text, &spec));
    WF_TRY(weft_tensor_create(model->context, spec, NULL, &model->tensor));
    WF_TRY(weft_tensor_fill(model->tensor, 2, NULL));
    WF_TRY(weft_alloc(model->context, sizeof(double), WEFT_MEMORY_DEVICE, (void **)&model->total));
    return WEFT_OK;
}

static weft_status end(struct model *model)
{
    weft_tensor_release(&model->tensor);
    weft_mesh_release(&model->mesh);
    WF_TRY(weft_free(model->context, model->total));
    weft_context_release(&model->context);
    return WEFT_OK;
}

static weft_status read_total(const struct model *model, double *out)
{
    WF_TRY(weft_memory_copy(model->context, model->total, out, sizeof *out, NULL));
    return weft_context_wait(model->context, NULL, WEFT_FOREVER);
}

/* Every element of this rank's shard is EXPECTED. */
static weft_status all_are(weft_tensor *tensor, float expected)
{
    int64_t count = weft_tensor_shard(tensor)->elements;
    float host[64];

    WF_TRY(weft_tensor_to_host(tensor, host, sizeof host, NULL));
    for (int64_t i = 0; i < count; i++)
        HOLDS(fabsf(host[i] - expected) <= 1e-6F || (isnan(host[i]) && isnan(expected)));
    return WEFT_OK;
}

/* ---- arguments ---- */

TEST_ON_RANKS(RANKS, wrong_arguments_are_refused)
{
    weft_clip_options options = {.struct_size = sizeof options, .p = -1};
    weft_tensor *twice[2], *integers = NULL, *partial = NULL, *none = NULL;
    struct model model = {0};
    weft_spec *spec = NULL;

    WF_TRY(begin(&model, "f32[6] S(0)"));
    twice[0] = twice[1] = model.tensor;
    REFUSES(weft_clip_gradient_norm(model.context, 2, twice, 1, NULL, NULL, NULL, NULL), "twice");
    REFUSES(weft_clip_gradient_norm(model.context, 1, twice, -1, NULL, NULL, NULL, NULL),
            "max_norm");
    REFUSES(weft_clip_gradient_norm(model.context, 1, twice, (double)NAN, NULL, NULL, NULL, NULL),
            "max_norm");
    REFUSES(weft_clip_gradient_norm(model.context, 1, twice, 1, &options, NULL, NULL, NULL),
            "p is -1");
    options = (weft_clip_options){.struct_size = sizeof options, .nonfinite = 9};
    REFUSES(weft_clip_gradient_norm(model.context, 1, twice, 1, &options, NULL, NULL, NULL),
            "nonfinite");
    WF_TRY(weft_spec_parse(model.mesh, "i32[6] S(0)", &spec));
    WF_TRY(weft_tensor_create(model.context, spec, NULL, &integers));
    weft_spec_release(&spec);
    REFUSES(weft_clip_gradient_norm(model.context, 1, &integers, 1, NULL, NULL, NULL, NULL),
            "floats");
    WF_TRY(weft_spec_parse(model.mesh, "f32[6] P", &spec));
    WF_TRY(weft_tensor_create(model.context, spec, NULL, &partial));
    weft_spec_release(&spec);
    REFUSES(weft_clip_gradient_norm(model.context, 1, &partial, 1, NULL, NULL, NULL, NULL),
            "reduce it first, or set `reduce_partials`");
    REFUSES(weft_clip_gradient_value(model.context, 1, &partial, 1, NULL, NULL), "partial");
    HOLDS(strstr(weft_last_error(), "reduce_partials") == NULL);
    REFUSES(weft_clip_gradient_value(model.context, 1, twice, -1, NULL, NULL), "max_value");
    WF_TRY(weft_clip_gradient_norm(model.context, 1, &none, 1, NULL, NULL, NULL,
                                   NULL)); /* all skipped */
    weft_tensor_release(&integers);
    weft_tensor_release(&partial);
    return end(&model);
}

/* ---- memory ---- */

/* Clip two tensors in one array; the second one begins at element AT. */
static weft_status clip_pair(const struct model *model, float *array, const char *spec_text,
                             int64_t at, bool by_value)
{
    weft_tensor *pair[2] = {NULL, NULL};
    weft_spec *spec = NULL;
    weft_status status;

    WF_TRY(weft_spec_parse(model->mesh, spec_text, &spec));
    WF_TRY(weft_tensor_wrap(model->context, spec, array, NULL, &pair[0]));
    WF_TRY(weft_tensor_wrap(model->context, spec, array + at, NULL, &pair[1]));
    status = by_value ? weft_clip_gradient_value(model->context, 2, pair, 1, NULL, NULL)
                      : weft_clip_gradient_norm(model->context, 2, pair, 1, NULL, NULL, NULL, NULL);
    weft_spec_release(&spec);
    weft_tensor_release(&pair[0]);
    weft_tensor_release(&pair[1]);
    return status;
}

static weft_status clip_columns(const struct model *model)
{
    weft_tensor *columns[3] = {NULL, NULL, NULL};

    WF_TRY(weft_tensor_narrow(model->tensor, 1, 0, 1, &columns[0]));
    WF_TRY(weft_tensor_narrow(model->tensor, 1, 1, 1, &columns[1]));
    WF_TRY(weft_tensor_narrow(model->tensor, 1, 1, 1, &columns[2]));
    WF_TRY(weft_clip_gradient_value(model->context, 2, columns, 1, NULL, NULL));
    WF_TRY(all_are(model->tensor, 1));
    REFUSES(weft_clip_gradient_value(model->context, 3, columns, 1, NULL, NULL), "tensor 2");
    for (int i = 0; i < 3; i++)
        weft_tensor_release(&columns[i]);
    return WEFT_OK;
}

TEST_ON_RANKS(RANKS, gradients_that_share_memory_are_refused)
{
    weft_tensor *twice[2];
    struct model model = {0};
    float *array = NULL;

    WF_TRY(begin(&model, "f32[6,2] R"));
    WF_TRY(weft_alloc(model.context, 8 * sizeof *array, WEFT_MEMORY_DEVICE, (void **)&array));
    WF_TRY(weft_memory_fill(model.context, array, 0, 8 * sizeof *array, NULL));
    for (int by_value = 0; by_value < 2; by_value++) {
        REFUSES(clip_pair(&model, array, "f32[4] R", 0, by_value), "tensor 1");
        REFUSES(clip_pair(&model, array, "f32[4] R", 3, by_value), "overlap");
        WF_TRY(clip_pair(&model, array, "f32[4] R", 4, by_value));
    }
    twice[0] = twice[1] = model.tensor;
    REFUSES(weft_clip_gradient_value(model.context, 2, twice, 1, NULL, NULL), "twice");
    WF_TRY(clip_columns(&model));
    WF_TRY(weft_context_wait(model.context, NULL, WEFT_FOREVER));
    WF_TRY(weft_free(model.context, array));
    return end(&model);
}

/* ---- norms ---- */

TEST_ON_RANKS(RANKS, gradients_are_scaled_only_if_their_norm_is_too_large)
{
    struct model model = {0};
    double norm = 0;

    WF_TRY(begin(&model, "f32[6] S(0)"));
    WF_TRY(weft_clip_gradient_norm(model.context, 1, &model.tensor, 100, NULL, model.total, NULL,
                                   NULL));
    WF_TRY(read_total(&model, &norm));
    HOLDS(fabs(norm - sqrt(24)) < 1e-12);
    WF_TRY(weft_clip_gradient_norm_wait(model.context, 1, &model.tensor, 100, NULL, NULL, &norm));
    HOLDS(fabs(norm - sqrt(24)) < 1e-12);
    WF_TRY(all_are(model.tensor, 2));
    WF_TRY(weft_clip_gradient_norm(model.context, 1, &model.tensor, sqrt(6), NULL, model.total,
                                   NULL, NULL));
    WF_TRY(all_are(model.tensor, 1));
    WF_TRY(weft_clip_gradient_norm(model.context, 0, NULL, 1, NULL, model.total, NULL, NULL));
    WF_TRY(read_total(&model, &norm));
    HOLDS(norm == 0);
    WF_TRY(weft_clip_gradient_value(model.context, 1, &model.tensor, 0.5, NULL, NULL));
    WF_TRY(all_are(model.tensor, 0.5F));
    return end(&model);
}

/* 1 / p is infinite, and 1 to that power is 1. */
TEST_ON_RANKS(RANKS, one_element_with_a_tiny_power_has_norm_one)
{
    const weft_clip_options options = {.struct_size = sizeof options, .p = 1e-310};
    struct model model = {0};
    double norm = 0;

    WF_TRY(begin(&model, "f32[1] R"));
    WF_TRY(weft_clip_gradient_norm(model.context, 1, &model.tensor, 5, &options, model.total, NULL,
                                   NULL));
    WF_TRY(read_total(&model, &norm));
    HOLDS(norm == 1);
    WF_TRY(all_are(model.tensor, 2));
    return end(&model);
}

/* A device keeps lists of the sizes of gradients; there are more here than it keeps. */
TEST_ON_RANKS(RANKS, gradients_of_many_sizes_take_turns)
{
    enum { SIZES = 11 };
    weft_tensor *tensors[SIZES] = {NULL};
    weft_stream *streams[2] = {NULL};
    struct model model = {0};
    double norm = 0;

    WF_TRY(begin(&model, "f32[6] S(0)"));
    WF_TRY(weft_stream_create(model.context, &streams[1]));
    for (uint32_t i = 0; i < SIZES; i++)
        WF_TRY(
            weft_tensor_create(model.context, weft_tensor_spec(model.tensor), NULL, &tensors[i]));
    for (uint32_t round = 0; round < 3; round++)
        for (uint32_t count = 1; count <= SIZES; count++) {
            weft_stream *stream = streams[(round + count) % 2];

            for (uint32_t i = 0; i < count; i++)
                WF_TRY(weft_tensor_fill(tensors[i], 2, stream));
            WF_TRY(weft_clip_gradient_norm(model.context, count, tensors, sqrt(6 * count), NULL,
                                           model.total, stream, NULL));
            WF_TRY(weft_context_wait(model.context, stream, WEFT_FOREVER));
            WF_TRY(read_total(&model, &norm));
            HOLDS(fabs(norm - sqrt(24 * count)) < 1e-12);
            WF_TRY(all_are(tensors[count - 1], 1));
        }
    for (uint32_t i = 0; i < SIZES; i++)
        weft_tensor_release(&tensors[i]);
    weft_stream_release(&streams[1]);
    return end(&model);
}

/* ---- values that are not finite ---- */

TEST_ON_RANKS(RANKS, a_norm_that_is_not_finite_has_the_chosen_effect)
{
    static const float left[] = {NAN, 2, 0, 2};
    struct model model = {0};

    WF_TRY(begin(&model, "f32[4] S(0)"));
    for (uint32_t policy = 0; policy <= WEFT_NONFINITE_ZERO + 1; policy++) {
        const bool is_error = policy > WEFT_NONFINITE_ZERO;
        const weft_clip_options options = {.struct_size = sizeof options,
                                           .nonfinite = is_error ? 0 : policy,
                                           .nonfinite_is_error = is_error};
        const float mine = weft_rank(model.context) == 1 ? NAN : 2;
        double norm = 0;

        WF_TRY(weft_tensor_from_host(model.tensor, &mine, sizeof mine, NULL));
        if (is_error)
            REFUSES(weft_clip_gradient_norm(model.context, 1, &model.tensor, 1, &options,
                                            model.total, NULL, NULL),
                    "not a number");
        else
            WF_TRY(weft_clip_gradient_norm(model.context, 1, &model.tensor, 1, &options,
                                           model.total, NULL, NULL));
        WF_TRY(read_total(&model, &norm));
        HOLDS(isnan(norm));
        WF_TRY(all_are(model.tensor, weft_rank(model.context) == 1 && policy != WEFT_NONFINITE_ZERO
                                         ? NAN
                                         : left[policy]));
    }
    return end(&model);
}

/* ---- gaps ---- */

TEST_ON_RANKS(RANKS, elements_between_gaps_are_clipped)
{
    struct model model = {0};
    weft_tensor *part = NULL;
    float host[2 * ROWS];

    WF_TRY(begin(&model, "f32[6,2] R"));
    WF_TRY(weft_tensor_narrow(model.tensor, 1, 0, 1, &part));
    WF_TRY(
        weft_clip_gradient_norm(model.context, 1, &part, sqrt(6), NULL, model.total, NULL, NULL));
    WF_TRY(weft_tensor_to_host(model.tensor, host, sizeof host, NULL));
    for (int i = 0; i < 2 * ROWS; i++)
        HOLDS(fabsf(host[i] - (i % 2 == 0 ? 1 : 2)) < 1e-6F);
    weft_tensor_release(&part);
    return end(&model);
}

/* ---- stages ---- */

/* Ranks 0 and 1 are the first stage, ranks 2 and 3 the second. */
TEST_ON_RANKS(RANKS, stages_have_one_norm)
{
    weft_clip_options options = {.struct_size = sizeof options};
    struct model model = {0};
    weft_mesh *mesh = NULL;
    weft_spec *spec = NULL;
    weft_comm *stages = NULL;
    double norm = 0;

    WF_TRY(begin(&model, "f32[1] R"));
    weft_tensor_release(&model.tensor);
    WF_TRY(weft_mesh_parse(weft_rank(model.context) < 2 ? "2" : "2@2-3", &mesh));
    WF_TRY(weft_spec_parse(mesh, "f32[8] S(0)", &spec));
    WF_TRY(weft_tensor_create(model.context, spec, NULL, &model.tensor));
    WF_TRY(weft_tensor_fill(model.tensor, weft_rank(model.context) < 2 ? 3 : 4, NULL));
    WF_TRY(weft_comm_split(weft_world(model.context), weft_rank(model.context) % 2,
                           weft_rank(model.context), NULL, &stages));
    options.stages = stages;
    WF_TRY(weft_clip_gradient_norm(model.context, 1, &model.tensor, 5 * sqrt(8) / 2, &options,
                                   model.total, NULL, NULL));
    WF_TRY(read_total(&model, &norm));
    HOLDS(fabs(norm - 5 * sqrt(8)) < 1e-12);
    WF_TRY(all_are(model.tensor, weft_rank(model.context) < 2 ? 1.5F : 2));
    weft_comm_release(&stages);
    weft_spec_release(&spec);
    weft_mesh_release(&mesh);
    return end(&model);
}
