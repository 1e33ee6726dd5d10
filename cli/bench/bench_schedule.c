/* bench_schedule.c - `weft bench schedule`: what schedules of pipelines and orders of programs cost
 * to find, in one thread. */
#include "common/cli.h"

#include "bench/rows.h"
#include "timing/alone.h"

enum { RANKS = 64, MICROBATCHES = 1024, NODES = 10000 }; /* NODES: 1 more than a multiple of 3 */

static const uint64_t schedule_limit_ns = 500000000, reorder_limit_ns = 200000000;

/* A schedule of NAME or, without one, a program of NODES nodes for PASS. */
static const struct row {
    const char *name;
    bool lowers; /* the schedule is lowered, and its times are computed */
    bool hides;  /* compute hides every collective of the program; else it hides none */
    uint32_t pass;
    const char *text;
} rows[] = {
    {"1f1b", false, false, 0, "1f1b, 64 ranks, 1,024 microbatches"},
    {"interleaved", false, false, 0, "interleaved, the same"},
    {"zb1p", false, false, 0, "zb1p, the same"},
    {"zbv", false, false, 0, "zbv, the same"},
    {"dualpipev", false, false, 0, "dualpipev, the same"},
    {"1f1b", true, false, 0, "1f1b, lowered, with a timeline"},
    {NULL, false, true, WEFT_REORDER_ITERATIVE, "iterative, 10,000 nodes, all is hidden"},
    {NULL, false, true, WEFT_REORDER_LIST, "list, all is hidden"},
    {NULL, false, false, WEFT_REORDER_ITERATIVE, "iterative, 10,000 nodes, nothing is hidden"},
    {NULL, false, false, WEFT_REORDER_RAISE, "raise, nothing is hidden"},
    {NULL, false, false, WEFT_REORDER_SINK, "sink, nothing is hidden"},
    {NULL, false, false, WEFT_REORDER_LIST, "list, nothing is hidden"},
};

struct subject {
    const struct row *row;
    weft_reorder_node nodes[NODES];
    int32_t inputs[NODES];
};

static weft_status time_lowered(const weft_schedule *schedule)
{
    weft_schedule *lowered = NULL;
    weft_timeline *timeline = NULL;
    weft_status status = weft_schedule_lower(schedule, WEFT_LOWER_REDUCE, &lowered);

    if (status == WEFT_OK) status = weft_timeline_create(lowered, NULL, &timeline);
    weft_timeline_release(&timeline);
    weft_schedule_release(&lowered);
    return status;
}

static int create_schedule(void *argument)
{
    const struct subject *s = argument;
    weft_schedule *schedule = NULL;
    weft_status status = weft_schedule_create(s->row->name, RANKS, 0, MICROBATCHES, &schedule);

    if (status == WEFT_OK && s->row->lowers) status = time_lowered(schedule);
    weft_schedule_release(&schedule);
    return status;
}

static int reorder(void *argument)
{
    const struct subject *s = argument;
    weft_reorder_options options = {
        .struct_size = sizeof options, .pass = s->row->pass, .memory_limit = UINT64_C(1) << 40};
    weft_reorder *result = NULL;
    weft_status status = weft_reorder_create(NODES, s->nodes, sizeof *s->nodes, &options, &result);

    weft_reorder_release(&result);
    return status;
}

/* A start, its wait, and compute behind it, again and again; the last node is compute. */
static void fill(struct subject *s)
{
    for (int32_t i = 0; i < NODES; i++) {
        weft_reorder_node *node = &s->nodes[i];
        *node = (weft_reorder_node){
            .kind = WEFT_REORDER_NODE_COMPUTE, .comm = -1, .time = 1000, .alloc = 64};
        if (i % 3 == 2 || i + 1 == NODES) continue;
        node->comm = 0;
        node->kind = i % 3 == 0 ? WEFT_REORDER_NODE_START : WEFT_REORDER_NODE_WAIT;
        if (i % 3 == 0) node->time = s->row->hides ? 900 : 1000000;
        if (i % 3 == 0) continue;
        s->inputs[i] = i - 1;
        node->input_count = 1;
        node->inputs = &s->inputs[i];
    }
}

static weft_status measure(size_t index, uint64_t budget_ns, struct bench_times *times)
{
    struct subject *subject = wf_calloc(1, sizeof *subject);
    weft_status status;

    if (subject == NULL) return wf_fail_memory(sizeof *subject);
    subject->row = &rows[index];
    fill(subject);
    status = bench_alone(rows[index].name != NULL ? create_schedule : reorder, subject, budget_ns,
                         times);
    wf_free(subject);
    return status;
}

static uint64_t limit_ns(size_t index)
{
    return rows[index].name != NULL ? schedule_limit_ns : reorder_limit_ns;
}

static void add_text(struct wf_text *text, size_t index, const struct bench_times *times)
{
    wf_text_add(text, "%-44s", rows[index].text);
    bench_add_time(text, 10, times->median_ns);
    wf_text_add(text, "   %s ", times->median_ns < limit_ns(index) ? "under" : "NOT under");
    wf_text_time(text, limit_ns(index));
    wf_text_char(text, '\n');
}

static void add_json(struct wf_json *json, size_t index)
{
    wf_json_string(json, "name", rows[index].text);
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    static const struct bench_rows schedule = {.name = "schedule",
                                               .count = WF_COUNT(rows),
                                               .measure = measure,
                                               .add_text = add_text,
                                               .add_json = add_json,
                                               .limit_ns = limit_ns};

    return bench_rows_run(command, argc, argv, &schedule);
}

const struct cli_command bench_schedule = {
    .name = "bench schedule",
    .summary = "measure schedules of pipelines and orders of programs",
    .arguments = "[--budget-ms N] [--json]",
    .example = "weft bench schedule",
    .page = "performance.md",
    .options = bench_rows_options,
    .run = run,
};
