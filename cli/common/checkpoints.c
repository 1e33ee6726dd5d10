/* checkpoints.c - see checkpoints.h. */
#include "common/checkpoints.h"

#include <unistd.h>

weft_status cli_layout_open(const struct cli_command *command, const struct cli_args *args,
                            weft_layout_file **out)
{
    const char *name = cli_value(command, args, "layout");
    weft_mesh *mesh = NULL;
    weft_status status;

    *out = NULL;
    if (name == NULL && cli_has(command, args, "mesh"))
        return wf_fail(WEFT_ERR_INVALID, "--mesh replaces the mesh of a layout; give --layout too");
    if (name == NULL) return WEFT_OK;
    status = cli_mesh(command, args, "mesh", &mesh);
    if (status == WEFT_OK) status = weft_layout_file_open(name, mesh, out);
    weft_mesh_release(&mesh);
    return status;
}

weft_status cli_rules(const struct cli_command *command, const struct cli_args *args,
                      weft_checkpoint_rules **out)
{
    const char *name = cli_value(command, args, "rules"), *values = cli_value(command, args, "set");

    *out = NULL;
    if (name == NULL && values != NULL)
        return wf_fail(WEFT_ERR_INVALID, "--set gives values to rules; give --rules too");
    return name != NULL ? weft_checkpoint_rules_open(name, values, out) : WEFT_OK;
}

weft_status cli_checkpoint_open(const char *path, const weft_checkpoint_rules *rules,
                                struct cli_checkpoint *out, const weft_checkpoint **used)
{
    weft_status status;

    *out = (struct cli_checkpoint){NULL, NULL, false};
    status = weft_checkpoint_open(path, &out->files);
    out->missing = status == WEFT_ERR_NOT_FOUND && access(path, F_OK) != 0;
    if (status != WEFT_OK) return status;
    if (rules != NULL) WF_TRY(weft_checkpoint_map(out->files, rules, &out->mapped));
    *used = rules != NULL ? out->mapped : out->files;
    return WEFT_OK;
}

int cli_checkpoint_fail(const struct cli_command *command, const struct cli_checkpoint *checkpoint,
                        weft_status status)
{
    int exit_code = cli_fail(command, status);

    return checkpoint->missing ? CLI_ENVIRONMENT : exit_code;
}

void cli_checkpoint_close(struct cli_checkpoint *checkpoint)
{
    weft_checkpoint_close(&checkpoint->mapped);
    weft_checkpoint_close(&checkpoint->files);
}
