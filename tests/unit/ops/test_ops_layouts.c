/* Operators on parts (B), listed sizes (G) and owners (O): index runs decide. */
#include "support/ops.h"
#include "support/suite.h"

struct one_case {
    const char *name, *mesh, *inputs, *attrs, *want;
};

/* WANT "! text" is an error that contains the text. */
static void check_all(op_function *function, const struct one_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct one_case *c = &cases[i];
        const char *answer;
        OWNED(op_text) o;
        op_begin(&o, c->name, c->mesh, c->inputs, c->attrs, NULL);
        answer = op_answer(function, &o, NULL, false);
        if (c->want[0] == '!')
            ck_assert_msg(answer[0] == '!' && strstr(answer, c->want + 2) != NULL, "%s %s: %s",
                          c->name, c->inputs, answer);
        else
            ck_assert_msg(strcmp(answer, c->want) == 0, "%s %s: %s", c->name, c->inputs, answer);
    }
}

TEST(equal_lists_are_kept)
{
    static const struct one_case cases[] = {
        {"relu", "2", "f32[8] B(0;6,2)", "", "B(0;6,2) -> B(0;6,2)"},
        {"add", "2", "f32[8,4] G(0;5,3) ; f32[8,4] G(0;5,3)", "",
         "G(0;5,3) ; G(0;5,3) -> G(0;5,3)"},
        {"add", "2", "f32[8,4] G(1;1,3) ; f32[4] G(0;1,3)", "", "G(1;1,3) ; G(0;1,3) -> G(1;1,3)"},
        {"add", "2x2", "f32[8] S(0),G(0;3,1) ; f32[8] S(0),G(0;3,1)", "",
         "S(0),G(0;3,1) ; S(0),G(0;3,1) -> S(0),G(0;3,1)"},
        {"transpose", "2", "f32[8,4] B(0;6,2)", "dims=0,1", "B(0;6,2) -> B(1;6,2)"},
        {"linear", "2", "f32[4,8] R ; f32[10,8] B(0;8,2) ; f32[10] B(0;8,2)", "",
         "R ; B(0;8,2) ; B(0;8,2) -> B(1;8,2)"},
        {"softmax", "2", "f32[8,4] G(0;5,3)", "dim=1", "G(0;5,3) -> G(0;5,3)"},
        {"mean", "2", "f32[8,4] G(1;1,3)", "dims=1", "G(1;1,3) -> P(avg)"},
        /* a dimension that must be whole */
        {"softmax", "2", "f32[8,4] G(1;1,3)", "dim=1", "! input x is G(1;1,3); x must be R"},
    };

    check_all(weft_op_check, cases, WF_COUNT(cases));
}

TEST(a_contracted_dimension_in_equal_runs_gives_a_sum)
{
    static const struct one_case cases[] = {
        {"mm", "2", "f32[4,8] G(1;5,3) ; f32[8,6] G(0;5,3)", "", "G(1;5,3) ; G(0;5,3) -> P(sum)"},
        {"mm", "2", "f32[4,8] B(1;6,2) ; f32[8,6] B(0;6,2)", "", "B(1;6,2) ; B(0;6,2) -> P(sum)"},
        {"mm", "2", "f32[4,8] G(1;5,3) ; f32[8,6] G(0;3,5)", "",
         "! on axis 0, input b is G(0;3,5), and a is G(1;5,3); b must be G(0;5,3)"},
        {"mm", "2", "f32[4,8] B(1;6,2) ; f32[8,6] S(0)", "",
         "! on axis 0, input a is B(1;6,2), and b is S(0); a must be S(1); the cheapest fix moves a"
         " from B(1;6,2) to S(1), in "},
        {"sum", "2", "f32[8,4] G(0;5,3)", "dims=0", "G(0;5,3) -> P(sum)"},
    };

    check_all(weft_op_check, cases, WF_COUNT(cases));
}

TEST(runs_are_compared_and_not_names)
{
    static const struct one_case cases[] = {
        /* rank 0 has 0, 1 and 2 */
        {"add", "2", "f32[4] B(0;1,3) ; f32[4] G(0;3,1)", "", "B(0;1,3) ; G(0;3,1) -> B(0;1,3)"},
        {"mm", "2", "f32[2,4] B(1;1,3) ; f32[4,2] G(0;3,1)", "", "B(1;1,3) ; G(0;3,1) -> P(sum)"},
        {"add", "2", "f32[5] B(0;1,4) ; f32[5] S(0)", "", "B(0;1,4) ; S(0) -> B(0;1,4)"},
        {"add", "2", "f32[6] B(0;1,5) ; f32[6] G(0;5,1)", "", "! b must be B(0;1,5)"},
    };

    check_all(weft_op_check, cases, WF_COUNT(cases));
}

TEST(views_follow_the_runs)
{
    static const struct one_case cases[] = {
        {"reshape", "2", "f32[24] G(0;16,8)", "shape=6,4", "G(0;16,8) -> G(0;4,2)"},
        {"reshape", "2", "f32[6,4] G(0;4,2)", "shape=24,", "G(0;4,2) -> G(0;16,8)"},
        {"reshape", "2", "f32[6,4] B(0;4,2)", "shape=24,", "B(0;4,2) -> B(0;16,8)"},
        {"reshape", "2", "f32[24] B(0;16,8)", "shape=6,4", "B(0;16,8) -> B(0;4,2)"},
        {"reshape", "2", "f32[3,8] B(1;6,2)", "shape=24,", "B(1;6,2) -> B(0;6,2,6,2,6,2)"},
        {"reshape", "2", "f32[24] B(0;6,2,6,2,6,2)", "shape=3,8", "B(0;6,2,6,2,6,2) -> B(1;6,2)"},
        {"reshape", "2", "f32[12] G(0;8,4)", "shape=3,4", "G(0;8,4) -> S(0)"},
        {"reshape", "2x2", "f32[8,4] S(0),G(0;3,1)", "shape=32,",
         "S(0),G(0;3,1) -> S(0),G(0;12,4)"},
        /* a row would be on two ranks */
        {"reshape", "2", "f32[24] G(0;15,9)", "shape=6,4",
         "! the parts of the inputs are not those of one split of the rule's factors"},
        {"reshape", "2", "f32[24] B(0;6,18)", "shape=6,4", "! the cheapest fix moves x from B(0;"},
        /* G gives a rank one run */
        {"reshape", "2", "f32[3,8] G(1;5,3)", "shape=24,", "! the cheapest fix moves x from G(1;"},
    };

    check_all(weft_op_check, cases, WF_COUNT(cases));
}

TEST(an_owner_runs_what_it_owns)
{
    static const struct one_case cases[] = {
        {"mm", "2", "f32[4,8] O(1) ; f32[8,6] O(1)", "", "O(1) ; O(1) -> O(1)"},
        {"mm", "2", "f32[4,8] O(1) ; f32[8,6] R", "", "O(1) ; O(1) -> O(1)"},
        {"mm", "2x2", "f32[4,8] O(1),S(1) ; f32[8,6] O(1),S(0)", "",
         "O(1),S(1) ; O(1),S(0) -> O(1),P(sum)"},
        {"sum", "2x2", "f32[8,4] O(1),G(0;5,3)", "", "O(1),G(0;5,3) -> O(1),P(sum)"},
        {"softmax", "3", "f32[8,4] O(2)", "dim=1", "O(2) -> O(2)"},
        {"full_like", "2", "f32[4] O(1)", "", "O(1) -> O(1)"},
        {"add_", "2", "f32[4] O(1) ; f32[4] R", "", "O(1) ; O(1) -> O(1)"},
        {"add", "1", "f32[4] O(0) ; f32[4] R", "", "R ; R -> R"},
        {"mm", "2", "f32[4,8] O(1) ; f32[8,6] O(0)", "",
         "! on axis 0, input b is O(0), and a is O(1); b must be O(1); the cheapest fix moves b "
         "from O(0) to O(1), in "},
        {"add", "2", "f32[4] O(1) ; f32[4] S(0)", "", "! a must be S(0); the cheapest fix moves "},
    };

    check_all(weft_op_check, cases, WF_COUNT(cases));
}

TEST(proposals_move_to_lists_and_owners)
{
    static const struct one_case cases[] = {
        {"add", "2", "f32[4096,64] G(0;3000,1096) ; f32[4096,1] S(0)", "",
         "G(0;3000,1096) ; G(0;3000,1096) -> G(0;3000,1096)"},
        {"mm", "2", "f32[512,512] O(1) ; f32[512,1] O(0)", "", "O(1) ; O(1) -> O(1)"},
        {"mm", "2", "f32[1,512] O(1) ; f32[512,512] O(0)", "", "O(0) ; O(0) -> O(0)"},
    };

    check_all(weft_op_propose, cases, WF_COUNT(cases));
}

TEST(gradients_are_where_their_tensors_are)
{
    OWNED(op_text) o;
    OWNED(weft_op_choice) *choice = NULL;

    op_begin(&o, "mm", "2x2", "f32[4,8] O(1),G(1;5,3) ; f32[8,6] O(1),G(0;5,3)", "", NULL);
    ck_assert_msg(weft_op_check(&o.call, NULL, &choice) == WEFT_OK, "%s", weft_last_error());
    ck_assert_ptr_eq(weft_op_choice_gradient(choice, 0), o.inputs[0]);
    ck_assert_ptr_eq(weft_op_choice_gradient(choice, 1), o.inputs[1]);
}
