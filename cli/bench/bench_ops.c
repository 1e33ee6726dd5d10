/* bench_ops.c - `weft bench ops`: measures checks and proposals of operators, in one thread. */
#include "bench/rows.h"
#include "timing/alone.h"

#include <stdio.h>
#include <string.h>

enum { INPUTS = 4 };

struct subject {
    weft_mesh *mesh;
    weft_spec *inputs[INPUTS];
    weft_op_call call;
    weft_op_options options;
};

/* Calls with this function are not cached. */
static bool allow_all(void *user, bool is_output, size_t index, const weft_spec *spec)
{
    (void)user;
    (void)is_output;
    (void)index;
    return spec != NULL;
}

static int check_call(void *argument)
{
    struct subject *s = argument;
    weft_op_choice *choice;
    weft_status status = weft_op_check(&s->call, &s->options, &choice);

    if (status == WEFT_OK) weft_op_choice_release(&choice);
    return status;
}

static int propose_call(void *argument)
{
    struct subject *s = argument;
    weft_op_choice *choice;
    weft_status status = weft_op_propose(&s->call, &s->options, &choice);

    if (status == WEFT_OK) weft_op_choice_release(&choice);
    return status;
}

static int list_call(void *argument)
{
    struct subject *s = argument;
    weft_op_list *list;
    weft_status status = weft_op_list_create(&s->call, &s->options, &list);

    if (status == WEFT_OK) weft_op_list_release(&list);
    return status;
}

/* Rows of one KIND are compared by their promise. */
static const struct row {
    const char *kind, *op, *mesh, *inputs[INPUTS];
    int (*operation)(void *);
    bool cached;
    uint64_t limit_ns;
} rows[] = {
    {"cached",
     "linear",
     "8",
     {"f32[64,512] S(0)", "f32[256,512] R", "f32[256] R"},
     propose_call,
     true,
     100},
    {"cached",
     "linear",
     "2x4",
     {"f32[64,512] S(0),R", "f32[256,512] R,S(0)", "f32[256] R,S(0)"},
     propose_call,
     true,
     100},
    {"match", "add", "8", {"f32[64,512] S(0)", "f32[64,512] S(0)"}, check_call, false, 2000},
    {"match",
     "mm",
     "2x4",
     {"f32[64,512] S(0),S(1)", "f32[512,256] R,S(0)"},
     check_call,
     false,
     2000},
    {"match",
     "linear",
     "2x4",
     {"f32[64,512] S(0),R", "f32[256,512] R,S(0)", "f32[256] R,S(0)"},
     check_call,
     false,
     2000},
    {"propose", "add", "8", {"f32[64,512] S(0)", "f32[64,512] S(1)"}, propose_call, false, 50000},
    {"propose", "mm", "8", {"f32[64,512] S(0)", "f32[512,256] S(0)"}, propose_call, false, 50000},
    {"propose",
     "add",
     "2x4",
     {"f32[64,512] S(0),R", "f32[64,512] R,S(1)"},
     propose_call,
     false,
     50000},
    {"propose",
     "mm",
     "2x4",
     {"f32[64,512] S(0),P", "f32[512,256] S(0),S(1)"},
     propose_call,
     false,
     50000},
    {"propose",
     "linear",
     "2x4",
     {"f32[64,512] S(0),P", "f32[256,512] R,S(0)", "f32[256] R,S(0)"},
     propose_call,
     false,
     50000},
    {"propose", "softmax", "2x4", {"f32[64,512] P,S(1)"}, propose_call, false, 50000},
    {"propose",
     "mm",
     "2x2x2",
     {"f32[64,512] S(0),P,R", "f32[512,256] S(0),S(1),S(1)"},
     propose_call,
     false,
     500000},
    {"propose",
     "linear",
     "2x2x2",
     {"f32[64,512] S(0),P,R", "f32[256,512] R,S(0),S(1)", "f32[256] R,S(0),R"},
     propose_call,
     false,
     500000},
    {"list", "mm", "2x4", {"f32[64,512] S(0),R", "f32[512,256] R,S(1)"}, list_call, false, 0},
};

static weft_status prepare(const struct row *row, struct subject *out)
{
    static const weft_op_attr dim = {.name = "dim", .kind = WEFT_ATTR_INT, .integer = -1};

    *out = (struct subject){.options = {.struct_size = sizeof out->options}};
    out->call = (weft_op_call){.struct_size = sizeof out->call,
                               .name = row->op,
                               .inputs = (const weft_spec *const *)out->inputs};
    if (!row->cached) out->options.allow = allow_all;
    if (strcmp(row->op, "softmax") == 0) {
        out->call.attr_size = sizeof(weft_op_attr);
        out->call.attrs = &dim;
        out->call.attr_count = 1;
    }
    WF_TRY(weft_mesh_parse(row->mesh, &out->mesh));
    for (uint32_t i = 0; i < INPUTS && row->inputs[i] != NULL; i++) {
        WF_TRY(weft_spec_parse(out->mesh, row->inputs[i], &out->inputs[i]));
        out->call.input_count++;
    }
    return WEFT_OK;
}

static weft_status measure(size_t index, uint64_t budget_ns, struct bench_times *times)
{
    const struct row *row = &rows[index];
    struct subject subject;
    weft_status status = prepare(row, &subject);

    if (status == WEFT_OK) status = bench_alone(row->operation, &subject, budget_ns, times);
    for (uint32_t i = 0; i < INPUTS; i++)
        weft_spec_release(&subject.inputs[i]);
    weft_mesh_release(&subject.mesh);
    return status;
}

static void add_inputs(const struct row *row, struct wf_text *out)
{
    for (uint32_t i = 0; i < INPUTS && row->inputs[i] != NULL; i++)
        wf_text_add(out, "%s%s", i > 0 ? " ; " : "", row->inputs[i]);
}

static void add_text(struct wf_text *text, size_t index, const struct bench_times *times)
{
    const struct row *row = &rows[index];
    struct wf_text time = {0}, inputs = {0};

    wf_text_time(&time, times->median_ns);
    add_inputs(row, &inputs);
    wf_text_add(text, "%-8s %-8s %-6s %-63s %9s", row->kind, row->op, row->mesh,
                inputs.data != NULL ? inputs.data : "", time.data != NULL ? time.data : "");
    wf_text_free(&time);
    wf_text_free(&inputs);
    if (row->limit_ns != 0) {
        wf_text_add(text, times->median_ns < row->limit_ns ? "   under " : "   NOT under ");
        wf_text_time(text, row->limit_ns);
    }
    wf_text_char(text, '\n');
}

static void add_json(struct wf_json *json, size_t index)
{
    const struct row *row = &rows[index];

    wf_json_string(json, "kind", row->kind);
    wf_json_string(json, "op", row->op);
    wf_json_string(json, "mesh", row->mesh);
    wf_json_begin(json, "inputs", '[');
    for (uint32_t i = 0; i < INPUTS && row->inputs[i] != NULL; i++)
        wf_json_string(json, NULL, row->inputs[i]);
    wf_json_end(json, ']');
}

static uint64_t limit_ns(size_t index)
{
    return rows[index].limit_ns;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    static const struct bench_rows ops = {.name = "ops",
                                          .count = WF_COUNT(rows),
                                          .measure = measure,
                                          .add_text = add_text,
                                          .add_json = add_json,
                                          .limit_ns = limit_ns};

    return bench_rows_run(command, argc, argv, &ops);
}

const struct cli_command bench_ops = {
    .name = "bench ops",
    .summary = "measure checks and proposals of operators, with and without the cache",
    .arguments = "[--budget-ms N] [--json]",
    .example = "weft bench ops",
    .page = "performance.md",
    .options = bench_rows_options,
    .run = run,
};
