/* ccl_errors.c - errors of the library, and the end of failed work.
 *
 * An abort in the library may take long, and abort() must not block.  A separate thread, the
 * reaper, does it.  If the library cannot split, `work` is `control`, and the reaper first waits
 * until no thread is inside the library.  Calls on such a communicator do not block for long. */
#include "ccl.h"

#include <stdio.h>

/* Only one thread at a time may query a nonblocking communicator.  It is not queried while another
 * thread, which will see the error itself, is inside, or if that is unknown. */
weft_status gpu_comm_async_error(void *made)
{
    struct gpu_comm *comm = made;
    ccl_result result = CCL_SUCCESS, asked = CCL_SUCCESS;
    bool alone = comm->work == comm->control;
    weft_status status;

    PLUG_TRY(gpu_comm_cause(comm));
    if (!comm->is_ready) return WEFT_OK;
    if (alone && pthread_mutex_trylock(&comm->gate) != 0) return WEFT_OK;
    if (!alone || (!comm->is_reaped && !comm->is_handed_out))
        asked = ccl_api.ncclCommGetAsyncError(comm->work, &result);
    if (alone) pthread_mutex_unlock(&comm->gate);
    status = ccl_check(ccl_first(asked, result), "work on a communicator");
    if (status == WEFT_OK || status == WEFT_IN_PROGRESS) return WEFT_OK;
    return gpu_comm_fail(comm, status, NULL);
}

/* ---- the end of failed work ---- */

static void *reap(void *given)
{
    struct gpu_comm *comm = given;

    if (comm->work == comm->control) pthread_mutex_lock(&comm->gate);
    comm->is_reaped = true;
    ccl_api.ncclCommAbort(comm->control);
    if (comm->work == comm->control) pthread_mutex_unlock(&comm->gate);
    return NULL;
}

void ccl_windows_stop(struct gpu_comm *comm)
{
    const struct ccl_window_calls *windows = comm->window_calls;

    if (windows != NULL) windows->stop(comm);
}

void ccl_comm_kill(struct gpu_comm *comm)
{
    ccl_windows_stop(comm);
    pthread_mutex_lock(&comm->lock);
    if (comm->is_ready && !comm->is_wrapped && !comm->is_reaping)
        comm->is_reaping = pthread_create(&comm->reaper, NULL, reap, comm) == 0;
    pthread_mutex_unlock(&comm->lock);
}

/* ---- nonblocking calls ---- */

static weft_status fail_late(struct gpu_comm *comm, const char *what, int64_t limit_ns)
{
    char text[256];

    kit_print(text, sizeof text, "%s on %s was not complete within %.3f s", what, comm->name,
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
