/* Rules as text: what reads, what prints, and what the errors say. */
#include "ops/rule/rule.h"
#include "support/allocfail.h"
#include "support/suite.h"
#include "weft/ops.h"

#include <stdio.h>
#include <string.h>

static const char *format_of(const char *text)
{
    static char out[8192];

    ck_assert_msg(weft_op_rules_print(text, out, sizeof out, NULL) == WEFT_OK, "%s: %s", text,
                  weft_last_error());
    return out;
}

TEST(equal_rules_have_one_text)
{
    static const struct {
        const char *text, *printed; /* NULL: as read */
    } cases[] = {
        {"mm: a[m k] b[k n] -> c[m n]; sum k; lin a | b", NULL},
        {"mm :a[ m k ]b[k n]->c[m n];sum k;lin a|b # matrices",
         "mm: a[m k] b[k n] -> c[m n]; sum k; lin a | b"},
        {"mm: a[m k] b[k n] -> c[m n]; lin a; sum k; lin b",
         "mm: a[m k] b[k n] -> c[m n]; sum k; lin a | b"},
        {"neg aten.neg.default: a[..] -> b[..]; lin a; anti a", NULL},
        {"norm(p=inf,dims): x[.. K@dims ..] -> y[..]; max K", NULL},
        {"norm(p>=-1.5e1,dims,mode!=fast): x[.. K@dims ..] -> y[..]; whole K", NULL},
        {"g(d): x[.. (j z)@d ..] -> y[.. j@d ..]; whole z; size z 4; pass x", NULL},
        {"h(n): -> y[Y..]; own Y..; step Y.. 8; size Y.. n; rand; use fill; make eye", NULL},
        {"t: a[i] b[i] -> c[i] d[]; sum i; add b; hom max a+b; turn min max a; shape b; from d a;"
         " inplace c=a; type i64 d",
         NULL},
        {"# nothing\n\n  # here\nu: a[i] -> b[i]; mono a\r\n", "u: a[i] -> b[i]; mono a"},
        {"constant: -> ", "constant: ->"},
    };

    for (size_t i = 0; i < WF_COUNT(cases); i++) {
        const char *printed = cases[i].printed != NULL ? cases[i].printed : cases[i].text;
        char once[8192];
        snprintf(once, sizeof once, "%s", format_of(cases[i].text));
        ck_assert_str_eq(once, printed);
        ck_assert_str_eq(format_of(once), once);
    }
}

TEST(the_examples_of_the_documents_read)
{
    FILE *file = fopen(WEFT_TEST_DATA "/ops/examples.rules", "r");
    static char text[65536], once[65536];
    size_t length, rules = 1;

    ck_assert(file != NULL);
    length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = '\0';
    ck_assert_msg(weft_op_rules_print(text, once, sizeof once, NULL) == WEFT_OK, "%s",
                  weft_last_error());
    ck_assert_msg(weft_op_rules_print(once, text, sizeof text, NULL) == WEFT_OK, "%s",
                  weft_last_error());
    ck_assert_str_eq(text, once);
    for (const char *at = text; *at != '\0'; at++)
        rules += *at == '\n';
    ck_assert_uint_gt(rules, 150);
}

TEST(errors_give_the_position_and_what_is_expected)
{
    static const struct {
        const char *text, *reason;
    } cases[] = {
        {"", "no rule"},
        {"mm", "position 3: expected a name, '(' or ':', found the end"},
        {": a[m] -> b[m]", "position 1: expected the name of an operator, found ':'"},
        {"mm: a[m k b[k n] -> c[m n]", "position 12: expected a dimension or ']', found '['"},
        {"mm: a[m k] b[k n] c[m n]", "position 25: expected a tensor or '->'"},
        {"mm: a[m] -> c[m]; som k", "position 19: som is not a clause"},
        {"mm: a[m] -> c[m]; whole q", "position 25: no tensor has a factor q"},
        {"mm: a[m] -> c[m]; whole ..", "no tensor has a run \"..\""},
        {"mm: a[m] -> c[m]; lin c", "position 23: c is not an input"},
        {"mm: a[m] -> c[m]; from a", "a is not an output"},
        {"mm: a[m] -> c[m]; hom big a", "expected sum, avg, max, min or prod"},
        {"mm: a[m@dim] -> c[m]", "dim is not an attribute; list it behind the name: NAME(dim)"},
        {"mm: a[m] a[n] -> c[m n]", "the tensor a stands twice"},
        {"mm mm: a[m] -> c[m]", "the name mm stands twice"},
        {"mm(x,x): a[m] -> c[m]", "the attribute x stands twice"},
        {"mm(x<word): a[m] -> c[m]", "only numbers are compared"},
        {"mm: a[(m)] -> c[m]", "expected at least two factors"},
        {"mm: a[(m K)] -> c[m]", "K is a group"},
        {"mm: a[S.. S] -> c[m]", "S stands with and without \"..\""},
        {"mm: a[m] -> c[m]; sum m; max m", "a factor is reduced by sum and by max"},
        {"mm: a[m] -> c[m]; type f31 c", "f31 is not a dtype, an attribute, an input"},
        {"mm: a[m] -> c[m] d[m]; inplace c=a d=a", "two outputs are in place of a"},
        {"mm: a[m] -> c[m]; step m 0", "a step is from 1"},
        {"a: x[i] -> y[i]\nb: x[i -> y[i]", "line 2"},
    };

    for (size_t i = 0; i < WF_COUNT(cases); i++) {
        weft_status status = weft_op_rules_print(cases[i].text, NULL, 0, NULL);
        if (cases[i].text[0] == '\0') status = weft_op_register(cases[i].text);
        ck_assert_msg(status == WEFT_ERR_PARSE, "%s: %d", cases[i].text, (int)status);
        ck_assert_msg(strstr(weft_last_error(), cases[i].reason) != NULL, "%s: %s", cases[i].text,
                      weft_last_error());
    }
}

TEST(incomplete_rules_are_refused)
{
    static const struct {
        const char *text, *reason;
    } cases[] = {
        {"mm: a[m k] b[k n] -> c[m n]", "factor k of a may be split, but output c neither has it"},
        {"f: a[..] -> b[]", "factor .. of a may be split"},
        {"f: a[i] -> b[i] c[]", "output c neither has it"},
        {"f: a[i] -> b[i j]", "only outputs have factor j"},
        {"f: -> b[j]; sum j", "factor j is reduced, but no input has it"},
        {"f: a[i] -> b[i]; whole i; own i", "factor i is whole, and may be split"},
        {"f: a[A.. B..] -> b[A..]; whole B..", "two different runs"},
        {"f: a[.. i .. j ..] -> b[..]; whole i j", "3 runs of dimensions"},
        {"f: a[i i] -> b[]; sum i", "factor i stands twice in tensor a"},
        {"f: a[(i i)] -> b[]; sum i", "factor i stands twice in tensor a"},
        {"f: a[i] -> b?[i]", "output b cannot be optional"},
        {"f: a?[i] b[i] -> c[i]; inplace c=a", "cannot be optional"},
    };

    for (size_t i = 0; i < WF_COUNT(cases); i++) {
        ck_assert_int_eq(weft_op_rules_print(cases[i].text, NULL, 0, NULL), WEFT_ERR_INVALID);
        ck_assert_msg(strstr(weft_last_error(), cases[i].reason) != NULL, "%s: %s", cases[i].text,
                      weft_last_error());
    }
    ck_assert_str_eq(format_of("f: a[i] -> b[i] c[]; from c"), "f: a[i] -> b[i] c[]; from c");
}

TEST(rules_have_limits)
{
    struct wf_text text = {0};

    wf_text_add(&text, "f:");
    for (int i = 0; i < 40; i++)
        wf_text_add(&text, " t%d[i]", i);
    wf_text_add(&text, " -> y[i]");
    ck_assert_int_eq(weft_op_rules_print(text.data, NULL, 0, NULL), WEFT_ERR_PARSE);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "at most 24 tensors"));
    text.length = 0;
    for (int i = 0; i < 2000; i++)
        wf_text_add(&text, "name%d ", i);
    ck_assert_int_eq(weft_op_rules_print(text.data, NULL, 0, NULL), WEFT_ERR_PARSE);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "at most 4000 bytes"));
    wf_text_free(&text);
}

TEST(every_allocation_may_fail)
{
    static const char rules[] =
        "mm: a[m k] b[k n] -> c[m n]; sum k; lin a | b\nneg: a[..] -> b[..]";
    char out[200];

    ck_assert_uint_gt(ALLOCATIONS_FAIL(weft_op_rules_print(rules, out, sizeof out, NULL), (void)0),
                      2);
}
