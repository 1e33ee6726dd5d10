/* options.c - structs of callers that may know fewer or more fields than this library. */
#include "base.h"
#include "weft/status.h"

#include <string.h>

/* Copy GIVEN, of SIZE bytes, at least LEAST, with its struct_size of HEAD bytes, to OUT, of BYTES.
 * The size of a struct is a multiple of the alignment of its fields: another size would cut a
 * field.
 */
static weft_status read_options(const char *name, const void *given, size_t size, size_t head,
                                size_t least, void *out, size_t bytes)
{
    if (size < least || size > 65536 || size % head != 0)
        return wf_fail(WEFT_ERR_INVALID, "%s.struct_size is %zu; set it to sizeof(%s)", name, size,
                       name);
    for (size_t i = bytes; i < size; i++)
        if (((const unsigned char *)given)[i] != 0)
            return wf_fail(WEFT_ERR_VERSION,
                           "%s has %zu bytes, but weft %s knows only the first %zu, and an option "
                           "beyond them is set: the program is compiled for a newer weft",
                           name, size, weft_version(), bytes);
    memcpy(out, given, size < bytes ? size : bytes);
    return WEFT_OK;
}

/* A struct that grows keeps the size of its first version as the least one: a smaller size, such as
 * that of a pointer, would drop options in silence. */
weft_status wf_options_read(const char *name, const void *given, void *out, size_t bytes)
{
    size_t size;

    if (given == NULL) return WEFT_OK;
    memcpy(&size, given, sizeof size);
    return read_options(name, given, size, sizeof size, bytes, out, bytes);
}

weft_status wf_abi_options_read(const char *name, const void *given, void *out, size_t bytes)
{
    uint32_t size;

    memcpy(&size, given, sizeof size);
    return read_options(name, given, size, sizeof size, sizeof size, out, bytes);
}

static weft_status fail_item(const char *name, size_t size)
{
    return wf_fail(WEFT_ERR_INVALID, "the size of a %s is given as %zu; pass sizeof(%s)", name,
                   size, name);
}

weft_status wf_items_check(const char *name, size_t size, size_t bytes)
{
    return size == bytes ? WEFT_OK : fail_item(name, size);
}

/* The least size is that of wf_options_read. */
weft_status wf_items_read(const char *name, size_t count, const void *items, size_t size,
                          size_t bytes, void **copy)
{
    weft_status status = WEFT_OK;
    char *made;

    *copy = NULL;
    if (size == bytes) return WEFT_OK;
    if (size < bytes || size > 65536 || size % sizeof(void *) != 0) return fail_item(name, size);
    made = wf_calloc(count, bytes);
    if (made == NULL) return wf_fail_memory(count * bytes);
    for (size_t i = 0; i < count && status == WEFT_OK; i++)
        status = read_options(name, (const char *)items + i * size, size, sizeof(void *), bytes,
                              made + i * bytes, bytes);
    if (status != WEFT_OK) {
        wf_free(made);
        return status;
    }
    *copy = made;
    return WEFT_OK;
}

static weft_status check_size(const char *name, size_t size, size_t head)
{
    if (size >= head && size <= 65536) return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID, "%s.struct_size is %zu; set it to sizeof(%s)", name, size,
                   name);
}

weft_status wf_info_check(const char *name, const void *out)
{
    size_t size;

    memcpy(&size, out, sizeof size);
    return check_size(name, size, sizeof size);
}

/* Copy to OUT, of SIZE bytes, what lies behind the HEAD bytes of its struct_size in INFO. */
static weft_status write_info(const char *name, const void *info, size_t bytes, void *out,
                              size_t size, size_t head)
{
    WF_TRY(check_size(name, size, head));
    if (size < bytes) bytes = size;
    memcpy((char *)out + head, (const char *)info + head, bytes - head);
    return WEFT_OK;
}

weft_status wf_info_write(const char *name, const void *info, size_t bytes, void *out)
{
    size_t size;

    memcpy(&size, out, sizeof size);
    return write_info(name, info, bytes, out, size, sizeof size);
}

weft_status wf_abi_info_write(const char *name, const void *info, size_t bytes, void *out)
{
    uint32_t size;

    memcpy(&size, out, sizeof size);
    return write_info(name, info, bytes, out, size, sizeof size);
}
