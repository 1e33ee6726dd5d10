/* windows.c - pieces that travel through symmetric memory.
 *
 * A rank puts its pieces straight to their place in the memory of their target, and signals each.
 * The memory has two halves, which calls use in turn: call n may write to a half when its reader
 * has ended call n - 2.  So no call needs a barrier.  The signal of a piece is the number of the
 * call, the token of the call, and 1 + the number of the chunk. */
#include "overlap.h"

enum { PIECES /* and the next one, for the other half */, ENDED = 2 };

static uint32_t channel_of(const struct wf_overlap_run *run)
{
    return PIECES + (uint32_t)(run->overlap->calls % 2);
}

static uint64_t signal_of(const struct wf_overlap_run *run, uint64_t low)
{
    return run->overlap->calls << 32 | run->token << 16 | low;
}

static weft_status post(struct wf_overlap_run *run, int32_t step, int32_t chunk, const void *memory)
{
    weft_overlap_state *o = run->overlap;
    int32_t peer = wf_overlap_after(run, step);
    struct wf_overlap_piece piece = wf_overlap_sent(run, step, chunk);
    uint64_t signal = signal_of(run, (uint64_t)chunk + 1);

    if (chunk == 0 && o->calls > 2)
        WF_TRY(
            weft_symm_wait_from(o->symm, peer, ENDED, WEFT_COMPARE_GE, o->calls - 2, 0, o->side));
    if (piece.bytes == 0)
        return weft_symm_signal_to(o->symm, peer, channel_of(run), signal, WEFT_SIGNAL_SET,
                                   o->side);
    return weft_symm_put_signal_to(o->symm, memory, peer,
                                   wf_overlap_slot(run, o->comm->rank) + piece.offset, piece.bytes,
                                   channel_of(run), signal, WEFT_SIGNAL_SET, o->side);
}

/* True if the last signal of PEER for this half is COMPARE VALUE. */
static weft_status is_now(const struct wf_overlap_run *run, int32_t peer, enum weft_compare compare,
                          uint64_t value, bool *out)
{
    weft_status status =
        weft_symm_test_from(run->overlap->symm, peer, channel_of(run), compare, value);

    if (status != WEFT_OK && status != WEFT_IN_PROGRESS) return status;
    *out = status == WEFT_OK;
    return WEFT_OK;
}

/* The first signal of PEER in this call has come.  PEER cannot signal for the next use of this half
 * before this rank has ended the call. */
static weft_status compare_calls(const struct wf_overlap_run *run, int32_t peer)
{
    const weft_comm *comm = run->overlap->comm;
    bool above, below;

    WF_TRY(is_now(run, peer, WEFT_COMPARE_GE, signal_of(run, 0), &above));
    WF_TRY(is_now(run, peer, WEFT_COMPARE_LE, signal_of(run, 0xffff), &below));
    if (above && below) return WEFT_OK;
    return wf_fail(WEFT_ERR_MISMATCH,
                   "ranks %d and %d of %s make different calls; rows, width, dtype, chunks and the "
                   "function must be the same",
                   comm->rank, peer, comm->name);
}

static weft_status wait_for(const struct wf_overlap_run *run, int32_t peer, uint64_t value)
{
    weft_overlap_state *o = run->overlap;

    WF_TRY(weft_symm_wait_from(o->symm, peer, channel_of(run), WEFT_COMPARE_GE, value, 0, NULL));
    return wf_overlap_sync(o, NULL);
}

static weft_status arrive(struct wf_overlap_run *run, int32_t step, int32_t chunk)
{
    int32_t peer = wf_overlap_before(run, step);

    if (chunk == 0) {
        WF_TRY(wait_for(run, peer, run->overlap->calls << 32 | 1));
        WF_TRY(compare_calls(run, peer));
    }
    return wait_for(run, peer, signal_of(run, (uint64_t)chunk + 1));
}

static weft_status end(struct wf_overlap_run *run)
{
    weft_overlap_state *o = run->overlap;

    for (int32_t step = 1; step < o->comm->size; step++)
        WF_TRY(weft_symm_signal_to(o->symm, wf_overlap_after(run, step), ENDED, o->calls,
                                   WEFT_SIGNAL_SET, NULL));
    return wf_overlap_sync(o, NULL);
}

const struct wf_overlap_way wf_overlap_windows = {post, arrive, end};
