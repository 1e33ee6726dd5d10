/* Operators over split dimensions: kernels that fail, calls of the kernel, wrong calls. */
#include "phase_kernels.h"
#include "phase_tests.h"
#include "support/suite.h"

#include <stdio.h>

/* ---- faults ---- */

static weft_status fail_in(void *user, const weft_op_run *run)
{
    const char *phase = user;

    if (run->rank == 2 && strcmp(strrchr(run->name, '.') + 1, phase) == 0)
        return weft_fail(WEFT_ERR_DEVICE, "out of registers");
    return phase_kernel(NULL, run);
}

static weft_status fail_everywhere(void *argument)
{
    const weft_op_attr attrs[] = {dim_1, {.name = "k", .kind = WEFT_ATTR_INT, .integer = 2}};
    char *name = argument, operator[64], *phase;
    weft_op_call call;
    weft_tensor *x, *out[2] = {NULL};
    weft_context *context;

    snprintf(operator, sizeof operator, "%s", name);
    phase = strchr(operator, '.');
    *phase++ = '\0';
    call = call_of(operator, 1, attrs, strcmp(operator, "topk") == 0 ? 2 : 1);
    WF_TRY(weft_init(NULL, &context));
    WF_TRY(make(context, "4", "f32[2,8] S(1)", &x));
    HOLDS(weft_op_apply_phases(context, &call, &x, NULL, fail_in, phase, NULL, 2, out) != WEFT_OK);
    HOLDS(strstr(weft_last_error(), "rank 2: operator") != NULL);
    HOLDS(strstr(weft_last_error(), operator) != NULL);
    HOLDS(strstr(weft_last_error(), "out of registers") != NULL && out[0] == NULL);
    weft_tensor_release(&x);
    weft_context_release(&context);
    return WEFT_OK;
}

TEST(a_kernel_that_fails_on_one_rank_fails_all_in_the_same_call)
{
    static char *const phases[] = {"softmax.max", "softmax.sum_exp", "topk.candidates"};

    for (size_t i = 0; i < WF_COUNT(phases); i++)
        run_on(RANKS, fail_everywhere, phases[i]);
}

/* The others have their results; the next collective call has the error. */
TEST_ON_RANKS(RANKS, a_kernel_that_fails_in_the_last_phase_fails_the_next_collective)
{
    const weft_op_call softmax = call_of("softmax", 1, &dim_1, 1);
    weft_tensor *x, *y = NULL, *whole = NULL;
    weft_context *context;
    weft_status status;

    WF_TRY(weft_init(NULL, &context));
    WF_TRY(make(context, "4", "f32[2,8] S(1)", &x));
    status = weft_op_apply_phases(context, &softmax, &x, NULL, fail_in, "finish", NULL, 1, &y);
    HOLDS((status == WEFT_OK) == (weft_rank(context) != 2));
    HOLDS(weft_tensor_full(x, WEFT_EVERY_RANK, NULL, NULL, &whole) != WEFT_OK);
    HOLDS(strstr(weft_last_error(), "rank 2: operator softmax") != NULL);
    weft_tensor_release(&x);
    weft_tensor_release(&y);
    weft_context_release(&context);
    return WEFT_OK;
}

/* ---- calls of the kernel ---- */

struct calls {
    char names[256];
};

static weft_status note_call(void *user, const weft_op_run *run)
{
    struct calls *calls = user;

    snprintf(calls->names + strlen(calls->names), sizeof calls->names - strlen(calls->names), "%s ",
             run->name);
    return phase_kernel(NULL, run);
}

/* 3 columns on 4 ranks: the last one has none. */
TEST_ON_RANKS(RANKS, the_kernel_is_called_once_per_phase_where_there_are_elements)
{
    static const char phases[] = "softmax.max softmax.sum_exp softmax.finish ";
    const weft_op_call softmax = call_of("softmax", 1, &dim_1, 1);
    struct calls calls = {""}, whole = {""};
    weft_tensor *x, *y = NULL;
    weft_context *context;

    WF_TRY(weft_init(NULL, &context));
    WF_TRY(make(context, "4", "f32[2,3] S(1)", &x));
    WF_TRY(weft_op_apply_phases(context, &softmax, &x, NULL, note_call, &calls, NULL, 1, &y));
    HOLDS(strcmp(calls.names, weft_rank(context) < 3 ? phases : "") == 0);
    weft_tensor_release(&x);
    weft_tensor_release(&y);
    WF_TRY(make(context, "4", "f32[8,3] S(0)", &x));
    WF_TRY(weft_op_apply_phases(context, &softmax, &x, NULL, note_call, &whole, NULL, 1, &y));
    HOLDS(strcmp(whole.names, "softmax ") == 0);
    weft_tensor_release(&x);
    weft_tensor_release(&y);
    weft_context_release(&context);
    return WEFT_OK;
}

/* ---- memory ---- */

/* Apply CALL while each allocation fails in turn.  Afterwards as many blocks are live as after a
 * call that succeeds. */
static weft_status starve(weft_context *context, const weft_op_call *call, weft_tensor **inputs,
                          uint32_t outputs)
{
    weft_status status = WEFT_ERR_NO_MEMORY;
    int64_t live = 0;

    for (uint64_t n = 0; status != WEFT_OK || n < 2; n++) { /* first without a failure */
        weft_tensor *out[3] = {NULL};

        wf_mem_fail_at(n);
        status =
            weft_op_apply_phases(context, call, inputs, NULL, phase_kernel, NULL, NULL, 3, out);
        wf_mem_fail_at(0);
        HOLDS(status == WEFT_OK || status == WEFT_ERR_NO_MEMORY);
        HOLDS(status == WEFT_OK || out[0] == NULL);
        for (uint32_t i = 0; i < outputs; i++)
            weft_tensor_release(&out[i]);
        if (n == 0) live = wf_mem_live();
        if (wf_mem_live() != live)
            return weft_fail(WEFT_ERR_INTERNAL, "%s: allocation %llu: %lld blocks, not %lld",
                             call->name, (unsigned long long)n, (long long)wf_mem_live(),
                             (long long)live);
    }
    return WEFT_OK;
}

static weft_status run_out_of_memory(void)
{
    const weft_init_options options = {.struct_size = sizeof options, .simulated_ranks = 4};
    const weft_op_attr k[] = {dim_1, {.name = "k", .kind = WEFT_ATTR_INT, .integer = 3}};
    const weft_op_attr mean = {.name = "reduction", .kind = WEFT_ATTR_TEXT, .text = "mean"};
    const weft_op_call softmax = call_of("softmax", 1, &dim_1, 1), topk = call_of("topk", 1, k, 2);
    const weft_op_call loss = call_of("cross_entropy", 2, &mean, 1);
    weft_context *context;
    weft_tensor *inputs[2];

    WF_TRY(weft_init(&options, &context));
    WF_TRY(make(context, "2x2", "f32[4,8] S(0),S(1)", &inputs[0]));
    WF_TRY(make(context, "2x2", "i64[4] R,R", &inputs[1]));
    WF_TRY(starve(context, &softmax, inputs, 1));
    WF_TRY(starve(context, &topk, inputs, 2));
    WF_TRY(starve(context, &loss, inputs, 3));
    weft_tensor_release(&inputs[0]);
    weft_tensor_release(&inputs[1]);
    weft_context_release(&context);
    return WEFT_OK;
}

static weft_status run_norms_out_of_memory(void)
{
    const weft_init_options options = {.struct_size = sizeof options, .simulated_ranks = 4};
    const weft_op_attr dims = {.name = "dims", .kind = WEFT_ATTR_INT, .integer = 1};
    const weft_op_call norm = call_of("layer_norm_bwd", 5, &dims, 1);
    const weft_op_call scan = call_of("cumsum", 1, &dim_1, 1);
    weft_context *context;
    weft_tensor *inputs[5];

    WF_TRY(weft_init(&options, &context));
    for (int i = 0; i < 2; i++)
        WF_TRY(make(context, "2x2", "f32[4,8] S(0),S(1)", &inputs[i]));
    for (int i = 2; i < 4; i++)
        WF_TRY(make(context, "2x2", "f32[4,1] S(0),R", &inputs[i]));
    WF_TRY(make(context, "2x2", "f32[8] R,R", &inputs[4]));
    WF_TRY(starve(context, &norm, inputs, 3));
    WF_TRY(starve(context, &scan, inputs, 1));
    for (int i = 0; i < 5; i++)
        weft_tensor_release(&inputs[i]);
    weft_context_release(&context);
    return WEFT_OK;
}

TEST(a_call_without_memory_fails_and_keeps_nothing)
{
    ck_assert_msg(run_out_of_memory() == WEFT_OK, "%s", weft_last_error());
    ck_assert_msg(run_norms_out_of_memory() == WEFT_OK, "%s", weft_last_error());
}

/* ---- wrong calls ---- */

static weft_status refuse_calls(void *unused)
{
    const weft_op_attr wrong_dim = {.name = "dim", .kind = WEFT_ATTR_INT, .integer = 2};
    const weft_op_attr unknown = {.name = "dimm", .kind = WEFT_ATTR_INT};
    const weft_op_attr twice[] = {dim_1, dim_1};
    const weft_op_attr large[] = {dim_1, {.name = "k", .kind = WEFT_ATTR_INT, .integer = 9}};
    weft_op_call softmax = call_of("softmax", 1, &dim_1, 1), call;
    weft_tensor *x, *i, *p, *rows, *inputs[2], *out[3] = {NULL};
    weft_context *context;

#define APPLY(call_, inputs_)                                                                      \
    weft_op_apply_phases(context, call_, inputs_, NULL, phase_kernel, NULL, NULL, 3, out)
    (void)unused;
    WF_TRY(weft_init(NULL, &context));
    WF_TRY(make(context, "2", "f32[4,8] S(1)", &x));
    WF_TRY(make(context, "2", "i64[4,8] S(1)", &i));
    WF_TRY(make(context, "2x1", "f32[4,8] P,S(1)", &p));
    WF_TRY(make(context, "2", "f32[4,8] S(0)", &rows));
    call = call_of("mm", 1, NULL, 0);
    FAILS(APPLY(&call, &x), WEFT_ERR_UNSUPPORTED,
          "weft_op_apply_phases: operator mm: it has no phases");
    call = call_of("softmax", 2, &dim_1, 1);
    inputs[0] = inputs[1] = x;
    REFUSES(APPLY(&call, inputs), "the call has 2 inputs");
    call = call_of("softmax", 1, NULL, 0);
    REFUSES(APPLY(&call, &x), "it needs the attribute dim");
    call = call_of("softmax", 1, &wrong_dim, 1);
    REFUSES(APPLY(&call, &x), "dimension 2 does not exist; the input has 2");
    call = call_of("softmax", 1, &unknown, 1);
    REFUSES(APPLY(&call, &x), "it has no attribute dimm; its attributes: dim");
    call = call_of("softmax", 1, twice, 2);
    REFUSES(APPLY(&call, &x), "attribute dim twice");
    call = call_of("topk", 1, large, 2);
    REFUSES(APPLY(&call, &x), "attribute k is 9; it must be from 0 to 8");
    REFUSES(APPLY(&softmax, &i), "input 0 has the dtype i64");
    call = call_of("softmax_bwd", 2, &dim_1, 1);
    inputs[0] = rows;
    FAILS(APPLY(&call, inputs), WEFT_ERR_MISMATCH,
          "input 0 has the layout f32[4,8] S(0); the operator needs f32[4,8] S(1)");
    inputs[0] = p;
    REFUSES(APPLY(&call, inputs), "input 0 is on another mesh than input 1");
    call = call_of("cross_entropy", 2, NULL, 0);
    inputs[0] = x, inputs[1] = i;
    REFUSES(APPLY(&call, inputs), "it needs the attribute reduction: none, sum or mean");
    inputs[1] = NULL;
    REFUSES(APPLY(&call, inputs), "inputs[1]");
    inputs[1] = rows;
    REFUSES(APPLY(&call, inputs), "input 1 has the dtype f32; expected i64");
    FAILS(APPLY(&softmax, &p), WEFT_ERR_MISMATCH,
          "input 0 has the layout f32[4,8] P(sum),S(1); the operator needs f32[4,8] R,S(1)");
    HOLDS(out[0] == NULL);
#undef APPLY
    weft_tensor_release(&x);
    weft_tensor_release(&i);
    weft_tensor_release(&p);
    weft_tensor_release(&rows);
    weft_context_release(&context);
    return WEFT_OK;
}

/* Names and values that do not exist; the texts say which do. */
static weft_status refuse_words(void *unused)
{
    const weft_op_attr unknown = {.name = "dimm", .kind = WEFT_ATTR_INT};
    const weft_op_attr average = {.name = "reduction", .kind = WEFT_ATTR_TEXT, .text = "average"};
    weft_op_call calls[] = {
        call_of("sofmax", 1, &dim_1, 1),          call_of("aten.softmax.int", 1, &dim_1, 1),
        call_of("softmax", 1, &unknown, 1),       call_of("topk", 1, &dim_1, 1),
        call_of("cross_entropy", 2, &average, 1),
    };
    static const char *const texts[] = {
        "weft_op_apply_phases: there is no rule for operator \"sofmax\"; did you mean softmax?",
        "weft_op_apply_phases: operator aten.softmax.int: phases are found by weft's names only; "
        "write softmax",
        "weft_op_apply_phases: operator softmax: it has no attribute dimm; its attributes: dim",
        "weft_op_apply_phases: operator topk: it needs the attribute k, an integer from 0 to 8",
        "weft_op_apply_phases: operator cross_entropy: attribute reduction is \"average\"; "
        "expected none, sum or mean",
    };
    weft_tensor *inputs[2], *out[3] = {NULL};
    weft_context *context;

    (void)unused;
    WF_TRY(weft_init(NULL, &context));
    WF_TRY(make(context, "2", "f32[4,8] S(1)", &inputs[0]));
    WF_TRY(make(context, "2", "i64[4] R", &inputs[1]));
    for (size_t i = 0; i < WF_COUNT(calls); i++) {
        HOLDS(weft_op_apply_phases(context, &calls[i], inputs, NULL, phase_kernel, NULL, NULL, 3,
                                   out) != WEFT_OK);
        HOLDS(strcmp(weft_last_error(), texts[i]) == 0);
    }
    weft_tensor_release(&inputs[0]);
    weft_tensor_release(&inputs[1]);
    weft_context_release(&context);
    return WEFT_OK;
}

static weft_status refuse_norms(void *unused)
{
    const weft_op_attr dims[] = {{.name = "dims", .kind = WEFT_ATTR_INT, .integer = 0},
                                 {.name = "dims", .kind = WEFT_ATTR_INT, .integer = -1}};
    const weft_op_call first = call_of("rms_norm", 1, &dims[0], 1);
    const weft_op_call last = call_of("rms_norm", 2, &dims[1], 1);
    weft_tensor *inputs[2], *out[3] = {NULL};
    weft_context *context;

    (void)unused;
    WF_TRY(weft_init(NULL, &context));
    WF_TRY(make(context, "2", "f32[4,8] S(0)", &inputs[0]));
    WF_TRY(make(context, "2", "f32[4,8] S(1)", &inputs[1]));
    REFUSES(weft_op_apply_phases(context, &first, inputs, NULL, phase_kernel, NULL, NULL, 3, out),
            "the attribute dims must list the last dimensions of x");
    weft_tensor_release(&inputs[0]);
    WF_TRY(make(context, "2", "f32[4,8] S(1)", &inputs[0]));
    REFUSES(weft_op_apply_phases(context, &last, inputs, NULL, phase_kernel, NULL, NULL, 3, out),
            "input 1 has the shape [4,8]; expected [8]");
    HOLDS(out[0] == NULL);
    weft_tensor_release(&inputs[0]);
    weft_tensor_release(&inputs[1]);
    weft_context_release(&context);
    return WEFT_OK;
}

static weft_status refuse_losses_and_sums(void *unused)
{
    const weft_op_attr mean = {.name = "reduction", .kind = WEFT_ATTR_TEXT, .text = "mean"};
    const weft_op_attr sum = {.name = "reduction", .kind = WEFT_ATTR_TEXT, .text = "sum"};
    const weft_op_call without = call_of("cross_entropy_bwd", 4, &mean, 1);
    const weft_op_call with = call_of("cross_entropy_bwd", 5, &sum, 1);
    const weft_op_call cumsum = call_of("cumsum", 1, &dim_1, 1);
    weft_tensor *x, *half, *targets, *complex, *out[3] = {NULL};
    weft_context *context;

    (void)unused;
    WF_TRY(weft_init(NULL, &context));
    WF_TRY(make(context, "2", "f32[4,8] S(1)", &x));
    WF_TRY(make(context, "2", "bf16[] R", &half));
    WF_TRY(make(context, "2", "i64[4] R", &targets));
    WF_TRY(make(context, "2", "c64[4,8] S(1)", &complex));
    weft_tensor *const inputs[] = {x, x, targets, x, x}, *const mixed[] = {half, x, targets, x, x};
    REFUSES(weft_op_apply_phases(context, &with, mixed, NULL, phase_kernel, NULL, NULL, 3, out),
            "operator cross_entropy_bwd: input g is bf16, and x is f32; cast one of them");
    REFUSES(weft_op_apply_phases(context, &without, inputs, NULL, phase_kernel, NULL, NULL, 3, out),
            "reduction mean needs input 4, z");
    REFUSES(weft_op_apply_phases(context, &with, inputs, NULL, phase_kernel, NULL, NULL, 3, out),
            "reduction sum must not have input 4");
    REFUSES(
        weft_op_apply_phases(context, &cumsum, &complex, NULL, phase_kernel, NULL, NULL, 3, out),
        "expected a real dtype");
    HOLDS(out[0] == NULL);
    weft_tensor_release(&x);
    weft_tensor_release(&half);
    weft_tensor_release(&targets);
    weft_tensor_release(&complex);
    weft_context_release(&context);
    return WEFT_OK;
}

TEST(wrong_calls_are_refused)
{
    run_on(2, refuse_losses_and_sums, NULL);
    run_on(2, refuse_calls, NULL);
    run_on(2, refuse_norms, NULL);
    run_on(2, refuse_words, NULL);
}

TEST_ON_RANKS(2, wrong_attributes_are_refused)
{
    const weft_op_attr nothing = {.name = "dims", .kind = WEFT_ATTR_LIST, .count = 1};
    const weft_op_attr text = {.name = "keepdim", .kind = WEFT_ATTR_TEXT, .text = "true"};
    const struct {
        const weft_op_attr *attr;
        const char *reason;
    } cases[] = {{&nothing, "weft_op_apply_phases: attribute 0, dims: its list is NULL"},
                 {&text, "attribute keepdim is true; it must be true or false"},
                 {NULL, "weft_op_call.attrs is NULL"}};
    weft_tensor *x, *out[3] = {NULL};
    weft_context *context;

    WF_TRY(weft_init(NULL, &context));
    WF_TRY(make(context, "2", "f32[4,8] S(1)", &x));
    for (size_t i = 0; i < WF_COUNT(cases); i++) {
        const weft_op_call call = call_of("logsumexp", 1, cases[i].attr, 1);

        REFUSES(weft_op_apply_phases(context, &call, &x, NULL, phase_kernel, NULL, NULL, 3, out),
                cases[i].reason);
    }
    weft_tensor_release(&x);
    weft_context_release(&context);
    return WEFT_OK;
}

static weft_status apply_replaced(void *unused)
{
    const weft_op_attr dim_0 = {.name = "dim", .kind = WEFT_ATTR_INT};
    const weft_op_call select = call_of("index_select", 2, &dim_0, 1);
    weft_tensor *inputs[2], *out[3] = {NULL};
    weft_context *context;

    (void)unused;
    WF_TRY(weft_init(NULL, &context));
    WF_TRY(make(context, "2", "f32[4] R", &inputs[0]));
    WF_TRY(make(context, "2", "f32[4] R", &inputs[1]));
    REFUSES(weft_op_apply_phases(context, &select, inputs, NULL, phase_kernel, NULL, NULL, 3, out),
            "operator index_select: its rule has 4 outputs; expected 1");
    weft_tensor_release(&inputs[0]);
    weft_tensor_release(&inputs[1]);
    weft_context_release(&context);
    return WEFT_OK;
}

TEST(a_rule_with_other_outputs_is_refused)
{
    ck_assert_int_eq(weft_op_register("index_select(dim): x[..] i[..] -> a[..] b[..] c[..] d[..]"),
                     WEFT_OK);
    run_on(2, apply_replaced, NULL);
    ck_assert_int_eq(weft_op_remove("index_select"), WEFT_OK);
}

/* A list of no dimensions is a list of all; a scalar has the dimensions 0 and -1. */
TEST_ON_RANKS(2, lists_of_dimensions_mean_what_rules_mean)
{
    const weft_op_attr none = {.name = "dims", .kind = WEFT_ATTR_LIST};
    const int64_t minus_1 = -1;
    const weft_op_attr last = {
        .name = "dims", .kind = WEFT_ATTR_LIST, .list = &minus_1, .count = 1};
    const weft_op_call all = call_of("logsumexp", 1, &none, 1);
    const weft_op_call one = call_of("logsumexp", 1, &last, 1);
    weft_tensor *x, *scalar, *y = NULL;
    weft_context *context;

    WF_TRY(weft_init(NULL, &context));
    WF_TRY(make(context, "2", "f32[8] S(0)", &x));
    WF_TRY(make(context, "2", "f32[] R", &scalar));
    WF_TRY(weft_op_apply_phases(context, &all, &x, NULL, phase_kernel, NULL, NULL, 1, &y));
    HOLDS(prints(y, "f32[] R"));
    weft_tensor_release(&y);
    WF_TRY(weft_op_apply_phases(context, &one, &scalar, NULL, phase_kernel, NULL, NULL, 1, &y));
    HOLDS(prints(y, "f32[] R"));
    weft_tensor_release(&y);
    weft_tensor_release(&x);
    weft_tensor_release(&scalar);
    weft_context_release(&context);
    return WEFT_OK;
}

static weft_status mix_contexts(void)
{
    const weft_init_options options = {.struct_size = sizeof options, .simulated_ranks = 2};
    const weft_op_call softmax = call_of("softmax", 1, &dim_1, 1);
    weft_context *context, *other;
    weft_tensor *x, *y = NULL;

    WF_TRY(weft_init(&options, &context));
    WF_TRY(weft_init(&options, &other));
    WF_TRY(make(other, "2", "f32[4,8] S(1)", &x));
    REFUSES(weft_op_apply_phases(context, &softmax, &x, NULL, phase_kernel, NULL, NULL, 1, &y),
            "inputs[0] belongs to another context");
    weft_tensor_release(&x);
    weft_context_release(&other);
    weft_context_release(&context);
    return WEFT_OK;
}

TEST(tensors_of_another_context_are_refused)
{
    ck_assert_msg(mix_contexts() == WEFT_OK, "%s", weft_last_error());
}
