/* options.c - option structs of callers that may know fewer or more fields than this library. */
#include "base.h"

#include <string.h>

weft_status wf_options_read(const char *name, const void *given, void *out, size_t bytes)
{
    size_t size;

    if (given == NULL) return WEFT_OK;
    memcpy(&size, given, sizeof size);
    if (size < sizeof size || size > 65536)
        return wf_fail(WEFT_ERR_INVALID, "%s.struct_size is %zu; set it to sizeof(%s)", name, size,
                       name);
    memcpy(out, given, size < bytes ? size : bytes);
    return WEFT_OK;
}

weft_status wf_info_write(const char *name, const void *info, size_t bytes, void *out)
{
    size_t size;

    memcpy(&size, out, sizeof size);
    if (size < sizeof size)
        return wf_fail(WEFT_ERR_INVALID, "%s: struct_size is %zu; set it to sizeof(%s)", name, size,
                       name);
    if (size < bytes) bytes = size;
    memcpy((char *)out + sizeof size, (const char *)info + sizeof size, bytes - sizeof size);
    return WEFT_OK;
}
