#include "support/suite.h"
#include "support/trace.h"

static int begun, ended, depth;
static char name[512], category[64];
static uint64_t bytes;

static void range_begin(const weft_range *range)
{
    begun++;
    depth++;
    ck_assert_uint_eq(range->struct_size, sizeof *range);
    snprintf(name, sizeof name, "%s", range->name);
    snprintf(category, sizeof category, "%s", range->category);
    bytes = range->bytes;
}

static void range_end(void)
{
    ended++;
    depth--;
    ck_assert_int_ge(depth, 0);
}

static const weft_device_table table = {.range_begin = range_begin, .range_end = range_end};

static struct wf_trace *begin(uint64_t records)
{
    begun = ended = depth = 0;
    return test_trace_begin(records);
}

TEST(a_range_has_the_text_of_its_record)
{
    struct wf_trace *trace = begin(16);
    weft_record draft = {.sent = 8388608,
                         .received = 100,
                         .operation = WEFT_RECORD_ALL_GATHER,
                         .step_kind = WEFT_NO_STEP_KIND,
                         .comm_name = wf_trace_intern(trace, "world")};

    wf_ranges_mark(trace, &table);
    (void)wf_trace_submit(trace, NULL, WF_CALL_SUBMITTED, &draft);
    ck_assert_str_eq(name, "all-gather world 8.0 MiB");
    ck_assert_str_eq(category, "all-gather");
    ck_assert_uint_eq(bytes, 8388608);
    draft.axes = wf_trace_intern(trace, "dp,tp");
    draft.step_kind = WEFT_STEP_EXCHANGE;
    (void)wf_trace_submit(trace, NULL, WF_CALL_SUBMITTED, &draft);
    ck_assert_str_eq(name, "exchange dp,tp 8.0 MiB");
    ck_assert_str_eq(category, "exchange");
    wf_trace_return(trace);
    wf_trace_return(trace);
    ck_assert(begun == 2 && ended == 2);
    test_trace_end(trace);
}

/* Neither the start nor the end of a record is one of its range. */
TEST(a_range_ends_when_its_call_returns)
{
    struct wf_trace *trace = begin(16);
    struct wf_submitted first, second;

    wf_ranges_mark(trace, &table);
    first = test_submit(trace, 1, 0);
    wf_trace_start(trace, first);
    ck_assert(begun == 1 && ended == 0);
    second = wf_trace_submit(trace, NULL, WF_CALL_REDISTRIBUTES, &(weft_record){.comm = 1});
    (void)wf_trace_submit(trace, NULL, WF_CALL_PLANNED, &(weft_record){.comm = 1});
    ck_assert_int_eq(depth, 3);
    wf_trace_return(trace);
    wf_trace_return(trace);
    wf_trace_return(trace);
    wf_trace_finish(trace, second);
    (void)wf_trace_fail(trace, first, WEFT_ERR_TIMEOUT);
    ck_assert(begun == 3 && ended == 3);
    test_trace_end(trace);
}

/* Other threads may have written the whole recorder by then.  The return comes all the same. */
TEST(a_record_that_is_gone_has_a_range_too)
{
    struct wf_trace *trace = begin(16);
    weft_record gone = {.id = 99};

    wf_ranges_mark(trace, &table);
    wf_observers_call(trace, WF_CALL_SUBMITTED, &gone, 5);
    ck_assert_int_eq(begun, 1);
    ck_assert_str_eq(name, "unknown operation");
    wf_trace_return(trace);
    ck_assert_int_eq(depth, 0);
    test_trace_end(trace);
}

static void count(void *user, const weft_record *record)
{
    (void)record;
    ++*(int *)user;
}

TEST(ranges_need_no_recorder_and_leave_observers_alone)
{
    struct wf_trace *trace = begin(0);
    int seen = 0;
    weft_observer observer = {.struct_size = sizeof observer, .user = &seen, .submitted = count};
    uint32_t slot;

    ck_assert(!wf_trace_is_active(trace));
    (void)test_submit(trace, 1, 0);
    wf_trace_return(trace);
    ck_assert(begun == 0 && ended == 0);
    wf_ranges_mark(trace, &table);
    ck_assert(wf_trace_is_active(trace));
    ck_assert_int_eq(wf_observers_add(trace, &observer, &slot), WEFT_OK);
    (void)test_submit(trace, 1, 0);
    wf_trace_return(trace);
    wf_observers_remove(trace, slot);
    (void)test_submit(trace, 1, 0);
    wf_trace_return(trace);
    ck_assert(seen == 1 && begun == 2 && ended == 2);
    ck_assert(wf_trace_is_active(trace));
    test_trace_end(trace);
}
