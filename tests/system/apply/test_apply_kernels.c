/* The count that a kernel gets, and the errors of kernels that fail. */
#include "kernels.h"
#include "simulated.h"
#include "support/suite.h"

#include <string.h>

/* ---- averages ---- */

static weft_status note_count(void *user, const weft_op_run *run)
{
    *(double *)user = run->count;
    return WEFT_OK;
}

/* Call NAME with two inputs on the mesh 2x3 and return the count that its kernel gets. */
static double count_of(const char *name, const char *a_text, const char *b_text,
                       const char *expected)
{
    weft_context *context = simulate(6);
    weft_tensor *inputs[] = {make(context, "2x3", a_text), make(context, "2x3", b_text)};
    weft_op_call call = {.struct_size = sizeof call, .name = name, .input_count = 2};
    weft_tensor *out = NULL;
    double count = -1;
    char text[100];

    ck_assert_msg(weft_op_apply(context, &call, inputs, NULL, note_count, &count, NULL, 1, &out) ==
                      WEFT_OK,
                  "%s", weft_last_error());
    ck_assert_int_eq(weft_spec_print(weft_tensor_spec(out), text, sizeof text, NULL), WEFT_OK);
    ck_assert_str_eq(text, expected);
    weft_tensor_release(&out);
    for (int i = 0; i < 2; i++)
        weft_tensor_release(&inputs[i]);
    weft_context_release(&context);
    return count;
}

TEST(an_average_is_told_the_length_of_its_rows)
{
    ck_assert_int_eq(weft_op_register("scaled_mean: f[] x[r k] -> y[r]; avg k; lin f | x"),
                     WEFT_OK);
    /* the factors that the output lacks, whatever input has them */
    ck_assert_double_eq(count_of("scaled_mean", "f32[] R,R", "f32[4,6] R,R", "f32[4] R,R"), 6);
    ck_assert_double_eq(
        count_of("scaled_mean", "f32[] R,R", "f32[4,6] S(0),S(1)", "f32[4] S(0),P(avg)"), 2);
    ck_assert_double_eq(
        count_of("scaled_mean", "f32[] R,R", "f32[4,6] S(1),S(1)", "f32[4] P(avg),P(avg)"), 1);
    /* contributions to an average do not shorten rows */
    ck_assert_double_eq(
        count_of("scaled_mean", "f32[] R,R", "f32[4,6] R,P(avg)", "f32[4] R,P(avg)"), 6);
    ck_assert_double_eq(
        count_of("scaled_mean", "f32[] P(avg),R", "f32[4,6] R,S(1)", "f32[4] P(avg),P(avg)"), 2);
    ck_assert_int_eq(weft_op_remove("scaled_mean"), WEFT_OK);
}

TEST(parts_of_an_operator_multiply_their_counts)
{
    ck_assert_int_eq(weft_op_register("row_mean: x[r k] -> y[r]; avg k; lin x\n"
                                      "times: x[r] y[r] -> z[]; avg r; lin x | y\n"
                                      "both is row_mean; times"),
                     WEFT_OK);
    ck_assert_double_eq(count_of("both", "f32[4,6] R,R", "f32[4] R,R", "f32[] R,R"), 24);
    ck_assert_double_eq(
        count_of("both", "f32[4,6] S(0),S(1)", "f32[4] S(0),R", "f32[] P(avg),P(avg)"), 4);
    ck_assert_int_eq(weft_op_remove("both"), WEFT_OK);
    ck_assert_int_eq(weft_op_remove("times"), WEFT_OK);
    ck_assert_int_eq(weft_op_remove("row_mean"), WEFT_OK);
}

/* ---- failures ---- */

static weft_status return_it(void *user, const weft_op_run *run)
{
    (void)run;
    return *(const weft_status *)user;
}

static weft_status explain_it(void *user, const weft_op_run *run)
{
    (void)user;
    return weft_fail(WEFT_ERR_DEVICE, "launch of %s refused", run->name);
}

/* A kernel that returns RESULT fails the call with STATUS and TEXT. */
static void fail_with(weft_op_kernel kernel, weft_status result, weft_status status,
                      const char *text)
{
    OWNED(weft_context) *context = simulate(2);
    weft_tensor *x = make(context, "2", "f32[4] S(0)"), *out = NULL;
    weft_op_call relu = {.struct_size = sizeof relu, .name = "relu", .input_count = 1};

    ck_assert_int_eq(weft_op_remove("no such rule"), WEFT_ERR_NOT_FOUND); /* an older text */
    ck_assert_int_eq(weft_op_apply(context, &relu, &x, NULL, kernel, &result, NULL, 1, &out),
                     status);
    ck_assert_msg(strstr(weft_last_error(), text) != NULL, "%s", weft_last_error());
    ck_assert_msg(strstr(weft_last_error(), "no such rule") == NULL, "%s", weft_last_error());
    weft_tensor_release(&x);
}

TEST(the_error_of_a_kernel_is_its_own)
{
    fail_with(explain_it, WEFT_OK, WEFT_ERR_DEVICE,
              "operator relu: the kernel on rank 0 returned ERR_DEVICE: launch of relu refused");
    fail_with(return_it, WEFT_ERR_NO_MEMORY, WEFT_ERR_NO_MEMORY,
              "operator relu: the kernel on rank 0 returned ERR_NO_MEMORY: out of memory");
    fail_with(return_it, 700, WEFT_ERR_INVALID,
              "operator relu: the kernel on rank 0 returned 700, which is not an error of weft");
    fail_with(return_it, WEFT_IN_PROGRESS, WEFT_ERR_INVALID,
              "the kernel on rank 0 returned 1, which is not");
    fail_with(return_it, -77, WEFT_ERR_INVALID, "the kernel on rank 0 returned -77, which is not");
}
