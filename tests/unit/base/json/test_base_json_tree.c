#include "base/base.h"
#include "weft/status.h"
#include "support/allocfail.h"
#include "support/suite.h"

#include <string.h>

TEST(values_of_every_kind_are_read)
{
    struct wf_json_tree tree;
    const struct wf_json_value *v;

    ck_assert_int_eq(
        wf_json_read("it", " {\"a\": [1, -2.5e1, true, null], \"b\": \"x\", \"c\": {} } ", &tree),
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

TEST(escapes_become_utf8)
{
    struct wf_json_tree tree;

    ck_assert_int_eq(
        wf_json_read("it", "\"\\\"\\\\\\/\\n\\u0041\\u00e9\\u20ac\\ud83d\\ude00\"", &tree),
        WEFT_OK);
    ck_assert_str_eq(tree.root->text, "\"\\/\nA\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
    wf_json_free(&tree);
}

TEST(numbers_keep_64_bits)
{
    struct wf_json_tree tree;

    ck_assert_int_eq(wf_json_read("it",
                                  "[9223372036854775807,-9223372036854775808,"
                                  "9223372036854775808]",
                                  &tree),
                     WEFT_OK);
    ck_assert(tree.root->first->integer == INT64_MAX);
    ck_assert(tree.root->first->next->integer == INT64_MIN);
    ck_assert_int_eq(tree.root->first->next->next->kind, WF_JSON_REAL);
    wf_json_free(&tree);
}

TEST(malformed_text_is_refused_with_its_position)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"", "it, byte 1: expected a value, found the end"},
        {"[1,]", "byte 4: expected a value, found ']'"},
        {"{\"a\" 1}", "byte 6: expected ':'"},
        {"{a:1}", "byte 2: expected a key in quotes"},
        {"[1 2]", "byte 4: expected ',' or ']'"},
        {"\"abc", "expected the rest of a string"},
        {"\"\\x\"", "one of \"\\/bfnrtu after a backslash"},
        {"\"\\u12\"", "four hexadecimal digits"},
        {"\"\\ud800\"", "half of a surrogate pair"},
        {"\"\\u0000\"", "a NUL character"},
        {"01", "byte 2: expected the end"},
        {"1.", "a digit after the point"},
        {"1e", "a digit of the exponent"},
        {"1 x", "byte 3: expected the end"},
        {"nul", "expected null"},
        {"{\"a\": 1, \"a\": 2}", "a key stands here that its object has already"},
    };
    char deep[80];
    struct wf_json_tree tree;

    for (size_t i = 0; i < WF_COUNT(cases); i++) {
        ck_assert_int_eq(wf_json_read("it", cases[i].text, &tree), WEFT_ERR_PARSE);
        ck_assert_msg(strstr(weft_last_error(), cases[i].want) != NULL, "%s: %s", cases[i].text,
                      weft_last_error());
    }
    memset(deep, '[', sizeof deep);
    deep[sizeof deep - 1] = '\0';
    ck_assert_int_eq(wf_json_read("it", deep, &tree), WEFT_ERR_PARSE);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "nested deeper than 32"));
}

static weft_status read_long(struct wf_json_tree *tree)
{
    char text[300] = "[0";

    for (int i = 0; i < 100; i++)
        strcat(text, ",1");
    strcat(text, "]");
    return wf_json_read("it", text, tree);
}

TEST(it_frees_what_it_read_if_memory_ends)
{
    struct wf_json_tree tree;

    ck_assert_uint_eq(ALLOCATIONS_FAIL(read_long(&tree), wf_json_free(&tree)), 3);
}
