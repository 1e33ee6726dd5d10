/* timing.h - times of work on streams, measured by events of the device, while a trace is written.
 *
 * Two events surround an operation on its stream.  Their times are relative to an anchor: an event
 * at which the host's clock was read.  Later submissions and waits look which events are complete,
 * without waiting for them. */
#ifndef WEFT_COMM_CONTEXT_TIMING_H
#define WEFT_COMM_CONTEXT_TIMING_H

#include "comm/comm.h"

/* Begin to measure, if CONTEXT writes a trace and its device can.  The device is open. */
void wf_timing_begin(weft_context *context);
/* The streams have ended: take the remaining times.  Accepts a context without timing. */
void wf_timing_end(weft_context *context);

/* RECORD, which was just submitted to STREAM, is about to be handed to the backend. */
void wf_timing_submit(struct wf_timing *timing, const weft_comm *comm, const void *stream,
                      struct wf_submitted record);
/* The same for a redistribution, which contains the records that follow on STREAM. */
void wf_timing_contain(struct wf_timing *timing, const void *stream, struct wf_submitted record);
/* The backend has RECORD. */
void wf_timing_post(struct wf_timing *timing, const weft_comm *comm, const void *stream,
                    struct wf_submitted record);
/* The group of COMM has ended; with STARTED, the backend has its operations. */
void wf_timing_post_group(struct wf_timing *timing, const weft_comm *comm, bool started);
/* Take the times of work on STREAM that is complete; with ANY, on all streams. */
void wf_timing_collect(struct wf_timing *timing, const void *stream, bool any);
/* STREAM was destroyed. */
void wf_timing_forget(struct wf_timing *timing, const void *stream);

#endif
