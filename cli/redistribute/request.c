/* request.c - reads a request from a command line. */
#include "redistribute/request.h"

#include <string.h>

static bool complain(const struct cli_command *command, int *exit_code)
{
    cli_complain(command, "%s", weft_last_error());
    *exit_code = CLI_USAGE;
    return false;
}

static bool missing(const struct cli_command *command, const char *option, int *exit_code)
{
    fprintf(stderr, "weft %s: --%s is missing\n`weft %s --help` shows an example.\n", command->name,
            option, command->name);
    *exit_code = CLI_USAGE;
    return false;
}

/* Find VALUE, which may be NULL for the first, in NAMES.  False after printing an error. */
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
    fprintf(stderr, "weft %s: --%s is \"%s\"; expected one of", command->name, option, value);
    for (uint32_t i = 0; i < count; i++)
        fprintf(stderr, "%s %s", i > 0 ? "," : "", names[i]);
    if (nearest >= 0) fprintf(stderr, "; did you mean %s?", names[nearest]);
    fprintf(stderr, "\n");
    return false;
}

/* Set a bit of *OUT for each kind of step in LIST, which may be NULL. */
static bool read_without(const struct cli_command *command, const char *list, uint32_t *out)
{
    const char *names[WEFT_STEP_KINDS];
    char name[32];

    *out = 0;
    for (uint32_t i = 0; i < WEFT_STEP_KINDS; i++)
        names[i] = weft_step_name(i);
    while (list != NULL) {
        const char *comma = strchr(list, ',');
        size_t length = comma != NULL ? (size_t)(comma - list) : strlen(list);
        uint32_t kind;

        snprintf(name, sizeof name, "%.*s", (int)length, list);
        if (!choose(command, "without", name, names, WEFT_STEP_KINDS, &kind)) return false;
        *out |= UINT32_C(1) << kind;
        list = comma != NULL ? comma + 1 : NULL;
    }
    return true;
}

static bool read_options(const struct cli_command *command, const struct cli_args *args,
                         struct request *out)
{
    static const char *const measures[] = {"time", "bytes", "memory"};
    static const char *const planners[] = {"search", "exchange"};
    int64_t limit;

    out->options.struct_size = sizeof out->options;
    if (!choose(command, "minimize", cli_value(command, args, "minimize"), measures,
                WF_COUNT(measures), &out->options.minimize) ||
        !choose(command, "planner", cli_value(command, args, "planner"), planners,
                WF_COUNT(planners), &out->options.planner) ||
        !read_without(command, cli_value(command, args, "without"), &out->options.without) ||
        !cli_size(command, args, "memory-limit", 0, &limit))
        return false;
    out->options.memory_limit = (uint64_t)limit;
    return true;
}

/* Give *TO the dtype of --to-dtype. */
static weft_status change_dtype(const struct cli_command *command, const struct cli_args *args,
                                weft_spec **to)
{
    weft_spec *other = NULL;
    enum weft_dtype dtype;

    if (!cli_has(command, args, "to-dtype")) return WEFT_OK;
    if (cli_is_spec(cli_value(command, args, "to")))
        return wf_fail(WEFT_ERR_INVALID, "--to is a whole spec; leave out --to-dtype");
    WF_TRY(cli_dtype(command, args, "to-dtype", &dtype));
    WF_TRY(weft_spec_with_dtype(*to, dtype, &other));
    weft_spec_release(to);
    *to = other;
    return WEFT_OK;
}

static weft_status read_layouts(const struct cli_command *command, const struct cli_args *args,
                                struct request *out)
{
    bool other = cli_has(command, args, "to-mesh");

    WF_TRY(cli_mesh(command, args, "mesh", &out->mesh));
    WF_TRY(cli_mesh(command, args, other ? "to-mesh" : "mesh", &out->to_mesh));
    WF_TRY(cli_spec(command, args, "from", out->mesh, &out->from));
    WF_TRY(cli_spec_of(out->from, out->to_mesh, "to", cli_value(command, args, "to"), &out->to));
    WF_TRY(change_dtype(command, args, &out->to));
    return weft_cost_table_open(cli_value(command, args, "costs"), &out->costs);
}

bool request_read(const struct cli_command *command, const struct cli_args *args,
                  struct request *out, int *exit_code)
{
    static const char *const needed[] = {"mesh", "from", "to"};

    memset(out, 0, sizeof *out);
    *exit_code = CLI_USAGE;
    for (size_t i = 0; i < WF_COUNT(needed); i++)
        if (!cli_has(command, args, needed[i])) return missing(command, needed[i], exit_code);
    if (!read_options(command, args, out)) return false;
    if (read_layouts(command, args, out) != WEFT_OK) {
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
