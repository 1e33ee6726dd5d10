/* cmd_step.c - `weft step GRAPH`: what a training step costs on a mesh. */
#include "common/cli.h"

#include "schedule/request.h"
#include "step/step.h"

#include <stdlib.h>
#include <string.h>

/* ---- meshes ---- */

/* "dp,tp": the axes of the graph's mesh, all of which MESH must have. */
static weft_status list_axes(const weft_mesh *inner, const weft_mesh *mesh, struct wf_text *out)
{
    for (int32_t a = 0; a < weft_mesh_axes(inner); a++) {
        const char *name = weft_mesh_axis_name(inner, a);
        int32_t axis;
        if (name[0] == '\0')
            return wf_fail(WEFT_ERR_INVALID,
                           "--mesh: the axes of the graph's mesh need names, such as dp=2,tp=4");
        if (weft_mesh_find_axis(mesh, name, &axis) != WEFT_OK)
            return wf_fail(WEFT_ERR_INVALID,
                           "--mesh: the graph's mesh has the axis %s; give its size, such as %s=1",
                           name, name);
        wf_text_add(out, "%s%s", a > 0 ? "," : "", name);
    }
    return wf_text_status(out);
}

/* Replace the mesh of GRAPH by the ranks of a stage of --mesh.  Without it there is one stage. */
static weft_status read_mesh(const struct cli_command *command, const struct cli_args *args,
                             struct graph *graph, struct step_request *request)
{
    struct wf_text axes = {0};
    weft_status status;

    request->pipeline = -1;
    WF_TRY(cli_mesh(command, args, "mesh", &request->mesh));
    if (request->mesh == NULL) {
        request->mesh = weft_mesh_retain(graph->mesh);
        request->inner = weft_mesh_retain(graph->mesh);
        return WEFT_OK;
    }
    if (weft_mesh_find_axis(request->mesh, "pp", &request->pipeline) != WEFT_OK)
        request->pipeline = -1;
    status = list_axes(graph->mesh, request->mesh, &axes);
    if (status == WEFT_OK &&
        weft_mesh_axes(graph->mesh) + (request->pipeline >= 0) != weft_mesh_axes(request->mesh))
        status = wf_fail(WEFT_ERR_INVALID,
                         "--mesh: it has %d axes, and the graph's mesh %d; only pp may be added",
                         weft_mesh_axes(request->mesh), weft_mesh_axes(graph->mesh));
    if (status == WEFT_OK)
        status = weft_mesh_slice(request->mesh, axes.data, weft_mesh_rank_at(request->mesh, 0),
                                 &request->inner);
    wf_text_free(&axes);
    if (status != WEFT_OK) return status;
    weft_mesh_release(&graph->mesh);
    graph->mesh = weft_mesh_retain(request->inner);
    return WEFT_OK;
}

/* ---- options ---- */

/* "17:1.5,40:2" */
static bool read_stragglers(const struct cli_command *command, const char *text,
                            struct step_request *out)
{
    bool more = text != NULL;

    while (more) {
        char *end, *colon;
        long rank = strtol(text, &colon, 10);
        double factor = *colon == ':' ? strtod(colon + 1, &end) : 0;
        if (colon == text || *colon != ':' || end == colon + 1 || (*end != '\0' && *end != ',') ||
            rank < 0 || rank > INT32_MAX || !(factor >= 1 && factor <= 1000) ||
            out->straggler_count == WF_COUNT(out->stragglers)) {
            cli_complain(
                command,
                "--straggler takes up to 16 of RANK:FACTOR, such as 17:1.5; a factor is 1 or more");
            return false;
        }
        out->stragglers[out->straggler_count].rank = (int32_t)rank;
        out->stragglers[out->straggler_count++].factor = factor;
        more = *end == ',';
        text = end + 1;
    }
    return true;
}

static bool read_options(const struct cli_command *command, const struct cli_args *args,
                         struct step_request *out)
{
    int64_t memory, jitter, seed;

    if (!cli_int(command, args, "jitter", 0, 1000, 0, &jitter) ||
        !cli_int(command, args, "seed", 0, INT64_MAX, 1, &seed) ||
        !cli_size(command, args, "memory-limit", 0, &memory))
        return false;
    out->memory_limit = (uint64_t)memory;
    out->jitter = (double)jitter / 100;
    out->seed = (uint64_t)seed;
    return read_stragglers(command, cli_value(command, args, "straggler"), out);
}

/* The schedule of the mesh's pipeline; without one, a step has one microbatch unless told. */
static bool make_schedule(const struct cli_command *command, const struct cli_args *args,
                          struct step_request *request, int *exit_code)
{
    const char *name = cli_value(command, args, "schedule");
    int32_t axis = request->pipeline;
    int32_t ranks = axis >= 0 ? weft_mesh_axis_size(request->mesh, axis) : 1;
    weft_schedule_info info = {.struct_size = sizeof info};

    if (name != NULL && schedule_is_file(name)) {
        if (!schedule_read(command, args, name, &request->schedule, exit_code)) return false;
        *exit_code = CLI_USAGE;
        if (weft_schedule_get(request->schedule, &info) == WEFT_OK && info.ranks == ranks)
            return true;
        cli_complain(command, "the schedule %s has %d ranks, and the axis pp %d", name, info.ranks,
                     ranks);
        return false;
    }
    return schedule_make(command, args, name != NULL ? name : "1f1b", ranks,
                         axis >= 0 ? 2 * (int64_t)ranks : 1, &request->schedule, exit_code);
}

/* ---- the command ---- */

static int print(const struct cli_command *command, const struct cli_args *args,
                 const struct step_request *request, const struct step_result *result)
{
    const char *trace = cli_value(command, args, "trace");
    struct wf_text text = {0};
    weft_status status;
    int exit_code = CLI_OK;

    if (trace != NULL) {
        status = step_add_trace(result, &text);
        if (status == WEFT_OK)
            exit_code = cli_print_to(command, trace, &text);
        else
            exit_code = cli_fail(command, status);
        if (exit_code != CLI_OK) {
            wf_text_free(&text);
            return exit_code;
        }
    }
    status = cli_has(command, args, "json") ? step_add_json(request, result, &text)
                                            : step_add_text(request, result, &text);
    if (status != WEFT_OK) {
        wf_text_free(&text);
        return cli_fail(command, status);
    }
    exit_code = cli_print(command, stdout, &text);
    if (exit_code != CLI_OK || request->memory_limit == 0 || result->peak <= request->memory_limit)
        return exit_code;
    wf_text_add(&text, "a rank holds ");
    wf_text_bytes(&text, result->peak);
    wf_text_add(&text, ", and the limit is ");
    wf_text_bytes(&text, request->memory_limit);
    if (wf_text_status(&text) == WEFT_OK) cli_complain(command, "%s", text.data);
    wf_text_free(&text);
    return CLI_NO;
}

static int simulate(const struct cli_command *command, const struct cli_args *args,
                    struct step_request *request, const char *text)
{
    struct step_result result = {0};
    weft_cost_table *costs = NULL;
    struct graph graph;
    weft_status status;
    int exit_code;

    memset(&graph, 0, sizeof graph);
    status = weft_cost_table_open(cli_value(command, args, "costs"), &costs);
    request->costs = costs;
    if (status == WEFT_OK) status = graph_read(text, NULL, &graph);
    if (status == WEFT_OK) status = read_mesh(command, args, &graph, request);
    if (status == WEFT_OK) status = step_check_batch(&graph);
    if (status == WEFT_OK) status = graph_check(&graph, costs, false);
    if (status != WEFT_OK) {
        exit_code = cli_fail(command, status);
    } else if (make_schedule(command, args, request, &exit_code)) {
        status = step_simulate(&graph, request, &result);
        exit_code =
            status == WEFT_OK ? print(command, args, request, &result) : cli_fail(command, status);
    }
    step_free(&result);
    weft_schedule_release(&request->schedule);
    graph_free(&graph);
    weft_mesh_release(&request->mesh);
    weft_mesh_release(&request->inner);
    weft_cost_table_release(&costs);
    return exit_code;
}

static const char *find_complaint(const struct cli_command *command, const struct cli_args *args)
{
    const char *schedule = cli_value(command, args, "schedule"),
               *trace = cli_value(command, args, "trace");

    if (args->rest_count == 0) return "give a file with a graph; - is standard input";
    if (schedule != NULL && strcmp(schedule, "-") == 0 && strcmp(args->rest[0], "-") == 0)
        return "the graph and the schedule cannot both be standard input";
    if (trace != NULL && strcmp(trace, "-") == 0)
        return "the figures are on standard output; give --trace a file";
    return NULL;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct step_request request = {0};
    struct wf_text text = {0};
    struct cli_args args;
    int exit_code;

    if (!cli_parse(command, argc, argv, false, &args, &exit_code)) return exit_code;
    if (!read_options(command, &args, &request)) return CLI_USAGE;
    if (cli_read_file(command, args.rest[0], &text, &exit_code))
        exit_code = simulate(command, &args, &request, text.data);
    wf_text_free(&text);
    return exit_code;
}

const struct cli_command cli_step = {
    .name = "step",
    .summary = "predict the time and the memory of a training step on a mesh",
    .arguments = "GRAPH [--mesh M] [--schedule S] [--microbatches N] [options]",
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
            {"costs", "T", "a cost table of `weft costs`, or a file (default: WEFT_COSTS)", 0},
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
