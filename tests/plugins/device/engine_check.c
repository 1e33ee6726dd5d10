/* engine_check.c - one rank that does with device memory what an engine does: it applies operators
 * by kernels of the device, also those that communicate between their phases, and saves and loads
 * tensors.  Started by `weft run` with any number of ranks; prints JSON.
 *
 *     engine_check PATH        of a checkpoint to write, which all ranks see */
#include "expect.h"
#include "system/apply/mirror.h"
#include "system/apply/phase_cases.h"
#include "system/apply/phase_kernels.h"
#include "weft/apply.h"
#include "weft/file.h"
#include "weft/random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 96, COLUMNS = 130, PHASE_CASES = 84 };

static weft_spec *rows, *columns;

/* ---- kernels of the engine, made of kernels of the device ---- */

static int calls;

/* The inputs are combined element by element; `sum` adds the rows of one. */
static weft_status compute(void *user, const weft_op_run *run)
{
    const weft_plugin *plugin = weft_context_plugin(run->context);
    void *device = weft_context_device(run->context);
    const weft_tensor_local *out = &run->outputs[0];
    const void *sources[ROWS];
    uint32_t count = (uint32_t)run->input_count, reduction = WEFT_REDUCE_SUM;

    (void)user;
    calls++;
    if (strcmp(run->name, "mul") == 0) reduction = WEFT_REDUCE_PROD;
    if (strcmp(run->name, "maximum") == 0) reduction = WEFT_REDUCE_MAX;
    for (uint32_t i = 0; i < count; i++)
        sources[i] = run->inputs[i].memory;
    if (strcmp(run->name, "sum") == 0) {
        const weft_tensor_local *x = &run->inputs[0];

        count = (uint32_t)x->shard->shape[0];
        for (uint32_t i = 0; i < count; i++)
            sources[i] = (const float *)x->memory + (int64_t)i * x->strides[0];
    }
    return plugin->kernel->reduce(device, WEFT_DTYPE_F32, reduction, (uint64_t)out->shard->elements,
                                  count, sources, out->memory, run->stream);
}

static weft_tensor *filled(const weft_spec *spec, double value)
{
    weft_tensor *tensor = NULL;

    must(weft_tensor_create(context, spec, NULL, &tensor), "weft_tensor_create");
    must(weft_tensor_fill(tensor, value, stream), "weft_tensor_fill");
    return tensor;
}

/* Inputs may be moved. */
static const weft_op_apply_options made = {.struct_size = sizeof made, .moves = WEFT_OP_MOVES_MADE};

static weft_tensor *apply(const char *name, weft_tensor *a, weft_tensor *b,
                          const weft_op_attr *attr)
{
    weft_op_call call = {.struct_size = sizeof call,
                         .name = name,
                         .input_count = b != NULL ? 2 : 1,
                         .attr_count = attr != NULL,
                         .attr_size = sizeof(weft_op_attr),
                         .attrs = attr};
    weft_tensor *inputs[] = {a, b}, *out = NULL;

    must(weft_op_apply(context, &call, inputs, &made, compute, NULL, stream, 1, &out), name);
    return out;
}

/* All elements of TENSOR, replicated, are VALUE. */
static void expect_all(weft_tensor *tensor, float value, const char *what)
{
    static float host[ROWS * COLUMNS];
    weft_tensor *full = NULL;

    must(weft_tensor_full(tensor, WEFT_EVERY_RANK, NULL, stream, &full), what);
    must(weft_tensor_to_host(full, host, sizeof host, stream), what);
    for (int64_t i = 0; i < weft_tensor_shard(full)->elements; i++)
        expect(host[i] == value, what);
    weft_tensor_release(&full);
}

static void check_apply(void)
{
    static const int64_t first[] = {0};
    const weft_op_attr dims = {.name = "dims", .kind = WEFT_ATTR_LIST, .count = 1, .list = first};
    weft_tensor *x = filled(rows, 2), *y = filled(rows, 3), *turned = filled(columns, 5), *out;

    out = apply("add", x, y, NULL);
    expect_all(out, 5, "add is wrong");
    weft_tensor_release(&out);
    out = apply("mul", x, y, NULL);
    expect_all(out, 6, "mul is wrong");
    weft_tensor_release(&out);
    out = apply("sum", y, NULL, &dims); /* of a split dimension: a partial */
    expect_all(out, 3 * ROWS, "sum is wrong");
    weft_tensor_release(&out);
    expect(calls == 3, "a kernel was not called once per operator");
    out = apply("maximum", x, turned, NULL);
    expect_all(out, 5, "maximum with a move is wrong");
    weft_tensor_release(&out);
    weft_tensor_release(&x);
    weft_tensor_release(&y);
    weft_tensor_release(&turned);
}

/* ---- operators that communicate between their phases ---- */

static int device_phases;

/* The maximum or the sum of each column of X, by a kernel of the device. */
static weft_status reduce_columns(const weft_op_run *run, uint32_t reduction)
{
    const weft_tensor_local *x = &run->inputs[0], *out = &run->outputs[0];
    const void *sources[ROWS];
    uint32_t count = (uint32_t)x->shard->shape[0];

    for (uint32_t i = 0; i < count; i++)
        sources[i] = (const float *)x->memory + (int64_t)i * x->strides[0];
    device_phases++;
    return weft_context_plugin(run->context)
        ->kernel->reduce(weft_context_device(run->context), WEFT_DTYPE_F32, reduction,
                         (uint64_t)out->shard->elements, count, sources, out->memory, run->stream);
}

static bool is_row_major(const weft_tensor_local *t)
{
    int64_t stride = 1;

    for (int32_t d = t->shard->dims - 1; d >= 0; stride *= t->shard->shape[d--])
        if (t->shard->shape[d] > 1 && t->strides[d] != stride) return false;
    return true;
}

/* Statistics over the first dimension are those of the device; the other phases run on the host. */
static weft_status phase_by_device(void *user, const weft_op_run *run)
{
    const weft_tensor_local *x = &run->inputs[0];
    const char *phase = strrchr(run->name, '.');
    bool is_max = phase != NULL && strcmp(phase, ".max") == 0;
    bool is_sum = phase != NULL && strcmp(phase, ".sum") == 0;

    if ((is_max || is_sum) && x->memory != NULL && x->shard->dims > 0 &&
        reduced_dims(run, x) == 1 && is_row_major(x) && strncmp(run->name, "cumsum", 6) != 0)
        return reduce_columns(run, is_max ? WEFT_REDUCE_MAX : WEFT_REDUCE_SUM);
    return mirror_kernel(user, run);
}

static weft_tensor *apply_phases(const weft_op_call *call, weft_tensor *x)
{
    struct mirror mirror = {phase_kernel, NULL};
    weft_tensor *out[WEFT_MAX_PHASE_OUTPUTS] = {NULL};

    must(weft_op_apply_phases(context, call, &x, &made, phase_by_device, &mirror, stream,
                              WEFT_MAX_PHASE_OUTPUTS, out),
         call->name);
    return out[0];
}

/* The rows of x are split: the result is that of the whole x, which every rank has. */
static void compare_with_one_rank(const char *name, const char *attr)
{
    const weft_op_attr first = {.name = attr, .kind = WEFT_ATTR_INT};
    weft_op_call call = {.struct_size = sizeof call,
                         .name = name,
                         .input_count = 1,
                         .attr_count = 1,
                         .attr_size = sizeof(weft_op_attr),
                         .attrs = &first};
    weft_tensor_difference_info info = {.struct_size = sizeof info};
    weft_tensor *x = filled(rows, 0), *whole = NULL, *expected, *got;
    weft_random random = {.seed = 7};

    must(weft_tensor_normal(x, &random, 0, 1, stream), "weft_tensor_normal");
    must(weft_tensor_full(x, WEFT_EVERY_RANK, NULL, stream, &whole), "weft_tensor_full");
    expected = apply_phases(&call, whole);
    got = apply_phases(&call, x);
    must(weft_tensor_compare(expected, got, NULL, stream, &info), "weft_tensor_compare");
    expect(info.equal || info.largest < 1e-4, name);
    weft_tensor_release(&expected);
    weft_tensor_release(&got);
    weft_tensor_release(&whole);
    weft_tensor_release(&x);
}

static void check_phases(void)
{
    const struct phase_place place = {context, stream, phase_by_device};

    if (weft_size(context) < 2) return;
    compare_with_one_rank("softmax", "dim"); /* each has one statistic of the device */
    compare_with_one_rank("logsumexp", "dims");
    compare_with_one_rank("var", "dims");
    expect(device_phases == 3, "a statistic was not computed by the device");
    must(run_phase_cases(&place, PHASE_CASES), "run_phase_cases");
}

/* ---- checkpoints ---- */

static void check_loaded(const char *path, weft_tensor *const *saved)
{
    weft_checkpoint *from = NULL;
    weft_layout_file *layout = NULL;
    weft_tensor *loaded[2] = {NULL};
    char text[64];

    snprintf(text, sizeof text, "mesh %d\n* S(1)", weft_size(context));
    must(weft_layout_file_parse(text, NULL, &layout), "weft_layout_file_parse");
    must(weft_checkpoint_open(path, &from), "weft_checkpoint_open");
    must(weft_load(context, from, layout, NULL, loaded), "weft_load");
    for (int i = 0; i < 2; i++) {
        weft_tensor_difference_info info = {.struct_size = sizeof info};

        must(weft_tensor_compare(loaded[i], saved[i], NULL, stream, &info), "weft_tensor_compare");
        expect(info.equal, "a loaded tensor has other elements");
        weft_tensor_release(&loaded[i]);
    }
    weft_checkpoint_close(&from);
    weft_layout_file_release(&layout);
}

static void check_checkpoints(const char *path)
{
    weft_save_options options = {.struct_size = sizeof options, .replace = true};
    weft_random random = {.seed = 9};
    weft_spec *specs[] = {rows, parse("bf16[96,130] R")};
    weft_tensor *tensors[2] = {NULL};
    weft_saving *saving = NULL;

    for (int i = 0; i < 2; i++) {
        weft_tensor_options named = {.struct_size = sizeof named, .name = i == 0 ? "a" : "b"};

        must(weft_tensor_create(context, specs[i], &named, &tensors[i]), "weft_tensor_create");
        must(weft_tensor_normal(tensors[i], &random, 0, 1, stream), "weft_tensor_normal");
    }
    options.stream = stream;
    must(weft_save(context, path, 2, tensors, &options), "weft_save");
    check_loaded(path, tensors);
    must(weft_save_begin(context, path, 2, tensors, &options, &saving), "weft_save_begin");
    must(weft_saving_wait(saving, WEFT_FOREVER), "weft_saving_wait");
    weft_saving_release(&saving);
    check_loaded(path, tensors);
    weft_tensor_release(&tensors[0]);
    weft_tensor_release(&tensors[1]);
    weft_spec_release(&specs[1]);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: engine_check PATH\n");
        return 2;
    }
    rank_begin();
    rows = parse("f32[96,130] S(0)");
    columns = parse("f32[96,130] S(1)");
    check_apply();
    check_phases();
    check_checkpoints(argv[1]);
    rank_wait();
    must(weft_barrier(weft_world(context), stream), "weft_barrier");
    rank_wait();
    if (weft_rank(context) == 0)
        printf("{\"backend\": \"%s\", \"ranks\": %d, \"passed\": [\"operators\", "
               "\"phases\", \"checkpoints\"]}\n",
               weft_context_plugin(context)->name, weft_size(context));
    weft_spec_release(&rows);
    weft_spec_release(&columns);
    rank_end();
    return 0;
}
