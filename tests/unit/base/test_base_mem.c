#include "base/base.h"
#include "support/allocfail.h"
#include "support/suite.h"

#include <pthread.h>

TEST(zero_bytes_give_a_pointer)
{
    int64_t live = wf_mem_live();
    void *a = wf_alloc(0), *b = wf_calloc(0, 8), *c = wf_calloc(8, 0);

    ck_assert_ptr_nonnull(a);
    ck_assert_ptr_nonnull(b);
    ck_assert_ptr_nonnull(c);
    a = wf_realloc(a, 0);
    ck_assert_ptr_nonnull(a);
    ck_assert_int_eq(wf_mem_live(), live + 3);
    wf_free(a);
    wf_free(b);
    wf_free(c);
    wf_free(NULL);
    ck_assert_int_eq(wf_mem_live(), live);
}

TEST(calloc_clears_and_refuses_what_would_wrap)
{
    int64_t live = wf_mem_live();
    volatile size_t huge = SIZE_MAX / 2; /* volatile: the compiler would warn of it */
    unsigned char *block = wf_calloc(3, 5);

    for (int i = 0; i < 15; i++)
        ck_assert_uint_eq(block[i], 0);
    wf_free(block);
    ck_assert_ptr_null(wf_calloc(huge, 3));
    ck_assert_ptr_null(wf_alloc(huge));
    ck_assert_int_eq(wf_mem_live(), live);
}

TEST(realloc_keeps_the_bytes_and_a_failed_one_the_block)
{
    int64_t live = wf_mem_live();
    char *block = wf_realloc(NULL, 6), *grown;

    memcpy(block, "bytes", 6);
    wf_mem_fail_at(1);
    ck_assert_ptr_null(wf_realloc(block, 1 << 20));
    wf_mem_fail_at(0);
    ck_assert_str_eq(block, "bytes");
    grown = wf_realloc(block, 1 << 20);
    ck_assert_str_eq(grown, "bytes");
    wf_free(grown);
    ck_assert_int_eq(wf_mem_live(), live);
}

TEST(copies_end_where_the_text_or_the_length_ends)
{
    char *whole = wf_strdup("whole"), *cut = wf_strndup("whole", 2);
    char *short_text = wf_strndup("ab", 64);

    ck_assert_str_eq(whole, "whole");
    ck_assert_str_eq(cut, "wh");
    ck_assert_str_eq(short_text, "ab");
    wf_free(whole);
    wf_free(cut);
    wf_free(short_text);
}

TEST(the_chosen_allocation_fails_and_no_other)
{
    void *a, *b, *c;

    wf_mem_fail_at(2);
    a = wf_alloc(1);
    b = wf_alloc(1);
    c = wf_alloc(1);
    ck_assert_uint_eq(wf_mem_made(), 3);
    wf_mem_fail_at(0);
    ck_assert_uint_eq(wf_mem_made(), 0);
    ck_assert_ptr_nonnull(a);
    ck_assert_ptr_null(b);
    ck_assert_ptr_nonnull(c);
    wf_free(a);
    wf_free(c);
}

static void *allocate_once(void *unused)
{
    (void)unused;
    return wf_alloc(1);
}

TEST(another_threads_allocations_do_not_fail)
{
    pthread_t thread;
    void *block = NULL;

    wf_mem_fail_at(1);
    pthread_create(&thread, NULL, allocate_once, NULL);
    pthread_join(thread, &block);
    ck_assert_uint_eq(wf_mem_made(), 0);
    wf_mem_fail_at(0);
    ck_assert_ptr_nonnull(block);
    wf_free(block);
}

static weft_status make_two(void *argument)
{
    void **blocks = argument;
    void *first = wf_alloc(10), *second;

    if (first == NULL) return wf_fail_memory(10);
    second = wf_alloc(20);
    if (second == NULL) {
        wf_free(first);
        return wf_fail_memory(20);
    }
    blocks[0] = first;
    blocks[1] = second;
    return WEFT_OK;
}

static void free_two(void *argument)
{
    void **blocks = argument;

    wf_free(blocks[0]);
    wf_free(blocks[1]);
}

TEST(the_helper_fails_every_allocation_in_turn)
{
    void *blocks[2] = {NULL, NULL};

    ck_assert_uint_eq(ALLOCATIONS_FAIL(make_two(blocks), free_two(blocks)), 2);
}
