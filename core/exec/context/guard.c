/* guard.c - a guard that is held: who may still enter. */
#include "guard.h"

#include "carrier.h"

static weft_status refuse(const struct wf_moves *moves, const char *function)
{
    bool mine = atomic_load_explicit(&moves->holder, memory_order_relaxed) == wf_thread();

    return wf_fail(WEFT_ERR_INVALID,
                   "%s: %s thread is moving tensors of this context or applying an operator to "
                   "them; only one thread at a time may call the functions of weft/move.h, "
                   "weft/apply.h and weft/phases.h on a context%s",
                   function, mine ? "this" : "another",
                   mine ? ", and callbacks of a move may not call them" : "");
}

/* True if the calling thread is in a call of an operator that makes no move just now. */
static bool may_nest(const struct wf_moves *moves)
{
    return atomic_load_explicit(&moves->holder, memory_order_relaxed) == wf_thread() &&
           moves->applying > 0 && !moves->moving;
}

weft_status wf_guard_enter_move(struct wf_moves *moves, const char *function)
{
    if (!may_nest(moves)) return refuse(moves, function);
    moves->moving = true;
    return WEFT_OK;
}

weft_status wf_applying_enter(weft_context *context, const char *function)
{
    struct wf_moves *moves;

    WF_TRY(wf_context_check(context, function));
    moves = &wf_exec_state(context)->moves;
    if (!wf_guard_take(moves) && !may_nest(moves)) return refuse(moves, function);
    moves->applying++;
    return WEFT_OK;
}

bool wf_applying_leave(weft_context *context)
{
    struct wf_moves *moves = &wf_exec_state(context)->moves;

    if (moves->applying == 0) return false;
    if (--moves->applying == 0) wf_guard_drop(moves);
    return true;
}

weft_status wf_moves_enter(weft_context *context, const char *function)
{
    WF_TRY(wf_context_check(context, function));
    return wf_guard_move(&wf_exec_state(context)->moves, function);
}

weft_status wf_moves_leave(weft_context *context, weft_status status)
{
    wf_guard_moved(&wf_exec_state(context)->moves);
    return status;
}
