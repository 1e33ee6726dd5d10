/* distinct.c - gradients that are written: no tensor twice, and no two in the same memory. */
#include "clip.h"

#include "base/range.h"

#include <stdlib.h>

/* Memory of a shard, or with 0 bytes the tensor itself. */
struct range {
    const void *start;
    uint64_t bytes;
    uint32_t tensor;
    int32_t rank;
};

static int compare(const void *a, const void *b)
{
    const struct range *first = a, *second = b;
    uintptr_t x = (uintptr_t)first->start, y = (uintptr_t)second->start;

    if (x != y) return x < y ? -1 : 1;
    return (first->bytes > second->bytes) - (first->bytes < second->bytes);
}

/* List the memory of TENSORS.  A shard with gaps is listed by its first element alone, because
 * other tensors may lie between its elements. */
static weft_status list_ranges(const weft_context *context, uint32_t count,
                               weft_tensor *const *tensors, struct range *out, size_t *listed)
{
    for (uint32_t i = 0; i < count; i++) {
        const weft_tensor *tensor = tensors[i];

        if (tensor == NULL) continue;
        out[(*listed)++] = (struct range){.start = tensor, .tensor = i};
        for (int32_t j = 0; j < wf_here_count(context); j++) {
            uint64_t bytes = wf_dtype_bytes(weft_spec_dtype(weft_tensor_spec(tensor)));
            weft_tensor_local_info local;

            WF_TRY(wf_here_get(tensor, j, &local));
            if (local.shard.elements == 0) continue;
            if (wf_here_is_dense(&local)) bytes *= (uint64_t)local.shard.elements;
            out[(*listed)++] = (struct range){local.memory, bytes, i, wf_here_rank(context, j)};
        }
    }
    return WEFT_OK;
}

static weft_status refuse(weft_tensor *const *tensors, const struct range *a, const struct range *b)
{
    if (a->tensor != b->tensor && tensors[a->tensor] == tensors[b->tensor])
        return wf_fail(WEFT_ERR_INVALID, "a tensor is listed twice, as tensors %u and %u",
                       a->tensor < b->tensor ? a->tensor : b->tensor,
                       a->tensor < b->tensor ? b->tensor : a->tensor);
    return wf_fail(WEFT_ERR_INVALID,
                   "tensor %u (rank %d, %llu bytes at %p) and tensor %u (rank %d, %llu bytes at "
                   "%p) overlap",
                   a->tensor, a->rank, (unsigned long long)a->bytes, a->start, b->tensor, b->rank,
                   (unsigned long long)b->bytes, b->start);
}

/* RANGES are sorted. */
static weft_status check_ranges(weft_tensor *const *tensors, const struct range *ranges,
                                size_t count)
{
    const struct range *furthest = NULL, *tensor = NULL;

    for (size_t i = 0; i < count; i++) {
        const struct range *range = &ranges[i];

        if (range->bytes == 0) {
            if (tensor != NULL && tensor->start == range->start)
                return refuse(tensors, tensor, range);
            tensor = range;
            continue;
        }
        if (furthest != NULL &&
            wf_ranges_overlap(furthest->start, furthest->bytes, range->start, range->bytes))
            return refuse(tensors, furthest, range);
        furthest = range; /* it begins where the one before has ended */
    }
    return WEFT_OK;
}

weft_status wf_clip_check_distinct(const weft_context *context, uint32_t count,
                                   weft_tensor *const *tensors)
{
    size_t room = 1 + count * (1 + (size_t)wf_here_count(context)), listed = 0;
    struct range *ranges = wf_calloc(room, sizeof *ranges);
    weft_status status;

    if (ranges == NULL) return wf_fail_memory(room * sizeof *ranges);
    status = list_ranges(context, count, tensors, ranges, &listed);
    qsort(ranges, listed, sizeof *ranges, compare);
    if (status == WEFT_OK) status = check_ranges(tensors, ranges, listed);
    wf_free(ranges);
    return status;
}
