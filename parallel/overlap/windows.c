/* windows.c - pieces that travel through symmetric memory.
 *
 * A rank puts its pieces straight to their place in the memory of their target, and signals each.
 * The memory has two halves, which calls use in turn: call n may write to a half when its reader
 * has ended call n - 2.  So no call needs a barrier.
 *
 * The signal of a piece is the number of the call, the number of the piece, and the token of the
 * call.  A wait does not compare the token, and the last piece always has the largest number.  So
 * ranks that make different calls still reach the end of their waits.  They compare the tokens when
 * all pieces have arrived. */
#include "overlap.h"

enum { PIECES /* and the next one, for the other half */, ENDED = 2 };
enum { LAST = 0xffff };

static uint32_t channel_of(const struct wf_overlap_run *run)
{
    return PIECES + (uint32_t)(run->overlap->calls % 2);
}

/* Without the token. */
static uint64_t signal_of(const struct wf_overlap_run *run, int32_t chunk)
{
    uint64_t number = chunk + 1 == run->chunks ? LAST : (uint64_t)chunk + 1;

    return run->overlap->calls << 32 | number << 16;
}

static weft_status post(struct wf_overlap_run *run, int32_t step, int32_t chunk, const void *memory)
{
    weft_overlap *o = run->overlap;
    int32_t peer = wf_overlap_after(run, step);
    struct wf_overlap_piece piece = wf_overlap_sent(run, step, chunk);
    uint64_t signal = signal_of(run, chunk) | run->token;

    if (chunk == 0 && o->calls > 2)
        WF_TRY(
            weft_symm_wait_from(o->symm, peer, ENDED, WEFT_COMPARE_GE, o->calls - 2, 0, o->side));
    if (chunk > 0) WF_TRY(weft_symm_fence(o->symm, o->side));
    if (piece.bytes == 0)
        return weft_symm_signal_to(o->symm, peer, channel_of(run), signal, WEFT_SIGNAL_SET,
                                   o->side);
    return weft_symm_put_signal_to(o->symm, memory, peer,
                                   wf_overlap_slot(run, o->rank) + piece.offset, piece.bytes,
                                   channel_of(run), signal, WEFT_SIGNAL_SET, o->side);
}

static weft_status arrive(struct wf_overlap_run *run, int32_t step, int32_t chunk)
{
    weft_overlap *o = run->overlap;
    int32_t peer = wf_overlap_before(run, step);
    weft_stream *stream = o->by_streams ? run->stream : NULL;
    weft_status status = weft_symm_wait_from(o->symm, peer, channel_of(run), WEFT_COMPARE_GE,
                                             signal_of(run, chunk), 0, stream);

    if (status == WEFT_OK && !o->by_streams) status = wf_overlap_sync(o, NULL);
    if (status != WEFT_ERR_TIMEOUT) return status;
    return wf_fail_context(status,
                           "chunk %d of rank %d of %s is missing: that rank has not made the "
                           "call, or has made it without chunks",
                           chunk, peer, weft_comm_name(o->comm));
}

/* The last signal of PEER in this call has come.  PEER cannot signal for the next use of this half
 * before this rank has ended the call. */
static weft_status compare_calls(const struct wf_overlap_run *run, int32_t peer)
{
    const weft_overlap *o = run->overlap;
    uint64_t wanted = signal_of(run, run->chunks - 1) | run->token;
    weft_status status =
        weft_symm_test_from(o->symm, peer, channel_of(run), WEFT_COMPARE_EQ, wanted);

    if (status != WEFT_IN_PROGRESS) return status;
    return wf_fail(WEFT_ERR_MISMATCH,
                   "ranks %d and %d of %s make different calls; rows, width, dtype, chunks and the "
                   "function must be the same",
                   o->rank, peer, weft_comm_name(o->comm));
}

static weft_status end(struct wf_overlap_run *run)
{
    weft_overlap *o = run->overlap;
    weft_stream *stream = o->by_streams ? o->side : NULL;

    for (int32_t step = 1; step < o->ranks; step++)
        WF_TRY(compare_calls(run, wf_overlap_before(run, step)));
    for (int32_t step = 1; step < o->ranks; step++)
        WF_TRY(weft_symm_signal_to(o->symm, wf_overlap_after(run, step), ENDED, o->calls,
                                   WEFT_SIGNAL_SET, stream));
    return o->by_streams ? WEFT_OK : wf_overlap_sync(o, NULL);
}

const struct wf_overlap_way wf_overlap_windows = {post, arrive, end};
