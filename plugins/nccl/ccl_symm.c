/* ccl_symm.c - windows as their communicator lives and ends: kernels that wait for a signal report
 * in pinned memory that they gave up, and are told there to do so. */
#include "ccl_window.h"

/* The communicator sticks to what a kernel of WINDOW said. */
static void take_over(const struct wf_window *window)
{
    struct wf_comm *comm = window->comm;
    uint64_t reason = __atomic_load_n(&window->report->reason, __ATOMIC_ACQUIRE);
    char text[192];

    if (reason == WK_FINE) return;
    if (reason == WK_NO_SIGNAL) {
        wf_explain_no_signal(comm, window->report, text, sizeof text);
        wf_comm_stick(comm, WEFT_ERR_TIMEOUT, text);
    } else {
        wf_comm_stick(comm, WEFT_ERR_ABORTED, "it was aborted");
    }
}

/* The window whose kernel gave up, or NULL. */
static struct wf_window *find_failed(struct wf_comm *comm)
{
    struct wf_window *window;

    pthread_mutex_lock(&comm->lock);
    window = comm->windows;
    while (window != NULL && __atomic_load_n(&window->report->reason, __ATOMIC_ACQUIRE) == WK_FINE)
        window = window->next;
    pthread_mutex_unlock(&comm->lock);
    return window;
}

static void look(struct wf_comm *comm)
{
    struct wf_window *failed = find_failed(comm);

    if (failed != NULL) take_over(failed);
}

static void stop(struct wf_comm *comm)
{
    pthread_mutex_lock(&comm->lock);
    for (struct wf_window *window = comm->windows; window != NULL; window = window->next)
        __atomic_store_n(&window->report->abort, 1, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&comm->lock);
}

/* Their memory stays where work may still use it. */
static void drop(struct wf_comm *comm)
{
    while (comm->windows != NULL) {
        struct wf_window *window = comm->windows;
        struct wf_scope scope;

        comm->windows = window->next;
        if (window->waits.count > 0 && wf_enter(comm->device, &scope) == WEFT_OK) {
            wf_waits_drop(&window->waits);
            wf_leave(&scope);
        }
        wf_delete(window);
    }
}

const struct wf_window_calls wf_window_calls = {look, stop, drop};

struct wk_channel wf_window_channel(const struct wf_window *window)
{
    return (struct wk_channel){.control = window->control,
                               .report = (uintptr_t)window->report,
                               .rank = (uint32_t)window->comm->rank,
                               .size = (uint32_t)window->comm->size};
}
