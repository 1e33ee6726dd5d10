/* plug_limits.h - the process's limits. */
#ifndef WEFT_PLUG_LIMITS_H
#define WEFT_PLUG_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

/* The bytes that a file or a piece of shared memory of this process may have (RLIMIT_FSIZE,
 * ulimit -f); UINT64_MAX without a limit.  Beyond it, SIGXFSZ ends the process: compare before a
 * file grows.  A signal handler may call it. */
uint64_t plug_file_limit(void);

#endif
