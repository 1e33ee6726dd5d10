/* simulated.c - moves between ranks that are simulated in this process: sim.c carries out the plan
 * for all of them, with the arithmetic of gloo-cpu. */
#include "carrier.h"
#include "kept.h"

#include "base/range.h"

#include <string.h>

static const void *const *sources_of(const weft_move_item *item)
{
    return item->source;
}

static void *const *targets_of(const weft_move_item *item)
{
    return item->target;
}

/* True if some rank's target overlaps its source. */
static bool overlaps(const weft_move_item *item)
{
    const weft_mesh *from = item->from->layout.mesh, *to = item->to->layout.mesh;

    for (int32_t i = 0; i < from->size; i++) {
        int32_t rank = weft_mesh_rank_at(from, i), position = wf_mesh_index(to, rank);

        if (position >= 0 &&
            wf_ranges_overlap(sources_of(item)[i], weft_spec_shard_bytes(item->from, rank),
                              targets_of(item)[position], weft_spec_shard_bytes(item->to, rank)))
            return true;
    }
    return false;
}

static uint64_t bytes_of(const weft_spec *spec)
{
    const weft_mesh *mesh = spec->layout.mesh;
    uint64_t bytes = 0;

    for (int32_t i = 0; i < mesh->size; i++)
        bytes += weft_spec_shard_bytes(spec, weft_mesh_rank_at(mesh, i));
    return bytes;
}

/* Shards of all ranks of a tensor, copied. */
struct copies {
    const void **at;
    char *memory;
};

static void free_copies(struct copies *copies)
{
    wf_free(copies->at);
    wf_free(copies->memory);
    *copies = (struct copies){0};
}

static weft_status copy_sources(const weft_move_item *item, struct copies *out)
{
    const weft_mesh *mesh = item->from->layout.mesh;
    uint64_t bytes = bytes_of(item->from), done = 0;

    out->at = wf_calloc((size_t)mesh->size, sizeof *out->at);
    out->memory = wf_alloc(bytes > 0 ? bytes : 1);
    if (out->at == NULL || out->memory == NULL) {
        free_copies(out);
        return wf_fail_memory((size_t)bytes);
    }
    for (int32_t i = 0; i < mesh->size; i++) {
        uint64_t some = weft_spec_shard_bytes(item->from, weft_mesh_rank_at(mesh, i));

        if (some == 0) continue;
        memcpy(out->memory + done, sources_of(item)[i], some);
        out->at[i] = out->memory + done;
        done += some;
    }
    return WEFT_OK;
}

/* Carry out KEPT's plan for ITEMS.  COPIES has room for one entry per item. */
static weft_status run(struct wf_kept_move *kept, const weft_move_item *items,
                       struct copies *copies)
{
    for (uint32_t i = 0; i < kept->count; i++) {
        kept->sources[i] = items[i].source;
        kept->targets[i] = items[i].target;
        if (!overlaps(&items[i])) continue;
        WF_TRY(copy_sources(&items[i], &copies[i]));
        kept->sources[i] = copies[i].at;
    }
    return weft_simulate(kept->plan, (const void *const *const *)kept->sources,
                         (void *const *const *)kept->targets);
}

/* The record of a move is complete when the call returns.  It has the bytes of all ranks. */
static struct wf_submitted record(weft_context *context, const struct wf_kept_move *kept,
                                  const weft_move_item *items, const struct wf_moving *how)
{
    const char *made_for = how != NULL ? how->made_for : NULL;
    struct wf_trace *trace = context->trace;
    weft_record draft = {
        .comm = context->world->number,
        .plan = kept->plan->digest,
        .operation = WEFT_RECORD_REDISTRIBUTE,
        .step_kind = WEFT_NO_STEP_KIND,
        .flags = wf_exec_state(context)->moves.implicit ? WEFT_RECORD_IMPLICIT : 0,
        .peer = -1,
        .comm_name = context->world->name_text,
        .label = wf_label_intern(trace, made_for,
                                 kept->count == 1 || made_for == NULL ? items[0].name : NULL),
    };

    for (uint32_t i = 0; i < kept->count; i++) {
        draft.sent += bytes_of(items[i].from);
        draft.received += bytes_of(items[i].to);
    }
    return wf_trace_submit(trace, NULL, WF_CALL_REDISTRIBUTES, &draft);
}

static weft_status move_all(weft_context *context, uint32_t count, const weft_move_item *items,
                            const struct wf_moving *how, weft_stream *stream, weft_work **work,
                            const char *function)
{
    struct wf_kept_move *kept = NULL;
    struct wf_submitted submitted;
    struct copies *copies;
    weft_status status;

    WF_TRY(wf_stream_check(context, stream, function));
    WF_TRY(wf_moves_find(context, count, items, how, function, &kept));
    WF_TRY(context->plugin->device->stream_wait(context->device, stream, WEFT_FOREVER));
    copies = wf_calloc(count, sizeof *copies);
    if (copies == NULL) return wf_fail_memory(count * sizeof *copies);
    submitted = record(context, kept, items, how);
    status = run(kept, items, copies);
    wf_trace_return(context->trace);
    if (status == WEFT_OK)
        wf_trace_finish(context->trace, submitted);
    else
        status = wf_trace_fail(context->trace, submitted, status);
    for (uint32_t i = 0; i < count; i++)
        free_copies(&copies[i]);
    wf_free(copies);
    if (status == WEFT_OK && work != NULL) status = wf_work_record(context, stream, function, work);
    return status;
}

static weft_status move_batch(weft_context *context, uint32_t count, const weft_move_item *items,
                              struct wf_list_memo *memo, const struct wf_moving *how,
                              weft_stream *stream, weft_work **work, const char *function)
{
    struct wf_moves *moves = &wf_exec_state(context)->moves;
    weft_status status;

    (void)memo;
    WF_TRY(wf_moves_enter(context, function));
    moves->implicit = how != NULL && how->is_implicit;
    status = move_all(context, count, items, how, stream, work, function);
    moves->implicit = false;
    return wf_moves_leave(context, wf_fail_named(status, function));
}

static weft_status move_one(weft_context *context, const weft_move_item *item,
                            const struct wf_moving *how, weft_stream *stream, weft_work **work,
                            const char *function)
{
    return move_batch(context, 1, item, NULL, how, stream, work, function);
}

static weft_status agree(weft_context *context, const weft_spec *from, const weft_spec *to,
                         const char *function, weft_status status, weft_blob blob,
                         struct wf_gathered *out)
{
    *out = (struct wf_gathered){0};
    WF_TRY(wf_bind_check(function, from, to, context->world));
    return wf_comm_agree(context->world, function, status, blob, out);
}

/* No other process waits for this one. */
static weft_status give_up(weft_context *context, weft_status status, const char *function)
{
    (void)context;
    return wf_fail_named(status, function);
}

const struct wf_carrier wf_carrier_simulated = {move_one, move_batch, agree, give_up};
