#include "base/base.h"
#include "support/suite.h"
#include "weft/status.h"

TEST(a_small_grammar_is_taken_apart)
{
    struct wf_scan scan = {"dp = 2, tp=4", 0};
    const char *name;
    size_t length;
    int64_t value = 0;

    ck_assert(wf_scan_name(&scan, &name, &length));
    ck_assert_mem_eq(name, "dp", 2);
    ck_assert_uint_eq(length, 2);
    wf_scan_space(&scan);
    ck_assert(wf_scan_char(&scan, '='));
    wf_scan_space(&scan);
    ck_assert_int_eq(wf_scan_int(&scan, "a size", &value), WEFT_OK);
    ck_assert_int_eq(value, 2);
    ck_assert(wf_scan_word(&scan, ", "));
    ck_assert(wf_scan_word(&scan, "tp="));
    ck_assert(!wf_scan_end(&scan));
    ck_assert_int_eq(wf_scan_int(&scan, "a size", &value), WEFT_OK);
    ck_assert_int_eq(value, 4);
    ck_assert(wf_scan_end(&scan));
}

TEST(what_is_not_there_is_not_taken)
{
    struct wf_scan scan = {"7up", 0};
    const char *name = NULL;
    size_t length = 0;

    ck_assert(!wf_scan_name(&scan, &name, &length));
    ck_assert(!wf_scan_char(&scan, 'u'));
    ck_assert(!wf_scan_word(&scan, "7upper"));
    ck_assert_uint_eq(scan.at, 0);
    ck_assert_ptr_null(name);
}

TEST(the_end_is_never_passed)
{
    struct wf_scan scan = {"", 0};

    wf_scan_space(&scan);
    ck_assert(!wf_scan_char(&scan, '\0'));
    ck_assert_int_eq(wf_scan_peek(&scan), '\0');
    ck_assert(wf_scan_end(&scan));
    ck_assert_uint_eq(scan.at, 0);
}

TEST(integers_reach_their_limit_and_no_further)
{
    struct wf_scan scan = {"9223372036854775807", 0};
    int64_t value = 42;

    ck_assert_int_eq(wf_scan_int(&scan, "a size", &value), WEFT_OK);
    ck_assert_int_eq(value, INT64_MAX);

    scan = (struct wf_scan){"9223372036854775808", 0};
    value = 42;
    ck_assert_int_eq(wf_scan_int(&scan, "a size", &value), WEFT_ERR_PARSE);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "a size is larger than 2^63 - 1"));
    ck_assert_int_eq(value, 42);
    ck_assert_uint_eq(scan.at, 0);
}

TEST(failures_name_the_place_counting_from_one)
{
    struct wf_scan scan = {"2xx4", 2};

    ck_assert_int_eq(wf_scan_fail(&scan, "mesh", "expected %s", "a size"), WEFT_ERR_PARSE);
    ck_assert_str_eq(weft_last_error(), "mesh \"2xx4\", position 3: expected a size, found 'x'");
    scan.at = 4;
    ck_assert_int_eq(wf_scan_fail(&scan, NULL, "expected a size"), WEFT_ERR_PARSE);
    ck_assert_str_eq(weft_last_error(), "\"2xx4\", position 5: expected a size, found the end");
    scan = (struct wf_scan){"\x80", 0};
    ck_assert_int_eq(wf_scan_fail(&scan, NULL, "expected a size"), WEFT_ERR_PARSE);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "found byte 0x80"));
    scan = (struct wf_scan){"7-3", 0};
    ck_assert_int_eq(wf_scan_refuse(&scan, "range", "it goes down by %d", 4), WEFT_ERR_PARSE);
    ck_assert_str_eq(weft_last_error(), "range \"7-3\", position 1: it goes down by 4");
}

TEST(of_several_lines_only_the_one_in_question_is_quoted)
{
    struct wf_scan scan = {"one 1\ntwo\t2 x\r\nthree 3\n", 12};

    ck_assert_int_eq(wf_scan_fail(&scan, "table", "expected the line's end"), WEFT_ERR_PARSE);
    ck_assert_str_eq(weft_last_error(),
                     "table line 2 \"two?2 x\", position 7: expected the line's end, found 'x'");
    scan.at = 0;
    ck_assert_int_eq(wf_scan_fail(&scan, "table", "expected a number"), WEFT_ERR_PARSE);
    ck_assert_str_eq(weft_last_error(),
                     "table \"one 1\", position 1: expected a number, found 'o'");
}

TEST(a_missing_number_says_what_was_wanted)
{
    struct wf_scan scan = {"x4", 0};
    int64_t value = 42;

    ck_assert_int_eq(wf_scan_int(&scan, "a rank count", &value), WEFT_ERR_PARSE);
    ck_assert_str_eq(weft_last_error(), "\"x4\", position 1: expected a rank count, found 'x'");
    ck_assert_int_eq(value, 42);
}
