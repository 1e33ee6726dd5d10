/* ccl_life.c - errors of the library, aborting, and the end.
 *
 * Aborting may take the library a while, and abort() may not block: a thread of its own, the
 * reaper, does it.  Where the library cannot split, `work` is `control`, and the reaper first
 * waits until nobody is inside; such a communicator never blocks a call for long. */
#include "ccl.h"

#include <stdio.h>

/* ---- errors ---- */

void wf_comm_look(struct wf_comm *comm)
{
    const struct wf_window_calls *windows = comm->window_calls;

    if (windows != NULL) windows->look(comm);
}

/* A communicator that does not block may be asked by one thread at a time, so not while another
 * is inside, which will see the error itself, nor where that cannot be known. */
weft_status wf_comm_async_error(void *made)
{
    struct wf_comm *comm = made;
    ccl_result result = CCL_SUCCESS, asked = CCL_SUCCESS;
    bool alone = comm->work == comm->control;
    weft_status status;

    WF_TRY(wf_comm_stuck(comm));
    if (!comm->is_ready || (alone && comm->is_handed_out)) return WEFT_OK;
    if (alone && pthread_mutex_trylock(&comm->gate) != 0) return WEFT_OK;
    if (!comm->is_reaped || !alone) asked = wf_ccl.ncclCommGetAsyncError(comm->work, &result);
    if (alone) pthread_mutex_unlock(&comm->gate);
    status = wf_ccl_check(wf_first(asked, result), "work on a communicator");
    if (status == WEFT_OK || status == WEFT_IN_PROGRESS) return WEFT_OK;
    return wf_comm_stick(comm, status, NULL);
}

/* ---- aborting ---- */

static void *reap(void *given)
{
    struct wf_comm *comm = given;

    if (comm->work == comm->control) pthread_mutex_lock(&comm->gate);
    comm->is_reaped = true;
    wf_ccl.ncclCommAbort(comm->control);
    if (comm->work == comm->control) pthread_mutex_unlock(&comm->gate);
    return NULL;
}

static void stop_windows(struct wf_comm *comm)
{
    const struct wf_window_calls *windows = comm->window_calls;

    if (windows != NULL) windows->stop(comm);
}

void wf_comm_kill(struct wf_comm *comm)
{
    stop_windows(comm);
    pthread_mutex_lock(&comm->lock);
    if (comm->is_ready && !comm->is_wrapped && !comm->is_reaping)
        comm->is_reaping = pthread_create(&comm->reaper, NULL, reap, comm) == 0;
    pthread_mutex_unlock(&comm->lock);
}

void wf_comm_abort(void *made)
{
    struct wf_comm *comm = made;

    if (comm == NULL) return;
    wf_comm_stick(comm, WEFT_ERR_ABORTED, "it was aborted");
    stop_windows(comm);
    /* The library takes a second to abort; whoever comes inside from now on sees the error. */
    if (atomic_load(&comm->error) == WEFT_ERR_ABORTED && comm->is_ready && wf_is_idle(comm))
        comm->is_quiet = true;
    else
        wf_comm_kill(comm);
}

static void end_native(ccl_comm native, bool cleanly)
{
    ccl_result result = CCL_SUCCESS;

    if (native == NULL) return;
    if (cleanly) result = wf_ccl.ncclCommDestroy(native);
    if (!cleanly || result != CCL_SUCCESS) result = wf_ccl.ncclCommAbort(native);
    if (result != CCL_SUCCESS && result != CCL_IN_PROGRESS)
        wf_log(1, "a communicator could not be freed: %s", wf_ccl.ncclGetErrorString(result));
}

static void end_both(struct wf_comm *comm)
{
    bool is_well = atomic_load(&comm->error) == WEFT_OK || (comm->is_quiet && !comm->is_reaping);
    bool cleanly = comm->is_ready && is_well;

    if (comm->work != comm->control && !comm->is_wrapped && !comm->is_lost)
        end_native(comm->work, cleanly);
    if (comm->is_reaping)
        pthread_join(comm->reaper, NULL);
    else
        end_native(comm->control, cleanly);
}

void wf_comm_destroy(void *made)
{
    struct wf_comm *comm = made;
    struct wf_scope scope;

    if (comm == NULL) return;
    wf_unwatch(comm);
    stop_windows(comm); /* freeing memory waits for the device, and so for kernels that wait */
    if (comm->window_calls != NULL) comm->window_calls->drop(comm);
    if (wf_enter(comm->device, &scope) == WEFT_OK) {
        end_both(comm);
        wf_gpu_give_back(comm->device, comm->token, comm->device->setup);
        wf_leave(&scope);
    }
    wf_talk_end(comm);
    pthread_mutex_destroy(&comm->gate);
    wf_comm_free(comm);
}

/* ---- calls that do not block ---- */

static weft_status fail_late(struct wf_comm *comm, const char *what, int64_t limit_ns)
{
    char text[256];

    snprintf(text, sizeof text, "%s on %s was not done within %.3f s", what, comm->name,
             (double)limit_ns / 1e9);
    wf_comm_stick(comm, WEFT_ERR_TIMEOUT, text);
    return wf_fail(WEFT_ERR_TIMEOUT, "%s", text);
}

weft_status wf_settle(struct wf_comm *comm, ccl_comm native, ccl_result result, int64_t limit_ns,
                      const char *what)
{
    uint64_t began = 0;
    weft_status status;

    if (result == CCL_SUCCESS && native == comm->work && comm->work != comm->control &&
        !comm->is_wrapped)
        return WEFT_OK; /* it blocks, which of the caller's own is not known */
    while (result == CCL_SUCCESS || result == CCL_IN_PROGRESS) {
        ccl_result asked = wf_ccl.ncclCommGetAsyncError(native, &result);
        if (asked != CCL_SUCCESS) result = asked;
        if (result == CCL_SUCCESS) return WEFT_OK;
        if (result != CCL_IN_PROGRESS) break;
        WF_TRY(wf_comm_stuck(comm));
        if (began == 0) began = wf_now_ns();
        if (limit_ns >= 0 && wf_now_ns() - began >= (uint64_t)limit_ns)
            return fail_late(comm, what, limit_ns);
        wf_pause(began);
    }
    WF_TRY(wf_comm_stuck(comm)); /* the watch, or an abort, may be behind it */
    status = wf_ccl_check(result, what);
    return wf_comm_stick(comm, status, NULL);
}
