/* usage.h - how much of the time of each rank is weft's, and what it is spent on. */
#ifndef WEFT_CLI_TRACE_USAGE_H
#define WEFT_CLI_TRACE_USAGE_H

#include "trace/reader.h"

/* The part of a rank's time in which a slice, at the bottom of its track, was open. */
struct usage_span {
    uint64_t begin, end;
};

struct usage_rank {
    int32_t rank;
    uint64_t first, last;        /* begin of its first slice, end of its last one */
    uint64_t weft_ns;            /* time in which a slice was open */
    uint64_t own_ns, waiting_ns; /* of all slices */
    struct usage_span *spans;
    size_t span_count, span_room;
};

/* Slices of one operation, along the same axes or communicator, of about the same size. */
struct usage_row {
    struct proto kind, along;
    uint64_t bytes; /* the power of two that the size does not exceed; 0: no data */
    uint64_t count, own_ns, waiting_ns;
};

/* A slice that other ranks have too. */
struct usage_shared {
    uint64_t flow, begin, own_ns;
    uint32_t rank, row; /* numbers in the lists */
};

struct usage {
    struct usage_rank *ranks;
    size_t rank_count, rank_room;
    struct usage_row *rows;
    size_t row_count, row_room;
    struct usage_shared *shared;
    size_t shared_count, shared_room;
};

/* A slice, as its first event describes it. */
struct usage_mark {
    uint32_t rank, row;
    uint64_t flow; /* the same for all ranks that take part; 0: nobody else does */
};

weft_status usage_begin(struct usage *usage, const struct trace_event *event,
                        struct usage_mark *out) WF_NODISCARD;
/* The slice of MARK ends at END.  OWN_NS is its time without the slices inside; IS_BOTTOM: no slice
 * contains it. */
weft_status usage_end(struct usage *usage, const struct usage_mark *mark, struct usage_span span,
                      uint64_t own_ns, bool is_bottom) WF_NODISCARD;
/* All slices are known. */
void usage_settle(struct usage *usage);
/* True if the trace has slices of several ranks, so that it is known how long they waited. */
bool usage_knows_waits(const struct usage *usage);
void usage_print_text(const struct usage *usage, struct wf_text *out);
/* Add the members "ranks" and "uses". */
void usage_print_json(const struct usage *usage, struct wf_json *json);
void usage_free(struct usage *usage);

#endif
