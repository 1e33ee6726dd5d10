/* model.h - options of commands that make a graph of a model. */
#ifndef WEFT_CLI_COMMON_MODEL_H
#define WEFT_CLI_COMMON_MODEL_H

#include "common/cli.h"

#define MODEL_OPTIONS                                                                              \
    {"sequence", "N", "a model's: tokens of a sequence (default: the length that the model has)",  \
     0},                                                                                           \
        {"microbatch", "N",                                                                        \
         "a model's: sequences of a microbatch on each rank of dp and ep (default: 1)", 0},        \
        {"recompute", "LIST",                                                                      \
         "a model's: what the backward pass computes again: none, full, needed, alternate, or of " \
         "norms, qkv, queries, keys, attention, projection, up, gate, activation, down (default: " \
         "none)",                                                                                  \
         0},                                                                                       \
        {"sharding", "S",                                                                          \
         "a model's: what ranks with other samples share: nothing, optimizer (ZeRO-1) or "         \
         "parameters (FSDP) (default: nothing)",                                                   \
         0},                                                                                       \
        {"whole-sequence", NULL,                                                                   \
         "a model's: ranks of tp hold the whole sequence between products, not parts", 0},         \
        {"narrow-gradients", NULL, "a model's: gradients have the dtype of parameters, not f32",   \
         0},                                                                                       \
        {"ring", NULL,                                                                             \
         "a model's: ranks of cp pass keys and values on beside attention, instead of gathering "  \
         "them before it",                                                                         \
         0},                                                                                       \
    {                                                                                              \
        "fp8", NULL, "a model's: products of layers are computed in fp8", 0                        \
    }

/* Read the options of a model's graph, which borrows MESH and the command line.  False after
 * printing an error. */
bool model_options(const struct cli_command *command, const struct cli_args *args,
                   const weft_mesh *mesh, weft_model_graph_options *out);
/* Append the graph of MODEL to OUT. */
weft_status model_add_graph(const weft_model *model, const weft_model_graph_options *options,
                            struct wf_text *out) WF_NODISCARD;
/* The name of an option of a model that ARGS give; NULL: they give none. */
const char *model_option_given(const struct cli_command *command, const struct cli_args *args);

#endif
