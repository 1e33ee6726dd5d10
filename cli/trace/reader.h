/* reader.h - reads traces that weft wrote: TrackEvents, their tracks and their annotations. */
#ifndef WEFT_CLI_TRACE_READER_H
#define WEFT_CLI_TRACE_READER_H

#include "base/base.h"
#include "trace/proto.h"

enum trace_event_type { TRACE_BEGIN = 1, TRACE_END, TRACE_INSTANT, TRACE_COUNTER };

/* An event.  Texts are pieces of the file, empty if there are none. */
struct trace_event {
    uint64_t time, track;
    uint64_t writer; /* the rank that wrote it plus one; 0: not known */
    uint64_t flow;   /* the last one that begins or, at an end, ends here; 0: none */
    uint32_t type;   /* enum trace_event_type */
    struct proto name, category;
    /* annotations */
    struct proto plan, label, job, host, comm, axes;
    uint64_t step, predicted_ns, bytes, sent, received, format, rank, size, bound_ns;
    int64_t offset_ns;
    bool has_rank, has_offset;
};

/* While a file is read, ADD is called with the bytes that were read since its last call. */
struct trace_progress {
    void *self;
    void (*add)(void *self, uint64_t bytes);
};

/* Gets every event in the order of the file.  An error ends the reading. */
struct trace_visitor {
    void *self;
    weft_status (*event)(void *self, const struct trace_event *event);
    const struct trace_progress *progress; /* NULL: not wanted */
};

/* Read a file of BYTES called NAME.  WEFT_ERR_PARSE names the file and the position of the first
 * byte that cannot be read. */
weft_status trace_read(const char *name, const uint8_t *data, size_t bytes,
                       const struct trace_visitor *visitor) WF_NODISCARD;

/* A rank's clock against the server's at one moment. */
struct trace_clock {
    uint64_t time;
    int64_t offset_ns;
    uint64_t bound_ns;
};

/* What a file states about itself. */
struct trace_facts {
    struct proto job, host;
    int32_t rank, size;
    bool has_begun, has_ended, has_many; /* has_many: it was merged */
    uint32_t clock_count;                /* 0, 1, or 2: the first and the last */
    struct trace_clock clocks[2];
};

/* Read the facts, and check the whole file.  PROGRESS may be NULL.  WEFT_ERR_PARSE as above, also
 * if weft did not write the file. */
weft_status trace_read_facts(const char *name, const uint8_t *data, size_t bytes,
                             const struct trace_progress *progress,
                             struct trace_facts *out) WF_NODISCARD;

/* Report to PROGRESS, which may be NULL, that a file of BYTES is read up to AT.  *REPORTED is where
 * the last report was.  Most calls do nothing. */
void trace_report(const struct trace_progress *progress, size_t at, size_t bytes, size_t *reported);

#endif
