/* tensor.h - a tensor: a spec and the shards that this process holds.
 *
 *     tensor.c   creation, references; properties.c what a tensor tells about itself
 *     local.c    the shards that this process holds: its rank's, or those of all simulated ranks
 *     agree.c    what the ranks of a collective call pass to it, compared
 *     vacant.c   tensors whose memory comes and goes
 *     kept.c     tensors that are kept and used again
 *     dense.c    the elements of a tensor with strides, without gaps
 *     moves.c    moves of tensors
 *     lists.c    moves of many tensors as one batch
 *     copy.c     copies to and from host memory, fill
 *     compare.c  two tensors compared
 *     print.c    tensors as text; shown.c chooses and reads the elements, figures.c formats them
 *     draw.c     random elements; drawer.c has them drawn by the device
 *     view.c     tensors that share memory: a part of one dimension, two dimensions swapped
 *     reshape.c  another shape for the same elements
 *     dlpack.c   shards shared with other libraries
 *     module.c   what tensor keeps with a context */
#ifndef WEFT_TENSOR_TENSOR_H
#define WEFT_TENSOR_TENSOR_H

#include "comm/comm.h"
#include "comm/context/ended.h"
#include "exec/context/carrier.h"
#include "shard/shard.h"
#include "weft/extend.h"
#include "weft/random.h"

/* What the device's kernels use of a shard: lists of regions, and the elements of a shard with
 * gaps, copied to memory of their own. */
struct wf_dense {
    void *memory;            /* NULL: none yet */
    void *packer, *unpacker; /* lists of regions from the shard and to it; NULL: none yet */
    void *drawer; /* from an element's number in the tensor to the shard; NULL: none yet */
    bool was_used;
    weft_stream *stream; /* that used MEMORY or a list last */
};

/* The shard of one rank. */
struct wf_local {
    int32_t rank;
    bool is_dense; /* row-major without gaps */
    void *memory;
    int64_t strides[WEFT_MAX_DIMS];
    weft_shard shard;
    struct wf_dense dense; /* from its first use on */
};

struct weft_tensor {
    /* Fields that every move uses, in one line of the cache: */
    uint64_t made; /* of fork.h; ended: its context was released */
    weft_context *context;
    weft_spec *spec;
    void *held;        /* what a carrier takes, of a tensor without gaps */
    uintptr_t end;     /* of HELD; 0: there is no memory, or ranks are simulated */
    weft_tensor *base; /* whose memory this view uses; NULL: not a view */
    bool is_dense;     /* all its shards here are */
    bool is_read_only;
    bool overlaps;       /* two elements share memory, so that it is read-only */
    bool comes_and_goes; /* its memory does: see vacant.c */
    bool releases_each;  /* RELEASE is called for each rank's memory */
    _Atomic uint32_t references;
    weft_stream *stream; /* of the last work that was posted; the memory is freed after it */

    struct wf_tensor_list *last_list; /* that begins with this tensor; NULL: none yet */
    uint32_t listed; /* as the target of this pair, in the last list that had it as a target */

    struct wf_dependent dependent; /* of the world communicator */
    char ended[WF_CAUSE];
    uint32_t vacated;      /* how often it lost its memory: see vacant.c */
    uint32_t base_vacated; /* of a view: that of BASE when the view was made */
    void *block;           /* the tensor's own memory, of all its shards here; NULL: none */
    void *given;           /* the caller's memory, for RELEASE */
    void (*release)(void *argument, void *memory);
    void *argument;
    char *name;                /* NULL: none */
    weft_tensor_keeper keeper; /* NULL: none */
    void *keeper_user;
    int32_t local_count;
    struct wf_local *locals; /* &OWN; or, if ranks are simulated, those of all ranks, by rank */
    void **list;             /* if ranks are simulated: HELD, by position in the mesh */
    struct wf_local own;
};

/* What tensor keeps with a context. */
struct wf_tensor_state {
    _Atomic uint64_t ended; /* how often a tensor was freed or lost its memory */
};

extern const struct wf_module wf_tensor_module;

static inline _Atomic uint64_t *wf_tensors_ended(const weft_context *context)
{
    return &((struct wf_tensor_state *)context->kept[WF_MODULE_TENSOR])->ended;
}

/* A tensor of CONTEXT is about to be freed, or has lost its memory: lists remember the tensors and
 * memory of their last call. */
static inline void wf_tensor_forget(weft_context *context)
{
    atomic_fetch_add_explicit(wf_tensors_ended(context), 1, memory_order_relaxed);
}

/* True if VIEW's memory is still that of the tensors of which it is a view. */
static inline bool wf_view_is_current(const weft_tensor *view)
{
    while (view->base != NULL && view->base_vacated == view->base->vacated)
        view = view->base;
    return view->base == NULL;
}
static inline bool wf_tensor_is_usable(const weft_tensor *tensor)
{
    return wf_is_usable(tensor->made, WF_KIND_TENSOR) &&
           (tensor->base == NULL || wf_view_is_current(tensor));
}
/* WEFT_ERR_INVALID by FUNCTION if TENSOR, its argument named ARGUMENT, cannot be used. */
weft_status wf_tensor_check(const weft_tensor *tensor, const char *function,
                            const char *argument) WF_NODISCARD;
/* The same for a tensor that is only read: it may be of a generation of the job that has ended. */
weft_status wf_tensor_check_readable(const weft_tensor *tensor, const char *function) WF_NODISCARD;
/* Put the tensor's name, if it has one, before this thread's last failure text. */
weft_status wf_tensor_fail(const weft_tensor *tensor, weft_status status, const char *function);
/* CONTEXT and SPEC, arguments of FUNCTION, can be used, and the ranks of the mesh are in the job.
 */
weft_status wf_tensor_check_spec(const weft_context *context, const weft_spec *spec,
                                 const char *function) WF_NODISCARD;
/* Make a tensor without memory.  wf_tensor_finish follows when its shards have their memory. */
weft_status wf_tensor_begin(weft_context *context, const weft_spec *spec, const char *name,
                            weft_tensor **out) WF_NODISCARD;
void wf_tensor_finish(weft_tensor *tensor, weft_tensor **out);
/* As weft_tensor_create, for FUNCTION.  Work on STREAM uses the memory first. */
weft_status wf_tensor_make(weft_context *context, const weft_spec *spec, const char *name,
                           weft_stream *stream, const char *function,
                           weft_tensor **out) WF_NODISCARD;
/* kept.c: the last reference to TENSOR is gone.  True if its keeper keeps it. */
bool wf_tensor_keep(weft_tensor *tensor);
/* Work that uses TENSOR is posted to STREAM. */
static inline void wf_tensor_use(weft_tensor *tensor, weft_stream *stream)
{
    for (; tensor != NULL; tensor = tensor->base)
        tensor->stream = stream;
}

/* WEFT_ERR_INVALID: TENSOR, which ARGUMENT describes, is read-only. */
weft_status wf_tensor_refuse_write(const weft_tensor *tensor, const char *argument);
/* WEFT_ERR_INVALID if TENSOR, which can be used, must not be written. */
weft_status wf_tensor_check_writable(const weft_tensor *tensor, const char *function) WF_NODISCARD;

/* The caller's memory: that of all ranks in OPTIONS, or MEMORY.  If ranks are simulated, MEMORY is
 * that of RANK, and the others have none.  Elements of read-only memory may overlap. */
struct wf_wrapping {
    const weft_tensor_options *options;
    void *memory;
    int32_t rank;
    bool is_read_only;
    const char *help; /* if the others have elements */
};

/* As weft_tensor_wrap, for FUNCTION; not collective. */
weft_status wf_tensor_wrap(weft_context *context, const weft_spec *spec,
                           const struct wf_wrapping *wrapping, const char *function,
                           weft_tensor **out) WF_NODISCARD;

/* Where the shard SHARD of a view is in the memory of the shard BASE: *OFFSET elements after its
 * beginning, with STRIDES, which are those of BASE before. */
typedef weft_status wf_view_place(const void *self, const weft_tensor *tensor,
                                  const struct wf_local *base, const weft_shard *shard,
                                  int64_t *offset, int64_t *strides);

/* Make a tensor of layout SPEC in the memory of BASE, whose shards PLACE(SELF, ...) places. */
weft_status wf_tensor_view(weft_tensor *base, const weft_spec *spec, wf_view_place *place,
                           const void *self, weft_tensor **out) WF_NODISCARD;

/* ---- local.c ---- */

/* Set the shards of TENSOR, which has its context and its spec, without memory. */
weft_status wf_locals_make(weft_tensor *tensor) WF_NODISCARD;
void wf_locals_free(weft_tensor *tensor);
/* The shards have their memory: set what moves use. */
void wf_locals_finish(weft_tensor *tensor);
/* Bytes of a block for all shards here; UINT64_MAX: no block is large enough. */
uint64_t wf_tensor_room(const weft_tensor *tensor);
/* Give the shards here their memory in BLOCK, which has so many bytes. */
void wf_locals_place(weft_tensor *tensor, void *block);
/* The shard of RANK, or with a real rank, of this rank. */
struct wf_local *wf_local_of(const weft_tensor *tensor, int32_t rank);
/* True if LOCAL's elements with STRIDES are row-major without gaps. */
bool wf_local_is_dense(const struct wf_local *local, const int64_t *strides);
/* True if steps along two dimensions of LOCAL meet in one element. */
bool wf_local_overlaps(const struct wf_local *local);
/* WEFT_ERR_INVALID if memory of two ranks overlaps, unless they are replicas.  Shards with gaps may
 * interleave: of them, only equal addresses are found.  *COMPARISONS receives how many comparisons
 * of two shards this took. */
weft_status wf_locals_check_apart(const weft_tensor *tensor, uint64_t *comparisons) WF_NODISCARD;
/* Bytes of the shard without gaps. */
uint64_t wf_local_bytes(const weft_tensor *tensor, const struct wf_local *local);

/* ---- agree.c ---- */

/* What this rank passes to a collective call: a tensor or two, or layouts. */
struct wf_passed {
    const weft_spec *from, *to;      /* TO NULL: one alone */
    const char *from_name, *to_name; /* NULL: none, or they may differ */
};

/* The ranks of both meshes compare what they pass.  STATUS is this rank's result so far.  All of
 * them get OK or the same error, which names a rank; WEFT_ERR_MISMATCH if they pass different
 * layouts or names.  A rank outside the meshes gets STATUS. */
weft_status wf_tensors_agree(weft_context *context, const struct wf_passed *passed,
                             const char *function, weft_status status) WF_NODISCARD;
/* Append "NAME: f32[2,3] S(0) on 2", without the name if it is NULL. */
void wf_layout_add(const weft_spec *spec, const char *name, struct wf_text *out);

/* ---- dense.c ---- */

/* True if carriers move TENSOR to TARGET from memory to memory: none has gaps, and their memory
 * begins at the same address or does not overlap.  Else one of them is copied.  The carrier of
 * simulated ranks copes with overlap itself. */
static inline bool wf_pair_is_direct(const weft_tensor *tensor, const weft_tensor *target)
{
    uintptr_t from = (uintptr_t)tensor->held, to = (uintptr_t)target->held;

    return tensor->is_dense && target->is_dense &&
           (from == to || from >= target->end || to >= tensor->end);
}
/* Set *FROM and *TO to the memory without gaps for a move that is not direct: copies of the
 * elements that TARGET's would overlap.  After the move, wf_dense_unpack follows. */
weft_status wf_pair_pack(weft_tensor *tensor, weft_tensor *target, weft_stream *stream,
                         const void **from, void **to) WF_NODISCARD;

/* Set *OUT to the elements of LOCAL without gaps: its memory, or a copy that is posted to STREAM.
 * The copy is valid until the next call with TENSOR. */
weft_status wf_local_pack(weft_tensor *tensor, struct wf_local *local, weft_stream *stream,
                          void **out) WF_NODISCARD;
/* Set *OUT to memory for the elements of LOCAL without gaps, which work on STREAM writes.
 * wf_local_unpack follows. */
weft_status wf_local_begin(weft_tensor *tensor, struct wf_local *local, weft_stream *stream,
                           void **out) WF_NODISCARD;
/* Copy that memory to the shard; nothing to do if it is the shard's own. */
weft_status wf_local_unpack(weft_tensor *tensor, struct wf_local *local,
                            weft_stream *stream) WF_NODISCARD;
/* The same for all shards here. */
weft_status wf_dense_unpack(weft_tensor *tensor, weft_stream *stream) WF_NODISCARD;
/* Work on STREAM for FUNCTION begins after the work on the stream that has used DENSE before. */
weft_status wf_dense_follow(const weft_tensor *tensor, struct wf_dense *dense, weft_stream *stream,
                            const char *function) WF_NODISCARD;
void wf_dense_free(weft_tensor *tensor);

/* ---- drawer.c ---- */

struct cpu_sampler;
/* Draw the elements of LOCAL on the device, in the order of STREAM.  WEFT_ERR_UNSUPPORTED: the
 * backend has no kernel for it, and nothing was drawn. */
weft_status wf_local_draw(const weft_tensor *tensor, struct wf_local *local,
                          const struct cpu_sampler *sampler, weft_stream *stream,
                          const char *function) WF_NODISCARD;

/* ---- view.c ---- */

/* SPEC with the placements PLACEMENTS and another shape. */
weft_status wf_view_spec(const weft_spec *spec, int32_t dims, const int64_t *shape,
                         const weft_placement *placements, weft_spec **out) WF_NODISCARD;
/* Refuse a view of TENSOR because its layout does not allow it, for the reason in the thread's last
 * error.  The text has the layout in which the axes of the set AXES, a bit per axis, are
 * replicated, and the price of the move to it. */
weft_status wf_view_refuse(const weft_tensor *tensor, uint32_t axes) WF_NODISCARD;

/* ---- moves.c ---- */

/* Both tensors can be used and have one context, and TARGET may be written. */
weft_status wf_pair_check(const weft_tensor *tensor, const weft_tensor *target,
                          const char *function) WF_NODISCARD;
/* Post the move of TENSOR to TARGET, as weft_tensors_move_into, for FUNCTION. */
weft_status wf_tensor_move_into(weft_tensor *tensor, weft_tensor *target,
                                const struct wf_moving *how, weft_stream *stream, weft_work **work,
                                const char *function) WF_NODISCARD;
/* As weft_tensor_move, for FUNCTION.  STATUS is this rank's result so far: unless it is OK, all
 * ranks of both meshes get the error. */
weft_status wf_tensor_move(weft_tensor *tensor, const weft_spec *spec, const struct wf_moving *how,
                           weft_stream *stream, const char *function, weft_status status,
                           weft_tensor **out) WF_NODISCARD;
/* TENSOR in the layout SPEC: TENSOR itself with one more reference, or moved as HOW says. */
weft_status wf_tensor_in(weft_tensor *tensor, const weft_spec *spec, const struct wf_moving *how,
                         weft_stream *stream, const char *function, weft_status status,
                         weft_tensor **out) WF_NODISCARD;

/* ---- lists.c ---- */

/* As weft_tensors_move_into, for FUNCTION. */
weft_status wf_tensors_move_into(size_t count, weft_tensor *const *tensors,
                                 weft_tensor *const *targets, const struct wf_moving *how,
                                 weft_stream *stream, weft_work **work,
                                 const char *function) WF_NODISCARD;

/* ---- copy.c ---- */

/* Wait for STREAM, and set *OUT to the elements of LOCAL without gaps in host memory: its memory,
 * or a copy.  wf_local_unread follows. */
weft_status wf_local_read(weft_tensor *tensor, struct wf_local *local, weft_stream *stream,
                          void **out) WF_NODISCARD;
void wf_local_unread(const weft_tensor *tensor, const struct wf_local *local, void *elements);
/* Set every element of LOCAL to ELEMENT, in the order of STREAM. */
weft_status wf_local_fill(weft_tensor *tensor, struct wf_local *local, const void *element,
                          weft_stream *stream) WF_NODISCARD;

/* ---- shown.c ---- */

enum { WF_SHOWN_ALL = 1000 }; /* a text has all elements of a tensor of up to so many */

/* The elements that a text has: in each dimension all indices, or the first and the last ones. */
struct wf_shown {
    int32_t dims;
    int64_t shape[WEFT_MAX_DIMS]; /* of the array */
    int64_t edge;                 /* first and last indices that are shown; 0: all are */
    int64_t counts[WEFT_MAX_DIMS];
    int64_t count; /* elements in all */
    uint32_t dtype;
    char *elements; /* row-major */
};

void wf_shown_choose(struct wf_shown *shown, int32_t dims, const int64_t *shape, uint32_t dtype);
/* The index that is shown at POSITION of DIM. */
int64_t wf_shown_index(const struct wf_shown *shown, int32_t dim, int64_t position);
/* Read the elements of LOCAL that SHOWN, chosen for the shard, has. */
weft_status wf_shown_read(struct wf_shown *shown, const weft_tensor *tensor,
                          const struct wf_local *local, weft_stream *stream) WF_NODISCARD;
/* The same for the whole tensor, which has no partial placement, together with the other ranks.
 * *MEMBER is false on ranks outside the mesh. */
weft_status wf_shown_gather(struct wf_shown *shown, const weft_tensor *tensor, weft_stream *stream,
                            const char *function, weft_status status, bool *member) WF_NODISCARD;
void wf_shown_free(struct wf_shown *shown);

/* ---- figures.c ---- */

/* How NumPy writes the elements of one array: all of them have one width. */
struct wf_figures {
    uint32_t dtype;
    struct wf_figure {
        bool exponent;
        int left, right; /* characters before and after the point */
        int fraction;    /* digits after the point with an exponent */
        int power;       /* digits of the exponent */
    } re, im;
};

void wf_figures_choose(struct wf_figures *figures, uint32_t dtype, const char *elements,
                       int64_t count);
/* VALUE as text for messages, with as many digits as it takes to tell it from other numbers. */
struct wf_exact {
    char text[32];
};
struct wf_exact wf_exact(double value);
enum { WF_FIGURE_BYTES = 160 };
void wf_figure_print(const struct wf_figures *figures, const void *element,
                     char out[WF_FIGURE_BYTES]);

#endif
