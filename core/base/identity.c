/* identity.c - the identities of reductions, as single elements of a dtype. */
#include "number.h"

#include <math.h>
#include <string.h>

static struct wf_number highest_number(uint32_t dtype)
{
    unsigned bits = 8 * (unsigned)wf_dtype_bytes(dtype) - wf_dtype_is_signed(dtype);

    if (dtype == WEFT_DTYPE_BOOL) return (struct wf_number){.integer = 1};
    if (dtype >= WEFT_DTYPE_F16) return (struct wf_number){.re = INFINITY};
    return (struct wf_number){.integer = UINT64_MAX >> (64 - bits)};
}

static struct wf_number lowest_number(uint32_t dtype)
{
    if (dtype >= WEFT_DTYPE_F16) return (struct wf_number){.re = -INFINITY};
    if (wf_dtype_is_signed(dtype))
        return (struct wf_number){.integer = ~highest_number(dtype).integer};
    return (struct wf_number){0};
}

/* The identity of a float's sum is -0.0, because adding 0.0 would change -0.0. */
void wf_element_identity(uint32_t dtype, uint32_t reduction, void *out)
{
    struct wf_number identity = {.re = -0.0, .im = -0.0};

    if (reduction == WEFT_REDUCE_MIN) identity = highest_number(dtype);
    if (reduction == WEFT_REDUCE_MAX) identity = lowest_number(dtype);
    if (reduction == WEFT_REDUCE_PROD) identity = (struct wf_number){.integer = 1, .re = 1};
    wf_number_store_reduced(dtype, reduction, &identity, 1, 1, out);
}
