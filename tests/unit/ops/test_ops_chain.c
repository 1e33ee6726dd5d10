/* Operators that are made of others: "gelu_mlp is linear; gelu; linear". */
#include "weft/status.h"
#include "support/ops.h"
#include "support/suite.h"

#define MLP "gelu_mlp is linear; gelu; linear"

static void begin_rules(const char *text)
{
    ck_assert_msg(weft_op_replace(text) == WEFT_OK, "%s", weft_last_error());
}

TEST(circles_are_refused_by_the_formatter_too)
{
    char text[64];

    ck_assert_int_eq(weft_op_rules_print("a is b; relu\nb is a", text, sizeof text, NULL),
                     WEFT_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "weft_op_rules_print"));
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "it is made of itself"));
    ck_assert_int_eq(weft_op_rules_print("a is a", text, sizeof text, NULL), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_op_rules_print("a is nosuch", text, sizeof text, NULL), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_op_rules_print("a is b; relu\nb is gelu", text, sizeof text, NULL),
                     WEFT_OK);
    ck_assert_str_eq(text, "a is b; relu\nb is gelu");
}

TEST(the_text_prints_back_to_itself)
{
    char text[256];

    ck_assert_int_eq(
        weft_op_rules_print(" a b  is linear( 3 ) ;gelu # comment", text, sizeof text, NULL),
        WEFT_OK);
    ck_assert_str_eq(text, "a b is linear(3); gelu");
    begin_rules(MLP);
    ck_assert_int_eq(weft_op_print("gelu_mlp", text, sizeof text, NULL), WEFT_OK);
    ck_assert_str_eq(text, MLP);
    ck_assert_int_eq(weft_op_meaning_print("gelu_mlp", text, sizeof text, NULL), WEFT_OK);
    ck_assert_ptr_nonnull(strstr(text, "Its parts run one after another."));
    ck_assert_int_eq(weft_op_remove("gelu_mlp"), WEFT_OK);
}

TEST(parts_agree_on_the_layouts_between_them)
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

TEST(the_cheapest_moves_are_found)
{
    op_text o;
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
    op_text_release(&o);
    ck_assert_int_eq(weft_op_remove("gelu_mlp"), WEFT_OK);
}

TEST(parts_may_be_made_of_others_and_state_their_inputs)
{
    begin_rules("act is gelu; neg\nwith_bias is linear(3); act");
    ck_assert_str_eq(op_check("with_bias", "2", "f32[8,16] R ; f32[32,16] S(0) ; f32[32] S(0)", ""),
                     "R ; S(0) ; S(0) -> S(1)");
    ck_assert_ptr_nonnull(strstr(op_check("with_bias", "2", "f32[8,16] R ; f32[32,16] S(0)", ""),
                                 "the call has 2 inputs; its parts take 3"));
    ck_assert_int_eq(weft_op_remove("with_bias"), WEFT_OK);
    ck_assert_int_eq(weft_op_remove("act"), WEFT_OK);
}

/* The gradients of the inputs and the output of the call, as text. */
static const char *chain_gradients(const char *name, const char *mesh, const char *inputs)
{
    static char out[1024];
    struct wf_text text = {0};
    weft_op_choice *choice = NULL;
    weft_op_choice_info info = {.struct_size = sizeof info};
    op_text o;

    op_begin(&o, name, mesh, inputs, "", NULL);
    ck_assert_msg(weft_op_check(&o.call, &op_uncached, &choice) == WEFT_OK, "%s",
                  weft_last_error());
    ck_assert_int_eq(weft_op_choice_get(choice, &info), WEFT_OK);
    wf_text_add(&text, "%s", "");
    for (uint32_t i = 0; i < info.inputs; i++)
        op_add_spec(&text, weft_op_choice_gradient(choice, i), false);
    wf_text_add(&text, " <- ");
    for (uint32_t i = 0; i < info.outputs; i++)
        op_add_spec(&text, weft_op_choice_output_gradient(choice, i), false);
    snprintf(out, sizeof out, "%s", text.data);
    wf_text_free(&text);
    weft_op_choice_release(&choice);
    op_text_release(&o);
    return out;
}

TEST(gradients_are_those_of_the_parts)
{
    begin_rules(MLP "\ntwice_neg is neg; neg\nneg_linear is neg; linear");
    ck_assert_str_eq(chain_gradients("gelu_mlp", "2x4",
                                     "f32[8,16] S(0),R ; f32[32,16] R,S(0) ; f32[16,32] R,S(1)"),
                     "S(0),P(sum) ; P(sum),S(0) ; P(sum),S(1) <- S(0),R");
    ck_assert_str_eq(chain_gradients("twice_neg", "2", "f32[8] P(sum)"), "R <- R");
    /* the gradient between the parts is a sum of contributions, so that of x is too */
    ck_assert_str_eq(chain_gradients("neg_linear", "2", "f32[8,16] R ; f32[32,16] S(0)"),
                     "P(sum) ; S(0) <- S(1)");
    /* a maximum of contributions has no gradient */
    ck_assert_str_eq(chain_gradients("twice_neg", "2", "f32[8] P(max)"), "- <- -");
    ck_assert_int_eq(weft_op_remove("gelu_mlp"), WEFT_OK);
    ck_assert_int_eq(weft_op_remove("twice_neg"), WEFT_OK);
    ck_assert_int_eq(weft_op_remove("neg_linear"), WEFT_OK);
}

TEST(strategies_are_listed)
{
    op_text o;
    weft_op_list *list = NULL;
    bool found = false;

    begin_rules(MLP);
    op_begin(&o, "gelu_mlp", "2", "f32[8,16] R ; f32[32,16] R ; f32[16,32] R", "", NULL);
    ck_assert_msg(weft_op_list_create(&o.call, NULL, &list) == WEFT_OK, "%s", weft_last_error());
    for (uint32_t i = 0; i < weft_op_list_count(list); i++) {
        const char *one = op_choice_text(weft_op_list_choice(list, i), false);
        found = found || strcmp(one, "R ; S(0) ; S(1) -> P(sum)") == 0;
        ck_assert_msg(strncmp(one, "S(1)", 4) != 0, "gelu has no partial inputs: %s", one);
        for (uint32_t j = 0; j < i; j++) {
            char text[256];
            snprintf(text, sizeof text, "%s", one);
            ck_assert_str_ne(text, op_choice_text(weft_op_list_choice(list, j), false));
            one = op_choice_text(weft_op_list_choice(list, i), false);
        }
    }
    ck_assert(found);
    weft_op_list_release(&list);
    op_text_release(&o);
    ck_assert_int_eq(weft_op_remove("gelu_mlp"), WEFT_OK);
}

/* Register TEXT and compare the error. */
static void check_refused(const char *text, const char *want)
{
    ck_assert_msg(weft_op_register(text) != WEFT_OK, "accepted: %s", text);
    ck_assert_msg(strstr(weft_last_error(), want) != NULL, "%s: %s", text, weft_last_error());
}

TEST(circles_and_unknown_parts_are_refused)
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
    /* a part stays as long as an operator is made of it, so that others can be registered */
    ck_assert_int_eq(weft_op_remove("part"), WEFT_ERR_INVALID);
    ck_assert_ptr_nonnull(
        strstr(weft_last_error(), "weft_op_remove: operator whole_of_it is part"));
    begin_rules("innocent: x[a] -> y[a]");
    ck_assert_int_eq(weft_op_remove("innocent"), WEFT_OK);
    ck_assert_int_eq(weft_op_remove("whole_of_it"), WEFT_OK);
    ck_assert_int_eq(weft_op_remove("part"), WEFT_OK);
}

TEST(a_changed_part_leaves_no_stale_choice)
{
    begin_rules("part: x[i] -> y[i]\ntwice is part; part");
    ck_assert_str_eq(op_check("twice", "2", "f32[8] S(0)", ""), "S(0) -> S(0)");
    begin_rules("part: x[i] -> y[i]; whole i");
    ck_assert_ptr_nonnull(strstr(op_check("twice", "2", "f32[8] S(0)", ""), "!"));
    ck_assert_int_eq(weft_op_remove("twice"), WEFT_OK);
    ck_assert_int_eq(weft_op_remove("part"), WEFT_OK);
}

TEST(attributes_are_those_of_the_parts)
{
    begin_rules("mysum is relu; sum\nmysoft is softmax; relu");
    for (int i = 0; i < 2; i++) { /* the second time, an answer could be a kept one */
        ck_assert_str_eq(op_check("mysum", "2", "f32[4,6] S(0)", "dims=0"), "S(0) -> P(sum)");
        ck_assert_str_eq(op_check("mysum", "2", "f32[4,6] S(0)", "dims=1"), "S(0) -> S(0)");
        ck_assert_str_eq(op_check("mysoft", "2", "f32[4,6] S(0)", "dim=1"), "S(0) -> S(0)");
        ck_assert_int_eq(op_check("mysoft", "2", "f32[4,6] S(0)", "dim=0")[0], '!');
    }
    ck_assert_ptr_nonnull(strstr(op_check("mysum", "2", "f32[4,6] S(0)", "dim=0"),
                                 "no part of \"mysum is relu; sum\" has attribute dim"));
    ck_assert_int_eq(weft_op_remove("mysum"), WEFT_OK);
    ck_assert_int_eq(weft_op_remove("mysoft"), WEFT_OK);
}
