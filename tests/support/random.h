/* random.h - reproducible random numbers for tests, from the seed of seed.h. */
#ifndef WEFT_TESTS_RANDOM_H
#define WEFT_TESTS_RANDOM_H

#include "base/base.h"
#include "support/seed.h"

struct random {
    uint64_t seed, state;
};

static inline struct random random_begin(const char *test)
{
    uint64_t seed = test_seed_begin(test);

    return (struct random){seed, wf_hash_mix(seed, 1) | 1};
}

/* A number from LEAST to MOST, inclusive. */
static inline int32_t random_in(struct random *r, int32_t least, int32_t most)
{
    r->state ^= r->state << 13;
    r->state ^= r->state >> 7;
    r->state ^= r->state << 17;
    return least + (int32_t)((r->state >> 16) % (uint64_t)(most - least + 1));
}

static inline bool random_chance(struct random *r, int32_t in)
{
    return random_in(r, 1, in) == 1;
}

/* A permutation of 0 .. COUNT - 1. */
static inline void random_order(struct random *r, int32_t count, int32_t *out)
{
    for (int32_t i = 0; i < count; i++) {
        int32_t j = random_in(r, 0, i);
        out[i] = out[j];
        out[j] = i;
    }
}

#endif
