/* Rows that the program computes, for rules with the clause `use`. */
#include "weft/status.h"
#include "support/ops.h"
#include "support/suite.h"

#include <pthread.h>
#include <stdatomic.h>

/* flip of a dimension that two ranks split: each has the other's half. */
#define RULE "turned(dim): x[.. k@dim ..] -> y[.. k@dim ..]; whole k; pass x; use turned"

struct answers {
    const char *text;
    weft_status status;
    _Atomic(int) calls;
    weft_op_query *seen; /* NULL: not wanted */
};

static weft_status answer_rows(void *user, const weft_op_query *query, char *text, size_t size)
{
    struct answers *a = user;

    atomic_fetch_add(&a->calls, 1);
    if (query->axis == 0 && a->seen != NULL) *a->seen = *query;
    snprintf(text, size, "%s", query->parts == 2 ? a->text : "");
    return a->status;
}

static void begin_use(struct answers *a, const char *text)
{
    *a = (struct answers){.text = text};
    ck_assert_msg(weft_op_replace(RULE) == WEFT_OK, "%s", weft_last_error());
    ck_assert_int_eq(weft_op_use_register("turned", answer_rows, a), WEFT_OK);
}

static void end_use(void)
{
    ck_assert_int_eq(weft_op_use_remove("turned"), WEFT_OK);
    ck_assert_int_eq(weft_op_remove("turned"), WEFT_OK);
}

TEST(rows_of_a_function_join_those_of_the_rule)
{
    weft_op_query seen;
    struct answers a;

    begin_use(&a, "S(1) -> S(1)\nP(max) -> P(min)");
    a.seen = &seen;
    ck_assert_str_eq(op_check("turned", "2", "f32[4,6] S(1)", "dim=1"), "S(1) -> S(1)");
    ck_assert_uint_eq(seen.input_count + seen.output_count, 2);
    ck_assert_int_eq(seen.parts, 2);
    ck_assert_str_eq(op_check("turned", "2", "f32[4,6] S(0)", "dim=1"), "S(0) -> S(0)");
    ck_assert_str_eq(op_check("turned", "2", "f32[4,6] P(max)", "dim=1"), "P(max) -> P(min)");
    /* the function has no row for four ranks */
    ck_assert_ptr_nonnull(
        strstr(op_check("turned", "4", "f32[4,6] S(1)", "dim=1"), "on axis 0, input x is S(1)"));
    /* two axes: no other axis may split the dimension */
    ck_assert_str_eq(op_check("turned", "2x3", "f32[4,6] S(1),S(0)", "dim=1"),
                     "S(1),S(0) -> S(1),S(0)");
    ck_assert_int_eq(op_check("turned", "2x2", "f32[4,6] S(1),S(1)", "dim=1")[0], '!');
    end_use();
}

TEST(rows_may_list_sizes_and_name_owners)
{
    struct answers a;

    begin_use(&a, "G(1;4,2) -> B(1;4,2)\nO(1) -> R\nSS(1,2) -> SS(1,2)\nG(1;3,3) -> P(sum)");
    ck_assert_str_eq(op_check("turned", "2", "f32[4,6] G(1;4,2)", "dim=1"), "G(1;4,2) -> B(1;4,2)");
    ck_assert_str_eq(op_check("turned", "2", "f32[4,6] SS(1,2)", "dim=1"), "SS(1,2) -> SS(1,2)");
    /* equal sizes are those of S */
    ck_assert_str_eq(op_check("turned", "2", "f32[4,6] S(1)", "dim=1"), "S(1) -> P(sum)");
    /* an owner runs any operator; this one says more */
    ck_assert_str_eq(op_check("turned", "2", "f32[4,6] O(1)", "dim=1"), "O(1) -> O(1)");
    ck_assert_ptr_nonnull(strstr(op_check("turned", "2", "f32[4,6] G(1;5,1)", "dim=1"),
                                 "x must be R or S(0) or G(1;4,2) or "));
    end_use();
}

TEST(choices_do_not_outlive_the_function)
{
    struct answers a;

    ck_assert(weft_op_replace(RULE) == WEFT_OK);
    ck_assert_int_eq(op_check("turned", "2", "f32[4,6] S(1)", "dim=1")[0], '!');
    ck_assert_str_eq(op_propose("turned", "2", "f32[4,6] S(1)", "dim=1"), "R -> R");
    begin_use(&a, "S(1) -> S(1)");
    ck_assert_str_eq(op_propose("turned", "2", "f32[4,6] S(1)", "dim=1"), "S(1) -> S(1)");
    ck_assert_str_eq(op_propose("turned", "2", "f32[4,6] S(1)", "dim=1"), "S(1) -> S(1)");
    ck_assert_int_eq(a.calls, 1); /* the second choice was kept */
    ck_assert_int_eq(weft_op_use_remove("turned"), WEFT_OK);
    ck_assert_str_eq(op_propose("turned", "2", "f32[4,6] S(1)", "dim=1"), "R -> R");
    ck_assert_int_eq(weft_op_use_remove("turned"), WEFT_ERR_NOT_FOUND);
    ck_assert_int_eq(weft_op_remove("turned"), WEFT_OK);
}

TEST(malformed_rows_are_refused)
{
    static const struct {
        const char *text, *want;
    } cases[] = {{"S(2) -> R", "S(2) is not a placement of x here"},
                 {"G(1;3,2) -> R", "G(1;3,2) is not a placement of x here"},
                 {"B(1;3,2) -> R", "the sizes add up to 5"},
                 {"O(2) -> R", "O(2) is not a placement of x here"},
                 {"G(1;3,3 -> R", "G(1;3,3"},
                 {"R", "expected -> behind 1 input"},
                 {"R ; R -> R", "expected ->"},
                 {"R -> R R", "expected the end of the line"},
                 {"R -> ", "expected a placement"},
                 {"Q -> R", "Q"}};
    struct answers a;

    for (size_t i = 0; i < WF_COUNT(cases); i++) {
        const char *text;
        begin_use(&a, cases[i].text);
        text = op_check("turned", "2", "f32[4,6] S(1)", "dim=1");
        ck_assert_msg(text[0] == '!' && strstr(text, cases[i].want) != NULL &&
                          strstr(text, "the function of \"use turned\"") != NULL,
                      "%s: %s", cases[i].text, text);
        end_use();
    }
    begin_use(&a, "");
    a.status = WEFT_ERR_UNSUPPORTED;
    ck_assert_ptr_nonnull(strstr(op_check("turned", "2", "f32[4,6] S(1)", "dim=1"),
                                 "the function of \"use turned\": it returned ERR_UNSUPPORTED: "));
    end_use();
    ck_assert_int_eq(weft_op_use_register("", answer_rows, NULL), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_op_use_register("x", NULL, NULL), WEFT_ERR_INVALID);
}

static _Atomic(int) done, wrong;

static void *check_often(void *o)
{
    const op_text *mine = o;

    while (!atomic_load(&done)) {
        OWNED(weft_op_choice) *choice = NULL;
        if (weft_op_propose(&mine->call, NULL, &choice) != WEFT_OK) atomic_store(&wrong, 1);
    }
    return NULL;
}

TEST(threads_propose_while_functions_change)
{
    static struct answers a; /* outlives calls that have begun */
    pthread_t threads[2];
    op_text o;

    begin_use(&a, "S(1) -> S(1)");
    op_begin(&o, "turned", "2", "f32[4,6] S(1)", "dim=1", NULL);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, check_often, &o), 0);
    for (int i = 0; i < 100; i++) {
        ck_assert_int_eq(weft_op_use_remove("turned"), WEFT_OK);
        ck_assert_int_eq(weft_op_use_register("turned", answer_rows, &a), WEFT_OK);
    }
    atomic_store(&done, 1);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    ck_assert_int_eq(atomic_load(&wrong), 0);
    op_text_release(&o);
    end_use();
    weft_op_cache_clear();
}
