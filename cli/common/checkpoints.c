/* checkpoints.c - see checkpoints.h. */
#include "common/checkpoints.h"
#include "common/shared.h"

weft_status cli_layout_open(const struct cli_command *command, const struct cli_args *args,
                            weft_layout_file **out)
{
    const char *name = cli_value(command, args, "layout");
    weft_mesh *mesh = NULL;
    weft_status status;
    char *path;

    *out = NULL;
    if (name == NULL && cli_has(command, args, "mesh"))
        return wf_fail(WEFT_ERR_INVALID, "--mesh replaces the mesh of a layout; give --layout too");
    if (name == NULL) return WEFT_OK;
    WF_TRY(cli_shared_path(name, "layouts", ".layout", &path));
    status = cli_mesh(command, args, "mesh", &mesh);
    if (status == WEFT_OK) status = weft_layout_file_open(path, mesh, out);
    weft_mesh_release(&mesh);
    wf_free(path);
    return status;
}

weft_status cli_rules(const struct cli_command *command, const struct cli_args *args,
                      weft_checkpoint_rules **out)
{
    const char *name = cli_value(command, args, "rules"), *values = cli_value(command, args, "set");
    weft_status status;
    char *path;

    *out = NULL;
    if (name == NULL && values != NULL)
        return wf_fail(WEFT_ERR_INVALID, "--set gives values to rules; give --rules too");
    if (name == NULL) return WEFT_OK;
    WF_TRY(cli_shared_path(name, "rules", ".rules", &path));
    status = weft_checkpoint_rules_open(path, values, out);
    wf_free(path);
    return status;
}

weft_status cli_checkpoint_open(const char *path, const weft_checkpoint_rules *rules,
                                struct cli_checkpoint *out, const weft_checkpoint **used)
{
    *out = (struct cli_checkpoint){NULL, NULL};
    WF_TRY(weft_checkpoint_open(path, &out->files));
    if (rules != NULL) WF_TRY(weft_checkpoint_map(out->files, rules, &out->mapped));
    *used = rules != NULL ? out->mapped : out->files;
    return WEFT_OK;
}

void cli_checkpoint_close(struct cli_checkpoint *checkpoint)
{
    weft_checkpoint_close(&checkpoint->mapped);
    weft_checkpoint_close(&checkpoint->files);
}
