#include "support/suite.h"

#include "base/base.h"

TEST(characters_of_utf8_are_told_from_other_bytes)
{
    static const struct {
        const char *text;
        size_t length;
    } cases[] = {{"", 0},
                 {"a", 1},
                 {"\x7f", 1},
                 {"\x80", 0},
                 {"\xc1\xbf", 0},
                 {"\xc3\xa9", 2},
                 {"\xc3", 0},
                 {"\xe2\x82\xac", 3},
                 {"\xe2\x82", 0},
                 {"\xe0\x9f\xbf", 0},
                 {"\xed\xa0\x80", 0},
                 {"\xf0\x9f\x98\x80", 4},
                 {"\xf4\x90\x80\x80", 0},
                 {"\xf0\x8f\xbf\xbf", 0},
                 {"\xff", 0}};

    for (size_t i = 0; i < WF_COUNT(cases); i++)
        ck_assert_msg(wf_utf8_length(cases[i].text) == cases[i].length, "case %zu", i);
}

TEST(characters_that_a_terminal_acts_on_are_replaced)
{
    static const struct {
        const char *text, *cleaned;
    } cases[] = {{"", ""},
                 {"gr\xc3\xb6\xc3\x9f"
                  "e \xe2\x82\xac \xf0\x9f\x98\x80",
                  NULL},
                 {"\xc2\xa0~", NULL},
                 {"a\033[31mb\007\n\t\r\x7f", "a?[31mb?????"},
                 {"\xc2\x9b"
                  "31m",
                  "??31m"}, /* CSI in one character */
                 {"\x9b"
                  "31m\xff",
                  "?31m?"},
                 {"\xe2\x80\xae"
                  "abc\xe2\x81\xa6",
                  "???abc???"}, /* the writing turns */
                 {"\xe2\x80\xa8\xd8\x9c", "?????"},
                 {"end \xe2\x82", "end ??"}};

    for (size_t i = 0; i < WF_COUNT(cases); i++) {
        char text[64];

        snprintf(text, sizeof text, "%s", cases[i].text);
        wf_text_clean(text, strlen(text));
        ck_assert_str_eq(text, cases[i].cleaned != NULL ? cases[i].cleaned : cases[i].text);
    }
}

TEST(texts_in_a_row_stay_apart)
{
    char texts[] = "a\033\0\0b\xc2\0\x9b";

    wf_text_clean(texts, sizeof texts - 1);
    ck_assert_mem_eq(texts, "a?\0\0b?\0?", sizeof texts);
}

TEST(lines_keep_their_ends)
{
    char text[] = "a\033\n\nb\t\n";

    wf_text_clean_lines(text, strlen(text));
    ck_assert_str_eq(text, "a?\n\nb?\n");
}
