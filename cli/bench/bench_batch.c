/* bench_batch.c - `weft bench batch`: compares many small tensors as one plan with a plan for
 * each. */
#include "bench/rows.h"
#include "bench/rank_bench.h"
#include "bench/transitions.h"
#include "common/progress.h"
#include "timing/rank_sync.h"

#include <stdio.h>
#include <string.h>

enum { MAX_TENSORS = 1024 };

struct row {
    uint64_t together_ns, alone_ns;
    size_t together; /* number of tensors that share one exchange */
};

/* The message of rank 0, after each row. */
struct results {
    int32_t ranks; /* 0: not received */
    int32_t done;  /* rows */
    struct row rows[TRANSITIONS];
};

struct bench {
    struct rank_bench on;
    uint32_t tensors;
    int64_t size;
    struct results results;
};

/* ---- one rank ---- */

struct rank {
    const struct bench *bench;
    weft_context *context;
    struct rank_sync sync;
    weft_plan *plans[2]; /* plan of the batch, plan of one tensor */
    weft_bound *batch, *one;
    void *sources[MAX_TENSORS], *targets[MAX_TENSORS];
};

static int run_batch(void *self)
{
    struct rank *rank = self;

    WF_TRY(weft_redistribute_batch(rank->batch, (const void *const *)rank->sources, rank->targets,
                                   NULL, NULL));
    return rank_sync_finish(&rank->sync);
}

static int run_alone(void *self)
{
    struct rank *rank = self;

    for (uint32_t i = 0; i < rank->bench->tensors; i++)
        WF_TRY(weft_redistribute(rank->one, rank->sources[i], rank->targets[i], NULL, NULL));
    return rank_sync_finish(&rank->sync);
}

static weft_status make_plans(struct rank *rank, const weft_spec *from, const weft_spec *to,
                              struct row *row)
{
    weft_plan_options options = {.struct_size = sizeof options,
                                 .costs = weft_context_costs(rank->context)};
    const weft_spec *sources[MAX_TENSORS], *targets[MAX_TENSORS];
    weft_plan_info info = {.struct_size = sizeof info};

    for (uint32_t i = 0; i < rank->bench->tensors; i++) {
        sources[i] = from;
        targets[i] = to;
    }
    WF_TRY(
        weft_plan_create_batch(rank->bench->tensors, sources, targets, &options, &rank->plans[0]));
    WF_TRY(weft_plan_create(from, to, &options, &rank->plans[1]));
    WF_TRY(weft_plan_get(rank->plans[0], &info));
    row->together = info.together;
    WF_TRY(weft_plan_bind(rank->plans[0], weft_world(rank->context), NULL, &rank->batch));
    return weft_plan_bind(rank->plans[1], weft_world(rank->context), NULL, &rank->one);
}

static weft_status make_specs(const struct rank *rank, const struct transition *t, weft_spec **from,
                              weft_spec **to)
{
    int32_t ranks = weft_size(rank->context);
    weft_mesh *mesh;
    weft_status status;

    WF_TRY(weft_mesh_create(1, &ranks, NULL, &mesh));
    status = transition_specs(t, mesh, rank->bench->size, from, to);
    weft_mesh_release(&mesh);
    return status;
}

static weft_status measure(struct rank *rank, const struct transition *t, struct row *row)
{
    struct bench_ranks ranks = rank_sync_ranks(&rank->sync);
    weft_spec *from = NULL, *to = NULL;
    struct bench_times times = {0};
    weft_status status = make_specs(rank, t, &from, &to);

    if (status == WEFT_OK) status = make_plans(rank, from, to, row);
    if (status == WEFT_OK)
        status = bench_time(&ranks, run_batch, rank, rank->bench->on.budget_ns, &times);
    row->together_ns = times.median_ns;
    if (status == WEFT_OK)
        status = bench_time(&ranks, run_alone, rank, rank->bench->on.budget_ns, &times);
    row->alone_ns = times.median_ns;
    if (status == BENCH_NO_MEMORY) status = wf_fail_memory(0);
    if (status == WEFT_OK) status = weft_barrier(weft_world(rank->context), NULL);
    weft_bound_release(&rank->batch);
    weft_bound_release(&rank->one);
    weft_plan_release(&rank->plans[0]);
    weft_plan_release(&rank->plans[1]);
    weft_spec_release(&from);
    weft_spec_release(&to);
    return status;
}

static weft_status allocate(struct rank *rank)
{
    uint64_t bytes = (uint64_t)rank->bench->size * (uint64_t)rank->bench->size * 4;

    for (uint32_t i = 0; i < rank->bench->tensors; i++) {
        WF_TRY(weft_alloc(rank->context, bytes, WEFT_MEMORY_DEVICE, &rank->sources[i]));
        WF_TRY(weft_alloc(rank->context, bytes, WEFT_MEMORY_DEVICE, &rank->targets[i]));
        WF_TRY(weft_memory_fill(rank->context, rank->sources[i], 0, bytes, NULL));
    }
    return WEFT_OK;
}

static weft_status work(void *self, weft_context *context, const struct local_rank *local)
{
    static struct rank rank; /* too large for a stack */
    struct results results = {.ranks = weft_size(context)};

    rank = (struct rank){.bench = self, .context = context};
    WF_TRY(rank_sync_open(&rank.sync, context, weft_world(context)));
    WF_TRY(allocate(&rank));
    for (size_t t = 0; t < TRANSITIONS; t++) {
        WF_TRY(measure(&rank, &transitions[t], &results.rows[t]));
        results.done++;
        WF_TRY(local_rank_send(local, &results, sizeof results));
    }
    for (uint32_t i = 0; i < rank.bench->tensors; i++) {
        WF_TRY(weft_free(context, rank.sources[i]));
        WF_TRY(weft_free(context, rank.targets[i]));
    }
    return rank_sync_close(&rank.sync);
}

/* ---- the command ---- */

static weft_status receive(void *self, const void *message, size_t bytes)
{
    struct bench *bench = self;

    if (bytes != sizeof bench->results) return WEFT_OK;
    memcpy(&bench->results, message, bytes);
    cli_progress_of((uint64_t)bench->results.done, TRANSITIONS, "%d of %d rows",
                    bench->results.done, TRANSITIONS);
    return WEFT_OK;
}

static void add_json(struct wf_text *text, const struct bench *bench)
{
    struct wf_json json = {.out = text};

    wf_json_begin(&json, NULL, '{');
    wf_json_string(&json, "bench", "batch");
    wf_json_begin(&json, "rows", '[');
    for (size_t t = 0; t < TRANSITIONS; t++) {
        wf_json_begin(&json, NULL, '{');
        wf_json_string(&json, "from", transitions[t].from);
        wf_json_string(&json, "to", transitions[t].to);
        wf_json_int(&json, "size", bench->size);
        wf_json_int(&json, "ranks", bench->results.ranks);
        wf_json_uint(&json, "tensors", bench->tensors);
        wf_json_uint(&json, "together", bench->results.rows[t].together);
        wf_json_uint(&json, "median_ns", bench->results.rows[t].together_ns);
        wf_json_uint(&json, "alone_ns", bench->results.rows[t].alone_ns);
        wf_json_end(&json, '}');
    }
    wf_json_end(&json, ']');
    wf_json_end(&json, '}');
    wf_text_char(text, '\n');
}

static void add_table(struct wf_text *text, const struct bench *bench)
{
    wf_text_add(text, "%u tensor%s f32[%lld,%lld], %d rank%s\n%-14s %9s %12s %12s %7s\n",
                bench->tensors, WF_PLURAL(bench->tensors), (long long)bench->size,
                (long long)bench->size, bench->results.ranks, WF_PLURAL(bench->results.ranks), "",
                "together", "as one plan", "one by one", "times");
    for (size_t t = 0; t < TRANSITIONS; t++) {
        const struct row *row = &bench->results.rows[t];

        transition_add_name(&transitions[t], text);
        wf_text_add(text, " %9zu", row->together);
        bench_add_time(text, 12, row->together_ns);
        bench_add_time(text, 12, row->alone_ns);
        wf_text_add(text, " %7.2f\n",
                    (double)row->alone_ns / (double)(row->together_ns > 0 ? row->together_ns : 1));
    }
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct bench bench = {0};
    struct local_job job = {.self = &bench, .work = work, .receive = receive};
    struct wf_text text = {0};
    struct cli_args args;
    int64_t tensors;
    int code;

    if (!cli_parse(command, argc, argv, false, &args, &code)) return code;
    if (!rank_bench_read(command, &args, 1, 200, &bench.on) ||
        !cli_int(command, &args, "tensors", 1, MAX_TENSORS, 100, &tensors) ||
        !cli_int(command, &args, "size", 1, 4096, 16, &bench.size))
        return CLI_USAGE;
    bench.tensors = (uint32_t)tensors;
    snprintf(bench.on.progress, sizeof bench.on.progress, "0 of %d rows", TRANSITIONS);
    code = rank_bench_run(command, &bench.on, &job);
    if (code != CLI_OK || bench.results.ranks == 0) return code;
    if (bench.on.as_json)
        add_json(&text, &bench);
    else
        add_table(&text, &bench);
    return cli_print(command, stdout, &text);
}

const struct cli_command bench_batch = {
    .name = "bench batch",
    .summary = "measure many small tensors as one plan, and one by one",
    .arguments = "[options]",
    .example = "weft bench batch --tensors 100 --size 16 --ranks 4",
    .page = "performance.md",
    .options =
        (const struct cli_option[]){
            CLI_LOCAL_RANKS,
            {"tensors", "N", "number of tensors in the batch (default: 100)", 0},
            {"size", "N", "rows and columns of each (default: 16)", 0},
            CLI_BACKEND,
            CLI_BUDGET_MS("milliseconds for each number (default: 200)"),
            CLI_JSON,
            {0}},
    .run = run,
};
