/* seed.h - settings of random tests: a seed that is constant unless WEFT_TEST_SEED sets it, and
 * numbers of cases, which WEFT_TEST_CASES sets, WEFT_TEST_TIMES multiplies and WEFT_TEST_PART
 * divides.  Both are printed.
 * The seed of a failure is printed again at the end (suite.h). */
#ifndef WEFT_TESTS_SEED_H
#define WEFT_TESTS_SEED_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define TEST_SEED UINT64_C(20261115)

/* The variable NAME as a number, or OTHERWISE. */
static inline uint64_t test_number(const char *name, uint64_t otherwise)
{
    const char *given = getenv(name);

    return given != NULL && given[0] != '\0' ? strtoull(given, NULL, 0) : otherwise;
}

static bool test_seed_used;

static inline uint64_t test_seed(void)
{
    test_seed_used = true;
    return test_number("WEFT_TEST_SEED", TEST_SEED);
}

/* Print the seed that TEST begins with. */
static inline uint64_t test_seed_begin(const char *test)
{
    fprintf(stderr, "%s: WEFT_TEST_SEED=%" PRIu64 "\n", test, test_seed());
    return test_seed();
}

/* The number of cases; the default is OTHERWISE. */
static inline int test_case_count(int otherwise)
{
    uint64_t times = test_number("WEFT_TEST_TIMES", 1), part = test_number("WEFT_TEST_PART", 1);
    uint64_t cases = ((uint64_t)otherwise * times + part - 1) / part;

    return (int)test_number("WEFT_TEST_CASES", cases);
}

/* The same, printed. */
static inline int test_cases(int otherwise)
{
    int cases = test_case_count(otherwise);

    fprintf(stderr, "cases: %d\n", cases);
    return cases;
}

/* The STREAM-th initial state of a generator, which is not 0.  Similar seeds give unrelated
 * states. */
static inline uint64_t test_state(uint64_t stream)
{
    uint64_t x = test_seed() + (stream + 1) * UINT64_C(0x9e3779b97f4a7c15);

    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return (x ^ x >> 31) | 1;
}

#endif
