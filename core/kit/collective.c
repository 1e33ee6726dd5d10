/* collective.c - see collective.h. */
#include "collective.h"

uint64_t kit_counts_total(const uint64_t *counts, int32_t size)
{
    uint64_t sum = 0;

    for (int32_t r = 0; r < size; r++)
        sum = counts[r] > UINT64_MAX - sum ? UINT64_MAX : sum + counts[r];
    return sum;
}
