/* request.c - reading what to redistribute from a command line. */
#include "request.h"

#include "comm/comm.h"
#include "shard/shard.h"

#include <string.h>

static bool complain(const struct cli_command *command, int *exit_code)
{
    fprintf(stderr, "weft %s: %s\n", command->name, weft_last_error());
    *exit_code = CLI_USAGE;
    return false;
}

static bool missing(const struct cli_command *command, const char *option, int *exit_code)
{
    fprintf(stderr, "weft %s: --%s is needed\n`weft %s --help` shows an example.\n", command->name,
            option, command->name);
    *exit_code = CLI_USAGE;
    return false;
}

/* VALUE among NAMES, or NULL for the first. */
static bool choose(const struct cli_command *command, const char *option, const char *value,
                   const char *const *names, uint32_t count, uint32_t *out)
{
    int nearest;

    for (uint32_t i = 0; i < count; i++)
        if (value == NULL || strcmp(value, names[i]) == 0) {
            *out = i;
            return true;
        }
    nearest = wf_nearest(value, names, count);
    fprintf(stderr, "weft %s: --%s \"%s\" is not known; there are", command->name, option, value);
    for (uint32_t i = 0; i < count; i++)
        fprintf(stderr, "%s %s", i > 0 ? "," : "", names[i]);
    if (nearest >= 0) fprintf(stderr, "; did you mean %s?", names[nearest]);
    fprintf(stderr, "\n");
    return false;
}

static weft_status read_spec(const weft_mesh *mesh, const char *dtype, const char *shape,
                             const char *placements, weft_spec **out)
{
    struct wf_text text = {0};
    int64_t extents[WEFT_MAX_DIMS];
    weft_status status;
    int32_t dims;

    WF_TRY(wf_shape_parse(shape, &dims, extents));
    wf_text_add(&text, "%s", dtype != NULL ? dtype : "f32");
    wf_shape_add_text(dims, extents, &text);
    wf_text_add(&text, " %s", placements);
    status = wf_text_status(&text);
    if (status == WEFT_OK) status = weft_spec_parse(mesh, text.data, out);
    wf_text_free(&text);
    return status;
}

/* NAME, or else what WEFT_COSTS says, or else "default". */
static weft_status read_costs(const char *name, weft_cost_table **out)
{
    if (name == NULL) name = wf_config_knob("WEFT_COSTS");
    return wf_costs_read(name != NULL ? name : "default", out);
}

static bool read_options(const struct cli_command *command, const struct cli_args *args,
                         struct request *out)
{
    static const char *const measures[] = {"time", "bytes", "memory"};
    static const char *const planners[] = {"search", "exchange", "dtensor-greedy", "dtensor-graph"};
    int64_t limit;

    out->options.struct_size = sizeof out->options;
    if (!choose(command, "minimize", cli_value(command, args, "minimize"), measures,
                WF_COUNT(measures), &out->options.minimize) ||
        !choose(command, "planner", cli_value(command, args, "planner"), planners,
                WF_COUNT(planners), &out->options.planner) ||
        !cli_int(command, args, "memory-limit", 1, INT64_MAX, 0, &limit))
        return false;
    out->options.memory_limit = (uint64_t)limit;
    return true;
}

bool request_read(const struct cli_command *command, const struct cli_args *args,
                  struct request *out, int *exit_code)
{
    static const char *const needed[] = {"mesh", "shape", "from", "to"};
    const char *dtype = cli_value(command, args, "dtype"), *shape, *to_mesh;

    memset(out, 0, sizeof *out);
    *exit_code = CLI_USAGE;
    for (size_t i = 0; i < WF_COUNT(needed); i++)
        if (!cli_has(command, args, needed[i])) return missing(command, needed[i], exit_code);
    if (!read_options(command, args, out)) return false;
    shape = cli_value(command, args, "shape");
    to_mesh = cli_value(command, args, "to-mesh");
    if (weft_mesh_parse(cli_value(command, args, "mesh"), &out->mesh) != WEFT_OK ||
        weft_mesh_parse(to_mesh != NULL ? to_mesh : cli_value(command, args, "mesh"),
                        &out->to_mesh) != WEFT_OK ||
        read_spec(out->mesh, dtype, shape, cli_value(command, args, "from"), &out->from) !=
            WEFT_OK ||
        read_spec(out->to_mesh, dtype, shape, cli_value(command, args, "to"), &out->to) !=
            WEFT_OK ||
        read_costs(cli_value(command, args, "costs"), &out->costs) != WEFT_OK) {
        request_free(out);
        return complain(command, exit_code);
    }
    out->options.costs = out->costs;
    *exit_code = CLI_OK;
    return true;
}

void request_free(struct request *request)
{
    weft_spec_release(&request->from);
    weft_spec_release(&request->to);
    weft_mesh_release(&request->mesh);
    weft_mesh_release(&request->to_mesh);
    weft_cost_table_release(&request->costs);
}
