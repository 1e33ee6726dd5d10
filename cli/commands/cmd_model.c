/* cmd_model.c - `weft model FILE`: a training step of a model as a graph. */
#include "common/cli.h"

#include "common/describe.h"
#include "common/model.h"

#include <string.h>

static weft_status add_json(const weft_model *model, struct wf_text *out)
{
    weft_model_info info = {.struct_size = sizeof info};
    struct wf_json json = {.out = out};
    char line[1024];

    WF_TRY(weft_model_print(model, line, sizeof line, NULL));
    line[strcspn(line, "\n")] = '\0';
    WF_TRY(weft_model_get(model, &info));
    wf_json_begin(&json, NULL, '{');
    wf_json_string(&json, "model", line);
    wf_json_string(&json, "template", info.template_name);
    wf_json_int(&json, "layers", info.layers);
    wf_json_int(&json, "hidden", info.hidden);
    wf_json_int(&json, "heads", info.heads);
    wf_json_int(&json, "key_heads", info.key_heads);
    wf_json_int(&json, "head_dim", info.head_dim);
    wf_json_int(&json, "ffn", info.ffn);
    wf_json_int(&json, "vocabulary", info.vocabulary);
    wf_json_int(&json, "sequence", info.sequence);
    wf_json_int(&json, "experts", info.experts);
    wf_json_int(&json, "active", info.active);
    wf_json_int(&json, "shared", info.shared);
    wf_json_uint(&json, "parameters", info.parameters);
    wf_json_uint(&json, "active_parameters", info.active_parameters);
    wf_json_end(&json, '}');
    wf_text_char(out, '\n');
    return wf_text_status(out);
}

/* Append the graph that the options ask for; CLI_OK, or an exit code after printing an error. */
static int add_graph(const struct cli_command *command, const struct cli_args *args,
                     const weft_model *model, struct wf_text *out)
{
    weft_model_graph_options options;
    weft_mesh *mesh = NULL;
    weft_status status = cli_mesh(command, args, "mesh", &mesh);
    int exit_code = CLI_USAGE;

    if (status != WEFT_OK || model_options(command, args, mesh, &options)) {
        if (status == WEFT_OK) status = model_add_graph(model, &options, out);
        exit_code = status == WEFT_OK ? CLI_OK : cli_fail(command, status);
    }
    weft_mesh_release(&mesh);
    return exit_code;
}

static int print(const struct cli_command *command, const struct cli_args *args, const char *text)
{
    struct wf_text out = {0};
    weft_model *model = NULL;
    weft_status status = weft_model_parse(text, &model);
    int exit_code = CLI_OK;

    if (status == WEFT_OK && cli_has(command, args, "json"))
        status = add_json(model, &out);
    else if (status == WEFT_OK)
        exit_code = add_graph(command, args, model, &out);
    weft_model_release(&model);
    if (exit_code == CLI_OK) return cli_answer(command, status, &out);
    wf_text_free(&out);
    return exit_code;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct wf_text text = {0};
    struct cli_args args;
    int exit_code;

    if (!cli_parse(command, argc, argv, false, &args, &exit_code)) return exit_code;
    if (cli_read_file(command, args.rest[0], &text, &exit_code))
        exit_code = print(command, &args, text.data);
    wf_text_free(&text);
    return exit_code;
}

static const char *find_complaint(const struct cli_command *command, const struct cli_args *args)
{
    (void)command;
    return args->rest_count == 0 ? "give a file with a model; - is standard input" : NULL;
}

const struct cli_command cli_model = {
    .name = "model",
    .summary = "print a training step of a model as a graph",
    .arguments = "FILE [--mesh M] [--sequence N] [--recompute LIST] [options]",
    .example = "weft model examples/graphs/llama-70b.model --mesh dp=2,tp=4",
    .page = "training/planning-a-run.md",
    .options = (const struct cli_option[]){CLI_MESH, CLI_MESH_RANKS, MODEL_OPTIONS, CLI_JSON, {0}},
    .rest_max = 1,
    .complaint = find_complaint,
    .run = run,
};
