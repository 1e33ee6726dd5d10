/* checksum.c - the checksum (base/checksum.c) of a tensor of a checkpoint. */
#include "file.h"

enum { MOST_BYTES = 8 << 20 }; /* of a tensor in memory */

uint64_t wf_checksum_box(const struct wf_tensor *tensor, const int64_t *offset,
                         const int64_t *sizes, const void *elements)
{
    uint32_t bits = wf_file_dtype(tensor->dtype)->bits;
    uint32_t unit = bits < 8 ? 1 : bits > 64 ? 8 : bits / 8; /* bytes of what is hashed */
    int64_t strides[WEFT_MAX_DIMS], at[WEFT_MAX_DIMS] = {0}, run = 1, runs = 1;
    int32_t outer = tensor->dims;
    const char *next = elements;
    uint64_t sum = 0;

    wf_row_major(tensor->dims, tensor->shape, strides);
    for (bool whole = true; outer > 0 && whole; outer--) { /* dimensions that are one run */
        run *= sizes[outer - 1];
        whole = sizes[outer - 1] == tensor->shape[outer - 1];
    }
    for (int32_t d = 0; d < outer; d++)
        runs *= sizes[d];
    for (; runs > 0 && run > 0; runs--) {
        uint64_t first = 0, count = (uint64_t)run * bits / 8 / unit;
        for (int32_t d = 0; d < tensor->dims; d++)
            first += (uint64_t)((offset[d] + (d < outer ? at[d] : 0)) * strides[d]);
        sum += wf_checksum_run(unit, first * bits / 8 / unit, next, count);
        next += count * unit;
        for (int32_t d = outer - 1; d >= 0 && ++at[d] == sizes[d]; d--)
            at[d] = 0;
    }
    return sum;
}

/* A tensor that cannot be cut at whole bytes is one piece. */
static weft_status sum_tensor(const weft_checkpoint *checkpoint, const struct wf_tensor *tensor,
                              uint64_t *out)
{
    int64_t offset[WEFT_MAX_DIMS] = {0}, sizes[WEFT_MAX_DIMS];
    size_t bytes = (size_t)wf_min_i64(tensor->bytes, MOST_BYTES);
    weft_status status = WEFT_OK;
    struct wf_part part;
    struct wf_cut cut;
    uint64_t sum = 0;
    char *buffer;

    if (!wf_cut_make_from(&cut, wf_file_dtype(tensor->dtype)->bits, tensor->dims, tensor->shape,
                          MOST_BYTES, wf_tensor_fast_dim(checkpoint, tensor))) {
        cut = (struct wf_cut){.length = tensor->shape[0], .pieces = 1};
        bytes = (size_t)tensor->bytes;
    }
    buffer = wf_alloc(bytes);
    if (buffer == NULL) return wf_fail_memory(bytes);
    for (uint64_t i = 0; i < cut.pieces && status == WEFT_OK; i++) {
        wf_cut_box(&cut, tensor->dims, tensor->shape, i, offset, sizes);
        wf_part_of_box(&part, tensor->dims, offset, sizes);
        status = wf_checkpoint_read_tensor(checkpoint, tensor, &part, buffer);
        if (status == WEFT_OK) sum += wf_checksum_box(tensor, offset, sizes, buffer);
    }
    wf_free(buffer);
    *out = sum;
    return status;
}

weft_status weft_checkpoint_checksum(const weft_checkpoint *checkpoint, size_t index, uint64_t *out)
{
    const struct wf_tensor *tensor;
    weft_status status;
    uint64_t sum = 0;

    WF_TRY(wf_require_kind(checkpoint, WF_KIND_CHECKPOINT, "weft_checkpoint_checksum: checkpoint"));
    WF_TRY(wf_require(out, "weft_checkpoint_checksum: out"));
    if (index >= checkpoint->tensor_count)
        return wf_fail(
            WEFT_ERR_NOT_FOUND,
            "weft_checkpoint_checksum: index is %zu, but the checkpoint has %zu tensor%s", index,
            checkpoint->tensor_count, checkpoint->tensor_count == 1 ? "" : "s");
    tensor = &checkpoint->tensors[index];
    status = tensor->bytes > 0 ? sum_tensor(checkpoint, tensor, &sum) : WEFT_OK;
    if (status != WEFT_OK)
        return wf_fail_context(status, "weft_checkpoint_checksum: tensor \"%.200s\"", tensor->name);
    *out = sum;
    return WEFT_OK;
}
