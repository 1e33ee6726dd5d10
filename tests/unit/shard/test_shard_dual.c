/* The layouts of gradients. */
#include "shard/shard.h"
#include "support/layout.h"
#include "support/suite.h"

#include <string.h>

typedef weft_status make_spec(const weft_spec *spec, weft_spec **out);

/* MAKE gives WANT, or an error with that text. */
static void check(make_spec *make, const char *mesh, const char *text, const char *want)
{
    OWNED(weft_spec) *spec = spec_of(mesh, text), *made = NULL;
    char have[256] = "";

    if (make(spec, &made) == WEFT_OK)
        ck_assert_int_eq(weft_spec_print(made, have, sizeof have, NULL), WEFT_OK);
    else
        snprintf(have, sizeof have, "%s", weft_last_error());
    ck_assert_msg(strstr(have, want) != NULL, "%s: %s, not %s", text, have, want);
}

TEST(replicas_and_sums_are_duals)
{
    check(weft_spec_dual, "2x2", "f32[8] R,P", "f32[8] P(sum),R");
    check(weft_spec_dual, "2x2", "f32[8] S(0)[1],S(0)[0]", "f32[8] S(0)[1],S(0)[0]");
    check(weft_spec_dual, "2x2", "f32[8,6] B(0;6,2),R", "f32[8,6] B(0;6,2),P(sum)");
    check(weft_spec_dual, "4", "f32[8] G(0;5,3,0,0)", "f32[8] G(0;5,3,0,0)");
    check(weft_spec_dual, "4", "f32[8] O(2)", "f32[8] O(2)");
    check(weft_spec_dual, "2x2", "f32[8] R,P(max)",
          "axis 1 has P(max), which has no dual; only P(sum) has one, R");
}

TEST(a_gradient_is_whole_where_its_tensor_is_partial)
{
    check(weft_spec_gradient, "2x2", "f32[8] S(0),P", "f32[8] S(0),R");
    check(weft_spec_gradient, "2x2", "f32[8] P(max),R", "f32[8] R,R");
    check(weft_spec_gradient, "4", "f32[8] O(1)", "f32[8] O(1)");
}

TEST(a_gradient_never_becomes_partial)
{
    static const struct {
        const char *from, *gradient_mesh, *gradient, *want;
    } cases[] = {
        {"f32[8,8] P,S(0)", "2x2", "f32[8,8] S(0),R", "f32[8,8] R,S(0)"},
        {"f32[8,8] P,S(0)", "2x2", "f32[8,8] P,R", "f32[8,8] P(sum),S(0)"},
        {"f32[8,8] R,S(1)", "2x2", "f32[8,8] P,P", "f32[8,8] R,S(1)"},
        {"f32[8,8] P,S(0)", "4", "f32[8,8] P", "f32[8,8] R,S(0)"},
    };

    for (size_t i = 0; i < WF_COUNT(cases); i++) {
        OWNED(weft_spec) *from = spec_of("2x2", cases[i].from), *made = NULL;
        OWNED(weft_spec) *gradient = spec_of(cases[i].gradient_mesh, cases[i].gradient);
        char have[256];

        ck_assert_int_eq(weft_spec_gradient_of_move(from, gradient, &made), WEFT_OK);
        ck_assert_int_eq(weft_spec_print(made, have, sizeof have, NULL), WEFT_OK);
        ck_assert_str_eq(have, cases[i].want);
    }
}

TEST(shapes_must_agree)
{
    weft_spec *a = spec_of("2", "f32[8] R"), *b = spec_of("2", "f32[9] R"), *made = NULL;

    ck_assert_int_eq(weft_spec_gradient_of_move(a, b, &made), WEFT_ERR_MISMATCH);
    ck_assert_int_eq(weft_spec_gradient_of_move(a, NULL, &made), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_spec_dual(NULL, &made), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_spec_gradient(a, NULL), WEFT_ERR_INVALID);
    weft_spec_release(&a);
    weft_spec_release(&b);
    ck_assert_int_eq(wf_mem_live(), 0);
}
