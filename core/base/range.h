/* range.h - ranges of memory. */
#ifndef WEFT_BASE_RANGE_H
#define WEFT_BASE_RANGE_H

#include <stdbool.h>
#include <stdint.h>

/* Whether A_BYTES at A and B_BYTES at B have a byte in common. */
static inline bool wf_ranges_overlap(const void *a, uint64_t a_bytes, const void *b,
                                     uint64_t b_bytes)
{
    uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;

    return a_bytes > 0 && b_bytes > 0 && (x < y ? y - x < a_bytes : x - y < b_bytes);
}

#endif
