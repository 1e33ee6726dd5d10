/* apply.h - operators at work: an engine's kernel on the shards of distributed tensors.
 *
 *     apply.c   the call: layouts, moves, outputs, kernel
 *     options.c  what the options of a call say
 *     moves.c    moves in the log and in errors
 *     identity.c  outputs of a rank that has no inputs
 *     attrs.c   attributes that are sizes, as this rank's kernel needs them
 *     backward.c  the calls of gradients, one after another
 *     lists.c   choices of calls with long lists
 *     overlap.c  what a kernel writes overlaps nothing else, with WEFT_CHECK
 *     spares.c  outputs that were released, for the next ones
 *     agree.c   the ranks of a mesh compare their rules
 *     outputs.c  how many outputs a call has
 *     state.c   what a context keeps */
#ifndef WEFT_PARALLEL_APPLY_APPLY_H
#define WEFT_PARALLEL_APPLY_APPLY_H

#include "system/here.h"
#include "weft/apply.h"
#include "weft/extend.h"

#include <stdatomic.h>

enum {
    WF_LONG_CALL = 61,  /* inputs; the cache of ops does not keep such a call */
    WF_LONG_CALLS = 8,  /* that a context keeps */
    WF_SPARE_SETS = 16, /* by layout, of WF_SPARE_WAYS released outputs each */
    WF_SPARE_WAYS = 4
};

/* The options of a call, with defaults in place of what is not set. */
struct wf_apply_options {
    enum weft_op_moves moves;
    bool has_strategy;        /* the caller gave one */
    weft_op_options strategy; /* with costs */
};

struct wf_apply_state {
    weft_context *context;
    weft_dependent *dependent;
    bool is_simulated, checks;     /* the context's ranks; whether it asks for checks */
    int32_t first_rank, last_rank; /* whose shards this process holds, and the one behind */
    bool is_leaving;               /* the job: outputs are not kept any more */
    bool waits;                    /* a kernel on the host may not wait for the work of a stream */
    struct wf_apply_options plain; /* of calls without options */
    /* The meshes whose ranks have compared their rules. */
    weft_mesh **meshes;
    uint32_t mesh_count, mesh_room;
    struct wf_long_call *long_calls[WF_LONG_CALLS]; /* the last one first */
    _Atomic(weft_tensor *) spares[WF_SPARE_SETS][WF_SPARE_WAYS];
    _Atomic(uint64_t) spare_bytes; /* of their memory on this rank */
    uint32_t replaced;             /* spare tensors that were freed for others */
    void *room;                    /* of the last call with many tensors */
    size_t room_bytes;
};

/* ---- state.c ---- */

extern const weft_dependent_calls wf_apply_calls;
/* As wf_apply_enter, of a context that keeps nothing yet.  After a failure FUNCTION has left. */
weft_status wf_apply_begin(weft_context *context, const char *function,
                           struct wf_apply_state **out) WF_NODISCARD;
/* FUNCTION applies operators to tensors of CONTEXT, which no other thread does meanwhile: set *OUT
 * to what CONTEXT keeps.  wf_apply_leave follows. */
static inline weft_status wf_apply_enter(weft_context *context, const char *function,
                                         struct wf_apply_state **out)
{
    WF_TRY(weft_moves_enter(context, function));
    *out = weft_dependent_find(weft_world(context), &wf_apply_calls);
    return *out != NULL ? WEFT_OK : wf_apply_begin(context, function, out);
}
static inline weft_status wf_apply_leave(weft_context *context, weft_status status)
{
    return weft_moves_leave(context, status);
}

/* ---- agree.c ---- */

/* The ranks of SPEC's mesh have the same rules.  The first call on a mesh is collective over its
 * ranks; later ones do nothing.  WEFT_ERR_MISMATCH names two ranks. */
weft_status wf_apply_agree(struct wf_apply_state *state, const weft_spec *spec,
                           const char *function) WF_NODISCARD;

/* ---- options.c ---- */

/* Read the options of a call on CONTEXT for FUNCTION.  GIVEN may be NULL.  COSTS_ONLY: the strategy
 * has costs and nothing else. */
weft_status wf_apply_options_read(const char *function, const weft_context *context,
                                  const weft_op_apply_options *given, bool costs_only,
                                  struct wf_apply_options *out) WF_NODISCARD;

/* ---- apply.c ---- */

/* A call of weft_op_apply, for another function of the library. */
struct wf_apply_call {
    const char *function; /* that errors name */
    struct wf_apply_state *state;
    weft_stream *stream;
    const weft_op_call *call;
    weft_tensor *const *inputs;
    const struct wf_apply_options *options;
    weft_op_kernel kernel;
    void *user;
};

/* Make CALL of an operator with COUNT outputs.  WEFT_ERR_INVALID: its rule has another number. */
weft_status wf_op_apply_known(const struct wf_apply_call *call, size_t count,
                              weft_tensor **outputs) WF_NODISCARD;

/* ---- moves.c ---- */

/* Log that FUNCTION moves input INPUT of operator OP, which is TENSOR, to SPEC by PLAN. */
void wf_move_show(const char *function, const char *op, uint32_t input, const weft_tensor *tensor,
                  const weft_spec *spec, const weft_plan *plan);
/* A move that FUNCTION made for operator OP has failed with STATUS: name both.  Returns STATUS. */
weft_status wf_move_refuse(weft_status status, const char *function, const char *op);

/* ---- identity.c ---- */

bool wf_are_partial(uint32_t count, weft_tensor *const *tensors);
/* Set the shards of RANK of partial TENSORS to the identities of their reductions. */
weft_status wf_fill_identities(uint32_t count, weft_tensor *const *tensors, int32_t rank,
                               weft_stream *stream) WF_NODISCARD;
/* Set every element of RANK's shard of TENSOR to ELEMENT, in the order of STREAM. */
weft_status wf_shard_fill(weft_tensor *tensor, int32_t rank, const void *element,
                          weft_stream *stream) WF_NODISCARD;

/* ---- outputs.c ---- */

/* WEFT_ERR_INVALID: an operator has COUNT outputs, and the caller's array ROOM entries. */
weft_status wf_room_refuse(uint32_t count, size_t room);

/* ---- phases/call.c ---- */

/* True if weft_op_apply_phases runs CALL on INPUTS, layouts of which split a dimension that the
 * operator needs whole. */
bool wf_phases_serve(const weft_op_call *call, weft_tensor *const *inputs);
/* If STATUS says that the layouts of INPUTS are not legal, and weft_op_apply_phases runs CALL, add
 * that to the error.  Returns STATUS. */
weft_status wf_phases_suggest(const weft_op_call *call, weft_tensor *const *inputs,
                              weft_status status) WF_NODISCARD;

/* ---- lists.c ---- */

/* The kept choice of a call with at least WF_LONG_CALL inputs, with a reference for the caller;
 * NULL: none. */
weft_op_choice *wf_long_call_find(struct wf_apply_state *state, const weft_op_call *call,
                                  bool moves);
/* Keep CHOICE.  Without memory nothing is kept. */
void wf_long_call_keep(struct wf_apply_state *state, const weft_op_call *call, bool moves,
                       const weft_op_choice *choice);
void wf_long_calls_free(struct wf_apply_state *state);

/* ---- spares.c ---- */

/* Make a tensor that work on STREAM uses first.  NAME may be "": none. */
weft_status wf_tensor_new(weft_context *context, const weft_spec *spec, const char *name,
                          weft_stream *stream, weft_tensor **out) WF_NODISCARD;
/* Make an output, or use a released one of that layout, which had the same stream. */
weft_status wf_output_make(struct wf_apply_state *state, const weft_spec *spec, weft_stream *stream,
                           weft_tensor **out) WF_NODISCARD;
void wf_spares_free(struct wf_apply_state *state);

/* ---- overlap.c ---- */

/* The shards of a rank whose kernel is called next. */
struct wf_written {
    uint32_t inputs, outputs;
    const weft_tensor_local *locals; /* inputs, then outputs */
    const uint32_t *memories;        /* of the outputs, as wf_choice_memories */
    int32_t rank;
    void *room; /* of the check, for further ranks; NULL: none yet.  The caller frees it */
};

/* WEFT_ERR_INVALID: an output overlaps another output or input.  An output in place may be the same
 * memory as an input. */
weft_status wf_written_check(struct wf_written *w) WF_NODISCARD;

/* ---- attrs.c ---- */

enum { WF_FEW_ATTRS = 8, WF_FEW_SIZES = 2 * WEFT_MAX_DIMS };

/* The attributes of a call, with the sizes of this rank's shards. */
struct wf_local_attrs {
    const weft_op_attr *values;
    void *memory;     /* of the values; NULL: FEW has them */
    int64_t *numbers; /* of lists; NULL: SIZES has them */
    weft_op_attr few[WF_FEW_ATTRS];
    int64_t sizes[WF_FEW_SIZES];
};

/* The attributes for the kernel of RANK.  TENSORS are the inputs of the call, then the outputs. */
weft_status wf_local_attrs_set(struct wf_local_attrs *out, const weft_op_call *call,
                               const weft_op_choice *choice, const weft_tensor_local *tensors,
                               int32_t rank) WF_NODISCARD;
void wf_local_attrs_free(struct wf_local_attrs *attrs);

#endif
