/* checkpoint.c - a checkpoint as tensors and pieces, and its properties. */
#include "file.h"

#include <stdlib.h>
#include <string.h>

/* ---- pieces ---- */

/* Copy SIZES to the arena; NULL stays NULL. */
static bool keep_sizes(struct wf_arena *arena, int32_t dims, const int64_t **sizes)
{
    if (*sizes != NULL)
        *sizes = wf_arena_sizes(arena, dims, *sizes);
    else
        return true;
    return *sizes != NULL;
}

weft_status wf_checkpoint_add(weft_checkpoint *checkpoint, const struct wf_piece *piece)
{
    struct wf_arena *arena = &checkpoint->arena;
    struct wf_piece copy = *piece;

    WF_TRY(wf_grow(&checkpoint->pieces, sizeof copy, checkpoint->piece_count,
                   &checkpoint->piece_capacity));
    copy.name = wf_arena_text(arena, piece->name, strlen(piece->name));
    if (copy.name == NULL || !keep_sizes(arena, copy.dims, &copy.shape) ||
        !keep_sizes(arena, copy.dims, &copy.offset) ||
        !keep_sizes(arena, copy.dims, &copy.strides) || !keep_sizes(arena, copy.dims, &copy.whole))
        return wf_fail_memory(strlen(piece->name) + 1);
    checkpoint->pieces[checkpoint->piece_count++] = copy;
    return WEFT_OK;
}

weft_status wf_checkpoint_add_replica(weft_checkpoint *checkpoint, const struct wf_piece *piece)
{
    WF_TRY(wf_grow(&checkpoint->replicas, sizeof *piece, checkpoint->replica_count,
                   &checkpoint->replica_capacity));
    checkpoint->replicas[checkpoint->replica_count++] = *piece;
    return WEFT_OK;
}

weft_status wf_checkpoint_add_pair(weft_checkpoint *checkpoint, const char *key, const char *value)
{
    struct wf_pair pair = {wf_arena_text(&checkpoint->arena, key, strlen(key)),
                           wf_arena_text(&checkpoint->arena, value, strlen(value))};

    if (pair.key == NULL || pair.value == NULL)
        return wf_fail_memory(strlen(key) + strlen(value) + 2);
    WF_TRY(wf_grow(&checkpoint->pairs, sizeof pair, checkpoint->pair_count,
                   &checkpoint->pair_capacity));
    checkpoint->pairs[checkpoint->pair_count++] = pair;
    return WEFT_OK;
}

/* ---- tensors ---- */

static int compare_pieces(const void *left, const void *right)
{
    const struct wf_piece *a = left, *b = right;
    int order = strcmp(a->name, b->name);

    if (order != 0) return order;
    for (int32_t d = 0; d < a->dims && d < b->dims; d++) {
        int64_t x = a->offset != NULL ? a->offset[d] : 0, y = b->offset != NULL ? b->offset[d] : 0;
        if (x != y) return x < y ? -1 : 1;
    }
    return a->file < b->file ? -1 : a->file > b->file;
}

static int compare_pairs(const void *left, const void *right)
{
    return strcmp(((const struct wf_pair *)left)->key, ((const struct wf_pair *)right)->key);
}

static const char *file_of(const weft_checkpoint *checkpoint, const struct wf_piece *piece)
{
    return checkpoint->inputs.list[piece->file]->name;
}

/* Two pieces of one tensor must agree on what it is. */
static weft_status check_same(const weft_checkpoint *checkpoint, const struct wf_piece *a,
                              const struct wf_piece *b)
{
    if (a->dtype != b->dtype)
        return wf_fail(WEFT_ERR_PARSE, "tensor \"%s\" has dtype %s in %s, but %s in %s", a->name,
                       wf_file_dtype(a->dtype)->name, file_of(checkpoint, a),
                       wf_file_dtype(b->dtype)->name, file_of(checkpoint, b));
    if (a->dims != b->dims)
        return wf_fail(WEFT_ERR_PARSE, "tensor \"%s\" has %d dimensions in %s, but %d in %s",
                       a->name, a->dims, file_of(checkpoint, a), b->dims, file_of(checkpoint, b));
    if (a->offset == NULL && a->rank < 0)
        return wf_fail(WEFT_ERR_PARSE, "tensor \"%s\" stands in %s and in %s", a->name,
                       file_of(checkpoint, a), file_of(checkpoint, b));
    return WEFT_OK;
}

/* The least shape that contains all pieces, unless they state the shape. */
static weft_status find_shape(weft_checkpoint *checkpoint, struct wf_tensor *tensor)
{
    const struct wf_piece *pieces = &checkpoint->pieces[tensor->first];
    int64_t *shape = wf_arena_sizes(&checkpoint->arena, tensor->dims,
                                    pieces[0].whole != NULL ? pieces[0].whole : pieces[0].shape);

    if (shape == NULL) return wf_fail_memory((size_t)tensor->dims * sizeof *shape);
    for (size_t i = 0; i < tensor->count && pieces[0].whole == NULL; i++)
        for (int32_t d = 0; d < tensor->dims; d++) {
            int64_t end = pieces[i].shape[d];
            if (pieces[i].offset != NULL && !wf_add_i64(end, pieces[i].offset[d], &end))
                return wf_fail(WEFT_ERR_PARSE, "tensor \"%s\": an offset in %s is too large",
                               tensor->name, file_of(checkpoint, &pieces[i]));
            shape[d] = wf_max_i64(shape[d], end);
        }
    tensor->shape = shape;
    if (!wf_file_bytes(tensor->dtype, tensor->dims, shape, &tensor->bytes))
        return wf_fail(WEFT_ERR_PARSE, "tensor \"%s\" has 2^62 bits or more, or half a byte",
                       tensor->name);
    return WEFT_OK;
}

/* The pieces of a tensor are boxes within it, and cover it. */
static weft_status check_boxes(const weft_checkpoint *checkpoint, struct wf_tensor *tensor)
{
    const struct wf_piece *pieces = &checkpoint->pieces[tensor->first];

    for (size_t i = 0; i < tensor->count; i++)
        for (int32_t d = 0; d < tensor->dims; d++) {
            int64_t start = pieces[i].offset != NULL ? pieces[i].offset[d] : 0;
            if (start > tensor->shape[d] || pieces[i].shape[d] > tensor->shape[d] - start)
                return wf_fail(WEFT_ERR_PARSE, "tensor \"%s\": a box in %s leaves the tensor",
                               tensor->name, file_of(checkpoint, &pieces[i]));
            if (d == 0) tensor->longest = wf_max_i64(tensor->longest, pieces[i].shape[0]);
        }
    return wf_cover_check(tensor, pieces, &checkpoint->inputs);
}

static weft_status make_tensor(weft_checkpoint *checkpoint, size_t first, size_t count,
                               struct wf_tensor *tensor)
{
    const struct wf_piece *pieces = &checkpoint->pieces[first];

    *tensor = (struct wf_tensor){.name = pieces[0].name,
                                 .first = first,
                                 .count = count,
                                 .dtype = pieces[0].dtype,
                                 .dims = pieces[0].dims};
    for (size_t i = 1; i < count; i++)
        WF_TRY(check_same(checkpoint, &pieces[0], &pieces[i]));
    WF_TRY(find_shape(checkpoint, tensor));
    if (pieces[0].spec == NULL) return check_boxes(checkpoint, tensor);
    tensor->spec = weft_spec_retain(pieces[0].spec);
    return WEFT_OK;
}

weft_status wf_checkpoint_settle(weft_checkpoint *checkpoint)
{
    size_t count = checkpoint->piece_count, names = 0;
    const struct wf_piece *pieces = checkpoint->pieces;

    if (count > 0) qsort(checkpoint->pieces, count, sizeof *pieces, compare_pieces);
    if (checkpoint->replica_count > 0)
        qsort(checkpoint->replicas, checkpoint->replica_count, sizeof *pieces, compare_pieces);
    if (checkpoint->pair_count > 0)
        qsort(checkpoint->pairs, checkpoint->pair_count, sizeof *checkpoint->pairs, compare_pairs);
    for (size_t i = 0; i < count; i++)
        names += i == 0 || strcmp(pieces[i].name, pieces[i - 1].name) != 0;
    checkpoint->tensors = wf_calloc(names, sizeof *checkpoint->tensors);
    if (checkpoint->tensors == NULL) return wf_fail_memory(names * sizeof *checkpoint->tensors);
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && strcmp(pieces[end].name, pieces[i].name) == 0;)
            end++;
        checkpoint->tensor_count++;
        WF_TRY(make_tensor(checkpoint, i, end - i,
                           &checkpoint->tensors[checkpoint->tensor_count - 1]));
    }
    return WEFT_OK;
}

/* ---- lifetime and properties ---- */

const char *weft_file_format_name(enum weft_file_format format)
{
    static const char *const names[] = {[WEFT_FILE_SAFETENSORS] = "safetensors",
                                        [WEFT_FILE_HUGGING_FACE] = "huggingface",
                                        [WEFT_FILE_RANKS] = "ranks",
                                        [WEFT_FILE_DCP_SAFETENSORS] = "dcp-safetensors",
                                        [WEFT_FILE_DCP] = "dcp",
                                        [WEFT_FILE_NPY] = "npy"};

    return (size_t)format < WF_COUNT(names) ? names[format] : NULL;
}

void weft_checkpoint_close(weft_checkpoint **checkpoint)
{
    weft_checkpoint *object = wf_take(checkpoint, WF_KIND_CHECKPOINT, "weft_checkpoint_close");

    if (object == NULL) return;
    for (size_t i = 0; i < object->tensor_count; i++)
        weft_spec_release(&object->tensors[i].spec);
    weft_mesh_release(&object->mesh);
    if (object->base == NULL) wf_inputs_end(&object->inputs);
    wf_arena_free(&object->arena);
    wf_free(object->pieces);
    wf_free(object->replicas);
    wf_free(object->tensors);
    wf_free(object->pairs);
    wf_free(object->unlisted);
    object->made = wf_released(WF_KIND_CHECKPOINT);
    wf_free(object);
}

weft_status weft_checkpoint_get(const weft_checkpoint *checkpoint, weft_checkpoint_info *out)
{
    weft_checkpoint_info info = {.struct_size = sizeof info};
    const weft_checkpoint *files;

    WF_TRY(wf_require_kind(checkpoint, WF_KIND_CHECKPOINT, "weft_checkpoint_get: checkpoint"));
    WF_TRY(wf_require(out, "weft_checkpoint_get: out"));
    info.format = checkpoint->format;
    for (files = checkpoint; files->base != NULL;)
        files = files->base;
    info.files = (uint32_t)files->inputs.count;
    info.bytes_read = atomic_load_explicit(&files->inputs.read, memory_order_relaxed);
    info.unlisted = files->unlisted_count;
    info.tensors = checkpoint->tensor_count;
    info.others = checkpoint->others;
    info.mesh = checkpoint->mesh;
    info.metadata = checkpoint->pair_count;
    for (size_t i = 0; i < checkpoint->tensor_count; i++)
        info.bytes += (uint64_t)checkpoint->tensors[i].bytes;
    return wf_info_write("weft_checkpoint_info", &info, sizeof info, out);
}

static weft_status check_index(const char *function, size_t index, size_t count, const char *what)
{
    if (index < count) return WEFT_OK;
    return wf_fail(WEFT_ERR_NOT_FOUND, "%s: index is %zu, but there are %zu %s", function, index,
                   count, what);
}

weft_status weft_checkpoint_tensor_get(const weft_checkpoint *checkpoint, size_t index,
                                       weft_checkpoint_tensor_info *out)
{
    weft_checkpoint_tensor_info info = {.struct_size = sizeof info};
    const struct wf_file_dtype *dtype;
    const struct wf_tensor *tensor;

    WF_TRY(
        wf_require_kind(checkpoint, WF_KIND_CHECKPOINT, "weft_checkpoint_tensor_get: checkpoint"));
    WF_TRY(wf_require(out, "weft_checkpoint_tensor_get: out"));
    WF_TRY(check_index("weft_checkpoint_tensor_get", index, checkpoint->tensor_count, "tensors"));
    tensor = &checkpoint->tensors[index];
    dtype = wf_file_dtype(tensor->dtype);
    info.name = tensor->name;
    info.dtype_name = dtype->name;
    info.dtype = dtype->dtype;
    info.bits = dtype->bits;
    info.dims = tensor->dims;
    info.shape = tensor->shape;
    info.bytes = (uint64_t)tensor->bytes;
    info.pieces = tensor->count;
    info.spec = tensor->spec;
    return wf_info_write("weft_checkpoint_tensor_info", &info, sizeof info, out);
}

static weft_status fail_find(const weft_checkpoint *checkpoint, const char *name)
{
    const char **names = wf_alloc(checkpoint->tensor_count * sizeof *names);
    const weft_checkpoint *files = checkpoint;
    const struct wf_unlisted *unlisted = wf_unlisted_named(checkpoint, name);
    int nearest = -1;
    bool is_file;

    if (names == NULL) return wf_fail_memory(checkpoint->tensor_count * sizeof *names);
    if (unlisted != NULL) {
        wf_free(names);
        return wf_fail(WEFT_ERR_NOT_FOUND,
                       "weft_checkpoint_find: %s/%s does not list tensor \"%s\", which %s has; add "
                       "it to the index",
                       files->inputs.path, files->index, name, unlisted->file);
    }
    for (size_t i = 0; i < checkpoint->tensor_count; i++)
        names[i] = checkpoint->tensors[i].name;
    nearest = wf_nearest(name, names, checkpoint->tensor_count);
    while (files->base != NULL)
        files = files->base;
    is_file = (files->format == WEFT_FILE_SAFETENSORS || files->format == WEFT_FILE_NPY) &&
              files->inputs.count == 1;
    wf_fail(WEFT_ERR_NOT_FOUND, "weft_checkpoint_find: %s%s%s%s has no tensor \"%s\"%s%s%s",
            files != checkpoint ? "after its rules, " : "", files->inputs.path, is_file ? "/" : "",
            is_file ? files->inputs.list[0]->name : "", name,
            nearest >= 0 ? "; did you mean \"" : "", nearest >= 0 ? names[nearest] : "",
            nearest >= 0 ? "\"?" : "");
    wf_free(names);
    return WEFT_ERR_NOT_FOUND;
}

weft_status weft_checkpoint_find(const weft_checkpoint *checkpoint, const char *name, size_t *index)
{
    size_t low = 0, high;

    WF_TRY(wf_require_kind(checkpoint, WF_KIND_CHECKPOINT, "weft_checkpoint_find: checkpoint"));
    WF_TRY(wf_require(name, "weft_checkpoint_find: name"));
    WF_TRY(wf_require(index, "weft_checkpoint_find: index"));
    high = checkpoint->tensor_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(name, checkpoint->tensors[middle].name);
        if (order == 0) {
            *index = middle;
            return WEFT_OK;
        }
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return fail_find(checkpoint, name);
}

weft_status weft_checkpoint_metadata_get(const weft_checkpoint *checkpoint, size_t index,
                                         const char **key, const char **value)
{
    WF_TRY(wf_require_kind(checkpoint, WF_KIND_CHECKPOINT,
                           "weft_checkpoint_metadata_get: checkpoint"));
    WF_TRY(wf_require(key, "weft_checkpoint_metadata_get: key"));
    WF_TRY(wf_require(value, "weft_checkpoint_metadata_get: value"));
    WF_TRY(check_index("weft_checkpoint_metadata_get", index, checkpoint->pair_count,
                       "pairs of metadata"));
    *key = checkpoint->pairs[index].key;
    *value = checkpoint->pairs[index].value;
    return WEFT_OK;
}
