/* Attributes and dtypes that decide which partials hold, and attributes that are refused. */
#include "support/ops.h"
#include "support/suite.h"

struct row {
    const char *name, *inputs, *attrs, *want; /* want: a part of the answer; "!": refused */
};

/* Check ROWS on a mesh of two ranks.  A wanted text that begins with "=" is the whole answer. */
static void check_rows(const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        OWNED(op_text) o;
        const char *answer;
        op_begin(&o, rows[i].name, "2", rows[i].inputs, rows[i].attrs, NULL);
        answer = op_answer(weft_op_check, &o, NULL, true);
        if (rows[i].want[0] == '=' ? strcmp(answer, rows[i].want + 1) != 0
                                   : strstr(answer, rows[i].want) == NULL)
            ck_abort_msg("%s(%s) %s: %s, not %s", rows[i].name, rows[i].inputs, rows[i].attrs,
                         answer, rows[i].want);
    }
}

TEST(attributes_that_no_rule_lists_are_refused)
{
    static const struct row rows[] = {
        {"sum", "f32[8,4] S(0)", "dim=0",
         "! weft_op_check: operator sum: it has no attribute dim; "},
        {"sum", "f32[8,4] S(0)", "dims=1 axis=0", "the attributes of its rules: dims"},
        {"sum", "f32[8,4] S(0)", "dims=1", "=S(0) -> f32[8] S(0)"},
        {"sum", "f32[8,4] S(0)", "dims=1 axis=0", "it has no attribute axis"}, /* not kept */
        {"norm", "f32[8] S(0)", "ord=2", "the attributes of its rules: p, dims"},
        {"relu", "f32[8] S(0)", "alpha=2", "the attributes of its rules: none"},
        {"layer_norm", "f32[8,4] S(0)", "normalized_shape=4", "no attribute normalized_shape"},
        {"avg_pool", "f32[2,4,8] R", "kernel_size=2", "no attribute kernel_size"},
        {"avg_pool", "f32[2,4,8] R", "", "attribute kernel is missing"},
        {"pad", "f32[8] P(sum)", "pad=1,1 value=1", "no attribute value"},
        {"layer_norm", "f32[8,4] S(0)", "dims=1 eps=0.5",
         "=S(0) -> f32[8,4] S(0) ; f32[8,1] S(0) "
         "; f32[8,1] S(0)"},
        {"sum", "f32[8,4] S(0)", "dims=0 dims=1", "the call has attribute dims twice"},
        {"sum", "f32[8,4] S(0)", "dims=1 keepdim=True",
         "keepdim is True; it must be true or false"},
        {"topk", "f32[8,4] S(0)", "dim=1 k=9", "attribute k is 9, and dimension 1 of x has size 4"},
        {"mse_loss", "f32[4] R ; f32[4] R", "reduction=avg",
         "there are rules for (reduction=none,beta,delta), (reduction=sum), (reduction=mean)"},
        {"topk", "f32[8,4] S(0)", "dim=1", "attribute k is missing"},
        {"unfold", "f32[8,4] S(0)", "dim=1", "attribute size, that of a window, is missing"},
        {"pad", "f32[8] S(0)", "pad=9223372036854775807,9223372036854775807", "beyond 2^63"},
    };

    check_rows(rows, WF_COUNT(rows));
}

/* Limits that follow from the shapes of the call. */
static const struct row shape_limits[] = {
    {"select", "f32[8,4] S(1)", "dim=0 index=-8", "=S(1) -> f32[4] S(0)"},
    {"select", "f32[8,4] S(1)", "dim=0",
     "! weft_op_check: operator select: attribute index is missing"},
    {"select", "f32[8,4] S(1)", "dim=0 index=8",
     "attribute index is 8, and dimension 0 of x has size 8"},
    {"select", "f32[8,4] S(1)", "dim=0 index=-9", "attribute index is -9, and dimension 0"},
    {"select", "f32[0,4] S(1)", "dim=0 index=0", "dimension 0 of x has size 0"},
    {"select", "f32[8,4] S(1)", "dim=0 index=1.5", "attribute index must be an integer"},
    {"select", "f32[8,4] S(1)", "dim=0 index=a", "attribute index must be an integer"},
    {"select", "f32[] R", "dim=0 index=0", "tensor x has 0 dimensions; the rule needs at least 1"},
    {"select_bwd", "f32[4] R", "dim=0 n=8 index=8", "index is 8, and dimension 0 of x has size 8"},
    {"select_scatter", "f32[8,4] R ; f32[4] R", "dim=0 index=9", "attribute index is 9"},
    {"slice", "f32[8,4] S(1)", "dim=0 start=-99 end=99", "=S(1) -> f32[8,4] S(1)"},
    {"slice", "f32[8,4] S(1)", "dim=0 start=a", "attribute start must be an integer"},
    {"slice", "f32[8,4] S(1)", "dim=a", "attribute dim must be an integer"},
    {"narrow", "f32[8,4] S(1)", "dim=0 start=2 end=8", "=S(1) -> f32[6,4] S(1)"},
    {"narrow", "f32[8,4] S(1)", "dim=0 start=2 end=9", "attribute end is 9, and dimension 0"},
    {"narrow", "f32[8,4] S(1)", "dim=0 start=5 end=2",
     "attribute start is index 5 of dimension 0 of x, behind end, which is index 2"},
    {"narrow", "f32[8,4] S(1)", "dim=0 start=-1 end=-2", "attribute start is index 7"},
    {"narrow", "f32[8,4] S(1)", "dim=0 start=5 end=5", "=S(1) -> f32[0,4] S(1)"},
    {"narrow", "f32[8,4] S(1)", "dim=0 start=5", "=S(1) -> f32[3,4] S(1)"},
    {"slice", "f32[8,4] S(1)", "dim=0 start=5 end=2", "=S(1) -> f32[0,4] S(1)"},
    {"slice_bwd", "f32[5,4] R", "dim=0 n=8 start=1 end=6", "=R -> f32[8,4] R"},
    {"slice_bwd", "f32[3,4] R", "dim=0 n=8 end=5",
     "attributes start, end and step take 5 of the 8 indices of dimension 0 of x, and "
     "dimension "
     "0 of g has size 3"},
    {"slice_scatter", "f32[8,4] R ; f32[3,4] R", "dim=0 end=5", "dimension 0 of s has size 3"},
    {"unbind", "f32[3,4] R", "dim=0 count=2",
     "the call has 2 outputs, and dimension 0 of x has size 3"},
    {"unbind", "f32[3,4] S(1)", "dim=0 count=3",
     "=S(1) -> f32[4] S(0) ; f32[4] S(0) ; f32[4] S(0)"},
    {"stack", "f32[8,4] R ; f32[8,5] R", "dim=0",
     "dimension 1 of tensor 1 of the list has size 5, that of another 4"},
    {"stack", "f32[8,4] R ; f32[8] R", "dim=0",
     "tensor 1 of the list has 1 dimension, another has 2"},
    {"softmax", "f32[8] R", "dim=1", "the tensor has 1 dimension"},
    {"einsum", "f32[8] R", "eq=i,i->i", "attribute eq has 2 operands, and the call has 1 input"},
    {"roll", "f32[8,4] S(0)", "dims=1 shifts=-1", "=S(0) -> f32[8,4] S(0)"},
    {"roll", "f32[8,4] S(0)", "dims=1", "attribute shifts is missing"},
    {"roll", "f32[8,4] S(0)", "dims=1 shifts=1,2", "attribute shifts has 2 entries; it needs 1"},
    {"roll", "f32[8,4] R", "shifts=1,2", "attribute shifts has 2 entries; it needs 1"},
    {"flip", "f32[8,4] S(0)", "dims=1 shifts=1", "it has no attribute shifts"},
    {"kthvalue", "f32[8,4] S(0)", "dims=1 k=4", "-> f32[8] S(0)"},
    {"kthvalue", "f32[8,4] S(0)", "dims=1 k=0",
     "attribute k is 0, and dimension 1 of x has size 4"},
    {"kthvalue", "f32[8,4] S(0)", "dims=1 k=5", "attribute k is 5"},
    {"kthvalue", "f32[8,4] R", "dims=0,1 k=3", "attribute dims lists 2 dimensions; it must be one"},
    {"kthvalue", "f32[8,4] R", "k=3", "attribute dims is missing, and x has 2 dimensions"},
    {"kthvalue", "f32[4] R", "k=3", "-> f32[] R"},
    {"kthvalue", "f32[] R", "dims=0 k=1", "-> f32[] R"},
    {"mode", "f32[8,4,2] R", "dims=0,1", "attribute dims lists 2 dimensions"},
    {"median_dim", "f32[8,4] R", "", "attribute dims is missing"},
    {"argmax", "f32[8,4,2] S(2)", "dims=0,1", "-> i64[2] S(0)"},
    {"argmax", "f32[8,4,2] R", "", "-> i64[] R"},
    {"sort", "f32[8,4] S(1)", "dim=0,1", "attribute dim lists 2 dimensions; it must be one"},
    {"softmax", "f32[8,4] S(1)", "dim=1,0", "attribute dim lists 2 dimensions"},
    {"embedding_bwd", "f32[3,4] R ; i64[3] R", "v=8 padding_idx=7", "-> f32[8,4] R"},
    {"embedding_bwd", "f32[3,4] R ; i64[3] R", "v=8 padding_idx=8",
     "attribute padding_idx is 8, and dimension 0 of w has size 8"},
    {"multinomial", "f32[8,4] S(0)", "k=5", "attribute k is 5, and dimension 1 of p has size 4"},
    {"multinomial", "f32[8,4] S(0)", "k=5 replacement=1", "=S(0) -> i64[8,5] S(0)"},
    {"moe_gate", "f32[8,4] R ; f32[4,6] R", "k=7",
     "attribute k is 7, and dimension 1 of w has size 6"},
    {"topk", "f32[8,4] S(0)", "dim=1 k=1.5", "attribute k must be an integer"},
    {"embedding", "f32[8,4] R ; i64[3] R", "padding_idx=-8", "-> f32[3,4] R"},
    {"embedding", "f32[8,4] R ; i64[3] R", "padding_idx=8", "dimension 0 of w has size 8"},
    {"scatter_add", "f32[8,4] R ; i64[9,4] R ; f32[9,4] R", "dim=0", "-> f32[8,4] R"},
    {"scatter_add", "f32[8,4] R ; i64[3,9] R ; f32[3,9] R", "dim=0",
     "dimension 1 of i has size 9, and that of x has 4"},
    {"scatter", "f32[8,4] R ; i64[3,4] R ; f32[3,2] R", "dim=0",
     "dimension 1 of i has size 4, and that of s has 2"},
    {"scatter", "f32[8,4] S(1) ; i64[3,4] S(1) ; f32[5,4] S(1)", "dim=0", "-> f32[8,4] S(1)"},
    {"scatter", "f32[8,4] R ; i64[6,4] R ; f32[5,4] R", "dim=0",
     "dimension 0 of i has size 6, and that of s has 5"},
    {"scatter_add", "f32[8,4] R ; i64[4,4] S(0) ; f32[4,4] S(0)", "dim=0", "-> f32[8,4] P(sum)"},
    {"scatter_add", "f32[8,4] R ; i64[4,4] S(0) ; f32[6,4] S(0)", "dim=0", "!"},
    {"interpolate", "f32[2,4,8,8] R", "size=16,", "attribute size has 1 entry, and x has 2"},
    {"expand", "f32[1,4] R", "shape=3,-1", "-> f32[3,4] R"},
    {"expand", "f32[1,4] R", "shape=3,-2", "attribute shape has the entry -2 at 1"},
    {"expand", "f32[4] R", "shape=-1,4", "attribute shape has the entry -1 at 0"},
    {"repeat", "f32[8,4] R", "repeats=2,", "attribute repeats has 1 entry, and x has 2 dimensions"},
    {"repeat_interleave", "f32[8,4] R", "dim=0 repeats=2,3", "it must be one number"},
    {"pad", "f32[8] R", "pad=7,7 mode=reflect", "-> f32[22] R"},
    {"pad", "f32[8] R", "pad=8,0 mode=reflect", "attribute pad is 8 with mode reflect"},
    {"pad", "f32[8] R", "pad=9,0 mode=circular", "attribute pad is 9 with mode circular"},
    {"cross", "f32[8,4] R ; f32[8,4] R", "dim=0", "factor k is 3, and 8 in dimension 0 of a"},
    {"conv", "f32[2,4,8] R ; f32[4,4,3] R", "groups=0", "groups is 0; it must be at least 1"},
    {"conv", "f32[2,4,8] R ; f32[4,4,3] R", "stride=1,2", "attribute stride has 2 entries"},
    {"conv", "f32[2,4,8] R ; f32[4,4,9] R", "",
     "dimension 2 of x has size 8 with its padding, and a window has 9"},
    {"max_pool", "f32[2,4,8] R", "kernel=3, padding=2,", "the maximum is half of the window, 1"},
    {"max_pool", "f32[2,4,8] R", "kernel=2,2", "attribute kernel has 2 entries, and x has 1"},
    {"diagonal", "f32[8,4] R", "offset=a", "attribute offset must be an integer"},
    {"unfold", "f32[8,4] R", "dim=0 size=2 step=a", "attribute step must be an integer"},
    {"index_put", "f32[8,4] R ; i64[2] R ; f32[2,4] R", "pos=0, accumulate=a",
     "attribute accumulate must be an integer"},
};

TEST(attributes_outside_of_the_shapes_are_refused)
{
    check_rows(shape_limits, WF_COUNT(shape_limits));
}

TEST(rules_of_the_program_have_limits_too)
{
    static const struct row rows[] = {
        {"pick", "f32[8,4] S(1)", "index=-1", "=S(1) -> f32[4] S(0)"},
        {"pick", "f32[8,4] S(1)", "index=8", "attribute index is 8"},
        {"pick_k", "f32[8] R", "index=0", "\"check index\" of its rule needs the factor k"},
        {"pick_list", "f32[8,4] R ; f32[8,5] R", "",
         "factor j is 4 in dimension 1 of tensor 0 of x, and 5 in dimension 1 of tensor 1 of x"},
        {"pick_x", "f32[8] R", "", "the clause \"check nothing\" is not known"},
    };

    ck_assert_int_eq(weft_op_register("pick(index): x[k ..] -> y[..]; whole k; check index\n"
                                      "pick_k(index): x[i] -> y[i]; check index\n"
                                      "pick_x: x[i] -> y[i]; check nothing\n"
                                      "pick_list: x*[i j] -> y[i j]"),
                     WEFT_OK);
    check_rows(rows, WF_COUNT(rows));
    ck_assert_int_eq(weft_op_remove("pick"), WEFT_OK);
    ck_assert_int_eq(weft_op_remove("pick_k"), WEFT_OK);
    ck_assert_int_eq(weft_op_remove("pick_x"), WEFT_OK);
    ck_assert_int_eq(weft_op_remove("pick_list"), WEFT_OK);
}

TEST(attributes_decide_which_partials_hold)
{
    static const struct row rows[] = {
        {"threshold", "f32[8] P(max)", "threshold=0 value=20", "!"},
        {"leaky_relu", "f32[8] P(max)", "negative_slope=-1", "!"},
        {"leaky_relu", "f32[8] P(max)", "negative_slope=0.5", "=P(max) -> f32[8] P(max)"},
        {"elu", "f32[8] P(max)", "alpha=-1", "!"},
        {"elu", "f32[8] P(max)", "scale=-1", "!"},
        {"softplus", "f32[8] P(max)", "threshold=0", "!"},
        {"add", "f32[8] R ; f32[8] P(max)", "alpha=-1", "=R ; P(max) -> f32[8] P(min)"},
        {"sub", "f32[8] R ; f32[8] P(max)", "alpha=-1", "=R ; P(max) -> f32[8] P(max)"},
        {"rsub", "f32[8] P(max) ; f32[8] R", "alpha=-1", "=P(max) ; R -> f32[8] P(max)"},
        {"addmm", "f32[4,4] P(max) ; f32[4,4] R ; f32[4,4] R", "beta=-1", "!"},
        {"addmm", "f32[4,4] P(max) ; f32[4,4] R ; f32[4,4] R", "beta=2", "-> f32[4,4] P(max)"},
        {"div", "f32[8] P(sum) ; f32[8] R", "rounding_mode=floor", "!"},
        {"div_scalar", "f32[8] P(sum)", "s=2 rounding_mode=trunc", "!"},
        {"scatter_reduce", "f32[8] P(max) ; i64[4] S(0) ; f32[4] S(0)", "dim=0 reduce=amax",
         "-> f32[8] P(max)"},
        {"scatter_reduce", "f32[8] P(max) ; i64[4] S(0) ; f32[4] S(0)",
         "dim=0 reduce=amax include_self=0", "!"},
        {"cross_entropy", "f32[8,4] S(0) ; i64[8] S(0)", "reduction=sum", "-> f32[] P(sum)"},
        {"cross_entropy", "f32[8,4] S(0) ; i64[8] S(0)", "reduction=mean", "!"},
        {"cross_entropy", "f32[8,4] S(0) ; i64[8] S(0)", "reduction=none", "-> f32[8] S(0)"},
        {"layer_norm", "f32[8,4] S(0)", "dims=0",
         "attribute dims lists dimension 0; the dimensions that it lists must be the last ones of "
         "x"},
        {"rms_norm", "f32[8,4,6] S(0)", "dims=0,2", "must be the last ones of x"},
        {"layer_norm", "f32[8,4] R ; - ; f32[4] P(sum)", "dims=1", "!"},
        {"group_norm", "f32[8,4,2] R ; - ; f32[4] P(sum)", "g=2", "!"},
        {"max_pool", "f32[2,4,8] P(sum)", "kernel=2,", "!"},
        {"max_pool", "f32[2,4,8] P(max)", "kernel=2,", "-> f32[2,4,4] P(max)"},
        {"max_pool", "f32[2,4,7] R", "kernel=2, ceil_mode=1", "-> f32[2,4,4] R"},
        {"max_pool", "f32[2,4,2] R", "kernel=3, stride=2, ceil_mode=1", "-> f32[2,4,1] R"},
        {"max_pool", "f32[2,4,2] R", "kernel=3, stride=2,", "a window has 3"},
        {"avg_pool", "f32[2,4,1] R", "kernel=3, ceil_mode=1", "-> f32[2,4,1] R"},
        {"conv", "f32[2,4,8] S(1) ; f32[4,6,3] S(0)", "stride=2, transposed=1",
         "-> f32[2,6,17] P(sum)"},
        {"conv", "f32[2,4,8] R ; f32[4,6,3] S(1)",
         "padding=1, stride=2, output_padding=1, transposed=1", "-> f32[2,6,16] S(1)"},
        {"conv", "f32[2,4,8] R ; f32[4,4,3] S(0)", "transposed=1", "-> f32[2,4,10] P(sum)"},
        {"conv", "f32[2,4,8] S(1) ; f32[4,3,3] S(0)", "groups=2 transposed=1",
         "-> f32[2,6,10] S(1)"},
        {"conv", "f32[2,4,8] R ; f32[4,4,3] R", "padding=9, transposed=1", "a size below 0"},
        {"conv_bwd", "f32[2,6,17] S(1) ; f32[2,4,8] R ; f32[4,6,3] S(1)", "stride=2, transposed=1",
         "-> f32[2,4,8] P(sum) ; f32[4,6,3] S(1) ; f32[6] S(0)"},
        {"scatter_add", "f32[3,4] R ; i64[5,0] R ; f32[5,0] R", "dim=1", "-> f32[3,4] R"},
    };

    check_rows(rows, WF_COUNT(rows));
}

TEST(partials_of_integers_hold_in_their_own_arithmetic)
{
    static const struct row rows[] = {
        {"div", "i64[8] P(sum) ; i64[8] R", "", "!"},
        {"div", "i64[8] S(0) ; i64[8] S(0)", "", "-> f32[8] S(0)"},
        {"mul_scalar", "i64[8] P(sum)", "s=0.5", "!"},
        {"mul_scalar", "i64[8] P(sum)", "s=2", "-> i64[8] P(sum)"},
        {"mean", "i64[8,4] P(sum)", "dims=1", "!"},
        {"avg_pool", "i64[2,4,8] P(sum)", "kernel=2,", "!"},
        {"addcdiv", "i64[8] P(sum) ; i64[8] P(sum) ; i64[8] R", "", "!"},
        {"lerp_scalar", "i64[8] P(sum) ; i64[8] P(sum)", "", "!"},
        {"copy", "i64[8] R ; f32[8] P(sum)", "", "!"},
        {"copy", "f32[8] R ; f32[8] P(sum)", "", "-> f32[8] P(sum)"},
        {"where", "bool[4] R ; i32[4] P(sum) ; f32[4] P(sum)", "", "!"},
        {"sum", "bool[8] S(0)", "", "=S(0) -> i64[] P(sum)"},
        {"cumsum", "bool[8,4] S(0)", "dim=1", "-> i64[8,4] S(0)"},
        {"neg", "u8[8] P(max)", "", "!"},
        {"neg", "i8[8] P(max)", "", "-> i8[8] P(min)"},
        {"sub", "u8[8] R ; u8[8] P(max)", "", "!"},
        {"lt_scalar", "u8[8] P(max)", "s=3", "-> bool[8] P(min)"},
        {"cast", "i32[8] P(max)", "to=u8", "!"},
        {"cast", "i64[8] P(max)", "to=i8", "!"},
        {"cast", "i8[8] P(max)", "to=i64", "-> i64[8] P(max)"},
        {"cast", "f32[8] P(sum)", "to=i64", "!"},
        {"cast", "f32[8] P(sum)", "to=bf16", "-> bf16[8] P(sum)"},
    };

    check_rows(rows, WF_COUNT(rows));
}

TEST(outputs_have_the_dtype_that_holds_the_inputs)
{
    static const struct row rows[] = {
        {"mul", "bf16[8] R ; f32[8] R", "", "-> f32[8] R"},
        {"mul", "bf16[8] R ; f32[] R", "", "-> bf16[8] R"},
        {"mul", "f16[8] R ; bf16[8] R", "", "-> f32[8] R"},
        {"add", "i32[8] R ; i64[8] R", "", "-> i64[8] R"},
        {"add", "u8[8] R ; i8[8] R", "", "-> i16[8] R"},
        {"add", "i64[8] R ; f16[] R", "", "-> f16[8] R"},
        {"add_", "bf16[8] R ; f32[8] R", "", "-> bf16[8] R"},
        {"add_", "i64[8] R ; f32[8] R", "", "!"},
        {"sqrt", "i64[8] R", "", "-> f32[8] R"},
        {"relu", "i64[8] R", "", "-> i64[8] R"},
        {"mul", "c64[8] R ; f64[8] R", "", "-> c128[8] R"},
        {"gather", "f32[8,4] R ; i64[6,2] R", "dim=1", "-> f32[6,2] R"},
        {"gather", "f32[8,4] R ; i64[3,2] R", "dim=0", "-> f32[3,2] R"},
        {"gather", "f32[8,4] S(0) ; i64[6,2] S(0)", "dim=1", "!"},
        {"gather", "f32[8,4] S(1) ; i64[6,2] R", "dim=1", "-> f32[6,2] P(sum)"},
        {"gather", "f32[8,4] R ; i64[9,2] R", "dim=1", "dimension 0 of i has size 9"},
        {"glu", "f32[8,4] S(0)", "dim=1", "-> f32[8,2] S(0)"},
        {"interpolate", "f32[2,4,8] S(0)", "size=16,", "-> f32[2,4,16] S(0)"},
    };

    check_rows(rows, WF_COUNT(rows));
}

/* Along the axis, o is a sum of contributions and l a replica.  The gradient of q has both ways. */
TEST(inputs_of_contributions_and_replicas_have_no_gradient)
{
    OWNED(weft_op_choice) *choice = NULL;
    OWNED(op_text) o;

    op_begin(&o, "sdpa", "2", "f32[2,4,8,16] R ; f32[2,4,8,16] R ; f32[2,4,8,16] P(sum)", "", NULL);
    ck_assert_int_eq(weft_op_check(&o.call, NULL, &choice), WEFT_OK);
    ck_assert_ptr_null(weft_op_choice_gradient(choice, 0));
    ck_assert_ptr_nonnull(weft_op_choice_gradient(choice, 2));
}
