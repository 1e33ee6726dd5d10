/* read.c - boxes and shards of tensors, from the pieces that contain them. */
#include "checkpoint/rules/view.h"

#include <string.h>

struct reading {
    const weft_checkpoint *checkpoint;
    const struct wf_tensor *tensor;
    const struct wf_piece *piece;
    char *target, *stage;
};

static weft_status read_block(void *state, const struct wf_block *block)
{
    struct reading *r = state;
    struct wf_inputs *inputs = (struct wf_inputs *)&r->checkpoint->inputs;
    struct wf_byte_block bytes;

    WF_TRY(wf_block_to_bytes(block, wf_file_dtype(r->tensor->dtype)->bits, &bytes));
    return wf_block_read(inputs, r->piece->file, r->piece->at, &bytes, r->target, r->stage);
}

void wf_part_of_piece(const struct wf_tensor *tensor, const struct wf_piece *piece,
                      struct wf_part *part)
{
    if (piece->rank >= 0) {
        wf_part_of_shard(part, tensor->spec, piece->rank);
        return;
    }
    wf_part_of_box(part, piece->dims, piece->offset, piece->shape);
    if (piece->strides != NULL)
        memcpy(part->strides, piece->strides, (size_t)piece->dims * sizeof *part->strides);
}

int32_t wf_tensor_fast_dim(const weft_checkpoint *checkpoint, const struct wf_tensor *tensor)
{
    const struct wf_piece *piece;

    if (tensor->view != NULL) return wf_view_fast_dim(tensor->view);
    if (tensor->count == 0) return tensor->dims - 1;
    piece = &checkpoint->pieces[tensor->first];
    if (piece->strides == NULL) return tensor->dims - 1;
    for (int32_t d = tensor->dims - 1; d >= 0; d--)
        if (piece->strides[d] == 1 && piece->shape[d] > 1) return d;
    return -1;
}

/* Boxes ascend in dimension 0: the first one that may contain index START of it. */
static size_t first_piece(const weft_checkpoint *checkpoint, const struct wf_tensor *tensor,
                          int64_t start)
{
    const struct wf_piece *pieces = &checkpoint->pieces[tensor->first];
    size_t low = 0, high = tensor->count;

    if (tensor->spec != NULL || tensor->dims == 0) return 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int64_t offset = pieces[middle].offset != NULL ? pieces[middle].offset[0] : 0;
        if (offset + tensor->longest <= start)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static weft_status read_pieces(struct reading *r, const struct wf_part *part)
{
    const struct wf_tensor *tensor = r->tensor;
    struct wf_part held;

    for (size_t i = first_piece(r->checkpoint, tensor, part->start[0]); i < tensor->count; i++) {
        r->piece = &r->checkpoint->pieces[tensor->first + i];
        if (tensor->spec == NULL && r->piece->offset != NULL && tensor->dims > 0 &&
            r->piece->offset[0] >= part->end)
            break;
        wf_part_of_piece(tensor, r->piece, &held);
        WF_TRY(wf_part_overlaps(&held, part, read_block, r));
    }
    return WEFT_OK;
}

weft_status wf_checkpoint_read_tensor(const weft_checkpoint *checkpoint,
                                      const struct wf_tensor *tensor, const struct wf_part *part,
                                      void *target)
{
    struct reading r = {.checkpoint = checkpoint, .tensor = tensor, .target = target};
    weft_status status;

    if (tensor->view != NULL) return wf_view_read(checkpoint->base, tensor, part, target);
    r.stage = wf_alloc(WF_STAGE);
    if (r.stage == NULL) return wf_fail_memory(WF_STAGE);
    status = read_pieces(&r, part);
    wf_free(r.stage);
    return status;
}

weft_status wf_box_check(const char *function, const char *name, int32_t dims, const int64_t *shape,
                         const int64_t *offset, const int64_t *sizes, int64_t *start,
                         int64_t *extent)
{
    for (int32_t d = 0; d < dims; d++) {
        start[d] = offset != NULL ? offset[d] : 0;
        if (start[d] < 0 || start[d] > shape[d])
            return wf_fail(
                WEFT_ERR_INVALID,
                "%s: tensor \"%s\" has %lld elements in dimension %d, but the box begins "
                "at %lld",
                function, name, (long long)shape[d], d, (long long)start[d]);
        extent[d] = sizes != NULL ? sizes[d] : shape[d] - start[d];
        if (extent[d] < 0 || extent[d] > shape[d] - start[d])
            return wf_fail(WEFT_ERR_INVALID,
                           "%s: tensor \"%s\" has %lld elements in dimension %d, but the box has "
                           "%lld from %lld on",
                           function, name, (long long)shape[d], d, (long long)extent[d],
                           (long long)start[d]);
    }
    return WEFT_OK;
}

/* Name the function and the tensor in an error. */
static weft_status named(weft_status status, const char *function, const struct wf_tensor *tensor)
{
    if (status == WEFT_OK) return status;
    return wf_fail_context(status, "%s: tensor \"%.200s\"", function, tensor->name);
}

uint64_t wf_box_bytes(const char *function, const char *name, uint32_t bits, int32_t dims,
                      const int64_t *shape, const int64_t *offset, const int64_t *sizes)
{
    int64_t start[WEFT_MAX_DIMS] = {0}, extent[WEFT_MAX_DIMS] = {0};
    uint64_t count = bits;

    if (wf_box_check(function, name, dims, shape, offset, sizes, start, extent) != WEFT_OK)
        return 0;
    for (int32_t i = 0; i < dims; i++)
        count *= (uint64_t)extent[i];
    return (count + 7) / 8;
}

static weft_status find_tensor(const weft_checkpoint *checkpoint, const char *function,
                               size_t index, const struct wf_tensor **out)
{
    if (index >= checkpoint->tensor_count)
        return wf_fail(WEFT_ERR_NOT_FOUND, "%s: index is %zu, but the checkpoint has %zu tensor%s",
                       function, index, checkpoint->tensor_count,
                       checkpoint->tensor_count == 1 ? "" : "s");
    *out = &checkpoint->tensors[index];
    return WEFT_OK;
}

int32_t weft_checkpoint_dims(const weft_checkpoint *checkpoint, size_t index)
{
    static const char function[] = "weft_checkpoint_dims";
    const struct wf_tensor *tensor = NULL;

    if (wf_require_kind(checkpoint, WF_KIND_CHECKPOINT, "weft_checkpoint_dims: checkpoint") !=
            WEFT_OK ||
        find_tensor(checkpoint, function, index, &tensor) != WEFT_OK)
        return 0;
    return tensor->dims;
}

uint64_t weft_checkpoint_box_bytes(const weft_checkpoint *checkpoint, size_t index,
                                   const int64_t *offset, const int64_t *sizes)
{
    static const char function[] = "weft_checkpoint_box_bytes";
    const struct wf_tensor *tensor = NULL;

    if (wf_require_kind(checkpoint, WF_KIND_CHECKPOINT, "weft_checkpoint_box_bytes: checkpoint") !=
            WEFT_OK ||
        find_tensor(checkpoint, function, index, &tensor) != WEFT_OK)
        return 0;
    return wf_box_bytes(function, tensor->name, wf_file_dtype(tensor->dtype)->bits, tensor->dims,
                        tensor->shape, offset, sizes);
}

weft_status weft_checkpoint_read(const weft_checkpoint *checkpoint, size_t index,
                                 const int64_t *offset, const int64_t *sizes, void *target)
{
    static const char function[] = "weft_checkpoint_read";
    int64_t start[WEFT_MAX_DIMS] = {0}, extent[WEFT_MAX_DIMS];
    const struct wf_tensor *tensor = NULL;
    struct wf_part part;

    WF_TRY(wf_require_kind(checkpoint, WF_KIND_CHECKPOINT, "weft_checkpoint_read: checkpoint"));
    WF_TRY(wf_require(target, "weft_checkpoint_read: target"));
    WF_TRY(find_tensor(checkpoint, function, index, &tensor));
    WF_TRY(wf_box_check(function, tensor->name, tensor->dims, tensor->shape, offset, sizes, start,
                        extent));
    wf_part_of_box(&part, tensor->dims, start, extent);
    return named(wf_checkpoint_read_tensor(checkpoint, tensor, &part, target), function, tensor);
}

weft_status wf_spec_check(const struct wf_tensor *tensor, const weft_spec *spec, const char *what)
{
    const struct wf_file_dtype *dtype = wf_file_dtype(tensor->dtype);
    uint32_t wanted = weft_spec_dtype(spec);
    const int64_t *shape = weft_spec_shape(spec);
    int32_t dims = weft_spec_dims(spec);
    bool same_shape = dims == tensor->dims;
    struct wf_text text = {0};
    weft_status status;

    for (int32_t d = 0; d < dims && same_shape; d++)
        same_shape = shape[d] == tensor->shape[d];
    if (wf_spec_is_partial(spec))
        return wf_fail(WEFT_ERR_INVALID, "%s has a partial placement; a file has none", what);
    if (same_shape && 8 * wf_dtype_bytes(wanted) == (dtype->bits < 8 ? 8 : dtype->bits))
        return WEFT_OK;
    wf_shape_add_text(tensor->dims, tensor->shape, &text);
    wf_text_add(&text, ", but %s is %s", what, wf_dtype_name(wanted));
    wf_shape_add_text(dims, shape, &text);
    status = wf_text_status(&text);
    if (status == WEFT_OK) status = wf_fail(WEFT_ERR_INVALID, "it is %s%s", dtype->name, text.data);
    wf_text_free(&text);
    return status;
}

weft_status weft_checkpoint_read_shard(const weft_checkpoint *checkpoint, size_t index,
                                       const weft_spec *spec, int32_t rank, void *target)
{
    static const char function[] = "weft_checkpoint_read_shard";
    const struct wf_tensor *tensor = NULL;
    struct wf_part part;

    WF_TRY(
        wf_require_kind(checkpoint, WF_KIND_CHECKPOINT, "weft_checkpoint_read_shard: checkpoint"));
    WF_TRY(wf_require_kind(spec, WF_KIND_SPEC, "weft_checkpoint_read_shard: spec"));
    if (rank < 0) return wf_fail(WEFT_ERR_INVALID, "%s: rank is %d", function, rank);
    if (weft_spec_shard_bytes(spec, rank) > 0)
        WF_TRY(wf_require(target, "weft_checkpoint_read_shard: target"));
    WF_TRY(find_tensor(checkpoint, function, index, &tensor));
    WF_TRY(named(wf_spec_check(tensor, spec, "spec"), function, tensor));
    wf_part_of_shard(&part, spec, rank);
    return named(wf_checkpoint_read_tensor(checkpoint, tensor, &part, target), function, tensor);
}
