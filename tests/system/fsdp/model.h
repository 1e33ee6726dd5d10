/* model.h - what most claims of groups need: a mesh of four ranks, two parameters and their group.
 */
#ifndef WEFT_TESTS_FSDP_MODEL_H
#define WEFT_TESTS_FSDP_MODEL_H

#include "serial.h"
#include "../tensor/holds.h"
#include "weft/parallel.h"

#include <stdio.h>

enum { RANKS = 4 };

struct model {
    weft_context *context;
    weft_mesh *mesh;
    weft_spec *specs[2];
    weft_tensor *params[2], *gradients[2];
    weft_fsdp *fsdp;
    weft_fsdp_group *group;
};

static inline weft_status make_params(struct model *model, const char *mesh, const char *placements)
{
    const char *const shapes[2] = {"f32[7,3] ", "f32[5] "};
    char text[64];

    WF_TRY(weft_mesh_parse(mesh, &model->mesh));
    for (int i = 0; i < 2; i++) {
        struct elements of = {.which = (uint64_t)i};

        snprintf(text, sizeof text, "%s%s", shapes[i], placements);
        WF_TRY(weft_spec_parse(model->mesh, text, &model->specs[i]));
        WF_TRY(weft_tensor_create(model->context, model->specs[i], NULL, &model->params[i]));
        WF_TRY(each_element(model->params[i], set_parameter, &of));
    }
    return WEFT_OK;
}

static inline weft_status begin(struct model *model, const weft_fsdp_options *options,
                                const weft_fsdp_group_options *group_options)
{
    weft_fsdp_param params[2] = {{0}};

    WF_TRY(weft_init(NULL, &model->context));
    WF_TRY(make_params(model, "dp=4", "S(0)"));
    for (int i = 0; i < 2; i++)
        params[i].tensor = model->params[i];
    WF_TRY(weft_fsdp_create(model->context, model->mesh, "dp", options, &model->fsdp));
    return weft_fsdp_group_create(model->fsdp, 2, params, sizeof *params, group_options,
                                  &model->group);
}

static inline weft_status make_gradients(struct model *model, uint64_t round)
{
    for (uint32_t i = 0; i < 2; i++) {
        struct elements of = {
            .which = i, .round = round, .spec = weft_fsdp_gradient_spec(model->group, i)};

        WF_TRY(weft_fsdp_gradient_create(model->group, i, &model->gradients[i]));
        WF_TRY(each_element(model->gradients[i], set_gradient, &of));
    }
    return WEFT_OK;
}

static inline weft_status end(struct model *model)
{
    weft_fsdp_group_release(&model->group);
    weft_fsdp_release(&model->fsdp);
    for (int i = 0; i < 2; i++) {
        weft_tensor_release(&model->gradients[i]);
        weft_tensor_release(&model->params[i]);
        weft_spec_release(&model->specs[i]);
    }
    weft_mesh_release(&model->mesh);
    weft_context_release(&model->context);
    return WEFT_OK;
}

#endif
