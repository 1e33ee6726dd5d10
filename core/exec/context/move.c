/* move.c - moves: one tensor, or a batch.
 *
 * A move from the cache is a lookup and a run.  A guard keeps a second thread out. */
#include "carrier.h"
#include "guard.h"

#include "exec/run/run.h"

#include <stdio.h>

static inline weft_status enter(weft_context *context, const char *function)
{
    WF_TRY(wf_context_check(context, function));
    return wf_guard_move(&wf_exec_state(context)->moves, function);
}

static inline weft_status leave(weft_context *context, weft_status status)
{
    wf_guard_moved(&wf_exec_state(context)->moves);
    return status;
}

/* Ranks that are simulated have no memory of one rank. */
static weft_status refuse_simulated(const weft_context *context, const char *function)
{
    return wf_fail(WEFT_ERR_UNSUPPORTED,
                   "%s: the %d ranks of this context are simulated in one process, so there is no "
                   "memory of one rank; move tensors (weft_tensors_move_into)",
                   function, context->size);
}

/* ---- streams ---- */

/* True if KEPT has moved on STREAM before.  If streams have ended since then, STREAM may be another
 * one at the same address, which is not remembered. */
static inline bool is_stream_of(const weft_context *context, const struct wf_kept_move *kept,
                                const weft_stream *stream)
{
    return kept->stream == stream &&
           kept->streams_ended ==
               atomic_load_explicit(&wf_exec_state(context)->streams_ended, memory_order_relaxed);
}

/* KEPT moves on STREAM, and has moved on another one before, or not yet.  Its runs use the same
 * lists and, if the host averages, the same host memory, so they run one after the other. */
static weft_status change_stream(weft_context *context, struct wf_kept_move *kept,
                                 weft_stream *stream, const char *function)
{
    uint64_t ended =
        atomic_load_explicit(&wf_exec_state(context)->streams_ended, memory_order_relaxed);
    weft_work *work = NULL;
    weft_status status = wf_stream_remember(context, stream);

    if (status == WEFT_OK && kept->streams_ended != 0 && kept->stream != stream)
        status = wf_stream_record(context, kept->stream, function, &work);
    if (status == WEFT_OK && work != NULL) status = weft_stream_wait_work(stream, work);
    weft_work_release(&work);
    if (status != WEFT_OK) return wf_run_give_up(kept->bound, status, function);
    kept->stream = stream;
    kept->streams_ended = ended;
    return WEFT_OK;
}

/* This rank has no part in the move. */
static weft_status skip(weft_context *context, weft_stream *stream, weft_work **work,
                        const char *function)
{
    return work != NULL ? wf_work_record(context, stream, function, work) : WEFT_OK;
}

/* ---- one tensor ---- */

static inline struct wf_kept_move *find_one(const struct wf_moves *moves, uint64_t hash,
                                            const weft_spec *from, const weft_spec *to)
{
    struct wf_kept_move *kept;

    if (moves->buckets == NULL) return NULL;
    kept = moves->buckets[hash & moves->mask];
    while (kept != NULL && !(kept->pairs[0] == from && kept->pairs[1] == to && kept->key == 1))
        kept = kept->next;
    return kept;
}

static weft_status require_spec(const weft_spec *spec, const char *side, const char *function)
{
    char what[64];

    if (wf_is_kind(spec, WF_KIND_SPEC)) return WEFT_OK;
    snprintf(what, sizeof what, "%s: %s", function, side);
    return wf_refuse_kind(spec, WF_KIND_SPEC, what);
}

/* A move with options, or one that is not in the cache.  *OUT is NULL if this rank has no part. */
static weft_status find_other(weft_context *context, const weft_move_item *item,
                              const struct wf_moving *how, const char *what,
                              struct wf_kept_move **out)
{
    WF_TRY(require_spec(item->from, "from", what));
    WF_TRY(require_spec(item->to, "to", what));
    return wf_moves_find(context, 1, item, how, what, out);
}

/* The next records of BOUND are of the tensor NAME, which may be NULL. */
static inline void label(weft_bound *bound, const struct wf_moving *how, const char *name)
{
    const char *made_for = how != NULL ? how->made_for : NULL;
    struct wf_trace *trace = wf_tracing(bound);

    if (name == NULL && made_for == NULL && !bound->is_labelled) return;
    if (trace != NULL) wf_drafts_label(trace, bound, made_for, name);
}

static inline __attribute__((always_inline)) weft_status
move_one(weft_context *context, const weft_move_item *item, const struct wf_moving *how,
         weft_stream *stream, weft_work **work, const char *what)
{
    uint64_t hash = wf_move_hash(1, item->from, item->to);
    const void *source = item->source;
    void *target = item->target;
    struct wf_kept_move *kept = NULL;
    weft_bound *bound;
    weft_status status;

    WF_TRY(wf_stream_check(context, stream, what));
    if (__builtin_expect(how == NULL, 1))
        kept = find_one(&wf_exec_state(context)->moves, hash, item->from, item->to);
    if (__builtin_expect(kept == NULL, 0)) {
        WF_TRY(find_other(context, item, how, what, &kept));
        if (kept == NULL) return skip(context, stream, work, what);
    }
    bound = kept->bound;
    if (bound->examined || !wf_buffers_fit(bound->parent, &bound->memory, source, target, true))
        WF_TRY(wf_buffers_check(what, bound, &source, &target, NULL));
    if (__builtin_expect(!is_stream_of(context, kept, stream), 0))
        WF_TRY(change_stream(context, kept, stream, what));
    WF_TRY(wf_scratch_enter(bound, stream,
                            source != target ? 0 : wf_run_room(bound, source, target), what));
    label(bound, how, item->name);
    status = wf_run_one(bound, source, target, wf_scratch_extra(bound), stream, work, what);
    wf_scratch_leave(bound);
    return status;
}

/* With options: records of the move say whether the caller asked for it. */
static __attribute__((noinline)) weft_status
move_one_as(weft_context *context, const weft_move_item *item, const struct wf_moving *how,
            weft_stream *stream, weft_work **work, const char *what)
{
    struct wf_moves *moves = &wf_exec_state(context)->moves;
    weft_status status;

    moves->implicit = how->is_implicit;
    status = move_one(context, item, how, stream, work, what);
    moves->implicit = false;
    return status;
}

static WF_HOT weft_status carry_one(weft_context *context, const weft_move_item *item,
                                    const struct wf_moving *how, weft_stream *stream,
                                    weft_work **work, const char *function)
{
    WF_TRY(enter(context, function));
    if (__builtin_expect(how != NULL, 0))
        return leave(context, move_one_as(context, item, how, stream, work, function));
    return leave(context, move_one(context, item, NULL, stream, work, function));
}

/* ---- a batch ---- */

enum { HASHED_ITEMS = 8 };

static weft_status check_spec(const weft_move_item *item, uint32_t index, const char *side,
                              const weft_spec *spec)
{
    char what[192];

    if (wf_is_kind(spec, WF_KIND_SPEC)) return WEFT_OK;
    if (item->name != NULL)
        snprintf(what, sizeof what, "weft_move: tensor %.100s: items[%u].%s", item->name, index,
                 side);
    else
        snprintf(what, sizeof what, "weft_move: items[%u].%s", index, side);
    return wf_refuse_kind(spec, WF_KIND_SPEC, what);
}

static weft_status check_items(uint32_t count, const weft_move_item *items)
{
    for (uint32_t i = 0; i < count; i++) {
        WF_TRY(check_spec(&items[i], i, "from", items[i].from));
        WF_TRY(check_spec(&items[i], i, "to", items[i].to));
    }
    return WEFT_OK;
}

static bool is_same_choice(const weft_plan_options *a, const weft_plan_options *b)
{
    return a->memory_limit == b->memory_limit && a->minimize == b->minimize &&
           a->planner == b->planner && a->without == b->without &&
           weft_cost_table_digest(a->costs) == weft_cost_table_digest(b->costs);
}

static bool has_items(const struct wf_kept_move *kept, uint32_t count, const weft_move_item *items,
                      const struct wf_moving *how)
{
    uintptr_t differing = 0; /* without a branch per item */

    if (kept->key != wf_move_key(count, how)) return false;
    for (uint32_t i = 0; i < count; i++)
        differing |= ((uintptr_t)kept->pairs[2 * i] ^ (uintptr_t)items[i].from) |
                     ((uintptr_t)kept->pairs[2 * i + 1] ^ (uintptr_t)items[i].to);
    return differing == 0 &&
           (how == NULL || !how->is_chosen || is_same_choice(&kept->choice, &how->plan));
}

weft_status wf_moves_find(weft_context *context, uint32_t count, const weft_move_item *items,
                          const struct wf_moving *how, const char *function,
                          struct wf_kept_move **out)
{
    const struct wf_moves *moves = &wf_exec_state(context)->moves;
    struct wf_kept_move *kept = NULL;
    uint64_t hash = count;

    /* Some items suffice to find a list that has_items compares whole. */
    for (uint32_t i = 0; i < count; i += count / HASHED_ITEMS + 1)
        hash = wf_move_hash(hash, items[i].from, items[i].to);
    if (moves->buckets != NULL) kept = moves->buckets[hash & moves->mask];
    while (kept != NULL && !has_items(kept, count, items, how))
        kept = kept->next;
    if (kept == NULL) return wf_moves_add(context, count, items, how, hash, function, out);
    *out = kept;
    return WEFT_OK;
}

/* Bytes for a copy of each source that needs one; they are used one after the other. */
static uint64_t batch_room(const weft_bound *bound, const void *const *sources,
                           void *const *targets)
{
    uint64_t most = 0;

    if (bound->batch == NULL) return wf_run_room(bound, sources[0], targets[0]);
    for (uint32_t i = 0; i < bound->plan->member_count; i++) {
        const weft_bound *alone = bound->batch->alone[i];
        uint64_t bytes = alone != NULL ? wf_run_room(alone, sources[i], targets[i]) : 0;

        if (bytes > most) most = bytes;
    }
    return most;
}

/* Find the bound plan of ITEMS and give it their memory.  *OUT is NULL if this rank has no part in
 * the move.  Set *IN_PLACE if a source is its target. */
static weft_status prepare_batch(weft_context *context, uint32_t count, const weft_move_item *items,
                                 struct wf_list_memo *memo, const struct wf_moving *how,
                                 const char *what, bool *in_place, struct wf_kept_move **out)
{
    const struct wf_moves *moves = &wf_exec_state(context)->moves;
    struct wf_kept_move *kept = NULL;
    bool same = false;

    WF_TRY(wf_moves_find(context, count, items, how, what, &kept));
    *out = kept;
    if (kept == NULL) return WEFT_OK;
    for (uint32_t i = 0; i < count; i++) {
        kept->sources[i] = items[i].source;
        kept->targets[i] = items[i].target;
        same |= items[i].source == items[i].target;
    }
    *in_place = same;
    kept->memo = same ? NULL : memo;
    if (kept->memo != NULL) *memo = (struct wf_list_memo){kept, moves->ended};
    return WEFT_OK;
}

/* The bound plan that has the memory of the list with MEMO, from its last move; NULL: none. */
static inline struct wf_kept_move *find_prepared(const weft_context *context,
                                                 const struct wf_list_memo *memo)
{
    struct wf_kept_move *kept = memo != NULL ? memo->kept : NULL;

    if (kept == NULL || memo->ended != wf_exec_state(context)->moves.ended) return NULL;
    return kept->memo == memo ? kept : NULL;
}

static weft_status move_batch(weft_context *context, uint32_t count, const weft_move_item *items,
                              struct wf_list_memo *memo, const struct wf_moving *how,
                              weft_stream *stream, weft_work **work, const char *what)
{
    struct wf_kept_move *kept = find_prepared(context, memo);
    bool again = kept != NULL, in_place = false;
    weft_bound *bound;
    weft_status status;

    WF_TRY(wf_stream_check(context, stream, what));
    if (!again) WF_TRY(prepare_batch(context, count, items, memo, how, what, &in_place, &kept));
    if (kept == NULL) return skip(context, stream, work, what);
    bound = kept->bound;
    if (!wf_batch_fits(bound, kept->sources, kept->targets, true))
        WF_TRY(wf_buffers_check(what, bound, kept->sources, kept->targets, items));
    if (!is_stream_of(context, kept, stream)) WF_TRY(change_stream(context, kept, stream, what));
    WF_TRY(wf_scratch_enter(bound, stream,
                            in_place ? batch_room(bound, kept->sources, kept->targets) : 0, what));
    if (bound->batch != NULL) {
        bound->batch->named = items;
        bound->batch->made_for = how != NULL ? how->made_for : NULL;
        if (!again || how != NULL) bound->batch->is_labelled = false;
    } else {
        label(bound, how, items->name);
    }
    status = wf_batch_run(bound, kept->sources, kept->targets, wf_scratch_extra(bound), stream,
                          work, what);
    if (bound->batch != NULL) {
        bound->batch->named = NULL;
        bound->batch->made_for = NULL;
    }
    wf_scratch_leave(bound);
    return status;
}

static weft_status carry_batch(weft_context *context, uint32_t count, const weft_move_item *items,
                               struct wf_list_memo *memo, const struct wf_moving *how,
                               weft_stream *stream, weft_work **work, const char *function)
{
    struct wf_moves *moves = &wf_exec_state(context)->moves;
    weft_status status;

    WF_TRY(enter(context, function));
    if (how != NULL) moves->implicit = how->is_implicit;
    status = move_batch(context, count, items, memo, how, stream, work, function);
    moves->implicit = false;
    return leave(context, status);
}

/* ---- with the caller's memory ---- */

weft_status wf_moving_read(const weft_move_options *options, const char *function,
                           struct wf_moving *room, const struct wf_moving **out)
{
    weft_move_options given = {0};
    weft_status status;

    *out = NULL;
    if (options == NULL) return WEFT_OK;
    status = wf_options_read("weft_move_options", options, &given, sizeof given);
    if (status == WEFT_OK)
        status = wf_plan_check_choice("weft_move_options", given.minimize, given.planner);
    if (status != WEFT_OK) return wf_fail_named(status, function);
    *room = (struct wf_moving){.plan = {.struct_size = sizeof room->plan,
                                        .minimize = given.minimize,
                                        .planner = given.planner,
                                        .memory_limit = given.memory_limit,
                                        .costs = given.costs,
                                        .without = given.without},
                               .is_implicit = given.implicit,
                               .made_for = given.made_for};
    room->is_chosen = given.minimize != 0 || given.planner != 0 || given.memory_limit != 0 ||
                      given.costs != NULL || given.without != 0;
    *out = room;
    return WEFT_OK;
}

static weft_status move_items(weft_context *context, uint32_t count, const weft_move_item *items,
                              const struct wf_moving *how, weft_stream *stream, weft_work **work)
{
    weft_status status;

    WF_TRY(check_items(count, items));
    WF_TRY(wf_context_check(context, "weft_move"));
    if (context->is_simulated) return refuse_simulated(context, "weft_move");
    if (count > 1) return carry_batch(context, count, items, NULL, how, stream, work, "weft_move");
    status = carry_one(context, items, how, stream, work, "weft_move");
    return wf_fail_tensor(status, "weft_move", "tensor", items->name);
}

/* Moves that the first lines of weft_move do not make. */
static weft_status move_any(weft_context *context, size_t count, const weft_move_item *items,
                            size_t item_size, const weft_move_options *options, weft_stream *stream,
                            weft_work **work)
{
    const struct wf_moving *how = NULL;
    struct wf_moving room;
    void *copy = NULL;
    weft_status status;

    if (items == NULL) return wf_fail_null("weft_move", "items");
    if (count == 0 || count > INT32_MAX)
        return wf_fail(WEFT_ERR_INVALID, "weft_move: count is %zu; expected 1 to %d", count,
                       INT32_MAX);
    WF_TRY(wf_moving_read(options, "weft_move", &room, &how));
    status = wf_items_read("weft_move_item", count, items, item_size, sizeof *items, &copy);
    if (status != WEFT_OK) return wf_fail_named(status, "weft_move");
    status = move_items(context, (uint32_t)count, copy != NULL ? copy : items, how, stream, work);
    wf_free(copy);
    return status;
}

WF_HOT weft_status weft_move(weft_context *context, size_t count, const weft_move_item *items,
                             size_t item_size, const weft_move_options *options,
                             weft_stream *stream, weft_work **work)
{
    if (__builtin_expect(count != 1 || items == NULL || items->name != NULL ||
                             item_size != sizeof *items || options != NULL,
                         0))
        return move_any(context, count, items, item_size, options, stream, work);
    WF_TRY(enter(context, "weft_move"));
    return leave(context, context->is_simulated
                              ? refuse_simulated(context, "weft_move")
                              : move_one(context, items, NULL, stream, work, "weft_move"));
}

static weft_status agree(weft_context *context, const weft_spec *from, const weft_spec *to,
                         const char *function, weft_status status, weft_blob blob,
                         struct wf_gathered *out)
{
    *out = (struct wf_gathered){0};
    WF_TRY(enter(context, function));
    return leave(context, wf_moves_agree(context, from, to, function, status, blob, out));
}

/* The world communicator fails, as for a run without scratch. */
static weft_status give_up(weft_context *context, weft_status status, const char *function)
{
    weft_comm *world = context->world;
    char text[sizeof world->cause_text];

    if (world->size == 1 || wf_comm_has_failed(world)) return wf_fail_named(status, function);
    snprintf(text, sizeof text, "%s: rank %d failed: %.600s", function, context->rank,
             weft_last_error());
    wf_comm_fail(world, status, text);
    if (context->client != NULL)
        wf_client_abort(context->client, world->number, world->world_ranks, world->size,
                        WEFT_ERR_ABORTED, text);
    return wf_comm_cause(world);
}

const struct wf_carrier wf_carrier_real = {carry_one, carry_batch, agree, give_up};

const struct wf_carrier *wf_carrier_of(const weft_context *context)
{
    return wf_exec_state(context)->carrier;
}

/* ---- the cache ---- */

weft_status weft_context_plan(weft_context *context, const weft_spec *from, const weft_spec *to,
                              const weft_plan_options *options, weft_plan **out)
{
    weft_status status;

    WF_TRY(wf_require_kind(from, WF_KIND_SPEC, "weft_context_plan: from"));
    WF_TRY(wf_require_kind(to, WF_KIND_SPEC, "weft_context_plan: to"));
    if (out == NULL) return wf_fail_null("weft_context_plan", "out");
    WF_TRY(enter(context, "weft_context_plan"));
    status = wf_moves_plan(context, from, to, options, out);
    if (status != WEFT_OK) status = wf_fail_context(status, "weft_context_plan");
    return leave(context, status);
}

static weft_status clear(weft_context *context)
{
    struct wf_gathered got;
    weft_status status = wf_comm_agree(context->world, "weft_move_clear", wf_moves_wait(context),
                                       (weft_blob){"", 0}, &got);

    if (status != WEFT_OK) return wf_fail_named(status, "weft_move_clear");
    wf_gathered_free(&got);
    wf_moves_drop(context);
    wf_pools_trim(context);
    return WEFT_OK;
}

weft_status weft_move_clear(weft_context *context)
{
    struct wf_submitted record;

    WF_TRY(enter(context, "weft_move_clear"));
    record = wf_record_creation(context->world, WEFT_RECORD_RELEASE, "weft_move_clear", NULL, 0);
    return leave(context, wf_record_created(context->world, record, clear(context)));
}

weft_status weft_move_get(weft_context *context, weft_move_info *out)
{
    struct wf_exec_state *state;
    weft_move_info info = {0};

    if (out == NULL) return wf_fail_null("weft_move_get", "out");
    WF_TRY(enter(context, "weft_move_get"));
    state = wf_exec_state(context);
    info.bound = (uint32_t)state->moves.kept;
    info.bound_max = state->moves.most;
    info.bound_total = state->moves.bound;
    info.evicted_total = state->moves.evicted;
    pthread_mutex_lock(&state->lock);
    info.scratch_bytes = state->scratch_bytes;
    pthread_mutex_unlock(&state->lock);
    return leave(context, wf_info_write("weft_move_info", &info, sizeof info, out));
}
