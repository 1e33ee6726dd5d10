/* cmd_info.c - `weft info`: one line per plugin, and which one serves. */
#include "common/cli.h"

#include "plugin/plugin.h"

#include <inttypes.h>
#include <string.h>

static const char *serving_name(const weft_backends *backends, enum weft_role role)
{
    size_t index = wf_backends_pick(backends, role);

    return index != WF_NO_CANDIDATE ? backends->candidates[index].name : NULL;
}

static void print_plugin_json(struct wf_json *json, const weft_backend_info *info,
                              const weft_plugin *plugin)
{
    wf_json_begin(json, NULL, '{');
    wf_json_string(json, "name", info->name);
    wf_json_string(json, "file", info->file);
    wf_json_string(json, "version", info->version);
    wf_json_string(json, "build", info->build);
    wf_json_string(json, "description", info->description);
    if (plugin != NULL) {
        wf_json_uint(json, "abi_major", info->abi_major);
        wf_json_uint(json, "abi_minor", info->abi_minor);
    } else {
        wf_json_null(json, "abi_major");
        wf_json_null(json, "abi_minor");
    }
    wf_json_bool(json, "usable", info->reason == WEFT_REASON_USABLE);
    wf_json_string(json, "status", weft_reason_text(info->reason));
    wf_json_string(json, "reason", info->reason_text);
    wf_json_int(json, "score", info->score);
    wf_json_uint(json, "devices", info->device_count);
    wf_json_string(json, "library", info->library);
    wf_json_begin(json, "tables", '[');
    if (plugin != NULL) wf_json_string(json, NULL, "device");
    if (plugin != NULL && plugin->comm != NULL) wf_json_string(json, NULL, "comm");
    if (plugin != NULL && plugin->symm != NULL) wf_json_string(json, NULL, "symm");
    if (plugin != NULL && plugin->kernel != NULL) wf_json_string(json, NULL, "kernel");
    wf_json_end(json, ']');
    wf_json_end(json, '}');
}

static void print_json(const weft_backends *backends, const char *error, struct wf_text *out)
{
    struct wf_json json = {.out = out};

    wf_json_begin(&json, NULL, '{');
    wf_json_string(&json, "backend", backends->wanted);
    wf_json_string(&json, "backend_from", backends->origin);
    wf_json_string(&json, "comm", serving_name(backends, WEFT_ROLE_COMM));
    wf_json_string(&json, "symm", serving_name(backends, WEFT_ROLE_SYMM));
    wf_json_string(&json, "error", error);
    wf_json_begin(&json, "plugins", '[');
    for (size_t i = 0; i < weft_backends_count(backends); i++) {
        weft_backend_info info = {.struct_size = sizeof info};
        if (weft_backends_get(backends, i, &info) == WEFT_OK)
            print_plugin_json(&json, &info, wf_backends_loaded(backends, i));
    }
    wf_json_end(&json, ']');
    wf_json_end(&json, '}');
    wf_text_char(out, '\n');
}

static int name_width(const weft_backends *backends)
{
    size_t widest = strlen("PLUGIN");

    for (size_t i = 0; i < weft_backends_count(backends); i++)
        if (strlen(backends->candidates[i].name) > widest)
            widest = strlen(backends->candidates[i].name);
    return (int)widest;
}

static void print_plugin(const weft_backend_info *info, int width, const char *role,
                         struct wf_text *out)
{
    bool usable = info->reason == WEFT_REASON_USABLE;
    char abi[32] = "-";

    if (info->version != NULL)
        snprintf(abi, sizeof abi, "%" PRIu32 ".%" PRIu32, info->abi_major, info->abi_minor);
    wf_text_add(out, "%-*s  %-9s %-4s %s%-22s%s  %s%s\n", width, info->name,
                info->version != NULL ? info->version : "-", abi,
                cli_colour(stdout, usable ? CLI_GREEN : CLI_RED), weft_reason_text(info->reason),
                cli_colour(stdout, CLI_PLAIN), role,
                usable && info->description[0] != '\0' ? info->description : info->reason_text);
}

static void print_table(const weft_backends *backends, struct wf_text *out)
{
    size_t comm = wf_backends_pick(backends, WEFT_ROLE_COMM);
    size_t symm = wf_backends_pick(backends, WEFT_ROLE_SYMM);
    int width = name_width(backends);

    wf_text_add(out, "%s%-*s  %-9s %-4s %-22s  %s%s\n", cli_colour(stdout, CLI_BOLD), width,
                "PLUGIN", "VERSION", "ABI", "STATUS", "WHY", cli_colour(stdout, CLI_PLAIN));
    for (size_t i = 0; i < weft_backends_count(backends); i++) {
        weft_backend_info info = {.struct_size = sizeof info};
        if (weft_backends_get(backends, i, &info) == WEFT_OK)
            print_plugin(&info, width,
                         i == comm   ? "serves: "
                         : i == symm ? "serves symmetric memory: "
                                     : "",
                         out);
    }
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    const char *error = NULL;
    weft_backends *backends;
    struct cli_args args;
    struct wf_text text = {0};
    size_t chosen;
    int exit_code, printed;

    if (!cli_parse(command, argc, argv, false, &args, &exit_code)) return exit_code;
    if (weft_backends_find(NULL, &backends) != WEFT_OK) return cli_fail(command);
    wf_log_set_level(WF_WARNING); /* the table says what the notice would */
    if (weft_backends_choose(backends, WEFT_ROLE_COMM, &chosen) != WEFT_OK)
        error = weft_last_error();
    if (cli_has(command, &args, "json"))
        print_json(backends, error, &text);
    else
        print_table(backends, &text);
    printed = cli_print(command, stdout, &text);
    weft_backends_release(&backends);
    if (error == NULL || printed != CLI_OK) return printed;
    return cli_fail(command);
}

const struct cli_command cli_info = {
    .name = "info",
    .summary = "the plugins there are, whether each is usable, and which one serves",
    .arguments = "[--json]",
    .example = "WEFT_BACKEND=nccl weft info",
    .options = (const struct cli_option[]){{"json", NULL, "as JSON"}, {0}},
    .run = run,
};
