/* Gradients that differ: in their layouts, and from rank to rank. */
#include "serial.h"
#include "../tensor/holds.h"
#include "support/suite.h"
#include "weft/launch.h"

enum { RANKS = 4 };

/* Two parameters of one group, in which the first may be listed twice. */
struct model {
    weft_context *context;
    weft_mesh *mesh;
    weft_spec *spec;
    weft_tensor *params[2];
    weft_fsdp *fsdp;
    weft_fsdp_group *group;
};

static weft_status begin(struct model *model, const char *mesh, const char *spec, bool is_shared,
                         const weft_fsdp_group_options *options)
{
    weft_fsdp_param params[2] = {{0}};

    WF_TRY(weft_init(NULL, &model->context));
    WF_TRY(weft_mesh_parse(mesh, &model->mesh));
    WF_TRY(weft_spec_parse(model->mesh, spec, &model->spec));
    for (int i = 0; i < 2; i++) {
        WF_TRY(weft_tensor_create(model->context, model->spec, NULL, &model->params[i]));
        WF_TRY(weft_tensor_fill(model->params[i], 0, NULL));
        params[i].tensor = model->params[is_shared ? 0 : i];
    }
    WF_TRY(weft_fsdp_create(model->context, model->mesh, "dp", NULL, &model->fsdp));
    return weft_fsdp_group_create(model->fsdp, 2, params, sizeof *params, options, &model->group);
}

static weft_status end(struct model *model)
{
    weft_fsdp_group_release(&model->group);
    weft_fsdp_release(&model->fsdp);
    for (int i = 0; i < 2; i++)
        weft_tensor_release(&model->params[i]);
    weft_spec_release(&model->spec);
    weft_mesh_release(&model->mesh);
    weft_context_release(&model->context);
    return WEFT_OK;
}

/* A gradient of ones in the layout TEXT. */
static weft_status make_gradient(const struct model *model, const char *text, weft_tensor **out)
{
    weft_spec *spec = NULL;
    weft_status status;

    WF_TRY(weft_spec_parse(model->mesh, text, &spec));
    status = weft_tensor_create(model->context, spec, NULL, out);
    weft_spec_release(&spec);
    if (status != WEFT_OK) return status;
    return weft_tensor_fill(*out, 1, NULL);
}

static weft_status reduce(weft_fsdp_group *group, weft_tensor *const *gradients, uint32_t flags)
{
    WF_TRY(weft_fsdp_reduce_begin(group, gradients, flags));
    return weft_fsdp_reduce_end(group);
}

/* All elements that this rank has of the reduced gradient INDEX are VALUE. */
static weft_status check_reduced(const struct model *model, uint32_t index, float value)
{
    weft_tensor *reduced = weft_fsdp_gradient(model->group, index);
    const float *elements = weft_tensor_memory(reduced);

    WF_TRY(weft_context_wait(model->context, NULL, WEFT_FOREVER));
    for (int64_t i = 0; i < weft_tensor_shard(reduced)->elements; i++)
        HOLDS(elements[i] == value);
    return WEFT_OK;
}

/* ---- gradients of one parameter ---- */

TEST_ON_RANKS(RANKS, gradients_of_one_parameter_have_one_layout)
{
    static const char *const layouts[] = {"f32[6,4] P,S(0)", "f32[6,4] P,R", "f32[6,4] P,P",
                                          "bf16[6,4] P,R"};
    const weft_fsdp_group_options options = {.struct_size = sizeof options, .sum_only = true};
    struct model model = {0};
    weft_tensor *of[WF_COUNT(layouts)] = {NULL};

    WF_TRY(begin(&model, "dp=2,tp=2", "f32[6,4] S(0),R", true, &options));
    for (size_t i = 0; i < WF_COUNT(layouts); i++)
        WF_TRY(make_gradient(&model, layouts[i], &of[i]));
    for (size_t i = 0; i < 3; i++)
        for (size_t j = 0; j < 3; j++) {
            weft_tensor *const both[2] = {of[i], of[j]};

            if (i == j) continue;
            REFUSES(weft_fsdp_reduce_begin(model.group, both, 0), "parameter 1");
            REFUSES(weft_fsdp_reduce_begin(model.group, both, WEFT_FSDP_LOCAL), "layout");
        }
    WF_TRY(reduce(model.group, (weft_tensor *const[]){of[1], of[3]}, 0));
    WF_TRY(check_reduced(&model, 0, 2));
    for (size_t i = 0; i < WF_COUNT(layouts); i++)
        weft_tensor_release(&of[i]);
    return end(&model);
}

/* ---- gradients that are absent on one rank ---- */

/* After a reduction of both gradients, rank 1 lacks one of them. */
TEST_ON_RANKS(RANKS, ranks_that_lack_different_gradients_later_get_an_error)
{
    struct model model = {0};
    weft_tensor *gradients[2] = {NULL}, *given[2];
    weft_status status;

    WF_TRY(begin(&model, "dp=4", "f32[6,4] S(0)", false, NULL));
    for (int i = 0; i < 2; i++)
        WF_TRY(make_gradient(&model, "f32[6,4] P", &gradients[i]));
    WF_TRY(reduce(model.group, gradients, 0));
    given[0] = weft_rank(model.context) == 1 ? NULL : gradients[0];
    given[1] = gradients[1];
    status = reduce(model.group, given, 0);
    HOLDS(status == WEFT_ERR_MISMATCH || (status == WEFT_OK && weft_rank(model.context) != 1));
    (void)!weft_context_wait(model.context, NULL, WEFT_FOREVER);
    FAILS(reduce(model.group, given, 0), WEFT_ERR_MISMATCH, "rank 1");
    for (int i = 0; i < 2; i++)
        weft_tensor_release(&gradients[i]);
    return end(&model);
}

/* Bits of the gradients that a rank has of a parameter that is listed twice. */
static const int present[2][RANKS] = {{1, 2, 3, 0}, {3, 0, 1, 2}};

TEST_ON_RANKS(RANKS, absent_gradients_of_a_shared_parameter_count_as_zeros)
{
    const weft_fsdp_group_options options = {.struct_size = sizeof options,
                                             .gather_dtype = "bf16",
                                             .reduce_dtype = "f32",
                                             .divide = 1,
                                             .absent_as_zero = true};
    struct model model = {0};
    weft_tensor *gradients[2] = {NULL}, *wide = NULL;

    WF_TRY(begin(&model, "dp=4", "f32[6,4] S(0)", true, &options));
    for (int i = 0; i < 2; i++)
        WF_TRY(make_gradient(&model, "bf16[6,4] P", &gradients[i]));
    WF_TRY(make_gradient(&model, "f32[6,4] P", &wide));
    REFUSES(weft_fsdp_reduce_begin(model.group, (weft_tensor *[]){wide, NULL}, 0),
            "absent_as_zero");
    for (int round = 0; round < 2; round++) {
        int mine = present[round][weft_rank(model.context)];
        weft_tensor *const given[2] = {mine & 1 ? gradients[0] : NULL,
                                       mine & 2 ? gradients[1] : NULL};

        WF_TRY(reduce(model.group, given, 0));
        WF_TRY(check_reduced(&model, 0, (float)(4 * (round + 1))));
    }
    for (int i = 0; i < 2; i++)
        weft_tensor_release(&gradients[i]);
    weft_tensor_release(&wide);
    return end(&model);
}
