/* tensor.h - a tensor: a spec and this rank's memory.
 *
 *     tensor.c   creation, references, properties
 *     dense.c    the elements of a tensor with strides, without gaps
 *     moves.c    moves of tensors
 *     copy.c     copies to and from host memory, fill
 *     compare.c  two tensors compared
 *     print.c    tensors as text; shown.c chooses and reads the elements, figures.c formats them
 *     draw.c     random elements
 *     view.c     tensors that share memory: a part of one dimension, two dimensions swapped
 *     reshape.c  another shape for the same elements
 *     dlpack.c   shards shared with other libraries */
#ifndef WEFT_TENSOR_TENSOR_H
#define WEFT_TENSOR_TENSOR_H

#include "comm/comm.h"
#include "comm/context/ended.h"
#include "exec/context/kept.h"
#include "shard/shard.h"
#include "weft/random.h"

/* The elements of a tensor with gaps, copied to memory of their own. */
struct wf_dense {
    void *memory;            /* NULL: none yet */
    void *packer, *unpacker; /* lists of regions from the tensor and to it; NULL: none yet */
    bool was_used;
    const void *stream; /* that used MEMORY last */
};

struct weft_tensor {
    /* Fields that every move uses, in one line of the cache: */
    uint64_t made; /* of fork.h; ended: its context was released */
    weft_context *context;
    weft_spec *spec;
    void *memory;
    char *name;    /* NULL: none */
    bool is_dense; /* row-major without gaps */
    bool is_read_only;
    bool is_own; /* MEMORY is the tensor's */
    _Atomic uint32_t references;
    weft_move_item *items; /* room for a list that begins with this tensor; NULL: none yet */

    uint32_t item_count;
    struct wf_dependent dependent; /* of the world communicator */
    char ended[WF_CAUSE];
    int64_t strides[WEFT_MAX_DIMS];
    weft_shard shard;
    void (*release)(void *argument, void *memory);
    void *argument;
    weft_tensor *base;     /* whose memory this view uses; NULL: not a view */
    struct wf_dense dense; /* of a tensor with gaps, from its first move on */
};

/* WEFT_ERR_INVALID by FUNCTION if TENSOR, its argument named ARGUMENT, cannot be used. */
weft_status wf_tensor_check(const weft_tensor *tensor, const char *function,
                            const char *argument) WF_NODISCARD;
/* Put the tensor's name, if it has one, before this thread's last failure text. */
weft_status wf_tensor_fail(const weft_tensor *tensor, weft_status status, const char *function);
/* As weft_tensor_create, for FUNCTION. */
weft_status wf_tensor_make(weft_context *context, const weft_spec *spec, const char *name,
                           const char *function, weft_tensor **out) WF_NODISCARD;

/* WEFT_ERR_INVALID if TENSOR, which can be used, must not be written. */
weft_status wf_tensor_check_writable(const weft_tensor *tensor, const char *function) WF_NODISCARD;
/* As weft_tensor_wrap, for FUNCTION; not collective.  Elements of read-only memory may overlap. */
weft_status wf_tensor_wrap(weft_context *context, const weft_spec *spec, void *memory,
                           const weft_tensor_options *wanted, bool is_read_only,
                           const char *function, weft_tensor **out) WF_NODISCARD;
/* Make a tensor of layout SPEC whose shard begins OFFSET elements after that of BASE. */
weft_status wf_tensor_view(weft_tensor *base, const weft_spec *spec, int64_t offset,
                           const int64_t *strides, weft_tensor **out) WF_NODISCARD;

/* ---- dense.c ---- */

/* Set *OUT to the elements of TENSOR without gaps: its memory, or a copy that is posted to STREAM.
 * The copy is valid until the next call with TENSOR. */
weft_status wf_dense_pack(weft_tensor *tensor, weft_stream *stream, void **out) WF_NODISCARD;
/* Set *OUT to memory for the elements of TENSOR without gaps, which work on STREAM writes.
 * wf_dense_unpack follows. */
weft_status wf_dense_begin(weft_tensor *tensor, weft_stream *stream, void **out) WF_NODISCARD;
/* Copy that memory to TENSOR; nothing to do if it is TENSOR's own. */
weft_status wf_dense_unpack(weft_tensor *tensor, weft_stream *stream) WF_NODISCARD;
void wf_dense_free(weft_tensor *tensor);

/* ---- view.c ---- */

/* SPEC with the placements PLACEMENTS and another shape. */
weft_status wf_view_spec(const weft_spec *spec, int32_t dims, const int64_t *shape,
                         const weft_placement *placements, weft_spec **out) WF_NODISCARD;
/* Refuse a view of TENSOR because its layout does not allow it, for the reason in the thread's last
 * error.  The text has the layout in which the axes of the set AXES, a bit per axis, are
 * replicated, and the price of the move to it. */
weft_status wf_view_refuse(const weft_tensor *tensor, uint32_t axes) WF_NODISCARD;

/* ---- moves.c ---- */

/* This rank cannot do WHAT for FUNCTION, with STATUS and the thread's last error.  Other ranks
 * would wait for it, so the world communicator fails on all ranks, with this rank in the text.
 * Returns the error. */
weft_status wf_tensors_give_up(weft_context *context, weft_status status, const char *function,
                               const char *what);
/* As weft_tensor_move, for FUNCTION. */
weft_status wf_tensor_move(weft_tensor *tensor, const weft_spec *spec, weft_stream *stream,
                           const char *function, weft_tensor **out) WF_NODISCARD;
/* TENSOR in the layout SPEC: TENSOR itself with one more reference, or moved. */
weft_status wf_tensor_in(weft_tensor *tensor, const weft_spec *spec, weft_stream *stream,
                         const char *function, weft_tensor **out) WF_NODISCARD;

/* ---- copy.c ---- */

/* Wait for STREAM, and set *OUT to the elements of TENSOR without gaps in host memory: its memory,
 * or a copy.  wf_tensor_unread follows. */
weft_status wf_tensor_read(weft_tensor *tensor, weft_stream *stream, void **out) WF_NODISCARD;
void wf_tensor_unread(const weft_tensor *tensor, void *elements);
/* Set every element of this rank's shard to ELEMENT, in the order of STREAM. */
weft_status wf_tensor_fill(weft_tensor *tensor, const void *element,
                           weft_stream *stream) WF_NODISCARD;
/* Bytes of this rank's shard without gaps. */
uint64_t wf_tensor_bytes(const weft_tensor *tensor);

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
/* Read the elements of this rank's shard that SHOWN, chosen for the shard, has. */
weft_status wf_shown_read(struct wf_shown *shown, const weft_tensor *tensor,
                          weft_stream *stream) WF_NODISCARD;
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
enum { WF_FIGURE_BYTES = 160 };
void wf_figure_print(const struct wf_figures *figures, const void *element,
                     char out[WF_FIGURE_BYTES]);

#endif
