/* bench_symm.c - `weft bench symm`: measures symmetric memory.
 *
 * All ranks access the memory of their right neighbours at the same time.  A sample ends when the
 * stream of the slowest rank is empty. */
#include "bench/rows.h"
#include "bench/rank_bench.h"
#include "common/progress.h"
#include "timing/rank_sync.h"
#include "weft/symm.h"

#include <string.h>

enum op { PUT, GET, HAND_ON, SIGNAL, BARRIER, OPS };

static const char *const names[] = {[PUT] = "put, quiet",
                                    [GET] = "get",
                                    [HAND_ON] = "put_signal, wait",
                                    [SIGNAL] = "signal, wait",
                                    [BARRIER] = "barrier"};

enum { MAX_ROWS = 64 };

/* One line of the table, as rank 0 sends it. */
struct row {
    int32_t ranks;
    uint32_t op;
    uint64_t bytes;
    struct bench_times times;
};

struct bench {
    struct rank_bench on;
    uint64_t most_bytes;
    size_t count;
    struct row rows[MAX_ROWS];
};

/* ---- one rank ---- */

struct rank {
    struct rank_sync sync;
    weft_symm *symm;
    char *memory; /* local memory of this rank, not symmetric */
    int32_t left, right;
    uint64_t bytes, round;
    enum op op;
};

static weft_status post(struct rank *self)
{
    switch (self->op) {
    case PUT:
        WF_TRY(weft_symm_put_to(self->symm, self->memory, self->right, 0, self->bytes, NULL));
        return weft_symm_quiet(self->symm, NULL);
    case GET:
        return weft_symm_get_from(self->symm, self->right, 0, self->memory, self->bytes, NULL);
    case HAND_ON:
        self->round++;
        WF_TRY(weft_symm_put_signal_to(self->symm, self->memory, self->right, 0, self->bytes, 0,
                                       self->round, WEFT_SIGNAL_SET, NULL));
        return weft_symm_wait_from(self->symm, self->left, 0, WEFT_COMPARE_GE, self->round, 0,
                                   NULL);
    case SIGNAL:
        self->round++;
        WF_TRY(weft_symm_signal_to(self->symm, self->right, 0, self->round, WEFT_SIGNAL_SET, NULL));
        return weft_symm_wait_from(self->symm, self->left, 0, WEFT_COMPARE_GE, self->round, 0,
                                   NULL);
    default:
        return weft_symm_barrier(self->symm, NULL);
    }
}

static int operate(void *argument)
{
    struct rank *self = argument;

    WF_TRY(post(self));
    return rank_sync_finish(&self->sync);
}

static bool moves(enum op op)
{
    return op == PUT || op == GET || op == HAND_ON;
}

static weft_status measure(struct rank *self, const struct bench *bench,
                           const struct local_rank *local)
{
    struct bench_ranks ranks = rank_sync_ranks(&self->sync);

    for (int op = 0; op < OPS; op++)
        for (uint64_t bytes = 8; bytes <= bench->most_bytes; bytes *= 8) {
            struct row row = {
                .ranks = ranks.size, .op = (uint32_t)op, .bytes = moves((enum op)op) ? bytes : 0};
            int status;

            self->op = (enum op)op;
            self->bytes = bytes;
            status = bench_time(&ranks, operate, self, bench->on.budget_ns, &row.times);
            if (status == BENCH_NO_MEMORY) return wf_fail_memory(0);
            if (status != WEFT_OK) return status;
            WF_TRY(local_rank_send(local, &row, sizeof row));
            if (!moves((enum op)op)) break;
        }
    return WEFT_OK;
}

static weft_status work(void *self, weft_context *context, const struct local_rank *local)
{
    const struct bench *bench = self;
    int32_t me = weft_rank(context), size = weft_size(context);
    struct rank rank = {.right = (me + 1) % size, .left = (me + size - 1) % size};
    void *memory = NULL;

    WF_TRY(rank_sync_open(&rank.sync, context, weft_world(context)));
    WF_TRY(weft_alloc(context, bench->most_bytes, WEFT_MEMORY_DEVICE, &memory));
    rank.memory = memory;
    WF_TRY(weft_symm_create(weft_world(context), bench->most_bytes, NULL, &rank.symm));
    WF_TRY(measure(&rank, bench, local));
    weft_symm_release(&rank.symm);
    WF_TRY(weft_free(context, memory));
    return rank_sync_close(&rank.sync);
}

/* ---- the command ---- */

static size_t count_rows(const struct bench *bench)
{
    size_t count = 0;

    for (int op = 0; op < OPS; op++)
        for (uint64_t bytes = 8; bytes <= bench->most_bytes; bytes *= 8) {
            count++;
            if (!moves((enum op)op)) break;
        }
    return count;
}

static weft_status receive(void *self, const void *message, size_t bytes)
{
    struct bench *bench = self;
    struct row *row = &bench->rows[bench->count];

    if (bench->count == MAX_ROWS || bytes != sizeof *row) return WEFT_OK;
    memcpy(row, message, sizeof *row);
    bench->count++;
    cli_progress_of(bench->count, count_rows(bench), "%s of %llu bytes", names[row->op],
                    (unsigned long long)row->bytes);
    return WEFT_OK;
}

static double gbps(const struct row *row)
{
    return (double)row->bytes / (double)(row->times.median_ns > 0 ? row->times.median_ns : 1);
}

static void add_table(struct wf_text *text, const struct bench *bench)
{
    wf_text_add(text,
                "%d rank%s, each on its right neighbour's memory\n%-18s %10s %10s %10s %10s\n",
                bench->rows[0].ranks, WF_PLURAL(bench->rows[0].ranks), "", "bytes", "min", "median",
                "GB/s");
    for (size_t i = 0; i < bench->count; i++) {
        const struct row *row = &bench->rows[i];

        wf_text_add(text, "%-18s", names[row->op]);
        if (row->bytes > 0)
            bench_add_bytes(text, 10, row->bytes);
        else
            wf_text_add(text, " %10s", "");
        bench_add_time(text, 10, row->times.min_ns);
        bench_add_time(text, 10, row->times.median_ns);
        if (row->bytes > 0) wf_text_add(text, " %10.2f", gbps(row));
        wf_text_char(text, '\n');
    }
}

static void add_json(struct wf_text *text, const struct bench *bench)
{
    struct wf_json json = {.out = text};

    wf_json_begin(&json, NULL, '{');
    wf_json_string(&json, "bench", "symm");
    wf_json_int(&json, "ranks", bench->rows[0].ranks);
    wf_json_begin(&json, "rows", '[');
    for (size_t i = 0; i < bench->count; i++) {
        const struct row *row = &bench->rows[i];

        wf_json_begin(&json, NULL, '{');
        wf_json_string(&json, "op", names[row->op]);
        wf_json_uint(&json, "bytes", row->bytes);
        wf_json_uint(&json, "min_ns", row->times.min_ns);
        wf_json_uint(&json, "median_ns", row->times.median_ns);
        wf_json_uint(&json, "p99_ns", row->times.p99_ns);
        if (row->bytes > 0)
            wf_json_real(&json, "gbps", gbps(row));
        else
            wf_json_null(&json, "gbps");
        wf_json_end(&json, '}');
    }
    wf_json_end(&json, ']');
    wf_json_end(&json, '}');
    wf_text_char(text, '\n');
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct bench bench = {0};
    struct local_job job = {.self = &bench, .work = work, .receive = receive};
    struct wf_text text = {0};
    struct cli_args args;
    int64_t most;
    int code;

    if (!cli_parse(command, argc, argv, false, &args, &code)) return code;
    if (!rank_bench_read(command, &args, 1, 50, &bench.on) ||
        !cli_size(command, &args, "max-bytes", 16 << 20, &most))
        return CLI_USAGE;
    if (most < 8 || most > INT64_C(1) << 34) {
        fprintf(stderr, "weft %s: --max-bytes is %lld; it must be from 8 to 16GiB\n", command->name,
                (long long)most);
        return CLI_USAGE;
    }
    bench.most_bytes = (uint64_t)most;
    code = rank_bench_run(command, &bench.on, &job);
    if (code != CLI_OK || bench.count == 0) return code;
    if (bench.on.as_json)
        add_json(&text, &bench);
    else
        add_table(&text, &bench);
    return cli_print(command, stdout, &text);
}

const struct cli_command bench_symm = {
    .name = "bench symm",
    .summary = "measure put, get, signals and barriers of symmetric memory",
    .arguments = "[options]",
    .example = "weft bench symm --ranks 4 --max-bytes 1MiB",
    .page = "performance.md",
    .options =
        (const struct cli_option[]){
            CLI_LOCAL_RANKS,
            {"max-bytes", "SIZE", "largest message, from 8 by factors of 8 (default: 16MiB)", 0},
            CLI_BACKEND,
            CLI_BUDGET_MS("milliseconds for each row (default: 50)"),
            CLI_JSON,
            {0}},
    .run = run,
};
