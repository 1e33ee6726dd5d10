/* rows.c - see rows.h. */
#include "bench/rows.h"

#include "common/progress.h"

static void add_cell(struct wf_text *text, int width, struct wf_text *cell)
{
    wf_text_add(text, " %*s", width, cell->data != NULL ? cell->data : "");
    if (cell->failed) text->failed = true;
    wf_text_free(cell);
}

void bench_add_time(struct wf_text *text, int width, uint64_t ns)
{
    struct wf_text cell = {0};

    wf_text_time(&cell, ns);
    add_cell(text, width, &cell);
}

void bench_add_bytes(struct wf_text *text, int width, uint64_t bytes)
{
    struct wf_text cell = {0};

    wf_text_bytes(&cell, bytes);
    add_cell(text, width, &cell);
}

const struct cli_option bench_rows_options[] = {
    CLI_BUDGET_MS("milliseconds for each row (default: 200)"), CLI_JSON, {0}};

static void add_json_row(struct wf_json *json, const struct bench_rows *rows, size_t row,
                         const struct bench_times *times)
{
    uint64_t limit_ns = rows->limit_ns(row);

    wf_json_begin(json, NULL, '{');
    rows->add_json(json, row);
    wf_json_uint(json, "median_ns", times->median_ns);
    wf_json_uint(json, "min_ns", times->min_ns);
    if (limit_ns > 0)
        wf_json_uint(json, "limit_ns", limit_ns);
    else
        wf_json_null(json, "limit_ns");
    wf_json_end(json, '}');
}

static weft_status add_rows(struct wf_text *text, const struct bench_rows *rows, bool as_json,
                            uint64_t budget_ns)
{
    struct wf_json json = {.out = text};
    struct bench_times times;

    if (as_json) {
        wf_json_begin(&json, NULL, '{');
        wf_json_string(&json, "bench", rows->name);
        wf_json_begin(&json, "rows", '[');
    }
    for (size_t i = 0; i < rows->count; i++) {
        cli_progress_of(i, rows->count, "row %zu of %zu", i + 1, rows->count);
        WF_TRY(rows->measure(i, budget_ns, &times));
        if (as_json)
            add_json_row(&json, rows, i, &times);
        else
            rows->add_text(text, i, &times);
    }
    if (as_json) {
        wf_json_end(&json, ']');
        wf_json_end(&json, '}');
        wf_text_char(text, '\n');
    }
    return WEFT_OK;
}

int bench_rows_run(const struct cli_command *command, int argc, char **argv,
                   const struct bench_rows *rows)
{
    struct wf_text text = {0};
    struct cli_args args;
    int64_t milliseconds;
    weft_status status;
    int exit_code;

    if (!cli_parse(command, argc, argv, false, &args, &exit_code)) return exit_code;
    if (!cli_int(command, &args, "budget-ms", 1, 60000, 200, &milliseconds)) return CLI_USAGE;
    cli_progress_begin();
    status =
        add_rows(&text, rows, cli_has(command, &args, "json"), (uint64_t)milliseconds * 1000000);
    cli_progress_end();
    return cli_answer(command, status, &text);
}
