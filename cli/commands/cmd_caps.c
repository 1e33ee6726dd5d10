/* cmd_caps.c - `weft caps NAME`: the collectives, dtypes and reductions that a plugin supports. */
#include "common/cli.h"

#include <stdlib.h>
#include <string.h>

static const char *const level_words[] = {"no", "emulated", "native"};
static const char *const level_cells[] = {"-", "e", "N"};

/* The support level of one combination.  It is NO if the plugin fails or returns an invalid
 * level.  A barrier moves no elements, so its level is the same in every column. */
static uint32_t ask(const weft_plugin *plugin, uint32_t collective, uint32_t dtype,
                    uint32_t reduction, int32_t ranks)
{
    weft_support_query query = {.struct_size = sizeof query,
                                .collective = collective,
                                .dtype = collective == WEFT_COLL_BARRIER ? 0 : dtype,
                                .reduction = reduction,
                                .size = ranks};
    uint32_t level = WEFT_SUPPORT_NO;

    if (plugin->comm->support(NULL, &query, &level) != WEFT_OK) return WEFT_SUPPORT_NO;
    return level < WF_COUNT(level_words) ? level : WEFT_SUPPORT_NO;
}

static uint32_t reductions_of(uint32_t collective)
{
    return wf_collective_reduces(collective) ? WEFT_REDUCE_COUNT : 1;
}

static void print_rows(const weft_plugin *plugin, int32_t ranks, struct wf_text *out)
{
    wf_text_add(out, "%-30s", "");
    for (uint32_t d = 0; d < WEFT_DTYPE_COUNT; d++)
        wf_text_add(out, " %s", wf_dtype_name(d));
    wf_text_char(out, '\n');
    for (uint32_t c = 0; c < WEFT_COLL_COUNT; c++) {
        for (uint32_t r = 0; r < reductions_of(c); r++) {
            char label[64];
            snprintf(label, sizeof label, "%s%s%s", wf_collective_name(c),
                     wf_collective_reduces(c) ? " " : "",
                     wf_collective_reduces(c) ? wf_reduction_name(r) : "");
            wf_text_add(out, "%-30s", label);
            for (uint32_t d = 0; d < WEFT_DTYPE_COUNT; d++)
                wf_text_add(out, " %*s", (int)strlen(wf_dtype_name(d)),
                            level_cells[ask(plugin, c, d, r, ranks)]);
            wf_text_char(out, '\n');
        }
    }
    wf_text_add(out, "\nN native   e emulated   - no\n");
}

static void print_text(const weft_backend_info *info, const weft_plugin *plugin, int32_t ranks,
                       struct wf_text *out)
{
    wf_text_add(out, "%s %s: %s\n", info->name, plugin->version, plugin->description);
    wf_text_add(out, "tables: device%s%s%s\n", plugin->comm != NULL ? " comm" : "",
                plugin->symm != NULL ? " symm" : "", plugin->kernel != NULL ? " kernel" : "");
    if (info->reason != WEFT_BACKEND_REASON_USABLE)
        wf_text_add(out, "not usable here (%s); with a device it would do at most:\n",
                    weft_backend_reason_text(info->reason));
    wf_text_char(out, '\n');
    if (plugin->comm != NULL)
        print_rows(plugin, ranks, out);
    else
        wf_text_add(out, "the plugin has memory only, no collectives\n");
}

static void print_dtypes_json(struct wf_json *json, const weft_plugin *plugin, uint32_t collective,
                              uint32_t reduction, int32_t ranks)
{
    wf_json_begin(json, NULL, '{');
    wf_json_string(json, "collective", wf_collective_name(collective));
    wf_json_string(json, "reduction",
                   wf_collective_reduces(collective) ? wf_reduction_name(reduction) : NULL);
    wf_json_begin(json, "dtypes", '{');
    for (uint32_t d = 0; d < WEFT_DTYPE_COUNT; d++)
        wf_json_string(json, wf_dtype_name(d),
                       level_words[ask(plugin, collective, d, reduction, ranks)]);
    wf_json_end(json, '}');
    wf_json_end(json, '}');
}

static void print_json(const weft_backend_info *info, const weft_plugin *plugin, int32_t ranks,
                       struct wf_text *out)
{
    struct wf_json json = {.out = out};

    wf_json_begin(&json, NULL, '{');
    wf_json_string(&json, "name", info->name);
    wf_json_string(&json, "version", plugin->version);
    wf_json_string(&json, "description", plugin->description);
    wf_json_bool(&json, "usable", info->reason == WEFT_BACKEND_REASON_USABLE);
    wf_json_string(&json, "status", weft_backend_reason_text(info->reason));
    wf_json_string(&json, "reason", info->reason_text);
    wf_json_int(&json, "ranks", ranks);
    wf_json_bool(&json, "device", plugin->device != NULL);
    wf_json_bool(&json, "comm", plugin->comm != NULL);
    wf_json_bool(&json, "symm", plugin->symm != NULL);
    wf_json_bool(&json, "kernel", plugin->kernel != NULL);
    wf_json_begin(&json, "support", '[');
    for (uint32_t c = 0; plugin->comm != NULL && c < WEFT_COLL_COUNT; c++)
        for (uint32_t r = 0; r < reductions_of(c); r++)
            print_dtypes_json(&json, plugin, c, r, ranks);
    wf_json_end(&json, ']');
    wf_json_end(&json, '}');
    wf_text_char(out, '\n');
}

/* Print the requested plugin, which is the only one that is not excluded.  CLI_OK if it is
 * usable. */
static int report(const struct cli_command *command, const struct cli_args *args,
                  const weft_backends *backends, int32_t ranks)
{
    weft_backend_info info = {.struct_size = sizeof info};
    const weft_plugin *plugin;
    weft_status status;
    size_t index = 0;
    struct wf_text text = {0};
    int printed = CLI_OK;

    do
        status = weft_backends_get(backends, index++, &info);
    while (status == WEFT_OK && info.reason == WEFT_BACKEND_REASON_EXCLUDED);
    if (status != WEFT_OK) return cli_fail(command, status);
    plugin = weft_backends_plugin(backends, index - 1);
    if (plugin != NULL) {
        (cli_has(command, args, "json") ? print_json : print_text)(&info, plugin, ranks, &text);
        printed = cli_print(command, stdout, &text);
    }
    if (info.reason == WEFT_BACKEND_REASON_USABLE || printed != CLI_OK) return printed;
    fprintf(stderr, "weft caps: %s: %s: %s\n", info.name, weft_backend_reason_text(info.reason),
            info.reason_text);
    return CLI_NO;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    weft_backend_options options = {.struct_size = sizeof options};
    weft_backends *backends;
    weft_status status;
    struct cli_args args;
    char *plugin;
    int64_t ranks;
    int exit_code;

    if (!cli_parse(command, argc, argv, false, &args, &exit_code)) return exit_code;
    if (!cli_int(command, &args, "ranks", 1, INT32_MAX, 2, &ranks)) return CLI_USAGE;
    if (args.rest_count != 1 || strpbrk(args.rest[0], ",^") != NULL ||
        strcmp(args.rest[0], "auto") == 0) {
        fprintf(stderr, "weft caps: give one NAME, or the path of one plugin\n");
        return CLI_USAGE;
    }
    if (!cli_plugin(command, args.rest[0], &plugin, &exit_code)) return exit_code;
    options.backend = plugin;
    status = weft_backends_create(&options, &backends);
    if (status != WEFT_OK) {
        exit_code = cli_fail(command, status);
    } else {
        exit_code = report(command, &args, backends, (int32_t)ranks);
        weft_backends_release(&backends);
    }
    free(plugin);
    return exit_code;
}

const struct cli_command cli_caps = {
    .name = "caps",
    .summary = "print what a plugin supports: collective x dtype x reduction",
    .arguments = "NAME [--ranks N] [--json]",
    .example = "weft caps gloo-cpu",
    .options =
        (const struct cli_option[]){CLI_RANKS("ask for N ranks (default: 2)"), CLI_JSON, {0}},
    .rest_max = 1,
    .run = run,
};
