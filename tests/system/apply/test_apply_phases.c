/* Operators over split dimensions: random calls, counts, special values, dtypes. */
#include "base/base.h"
#include "phase_cases.h"
#include "phase_kernels.h"
#include "phase_tests.h"
#include "support/counts.h"
#include "support/suite.h"
#include "weft/trace.h"

#include <math.h>

enum { CASES = 210 };

/* ---- random calls ---- */

struct wanted {
    int cases;
    weft_init_options options;
};

static weft_status run_cases(void *argument)
{
    const struct wanted *wanted = argument;
    weft_context *context;
    weft_status status;

    WF_TRY(weft_init(&wanted->options, &context));
    status = run_phase_cases(&(struct phase_place){.context = context}, wanted->cases);
    weft_context_release(&context);
    return status;
}

TEST(calls_on_ranks_give_the_numbers_of_whole_tensors)
{
    struct wanted wanted = {test_cases(CASES), {.struct_size = sizeof wanted.options}};

    test_seed_begin("apply_phases");
    run_on(RANKS, run_cases, &wanted);
}

TEST(calls_on_simulated_ranks_give_the_numbers_of_whole_tensors)
{
    struct wanted wanted = {test_cases(CASES),
                            {.struct_size = sizeof wanted.options, .simulated_ranks = RANKS}};

    test_seed_begin("apply_phases");
    ck_assert_msg(run_cases(&wanted) == WEFT_OK, "%s", weft_last_error());
}

/* ---- counts ---- */

static void release(uint32_t count, weft_tensor **tensors)
{
    for (uint32_t i = 0; i < count; i++)
        weft_tensor_release(&tensors[i]);
}

/* Apply CALL; *SENT and *RECEIVED become the bytes that this rank's operations had, *OPERATIONS
 * their number. */
static weft_status count(weft_context *context, const weft_op_call *call, weft_tensor **inputs,
                         size_t output_count, weft_tensor **outputs, struct counted *counts)
{
    weft_record_counts *counting = NULL;

    WF_TRY(weft_record_counts_create(context, &counting));
    WF_TRY(weft_op_apply_phases(context, call, inputs, NULL, phase_kernel, NULL, NULL, output_count,
                                outputs));
    return counts_take(counting, counts);
}

static uint64_t reductions(const struct counted *counts)
{
    return counts->operations[WEFT_RECORD_ALL_REDUCE];
}

enum { ROWS = 8, COLUMNS = 64 };

static weft_status count_softmax(weft_context *context)
{
    const weft_op_call softmax = call_of("softmax", 1, &dim_1, 1);
    const weft_op_call back = call_of("softmax_bwd", 2, &dim_1, 1);
    const weft_op_call var = call_of(
        "var", 1,
        &(weft_op_attr){.name = "dims", .kind = WEFT_ATTR_LIST, .list = (int64_t[]){1}, .count = 1},
        1);
    weft_tensor *x[2], *y = NULL;
    struct counted counts;

    WF_TRY(make(context, "dp=1,tp=4", "f32[8,64] R,S(1)", &x[0]));
    WF_TRY(count(context, &softmax, x, 1, &y, &counts));
    HOLDS(prints(y, "f32[8,64] R,S(1)"));
    HOLDS(reductions(&counts) == 2 && counts.sums.sent == 2 * ROWS * sizeof(float));
    HOLDS(counts.sums.received == counts.sums.sent && counts.sums.implicit_moves == 0);
    x[1] = y;
    WF_TRY(count(context, &back, x, 1, &y, &counts));
    HOLDS(reductions(&counts) == 1 && counts.sums.sent == ROWS * sizeof(float));
    weft_tensor_release(&y);
    weft_tensor_release(&x[1]); /* a replica is cut to the layout of the other input */
    WF_TRY(make(context, "dp=1,tp=4", "f32[8,64] R,R", &x[1]));
    WF_TRY(count(context, &back, x, 1, &y, &counts));
    HOLDS(reductions(&counts) == 1 && counts.sums.sent == ROWS * sizeof(float));
    HOLDS(prints(y, "f32[8,64] R,S(1)"));
    weft_tensor_release(&y);
    WF_TRY(count(context, &var, x, 1, &y, &counts));
    HOLDS(prints(y, "f32[8] R,R"));
    HOLDS(reductions(&counts) == 2 && counts.sums.sent == 2 * ROWS * sizeof(float));
    weft_tensor_release(&y);
    release(2, x);
    return WEFT_OK;
}

/* Sums of integers, also those of runs, are i64. */
static weft_status expect_i64(void *user, const weft_op_run *run)
{
    (void)user;
    return weft_spec_dtype(run->outputs[0].spec) == WEFT_DTYPE_I64
               ? WEFT_OK
               : weft_fail(WEFT_ERR_INTERNAL, "%s is not i64", run->name);
}

static weft_status sum_integers(weft_context *context)
{
    const weft_op_call scan = call_of("cumsum", 1, &dim_1, 1);
    weft_tensor *x, *y = NULL;

    WF_TRY(make(context, "4", "i32[8,64] S(1)", &x));
    WF_TRY(weft_op_apply_phases(context, &scan, &x, NULL, expect_i64, NULL, NULL, 1, &y));
    HOLDS(prints(y, "i64[8,64] S(1)"));
    weft_tensor_release(&x);
    weft_tensor_release(&y);
    return WEFT_OK;
}

static weft_status count_norms(weft_context *context)
{
    const weft_op_attr dims = {.name = "dims", .kind = WEFT_ATTR_INT, .integer = 1};
    const weft_op_call norm = call_of("layer_norm", 3, &dims, 1);
    const weft_op_call rms = call_of("rms_norm", 2, &dims, 1);
    const weft_op_call back = call_of("layer_norm_bwd", 5, &dims, 1);
    const weft_op_call scan = call_of("cumsum", 1, &dim_1, 1);
    weft_tensor *x[5] = {NULL}, *y[3] = {NULL}, *d[3] = {NULL};
    struct counted counts;

    WF_TRY(make(context, "dp=1,tp=4", "f32[8,64] R,S(1)", &x[0]));
    WF_TRY(make(context, "dp=1,tp=4", "f32[64] R,S(0)", &x[1])); /* there is no bias */
    WF_TRY(count(context, &norm, x, 3, y, &counts));
    HOLDS(prints(y[0], "f32[8,64] R,S(1)") && prints(y[2], "f32[8,1] R,R"));
    HOLDS(reductions(&counts) == 2 && counts.sums.sent == 2 * ROWS * sizeof(float));
    x[2] = y[1], x[3] = y[2], x[4] = x[1], x[1] = y[0];
    WF_TRY(count(context, &back, x, 3, d, &counts));
    HOLDS(prints(d[0], "f32[8,64] R,S(1)") && prints(d[2], "f32[64] R,S(0)"));
    HOLDS(reductions(&counts) == 1 && counts.sums.sent == 2 * ROWS * sizeof(float));
    release(3, d);
    release(3, y);
    x[1] = x[4];
    WF_TRY(count(context, &rms, x, 3, y, &counts));
    HOLDS(reductions(&counts) == 1 && counts.sums.sent == ROWS * sizeof(float));
    release(2, y);
    WF_TRY(count(context, &scan, x, 3, y, &counts));
    HOLDS(prints(y[0], "f32[8,64] R,S(1)"));
    HOLDS(counts.sums.received <= 4 * ROWS * (sizeof(float) + sizeof(int64_t)));
    release(1, y);
    release(2, x);
    return WEFT_OK;
}

static weft_status count_best(weft_context *context)
{
    const weft_op_attr attrs[] = {dim_1, {.name = "k", .kind = WEFT_ATTR_INT, .integer = 3}};
    const weft_op_call topk = call_of("topk", 1, attrs, 2);
    const uint64_t pair = sizeof(float) + sizeof(int64_t);
    weft_tensor *x, *y[2] = {NULL};
    struct counted counts;

    WF_TRY(make(context, "tp=4", "f32[8,64] S(1)", &x));
    WF_TRY(count(context, &topk, &x, 2, y, &counts));
    HOLDS(prints(y[0], "f32[8,3] R") && prints(y[1], "i64[8,3] R"));
    HOLDS(counts.sums.received <= 4 * 3 * ROWS * pair);
    release(2, y);
    weft_tensor_release(&x);
    return WEFT_OK;
}

static weft_status count_loss(weft_context *context)
{
    const weft_op_attr none = {.name = "reduction", .kind = WEFT_ATTR_TEXT, .text = "none"};
    const weft_op_call loss = call_of("cross_entropy", 2, &none, 1);
    const weft_op_call back = call_of("cross_entropy_bwd", 4, &none, 1);
    weft_tensor *x[2], *out[3] = {NULL}, *all[4], *d = NULL;
    struct counted counts;

    WF_TRY(make(context, "tp=4", "f32[8,64] S(1)", &x[0]));
    WF_TRY(make(context, "tp=4", "i64[8] R", &x[1]));
    WF_TRY(count(context, &loss, x, 3, out, &counts));
    HOLDS(prints(out[0], "f32[8] R") && prints(out[1], "f32[8] R") && out[2] == NULL);
    HOLDS(fabsf(((float *)weft_tensor_memory(out[0]))[0] - logf(COLUMNS)) < 1e-5f);
    HOLDS(counts.sums.sent == 3 * ROWS * sizeof(float) && counts.sums.received == counts.sums.sent);
    all[0] = out[0], all[1] = x[0], all[2] = x[1], all[3] = out[1];
    WF_TRY(count(context, &back, all, 1, &d, &counts));
    HOLDS(counts.sums.sent == 0 && counts.sums.received == 0 && reductions(&counts) == 0);
    HOLDS(prints(d, "f32[8,64] S(1)"));
    weft_tensor_release(&d);
    release(2, out);
    release(2, x);
    return WEFT_OK;
}

TEST_ON_RANKS(RANKS, only_statistics_travel)
{
    weft_context *context;

    WF_TRY(weft_init(NULL, &context));
    WF_TRY(count_softmax(context));
    WF_TRY(count_norms(context));
    WF_TRY(sum_integers(context));
    WF_TRY(count_best(context));
    WF_TRY(count_loss(context));
    weft_context_release(&context);
    return WEFT_OK;
}

/* ---- special values ---- */

/* A tensor of 2 rows and 4 columns, one column per rank. */
static weft_status make_columns(weft_context *context, const float *rows, weft_tensor **out)
{
    float mine[2] = {rows[weft_rank(context)], rows[4 + weft_rank(context)]};

    WF_TRY(make(context, "4", "f32[2,4] S(1)", out));
    return weft_tensor_from_host(*out, mine, sizeof mine, NULL);
}

static weft_status best_of(weft_context *context, const char *name, const float *rows,
                           int64_t first, int64_t second)
{
    const weft_op_attr attrs[] = {{.name = "dims", .kind = WEFT_ATTR_INT, .integer = 1},
                                  {.name = "dims", .kind = WEFT_ATTR_INT, .integer = -1}};
    weft_tensor *x, *i = NULL;

    WF_TRY(make_columns(context, rows, &x));
    for (int a = 0; a < 2; a++) {
        const weft_op_call call = call_of(name, 1, &attrs[a], 1);

        WF_TRY(weft_op_apply_phases(context, &call, &x, NULL, phase_kernel, NULL, NULL, 1, &i));
        HOLDS(((int64_t *)weft_tensor_memory(i))[0] == first);
        HOLDS(((int64_t *)weft_tensor_memory(i))[1] == second);
        weft_tensor_release(&i);
    }
    weft_tensor_release(&x);
    return WEFT_OK;
}

TEST_ON_RANKS(RANKS, ties_have_the_lowest_index_and_one_rank_with_nan_is_enough)
{
    static const float ties[] = {1, 3, 3, 2, -1, -1, -1, -1};
    static const float holes[] = {1, NAN, NAN, 9, -INFINITY, -INFINITY, -INFINITY, -INFINITY};
    const weft_op_call softmax = call_of("softmax", 1, &dim_1, 1);
    const weft_op_call safe = call_of("safe_softmax", 1, &dim_1, 1);
    weft_tensor *x, *y = NULL;
    weft_context *context;

    WF_TRY(weft_init(NULL, &context));
    WF_TRY(best_of(context, "argmax", ties, 1, 0));
    WF_TRY(best_of(context, "argmin", ties, 0, 0));
    WF_TRY(best_of(context, "argmax", holes, 1, 0));
    WF_TRY(best_of(context, "argmin", holes, 1, 0));
    WF_TRY(make_columns(context, holes, &x));
    WF_TRY(weft_op_apply_phases(context, &softmax, &x, NULL, phase_kernel, NULL, NULL, 1, &y));
    HOLDS(isnan(((float *)weft_tensor_memory(y))[0]) && isnan(((float *)weft_tensor_memory(y))[1]));
    weft_tensor_release(&y);
    WF_TRY(weft_op_apply_phases(context, &safe, &x, NULL, phase_kernel, NULL, NULL, 1, &y));
    HOLDS(isnan(((float *)weft_tensor_memory(y))[0]) && ((float *)weft_tensor_memory(y))[1] == 0);
    weft_tensor_release(&y);
    weft_tensor_release(&x);
    weft_context_release(&context);
    return WEFT_OK;
}

/* ---- dtypes ---- */

/* Statistics have the dtype USER, other outputs that of x. */
static weft_status check_types(void *user, const weft_op_run *run)
{
    const char *phase = strrchr(run->name, '.') + 1;
    bool is_statistic = strcmp(phase, "max") == 0 || strcmp(phase, "sum_exp") == 0;
    uint32_t want = is_statistic ? *(const uint32_t *)user : weft_spec_dtype(run->inputs[0].spec);

    if (weft_spec_dtype(run->outputs[0].spec) != want)
        return weft_fail(WEFT_ERR_INTERNAL, "%s has the dtype %s", run->name,
                         weft_dtype_name(weft_spec_dtype(run->outputs[0].spec)));
    memset(run->outputs[0].memory, 0, weft_spec_shard_bytes(run->outputs[0].spec, run->rank));
    return WEFT_OK;
}

TEST_ON_RANKS(2, statistics_are_f32_or_f64)
{
    static const struct {
        const char *x, *y;
        uint32_t statistic;
    } types[] = {{"bf16[4,8] S(1)", "bf16[4,8] S(1)", WEFT_DTYPE_F32},
                 {"f16[4,8] S(1)", "f16[4,8] S(1)", WEFT_DTYPE_F32},
                 {"f64[4,8] S(1)", "f64[4,8] S(1)", WEFT_DTYPE_F64}};
    const weft_op_call softmax = call_of("softmax", 1, &dim_1, 1);
    weft_context *context;

    WF_TRY(weft_init(NULL, &context));
    for (size_t i = 0; i < WF_COUNT(types); i++) {
        uint32_t statistic = types[i].statistic;
        OWNED(weft_tensor) *y = NULL;
        OWNED(weft_tensor) *x = NULL;

        WF_TRY(make(context, "2", types[i].x, &x));
        WF_TRY(weft_op_apply_phases(context, &softmax, &x, NULL, check_types, &statistic, NULL, 1,
                                    &y));
        HOLDS(prints(y, types[i].y));
    }
    weft_context_release(&context);
    return WEFT_OK;
}
