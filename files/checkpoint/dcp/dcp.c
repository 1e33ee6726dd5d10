/* dcp.c - PyTorch's distributed checkpoint: the pickle .metadata, and files *.distcp of items.
 *
 * .metadata has the tensors (state_dict_metadata: dtype, size, and the boxes that make them up) and
 * the place of every item (storage_data: from a name and an offset to a file, an offset and a
 * length). */
#include "checkpoint/dcp/item.h"
#include "checkpoint/dcp/pickle.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char document[] = ".metadata";
#define MOST_BYTES (UINT64_C(1) << 30) /* of .metadata */

struct listed {
    const char *name;
    const struct wf_pickle *value; /* its TensorStorageMetadata or BytesStorageMetadata */
    const struct wf_pickle *chunks;
    const char *dtype;
    int32_t dims;
    int64_t size[WEFT_MAX_DIMS];
    uint32_t found; /* chunks that have an item */
};

struct dcp {
    weft_checkpoint *checkpoint;
    struct wf_arena arena; /* of the pickle */
    struct wf_pickle *root;
    struct listed *list; /* sorted by name */
    size_t count;
};

static weft_status refuse(const char *name, const char *reason)
{
    return wf_fail(WEFT_ERR_PARSE, "%s: \"%.200s\": %s", document, name, reason);
}

/* ---- the tensors ---- */

/* TensorProperties has its fields in a tuple, of which the dtype is the first, or in a dict. */
static const char *dtype_of(const struct wf_pickle *properties)
{
    const struct wf_pickle *dtype = wf_pickle_member(properties, "dtype");

    if (dtype == NULL && wf_pickle_is(properties, WF_NAME_PROPERTIES) &&
        properties->state != NULL && properties->state->kind == WF_PICKLE_TUPLE &&
        properties->state->count > 0)
        dtype = properties->state->items[0];
    return dtype != NULL && dtype->kind == WF_PICKLE_GLOBAL && dtype->name == WF_NAME_DTYPE
               ? dtype->text
               : NULL;
}

static weft_status list_tensor(struct listed *listed)
{
    listed->dtype = dtype_of(wf_pickle_member(listed->value, "properties"));
    listed->chunks = wf_pickle_member(listed->value, "chunks");
    if (listed->dtype == NULL ||
        !wf_pickle_sizes(wf_pickle_member(listed->value, "size"), &listed->dims, listed->size) ||
        listed->chunks == NULL || listed->chunks->kind != WF_PICKLE_LIST)
        return refuse(listed->name,
                      "its properties, size or chunks are not those of a tensor of up "
                      "to 8 dimensions");
    return WEFT_OK;
}

static int compare_listed(const void *left, const void *right)
{
    return strcmp(((const struct listed *)left)->name, ((const struct listed *)right)->name);
}

static weft_status list_tensors(struct dcp *dcp)
{
    const struct wf_pickle *all = wf_pickle_member(dcp->root, "state_dict_metadata");

    if (!wf_pickle_is(dcp->root, WF_NAME_METADATA) || all == NULL || all->kind != WF_PICKLE_DICT)
        return wf_fail(WEFT_ERR_PARSE, "%s is not the metadata of a checkpoint", document);
    dcp->list = wf_calloc(all->count / 2, sizeof *dcp->list);
    if (dcp->list == NULL) return wf_fail_memory(all->count * sizeof *dcp->list);
    for (uint32_t i = 0; i + 1 < all->count; i += 2) {
        struct listed *listed = &dcp->list[dcp->count];
        if (all->items[i]->kind != WF_PICKLE_TEXT)
            return wf_fail(WEFT_ERR_PARSE, "%s: the name of an item is not text", document);
        listed->name = all->items[i]->text;
        listed->value = all->items[i + 1];
        dcp->count++;
        if (wf_pickle_is(listed->value, WF_NAME_BYTES_METADATA))
            dcp->checkpoint->others++;
        else
            WF_TRY(list_tensor(listed));
    }
    if (dcp->count > 0) qsort(dcp->list, dcp->count, sizeof *dcp->list, compare_listed);
    for (size_t i = 1; i < dcp->count; i++)
        if (strcmp(dcp->list[i].name, dcp->list[i - 1].name) == 0)
            return refuse(dcp->list[i].name, "it is listed twice");
    return WEFT_OK;
}

/* ---- the items ---- */

/* Offset and size of chunk INDEX of a tensor; false: it is not a box of its dimensions. */
static bool read_chunk(const struct listed *listed, uint32_t index, int64_t *offset, int64_t *size)
{
    const struct wf_pickle *chunk = listed->chunks->items[index];
    int32_t first = 0, second = 0;

    return wf_pickle_sizes(wf_pickle_member(chunk, "offsets"), &first, offset) &&
           wf_pickle_sizes(wf_pickle_member(chunk, "sizes"), &second, size) &&
           first == listed->dims && second == listed->dims;
}

static bool is_same(int32_t dims, const int64_t *a, const int64_t *b)
{
    return dims == 0 || memcmp(a, b, (size_t)dims * sizeof *a) == 0;
}

/* Find the chunk at OFFSET; the index that the item states is tried first. */
static weft_status find_chunk(const struct listed *listed, const struct wf_pickle *key,
                              const int64_t *offset, int64_t *size)
{
    const struct wf_pickle *hint = wf_pickle_member(key, "index");
    int64_t at[WEFT_MAX_DIMS];

    if (hint != NULL && hint->kind == WF_PICKLE_INT && hint->number >= 0 &&
        hint->number < (int64_t)listed->chunks->count &&
        read_chunk(listed, (uint32_t)hint->number, at, size) && is_same(listed->dims, at, offset))
        return WEFT_OK;
    for (uint32_t i = 0; i < listed->chunks->count; i++) {
        if (!read_chunk(listed, i, at, size))
            return refuse(listed->name, "a chunk is not a box of the tensor's dimensions");
        if (is_same(listed->dims, at, offset)) return WEFT_OK;
    }
    return refuse(listed->name, "an item has an offset that no chunk has");
}

/* PyTorch stores two f4 in an element; safetensors counts them one by one. */
static weft_status unpack_f4(const struct listed *listed, struct wf_piece *piece, int64_t *sizes[3])
{
    int32_t last = listed->dims - 1;

    if (piece->strides != NULL || last < 0)
        return wf_fail(WEFT_ERR_UNSUPPORTED, "tensor \"%.200s\": float4 elements have strides",
                       listed->name);
    for (int i = 0; i < 3; i++)
        if (!wf_mul_i64(sizes[i][last], 2, &sizes[i][last]))
            return refuse(listed->name, "a size is too large");
    piece->dtype = (uint8_t)wf_file_dtype_find("F4");
    return WEFT_OK;
}

static weft_status add_piece(struct dcp *dcp, struct listed *listed, const struct wf_item *item,
                             int64_t *offset, int64_t *size)
{
    int64_t whole[WEFT_MAX_DIMS], row_major[WEFT_MAX_DIMS], *sizes[3] = {size, offset, whole};
    struct wf_piece piece = {.name = listed->name,
                             .shape = size,
                             .offset = offset,
                             .whole = whole,
                             .at = item->elements,
                             .file = item->file,
                             .rank = -1,
                             .dims = (int8_t)listed->dims};
    int dtype = wf_file_dtype_of_torch(listed->dtype);

    if (strcmp(item->dtype, listed->dtype) != 0 || item->dims != listed->dims ||
        !is_same(listed->dims, item->shape, size))
        return refuse(listed->name, "an item has another dtype or shape than .metadata states");
    memcpy(whole, listed->size, sizeof whole);
    wf_row_major(listed->dims, size, row_major);
    for (int32_t d = 0; d < listed->dims; d++)
        if (item->strides[d] != row_major[d] && size[d] > 1) piece.strides = item->strides;
    if (dtype >= 0)
        piece.dtype = (uint8_t)dtype;
    else
        WF_TRY(unpack_f4(listed, &piece, sizes));
    listed->found++;
    return wf_checkpoint_add(dcp->checkpoint, &piece);
}

/* Where an item is: _StorageInfo(relative_path, offset, length). */
static weft_status place_item(struct dcp *dcp, const char *name, const struct wf_pickle *info,
                              struct wf_item *item)
{
    const struct wf_pickle *path = wf_pickle_member(info, "relative_path"),
                           *offset = wf_pickle_member(info, "offset"),
                           *length = wf_pickle_member(info, "length"),
                           *transforms = wf_pickle_member(info, "transform_descriptors");

    if (!wf_pickle_is(info, WF_NAME_STORAGE_INFO) || path == NULL || path->kind != WF_PICKLE_TEXT ||
        offset == NULL || offset->kind != WF_PICKLE_INT || offset->number < 0 || length == NULL ||
        length->kind != WF_PICKLE_INT || length->number < 0)
        return refuse(name, "the place of an item is not a path, an offset and a length");
    if (transforms != NULL && transforms->kind != WF_PICKLE_NONE && transforms->count > 0)
        return wf_fail(WEFT_ERR_UNSUPPORTED,
                       "tensor \"%.200s\" was transformed when it was saved (compressed, for "
                       "example), which weft does not read",
                       name);
    WF_TRY(wf_file_name_check(path->text, document));
    WF_TRY(wf_inputs_add(&dcp->checkpoint->inputs, path->text, &item->file));
    item->at = (uint64_t)offset->number;
    item->bytes = (uint64_t)length->number;
    return WEFT_OK;
}

static weft_status add_item(struct dcp *dcp, const struct wf_pickle *key,
                            const struct wf_pickle *info)
{
    const struct wf_pickle *name = wf_pickle_member(key, "fqn"),
                           *at = wf_pickle_member(key, "offset");
    int64_t offset[WEFT_MAX_DIMS], size[WEFT_MAX_DIMS];
    struct listed *listed, wanted = {0};
    struct wf_item item = {0};
    struct wf_text what = {0};
    weft_status status;
    int32_t dims = 0;

    if (!wf_pickle_is(key, WF_NAME_INDEX) || name == NULL || name->kind != WF_PICKLE_TEXT)
        return wf_fail(WEFT_ERR_PARSE, "%s: the key of an item is not a MetadataIndex", document);
    wanted.name = name->text;
    listed = dcp->count > 0 ? bsearch(&wanted, dcp->list, dcp->count, sizeof wanted, compare_listed)
                            : NULL;
    if (listed == NULL) return refuse(name->text, "an item has a name that is not listed");
    if (listed->chunks == NULL) return WEFT_OK; /* not a tensor */
    if (!wf_pickle_sizes(at, &dims, offset) || dims != listed->dims)
        return refuse(name->text, "an item of a tensor has no offset");
    WF_TRY(find_chunk(listed, key, offset, size));
    WF_TRY(place_item(dcp, listed->name, info, &item));
    wf_text_add(&what, "tensor \"%.200s\" in %s", listed->name,
                dcp->checkpoint->inputs.list[item.file]->name);
    status = wf_text_status(&what);
    if (status == WEFT_OK) status = wf_item_read(&dcp->checkpoint->inputs, what.data, &item);
    wf_text_free(&what);
    return status == WEFT_OK ? add_piece(dcp, listed, &item, offset, size) : status;
}

static weft_status add_items(struct dcp *dcp)
{
    const struct wf_pickle *all = wf_pickle_member(dcp->root, "storage_data");

    if (all == NULL || all->kind != WF_PICKLE_DICT)
        return wf_fail(WEFT_ERR_PARSE, "%s does not tell where the items are", document);
    for (uint32_t i = 0; i + 1 < all->count; i += 2)
        WF_TRY(add_item(dcp, all->items[i], all->items[i + 1]));
    for (size_t i = 0; i < dcp->count; i++)
        if (dcp->list[i].chunks != NULL && dcp->list[i].found == 0)
            return refuse(dcp->list[i].name, "no item has its elements");
    return WEFT_OK;
}

/* ---- the document ---- */

static weft_status read_document(struct dcp *dcp)
{
    struct wf_inputs folder;
    weft_status status;
    uint32_t file = 0;
    char *bytes = NULL;
    size_t size = 0;

    WF_TRY(wf_inputs_begin(&folder, dcp->checkpoint->inputs.path));
    status = wf_inputs_add(&folder, document, &file);
    if (status == WEFT_OK && folder.list[file]->size > MOST_BYTES)
        status = wf_fail(WEFT_ERR_UNSUPPORTED, "%s has more than 2^30 bytes", document);
    if (status == WEFT_OK) {
        size = (size_t)folder.list[file]->size;
        bytes = wf_alloc(size);
        status =
            bytes != NULL ? wf_inputs_read(&folder, file, 0, bytes, size) : wf_fail_memory(size);
    }
    wf_inputs_end(&folder);
    if (status == WEFT_OK) status = wf_pickle_read(&dcp->arena, document, bytes, size, &dcp->root);
    wf_free(bytes);
    return status;
}

weft_status wf_open_dcp(weft_checkpoint *checkpoint)
{
    struct dcp dcp = {.checkpoint = checkpoint};
    weft_status status;

    checkpoint->format = WEFT_FILE_DCP;
    status = read_document(&dcp);
    if (status == WEFT_OK) status = list_tensors(&dcp);
    if (status == WEFT_OK) status = add_items(&dcp);
    wf_free(dcp.list);
    wf_arena_free(&dcp.arena);
    return status == WEFT_OK ? wf_checkpoint_settle(checkpoint) : status;
}
