/* view.h - tensors that are made of other tensors, as maps of indices.
 *
 * A view is a tree.  Its leaves are tensors of a checkpoint; its other nodes say how the indices of
 * their children become theirs.  A box of a view is read by following its indices down to boxes of
 * tensors, so no tensor is ever held as a whole. */
#ifndef WEFT_FILE_VIEW_H
#define WEFT_FILE_VIEW_H

#include "checkpoint/file.h"

enum wf_view_kind {
    WF_VIEW_SOURCE,  /* a tensor of the checkpoint */
    WF_VIEW_ZEROS,   /* padding */
    WF_VIEW_CAT,     /* children side by side along `dim` */
    WF_VIEW_STACK,   /* children along a new dimension `dim` */
    WF_VIEW_SLICE,   /* indices of `dim` from `at` on */
    WF_VIEW_SELECT,  /* index `at` of dimension `dim` of the child, which the view lacks */
    WF_VIEW_PERMUTE, /* dimension d is dimension order[d] of the child */
    WF_VIEW_SPLIT,   /* dimensions `dim` and `dim` + 1 are dimension `dim` of the child */
    WF_VIEW_MERGE    /* dimension `dim` is dimensions `dim` and `dim` + 1 of the child */
};

struct wf_view {
    const int64_t *shape;
    const struct wf_view *const *children;
    size_t count;  /* of children */
    size_t source; /* SOURCE: number of the tensor */
    int64_t at;
    uint8_t kind, dtype;
    int8_t dims, dim;
    int8_t order[WEFT_MAX_DIMS];
    bool tied; /* SOURCE: other views may use the same elements */
};

/* A box of a view, and where its elements are in memory: strides in elements. */
struct wf_view_box {
    int64_t start[WEFT_MAX_DIMS], size[WEFT_MAX_DIMS], stride[WEFT_MAX_DIMS];
    int64_t at; /* of its first element */
};

/* ---- view.c: making views.  Arguments are checked; errors say what does not fit ---- */

struct wf_view_list {
    const struct wf_view **items;
    size_t count, capacity;
};

weft_status wf_view_list_add(struct wf_view_list *list, const struct wf_view *view) WF_NODISCARD;
void wf_view_list_free(struct wf_view_list *list);

weft_status wf_view_source(struct wf_arena *arena, const struct wf_tensor *tensor, size_t index,
                           const struct wf_view **out) WF_NODISCARD;
weft_status wf_view_cat(struct wf_arena *arena, int32_t dim, const struct wf_view_list *list,
                        const struct wf_view **out) WF_NODISCARD;
weft_status wf_view_stack(struct wf_arena *arena, int32_t dim, const struct wf_view_list *list,
                          const struct wf_view **out) WF_NODISCARD;
weft_status wf_view_slice(struct wf_arena *arena, const struct wf_view *of, int32_t dim,
                          int64_t first, int64_t end, const struct wf_view **out) WF_NODISCARD;
weft_status wf_view_select(struct wf_arena *arena, const struct wf_view *of, int32_t dim,
                           int64_t index, const struct wf_view **out) WF_NODISCARD;
/* Zeros up to index END of DIM. */
weft_status wf_view_pad(struct wf_arena *arena, const struct wf_view *of, int32_t dim, int64_t end,
                        const struct wf_view **out) WF_NODISCARD;
weft_status wf_view_permute(struct wf_arena *arena, const struct wf_view *of, const int64_t *order,
                            size_t count, const struct wf_view **out) WF_NODISCARD;
/* Dimension DIM becomes two, of which the second has INNER indices. */
weft_status wf_view_split(struct wf_arena *arena, const struct wf_view *of, int32_t dim,
                          int64_t inner, const struct wf_view **out) WF_NODISCARD;
/* Dimensions DIM and DIM + 1 become one. */
weft_status wf_view_merge(struct wf_arena *arena, const struct wf_view *of, int32_t dim,
                          const struct wf_view **out) WF_NODISCARD;
/* SHAPE may have one -1, which is computed. */
weft_status wf_view_reshape(struct wf_arena *arena, const struct wf_view *of, const int64_t *shape,
                            size_t dims, const struct wf_view **out) WF_NODISCARD;

/* ---- visit.c ---- */

/* Call VISIT for boxes of the leaves that are together BOX of VIEW.  No element is visited twice;
 * BOX is not empty. */
typedef weft_status wf_view_visitor(void *state, const struct wf_view *leaf,
                                    const struct wf_view_box *box);
weft_status wf_view_visit(const struct wf_view *view, const struct wf_view_box *box,
                          wf_view_visitor *visit, void *state) WF_NODISCARD;
/* The dimension of VIEW along which elements of its leaves follow each other; -1: none. */
int32_t wf_view_fast_dim(const struct wf_view *view);
/* The whole of VIEW, row-major. */
void wf_view_whole(const struct wf_view *view, struct wf_view_box *out);

/* ---- gather.c ---- */

/* Bytes that reading a view takes besides the target and the stage. */
#define WF_GATHER ((size_t)3 << 20)

/* Read PART of TENSOR, which has a view of tensors of BASE, to TARGET. */
weft_status wf_view_read(const weft_checkpoint *base, const struct wf_tensor *tensor,
                         const struct wf_part *part, void *target) WF_NODISCARD;

#endif
