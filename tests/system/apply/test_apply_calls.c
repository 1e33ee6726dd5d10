/* Calls of weft_op_apply: moves, forms, faults, on ranks that are threads. */
#include "tensor/tensor.h"
#include "kernels.h"
#include "phase_tests.h"
#include "support/counts.h"
#include "support/layout.h"
#include "support/suite.h"
#include "weft/context.h"
#include "weft/launch.h"
#include "weft/trace.h"

#include <stdio.h>

/* ---- what ranks share ---- */

/* All elements of this rank's shard are VALUE. */
static bool is_all(const weft_tensor *tensor, float value)
{
    for (int64_t i = 0; i < weft_tensor_shard(tensor)->elements; i++)
        if (((const float *)weft_tensor_memory(tensor))[i] != value) return false;
    return true;
}

/* ---- moves ---- */

/* The inputs of mm, of which one must move. */
static weft_status make_factors(weft_context *context, weft_tensor **inputs)
{
    WF_TRY(make_filled(context, "tp=2", "f32[4,6] S(1)", 2, &inputs[0]));
    return make_filled(context, "tp=2", "f32[6,4] S(1)", 3, &inputs[1]);
}

static weft_status end_factors(weft_context *context, weft_tensor **inputs)
{
    weft_tensor_release(&inputs[0]);
    weft_tensor_release(&inputs[1]);
    weft_context_release(&context);
    return WEFT_OK;
}

struct labels {
    weft_context *context;
    char text[64]; /* of the last redistribution */
};

static void note_label(void *user, const weft_record *record)
{
    struct labels *labels = user;

    snprintf(labels->text, sizeof labels->text, "%s",
             weft_trace_text(labels->context, record->label));
}

TEST_ON_RANKS(2, records_of_a_move_name_the_operator_and_the_tensor)
{
    weft_op_call mm = call_of("mm", 2, NULL, 0);
    weft_op_apply_options options = {.struct_size = sizeof options, .moves = WEFT_OP_MOVES_MADE};
    struct labels labels = {0};
    const weft_observer observer = {
        .struct_size = sizeof observer, .user = &labels, .redistributes = note_label};
    weft_observation *observation = NULL;
    weft_tensor *inputs[2], *out = NULL;
    weft_context *context;

    WF_TRY(weft_init(NULL, &context));
    labels.context = context;
    WF_TRY(make_factors(context, inputs));
    WF_TRY(weft_observe(context, &observer, &observation));
    WF_TRY(weft_op_apply(context, &mm, inputs, &options, plain_kernel, NULL, NULL, 1, &out));
    HOLDS(strcmp(labels.text, "mm") == 0);
    WF_TRY(weft_tensors_move_into(1, &inputs[0], &inputs[0], NULL, NULL, NULL));
    HOLDS(strstr(labels.text, "mm") == NULL);
    weft_observation_release(&observation);
    weft_tensor_release(&out);
    return end_factors(context, inputs);
}

TEST_ON_RANKS(2, inputs_move_only_if_it_is_permitted)
{
    weft_op_call mm = call_of("mm", 2, NULL, 0);
    weft_record_counts *counting = NULL;
    struct counted counts;
    weft_tensor *inputs[2], *out = NULL;
    weft_op_apply_options options = {.struct_size = sizeof options};
    weft_context *context;

    WF_TRY(weft_init(NULL, &context));
    WF_TRY(make_factors(context, inputs));
    FAILS(weft_op_apply(context, &mm, inputs, NULL, plain_kernel, NULL, NULL, 1, &out),
          WEFT_ERR_MISMATCH, "weft_op_apply: operator mm");
    HOLDS(out == NULL);
    options.moves = WEFT_OP_MOVES_SHOWN;
    WF_TRY(weft_record_counts_create(context, &counting));
    WF_TRY(weft_op_apply(context, &mm, inputs, &options, plain_kernel, NULL, NULL, 1, &out));
    WF_TRY(counts_take(counting, &counts));
    HOLDS(counts.sums.implicit_moves == 1);
    HOLDS(prints(out, "f32[4,4] P(sum)") ? is_all(out, 18) : is_all(out, 36));
    /* the next call does not inherit the option, and a move of the caller's is not implicit */
    FAILS(weft_op_apply(context, &mm, inputs, NULL, plain_kernel, NULL, NULL, 1, &out),
          WEFT_ERR_MISMATCH, "weft_op_apply: operator mm");
    WF_TRY(weft_record_counts_create(context, &counting));
    WF_TRY(weft_tensors_move_into(1, &inputs[0], &inputs[0], NULL, NULL, NULL));
    WF_TRY(counts_take(counting, &counts));
    HOLDS(counts.sums.implicit_moves == 0);
    options.moves = 3;
    REFUSES(weft_op_apply(context, &mm, inputs, &options, plain_kernel, NULL, NULL, 1, &out),
            "weft_op_apply: weft_op_apply_options.moves is 3");
    weft_tensor_release(&out);
    return end_factors(context, inputs);
}

/* Rank 0 makes another call than rank 1: both errors name the function that was called. */
TEST_ON_RANKS(2, moves_in_another_order_name_the_operators)
{
    weft_op_attr dim = {.name = "dim", .kind = WEFT_ATTR_INT, .integer = 1};
    const weft_op_apply_options made = {.struct_size = sizeof made, .moves = WEFT_OP_MOVES_MADE};
    weft_op_call mm = call_of("mm", 2, NULL, 0), softmax = call_of("softmax", 1, NULL, 0);
    weft_tensor *inputs[2], *out = NULL;
    weft_context *context;
    bool first;

    softmax.attr_size = sizeof(weft_op_attr);
    softmax.attrs = &dim;
    softmax.attr_count = 1;
    WF_TRY(weft_init(NULL, &context));
    first = weft_rank(context) == 0;
    WF_TRY(make_factors(context, inputs));
    FAILS(weft_op_apply(context, first ? &mm : &softmax, inputs, &made, plain_kernel, NULL, NULL, 1,
                        &out),
          WEFT_ERR_MISMATCH,
          first ? "weft_op_apply: operator mm: rank " : "weft_op_apply: operator softmax: rank ");
    HOLDS(strstr(weft_last_error(), "different plans") != NULL);
    HOLDS(strstr(weft_last_error(), "move_into") == NULL);
    return end_factors(context, inputs);
}

/* ---- forms ---- */

TEST_ON_RANKS(2, operators_in_place_with_given_outputs_and_with_lists)
{
    weft_op_call relu = call_of("relu_", 1, NULL, 0), add = call_of("add.out", 3, NULL, 0),
                 cat = call_of("cat", 20, NULL, 0);
    weft_op_attr dim = {.name = "dim", .kind = WEFT_ATTR_INT};
    weft_tensor *inputs[20], *x, *y, *z, *out = NULL;
    weft_context *context;

    WF_TRY(weft_init(NULL, &context));
    WF_TRY(make_filled(context, "2", "f32[3,4] S(0)", -1, &x));
    WF_TRY(make_filled(context, "2", "f32[3,4] S(0)", 5, &y));
    WF_TRY(make_filled(context, "2", "f32[3,4] S(0)", 0, &z));
    WF_TRY(weft_op_apply(context, &relu, &x, NULL, plain_kernel, NULL, NULL, 1, &out));
    HOLDS(out == x && is_all(x, 0));
    weft_tensor_release(&out);
    inputs[0] = x, inputs[1] = y, inputs[2] = z;
    WF_TRY(weft_op_apply(context, &add, inputs, NULL, plain_kernel, NULL, NULL, 1, &out));
    HOLDS(out == z && is_all(z, 5));
    weft_tensor_release(&out);
    cat.attr_size = sizeof(weft_op_attr);
    cat.attrs = &dim;
    cat.attr_count = 1;
    for (int i = 0; i < 20; i++)
        WF_TRY(make_filled(context, "2", "f32[1,6] S(1)", 7, &inputs[i]));
    WF_TRY(weft_op_apply(context, &cat, inputs, NULL, plain_kernel, NULL, NULL, 1, &out));
    HOLDS(prints(out, "f32[20,6] S(1)") && is_all(out, 7));
    weft_tensor_release(&out);
    for (int i = 0; i < 20; i++)
        weft_tensor_release(&inputs[i]);
    weft_tensor_release(&x);
    weft_tensor_release(&y);
    weft_tensor_release(&z);
    weft_context_release(&context);
    return WEFT_OK;
}

TEST_ON_RANKS(3, ranks_outside_the_mesh_and_absent_inputs)
{
    weft_op_call add = call_of("add", 2, NULL, 0), linear = call_of("linear", 3, NULL, 0);
    weft_tensor *inputs[3] = {NULL}, *out = NULL;
    weft_context *context;

    WF_TRY(weft_init(NULL, &context));
    WF_TRY(make_filled(context, "2@1,2", "f32[4] S(0)", 1, &inputs[0]));
    WF_TRY(make_filled(context, "2@1,2", "f32[4] S(0)", 2, &inputs[1]));
    WF_TRY(weft_op_apply(context, &add, inputs, NULL, plain_kernel, NULL, NULL, 1, &out));
    HOLDS(prints(out, "f32[4] S(0)") && is_all(out, 3));
    HOLDS(weft_tensor_shard(out)->member == (weft_rank(context) > 0));
    weft_tensor_release(&out);
    weft_tensor_release(&inputs[0]);
    weft_tensor_release(&inputs[1]);
    WF_TRY(make_filled(context, "3", "f32[2,5] R", 1, &inputs[0]));
    WF_TRY(make_filled(context, "3", "f32[4,5] S(0)", 2, &inputs[1]));
    WF_TRY(weft_op_apply(context, &linear, inputs, NULL, plain_kernel, NULL, NULL, 1,
                         &out)); /* no bias */
    HOLDS(prints(out, "f32[2,4] S(1)") && is_all(out, 10));
    weft_tensor_release(&out);
    weft_tensor_release(&inputs[0]);
    weft_tensor_release(&inputs[1]);
    weft_context_release(&context);
    return WEFT_OK;
}

/* ---- faults ---- */

static weft_status fail_on_one(void *user, const weft_op_run *run)
{
    (void)user;
    if (run->rank == 1) return weft_fail(WEFT_ERR_DEVICE, "out of registers");
    return plain_kernel(NULL, run);
}

TEST_ON_RANKS(2, a_kernel_that_fails_on_one_rank_reaches_all)
{
    weft_op_call add = call_of("add", 2, NULL, 0);
    weft_tensor *inputs[2], *out = NULL, *moved;
    weft_spec *whole;
    weft_context *context;
    weft_status status;

    WF_TRY(weft_init(NULL, &context));
    WF_TRY(make_filled(context, "2", "f32[4] S(0)", 1, &inputs[0]));
    WF_TRY(make_filled(context, "2", "f32[4] S(0)", 2, &inputs[1]));
    WF_TRY(weft_spec_with(weft_tensor_spec(inputs[0]), "R", &whole));
    status = weft_op_apply(context, &add, inputs, NULL, fail_on_one, NULL, NULL, 1, &out);
    HOLDS((status == WEFT_OK) == (weft_rank(context) == 0));
    if (weft_rank(context) == 1) {
        HOLDS(strstr(weft_last_error(), "out of registers") != NULL);
        HOLDS(strstr(weft_last_error(), "weft_op_apply on world: rank 1: operator add") != NULL);
    }
    HOLDS(weft_tensor_move(inputs[0], whole, NULL, NULL, &moved) != WEFT_OK);
    HOLDS(strstr(weft_last_error(), "rank 1: operator add") != NULL);
    weft_spec_release(&whole);
    weft_tensor_release(&out);
    weft_tensor_release(&inputs[0]);
    weft_tensor_release(&inputs[1]);
    weft_context_release(&context);
    return WEFT_OK;
}

TEST_ON_RANKS(1, wrong_calls_are_refused)
{
    weft_op_call add = call_of("add", 2, NULL, 0), relu = call_of("relu_", 1, NULL, 0), wrong = add;
    weft_tensor *inputs[2], *out = NULL;
    weft_context *context;

    WF_TRY(weft_init(NULL, &context));
    WF_TRY(make_filled(context, "1", "f32[4] R", 1, &inputs[0]));
    WF_TRY(make_filled(context, "1", "f32[4] R", 2, &inputs[1]));
    REFUSES(weft_op_apply(NULL, &add, inputs, NULL, plain_kernel, NULL, NULL, 1, &out),
            "context is NULL");
    REFUSES(weft_op_apply(context, NULL, inputs, NULL, plain_kernel, NULL, NULL, 1, &out),
            "call is NULL");
    REFUSES(weft_op_apply(context, &add, NULL, NULL, plain_kernel, NULL, NULL, 1, &out),
            "inputs is NULL");
    REFUSES(weft_op_apply(context, &add, inputs, NULL, NULL, NULL, NULL, 1, &out),
            "kernel is NULL");
    REFUSES(weft_op_apply(context, &add, inputs, NULL, plain_kernel, NULL, NULL, 0, NULL),
            "outputs is NULL");
    wrong.struct_size = 3;
    REFUSES(weft_op_apply(context, &wrong, inputs, NULL, plain_kernel, NULL, NULL, 1, &out),
            "weft_op_apply: weft_op_call.struct_size is 3");
    wrong = call_of(NULL, 2, NULL, 0);
    REFUSES(weft_op_apply(context, &wrong, inputs, NULL, plain_kernel, NULL, NULL, 1, &out),
            "weft_op_call.name is NULL");
    wrong = call_of("ad", 2, NULL, 0);
    FAILS(weft_op_apply(context, &wrong, inputs, NULL, plain_kernel, NULL, NULL, 1, &out),
          WEFT_ERR_NOT_FOUND, "weft_op_apply: ");
    inputs[0]->is_read_only = true;
    REFUSES(weft_op_apply(context, &relu, inputs, NULL, plain_kernel, NULL, NULL, 1, &out),
            "weft_op_apply: operator relu_: input 0 is written, but it is read-only");
    inputs[0]->is_read_only = false;
    HOLDS(out == NULL);
    weft_tensor_release(&inputs[0]);
    weft_tensor_release(&inputs[1]);
    weft_context_release(&context);
    return WEFT_OK;
}
