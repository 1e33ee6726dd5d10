/* bench_apply.c - `weft bench apply`: what weft_op_apply costs besides the kernel, on one rank. */
#include "bench/rows.h"
#include "timing/alone.h"

#include <stdio.h>

enum { MEMBERS = 1500, LISTS = 5, ROUNDS = 5 };

static const struct row {
    const char *name, *op, *spec;
    uint32_t inputs;
    bool keeps_outputs;
    uint64_t limit_ns;
} rows[] = {
    {"3 inputs, 1 output", "addcmul", "f32[16,4] S(0),R", 3, true, 400},
    {"3 inputs, output of 1 MiB", "addcmul", "f32[512,512] S(0),R", 3, true, 400},
    {"in place, 2 inputs", "mul_", "f32[16,4] S(0),R", 2, false, 0},
    {"AdamW of 1500 parameters", "adamw", "f32[16,4] S(0),R", LISTS *MEMBERS, false, 100000},
};

struct subject {
    const struct row *row;
    weft_context *context;
    weft_op_call call;
    weft_op_attr rate;
    weft_tensor *inputs[LISTS * MEMBERS];
};

static weft_status kernel(void *user, const weft_op_run *run)
{
    (void)user;
    (void)run;
    return WEFT_OK;
}

static int apply(void *self)
{
    struct subject *s = self;
    weft_tensor *out = NULL;
    bool keeps = s->row->keeps_outputs;
    weft_status status = weft_op_apply(s->context, &s->call, s->inputs, NULL, kernel, NULL, NULL,
                                       keeps ? 1 : 0, keeps ? &out : NULL);

    weft_tensor_release(&out);
    return status;
}

static weft_status prepare(const struct row *row, struct subject *s)
{
    weft_init_options alone = {.struct_size = sizeof alone, .size = 1};
    weft_spec *spec = NULL, *scalar = NULL;
    weft_mesh *mesh = NULL;
    weft_status status;

    *s = (struct subject){.row = row};
    s->rate = (weft_op_attr){.name = "lr", .kind = WEFT_ATTR_REAL, .real = 0.1};
    s->call =
        (weft_op_call){.struct_size = sizeof s->call, .name = row->op, .input_count = row->inputs};
    if (row->inputs == LISTS * MEMBERS) {
        s->call.attr_size = sizeof(weft_op_attr);
        s->call.attrs = &s->rate;
        s->call.attr_count = 1;
    }
    WF_TRY(weft_init(&alone, &s->context));
    WF_TRY(weft_mesh_parse("1x1", &mesh));
    status = weft_spec_parse(mesh, row->spec, &spec);
    if (status == WEFT_OK) status = weft_spec_parse(mesh, "f32[] R,R", &scalar);
    for (uint32_t i = 0; i < row->inputs && status == WEFT_OK; i++)
        status =
            weft_tensor_create(s->context, i < 4 * MEMBERS ? spec : scalar, NULL, &s->inputs[i]);
    weft_spec_release(&spec);
    weft_spec_release(&scalar);
    weft_mesh_release(&mesh);
    return status;
}

static void drop(struct subject *s)
{
    for (uint32_t i = 0; i < LISTS * MEMBERS; i++)
        weft_tensor_release(&s->inputs[i]);
    weft_context_release(&s->context);
}

/* The quietest round counts. */
static weft_status repeat(struct subject *s, uint64_t budget_ns, struct bench_times *out)
{
    uint64_t least = UINT64_MAX;

    for (int round = 0; round < ROUNDS; round++) {
        WF_TRY(bench_alone(apply, s, budget_ns / ROUNDS + 1, out));
        if (out->median_ns < least) least = out->median_ns;
    }
    out->median_ns = least;
    if (out->min_ns > least) out->min_ns = least;
    return WEFT_OK;
}

static weft_status measure(size_t index, uint64_t budget_ns, struct bench_times *times)
{
    static struct subject subject; /* too large for a stack */
    weft_status status = prepare(&rows[index], &subject);

    if (status == WEFT_OK) status = repeat(&subject, budget_ns, times);
    drop(&subject);
    return status;
}

static void add_text(struct wf_text *text, size_t index, const struct bench_times *times)
{
    struct wf_text time = {0};

    wf_text_time(&time, times->median_ns);
    wf_text_add(text, "%-26s %-8s %8s besides the kernel", rows[index].name, rows[index].op,
                time.data != NULL ? time.data : "");
    wf_text_free(&time);
    if (rows[index].limit_ns > 0) {
        wf_text_add(text, times->median_ns < rows[index].limit_ns ? "   under " : "   NOT under ");
        wf_text_time(text, rows[index].limit_ns);
    }
    wf_text_char(text, '\n');
}

static void add_json(struct wf_json *json, size_t index)
{
    wf_json_string(json, "name", rows[index].name);
    wf_json_string(json, "op", rows[index].op);
    wf_json_int(json, "inputs", rows[index].inputs);
}

static uint64_t limit_ns(size_t index)
{
    return rows[index].limit_ns;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    static const struct bench_rows applied = {.name = "apply",
                                              .count = WF_COUNT(rows),
                                              .measure = measure,
                                              .add_text = add_text,
                                              .add_json = add_json,
                                              .limit_ns = limit_ns};

    return bench_rows_run(command, argc, argv, &applied);
}

const struct cli_command bench_apply = {
    .name = "bench apply",
    .summary = "measure what weft_op_apply costs besides the kernel",
    .arguments = "[--budget-ms N] [--json]",
    .example = "weft bench apply",
    .page = "performance.md",
    .options = bench_rows_options,
    .run = run,
};
