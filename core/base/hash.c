/* hash.c - a 64-bit hash that does not depend on byte order or word size. */
#include "base.h"

static uint64_t load_little(const unsigned char *bytes, size_t count)
{
    uint64_t word = 0;

    for (size_t i = 0; i < count; i++)
        word |= (uint64_t)bytes[i] << (8 * i);
    return word;
}

uint64_t wf_hash(uint64_t seed, const void *data, size_t bytes)
{
    const unsigned char *at = data;
    uint64_t h = wf_hash_mix(seed, bytes);

    for (; bytes >= 8; at += 8, bytes -= 8)
        h = wf_hash_mix(h, load_little(at, 8));
    if (bytes > 0) h = wf_hash_mix(h, load_little(at, bytes));
    h ^= h >> 32;
    return h * UINT64_C(0xd6e8feb86659fd93);
}
