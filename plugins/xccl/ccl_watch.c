/* ccl_watch.c - one thread that watches all communicators of the process.
 *
 * Work that waits for a missing rank hangs in a call of the library or on a stream.  The watch ends
 * both at the communicator's time limit.  It ends work whose peer has failed as soon as the library
 * reports that. */
#include "ccl.h"

#include <stdio.h>
#include <time.h>

static struct {
    pthread_mutex_t lock;
    struct gpu_comm *first;
    bool is_running;
} watch = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int64_t at_least(int64_t limit_ns, int64_t least_ns)
{
    return limit_ns < 0 || limit_ns >= least_ns ? limit_ns : least_ns;
}

static void give_up(struct gpu_comm *comm, const char *what, int64_t limit_ns)
{
    char text[192];

    kit_print(text, sizeof text, "%s within %.3f s; a rank may be missing or may hang", what,
              (double)limit_ns / 1e9);
    gpu_comm_fail(comm, WEFT_ERR_TIMEOUT, text);
    ccl_comm_kill(comm);
}

static void look_at_calls(struct gpu_comm *comm)
{
    uint64_t ticket = atomic_load(&comm->ticket), now = plug_now();
    int64_t limit = at_least(comm->timeout_ns, CCL_MIN_CALLING_NS);

    if (ticket != comm->seen_ticket || ticket % 2 == 0) {
        comm->seen_ticket = ticket;
        comm->seen_since = now;
    } else if (limit >= 0 && now - comm->seen_since >= (uint64_t)limit) {
        give_up(comm, "a call did not return", limit);
    }
}

/* Replace a fixed mark that is complete by the other mark. */
static vendor_result look_at_marks(struct gpu_comm *comm, bool *late)
{
    vendor_result result = GPU_SUCCESS;
    uint64_t now = plug_now();

    pthread_mutex_lock(&comm->lock);
    if (comm->fixed_since == 0) comm->fixed_since = now;
    if (comm->fixed_waits) result = gpu_api.event_query(comm->marks[comm->fixed]);
    if (comm->fixed_waits && result != GPU_NOT_READY) {
        comm->fixed_waits = comm->other_waits;
        if (comm->other_waits) comm->fixed = 1 - comm->fixed;
        comm->other_waits = false;
        comm->fixed_since = now;
    }
    *late = result == GPU_NOT_READY && comm->timeout_ns >= 0 &&
            now - comm->fixed_since >= (uint64_t)comm->timeout_ns;
    pthread_mutex_unlock(&comm->lock);
    return result;
}

static void look_at_streams(struct gpu_comm *comm)
{
    struct gpu_scope scope;
    vendor_result result;
    bool late;

    if (gpu_enter(comm->device, &scope) != WEFT_OK) return;
    result = look_at_marks(comm, &late);
    gpu_leave(&scope);
    if (late) give_up(comm, "work on a stream was not complete", comm->timeout_ns);
    if (result == GPU_SUCCESS || result == GPU_NOT_READY) return;
    gpu_comm_fail(comm, gpu_check(result, "work on a stream"), NULL);
    ccl_comm_kill(comm);
}

static void look_at(struct gpu_comm *comm)
{
    if (atomic_load(&comm->error) != WEFT_OK) return;
    look_at_calls(comm);
    look_at_streams(comm);
    if (gpu_comm_async_error(comm) != WEFT_OK) ccl_comm_kill(comm);
}

/* The queries of this thread must not end a graph capture of another thread. */
static void *keep_watch(void *unused)
{
    vendor_capture_mode mode = GPU_CAPTURE_RELAXED;

    (void)unused;
    if (gpu_api.capture_mode != NULL) gpu_api.capture_mode(&mode);
    for (;;) {
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
        pthread_mutex_lock(&watch.lock);
        for (struct gpu_comm *c = watch.first; c != NULL; c = c->next)
            look_at(c);
        pthread_mutex_unlock(&watch.lock);
    }
    return NULL;
}

static bool start(void)
{
    pthread_attr_t detached;
    pthread_t thread;
    bool started;

    if (pthread_attr_init(&detached) != 0) return false;
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    started = pthread_create(&thread, &detached, keep_watch, NULL) == 0;
    pthread_attr_destroy(&detached);
    return started;
}

weft_status ccl_watch(struct gpu_comm *comm)
{
    bool watched;

    if (comm->size == 1) return WEFT_OK;
    for (int i = 0; i < 2; i++)
        PLUG_TRY(gpu_check(gpu_api.event_create(&comm->marks[i], GPU_EVENT_UNTIMED),
                           "creating an event"));
    pthread_mutex_lock(&watch.lock);
    comm->seen_since = plug_now();
    if (!watch.is_running) watch.is_running = start();
    watched = watch.is_running;
    if (watched) {
        comm->next = watch.first;
        watch.first = comm;
    }
    pthread_mutex_unlock(&watch.lock);
    return watched ? WEFT_OK : plug_fail(WEFT_ERR_SYSTEM, "cannot start the watcher thread");
}

void ccl_unwatch(struct gpu_comm *comm)
{
    struct gpu_scope scope;

    pthread_mutex_lock(&watch.lock);
    for (struct gpu_comm **at = &watch.first; *at != NULL; at = &(*at)->next)
        if (*at == comm) {
            *at = comm->next;
            break;
        }
    pthread_mutex_unlock(&watch.lock);
    if (gpu_enter(comm->device, &scope) != WEFT_OK) return;
    for (int i = 0; i < 2; i++)
        if (comm->marks[i] != NULL) gpu_api.event_destroy(comm->marks[i]);
    gpu_leave(&scope);
}

weft_status ccl_inside(struct gpu_comm *comm)
{
    weft_status status;

    if (comm->work == comm->control) pthread_mutex_lock(&comm->gate);
    atomic_fetch_add(&comm->ticket, 1);
    status = gpu_comm_cause(comm);
    if (status != WEFT_OK) ccl_outside(comm);
    return status;
}

void ccl_outside(struct gpu_comm *comm)
{
    atomic_fetch_add(&comm->ticket, 1);
    if (comm->work == comm->control) pthread_mutex_unlock(&comm->gate);
}

void ccl_mark(struct gpu_comm *comm, vendor_stream stream)
{
    bool captured = gpu_is_capturing(stream);
    int which;

    if (comm->marks[1] == NULL) return;
    pthread_mutex_lock(&comm->lock);
    comm->is_captured = comm->is_captured || captured;
    if (captured) {
        pthread_mutex_unlock(&comm->lock);
        return;
    }
    which = comm->fixed_waits ? 1 - comm->fixed : comm->fixed;
    if (gpu_api.event_record(comm->marks[which], stream) == GPU_SUCCESS) {
        if (comm->fixed_waits) {
            comm->other_waits = true;
        } else {
            comm->fixed_waits = true;
            comm->fixed_since = 0;
        }
    }
    pthread_mutex_unlock(&comm->lock);
}

bool ccl_is_idle(struct gpu_comm *comm)
{
    struct gpu_scope scope;
    bool idle;

    if (comm->size == 1) return true; /* work of a single rank waits for no peer */
    if (gpu_enter(comm->device, &scope) != WEFT_OK) return false;
    pthread_mutex_lock(&comm->lock);
    idle = atomic_load(&comm->ticket) % 2 == 0 && !comm->is_captured;
    if (idle && comm->fixed_waits)
        idle = gpu_api.event_query(comm->marks[comm->fixed]) == GPU_SUCCESS;
    if (idle && comm->other_waits)
        idle = gpu_api.event_query(comm->marks[1 - comm->fixed]) == GPU_SUCCESS;
    pthread_mutex_unlock(&comm->lock);
    gpu_leave(&scope);
    return idle;
}
