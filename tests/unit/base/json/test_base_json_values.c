#include "base/json/json_reader.h"
#include "support/suite.h"
#include "weft/status.h"

#include <string.h>

static struct wf_json_reader reader;

static void begin(const char *text)
{
    wf_json_reader_end(&reader);
    wf_json_reader_begin(&reader, "doc", text, strlen(text));
}

TEST(integers_are_exact)
{
    int64_t value = -1;

    begin("9223372036854775807");
    ck_assert_int_eq(wf_json_read_int(&reader, &value), WEFT_OK);
    ck_assert_int_eq(value, INT64_MAX);
    begin("9223372036854775808");
    ck_assert_int_eq(wf_json_read_int(&reader, &value), WEFT_ERR_PARSE);
    ck_assert_str_eq(weft_last_error(),
                     "doc, byte 1: expected an integer from 0 to 2^63 - 1, found "
                     "9223372036854775808");
    for (int i = 0; i < 4; i++) {
        static const char *const wrong[] = {"-1", "1.0", "1e3", "\"1\""};
        begin(wrong[i]);
        ck_assert_int_eq(wf_json_read_int(&reader, &value), WEFT_ERR_PARSE);
    }
    ck_assert_str_eq(weft_last_error(), "doc, byte 1: expected a number, found a string");
    ck_assert_int_eq(value, INT64_MAX);
    wf_json_reader_end(&reader);
}

TEST(arrays_of_integers_have_a_limit)
{
    int64_t values[3];
    size_t count = 9;

    begin("[4, 5,6]");
    ck_assert_int_eq(wf_json_read_ints(&reader, 3, values, &count), WEFT_OK);
    ck_assert_uint_eq(count, 3);
    ck_assert_int_eq(values[2], 6);
    begin("[]");
    ck_assert_int_eq(wf_json_read_ints(&reader, 3, values, &count), WEFT_OK);
    ck_assert_uint_eq(count, 0);
    begin("[1,2,3,4]");
    ck_assert_int_eq(wf_json_read_ints(&reader, 3, values, &count), WEFT_ERR_PARSE);
    ck_assert_str_eq(weft_last_error(), "doc, byte 8: the array has more than 3 numbers");
    begin("[[1]]");
    ck_assert_int_eq(wf_json_read_ints(&reader, 3, values, &count), WEFT_ERR_PARSE);
    wf_json_reader_end(&reader);
}

TEST(values_are_skipped_whole)
{
    begin("[{\"a\":[1,{\"b\":[]}]},\"x\",7]");
    ck_assert_int_eq(wf_json_expect(&reader, WF_EVENT_ARRAY), WEFT_OK);
    ck_assert_int_eq(wf_json_skip(&reader), WEFT_OK);
    ck_assert_int_eq(wf_json_expect(&reader, WF_EVENT_STRING), WEFT_OK);
    ck_assert_int_eq(wf_json_skip(&reader), WEFT_OK);
    ck_assert_int_eq(wf_json_expect(&reader, WF_EVENT_ARRAY_END), WEFT_OK);
    ck_assert_int_eq(wf_json_expect(&reader, WF_EVENT_END), WEFT_OK);
    wf_json_reader_end(&reader);
}
