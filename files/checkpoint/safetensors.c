/* safetensors.c - reads the header of a safetensors file.
 *
 * The file: eight bytes, the length N of the header, little endian; N bytes of JSON; the elements.
 * The header is an object with an entry per tensor, and "__metadata__", an object of strings.  The
 * ranges of the tensors must cover the elements exactly. */
#include "file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { PREFIX = 8, DIMS = 64 };

struct range {
    int64_t begin, end;
    const char *name;
};

struct header {
    struct wf_json_reader json;
    const char *what;
    const struct wf_header_sink *sink;
    uint64_t elements_at, size; /* offset of the elements, and of the end of the file */
    struct wf_arena arena;      /* names of ranges */
    struct range *ranges;
    size_t count, capacity;
};

struct entry {
    bool has_dtype, has_shape, has_offsets;
    int dtype;
    size_t dims;
    int64_t shape[DIMS], offsets[2];
};

static weft_status read_dtype(struct header *h, struct entry *entry)
{
    const struct wf_file_dtype *dtype;

    WF_TRY(wf_json_expect(&h->json, WF_EVENT_STRING));
    entry->dtype = wf_file_dtype_find(h->json.text.data);
    dtype = entry->dtype >= 0 ? wf_file_dtype((size_t)entry->dtype) : NULL;
    if (dtype == NULL || dtype->foreign || strcmp(dtype->name, h->json.text.data) != 0)
        return wf_json_refuse(&h->json, "\"%.40s\" is not a dtype of safetensors",
                              h->json.text.data);
    entry->has_dtype = true;
    return WEFT_OK;
}

static weft_status read_offsets(struct header *h, struct entry *entry)
{
    size_t count;

    WF_TRY(wf_json_read_ints(&h->json, 2, entry->offsets, &count));
    if (count != 2 || entry->offsets[0] > entry->offsets[1])
        return wf_json_refuse(&h->json, "data_offsets must be [begin, end] with begin <= end");
    entry->has_offsets = true;
    return WEFT_OK;
}

static weft_status read_entry(struct header *h, struct entry *entry)
{
    enum wf_json_event event;

    WF_TRY(wf_json_expect(&h->json, WF_EVENT_OBJECT));
    for (;;) {
        WF_TRY(wf_json_next(&h->json, &event));
        if (event == WF_EVENT_OBJECT_END) break;
        if (strcmp(h->json.text.data, "dtype") == 0) {
            WF_TRY(read_dtype(h, entry));
        } else if (strcmp(h->json.text.data, "shape") == 0) {
            WF_TRY(wf_json_read_ints(&h->json, DIMS, entry->shape, &entry->dims));
            entry->has_shape = true;
        } else if (strcmp(h->json.text.data, "data_offsets") == 0) {
            WF_TRY(read_offsets(h, entry));
        } else {
            WF_TRY(wf_json_skip(&h->json));
        }
    }
    if (entry->has_dtype && entry->has_shape && entry->has_offsets) return WEFT_OK;
    return wf_json_refuse(&h->json, "%s is missing",
                          !entry->has_dtype   ? "dtype"
                          : !entry->has_shape ? "shape"
                                              : "data_offsets");
}

/* The size that dtype and shape give must be that of the range. */
static weft_status check_entry(struct header *h, const struct entry *entry)
{
    int64_t bytes, range = entry->offsets[1] - entry->offsets[0];

    if (entry->dims > WEFT_MAX_DIMS)
        return wf_fail(WEFT_ERR_UNSUPPORTED, "it has %zu dimensions; weft reads up to %d",
                       entry->dims, WEFT_MAX_DIMS);
    if (!wf_file_bytes((size_t)entry->dtype, (int32_t)entry->dims, entry->shape, &bytes))
        return wf_json_refuse(&h->json,
                              "its elements are more than 2^62 bits, or end inside a byte");
    if (bytes != range)
        return wf_json_refuse(&h->json,
                              "dtype and shape give %" PRId64 " bytes, but data_offsets %" PRId64,
                              bytes, range);
    if ((uint64_t)entry->offsets[1] > h->size - h->elements_at)
        return wf_json_refuse(&h->json,
                              "data_offsets end at %" PRId64 ", but the file has %" PRIu64
                              " bytes of elements",
                              entry->offsets[1], h->size - h->elements_at);
    return WEFT_OK;
}

static weft_status keep_range(struct header *h, const struct entry *entry, const char *name)
{
    WF_TRY(wf_grow(&h->ranges, sizeof *h->ranges, h->count, &h->capacity));
    h->ranges[h->count++] = (struct range){entry->offsets[0], entry->offsets[1], name};
    return WEFT_OK;
}

static weft_status read_tensor(struct header *h)
{
    const char *name = wf_arena_text(&h->arena, h->json.text.data, h->json.text.length);
    struct entry entry = {0};
    struct wf_piece piece;
    weft_status status;

    if (name == NULL) return wf_fail_memory(h->json.text.length + 1);
    status = read_entry(h, &entry);
    if (status == WEFT_OK) status = check_entry(h, &entry);
    if (status != WEFT_OK) return wf_fail_context(status, "tensor \"%.200s\"", name);
    WF_TRY(keep_range(h, &entry, name));
    piece = (struct wf_piece){.name = name,
                              .shape = entry.shape,
                              .at = h->elements_at + (uint64_t)entry.offsets[0],
                              .rank = -1,
                              .dtype = (uint8_t)entry.dtype,
                              .dims = (int8_t)entry.dims};
    return h->sink->tensor(h->sink->state, &piece);
}

static weft_status read_metadata(struct header *h)
{
    enum wf_json_event event;

    WF_TRY(wf_json_expect(&h->json, WF_EVENT_OBJECT));
    for (;;) {
        char *key;
        weft_status status;
        WF_TRY(wf_json_next(&h->json, &event));
        if (event == WF_EVENT_OBJECT_END) return WEFT_OK;
        key = wf_strdup(h->json.text.data);
        if (key == NULL) return wf_fail_memory(h->json.text.length + 1);
        status = wf_json_expect(&h->json, WF_EVENT_STRING);
        if (status == WEFT_OK) status = h->sink->pair(h->sink->state, key, h->json.text.data);
        wf_free(key);
        if (status != WEFT_OK) return status;
    }
}

static weft_status read_header(struct header *h)
{
    enum wf_json_event event;

    WF_TRY(wf_json_expect(&h->json, WF_EVENT_OBJECT));
    if (h->json.at != 0) return wf_json_refuse(&h->json, "the header must begin with '{'");
    for (;;) {
        WF_TRY(wf_json_next(&h->json, &event));
        if (event == WF_EVENT_OBJECT_END) break;
        if (strcmp(h->json.text.data, "__metadata__") == 0)
            WF_TRY(read_metadata(h));
        else
            WF_TRY(read_tensor(h));
    }
    return wf_json_expect(&h->json, WF_EVENT_END);
}

static int compare_ranges(const void *left, const void *right)
{
    const struct range *a = left, *b = right;

    if (a->begin != b->begin) return a->begin < b->begin ? -1 : 1;
    return a->end < b->end ? -1 : a->end > b->end;
}

static weft_status check_ranges(struct header *h)
{
    uint64_t bytes = h->size - h->elements_at;
    const char *before = "the beginning";
    int64_t at = 0;

    if (h->count > 0) qsort(h->ranges, h->count, sizeof *h->ranges, compare_ranges);
    for (size_t i = 0; i < h->count; i++) {
        const struct range *range = &h->ranges[i];
        if (range->begin != at)
            return wf_fail(WEFT_ERR_PARSE,
                           "%s: tensor \"%.200s\" begins at byte %" PRId64 " of the elements, but "
                           "\"%.200s\" before it ends at %" PRId64,
                           h->what, range->name, range->begin, before, at);
        at = range->end;
        before = range->name;
    }
    if ((uint64_t)at == bytes) return WEFT_OK;
    return wf_fail(WEFT_ERR_PARSE,
                   "%s: the tensors end at byte %" PRId64
                   " of the elements, but the file has %" PRIu64 " bytes of elements",
                   h->what, at, bytes);
}

/* Check the first eight bytes; *LENGTH is the header's. */
static weft_status check_prefix(const char *what, const unsigned char *prefix, uint64_t size,
                                uint64_t *length)
{
    uint64_t n = 0;

    for (int i = PREFIX - 1; i >= 0; i--)
        n = n << 8 | prefix[i];
    if (n > WF_SAFETENSORS_HEADER)
        return wf_fail(WEFT_ERR_PARSE,
                       "%s: the first eight bytes give a header of %" PRIu64
                       " bytes, more than the "
                       "%" PRIu64 " that safetensors allows; this is not a safetensors file",
                       what, n, WF_SAFETENSORS_HEADER);
    if (n > size - PREFIX)
        return wf_fail(WEFT_ERR_PARSE,
                       "%s: the header has %" PRIu64 " bytes, but the file has %" PRIu64
                       "; it is cut short",
                       what, n, size);
    *length = n;
    return WEFT_OK;
}

static weft_status read_from(struct header *h)
{
    weft_status status = read_header(h);

    if (status == WEFT_OK) status = check_ranges(h);
    wf_json_reader_end(&h->json);
    wf_arena_free(&h->arena);
    wf_free(h->ranges);
    return status;
}

static weft_status read_file(struct wf_inputs *inputs, uint32_t index, const char *what,
                             const struct wf_header_sink *sink)
{
    uint64_t size = inputs->list[index]->size, length = 0;
    struct header h = {.what = what, .sink = sink, .size = size};
    struct wf_input_stream source = {inputs, index, PREFIX, 0};
    unsigned char prefix[PREFIX];

    if (size < PREFIX)
        return wf_fail(WEFT_ERR_PARSE,
                       "%s has %" PRIu64 " bytes; a safetensors file has at least 8", what, size);
    WF_TRY(wf_inputs_read(inputs, index, 0, prefix, PREFIX));
    WF_TRY(check_prefix(what, prefix, size, &length));
    source.left = length;
    h.elements_at = PREFIX + length;
    wf_json_reader_stream(&h.json, what, wf_input_fill, &source);
    return read_from(&h);
}

weft_status wf_safetensors_read(struct wf_inputs *inputs, uint32_t index,
                                const struct wf_header_sink *sink)
{
    struct wf_text what = {0};
    weft_status status;

    wf_text_add(&what, "%s/%s", inputs->path, inputs->list[index]->name);
    status = wf_text_status(&what);
    if (status == WEFT_OK) status = read_file(inputs, index, what.data, sink);
    wf_text_free(&what);
    return status;
}
