/* children.c - see children.h. */
#include "common/children.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

_Static_assert(ATOMIC_BOOL_LOCK_FREE == 2 && ATOMIC_INT_LOCK_FREE == 2, "handlers use both");

/* What the tool was started with. */
static struct sigaction first_actions[NSIG];
static bool is_changed[NSIG];
static sigset_t first_mask;
static bool is_mask_changed;

static atomic_bool noted[NSIG];
static atomic_int wake_fd = -1;

/* ---- signals ---- */

static void change(int number, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART}, before;

    sigemptyset(&action.sa_mask);
    if (sigaction(number, &action, &before) != 0 || is_changed[number]) return;
    first_actions[number] = before;
    is_changed[number] = true;
}

static bool is_ignored(int number)
{
    struct sigaction now;

    return sigaction(number, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

void cli_signal_set(int number, void (*handler)(int))
{
    if (!is_ignored(number)) change(number, handler);
}

/* Runs in any thread.  The descriptor is written after the note, and cli_signals_next reads them in
 * the opposite order, so that no note is left without a wake-up. */
static void note(int number)
{
    uint64_t one = 1;
    int error = errno;
    ssize_t put;

    atomic_store(&noted[number], true);
    put = write(wake_fd, &one, sizeof one);
    (void)put; /* it fails if the descriptor is readable and its count is at its limit */
    errno = error;
}

int cli_signals_note(const int *numbers, size_t count)
{
    sigset_t set;

    wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wake_fd < 0) return -1;
    sigemptyset(&set);
    for (size_t i = 0; i < count; i++) {
        if (numbers[i] == SIGCHLD)
            change(SIGCHLD, note);
        else
            cli_signal_set(numbers[i], note);
        sigaddset(&set, numbers[i]);
    }
    pthread_sigmask(SIG_UNBLOCK, &set, &first_mask);
    is_mask_changed = true;
    return wake_fd;
}

int cli_signals_next(void)
{
    uint64_t count;

    if (read(wake_fd, &count, sizeof count) < 0) count = 0;
    for (int number = 1; number < NSIG; number++)
        if (atomic_exchange(&noted[number], false)) return number;
    return 0;
}

/* ---- children ---- */

/* The kernel drops the status of children whose parent ignores their end. */
static void heed_children(void)
{
    struct sigaction now;

    if (sigaction(SIGCHLD, NULL, &now) != 0) return;
    if (now.sa_handler == SIG_IGN || (now.sa_flags & SA_NOCLDWAIT) != 0) change(SIGCHLD, SIG_DFL);
}

static void restore_actions(void)
{
    for (int number = 1; number < NSIG; number++)
        if (is_changed[number]) sigaction(number, &first_actions[number], NULL);
}

pid_t cli_fork(void)
{
    pid_t parent = getpid(), pid;
    sigset_t all, mask;
    int error;

    heed_children();
    /* A signal that the child gets early waits until the child has its actions. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &mask);
    pid = fork();
    error = errno;
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(EXIT_FAILURE);
        restore_actions();
        if (is_mask_changed) mask = first_mask;
    }
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    errno = error;
    return pid;
}

int cli_wait(pid_t child)
{
    int status = 0;

    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    return status;
}
