/* read.h - recorders of other processes.
 *
 *     read.c   a file becomes a recorder
 *     recorders.c  the list of recorders, and the public functions
 *
 * A file is not trusted: it may be foreign, cut short, or change while it is read.  It is copied
 * with pread, because a mapping of a file that shrinks is fatal. */
#ifndef WEFT_TRACE_READ_H
#define WEFT_TRACE_READ_H

#include "trace.h"
#include "weft/recorder.h"

struct weft_recorder {
    int file;
    char *path;
    /* The constant start of the file. */
    unsigned char facts[offsetof(struct wf_segment, host)];
    uint32_t text_bytes, record_count;
    int32_t rank, size, pid;
    uint64_t job;
    char host[64], program[64], backend[32];
    char *texts;          /* TEXT_BYTES, and a zero */
    weft_record *records; /* RECORD_COUNT; id 0: not readable.  Times are nanoseconds. */
    struct wf_segment_comm comms[WF_SEGMENT_COMMS];
    size_t comm_count;
    uint64_t newest, read_ns, begun_ns;
    bool alive, stopped, removed;
    bool is_listed; /* it belongs to a weft_recorders */
};

/* Read RECORDER, whose file is open, for the first time or again.  WEFT_IN_PROGRESS: its owner is
 * about to write it.  Other errors as weft_recorder_open. */
weft_status wf_recorder_load(weft_recorder *recorder) WF_NODISCARD;
/* Open NAME in FOLDER (as openat does) and read it.  PATH is for messages, and is copied. */
weft_status wf_recorder_open(int folder, const char *name, const char *path,
                             weft_recorder **out) WF_NODISCARD;
void wf_recorder_free(weft_recorder *recorder);

#endif
