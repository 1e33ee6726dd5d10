/* move.h - one call moves a tensor from one layout to another.
 *
 *     weft_spec *rows, *columns;
 *     if (weft_spec_parse(mesh, "f32[4096,4096] S(0)", &rows) != WEFT_OK) fail(weft_last_error());
 *     if (weft_spec_with(rows, "S(1)", &columns) != WEFT_OK) fail(weft_last_error());
 *     weft_move_item item = {.from = rows, .source = source, .to = columns, .target = target};
 *     for (...) weft_move(ctx, 1, &item, sizeof item, NULL, stream, NULL);
 *
 * The context keeps the plans and the bound plans of moves.  The first move between two specs, or
 * between the same two with other options, creates the plan with the costs of the context and binds
 * it, so it waits for the other ranks.  Every later one runs the bound plan: it allocates nothing
 * and takes no lock.
 *
 * Moves are collective over the ranks of the meshes of their specs, which are ranks of the world
 * communicator.  These ranks make the same moves in the same order; otherwise they get
 * WEFT_ERR_MISMATCH, as weft_redistribute states.  A rank in none of the meshes may make the call
 * too: it moves nothing and does not wait.  If a step fails, the world communicator fails.
 *
 * Only one thread at a time may call the functions of this header, or apply operators (apply.h), on
 * a context; a second one gets WEFT_ERR_INVALID.  Moves use the world communicator and
 * communicators that weft makes of it, so other threads must not use these at the same time. */
#ifndef WEFT_MOVE_H
#define WEFT_MOVE_H

#include "exec.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One tensor of a move.  SOURCE and TARGET are this rank's shards, row-major without gaps; NULL is
 * allowed if the shard is empty.  If the dtypes of FROM and TO differ, the move casts, as
 * weft_plan_create states.  SOURCE and TARGET may be the same memory, which must have room for the
 * larger of the two shards: the source is then copied to scratch first, unless the plan is one
 * all-reduce.  Otherwise they must not overlap; WEFT_CHECK=1 detects it. */
typedef struct weft_move_item {
    const char *name; /* in error texts; NULL: the tensor's index */
    const weft_spec *from;
    const void *source;
    const weft_spec *to;
    void *target;
} weft_move_item;

/* All ranks pass the same options, apart from `implicit` and `made_for`. */
typedef struct weft_move_options {
    size_t struct_size;
    /* How the plan is chosen, as in weft_plan_options.  The limit is for the scratch of the plan.
     * Buffers for moves in place, and for tensors with gaps, are not counted. */
    uint64_t memory_limit;
    uint32_t minimize;            /* enum weft_minimize */
    uint32_t planner;             /* enum weft_planner */
    const weft_cost_table *costs; /* NULL: the costs of the context */
    uint32_t without;             /* bit k excludes steps of enum weft_step_kind k */
    /* The user of the program did not ask for this move: a library makes it.  Its records have
     * WEFT_RECORD_IMPLICIT (trace.h). */
    bool implicit;
    /* The operator, say, that needs the move.  Labels of its records are "MADE_FOR: TENSOR"
     * (trace.h).  NULL: the tensor's name alone. */
    const char *made_for;
} weft_move_options;

/* Post the moves of the COUNT tensors ITEMS, at least 1, to STREAM.  Several tensors are one batch:
 * small ones share one exchange (weft_plan_create_batch).  ITEM_SIZE is sizeof(weft_move_item).
 * OPTIONS may be NULL.  Collective over the ranks of the meshes of all items; all ranks pass the
 * same specs in the same order.  Names may differ between ranks and calls.  A target must not
 * overlap memory of another item.  ITEMS, the names and OPTIONS are read during the call only.
 * Unless WORK is NULL, *WORK records the move; the caller releases it.  Moves between the same
 * specs run one after the other, also on different streams.  Errors: as weft_plan_create,
 * weft_plan_bind and weft_redistribute.  An error of planning or binding has the same status on all
 * ranks, and the context then keeps neither plan nor bound plan.  The first move between two specs
 * also checks where the memory is: if the device knows that a source or target of a rank is host
 * memory or another device's, all ranks get WEFT_ERR_INVALID.  Later moves check this with
 * WEFT_CHECK=1 only.  [ITEMS: COUNT entries] */
WEFT_API WEFT_NODISCARD weft_status weft_move(weft_context *context, size_t count,
                                              const weft_move_item *items, size_t item_size,
                                              const weft_move_options *options, weft_stream *stream,
                                              weft_work **work);

/* Set *OUT to the plan that weft_move with the same options uses, from the context's cache of
 * plans. If the cache does not have it, the plan is created and added.  OPTIONS may be NULL.  If
 * its `costs` is NULL, the costs of the context apply.  Not collective.  The caller releases *OUT.
 * Errors: as weft_plan_create. */
WEFT_API WEFT_NODISCARD weft_status weft_context_plan(weft_context *context, const weft_spec *from,
                                                      const weft_spec *to,
                                                      const weft_plan_options *options,
                                                      weft_plan **out);

/* Wait for the moves of CONTEXT.  Then release its plans and bound plans, and the scratch that no
 * other bound plan has used.  Collective: every rank of the job calls it, between the same moves.
 * The next move between two specs plans and binds again.  Not needed before weft_context_release.
 * An error is the same on all ranks; nothing is released then. */
WEFT_API WEFT_NODISCARD weft_status weft_move_clear(weft_context *context);

typedef struct weft_move_info {
    size_t struct_size;
    size_t bound;           /* bound plans of moves that the context keeps */
    size_t bound_max;       /* maximum for one group of ranks; the oldest is released first */
    uint64_t bound_total;   /* bound plans that moves have created so far */
    uint64_t evicted_total; /* bound plans released because there were more than bound_max */
    /* Scratch of this rank, in bytes: the pieces of all streams, and a piece that is reserved for
     * the next stream.  Bound plans of weft_plan_bind use it too. */
    uint64_t scratch_bytes;
} weft_move_info;

/* Copy what CONTEXT keeps on this rank to *OUT, whose struct_size the caller sets.  Not
 * collective. */
WEFT_API WEFT_NODISCARD weft_status weft_move_get(weft_context *context, weft_move_info *out);

#ifdef __cplusplus
}
#endif
#endif
