/* print.c - the knobs as text, as JSON, and as docs/config.md. */
#include "config.h"

#include "weft/status.h"

#include <string.h>

/* What `weft env` tells about one knob. */
struct shown {
    const char *value;  /* NULL: none */
    const char *source; /* "default", "environment" or "ignored" */
    const char *problem;
};

static struct shown look_up(const struct wf_knob *knob, struct wf_environment environment)
{
    struct shown shown = {wf_environment_get(environment, knob->name), "environment", NULL};

    if (shown.value == NULL) {
        shown.value = knob->fallback[0] != '\0' ? knob->fallback : NULL;
        shown.source = "default";
    } else if (wf_knob_ignored(knob, environment)) {
        shown.source = "ignored";
        shown.problem = "ignored: the program runs with privileges its user lacks";
    } else if (wf_knob_check(knob, shown.value) != WEFT_OK) {
        shown.problem = weft_last_error();
    } else if (knob->kind == WF_KNOB_SECRET) {
        shown.value = "(secret)";
    }
    return shown;
}

void wf_config_print(struct wf_environment environment, struct wf_text *out)
{
    const struct wf_knob *nearest;
    const char *name;
    size_t length;

    for (size_t i = 0; i < wf_knob_count; i++) {
        const struct wf_knob *knob = &wf_knobs[i];
        struct shown shown = look_up(knob, environment);

        wf_text_add(out, "%s=%s  (%s)\n", knob->name, shown.value != NULL ? shown.value : "",
                    shown.value != NULL ? shown.source : "not set");
        if (shown.problem != NULL) wf_text_add(out, "    ! %s\n", shown.problem);
        wf_text_add(out, "    %s\n", knob->help);
    }
    for (size_t i = 0; (name = wf_config_unknown(environment, i, &length, &nearest)) != NULL; i++)
        wf_text_add(out, "! %.*s means nothing to weft%s%s%s\n", (int)length, name,
                    nearest != NULL ? "; did you mean " : "", nearest != NULL ? nearest->name : "",
                    nearest != NULL ? "?" : "");
}

static void print_knob_json(struct wf_json *json, const struct wf_knob *knob,
                            struct wf_environment environment)
{
    struct shown shown = look_up(knob, environment);

    wf_json_begin(json, NULL, '{');
    wf_json_string(json, "name", knob->name);
    wf_json_string(json, "type", knob->type);
    wf_json_string(json, "value", shown.value);
    wf_json_string(json, "default", knob->fallback[0] != '\0' ? knob->fallback : NULL);
    wf_json_string(json, "source", shown.source);
    wf_json_bool(json, "planning", knob->planning);
    wf_json_string(json, "problem", shown.problem);
    wf_json_string(json, "help", knob->help);
    wf_json_end(json, '}');
}

void wf_config_print_json(struct wf_environment environment, struct wf_text *out)
{
    struct wf_json json = {.out = out};
    const struct wf_knob *nearest;
    const char *name;
    size_t length;

    wf_json_begin(&json, NULL, '{');
    wf_json_begin(&json, "knobs", '[');
    for (size_t i = 0; i < wf_knob_count; i++)
        print_knob_json(&json, &wf_knobs[i], environment);
    wf_json_end(&json, ']');
    wf_json_begin(&json, "unknown", '[');
    for (size_t i = 0; (name = wf_config_unknown(environment, i, &length, &nearest)) != NULL; i++) {
        char copy[256];
        size_t kept = length < sizeof copy ? length : sizeof copy - 1;

        memcpy(copy, name, kept);
        copy[kept] = '\0';
        wf_json_begin(&json, NULL, '{');
        wf_json_string(&json, "name", copy);
        wf_json_string(&json, "nearest", nearest != NULL ? nearest->name : NULL);
        wf_json_end(&json, '}');
    }
    wf_json_end(&json, ']');
    wf_json_end(&json, '}');
    wf_text_char(out, '\n');
}

void wf_config_print_markdown(struct wf_text *out)
{
    wf_text_add(
        out, "# Environment variables\n\n"
             "<!-- Written by `weft env --markdown` from core/config/knobs.def; "
             "ci/checks/docs.sh renews it. -->\n\n"
             "`weft env` prints each variable's value and where it comes from. An empty variable "
             "counts as not set.\nA value that cannot be read is an error, and an unknown "
             "`WEFT_` variable is pointed out with the nearest\nknown name. Variables of type "
             "path or paths are ignored in programs that run with privileges their user\nlacks "
             "(set-user-ID and the like). Ranks compare planning knobs at the start and refuse "
             "to go on when they\ndiffer.\n\n"
             "| Variable | Type | Default | Planning | Meaning |\n"
             "|----------|------|---------|----------|---------|\n");
    for (size_t i = 0; i < wf_knob_count; i++) {
        const struct wf_knob *knob = &wf_knobs[i];
        bool has_default = knob->fallback[0] != '\0';

        wf_text_add(out, "| `%s` | %s | %s%s%s | %s | %s |\n", knob->name, knob->type,
                    has_default ? "`" : "", knob->fallback, has_default ? "`" : "",
                    knob->planning ? "yes" : "no", knob->help);
    }
    wf_text_add(out, "\nTypes: *text* as is; *secret* text that is never printed; *path* a file; "
                     "*paths* directories separated\nby colons; *bool* `1 yes on true` or `0 no "
                     "off false`; *level* `error warning notice info debug`; *number* a\nwhole "
                     "number from 0; *seconds* such as `30` or `0.5`; *bytes* such as `65536`, "
                     "`64K`, `512M` or `8G`.\n");
}
