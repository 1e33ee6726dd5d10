#include "support/allocfail.h"
#include "support/layout.h"
#include "support/random.h"
#include "support/suite.h"

static uint64_t largest_load(uint32_t count, const uint64_t *bytes, int32_t owners,
                             const int32_t *given)
{
    uint64_t loads[16] = {0}, most = 0;

    for (uint32_t i = 0; i < count; i++) {
        ck_assert(given[i] >= 0 && given[i] < owners);
        loads[given[i]] += bytes[i];
    }
    for (int32_t i = 0; i < owners; i++)
        if (loads[i] > most) most = loads[i];
    return most;
}

/* The least possible largest load, by trying everything from tensor AT on. */
static void try_all(uint32_t count, const uint64_t *bytes, int32_t owners, uint32_t at,
                    uint64_t *loads, uint64_t *best)
{
    uint64_t most = 0;

    for (int32_t i = 0; i < owners; i++)
        if (loads[i] > most) most = loads[i];
    if (most >= *best) return;
    if (at == count) {
        *best = most;
        return;
    }
    for (int32_t i = 0; i < owners; i++) {
        bool same = false; /* owners with equal loads are alike */
        for (int32_t k = 0; k < i; k++)
            same = same || loads[k] == loads[i];
        if (same) continue;
        loads[i] += bytes[at];
        try_all(count, bytes, owners, at + 1, loads, best);
        loads[i] -= bytes[at];
    }
}

TEST(loads_are_within_four_thirds_of_the_optimum)
{
    struct random r = random_begin("loads_are_within_four_thirds_of_the_optimum");

    for (int cases = test_cases(300); cases > 0; cases--) {
        uint64_t bytes[12], loads[16] = {0}, best = UINT64_MAX;
        int32_t given[12], owners = random_in(&r, 1, 5);
        uint32_t count = (uint32_t)random_in(&r, 1, 12);
        for (uint32_t i = 0; i < count; i++)
            bytes[i] = (uint64_t)random_in(&r, 0, random_chance(&r, 2) ? 1000 : 9);
        ck_assert_int_eq(weft_owners_balance(count, bytes, owners, given), WEFT_OK);
        try_all(count, bytes, owners, 0, loads, &best);
        ck_assert_uint_le(3 * largest_load(count, bytes, owners, given), 4 * best);
    }
}

TEST(small_tensors_are_dealt_evenly)
{
    struct random r = random_begin("small_tensors_are_dealt_evenly");

    for (int cases = test_cases(300); cases > 0; cases--) {
        uint64_t bytes[400], sum = 0;
        int32_t given[400], owners = random_in(&r, 1, 16);
        uint32_t count = (uint32_t)random_in(&r, 4 * owners, 400);
        bool small = true;
        for (uint32_t i = 0; i < count; i++)
            sum += bytes[i] = (uint64_t)random_in(&r, 1, 100000);
        for (uint32_t i = 0; i < count; i++)
            small = small && 4 * bytes[i] * (uint64_t)owners <= sum;
        if (!small) continue;
        ck_assert_int_eq(weft_owners_balance(count, bytes, owners, given), WEFT_OK);
        ck_assert_uint_le(4 * largest_load(count, bytes, owners, given) * (uint64_t)owners,
                          5 * sum);
    }
}

/* The example of docs/layouts.md: 25 layers of four matrices, in MiB. */
TEST(a_hundred_matrices_have_eight_owners)
{
    uint64_t bytes[100], loads[8] = {0};
    int32_t given[100];

    for (int i = 0; i < 100; i++)
        bytes[i] = ((const uint64_t[]){32, 8, 112, 112})[i % 4];
    ck_assert_int_eq(weft_owners_balance(100, bytes, 8, given), WEFT_OK);
    for (int i = 0; i < 100; i++)
        loads[given[i]] += bytes[i];
    for (int i = 0; i < 8; i++)
        ck_assert_uint_eq(loads[i], i == 0 ? 832 : 824);
}

TEST(ties_go_to_the_first_tensor_and_the_first_owner)
{
    static const uint64_t bytes[] = {5, 9, 5, 5, 0};
    static const int32_t want[] = {1, 0, 2, 1, 2};
    int32_t given[5];

    ck_assert_int_eq(weft_owners_balance(5, bytes, 3, given), WEFT_OK);
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(given[i], want[i]);
}

TEST(wrong_arguments_are_refused)
{
    static const uint64_t bytes[] = {UINT64_MAX, 1};
    int32_t given[2] = {-7, -7};

    ck_assert_int_eq(weft_owners_balance(0, NULL, 3, NULL), WEFT_OK);
    check_refused(weft_owners_balance(0, NULL, 0, NULL), WEFT_ERR_INVALID, "owners is 0");
    check_refused(weft_owners_balance(2, NULL, 1, given), WEFT_ERR_INVALID, "bytes is NULL");
    check_refused(weft_owners_balance(2, bytes, 1, NULL), WEFT_ERR_INVALID, "out is NULL");
    check_refused(weft_owners_balance(2, bytes, 0, given), WEFT_ERR_INVALID,
                  "weft_owners_balance: owners is 0; it must be at least 1");
    check_refused(weft_owners_balance(2, bytes, 1, given), WEFT_ERR_INVALID,
                  "weft_owners_balance: the bytes add up beyond 2^64 - 1");
    ck_assert_int_eq(given[0], -7);
}

TEST(more_owners_than_tensors_take_no_memory)
{
    static const uint64_t bytes[] = {3, 4};
    int32_t given[2] = {-7, -7};

    ck_assert_int_eq(weft_owners_balance(2, bytes, INT32_MAX, given), WEFT_OK);
    ck_assert(given[0] == 1 && given[1] == 0);
}

TEST(balancing_survives_every_allocation_failure)
{
    static const uint64_t bytes[] = {3, 4};
    int32_t given[2];

    ck_assert_uint_ge(ALLOCATIONS_FAIL(weft_owners_balance(2, bytes, 2, given), (void)0), 2);
}
