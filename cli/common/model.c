/* model.c - options of commands that make a graph of a model. */
#include "common/model.h"

#include <string.h>

static bool read_sharding(const struct cli_command *command, const char *text, uint32_t *out)
{
    static const char *const names[] = {"nothing", "optimizer", "parameters"};

    *out = WEFT_MODEL_SHARD_NOTHING;
    if (text == NULL) return true;
    for (uint32_t i = 0; i < WF_COUNT(names); i++)
        if (strcmp(text, names[i]) == 0) {
            *out = i;
            return true;
        }
    cli_complain(command, "--sharding is \"%.60s\"; expected nothing, optimizer or parameters",
                 text);
    return false;
}

bool model_options(const struct cli_command *command, const struct cli_args *args,
                   const weft_mesh *mesh, weft_model_graph_options *out)
{
    *out =
        (weft_model_graph_options){.struct_size = sizeof *out,
                                   .mesh = mesh,
                                   .recompute = cli_value(command, args, "recompute"),
                                   .whole_sequence = cli_has(command, args, "whole-sequence"),
                                   .narrow_gradients = cli_has(command, args, "narrow-gradients"),
                                   .ring = cli_has(command, args, "ring"),
                                   .f8 = cli_has(command, args, "fp8")};
    return cli_int(command, args, "sequence", 1, INT32_MAX, 0, &out->sequence) &&
           cli_int(command, args, "microbatch", 1, INT32_MAX, 0, &out->microbatch) &&
           read_sharding(command, cli_value(command, args, "sharding"), &out->sharding);
}

weft_status model_add_graph(const weft_model *model, const weft_model_graph_options *options,
                            struct wf_text *out)
{
    size_t length = 0;

    WF_TRY(weft_model_graph_print(model, options, NULL, 0, &length));
    if (!wf_text_reserve(out, length + 1)) return wf_fail_memory(length + 1);
    WF_TRY(weft_model_graph_print(model, options, out->data + out->length, length + 1, NULL));
    out->length += length;
    return WEFT_OK;
}

const char *model_option_given(const struct cli_command *command, const struct cli_args *args)
{
    static const char *const names[] = {
        "sequence",       "microbatch",       "recompute", "sharding",
        "whole-sequence", "narrow-gradients", "ring",      "fp8"};

    for (size_t i = 0; i < WF_COUNT(names); i++)
        if (cli_has(command, args, names[i])) return names[i];
    return NULL;
}
