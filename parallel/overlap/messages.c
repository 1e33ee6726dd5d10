/* messages.c - pieces that travel as messages: one call group per piece that is sent and piece that
 * is received.  The tag tells a gather from a reduce-scatter: where backends have tags, a rank that
 * gathers does not take what another rank has produced for a sum. */
#include "overlap.h"

static weft_work **work_of(const struct wf_overlap_run *run, int32_t step, int32_t chunk)
{
    return &run->overlap->works[(step - 1) * run->chunks + chunk];
}

static weft_status post_messages(struct wf_overlap_run *run, int32_t step, int32_t chunk,
                                 const void *memory)
{
    weft_overlap *o = run->overlap;
    struct wf_overlap_piece sent = wf_overlap_sent(run, step, chunk),
                            got = wf_overlap_got(run, step, chunk);
    int32_t source = wf_overlap_before(run, step);
    uint64_t width = (uint64_t)run->call.width;
    uint32_t tag = run->is_gather ? 0 : 1;
    enum weft_dtype dtype = (enum weft_dtype)run->call.dtype;

    if (sent.bytes > 0)
        WF_TRY(weft_send(o->comm, memory, (uint64_t)sent.count * width, dtype,
                         wf_overlap_after(run, step), tag, o->side));
    if (got.bytes == 0) return WEFT_OK;
    return weft_receive(o->comm, o->memory + wf_overlap_slot(run, source) + got.offset,
                        (uint64_t)got.count * width, dtype, source, tag, o->side);
}

static weft_status post(struct wf_overlap_run *run, int32_t step, int32_t chunk, const void *memory)
{
    weft_overlap *o = run->overlap;
    weft_status status, ended;

    WF_TRY(weft_group_begin(o->comm));
    status = post_messages(run, step, chunk, memory);
    ended = weft_group_end(o->comm);
    WF_TRY(status);
    WF_TRY(ended);
    return weft_work_record(o->context, o->side, work_of(run, step, chunk));
}

static weft_status arrive(struct wf_overlap_run *run, int32_t step, int32_t chunk)
{
    return wf_overlap_await(run->overlap, run->stream, work_of(run, step, chunk));
}

static weft_status end(struct wf_overlap_run *run)
{
    (void)run; /* the next receives are posted after this call */
    return WEFT_OK;
}

const struct wf_overlap_way wf_overlap_messages = {post, arrive, end};
