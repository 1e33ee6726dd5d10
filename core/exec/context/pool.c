/* pool.c - scratch that the bound plans of a context share.
 *
 * Bound plans that run on one stream run one after the other, so one piece of memory serves all of
 * them.  Each stream has its own pool with its own piece.  A run holds its pool while it posts its
 * steps: if another thread posts to the same stream at that time, it gets another pool.
 *
 * Binding reserves a piece before it is known on which stream the plan will run.  The first pool
 * that needs such a piece takes it.  A later run allocates only if it is on another stream, or if a
 * move needs room for a copy. */
#include "kept.h"

#include "comm/check.h"

#include <stdio.h>

/* ---- pieces ---- */

static void count_scratch(weft_context *context, uint64_t more, uint64_t less)
{
    struct wf_exec_state *state = wf_exec_state(context);

    state->scratch_bytes += more - less;
    if (context->trace != NULL)
        atomic_store_explicit(&context->trace->scratch, state->scratch_bytes, memory_order_relaxed);
}

static weft_status make_piece(weft_context *context, uint64_t bytes, struct wf_scratch_piece **out)
{
    struct wf_scratch_piece *piece = wf_calloc(1, sizeof *piece);
    weft_status status;

    if (piece == NULL) return wf_fail_memory(sizeof *piece);
    piece->bytes = bytes;
    piece->holders = 1;
    status = context->plugin->device->allocate(context->device, bytes, WEFT_MEMORY_DEVICE,
                                               &piece->memory);
    if (status != WEFT_OK) {
        wf_free(piece);
        return status;
    }
    count_scratch(context, bytes, 0);
    *out = piece;
    return WEFT_OK;
}

/* One holder less; NULL is accepted. */
static void drop_piece(weft_context *context, struct wf_scratch_piece *piece)
{
    if (piece == NULL || --piece->holders > 0) return;
    count_scratch(context, 0, piece->bytes);
    if (context->plugin->device->free(context->device, piece->memory) != WEFT_OK)
        wf_log(WF_LOG_WARNING, "scratch was not freed: %s", weft_last_error());
    wf_free(piece);
}

/* Reserve a piece of BYTES, unless a pool or the reserve has one.  The lock is held. */
static weft_status reserve(weft_context *context, uint64_t bytes)
{
    struct wf_exec_state *state = wf_exec_state(context);
    struct wf_scratch_piece *piece = NULL;

    for (const struct wf_pool *pool = state->pools; pool != NULL; pool = pool->next)
        if (pool->piece != NULL && pool->piece->bytes >= bytes) return WEFT_OK;
    if (state->spare != NULL && state->spare->bytes >= bytes) return WEFT_OK;
    WF_TRY(make_piece(context, bytes, &piece));
    drop_piece(context, state->spare);
    state->spare = piece;
    return WEFT_OK;
}

/* ---- pools ---- */

static bool hold(struct wf_pool *pool)
{
    return !atomic_exchange_explicit(&pool->busy, true, memory_order_acquire);
}

static void let_go(struct wf_pool *pool)
{
    atomic_store_explicit(&pool->busy, false, memory_order_release);
}

/* Hold a pool of STREAM: one that exists, or one whose stream was released, or a new one.  The lock
 * is held. */
static weft_status hold_pool(weft_context *context, const void *stream, struct wf_pool **out)
{
    struct wf_exec_state *state = wf_exec_state(context);
    struct wf_pool *pool;

    for (pool = state->pools; pool != NULL; pool = pool->next)
        if (pool->in_use && pool->stream == stream && hold(pool)) break;
    for (struct wf_pool *p = pool == NULL ? state->pools : NULL; p != NULL && pool == NULL;
         p = p->next)
        if (!p->in_use && hold(p)) pool = p;
    if (pool == NULL) {
        pool = wf_calloc(1, sizeof *pool);
        if (pool == NULL) return wf_fail_memory(sizeof *pool);
        atomic_init(&pool->busy, true);
        pool->next = state->pools;
        state->pools = pool;
    }
    pool->in_use = true;
    pool->stream = stream;
    *out = pool;
    return WEFT_OK;
}

/* Give POOL, which is held, a piece of BYTES: the reserved one, or a new one. */
static weft_status enlarge(weft_context *context, struct wf_pool *pool, uint64_t bytes)
{
    struct wf_exec_state *state = wf_exec_state(context);
    struct wf_scratch_piece *piece = state->spare;

    if (pool->piece != NULL && pool->piece->bytes >= bytes) return WEFT_OK;
    if (piece != NULL && piece->bytes >= bytes)
        state->spare = NULL;
    else
        WF_TRY(make_piece(context, bytes, &piece));
    drop_piece(context, pool->piece);
    pool->piece = piece;
    return WEFT_OK;
}

/* ---- bound plans ---- */

/* Fails if the device knows that the scratch of CALL is smaller than the caller
 * says. */
static weft_status check_room(const struct weft_bound *bound, const struct wf_bind_call *call)
{
    const weft_bind_options *given = &call->given;
    struct wf_room room;
    weft_status status;

    if (given->scratch_bytes == 0) return WEFT_OK;
    status = wf_room_find(bound->device_table, bound->device, given->scratch, &room);
    if (status != WEFT_OK)
        return wf_fail_context(status, "%s: on rank %d scratch", call->function,
                               weft_comm_rank(call->parent));
    if (wf_room_has(&room, given->scratch_bytes)) return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID,
                   "%s: on rank %d scratch_bytes is %llu; the allocation has %llu bytes, and "
                   "scratch begins %llu bytes into it",
                   call->function, weft_comm_rank(call->parent),
                   (unsigned long long)given->scratch_bytes, (unsigned long long)room.bytes,
                   (unsigned long long)room.offset);
}

/* Fails unless the scratch that CALL supplies is usable for a plan that needs BYTES. */
static weft_status check_given(const struct weft_bound *bound, const struct wf_bind_call *call,
                               uint64_t bytes)
{
    const weft_bind_options *given = &call->given;
    int32_t rank = weft_comm_rank(call->parent);

    if (given->scratch == NULL)
        return wf_fail(WEFT_ERR_INVALID,
                       "%s: scratch is NULL on rank %d, but scratch_bytes is %llu", call->function,
                       rank, (unsigned long long)given->scratch_bytes);
    if ((uintptr_t)given->scratch % WEFT_SCRATCH_ALIGNMENT != 0)
        return wf_fail(WEFT_ERR_INVALID,
                       "%s: scratch is at %p on rank %d; its address must be a multiple of %d",
                       call->function, given->scratch, rank, WEFT_SCRATCH_ALIGNMENT);
    if (given->scratch_bytes < bytes)
        return wf_fail(WEFT_ERR_INVALID,
                       "%s: rank %d needs %llu bytes of scratch, and scratch_bytes is %llu; "
                       "weft_plan_scratch returns the size that is needed",
                       call->function, rank, (unsigned long long)bytes,
                       (unsigned long long)given->scratch_bytes);
    if (given->scratch_bytes > 0) {
        weft_status status = wf_place_check(bound->context, given->scratch, NULL, "scratch",
                                            "weft_alloc returns memory of the device");

        if (status != WEFT_OK)
            return wf_fail_context(status, "%s: on rank %d", call->function, rank);
    }
    return check_room(bound, call);
}

weft_status wf_bound_set_scratch(struct weft_bound *bound, const struct wf_bind_call *call,
                                 uint64_t bytes)
{
    struct wf_exec_state *state = wf_exec_state(bound->context);
    const weft_bind_options *given = &call->given;
    weft_status status = WEFT_OK;

    bound->scratch_bytes = bytes;
    if (given->scratch != NULL || given->scratch_bytes > 0) {
        WF_TRY(check_given(bound, call, bytes));
        bound->given_scratch = given->scratch;
        wf_scratch_assign(bound, given->scratch);
        return WEFT_OK;
    }
    if (bytes == 0) {
        wf_scratch_assign(bound, NULL);
        return WEFT_OK;
    }
    pthread_mutex_lock(&state->lock);
    status = reserve(bound->context, bytes);
    pthread_mutex_unlock(&state->lock);
    return status == WEFT_OK ? status : wf_fail_context(status, "%s: scratch", call->function);
}

/* The place of BOUND with POOL, which is held; made if it does not exist or is too small. */
static weft_status find_place(weft_bound *bound, struct wf_pool *pool, uint64_t bytes,
                              struct wf_place **out)
{
    struct wf_place *place = bound->places;

    while (place != NULL && !(place->pool == pool && place->piece->bytes >= bytes))
        place = place->next;
    if (place == NULL) {
        WF_TRY(enlarge(bound->context, pool, bytes));
        place = wf_calloc(1, sizeof *place);
        if (place == NULL) return wf_fail_memory(sizeof *place);
        *place = (struct wf_place){bound->places, pool, pool->piece};
        place->piece->holders++;
        bound->places = place;
    }
    *out = place;
    return WEFT_OK;
}

/* Record *OUT if a run in PLACE must wait for the last run, which was in another place: the host's
 * averages of that run still use the memory that the actions have.  The lock is held. */
static weft_status record_averages(const weft_bound *bound, const struct wf_place *place,
                                   const char *function, weft_work **out)
{
    if (!bound->averages_on_host || bound->place == NULL || bound->place == place ||
        !bound->place->pool->in_use)
        return WEFT_OK;
    return wf_work_record(bound->context, (weft_stream *)(uintptr_t)bound->place->pool->stream,
                          function, out);
}

/* True if a run of BOUND has a step that this rank makes together with other ranks. */
static bool needs_others(const weft_bound *bound)
{
    const struct wf_batch *batch = bound->batch;
    bool needs = batch != NULL && batch->fused.comm != NULL && batch->fused.comm->size > 1;

    for (uint32_t i = 0; i < bound->action_count; i++)
        needs = needs || (bound->actions[i].comm != NULL && bound->actions[i].comm->size > 1);
    for (uint32_t i = 0; batch != NULL && i < bound->plan->member_count; i++)
        needs = needs || (batch->alone[i] != NULL && needs_others(batch->alone[i]));
    return needs;
}

weft_status wf_run_give_up(weft_bound *bound, weft_status status, const char *function)
{
    weft_comm *comm = bound->parent; /* other ranks may wait in any of its groups */
    char name[240], text[sizeof comm->cause_text];

    if (!needs_others(bound) || wf_comm_has_failed(comm))
        return wf_fail_context(status, "%s", function);
    wf_plan_name(bound->plan, false, name, sizeof name);
    snprintf(text, sizeof text, "%s on %s: rank %d cannot run %s: %.600s", function, comm->name,
             comm->context->rank, name, weft_last_error());
    wf_comm_fail(comm, status, text);
    if (comm->context->client != NULL)
        wf_client_abort(comm->context->client, comm->number, comm->world_ranks, comm->size,
                        WEFT_ERR_ABORTED, text);
    return wf_comm_cause(comm);
}

weft_status wf_scratch_find(weft_bound *bound, const void *stream, uint64_t extra,
                            const char *function)
{
    struct wf_exec_state *state = wf_exec_state(bound->context);
    struct wf_place *place = NULL;
    struct wf_pool *pool = NULL;
    weft_work *before = NULL;
    weft_status status;

    pthread_mutex_lock(&state->lock);
    status = hold_pool(bound->context, stream, &pool);
    if (status == WEFT_OK) status = find_place(bound, pool, bound->scratch_bytes + extra, &place);
    if (status == WEFT_OK) status = record_averages(bound, place, function, &before);
    pthread_mutex_unlock(&state->lock);
    if (before != NULL) status = weft_work_wait(before, WEFT_FOREVER);
    weft_work_release(&before);
    if (status != WEFT_OK) {
        if (pool != NULL) let_go(pool);
        return wf_run_give_up(bound, wf_fail_context(status, "scratch"), function);
    }
    if (place != bound->place) wf_scratch_assign(bound, place->piece->memory);
    bound->place = place;
    bound->held = pool;
    return WEFT_OK;
}

void wf_scratch_drop(struct weft_bound *bound)
{
    struct wf_exec_state *state;

    if (bound->places == NULL) return;
    state = wf_exec_state(bound->context);
    pthread_mutex_lock(&state->lock);
    while (bound->places != NULL) {
        struct wf_place *place = bound->places;

        bound->places = place->next;
        drop_piece(bound->context, place->piece);
        wf_free(place);
    }
    pthread_mutex_unlock(&state->lock);
    bound->place = NULL;
}

/* ---- streams and the context ---- */

weft_status wf_stream_remember(weft_context *context, const void *stream)
{
    struct wf_exec_state *state = wf_exec_state(context);
    struct wf_pool *pool;
    weft_status status = WEFT_OK;

    if (stream == NULL) return WEFT_OK;
    pthread_mutex_lock(&state->lock);
    for (pool = state->pools; pool != NULL; pool = pool->next)
        if (pool->in_use && pool->stream == stream) break;
    if (pool == NULL) {
        status = hold_pool(context, stream, &pool);
        if (status == WEFT_OK) let_go(pool);
    }
    pthread_mutex_unlock(&state->lock);
    return status;
}

weft_status wf_stream_record(weft_context *context, const void *stream, const char *function,
                             weft_work **out)
{
    struct wf_exec_state *state = wf_exec_state(context);
    weft_status status = WEFT_OK;
    bool known = stream == NULL;

    *out = NULL;
    pthread_mutex_lock(&state->lock);
    for (const struct wf_pool *pool = state->pools; pool != NULL && !known; pool = pool->next)
        known = pool->in_use && pool->stream == stream;
    if (known) status = wf_work_record(context, (weft_stream *)(uintptr_t)stream, function, out);
    pthread_mutex_unlock(&state->lock);
    return status;
}

void wf_pools_trim(weft_context *context)
{
    struct wf_exec_state *state = wf_exec_state(context);

    pthread_mutex_lock(&state->lock);
    drop_piece(context, state->spare);
    state->spare = NULL;
    for (struct wf_pool *pool = state->pools; pool != NULL; pool = pool->next) {
        if (!hold(pool)) continue;
        if (pool->piece != NULL && pool->piece->holders == 1) {
            drop_piece(context, pool->piece);
            pool->piece = NULL;
        }
        let_go(pool);
    }
    pthread_mutex_unlock(&state->lock);
}
