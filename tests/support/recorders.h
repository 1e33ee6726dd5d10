/* recorders.h - recorders of a test, in a folder of its own. */
#ifndef WEFT_TESTS_RECORDERS_H
#define WEFT_TESTS_RECORDERS_H

#include "trace/read.h"

#include "support/folder.h"
#include "weft/status.h"
#include "weft/trace.h"
#include "weft/recorder.h"

/* Recorders of this test are in a folder of its own. */
static inline struct folder recorders_begin(void)
{
    struct folder folder = folder_create();

    ck_assert_int_eq(setenv("XDG_RUNTIME_DIR", folder.path, 1), 0);
    return folder;
}

static inline void recorders_end(const struct folder *folder)
{
    unsetenv("XDG_RUNTIME_DIR");
    folder_remove(folder);
}

static inline struct wf_trace *recorders_make(int32_t rank, uint64_t records)
{
    struct wf_trace_identity identity = {.job = 0x1234, .rank = rank, .size = 2, .backend = "fake"};
    struct wf_trace *trace = NULL;

    ck_assert_int_eq(wf_trace_create(&identity, records, &trace), WEFT_OK);
    ck_assert_str_ne(trace->path, "");
    return trace;
}

static inline struct wf_submitted recorders_submit(struct wf_trace *trace, uint64_t sequence)
{
    return wf_trace_submit(trace, NULL, WF_CALL_SUBMITTED,
                           &(weft_record){.comm = 7,
                                          .sequence = sequence,
                                          .sent = 3 * sequence,
                                          .received = 5 * sequence,
                                          .plan = 7 * sequence,
                                          .peer = -1,
                                          .operation = WEFT_RECORD_ALL_REDUCE,
                                          .step_kind = WEFT_NO_STEP_KIND,
                                          .binding = (uint32_t)sequence});
}

static inline weft_recorder *recorders_open(const char *path)
{
    weft_recorder *recorder = NULL;

    ck_assert_msg(weft_recorder_open(path, &recorder) == WEFT_OK, "%s", weft_last_error());
    return recorder;
}

static inline weft_recorder_info recorders_info(const weft_recorder *recorder)
{
    weft_recorder_info info = {.struct_size = sizeof info};

    ck_assert_int_eq(weft_recorder_get(recorder, &info), WEFT_OK);
    return info;
}

#endif
