/* cmd_why.c - `weft why [NAME]`: every directory, file and decision in order. */
#include "common/cli.h"

#include "plugin/plugin.h"

#include <string.h>

/* Lines about NAME's candidates, and those about no candidate; all if NAME is NULL. */
static bool concerns(const weft_backends *backends, const struct wf_trace_line *line,
                     const char *name)
{
    return name == NULL || line->candidate == WF_NO_CANDIDATE ||
           strcmp(backends->candidates[line->candidate].name, name) == 0;
}

/* The first candidate of that name: later ones are shadowed by it. */
static const struct wf_candidate *find_named(const weft_backends *backends, const char *name)
{
    for (size_t i = 0; i < backends->candidate_count; i++)
        if (strcmp(backends->candidates[i].name, name) == 0) return &backends->candidates[i];
    return NULL;
}

static void print_text(const weft_backends *backends, const char *name, struct wf_text *out)
{
    for (size_t i = 0; i < backends->line_count; i++)
        if (concerns(backends, &backends->lines[i], name))
            wf_text_add(out, "%s\n", backends->lines[i].text);
}

static void print_json(const weft_backends *backends, const char *name, bool usable,
                       const char *error, struct wf_text *out)
{
    struct wf_json json = {.out = out};

    wf_json_begin(&json, NULL, '{');
    wf_json_string(&json, "backend", backends->wanted);
    wf_json_string(&json, "name", name);
    wf_json_bool(&json, "usable", usable);
    wf_json_string(&json, "error", error);
    wf_json_begin(&json, "trace", '[');
    for (size_t i = 0; i < backends->line_count; i++) {
        const struct wf_trace_line *line = &backends->lines[i];
        if (!concerns(backends, line, name)) continue;
        wf_json_begin(&json, NULL, '{');
        wf_json_string(
            &json, "plugin",
            line->candidate != WF_NO_CANDIDATE ? backends->candidates[line->candidate].name : NULL);
        wf_json_string(&json, "text", line->text);
        wf_json_end(&json, '}');
    }
    wf_json_end(&json, ']');
    wf_json_end(&json, '}');
    wf_text_char(out, '\n');
}

/* WEFT_OK if NAME, or without a name any plugin, is usable; else the reason is the last error. */
static weft_status judge(const weft_backends *backends, const char *name)
{
    const struct wf_candidate *candidate;
    size_t chosen;

    if (name == NULL) return weft_backends_choose(backends, WEFT_ROLE_COMM, &chosen);
    candidate = find_named(backends, name);
    if (candidate == NULL)
        return wf_fail(
            WEFT_ERR_NOT_FOUND,
            "there is no plugin \"%s\" in the directories above; `weft info` lists those "
            "there are",
            name);
    if (candidate->reason == WEFT_REASON_USABLE) return WEFT_OK;
    return wf_fail(WEFT_ERR_NO_BACKEND, "%s: %s: %s", name, weft_reason_text(candidate->reason),
                   candidate->reason_text);
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    weft_backends *backends;
    struct cli_args args;
    struct wf_text text = {0};
    weft_status verdict;
    const char *name;
    int exit_code, printed;

    if (!cli_parse(command, argc, argv, false, &args, &exit_code)) return exit_code;
    if (args.rest_count > 1) {
        fprintf(stderr, "weft why: one NAME at most\n");
        return CLI_USAGE;
    }
    name = args.rest_count == 1 ? args.rest[0] : NULL;
    if (weft_backends_find(NULL, &backends) != WEFT_OK) return cli_fail(command);
    wf_log_set_level(WF_WARNING); /* the trace says what the notice would */
    verdict = judge(backends, name);
    if (cli_has(command, &args, "json"))
        print_json(backends, name, verdict == WEFT_OK,
                   verdict == WEFT_OK ? NULL : weft_last_error(), &text);
    else
        print_text(backends, name, &text);
    printed = cli_print(command, stdout, &text);
    weft_backends_release(&backends);
    if (verdict == WEFT_OK || printed != CLI_OK) return printed;
    return cli_fail(command);
}

const struct cli_command cli_why = {
    .name = "why",
    .summary = "every directory, file and decision on the way to a backend",
    .arguments = "[NAME] [--json]",
    .example = "WEFT_BACKEND=nccl,auto weft why nccl",
    .options = (const struct cli_option[]){{"json", NULL, "as JSON"}, {0}},
    .run = run,
};
