/* log.h - lines that weft logs: to standard error, or to a function of the program.
 *
 *     static void to_engine(void *engine, enum weft_log_level level, const char *text) { ... }
 *
 *     weft_log_to(to_engine, engine);
 *     weft_log_set_level(WEFT_LOG_INFO);
 *
 * The log belongs to the process, not to a context: weft also logs before a context exists. */
#ifndef WEFT_LOG_H
#define WEFT_LOG_H

#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum weft_log_level {
    WEFT_LOG_ERROR,
    WEFT_LOG_WARNING,
    WEFT_LOG_NOTICE, /* the default level */
    WEFT_LOG_INFO,
    WEFT_LOG_DEBUG
};

/* TEXT is one line, or a few, without an end of line; it is valid during the call.  A line from
 * weft's own thread for a rank begins with the rank: "rank 3: ".  Called by any thread, also by
 * several at once, and with locks of weft held: it must not call functions that take a context or
 * an object of one, nor weft_log_to.  A line that weft logs on a thread while that thread runs the
 * sink goes to standard error. */
typedef void (*weft_log_sink)(void *user, enum weft_log_level level, const char *text);

/* Pass every line to SINK with USER from now on, instead of to standard error.  NULL: to
 * standard error again.  When it returns, the sink before is not running and is not called again.
 * The line about a dump that SIGUSR1 requested always goes to standard error, because a signal
 * handler may not call a sink.  [any thread] */
WEFT_API void weft_log_to(weft_log_sink sink, void *user);

/* Log lines up to LEVEL, for sink and standard error alike.  It replaces the value of WEFT_LOG.
 * Other values than those above are ignored.  [any thread] */
WEFT_API void weft_log_set_level(enum weft_log_level level);

/* The level: that of weft_log_set_level, else that of WEFT_LOG, which weft_init reads.
 * [any thread] */
WEFT_API enum weft_log_level weft_log_level(void);

#ifdef __cplusplus
}
#endif
#endif
