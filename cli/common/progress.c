/* progress.c - see progress.h.
 *
 * A timer's signal writes the line, so that a command may be busy in one long call meanwhile.  The
 * timer is not inherited by processes that the command forks. */
#include "common/progress.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

enum { FIRST_US = 1000000, AGAIN_US = 250000, LINE_BYTES = 160 };

/* Two lines: one is written by cli_progress while the handler may read the other. */
static char lines[2][LINE_BYTES];
static volatile sig_atomic_t current, shown;
static bool running;
static uint64_t begun_ns;

static void put(const char *text, size_t length)
{
    if (write(STDERR_FILENO, text, length) < 0) shown = 0;
}

static void on_timer(int number)
{
    static const char begin[] = "\r\033[K";
    const char *line = lines[current];
    int error = errno;

    (void)number;
    if (line[0] != '\0') {
        shown = 1;
        put(begin, sizeof begin - 1);
        put(line, strnlen(line, LINE_BYTES));
    }
    errno = error;
}

void cli_progress_begin(void)
{
    struct sigaction action = {.sa_handler = on_timer, .sa_flags = SA_RESTART};
    struct itimerval timer = {.it_value = {.tv_sec = FIRST_US / 1000000},
                              .it_interval = {.tv_usec = AGAIN_US}};

    if (running || !isatty(STDERR_FILENO)) return;
    begun_ns = wf_now_ns();
    lines[0][0] = lines[1][0] = '\0';
    sigaction(SIGALRM, &action, NULL);
    running = setitimer(ITIMER_REAL, &timer, NULL) == 0;
}

/* Show the line FORMAT and, behind it, TAIL. */
static void change(const char *format, va_list args, const char *tail)
{
    int next = 1 - current;
    size_t length;

    vsnprintf(lines[next], LINE_BYTES, format, args);
    length = strlen(lines[next]);
    snprintf(lines[next] + length, LINE_BYTES - length, "%s", tail);
    current = next;
}

void cli_progress(const char *format, ...)
{
    va_list args;

    if (!running) return;
    va_start(args, format);
    change(format, args, "");
    va_end(args);
}

void cli_progress_of(uint64_t done, uint64_t total, const char *format, ...)
{
    double seconds = (double)(wf_now_ns() - begun_ns) / 1e9;
    char left[48] = "";
    va_list args;

    if (!running) return;
    if (done > 0 && done <= total && done >= total / 100)
        snprintf(left, sizeof left, ", about %.0f s left",
                 seconds / (double)done * (double)(total - done));
    va_start(args, format);
    change(format, args, left);
    va_end(args);
}

void cli_progress_clear(void)
{
    static const char clear[] = "\r\033[K";

    if (!shown) return;
    put(clear, sizeof clear - 1);
    shown = 0;
}

void cli_progress_end(void)
{
    struct itimerval none = {.it_value = {.tv_sec = 0}};

    if (!running) return;
    setitimer(ITIMER_REAL, &none, NULL);
    signal(SIGALRM, SIG_DFL);
    running = false;
    cli_progress_clear();
}
