/* The calls of gradients as data: which there are, their layouts, and what is refused. */
#include "kernels.h"
#include "phase_kernels.h"
#include "support/ops.h"
#include "support/suite.h"
#include "weft/context.h"
#include "weft/random.h"

static weft_op_backward *backward_of(const char *name, const char *mesh, const char *inputs,
                                     const char *attrs, const bool *wanted)
{
    weft_op_backward_options options = {.struct_size = sizeof options, .wanted = wanted};
    op_text text;
    weft_op_backward *backward = NULL;

    op_begin(&text, name, mesh, inputs, attrs, NULL);
    options.wanted_count = text.call.input_count;
    ck_assert_msg(weft_op_backward_create(&text.call, &options, &backward) == WEFT_OK, "%s",
                  weft_last_error());
    op_text_release(&text);
    return backward;
}

static const char *gradient_layout(const weft_op_backward *backward, uint32_t input)
{
    static char text[128];
    const weft_spec *spec =
        weft_op_backward_spec(backward, weft_op_backward_gradient(backward, input));

    if (spec == NULL) return "none";
    ck_assert_int_eq(weft_spec_print(spec, text, sizeof text, NULL), WEFT_OK);
    return text;
}

TEST(only_wanted_gradients_are_computed)
{
    const bool weights[] = {false, true}, none[] = {false, false};
    weft_op_backward *b =
        backward_of("mm", "dp=2,tp=2", "f64[8,6] S(0),R ; f64[6,4] R,S(1)", "", NULL);
    weft_op_backward_info info = {.struct_size = sizeof info};

    ck_assert_int_eq(weft_op_backward_get(b, &info), WEFT_OK);
    ck_assert_uint_eq(info.calls, 4);
    ck_assert_uint_eq(info.results, 4);
    ck_assert_str_eq(gradient_layout(b, 0), "f64[8,6] S(0),P(sum)");
    ck_assert_str_eq(gradient_layout(b, 1), "f64[6,4] P(sum),S(1)");
    ck_assert_ptr_null(weft_op_backward_gradient(b, 2));
    ck_assert_ptr_null(weft_op_backward_call(b, 4));
    weft_op_backward_release(&b);
    b = backward_of("mm", "dp=2,tp=2", "f64[8,6] S(0),R ; f64[6,4] R,S(1)", "", weights);
    ck_assert_int_eq(weft_op_backward_get(b, &info), WEFT_OK);
    ck_assert_uint_eq(info.calls, 2);
    ck_assert_str_eq(weft_op_backward_call(b, 0)->call->name, "transpose");
    ck_assert_uint_eq(weft_op_backward_call(b, 0)->operands[0].source, WEFT_OP_FROM_INPUT);
    ck_assert_str_eq(weft_op_backward_call(b, 1)->call->name, "mm");
    ck_assert_uint_eq(weft_op_backward_call(b, 1)->operands[0].source, WEFT_OP_FROM_RESULT);
    ck_assert_uint_eq(weft_op_backward_call(b, 1)->operands[1].source, WEFT_OP_FROM_GRADIENT);
    ck_assert_ptr_null(weft_op_backward_gradient(b, 0));
    weft_op_backward_release(&b);
    b = backward_of("mm", "dp=2,tp=2", "f64[8,6] S(0),R ; f64[6,4] R,S(1)", "", none);
    ck_assert_int_eq(weft_op_backward_get(b, &info), WEFT_OK);
    ck_assert_uint_eq(info.calls, 0);
    weft_op_backward_release(&b);
    /* a table in parts of rows, and indices in parts: the gradient has the layout of the table */
    b = backward_of("embedding", "dp=2,tp=2", "f32[9,4] R,S(0) ; i64[6] S(0),R", "", NULL);
    ck_assert_str_eq(gradient_layout(b, 0), "f32[9,4] P(sum),S(0)");
    ck_assert_ptr_null(weft_op_backward_gradient(b, 1));
    weft_op_backward_release(&b);
    /* the gradient has the dtype of the input */
    b = backward_of("add", "2", "f32[4] S(0) ; bf16[4] S(0)", "", NULL);
    ck_assert_str_eq(gradient_layout(b, 1), "bf16[4] S(0)");
    weft_op_backward_release(&b);
}

TEST(equal_calls_are_made_once)
{
    weft_op_backward *b = backward_of("amax", "2", "f64[4,6] S(0)", "dims=1", NULL);
    weft_op_backward_info info = {.struct_size = sizeof info};

    ck_assert_int_eq(weft_op_backward_get(b, &info), WEFT_OK);
    ck_assert_uint_eq(info.calls, 7); /* reshape, eq, cast; reshape, sum, div; mul */
    ck_assert_str_eq(gradient_layout(b, 0), "f64[4,6] S(0)");
    weft_op_backward_release(&b);
}

TEST(the_equations_of_gradients_follow_from_that_of_einsum)
{
    OWNED(weft_op_backward) *b =
        backward_of("einsum", "2", "f64[4,6] S(1) ; f64[6,3] S(0)", "eq=ij,jk", NULL);

    ck_assert_str_eq(weft_op_backward_call(b, 0)->call->attrs[0].text, "ik,jk->ij");
    ck_assert_str_eq(weft_op_backward_call(b, 1)->call->attrs[0].text, "ik,ij->jk");
    ck_assert_str_eq(gradient_layout(b, 0), "f64[4,6] S(1)");
    ck_assert_str_eq(gradient_layout(b, 1), "f64[6,3] S(0)");
}

TEST(operators_of_the_program_have_gradients_by_a_rule_of_their_own)
{
    weft_op_backward *b;

    ck_assert_int_eq(weft_op_register("t_mix: x[m k] w?[k] -> y[m k] s[m]; whole k; from s x\n"
                                      "t_mix_bwd: dy[m k] x[m k] s[m] w?[k] u?[k] -> dx[m k] dw[k];"
                                      " whole k; sum m; from dx dy x s w u; from dw dy x s"),
                     WEFT_OK);
    b = backward_of("t_mix", "2", "f32[4,3] S(0) ; f32[3] R", "", NULL);
    ck_assert_str_eq(weft_op_backward_call(b, 0)->call->name, "t_mix_bwd");
    ck_assert_uint_eq(weft_op_backward_call(b, 0)->call->input_count, 5);
    ck_assert_uint_eq(weft_op_backward_call(b, 0)->operands[2].source, WEFT_OP_FROM_OUTPUT);
    ck_assert_uint_eq(weft_op_backward_call(b, 0)->operands[2].index, 1);
    ck_assert_uint_eq(weft_op_backward_call(b, 0)->operands[4].source, WEFT_OP_FROM_NOTHING);
    ck_assert_str_eq(gradient_layout(b, 0), "f32[4,3] S(0)");
    ck_assert_str_eq(gradient_layout(b, 1), "f32[3] P(sum)");
    weft_op_backward_release(&b);
    ck_assert_int_eq(weft_op_remove("t_mix"), WEFT_OK);
    ck_assert_int_eq(weft_op_remove("t_mix_bwd"), WEFT_OK);
}

TEST(lists_of_a_rule_have_gradients)
{
    weft_op_backward *b;

    ck_assert_int_eq(weft_op_register("t_list: x*[..] w[..] -> y[..]\n"
                                      "t_list_bwd: g[..] x*[..] w[..] -> dx*[..] dw[..]"),
                     WEFT_OK);
    b = backward_of("t_list", "2", "f32[4] S(0) ; f32[4] S(0) ; f32[4] S(0)", "", NULL);
    for (uint32_t i = 0; i < 3; i++)
        ck_assert_uint_eq(weft_op_backward_gradient(b, i)->index, i);
    weft_op_backward_release(&b);
    ck_assert_int_eq(weft_op_remove("t_list"), WEFT_OK);
    ck_assert_int_eq(weft_op_remove("t_list_bwd"), WEFT_OK);
}

TEST(a_rule_of_the_program_comes_before_the_gradients_of_weft)
{
    weft_op_backward *b;

    ck_assert_int_eq(weft_op_register("scale: a[..] w[..] -> b[..]\n"
                                      "scale_bwd: g[..] a[..] w[..] -> da[..] dw[..]"),
                     WEFT_OK);
    b = backward_of("scale", "2", "f32[4] S(0) ; f32[4] S(0)", "", NULL);
    ck_assert_str_eq(weft_op_backward_call(b, 0)->call->name, "scale_bwd");
    ck_assert_uint_eq(weft_op_backward_gradient(b, 1)->index, 1);
    weft_op_backward_release(&b);
    ck_assert_int_eq(weft_op_remove("scale"), WEFT_OK);
    ck_assert_int_eq(weft_op_remove("scale_bwd"), WEFT_OK);
}

TEST(attributes_at_their_limits_have_gradients)
{
    weft_op_backward *b = backward_of("sum", "2", "f32[] R", "dims=-1,", NULL);

    ck_assert_str_eq(gradient_layout(b, 0), "f32[] R");
    weft_op_backward_release(&b);
    b = backward_of("pow_scalar", "2", "f32[4] S(0)", "exponent=0", NULL);
    ck_assert_str_eq(weft_op_backward_call(b, 0)->call->name, "zeros_like");
    weft_op_backward_release(&b);
    b = backward_of("nll_loss", "2", "f32[4,6] R ; i64[4] R", "reduction=mean", NULL);
    ck_assert_str_eq(gradient_layout(b, 0), "f32[4,6] R");
    weft_op_backward_release(&b);
}

/* No list of dimensions, and an empty one, are all dimensions. */
TEST(an_empty_list_of_dimensions_is_all_of_them)
{
    weft_op_attr none = {.name = "dims", .kind = WEFT_ATTR_LIST};
    OWNED(weft_op_backward) *b = NULL;
    OWNED(op_text) text;

    op_begin(&text, "sum", "2", "f32[4,6] S(0)", "", NULL);
    text.call.attr_size = sizeof(weft_op_attr);
    text.call.attrs = &none;
    text.call.attr_count = 1;
    ck_assert_msg(weft_op_backward_create(&text.call, NULL, &b) == WEFT_OK, "%s",
                  weft_last_error());
    ck_assert_str_eq(gradient_layout(b, 0), "f32[4,6] S(0)");
}

static void refuse(const char *name, const char *inputs, const char *attrs, weft_status status,
                   const char *reason)
{
    OWNED(op_text) text;
    weft_op_backward *backward = NULL;

    op_begin(&text, name, "2", inputs, attrs, NULL);
    ck_assert_int_eq(weft_op_backward_create(&text.call, NULL, &backward), status);
    ck_assert_msg(strstr(weft_last_error(), reason) != NULL, "%s", weft_last_error());
    ck_assert_ptr_null(backward);
}

TEST(calls_without_known_gradients_are_refused)
{
    const bool wanted[] = {true};
    const weft_op_backward_options one = {
        .struct_size = sizeof one, .wanted_count = 1, .wanted = wanted};
    weft_op_backward *backward = NULL;
    OWNED(op_text) text;

    refuse("argsort", "f32[4] R", "dim=0", WEFT_ERR_UNSUPPORTED,
           "register an operator argsort_bwd");
    refuse("relu_", "f32[4] R", "", WEFT_ERR_UNSUPPORTED, "not of forms in place");
    refuse("div", "f32[4] R ; f32[4] R", "rounding_mode=floor", WEFT_ERR_UNSUPPORTED, "rounded");
    refuse("max_pool", "f32[2,4,8] R", "kernel=2,", WEFT_ERR_INVALID, "input i is missing");
    refuse("scatter_add", "f32[4] R ; i64[2] R ; f32[3] R", "dim=0", WEFT_ERR_UNSUPPORTED,
           "the gradient of input 2 has another shape than the input");
    refuse("mul", "c64[4] R ; c64[4] R", "", WEFT_ERR_UNSUPPORTED, "for real numbers only");
    refuse("mm", "f32[4,5] R", "", WEFT_ERR_INVALID, "mm");
    refuse("exp", "i64[4] R ; i64[4] R", "", WEFT_ERR_INVALID, "exp");
    refuse("no_such", "f32[4] R", "", WEFT_ERR_NOT_FOUND, "no_such");
    ck_assert_int_eq(weft_op_backward_create(NULL, NULL, NULL), WEFT_ERR_INVALID);
    weft_op_backward_release(NULL);
    op_begin(&text, "mm", "2", "f32[4,5] R ; f32[5,4] R", "", NULL);
    ck_assert_int_eq(weft_op_backward_create(&text.call, &one, &backward), WEFT_ERR_INVALID);
    ck_assert_str_eq(weft_last_error(),
                     "weft_op_backward_create: weft_op_backward_options.wanted has 1 entries "
                     "(wanted_count), and the call has 2 inputs");
}

TEST(a_missing_tensor_is_named)
{
    weft_init_options options = {.struct_size = sizeof options, .simulated_ranks = 4};
    OWNED(weft_context) *context = NULL;
    weft_op_backward *b = backward_of("mul", "4", "f64[8] S(0) ; f64[8] S(0)", "", NULL);
    weft_tensor *forward[3] = {NULL}, *gradients[1] = {NULL}, *found[2];
    weft_op_operand g = {WEFT_OP_FROM_GRADIENT, 0};

    ck_assert_int_eq(weft_init(&options, &context), WEFT_OK);
    ck_assert_int_eq(weft_tensor_create(context, weft_op_backward_spec(b, &g), NULL, &gradients[0]),
                     WEFT_OK);
    ck_assert_int_eq(weft_op_backward_apply(context, b, forward, gradients, NULL, plain_kernel,
                                            NULL, NULL, found),
                     WEFT_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "forward[1] is NULL, and a call reads it"));
    weft_tensor_release(&gradients[0]);
    ck_assert_int_eq(weft_op_backward_apply(context, b, forward, gradients, NULL, plain_kernel,
                                            NULL, NULL, found),
                     WEFT_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "gradients[0] is NULL"));
    weft_op_backward_release(&b);
}

/* ---- phases ---- */

enum { PHASED = 3 }; /* inputs and outputs of an operator, at most each */

struct phased_case {
    const char *name, *attrs;
    const char *inputs; /* with "%s" for the placements of the rows, then for those of weights */
};

/* The gradients of ONE on inputs whose rows are laid out as ROWS, and the weights as WEIGHTS. */
static void differentiate(weft_context *context, const struct phased_case *one, const char *rows,
                          const char *weights, weft_tensor **found)
{
    weft_tensor *forward[2 * PHASED] = {NULL}, *gradients[PHASED] = {NULL};
    weft_random random = {.seed = 7};
    weft_op_backward *backward;
    char inputs[256];
    OWNED(op_text) o;

    snprintf(inputs, sizeof inputs, one->inputs, rows, weights, weights);
    op_begin(&o, one->name, "2x2", inputs, one->attrs, NULL);
    for (uint32_t i = 0; i < o.call.input_count; i++) {
        ck_assert_int_eq(weft_tensor_create(context, o.inputs[i], NULL, &forward[i]), WEFT_OK);
        ck_assert_int_eq(weft_tensor_normal(forward[i], &random, 1, 2, NULL), WEFT_OK);
    }
    ck_assert_msg(weft_op_apply_phases(context, &o.call, forward, NULL, phase_kernel, NULL, NULL,
                                       2 * PHASED - o.call.input_count,
                                       forward + o.call.input_count) == WEFT_OK,
                  "%s", weft_last_error());
    ck_assert_int_eq(weft_tensor_create(context, o.inputs[0], NULL, &gradients[0]), WEFT_OK);
    ck_assert_int_eq(weft_tensor_normal(gradients[0], &random, 0, 1, NULL), WEFT_OK);
    ck_assert_msg(weft_op_backward_create(&o.call, NULL, &backward) == WEFT_OK, "%s",
                  weft_last_error());
    ck_assert_msg(weft_op_backward_apply(context, backward, forward, gradients, NULL, phase_kernel,
                                         NULL, NULL, found) == WEFT_OK,
                  "%s", weft_last_error());
    weft_op_backward_release(&backward);
    weft_tensor_release(&gradients[0]);
    for (int i = 0; i < 2 * PHASED; i++)
        weft_tensor_release(&forward[i]);
}

TEST(gradients_over_a_split_dimension_are_computed_in_phases)
{
    static const struct phased_case known[] = {
        {"softmax", "dim=1", "f32[4,8] %s"},
        {"log_softmax", "dim=1", "f32[4,8] %s"},
        {"layer_norm", "dims=1,", "f32[4,8] %s ; f32[8] %s ; f32[8] %s"},
        {"rms_norm", "dims=1,", "f32[4,8] %s ; f32[8] %s"},
    };
    weft_init_options options = {.struct_size = sizeof options, .simulated_ranks = 4};
    OWNED(weft_context) *context = NULL;

    ck_assert_int_eq(weft_init(&options, &context), WEFT_OK);
    for (size_t i = 0; i < WF_COUNT(known); i++) {
        weft_tensor *whole[PHASED] = {NULL}, *split[PHASED] = {NULL};
        weft_tensor_difference_info difference = {.struct_size = sizeof difference};

        differentiate(context, &known[i], "R,R", "R,R", whole);
        differentiate(context, &known[i], "S(0),S(1)", "R,S(0)", split);
        for (int j = 0; j < PHASED && whole[j] != NULL; j++) {
            ck_assert_ptr_nonnull(split[j]);
            ck_assert_msg(weft_tensor_compare(whole[j], split[j], NULL, NULL, &difference) ==
                              WEFT_OK,
                          "%s", weft_last_error());
            ck_assert_msg(difference.largest < 1e-4, "%s: gradient %d differs by %g", known[i].name,
                          j, difference.largest);
            weft_tensor_release(&whole[j]);
            weft_tensor_release(&split[j]);
        }
    }
}

TEST(the_error_of_a_split_dimension_names_the_function_with_phases)
{
    static const char named[] = "; or call weft_op_apply_phases, which needs no such move";
    weft_init_options options = {.struct_size = sizeof options, .simulated_ranks = 4};
    OWNED(weft_context) *context = NULL;
    OWNED(weft_tensor) *x = NULL;
    weft_tensor *y = NULL;
    OWNED(op_text) o;

    ck_assert_int_eq(weft_init(&options, &context), WEFT_OK);
    op_begin(&o, "softmax", "4", "f32[4,8] S(1)", "dim=1", NULL);
    ck_assert_int_eq(weft_tensor_create(context, o.inputs[0], NULL, &x), WEFT_OK);
    ck_assert_int_eq(weft_op_apply(context, &o.call, &x, NULL, phase_kernel, NULL, NULL, 1, &y),
                     WEFT_ERR_MISMATCH);
    ck_assert_msg(strstr(weft_last_error(), named) != NULL, "%s", weft_last_error());
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "weft_op_apply: operator softmax: "));
    o.call.name = "cumprod"; /* it has no phases */
    ck_assert_int_eq(weft_op_apply(context, &o.call, &x, NULL, phase_kernel, NULL, NULL, 1, &y),
                     WEFT_ERR_MISMATCH);
    ck_assert_ptr_null(strstr(weft_last_error(), "weft_op_apply_phases"));
}

TEST(without_memory_nothing_leaks)
{
    OWNED(op_text) text;
    weft_op_backward *backward = NULL;
    weft_status status = WEFT_ERR_NO_MEMORY;
    int64_t live;

    op_begin(&text, "linear", "2", "f64[4,6,5] S(0) ; f64[3,5] R ; f64[3] R", "", NULL);
    ck_assert_int_eq(weft_op_backward_create(&text.call, NULL, &backward), WEFT_OK);
    weft_op_backward_release(&backward); /* the cache is full now */
    live = wf_mem_live();
    for (uint64_t n = 1; status == WEFT_ERR_NO_MEMORY; n++) {
        wf_mem_fail_at(n);
        status = weft_op_backward_create(&text.call, NULL, &backward);
        wf_mem_fail_at(0);
        if (status != WEFT_OK) ck_assert_int_eq(wf_mem_live(), live);
        ck_assert_uint_lt(n, 1000);
    }
    ck_assert_int_eq(status, WEFT_OK);
    weft_op_backward_release(&backward);
}
