#include "support/allocfail.h"
#include "support/suite.h"
#include "support/trace.h"

static weft_counts a, b, grown;

static void begin(struct wf_trace *trace, const weft_counts *counts)
{
    ck_assert_int_eq(wf_counts_begin(trace, counts), WEFT_OK);
}

static void end(struct wf_trace *trace, const weft_counts *counts)
{
    ck_assert_int_eq(wf_counts_end(trace, counts, &grown), WEFT_OK);
}

/* Submit OPERATION along AXES. */
static struct wf_submitted submit(struct wf_trace *trace, uint8_t operation, const char *axes,
                                  uint8_t flags)
{
    enum wf_callback callback = operation == WEFT_OP_PLAN           ? WF_CALL_PLANNED
                                : operation == WEFT_OP_REDISTRIBUTE ? WF_CALL_REDISTRIBUTES
                                                                    : WF_CALL_SUBMITTED;

    return wf_trace_submit(trace, NULL, callback,
                           &(weft_record){.operation = operation,
                                          .step_kind = WEFT_NO_STEP_KIND,
                                          .sent = 10,
                                          .received = 20,
                                          .flags = flags,
                                          .axes = wf_trace_intern(trace, axes)});
}

START_TEST(counts_nest)
{
    struct wf_trace *trace = test_trace_begin(0);

    (void)submit(trace, WEFT_OP_SEND, "dp", 0); /* nobody counts */
    begin(trace, &a);
    (void)submit(trace, WEFT_OP_ALL_REDUCE, "tp", 0);
    begin(trace, &b);
    (void)submit(trace, WEFT_OP_ALL_REDUCE, "tp", 0);
    (void)submit(trace, WEFT_OP_COPY, "tp", 0);
    (void)submit(trace, WEFT_OP_REDISTRIBUTE, "", WEFT_RECORD_CACHED | WEFT_RECORD_IMPLICIT);
    (void)submit(trace, WEFT_OP_PLAN, "", WEFT_RECORD_CACHED);
    end(trace, &b);
    ck_assert_uint_eq(grown.operations[WEFT_OP_ALL_REDUCE], 1);
    ck_assert_uint_eq(grown.operations[WEFT_OP_COPY], 1);
    ck_assert_uint_eq(grown.operations[WEFT_OP_REDISTRIBUTE], 1);
    ck_assert_uint_eq(grown.operations[WEFT_OP_PLAN], 1);
    ck_assert(grown.sent == 10 && grown.received == 20); /* copies do not travel */
    ck_assert(grown.implicit_moves == 1 && grown.cache_hits == 1 && grown.cache_misses == 1);
    (void)wf_trace_fail(trace, submit(trace, WEFT_OP_BARRIER, "dp", 0), WEFT_ERR_PEER);
    end(trace, &a);
    ck_assert_uint_eq(grown.operations[WEFT_OP_ALL_REDUCE], 2);
    ck_assert(grown.operations[WEFT_OP_SEND] == 0 && grown.failed == 1);
    ck_assert_uint_eq(grown.axis_count, 2);
    ck_assert_str_eq(grown.axes[0].axes, "tp");
    ck_assert(grown.axes[0].operations == 2 && grown.axes[0].received == 40);
    ck_assert_str_eq(grown.axes[1].axes, "dp");
    ck_assert(!wf_trace_is_active(trace));
    test_trace_end(trace);
}
END_TEST

START_TEST(a_count_ends_once)
{
    struct wf_trace *trace = test_trace_begin(64);

    ck_assert_int_eq(wf_counts_end(trace, &a, &grown), WEFT_ERR_INVALID);
    begin(trace, &a);
    end(trace, &a);
    ck_assert_int_eq(wf_counts_end(trace, &a, &grown), WEFT_ERR_INVALID);
    ck_assert(strstr(weft_last_error(), "these counts have not begun on this context") != NULL);
    begin(trace, &a);
    (void)submit(trace, WEFT_OP_SEND, "dp", 0);
    ck_assert_int_eq(wf_counts_begin(trace, &a), WEFT_ERR_INVALID);
    ck_assert(strstr(weft_last_error(), "these counts have begun already") != NULL);
    end(trace, &a);
    ck_assert_uint_eq(grown.operations[WEFT_OP_SEND], 1);
    begin(trace, &a); /* never ended */
    test_trace_end(trace);
}
END_TEST

START_TEST(each_count_has_room_for_16_axes)
{
    struct wf_trace *trace = test_trace_begin(64);
    char name[64];

    for (int round = 0; round < 2; round++) {
        begin(trace, &a);
        for (int i = 0; i < WEFT_COUNTED_AXES + 2; i++) {
            snprintf(name, sizeof name, "axis %d of round %d", i, round);
            (void)submit(trace, WEFT_OP_SEND, name, 0);
        }
        end(trace, &a);
        ck_assert_uint_eq(grown.axis_count, WEFT_COUNTED_AXES);
        ck_assert_uint_eq(grown.axes_missed, 2);
        snprintf(name, sizeof name, "axis 0 of round %d", round);
        ck_assert_str_eq(grown.axes[0].axes, name);
    }
    test_trace_end(trace);
}
END_TEST

static weft_status begin_and_end(void *trace)
{
    WF_TRY(wf_counts_begin(trace, &a));
    return wf_counts_end(trace, &a, &grown);
}

START_TEST(without_memory_a_count_does_not_begin)
{
    struct wf_trace *trace = test_trace_begin(64);

    ck_assert_uint_gt(check_allocation_failures(begin_and_end, NULL, trace), 0);
    ck_assert_uint_eq(atomic_load(&trace->observing), 0);
    test_trace_end(trace);
}
END_TEST

SUITE(trace_counts, counts_nest, a_count_ends_once, each_count_has_room_for_16_axes,
      without_memory_a_count_does_not_begin)
