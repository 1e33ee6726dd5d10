/* signal.c - SIGUSR1 writes the dumps of all ranks of the process.
 *
 * The handler calls the one that was there before it.  It is installed with the first trace and
 * removed with the last, unless the program has replaced it: then the program's handler may call
 * it.  If the program has set SIG_DFL or SIG_IGN, that stays until a first trace comes again. */
#include "dump.h"

#include <errno.h>
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
static _Atomic uint64_t rounds;  /* how often a handler has written the list */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of what follows */
static uint32_t trace_count;
static bool is_installed;
static struct sigaction previous; /* constant while the handler is installed */

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

/* One line on standard error, without stdio.  The stack of a handler may be small. */
static void tell(const struct wf_dump *dump)
{
    static char line[3 * WF_DUMP_PATH];
    struct wf_phrase phrase = {line, sizeof line, 0};
    bool failed = dump->error != 0;

    if (wf_log_level() < (failed ? WF_LOG_WARNING : WF_LOG_NOTICE)) return;
    wf_phrase_add(&phrase, failed ? "weft: warning: SIGUSR1: " : "weft: notice: SIGUSR1: ");
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
    if (!wf_stderr_fits(phrase.used)) return;
    if (write(STDERR_FILENO, line, phrase.used) < 0) return; /* there is nobody to tell */
}

/* Write all traces, unless another thread is writing them. */
static void write_all(void)
{
    static struct wf_dump dump;
    int32_t pid = (int32_t)getpid(), writer = atomic_load(&handling);

    if (writer == pid || !atomic_compare_exchange_strong(&handling, &writer, pid)) return;
    for (size_t i = 0; i < TRACES; i++) {
        struct wf_trace *trace = atomic_load(&traces[i]);

        /* A fork has neither the recorders nor the ranks. */
        if (trace == NULL || trace->dump_pid != pid) continue;
        wf_dump_write(&dump, trace, trace->dump_prefix);
        tell(&dump);
    }
    atomic_fetch_add(&rounds, 1);
    atomic_store(&handling, 0);
}

static bool is_function(const struct sigaction *action)
{
    return action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN;
}

static void handle(int number, siginfo_t *info, void *machine)
{
    int kept = errno;

    write_all();
    errno = kept;
    if (!is_function(&previous)) return;
    if ((previous.sa_flags & SA_SIGINFO) != 0)
        previous.sa_sigaction(number, info, machine);
    else
        previous.sa_handler(number);
}

/* ---- the list ---- */

/* A handler that has replaced this one may call it, and must not be called by it. */
static void install(void)
{
    struct sigaction action = {.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK}, now;

    if (sigaction(SIGUSR1, NULL, &now) != 0 || (is_installed && is_function(&now))) return;
    previous = now;
    action.sa_sigaction = handle;
    action.sa_mask = previous.sa_mask;
    is_installed = sigaction(SIGUSR1, &action, NULL) == 0;
}

static void uninstall(void)
{
    struct sigaction now;

    if (!is_installed || sigaction(SIGUSR1, NULL, &now) != 0) return;
    if ((now.sa_flags & SA_SIGINFO) == 0 || now.sa_sigaction != handle) return;
    is_installed = sigaction(SIGUSR1, &previous, NULL) != 0;
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
        if (trace_count++ == 0) install();
    }
    pthread_mutex_unlock(&lock);
}

/* Wait for a handler that runs now, not for later ones. */
static void wait_for_handler(void)
{
    uint64_t round = atomic_load(&rounds);

    while (atomic_load(&handling) == (int32_t)getpid() && atomic_load(&rounds) == round)
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
}

void wf_signal_forget(struct wf_trace *trace)
{
    wait_for_handler(); /* it may not have written this trace yet */
    pthread_mutex_lock(&lock);
    for (size_t at = 0; at < TRACES; at++) {
        if (atomic_load(&traces[at]) != trace) continue;
        if (--trace_count == 0) uninstall();
        atomic_store(&traces[at], NULL);
    }
    pthread_mutex_unlock(&lock);
    wait_for_handler();
}
