/* bench_coll.c - `weft bench coll`: measures collectives. */
#include "bench/coll.h"

#include "base/text/size.h"
#include "bench/coll_print.h"
#include "bench/rank_bench.h"
#include "common/progress.h"

#include <string.h>

/* ---- the request ---- */

static int bad_value(const struct cli_command *command, const char *option, const char *value,
                     const char *wanted)
{
    fprintf(stderr, "weft %s: --%s is \"%s\"; expected %s\n", command->name, option, value, wanted);
    return CLI_USAGE;
}

/* Returns the number of bytes read, or 0 after a failure. */
static size_t scan_size(const char *text, size_t *out)
{
    int64_t value = 0;
    size_t taken = wf_scan_size(text, &value);

    if (value > INT64_C(1) << 40) return 0;
    *out = (size_t)value;
    return taken;
}

static bool read_sizes(const char *list, struct coll_request *out)
{
    out->size_count = 0;
    while (out->size_count < COLL_MOST_SIZES) {
        size_t taken = scan_size(list, &out->sizes[out->size_count]);

        if (taken == 0) return false;
        out->size_count++;
        list += taken;
        if (*list == '\0') return true;
        if (*list++ != ',') return false;
    }
    return false;
}

/* Set the sizes to LEAST and its doubles up to MOST. */
static void double_sizes(size_t least, size_t most, struct coll_request *out)
{
    out->size_count = 0;
    for (size_t bytes = least; bytes <= most && out->size_count < COLL_MOST_SIZES; bytes *= 2)
        out->sizes[out->size_count++] = bytes;
}

static bool read_one_size(const char *text, size_t fallback, size_t *out)
{
    size_t taken;

    *out = fallback;
    if (text == NULL) return true;
    taken = scan_size(text, out);
    return taken > 0 && text[taken] == '\0';
}

static int read_all_sizes(const struct cli_command *command, const struct cli_args *args,
                          struct coll_request *out)
{
    const char *list = cli_value(command, args, "sizes");
    const char *min = cli_value(command, args, "min-bytes");
    const char *max = cli_value(command, args, "max-bytes");
    size_t least, most;

    if (list != NULL)
        return read_sizes(list, out) ? CLI_OK
                                     : bad_value(command, "sizes", list, "a list: 8,64KiB,1MiB");
    if (!read_one_size(min, 8, &least)) return bad_value(command, "min-bytes", min, "a size: 8");
    if (!read_one_size(max, (size_t)256 << 20, &most))
        return bad_value(command, "max-bytes", max, "a size: 64MiB");
    if (least > most) return bad_value(command, "max-bytes", max, "a size from --min-bytes on");
    double_sizes(least, most, out);
    return CLI_OK;
}

static int read_ops(const struct cli_command *command, const char *list, struct coll_request *out)
{
    for (int op = 0; op < BENCH_OP_COUNT; op++)
        out->wanted[op] = list == NULL;
    while (list != NULL) {
        size_t length = strcspn(list, ",");
        int op = 0;

        while (op < BENCH_OP_COUNT && (strlen(bench_op_names[op]) != length ||
                                       strncmp(bench_op_names[op], list, length) != 0))
            op++;
        if (op == BENCH_OP_COUNT)
            return bad_value(
                command, "op", list,
                "a list of all_reduce, all_gather, reduce_scatter, all_to_all, broadcast");
        out->wanted[op] = true;
        list = list[length] == ',' ? list + length + 1 : NULL;
    }
    return CLI_OK;
}

static int read_request(const struct cli_command *command, const struct cli_args *args,
                        struct coll_request *out, struct rank_bench *on)
{
    enum weft_dtype dtype;
    const char *memory = cli_value(command, args, "buffers");
    int code = read_ops(command, cli_value(command, args, "op"), out);

    if (code == CLI_OK) code = read_all_sizes(command, args, out);
    if (code != CLI_OK) return code;
    if (cli_dtype(command, args, "dtype", &dtype) != WEFT_OK) {
        cli_fail(command, WEFT_ERR_PARSE);
        return CLI_USAGE;
    }
    out->dtype = dtype;
    if (memory != NULL && strcmp(memory, "alloc") != 0 && strcmp(memory, "malloc") != 0)
        return bad_value(command, "buffers", memory, "alloc or malloc");
    out->malloced = memory != NULL && strcmp(memory, "malloc") == 0;
    if (!rank_bench_read(command, args, 1, 50, on) || !rank_bench_read_hosts(command, args, on))
        return CLI_USAGE;
    out->budget_ns = on->budget_ns;
    return CLI_OK;
}

/* ---- the results ---- */

struct results {
    const struct coll_request *request;
    const struct rank_bench *on;
    int most; /* capacity of ROWS: each collective with each size */
    int count;
    struct coll_row *rows;
};

static weft_status receive(void *self, const void *message, size_t bytes)
{
    struct results *results = self;
    struct coll_row *row = &results->rows[results->count];
    int rows;

    if (bytes != sizeof *row || results->count == results->most) return WEFT_OK;
    memcpy(row, message, bytes);
    results->count++;
    rows = coll_row_count(results->request, row->ranks);
    cli_progress_of((uint64_t)results->count, (uint64_t)rows, "%d of %d rows", results->count,
                    rows);
    return WEFT_OK;
}

static void prepare(void *self, int32_t rank)
{
    rank_bench_pretend_host(((const struct results *)self)->on, rank);
}

static weft_status work(void *self, weft_context *context, const struct local_rank *local)
{
    return coll_rank(((const struct results *)self)->request, context, local);
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct coll_request request;
    struct rank_bench on;
    struct results results = {
        .request = &request, .on = &on, .most = COLL_MOST_SIZES * BENCH_OP_COUNT};
    struct local_job job = {.self = &results, .prepare = prepare, .work = work, .receive = receive};
    struct cli_args args;
    int code;

    if (!cli_parse(command, argc, argv, false, &args, &code)) return code;
    code = read_request(command, &args, &request, &on);
    if (code != CLI_OK) return code;
    results.rows = wf_calloc((size_t)results.most, sizeof *results.rows);
    if (results.rows == NULL) return cli_fail(command, wf_fail_memory(sizeof *results.rows));
    snprintf(on.progress, sizeof on.progress, "0 of %d rows", coll_row_count(&request, on.ranks));
    code = rank_bench_run(command, &on, &job);
    if (code == CLI_OK && results.count > 0)
        code = coll_print(command, &request, results.rows, results.count, on.as_json);
    wf_free(results.rows);
    return code;
}

const struct cli_command bench_coll = {
    .name = "bench coll",
    .summary = "measure collectives by size, and memcpy",
    .arguments = "[options]",
    .example = "weft bench coll --op all_reduce,all_gather --ranks 4 --max-bytes 64MiB",
    .page = "performance.md",
    .options =
        (const struct cli_option[]){
            {"op", "LIST", "collectives (default: all five)", 0},
            CLI_DTYPE,
            CLI_LOCAL_RANKS,
            CLI_HOSTS,
            CLI_BACKEND,
            {"buffers", "KIND", "memory of weft_alloc: alloc (default); of malloc: malloc", 0},
            {"min-bytes", "SIZE", "smallest buffer per rank (default: 8)", 0},
            {"max-bytes", "SIZE", "largest buffer, by doubling (default: 256MiB)", 0},
            {"sizes", "LIST", "these sizes instead: 8,64KiB,1MiB", 0},
            CLI_BUDGET_MS("milliseconds for each row (default: 50)"),
            CLI_JSON,
            {0}},
    .run = run,
};
