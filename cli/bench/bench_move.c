/* bench_move.c - `weft bench move`: what weft_move costs besides weft_redistribute of a bound plan,
 * on one rank. */
#include "bench/rows.h"
#include "timing/alone.h"

#include <stdio.h>

enum { MAX_KEPT = 1000, ROUNDS = 5, LIMIT_NS = 300 };

static const struct row {
    const char *name;
    uint32_t kept; /* pairs of specs, moved between in turn */
} rows[] = {
    {"weft_move", 1},
    {"weft_move", MAX_KEPT},
};

struct subject {
    weft_context *context;
    uint32_t kept, next;
    weft_spec *from[MAX_KEPT], *to[MAX_KEPT];
    weft_bound *bound[MAX_KEPT];
    void *source, *target;
};

static uint32_t take_next(struct subject *s)
{
    if (++s->next >= s->kept) s->next = 0;
    return s->next;
}

static int run_bound(void *self)
{
    struct subject *s = self;

    return weft_redistribute(s->bound[take_next(s)], s->source, s->target, NULL, NULL);
}

static weft_status move_pair(struct subject *s, uint32_t i)
{
    const weft_move_item item = {NULL, s->from[i], s->source, s->to[i], s->target};

    return weft_move(s->context, 1, &item, sizeof item, NULL, NULL, NULL);
}

static int run_move(void *self)
{
    struct subject *s = self;

    return move_pair(s, take_next(s));
}

static weft_status prepare_pair(struct subject *s, const weft_mesh *mesh, uint32_t i)
{
    weft_plan *plan = NULL;
    weft_status status;
    char text[64];

    snprintf(text, sizeof text, "f32[%u,1] S(0)", i + 1);
    WF_TRY(weft_spec_parse(mesh, text, &s->from[i]));
    WF_TRY(weft_spec_with(s->from[i], "S(1)", &s->to[i]));
    WF_TRY(weft_context_plan(s->context, s->from[i], s->to[i], NULL, &plan));
    status = weft_plan_bind(plan, weft_world(s->context), NULL, &s->bound[i]);
    weft_plan_release(&plan);
    if (status != WEFT_OK) return status;
    return move_pair(s, i);
}

static weft_status prepare(const struct row *row, struct subject *s)
{
    weft_init_options alone = {.struct_size = sizeof alone, .size = 1};
    weft_mesh *mesh = NULL;
    weft_status status;

    *s = (struct subject){.kept = row->kept};
    WF_TRY(weft_init(&alone, &s->context));
    WF_TRY(weft_alloc(s->context, MAX_KEPT * 4, WEFT_MEMORY_DEVICE, &s->source));
    WF_TRY(weft_alloc(s->context, MAX_KEPT * 4, WEFT_MEMORY_DEVICE, &s->target));
    WF_TRY(weft_mesh_parse("1", &mesh));
    status = WEFT_OK;
    for (uint32_t i = 0; i < row->kept && status == WEFT_OK; i++)
        status = prepare_pair(s, mesh, i);
    weft_mesh_release(&mesh);
    return status;
}

static void drop(struct subject *s)
{
    for (uint32_t i = 0; i < s->kept; i++) {
        weft_bound_release(&s->bound[i]);
        weft_spec_release(&s->from[i]);
        weft_spec_release(&s->to[i]);
    }
    if (s->context != NULL && (weft_free(s->context, s->source) != WEFT_OK ||
                               weft_free(s->context, s->target) != WEFT_OK))
        fprintf(stderr, "weft bench move: %s\n", weft_last_error());
    weft_context_release(&s->context);
}

/* The quietest round counts for both. */
static weft_status compare(struct subject *s, uint64_t budget_ns, struct bench_times *out)
{
    struct bench_times bound = {0}, move = {0};
    uint64_t bound_ns = UINT64_MAX, move_ns = UINT64_MAX;

    for (int round = 0; round < ROUNDS; round++) {
        WF_TRY(bench_alone(run_bound, s, budget_ns / (2 * ROUNDS) + 1, &bound));
        WF_TRY(bench_alone(run_move, s, budget_ns / (2 * ROUNDS) + 1, &move));
        if (bound.median_ns < bound_ns) bound_ns = bound.median_ns;
        if (move.median_ns < move_ns) move_ns = move.median_ns;
    }
    *out = move;
    out->median_ns = out->min_ns = move_ns > bound_ns ? move_ns - bound_ns : 0;
    return WEFT_OK;
}

static weft_status measure(size_t index, uint64_t budget_ns, struct bench_times *times)
{
    static struct subject subject; /* too large for a stack */
    weft_status status = prepare(&rows[index], &subject);

    if (status == WEFT_OK) status = compare(&subject, budget_ns, times);
    drop(&subject);
    return status;
}

static void add_text(struct wf_text *text, size_t index, const struct bench_times *times)
{
    struct wf_text time = {0};

    wf_text_time(&time, times->median_ns);
    wf_text_add(text, "%-20s %4u kept: %8s more than weft_redistribute", rows[index].name,
                rows[index].kept, time.data != NULL ? time.data : "");
    wf_text_free(&time);
    wf_text_add(text, times->median_ns < LIMIT_NS ? "   under " : "   NOT under ");
    wf_text_time(text, LIMIT_NS);
    wf_text_char(text, '\n');
}

static void add_json(struct wf_json *json, size_t index)
{
    wf_json_string(json, "name", rows[index].name);
    wf_json_int(json, "kept", rows[index].kept);
}

static uint64_t limit_ns(size_t index)
{
    (void)index;
    return LIMIT_NS;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    static const struct bench_rows move = {.name = "move",
                                           .count = WF_COUNT(rows),
                                           .measure = measure,
                                           .add_text = add_text,
                                           .add_json = add_json,
                                           .limit_ns = limit_ns};

    return bench_rows_run(command, argc, argv, &move);
}

const struct cli_command bench_move = {
    .name = "bench move",
    .summary = "measure what a move costs besides the run of its bound plan",
    .arguments = "[--budget-ms N] [--json]",
    .example = "weft bench move",
    .page = "performance.md",
    .options = bench_rows_options,
    .run = run,
};
