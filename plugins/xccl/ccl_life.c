/* ccl_life.c - abort and destruction of communicators. */
#include "ccl.h"

void gpu_comm_abort(void *made)
{
    struct gpu_comm *comm = made;

    if (comm == NULL) return;
    gpu_comm_fail(comm, WEFT_ERR_ABORTED, "it was aborted");
    ccl_windows_stop(comm);
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
    ccl_windows_stop(comm); /* freeing memory waits for the device, and so for waiting kernels */
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
