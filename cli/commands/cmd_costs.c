/* cmd_costs.c - `weft costs [NAME]`: the cost tables, or the text of one. */
#include "common/cli.h"

#include <stdlib.h>

/* A rate of operations in TFLOP/s. */
static double tera(uint64_t flops)
{
    return (double)flops / 1e12;
}

static void add_rate(struct wf_text *out, uint64_t flops)
{
    if (flops > 0)
        wf_text_add(out, " %10g", tera(flops));
    else
        wf_text_add(out, " %10s", "-");
}

static weft_status add_row(const weft_cost_table *table, struct wf_text *out)
{
    weft_cost_table_info info = {.struct_size = sizeof info};

    WF_TRY(weft_cost_table_get(table, &info));
    wf_text_add(out, "%-10s", weft_cost_table_name(table));
    add_rate(out, info.flops);
    add_rate(out, info.attention_flops);
    add_rate(out, info.f8_flops);
    add_rate(out, info.peak_flops);
    wf_text_add(out, "  %s\n", weft_cost_table_source(table));
    return WEFT_OK;
}

/* TABLE is the one that "default" means. */
static bool is_default(const weft_cost_table *table)
{
    weft_cost_table *usual = NULL;
    bool is_same = weft_cost_table_open("default", &usual) == WEFT_OK && usual == table;

    weft_cost_table_release(&usual);
    return is_same;
}

static weft_status add_object(const weft_cost_table *table, struct wf_json *json)
{
    weft_cost_table_info info = {.struct_size = sizeof info};

    WF_TRY(weft_cost_table_get(table, &info));
    wf_json_begin(json, NULL, '{');
    wf_json_string(json, "name", weft_cost_table_name(table));
    wf_json_bool(json, "default", is_default(table));
    wf_json_uint(json, "flops_per_s", weft_cost_table_flops(table));
    wf_json_uint(json, "attention_flops_per_s", info.attention_flops);
    wf_json_uint(json, "f8_flops_per_s", info.f8_flops);
    wf_json_uint(json, "peak_flops_per_s", weft_cost_table_peak_flops(table));
    wf_json_uint(json, "compute_beside", info.compute_beside);
    wf_json_uint(json, "moves_beside", info.moves_beside);
    wf_json_string(json, "source", weft_cost_table_source(table));
    wf_json_end(json, '}');
    return WEFT_OK;
}

static weft_status list(bool as_json, struct wf_text *out)
{
    struct wf_json json = {.out = out};
    weft_cost_table *table = NULL;
    const char *name;

    if (as_json)
        wf_json_begin(&json, NULL, '[');
    else
        wf_text_add(out, "%-10s %10s %10s %10s %10s  source\n", "table", "TFLOP/s", "attention",
                    "fp8", "peak");
    for (size_t i = 0; (name = weft_cost_table_built_in(i)) != NULL; i++) {
        weft_status status;
        WF_TRY(weft_cost_table_open(name, &table));
        status = as_json ? add_object(table, &json) : add_row(table, out);
        if (status == WEFT_OK && !as_json && is_default(table))
            wf_text_add(out, "%-10s %10s %10s %10s %10s  the table %s\n", "default", "", "", "", "",
                        name);
        weft_cost_table_release(&table);
        if (status != WEFT_OK) return status;
    }
    if (as_json) {
        wf_json_end(&json, ']');
        wf_text_char(out, '\n');
    }
    return wf_text_status(out);
}

static weft_status print_one(const char *name, bool as_json, struct wf_text *out)
{
    struct wf_json json = {.out = out};
    weft_cost_table *table = NULL;
    size_t length = 0;
    weft_status status;
    char *text = NULL;

    WF_TRY(weft_cost_table_open(name, &table));
    if (as_json) {
        status = add_object(table, &json);
        wf_text_char(out, '\n');
        weft_cost_table_release(&table);
        return status == WEFT_OK ? wf_text_status(out) : status;
    }
    status = weft_cost_table_print(table, NULL, 0, &length);
    if (status == WEFT_OK && (text = malloc(length + 1)) == NULL)
        status = wf_fail_memory(length + 1);
    if (status == WEFT_OK) status = weft_cost_table_print(table, text, length + 1, NULL);
    if (status == WEFT_OK) wf_text_add(out, "%s", text);
    free(text);
    weft_cost_table_release(&table);
    return status == WEFT_OK ? wf_text_status(out) : status;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct wf_text out = {0};
    struct cli_args args;
    int exit_code;
    weft_status status;
    bool as_json;

    if (!cli_parse(command, argc, argv, false, &args, &exit_code)) return exit_code;
    as_json = cli_has(command, &args, "json");
    status = args.rest_count > 0 ? print_one(args.rest[0], as_json, &out) : list(as_json, &out);
    if (status == WEFT_OK) fputs(out.data, stdout);
    wf_text_free(&out);
    if (status == WEFT_OK) return CLI_OK;
    exit_code = cli_fail(command, status);
    return exit_code == CLI_NO ? CLI_USAGE : exit_code; /* no answer is no */
}

const struct cli_command cli_costs = {
    .name = "costs",
    .summary = "list the cost tables, or print one",
    .arguments = "[NAME|FILE] [--json]",
    .example = "weft costs h100",
    .page = "cost-model.md",
    .options = (const struct cli_option[]){CLI_JSON, {0}},
    .rest_max = 1,
    .run = run,
};
