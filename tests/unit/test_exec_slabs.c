#include "support/lone_rank.h"
#include "support/suite.h"

static void *take(struct lone_rank *lone, uint64_t bytes)
{
    void *memory = NULL;

    ck_assert_int_eq(wf_slabs_take(&lone->bound->own, lone->context, bytes, &memory), WEFT_OK);
    return memory;
}

START_TEST(what_was_taken_is_taken_again_after_rewinding)
{
    struct lone_rank lone;
    void *large, *small;

    lone_begin(&lone, 0, 1);
    large = take(&lone, 1000);
    small = take(&lone, 100);
    ck_assert_ptr_ne(large, small);
    ck_assert_uint_eq(lone.bound->own.bytes, 1100);
    wf_slabs_rewind(&lone.bound->own);
    ck_assert_ptr_eq(take(&lone, 90), small); /* the one that fits best */
    ck_assert_ptr_eq(take(&lone, 90), large);
    take(&lone, 90);
    ck_assert_uint_eq(lone.bound->own.bytes, 1190);
    wf_slabs_rewind(&lone.bound->own);
    take(&lone, 2000);
    ck_assert_uint_eq(lone.bound->own.bytes, 3190);
    lone_end(&lone);
    ck_assert_int_eq(wf_mem_live(), 0);
}
END_TEST

START_TEST(memory_that_is_not_there_is_no_slab)
{
    struct lone_rank lone;
    void *memory = NULL;

    lone_begin(&lone, 0, 1);
    wf_mem_fail_at(1);
    ck_assert_int_eq(wf_slabs_take(&lone.bound->own, lone.context, 10, &memory),
                     WEFT_ERR_NO_MEMORY);
    wf_mem_fail_at(0);
    ck_assert_ptr_null(memory);
    ck_assert_uint_eq(lone.bound->own.count, 0);
    lone_end(&lone);
}
END_TEST

SUITE(exec_slabs, what_was_taken_is_taken_again_after_rewinding,
      memory_that_is_not_there_is_no_slab)
