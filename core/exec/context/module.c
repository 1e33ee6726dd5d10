/* module.c - shared scratch and moves in the life of a context. */
#include "carrier.h"
#include "kept.h"

enum { MOST_BOUND = 1024 }; /* bound plans of moves, per group of ranks */

static weft_status create(weft_context *context)
{
    struct wf_exec_state *state = wf_calloc(1, sizeof *state);

    if (state == NULL) return wf_fail_memory(sizeof *state);
    pthread_mutex_init(&state->lock, NULL);
    atomic_init(&state->streams_ended, 1);
    state->moves.most = MOST_BOUND;
    context->kept[WF_MODULE_EXEC] = state;
    return WEFT_OK;
}

/* Now the number of ranks is known. */
static weft_status start(weft_context *context)
{
    struct wf_moves *moves = &wf_exec_state(context)->moves;
    size_t size = (size_t)context->size;

    wf_exec_state(context)->carrier =
        context->is_simulated ? &wf_carrier_simulated : &wf_carrier_real;
    moves->ranks = wf_alloc(size * sizeof *moves->ranks);
    moves->among = wf_alloc(size);
    return moves->ranks != NULL && moves->among != NULL
               ? WEFT_OK
               : wf_fail_memory(size * (sizeof *moves->ranks + 1));
}

static bool has_pool(struct wf_exec_state *state, const void *stream)
{
    bool found = false;

    pthread_mutex_lock(&state->lock);
    for (const struct wf_pool *pool = state->pools; pool != NULL; pool = pool->next)
        found = found || (pool->in_use && pool->stream == stream);
    pthread_mutex_unlock(&state->lock);
    return found;
}

/* The stream may be wrapped: then its end does not wait for its work, and another stream must not
 * take its scratch before that. */
static void stream_ends(weft_context *context, void *stream)
{
    struct wf_exec_state *state = wf_exec_state(context);

    if (!has_pool(state, stream)) return;
    if (context->plugin->device->stream_wait(context->device, stream, WEFT_FOREVER) != WEFT_OK)
        wf_log(WF_LOG_INFO, "weft_stream_release: %s", weft_last_error());
    pthread_mutex_lock(&state->lock);
    for (struct wf_pool *pool = state->pools; pool != NULL; pool = pool->next) {
        if (!pool->in_use || pool->stream != stream ||
            atomic_exchange_explicit(&pool->busy, true, memory_order_acquire))
            continue;
        pool->in_use = false;
        atomic_store_explicit(&pool->busy, false, memory_order_release);
    }
    pthread_mutex_unlock(&state->lock);
    atomic_fetch_add_explicit(&state->streams_ended, 1, memory_order_relaxed);
}

/* The communicators that moves use end with the world.  Bound plans end before them, because their
 * release waits for failed work on these communicators. */
static void comm_ends(weft_comm *comm, const char *cause)
{
    (void)cause;
    if (comm == comm->context->world) wf_moves_drop(comm->context);
}

static void destroy(weft_context *context)
{
    struct wf_exec_state *state = wf_exec_state(context);

    wf_moves_drop(context);
    wf_pools_trim(context);
    while (state->pools != NULL) {
        struct wf_pool *pool = state->pools;

        state->pools = pool->next;
        wf_free(pool);
    }
    wf_free(state->moves.ranks);
    wf_free(state->moves.among);
    pthread_mutex_destroy(&state->lock);
    context->kept[WF_MODULE_EXEC] = NULL;
    wf_free(state);
}

const struct wf_module wf_exec_module = {
    .create = create,
    .start = start,
    .stream_ends = stream_ends,
    .comm_ends = comm_ends,
    .destroy = destroy,
};
