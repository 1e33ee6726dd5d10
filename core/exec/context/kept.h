/* kept.h - what exec keeps with a context.
 *
 *     pool.c    scratch that the bound plans of a context share, by stream
 *     size.c    the scratch that a plan needs, before it is bound; sketch.c its communicators
 *     cache.c   the plans and bound plans of moves
 *     move.c    moves: one tensor, or a batch; carrier.h how tensors move
 *     guard.c   one thread at a time moves tensors or applies operators
 *     simulated.c  moves of ranks that are simulated
 *     module.c  all of this in the life of a context */
#ifndef WEFT_EXEC_CONTEXT_KEPT_H
#define WEFT_EXEC_CONTEXT_KEPT_H

#include "carrier.h"

#include "exec/bound.h"

/* ---- pool.c ---- */

/* A piece of device memory.  HOLDERS is under the state's lock: the pool that hands it out, and the
 * bound plans that have run in it.  A bound plan keeps its pieces until it is released, also if the
 * pool has a larger one by then, because a device graph may have captured a run. */
struct wf_scratch_piece {
    void *memory;
    uint64_t bytes;
    uint32_t holders;
};

/* The scratch of one stream.  Several pools have the same stream if several threads run bound plans
 * on it at the same time.  Pools stay in the state's list until the context ends. */
struct wf_pool {
    struct wf_pool *next;
    atomic_bool busy; /* a run uses it; held while the fields below change */
    bool in_use;      /* false: its stream was released, and another may take it */
    const void *stream;
    struct wf_scratch_piece *piece; /* NULL: none yet */
};

/* A piece that a bound plan uses when it runs with POOL. */
struct wf_place {
    struct wf_place *next; /* of the same bound plan, newest first */
    struct wf_pool *pool;
    struct wf_scratch_piece *piece;
};

/* This rank cannot run BOUND for FUNCTION, with STATUS and the thread's last error.  Ranks that run
 * steps with it would wait for it, so their communicator fails on all ranks, with this rank in the
 * text.  Returns the error. */
weft_status wf_run_give_up(weft_bound *bound, weft_status status, const char *function);
/* Find scratch for a run on STREAM, with EXTRA bytes behind BOUND's own, and hold its pool. */
weft_status wf_scratch_find(weft_bound *bound, const void *stream, uint64_t extra,
                            const char *function);

/* Give BOUND its scratch for a run of FUNCTION on STREAM, with EXTRA bytes behind its own.  After
 * success wf_scratch_leave follows the run. */
static inline weft_status wf_scratch_enter(weft_bound *bound, const void *stream, uint64_t extra,
                                           const char *function)
{
    const struct wf_place *place = bound->place;

    if (extra == 0 && (bound->scratch_bytes == 0 || bound->given_scratch != NULL)) return WEFT_OK;
    if (place != NULL && place->piece->bytes >= bound->scratch_bytes + extra &&
        !atomic_exchange_explicit(&place->pool->busy, true, memory_order_acquire)) {
        bound->held = place->pool;
        if (place->pool->in_use && place->pool->stream == stream) return WEFT_OK;
        atomic_store_explicit(&place->pool->busy, false, memory_order_release);
        bound->held = NULL;
    }
    return wf_scratch_find(bound, stream, extra, function);
}

static inline void wf_scratch_leave(weft_bound *bound)
{
    if (bound->held == NULL) return;
    atomic_store_explicit(&bound->held->busy, false, memory_order_release);
    bound->held = NULL;
}

/* Where the EXTRA bytes of wf_scratch_enter begin. */
static inline void *wf_scratch_extra(const weft_bound *bound)
{
    return bound->held != NULL ? (char *)bound->place->piece->memory + bound->scratch_bytes : NULL;
}

/* BOUND needs BYTES of scratch: check the scratch that CALL supplies; without it, reserve memory
 * for the first run. */
weft_status wf_bound_set_scratch(struct weft_bound *bound, const struct wf_bind_call *call,
                                 uint64_t bytes) WF_NODISCARD;
/* BOUND's work is complete, and it needs no scratch any more. */
void wf_scratch_drop(struct weft_bound *bound);
/* Remember STREAM, so that its release waits for its work. */
weft_status wf_stream_remember(weft_context *context, const void *stream) WF_NODISCARD;
/* Record *OUT on STREAM, which was remembered or is the default one.  *OUT is NULL if the stream
 * has ended.  It does not end meanwhile, though another thread may release it. */
weft_status wf_stream_record(weft_context *context, const void *stream, const char *function,
                             weft_work **out) WF_NODISCARD;
/* Free the memory that no bound plan uses. */
void wf_pools_trim(weft_context *context);

/* ---- sketch.c ---- */

/* The communicator of RANKS of PARENT for a step of BOUND; see wf_comm_group.  If only BOUND's size
 * is wanted, it is a sketch: it knows its ranks and the backend, and cannot communicate.  BOUND may
 * be NULL. */
weft_status wf_bound_group(struct weft_bound *bound, weft_comm *parent, const int32_t *ranks,
                           int32_t count, weft_status status, weft_comm **out) WF_NODISCARD;
void wf_sketches_free(struct weft_bound *bound);

/* ---- cache.c ---- */

/* The ranks that make some moves together, and their bound plans. */
struct wf_mover {
    struct wf_mover *next;
    weft_comm *comm;
    uint32_t count;
    struct wf_kept_move *oldest, *newest;
};

/* A bound plan of moves.  PAIRS are its specs, FROM and TO of each tensor. */
struct wf_kept_move {
    struct wf_kept_move *next;  /* in the bucket */
    struct wf_kept_move *newer; /* of the same mover */
    struct wf_mover *mover;
    weft_bound *bound;
    weft_plan *plan; /* of ranks that are simulated, without BOUND; NULL otherwise */
    uint64_t hash;
    const void *stream;     /* of the last move */
    uint64_t streams_ended; /* of the state, when STREAM was remembered; 0: it has not moved yet */
    const void **sources;   /* room for a batch's arguments */
    void **targets;
    const struct wf_list_memo *memo; /* of the list whose memory these are; NULL: none */
    uint32_t count;
    uint64_t key;             /* of COUNT and of whether CHOICE is set: wf_move_key */
    weft_plan_options choice; /* what the options of the move ask for; COSTS is retained */
    const weft_spec *pairs[];
};

struct wf_moves {
    /* The thread that moves tensors or applies operators; NULL: none.  Only this thread uses the
     * other fields. */
    _Atomic(const void *) holder;
    uint32_t applying; /* calls of operators that the holder is in; a kernel may make another one */
    bool moving;       /* one of these calls moves tensors */
    bool implicit;     /* the moves are weft's, not the caller's: their records say so */
    uint32_t most;     /* bound plans per mover */
    uint32_t mask;
    struct wf_kept_move **buckets; /* NULL: nothing was kept yet */
    struct wf_mover *movers;
    struct wf_kept_move *left; /* evicted, but their work could not be waited for */
    struct wf_plan_cache *plans;
    int32_t *ranks;       /* room for the ranks of a move, one entry per rank of the world */
    unsigned char *among; /* the same, by rank: does it take part? */
    uint64_t kept, bound, evicted;
    uint64_t ended; /* how often kept moves were freed */
};

struct wf_exec_state {
    pthread_mutex_t lock; /* of the pools */
    struct wf_pool *pools;
    struct wf_scratch_piece *spare; /* reserved by binding, for the next pool that needs it */
    uint64_t scratch_bytes;         /* of all pieces */
    atomic_bool host_logged;        /* the log says that the host works for the backend */
    atomic_bool casts_logged;       /* the log says that the host casts for the backend */
    const struct wf_carrier *carrier;
    _Atomic uint64_t streams_ended; /* from 1 on; a stream's address may be that of an ended one */
    struct wf_moves moves;
};

static inline struct wf_exec_state *wf_exec_state(const weft_context *context)
{
    return context->kept[WF_MODULE_EXEC];
}

static inline uint64_t wf_move_hash(uint64_t hash, const weft_spec *from, const weft_spec *to)
{
    return wf_hash_mix(wf_hash_mix(hash, (uint64_t)(uintptr_t)from), (uint64_t)(uintptr_t)to);
}

static inline uint64_t wf_move_key(uint32_t count, const struct wf_moving *how)
{
    return count | (uint64_t)(how != NULL && how->is_chosen) << 32;
}

/* The COUNT tensors ITEMS in the cache, moved as HOW says.  If they are not in it, bind them for
 * FUNCTION as wf_moves_add. */
weft_status wf_moves_find(weft_context *context, uint32_t count, const weft_move_item *items,
                          const struct wf_moving *how, const char *function,
                          struct wf_kept_move **out) WF_NODISCARD;
/* Bind the COUNT tensors ITEMS, which are not in the cache, for FUNCTION, and keep the bound plan.
 * Collective over the ranks of their meshes.  *OUT is NULL on other ranks. */
weft_status wf_moves_add(weft_context *context, uint32_t count, const weft_move_item *items,
                         const struct wf_moving *how, uint64_t hash, const char *function,
                         struct wf_kept_move **out) WF_NODISCARD;
/* A step that the ranks of the meshes of FROM and TO take together for FUNCTION, as wf_comm_agree.
 * On other ranks, OUT has no blobs and STATUS is returned.  The caller frees OUT. */
weft_status wf_moves_agree(weft_context *context, const weft_spec *from, const weft_spec *to,
                           const char *function, weft_status status, weft_blob blob,
                           struct wf_gathered *out) WF_NODISCARD;
/* The cached plan from FROM to TO, with CONTEXT's costs unless OPTIONS have others. */
weft_status wf_moves_plan(weft_context *context, const weft_spec *from, const weft_spec *to,
                          const weft_plan_options *options, weft_plan **out) WF_NODISCARD;
/* Wait for the work of all moves. */
weft_status wf_moves_wait(weft_context *context) WF_NODISCARD;
/* Drop all plans and bound plans; their work is complete, or their communicators have ended. */
void wf_moves_drop(weft_context *context);

/* ---- one thread at a time (guard.h, guard.c) ---- */

/* WEFT_ERR_INVALID if a thread is moving tensors of CONTEXT, or another one applies operators.
 * Else wf_moves_leave follows, which returns STATUS. */
weft_status wf_moves_enter(weft_context *context, const char *function) WF_NODISCARD;
weft_status wf_moves_leave(weft_context *context, weft_status status);
/* A call of an operator begins on CONTEXT, for FUNCTION.  The same errors as wf_moves_enter, but a
 * kernel of an operator may apply another one.  wf_applying_leave follows. */
weft_status wf_applying_enter(weft_context *context, const char *function) WF_NODISCARD;
/* False: no call of an operator has begun. */
bool wf_applying_leave(weft_context *context);

/* ---- module.c ---- */

extern const struct wf_module wf_exec_module;

/* ---- ../record.c: runs and steps as records of the context's trace ---- */

/* BOUND, which has its binding, sets what is constant in its records.  NAME is the caller's for it,
 * or NULL. */
void wf_drafts_set(struct weft_bound *bound, const char *name);
/* The label of a move of the tensor NAME that the operator MADE_FOR needs: "weights",
 * "matmul: weights", "matmul" or, if both are NULL, 0. */
uint32_t wf_label_intern(struct wf_trace *trace, const char *made_for, const char *name);
/* Give the records of BOUND and its steps the name of the tensor that it moves now, behind
 * MADE_FOR, the operator that needs the move.  Either may be NULL.  BOUND is no batch. */
void wf_drafts_label(struct wf_trace *trace, struct weft_bound *bound, const char *made_for,
                     const char *name);
/* Give the steps of a batch the names of the tensors of the current call, and what it is made for.
 */
void wf_drafts_label_batch(struct wf_trace *trace, struct weft_bound *bound);

/* CALL begins to bind PLAN, which may be NULL. */
struct wf_submitted wf_record_bind(struct wf_trace *trace, const weft_plan *plan,
                                   const struct wf_bind_call *call);
/* A run of BOUND is about to begin on STREAM. */
struct wf_submitted wf_record_run(struct wf_trace *trace, const weft_bound *bound,
                                  const void *stream);
/* A step of BOUND begins on STREAM.  COMM is its communicator; NULL: it is local. */
struct wf_submitted wf_record_step(struct wf_trace *trace, const weft_bound *bound,
                                   const weft_record *draft, weft_comm *comm, const void *stream);

#endif
