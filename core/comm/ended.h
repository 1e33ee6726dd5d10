/* ended.h - what depends on a context or communicator that was released.  A part of comm.h, which
 * includes it after the objects. */
#ifndef WEFT_COMM_ENDED_H
#define WEFT_COMM_ENDED_H

#include "comm.h"

/* Why CONTEXT, or COMM, cannot be used by FUNCTION: it is NULL, released, or a parent process's. */
weft_status wf_context_refuse(const weft_context *context, const char *function);
weft_status wf_comm_refuse(const weft_comm *comm, const char *function);

/* OK if CONTEXT can be used. */
static inline weft_status wf_context_check(const weft_context *context, const char *function)
{
    if (context != NULL && wf_is_usable(context->made, WF_KIND_CONTEXT)) return WEFT_OK;
    return wf_context_refuse(context, function);
}

static inline weft_status wf_comm_check(const weft_comm *comm, const char *function)
{
    if (comm != NULL && wf_is_usable(comm->made, WF_KIND_COMM)) return WEFT_OK;
    return wf_comm_refuse(comm, function);
}

/* DEPENDENT ends with COMM. */
void wf_dependent_add(struct wf_dependent *dependent, weft_comm *comm);
/* Nothing if it is in no list. */
void wf_dependent_remove(struct wf_dependent *dependent);
void wf_dependents_end(weft_comm *comm, const char *cause);

/* Keep NOTE of a stream that is given out; drop it when the stream is given back. */
void wf_stream_add(weft_context *context, struct wf_stream_note *note);
void wf_stream_remove(weft_context *context, const void *stream);
/* Break the communicators of CONTEXT if their work may be what its streams wait for. */
void wf_streams_stop(weft_context *context);
/* Destroy the streams that were not given back. */
void wf_streams_end(weft_context *context);
/* STREAM's context has ended: forget the stream. */
void wf_stream_forget(const void *stream);
/* Say what was not given back to CONTEXT. */
void wf_context_warn(weft_context *context);
/* Free CONTEXT, which has ended; keep it where something may still be given back to it. */
void wf_context_bury(weft_context *context);

#endif
