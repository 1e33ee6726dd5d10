/* wrong_half_spans.c - lists of spans can be made and never run.
 * Runs: --only kernel/spans_complete
 * Fails: kernel/spans_complete */
#include "wrong.h"

static weft_status spans_create(void *device, uint64_t count, const weft_span *spans, uint32_t sums,
                                void **list)
{
    (void)count, (void)spans, (void)sums;
    *list = device;
    return WEFT_OK;
}

INSTALL(wrong.kernel.spans_create = spans_create)
