#include "support/caught.h"
#include "support/suite.h"
#include "support/trace.h"

TEST(equal_texts_have_one_number)
{
    struct wf_trace *trace = test_trace_begin(64);
    uint32_t tp = wf_trace_intern(trace, "tp"), dp = wf_trace_intern(trace, "dp");

    ck_assert_uint_ne(tp, dp);
    ck_assert_uint_eq(wf_trace_intern(trace, "tp"), tp);
    ck_assert_str_eq(wf_trace_text(trace, tp), "tp");
    ck_assert_str_eq(wf_trace_text(trace, dp), "dp");
    ck_assert_uint_eq(wf_trace_intern(trace, ""), 0);
    ck_assert_uint_eq(wf_trace_intern(trace, NULL), 0);
    ck_assert_str_eq(wf_trace_text(trace, 0), "");
    ck_assert_str_eq(wf_trace_text(trace, WF_TEXT_BYTES + 1), "");
    test_trace_end(trace);
}

TEST(a_long_text_is_cut_between_characters)
{
    struct wf_trace *trace = test_trace_begin(64);
    char text[400];
    const char *kept;

    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    ck_assert_uint_eq(strlen(wf_trace_text(trace, wf_trace_intern(trace, text))), 255);
    memcpy(text + 253, "\xe2\x82\xac", 3); /* one character, of which two bytes fit */
    kept = wf_trace_text(trace, wf_trace_intern(trace, text));
    ck_assert_uint_eq(strlen(kept), 253);
    ck_assert_uint_eq(wf_trace_intern(trace, text), wf_trace_intern(trace, kept));
    test_trace_end(trace);
}

TEST(without_room_a_text_has_no_number)
{
    struct wf_trace *trace = test_trace_begin(64);
    char text[256];
    uint32_t last = 1, first = wf_trace_intern(trace, "first");
    const char *logged;

    catch_begin();
    for (int i = 0; last != 0 && i < 10000; i++) {
        snprintf(text, sizeof text, "%0200d", i);
        last = wf_trace_intern(trace, text);
    }
    ck_assert_uint_eq(wf_trace_intern(trace, text), 0);
    logged = strstr(catch_end(), "the recorder of rank 3 has no room for more names");
    ck_assert_uint_eq(last, 0);
    ck_assert_ptr_nonnull(logged);
    ck_assert_ptr_null(strstr(logged + 1, "the recorder of rank 3")); /* once */
    ck_assert_uint_eq(wf_trace_intern(trace, "first"), first);
    test_trace_end(trace);
}

TEST(there_are_at_most_4096_texts)
{
    struct wf_trace *trace = test_trace_begin(64);
    char text[16];

    for (int i = 0; i < 5000; i++) {
        snprintf(text, sizeof text, "%x", i);
        ck_assert_int_eq(wf_trace_intern(trace, text) != 0, i < WF_TEXT_ENTRIES / 2);
    }
    test_trace_end(trace);
}

TEST(the_last_names_of_streams_are_known)
{
    struct wf_trace *trace = test_trace_begin(64);
    uint32_t copies = wf_trace_intern(trace, "copies"), sums = wf_trace_intern(trace, "sums");

    ck_assert_str_eq(wf_trace_stream_name(trace, 0), "");
    wf_trace_name_stream(trace, 0, copies);
    wf_trace_name_stream(trace, 0, sums);
    for (uint64_t stream = 1; stream < WF_STREAM_NAMES; stream++)
        wf_trace_name_stream(trace, stream, copies);
    ck_assert_str_eq(wf_trace_stream_name(trace, 0), "sums");
    wf_trace_name_stream(trace, WF_STREAM_NAMES, copies);
    ck_assert_str_eq(wf_trace_stream_name(trace, 0), "");
    ck_assert_str_eq(wf_trace_stream_name(trace, 1), "copies");
    ck_assert_str_eq(wf_trace_stream_name(trace, WF_STREAM_NAMES), "copies");
    test_trace_end(trace);
}
