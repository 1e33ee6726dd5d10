/* cmd_env.c - `weft env`: every variable, its value, and the source of the value. */
#include "common/cli.h"

/* Read variable INDEX.  Known variables, which have a type, come before unknown ones. */
static bool next(size_t index, weft_variable_info *out)
{
    *out = (weft_variable_info){.struct_size = sizeof *out};
    return weft_variable_get(index, out) == WEFT_OK;
}

static void print_text(struct wf_text *out)
{
    weft_variable_info v;

    for (size_t i = 0; next(i, &v); i++) {
        if (v.type == NULL) {
            wf_text_add(out, "! weft does not know %s%s%s%s\n", v.name,
                        v.nearest != NULL ? "; did you mean " : "",
                        v.nearest != NULL ? v.nearest : "", v.nearest != NULL ? "?" : "");
            continue;
        }
        wf_text_add(out, "%s=%s  (%s)\n", v.name, v.value != NULL ? v.value : "",
                    v.value != NULL ? v.source : "not set");
        if (v.problem != NULL) wf_text_add(out, "    ! %s\n", v.problem);
        wf_text_add(out, "    %s\n", v.help);
    }
}

static void add_json_known(struct wf_json *json, const weft_variable_info *v)
{
    wf_json_begin(json, NULL, '{');
    wf_json_string(json, "name", v->name);
    wf_json_string(json, "type", v->type);
    wf_json_string(json, "value", v->value);
    wf_json_string(json, "default", v->fallback);
    wf_json_string(json, "source", v->source);
    wf_json_bool(json, "planning", v->planning);
    wf_json_string(json, "problem", v->problem);
    wf_json_string(json, "help", v->help);
    wf_json_end(json, '}');
}

static void print_json(struct wf_text *out)
{
    struct wf_json json = {.out = out};
    weft_variable_info v;
    size_t i = 0;

    wf_json_begin(&json, NULL, '{');
    wf_json_begin(&json, "knobs", '[');
    for (; next(i, &v) && v.type != NULL; i++)
        add_json_known(&json, &v);
    wf_json_end(&json, ']');
    wf_json_begin(&json, "unknown", '[');
    for (; next(i, &v); i++) {
        wf_json_begin(&json, NULL, '{');
        wf_json_string(&json, "name", v.name);
        wf_json_string(&json, "nearest", v.nearest);
        wf_json_end(&json, '}');
    }
    wf_json_end(&json, ']');
    wf_json_end(&json, '}');
    wf_text_char(out, '\n');
}

static void print_markdown(struct wf_text *out)
{
    weft_variable_info v;

    wf_text_add(
        out, "# Environment variables\n\n"
             "`weft env` prints each variable's value and where it comes from. An empty variable "
             "counts as not set.\nA value that cannot be read is an error. weft warns about an "
             "unknown `WEFT_` variable and names the nearest\nknown one. Variables of type "
             "path or paths are ignored in programs that run with privileges their user\nlacks "
             "(set-user-ID and the like). Ranks compare planning variables at the start and do "
             "not start when they\ndiffer.\n\n"
             "| Variable | Type | Default | Planning | Meaning |\n"
             "|----------|------|---------|----------|---------|\n");
    for (size_t i = 0; next(i, &v) && v.type != NULL; i++)
        wf_text_add(out, "| `%s` | %s | %s%s%s | %s | %s |\n", v.name, v.type,
                    v.fallback != NULL ? "`" : "", v.fallback != NULL ? v.fallback : "",
                    v.fallback != NULL ? "`" : "", v.planning ? "yes" : "no", v.help);
    wf_text_add(out, "\nTypes: *text* as is; *secret* text that is never printed; *path* a file; "
                     "*paths* directories separated\nby colons; *bool* `1 yes on true` or `0 no "
                     "off false`; *level* `error warning notice info debug`; *number* a\nwhole "
                     "number from 0; *seconds* such as `30` or `0.5`; *bytes* such as `65536`, "
                     "`64K`, `512M` or `8G`.\n");
}

/* Returns CLI_NO, after printing an error, if a value cannot be used. */
static int check(const struct cli_command *command)
{
    weft_variable_info v;

    for (size_t i = 0; next(i, &v) && v.type != NULL; i++)
        if (v.problem != NULL && v.source[0] == 'e') {
            fprintf(stderr, "weft %s: %s\n", command->name, v.problem);
            return CLI_NO;
        }
    return CLI_OK;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct cli_args args;
    struct wf_text text = {0};
    int exit_code;

    if (!cli_parse(command, argc, argv, false, &args, &exit_code)) return exit_code;
    if (cli_has(command, &args, "markdown")) {
        print_markdown(&text);
        return cli_print(command, stdout, &text);
    }
    if (cli_has(command, &args, "json"))
        print_json(&text);
    else
        print_text(&text);
    exit_code = cli_print(command, stdout, &text);
    return exit_code != CLI_OK ? exit_code : check(command);
}

const struct cli_command cli_env = {
    .name = "env",
    .summary = "print the environment variables that weft obeys, and their values",
    .arguments = "[--json | --markdown]",
    .example = "WEFT_LOG=debug weft env",
    .options =
        (const struct cli_option[]){
            CLI_JSON, {"markdown", NULL, "print a page of the manual with all variables", 0}, {0}},
    .run = run,
};
