/* ended.h - objects that outlive their context or communicator. */
#ifndef WEFT_COMM_CONTEXT_ENDED_H
#define WEFT_COMM_CONTEXT_ENDED_H

#include "comm/objects.h"

/* Fail FUNCTION because CONTEXT, or COMM, is NULL, released, or a parent process's. */
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

/* Free OBJECT, which was released and is marked as such, later: when WF_REMNANTS others have been
 * released, or CONTEXT ends.  Until then, calls with a copy of its pointer are refused. */
void wf_remnant_keep(weft_context *context, void *object);
void wf_remnants_free(weft_context *context);

/* An object that ends with a communicator, but is released on its own: a bound plan, a tensor. */
struct wf_dependent {
    struct wf_dependent *next, **at; /* AT points here */
    weft_comm *comm;                 /* NULL: not in a list */
    /* Free what belongs to COMM's context, then refuse calls with CAUSE: "... was released". */
    void (*end)(struct wf_dependent *self, const char *cause);
    /* The rank is about to leave the job, and can still agree with the other ranks.  May be NULL.
     */
    void (*leave)(struct wf_dependent *self);
    bool has_left;                            /* it was called */
    const struct wf_dependent_tensor *tensor; /* NULL: it is not a tensor */
};

struct wf_dependent_tensor {
    /* True if the user has not released it; describe it in OUT, unless that is NULL. */
    bool (*describe)(const struct wf_dependent *self, struct wf_text *out);
    /* A generation of an elastic job ends because of CAUSE, but not the context.  True: the tensor
     * lives on. */
    bool (*outlive)(struct wf_dependent *self, const char *cause);
};

#define WF_CAUSE 176 /* bytes of a cause */

/* DEPENDENT ends with COMM. */
void wf_dependent_add(struct wf_dependent *dependent, weft_comm *comm);
/* Does nothing if it is in no list. */
void wf_dependent_remove(struct wf_dependent *dependent);
void wf_dependents_end(weft_comm *comm, const char *cause);
/* Before CONTEXT leaves the job. */
void wf_dependents_leave(weft_context *context);

static inline size_t wf_stream_place(const void *stream)
{
    uintptr_t bits = (uintptr_t)stream;

    return (bits >> 4 ^ bits >> 10 ^ bits >> 16) % WF_STREAM_PLACES;
}

/* True if STREAM is NULL, or surely a stream of CONTEXT.  The common case without a call. */
static inline bool wf_stream_is_known(const weft_context *context, const void *stream)
{
    return stream == NULL || atomic_load_explicit(&context->known_streams[wf_stream_place(stream)],
                                                  memory_order_relaxed) == stream;
}

/* True in a fork of the process that made the streams.  The table of streams cannot be used then:
 * another thread may have held its lock when the process forked. */
bool wf_streams_are_parents(void);
/* Set *OUT to the context of STREAM, which can be used.  WEFT_ERR_INVALID by FUNCTION: STREAM is
 * NULL or was released, or its context was released.  [any thread] */
weft_status wf_stream_context(const void *stream, const char *function, weft_context **out);
/* The context that STREAM was made with, even if the context has ended.  NULL: no such stream
 * exists, or it is a parent process's.  [any thread] */
weft_context *wf_stream_maker(const void *stream);
/* WEFT_ERR_INVALID by FUNCTION if STREAM is not one of CONTEXT. */
weft_status wf_stream_find(weft_context *context, const void *stream, const char *function);
static inline weft_status wf_stream_check(weft_context *context, const void *stream,
                                          const char *function)
{
    return wf_stream_is_known(context, stream) ? WEFT_OK
                                               : wf_stream_find(context, stream, function);
}

/* Keep NOTE of a stream that the user gets; free it when the stream is released. */
void wf_stream_add(weft_context *context, struct wf_stream_note *note);
void wf_stream_remove(weft_context *context, const void *stream);
/* The number of STREAM in records; 0 for the default stream, NULL.  [any thread] */
uint64_t wf_stream_number_find(weft_context *context, const void *stream);
static inline uint64_t wf_stream_number(weft_context *context, const void *stream)
{
    return stream == NULL ? 0 : wf_stream_number_find(context, stream);
}
/* The name of STREAM, or of the default stream, NULL; "" if it has none.  Valid until CONTEXT ends.
 * Takes the context's lock.  [any thread] */
const char *wf_stream_name(weft_context *context, const void *stream);
/* Destroy the streams that were not released. */
void wf_streams_end(weft_context *context);
/* STREAM's context has ended: forget the stream. */
void wf_stream_forget(const void *stream);
/* Log what was not released before CONTEXT. */
void wf_context_warn(weft_context *context);
/* Free CONTEXT, which has ended; keep it while streams or memory of it may still be released. */
void wf_context_bury(weft_context *context);

#endif
