/* bench_redistribute.c - `weft bench redistribute`: measures redistributions and memcpy. */
#include "bench/rows.h"
#include "bench/rank_bench.h"
#include "bench/transitions.h"
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
    fprintf(stderr, "weft %s: --sizes is \"%s\", not a list such as 64,1024,4096\n", command->name,
            list);
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

static weft_status measure(struct bench *bench)
{
    for (size_t s = 0; s < bench->size_count; s++)
        for (size_t t = 0; t < TRANSITIONS; t++) {
            struct row *row = &bench->rows[bench->row_count++];
            *row = (struct row){.transition = &transitions[t], .size = bench->sizes[s]};
            cli_progress("%s -> %s of %lldx%lld: row %zu of %zu", transitions[t].from,
                         transitions[t].to, (long long)row->size, (long long)row->size,
                         bench->row_count, bench->size_count * TRANSITIONS);
            WF_TRY(measure_row(bench, row));
        }
    return WEFT_OK;
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
    char name[64];

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
        snprintf(name, sizeof name, "%lldx%lld", (long long)row->size, (long long)row->size);
        wf_json_string(&json, "shape", name);
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

static void add_table(struct wf_text *text, const struct bench *bench)
{
    wf_text_add(text, "f32, %d ranks\n%-14s %-12s %10s %10s %10s %10s\n", bench->on.ranks, "",
                "shape", "min", "median", "memcpy", "of memcpy");
    for (size_t i = 0; i < bench->row_count; i++) {
        const struct row *row = &bench->rows[i];
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
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct bench bench = {0};
    struct cli_args args;
    struct wf_text text = {0};
    const char *sizes;
    weft_status status;
    int code;

    if (!cli_parse(command, argc, argv, false, &args, &code)) return code;
    sizes = cli_value(command, &args, "sizes");
    if (!read_sizes(command, sizes != NULL ? sizes : "64,1024,4096", &bench) ||
        !rank_bench_read(command, &args, 1, 200, &bench.on))
        return CLI_USAGE;
    cli_progress_begin();
    status = measure(&bench);
    cli_progress_end();
    if (status != WEFT_OK) return cli_fail(command, status);
    if (bench.on.as_json)
        add_json(&text, &bench);
    else
        add_table(&text, &bench);
    return cli_print(command, stdout, &text);
}

const struct cli_command bench_redistribute = {
    .name = "bench redistribute",
    .summary = "measure five redistributions of square tensors, and memcpy",
    .arguments = "[options]",
    .example = "weft bench redistribute --ranks 4 --sizes 64,4096",
    .options =
        (const struct cli_option[]){
            CLI_LOCAL_RANKS,
            {"sizes", "LIST", "rows and columns (default: 64,1024,4096)", 0},
            CLI_BACKEND,
            CLI_BUDGET_MS("milliseconds for each row (default: 200)"),
            CLI_JSON,
            {0}},
    .run = run,
};
