/* system.c - the clock, errors of system calls, and limits of the process (ulimit). */
#include "base.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

uint64_t wf_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* What each limit makes fail. */
static const struct limit {
    int errors[2];
    __rlimit_resource_t resource;
    const char *before, *after;
    char option;
} limits[] = {
    {{EMFILE, EMFILE}, RLIMIT_NOFILE, "have at most", "open files", 'n'},
    {{EFBIG, EFBIG}, RLIMIT_FSIZE, "write files of at most", "bytes", 'f'},
    /* EAGAIN: a thread whose stack does not fit */
    {{ENOMEM, EAGAIN}, RLIMIT_AS, "have at most", "bytes of address space", 'v'},
    {{ENOMEM, EAGAIN}, RLIMIT_DATA, "have at most", "bytes of data", 'd'},
};

void wf_limit_text(int error, char *out, size_t bytes)
{
    struct rlimit value;

    out[0] = '\0';
    for (size_t i = 0; i < WF_COUNT(limits); i++) {
        const struct limit *limit = &limits[i];
        if ((limit->errors[0] != error && limit->errors[1] != error) ||
            getrlimit(limit->resource, &value) != 0 || value.rlim_cur == RLIM_INFINITY)
            continue;
        snprintf(out, bytes, "; this process may %s %" PRIu64 " %s (ulimit -%c): raise the limit",
                 limit->before, (uint64_t)value.rlim_cur, limit->after, limit->option);
        return;
    }
}

const char *wf_errno_text(int error)
{
    static _Thread_local char text[256];
    char limit[160];

    wf_limit_text(error, limit, sizeof limit);
    if (limit[0] == '\0') return strerror(error);
    snprintf(text, sizeof text, "%.90s%s", strerror(error), limit);
    return text;
}
