/* make.h - rules that are written for the shapes of one call.
 *
 * maker.c has the parts, make.c the operators on one tensor, reshape.c, lists.c, views.c and
 * windows.c the others. */
#ifndef WEFT_OPS_MAKE_H
#define WEFT_OPS_MAKE_H

#include "ops/bind/op.h"

/* ---- maker.c ---- */

/* A signature in the making: factors f0, f1, ... and the dimensions that they form. */
struct wf_maker {
    struct wf_op *op;
    const weft_op_call *call;
    struct wf_text *out;
    int32_t dims; /* of the first input */
    const int64_t *shape;
    int count; /* factors */
    int64_t sizes[WF_RULE_SYMBOLS];
    uint32_t whole, own; /* bit per factor */
};

struct wf_made_dim {
    int count;
    int factor[WEFT_MAX_DIMS];
};

/* A new factor; -1: too many. */
int wf_maker_factor(struct wf_maker *m, int64_t size);
/* " NAME[...]" */
void wf_maker_tensor(struct wf_maker *m, const char *name, int dims,
                     const struct wf_made_dim *made);
/* The clauses that state sizes, and which factors are whole or own. */
void wf_maker_sizes(struct wf_maker *m);
/* Attribute ATTR, a literal, is SIZE for a kernel. */
void wf_maker_local(struct wf_maker *m, const char *attr, struct wf_local_size size);
/* The numbers of attribute NAME; WEFT_ERR_INVALID: absent, or not a list. */
weft_status wf_maker_list(const struct wf_maker *m, const char *name, const int64_t **list,
                          uint32_t *count) WF_NODISCARD;
/* Attribute NAME, an integer; WEFT_ERR_INVALID: absent, or another kind. */
weft_status wf_maker_int(const struct wf_maker *m, const char *name, int64_t *out) WF_NODISCARD;
/* Attribute NAME, a dimension of a tensor of DIMS dimensions; a negative one counts from the end.
 */
weft_status wf_maker_dim(const struct wf_maker *m, const char *name, int32_t dims,
                         int32_t *out) WF_NODISCARD;

/* ---- reshape.c, lists.c ---- */

weft_status wf_make_reshape(struct wf_maker *m) WF_NODISCARD;
weft_status wf_make_cat(struct wf_maker *m) WF_NODISCARD;
weft_status wf_make_stack(struct wf_maker *m) WF_NODISCARD;
weft_status wf_make_split(struct wf_maker *m) WF_NODISCARD;
weft_status wf_make_gather(struct wf_maker *m) WF_NODISCARD;
weft_status wf_make_index(struct wf_maker *m) WF_NODISCARD;
weft_status wf_make_einsum(struct wf_maker *m) WF_NODISCARD;
weft_status wf_make_index_put(struct wf_maker *m) WF_NODISCARD;

/* ---- views.c ---- */

weft_status wf_make_diagonal(struct wf_maker *m) WF_NODISCARD;
weft_status wf_make_diagonal_scatter(struct wf_maker *m) WF_NODISCARD;
weft_status wf_make_unfold(struct wf_maker *m) WF_NODISCARD;
weft_status wf_make_view_dtype(struct wf_maker *m) WF_NODISCARD;

/* ---- windows.c ---- */

weft_status wf_make_conv(struct wf_maker *m) WF_NODISCARD;
weft_status wf_make_conv_bwd(struct wf_maker *m) WF_NODISCARD;
weft_status wf_make_max_pool(struct wf_maker *m) WF_NODISCARD;
weft_status wf_make_avg_pool(struct wf_maker *m) WF_NODISCARD;

#endif
