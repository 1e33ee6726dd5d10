/* Cuts and joins of parts, uneven parts of products, and views whose sizes follow from attributes:
 * compared with the indices that ranks hold. */
#include "plan/plan.h"
#include "support/ops.h"
#include "support/random.h"
#include "support/suite.h"

static void check_answers(const char *const (*cases)[5], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *const *c = cases[i];
        const char *answer = op_check(c[0], c[1], c[2], c[3]);
        ck_assert_msg(strstr(answer, c[4]) != NULL, "%s(%s) %s: %s, not %s", c[0], c[2], c[3],
                      answer, c[4]);
    }
}

TEST(a_cut_between_parts_is_local)
{
    static const char *const cases[][5] = {
        {"split", "2", "f32[16,6] B(0;8,4,4)", "dim=0 sizes=8,4,4", "-> S(0) ; S(0) ; S(0)"},
        {"split", "2", "f32[16,6] B(0;8,4,4)", "dim=0 sizes=12,4", "-> B(0;8,4) ; S(0)"},
        {"split", "2", "f32[16,6] SS(0,2)", "dim=0 sizes=8,8", "-> S(0) ; S(0)"},
        {"split", "2x2", "f32[16,6] S(1),B(0;10,6)", "dim=0 sizes=10,6",
         "-> S(1),S(0) ; S(1),S(0)"},
        {"split", "2", "f32[16,6] B(0;8,4,4)", "dim=0 sizes=8,8,0", "-> S(0) ; SS(0,2) ; S(0)"},
        {"split", "3", "f32[7,2] B(0;2,5)", "dim=0 sizes=2,5", "-> S(0) ; S(0)"},
        {"slice", "2", "f32[6,16] B(1;8,4,4)", "dim=1 start=8 end=12", "-> S(1)"},
        {"slice", "2", "f32[6,16] B(1;8,4,4)", "dim=1 start=8", "-> SS(1,2)"},
        {"split", "2", "f32[16,6] B(0;8,4,4)", "dim=0 sizes=6,6,4", "! "},
        {"slice", "2", "f32[6,16] B(1;8,4,4)", "dim=1 start=7 end=12", "! "},
        {"slice", "2", "f32[6,16] B(1;8,4,4)", "dim=1 start=8 end=12 step=2", "! "},
        {"split", "2x2", "f32[16,6] B(0;8,8),S(0)", "dim=0 sizes=8,8", "! "},
    };

    check_answers(cases, WF_COUNT(cases));
}

TEST(a_join_of_split_tensors_has_their_parts)
{
    static const char *const cases[][5] = {
        {"cat", "2", "f32[8,6] S(0) ; f32[3,6] S(0)", "dim=0", "-> B(0;8,3)"},
        {"cat", "2", "f32[8,6] S(0) ; f32[3,6] R", "dim=0", "S(0) ; S(0) -> B(0;8,3)"},
        {"cat", "2", "f32[6,8] B(1;5,3) ; f32[6,2] S(1)", "dim=1", "-> B(1;5,3,2)"},
        {"cat", "2", "f32[4,6] S(0) ; f32[4,6] S(0)", "dim=0", "-> SS(0,2)"},
        {"cat", "2", "f32[4,6] R ; f32[4,6] R", "dim=0", "R ; R -> R"},
        {"cat", "2", "f32[4,6] S(0) ; f32[4,6] S(1)", "dim=0", "! "},
    };

    check_answers(cases, WF_COUNT(cases));
}

TEST(uneven_groups_of_heads_are_local)
{
    static const char *const cases[][5] = {
        {"sdpa_gqa", "3",
         "f32[2,32,5,8] G(1;12,12,8) ; f32[2,8,5,8] S(1) ; f32[2,8,5,8] G(1;3,3,2)", "r=4",
         "-> G(1;12,12,8) ; G(1;12,12,8)"},
        {"sdpa_gqa", "3", "f32[2,32,5,8] R ; f32[2,8,5,8] S(1) ; f32[2,8,5,8] S(1)", "r=4",
         "-> G(1;12,12,8) ; G(1;12,12,8)"},
        {"sdpa_gqa", "2", "f32[2,32,5,8] S(1) ; f32[2,8,5,8] S(1) ; f32[2,8,5,8] S(1)", "r=4",
         "-> S(1) ; S(1)"},
        {"reshape", "4", "f32[6,4] S(0)", "shape=24,", "-> G(0;8,8,8,0)"},
        {"sdpa_gqa", "3", "f32[2,32,5,8] S(1) ; f32[2,8,5,8] S(1) ; f32[2,8,5,8] S(1)", "r=4",
         "! "},
    };

    check_answers(cases, WF_COUNT(cases));
}

TEST(views_have_the_sizes_that_attributes_give)
{
    static const char *const cases[][5] = {
        {"view_dtype", "2", "f32[4,8] S(1)", "to=i16", "i16[4,16] S(1)"},
        {"view_dtype", "2", "f32[4,8] S(1)", "to=f64", "f64[4,4] S(1)"},
        {"view_dtype", "2", "f32[4,8] S(1)", "to=i32", "i32[4,8] S(1)"},
        {"view_dtype", "2", "f32[4,7] R", "to=f64", "2 elements of f32 are one of f64"},
        {"view_dtype", "2", "f32[] R", "to=f64", "x has no dimension"},
        {"view_dtype", "2", "f32[4] R", "to=f33", "must be a dtype"},
        {"view_dtype", "2", "f32[4,6] S(1)", "to=f64", "! "}, /* 3 numbers are on two ranks */
        {"view_as_complex", "2", "f64[4,2] P(sum)", "", "c128[4] P(sum)"},
        {"view_as_complex", "2", "f32[4,3] R", "", "factor z is 2"},
        {"view_as_real", "2", "c64[4] S(0)", "", "f32[4,2] S(0)"},
        {"complex", "2", "f32[4] S(0) ; f32[4] S(0)", "", "c64[4] S(0)"},
        {"abs", "2", "c64[4] S(0)", "", "f32[4] S(0)"},
        {"fft", "2", "f64[4,8] S(0)", "dims=1,", "c128[4,8] S(0)"},
        {"diagonal", "2", "f32[4,5,6] S(2)", "offset=2", "f32[6,3] S(0)"},
        {"diagonal", "2", "f32[4,5,6] S(1)", "dim1=0 dim2=2 offset=-3", "f32[5,1] S(0)"},
        {"diagonal", "2", "f32[4,5] R", "offset=9", "f32[0] R"},
        {"diagonal", "2", "f32[4,5] R", "dim1=1 dim2=-1", "are both dimension 1"},
        {"diagonal", "2", "f32[4] R", "", "it needs at least 2"},
        {"diagonal_scatter", "2", "f32[4,5,6] S(2) ; f32[6,3] S(0)", "offset=2", "S(2)"},
        {"unfold", "2", "f32[8,4] S(1)", "dim=0 size=3 step=2", "f32[3,4,3] S(1)"},
        {"unfold", "2", "f32[8,4] S(0)", "dim=0 size=2 step=2", "f32[4,4,2] S(0)"},
        {"unfold", "2", "f32[8,4] S(0)", "dim=0 size=3 step=2", "! "},
        {"unfold", "2", "f32[8,4] S(0)", "dim=0 size=9 step=2", "attribute size is 9"},
    };

    for (size_t i = 0; i < WF_COUNT(cases); i++) {
        const char *const *c = cases[i];
        const char *answer;
        OWNED(op_text) o;
        op_begin(&o, c[0], c[1], c[2], c[3], NULL);
        answer = op_answer(weft_op_check, &o, NULL, true);
        ck_assert_msg(strstr(answer, c[4]) != NULL, "%s(%s) %s: %s, not %s", c[0], c[2], c[3],
                      answer, c[4]);
    }
}

TEST(norms_are_linear_in_a_weight_without_bias)
{
    static const char *const cases[][5] = {
        {"layer_norm", "2", "f32[4,8] R ; f32[8] P(sum)", "dims=-1,", "-> P(sum) ; R ; R"},
        {"layer_norm", "2", "f32[4,8] R ; f32[8] P(sum) ; -", "dims=-1,", "-> P(sum) ; R ; R"},
        {"layer_norm", "2", "f32[4,8] R ; - ; f32[8] P(sum)", "dims=-1,", "! "},
        {"group_norm", "2", "f32[4,8,3] R ; f32[8] P(sum)", "g=2", "-> P(sum) ; R ; R"},
        /* each part would divide by its own count */
        {"mse_loss_bwd", "2", "f32[] R ; f32[4] S(0) ; f32[4] S(0)", "reduction=mean", "! "},
        {"mse_loss_bwd", "2", "f32[] R ; f32[4] S(0) ; f32[4] S(0)", "", "! "},
        {"mse_loss_bwd", "2", "f32[] R ; f32[4] S(0) ; f32[4] S(0)", "reduction=sum", "-> S(0)"},
    };

    check_answers(cases, WF_COUNT(cases));
}

/* ---- by the indices that ranks hold ---- */

/* The indices of dimension DIM on RANK, each plus BASE, appended to OUT. */
static size_t append_indices(const weft_spec *spec, int32_t rank, int32_t dim, int64_t base,
                             int64_t *out, size_t count)
{
    weft_index_run run;

    for (int64_t at = 0; weft_spec_run(spec, rank, dim, at, &run); at += run.length)
        for (int64_t i = 0; i < run.length; i++)
            out[count++] = base + run.start + i;
    return count;
}

/* Random parts: where a cut or a join is legal as it is, the ranks' pieces of the parts, one after
 * another, are their piece of the whole. */
TEST(pieces_of_parts_are_the_piece_of_the_whole)
{
    struct random r = random_begin("pieces_of_parts_are_the_piece_of_the_whole");
    int cases = test_cases(400), legal = 0;

    for (int i = 0; i < cases; i++) {
        char inputs[256] = "", attrs[128], *at = inputs;
        int parts = (int)random_in(&r, 1, 4), ranks = (int)random_in(&r, 1, 4);
        bool joins = random_in(&r, 0, 1) == 1;
        int64_t sizes[4], total = 0, have[256], want[256];
        OWNED(weft_op_choice) *choice = NULL;
        char mesh[8];
        OWNED(op_text) o;
        for (int k = 0; k < parts; k++)
            total += sizes[k] = random_in(&r, 0, 7);
        snprintf(mesh, sizeof mesh, "%d", ranks);
        if (joins) {
            for (int k = 0; k < parts; k++)
                at += snprintf(at, 64, "%sf32[%lld] %s", k > 0 ? " ; " : "", (long long)sizes[k],
                               random_in(&r, 0, 4) == 0 ? "SS(0,2)" : "S(0)");
            snprintf(attrs, sizeof attrs, "dim=0");
        } else {
            at += snprintf(at, 64, "f32[%lld] B(0;", (long long)total);
            for (int k = 0; k < parts; k++)
                at += snprintf(at, 32, "%s%lld", k > 0 ? "," : "", (long long)sizes[k]);
            snprintf(at, 8, ")");
            at = attrs + snprintf(attrs, sizeof attrs, "dim=0 sizes=");
            for (int k = 0; k < parts; k++)
                at += snprintf(at, 32, "%lld,", (long long)sizes[k]);
        }
        op_begin(&o, joins ? "cat" : "split", mesh, inputs, attrs, NULL);
        ck_assert_msg(weft_op_check(&o.call, NULL, &choice) == WEFT_OK, "%s %s on %s: %s", inputs,
                      attrs, mesh, weft_last_error());
        for (int32_t rank = 0; rank < ranks; rank++) {
            const weft_spec *whole =
                joins ? weft_op_choice_output(choice, 0) : weft_op_choice_input(choice, 0);
            size_t wants = append_indices(whole, rank, 0, 0, want, 0), has = 0;
            int64_t base = 0;
            for (int k = 0; k < parts; base += sizes[k++]) {
                const weft_spec *part = joins ? weft_op_choice_input(choice, (uint32_t)k)
                                              : weft_op_choice_output(choice, (uint32_t)k);
                has = append_indices(part, rank, 0, base, have, has);
            }
            ck_assert_msg(has == wants && memcmp(have, want, has * sizeof *have) == 0,
                          "%s %s on %s: rank %d", inputs, attrs, mesh, rank);
        }
        legal++;
    }
    ck_assert_int_eq(legal, cases);
}

TEST(programs_write_the_clause_themselves)
{
    ck_assert(weft_op_register("qkv: x[.. k] -> q[.. a] s[.. b] v[.. c]; whole k a b c; size a 8;"
                               " size b 4; size c 4; parts k a b c; pass x") == WEFT_OK);
    ck_assert_str_eq(op_check("qkv", "2", "f32[3,5,16] B(2;8,4,4)", ""),
                     "B(2;8,4,4) -> S(2) ; S(2) ; S(2)");
    ck_assert(weft_op_remove("qkv") == WEFT_OK);
    ck_assert(weft_op_register("bad: x[k] -> y[j]; whole k; own j; size j 2; parts k j") ==
              WEFT_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "add \"whole j\""));
    ck_assert(weft_op_register("bad: x[k] -> y[k]; whole k; parts k k") == WEFT_ERR_INVALID);
    ck_assert(weft_op_register("bad: x[k] -> y[j]; whole k j; size j 2; parts k") ==
              WEFT_ERR_PARSE);
}
