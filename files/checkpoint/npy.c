/* npy.c - reads NumPy's .npy: a magic, a version, the length of the header, the header (a Python
 * dictionary with descr, fortran_order and shape), the elements. */
#include "file.h"

#include <inttypes.h>
#include <string.h>

enum { MAGIC = 6, LONGEST = 1 << 20 };

struct array {
    int dtype;
    bool column_major, has_descr, has_order, has_shape;
    int32_t dims;
    int64_t shape[WEFT_MAX_DIMS];
};

/* A text in single or double quotes without escapes. */
static weft_status scan_quoted(struct wf_scan *scan, const char *what, char *out, size_t capacity)
{
    char quote = wf_scan_peek(scan);
    size_t length = 0;

    if (quote != '\'' && quote != '"')
        return wf_scan_fail(scan, NULL, "expected %s in quotes", what);
    scan->at++;
    for (; wf_scan_peek(scan) != quote; scan->at++) {
        if (wf_scan_end(scan) || length + 1 >= capacity)
            return wf_scan_fail(scan, NULL, "expected the end of %s", what);
        out[length++] = wf_scan_peek(scan);
    }
    scan->at++;
    out[length] = '\0';
    return WEFT_OK;
}

static weft_status scan_descr(struct wf_scan *scan, struct array *array)
{
    struct wf_scan at = *scan;
    char descr[16];

    if (wf_scan_peek(scan) == '[')
        return wf_fail(WEFT_ERR_UNSUPPORTED, "it is an array of records, which weft does not read");
    WF_TRY(scan_quoted(scan, "descr", descr, sizeof descr));
    if (descr[0] == '=') descr[0] = '<';
    array->dtype = wf_file_dtype_of_numpy(descr);
    array->has_descr = true;
    if (array->dtype >= 0) return WEFT_OK;
    if (descr[0] == '>')
        return wf_fail(WEFT_ERR_UNSUPPORTED, "its elements are big endian (%s)", descr);
    return wf_scan_refuse(&at, NULL, "weft does not read the dtype %s", descr);
}

static weft_status scan_shape(struct wf_scan *scan, struct array *array)
{
    if (!wf_scan_char(scan, '(')) return wf_scan_fail(scan, NULL, "expected '('");
    array->dims = 0;
    array->has_shape = true;
    for (wf_scan_space(scan); !wf_scan_char(scan, ')'); wf_scan_space(scan)) {
        if (array->dims == WEFT_MAX_DIMS)
            return wf_fail(WEFT_ERR_UNSUPPORTED, "it has more than %d dimensions", WEFT_MAX_DIMS);
        WF_TRY(wf_scan_int(scan, "a size", &array->shape[array->dims]));
        array->dims++;
        wf_scan_space(scan);
        if (!wf_scan_char(scan, ',') && wf_scan_peek(scan) != ')')
            return wf_scan_fail(scan, NULL, "expected ',' or ')'");
    }
    return WEFT_OK;
}

static weft_status scan_pair(struct wf_scan *scan, struct array *array)
{
    char key[24];

    WF_TRY(scan_quoted(scan, "a key", key, sizeof key));
    wf_scan_space(scan);
    if (!wf_scan_char(scan, ':')) return wf_scan_fail(scan, NULL, "expected ':'");
    wf_scan_space(scan);
    if (strcmp(key, "descr") == 0) return scan_descr(scan, array);
    if (strcmp(key, "shape") == 0) return scan_shape(scan, array);
    if (strcmp(key, "fortran_order") != 0)
        return wf_scan_refuse(scan, NULL, "the key %s is not known", key);
    array->has_order = true;
    array->column_major = wf_scan_word(scan, "True");
    if (array->column_major || wf_scan_word(scan, "False")) return WEFT_OK;
    return wf_scan_fail(scan, NULL, "expected True or False");
}

static weft_status scan_header(const char *text, struct array *array)
{
    struct wf_scan scan = {.text = text};

    wf_scan_space(&scan);
    if (!wf_scan_char(&scan, '{')) return wf_scan_fail(&scan, NULL, "expected '{'");
    for (wf_scan_space(&scan); !wf_scan_char(&scan, '}'); wf_scan_space(&scan)) {
        WF_TRY(scan_pair(&scan, array));
        wf_scan_space(&scan);
        if (!wf_scan_char(&scan, ',') && wf_scan_peek(&scan) != '}')
            return wf_scan_fail(&scan, NULL, "expected ',' or '}'");
    }
    if (array->has_descr && array->has_order && array->has_shape) return WEFT_OK;
    return wf_scan_refuse(&scan, NULL, "descr, fortran_order or shape is missing");
}

/* Read the first bytes; *AT is where the header begins. */
static weft_status read_prefix(struct wf_inputs *inputs, uint32_t file, uint64_t *at,
                               size_t *length)
{
    uint64_t size = inputs->list[file]->size;
    unsigned char prefix[12] = {0};

    WF_TRY(wf_inputs_read(inputs, file, 0, prefix, size < sizeof prefix ? size : sizeof prefix));
    if (size < sizeof prefix || memcmp(prefix, "\x93NUMPY", MAGIC) != 0 || prefix[6] < 1 ||
        prefix[6] > 3)
        return wf_fail(WEFT_ERR_PARSE, "this is not a .npy file of version 1, 2 or 3");
    *length = (size_t)prefix[8] | (size_t)prefix[9] << 8;
    *at = 10;
    if (prefix[6] > 1) {
        *length |= (size_t)prefix[10] << 16 | (size_t)prefix[11] << 24;
        *at = 12;
    }
    if (*length > LONGEST || *length > size - *at)
        return wf_fail(WEFT_ERR_PARSE, "the header has %zu bytes, more than the file or %d",
                       *length, LONGEST);
    return WEFT_OK;
}

static weft_status read_header(struct wf_inputs *inputs, uint32_t file, struct array *array,
                               uint64_t *elements_at)
{
    weft_status status;
    size_t length = 0;
    uint64_t at = 0;
    char *text;

    WF_TRY(read_prefix(inputs, file, &at, &length));
    text = wf_alloc(length + 1);
    if (text == NULL) return wf_fail_memory(length + 1);
    text[length] = '\0';
    status = wf_inputs_read(inputs, file, at, text, length);
    if (status == WEFT_OK) status = scan_header(text, array);
    wf_free(text);
    *elements_at = at + length;
    return status;
}

static weft_status add_array(weft_checkpoint *checkpoint, uint32_t file, const char *name)
{
    struct array array = {.dtype = -1};
    int64_t strides[WEFT_MAX_DIMS], bytes, stride = 1;
    struct wf_piece piece = {.name = name, .shape = array.shape, .file = file, .rank = -1};
    uint64_t size = checkpoint->inputs.list[file]->size;

    WF_TRY(read_header(&checkpoint->inputs, file, &array, &piece.at));
    piece.dtype = (uint8_t)array.dtype;
    piece.dims = (int8_t)array.dims;
    if (!wf_file_bytes((size_t)array.dtype, array.dims, array.shape, &bytes) ||
        size - piece.at != (uint64_t)bytes)
        return wf_fail(WEFT_ERR_PARSE,
                       "its shape does not give the %" PRIu64 " bytes that follow the header",
                       size - piece.at);
    for (int32_t d = 0; d < array.dims; d++) {
        strides[d] = stride;
        if (array.shape[d] > 0) stride *= array.shape[d];
    }
    if (array.column_major) piece.strides = strides;
    return wf_checkpoint_add(checkpoint, &piece);
}

weft_status wf_open_npy(weft_checkpoint *checkpoint, const char *name)
{
    size_t length = strlen(name);
    weft_status status;
    uint32_t file;
    char *tensor;

    checkpoint->format = WEFT_FILE_NPY;
    WF_TRY(wf_inputs_add(&checkpoint->inputs, name, &file));
    if (length > 4 && strcmp(name + length - 4, ".npy") == 0) length -= 4;
    tensor = wf_strndup(name, length);
    if (tensor == NULL) return wf_fail_memory(length + 1);
    status = add_array(checkpoint, file, tensor);
    wf_free(tensor);
    if (status != WEFT_OK) return wf_fail_context(status, "%s/%s", checkpoint->inputs.path, name);
    return wf_checkpoint_settle(checkpoint);
}
