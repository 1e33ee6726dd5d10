/* ccl_life.c - errors of the library, abort, and destruction.
 *
 * An abort in the library may take long, and abort() must not block.  A separate thread, the
 * reaper, does it.  If the library cannot split, `work` is `control`, and the reaper first waits
 * until no thread is inside the library.  Calls on such a communicator do not block for long. */
#include "ccl.h"

#include <stdio.h>

/* ---- errors ---- */

void gpu_comm_look(struct gpu_comm *comm)
{
    const struct ccl_window_calls *windows = comm->window_calls;

    if (windows != NULL) windows->look(comm);
}

/* Only one thread at a time may query a nonblocking communicator.  It is not queried while another
 * thread, which will see the error itself, is inside, or if that is unknown. */
weft_status gpu_comm_async_error(void *made)
{
    struct gpu_comm *comm = made;
    ccl_result result = CCL_SUCCESS, asked = CCL_SUCCESS;
    bool alone = comm->work == comm->control;
    weft_status status;

    PLUG_TRY(gpu_comm_cause(comm));
    if (!comm->is_ready || (alone && comm->is_handed_out)) return WEFT_OK;
    if (alone && pthread_mutex_trylock(&comm->gate) != 0) return WEFT_OK;
    if (!comm->is_reaped || !alone) asked = ccl_api.ncclCommGetAsyncError(comm->work, &result);
    if (alone) pthread_mutex_unlock(&comm->gate);
    status = ccl_check(ccl_first(asked, result), "work on a communicator");
    if (status == WEFT_OK || status == WEFT_IN_PROGRESS) return WEFT_OK;
    return gpu_comm_fail(comm, status, NULL);
}

/* ---- abort ---- */

static void *reap(void *given)
{
    struct gpu_comm *comm = given;

    if (comm->work == comm->control) pthread_mutex_lock(&comm->gate);
    comm->is_reaped = true;
    ccl_api.ncclCommAbort(comm->control);
    if (comm->work == comm->control) pthread_mutex_unlock(&comm->gate);
    return NULL;
}

static void stop_windows(struct gpu_comm *comm)
{
    const struct ccl_window_calls *windows = comm->window_calls;

    if (windows != NULL) windows->stop(comm);
}

void ccl_comm_kill(struct gpu_comm *comm)
{
    stop_windows(comm);
    pthread_mutex_lock(&comm->lock);
    if (comm->is_ready && !comm->is_wrapped && !comm->is_reaping)
        comm->is_reaping = pthread_create(&comm->reaper, NULL, reap, comm) == 0;
    pthread_mutex_unlock(&comm->lock);
}

void gpu_comm_abort(void *made)
{
    struct gpu_comm *comm = made;

    if (comm == NULL) return;
    gpu_comm_fail(comm, WEFT_ERR_ABORTED, "it was aborted");
    stop_windows(comm);
    /* An abort in the library takes a second.  Later calls see the error without it. */
    if (atomic_load(&comm->error) == WEFT_ERR_ABORTED && comm->is_ready && ccl_is_idle(comm))
        comm->is_quiet = true;
    else
        ccl_comm_kill(comm);
}

static void end_native(ccl_comm native, bool cleanly)
{
    ccl_result result = CCL_SUCCESS;

    if (native == NULL) return;
    if (cleanly) result = ccl_api.ncclCommDestroy(native);
    if (!cleanly || result != CCL_SUCCESS) result = ccl_api.ncclCommAbort(native);
    if (result != CCL_SUCCESS && result != CCL_IN_PROGRESS)
        plug_log(1, "a communicator could not be freed: %s", ccl_api.ncclGetErrorString(result));
}

static void end_both(struct gpu_comm *comm)
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

void gpu_comm_destroy(void *made)
{
    struct gpu_comm *comm = made;
    struct gpu_scope scope;

    if (comm == NULL) return;
    ccl_unwatch(comm);
    stop_windows(comm); /* freeing memory waits for the device, and so for waiting kernels */
    if (comm->window_calls != NULL) comm->window_calls->drop(comm);
    if (gpu_enter(comm->device, &scope) == WEFT_OK) {
        end_both(comm);
        gpu_give_back(comm->device, comm->token, comm->device->setup);
        gpu_leave(&scope);
    }
    ccl_talk_end(comm);
    pthread_mutex_destroy(&comm->gate);
    gpu_comm_free(comm);
}

/* ---- nonblocking calls ---- */

static weft_status fail_late(struct gpu_comm *comm, const char *what, int64_t limit_ns)
{
    char text[256];

    plug_print(text, sizeof text, "%s on %s was not complete within %.3f s", what, comm->name,
               (double)limit_ns / 1e9);
    gpu_comm_fail(comm, WEFT_ERR_TIMEOUT, text);
    return plug_fail(WEFT_ERR_TIMEOUT, "%s", text);
}

weft_status ccl_settle(struct gpu_comm *comm, ccl_comm native, ccl_result result, int64_t limit_ns,
                       const char *what)
{
    uint64_t began = 0;
    weft_status status;

    if (result == CCL_SUCCESS && native == comm->work && comm->work != comm->control &&
        !comm->is_wrapped)
        return WEFT_OK; /* `work` is blocking, so success means done; a wrapped communicator may
                           be nonblocking */
    while (result == CCL_SUCCESS || result == CCL_IN_PROGRESS) {
        ccl_result asked = ccl_api.ncclCommGetAsyncError(native, &result);
        if (asked != CCL_SUCCESS) result = asked;
        if (result == CCL_SUCCESS) return WEFT_OK;
        if (result != CCL_IN_PROGRESS) break;
        PLUG_TRY(gpu_comm_cause(comm));
        if (began == 0) began = plug_now();
        if (limit_ns >= 0 && plug_now() - began >= (uint64_t)limit_ns)
            return fail_late(comm, what, limit_ns);
        gpu_pause(began);
    }
    PLUG_TRY(gpu_comm_cause(comm)); /* the watch or an abort may be the cause */
    status = ccl_check(result, what);
    return gpu_comm_fail(comm, status, NULL);
}
