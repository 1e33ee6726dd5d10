/* hash.c - a 64-bit hash that does not depend on byte order or word size. */
#include "base.h"

static uint64_t load_little(const unsigned char *bytes, size_t count)
{
    uint64_t word = 0;

    for (size_t i = 0; i < count; i++)
        word |= (uint64_t)bytes[i] << (8 * i);
    return word;
}

/* The last bytes, fewer than 8. */
static uint64_t load_rest(const unsigned char *bytes, size_t count)
{
    uint64_t word = 0;
    size_t at = 0;

    if ((count & 4) != 0) {
        word = load_little(bytes, 4);
        at = 4;
    }
    if ((count & 2) != 0) {
        word |= load_little(bytes + at, 2) << (8 * at);
        at += 2;
    }
    if ((count & 1) != 0) word |= (uint64_t)bytes[at] << (8 * at);
    return word;
}

uint64_t wf_hash(uint64_t seed, const void *data, size_t bytes)
{
    const unsigned char *at = data;
    uint64_t h = wf_hash_mix(seed, bytes);

    for (; bytes >= 8; at += 8, bytes -= 8)
        h = wf_hash_mix(h, load_little(at, 8));
    if (bytes > 0) h = wf_hash_mix(h, load_rest(at, bytes));
    h ^= h >> 32;
    return h * UINT64_C(0xd6e8feb86659fd93);
}
