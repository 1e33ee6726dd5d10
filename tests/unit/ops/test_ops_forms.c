/* Calls that no rule describes as they are: `NAME.out`, and operators without a rule. */
#include "weft/status.h"
#include "support/ops.h"
#include "support/suite.h"

TEST(outputs_keep_the_layouts_of_their_memory)
{
    ck_assert_str_eq(op_check("add.out", "2", "f32[8] S(0) ; f32[8] S(0) ; f32[8] S(0)", ""),
                     "S(0) ; S(0) ; S(0) -> S(0)");
    ck_assert_str_eq(op_propose("add.out", "2", "f32[8] S(0) ; f32[8] S(0) ; f32[8] R", ""),
                     "R ; R ; R -> R");
    ck_assert_str_eq(op_propose("mm.out", "2", "f32[8,4] S(1) ; f32[4,6] S(0) ; f32[8,6] S(0)", ""),
                     "S(0) ; R ; S(0) -> S(0)");
    /* the size 1 that keepdim leaves, and two outputs */
    ck_assert_str_eq(op_check("sum.out", "2", "f32[8,4] S(0) ; f32[8,1] S(0)", "dims=1, keepdim=1"),
                     "S(0) ; S(0) -> S(0)");
    ck_assert_str_eq(
        op_check("sort.out", "2", "f32[8,4] S(0) ; f32[8,4] S(0) ; i64[8,4] S(0)", "dim=1"),
        "S(0) ; S(0) ; S(0) -> S(0) ; S(0)");
    ck_assert_str_eq(op_check("aten.add.out", "2", "f32[8] S(0) ; f32[8] S(0) ; f32[8] S(0)", ""),
                     "S(0) ; S(0) ; S(0) -> S(0)");
}

TEST(memory_that_is_missing_or_does_not_fit_is_refused)
{
    ck_assert_ptr_nonnull(strstr(op_check("add.out", "2", "f32[8] S(0) ; f32[8] S(0) ; -", ""),
                                 "the memory of output 0 is NULL"));
    ck_assert_ptr_nonnull(strstr(op_check("sort.out", "2", "f32[8] R", "dim=0"),
                                 "the last inputs must be the memory of the outputs"));
    ck_assert_ptr_nonnull(strstr(
        op_propose("add.out", "2", "f32[8] S(0) ; f32[8] S(0) ; f32[9] S(0)", ""), "! weft_op_"));
    ck_assert_ptr_nonnull(strstr(op_check("nothing.out", "2", "f32[8] R", ""), "there is no rule"));
}

TEST(choices_of_the_two_forms_are_kept_apart)
{
    for (int i = 0; i < 2; i++) {
        ck_assert_str_eq(op_check("neg.out", "2", "f32[8] S(0) ; f32[8] S(0)", ""),
                         "S(0) ; S(0) -> S(0)");
        ck_assert_str_eq(op_check("foreach_neg", "2", "f32[8] S(0) ; f32[8] S(0)", ""),
                         "S(0) ; S(0) -> S(0) ; S(0)");
        ck_assert_str_eq(op_check("neg_", "2", "f32[8] S(0)", ""), "S(0) -> S(0)");
    }
}

TEST(lists_of_the_form_have_the_outputs_of_the_memory)
{
    OWNED(op_text) o;
    OWNED(weft_op_list) *list = NULL;

    op_begin(&o, "mm.out", "2", "f32[8,4] R ; f32[4,6] R ; f32[8,6] S(1)", "", NULL);
    ck_assert_int_eq(weft_op_list_create(&o.call, NULL, &list), WEFT_OK);
    ck_assert_uint_eq(weft_op_list_count(list), 1);
    ck_assert_str_eq(op_choice_text(weft_op_list_choice(list, 0), false), "R ; S(1) -> S(1)");
}

TEST(operators_without_a_rule_are_replicated_on_request)
{
    weft_op_options options = {.struct_size = sizeof options, .flags = WEFT_OP_FLAG_FALLBACK};
    uint64_t before = weft_op_fallback_count();
    op_text o;

    op_begin(&o, "mystery", "2x2", "f32[8,4] S(0),R ; - ; f32[3] P,R", "", "f32[5] ; i64[]");
    ck_assert_ptr_nonnull(
        strstr(op_answer(weft_op_propose, &o, NULL, false), "there is no rule for operator"));
    ck_assert_uint_eq(weft_op_fallback_count(), before);
    ck_assert_str_eq(op_answer(weft_op_propose, &o, &options, true),
                     "R,R ; - ; R,R -> f32[5] R,R ; i64[] R,R");
    ck_assert_str_eq(op_answer(weft_op_propose, &o, &options, true),
                     "R,R ; - ; R,R -> f32[5] R,R ; i64[] R,R");
    ck_assert_uint_eq(weft_op_fallback_count(), before + 2);
    ck_assert_ptr_nonnull(strstr(op_answer(weft_op_check, &o, &options, false),
                                 "operator mystery: on axis 0, input i0 is S(0)"));
    o.call.outputs = NULL;
    for (int i = 0; i < 2; i++) /* without options, the cache reads the call first */
        ck_assert_ptr_nonnull(
            strstr(op_answer(i == 0 ? weft_op_propose : weft_op_check, &o, NULL, false),
                   "weft_op_call.outputs is NULL, and output_count is 2"));
    o.call.output_count = 0;
    ck_assert_ptr_nonnull(strstr(op_answer(weft_op_propose, &o, &options, false),
                                 "weft_op_call.outputs must state its outputs"));
    op_text_release(&o);
    /* operators with a rule keep it */
    op_begin(&o, "relu", "2", "f32[8] S(0)", "", NULL);
    ck_assert_str_eq(op_answer(weft_op_propose, &o, &options, false), "S(0) -> S(0)");
    op_text_release(&o);
}
