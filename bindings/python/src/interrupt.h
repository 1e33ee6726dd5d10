/* interrupt.h - an interrupt from the keyboard while the main thread waits in a call.
 *
 * Python runs signal handlers between its own instructions, so a thread that waits in C does not
 * see them.  While the main thread waits, a thread of this file watches for SIGINT.  If its handler
 * is Python's own, which raises KeyboardInterrupt, it aborts all contexts: the call then returns,
 * and raise_status raises the exception. */
#ifndef WEFT_PYTHON_INTERRUPT_H
#define WEFT_PYTHON_INTERRUPT_H

#include "binding.h"

/* Contexts that an interrupt aborts.  The GIL is held. */
int interrupt_add(context_object *context);
void interrupt_remove(context_object *context);

/* Around a call that may wait, without the GIL.  IS_MAIN is what interrupt_enter has returned. */
bool interrupt_enter(void);
void interrupt_leave(bool is_main);

#define WAIT_BEGIN Py_BEGIN_ALLOW_THREADS bool is_main = interrupt_enter();
#define WAIT_END                                                                                   \
    interrupt_leave(is_main);                                                                      \
    Py_END_ALLOW_THREADS

#endif
