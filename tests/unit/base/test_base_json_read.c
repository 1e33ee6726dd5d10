#include "base/base.h"
#include "weft/status.h"
#include "support/allocfail.h"
#include "support/suite.h"

#include <string.h>

START_TEST(values_of_every_kind_are_read)
{
    struct wf_json_tree tree;
    const struct wf_json_value *v;

    ck_assert_int_eq(
        wf_json_read(" {\"a\": [1, -2.5e1, true, null], \"b\": \"x\", \"c\": {} } ", &tree),
        WEFT_OK);
    ck_assert_int_eq(tree.root->count, 3);
    v = wf_json_find(tree.root, "a");
    ck_assert_int_eq(v->count, 4);
    v = v->first;
    ck_assert_int_eq(v->kind, WF_JSON_INT);
    ck_assert_int_eq(v->integer, 1);
    v = v->next;
    ck_assert_int_eq(v->kind, WF_JSON_REAL);
    ck_assert(v->real == -25);
    ck_assert_int_eq(v->next->kind, WF_JSON_BOOL);
    ck_assert_int_eq(v->next->integer, 1);
    ck_assert_int_eq(v->next->next->kind, WF_JSON_NULL);
    ck_assert_str_eq(wf_json_find(tree.root, "b")->text, "x");
    ck_assert_int_eq(wf_json_find(tree.root, "c")->kind, WF_JSON_OBJECT);
    ck_assert_ptr_null(wf_json_find(tree.root, "d"));
    ck_assert_ptr_null(wf_json_find(wf_json_find(tree.root, "a"), "d"));
    wf_json_free(&tree);
}
END_TEST

START_TEST(escapes_become_utf8)
{
    struct wf_json_tree tree;

    ck_assert_int_eq(wf_json_read("\"\\\"\\\\\\/\\n\\u0041\\u00e9\\u20ac\\ud83d\\ude00\"", &tree),
                     WEFT_OK);
    ck_assert_str_eq(tree.root->text, "\"\\/\nA\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
    wf_json_free(&tree);
}
END_TEST

START_TEST(numbers_keep_64_bits)
{
    struct wf_json_tree tree;

    ck_assert_int_eq(wf_json_read("[9223372036854775807,-9223372036854775808,"
                                  "9223372036854775808]",
                                  &tree),
                     WEFT_OK);
    ck_assert(tree.root->first->integer == INT64_MAX);
    ck_assert(tree.root->first->next->integer == INT64_MIN);
    ck_assert_int_eq(tree.root->first->next->next->kind, WF_JSON_REAL);
    wf_json_free(&tree);
}
END_TEST

START_TEST(malformed_text_is_refused_with_its_position)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"", "position 1: expected a value"},
        {"[1,]", "position 4: expected a value"},
        {"{\"a\" 1}", "position 6: expected :"},
        {"{a:1}", "position 2: expected the name of a member"},
        {"[1 2]", "position 4: expected , or the end of a list"},
        {"\"abc", "a string has no end"},
        {"\"\\x\"", "unknown letter"},
        {"\"\\u12\"", "the digits of a character"},
        {"\"\\ud800\"", "the digits of a character"},
        {"\"\\u0000\"", "the digits of a character"},
        {"01", "a number begins with 0"},
        {"1.", "digits behind the point"},
        {"1e", "the digits of an exponent"},
        {"1 x", "position 3: expected the end"},
        {"nul", "expected a value"},
    };
    char deep[80];
    struct wf_json_tree tree;

    for (size_t i = 0; i < WF_COUNT(cases); i++) {
        ck_assert_int_eq(wf_json_read(cases[i].text, &tree), WEFT_ERR_PARSE);
        ck_assert_msg(strstr(weft_last_error(), cases[i].want) != NULL, "%s: %s", cases[i].text,
                      weft_last_error());
    }
    memset(deep, '[', sizeof deep);
    deep[sizeof deep - 1] = '\0';
    ck_assert_int_eq(wf_json_read(deep, &tree), WEFT_ERR_PARSE);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "nested deeper than 64"));
}
END_TEST

static weft_status read_long(void *tree)
{
    char text[300] = "[0";

    for (int i = 0; i < 100; i++)
        strcat(text, ",1");
    strcat(text, "]");
    return wf_json_read(text, tree);
}

static void free_long(void *tree)
{
    wf_json_free(tree);
}

START_TEST(it_frees_what_it_read_if_memory_ends)
{
    struct wf_json_tree tree;

    ck_assert_uint_eq(check_allocation_failures(read_long, free_long, &tree), 3);
}
END_TEST

SUITE(base_json_read, values_of_every_kind_are_read, escapes_become_utf8, numbers_keep_64_bits,
      malformed_text_is_refused_with_its_position, it_frees_what_it_read_if_memory_ends)
