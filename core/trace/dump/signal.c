/* signal.c - SIGUSR1 and SIGTERM write the dumps of all ranks of the process.
 *
 * The handler calls the one that was there before it; without one, SIGTERM then ends the process.
 * It is installed with the first trace and removed with the last, unless the program has replaced
 * it: then the program's handler may call it.  If the program has set SIG_DFL or SIG_IGN, that
 * stays until a first trace comes again.  A SIGTERM that is ignored then stays ignored. */
#include "dump.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TRACES 1024

/* A trace is watched while it is in the list.  The handler sets `handling` before it reads the
 * list, and wf_signal_forget clears the entry before it reads `handling`; both are sequentially
 * consistent, so at least one of them sees the other. */
static _Atomic(struct wf_trace *) traces[TRACES];
static _Atomic int32_t handling; /* the process in which a handler writes: a fork copies it */
static _Atomic uint64_t rounds;  /* how often a handler was in it */

/* SIGTERM may end the process at any time behind its handler.  No handler begins to write then, or
 * the files that it makes would stay.  A process that survives, because the program's handler
 * jumps out of it, writes again after QUIET_NS. */
#define QUIET_NS UINT64_C(10000000000)
static _Atomic uint64_t quiet_until;   /* time; SIGUSR1 writes nothing before */
static _Atomic uint64_t written_until; /* time; SIGTERM writes nothing before, as it has written */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of what follows */
static uint32_t trace_count;
static struct watched {
    int number;
    const char *name;
    bool is_installed;
    struct sigaction previous; /* constant while the handler is installed */
} signals[] = {{.number = SIGUSR1, .name = "SIGUSR1"}, {.number = SIGTERM, .name = "SIGTERM"}};

/* ---- the handler ---- */

/* strerror may take locks and allocate. */
static void add_error(struct wf_phrase *phrase, int error)
{
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 32)
    const char *text = strerrordesc_np(error);

    if (text != NULL) {
        wf_phrase_add(phrase, text);
        return;
    }
#endif
    wf_phrase_add(phrase, "error number ");
    wf_phrase_add_decimal(phrase, error);
}

/* True if a line of BYTES can be written to standard error without a wait and without SIGPIPE. */
static bool can_write(size_t bytes)
{
    struct pollfd out = {.fd = STDERR_FILENO, .events = POLLOUT};

    return bytes <= PIPE_BUF && poll(&out, 1, 0) == 1 && out.revents == POLLOUT;
}

/* One line on standard error, without stdio.  The stack of a handler may be small. */
static void tell(const struct wf_dump *dump, const char *name)
{
    static char line[3 * WF_DUMP_PATH];
    struct wf_phrase phrase = {line, sizeof line, 0};
    bool failed = dump->error != 0;

    if (wf_log_level() < (failed ? WF_LOG_WARNING : WF_LOG_NOTICE)) return;
    wf_phrase_add(&phrase, failed ? "weft: warning: " : "weft: notice: ");
    wf_phrase_add(&phrase, name);
    wf_phrase_add(&phrase, ": ");
    if (failed) {
        wf_phrase_add(&phrase, dump->error_path);
        wf_phrase_add(&phrase, " cannot be written: ");
        add_error(&phrase, dump->error);
    } else {
        wf_phrase_add(&phrase, "the last ");
        wf_phrase_add_decimal(&phrase, (int64_t)(dump->last + 1 - dump->first));
        wf_phrase_add(&phrase, " operations of rank ");
        wf_phrase_add_decimal(&phrase, dump->trace->segment->rank);
        wf_phrase_add(&phrase, " are in ");
        wf_phrase_add(&phrase, dump->pickle_path);
        wf_phrase_add(&phrase, " and ");
        wf_phrase_add(&phrase, dump->json_path);
    }
    wf_phrase_add(&phrase, "\n");
    if (!wf_stderr_fits(phrase.used) || !can_write(phrase.used)) return;
    if (write(STDERR_FILENO, line, phrase.used) < 0) return; /* there is nobody to tell */
}

/* Take the place of the thread that writes.  False if another one has it: at once, or if WAITS
 * after some seconds, as the other may never return. */
static bool enter(bool waits)
{
    enum { TRIES = 20000 };
    int32_t pid = (int32_t)getpid();

    for (int i = 0; i < TRIES; i++) {
        int32_t writer = atomic_load(&handling);

        if (writer != pid && atomic_compare_exchange_strong(&handling, &writer, pid)) return true;
        if (!waits) return false;
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    }
    return false;
}

static void write_list(const char *name)
{
    static struct wf_dump dump;

    for (size_t i = 0; i < TRACES; i++) {
        struct wf_trace *trace = atomic_load(&traces[i]);

        /* A fork has neither the recorders nor the ranks. */
        if (trace == NULL || trace->dump_pid != atomic_load(&handling)) continue;
        wf_dump_write(&dump, trace, trace->dump_prefix);
        tell(&dump, name);
    }
}

/* Write all traces.  SIGUSR1 does not if another thread writes them. */
static void write_all(const struct watched *signal)
{
    bool ends = signal->number == SIGTERM;
    uint64_t now = wf_now_ns();

    if (ends) atomic_store(&quiet_until, now + QUIET_NS);
    if (!enter(ends)) return;
    if (now >= atomic_load(ends ? &written_until : &quiet_until)) write_list(signal->name);
    if (ends) atomic_store(&written_until, now + QUIET_NS);
    atomic_fetch_add(&rounds, 1);
    atomic_store(&handling, 0);
}

/* Block the signals whose handlers could jump out of this one while it writes. */
static void block_signals(sigset_t *before)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};
    sigset_t all;

    sigfillset(&all);
    for (size_t i = 0; i < WF_COUNT(faults); i++)
        sigdelset(&all, faults[i]);
    pthread_sigmask(SIG_SETMASK, &all, before);
}

static bool is_function(const struct sigaction *action)
{
    return action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN;
}

/* Wait for a handler that runs now, not for later ones. */
static void wait_for_handler(void)
{
    uint64_t round = atomic_load(&rounds);

    while (atomic_load(&handling) == (int32_t)getpid() && atomic_load(&rounds) == round)
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
}

static struct watched *find_signal(int number)
{
    struct watched *found = signals;

    while (found->number != number)
        found++;
    return found;
}

static void set_default(int number)
{
    sigaction(number, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
}

/* A program's handler may end the process: dumps that another thread writes come first. */
static void handle(int number, siginfo_t *info, void *machine)
{
    const struct watched *signal = find_signal(number);
    const struct sigaction *previous = &signal->previous;
    int kept = errno;
    sigset_t before;

    block_signals(&before);
    write_all(signal);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = kept;
    if (is_function(previous)) {
        if (((unsigned)previous->sa_flags & SA_RESETHAND) != 0) set_default(number);
        if ((previous->sa_flags & SA_SIGINFO) != 0)
            previous->sa_sigaction(number, info, machine);
        else
            previous->sa_handler(number);
        if (number == SIGTERM) { /* the process continues */
            atomic_store(&quiet_until, 0);
            atomic_store(&written_until, 0);
        }
    } else if (number == SIGTERM) { /* ends the process when this handler returns */
        set_default(number);
        raise(number);
    }
}

/* ---- the list ---- */

/* A handler that has replaced this one may call it, and must not be called by it.  Calls are
 * restarted, and the stack is chosen, as for the handler before this one. */
static void install(struct watched *signal)
{
    struct sigaction action = {.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK}, now;

    if (sigaction(signal->number, NULL, &now) != 0) return;
    if (signal->is_installed && is_function(&now)) return;
    if (signal->number == SIGTERM && now.sa_handler == SIG_IGN) return;
    signal->previous = now;
    if (is_function(&now))
        action.sa_flags = SA_SIGINFO | (now.sa_flags & (SA_RESTART | SA_ONSTACK));
    action.sa_sigaction = handle;
    action.sa_mask = now.sa_mask;
    for (size_t i = 0; i < WF_COUNT(signals); i++)
        sigaddset(&action.sa_mask, signals[i].number);
    signal->is_installed = sigaction(signal->number, &action, NULL) == 0;
}

static void uninstall(struct watched *signal)
{
    struct sigaction now;

    if (!signal->is_installed || sigaction(signal->number, NULL, &now) != 0) return;
    if ((now.sa_flags & SA_SIGINFO) == 0 || now.sa_sigaction != handle) return;
    signal->is_installed = sigaction(signal->number, &signal->previous, NULL) != 0;
}

void wf_signal_watch(struct wf_trace *trace)
{
    size_t at = 0;

    trace->dump_pid = (int32_t)getpid();
    pthread_mutex_lock(&lock);
    while (at < TRACES && atomic_load(&traces[at]) != NULL)
        at++;
    if (at < TRACES) {
        atomic_store(&traces[at], trace);
        for (size_t i = 0; trace_count == 0 && i < WF_COUNT(signals); i++)
            install(&signals[i]);
        trace_count++;
    }
    pthread_mutex_unlock(&lock);
}

void wf_signal_forget(struct wf_trace *trace)
{
    wait_for_handler(); /* it may not have written this trace yet */
    pthread_mutex_lock(&lock);
    for (size_t at = 0; at < TRACES; at++) {
        if (atomic_load(&traces[at]) != trace) continue;
        trace_count--;
        for (size_t i = 0; trace_count == 0 && i < WF_COUNT(signals); i++)
            uninstall(&signals[i]);
        atomic_store(&traces[at], NULL);
    }
    pthread_mutex_unlock(&lock);
    wait_for_handler();
}
