/* The rules of all operators: registered, replaced and removed while other threads read. */
#include "ops/rule/registry.h"
#include "support/allocfail.h"
#include "support/suite.h"
#include "weft/ops.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *text_of(const char *name)
{
    static char out[4096];

    ck_assert_msg(weft_op_print(name, out, sizeof out, NULL) == WEFT_OK, "%s", weft_last_error());
    return out;
}

static void accept(weft_status status)
{
    ck_assert_msg(status == WEFT_OK, "%s", weft_last_error());
}

TEST(every_rule_of_weft_takes_less_than_a_kibibyte)
{
    for (size_t i = 0; i < wf_op_builtin_count; i++) {
        struct wf_rule *rule;
        size_t at = 0;
        ck_assert_msg(wf_rule_read(wf_op_builtin[i], &at, &rule) == WEFT_OK, "%s: %s",
                      wf_op_builtin[i], weft_last_error());
        ck_assert_msg(wf_rule_bytes(rule) < 1024, "%s", wf_op_builtin[i]);
        wf_rule_drop(rule);
    }
    ck_assert_str_eq(text_of("mm"), "mm: a[m k] b[k n] -> c[m n]; sum k; lin a | b; same a b");
    ck_assert_ptr_nonnull(strstr(text_of("relu"), "mono a"));
}

/* Every rule with rows that are linear in contributions says when they hold. */
TEST(explanations_of_linear_rows_name_infinities)
{
    static const char limit[] = "Contributions must stay finite";
    int linear = 0;

    for (size_t i = 0; i < wf_op_builtin_count; i++) {
        struct wf_rule *rule;
        char name[64], text[8192];
        const char *line;
        size_t at = 0;
        bool expected = false;

        ck_assert_int_eq(wf_rule_read(wf_op_builtin[i], &at, &rule), WEFT_OK);
        for (int j = 0; j < rule->term_count; j++)
            expected = expected || rule->terms[j].clause <= WF_AFF;
        snprintf(name, sizeof name, "%.*s", WF_WORD(rule, rule->names[0]));
        ck_assert_int_eq(weft_op_meaning_print(name, text, sizeof text, NULL), WEFT_OK);
        line = strstr(text, rule->body); /* of all lines of the name */
        ck_assert_ptr_nonnull(line);
        line = strstr(line, "\n  ");
        for (size_t length; line != NULL; line += 1 + length) {
            length = strcspn(line + 1, "\n");
            if (strncmp(line + 1, "  ", 2) != 0 || strstr(line + 1, limit) == line + 3) break;
        }
        ck_assert_msg((line != NULL && strncmp(line + 3, limit, strlen(limit)) == 0) == expected,
                      "%s:\n%s", name, text);
        linear += expected;
        wf_rule_drop(rule);
    }
    ck_assert_int_gt(linear, 60);
}

TEST(names_are_listed_in_order)
{
    static char names[16384];
    size_t length, lines = 1;

    accept(weft_op_names_print(names, sizeof names, &length));
    ck_assert_uint_lt(length, sizeof names);
    for (char *at = names, *next; (next = strchr(at, '\n')) != NULL; at = next + 1) {
        char *end = strchr(next + 1, '\n');
        lines++;
        *next = '\0';
        if (end != NULL) *end = '\0';
        ck_assert_int_lt(strcmp(at, next + 1), 0);
        if (end != NULL) *end = '\n';
    }
    ck_assert_uint_gt(lines, 300);
}

TEST(a_registered_rule_replaces_one_of_weft_until_it_is_removed)
{
    uint64_t before = weft_op_digest(), with;

    accept(weft_op_register("mm: a[m k] b[k n] -> c[m n]; whole k"));
    ck_assert_str_eq(text_of("mm"), "mm: a[m k] b[k n] -> c[m n]; whole k");
    with = weft_op_digest();
    ck_assert(with != before);
    accept(weft_op_register("mm: a[m k] b[k n] -> c[m n]; whole k")); /* the same again */
    ck_assert(weft_op_digest() == with);
    ck_assert_int_eq(weft_op_register("mm: a[m k] b[k n] -> c[m n]; whole m k"), WEFT_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "operator mm is registered with the rule"));
    accept(weft_op_replace("mm: a[m k] b[k n] -> c[m n]; whole m k"));
    ck_assert_ptr_nonnull(strstr(text_of("mm"), "whole m k"));
    accept(weft_op_remove("mm"));
    ck_assert_str_eq(text_of("mm"), "mm: a[m k] b[k n] -> c[m n]; sum k; lin a | b; same a b");
    ck_assert(weft_op_digest() == before);
    ck_assert_int_eq(weft_op_remove("mm"), WEFT_ERR_NOT_FOUND);
    ck_assert_int_eq(weft_op_remove("nothing"), WEFT_ERR_NOT_FOUND);
}

TEST(the_digest_does_not_depend_on_the_order)
{
    uint64_t before = weft_op_digest(), first, second;

    accept(weft_op_register("one: a[i] -> b[i]"));
    accept(weft_op_register("two(n>1): a[i] -> b[i]; whole i\ntwo: a[i] -> b[i]"));
    first = weft_op_digest();
    accept(weft_op_remove("one"));
    accept(weft_op_remove("two"));
    ck_assert(weft_op_digest() == before);
    accept(
        weft_op_register("two(n>1): a[i] -> b[i]; whole i\ntwo: a[i] -> b[i]\none: a[i] -> b[i]"));
    second = weft_op_digest();
    ck_assert(first == second && first != before);
    ck_assert_str_eq(text_of("two"), "two(n>1): a[i] -> b[i]; whole i\ntwo: a[i] -> b[i]");
    /* the order of the lines of one name matters */
    accept(weft_op_replace("two: a[i] -> b[i]\ntwo(n>1): a[i] -> b[i]; whole i"));
    ck_assert(weft_op_digest() != first);
    accept(weft_op_remove("one"));
    accept(weft_op_remove("two"));
}

TEST(all_lines_are_registered_or_none)
{
    uint64_t before = weft_op_digest();

    ck_assert_int_eq(weft_op_register("one: a[i] -> b[i]\ntwo: a[i] -> b[]"), WEFT_ERR_INVALID);
    ck_assert(weft_op_digest() == before);
    ck_assert_int_eq(weft_op_print("one", NULL, 0, NULL), WEFT_ERR_NOT_FOUND);
}

TEST(an_unknown_name_is_compared_with_the_known_ones)
{
    ck_assert_int_eq(weft_op_print("sofmax", NULL, 0, NULL), WEFT_ERR_NOT_FOUND);
    ck_assert_str_eq(weft_last_error(), "weft_op_print: there is no rule for operator \"sofmax\"; "
                                        "did you mean softmax?");
}

/* NAME, an operator of PyTorch, has RULE; or no rule, for a reason, if RULE is "-". */
static void check_name(const char *name, const char *rule, const char *reason)
{
    char theirs[2048], ours[2048];
    weft_status status = weft_op_print(name, theirs, sizeof theirs, NULL);

    if (rule[0] == '-') {
        ck_assert_msg(status == WEFT_ERR_NOT_FOUND && reason != NULL, "%s", name);
        return;
    }
    ck_assert_msg(status == WEFT_OK, "%s: %s", name, weft_last_error());
    ck_assert_msg(weft_op_print(rule, ours, sizeof ours, NULL) == WEFT_OK, "%s", rule);
    ck_assert_msg(strcmp(theirs, ours) == 0, "%s is not %s but %s", name, rule, theirs);
    ck_assert_msg((strstr(name, "_backward") != NULL) == (strstr(rule, "_bwd") != NULL), "%s",
                  name);
}

TEST(names_of_pytorch_have_a_rule_or_a_reason)
{
    FILE *file = fopen(WEFT_TEST_DATA "/ops/aten-2.15.txt", "r");
    char line[256], name[256], *next;
    int known = 0, unknown = 0;

    ck_assert(file != NULL);
    while (fgets(line, sizeof line, file) != NULL) {
        char *their = strtok_r(line, " \n", &next), *rule = strtok_r(NULL, " \n", &next);
        const char *reason = strtok_r(NULL, "\n", &next);
        char *overloads = strrchr(their, '.');

        if (their[0] == '#') continue;
        *overloads++ = '\0';
        for (char *overload; (overload = strsep(&overloads, ",")) != NULL;) {
            snprintf(name, sizeof name, "%s.%s", their, overload);
            check_name(name, rule, reason);
            *(rule[0] == '-' ? &unknown : &known) += 1;
        }
    }
    fclose(file);
    ck_assert_int_eq(known + unknown, 1266);
    ck_assert_int_le(unknown, 6);
}

/* NAME_backward is an operator of gradients, or the error names the one that is missing. */
TEST(backward_names_of_pytorch_are_never_the_forward_operator)
{
    FILE *file = fopen(WEFT_TEST_DATA "/ops/aten-2.15.txt", "r");
    char line[256], last[256] = "", name[300], rule[2048], *overload;
    int known = 0, unknown = 0;

    ck_assert(file != NULL);
    while (fgets(line, sizeof line, file) != NULL) {
        if (line[0] == '#') continue;
        overload = strchr(strchr(line, '.') + 1, '.');
        *(overload != NULL ? overload : strchr(line, ' ')) = '\0';
        if (strstr(line, "_backward") != NULL || strcmp(line, last) == 0) continue;
        strcpy(last, line);
        snprintf(name, sizeof name, "%s_backward.default", line);
        if (weft_op_print(name, rule, sizeof rule, NULL) == WEFT_OK) {
            rule[strcspn(rule, "(:")] = '\0';
            ck_assert_msg(strcmp(rule + strlen(rule) - 4, "_bwd") == 0, "%s is %s", name, rule);
            known++;
        } else {
            ck_assert_msg(strstr(weft_last_error(), "_bwd") != NULL, "%s", weft_last_error());
            unknown++;
        }
    }
    fclose(file);
    ck_assert_msg(known > 20 && unknown > 300, "%d and %d", known, unknown);
}

TEST(backward_names_of_pytorch_find_their_operator_or_name_it)
{
    static const struct {
        const char *name, *want; /* want: how the rule or the error begins */
    } rows[] = {
        {"aten.adaptive_max_pool2d_backward.default", "max_pool_bwd("},
        {"aten.adaptive_max_pool3d_backward.grad_input", "max_pool_bwd("},
        {"aten.fractional_max_pool2d_backward.default", "max_pool_bwd("},
        {"aten.avg_pool2d_backward.default", "avg_pool_bwd("},
        {"aten._adaptive_avg_pool3d_backward.default", "adaptive_avg_pool_bwd("},
        {"aten._upsample_nearest_exact2d_backward.default", "interpolate_bwd("},
        {"aten._scaled_dot_product_flash_attention_for_cpu_backward.default", "sdpa_bwd("},
        {"aten.elu_backward.default", "elu_bwd("},
        {"aten.glu_backward.default", "weft_op_print: there is no rule for operator \"glu_bwd\"; "
                                      "register one, or take the calls "
                                      "of weft_op_backward_create for glu"},
        {"aten.max_unpool2d_backward.default",
         "weft_op_print: there is no rule for operator \"max_unpool_bwd\"; register one"},
    };
    char rule[2048];

    for (size_t i = 0; i < WF_COUNT(rows); i++) {
        weft_status status = weft_op_print(rows[i].name, rule, sizeof rule, NULL);
        const char *answer = status == WEFT_OK ? rule : weft_last_error();
        ck_assert_msg(strncmp(answer, rows[i].want, strlen(rows[i].want)) == 0, "%s: %s",
                      rows[i].name, answer);
    }
    ck_assert_int_eq(weft_op_register("max_pool2d_backward: g[i] -> d[i]"), WEFT_OK);
    ck_assert_int_eq(weft_op_print("aten.max_pool2d_backward", rule, sizeof rule, NULL), WEFT_OK);
    ck_assert_str_eq(rule, "max_pool2d_backward: g[i] -> d[i]");
    ck_assert_int_eq(weft_op_remove("max_pool2d_backward"), WEFT_OK);
}

TEST(every_allocation_may_fail)
{
    ck_assert_uint_gt(ALLOCATIONS_FAIL(weft_op_replace("three: a[i] -> b[i]"),
                                       ck_assert_int_eq(weft_op_remove("three"), WEFT_OK)),
                      3);
}

/* ---- threads ---- */

static _Atomic(int) wrong, done;

static void *read_rules(void *unused)
{
    char out[256];

    (void)unused;
    while (!atomic_load(&done)) {
        weft_status status = weft_op_print("swap", out, sizeof out, NULL);
        bool one = status == WEFT_OK && strcmp(out, "swap: a[i] -> b[i]; whole i") == 0;
        bool two = status == WEFT_OK && strcmp(out, "swap: a[i] -> b[i]; mono a") == 0;
        if (!one && !two && status != WEFT_ERR_NOT_FOUND) atomic_store(&wrong, 1);
        if (weft_op_digest() == 0) atomic_store(&wrong, 1);
    }
    return NULL;
}

static void *write_rules(void *name)
{
    char text[64];

    snprintf(text, sizeof text, "%s: a[i] -> b[i]", (const char *)name);
    for (int i = 0; i < 40; i++) {
        if (weft_op_replace(i % 2 == 0 ? "swap: a[i] -> b[i]; whole i"
                                       : "swap: a[i] -> b[i]; mono a") != WEFT_OK ||
            weft_op_register(text) != WEFT_OK || weft_op_remove(name) != WEFT_OK)
            atomic_store(&wrong, 1);
    }
    return NULL;
}

TEST(threads_read_while_others_register)
{
    static char names[2][8] = {"mine", "yours"};
    pthread_t readers[2], writers[2];
    uint64_t before = weft_op_digest();

    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(pthread_create(&readers[i], NULL, read_rules, NULL), 0);
        ck_assert_int_eq(pthread_create(&writers[i], NULL, write_rules, names[i]), 0);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(writers[i], NULL);
    atomic_store(&done, 1);
    for (int i = 0; i < 2; i++)
        pthread_join(readers[i], NULL);
    ck_assert_int_eq(atomic_load(&wrong), 0);
    accept(weft_op_remove("swap"));
    ck_assert(weft_op_digest() == before);
}

TEST(thousands_of_names_are_exchanged_and_listed)
{
    enum { MANY = 1000 };
    struct wf_text rules = {0};
    char name[16], *list;
    size_t length;

    for (int i = MANY; i-- > 0;)
        wf_text_add(&rules, "many%04d: x[a b] -> y[a b]\n", i);
    accept(weft_op_register(rules.data));
    accept(weft_op_replace(rules.data));
    wf_text_free(&rules);
    accept(weft_op_names_print(NULL, 0, &length));
    list = malloc(length + 1);
    ck_assert_ptr_nonnull(list);
    accept(weft_op_names_print(list, length + 1, NULL));
    ck_assert_ptr_nonnull(strstr(list, "many0000\nmany0001\nmany0002\n"));
    ck_assert_ptr_nonnull(strstr(list, "\nmany0998\nmany0999\n"));
    free(list);
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "many%04d", i);
        accept(weft_op_remove(name));
        ck_assert_int_eq(weft_op_print(name, NULL, 0, NULL), WEFT_ERR_NOT_FOUND);
    }
}
