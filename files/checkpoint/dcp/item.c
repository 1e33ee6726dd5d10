/* item.c - see item.h.  The records of the archive are NAME/data.pkl, a pickle that describes the
 * tensor; NAME/data/0, its storage; and NAME/byteorder. */
#include "checkpoint/dcp/item.h"
#include "checkpoint/dcp/pickle.h"

#include <inttypes.h>
#include <string.h>

enum { END = 22, LOCATOR = 20, END64 = 56, ENTRY = 46, LOCAL = 30, TAIL = 1024, MOST = 1 << 20 };

struct record {
    uint64_t at, bytes; /* in the item */
    bool found;
};

struct archive {
    struct wf_inputs *inputs;
    const struct wf_item *item;
    const char *what;
    struct record pickle, storage, order;
};

static uint64_t number(const unsigned char *bytes, int count)
{
    uint64_t value = 0;

    for (int i = count; i-- > 0;)
        value = value << 8 | bytes[i];
    return value;
}

static weft_status refuse(const struct archive *a, const char *reason)
{
    return wf_fail(WEFT_ERR_PARSE, "%s: %s", a->what, reason);
}

/* Read COUNT bytes at AT of the item. */
static weft_status read_item(const struct archive *a, uint64_t at, void *target, uint64_t count)
{
    if (at > a->item->bytes || count > a->item->bytes - at)
        return refuse(a, "a record leaves the item");
    return wf_inputs_read(a->inputs, a->item->file, a->item->at + at, target, (size_t)count);
}

/* ---- the directory ---- */

/* Find the directory: from the end record, or from its 64-bit form. */
static weft_status find_directory(const struct archive *a, uint64_t *at, uint64_t *bytes)
{
    unsigned char tail[TAIL], end64[END64], *end = NULL;
    uint64_t size = a->item->bytes < TAIL ? a->item->bytes : TAIL;

    if (size < END) return refuse(a, "the item is too short for an archive");
    WF_TRY(read_item(a, a->item->bytes - size, tail, size));
    for (uint64_t i = size - END + 1; i-- > 0 && end == NULL;)
        if (memcmp(tail + i, "PK\5\6", 4) == 0) end = tail + i;
    if (end == NULL) return refuse(a, "the item is not a zip archive");
    *bytes = number(end + 12, 4);
    *at = number(end + 16, 4);
    if (end - tail < LOCATOR || memcmp(end - LOCATOR, "PK\6\7", 4) != 0) return WEFT_OK;
    WF_TRY(read_item(a, number(end - LOCATOR + 8, 8), end64, END64));
    if (memcmp(end64, "PK\6\6", 4) != 0) return refuse(a, "the archive has no 64-bit end record");
    *bytes = number(end64 + 40, 8);
    *at = number(end64 + 48, 8);
    return WEFT_OK;
}

static bool ends_with(const unsigned char *name, size_t length, const char *end)
{
    size_t tail = strlen(end);

    return length >= tail && memcmp(name + length - tail, end, tail) == 0;
}

/* Replace a number that does not fit 32 bits by the next one of the 64-bit extra field. */
static bool widen(uint64_t *value, const unsigned char **extra, size_t *left)
{
    if (*value != UINT32_MAX) return true;
    if (*left < 8) return false;
    *value = number(*extra, 8);
    *extra += 8;
    *left -= 8;
    return true;
}

/* Find the extra field 1, of an entry's EXTRA. */
static void find_wide(const unsigned char **extra, size_t *left)
{
    while (*left >= 4) {
        size_t length = (size_t)number(*extra + 2, 2);
        bool wide = number(*extra, 2) == 1;
        *extra += 4;
        *left -= 4;
        if (length > *left) break;
        if (wide) {
            *left = length;
            return;
        }
        *extra += length;
        *left -= length;
    }
    *left = 0;
}

static weft_status note_entry(struct archive *a, const unsigned char *entry, size_t name_length,
                              size_t extra_length)
{
    const unsigned char *name = entry + ENTRY, *extra = name + name_length;
    uint64_t packed = number(entry + 20, 4), bytes = number(entry + 24, 4);
    uint64_t header = number(entry + 42, 4);
    struct record *record = ends_with(name, name_length, "/data.pkl")    ? &a->pickle
                            : ends_with(name, name_length, "/data/0")    ? &a->storage
                            : ends_with(name, name_length, "/byteorder") ? &a->order
                                                                         : NULL;
    unsigned char local[LOCAL];

    if (record == NULL) return WEFT_OK;
    if (record->found) return refuse(a, "a record stands twice in the archive");
    find_wide(&extra, &extra_length);
    if (!widen(&bytes, &extra, &extra_length) || !widen(&packed, &extra, &extra_length) ||
        !widen(&header, &extra, &extra_length))
        return refuse(a, "a 64-bit size is missing");
    if (number(entry + 10, 2) != 0 || packed != bytes)
        return refuse(a, "a record is compressed; torch.save does not compress");
    WF_TRY(read_item(a, header, local, LOCAL));
    if (memcmp(local, "PK\3\4", 4) != 0) return refuse(a, "a record has no header");
    record->at = header + LOCAL + number(local + 26, 2) + number(local + 28, 2);
    record->bytes = bytes;
    record->found = true;
    if (record->at > a->item->bytes || bytes > a->item->bytes - record->at)
        return refuse(a, "a record leaves the item");
    return WEFT_OK;
}

static weft_status read_entries(struct archive *a, const unsigned char *directory, size_t bytes)
{
    size_t at = 0;

    while (bytes - at >= ENTRY) {
        const unsigned char *entry = directory + at;
        size_t name = (size_t)number(entry + 28, 2), extra = (size_t)number(entry + 30, 2);
        size_t whole = ENTRY + name + extra + (size_t)number(entry + 32, 2);
        if (memcmp(entry, "PK\1\2", 4) != 0 || whole > bytes - at)
            return refuse(a, "the directory of the archive is malformed");
        WF_TRY(note_entry(a, entry, name, extra));
        at += whole;
    }
    if (a->pickle.found && a->storage.found) return WEFT_OK;
    return refuse(a, "the archive lacks data.pkl or data/0");
}

static weft_status read_directory(struct archive *a)
{
    uint64_t at = 0, bytes = 0;
    weft_status status;
    unsigned char *directory;

    WF_TRY(find_directory(a, &at, &bytes));
    if (bytes > MOST || bytes > a->item->bytes) return refuse(a, "the directory is too large");
    directory = wf_alloc((size_t)bytes);
    if (directory == NULL) return wf_fail_memory((size_t)bytes);
    status = read_item(a, at, directory, bytes);
    if (status == WEFT_OK) status = read_entries(a, directory, (size_t)bytes);
    wf_free(directory);
    return status;
}

static weft_status check_order(const struct archive *a)
{
    char text[6];

    if (!a->order.found) return WEFT_OK; /* archives of old versions are little endian */
    if (a->order.bytes == sizeof text) {
        WF_TRY(read_item(a, a->order.at, text, sizeof text));
        if (memcmp(text, "little", sizeof text) == 0) return WEFT_OK;
    }
    return wf_fail(WEFT_ERR_UNSUPPORTED, "%s: its elements are big endian", a->what);
}

/* ---- the tensor ---- */

static const struct wf_pickle *argument(const struct wf_pickle *call, uint32_t index)
{
    return call->arguments->count > index ? call->arguments->items[index] : NULL;
}

/* The dtype of a call that rebuilds a tensor, from its storage or from an argument. */
static const char *dtype_of(const struct wf_pickle *call)
{
    const struct wf_pickle *storage = argument(call, 0), *dtype = argument(call, 6);

    if (storage == NULL || storage->kind != WF_PICKLE_STORAGE ||
        storage->first->kind != WF_PICKLE_TUPLE || storage->first->count < 3)
        return NULL;
    if (wf_pickle_is(call, WF_NAME_REBUILD_TYPED_TENSOR))
        return dtype != NULL && dtype->kind == WF_PICKLE_GLOBAL && dtype->name == WF_NAME_DTYPE
                   ? dtype->text
                   : NULL;
    storage = storage->first->items[1];
    return storage->kind == WF_PICKLE_GLOBAL && storage->name == WF_NAME_STORAGE ? storage->text
                                                                                 : NULL;
}

/* Take shape, strides and offset from CALL; the elements must lie within the storage. */
static weft_status place_tensor(const struct archive *a, const struct wf_pickle *call,
                                struct wf_item *item)
{
    const struct wf_pickle *offset = argument(call, 1);
    int64_t last, span;
    int32_t strides = 0;
    int dtype;
    uint64_t unit;

    item->dtype = dtype_of(call);
    if (item->dtype == NULL || offset == NULL || offset->kind != WF_PICKLE_INT ||
        offset->number < 0 || !wf_pickle_sizes(argument(call, 2), &item->dims, item->shape) ||
        !wf_pickle_sizes(argument(call, 3), &strides, item->strides) || strides != item->dims)
        return refuse(a, "data.pkl does not describe a tensor of up to 8 dimensions");
    dtype = wf_file_dtype_of_torch(item->dtype);
    unit = dtype >= 0 ? wf_file_dtype((size_t)dtype)->bits / 8 : 1; /* float4_e2m1fn_x2: a pair */
    last = offset->number;
    for (int32_t d = 0; d < item->dims; d++) {
        if (item->shape[d] == 0) {
            item->elements = item->at + a->storage.at;
            return WEFT_OK;
        }
        if (!wf_mul_i64(item->shape[d] - 1, item->strides[d], &span) ||
            !wf_add_i64(last, span, &last))
            return refuse(a, "a stride is too large");
    }
    if ((uint64_t)last >= a->storage.bytes / unit)
        return wf_fail(WEFT_ERR_PARSE,
                       "%s: the tensor has an element at %" PRId64 ", but its storage has %" PRIu64,
                       a->what, last, a->storage.bytes / unit);
    item->elements = item->at + a->storage.at + (uint64_t)offset->number * unit;
    return WEFT_OK;
}

static weft_status read_pickle(const struct archive *a, struct wf_item *item)
{
    struct wf_arena arena = {0};
    struct wf_pickle *root = NULL;
    weft_status status;
    char *bytes;

    if (a->pickle.bytes > MOST) return refuse(a, "data.pkl is too large for one tensor");
    bytes = wf_alloc((size_t)a->pickle.bytes);
    if (bytes == NULL) return wf_fail_memory((size_t)a->pickle.bytes);
    status = read_item(a, a->pickle.at, bytes, a->pickle.bytes);
    if (status == WEFT_OK)
        status = wf_pickle_read(&arena, a->what, bytes, (size_t)a->pickle.bytes, &root);
    if (status == WEFT_OK) {
        const struct wf_pickle *call = root;
        if (wf_pickle_is(call, WF_NAME_REBUILD_PARAMETER)) call = argument(call, 0);
        if (wf_pickle_is(call, WF_NAME_REBUILD_TENSOR) ||
            wf_pickle_is(call, WF_NAME_REBUILD_TYPED_TENSOR))
            status = place_tensor(a, call, item);
        else
            status = refuse(a, "data.pkl is not a tensor");
    }
    wf_free(bytes);
    wf_arena_free(&arena);
    return status;
}

weft_status wf_item_read(struct wf_inputs *inputs, const char *what, struct wf_item *item)
{
    struct archive a = {.inputs = inputs, .item = item, .what = what};
    uint64_t size = inputs->list[item->file]->size;

    if (item->at > size || item->bytes > size - item->at)
        return wf_fail(
            WEFT_ERR_PARSE,
            "%s: the item has bytes %" PRIu64 " to %" PRIu64 " of %s, which has %" PRIu64, what,
            item->at, wf_add_capped(item->at, item->bytes), inputs->list[item->file]->name, size);
    WF_TRY(read_directory(&a));
    WF_TRY(check_order(&a));
    return read_pickle(&a, item);
}
