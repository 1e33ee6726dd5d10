#include "base/base.h"
#include "support/suite.h"
#include "weft/status.h"

TEST(every_dtype_has_a_name_that_finds_it_and_a_size)
{
    for (uint32_t dtype = 0; dtype < WEFT_DTYPE_COUNT; dtype++) {
        const char *name = wf_dtype_name(dtype);
        uint32_t found = 999;

        ck_assert_ptr_nonnull(name);
        ck_assert(wf_dtype_find(name, strlen(name), &found));
        ck_assert_uint_eq(found, dtype);
        ck_assert_uint_gt(wf_dtype_bytes(dtype), 0);
        ck_assert_str_eq(weft_dtype_name(dtype), name);
        ck_assert_uint_eq(weft_dtype_bytes(dtype), wf_dtype_bytes(dtype));
    }
    ck_assert_uint_eq(wf_dtype_bytes(WEFT_DTYPE_BF16), 2);
    ck_assert_uint_eq(wf_dtype_bytes(WEFT_DTYPE_C128), 16);
}

TEST(every_reduction_and_collective_has_a_name)
{
    for (uint32_t reduction = 0; reduction < WEFT_REDUCE_COUNT; reduction++) {
        const char *name = wf_reduction_name(reduction);
        uint32_t found = 999;

        ck_assert_ptr_nonnull(name);
        ck_assert(wf_reduction_find(name, strlen(name), &found));
        ck_assert_uint_eq(found, reduction);
    }
    for (uint32_t collective = 0; collective < WEFT_COLL_COUNT; collective++)
        ck_assert_ptr_nonnull(wf_collective_name(collective));
}

TEST(unknown_numbers_and_names_are_not_found)
{
    uint32_t found = 999;

    ck_assert_ptr_null(wf_dtype_name(WEFT_DTYPE_COUNT));
    ck_assert_uint_eq(wf_dtype_bytes(UINT32_MAX), 0);
    ck_assert_ptr_null(wf_reduction_name(WEFT_REDUCE_COUNT));
    ck_assert_ptr_null(wf_collective_name(WEFT_COLL_COUNT));
    ck_assert(!wf_dtype_find("f", 1, &found));
    ck_assert(!wf_dtype_find("f32x", 4, &found));
    ck_assert(!wf_dtype_find("", 0, &found));
    ck_assert(!wf_reduction_find("su", 2, &found));
    ck_assert_uint_eq(found, 999);
}

TEST(a_name_is_found_inside_a_longer_text)
{
    uint32_t found = 999;

    ck_assert(wf_dtype_find("f32[4,4]", 3, &found));
    ck_assert_uint_eq(found, WEFT_DTYPE_F32);
}

TEST(four_collectives_reduce)
{
    int count = 0;

    for (uint32_t collective = 0; collective < WEFT_COLL_COUNT + 3; collective++)
        count += wf_collective_reduces(collective);
    ck_assert_int_eq(count, 4);
    ck_assert(wf_collective_reduces(WEFT_COLL_REDUCE_SCATTER_V));
    ck_assert(!wf_collective_reduces(WEFT_COLL_ALL_GATHER));
}

TEST(reductions_are_defined_where_the_abi_says)
{
    static const struct {
        uint32_t reduction, dtype;
        bool defined;
    } cases[] = {
        {WEFT_REDUCE_SUM, WEFT_DTYPE_BOOL, true},
        {WEFT_REDUCE_SUM, WEFT_DTYPE_C128, true},
        {WEFT_REDUCE_PROD, WEFT_DTYPE_F8E4M3, true},
        {WEFT_REDUCE_MIN, WEFT_DTYPE_C64, false},
        {WEFT_REDUCE_MAX, WEFT_DTYPE_BF16, true},
        {WEFT_REDUCE_AVG, WEFT_DTYPE_BOOL, false},
        {WEFT_REDUCE_AVG, WEFT_DTYPE_I32, true},
        {WEFT_REDUCE_PREMUL_SUM, WEFT_DTYPE_BOOL, false},
        {WEFT_REDUCE_PREMUL_SUM, WEFT_DTYPE_C64, true},
        {WEFT_REDUCE_BAND, WEFT_DTYPE_F32, false},
        {WEFT_REDUCE_BOR, WEFT_DTYPE_BOOL, true},
        {WEFT_REDUCE_BXOR, WEFT_DTYPE_U64, true},
        {WEFT_REDUCE_BXOR, WEFT_DTYPE_C64, false},
        {WEFT_REDUCE_SUM, WEFT_DTYPE_COUNT, false},
        {WEFT_REDUCE_COUNT, WEFT_DTYPE_F32, false},
    };

    for (size_t i = 0; i < WF_COUNT(cases); i++)
        ck_assert_msg(wf_reduction_defined(cases[i].reduction, cases[i].dtype) == cases[i].defined,
                      "reduction %u on dtype %u", cases[i].reduction, cases[i].dtype);
}
