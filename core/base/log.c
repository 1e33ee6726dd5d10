/* log.c - one line per event, to standard error or to the program's sink. */
#include "base.h"

#include "kit/limits.h"
#include "weft/extend.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert((int)WEFT_LOG_ERROR == (int)WF_LOG_ERROR && (int)WEFT_LOG_DEBUG == (int)WF_LOG_DEBUG,
               "the levels have the same numbers");

static atomic_int limit = WF_LOG_NOTICE;
static atomic_bool is_chosen; /* by weft_log_set_level */
static _Thread_local char thread_prefix[32];

/* Held for reading while the sink runs. */
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static weft_log_sink sink;
static void *sink_argument;
static _Thread_local bool in_sink;

static const char *const level_names[] = {"error", "warning", "notice", "info", "debug"};

static bool is_level(int level)
{
    return level >= WF_LOG_ERROR && level <= WF_LOG_DEBUG;
}

void wf_log_set_level(int level)
{
    if (is_level(level) && !atomic_load(&is_chosen)) atomic_store(&limit, level);
}

int wf_log_level(void)
{
    return atomic_load(&limit);
}

void weft_log_set_level(enum weft_log_level level)
{
    if (!is_level((int)level)) return;
    atomic_store(&is_chosen, true);
    atomic_store(&limit, (int)level);
}

enum weft_log_level weft_log_level(void)
{
    return (enum weft_log_level)wf_log_level();
}

void weft_log_to(weft_log_sink new_sink, void *argument)
{
    pthread_rwlock_wrlock(&lock);
    sink = new_sink;
    sink_argument = argument;
    pthread_rwlock_unlock(&lock);
}

void wf_log_set_prefix(const char *prefix)
{
    snprintf(thread_prefix, sizeof thread_prefix, "%s%s", prefix != NULL ? prefix : "",
             prefix != NULL ? ": " : "");
}

bool wf_stderr_fits(size_t bytes)
{
    struct stat file;
    off_t end;

    if (fstat(STDERR_FILENO, &file) != 0 || !S_ISREG(file.st_mode)) return true;
    end = lseek(STDERR_FILENO, 0, SEEK_CUR); /* beyond the size, if the file was cut */
    if (end < file.st_size) end = file.st_size;
    return (uint64_t)end + bytes <= kit_file_limit();
}

/* Pass TEXT to the sink; false without a sink. */
static bool give_to_sink(int level, const char *text)
{
    bool given = false;

    if (in_sink) return false;
    pthread_rwlock_rdlock(&lock);
    if (sink != NULL) {
        in_sink = given = true;
        sink(sink_argument, (enum weft_log_level)level, text);
        in_sink = false;
    }
    pthread_rwlock_unlock(&lock);
    return given;
}

static void log_line(int level, const char *format, va_list args)
{
    char text[2304];
    int used;

    if (!is_level(level) || level > wf_log_level()) return;
    used = snprintf(text, sizeof text, "%s", thread_prefix);
    if (used < 0) return;
    kit_printv(text + used, sizeof text - (size_t)used, format, args);
    if (give_to_sink(level, text)) return;
    if (!wf_stderr_fits(strlen("weft: warning: \n") + strlen(text))) return;
    /* one call, so that lines of different threads do not mix */
    fprintf(stderr, "weft: %s%s: %s\n", thread_prefix, level_names[level], text + used);
}

void wf_log(int level, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    log_line(level, format, args);
    va_end(args);
}

void weft_log(enum weft_log_level level, const char *format, ...)
{
    va_list args;

    if (format == NULL) return;
    va_start(args, format);
    log_line((int)level, format, args);
    va_end(args);
}
