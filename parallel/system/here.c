/* here.c - the shards of a tensor that this process holds. */
#include "here.h"

bool wf_shard_is_dense(const weft_shard *shard, const int64_t *strides)
{
    int64_t stride = 1;

    if (shard->elements == 0) return true;
    for (int32_t d = shard->dims - 1; d >= 0; d--) {
        if (shard->shape[d] > 1 && strides[d] != stride) return false;
        stride *= shard->shape[d];
    }
    return true;
}
