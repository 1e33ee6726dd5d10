#include "base/json/json_reader.h"
#include "support/allocfail.h"
#include "support/suite.h"

#include <stdio.h>
#include <string.h>

/* The events of TEXT, such as `{"a":[1]}` -> `{ k:a [ #1 ] } .`; an error is its text. */
static const char *events_of(struct wf_json_reader *reader)
{
    static const char letters[] = ".{}[]kS#tfn";
    static char out[4096];
    enum wf_json_event event;
    size_t used = 0;

    out[0] = '\0';
    do {
        if (wf_json_next(reader, &event) != WEFT_OK)
            return snprintf(out, sizeof out, "%s", weft_last_error()), out;
        used += (size_t)snprintf(out + used, sizeof out - used, "%s%c", used > 0 ? " " : "",
                                 letters[event]);
        if (event == WF_EVENT_KEY || event == WF_EVENT_STRING || event == WF_EVENT_NUMBER)
            used += (size_t)snprintf(out + used, sizeof out - used, "%s", reader->text.data);
    } while (event != WF_EVENT_END);
    return out;
}

static const char *events(const char *text)
{
    struct wf_json_reader reader;
    const char *out;

    wf_json_reader_begin(&reader, "doc", text, strlen(text));
    out = events_of(&reader);
    wf_json_reader_end(&reader);
    return out;
}

struct trickle {
    const char *text;
    size_t at, step;
};

static weft_status trickle(void *source, char *buffer, size_t capacity, size_t *count)
{
    struct trickle *t = source;
    size_t left = strlen(t->text + t->at), take = left < t->step ? left : t->step;

    ck_assert_uint_le(take, capacity);
    memcpy(buffer, t->text + t->at, take);
    t->at += take;
    *count = take;
    return WEFT_OK;
}

TEST(events_come_in_order)
{
    ck_assert_str_eq(events("{\"a\":[1,-2.5e+3,true,false,null],\"b\":{},\"c\":\"x\"}"),
                     "{ ka [ #1 #-2.5e+3 t f n ] kb { } kc Sx } .");
    ck_assert_str_eq(events(" [ ] "), "[ ] .");
    ck_assert_str_eq(events("0"), "#0 .");
    ck_assert_str_eq(events("\t\"\"\r\n"), "S .");
}

TEST(a_stream_gives_the_same_events_at_any_step)
{
    static const char text[] = "{\"k\\u00e9y\": [12345, \"\\ud834\\udd1e \xe2\x82\xac\", true],"
                               " \"z\": null}   ";
    char want[4096];

    snprintf(want, sizeof want, "%s", events(text));
    ck_assert_str_eq(want, "{ kk\xc3\xa9y [ #12345 S\xf0\x9d\x84\x9e \xe2\x82\xac t ] kz n } .");
    for (size_t step = 1; step < sizeof text; step++) {
        struct trickle source = {text, 0, step};
        struct wf_json_reader reader;
        wf_json_reader_stream(&reader, "doc", trickle, &source);
        ck_assert_str_eq(events_of(&reader), want);
        wf_json_reader_end(&reader);
    }
}

TEST(strings_are_decoded)
{
    ck_assert_str_eq(events("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u00E9\\u20ac\""),
                     "S\"\\/\b\f\n\r\tA\xc3\xa9\xe2\x82\xac .");
    ck_assert_str_eq(events("\"\xed\x9f\xbf\xf4\x8f\xbf\xbf\x7f\""),
                     "S\xed\x9f\xbf\xf4\x8f\xbf\xbf\x7f .");
}

TEST(wrong_strings_are_refused)
{
    ck_assert_str_eq(events("\"a"), "doc, byte 3: expected the rest of a string, found the end");
    ck_assert_str_eq(events("\"a\nb\""),
                     "doc, byte 3: expected the rest of a string, found byte 0x0a");
    ck_assert_ptr_nonnull(strstr(events("\"\\x\""), "after a backslash, found 'x'"));
    ck_assert_ptr_nonnull(strstr(events("\"\\u12g4\""), "four hexadecimal digits"));
    ck_assert_ptr_nonnull(strstr(events("\"\\ud834\""), "one half of a surrogate pair"));
    ck_assert_ptr_nonnull(strstr(events("\"\\ud834\\u0041\""), "one half of a surrogate pair"));
    ck_assert_ptr_nonnull(strstr(events("\"\\udd1e\""), "one half of a surrogate pair"));
    ck_assert_ptr_nonnull(strstr(events("\"\\u0000\""), "a NUL character"));
    ck_assert_ptr_nonnull(strstr(events("\"\xc0\xaf\""), "not UTF-8"));
    ck_assert_ptr_nonnull(strstr(events("\"\xe2\x82\""), "not UTF-8"));
    ck_assert_ptr_nonnull(strstr(events("\"\xed\xa0\x80\""), "not UTF-8"));
    ck_assert_ptr_nonnull(strstr(events("\"\xf4\x90\x80\x80\""), "not UTF-8"));
}

TEST(wrong_grammar_is_refused_with_its_place)
{
    ck_assert_str_eq(events(""), "doc, byte 1: expected a value, found the end");
    ck_assert_str_eq(events("[1,]"), "doc, byte 4: expected a value, found ']'");
    ck_assert_str_eq(events("[1 2]"), "doc, byte 4: expected ',' or ']', found '2'");
    ck_assert_str_eq(events("{\"a\" 1}"), "doc, byte 6: expected ':', found '1'");
    ck_assert_str_eq(events("{\"a\":1,}"), "doc, byte 8: expected a key in quotes, found '}'");
    ck_assert_str_eq(events("{a:1}"), "doc, byte 2: expected a key in quotes, found 'a'");
    ck_assert_str_eq(events("{\"a\":1]"), "doc, byte 7: expected ',' or '}', found ']'");
    ck_assert_str_eq(events("[}"), "doc, byte 2: expected a value, found '}'");
    ck_assert_str_eq(events("1 1"), "doc, byte 3: expected the end, found '1'");
    ck_assert_str_eq(events("{}\xff"), "doc, byte 3: expected the end, found byte 0xff");
    ck_assert_str_eq(events("tru"), "doc, byte 4: expected true, found the end");
    ck_assert_str_eq(events("NaN"), "doc, byte 1: expected a value, found 'N'");
}

TEST(wrong_numbers_are_refused)
{
    char digits[200] = "";

    memset(digits, '9', sizeof digits - 1);
    ck_assert_str_eq(events("01"), "doc, byte 2: expected the end, found '1'");
    ck_assert_str_eq(events("-"), "doc, byte 2: expected a digit, found the end");
    ck_assert_str_eq(events("1."), "doc, byte 3: expected a digit after the point, found the end");
    ck_assert_str_eq(events("1e+"), "doc, byte 4: expected a digit of the exponent, found the end");
    ck_assert_str_eq(events(".5"), "doc, byte 1: expected a value, found '.'");
    ck_assert_str_eq(events("+1"), "doc, byte 1: expected a value, found '+'");
    ck_assert_str_eq(events(digits), "doc, byte 1: a number has more than 100 bytes");
}

TEST(a_key_stands_once_in_its_object)
{
    ck_assert_str_eq(events("{\"a\":1,\"b\":{\"a\":2},\"c\":[{\"a\":3}]}"),
                     "{ ka #1 kb { ka #2 } kc [ { ka #3 } ] } .");
    ck_assert_str_eq(events("{\"a\":1,\"b\":2,\"\\u0061\":3}"),
                     "doc, byte 14: a key stands here that its object has already, at byte 2");
    ck_assert_ptr_nonnull(strstr(events("[{\"x\":{\"\":1,\"\":2}}]"), "at byte 8"));
}

TEST(nesting_is_limited)
{
    char text[2 * WF_JSON_DEPTH + 3] = "";

    memset(text, '[', WF_JSON_DEPTH);
    memset(text + WF_JSON_DEPTH, ']', WF_JSON_DEPTH);
    ck_assert_ptr_nonnull(strchr(events(text), '.'));
    memset(text, '[', WF_JSON_DEPTH + 1);
    memset(text + WF_JSON_DEPTH + 1, ']', WF_JSON_DEPTH + 1);
    ck_assert_str_eq(events(text), "doc, byte 33: values are nested deeper than 32");
}

TEST(strings_have_a_limit)
{
    struct wf_json_reader reader;

    wf_json_reader_begin(&reader, "doc", "[\"abcd\",\"abcde\"]", 16);
    reader.longest = 4;
    ck_assert_str_eq(events_of(&reader), "doc, byte 9: a string has more than 4 bytes");
    wf_json_reader_end(&reader);
}

TEST(an_error_stays)
{
    struct wf_json_reader reader;
    enum wf_json_event event;

    wf_json_reader_begin(&reader, "doc", "]1", 2);
    ck_assert_int_eq(wf_json_next(&reader, &event), WEFT_ERR_PARSE);
    ck_assert_int_eq(wf_json_next(&reader, &event), WEFT_ERR_PARSE);
    wf_json_reader_end(&reader);
}

static weft_status failing(void *source, char *buffer, size_t capacity, size_t *count)
{
    (void)source, (void)buffer, (void)capacity, (void)count;
    return wf_fail(WEFT_ERR_SYSTEM, "the disk is gone");
}

TEST(the_error_of_a_source_is_kept)
{
    struct wf_json_reader reader;

    wf_json_reader_stream(&reader, "doc", failing, NULL);
    ck_assert_str_eq(events_of(&reader), "the disk is gone");
    wf_json_reader_end(&reader);
}

static weft_status read_all(void *unused)
{
    static const char text[] = "{\"a long enough key to make the text grow, and more of it\":"
                               "{\"1\":[1,2,3],\"2\":\"a string that is longer than sixty-four "
                               "bytes, so that the text grows\"}}";
    struct wf_json_reader reader;
    weft_status status;

    (void)unused;
    wf_json_reader_begin(&reader, "doc", text, strlen(text));
    status = wf_json_skip(&reader);
    wf_json_reader_end(&reader);
    return status;
}

TEST(allocation_failures_are_reported)
{
    ck_assert_uint_ge(ALLOCATIONS_FAIL(read_all(NULL), (void)0), 3);
}
