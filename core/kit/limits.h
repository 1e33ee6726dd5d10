/* limits.h - the process's limits. */
#ifndef WEFT_KIT_LIMITS_H
#define WEFT_KIT_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

/* The bytes that a file or a piece of shared memory of this process may have (RLIMIT_FSIZE,
 * ulimit -f); UINT64_MAX without a limit.  Beyond it, SIGXFSZ ends the process: compare before a
 * file grows.  A signal handler may call it. */
uint64_t kit_file_limit(void);

/* What to do about a limit of the process that caused ERROR, an errno value or the result of
 * pthread_create: "; raise the limit of open files, which is 24 (ulimit -n)".  "" if no such limit
 * is set.  It knows EMFILE, ENFILE, EFBIG, ENOMEM (address space) and EAGAIN, which it takes for a
 * thread or a process that cannot start.  The text is the thread's, until its next call. */
const char *kit_limit_text(int error);

/* strerror(ERROR), followed by kit_limit_text(ERROR).  The text is the thread's, until its next
 * call. */
const char *kit_error_text(int error);

#endif
