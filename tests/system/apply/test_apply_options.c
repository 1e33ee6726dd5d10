/* Options of weft_op_apply, weft_op_apply_phases and weft_op_backward_apply, and the room that
 * callers have for outputs. */
#include "kernels.h"
#include "simulated.h"
#include "support/suite.h"
#include "weft/phases.h"

#include <string.h>

enum { RANKS = 2 };

/* A kernel that leaves its outputs as they are. */
static weft_status nothing(void *user, const weft_op_run *run)
{
    (void)run;
    (void)user;
    return WEFT_OK;
}

/* ---- room for outputs ---- */

/* The operator has two outputs by the time of the call. */
TEST(outputs_are_not_written_behind_their_array)
{
    OWNED(weft_context) *context = simulate(RANKS);
    weft_tensor *a = make(context, "2", "f32[4] S(0)"), *mark = a, *out[3] = {NULL, mark, mark};
    weft_op_call pair = call_of("pair_of", 1), in_place = call_of("relu_", 1);

    ck_assert_int_eq(weft_op_register("pair_of: x[m] -> y[m]"), WEFT_OK);
    ck_assert_uint_eq(weft_op_output_count(&pair, &a), 1);
    ck_assert_int_eq(weft_op_replace("pair_of: x[m] -> y[m] z[m]"), WEFT_OK);
    ck_assert_int_eq(weft_op_apply(context, &pair, &a, NULL, plain_kernel, NULL, NULL, 1, out),
                     WEFT_ERR_INVALID);
    ck_assert_str_eq(
        weft_last_error(),
        "weft_op_apply: operator pair_of: it has 2 outputs, and outputs has room for 1 "
        "(output_count)");
    ck_assert(out[0] == NULL && out[1] == mark);
    ck_assert_int_eq(weft_op_apply(context, &pair, &a, NULL, plain_kernel, NULL, NULL, 0, out),
                     WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_op_apply(context, &pair, &a, NULL, nothing, NULL, NULL, 3, out), WEFT_OK);
    ck_assert(out[0] != NULL && out[1] != NULL && out[1] != mark && out[2] == NULL);
    ck_assert_int_eq(weft_op_remove("pair_of"), WEFT_OK);
    ck_assert_int_eq(weft_op_apply(context, &in_place, &a, NULL, plain_kernel, NULL, NULL, 1, NULL),
                     WEFT_OK);
    weft_tensor_release(&out[0]);
    weft_tensor_release(&out[1]);
    weft_tensor_release(&a);
}

/* ---- strategies that the caller restricts ---- */

static bool refuse_partials(void *user, bool is_output, size_t index, const weft_spec *spec)
{
    (void)index;
    (*(int *)user)++;
    return !is_output || weft_spec_placements(spec)[0].kind != WEFT_PLACE_PARTIAL;
}

/* The layout of a product under OPTIONS, or the error. */
static const char *layout_of(weft_tensor *const *inputs, const weft_op_apply_options *options)
{
    static char text[256];
    weft_op_call mm = call_of("mm", 2);
    weft_tensor *out = NULL;

    if (weft_op_apply(weft_tensor_context(inputs[0]), &mm, inputs, options, plain_kernel, NULL,
                      NULL, 1, &out) != WEFT_OK)
        return weft_last_error();
    ck_assert_int_eq(weft_spec_print(weft_tensor_spec(out), text, sizeof text, NULL), WEFT_OK);
    weft_tensor_release(&out);
    return text;
}

TEST(options_restrict_the_strategies_of_a_call)
{
    weft_context *context = simulate(RANKS);
    weft_tensor *inputs[] = {make(context, "2", "f32[4,6] S(1)"),
                             make(context, "2", "f32[6,4] S(0)")};
    weft_tensor *product = make(context, "2", "f32[4,4] S(1)");
    const weft_spec *columns = weft_tensor_spec(product);
    weft_op_options strategy = {.struct_size = sizeof strategy};
    weft_op_apply_options options = {.struct_size = sizeof options, .moves = WEFT_OP_MOVES_MADE};
    int asked = 0;

    ck_assert_str_eq(layout_of(inputs, &options), "f32[4,4] P(sum)");
    options.strategy = &strategy;
    ck_assert_str_eq(layout_of(inputs, &options), "f32[4,4] P(sum)");
    strategy.flags = WEFT_OP_FLAG_NO_PARTIALS;
    ck_assert_ptr_null(strstr(layout_of(inputs, &options), "P(sum)"));
    options.moves = WEFT_OP_MOVES_REFUSED;
    ck_assert_ptr_nonnull(strstr(layout_of(inputs, &options), "weft_op_apply: operator mm"));
    options.moves = WEFT_OP_MOVES_MADE;
    strategy = (weft_op_options){
        .struct_size = sizeof strategy, .fixed_output_count = 1, .fixed_outputs = &columns};
    ck_assert_str_eq(layout_of(inputs, &options), "f32[4,4] S(1)");
    strategy =
        (weft_op_options){.struct_size = sizeof strategy, .allow = refuse_partials, .user = &asked};
    ck_assert_ptr_null(strstr(layout_of(inputs, &options), "P(sum)"));
    ck_assert_int_gt(asked, 0);
    strategy = (weft_op_options){.struct_size = sizeof strategy, .memory_limit = 1};
    ck_assert_ptr_nonnull(strstr(layout_of(inputs, &options), "weft_op_apply: operator mm"));
    strategy = (weft_op_options){.struct_size = sizeof strategy, .flags = 1 << 20};
    ck_assert_ptr_nonnull(
        strstr(layout_of(inputs, &options), "weft_op_apply: weft_op_options.flags has unknown"));
    for (int i = 0; i < 2; i++)
        weft_tensor_release(&inputs[i]);
    weft_tensor_release(&product);
    weft_context_release(&context);
}

/* Phases and gradients are several calls. */
TEST(options_of_one_call_are_refused_for_several)
{
    OWNED(weft_context) *context = simulate(RANKS);
    weft_tensor *x = make(context, "2", "f32[4,6] S(0)"), *out = NULL;
    weft_op_options strategy = {.struct_size = sizeof strategy,
                                .costs = weft_context_costs(context)};
    weft_op_apply_options options = {.struct_size = sizeof options, .strategy = &strategy};
    weft_op_attr dim = {.name = "dim", .kind = WEFT_ATTR_INT, .integer = 1};
    weft_op_call call = call_of("softmax", 1);
    weft_tensor *forward[2] = {x, x};
    const weft_spec *spec = weft_tensor_spec(x);
    OWNED(weft_op_backward) *backward = NULL;

    call.inputs = &spec;
    call.attr_count = 1;
    call.attr_size = sizeof dim;
    call.attrs = &dim;
    ck_assert_int_eq(weft_op_backward_create(&call, NULL, &backward), WEFT_OK);
    ck_assert_int_eq(
        weft_op_apply_phases(context, &call, &x, &options, nothing, NULL, NULL, 1, &out), WEFT_OK);
    weft_tensor_release(&out);
    ck_assert_int_eq(
        weft_op_backward_apply(context, backward, forward, &x, &options, nothing, NULL, NULL, &out),
        WEFT_OK);
    weft_tensor_release(&out);
    strategy.memory_limit = 1;
    ck_assert_int_eq(
        weft_op_apply_phases(context, &call, &x, &options, nothing, NULL, NULL, 1, &out),
        WEFT_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "weft_op_apply_phases: weft_op_apply_options."
                                                    "strategy has more than costs"));
    ck_assert_int_eq(
        weft_op_backward_apply(context, backward, forward, &x, &options, nothing, NULL, NULL, &out),
        WEFT_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "weft_op_backward_apply: weft_op_apply_options."
                                                    "strategy has more than costs"));
    call.attr_size++;
    ck_assert_int_eq(weft_op_apply_phases(context, &call, &x, NULL, nothing, NULL, NULL, 1, &out),
                     WEFT_ERR_VERSION);
    call.attr_size--;
    ck_assert_int_eq(weft_op_apply_phases(context, &call, &x, NULL, nothing, NULL, NULL, 0, &out),
                     WEFT_ERR_INVALID);
    ck_assert_ptr_nonnull(
        strstr(weft_last_error(), "operator softmax: it has 1 output, and outputs has room for 0"));
    ck_assert_ptr_null(out);
    weft_tensor_release(&x);
}
