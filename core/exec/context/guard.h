/* guard.h - one thread at a time moves tensors of a context or applies operators to them.  A call
 * of an operator may make moves, and its kernel may apply further operators.  Nothing else nests.
 */
#ifndef WEFT_EXEC_CONTEXT_GUARD_H
#define WEFT_EXEC_CONTEXT_GUARD_H

#include "kept.h"

/* The guard is held.  Let the holder make moves within its call of an operator. */
weft_status wf_guard_enter_move(struct wf_moves *moves, const char *function) WF_NODISCARD;

static inline bool wf_guard_take(struct wf_moves *moves)
{
    const void *none = NULL;

    return __builtin_expect(
        atomic_compare_exchange_strong_explicit(&moves->holder, &none, wf_thread(),
                                                memory_order_acquire, memory_order_relaxed),
        1);
}

static inline void wf_guard_drop(struct wf_moves *moves)
{
    atomic_store_explicit(&moves->holder, NULL, memory_order_release);
}

static inline weft_status wf_guard_move(struct wf_moves *moves, const char *function)
{
    return wf_guard_take(moves) ? WEFT_OK : wf_guard_enter_move(moves, function);
}

static inline void wf_guard_moved(struct wf_moves *moves)
{
    if (moves->applying > 0)
        moves->moving = false;
    else
        wf_guard_drop(moves);
}

#endif
