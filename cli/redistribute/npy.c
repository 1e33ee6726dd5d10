/* npy.c - see npy.h.  The format, version 1.0: a magic, the header's length in two bytes, a Python
 * dictionary padded with blanks to a multiple of 64, the elements. */
#include "redistribute/npy.h"

#include "base/base.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { PREFIX = 10, MULTIPLE = 64 };

static const char *descr(uint32_t dtype)
{
    static const char *const names[WEFT_DTYPE_COUNT] = {
        [WEFT_DTYPE_BOOL] = "|b1", [WEFT_DTYPE_I8] = "|i1",     [WEFT_DTYPE_U8] = "|u1",
        [WEFT_DTYPE_I16] = "<i2",  [WEFT_DTYPE_U16] = "<u2",    [WEFT_DTYPE_I32] = "<i4",
        [WEFT_DTYPE_U32] = "<u4",  [WEFT_DTYPE_I64] = "<i8",    [WEFT_DTYPE_U64] = "<u8",
        [WEFT_DTYPE_F16] = "<f2",  [WEFT_DTYPE_BF16] = "<u2",   [WEFT_DTYPE_F32] = "<f4",
        [WEFT_DTYPE_F64] = "<f8",  [WEFT_DTYPE_F8E4M3] = "|u1", [WEFT_DTYPE_F8E5M2] = "|u1",
        [WEFT_DTYPE_C64] = "<c8",  [WEFT_DTYPE_C128] = "<c16"};

    return names[dtype];
}

static void add_header(struct wf_text *text, uint32_t dtype, int32_t dims, const int64_t *shape)
{
    wf_text_add(text, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr(dtype));
    for (int32_t d = 0; d < dims; d++)
        wf_text_add(text, "%lld%s", (long long)shape[d], d + 1 < dims || dims == 1 ? "," : "");
    wf_text_add(text, "), }");
    while ((PREFIX + text->length + 1) % MULTIPLE != 0 && !text->failed)
        wf_text_char(text, ' ');
    wf_text_char(text, '\n');
}

weft_status npy_write(const char *path, uint32_t dtype, int32_t dims, const int64_t *shape,
                      const void *elements)
{
    struct wf_text header = {0};
    size_t count = 1;
    char prefix[PREFIX] = "\x93NUMPY\x01";
    weft_status status;
    FILE *file;
    bool written;

    for (int32_t d = 0; d < dims; d++)
        count *= (size_t)shape[d];
    add_header(&header, dtype, dims, shape);
    status = wf_text_status(&header);
    if (status != WEFT_OK) return status;
    prefix[8] = (char)(header.length & 255);
    prefix[9] = (char)(header.length >> 8);
    file = fopen(path, "wb");
    written = file != NULL && fwrite(prefix, 1, PREFIX, file) == PREFIX &&
              fwrite(header.data, 1, header.length, file) == header.length &&
              fwrite(elements, weft_dtype_bytes(dtype), count, file) == count;
    if (file != NULL && fclose(file) != 0) written = false;
    wf_text_free(&header);
    return written ? WEFT_OK : wf_fail(WEFT_ERR_SYSTEM, "%s: %s", path, kit_error_text(errno));
}
