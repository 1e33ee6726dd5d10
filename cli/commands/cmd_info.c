/* cmd_info.c - `weft info`: one line per plugin, and which one serves. */
#include "common/cli.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The candidates that serve; NOBODY: no candidate does. */
struct serving {
    size_t comm, symm;
    char error[2048]; /* why no plugin serves communication, or "" */
};

#define NOBODY SIZE_MAX

static void choose(const weft_backends *backends, struct serving *out)
{
    *out = (struct serving){NOBODY, NOBODY, ""};
    if (weft_backends_choose(backends, WEFT_BACKEND_ROLE_COMM, &out->comm) != WEFT_OK)
        snprintf(out->error, sizeof out->error, "%s", weft_last_error());
    if (weft_backends_choose(backends, WEFT_BACKEND_ROLE_SYMM, &out->symm) != WEFT_OK)
        out->symm = NOBODY;
}

static const char *name_of(const weft_backends *backends, size_t index)
{
    weft_backend_info info = {.struct_size = sizeof info};

    if (index == NOBODY || weft_backends_get(backends, index, &info) != WEFT_OK) return NULL;
    return info.name;
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
    wf_json_bool(json, "usable", info->reason == WEFT_BACKEND_REASON_USABLE);
    wf_json_string(json, "status", weft_backend_reason_text(info->reason));
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

static void print_json(const weft_backends *backends, const struct serving *serving,
                       struct wf_text *out)
{
    struct wf_json json = {.out = out};
    const char *origin;
    const char *wanted = weft_backends_wanted(backends, &origin);

    wf_json_begin(&json, NULL, '{');
    wf_json_string(&json, "backend", wanted);
    wf_json_string(&json, "backend_from", origin);
    wf_json_string(&json, "comm", name_of(backends, serving->comm));
    wf_json_string(&json, "symm", name_of(backends, serving->symm));
    wf_json_string(&json, "error", serving->error[0] != '\0' ? serving->error : NULL);
    wf_json_begin(&json, "plugins", '[');
    for (size_t i = 0; i < weft_backends_count(backends); i++) {
        weft_backend_info info = {.struct_size = sizeof info};
        if (weft_backends_get(backends, i, &info) == WEFT_OK)
            print_plugin_json(&json, &info, weft_backends_plugin(backends, i));
    }
    wf_json_end(&json, ']');
    wf_json_end(&json, '}');
    wf_text_char(out, '\n');
}

static int name_width(const weft_backends *backends)
{
    size_t widest = strlen("PLUGIN");

    for (size_t i = 0; i < weft_backends_count(backends); i++)
        if (strlen(name_of(backends, i)) > widest) widest = strlen(name_of(backends, i));
    return (int)widest;
}

static void print_plugin(const weft_backend_info *info, int width, const char *role,
                         struct wf_text *out)
{
    bool usable = info->reason == WEFT_BACKEND_REASON_USABLE;
    char abi[32] = "-";

    if (info->version != NULL)
        snprintf(abi, sizeof abi, "%" PRIu32 ".%" PRIu32, info->abi_major, info->abi_minor);
    wf_text_add(out, "%-*s  %-9s %-4s %s%-22s%s  %s%s\n", width, info->name,
                info->version != NULL ? info->version : "-", abi,
                cli_colour(stdout, usable ? CLI_GREEN : CLI_RED),
                weft_backend_reason_text(info->reason), cli_colour(stdout, CLI_PLAIN), role,
                usable && info->description[0] != '\0' ? info->description : info->reason_text);
}

static void print_table(const weft_backends *backends, const struct serving *serving,
                        struct wf_text *out)
{
    int width = name_width(backends);

    wf_text_add(out, "%s%-*s  %-9s %-4s %-22s  %s%s\n", cli_colour(stdout, CLI_BOLD), width,
                "PLUGIN", "VERSION", "ABI", "STATUS", "WHY", cli_colour(stdout, CLI_PLAIN));
    for (size_t i = 0; i < weft_backends_count(backends); i++) {
        weft_backend_info info = {.struct_size = sizeof info};
        if (weft_backends_get(backends, i, &info) == WEFT_OK)
            print_plugin(&info, width,
                         i == serving->comm   ? "serves: "
                         : i == serving->symm ? "serves symmetric memory: "
                                              : "",
                         out);
    }
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    weft_backend_options options = {.struct_size = sizeof options};
    weft_backends *backends;
    struct serving serving;
    struct cli_args args;
    struct wf_text text = {0};
    weft_status status;
    int exit_code, printed;

    if (!cli_parse(command, argc, argv, false, &args, &exit_code)) return exit_code;
    options.backend = cli_value(command, &args, "backend");
    setenv("WEFT_LOG", "warning", 0); /* the table repeats the notice */
    status = weft_backends_create(&options, &backends);
    if (status != WEFT_OK) return cli_fail(command, status);
    choose(backends, &serving);
    if (cli_has(command, &args, "json"))
        print_json(backends, &serving, &text);
    else
        print_table(backends, &serving, &text);
    printed = cli_print(command, stdout, &text);
    weft_backends_release(&backends);
    if (serving.error[0] == '\0' || printed != CLI_OK) return printed;
    fprintf(stderr, "weft %s: %s\n", command->name, serving.error);
    return CLI_NO;
}

const struct cli_command cli_info = {
    .name = "info",
    .summary = "list the plugins, whether each is usable, and which one serves",
    .arguments = "[--backend B] [--json]",
    .example = "WEFT_BACKEND=nccl weft info",
    .options = (const struct cli_option[]){CLI_BACKEND, CLI_JSON, {0}},
    .run = run,
};
