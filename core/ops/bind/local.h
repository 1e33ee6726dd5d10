/* local.h - attributes that are sizes: which size of a shard they are for a kernel. */
#ifndef WEFT_OPS_LOCAL_H
#define WEFT_OPS_LOCAL_H

#include "base/base.h"
#include "weft/ops.h"

enum { WF_LOCAL_SIZES = 12 };

/* Number AT of attribute NAME, which is LENGTH bytes of the rule's text, is the size of dimension
 * DIM of a shard: of tensor TENSOR, inputs before outputs; divided by that of BY_TENSOR unless that
 * is -1. */
struct wf_local_size {
    const char *name;
    uint16_t length;
    uint16_t at;
    int32_t tensor, by_tensor;
    uint8_t dim, by_dim;
};

struct wf_op;

/* Find the sizes of OP's attributes; returns their number.  A size that no dimension has is left
 * out. */
uint32_t wf_local_sizes_find(const struct wf_op *op, struct wf_local_size out[WF_LOCAL_SIZES]);

#endif
