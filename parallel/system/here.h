/* here.h - the shards of a tensor that this process holds: that of its rank or, if ranks are
 * simulated, those of all ranks. */
#ifndef WEFT_PARALLEL_HERE_H
#define WEFT_PARALLEL_HERE_H

#include "base/base.h"
#include "weft/tensor.h"

/* The number of shards of a tensor of CONTEXT. */
static inline int32_t wf_here_count(const weft_context *context)
{
    return weft_is_simulated(context) ? weft_size(context) : 1;
}

/* The rank of shard number INDEX. */
static inline int32_t wf_here_rank(const weft_context *context, int32_t index)
{
    return weft_is_simulated(context) ? index : weft_rank(context);
}

/* Set *OUT to shard number INDEX. */
static inline weft_status wf_here_get(const weft_tensor *tensor, int32_t index,
                                      weft_tensor_local_info *out)
{
    out->struct_size = sizeof *out;
    return weft_tensor_local_of(tensor, wf_here_rank(weft_tensor_context(tensor), index), out);
}

/* True if SHARD with STRIDES is row-major without gaps. */
bool wf_shard_is_dense(const weft_shard *shard, const int64_t *strides);
/* True if LOCAL is row-major without gaps. */
static inline bool wf_here_is_dense(const weft_tensor_local_info *local)
{
    return wf_shard_is_dense(&local->shard, local->strides);
}

#endif
