/* wrong_spans.c - functions of spans succeed and do nothing.
 * Runs: --only kernel/spans_powers
 * Fails: kernel/spans_powers/f16/p=1 */
#include "wrong.h"

static int made;

static weft_status spans_create(void *device, uint64_t count, const weft_span *spans, uint32_t sums,
                                void **list)
{
    (void)device;
    for (uint64_t i = 0; i < count; i++) {
        if (spans[i].dtype < WEFT_DTYPE_F16) return WEFT_ERR_UNSUPPORTED;
        if (spans[i].sum >= sums) return WEFT_ERR_INVALID;
    }
    *list = &made;
    return WEFT_OK;
}

static void spans_destroy(void *list)
{
    (void)list;
}

static weft_status spans_powers(void *list, void *const *memory, double p, double *sums,
                                void *stream)
{
    (void)list, (void)memory, (void)p, (void)sums, (void)stream;
    return WEFT_OK;
}

static weft_status spans_limit(void *list, void *const *memory, const weft_norm_limit *limit,
                               const double *sum, double *norm, void *stream)
{
    (void)list, (void)memory, (void)limit, (void)sum, (void)norm, (void)stream;
    return WEFT_OK;
}

static weft_status spans_clamp(void *list, void *const *memory, double most, void *stream)
{
    (void)list, (void)memory, (void)most, (void)stream;
    return WEFT_OK;
}

INSTALL(wrong.kernel.spans_create = spans_create, wrong.kernel.spans_destroy = spans_destroy,
        wrong.kernel.spans_powers = spans_powers, wrong.kernel.spans_limit = spans_limit,
        wrong.kernel.spans_clamp = spans_clamp)
