/* trace.h - a recorder in a temporary folder. */
#ifndef WEFT_TESTS_TRACE_H
#define WEFT_TESTS_TRACE_H

#include "support/folder.h"
#include "trace/folder.h"
#include "trace/trace.h"
#include "weft/status.h"
#include "weft/trace.h"

static struct folder test_runtime;

static const struct wf_trace_identity test_identity = {
    .job = 0x1234, .rank = 3, .size = 8, .backend = "gloo-cpu"};

/* A trace with a recorder of RECORDS, or none, in a folder of its own. */
static inline struct wf_trace *test_trace_begin(uint64_t records)
{
    struct wf_trace *trace = NULL;

    test_runtime = folder_create();
    ck_assert_int_eq(setenv("XDG_RUNTIME_DIR", test_runtime.path, 1), 0);
    ck_assert_int_eq(wf_trace_create(&test_identity, records, &trace), WEFT_OK);
    return trace;
}

static inline void test_trace_end(struct wf_trace *trace)
{
    wf_trace_destroy(trace);
    folder_remove(&test_runtime);
}

/* Submit an all-reduce of communicator COMM on STREAM, which is chained unless it is 0. */
static inline struct wf_submitted test_submit(struct wf_trace *trace, uint64_t comm,
                                              uint64_t stream)
{
    return wf_trace_submit(trace, stream != 0 ? wf_trace_chain(trace, stream) : NULL,
                           WF_CALL_SUBMITTED,
                           &(weft_record){.comm = comm,
                                          .sequence = 7,
                                          .sent = 8,
                                          .received = 16,
                                          .plan = 99,
                                          .stream = stream,
                                          .binding = 1,
                                          .step = 2,
                                          .operation = WEFT_RECORD_ALL_GATHER,
                                          .step_kind = WEFT_NO_STEP_KIND,
                                          .dtype = WEFT_DTYPE_F32,
                                          .reduction = 1,
                                          .flags = WEFT_RECORD_IMPLICIT,
                                          .peer = -1,
                                          .comm_name = 11,
                                          .axes = 12,
                                          .label = 13,
                                          .parent = 14});
}

/* Record ID, which the recorder must have. */
static inline weft_record test_read(const struct wf_trace *trace, uint64_t id)
{
    weft_record record;

    ck_assert_msg(wf_trace_read(trace, id, &record), "record %llu is missing",
                  (unsigned long long)id);
    return record;
}

#endif
