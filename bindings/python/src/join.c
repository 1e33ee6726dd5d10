/* join.c - see join.h.
 *
 * A thread of its own joins, so that the main thread can run the handlers of signals meanwhile.
 * If a handler raises an exception, that thread is left alone: it leaves the job again after it has
 * joined. */
#include "join.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { LOOK_MS = 50 }; /* how often a signal that another thread has received is noticed */

struct joining {
    weft_options options;
    int32_t device;
    weft_exchange exchange;
    PyObject *function; /* the caller's all-gather */
    pthread_mutex_t lock;
    bool is_done, is_abandoned; /* under the lock */
    int done;                   /* an eventfd */
    weft_context *raw;
    weft_status status;
    char text[2048];
};

/* ---- the caller's all-gather ---- */

static weft_status gather_by_call(void *self, const void *mine, void *all, uint64_t bytes)
{
    const struct joining *joining = self;
    int ranks = joining->options.size;
    weft_status status = WEFT_ERR_INVALID;
    PyGILState_STATE state;
    char *chars = NULL;
    Py_ssize_t length = 0;
    PyObject *result;

    if (!Py_IsInitialized()) return weft_fail(WEFT_ERR_ABORTED, "the interpreter has ended");
    state = PyGILState_Ensure();
    result = PyObject_CallFunction(joining->function, "y#", mine, (Py_ssize_t)bytes);
    if (result != NULL && PyBytes_AsStringAndSize(result, &chars, &length) == 0 &&
        (uint64_t)length == (uint64_t)ranks * bytes) {
        memcpy(all, chars, (size_t)length);
        status = WEFT_OK;
    } else if (PyErr_Occurred()) {
        PyErr_WriteUnraisable(joining->function);
        status = weft_fail(WEFT_ERR_INVALID, "the function `exchange` failed");
    } else {
        status = weft_fail(WEFT_ERR_INVALID,
                           "the function `exchange` returned %lld bytes for %llu of each of %d "
                           "ranks",
                           (long long)length, (unsigned long long)bytes, ranks);
    }
    Py_XDECREF(result);
    PyGILState_Release(state);
    return status;
}

/* ---- the thread ---- */

static const char *copied(const char *text, bool *failed)
{
    char *copy = text != NULL ? strdup(text) : NULL;

    if (text != NULL && copy == NULL) *failed = true;
    return copy;
}

/* The GIL is held. */
static void joining_free(struct joining *joining)
{
    free((char *)joining->options.backend);
    free((char *)joining->options.rendezvous);
    free((char *)joining->options.token);
    free((char *)joining->options.plugin_path);
    Py_XDECREF(joining->function);
    if (joining->done >= 0) close(joining->done);
    pthread_mutex_destroy(&joining->lock);
    free(joining);
}

static struct joining *joining_new(const weft_options *options, PyObject *exchange)
{
    struct joining *joining = calloc(1, sizeof *joining);
    bool failed = false;

    if (joining == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    pthread_mutex_init(&joining->lock, NULL);
    joining->options = *options;
    joining->options.backend = copied(options->backend, &failed);
    joining->options.rendezvous = copied(options->rendezvous, &failed);
    joining->options.token = copied(options->token, &failed);
    joining->options.plugin_path = copied(options->plugin_path, &failed);
    if (options->device != NULL) {
        joining->device = *options->device;
        joining->options.device = &joining->device;
    }
    if (exchange != Py_None) {
        joining->function = Py_NewRef(exchange);
        joining->exchange = (weft_exchange){.all_gather = gather_by_call, .self = joining};
        joining->options.exchange = &joining->exchange;
    }
    joining->done = eventfd(0, EFD_CLOEXEC);
    if (!failed && joining->done >= 0) return joining;
    if (failed)
        PyErr_NoMemory();
    else
        PyErr_SetFromErrno(PyExc_OSError);
    joining_free(joining);
    return NULL;
}

static void *work(void *argument)
{
    struct joining *joining = argument;
    PyGILState_STATE state;
    uint64_t one = 1;
    bool is_abandoned;

    joining->status = weft_init(&joining->options, &joining->raw);
    if (joining->status != WEFT_OK)
        snprintf(joining->text, sizeof joining->text, "%s", weft_last_error());
    pthread_mutex_lock(&joining->lock);
    joining->is_done = true;
    is_abandoned = joining->is_abandoned;
    if (!is_abandoned) /* JOINING is the caller's as soon as it is unlocked */
        while (write(joining->done, &one, sizeof one) < 0 && errno == EINTR)
            continue;
    pthread_mutex_unlock(&joining->lock);
    if (!is_abandoned) return NULL;
    weft_context_release(&joining->raw);
    if (!Py_IsInitialized()) return NULL; /* the process ends */
    state = PyGILState_Ensure();
    joining_free(joining);
    PyGILState_Release(state);
    return NULL;
}

/* Wait for the thread.  -1: a handler has raised an exception. */
static int wait_for(struct joining *joining)
{
    struct pollfd done = {.fd = joining->done, .events = POLLIN};
    int ready;

    do {
        Py_BEGIN_ALLOW_THREADS ready = poll(&done, 1, LOOK_MS);
        Py_END_ALLOW_THREADS if (PyErr_CheckSignals() < 0) return -1;
    } while (ready <= 0);
    return 0;
}

/* Whether the thread will free JOINING, because it has not yet joined. */
static bool abandon(struct joining *joining)
{
    bool is_done;

    pthread_mutex_lock(&joining->lock);
    is_done = joining->is_done;
    joining->is_abandoned = !is_done;
    pthread_mutex_unlock(&joining->lock);
    return !is_done;
}

/* Signals are for the main thread. */
static int start(struct joining *joining)
{
    sigset_t all, before;
    pthread_t thread;
    int error;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&thread, NULL, work, joining);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error == 0) {
        pthread_detach(thread);
        return 0;
    }
    errno = error;
    PyErr_SetFromErrno(PyExc_OSError);
    return -1;
}

/* Set *OUT to the context that the thread has joined with, for use on this thread.  -1: the thread
 * has failed, or this thread cannot use the context; the exception is set and *OUT is NULL. */
static int take(struct joining *joining, weft_context **out)
{
    weft_status status = joining->status;

    *out = joining->raw;
    if (status != WEFT_OK)
        status = weft_fail(status, "%s", joining->text);
    else
        status = weft_context_bind_thread(*out);
    if (status == WEFT_OK) return 0;
    raise_status(status);
    weft_context_release(out);
    return -1;
}

int join_job(const weft_options *options, PyObject *exchange, weft_context **out)
{
    struct joining *joining = joining_new(options, exchange);
    int result = -1;

    if (joining == NULL) return -1;
    if (start(joining) == 0) {
        bool is_raised = wait_for(joining) < 0;

        if (is_raised && abandon(joining)) return -1;
        pthread_mutex_lock(&joining->lock); /* until the thread has left it */
        pthread_mutex_unlock(&joining->lock);
        if (is_raised)
            weft_context_release(&joining->raw);
        else
            result = take(joining, out);
    }
    joining_free(joining);
    return result;
}
