/* wrong_ignores_abort.c - an abort that does nothing.
 * Runs: --only errors/abort/idle
 * Fails: errors/abort/idle */
#include "wrong.h"

static void abort_comm(void *comm)
{
    (void)comm;
}

INSTALL(wrong.comm.abort = abort_comm)
