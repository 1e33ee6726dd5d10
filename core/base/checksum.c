/* checksum.c - a checksum of a tensor that does not depend on its layout.
 *
 * It is the sum, modulo 2^64, of hash(i, b) over all elements: i is the row-major index in the
 * whole tensor, b are the bits as a number.  Parts can be summed in any order, so every thread or
 * rank adds up the parts that it has.  An element of 128 bits counts as two, with indices 2i and 2i
 * + 1. Bytes are the elements of dtypes with less than 8 bits. */
#include "base.h"

#include <string.h>

static inline uint64_t hash(uint64_t index, uint64_t bits)
{
    uint64_t x = bits ^ (index + 1) * UINT64_C(0x9e3779b97f4a7c15);

    x = (x ^ x >> 32) * UINT64_C(0xd6e8feb86659fd93);
    x = (x ^ x >> 32) * UINT64_C(0xd6e8feb86659fd93);
    return x ^ x >> 32;
}

/* COUNT elements of TYPE from element INDEX on.  Files and the machines that weft supports are
 * little endian. */
#define SUM(type)                                                                                  \
    for (uint64_t i = 0; i < count; i++) {                                                         \
        type bits;                                                                                 \
        memcpy(&bits, elements + i * sizeof bits, sizeof bits);                                    \
        sum += hash(index + i, bits);                                                              \
    }

uint64_t wf_checksum_run(uint32_t bytes, uint64_t index, const void *run, uint64_t count)
{
    const char *elements = run;
    uint64_t sum = 0;

    switch (bytes) {
    case 1:
        SUM(uint8_t) break;
    case 2:
        SUM(uint16_t) break;
    case 4:
        SUM(uint32_t) break;
    default:
        SUM(uint64_t) break;
    }
    return sum;
}
