/* cmd_step.c - `weft step GRAPH|MODEL`: what a training step costs on a mesh. */
#include "common/cli.h"

#include "common/describe.h"
#include "common/model.h"
#include "schedule/request.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* What the options ask for. */
struct request {
    weft_prediction_options options;
    weft_straggler stragglers[16];
    weft_mesh *mesh; /* NULL: not given */
    weft_cost_table *costs;
    weft_schedule *schedule;
    uint64_t memory_limit; /* bytes on a rank; 0: none */
    int64_t batch;         /* sequences of a step of a model; 0: not given */
    int64_t microbatches;  /* that make it; 0: the batch is not given */
    uint32_t *stage_layers;
};

/* ---- options ---- */

/* "17:1.5,40:2" */
static bool read_stragglers(const struct cli_command *command, const char *text,
                            struct request *out)
{
    bool more = text != NULL;

    while (more) {
        char *end, *colon;
        long rank = strtol(text, &colon, 10);
        double factor = *colon == ':' ? strtod(colon + 1, &end) : 0;
        if (colon == text || *colon != ':' || end == colon + 1 || (*end != '\0' && *end != ',') ||
            rank < 0 || rank > INT32_MAX || !(factor >= 1 && factor <= 1000) ||
            out->options.straggler_count == WF_COUNT(out->stragglers)) {
            cli_complain(
                command,
                "--straggler takes up to 16 of RANK:FACTOR, such as 17:1.5; a factor is 1 or more");
            return false;
        }
        out->stragglers[out->options.straggler_count++] = (weft_straggler){(int32_t)rank, factor};
        more = *end == ',';
        text = end + 1;
    }
    return true;
}

static bool read_options(const struct cli_command *command, const struct cli_args *args,
                         struct request *out)
{
    int64_t memory, jitter, seed;

    if (!cli_int(command, args, "jitter", 0, 1000, 0, &jitter) ||
        !cli_int(command, args, "seed", 0, INT64_MAX, 1, &seed) ||
        !cli_int(command, args, "batch", 1, INT32_MAX, 0, &out->batch) ||
        !cli_size(command, args, "memory-limit", 0, &memory))
        return false;
    out->memory_limit = (uint64_t)memory;
    out->options = (weft_prediction_options){.struct_size = sizeof out->options,
                                             .jitter = (double)jitter / 100,
                                             .seed = (uint64_t)seed,
                                             .stragglers = out->stragglers,
                                             .straggler_size = sizeof *out->stragglers};
    if (cli_has(command, args, "fsdp")) out->options.flags = WEFT_PREDICTION_FSDP;
    if (cli_has(command, args, "ddp")) out->options.flags = WEFT_PREDICTION_DDP;
    if (!read_stragglers(command, cli_value(command, args, "straggler"), out)) return false;
    if (!schedule_stages(command, args, &out->stage_layers, &out->options.stage_count))
        return false;
    out->options.stage_layers = out->stage_layers;
    return true;
}

/* The schedule of the mesh's pipeline; without one, a step has one microbatch unless told. */
static bool make_schedule(const struct cli_command *command, const struct cli_args *args,
                          struct request *request, int *exit_code)
{
    const char *name = cli_value(command, args, "schedule");
    weft_schedule_info info = {.struct_size = sizeof info};
    int32_t axis = -1, ranks;
    int64_t count;

    if (request->mesh == NULL || weft_mesh_find_axis(request->mesh, "pp", &axis) != WEFT_OK)
        axis = -1;
    ranks = axis >= 0 ? weft_mesh_axis_size(request->mesh, axis) : 1;
    if (name != NULL && schedule_is_file(name)) {
        if (request->microbatches > 0) {
            cli_complain(command, "--batch is for a schedule by name; a file has its own sizes");
            *exit_code = CLI_USAGE;
            return false;
        }
        if (!schedule_read(command, args, name, &request->schedule, exit_code)) return false;
        *exit_code = CLI_USAGE;
        if (weft_schedule_get(request->schedule, &info) == WEFT_OK && info.ranks == ranks)
            return true;
        cli_complain(command, "the schedule %s has %d ranks, and the axis pp %d", name, info.ranks,
                     ranks);
        return false;
    }
    count = request->microbatches > 0 ? request->microbatches : axis >= 0 ? 2 * (int64_t)ranks : 1;
    return schedule_make(command, args, name != NULL ? name : "1f1b", ranks, count,
                         &request->schedule, exit_code);
}

/* ---- the command ---- */

static weft_status describe(const weft_prediction *prediction, bool json, struct wf_text *out)
{
    if (!json) {
        DESCRIBE_ADD(weft_prediction_print, prediction, out);
        return WEFT_OK;
    }
    DESCRIBE_ADD(weft_prediction_json_print, prediction, out);
    wf_text_char(out, '\n');
    return wf_text_status(out);
}

static weft_status add_trace(const weft_prediction *prediction, struct wf_text *out)
{
    DESCRIBE_ADD(weft_prediction_trace_print, prediction, out);
    return WEFT_OK;
}

static int write_trace(const struct cli_command *command, const struct cli_args *args,
                       const weft_prediction *prediction)
{
    const char *path = cli_value(command, args, "trace");
    struct wf_text text = {0};
    weft_status status;

    if (path == NULL) return CLI_OK;
    status = add_trace(prediction, &text);
    if (status == WEFT_OK) return cli_print_to(command, path, &text);
    wf_text_free(&text);
    return cli_fail(command, status);
}

/* CLI_NO after a complaint: a rank holds more than LIMIT. */
static int compare_memory(const struct cli_command *command, const weft_prediction *prediction,
                          uint64_t limit)
{
    weft_prediction_info info = {.struct_size = sizeof info};
    weft_status status = weft_prediction_get(prediction, &info);
    struct wf_text text = {0};

    if (status != WEFT_OK) return cli_fail(command, status);
    if (limit == 0 || info.peak <= limit) return CLI_OK;
    wf_text_add(&text, "a rank holds ");
    wf_text_bytes(&text, info.peak);
    wf_text_add(&text, ", and the limit is ");
    wf_text_bytes(&text, limit);
    if (wf_text_status(&text) == WEFT_OK) cli_complain(command, "%s", text.data);
    wf_text_free(&text);
    return CLI_NO;
}

static int print(const struct cli_command *command, const struct cli_args *args,
                 const weft_prediction *prediction, uint64_t limit)
{
    struct wf_text text = {0};
    int exit_code = write_trace(command, args, prediction);
    weft_status status;

    if (exit_code != CLI_OK) return exit_code;
    status = describe(prediction, cli_has(command, args, "json"), &text);
    if (status != WEFT_OK) {
        wf_text_free(&text);
        return cli_fail(command, status);
    }
    exit_code = cli_print(command, stdout, &text);
    return exit_code == CLI_OK ? compare_memory(command, prediction, limit) : exit_code;
}

/* BATCH is not a multiple of EACH, the sequences of one microbatch of all ranks. */
static weft_status refuse_batch(int64_t batch, int64_t each)
{
    int64_t less = batch / each * each;
    struct wf_text text = {0};

    wf_text_add(&text,
                "--batch is %" PRId64 " sequences, and a microbatch of all ranks has %" PRId64
                ", which do not divide it; ",
                batch, each);
    if (less > 0) wf_text_add(&text, "%" PRId64 " or ", less);
    wf_text_add(&text, "%" PRId64 " fit", less + each);
    return wf_fail_text(WEFT_ERR_INVALID, &text, "%s", text.data != NULL ? text.data : "");
}

/* The microbatches that make a step of --batch sequences. */
static weft_status divide_batch(struct request *request, int64_t microbatch)
{
    static const char *const axes[] = {"dp", "ep"};
    int64_t each = microbatch > 0 ? microbatch : 1;

    for (size_t i = 0; i < WF_COUNT(axes) && request->mesh != NULL; i++) {
        int32_t axis;
        if (weft_mesh_find_axis(request->mesh, axes[i], &axis) == WEFT_OK)
            each *= weft_mesh_axis_size(request->mesh, axis);
    }
    if (request->batch % each == 0) {
        request->microbatches = request->batch / each;
        return WEFT_OK;
    }
    return refuse_batch(request->batch, each);
}

/* Append the graph of the model TEXT. */
static int add_model(const struct cli_command *command, const struct cli_args *args,
                     struct request *request, const char *text, struct wf_text *out)
{
    weft_model_graph_options options;
    weft_model *model = NULL;
    weft_status status = WEFT_OK;

    if (!model_options(command, args, request->mesh, &options)) return CLI_USAGE;
    if (cli_has(command, args, "fsdp")) options.sharding = WEFT_MODEL_SHARD_PARAMETERS;
    if (request->batch > 0) status = divide_batch(request, options.microbatch);
    if (status == WEFT_OK) status = weft_model_parse(text, &model);
    if (status == WEFT_OK) status = model_add_graph(model, &options, out);
    weft_model_release(&model);
    return status == WEFT_OK ? CLI_OK : cli_fail(command, status);
}

/* Read and check the graph TEXT on the mesh of the options. */
static int check(const struct cli_command *command, const struct request *request, const char *text,
                 weft_graph **out)
{
    weft_graph_options how = {.struct_size = sizeof how,
                              .mesh = request->mesh,
                              .costs = request->costs,
                              .flags = WEFT_GRAPH_EVEN_BATCH};
    weft_status status = weft_graph_parse(text, NULL, out);

    if (status == WEFT_OK) status = weft_graph_check(*out, &how);
    return status == WEFT_OK ? CLI_OK : cli_fail(command, status);
}

/* Read and check the graph, or the model, TEXT. */
static int read_graph(const struct cli_command *command, const struct cli_args *args,
                      struct request *request, const char *text, weft_graph **out)
{
    const char *given = request->batch > 0 ? "batch" : model_option_given(command, args);
    struct wf_text made = {0};
    weft_status status = weft_cost_table_open(cli_value(command, args, "costs"), &request->costs);
    int exit_code;

    if (status == WEFT_OK) status = cli_mesh(command, args, "mesh", &request->mesh);
    if (status != WEFT_OK) return cli_fail(command, status);
    if (!weft_model_is_text(text) && given != NULL) {
        cli_complain(command, "--%s is for a model; the file is a graph, which has its own lines",
                     given);
        return CLI_USAGE;
    }
    if (!weft_model_is_text(text)) return check(command, request, text, out);
    exit_code = add_model(command, args, request, text, &made);
    if (exit_code == CLI_OK) exit_code = check(command, request, made.data, out);
    wf_text_free(&made);
    return exit_code;
}

static int simulate(const struct cli_command *command, const struct cli_args *args,
                    struct request *request, const char *text)
{
    weft_prediction *prediction = NULL;
    weft_graph *graph = NULL;
    int exit_code = read_graph(command, args, request, text, &graph);

    if (exit_code == CLI_OK && make_schedule(command, args, request, &exit_code)) {
        weft_status status;
        request->options.schedule = request->schedule;
        status = weft_prediction_create(graph, &request->options, &prediction);
        exit_code = status == WEFT_OK ? print(command, args, prediction, request->memory_limit)
                                      : cli_fail(command, status);
    }
    weft_prediction_release(&prediction);
    weft_schedule_release(&request->schedule);
    weft_graph_release(&graph);
    weft_mesh_release(&request->mesh);
    weft_cost_table_release(&request->costs);
    return exit_code;
}

static const char *find_complaint(const struct cli_command *command, const struct cli_args *args)
{
    const char *schedule = cli_value(command, args, "schedule"),
               *trace = cli_value(command, args, "trace");

    if (args->rest_count == 0) return "give a file with a graph or a model; - is standard input";
    if (cli_has(command, args, "batch") && cli_has(command, args, "microbatches"))
        return "--batch and --microbatches exclude each other";
    if (cli_has(command, args, "fsdp") && cli_has(command, args, "ddp"))
        return "--fsdp and --ddp exclude each other";
    if (cli_has(command, args, "fsdp") && cli_has(command, args, "sharding"))
        return "--fsdp shares parameters; --sharding has no place beside it";
    if (schedule != NULL && strcmp(schedule, "-") == 0 && strcmp(args->rest[0], "-") == 0)
        return "the graph and the schedule cannot both be standard input";
    if (trace != NULL && strcmp(trace, "-") == 0)
        return "the figures are on standard output; give --trace a file";
    return NULL;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct request request = {0};
    struct wf_text text = {0};
    struct cli_args args;
    int exit_code;

    if (!cli_parse(command, argc, argv, false, &args, &exit_code)) return exit_code;
    if (!read_options(command, &args, &request)) return CLI_USAGE;
    if (cli_read_file(command, args.rest[0], &text, &exit_code))
        exit_code = simulate(command, &args, &request, text.data);
    wf_free(request.stage_layers);
    wf_text_free(&text);
    return exit_code;
}

const struct cli_command cli_step = {
    .name = "step",
    .summary = "predict the time and the memory of a training step on a mesh",
    .arguments = "GRAPH|MODEL [--mesh M] [--schedule S] [--microbatches N] [options]",
    .example = "weft step examples/graphs/llama-8b.graph --mesh pp=4,dp=8,tp=8/8 --schedule zbv "
               "--microbatches 16",
    .page = "training/planning-a-run.md",
    .options =
        (const struct cli_option[]){
            CLI_MESH,
            CLI_MESH_RANKS,
            {"schedule", "S", "the pipeline's schedule, or a CSV file of one (default: 1f1b)", 0},
            {"chunks", "V", "stages on each rank (default: 1 or 2, as the schedule needs)", 0},
            {"microbatches", "N",
             "microbatches of a step (default: twice the size of pp; 1 without pp)", 0},
            {"stages", "LIST",
             "layers of each stage, such as 5,6*10,5 (default: they are dealt evenly)", 0},
            {"costs", "T", "a cost table of `weft costs`, or a file (default: WEFT_COSTS)", 0},
            {"fsdp", NULL,
             "gather parameters and reduce gradients beside the compute of other layers, in each "
             "microbatch; ranks of a model share its parameters",
             0},
            {"ddp", NULL, "reduce gradients beside the last backward pass", 0},
            {"batch", "N", "a model's: sequences of a step, instead of --microbatches", 0},
            MODEL_OPTIONS,
            CLI_MEMORY_LIMIT("the most memory of a rank; exit code 1 if one holds more"),
            {"jitter", "PERCENT", "ranks are slower by a random share up to this", 0},
            {"straggler", "LIST", "slow ranks, RANK:FACTOR, such as 17:1.5 (1 or more)", 0},
            CLI_SEED,
            {"trace", "FILE", "write a trace for Perfetto to FILE", 0},
            CLI_JSON,
            {0}},
    .rest_max = 1,
    .complaint = find_complaint,
    .run = run,
};
