/* coll_print.c - see coll_print.h. */
#include "bench/coll_print.h"

#include "bench/rows.h"

static double gbps(const struct coll_row *row)
{
    return (double)row->bytes / (double)(row->times.median_ns > 0 ? row->times.median_ns : 1);
}

/* A rank writes as many bytes as memcpy does, so the share can reach 1. */
static double memcpy_share(const struct coll_row *row)
{
    return gbps(row) * row->ranks / row->memcpy_gbps;
}

static const char *memory_name(const struct coll_request *request)
{
    return request->malloced ? "malloc" : "alloc";
}

static void add_row(struct wf_text *text, const struct coll_row *row)
{
    bench_add_bytes(text, 9, row->bytes);
    bench_add_time(text, 10, row->times.min_ns);
    bench_add_time(text, 10, row->times.median_ns);
    bench_add_time(text, 10, row->times.p99_ns);
    wf_text_add(text, " %10.3f %9.0f %%\n", gbps(row), 100 * memcpy_share(row));
}

static void add_tables(struct wf_text *text, const struct coll_request *request,
                       const struct coll_row *rows, int count)
{
    for (uint32_t op = 0; op < BENCH_OP_COUNT; op++) {
        if (!request->wanted[op]) continue;
        wf_text_add(text, "%s%s of %s, %d rank%s, memory from %s%s\n", cli_colour(stdout, CLI_BOLD),
                    bench_op_names[op], weft_dtype_name(request->dtype), (int)rows[0].ranks,
                    WF_PLURAL(rows[0].ranks), request->malloced ? "malloc" : "weft_alloc",
                    cli_colour(stdout, CLI_PLAIN));
        wf_text_add(text, "%10s %10s %10s %10s %10s %11s\n", "buffer", "min", "median", "p99",
                    "GB/s", "of memcpy");
        for (int i = 0; i < count; i++)
            if (rows[i].op == op) add_row(text, &rows[i]);
        wf_text_char(text, '\n');
    }
}

static void add_json_row(struct wf_json *json, const struct coll_request *request,
                         const struct coll_row *row)
{
    wf_json_begin(json, NULL, '{');
    wf_json_string(json, "op", bench_op_names[row->op]);
    wf_json_string(json, "dtype", weft_dtype_name(request->dtype));
    wf_json_uint(json, "bytes", row->bytes);
    wf_json_int(json, "ranks", row->ranks);
    wf_json_string(json, "memory", memory_name(request));
    wf_json_uint(json, "min_ns", row->times.min_ns);
    wf_json_uint(json, "median_ns", row->times.median_ns);
    wf_json_uint(json, "p99_ns", row->times.p99_ns);
    wf_json_uint(json, "samples", row->times.samples);
    wf_json_real(json, "gbps", gbps(row));
    wf_json_real(json, "memcpy_gbps", row->memcpy_gbps);
    wf_json_end(json, '}');
}

static void add_json(struct wf_text *text, const struct coll_request *request,
                     const struct coll_row *rows, int count)
{
    struct wf_json json = {.out = text};

    wf_json_begin(&json, NULL, '{');
    wf_json_string(&json, "bench", "coll");
    wf_json_real(&json, "memcpy_gbps", rows[count - 1].memcpy_gbps);
    wf_json_begin(&json, "rows", '[');
    for (int i = 0; i < count; i++)
        add_json_row(&json, request, &rows[i]);
    wf_json_end(&json, ']');
    wf_json_end(&json, '}');
    wf_text_char(text, '\n');
}

int coll_print(const struct cli_command *command, const struct coll_request *request,
               const struct coll_row *rows, int count, bool as_json)
{
    struct wf_text text = {0};

    if (as_json)
        add_json(&text, request, rows, count);
    else
        add_tables(&text, request, rows, count);
    return cli_print(command, stdout, &text);
}
