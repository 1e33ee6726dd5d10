/* Choices that were made before are found again, as long as the rules are the same. */
#include "ops/cache.h"
#include "support/ops.h"
#include "support/suite.h"

#include <pthread.h>

static weft_op_choice *propose(op_text *o)
{
    weft_op_choice *choice = NULL;

    ck_assert_msg(weft_op_propose(&o->call, NULL, &choice) == WEFT_OK, "%s", weft_last_error());
    return choice;
}

/* True if two calls have one choice. */
static bool share(op_text *a, op_text *b)
{
    weft_op_choice *first = propose(a), *second = propose(b);
    bool same = first == second;

    weft_op_choice_release(&first);
    weft_op_choice_release(&second);
    return same;
}

TEST(the_same_call_has_the_same_choice)
{
    static const struct {
        const char *name, *inputs, *attrs;
        bool same;
    } others[] = {
        {"sum", "f32[8,6] S(0)", "dims=1", true},
        {"sum", "f32[8,6] S(0)", "dims=1 eps=3", true}, /* the rule does not list eps */
        {"sum", "f32[8,6] S(0)", "dims=0", false},
        {"sum", "f32[8,6] S(0)", "dims=1 keepdim=1", false},
        {"sum", "f32[8,6] S(1)", "dims=1", false},
        {"sum", "f64[8,6] S(0)", "dims=1", false},
        {"mean", "f32[8,6] S(0)", "dims=1", false},
    };
    OWNED(op_text) first;

    op_begin(&first, "sum", "2", "f32[8,6] S(0)", "dims=1", NULL);
    for (size_t i = 0; i < WF_COUNT(others); i++) {
        OWNED(op_text) other;
        op_begin(&other, others[i].name, "2", others[i].inputs, others[i].attrs, NULL);
        ck_assert_msg(share(&first, &other) == others[i].same, "%zu", i);
    }
    weft_op_cache_clear();
}

TEST(the_form_in_place_and_the_mode_have_their_own)
{
    OWNED(op_text) in_place;
    OWNED(op_text) plain;
    OWNED(weft_op_choice) *proposed = NULL;
    weft_op_choice *checked = NULL;

    op_begin(&plain, "add", "2", "f32[8] S(0) ; f32[8] P(sum)", "", NULL);
    op_begin(&in_place, "add_", "2", "f32[8] S(0) ; f32[8] P(sum)", "", NULL);
    ck_assert(!share(&plain, &in_place));
    proposed = propose(&plain);
    ck_assert_int_eq(weft_op_check(&plain.call, NULL, &checked), WEFT_ERR_MISMATCH);
    weft_op_cache_clear();
}

TEST(another_rule_has_another_answer_at_once)
{
    static const char free_rule[] = "cached: a[i] -> b[i]",
                      whole_rule[] = "cached: a[i] -> b[i]; whole i";

    for (int i = 0; i < 3; i++) {
        ck_assert(weft_op_replace(free_rule) == WEFT_OK);
        ck_assert_str_eq(op_propose("cached", "2", "f32[8] S(0)", ""), "S(0) -> S(0)");
        ck_assert(weft_op_replace(whole_rule) == WEFT_OK);
        ck_assert_str_eq(op_propose("cached", "2", "f32[8] S(0)", ""), "R -> R");
    }
    ck_assert(weft_op_remove("cached") == WEFT_OK);
    ck_assert_int_eq(op_propose("cached", "2", "f32[8] S(0)", "")[0], '!');
    weft_op_cache_clear();
}

TEST(the_cache_is_bounded)
{
    op_text o;
    int64_t live;

    weft_op_cache_clear();
    ck_assert(weft_op_digest() != 0);
    live = wf_mem_live();
    for (int i = 0; i < 6000; i++) {
        char input[64];
        OWNED(weft_op_choice) *choice = NULL;
        snprintf(input, sizeof input, "f32[%d] S(0)", i + 1);
        op_begin(&o, "exp", "2", input, "", NULL);
        choice = propose(&o);
        op_text_release(&o);
    }
    ck_assert_int_gt(wf_mem_live(), live + WF_CACHE_SETS * WF_CACHE_WAYS); /* it is used */
    ck_assert_int_lt(wf_mem_live(), live + 4 * WF_CACHE_SETS * WF_CACHE_WAYS);
    weft_op_cache_clear();
    ck_assert_int_eq(wf_mem_live(), live);
}

static _Atomic(int) wrong, done;

static void *propose_often(void *o)
{
    const op_text *mine = o;

    while (!atomic_load(&done)) {
        OWNED(weft_op_choice) *choice = NULL;
        weft_status status = weft_op_propose(&mine->call, NULL, &choice);
        const weft_spec *out = weft_op_choice_output(choice, 0);
        /* split by the one rule, whole by the other */
        if (status != WEFT_OK || out == NULL || (out != mine->inputs[0] && out != mine->inputs[1]))
            atomic_store(&wrong, 1);
    }
    return NULL;
}

TEST(threads_propose_while_rules_change_and_the_cache_is_cleared)
{
    pthread_t threads[3];
    OWNED(op_text) o;

    ck_assert(weft_op_replace("swapped: a[i] -> b[i]") == WEFT_OK);
    op_begin(&o, "swapped", "2", "f32[8] S(0) ; f32[8] R", "", NULL);
    o.call.input_count = 1; /* the second is for comparison */
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, propose_often, &o), 0);
    for (int i = 0; i < 100; i++) {
        ck_assert(weft_op_replace(i % 2 == 0 ? "swapped: a[i] -> b[i]; whole i"
                                             : "swapped: a[i] -> b[i]") == WEFT_OK);
        if (i % 3 == 0) weft_op_cache_clear();
    }
    atomic_store(&done, 1);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    ck_assert_int_eq(atomic_load(&wrong), 0);
    ck_assert(weft_op_remove("swapped") == WEFT_OK);
    o.call.input_count = 2;
    weft_op_cache_clear();
}
