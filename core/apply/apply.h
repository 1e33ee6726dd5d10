/* apply.h - operators at work: an engine's kernel on the shards of distributed tensors.
 *
 *     apply.c   the call: layouts, moves, outputs, kernel
 *     attrs.c   attributes that are sizes, as this rank's kernel needs them
 *     backward.c  the calls of gradients, one after another
 *     lists.c   choices of calls with long lists
 *     overlap.c  what a kernel writes overlaps nothing else, with WEFT_CHECK
 *     spares.c  outputs that were released, for the next ones
 *     agree.c   the ranks of a mesh compare their rules
 *     outputs.c  how many outputs a call has
 *     module.c  the state of a context */
#ifndef WEFT_APPLY_APPLY_H
#define WEFT_APPLY_APPLY_H

#include "tensor/tensor.h"
#include "weft/apply.h"

enum {
    WF_LONG_CALL = 61,  /* inputs; the cache of ops does not keep such a call */
    WF_LONG_CALLS = 8,  /* that a context keeps */
    WF_SPARE_SETS = 16, /* by layout, of WF_SPARE_WAYS released outputs each */
    WF_SPARE_WAYS = 4
};

struct wf_apply_state {
    enum weft_op_moves moves;
    /* The meshes whose ranks have compared their rules. */
    weft_mesh **meshes;
    uint32_t mesh_count, mesh_room;
    struct wf_long_call *long_calls[WF_LONG_CALLS]; /* the last one first */
    _Atomic(weft_tensor *) spares[WF_SPARE_SETS][WF_SPARE_WAYS];
    _Atomic(uint64_t) spare_bytes; /* of their memory on this rank */
    void *room;                    /* of the last call with many tensors */
    size_t room_bytes;
};

static inline struct wf_apply_state *wf_apply_state(const weft_context *context)
{
    return context->kept[WF_MODULE_APPLY];
}

/* The ranks of SPEC's mesh have the same rules.  The first call on a mesh is collective over its
 * ranks; later ones do nothing.  WEFT_ERR_MISMATCH names two ranks. */
weft_status wf_apply_agree(weft_context *context, const weft_spec *spec,
                           const char *function) WF_NODISCARD;

/* ---- apply.c ---- */

#define WF_ANY_OUTPUTS UINT32_MAX

/* weft_op_apply of an operator with KNOWN outputs, for FUNCTION, which errors name.
 * WEFT_ERR_INVALID: its rule has another number of outputs. */
weft_status wf_op_apply_as(const char *function, weft_context *context, const weft_op_call *call,
                           weft_tensor *const *inputs,
                           weft_status (*kernel)(void *user, const weft_op_run *run), void *user,
                           weft_stream *stream, uint32_t known, weft_tensor **outputs) WF_NODISCARD;

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

/* Make an output, or use a released one of that layout, which had the same stream. */
weft_status wf_output_make(weft_context *context, const weft_spec *spec, weft_stream *stream,
                           const char *function, weft_tensor **out) WF_NODISCARD;
void wf_spares_stream_ends(weft_context *context, void *stream);
void wf_spares_free(weft_context *context);

/* ---- overlap.c ---- */

/* The tensors of a call whose kernel is called next. */
struct wf_written {
    uint32_t inputs, outputs;
    weft_tensor *const *tensors; /* inputs, then outputs; NULL: absent */
    const uint32_t *memories;    /* of the outputs, as wf_choice_memories */
};

/* WEFT_ERR_INVALID: an output overlaps another output or input.  An output in place may be the same
 * memory as an input. */
weft_status wf_written_check(const struct wf_written *w) WF_NODISCARD;

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
                               const weft_op_choice *choice, const weft_op_local *tensors,
                               int32_t rank) WF_NODISCARD;
void wf_local_attrs_free(struct wf_local_attrs *attrs);

extern const struct wf_module wf_apply_module;

#endif
