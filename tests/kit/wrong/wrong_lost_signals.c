/* wrong_lost_signals.c - adds to a signal by reading and writing it.
 * Runs: --only symm/signal_add --comm-timeout 2
 * Fails: symm/signal_add */
#include "wrong.h"

#include <sched.h>

static weft_status signal_peer(void *window, uint32_t signal, uint64_t value, uint32_t op,
                               int32_t peer, void *stream)
{
    weft_symm_handle handle = {.struct_size = sizeof handle};
    volatile uint64_t *at;
    uint64_t old;

    if (op != WEFT_SIGNAL_ADD) return right.symm.signal(window, signal, value, op, peer, stream);
    right.symm.handle(window, &handle);
    at = &handle.signals[peer][signal];
    old = *at;
    sched_yield();
    *at = old + value;
    return WEFT_OK;
}

INSTALL(wrong.symm.signal = signal_peer)
