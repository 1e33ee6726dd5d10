/* Calls of weft_op_apply that cannot be right: one clear error each. */
#include "kernels.h"
#include "simulated.h"
#include "support/counts.h"
#include "support/suite.h"
#include "weft/log.h"
#include "weft/trace.h"

#include <stdio.h>
#include <string.h>

enum { RANKS = 2 };

/* The call fails with STATUS and TEXT, and writes no output. */
static void refuse(weft_context *context, const weft_op_call *call, weft_tensor *a, weft_tensor *b,
                   weft_status status, const char *text)
{
    weft_tensor *inputs[] = {a, b}, *out[2] = {NULL, NULL};

    ck_assert_int_eq(weft_op_apply(context, call, inputs, NULL, plain_kernel, NULL, NULL, 2, out),
                     status);
    ck_assert_msg(strstr(weft_last_error(), text) != NULL, "%s", weft_last_error());
    ck_assert(out[0] == NULL && out[1] == NULL);
}

TEST(tensors_of_another_context_or_mesh_are_refused)
{
    OWNED(weft_context) *context = simulate(RANKS);
    weft_context *other = simulate(RANKS);
    weft_tensor *a = make(context, "2", "f32[4] S(0)"), *b = make(other, "2", "f32[4] S(0)");
    weft_tensor *c = make(context, "1x2", "f32[4] R,S(0)");
    weft_op_call add = call_of("add", 2);

    refuse(context, &add, a, b, WEFT_ERR_INVALID,
           "weft_op_apply: inputs[1] belongs to another context");
    refuse(context, &add, a, c, WEFT_ERR_INVALID,
           "operator add: input b is on another mesh than the others");
    weft_context_release(&other);
    refuse(context, &add, a, b, WEFT_ERR_INVALID, "weft_op_apply: inputs[1]");
    weft_tensor_release(&b);
    weft_tensor_release(&a);
    weft_tensor_release(&c);
}

/* A kernel gets the shapes of its outputs; those that the caller states must be the rule's. */
TEST(stated_outputs_of_another_shape_are_refused)
{
    OWNED(weft_context) *context = simulate(RANKS);
    weft_tensor *a = make(context, "2", "f32[4,6] S(0)"), *b = make(context, "2", "f32[6,5] R");
    weft_op_tensor outputs[] = {{.dtype = WEFT_DTYPE_F32, .dims = 2, .shape = {4, 6}}};
    weft_op_call mm = call_of("mm", 2);

    mm.output_size = sizeof outputs[0];
    mm.outputs = outputs;
    mm.output_count = 1;
    refuse(context, &mm, a, b, WEFT_ERR_INVALID, "operator mm");
    outputs[0].shape[1] = 5;
    outputs[0].dims = 1;
    refuse(context, &mm, a, b, WEFT_ERR_INVALID, "operator mm");
    mm.output_size = sizeof outputs[0] - 1;
    refuse(context, &mm, a, b, WEFT_ERR_VERSION,
           "weft_op_apply: weft_op_call.output_size is 71; set it to sizeof(weft_op_tensor)");
    weft_tensor_release(&a);
    weft_tensor_release(&b);
}

/* ---- fields of the call ---- */

TEST(fields_that_mean_nothing_are_refused)
{
    OWNED(weft_context) *context = simulate(RANKS);
    weft_tensor *a = make(context, "2", "f32[4] S(0)"), *p = make(context, "2", "f32[4] R");
    weft_op_attr odd = {.name = "al\npha", .kind = WEFT_ATTR_REAL};
    weft_op_call add = call_of("add", 2), broken = call_of("ad\x1b[1md", 2);
    OWNED(weft_mesh) *other = NULL;

    ck_assert_int_eq(weft_mesh_parse("1x2", &other), WEFT_OK);
    refuse(context, &broken, a, a, WEFT_ERR_INVALID, "has a control character, 0x1b, at byte 2");
    add.flags = 7;
    refuse(context, &add, a, a, WEFT_ERR_INVALID,
           "weft_op_apply: weft_op_call.flags has unknown bits: 0x7");
    add = call_of("add", 2);
    add.mesh = other;
    refuse(context, &add, a, a, WEFT_ERR_INVALID,
           "operator add: weft_op_call.mesh is another mesh than that of the inputs");
    add = call_of("add", 2);
    add.attr_size = sizeof(weft_op_attr);
    add.attrs = &odd;
    add.attr_count = 1;
    refuse(
        context, &add, a, a, WEFT_ERR_INVALID,
        "the name of an attribute (weft_op_call.attrs) has a control character, 0x0a, at byte 2");
    odd = (weft_op_attr){.name = "alpha", .kind = WEFT_ATTR_TEXT, .text = "two"};
    refuse(context, &add, a, a, WEFT_ERR_INVALID,
           "attribute alpha is the text \"two\"; it must be a number");
    add.attr_size = 0;
    refuse(context, &add, a, a, WEFT_ERR_VERSION,
           "weft_op_apply: weft_op_call.attr_size is 0; set it to sizeof(weft_op_attr)");
    add = call_of("add", 2);
    add.input_count = SIZE_MAX;
    refuse(context, &add, a, a, WEFT_ERR_INVALID, "weft_op_call.input_count is larger than ");
    weft_tensor_release(&a);
    weft_tensor_release(&p);
}

/* A call without inputs names the mesh.  Tensors on such a mesh cannot be made. */
TEST(a_mesh_that_is_too_large_is_refused_once)
{
    OWNED(weft_context) *context = simulate(RANKS);
    int64_t four = 4;
    weft_op_attr shape = {.name = "shape", .kind = WEFT_ATTR_LIST, .list = &four, .count = 1};
    weft_op_call zeros = call_of("zeros", 0);
    weft_tensor *out = NULL;
    OWNED(weft_mesh) *mesh = NULL;

    ck_assert_int_eq(weft_mesh_parse("4", &mesh), WEFT_OK);
    zeros.mesh = mesh;
    zeros.attr_size = sizeof(weft_op_attr);
    zeros.attrs = &shape;
    zeros.attr_count = 1;
    ck_assert_int_ne(weft_op_apply(context, &zeros, NULL, NULL, plain_kernel, NULL, NULL, 1, &out),
                     WEFT_OK);
    ck_assert_msg(strncmp(weft_last_error(), "weft_op_apply: operator zeros: ", 31) == 0 &&
                      strstr(weft_last_error() + 1, "weft_op_apply") == NULL,
                  "%s", weft_last_error());
}

/* ---- lists and given outputs ---- */

/* The call with inputs A, B and C fails, and writes no output. */
static void refuse_three(weft_context *context, const char *name, weft_tensor *a, weft_tensor *b,
                         weft_tensor *c, weft_status status, const char *text)
{
    weft_tensor *inputs[] = {a, b, c, a, b}, *out[5] = {NULL};
    weft_op_call call = call_of(name, strcmp(name, "foreach_add") == 0 ? 5 : 3);

    ck_assert_int_eq(weft_op_apply(context, &call, inputs, NULL, plain_kernel, NULL, NULL, 5, out),
                     status);
    ck_assert_msg(strstr(weft_last_error(), text) != NULL, "%s", weft_last_error());
    for (int i = 0; i < 5; i++)
        ck_assert_ptr_null(out[i]);
}

TEST(lists_of_wrong_forms_and_lengths_are_refused)
{
    OWNED(weft_context) *context = simulate(RANKS);
    weft_tensor *a = make(context, "2", "f32[4] S(0)"), *b = make(context, "2", "f32[4] S(0)");
    weft_tensor *c = make(context, "2", "f32[4] S(0)"),
                *short_one = make(context, "2", "f32[3] S(0)"),
                *whole = make(context, "2", "f32[4] R");

    refuse_three(context, "foreach_add", a, b, c, WEFT_ERR_INVALID,
                 "weft_op_apply: operator foreach_add: the call has 5 inputs, and each element "
                 "takes 2");
    refuse_three(context, "foreach_add.out", a, b, c, WEFT_ERR_INVALID,
                 "operator foreach_add.out: lists have no form .out; write foreach_add");
    refuse_three(context, "add.out", a, b, short_one, WEFT_ERR_MISMATCH,
                 "operator add.out: the memory that is given for output c is f32[3] on a mesh of 2 "
                 "ranks, and c is f32[4]");
    ck_assert_ptr_null(strstr(weft_last_error(), "fixed"));
    refuse_three(context, "add.out", a, b, whole, WEFT_ERR_MISMATCH,
                 "operator add.out: the inputs as they are do not give outputs in the layouts of "
                 "the memory that is given; the cheapest fix moves a from S(0) to R");
    weft_tensor_release(&whole);
    weft_tensor_release(&a);
    weft_tensor_release(&b);
    weft_tensor_release(&c);
    weft_tensor_release(&short_one);
}

/* WEFT_CHECK is set for the tests. */
TEST(outputs_that_overlap_inputs_are_refused)
{
    OWNED(weft_context) *context = simulate(RANKS);
    weft_tensor *a = make(context, "2", "f32[4] S(0)"), *b = make(context, "2", "f32[4] S(0)");
    weft_tensor *whole = make(context, "2", "f32[3,4] R"), *low = NULL, *high = NULL, *out = NULL;
    weft_tensor *same[] = {a, a};
    weft_op_call in_place = call_of("add_", 2), each = call_of("foreach_relu_", 2);

    ck_assert_int_eq(weft_tensor_fill(a, 1, NULL), WEFT_OK);
    ck_assert_int_eq(weft_tensor_narrow(whole, 0, 0, 2, &low), WEFT_OK);
    ck_assert_int_eq(weft_tensor_narrow(whole, 0, 1, 2, &high), WEFT_OK);
    refuse_three(context, "add.out", a, b, a, WEFT_ERR_INVALID,
                 "weft_op_apply: operator add.out: on rank 0, input 0 (8 bytes at ");
    ck_assert_ptr_nonnull(strstr(weft_last_error(), " overlap; only an operator in place"));
    refuse_three(context, "add.out", low, low, high, WEFT_ERR_INVALID, "input 0 (32 bytes at ");
    refuse(context, &in_place, low, high, WEFT_ERR_INVALID, "must not overlap it otherwise");
    /* the same memory, element by element */
    ck_assert_msg(
        weft_op_apply(context, &in_place, same, NULL, plain_kernel, NULL, NULL, 1, &out) == WEFT_OK,
        "%s", weft_last_error());
    weft_tensor_release(&out);
    refuse(context, &each, a, a, WEFT_ERR_INVALID, "output 0 (8 bytes at ");
    weft_tensor_release(&low);
    weft_tensor_release(&high);
    weft_tensor_release(&whole);
    weft_tensor_release(&a);
    weft_tensor_release(&b);
}

/* ---- which tensor, which rank ---- */

TEST(an_element_of_a_list_is_named)
{
    OWNED(weft_context) *context = simulate(RANKS);
    weft_tensor *p[10], *out[6] = {NULL};
    weft_op_attr rate = {.name = "lr", .kind = WEFT_ATTR_REAL, .real = 0.1};
    weft_op_call adamw = call_of("adamw", 10), relu = call_of("relu_", 1);

    for (int i = 0; i < 10; i++)
        p[i] = make(context, "2", i == 5 ? "f32[4,2] S(1)" : i < 8 ? "f32[4,2] S(0)" : "f32[] R");
    adamw.attr_size = sizeof(weft_op_attr);
    adamw.attrs = &rate;
    adamw.attr_count = 1;
    ck_assert_int_eq(weft_op_apply(context, &adamw, p, NULL, plain_kernel, NULL, NULL, 6, out),
                     WEFT_ERR_MISMATCH);
    ck_assert_msg(strstr(weft_last_error(), "operator adamw: in element 1 of the lists, on axis 0, "
                                            "input m (input 5 of the call) is S(1)") != NULL,
                  "%s", weft_last_error());
    weft_tensor_release(&p[0]);
    p[0] = make(context, "2", "f32[4,2] P(sum)");
    refuse(context, &relu, p[0], NULL, WEFT_ERR_MISMATCH,
           "operator relu_: on axis 0, input a is P(sum); a must be ");
    ck_assert_ptr_nonnull(
        strstr(weft_last_error(), "in place of a, which is never moved: move it"));
    for (int i = 0; i < 10; i++)
        weft_tensor_release(&p[i]);
}

static weft_status fail_on_rank_1(void *user, const weft_op_run *run)
{
    (void)user;
    return run->rank == 1 ? weft_fail(WEFT_ERR_SYSTEM, "no kernel image") : WEFT_OK;
}

TEST(a_simulated_rank_whose_kernel_fails_is_named)
{
    OWNED(weft_context) *context = simulate(RANKS);
    weft_tensor *a = make(context, "2", "f32[4] S(0)"), *out = NULL;
    weft_op_call relu = call_of("relu", 1);

    ck_assert_int_eq(weft_op_apply(context, &relu, &a, NULL, fail_on_rank_1, NULL, NULL, 1, &out),
                     WEFT_ERR_SYSTEM);
    ck_assert_str_eq(weft_last_error(),
                     "weft_op_apply: operator relu: the kernel on rank 1 returned "
                     "ERR_SYSTEM: no kernel image");
    ck_assert_ptr_null(out);
    weft_tensor_release(&a);
}

/* ---- gradients ---- */

TEST(operands_of_a_backward_are_compared_with_the_call)
{
    OWNED(weft_context) *context = simulate(RANKS);
    weft_tensor *x = make(context, "2", "f32[4] S(0)"), *y = make(context, "2", "f32[4] S(0)");
    weft_tensor *wide = make(context, "2", "f32[5] S(0)"),
                *fine = make(context, "2", "f64[4] S(0)");
    weft_tensor *forward[] = {x, y}, *found[1] = {NULL};
    const weft_spec *specs[] = {weft_tensor_spec(x)};
    weft_op_call relu = call_of("relu", 1);
    OWNED(weft_op_backward) *backward = NULL;

    relu.inputs = specs;
    ck_assert_int_eq(weft_op_backward_create(&relu, NULL, &backward), WEFT_OK);
    ck_assert_int_eq(weft_op_backward_apply(context, backward, forward, &wide, NULL, plain_kernel,
                                            NULL, NULL, found),
                     WEFT_ERR_INVALID);
    ck_assert_str_eq(weft_last_error(),
                     "weft_op_backward_apply: gradients[0] is f32[5] S(0), and the backward was "
                     "made for f32[4] S(0); sizes and dtypes must be the same");
    forward[1] = fine;
    ck_assert_int_eq(weft_op_backward_apply(context, backward, forward, &y, NULL, plain_kernel,
                                            NULL, NULL, found),
                     WEFT_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "forward[1] is f64[4] S(0), and the backward"));
    forward[1] = y;
    ck_assert_int_eq(weft_op_backward_apply(context, backward, forward, &y, NULL, plain_kernel,
                                            NULL, NULL, found),
                     WEFT_ERR_UNSUPPORTED);
    ck_assert_msg(strstr(weft_last_error(), "weft_op_backward_apply: operator threshold_bwd: the "
                                            "kernel on rank 0 returned") != NULL &&
                      strstr(weft_last_error(), "weft_op_apply") == NULL,
                  "%s", weft_last_error());
    ck_assert_ptr_null(found[0]);
    weft_tensor_release(&x);
    weft_tensor_release(&y);
    weft_tensor_release(&wide);
    weft_tensor_release(&fine);
}

/* ---- moves ---- */

static char logged[1024];

static void collect(void *argument, enum weft_log_level level, const char *line)
{
    (void)argument;
    (void)level;
    snprintf(logged, sizeof logged, "%s", line);
}

TEST(a_needed_move_is_named_with_its_price)
{
    OWNED(weft_context) *context = simulate(RANKS);
    weft_tensor *a = make(context, "tp=2", "f32[4,6] S(1)");
    weft_tensor *b = make(context, "tp=2", "f32[6,4] S(1)"), *inputs[] = {a, b}, *out = NULL;
    weft_op_apply_options options = {.struct_size = sizeof options};
    weft_record_counts *counting = NULL;
    struct counted counts;
    weft_op_call mm = call_of("mm", 2);

    ck_assert_int_eq(weft_tensor_fill(a, 1, NULL), WEFT_OK);
    ck_assert_int_eq(weft_tensor_fill(b, 1, NULL), WEFT_OK);
    refuse(
        context, &mm, a, b, WEFT_ERR_MISMATCH,
        "on axis tp, input b is S(1), and a is S(1); b must be S(0); the cheapest fix moves b from "
        "S(1) to S(0), in ");
    weft_log_to(collect, NULL);
    options.moves = WEFT_OP_MOVES_MADE;
    ck_assert_int_eq(weft_record_counts_create(context, &counting), WEFT_OK);
    ck_assert_int_eq(
        weft_op_apply(context, &mm, inputs, &options, plain_kernel, NULL, NULL, 1, &out), WEFT_OK);
    ck_assert_int_eq(counts_take(counting, &counts), WEFT_OK);
    ck_assert(counts.sums.implicit_moves == 1 && counts.operations[WEFT_RECORD_REDISTRIBUTE] == 1);
    weft_tensor_release(&out);
    ck_assert_str_eq(logged, "");
    options.moves = WEFT_OP_MOVES_SHOWN;
    ck_assert_int_eq(
        weft_op_apply(context, &mm, inputs, &options, plain_kernel, NULL, NULL, 1, &out), WEFT_OK);
    weft_log_to(NULL, NULL);
    ck_assert_msg(strstr(logged, "weft_op_apply: operator mm moves input 1 from f32[6,4] S(1) to "
                                 "f32[6,4] S(0), which takes ") != NULL,
                  "%s", logged);
    weft_tensor_release(&out);
    weft_tensor_release(&a);
    weft_tensor_release(&b);
}
