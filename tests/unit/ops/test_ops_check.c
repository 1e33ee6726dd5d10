/* Which layouts are legal without communication, and what the error says if they are not. */
#include "support/ops.h"
#include "support/suite.h"

struct row {
    const char *name, *mesh, *inputs, *attrs, *answer;
};

static void check_rows(const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        ck_assert_str_eq(op_check(rows[i].name, rows[i].mesh, rows[i].inputs, rows[i].attrs),
                         rows[i].answer);
    ck_assert_int_eq(wf_mem_live() > 0, 1); /* the registry only; leaks are found below */
}

TEST(layouts_of_matrix_products)
{
    static const struct row rows[] = {
        {"mm", "4", "f32[64,32] S(0) ; f32[32,16] R", "", "S(0) ; R -> S(0)"},
        {"mm", "4", "f32[64,32] R ; f32[32,16] S(1)", "", "R ; S(1) -> S(1)"},
        {"mm", "4", "f32[64,32] S(1) ; f32[32,16] S(0)", "", "S(1) ; S(0) -> P(sum)"},
        {"mm", "4", "f32[64,32] P(sum) ; f32[32,16] R", "", "P(sum) ; R -> P(sum)"},
        {"mm", "2x4", "f32[64,32] S(0),S(1) ; f32[32,16] R,S(0)", "",
         "S(0),S(1) ; R,S(0) -> S(0),P(sum)"},
        {"mm", "2x2", "f32[8,8] SS(0,2),R ; f32[8,8] R,S(1)", "",
         "SS(0,2),R ; R,S(1) -> SS(0,2),S(1)"},
        {"mm", "2x2", "f32[8,8] S(0)[1],S(0)[0] ; f32[8,8] R,R", "",
         "S(0)[1],S(0)[0] ; R,R -> S(0)[1],S(0)[0]"},
        {"mm", "2x2", "f32[8,8] P(sum),R ; f32[8,8] R,P(sum)", "",
         "P(sum),R ; R,P(sum) -> P(sum),P(sum)"},
        {"linear", "4", "f32[8,64,32] S(2) ; f32[16,32] S(1) ; -", "", "S(2) ; S(1) ; - -> P(sum)"},
        /* a bias that every rank has becomes a contribution: no communication */
        {"linear", "4", "f32[8,64,32] S(2) ; f32[16,32] S(1) ; f32[16] R", "",
         "S(2) ; S(1) ; P(sum) -> P(sum)"},
        {"einsum", "2x2", "f32[4,8,16] S(0),S(2) ; f32[4,16,12] S(0),S(1)", "eq=bij,bjk->bik",
         "S(0),S(2) ; S(0),S(1) -> S(0),P(sum)"},
        {"einsum", "2", "f32[4,8] S(0) ; f32[8,4] S(1)", "eq=ij,ji", "S(0) ; S(1) -> P(sum)"},
        {"matmul", "2", "f32[3,1,8,4] S(2) ; f32[5,4,6] R", "", "S(2) ; R -> S(2)"},
        {"matmul", "2", "f32[3,1,8,4] R ; f32[5,4,6] S(0)", "", "R ; S(0) -> S(1)"},
    };

    check_rows(rows, WF_COUNT(rows));
}

TEST(layouts_of_pointwise_operators)
{
    static const struct row rows[] = {
        {"add", "4", "f32[8,12] S(1) ; f32[12] S(0)", "", "S(1) ; S(0) -> S(1)"},
        {"add", "4", "f32[8,12] S(0) ; f32[12] R", "", "S(0) ; R -> S(0)"},
        {"add", "4", "f32[8,12] P(sum) ; f32[12] R", "", "P(sum) ; P(sum) -> P(sum)"},
        {"add", "4", "f32[8,12] P(avg) ; f32[12] R", "", "P(avg) ; R -> P(avg)"},
        {"add", "4", "f32[8,12] P(max) ; f32[12] R", "", "P(max) ; R -> P(max)"},
        {"sub", "4", "f32[8,12] R ; f32[12] P(max)", "", "R ; P(max) -> P(min)"},
        {"neg", "4", "f32[8,12] P(max)", "", "P(max) -> P(min)"},
        {"relu", "2x2", "f32[8,12] P(max),S(0)", "", "P(max),S(0) -> P(max),S(0)"},
        {"mul_scalar", "4", "f32[8] P(min)", "s=-2", "P(min) -> P(max)"},
        {"where", "4", "bool[8] R ; f32[8] P(sum) ; f32[8] P(sum)", "",
         "R ; P(sum) ; P(sum) -> P(sum)"},
        {"add_", "4", "f32[8,12] P(sum) ; f32[12] R", "", "P(sum) ; P(sum) -> P(sum)"},
        {"zeros_like", "2x2", "f32[8,12] S(1),P(sum)", "", "S(1),P(sum) -> S(1),R"},
        {"empty_like", "2x2", "f32[8,12] S(1),P(sum)", "", "S(1),P(sum) -> S(1),P(sum)"},
        {"foreach_add", "2", "f32[8] S(0) ; f32[6] R ; f32[8] S(0) ; f32[6] P(sum)", "",
         "S(0) ; P(sum) ; S(0) ; P(sum) -> S(0) ; P(sum)"},
        {"foreach_mul_", "2", "f32[8] S(0) ; f32[6] P(sum) ; f32[] R", "",
         "S(0) ; P(sum) ; R -> S(0) ; P(sum)"},
        {"adamw", "2", "f32[8] S(0) ; f32[8] R ; f32[8] S(0) ; f32[8] S(0) ; f32[] R", "",
         "S(0) ; S(0) ; S(0) ; S(0) ; R -> S(0) ; S(0) ; S(0)"},
    };

    check_rows(rows, WF_COUNT(rows));
}

TEST(layouts_of_views)
{
    static const struct row rows[] = {
        {"reshape", "3", "f32[2,3,4] S(1)", "shape=6,4", "S(1) -> SS(0,2)"},
        {"reshape", "3", "f32[6,4] SS(0,2)", "shape=2,3,4", "SS(0,2) -> S(1)"},
        {"view", "2", "f32[2,4] S(1)", "shape=8,", "S(1) -> SS(0,2)"},
        {"view", "2x2", "f32[4,8,16] S(1),S(1)", "shape=32,16", "S(1),S(1) -> SS(0,4),SS(0,4)"},
        {"view", "2x2", "f32[32,16] SS(0,4),SS(0,4)", "shape=4,8,16",
         "SS(0,4),SS(0,4) -> S(1),S(1)"},
        {"view", "2x2", "f32[4,8] S(0),S(1)", "shape=32,", "S(0),S(1) -> S(0),SS(0,2)"},
        {"view", "2x2", "f32[4,8] S(1),S(0)", "shape=32,", "S(1),S(0) -> SS(0,4),S(0)"},
        {"view", "2", "f32[6,4] S(0)", "shape=4,6", "S(0) -> S(0)"},
        {"view", "2", "f32[6,4] SS(1,2)", "shape=4,6", "SS(1,2) -> SS(1,3)"},
        {"view", "4", "f32[0,8] S(0)", "shape=0,2,4", "S(0) -> S(0)"},
        {"view", "2", "f32[5,4] P(max)", "shape=20,", "P(max) -> P(max)"},
        {"permute", "2x2", "f32[2,3,4] S(0),S(2)", "order=2,0,1", "S(0),S(2) -> S(1),S(0)"},
        {"squeeze", "4", "f32[4,1,8] S(0)", "", "S(0) -> S(0)"},
        {"unsqueeze", "4", "f32[4,8] S(1)", "dim=1", "S(1) -> S(2)"},
        {"expand", "2", "f32[1,8] S(1)", "shape=4,8", "S(1) -> S(1)"},
        {"repeat", "2", "f32[4] S(0)", "repeats=3,", "S(0) -> SS(0,3)"},
        {"slice", "2", "f32[8,6] S(0)", "dim=0 start=1 step=2", "S(0) -> S(0)"},
        {"slice", "2", "f32[8,6] S(0)", "dim=1 start=1 end=4", "S(0) -> S(0)"},
        {"cat", "2", "f32[8,16] S(0) ; f32[8,4] R", "dim=1", "S(0) ; S(0) -> S(0)"},
        {"split", "2", "f32[8,16] S(0)", "sizes=4,12 dim=1", "S(0) -> S(0) ; S(0)"},
        {"unbind", "2", "f32[2,16] S(1)", "dim=0 count=2", "S(1) -> S(0) ; S(0)"},
    };

    check_rows(rows, WF_COUNT(rows));
}

TEST(layouts_of_reductions_and_lookups)
{
    static const struct row rows[] = {
        {"sum", "4", "f32[8,16] S(1)", "dims=1 keepdim=1", "S(1) -> P(sum)"},
        {"sum", "4", "f32[8,16] S(0)", "dims=1", "S(0) -> S(0)"},
        {"sum", "4", "f32[8,16] S(1)", "dims=0", "S(1) -> S(0)"},
        {"mean", "2", "f32[3,4] S(0)", "", "S(0) -> P(avg)"},
        {"mean", "2", "f32[1,4] S(0)", "", "S(0) -> P(avg)"},
        {"amax", "4", "f32[5,7] S(0)", "dims=0", "S(0) -> P(max)"},
        {"any", "4", "bool[8] S(0)", "", "S(0) -> P(max)"},
        {"norm", "4", "f32[8] S(0)", "p=inf", "S(0) -> P(max)"},
        {"softmax", "4", "f32[8,16] S(0)", "dim=-1", "S(0) -> S(0)"},
        {"layer_norm", "4", "f32[8,16] S(0) ; f32[16] R ; f32[16] R", "dims=-1",
         "S(0) ; R ; R -> S(0) ; S(0) ; S(0)"},
        {"embedding", "4", "f32[100,16] S(0) ; i64[3,5] R", "", "S(0) ; R -> P(sum)"},
        {"embedding", "4", "f32[100,16] S(1) ; i64[3,5] R", "", "S(1) ; R -> S(2)"},
        {"index", "2", "f32[8,16,4] S(2) ; i64[3] R", "pos=1", "S(2) ; R -> S(2)"},
        {"index", "2", "f32[8,16,4] S(1) ; i64[3] R ; i64[3] R", "pos=0,2", "S(1) ; R ; R -> S(1)"},
        {"gather", "4", "f32[8,16] S(0) ; i64[8,3] S(0)", "dim=1", "S(0) ; S(0) -> S(0)"},
        {"scatter_add", "4", "f32[8] R ; i64[16] S(0) ; f32[16] S(0)", "dim=0",
         "P(sum) ; S(0) ; S(0) -> P(sum)"},
        {"topk", "2", "f32[8,16] S(0)", "dim=1 k=3", "S(0) -> S(0) ; S(0)"},
        {"sdpa", "2", "f32[2,4,8,16] S(1) ; f32[2,4,8,16] S(1) ; f32[2,4,8,16] S(1)", "",
         "S(1) ; S(1) ; S(1) -> S(1) ; S(1)"},
        {"sdpa_gqa", "2", "f32[2,8,8,16] S(1) ; f32[2,2,8,16] S(1) ; f32[2,2,8,16] S(1)", "r=4",
         "S(1) ; S(1) ; S(1) -> S(1) ; S(1)"},
        {"group_norm", "2", "f32[4,8,6] S(1) ; f32[8] S(0) ; f32[8] S(0)", "g=2",
         "S(1) ; S(0) ; S(0) -> S(1) ; S(1) ; S(1)"},
    };

    check_rows(rows, WF_COUNT(rows));
}

TEST(errors_name_both_sides_and_the_cheapest_fix)
{
    ck_assert_str_eq(op_check("mm", "tp=4", "f32[64,32] S(1) ; f32[32,16] S(1)", ""),
                     "! weft_op_check: operator mm: on axis tp, input b is S(1), and a is S(1); b "
                     "must be S(0); the cheapest fix moves b from S(1) to S(0), in 8.4 us");
    ck_assert_str_eq(
        op_check("softmax", "2x2", "f32[8,16] S(0),S(1)", "dim=1"),
        "! weft_op_check: operator softmax: on axis 1, input x is S(1); x must be R or "
        "S(0); the cheapest fix moves x from S(0),S(1) to S(0),R, in 7.2 us");
    ck_assert_ptr_nonnull(strstr(op_check("reshape", "4", "f32[12,8] S(1)", "shape=16,6"),
                                 "not those of one split of the rule's factors"));
    ck_assert_ptr_nonnull(strstr(op_check("add_", "4", "f32[8] S(0) ; f32[8] P(sum)", ""),
                                 "the cheapest fix moves b from P(sum) to S(0)"));
    /* The input that is written is never the one that must change. */
    ck_assert_ptr_nonnull(strstr(op_check("add_", "tp=4", "f32[8,6] S(1) ; f32[8,6] S(0)", ""),
                                 "on axis tp, input b is S(0), and a is S(1); b must be S(1); the "
                                 "cheapest fix moves b from S(0) to S(1), in "));
    /* Several rows want the same placement. */
    ck_assert_ptr_nonnull(strstr(
        op_check("cross_entropy_bwd", "4", "f32[] R ; f32[8,6] S(1) ; i64[8] R", "reduction=mean"),
        "; x must be R; the cheapest fix "));
}

TEST(calls_that_do_not_fit_the_rule_are_refused)
{
    static const struct row rows[] = {
        {"sofmax", "2", "f32[8] R", "", "did you mean softmax?"},
        {"foreach_where", "2", "f32[8] R ; f32[8] R", "", "each element takes 3"},
        {"foreach_huber_loss", "2", "f32[8] R ; f32[8] R", "reduction=median",
         "operator foreach_huber_loss: no rule applies to these attributes"},
        {"foreach_add", "2", "f32[8] R ; f32[8] R ; f32[8] R ; f32[8] R ; f32[8] R", "",
         "the call has 5 inputs, and each element takes 2: the inputs must be 2 lists of one "
         "length, or 1 list and a last input without dimensions"},
        {"foreach_add.out", "2", "f32[8] R ; f32[8] R ; f32[8] R", "",
         "operator foreach_add.out: lists have no form .out; write foreach_add, which makes its "
         "outputs, foreach_add_, which writes to its first list, or add.out for each element"},
        {"adamw", "2", "f32[8] R ; f32[8] R", "",
         "the call has 2 inputs; the rule takes 5 lists of one length"},
        {"relu.out", "2", "f32[8] R", "",
         "operator relu.out: the call has 1 input; the rule takes 1, and the memory of 1 output"},
        {"linear.out", "2", "f32[8,4] R ; f32[8,6] R", "",
         "the call has 2 inputs; the rule takes 2 to 3, and the memory of 1 output"},
        {"foreach_foreach_add", "2", "f32[8] R ; f32[8] R", "", "write foreach_add"},
        {"sofm\x1b[31max", "2", "f32[8] R", "", "has a control character, 0x1b, at byte 4"},
        {"sgd", "2", "f32[8] R ; f32[8] R ; f32[8] R", "lr=fast",
         "attribute lr is the text \"fast\"; it must be a number"},
        {"mm", "2", "f32[8,4] R", "", "the call has 1 input; the rule takes 2"},
        {"mm", "2", "f32[8,4] R ; -", "", "input b is missing"},
        {"mm", "2", "f32[8,4] R ; f32[5,6] R", "",
         "factor k is 4 in dimension 1 of a, and 5 in dimension 0 of b"},
        {"mm", "2", "f32[8,4] R ; f32[4] R", "", "tensor b has 1 dimension; the rule needs 2"},
        {"softmax", "2", "f32[8,4] R", "", "attribute dim is missing"},
        {"softmax", "2", "f32[8,4] R", "dim=2", "attribute dim is 2, and the tensor has 2"},
        {"sum", "2", "f32[8,4] R", "dims=0,-2", "lists dimension 0 twice"},
        {"group_norm", "2", "f32[4,8,6] R", "g=3", "its factors multiply to a multiple of 3"},
        {"reshape", "2", "f32[4,6] R", "shape=5,5", "x has 24 elements"},
        {"cat", "2", "f32[4,6] R ; f32[5,5] R", "dim=0", "dimension 1 of tensor 0"},
        {"split", "2", "f32[4,6] R", "dim=0 sizes=1,2", "the sizes add up to 3"},
        {"einsum", "2", "f32[4,6] R", "eq=ii->i", "stands twice in one operand"},
        {"einsum", "2", "f32[4,6] R", "eq=ij,jk->ik", "has 2 operands, and the call has 1 input"},
        {"permute", "2", "f32[4,6] R", "order=0,0", "not a permutation"},
        {"topk", "2", "f32[4,6] R", "dim=0", "attribute k is missing"},
        {"scale", "2", "f32[4,6] R ; f32[3] R", "s=1", "takes 1"},
        {"expand", "2", "f32[1] R", "shape=4611686018427387904,8,1", "operator expand, output y"},
        {"mse_loss", "2", "f32[4] R ; f32[4] R", "", "no rule applies to these attributes"},
    };

    for (size_t i = 0; i < WF_COUNT(rows); i++) {
        const char *answer = op_check(rows[i].name, rows[i].mesh, rows[i].inputs, rows[i].attrs);
        ck_assert_msg(answer[0] == '!' && strstr(answer, rows[i].answer) != NULL, "%s: %s",
                      rows[i].name, answer);
    }
}

TEST(outputs_have_shapes_and_dtypes)
{
    static const struct row rows[] = {
        {"sum", "2", "f32[2,3,4] S(1)", "dims=0,2 keepdim=1", "S(1) -> f32[1,3,1] S(1)"},
        {"sum", "2", "f32[2,3,4] R", "", "R -> f32[] R"},
        {"argmax", "2", "f32[2,3] S(0)", "dims=1", "S(0) -> i64[2] S(0)"},
        {"eq", "2", "f32[2,1] R ; f32[1,3] R", "", "R ; R -> bool[2,3] R"},
        {"cast", "2", "f32[4] S(0)", "to=bf16", "S(0) -> bf16[4] S(0)"},
        {"topk", "2", "f32[8,6] S(0)", "dim=1 k=3", "S(0) -> f32[8,3] S(0) ; i64[8,3] S(0)"},
        {"unbind", "2", "f32[2,6] S(1)", "dim=0 count=2", "S(1) -> f32[6] S(0) ; f32[6] S(0)"},
        {"zeros", "2", "", "shape=4,6 dtype=i32", "-> i32[4,6] R"},
        {"pad", "2", "f32[4,6] S(0)", "pad=1,2 v=0", "S(0) -> f32[4,9] S(0)"},
        {"slice", "2", "f32[4,6] S(0)", "dim=-1 start=-4 end=5", "S(0) -> f32[4,3] S(0)"},
        {"repeat", "2", "f32[4] R", "repeats=2,3", "R -> f32[2,12] R"},
        {"index", "2", "f32[8,6,4] R ; i64[3,1] R ; i64[5] R", "pos=0,1",
         "R ; R ; R -> f32[3,5,4] R"},
        {"index", "2", "f32[8,6,4] R ; i64[3] R ; i64[3] R", "pos=0,2", "R ; R ; R -> f32[3,6] R"},
        {"kron", "2", "f32[2,3] S(0) ; f32[4,5] R", "", "S(0) ; R -> f32[8,15] S(0)"},
        {"dropout", "2", "f32[4] S(0)", "", "S(0) -> f32[4] S(0) ; bool[4] S(0)"},
        {"layer_norm", "2", "f32[2,3,4] R", "dims=-2,-1",
         "R -> f32[2,3,4] R ; f32[2,1,1] R ; f32[2,1,1] R"},
    };

    for (size_t i = 0; i < WF_COUNT(rows); i++) {
        OWNED(op_text) o;
        op_begin(&o, rows[i].name, rows[i].mesh, rows[i].inputs, rows[i].attrs, NULL);
        ck_assert_str_eq(op_answer(weft_op_check, &o, NULL, true), rows[i].answer);
    }
}

TEST(gradients_are_dual)
{
    op_text o;
    weft_op_choice *choice;
    struct wf_text text = {0};

    op_begin(&o, "linear", "2x4", "f32[8,64] S(0),S(1) ; f32[16,64] R,S(1) ; f32[16] R,P(sum)", "",
             NULL);
    ck_assert_msg(weft_op_check(&o.call, NULL, &choice) == WEFT_OK, "%s", weft_last_error());
    for (uint32_t i = 0; i < 3; i++)
        op_add_spec(&text, weft_op_choice_gradient(choice, i), false);
    op_add_spec(&text, weft_op_choice_output(choice, 0), false);
    op_add_spec(&text, weft_op_choice_output_gradient(choice, 0), false);
    ck_assert_str_eq(text.data, "S(0),S(1) ; P(sum),S(1) ; P(sum),R ; S(0),P(sum) ; S(0),R");
    ck_assert_ptr_null(weft_op_choice_gradient(choice, 3));
    wf_text_free(&text);
    weft_op_choice_release(&choice);
    op_text_release(&o);
    /* integers and averages have none */
    op_begin(&o, "embedding", "2", "f32[10,4] S(0) ; i64[3] R", "", NULL);
    ck_assert(weft_op_check(&o.call, NULL, &choice) == WEFT_OK);
    ck_assert_ptr_eq(weft_op_choice_gradient(choice, 0), o.inputs[0]);
    ck_assert_ptr_null(weft_op_choice_gradient(choice, 1));
    weft_op_choice_release(&choice);
    op_text_release(&o);
}

TEST(exact_checks_change_no_input)
{
    weft_op_options options = {.struct_size = sizeof options, .flags = WEFT_OP_FLAG_EXACT};
    OWNED(op_text) o;

    op_begin(&o, "add", "4", "f32[8] P(sum) ; f32[8] R", "", NULL);
    ck_assert_ptr_nonnull(strstr(op_answer(weft_op_check, &o, &options, false),
                                 "input a is P(sum), and b is R; a must be R or P(avg)"));
}
