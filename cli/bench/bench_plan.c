/* bench_plan.c - `weft bench plan`: measures planning, in one thread. */
#include "bench/rows.h"
#include "common/describe.h"
#include "timing/alone.h"

#include <stdio.h>
#include <string.h>

struct subject {
    weft_mesh *mesh;
    weft_spec *from, *to;
    weft_plan_options options;
    weft_context *context; /* whose plans are cached; NULL: planned anew each time */
};

static int plan_anew(void *argument)
{
    struct subject *s = argument;
    weft_plan *plan;
    weft_status status = weft_plan_create(s->from, s->to, &s->options, &plan);

    if (status == WEFT_OK) weft_plan_release(&plan);
    return status;
}

static int plan_again(void *argument)
{
    struct subject *s = argument;
    weft_plan *plan;
    weft_status status = weft_context_plan(s->context, s->from, s->to, &s->options, &plan);

    if (status == WEFT_OK) weft_plan_release(&plan);
    return status;
}

static const struct row {
    const char *mesh, *shape, *from, *to, *planner;
    int (*operation)(void *);
    uint64_t limit_ns;
} rows[] = {
    {"8", "4096,4096", "S(0)", "S(1)", "search", plan_anew, 5000},
    {"8", "4096,4096", "P", "S(1)", "search", plan_anew, 5000},
    {"2x4", "4096,4096", "S(0),R", "R,S(1)", "search", plan_anew, 20000},
    {"2x4", "4096,4096", "P,S(0)", "S(1),R", "search", plan_anew, 20000},
    {"2x2x2", "8192,8192,64", "S(0),S(1),S(0)", "S(1),S(0),R", "search", plan_anew, 200000},
    {"64x128x128", "8192,8192,64", "S(0),S(1),S(0)", "S(1),S(0),R", "search", plan_anew, 200000},
    {"2x2x2", "4095,4097,63", "S(0),S(1),S(0)", "S(1),S(0),R", "search", plan_anew, 200000},
    {"2x2x2", "4096,4096,64", "P,P,P", "R,R,R", "search", plan_anew, 100000},
    {"4x4x4", "4095,4097,63", "P,P,P", "R,R,R", "bytes", plan_anew, 2000000},
    {"2x2x2", "4096,4096,64", "P,P,P", "R,R,R", "cache", plan_again, 100},
};

static weft_status prepare(const struct row *row, struct subject *out)
{
    weft_init_options alone = {.struct_size = sizeof alone, .size = 1};
    char text[128];

    *out = (struct subject){.options = {.struct_size = sizeof out->options}};
    if (strcmp(row->planner, "bytes") == 0) out->options.minimize = WEFT_MINIMIZE_BYTES;
    WF_TRY(weft_mesh_parse(row->mesh, &out->mesh));
    snprintf(text, sizeof text, "f32[%s] %s", row->shape, row->from);
    WF_TRY(weft_spec_parse(out->mesh, text, &out->from));
    snprintf(text, sizeof text, "f32[%s] %s", row->shape, row->to);
    WF_TRY(weft_spec_parse(out->mesh, text, &out->to));
    return row->operation == plan_again ? weft_init(&alone, &out->context) : WEFT_OK;
}

static weft_status measure(size_t index, uint64_t budget_ns, struct bench_times *times)
{
    const struct row *row = &rows[index];
    struct subject subject;
    weft_status status = prepare(row, &subject);

    if (status == WEFT_OK) status = bench_alone(row->operation, &subject, budget_ns, times);
    weft_spec_release(&subject.from);
    weft_spec_release(&subject.to);
    weft_mesh_release(&subject.mesh);
    weft_context_release(&subject.context);
    return status;
}

static void add_text(struct wf_text *text, size_t index, const struct bench_times *times)
{
    const struct row *row = &rows[index];
    struct wf_text time = {0};

    wf_text_time(&time, times->median_ns);
    wf_text_add(text, "%-11s [%-12s] %-14s -> %-11s %-6s %9s", row->mesh, row->shape, row->from,
                row->to, row->planner, time.data != NULL ? time.data : "");
    wf_text_free(&time);
    wf_text_add(text, times->median_ns < row->limit_ns ? "   under " : "   NOT under ");
    wf_text_time(text, row->limit_ns);
    wf_text_char(text, '\n');
}

static int32_t row_ranks(const struct row *row)
{
    weft_mesh *mesh = NULL;
    int32_t ranks = weft_mesh_parse(row->mesh, &mesh) == WEFT_OK ? weft_mesh_size(mesh) : 0;

    weft_mesh_release(&mesh);
    return ranks;
}

static void add_json_shape(struct wf_json *json, const struct row *row)
{
    int64_t shape[WEFT_MAX_DIMS];
    int32_t dims = 0;

    if (weft_shape_parse(row->shape, &dims, shape) != WEFT_OK) json->out->failed = true;
    describe_json_shape(json, "shape", dims, shape);
}

static void add_json(struct wf_json *json, size_t index)
{
    const struct row *row = &rows[index];

    wf_json_string(json, "from", row->from);
    wf_json_string(json, "to", row->to);
    wf_json_string(json, "mesh", row->mesh);
    add_json_shape(json, row);
    wf_json_int(json, "ranks", row_ranks(row));
    wf_json_string(json, "planner", row->planner);
}

static uint64_t limit_ns(size_t index)
{
    return rows[index].limit_ns;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    static const struct bench_rows plan = {.name = "plan",
                                           .count = WF_COUNT(rows),
                                           .measure = measure,
                                           .add_text = add_text,
                                           .add_json = add_json,
                                           .limit_ns = limit_ns};

    return bench_rows_run(command, argc, argv, &plan);
}

const struct cli_command bench_plan = {
    .name = "bench plan",
    .summary = "measure planning, with and without a cache",
    .arguments = "[--budget-ms N] [--json]",
    .example = "weft bench plan",
    .page = "performance.md",
    .options = bench_rows_options,
    .run = run,
};
