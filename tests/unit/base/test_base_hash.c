#include "base/base.h"
#include "support/suite.h"

#include <stdlib.h>

/* Ranks of different builds and machines compare these numbers, so they are pinned. */
TEST(hashes_are_the_same_on_every_machine)
{
    ck_assert_uint_eq(wf_hash(0, "", 0), UINT64_C(0));
    ck_assert_uint_eq(wf_hash(1, "weft", 4), UINT64_C(0x3bab33f7ee150bfe));
    ck_assert_uint_eq(wf_hash(7, "twelve bytes", 12), UINT64_C(0x98d2410ef19f05f8));
    ck_assert_uint_eq(wf_hash_mix(3, 5), UINT64_C(0xb54cda5d51d83ab9));
}

TEST(every_byte_and_the_length_and_the_seed_count)
{
    char text[33] = {0};
    uint64_t plain = wf_hash(0, text, 32);

    ck_assert_uint_ne(plain, wf_hash(0, text, 31));
    ck_assert_uint_ne(plain, wf_hash(0, text, 33));
    ck_assert_uint_ne(plain, wf_hash(1, text, 32));
    for (size_t bit = 0; bit < 8 * 32; bit++) {
        text[bit / 8] ^= (char)(1 << bit % 8);
        ck_assert_uint_ne(plain, wf_hash(0, text, 32));
        text[bit / 8] = 0;
    }
}

TEST(alignment_does_not_matter)
{
    char text[64];

    for (size_t shift = 0; shift < 8; shift++) {
        memcpy(text + shift, "the same thirty-one bytes, twice", 32);
        ck_assert_uint_eq(wf_hash(0, text + shift, 32),
                          wf_hash(0, "the same thirty-one bytes, twice", 32));
    }
}

static int by_value(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

TEST(small_structures_do_not_collide)
{
    enum { SIDE = 40, COUNT = SIDE * SIDE * SIDE };
    uint64_t *seen = malloc(COUNT * sizeof *seen);
    size_t n = 0;

    for (int64_t a = 0; a < SIDE; a++)
        for (int64_t b = 0; b < SIDE; b++)
            for (int64_t c = 0; c < SIDE; c++)
                seen[n++] = wf_hash(0, (const int64_t[]){a, b, c}, 3 * sizeof a);
    qsort(seen, n, sizeof *seen, by_value);
    for (size_t i = 1; i < n; i++)
        ck_assert_uint_ne(seen[i - 1], seen[i]);
    free(seen);
}
