/* bench_batch.c - `weft bench batch`: many small tensors as one plan, beside the same one by one.
 */
#include "common/cli.h"

#include "common/local_ranks.h"
#include "common/progress.h"
#include "timing/meeting.h"

#include <string.h>

enum { MOST_TENSORS = 1024 };

static const struct transition {
    const char *from, *to;
} transitions[] = {{"S(0)", "R"}, {"S(0)", "S(1)"}, {"P", "R"}, {"P", "S(0)"}, {"R", "S(1)"}};

struct row {
    uint64_t together_ns, alone_ns;
    uint32_t together; /* tensors that went together */
};

/* What rank 0 writes to the command's pipe, in one piece: less than PIPE_BUF. */
struct message {
    int32_t rank;
    weft_status status; /* WEFT_OK: ROWS count, else TEXT */
    struct row rows[WF_COUNT(transitions)];
    char text[1024];
};

struct bench {
    const char *backend;
    int32_t ranks;
    uint32_t tensors;
    int64_t size;
    uint64_t budget_ns;
    struct row rows[WF_COUNT(transitions)];
};

/* ---- one rank ---- */

struct rank {
    const struct bench *bench;
    weft_context *context;
    struct meeting meeting;
    weft_plan *plans[2]; /* of the batch, of one tensor */
    weft_bound *batch, *one;
    void *sources[MOST_TENSORS], *targets[MOST_TENSORS];
};

static int run_batch(void *self)
{
    struct rank *rank = self;

    WF_TRY(weft_redistribute_batch(rank->batch, (const void *const *)rank->sources, rank->targets,
                                   NULL, NULL));
    return meeting_finish(&rank->meeting);
}

static int run_alone(void *self)
{
    struct rank *rank = self;

    for (uint32_t i = 0; i < rank->bench->tensors; i++)
        WF_TRY(weft_redistribute(rank->one, rank->sources[i], rank->targets[i], NULL, NULL));
    return meeting_finish(&rank->meeting);
}

static weft_status make_plans(struct rank *rank, const weft_spec *from, const weft_spec *to,
                              struct row *row)
{
    weft_plan_options options = {.struct_size = sizeof options,
                                 .costs = weft_context_costs(rank->context)};
    const weft_spec *sources[MOST_TENSORS], *targets[MOST_TENSORS];
    weft_plan_info info;

    for (uint32_t i = 0; i < rank->bench->tensors; i++) {
        sources[i] = from;
        targets[i] = to;
    }
    WF_TRY(
        weft_plan_create_batch(rank->bench->tensors, sources, targets, &options, &rank->plans[0]));
    WF_TRY(weft_plan_create(from, to, &options, &rank->plans[1]));
    weft_plan_get(rank->plans[0], &info);
    row->together = info.together;
    WF_TRY(weft_plan_bind(rank->plans[0], weft_world(rank->context), NULL, &rank->batch));
    return weft_plan_bind(rank->plans[1], weft_world(rank->context), NULL, &rank->one);
}

static weft_status make_specs(const struct bench *bench, const struct transition *t,
                              weft_spec **from, weft_spec **to)
{
    weft_mesh *mesh;
    char text[96];
    weft_status status;

    WF_TRY(weft_mesh_create(1, &bench->ranks, NULL, &mesh));
    snprintf(text, sizeof text, "f32[%lld,%lld] %s", (long long)bench->size, (long long)bench->size,
             t->from);
    status = weft_spec_parse(mesh, text, from);
    snprintf(text, sizeof text, "f32[%lld,%lld] %s", (long long)bench->size, (long long)bench->size,
             t->to);
    if (status == WEFT_OK) status = weft_spec_parse(mesh, text, to);
    weft_mesh_release(&mesh);
    return status;
}

static weft_status measure(struct rank *rank, const struct transition *t, struct row *row)
{
    struct bench_ranks ranks = meeting_ranks(&rank->meeting);
    weft_spec *from = NULL, *to = NULL;
    struct bench_times times = {0};
    weft_status status = make_specs(rank->bench, t, &from, &to);

    if (status == WEFT_OK) status = make_plans(rank, from, to, row);
    if (status == WEFT_OK)
        status = bench_time(&ranks, run_batch, rank, rank->bench->budget_ns, &times);
    row->together_ns = times.median_ns;
    if (status == WEFT_OK)
        status = bench_time(&ranks, run_alone, rank, rank->bench->budget_ns, &times);
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

static weft_status work(struct rank *rank, struct row *rows)
{
    uint64_t bytes = (uint64_t)rank->bench->size * (uint64_t)rank->bench->size * 4;

    WF_TRY(meeting_open(&rank->meeting, rank->context, weft_world(rank->context)));
    for (uint32_t i = 0; i < rank->bench->tensors; i++) {
        WF_TRY(weft_alloc(rank->context, bytes, WEFT_MEMORY_DEVICE, &rank->sources[i]));
        WF_TRY(weft_alloc(rank->context, bytes, WEFT_MEMORY_DEVICE, &rank->targets[i]));
        WF_TRY(weft_fill(rank->context, rank->sources[i], 0, bytes, NULL));
    }
    for (size_t t = 0; t < WF_COUNT(transitions); t++)
        WF_TRY(measure(rank, &transitions[t], &rows[t]));
    for (uint32_t i = 0; i < rank->bench->tensors; i++) {
        WF_TRY(weft_free(rank->context, rank->sources[i]));
        WF_TRY(weft_free(rank->context, rank->targets[i]));
    }
    return meeting_close(&rank->meeting);
}

static weft_status rank_main(void *self, const weft_options *options, int fd)
{
    static struct rank rank;
    struct message message = {.rank = options->rank};
    weft_status status;

    rank.bench = self;
    status = weft_init(options, &rank.context);
    if (status == WEFT_OK) {
        bench_pin(weft_local_rank(rank.context));
        status = work(&rank, message.rows);
    }
    message.status = status;
    if (status != WEFT_OK) snprintf(message.text, sizeof message.text, "%s", weft_last_error());
    if ((status != WEFT_OK || options->rank == 0) &&
        local_rank_send(fd, &message, sizeof message) != WEFT_OK)
        return WEFT_ERR_SYSTEM;
    if (status == WEFT_OK) weft_context_release(&rank.context);
    return status;
}

/* ---- the command ---- */

static weft_status collect(void *self, int fd)
{
    struct bench *bench = self;
    struct message message;
    weft_status status;

    while (local_ranks_receive(fd, &message, sizeof message, &status)) {
        if (message.status != WEFT_OK)
            return local_rank_fail(message.status, message.rank, message.text, sizeof message.text);
        memcpy(bench->rows, message.rows, sizeof bench->rows);
    }
    return status;
}

static void add_json(struct wf_text *text, const struct bench *bench)
{
    struct wf_json json = {.out = text};

    wf_json_begin(&json, NULL, '{');
    wf_json_string(&json, "bench", "batch");
    wf_json_begin(&json, "rows", '[');
    for (size_t t = 0; t < WF_COUNT(transitions); t++) {
        wf_json_begin(&json, NULL, '{');
        wf_json_string(&json, "from", transitions[t].from);
        wf_json_string(&json, "to", transitions[t].to);
        wf_json_int(&json, "size", bench->size);
        wf_json_int(&json, "ranks", bench->ranks);
        wf_json_uint(&json, "tensors", bench->tensors);
        wf_json_uint(&json, "together", bench->rows[t].together);
        wf_json_uint(&json, "median_ns", bench->rows[t].together_ns);
        wf_json_uint(&json, "alone_ns", bench->rows[t].alone_ns);
        wf_json_end(&json, '}');
    }
    wf_json_end(&json, ']');
    wf_json_end(&json, '}');
    wf_text_char(text, '\n');
}

static void add_cell(struct wf_text *text, uint64_t ns)
{
    struct wf_text cell = {0};

    wf_text_time(&cell, ns);
    wf_text_add(text, " %12s", cell.data != NULL ? cell.data : "");
    wf_text_free(&cell);
}

static void add_table(struct wf_text *text, const struct bench *bench)
{
    wf_text_add(text, "%u tensors f32[%lld,%lld], %d ranks\n%-14s %9s %12s %12s %7s\n",
                bench->tensors, (long long)bench->size, (long long)bench->size, bench->ranks, "",
                "together", "as one plan", "one by one", "times");
    for (size_t t = 0; t < WF_COUNT(transitions); t++) {
        const struct row *row = &bench->rows[t];
        char name[32];
        snprintf(name, sizeof name, "%s -> %s", transitions[t].from, transitions[t].to);
        wf_text_add(text, "%-14s %9u", name, row->together);
        add_cell(text, row->together_ns);
        add_cell(text, row->alone_ns);
        wf_text_add(text, " %7.2f\n",
                    (double)row->alone_ns / (double)(row->together_ns > 0 ? row->together_ns : 1));
    }
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct bench bench = {0};
    struct wf_text text = {0};
    struct cli_args args;
    int64_t ranks, tensors, budget_ms;
    weft_status status;
    int code;

    if (!cli_parse(command, argc, argv, false, &args, &code)) return code;
    if (!cli_int(command, &args, "ranks", 1, LOCAL_RANKS_MAX, 2, &ranks) ||
        !cli_int(command, &args, "tensors", 1, MOST_TENSORS, 100, &tensors) ||
        !cli_int(command, &args, "size", 1, 4096, 16, &bench.size) ||
        !cli_int(command, &args, "budget-ms", 1, 60000, 200, &budget_ms))
        return CLI_USAGE;
    bench.backend = cli_value(command, &args, "backend");
    bench.ranks = (int32_t)ranks;
    bench.tensors = (uint32_t)tensors;
    bench.budget_ns = (uint64_t)budget_ms * 1000000;
    cli_progress_begin();
    cli_progress("measuring %u tensors on %d ranks", bench.tensors, (int)bench.ranks);
    status = local_ranks_run(bench.ranks, bench.backend, rank_main, collect, &bench);
    cli_progress_end();
    if (status != WEFT_OK) return cli_fail(command, status);
    if (cli_has(command, &args, "json"))
        add_json(&text, &bench);
    else
        add_table(&text, &bench);
    return cli_print(command, stdout, &text);
}

const struct cli_command bench_batch = {
    .name = "bench batch",
    .summary = "many small tensors as one plan, beside the same one by one",
    .arguments = "[options]",
    .example = "weft bench batch --tensors 100 --size 16 --ranks 4",
    .options =
        (const struct cli_option[]){CLI_LOCAL_RANKS,
                                    {"tensors", "N", "tensors in the batch (default: 100)", 0},
                                    {"size", "N", "rows and columns of each (default: 16)", 0},
                                    CLI_BACKEND,
                                    CLI_BUDGET_MS("time for each number (default: 200)"),
                                    CLI_JSON,
                                    {0}},
    .run = run,
};
