/* Sharded parameters are saved by their names, and loaded into groups of another number of ranks.
 * To replace a parameter twice is to replace it once. */
#include "serial.h"
#include "../tensor/holds.h"
#include "exec/host/host.h"
#include "support/folder.h"
#include "support/suite.h"
#include "tensor/tensor.h"
#include "weft/file.h"
#include "weft/launch.h"

enum { PARAMS = 2 };

static char path[512];

struct model {
    weft_context *context;
    weft_mesh *mesh;
    weft_tensor *params[PARAMS];
    weft_fsdp *fsdp;
    weft_fsdp_group *group;
};

static weft_status begin(struct model *model)
{
    static const char *const names[PARAMS] = {"h.0.w", "h.0.b"};
    static const char *const layouts[PARAMS] = {"f32[7,3] S(0)", "bf16[5] S(0)"};
    weft_fsdp_param params[PARAMS] = {{0}};
    int32_t size;

    WF_TRY(weft_init(NULL, &model->context));
    size = weft_size(model->context);
    WF_TRY(weft_mesh_create(1, &size, NULL, &model->mesh));
    WF_TRY(weft_fsdp_create(model->context, model->mesh, "0", NULL, &model->fsdp));
    for (uint64_t i = 0; i < PARAMS; i++) {
        const weft_tensor_options named = {.struct_size = sizeof named, .name = names[i]};
        struct elements of = {.which = 50 + i}; /* not those that are saved */
        weft_spec *spec = NULL;

        WF_TRY(weft_spec_parse(model->mesh, layouts[i], &spec));
        WF_TRY(weft_tensor_create(model->context, spec, &named, &model->params[i]));
        WF_TRY(each_element(model->params[i], set_parameter, &of));
        weft_spec_release(&spec);
        params[i].tensor = model->params[i];
    }
    return weft_fsdp_group_create(model->fsdp, PARAMS, params, sizeof *params, NULL, &model->group);
}

static weft_status end(struct model *model)
{
    weft_fsdp_group_release(&model->group);
    weft_fsdp_release(&model->fsdp);
    for (int i = 0; i < PARAMS; i++)
        weft_tensor_release(&model->params[i]);
    weft_mesh_release(&model->mesh);
    weft_context_release(&model->context);
    return WEFT_OK;
}

static weft_status save(void *unused)
{
    struct model model = {0};

    (void)unused;
    WF_TRY(begin(&model));
    for (uint64_t i = 0; i < PARAMS; i++) {
        struct elements of = {.which = i};

        WF_TRY(each_element(model.params[i], set_parameter, &of));
    }
    WF_TRY(weft_save(model.context, path, PARAMS, model.params, NULL));
    return end(&model);
}

static weft_status check_gathered(struct model *model)
{
    WF_TRY(weft_fsdp_unshard_begin(model->group, WEFT_FSDP_FORWARD));
    WF_TRY(weft_fsdp_unshard_end(model->group));
    for (uint32_t i = 0; i < PARAMS; i++) {
        struct elements of = {.which = i};

        HOLDS(strcmp(weft_tensor_name(weft_fsdp_parameter(model->group, i)),
                     weft_tensor_name(model->params[i])) == 0);
        WF_TRY(each_element(weft_fsdp_parameter(model->group, i), check_parameter, &of));
    }
    return weft_fsdp_reshard(model->group);
}

static weft_status load_all(struct model *model, const weft_checkpoint *from, weft_tensor **loaded)
{
    const char *names[PARAMS];
    const weft_load_options options = {
        .struct_size = sizeof options, .names = names, .name_count = PARAMS};
    OWNED(weft_layout_file) *layout = NULL;
    weft_status status;
    char text[32];

    for (int i = 0; i < PARAMS; i++)
        names[i] = weft_tensor_name(model->params[i]);
    snprintf(text, sizeof text, "mesh %d\n* S(0)", weft_size(model->context));
    WF_TRY(weft_layout_file_parse(text, NULL, &layout));
    status = weft_load(model->context, from, layout, &options, loaded);
    return status;
}

static weft_status resume(void *unused)
{
    weft_tensor *loaded[PARAMS] = {NULL};
    weft_checkpoint *from = NULL;
    struct model model = {0};

    (void)unused;
    WF_TRY(begin(&model));
    WF_TRY(weft_checkpoint_open(path, &from));
    WF_TRY(load_all(&model, from, loaded));
    for (int times = 0; times < 2; times++) {
        for (uint32_t i = 0; i < PARAMS; i++)
            WF_TRY(weft_fsdp_rebind(model.group, i, loaded[i]));
        WF_TRY(check_gathered(&model));
    }
    for (uint32_t i = 0; i < PARAMS; i++) { /* the group keeps them */
        REFUSES(weft_fsdp_rebind(model.group, 1 - i, loaded[i]),
                "that is a parameter of a group already");
        weft_tensor_release(&loaded[i]);
    }
    WF_TRY(check_gathered(&model));
    weft_checkpoint_close(&from);
    return end(&model);
}

TEST(parameters_are_loaded_by_another_number_of_ranks)
{
    struct folder folder = folder_create();

    snprintf(path, sizeof path, "%s", folder_path(&folder, "step.safetensors"));
    ck_assert_msg(weft_threads_run(4, save, NULL) == WEFT_OK, "%s", weft_last_error());
    ck_assert_msg(weft_threads_run(3, resume, NULL) == WEFT_OK, "%s", weft_last_error());
    ck_assert_msg(weft_threads_run(1, resume, NULL) == WEFT_OK, "%s", weft_last_error());
    folder_remove(&folder);
}

/* ---- views of gathered parameters ---- */

static weft_status gather(weft_fsdp_group *group)
{
    WF_TRY(weft_fsdp_unshard_begin(group, WEFT_FSDP_FORWARD));
    return weft_fsdp_unshard_end(group);
}

TEST_ON_RANKS(2, views_of_gathered_parameters_end_with_them)
{
    struct model model = {0};
    weft_tensor *view = NULL, *view_of_view = NULL, *fresh = NULL, *moved = NULL;
    const weft_spec *spec;

    WF_TRY(begin(&model));
    WF_TRY(gather(model.group));
    WF_TRY(weft_tensor_narrow(weft_fsdp_parameter(model.group, 0), 0, 2, 3, &view));
    WF_TRY(weft_tensor_transpose(view, 0, 1, &view_of_view));
    WF_TRY(weft_tensor_fill(view_of_view, 3, NULL));
    spec = weft_tensor_spec(view);
    WF_TRY(weft_fsdp_reshard(model.group));
    for (int i = 0; i < 2; i++) { /* sharded, then gathered again, perhaps in other memory */
        REFUSES(weft_tensor_fill(view, 3, NULL), "lost its memory");
        REFUSES(weft_tensor_fill(view_of_view, 3, NULL), "lost its memory");
        REFUSES(weft_tensor_move(view, spec, NULL, NULL, &moved), "lost its memory");
        HOLDS(weft_tensor_memory(view) == NULL);
        if (i == 0) WF_TRY(gather(model.group));
    }
    WF_TRY(weft_tensor_narrow(weft_fsdp_parameter(model.group, 0), 0, 2, 3, &fresh));
    WF_TRY(weft_tensor_fill(fresh, 3, NULL));
    weft_tensor_release(&fresh);
    weft_tensor_release(&view);
    weft_tensor_release(&view_of_view);
    return end(&model);
}

/* A list like the one that a device keeps with a tensor that it draws; LeakSanitizer looks for it.
 */
TEST_ON_RANKS(2, lists_of_gathered_parameters_are_freed)
{
    const weft_region region = {
        .dims = 1, .extent = {1}, .source_stride = {1}, .target_stride = {1}};
    struct model model = {0};
    weft_tensor *gathered;

    WF_TRY(begin(&model));
    WF_TRY(gather(model.group));
    gathered = weft_fsdp_parameter(model.group, 0);
    WF_TRY(wf_kernels_of(model.context)
               ->regions_create(wf_kernels_device(model.context), 4, 1, &region,
                                &gathered->own.dense.drawer));
    gathered = weft_tensor_retain(gathered);
    weft_fsdp_group_release(&model.group);
    weft_tensor_release(&gathered);
    return end(&model);
}
