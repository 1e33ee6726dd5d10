/* Operators that are made of others: "gelu_mlp is linear; gelu; linear". */
#include "weft/status.h"
#include "support/allocfail.h"
#include "support/ops.h"
#include "support/suite.h"

#define MLP "gelu_mlp is linear; gelu; linear"

static void begin_rules(const char *text)
{
    ck_assert_msg(weft_op_replace(text) == WEFT_OK, "%s", weft_last_error());
}

START_TEST(the_text_prints_back_to_itself)
{
    char text[256];

    ck_assert_int_eq(
        weft_op_format(" a b  is linear( 3 ) ;gelu # comment", text, sizeof text, NULL), WEFT_OK);
    ck_assert_str_eq(text, "a b is linear(3); gelu");
    begin_rules(MLP);
    ck_assert_int_eq(weft_op_print("gelu_mlp", text, sizeof text, NULL), WEFT_OK);
    ck_assert_str_eq(text, MLP);
    ck_assert_int_eq(weft_op_explain("gelu_mlp", text, sizeof text, NULL), WEFT_OK);
    ck_assert_ptr_nonnull(strstr(text, "Its parts run one after another."));
    ck_assert_int_eq(weft_op_remove("gelu_mlp"), WEFT_OK);
}
END_TEST

START_TEST(parts_agree_on_the_layouts_between_them)
{
    begin_rules(MLP);
    /* column parallel, then row parallel */
    ck_assert_str_eq(
        op_check("gelu_mlp", "2x4", "f32[8,16] S(0),R ; f32[32,16] R,S(0) ; f32[16,32] R,S(1)", ""),
        "S(0),R ; R,S(0) ; R,S(1) -> S(0),P(sum)");
    /* gelu takes no partials, so both weights are moved, or x is gathered */
    ck_assert_ptr_nonnull(
        strstr(op_check("gelu_mlp", "4", "f32[8,16] S(1) ; f32[32,16] S(1) ; f32[16,32] S(1)", ""),
               "the layouts of the inputs do not make all parts"));
    ck_assert_ptr_null(strstr(
        op_propose("gelu_mlp", "4", "f32[8,16] S(1) ; f32[32,16] S(1) ; f32[16,32] S(1)", ""),
        "!"));
    ck_assert_int_eq(weft_op_remove("gelu_mlp"), WEFT_OK);
}
END_TEST

START_TEST(the_cheapest_moves_are_found)
{
    struct op_text o;
    weft_op_choice *choice = NULL;
    weft_op_choice_info info = {.struct_size = sizeof info};

    begin_rules(MLP);
    op_begin(&o, "gelu_mlp", "4", "f32[8,16] R ; f32[32,16] S(0) ; f32[16,32] S(0)", "", NULL);
    ck_assert_int_eq(weft_op_propose(&o.call, NULL, &choice), WEFT_OK);
    ck_assert_str_eq(op_choice_text(choice, false), "R ; S(0) ; S(1) -> P(sum)");
    ck_assert_int_eq(weft_op_choice_get(choice, &info), WEFT_OK);
    ck_assert_uint_eq(info.moves, 1);
    ck_assert_uint_eq(info.local, 0);
    ck_assert_str_eq(info.rule, MLP);
    ck_assert_ptr_nonnull(weft_op_choice_move(choice, 2));
    weft_op_choice_release(&choice);
    op_end(&o);
    ck_assert_int_eq(weft_op_remove("gelu_mlp"), WEFT_OK);
}
END_TEST

START_TEST(parts_may_be_made_of_others_and_state_their_inputs)
{
    begin_rules("act is gelu; neg\nwith_bias is linear(3); act");
    ck_assert_str_eq(op_check("with_bias", "2", "f32[8,16] R ; f32[32,16] S(0) ; f32[32] S(0)", ""),
                     "R ; S(0) ; S(0) -> S(1)");
    ck_assert_ptr_nonnull(strstr(op_check("with_bias", "2", "f32[8,16] R ; f32[32,16] S(0)", ""),
                                 "the call has 2 inputs; its parts take 3"));
    ck_assert_int_eq(weft_op_remove("with_bias"), WEFT_OK);
    ck_assert_int_eq(weft_op_remove("act"), WEFT_OK);
}
END_TEST

/* Register TEXT and compare the error. */
static void check_refused(const char *text, const char *want)
{
    ck_assert_msg(weft_op_register(text) != WEFT_OK, "accepted: %s", text);
    ck_assert_msg(strstr(weft_last_error(), want) != NULL, "%s: %s", text, weft_last_error());
}

START_TEST(circles_and_unknown_parts_are_refused)
{
    check_refused("a is b\nb is c\nc is a", "it is made of itself, by ");
    check_refused("a is a", "it is made of itself, by a");
    check_refused("a is nothing", "there is no rule for its part nothing");
    check_refused("a is gelu\na: x[..] -> y[..]", "it has another rule too");
    check_refused("a is ", "expected the name of an operator");
    check_refused("a is gelu gelu", "expected ';'");
    check_refused("a is gelu(99)", "the number of inputs");
    check_refused("a is gelu(", "expected the number of inputs");
    /* a circle that a later registration would close */
    begin_rules("part: x[..] -> y[..]\nwhole_of_it is part; gelu");
    ck_assert_int_ne(weft_op_replace("part is whole_of_it"), WEFT_OK);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "it is made of itself"));
    ck_assert_str_eq(op_check("whole_of_it", "2", "f32[8] S(0)", ""), "S(0) -> S(0)");
    ck_assert_int_eq(weft_op_remove("part"), WEFT_OK);
    ck_assert_ptr_nonnull(strstr(op_check("whole_of_it", "2", "f32[8] S(0)", ""),
                                 "there is no rule for its part part"));
    ck_assert_int_eq(weft_op_remove("whole_of_it"), WEFT_OK);
}
END_TEST

START_TEST(a_changed_part_leaves_no_stale_choice)
{
    begin_rules("part: x[i] -> y[i]\ntwice is part; part");
    ck_assert_str_eq(op_check("twice", "2", "f32[8] S(0)", ""), "S(0) -> S(0)");
    begin_rules("part: x[i] -> y[i]; whole i");
    ck_assert_ptr_nonnull(strstr(op_check("twice", "2", "f32[8] S(0)", ""), "!"));
    ck_assert_int_eq(weft_op_remove("twice"), WEFT_OK);
    ck_assert_int_eq(weft_op_remove("part"), WEFT_OK);
}
END_TEST

static weft_status propose_chain(void *argument)
{
    struct op_text *o = argument;
    weft_op_choice *choice = NULL;
    weft_status status = weft_op_propose(&o->call, &op_uncached, &choice);

    weft_op_choice_release(&choice);
    return status;
}

START_TEST(it_survives_the_end_of_memory)
{
    struct op_text o;

    begin_rules("two is neg; linear");
    op_begin(&o, "two", "2", "f32[4,4] S(0) ; f32[4,4] S(1)", "", NULL);
    check_allocation_failures(propose_chain, NULL, &o);
    op_end(&o);
    ck_assert_int_eq(weft_op_remove("two"), WEFT_OK);
}
END_TEST

SUITE(ops_chain, the_text_prints_back_to_itself, parts_agree_on_the_layouts_between_them,
      the_cheapest_moves_are_found, parts_may_be_made_of_others_and_state_their_inputs,
      circles_and_unknown_parts_are_refused, a_changed_part_leaves_no_stale_choice,
      it_survives_the_end_of_memory)
