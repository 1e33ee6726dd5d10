/* progress.h - one line on standard error that says how far a command is.
 *
 * It appears only on a terminal, and only after a second.  One command uses it at a time, from one
 * thread.  Text that the command prints meanwhile must be preceded by cli_progress_clear. */
#ifndef WEFT_CLI_COMMON_PROGRESS_H
#define WEFT_CLI_COMMON_PROGRESS_H

#include "base/base.h"

void cli_progress_begin(void);
/* Change the line; printf's arguments.  Without effect before begin and after end. */
void cli_progress(const char *format, ...) WF_PRINTF(1, 2);
/* The same, with an estimate of the time left: DONE of TOTAL equal parts of the command's work are
 * done. */
void cli_progress_of(uint64_t done, uint64_t total, const char *format, ...) WF_PRINTF(3, 4);
/* Take the line away until it appears again. */
void cli_progress_clear(void);
void cli_progress_end(void);

#endif
