/* shmem_life.c - what kernels report, aborting, and the end.
 *
 * Kernels that wait give up by themselves after the time limit, or when the host sets the abort
 * flag, and write why into pinned memory.  A communicator that failed leaves its arena memory
 * behind: peers that have not noticed yet may still write there. */
#include "shmem.h"

#include <stdio.h>
#include <string.h>

/* What a kernel reported, in words. */
static weft_status explain(const struct wf_comm *comm, const struct wk_report *report, char *out,
                           size_t size)
{
    double seconds = (double)comm->timeout_ns / 1e9;
    int me = comm->world_ranks[comm->rank];
    int peer = report->peer < (uint64_t)comm->size ? comm->world_ranks[report->peer] : -1;
    unsigned long long have = report->have, want = report->want;

    switch (report->reason) {
    case WK_NOT_READY:
        snprintf(out, size, "rank %d did not come to operation %llu within %.3f s", peer, want,
                 seconds);
        return WEFT_ERR_TIMEOUT;
    case WK_NOT_DONE:
        snprintf(out, size, "rank %d did not end operation %llu within %.3f s", peer, want,
                 seconds);
        return WEFT_ERR_TIMEOUT;
    case WK_GAVE_UP:
        snprintf(out, size, "rank %d gave up what rank %d read from it", peer, me);
        return WEFT_ERR_PEER;
    case WK_NO_LETTER:
        snprintf(out, size, "rank %d sent no message %llu to rank %d within %.3f s", peer, want, me,
                 seconds);
        return WEFT_ERR_TIMEOUT;
    case WK_NOT_TAKEN:
        snprintf(out, size, "rank %d did not receive message %llu of rank %d within %.3f s", peer,
                 want, me, seconds);
        return WEFT_ERR_TIMEOUT;
    case WK_WRONG_BYTES:
        snprintf(out, size, "rank %d sent a message of %llu bytes, and rank %d receives %llu", peer,
                 have, me, want);
        return WEFT_ERR_MISMATCH;
    case WK_NO_SIGNAL:
        wf_explain_no_signal(comm, report, out, size);
        return WEFT_ERR_TIMEOUT;
    case WK_DECLINED:
        return wf_explain_declined(comm, report->have, out, size);
    default:
        snprintf(out, size, "it was aborted");
        return WEFT_ERR_ABORTED;
    }
}

void wf_comm_look(struct wf_comm *comm)
{
    struct wk_report copy;
    char text[256];

    if (comm->report == NULL || atomic_load(&comm->error) != WEFT_OK) return;
    copy.reason = __atomic_load_n(&comm->report->reason, __ATOMIC_ACQUIRE);
    if (copy.reason == WK_FINE) return;
    copy.peer = comm->report->peer;
    copy.have = comm->report->have;
    copy.want = comm->report->want;
    wf_comm_stick(comm, explain(comm, &copy, text, sizeof text), text);
}

weft_status wf_comm_async_error(void *made)
{
    return wf_comm_stuck(made);
}

static void set_abort(struct wf_comm *comm)
{
    if (comm->report != NULL) __atomic_store_n(&comm->report->abort, 1, __ATOMIC_RELEASE);
}

void wf_comm_abort(void *made)
{
    struct wf_comm *comm = made;

    if (comm == NULL) return;
    wf_comm_look(comm);
    wf_comm_stick(comm, WEFT_ERR_ABORTED, "it was aborted");
    set_abort(comm);
}

/* ---- reports ---- */

/* Freeing pinned memory would wait for the device, so what is no longer used is kept for others. */
static struct {
    pthread_mutex_t lock;
    struct wk_report *spare[64];
    size_t count;
} reports = {.lock = PTHREAD_MUTEX_INITIALIZER};

weft_status wf_report_take(struct wf_comm *comm)
{
    void *report = NULL;

    pthread_mutex_lock(&reports.lock);
    if (reports.count > 0) report = reports.spare[--reports.count];
    pthread_mutex_unlock(&reports.lock);
    if (report == NULL)
        WF_TRY(wf_gpu_allocate(comm->device, sizeof *comm->report, WEFT_MEMORY_PINNED, &report));
    memset(report, 0, sizeof *comm->report);
    comm->report = report;
    return WEFT_OK;
}

void wf_report_give(struct wf_comm *comm)
{
    bool kept;

    if (comm->report == NULL) return;
    pthread_mutex_lock(&reports.lock);
    kept = reports.count < WF_COUNT(reports.spare);
    if (kept) reports.spare[reports.count++] = comm->report;
    pthread_mutex_unlock(&reports.lock);
    if (!kept && wf_gpu_free(comm->device, comm->report) != WEFT_OK)
        wf_log(1, "a communicator's memory could not be freed: %s", wf_last_text());
    comm->report = NULL;
}

/* ---- the end ---- */

/* Kernels see the abort flag, so this does not last; but those of NVSHMEM do not.  False: they wait
 * for ever.  CLEANLY stays true if all went well. */
static bool await_last(struct wf_comm *comm, bool *cleanly)
{
    uint64_t began = wf_now_ns();
    struct wf_scope scope;
    gpu_result result;

    if (comm->last == NULL || wf_enter(comm->device, &scope) != WEFT_OK) return true;
    while ((result = wf_gpu.event_query(comm->last)) == GPU_NOT_READY) {
        if (comm->team != 0 && wf_now_ns() - began > WF_LIBRARY_PATIENCE_NS) break;
        wf_pause(began);
    }
    if (result != GPU_NOT_READY) {
        wf_team_forget(comm);
        wf_gpu.event_destroy(comm->last);
        if (comm->side != NULL) wf_gpu.stream_destroy(comm->side);
    }
    wf_leave(&scope);
    if (result != GPU_SUCCESS) *cleanly = false;
    return result != GPU_NOT_READY;
}

/* Nobody looks at stages any more after operations that all ended, also if the next one was not
 * begun for want of room: that room may be theirs. */
static void give_stages(struct wf_comm *comm, bool cleanly)
{
    bool ended = comm->has_withdrawn && !comm->is_recorded && comm->report->reason == WK_DECLINED &&
                 comm->report->peer == (uint64_t)comm->rank;

    if (!cleanly && !ended) return;
    wf_arena_give(comm->send_stage.memory);
    wf_arena_give(comm->recv_stage.memory);
    for (size_t i = 0; i < comm->retired_count; i++)
        wf_arena_give(comm->retired[i]);
}

void wf_comm_destroy(void *made)
{
    struct wf_comm *comm = made;
    bool cleanly;

    if (comm == NULL) return;
    wf_comm_look(comm);
    cleanly = atomic_load(&comm->error) == WEFT_OK && wf_windows_are_idle(comm);
    set_abort(comm);
    if (!await_last(comm, &cleanly)) {
        wf_job_lose(comm->device);
        wf_log(1,
               "the communicator %s is left behind: a collective of NVSHMEM waits for a rank that "
               "does not come, and cannot be ended",
               comm->name);
        return;
    }
    wf_comm_look(comm); /* work that was under way was ended by the flag */
    if (atomic_load(&comm->error) != WEFT_OK) cleanly = false;
    wf_windows_drop(comm, cleanly);
    if (cleanly) {
        wf_team_release(comm);
        wf_arena_give(comm->control);
        wf_arena_give(comm->match_memory);
    }
    give_stages(comm, cleanly);
    wf_arena_give(comm->device_peers);
    wf_arena_give(comm->table.memory);
    if (cleanly) wf_report_give(comm); /* else a wait for a signal may still look there */
    wf_delete(comm->retired);
    wf_delete(comm->heard);
    wf_delete(comm->peers);
    wf_comm_free(comm);
}
