/* children.h - processes that the tool starts, and the signals that reach the tool meanwhile.
 *
 * The tool may have threads that it did not create, because a library that is preloaded (a
 * profiler, a sanitizer) starts some.  Any thread may take a signal, so signals have handlers,
 * which work in any thread.  A child gets the signal mask and the actions with which the tool was
 * started. */
#ifndef WEFT_CLI_CHILDREN_H
#define WEFT_CLI_CHILDREN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Call HANDLER (or SIG_IGN, SIG_DFL) at signal NUMBER, which stays ignored if the tool was started
 * so. Interrupted calls are continued. */
void cli_signal_set(int number, void (*handler)(int));

/* From now on note the signals of NUMBERS, even if the tool was started with them blocked; those
 * that it was started to ignore stay ignored, except SIGCHLD.  Returns a descriptor that poll finds
 * readable when a signal has been noted, or -1 with errno.  Once in a process. */
int cli_signals_note(const int *numbers, size_t count);

/* A signal that was noted since the last call, or 0.  Signals with the same number may be noted as
 * one. Call it until it returns 0. */
int cli_signals_next(void);

/* Like fork.  The child is killed when the tool ends.  The end of a child can be waited for, also
 * if the tool was started to ignore SIGCHLD. */
pid_t cli_fork(void);

/* Wait for the end of a child of cli_fork.  Returns its status as waitpid gives it. */
int cli_wait(pid_t child);

#endif
