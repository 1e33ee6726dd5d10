/* log.c - one line per event, to standard error. */
#include "base.h"

#include <stdatomic.h>
#include <stdio.h>

static atomic_int limit = WF_LOG_NOTICE;
static _Thread_local char thread_prefix[32];

static const char *const level_names[] = {"error", "warning", "notice", "info", "debug"};

void wf_log_set_level(int level)
{
    if (level >= WF_LOG_ERROR && level <= WF_LOG_DEBUG) atomic_store(&limit, level);
}

int wf_log_level(void)
{
    return atomic_load(&limit);
}

void wf_log_set_prefix(const char *prefix)
{
    snprintf(thread_prefix, sizeof thread_prefix, "%s%s", prefix != NULL ? prefix : "",
             prefix != NULL ? ": " : "");
}

void wf_log(int level, const char *format, ...)
{
    char line[2304];
    va_list args;
    int used;

    if (level < WF_LOG_ERROR || level > wf_log_level()) return;
    used = snprintf(line, sizeof line, "weft: %s%s: ", thread_prefix, level_names[level]);
    if (used < 0) return;
    va_start(args, format);
    vsnprintf(line + used, sizeof line - (size_t)used, format, args);
    va_end(args);
    fprintf(stderr, "%s\n", line); /* one call, so that lines of different threads do not mix */
}
