/* rings.h - rings of a test, in a folder of its own. */
#ifndef WEFT_TESTS_RINGS_H
#define WEFT_TESTS_RINGS_H

#include "trace/read.h"

#include "support/folder.h"
#include "weft/status.h"

/* Rings of this test are in a folder of its own. */
static inline struct folder rings_begin(void)
{
    struct folder folder = folder_create();

    ck_assert_int_eq(setenv("XDG_RUNTIME_DIR", folder.path, 1), 0);
    return folder;
}

static inline void rings_end(const struct folder *folder)
{
    unsetenv("XDG_RUNTIME_DIR");
    folder_remove(folder);
}

static inline struct wf_trace *rings_make(int32_t rank, uint64_t records)
{
    struct wf_trace_identity identity = {.job = 0x1234, .rank = rank, .size = 2, .backend = "fake"};
    struct wf_trace *trace = NULL;

    ck_assert_int_eq(wf_trace_create(&identity, records, &trace), WEFT_OK);
    ck_assert_str_ne(trace->path, "");
    return trace;
}

static inline struct wf_submitted rings_submit(struct wf_trace *trace, uint64_t sequence)
{
    return wf_trace_submit(trace, NULL, WF_CALL_SUBMITTED,
                           &(weft_record){.comm = 7,
                                          .sequence = sequence,
                                          .sent = 3 * sequence,
                                          .received = 5 * sequence,
                                          .plan = 7 * sequence,
                                          .peer = -1,
                                          .operation = WEFT_OP_ALL_REDUCE,
                                          .step_kind = WEFT_NO_STEP_KIND,
                                          .binding = (uint32_t)sequence});
}

static inline weft_ring *rings_open(const char *path)
{
    weft_ring *ring = NULL;

    ck_assert_msg(weft_ring_open(path, &ring) == WEFT_OK, "%s", weft_last_error());
    return ring;
}

static inline weft_ring_info rings_info(const weft_ring *ring)
{
    weft_ring_info info = {.struct_size = sizeof info};

    ck_assert_int_eq(weft_ring_get(ring, &info), WEFT_OK);
    return info;
}

#endif
