/* bench_trace.c - `weft bench trace`: what records of operations cost.
 *
 * The same operations run without records, with the recorder, and with an observer besides.
 * WEFT_RECORDER is read when a rank joins, so each way is a job of its own.  The ways take turns,
 * and the quietest of some rounds counts for each. */
#include "bench/rank_bench.h"
#include "bench/rows.h"
#include "common/progress.h"
#include "timing/rank_sync.h"
#include "weft/trace.h"

#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 5 };

enum way { OFF, RECORDER, OBSERVED, WAYS };

static const char *const ways[] = {[OFF] = "off", [RECORDER] = "recorder", [OBSERVED] = "observer"};

enum op { ALONE, SMALL, LARGE, OPS };

static const struct {
    const char *name;
    uint64_t bytes;
} ops[] = {[ALONE] = {"all-reduce of one rank", 8},
           [SMALL] = {"all-reduce", 8},
           [LARGE] = {"all-reduce", 65536}};

/* One measurement, as rank 0 sends it. */
struct row {
    uint32_t op;
    int32_t ranks;
    struct bench_times times;
};

struct bench {
    struct rank_bench on;
    enum way way; /* of the job that runs */
    int32_t ranks;
    bool has[WAYS][OPS];
    struct bench_times best[WAYS][OPS];
};

/* ---- one rank ---- */

struct rank {
    struct rank_sync sync;
    weft_comm *comm;
    float *memory;
    uint64_t count;
    uint64_t seen; /* by the observer */
};

static int operate(void *argument)
{
    struct rank *self = argument;

    WF_TRY(weft_all_reduce(self->comm, self->memory, self->memory, self->count, WEFT_DTYPE_F32,
                           WEFT_REDUCE_MAX, NULL));
    return rank_sync_finish(&self->sync);
}

static void observe(void *user, const weft_record *record)
{
    ((struct rank *)user)->seen += record->id != 0;
}

static weft_status measure(struct rank *self, weft_comm *alone, const struct bench *bench,
                           const struct local_rank *local)
{
    struct bench_ranks ranks = rank_sync_ranks(&self->sync);

    for (uint32_t op = 0; op < OPS; op++) {
        struct row row = {.op = op, .ranks = ranks.size};
        int status;

        self->comm = op == ALONE ? alone : self->sync.comm;
        self->count = ops[op].bytes / sizeof(float);
        status = bench_time(&ranks, operate, self, bench->on.budget_ns, &row.times);
        if (status == BENCH_NO_MEMORY) return wf_fail_memory(0);
        if (status != WEFT_OK) return status;
        WF_TRY(local_rank_send(local, &row, sizeof row));
    }
    return WEFT_OK;
}

static weft_status work(void *self, weft_context *context, const struct local_rank *local)
{
    const struct bench *bench = self;
    struct rank rank = {0};
    weft_observer observer = {
        .struct_size = sizeof observer, .user = &rank, .submitted = observe, .finished = observe};
    weft_observation *observation = NULL;
    weft_comm *alone = NULL;
    void *memory = NULL;

    WF_TRY(weft_comm_split(weft_world(context), weft_rank(context), 0, NULL, &alone));
    WF_TRY(rank_sync_open(&rank.sync, context, weft_world(context)));
    WF_TRY(weft_alloc(context, ops[LARGE].bytes, WEFT_MEMORY_DEVICE, &memory));
    WF_TRY(weft_memory_fill(context, memory, 0, ops[LARGE].bytes, NULL));
    rank.memory = memory;
    if (bench->way == OBSERVED) WF_TRY(weft_observe(context, &observer, &observation));
    WF_TRY(measure(&rank, alone, bench, local));
    weft_observation_release(&observation);
    if (bench->way == OBSERVED && rank.seen == 0)
        return wf_fail(WEFT_ERR_INTERNAL, "the observer was not called");
    WF_TRY(weft_free(context, memory));
    weft_comm_release(&alone);
    return rank_sync_close(&rank.sync);
}

/* In each rank before it joins. */
static void prepare(void *self, int32_t rank)
{
    const struct bench *bench = self;

    (void)rank;
    if (bench->way == OFF)
        setenv("WEFT_RECORDER", "0", 1);
    else
        unsetenv("WEFT_RECORDER");
}

/* ---- the command ---- */

static weft_status receive(void *self, const void *message, size_t bytes)
{
    struct bench *bench = self;
    struct bench_times *best;
    struct row row;

    if (bytes != sizeof row) return WEFT_OK;
    memcpy(&row, message, sizeof row);
    if (row.op >= OPS) return WEFT_OK;
    best = &bench->best[bench->way][row.op];
    if (!bench->has[bench->way][row.op] || row.times.median_ns < best->median_ns) *best = row.times;
    bench->has[bench->way][row.op] = true;
    bench->ranks = row.ranks;
    return WEFT_OK;
}

/* What WAY costs more than no records, in nanoseconds. */
static int64_t added_ns(const struct bench *bench, enum way way, enum op op)
{
    return (int64_t)bench->best[way][op].median_ns - (int64_t)bench->best[OFF][op].median_ns;
}

static double added_percent(const struct bench *bench, enum way way, enum op op)
{
    uint64_t off = bench->best[OFF][op].median_ns;

    return 100.0 * (double)added_ns(bench, way, op) / (double)(off > 0 ? off : 1);
}

static void add_table(struct wf_text *text, const struct bench *bench)
{
    wf_text_add(text, "%d rank%s\n%-24s %10s %10s %22s %22s\n", bench->ranks,
                WF_PLURAL(bench->ranks), "", "bytes", "off", "recorder", "recorder and observer");
    for (int op = 0; op < OPS; op++) {
        wf_text_add(text, "%-24s", ops[op].name);
        bench_add_bytes(text, 10, ops[op].bytes);
        bench_add_time(text, 10, bench->best[OFF][op].median_ns);
        for (int way = RECORDER; way < WAYS; way++) {
            bench_add_time(text, 10, bench->best[way][op].median_ns);
            if (op == ALONE)
                wf_text_add(text, " %+8lld ns",
                            (long long)added_ns(bench, (enum way)way, (enum op)op));
            else
                wf_text_add(text, " %+9.1f %%", added_percent(bench, (enum way)way, (enum op)op));
        }
        wf_text_char(text, '\n');
    }
}

static void add_json(struct wf_text *text, const struct bench *bench)
{
    struct wf_json json = {.out = text};

    wf_json_begin(&json, NULL, '{');
    wf_json_string(&json, "bench", "trace");
    wf_json_int(&json, "ranks", bench->ranks);
    wf_json_begin(&json, "rows", '[');
    for (int op = 0; op < OPS; op++)
        for (int way = 0; way < WAYS; way++) {
            const struct bench_times *times = &bench->best[way][op];

            wf_json_begin(&json, NULL, '{');
            wf_json_string(&json, "records", ways[way]);
            wf_json_int(&json, "ranks", op == ALONE ? 1 : bench->ranks);
            wf_json_uint(&json, "bytes", ops[op].bytes);
            wf_json_uint(&json, "median_ns", times->median_ns);
            wf_json_uint(&json, "min_ns", times->min_ns);
            wf_json_int(&json, "added_ns", added_ns(bench, (enum way)way, (enum op)op));
            wf_json_real(&json, "added_percent", added_percent(bench, (enum way)way, (enum op)op));
            wf_json_end(&json, '}');
        }
    wf_json_end(&json, ']');
    wf_json_end(&json, '}');
    wf_text_char(text, '\n');
}

static weft_status run_rounds(struct bench *bench, const struct local_job *job)
{
    for (int round = 0; round < ROUNDS; round++)
        for (int way = 0; way < WAYS; way++) {
            bench->way = (enum way)way;
            cli_progress_of((uint64_t)round * WAYS + (uint64_t)way, ROUNDS * WAYS,
                            "round %d of %d: %s", round + 1, ROUNDS, ways[way]);
            WF_TRY(local_ranks_run(bench->on.ranks, bench->on.backend, job));
        }
    return WEFT_OK;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct bench bench = {0};
    struct local_job job = {.self = &bench, .prepare = prepare, .work = work, .receive = receive};
    struct wf_text text = {0};
    struct cli_args args;
    weft_status status;
    int code;

    if (!cli_parse(command, argc, argv, false, &args, &code)) return code;
    if (!rank_bench_read(command, &args, 1, 50, &bench.on)) return CLI_USAGE;
    cli_progress_begin();
    status = run_rounds(&bench, &job);
    cli_progress_end();
    if (status != WEFT_OK) return cli_fail(command, status);
    if (bench.on.as_json)
        add_json(&text, &bench);
    else
        add_table(&text, &bench);
    return cli_print(command, stdout, &text);
}

const struct cli_command bench_trace = {
    .name = "bench trace",
    .summary = "measure what records of operations and observers cost",
    .arguments = "[options]",
    .example = "weft bench trace --ranks 2",
    .page = "performance.md",
    .options =
        (const struct cli_option[]){
            CLI_LOCAL_RANKS,
            CLI_BACKEND,
            CLI_BUDGET_MS("milliseconds for each operation, in each of five rounds (default: 50)"),
            CLI_JSON,
            {0}},
    .run = run,
};
