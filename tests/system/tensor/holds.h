/* holds.h - claims of ranks that are threads: a rank whose claim does not hold returns an error. */
#ifndef WEFT_TESTS_TENSOR_HOLDS_H
#define WEFT_TESTS_TENSOR_HOLDS_H

#include "weft/device.h"

#include <string.h>

/* Fail the rank, with the line. */
#define HOLDS(claim)                                                                               \
    do {                                                                                           \
        if (!(claim))                                                                              \
            return weft_fail(WEFT_ERR_INTERNAL, "line %d: not so: %s (%s)", __LINE__, #claim,      \
                             weft_last_error());                                                   \
    } while (0)
#define REFUSES(call, text) FAILS(call, WEFT_ERR_INVALID, text)
#define FAILS(call, status, text)                                                                  \
    do {                                                                                           \
        HOLDS((call) == (status));                                                                 \
        HOLDS(strstr(weft_last_error(), text) != NULL);                                            \
    } while (0)

/* Device memory with a copy of BYTES bytes at VALUES; the caller frees it with weft_free. */
static inline weft_status copy_to_device(weft_context *context, const void *values, size_t bytes,
                                         void *memory)
{
    void *made = NULL;
    weft_status status = weft_alloc(context, bytes, WEFT_MEMORY_DEVICE, &made);

    if (status == WEFT_OK) status = weft_memory_copy(context, values, made, bytes, NULL);
    if (status == WEFT_OK) status = weft_context_wait(context, NULL, WEFT_FOREVER);
    memcpy(memory, &made, sizeof made);
    return status;
}

#endif
