/* Calls of weft_op_apply that cannot be right: one clear error each. */
#include "kernels.h"
#include "support/suite.h"
#include "weft/context.h"
#include "weft/log.h"

#include <stdio.h>
#include <string.h>

enum { RANKS = 2 };

static weft_context *simulate(void)
{
    weft_options options = {.struct_size = sizeof options, .simulated_ranks = RANKS};
    weft_context *context = NULL;

    ck_assert_msg(weft_init(&options, &context) == WEFT_OK, "%s", weft_last_error());
    return context;
}

static weft_tensor *make(weft_context *context, const char *mesh_text, const char *text)
{
    weft_tensor *tensor = NULL;
    weft_mesh *mesh;
    weft_spec *spec;

    ck_assert_int_eq(weft_mesh_parse(mesh_text, &mesh), WEFT_OK);
    ck_assert_msg(weft_spec_parse(mesh, text, &spec) == WEFT_OK, "%s", weft_last_error());
    ck_assert_int_eq(weft_tensor_create(context, spec, NULL, &tensor), WEFT_OK);
    weft_spec_release(&spec);
    weft_mesh_release(&mesh);
    return tensor;
}

static weft_op_call call_of(const char *name, uint32_t inputs)
{
    return (weft_op_call){.struct_size = sizeof(weft_op_call), .name = name, .input_count = inputs};
}

/* The call fails with STATUS and TEXT, and writes no output. */
static void refuse(weft_context *context, const weft_op_call *call, weft_tensor *a, weft_tensor *b,
                   weft_status status, const char *text)
{
    weft_tensor *inputs[] = {a, b}, *out = NULL;

    ck_assert_int_eq(weft_op_apply(context, call, inputs, plain_kernel, NULL, NULL, &out), status);
    ck_assert_msg(strstr(weft_last_error(), text) != NULL, "%s", weft_last_error());
    ck_assert_ptr_null(out);
}

START_TEST(tensors_of_another_context_or_mesh_are_refused)
{
    weft_context *context = simulate(), *other = simulate();
    weft_tensor *a = make(context, "2", "f32[4] S(0)"), *b = make(other, "2", "f32[4] S(0)");
    weft_tensor *c = make(context, "1x2", "f32[4] R,S(0)");
    weft_op_call add = call_of("add", 2);

    refuse(context, &add, a, b, WEFT_ERR_INVALID,
           "weft_op_apply: operator add: input 1 belongs to another context");
    refuse(context, &add, a, c, WEFT_ERR_INVALID,
           "operator add: input b is on another mesh than the others");
    weft_context_release(&other);
    refuse(context, &add, a, b, WEFT_ERR_INVALID, "weft_op_apply: inputs[1]");
    weft_tensor_release(&b);
    weft_tensor_release(&a);
    weft_tensor_release(&c);
    weft_context_release(&context);
}
END_TEST

/* A kernel gets the shapes of its outputs; those that the caller states must be the rule's. */
START_TEST(stated_outputs_of_another_shape_are_refused)
{
    weft_context *context = simulate();
    weft_tensor *a = make(context, "2", "f32[4,6] S(0)"), *b = make(context, "2", "f32[6,5] R");
    weft_op_tensor outputs[] = {{.dtype = WEFT_DTYPE_F32, .dims = 2, .shape = {4, 6}}};
    weft_op_call mm = call_of("mm", 2);

    mm.outputs = outputs;
    mm.output_count = 1;
    refuse(context, &mm, a, b, WEFT_ERR_INVALID, "operator mm");
    outputs[0].shape[1] = 5;
    outputs[0].dims = 1;
    refuse(context, &mm, a, b, WEFT_ERR_INVALID, "operator mm");
    weft_tensor_release(&a);
    weft_tensor_release(&b);
    weft_context_release(&context);
}
END_TEST

/* ---- moves ---- */

static char logged[1024];

static void collect(void *argument, enum weft_log_level level, const char *line)
{
    (void)argument;
    (void)level;
    snprintf(logged, sizeof logged, "%s", line);
}

START_TEST(a_needed_move_is_named_with_its_price)
{
    weft_context *context = simulate();
    weft_tensor *a = make(context, "tp=2", "f32[4,6] S(1)");
    weft_tensor *b = make(context, "tp=2", "f32[6,4] S(1)"), *inputs[] = {a, b}, *out = NULL;
    weft_op_call mm = call_of("mm", 2);

    ck_assert_int_eq(weft_tensor_fill(a, 1, NULL), WEFT_OK);
    ck_assert_int_eq(weft_tensor_fill(b, 1, NULL), WEFT_OK);
    refuse(
        context, &mm, a, b, WEFT_ERR_MISMATCH,
        "on axis tp, input b is S(1), and a is S(1); b must be S(0); the cheapest fix moves b from "
        "S(1) to S(0), in ");
    weft_log_to(collect, NULL);
    ck_assert_int_eq(weft_op_moves_set(context, WEFT_OP_MOVES_MADE, NULL), WEFT_OK);
    ck_assert_int_eq(weft_op_apply(context, &mm, inputs, plain_kernel, NULL, NULL, &out), WEFT_OK);
    weft_tensor_release(&out);
    ck_assert_str_eq(logged, "");
    ck_assert_int_eq(weft_op_moves_set(context, WEFT_OP_MOVES_SHOWN, NULL), WEFT_OK);
    ck_assert_int_eq(weft_op_apply(context, &mm, inputs, plain_kernel, NULL, NULL, &out), WEFT_OK);
    weft_log_to(NULL, NULL);
    ck_assert_msg(strstr(logged, "weft_op_apply: operator mm moves input 1 from f32[6,4] S(1) to "
                                 "f32[6,4] S(0), which takes ") != NULL,
                  "%s", logged);
    weft_tensor_release(&out);
    weft_tensor_release(&a);
    weft_tensor_release(&b);
    weft_context_release(&context);
}
END_TEST

SUITE(apply_faults, tensors_of_another_context_or_mesh_are_refused,
      stated_outputs_of_another_shape_are_refused, a_needed_move_is_named_with_its_price)
