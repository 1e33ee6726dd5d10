/* bench_symm.c - `weft bench symm`: how fast symmetric memory is here.
 *
 * Every rank works on its right neighbour's memory, all at the same time.  A sample ends when the
 * stream of the slowest rank is empty. */
#include "common/cli.h"

#include "common/local_ranks.h"
#include "common/progress.h"
#include "timing/meeting.h"

enum op { PUT, GET, HAND_ON, SIGNAL, BARRIER, OPS };

static const char *const names[] = {[PUT] = "put, quiet",
                                    [GET] = "get",
                                    [HAND_ON] = "put_signal, wait",
                                    [SIGNAL] = "signal, wait",
                                    [BARRIER] = "barrier"};

enum { MOST_ROWS = 64 };

/* One line of the table, as rank 0 writes it to the pipe; or what a rank failed with. */
struct row {
    weft_status status;
    uint32_t op;
    uint64_t bytes;
    struct bench_times times;
    char text[1024];
};

struct bench {
    int32_t ranks;
    uint64_t most_bytes, budget_ns;
    size_t count;
    struct row rows[MOST_ROWS];
};

/* ---- one rank ---- */

struct rank {
    struct meeting meeting;
    weft_symm *symm;
    char *memory; /* this rank's own, not symmetric */
    int32_t left, right;
    uint64_t bytes, round;
    enum op op;
};

static weft_status post(struct rank *self)
{
    switch (self->op) {
    case PUT:
        WF_TRY(weft_symm_put(self->symm, 0, self->memory, self->bytes, self->right, NULL));
        return weft_symm_quiet(self->symm, NULL);
    case GET:
        return weft_symm_get(self->symm, self->memory, 0, self->bytes, self->right, NULL);
    case HAND_ON:
        self->round++;
        WF_TRY(weft_symm_put_signal(self->symm, 0, self->memory, self->bytes, 0, self->round,
                                    WEFT_SIGNAL_SET, self->right, NULL));
        return weft_symm_wait(self->symm, 0, self->left, WEFT_COMPARE_GE, self->round, 0, NULL);
    case SIGNAL:
        self->round++;
        WF_TRY(weft_symm_signal(self->symm, 0, self->round, WEFT_SIGNAL_SET, self->right, NULL));
        return weft_symm_wait(self->symm, 0, self->left, WEFT_COMPARE_GE, self->round, 0, NULL);
    default:
        return weft_symm_barrier(self->symm, NULL);
    }
}

static int operate(void *argument)
{
    struct rank *self = argument;

    WF_TRY(post(self));
    return meeting_finish(&self->meeting);
}

static bool moves(enum op op)
{
    return op == PUT || op == GET || op == HAND_ON;
}

static weft_status measure(struct rank *self, const struct bench *bench, int fd)
{
    struct bench_ranks ranks = meeting_ranks(&self->meeting);

    for (int op = 0; op < OPS; op++)
        for (uint64_t bytes = 8; bytes <= bench->most_bytes; bytes *= 8) {
            struct row row = {.op = (uint32_t)op, .bytes = moves((enum op)op) ? bytes : 0};

            self->op = (enum op)op;
            self->bytes = bytes;
            row.status = bench_time(&ranks, operate, self, bench->budget_ns, &row.times);
            if (row.status != WEFT_OK) return row.status;
            if (ranks.rank == 0) WF_TRY(local_rank_send(fd, &row, sizeof row));
            if (!moves((enum op)op)) break;
        }
    return WEFT_OK;
}

static weft_status work(weft_context *context, const struct bench *bench, int fd)
{
    int32_t rank = weft_rank(context), size = weft_size(context);
    struct rank self = {.right = (rank + 1) % size, .left = (rank + size - 1) % size};
    void *memory = NULL;
    weft_status status;

    WF_TRY(weft_alloc(context, bench->most_bytes, WEFT_MEMORY_DEVICE, &memory));
    self.memory = memory;
    status = meeting_open(&self.meeting, context, weft_world(context));
    if (status == WEFT_OK)
        status = weft_symm_create(weft_world(context), bench->most_bytes, NULL, &self.symm);
    if (status == WEFT_OK) status = measure(&self, bench, fd);
    if (status != WEFT_OK) return status;
    weft_symm_release(&self.symm);
    WF_TRY(meeting_close(&self.meeting));
    return weft_free(context, memory);
}

static weft_status rank_main(void *argument, const weft_options *options, int fd)
{
    struct row failure = {0};
    weft_context *context;

    failure.status = weft_init(options, &context);
    if (failure.status == WEFT_OK) {
        bench_pin(weft_rank(context));
        failure.status = work(context, argument, fd);
    }
    if (failure.status != WEFT_OK) {
        snprintf(failure.text, sizeof failure.text, "%s", weft_last_error());
        WF_TRY(local_rank_send(fd, &failure, sizeof failure));
        return failure.status; /* the process ends now, and all it has with it */
    }
    weft_context_release(&context);
    return WEFT_OK;
}

/* ---- the command ---- */

static weft_status collect(void *argument, int fd)
{
    struct bench *bench = argument;
    struct row row;
    weft_status status;

    while (local_ranks_receive(fd, &row, sizeof row, &status)) {
        if (row.status != WEFT_OK)
            return wf_fail(row.status, "%.*s", (int)sizeof row.text, row.text);
        if (bench->count < MOST_ROWS) bench->rows[bench->count++] = row;
    }
    return status;
}

static double gbps(const struct row *row)
{
    return (double)row->bytes / (double)(row->times.median_ns > 0 ? row->times.median_ns : 1);
}

static void add_table(struct wf_text *text, const struct bench *bench)
{
    wf_text_add(text, "%d ranks, each on its right neighbour's memory\n%-18s %10s %10s %10s %10s\n",
                bench->ranks, "", "bytes", "min", "median", "GB/s");
    for (size_t i = 0; i < bench->count; i++) {
        const struct row *row = &bench->rows[i];
        struct wf_text bytes = {0}, least = {0}, median = {0};

        if (row->bytes > 0) wf_text_bytes(&bytes, row->bytes);
        wf_text_time(&least, row->times.min_ns);
        wf_text_time(&median, row->times.median_ns);
        wf_text_add(text, "%-18s %10s %10s %10s", names[row->op],
                    bytes.data != NULL ? bytes.data : "", least.data != NULL ? least.data : "",
                    median.data != NULL ? median.data : "");
        if (row->bytes > 0) wf_text_add(text, " %10.2f", gbps(row));
        wf_text_char(text, '\n');
        wf_text_free(&bytes);
        wf_text_free(&least);
        wf_text_free(&median);
    }
}

static void add_json(struct wf_text *text, const struct bench *bench)
{
    struct wf_json json = {.out = text};

    wf_json_begin(&json, NULL, '{');
    wf_json_string(&json, "bench", "symm");
    wf_json_int(&json, "ranks", bench->ranks);
    wf_json_begin(&json, "rows", '[');
    for (size_t i = 0; i < bench->count; i++) {
        const struct row *row = &bench->rows[i];

        wf_json_begin(&json, NULL, '{');
        wf_json_string(&json, "op", names[row->op]);
        wf_json_uint(&json, "bytes", row->bytes);
        wf_json_uint(&json, "min_ns", row->times.min_ns);
        wf_json_uint(&json, "median_ns", row->times.median_ns);
        wf_json_uint(&json, "p99_ns", row->times.p99_ns);
        wf_json_end(&json, '}');
    }
    wf_json_end(&json, ']');
    wf_json_end(&json, '}');
    wf_text_char(text, '\n');
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct bench bench = {0};
    struct wf_text text = {0};
    struct cli_args args;
    int64_t ranks, most, budget_ms;
    weft_status status;
    int code;

    if (!cli_parse(command, argc, argv, false, &args, &code)) return code;
    if (!cli_int(command, &args, "ranks", 1, LOCAL_RANKS_MAX, 2, &ranks) ||
        !cli_size(command, &args, "max-bytes", 16 << 20, &most) ||
        !cli_int(command, &args, "budget-ms", 1, 60000, 50, &budget_ms))
        return CLI_USAGE;
    if (most < 8 || most > INT64_C(1) << 34) {
        fprintf(stderr, "weft %s: --max-bytes is %lld, not from 8 to 16GiB\n", command->name,
                (long long)most);
        return CLI_USAGE;
    }
    bench.ranks = (int32_t)ranks;
    bench.most_bytes = (uint64_t)most;
    bench.budget_ns = (uint64_t)budget_ms * 1000000;
    cli_progress_begin();
    cli_progress("measuring on %d ranks", (int)bench.ranks);
    status = local_ranks_run(bench.ranks, cli_value(command, &args, "backend"), rank_main, collect,
                             &bench);
    cli_progress_end();
    if (status != WEFT_OK) return cli_fail(command, status);
    if (cli_has(command, &args, "json"))
        add_json(&text, &bench);
    else
        add_table(&text, &bench);
    return cli_print(command, stdout, &text);
}

const struct cli_command bench_symm = {
    .name = "bench symm",
    .summary = "symmetric memory: put, get, signals and barriers by size",
    .arguments = "[options]",
    .example = "weft bench symm --ranks 4 --max-bytes 1MiB",
    .options =
        (const struct cli_option[]){
            CLI_LOCAL_RANKS,
            {"max-bytes", "SIZE", "largest message, from 8 by factors of 8 (default: 16MiB)", 0},
            CLI_BACKEND,
            CLI_BUDGET_MS("time for each row (default: 50)"),
            CLI_JSON,
            {0}},
    .run = run,
};
