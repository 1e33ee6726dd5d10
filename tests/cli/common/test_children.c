/* Signals that reach the tool in any thread, and processes that it starts. */
#include "common/children.h"

#include "support/suite.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LIMIT_MS = 60000 };

/* The descriptor of all cases.  The process looks as if it was started with SIGCHLD and SIGHUP
 * ignored, and with SIGUSR2 blocked. */
static int descriptor(void)
{
    static const int numbers[] = {SIGCHLD, SIGHUP, SIGTERM, SIGUSR1, SIGUSR2};
    static const int defaults[] = {SIGTERM, SIGUSR1, SIGUSR2, SIGPIPE};
    static int fd = -1;
    sigset_t set;

    if (fd >= 0) return fd;
    for (size_t i = 0; i < sizeof defaults / sizeof defaults[0]; i++)
        signal(defaults[i], SIG_DFL); /* Check handles some */
    signal(SIGCHLD, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    pthread_sigmask(SIG_SETMASK, &set, NULL);
    fd = cli_signals_note(numbers, sizeof numbers / sizeof numbers[0]);
    ck_assert_int_ge(fd, 0);
    return fd;
}

static int await_signal(void)
{
    struct pollfd waiting = {.fd = descriptor(), .events = POLLIN};
    int count;

    do
        count = poll(&waiting, 1, LIMIT_MS);
    while (count < 0 && errno == EINTR);
    ck_assert_int_eq(count, 1);
    return cli_signals_next();
}

/* In poll, because ThreadSanitizer lets handlers run there, and not in read. */
static void *pause_until_told(void *told)
{
    struct pollfd waiting = {.fd = *(const int *)told, .events = POLLIN};

    while (poll(&waiting, 1, -1) < 0 && errno == EINTR)
        continue;
    return NULL;
}

TEST(a_signal_that_another_thread_takes_is_noted)
{
    sigset_t set, before;
    pthread_t thread;
    int told[2];

    (void)descriptor();
    ck_assert_int_eq(pipe(told), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, pause_until_told, &told[0]), 0);
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &set, &before); /* so that the other thread takes them */
    ck_assert_int_eq(kill(getpid(), SIGTERM), 0);
    ck_assert_int_eq(await_signal(), SIGTERM);
    ck_assert_int_eq(cli_signals_next(), 0);
    ck_assert_int_eq(kill(getpid(), SIGUSR1), 0);
    ck_assert_int_eq(await_signal(), SIGUSR1);
    ck_assert_int_eq(cli_signals_next(), 0);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    close(told[1]);
    pthread_join(thread, NULL);
    close(told[0]);
}

TEST(a_signal_that_was_blocked_is_noted)
{
    (void)descriptor();
    raise(SIGUSR2);
    ck_assert_int_eq(await_signal(), SIGUSR2);
    ck_assert_int_eq(cli_signals_next(), 0);
}

TEST(a_signal_that_was_ignored_stays_ignored)
{
    (void)descriptor();
    raise(SIGHUP);
    cli_signal_set(SIGHUP, SIG_DFL);
    raise(SIGHUP);
    ck_assert_int_eq(cli_signals_next(), 0);
}

static bool does(int number, void (*handler)(int))
{
    struct sigaction now;

    return sigaction(number, NULL, &now) == 0 && now.sa_handler == handler;
}

TEST(a_child_has_the_mask_and_the_actions_of_the_start)
{
    pid_t child;

    (void)descriptor();
    cli_signal_set(SIGPIPE, SIG_IGN);
    child = cli_fork();
    if (child == 0) {
        sigset_t mask;
        bool is_so = does(SIGTERM, SIG_DFL) && does(SIGUSR1, SIG_DFL) && does(SIGPIPE, SIG_DFL) &&
                     does(SIGCHLD, SIG_IGN) && does(SIGHUP, SIG_IGN);

        pthread_sigmask(SIG_SETMASK, NULL, &mask);
        for (int number = 1; number < SIGRTMIN; number++)
            is_so = is_so && (sigismember(&mask, number) == 1) == (number == SIGUSR2);
        _exit(is_so ? 0 : 1);
    }
    ck_assert_int_gt(child, 0);
    ck_assert_int_eq(cli_wait(child), 0);
    ck_assert_int_eq(await_signal(), SIGCHLD);
}

TEST(the_status_of_a_child_is_known_though_sigchld_was_ignored)
{
    pid_t child = cli_fork();
    int status;

    if (child == 0) _exit(7);
    ck_assert_int_gt(child, 0);
    status = cli_wait(child);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 7);
}
