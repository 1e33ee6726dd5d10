#include "support/allocfail.h"
#include "support/suite.h"
#include "support/trace.h"
#include "trace/counts.h"

static struct wf_sums grown;

/* Any address will do: counts only keep it. */
static weft_context *owner(struct wf_trace *trace)
{
    return (weft_context *)(void *)trace;
}

static weft_record_counts *begin(struct wf_trace *trace)
{
    weft_record_counts *counts = NULL;

    ck_assert_int_eq(wf_counts_begin(trace, owner(trace), &counts), WEFT_OK);
    ck_assert_ptr_eq(counts->context, owner(trace));
    return counts;
}

/* GROWN becomes what was counted. */
static void end(struct wf_trace *trace, weft_record_counts *counts)
{
    wf_counts_end(trace, counts);
    ck_assert_ptr_null(counts->context);
    grown = counts->grown;
    wf_free(counts);
}

/* Submit OPERATION along AXES. */
static struct wf_submitted submit(struct wf_trace *trace, uint8_t operation, const char *axes,
                                  uint8_t flags)
{
    enum wf_callback callback = operation == WEFT_RECORD_PLAN           ? WF_CALL_PLANNED
                                : operation == WEFT_RECORD_REDISTRIBUTE ? WF_CALL_REDISTRIBUTES
                                                                        : WF_CALL_SUBMITTED;

    return wf_trace_submit(trace, NULL, callback,
                           &(weft_record){.operation = operation,
                                          .step_kind = WEFT_NO_STEP_KIND,
                                          .sent = 10,
                                          .received = 20,
                                          .flags = flags,
                                          .axes = wf_trace_intern(trace, axes)});
}

TEST(counts_nest)
{
    struct wf_trace *trace = test_trace_begin(0);
    weft_record_counts *a, *b;

    (void)submit(trace, WEFT_RECORD_SEND, "dp", 0); /* nobody counts */
    a = begin(trace);
    (void)submit(trace, WEFT_RECORD_ALL_REDUCE, "tp", 0);
    b = begin(trace);
    (void)submit(trace, WEFT_RECORD_ALL_REDUCE, "tp", 0);
    (void)submit(trace, WEFT_RECORD_COPY, "tp", 0);
    (void)submit(trace, WEFT_RECORD_REDISTRIBUTE, "", WEFT_RECORD_CACHED | WEFT_RECORD_IMPLICIT);
    (void)submit(trace, WEFT_RECORD_PLAN, "", WEFT_RECORD_CACHED);
    end(trace, b);
    ck_assert_uint_eq(grown.operations[WEFT_RECORD_ALL_REDUCE], 1);
    ck_assert_uint_eq(grown.operations[WEFT_RECORD_COPY], 1);
    ck_assert_uint_eq(grown.operations[WEFT_RECORD_REDISTRIBUTE], 1);
    ck_assert_uint_eq(grown.operations[WEFT_RECORD_PLAN], 1);
    ck_assert(grown.sent == 10 && grown.received == 20); /* copies do not travel */
    ck_assert(grown.implicit_moves == 1 && grown.cache_hits == 1 && grown.cache_misses == 1);
    (void)wf_trace_fail(trace, submit(trace, WEFT_RECORD_BARRIER, "dp", 0), WEFT_ERR_PEER);
    end(trace, a);
    ck_assert_uint_eq(grown.operations[WEFT_RECORD_ALL_REDUCE], 2);
    ck_assert(grown.operations[WEFT_RECORD_SEND] == 0 && grown.failed == 1);
    ck_assert_uint_eq(grown.axes_count, 2);
    ck_assert_str_eq(grown.axes[0].axes, "tp");
    ck_assert(grown.axes[0].operations == 2 && grown.axes[0].received == 40);
    ck_assert_str_eq(grown.axes[1].axes, "dp");
    ck_assert(!wf_trace_is_active(trace));
    test_trace_end(trace);
}

TEST(the_end_of_the_trace_ends_counts)
{
    struct wf_trace *trace = test_trace_begin(64);
    weft_record_counts *first = begin(trace), *second = begin(trace);

    (void)submit(trace, WEFT_RECORD_SEND, "dp", 0);
    test_trace_end(trace);
    ck_assert(first->context == NULL && second->context == NULL);
    ck_assert_uint_eq(first->grown.operations[WEFT_RECORD_SEND], 1);
    ck_assert_uint_eq(second->grown.axes_count, 1);
    wf_free(first);
    wf_free(second);
}

TEST(each_count_has_room_for_16_axes)
{
    struct wf_trace *trace = test_trace_begin(64);
    weft_record_counts *counts;
    char name[64];

    for (int round = 0; round < 2; round++) {
        counts = begin(trace);
        for (int i = 0; i < WF_COUNTED_AXES + 2; i++) {
            snprintf(name, sizeof name, "axis %d of round %d", i, round);
            (void)submit(trace, WEFT_RECORD_SEND, name, 0);
        }
        end(trace, counts);
        ck_assert_uint_eq(grown.axes_count, WF_COUNTED_AXES);
        ck_assert_uint_eq(grown.axes_missed, 2);
        snprintf(name, sizeof name, "axis 0 of round %d", round);
        ck_assert_str_eq(grown.axes[0].axes, name);
    }
    test_trace_end(trace);
}

static weft_status begin_and_end(void *trace)
{
    weft_record_counts *counts = NULL;

    WF_TRY(wf_counts_begin(trace, owner(trace), &counts));
    end(trace, counts);
    return WEFT_OK;
}

TEST(without_memory_a_count_does_not_begin)
{
    struct wf_trace *trace = test_trace_begin(64);

    ck_assert_uint_gt(ALLOCATIONS_FAIL(begin_and_end(trace), (void)0), 0);
    ck_assert_uint_eq(atomic_load(&trace->observing), 0);
    test_trace_end(trace);
}
