/* cmd_why.c - `weft why [NAME]`: the directories, files and decisions of the search for plugins. */
#include "common/cli.h"

#include <stdlib.h>
#include <string.h>

static const char *name_of(const weft_backends *backends, size_t index)
{
    weft_backend_info info = {.struct_size = sizeof info};

    return weft_backends_get(backends, index, &info) == WEFT_OK ? info.name : "";
}

/* The name of the candidate that LINE is about, or NULL. */
static const char *candidate_of(const weft_backends *backends, const weft_backend_trace_info *line)
{
    return line->candidate != SIZE_MAX ? name_of(backends, line->candidate) : NULL;
}

/* Set *OUT to line INDEX of the trace.  False if it is about a candidate that is not called NAME;
 * NULL is any name. */
static bool find_line(const weft_backends *backends, size_t index, const char *name,
                      weft_backend_trace_info *out)
{
    const char *candidate;

    out->struct_size = sizeof *out;
    if (weft_backends_trace_get(backends, index, out) != WEFT_OK) return false;
    candidate = candidate_of(backends, out);
    return name == NULL || candidate == NULL || strcmp(candidate, name) == 0;
}

static void print_text(const weft_backends *backends, const char *name, struct wf_text *out)
{
    weft_backend_trace_info line;

    for (size_t i = 0; i < weft_backends_trace_count(backends); i++)
        if (find_line(backends, i, name, &line)) wf_text_add(out, "%s\n", line.text);
}

static void print_json(const weft_backends *backends, const char *name, bool usable,
                       const char *error, struct wf_text *out)
{
    struct wf_json json = {.out = out};
    weft_backend_trace_info line;

    wf_json_begin(&json, NULL, '{');
    wf_json_string(&json, "backend", weft_backends_wanted(backends, NULL));
    wf_json_string(&json, "name", name);
    wf_json_bool(&json, "usable", usable);
    wf_json_string(&json, "error", error);
    wf_json_begin(&json, "trace", '[');
    for (size_t i = 0; i < weft_backends_trace_count(backends); i++) {
        if (!find_line(backends, i, name, &line)) continue;
        wf_json_begin(&json, NULL, '{');
        wf_json_string(&json, "plugin", candidate_of(backends, &line));
        wf_json_string(&json, "text", line.text);
        wf_json_end(&json, '}');
    }
    wf_json_end(&json, ']');
    wf_json_end(&json, '}');
    wf_text_char(out, '\n');
}

/* List the names of the plugins that have a file, each once.  Returns their number. */
static size_t list_names(const weft_backends *backends, const char *names[], size_t most)
{
    weft_backend_info info = {.struct_size = sizeof info};
    size_t count = 0, seen;

    for (size_t i = 0; count < most && weft_backends_get(backends, i, &info) == WEFT_OK; i++) {
        for (seen = 0; seen < count && strcmp(names[seen], info.name) != 0;)
            seen++;
        if (seen == count && info.file != NULL) names[count++] = info.name;
    }
    return count;
}

/* The one of NAMES that begins with NAME, or is nearest to it; NULL if none is near. */
static const char *suggest_name(const char *name, const char *const names[], size_t count)
{
    int nearest;

    for (size_t i = 0; i < count; i++)
        if (name[0] != '\0' && strncmp(names[i], name, strlen(name)) == 0) return names[i];
    nearest = wf_nearest(name, names, count);
    return nearest >= 0 ? names[nearest] : NULL;
}

static weft_status fail_unknown(const weft_backends *backends, const char *name)
{
    const char *names[64], *suggestion;
    size_t count = list_names(backends, names, WF_COUNT(names));
    struct wf_text text = {0};
    weft_status status;

    suggestion = suggest_name(name, names, count);
    wf_text_add(&text, "there is no plugin \"%s\"", name);
    if (suggestion != NULL) wf_text_add(&text, "; did you mean \"%s\"?", suggestion);
    wf_text_add(&text, "%s the directories above have ", suggestion != NULL ? "" : ";");
    for (size_t i = 0; i < count; i++)
        wf_text_add(&text, "%s%s", i > 0 ? ", " : "", names[i]);
    if (count == 0) wf_text_add(&text, "no plugins; WEFT_PLUGIN_PATH adds directories");
    status = wf_text_status(&text);
    if (status == WEFT_OK) status = wf_fail(WEFT_ERR_NOT_FOUND, "%s", text.data);
    wf_text_free(&text);
    return status;
}

/* Returns WEFT_OK if NAME, or any plugin if NAME is NULL, is usable.  Else the last error is the
 * reason. */
static weft_status judge(const weft_backends *backends, const char *name)
{
    weft_backend_info info = {.struct_size = sizeof info};
    size_t chosen;

    if (name == NULL) return weft_backends_choose(backends, WEFT_BACKEND_ROLE_COMM, &chosen);
    for (size_t i = 0; weft_backends_get(backends, i, &info) == WEFT_OK; i++) {
        if (strcmp(info.name, name) != 0)
            continue; /* the first file counts: it shadows later ones */
        if (info.reason == WEFT_BACKEND_REASON_USABLE) return WEFT_OK;
        return wf_fail(WEFT_ERR_NO_BACKEND, "%s: %s: %s", name,
                       weft_backend_reason_text(info.reason), info.reason_text);
    }
    return fail_unknown(backends, name);
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    weft_backend_options options = {.struct_size = sizeof options};
    weft_backends *backends;
    struct cli_args args;
    struct wf_text text = {0};
    weft_status status;
    const char *name;
    int exit_code, printed;

    if (!cli_parse(command, argc, argv, false, &args, &exit_code)) return exit_code;
    name = args.rest_count == 1 ? args.rest[0] : NULL;
    options.backend = cli_value(command, &args, "backend");
    setenv("WEFT_LOG", "warning", 0); /* the trace repeats the notice */
    status = weft_backends_create(&options, &backends);
    if (status != WEFT_OK) return cli_fail(command, status);
    status = judge(backends, name);
    if (cli_has(command, &args, "json"))
        print_json(backends, name, status == WEFT_OK, status == WEFT_OK ? NULL : weft_last_error(),
                   &text);
    else
        print_text(backends, name, &text);
    printed = cli_print(command, stdout, &text);
    weft_backends_release(&backends);
    if (status == WEFT_OK || printed != CLI_OK) return printed;
    cli_fail(command, status);
    return CLI_NO;
}

const struct cli_command cli_why = {
    .name = "why",
    .summary = "print every directory, file and decision that leads to a backend",
    .arguments = "[NAME] [--backend B] [--json]",
    .example = "WEFT_BACKEND=nccl,auto weft why nccl",
    .options = (const struct cli_option[]){CLI_BACKEND, CLI_JSON, {0}},
    .rest_max = 1,
    .run = run,
};
