/* run.c - gather and reduce-scatter, with overlap and without. */
#include "overlap.h"

#include <stdio.h>
#include <string.h>

/* Call the engine's function for PIECE at MEMORY. */
static weft_status compute(const struct wf_overlap_run *run, struct wf_overlap_piece piece,
                           const void *memory)
{
    weft_overlap_rows rows = {sizeof rows, run->overlap->context, run->stream,
                              piece.first, piece.count,           (void *)(uintptr_t)memory};
    uint64_t failures = wf_failure_count();
    weft_status status;

    if (piece.count == 0) return WEFT_OK;
    status = run->compute(run->user, &rows);
    if (status == WEFT_OK) return WEFT_OK;
    return wf_fail_callback(status, failures, run->is_gather ? "consume" : "produce");
}

static const struct wf_overlap_way *way_of(const struct wf_overlap_run *run)
{
    return run->overlap->symm != NULL ? &wf_overlap_windows : &wf_overlap_messages;
}

/* The engine has no work left, all pieces have arrived, and those of this rank have left. */
static weft_status finish(struct wf_overlap_run *run)
{
    weft_overlap *o = run->overlap;

    WF_TRY(wf_overlap_sync(o, run->stream));
    WF_TRY(wf_overlap_sync(o, o->side));
    return way_of(run)->end(run);
}

/* ---- gather ---- */

static weft_status gather(struct wf_overlap_run *run, const char *input)
{
    weft_overlap *o = run->overlap;
    const struct wf_overlap_way *way = way_of(run);

    for (int32_t step = 1; step < o->ranks; step++)
        for (int32_t chunk = 0; chunk < run->chunks; chunk++) {
            uint64_t offset = wf_overlap_sent(run, step, chunk).offset;
            WF_TRY(way->post(run, step, chunk, input == NULL ? NULL : input + offset));
        }
    WF_TRY(compute(run, wf_overlap_share_of(run, o->rank), input));
    for (int32_t step = 1; step < o->ranks; step++)
        for (int32_t chunk = 0; chunk < run->chunks; chunk++) {
            struct wf_overlap_piece piece = wf_overlap_got(run, step, chunk);
            const char *slot = o->memory + wf_overlap_slot(run, wf_overlap_before(run, step));

            WF_TRY(way->arrive(run, step, chunk));
            WF_TRY(compute(run, piece, slot + piece.offset));
        }
    return finish(run);
}

/* Set the counts and offsets of all ranks' rows, in elements. */
static void set_lists(const struct wf_overlap_run *run)
{
    weft_overlap *o = run->overlap;
    uint64_t width = (uint64_t)run->call.width;

    for (int32_t i = 0; i < o->ranks; i++) {
        struct wf_overlap_piece piece = wf_overlap_share_of(run, i);

        o->counts[i] = (uint64_t)piece.count * width;
        o->offsets[i] = (uint64_t)piece.first * width;
    }
}

/* Memory for all rows.  Ranks that are ahead may write to the half of the next call that overlaps,
 * and no rank writes to the half of the last one. */
static char *room_for_all(const struct wf_overlap_run *run)
{
    return run->overlap->memory + wf_overlap_slot(run, 0);
}

static struct wf_overlap_piece all_rows(const struct wf_overlap_run *run)
{
    return (struct wf_overlap_piece){.count = run->call.rows};
}

static weft_status gather_plain(struct wf_overlap_run *run, const char *input)
{
    weft_overlap *o = run->overlap;

    set_lists(run);
    WF_TRY(weft_all_gather_v(o->comm, input, room_for_all(run), o->counts, o->offsets,
                             (enum weft_dtype)run->call.dtype, run->stream));
    WF_TRY(wf_overlap_sync(o, run->stream));
    WF_TRY(compute(run, all_rows(run), room_for_all(run)));
    return wf_overlap_sync(o, run->stream);
}

/* ---- reduce-scatter ---- */

/* What was posted to the stream of the call comes before what is posted to the side stream. */
static weft_status computed(const struct wf_overlap_run *run)
{
    const weft_overlap *o = run->overlap;
    weft_work *work = NULL;

    if (!o->by_streams) return wf_overlap_sync(o, run->stream);
    WF_TRY(weft_work_record(o->context, run->stream, &work));
    return wf_overlap_await(o, o->side, &work);
}

/* Produce the pieces of the other ranks and send them. */
static weft_status produce_others(struct wf_overlap_run *run)
{
    weft_overlap *o = run->overlap;
    int turn = 0;

    for (int32_t step = 1; step < o->ranks; step++)
        for (int32_t chunk = 0; chunk < run->chunks; chunk++, turn ^= 1) {
            WF_TRY(wf_overlap_await(o, run->stream, &o->busy[turn]));
            WF_TRY(compute(run, wf_overlap_sent(run, step, chunk), o->products[turn]));
            WF_TRY(computed(run));
            WF_TRY(way_of(run)->post(run, step, chunk, o->products[turn]));
            WF_TRY(weft_work_record(o->context, o->side, &o->busy[turn]));
        }
    return WEFT_OK;
}

/* Add up what all ranks have produced for CHUNK of this rank's rows, in the order of the ranks.
 * This rank's own part is in OUTPUT. */
static weft_status add_up(struct wf_overlap_run *run, int32_t chunk, char *output)
{
    weft_overlap *o = run->overlap;
    int32_t size = o->ranks, mine = o->rank;
    struct wf_overlap_piece piece = wf_overlap_piece_of(run, mine, chunk);
    size_t count = (size_t)piece.count * (size_t)run->call.width;

    for (int32_t step = 1; step < size; step++)
        WF_TRY(way_of(run)->arrive(run, step, chunk));
    if (count == 0) return WEFT_OK;
    for (int32_t i = 0; i < size; i++)
        o->sources[i] = (i == mine ? output : o->memory + wf_overlap_slot(run, i)) + piece.offset;
    return wf_overlap_add(o, run->call.dtype, (uint32_t)size, count, output + piece.offset,
                          run->stream);
}

static weft_status scatter(struct wf_overlap_run *run, char *output)
{
    weft_overlap *o = run->overlap;

    WF_TRY(produce_others(run));
    WF_TRY(compute(run, wf_overlap_share_of(run, o->rank), output));
    if (!o->by_streams) WF_TRY(wf_overlap_sync(o, run->stream));
    for (int32_t chunk = 0; chunk < run->chunks; chunk++)
        WF_TRY(add_up(run, chunk, output));
    for (int i = 0; i < 2; i++)
        weft_work_release(&o->busy[i]);
    return finish(run);
}

static weft_status scatter_plain(struct wf_overlap_run *run, char *output)
{
    weft_overlap *o = run->overlap;

    WF_TRY(compute(run, all_rows(run), room_for_all(run)));
    set_lists(run);
    WF_TRY(weft_reduce_scatter_v(o->comm, room_for_all(run), output, o->counts, o->offsets,
                                 (enum weft_dtype)run->call.dtype, WEFT_REDUCE_SUM, run->stream));
    return wf_overlap_sync(o, run->stream);
}

/* ---- calls ---- */

/* The communicator has failed, and what was posted with it.  It no longer uses the caller's memory,
 * and the error of the call is the last one. */
static void end_pieces(const struct wf_overlap_run *run, weft_status status)
{
    weft_overlap *o = run->overlap;
    char text[1024];

    snprintf(text, sizeof text, "%s", weft_last_error());
    if (weft_context_wait(o->context, run->stream, WEFT_FOREVER) != WEFT_OK)
        wf_log(WF_LOG_DEBUG, "the engine's work ended: %s", weft_last_error());
    if (weft_context_wait(o->context, o->side, WEFT_FOREVER) != WEFT_OK)
        wf_log(WF_LOG_DEBUG, "pieces ended: %s", weft_last_error());
    for (int i = 0; i < 2; i++)
        weft_work_release(&o->busy[i]);
    for (int32_t i = 0; o->works != NULL && i < (o->ranks - 1) * WEFT_OVERLAP_MAX_CHUNKS; i++)
        weft_work_release(&o->works[i]);
    (void)wf_fail(status, "%s", text);
}

static weft_status run_call(weft_overlap *o, weft_tensor *tensor,
                            const weft_overlap_call_options *options, struct wf_overlap_run *run)
{
    const char *name = run->is_gather ? "input" : "output";
    struct wf_held held;
    weft_status status;

    WF_TRY(wf_overlap_check(o, run->function));
    WF_TRY(wf_held_of(o->context, tensor, !run->is_gather, run->function, name, &held));
    WF_TRY(wf_overlap_prepare(o, weft_tensor_spec(tensor), options, run));
    WF_TRY(wf_held_require_dense(&held, run->function, name));
    if (run->compute == NULL)
        return wf_fail_null(run->function, run->is_gather ? "consume" : "produce");
    WF_TRY(weft_stream_check(o->context, run->stream, run->function));
    WF_TRY(wf_fail_named(weft_comm_async_error(o->comm), run->function));
    status = wf_overlap_sync(o, run->stream);
    if (run->chunks > 0) o->calls++;
    if (status == WEFT_OK && run->is_gather)
        status = run->chunks > 0 ? gather(run, held.memory) : gather_plain(run, held.memory);
    else if (status == WEFT_OK)
        status = run->chunks > 0 ? scatter(run, held.memory) : scatter_plain(run, held.memory);
    if (status == WEFT_OK) return WEFT_OK;
    status = weft_comm_fail(o->comm, run->function, status);
    end_pieces(run, status);
    return status;
}

weft_status weft_overlap_gather(weft_overlap *overlap, weft_tensor *input,
                                const weft_overlap_call_options *options,
                                weft_status (*consume)(void *user, const weft_overlap_rows *rows),
                                void *user, weft_stream *stream)
{
    struct wf_overlap_run run = {.function = "weft_overlap_gather",
                                 .is_gather = true,
                                 .compute = consume,
                                 .user = user,
                                 .stream = stream};

    return run_call(overlap, input, options, &run);
}

weft_status
weft_overlap_reduce_scatter(weft_overlap *overlap, const weft_overlap_call_options *options,
                            weft_status (*produce)(void *user, const weft_overlap_rows *rows),
                            void *user, weft_tensor *output, weft_stream *stream)
{
    struct wf_overlap_run run = {.function = "weft_overlap_reduce_scatter",
                                 .compute = produce,
                                 .user = user,
                                 .stream = stream};

    return run_call(overlap, output, options, &run);
}
