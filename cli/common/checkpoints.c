/* checkpoints.c - see checkpoints.h. */
#include "common/checkpoints.h"

weft_status cli_rules(const struct cli_command *command, const struct cli_args *args,
                      weft_rules **out)
{
    const char *path = cli_value(command, args, "rules"), *values = cli_value(command, args, "set");

    *out = NULL;
    if (path == NULL && values != NULL)
        return wf_fail(WEFT_ERR_INVALID, "--set gives values to rules; give --rules too");
    return path != NULL ? weft_rules_open(path, values, out) : WEFT_OK;
}

weft_status cli_checkpoint_open(const char *path, const weft_rules *rules,
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
