/* shmem_life.c - reports of kernels, aborts, and the end of communicators.
 *
 * Waiting kernels stop at the time limit, or when the host sets the abort flag, and write the
 * reason into pinned memory.  The arena memory of a failed communicator is not freed: peers that do
 * not know of the failure yet may still write to it. */
#include "shmem.h"

#include <stdio.h>
#include <string.h>

/* Describe a kernel's report. */
static weft_status explain(const struct gpu_comm *comm, const struct wk_report *report, char *out,
                           size_t size)
{
    double seconds = (double)comm->timeout_ns / 1e9;
    int me = comm->world_ranks[comm->rank];
    int peer = report->peer < (uint64_t)comm->size ? comm->world_ranks[report->peer] : -1;
    unsigned long long have = report->have, want = report->want;

    switch (report->reason) {
    case WK_NOT_READY:
        kit_print(out, size, "rank %d did not reach operation %llu within %.3f s", peer, want,
                  seconds);
        return WEFT_ERR_TIMEOUT;
    case WK_NOT_DONE:
        kit_print(out, size, "rank %d did not end operation %llu within %.3f s", peer, want,
                  seconds);
        return WEFT_ERR_TIMEOUT;
    case WK_GAVE_UP:
        snprintf(out, size, "rank %d timed out while rank %d read from it", peer, me);
        return WEFT_ERR_PEER;
    case WK_NO_MESSAGE:
        kit_print(out, size, "rank %d sent no message %llu to rank %d within %.3f s", peer, want,
                  me, seconds);
        return WEFT_ERR_TIMEOUT;
    case WK_NOT_TAKEN:
        kit_print(out, size, "rank %d did not receive message %llu of rank %d within %.3f s", peer,
                  want, me, seconds);
        return WEFT_ERR_TIMEOUT;
    case WK_WRONG_BYTES:
        snprintf(out, size, "rank %d sent a message of %llu bytes, but rank %d receives %llu bytes",
                 peer, have, me, want);
        return WEFT_ERR_MISMATCH;
    case WK_NO_SIGNAL:
        gpu_describe_no_signal(comm, report, out, size);
        return WEFT_ERR_TIMEOUT;
    case WK_DECLINED:
        return shmem_describe_declined(comm, report->have, out, size);
    default:
        snprintf(out, size, "it was aborted");
        return WEFT_ERR_ABORTED;
    }
}

void shmem_comm_look(struct gpu_comm *comm)
{
    struct wk_report copy;
    char text[256];

    if (comm->report == NULL || atomic_load(&comm->error) != WEFT_OK) return;
    copy.reason = __atomic_load_n(&comm->report->reason, __ATOMIC_ACQUIRE);
    if (copy.reason == WK_FINE) return;
    copy.peer = comm->report->peer;
    copy.have = comm->report->have;
    copy.want = comm->report->want;
    gpu_comm_fail(comm, explain(comm, &copy, text, sizeof text), text);
}

weft_status gpu_comm_async_error(void *made)
{
    return gpu_comm_cause(made);
}

static void set_abort(struct gpu_comm *comm)
{
    if (comm->report != NULL) __atomic_store_n(&comm->report->abort, 1, __ATOMIC_RELEASE);
}

void gpu_comm_abort(void *made)
{
    struct gpu_comm *comm = made;

    if (comm == NULL) return;
    shmem_comm_look(comm);
    gpu_comm_fail(comm, WEFT_ERR_ABORTED, "it was aborted");
    set_abort(comm);
}

/* ---- reports ---- */

/* Freeing pinned memory would wait for the device, so unused memory is kept for other
 * communicators. */
static struct {
    pthread_mutex_t lock;
    struct wk_report *spare[64];
    size_t count;
} reports = {.lock = PTHREAD_MUTEX_INITIALIZER};

weft_status shmem_report_take(struct gpu_comm *comm)
{
    void *report = NULL;

    pthread_mutex_lock(&reports.lock);
    if (reports.count > 0) report = reports.spare[--reports.count];
    pthread_mutex_unlock(&reports.lock);
    if (report == NULL)
        PLUG_TRY(gpu_allocate(comm->device, sizeof *comm->report, WEFT_MEMORY_PINNED, &report));
    memset(report, 0, sizeof *comm->report);
    comm->report = report;
    return WEFT_OK;
}

void shmem_report_give(struct gpu_comm *comm)
{
    bool kept;

    if (comm->report == NULL) return;
    pthread_mutex_lock(&reports.lock);
    kept = reports.count < PLUG_LENGTH(reports.spare);
    if (kept) reports.spare[reports.count++] = comm->report;
    pthread_mutex_unlock(&reports.lock);
    if (!kept && gpu_free(comm->device, comm->report) != WEFT_OK)
        plug_log(1, "a communicator's memory could not be freed: %s", plug_last_text());
    comm->report = NULL;
}

/* ---- destruction ---- */

/* Wait for the last operation.  The plugin's kernels end because of the abort flag, but those of
 * NVSHMEM may not.  Returns false if they do not end.  Clears *CLEANLY on an error. */
static bool await_last(struct gpu_comm *comm, bool *cleanly)
{
    uint64_t began = plug_now();
    struct gpu_scope scope;
    vendor_result result;

    if (comm->last == NULL || gpu_enter(comm->device, &scope) != WEFT_OK) return true;
    while ((result = gpu_api.event_query(comm->last)) == GPU_NOT_READY) {
        if (comm->team != 0 && plug_now() - began > SHMEM_LIBRARY_GRACE_NS) break;
        gpu_pause(began);
    }
    if (result != GPU_NOT_READY) {
        shmem_team_forget(comm);
        gpu_api.event_destroy(comm->last);
        if (comm->side != NULL) gpu_api.stream_destroy(comm->side);
    }
    gpu_leave(&scope);
    if (result != GPU_SUCCESS) *cleanly = false;
    return result != GPU_NOT_READY;
}

/* Free the stages if all operations are complete.  That includes the case that the next operation
 * could not start for lack of arena memory: the stages may hold that memory. */
static void give_stages(struct gpu_comm *comm, bool cleanly)
{
    bool ended = comm->has_withdrawn && !comm->is_recorded && comm->report->reason == WK_DECLINED &&
                 comm->report->peer == (uint64_t)comm->rank;

    if (!cleanly && !ended) return;
    shmem_arena_give(comm->send_stage.memory);
    shmem_arena_give(comm->recv_stage.memory);
    for (size_t i = 0; i < comm->retired_count; i++)
        shmem_arena_give(comm->retired[i]);
}

void gpu_comm_destroy(void *made)
{
    struct gpu_comm *comm = made;
    bool cleanly;

    if (comm == NULL) return;
    shmem_comm_look(comm);
    cleanly = atomic_load(&comm->error) == WEFT_OK && shmem_windows_are_idle(comm);
    set_abort(comm);
    if (!await_last(comm, &cleanly)) {
        shmem_job_lose(comm->device);
        plug_log(1,
                 "the communicator %s is not freed: a collective of NVSHMEM waits for a rank and "
                 "cannot be ended",
                 comm->name);
        return;
    }
    shmem_comm_look(comm); /* the abort flag ended pending work */
    if (atomic_load(&comm->error) != WEFT_OK) cleanly = false;
    shmem_windows_drop(comm, cleanly);
    if (cleanly) {
        shmem_team_release(comm);
        shmem_arena_give(comm->control);
        shmem_arena_give(comm->match_memory);
    }
    give_stages(comm, cleanly);
    shmem_arena_give(comm->device_peers);
    shmem_arena_give(comm->table.memory);
    if (cleanly) shmem_report_give(comm); /* else a wait for a signal may still read it */
    plug_free(comm->retired);
    plug_free(comm->heard);
    plug_free(comm->peers);
    gpu_comm_free(comm);
}
