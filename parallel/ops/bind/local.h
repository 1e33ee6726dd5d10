/* local.h - attributes that are sizes: which size of a shard they are for a kernel. */
#ifndef WEFT_OPS_LOCAL_H
#define WEFT_OPS_LOCAL_H

#include "base/base.h"
#include "weft/ops.h"

enum { WF_LOCAL_SIZES = 12 };

/* What an attribute says about a shard.  Tensors are numbered, inputs before outputs. */
enum wf_local_kind {
    /* number AT is the size of dimension DIM of TENSOR, divided by that of dimension BY_DIM of
     * BY_TENSOR unless that is -1 */
    WF_LOCAL_SIZE,
    WF_LOCAL_GROUPS,  /* the same, and 1 where the divisor is 0 */
    WF_LOCAL_MEMBERS, /* number i is the size of dimension DIM of TENSOR + i */
    /* The first index, and the one behind the last, that a slice takes of dimension DIM of TENSOR.
     * The slice is dimension BY_DIM of BY_TENSOR. */
    WF_LOCAL_START,
    WF_LOCAL_END
};

struct wf_local_size {
    const char *name; /* LENGTH bytes: the attribute */
    uint16_t length;
    uint16_t at;
    uint8_t kind;
    uint8_t dim, by_dim;
    int32_t tensor, by_tensor;
    int64_t start, step; /* of the slice of the whole tensor; a step above 1 divides the size */
};

struct wf_op;

/* Find the sizes of OP's attributes; returns their number.  A size that no dimension has is left
 * out. */
uint32_t wf_local_sizes_find(const struct wf_op *op, struct wf_local_size out[WF_LOCAL_SIZES]);

#endif
