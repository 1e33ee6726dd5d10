/* ccl_symm.c - windows while their communicator exists and when it ends.  Kernels that wait for a
 * signal report through pinned memory that they stopped, and read there whether to stop. */
#include "ccl_window.h"

/* Fail the communicator with the report of a kernel of WINDOW. */
static void take_over(const struct gpu_window *window)
{
    struct gpu_comm *comm = window->comm;
    uint64_t reason = __atomic_load_n(&window->report->reason, __ATOMIC_ACQUIRE);
    char text[192];

    if (reason == WK_FINE) return;
    if (reason == WK_NO_SIGNAL) {
        gpu_describe_no_signal(comm, window->report, text, sizeof text);
        gpu_comm_fail(comm, WEFT_ERR_TIMEOUT, text);
    } else {
        gpu_comm_fail(comm, WEFT_ERR_ABORTED, "it was aborted");
    }
}

/* The window whose kernel timed out or was stopped, or NULL. */
static struct gpu_window *find_failed(struct gpu_comm *comm)
{
    struct gpu_window *window;

    pthread_mutex_lock(&comm->lock);
    window = comm->windows;
    while (window != NULL && __atomic_load_n(&window->report->reason, __ATOMIC_ACQUIRE) == WK_FINE)
        window = window->next;
    pthread_mutex_unlock(&comm->lock);
    return window;
}

void ccl_windows_look(struct gpu_comm *comm)
{
    struct gpu_window *failed = find_failed(comm);

    if (failed != NULL) take_over(failed);
}

static void stop(struct gpu_comm *comm)
{
    pthread_mutex_lock(&comm->lock);
    for (struct gpu_window *window = comm->windows; window != NULL; window = window->next)
        __atomic_store_n(&window->report->abort, 1, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&comm->lock);
}

/* Drops the windows.  Their memory is kept if work may still use it. */
static void drop(struct gpu_comm *comm)
{
    while (comm->windows != NULL) {
        struct gpu_window *window = comm->windows;
        struct gpu_scope scope;

        comm->windows = window->next;
        if (window->waits.count > 0 && gpu_enter(comm->device, &scope) == WEFT_OK) {
            gpu_waits_drop(&window->waits);
            gpu_leave(&scope);
        }
        plug_free(window);
    }
}

const struct ccl_window_calls ccl_window_calls = {stop, drop};

struct wk_channel gpu_window_channel(const struct gpu_window *window)
{
    return (struct wk_channel){.control = window->control,
                               .report = (uintptr_t)window->report,
                               .rank = (uint32_t)window->comm->rank,
                               .size = (uint32_t)window->comm->size};
}
