/* interrupt.c - see interrupt.h. */
#include "interrupt.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

/* How often the watcher looks whether its handler is still installed, in milliseconds. */
enum { LOOK_MS = 50 };

static struct {
    atomic_int waits; /* calls of the main thread that may wait; at most one but for callbacks */
    _Atomic(void (*)(int)) next; /* the handler before ours */
    int wake;                    /* an eventfd */
    pid_t process;               /* 0: the watcher has not been started */
    context_object *first;       /* under the GIL */
} state = {.wake = -1};

/* ---- the main thread ---- */

/* Only the main thread calls it, so that a store is enough. */
static void count_wait(int change)
{
    int waits = atomic_load_explicit(&state.waits, memory_order_relaxed);

    atomic_store_explicit(&state.waits, waits + change, memory_order_relaxed);
}

bool interrupt_enter(void)
{
    static _Thread_local int known; /* 1: this is the main thread; 2: it is not */

    if (known == 0) known = syscall(SYS_gettid) == getpid() ? 1 : 2;
    if (known == 1) count_wait(1);
    return known == 1;
}

void interrupt_leave(bool is_main)
{
    if (is_main) count_wait(-1);
}

/* ---- the signal ---- */

/* A child of fork has no watcher, and shares the eventfd with its parent. */
static void on_signal(int number)
{
    void (*next)(int) = atomic_load(&state.next);
    uint64_t one = 1;
    int error = errno;

    if (atomic_load(&state.waits) > 0 && getpid() == state.process)
        while (write(state.wake, &one, sizeof one) < 0 && errno == EINTR)
            continue;
    errno = error;
    if (next != NULL) next(number);
}

/* Put on_signal before the handler of Python.  A program without a handler stays without one. */
static void install(void)
{
    struct sigaction now, ours = {.sa_handler = on_signal};

    if (sigaction(SIGINT, NULL, &now) != 0 || (now.sa_flags & SA_SIGINFO) != 0) return;
    if (now.sa_handler == on_signal || now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN)
        return;
    atomic_store(&state.next, now.sa_handler);
    ours.sa_flags = now.sa_flags;
    ours.sa_mask = now.sa_mask;
    (void)sigaction(SIGINT, &ours, NULL);
}

/* ---- the watcher ---- */

/* Whether the program has left SIGINT to Python.  Another handler decides itself what happens. */
static bool raises_interrupt(void)
{
    PyObject *answer = package_call("weft._context", "raises_interrupt", "()");
    bool raises = answer == Py_True;

    PyErr_Clear();
    Py_XDECREF(answer);
    return raises;
}

static void abort_contexts(void)
{
    PyGILState_STATE gil;

    if (!Py_IsInitialized()) return;
    gil = PyGILState_Ensure();
    if (atomic_load(&state.waits) > 0 && raises_interrupt())
        for (context_object *context = state.first; context != NULL; context = context->next)
            weft_context_abort(context->raw);
    PyGILState_Release(gil);
}

static void *watch(void *unused)
{
    struct pollfd wake = {.fd = state.wake, .events = POLLIN};
    uint64_t count;

    (void)unused;
    for (;;) {
        int ready = poll(&wake, 1, atomic_load(&state.waits) > 0 ? LOOK_MS : 4 * LOOK_MS);

        if (ready > 0 && read(state.wake, &count, sizeof count) == sizeof count) abort_contexts();
        if (ready == 0 && atomic_load(&state.waits) > 0) install();
    }
    return NULL;
}

static int start(void)
{
    sigset_t all, before;
    pthread_t thread;
    int error;

    if (state.process == getpid()) return 0;
    state.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (state.wake < 0) {
        PyErr_SetFromErrno(PyExc_OSError);
        return -1;
    }
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&thread, NULL, watch, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error != 0) {
        close(state.wake);
        errno = error;
        PyErr_SetFromErrno(PyExc_OSError);
        return -1;
    }
    pthread_detach(thread);
    state.process = getpid();
    return 0;
}

/* ---- contexts ---- */

int interrupt_add(context_object *context)
{
    if (start() < 0) return -1;
    install();
    context->next = state.first;
    state.first = context;
    return 0;
}

void interrupt_remove(context_object *context)
{
    for (context_object **at = &state.first; *at != NULL; at = &(*at)->next)
        if (*at == context) {
            *at = context->next;
            return;
        }
}
