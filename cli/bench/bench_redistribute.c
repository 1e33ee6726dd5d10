/* bench_redistribute.c - `weft bench redistribute`: measures redistributions and memcpy. */
#include "bench/rows.h"
#include "bench/rank_bench.h"
#include "bench/transitions.h"
#include "common/describe.h"
#include "common/progress.h"
#include "redistribute/job.h"

enum { MAX_SIZES = 16, MAX_ROWS = MAX_SIZES * TRANSITIONS };

struct row {
    const struct transition *transition;
    int64_t size;
    struct job_outcome outcome;
};

struct bench {
    int64_t sizes[MAX_SIZES];
    size_t size_count;
    struct rank_bench on;
    size_t row_count;
    struct row rows[MAX_ROWS];
};

static bool read_sizes(const struct cli_command *command, const char *list, struct bench *out)
{
    struct wf_scan scan = {list, 0};

    do {
        int64_t *size = &out->sizes[out->size_count];
        if (out->size_count == MAX_SIZES || wf_scan_int(&scan, "a size", size) != WEFT_OK ||
            *size < 1 || *size > 65536)
            break;
        out->size_count++;
        if (wf_scan_end(&scan)) return true;
    } while (wf_scan_char(&scan, ','));
    fprintf(stderr, "weft %s: --rows is \"%s\"; expected a list such as 64,1024,4096\n",
            command->name, list);
    return false;
}

static weft_status make_request(const struct row *row, int32_t ranks, struct request *out)
{
    *out = (struct request){.options = {.struct_size = sizeof out->options}};
    WF_TRY(weft_mesh_create(1, &ranks, NULL, &out->mesh));
    out->to_mesh = weft_mesh_retain(out->mesh);
    return transition_specs(row->transition, out->mesh, row->size, &out->from, &out->to);
}

static weft_status measure_row(const struct bench *bench, struct row *row)
{
    struct request request;
    struct job job = {.request = &request,
                      .backend = bench->on.backend,
                      .ranks = bench->on.ranks,
                      .budget_ns = bench->on.budget_ns};
    weft_status status = make_request(row, bench->on.ranks, &request);

    if (status == WEFT_OK) status = job_run(&job, &row->outcome, NULL);
    request_free(&request);
    return status;
}

/* Below a microsecond the overhead of the clock dominates. */
static bool is_comparable(const struct row *row)
{
    return row->outcome.limit_ns >= 1000 && row->outcome.times.median_ns >= 1000;
}

static double share_of_limit(const struct row *row)
{
    const struct job_outcome *o = &row->outcome;

    return (double)o->limit_ns / (double)(o->times.median_ns > 0 ? o->times.median_ns : 1);
}

static void add_json(struct wf_text *text, const struct bench *bench)
{
    struct wf_json json = {.out = text};
    char name[16];

    wf_json_begin(&json, NULL, '{');
    wf_json_string(&json, "bench", "redistribute");
    wf_json_begin(&json, "rows", '[');
    for (size_t i = 0; i < bench->row_count; i++) {
        const struct row *row = &bench->rows[i];
        wf_json_begin(&json, NULL, '{');
        wf_json_string(&json, "from", row->transition->from);
        wf_json_string(&json, "to", row->transition->to);
        snprintf(name, sizeof name, "%d", bench->on.ranks);
        wf_json_string(&json, "mesh", name);
        describe_json_shape(&json, "shape", 2, (const int64_t[]){row->size, row->size});
        wf_json_string(&json, "dtype", "f32");
        wf_json_string(&json, "backend", row->outcome.backend);
        wf_json_int(&json, "ranks", bench->on.ranks);
        wf_json_uint(&json, "median_ns", row->outcome.times.median_ns);
        wf_json_uint(&json, "min_ns", row->outcome.times.min_ns);
        wf_json_uint(&json, "limit_ns", row->outcome.limit_ns);
        wf_json_end(&json, '}');
    }
    wf_json_end(&json, ']');
    wf_json_end(&json, '}');
    wf_text_char(text, '\n');
}

static void add_heading(struct wf_text *text, const struct bench *bench)
{
    wf_text_add(text, "f32, %d rank%s\n%-14s %-12s %10s %10s %10s %10s\n", bench->on.ranks,
                WF_PLURAL(bench->on.ranks), "", "shape", "min", "median", "memcpy", "of memcpy");
}

static void add_row(struct wf_text *text, const struct row *row)
{
    char name[32];

    transition_add_name(row->transition, text);
    snprintf(name, sizeof name, "%lldx%lld", (long long)row->size, (long long)row->size);
    wf_text_add(text, " %-12s", name);
    bench_add_time(text, 10, row->outcome.times.min_ns);
    bench_add_time(text, 10, row->outcome.times.median_ns);
    bench_add_time(text, 10, row->outcome.limit_ns);
    if (is_comparable(row))
        wf_text_add(text, " %8.0f %%\n", 100 * share_of_limit(row));
    else
        wf_text_add(text, " %10s\n", "-");
}

/* Print ROW when it is measured, after the heading if it is the first. */
static int print_row(const struct cli_command *command, const struct bench *bench,
                     const struct row *row)
{
    struct wf_text text = {0};

    if (row == bench->rows) add_heading(&text, bench);
    add_row(&text, row);
    return cli_print(command, stdout, &text);
}

/* Measure all rows.  A table is printed row by row, JSON at the end.  Returns the exit code. */
static int measure(const struct cli_command *command, struct bench *bench)
{
    size_t rows = bench->size_count * TRANSITIONS;
    int code = CLI_OK;

    for (size_t i = 0; i < rows && code == CLI_OK; i++) {
        struct row *row = &bench->rows[bench->row_count++];
        weft_status status;

        *row = (struct row){.transition = &transitions[i % TRANSITIONS],
                            .size = bench->sizes[i / TRANSITIONS]};
        cli_progress_of(i, rows, "%s -> %s of %lldx%lld: row %zu of %zu", row->transition->from,
                        row->transition->to, (long long)row->size, (long long)row->size, i + 1,
                        rows);
        status = measure_row(bench, row);
        cli_progress_clear();
        if (status != WEFT_OK)
            code = cli_fail(command, status);
        else if (!bench->on.as_json)
            code = print_row(command, bench, row);
    }
    return code;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct bench bench = {0};
    struct cli_args args;
    struct wf_text text = {0};
    const char *sizes;
    int code;

    if (!cli_parse(command, argc, argv, false, &args, &code)) return code;
    sizes = cli_value(command, &args, "rows");
    if (!read_sizes(command, sizes != NULL ? sizes : "64,1024,4096", &bench) ||
        !rank_bench_read(command, &args, 1, 200, &bench.on))
        return CLI_USAGE;
    cli_progress_begin();
    code = measure(command, &bench);
    cli_progress_end();
    if (code != CLI_OK || !bench.on.as_json) return code;
    add_json(&text, &bench);
    return cli_print(command, stdout, &text);
}

const struct cli_command bench_redistribute = {
    .name = "bench redistribute",
    .summary = "measure five redistributions of square tensors, and memcpy",
    .arguments = "[options]",
    .example = "weft bench redistribute --ranks 4 --rows 64,4096",
    .page = "performance.md",
    .options =
        (const struct cli_option[]){
            CLI_LOCAL_RANKS,
            {"rows", "LIST", "rows, and columns, of square tensors (default: 64,1024,4096)", 0},
            CLI_BACKEND,
            CLI_BUDGET_MS("milliseconds of measuring for each row (default: 200)"),
            CLI_JSON,
            {0}},
    .run = run,
};
