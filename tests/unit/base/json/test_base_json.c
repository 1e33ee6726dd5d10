#include "base/base.h"
#include "support/suite.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>

/* Compare the JSON object that the call writes with WANT. */
#define CHECK_JSON(want, ...)                                                                      \
    do {                                                                                           \
        struct wf_text text = {0};                                                                 \
        struct wf_json json = {.out = &text};                                                      \
        __VA_ARGS__;                                                                               \
        ck_assert_str_eq(text.data, want);                                                         \
        wf_text_free(&text);                                                                       \
    } while (0)

TEST(commas_stand_between_members_only)
{
    struct wf_text text = {0};
    struct wf_json json = {.out = &text};

    wf_json_begin(&json, NULL, '{');
    wf_json_string(&json, "name", "weft");
    wf_json_begin(&json, "list", '[');
    wf_json_int(&json, NULL, -1);
    wf_json_begin(&json, NULL, '[');
    wf_json_end(&json, ']');
    wf_json_begin(&json, NULL, '{');
    wf_json_end(&json, '}');
    wf_json_uint(&json, NULL, UINT64_MAX);
    wf_json_end(&json, ']');
    wf_json_bool(&json, "yes", true);
    wf_json_bool(&json, "no", false);
    wf_json_null(&json, "nothing");
    wf_json_string(&json, "absent", NULL);
    wf_json_end(&json, '}');
    ck_assert_str_eq(text.data, "{\"name\":\"weft\",\"list\":[-1,[],{},18446744073709551615],"
                                "\"yes\":true,\"no\":false,\"nothing\":null,\"absent\":null}");
    wf_text_free(&text);
}

TEST(strings_are_escaped)
{
    CHECK_JSON("\"a \\\"quote\\\", a \\\\, a\\nline, \\u0009, \\u001b, \\u007f\"",
               wf_json_string(&json, NULL, "a \"quote\", a \\, a\nline, \t, \033, \177"));
    CHECK_JSON("\"\"", wf_json_string(&json, NULL, ""));
}

TEST(utf8_passes_and_what_is_not_utf8_is_replaced)
{
    CHECK_JSON("\"\xc3\xa9 \xe2\x82\xac \xf0\x9d\x84\x9e\"",
               wf_json_string(&json, NULL, "\xc3\xa9 \xe2\x82\xac \xf0\x9d\x84\x9e"));
    CHECK_JSON("\"\\u009b1m \\u202e\"", wf_json_string(&json, NULL,
                                                       "\xc2\x9b"
                                                       "1m \xe2\x80\xae"));
    CHECK_JSON("\"\\ufffd(\"", wf_json_string(&json, NULL, "\xc3("));          /* cut short */
    CHECK_JSON("\"\\ufffd\"", wf_json_string(&json, NULL, "\x80"));            /* no start */
    CHECK_JSON("\"\\ufffd\\ufffd\"", wf_json_string(&json, NULL, "\xc0\xaf")); /* overlong */
    CHECK_JSON("\"\\ufffd\\ufffd\"", wf_json_string(&json, NULL, "\xe2\x82")); /* at the end */
    CHECK_JSON("\"\\ufffd\\ufffd\\ufffd\"",                                    /* a surrogate */
               wf_json_string(&json, NULL, "\xed\xa0\x80"));
    CHECK_JSON("\"\\ufffd\\ufffd\\ufffd\\ufffd\"", /* U+110000 */
               wf_json_string(&json, NULL, "\xf4\x90\x80\x80"));
    CHECK_JSON("\"\xed\x9f\xbf\xf4\x8f\xbf\xbf\"",
               wf_json_string(&json, NULL, "\xed\x9f\xbf\xf4\x8f\xbf\xbf"));
}

TEST(reals_read_back_as_they_were)
{
    CHECK_JSON("0.1", wf_json_real(&json, NULL, 0.1));
    CHECK_JSON("12345678.9", wf_json_real(&json, NULL, 12345678.9));
    CHECK_JSON("0.30000000000000004", wf_json_real(&json, NULL, 0.1 + 0.2));
    CHECK_JSON("-0", wf_json_real(&json, NULL, -0.0));
    CHECK_JSON("1e+300", wf_json_real(&json, NULL, 1e300));
    CHECK_JSON("null", wf_json_real(&json, NULL, (double)NAN));
    CHECK_JSON("null", wf_json_real(&json, NULL, -(double)INFINITY));
}

TEST(a_locale_with_a_comma_does_not_matter)
{
    static const char *const locales[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE.utf8"};
    bool found = false;

    for (size_t i = 0; i < WF_COUNT(locales) && !found; i++)
        found = setlocale(LC_NUMERIC, locales[i]) != NULL;
    if (!found) printf("base_json: no locale with a decimal comma is installed here\n");
    CHECK_JSON("0.5", wf_json_real(&json, NULL, 0.5));
    setlocale(LC_NUMERIC, "C");
}

TEST(nesting_goes_sixty_deep)
{
    struct wf_text text = {0};
    struct wf_json json = {.out = &text};

    for (int i = 0; i < 60; i++)
        wf_json_begin(&json, NULL, '[');
    wf_json_int(&json, NULL, 1);
    wf_json_int(&json, NULL, 2);
    for (int i = 0; i < 60; i++)
        wf_json_end(&json, ']');
    ck_assert_uint_eq(text.length, 123);
    ck_assert_ptr_nonnull(strstr(text.data, "[1,2]"));
    wf_text_free(&text);
}
