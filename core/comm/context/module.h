/* module.h - modules above comm in the life of a context.
 *
 * comm calls no module above it.  A module that keeps state with a context, or has to act when
 * something in it ends, has a constant table of callbacks.  core/modules.c lists the tables;
 * nothing is registered at run time. */
#ifndef WEFT_COMM_CONTEXT_MODULE_H
#define WEFT_COMM_CONTEXT_MODULE_H

#include "rendezvous/launch.h"
#include "weft/context.h"

#include <stdbool.h>

/* A module's place in wf_modules and in a context's `kept`.  Lower modules come first. */
enum wf_module_slot { WF_MODULE_SYMM, WF_MODULE_EXEC, WF_MODULE_TENSOR, WF_MODULE_COUNT };

/* Any callback may be NULL.  All but `create` are called only for a context whose slot CREATE has
 * set.  Callbacks run in the order of the slots; `comm_ends`, `leave`, `stop` and `destroy` in
 * reverse. */
struct wf_module {
    /* CONTEXT has its configuration and plugin, but has not joined the job.  Sets the module's
     * slot. A failure fails weft_init on all ranks. */
    weft_status (*create)(weft_context *context);
    /* Add what must be equal on all ranks. */
    void (*add_choices)(const weft_context *context, struct wf_choices *choices);
    /* The world communicator exists.  Collective. */
    weft_status (*start)(weft_context *context);
    /* Called by weft_context_bind_thread. */
    weft_status (*bind_thread)(weft_context *context);
    /* weft_free is about to free POINTER.  An error refuses it. */
    weft_status (*check_free)(weft_context *context, const void *pointer);
    /* A wait for STREAM, or with ANY for a work on a stream that is not known, ended with STATUS.
     * Returns STATUS, or an error that the device does not report. */
    weft_status (*check_wait)(weft_context *context, const void *stream, bool any,
                              weft_status status);
    /* The user releases STREAM, which still exists. */
    void (*stream_ends)(weft_context *context, void *stream);
    /* COMM is about to end because of CAUSE, and is still usable. */
    void (*comm_ends)(weft_comm *comm, const char *cause);
    /* The rank is about to leave the job, and can still agree with the other ranks. */
    void (*leave)(weft_context *context);
    /* All communicators are about to end.  Ends work that would never complete. */
    void (*stop)(weft_context *context);
    /* All communicators have ended; the device is still open.  Frees the slot. */
    void (*destroy)(weft_context *context);
};

/* By slot. */
extern const struct wf_module *const wf_modules[WF_MODULE_COUNT];

/* ---- module.c: the callbacks of all modules ---- */

weft_status wf_modules_create(weft_context *context) WF_NODISCARD;
void wf_modules_add_choices(const weft_context *context, struct wf_choices *choices);
weft_status wf_modules_start(weft_context *context) WF_NODISCARD;
weft_status wf_modules_bind_thread(weft_context *context) WF_NODISCARD;
weft_status wf_modules_check_free(weft_context *context, const void *pointer) WF_NODISCARD;
weft_status wf_modules_check_wait(weft_context *context, const void *stream, bool any,
                                  weft_status status) WF_NODISCARD;
void wf_modules_stream_ends(weft_context *context, void *stream);
void wf_modules_comm_ends(weft_comm *comm, const char *cause);
void wf_modules_leave(weft_context *context);
void wf_modules_stop(weft_context *context);
void wf_modules_destroy(weft_context *context);

#endif
