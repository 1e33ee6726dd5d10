#include "base/base.h"
#include "support/allocfail.h"
#include "support/suite.h"
#include "weft/status.h"

#include <malloc.h>

TEST(printing_grows_the_text)
{
    struct wf_text text = {0};
    char *out;

    for (int i = 0; i < 1000; i++)
        wf_text_add(&text, "%d,", i % 10);
    ck_assert_int_eq(wf_text_take(&text, &out), WEFT_OK);
    ck_assert_uint_eq(strlen(out), 2000);
    ck_assert_ptr_null(text.data);
    wf_free(out);
}

TEST(an_empty_text_is_an_empty_string)
{
    struct wf_text text = {0};
    char *out;

    ck_assert_int_eq(wf_text_take(&text, &out), WEFT_OK);
    ck_assert_str_eq(out, "");
    wf_free(out);
}

TEST(bytes_and_times_read_as_people_write_them)
{
    struct wf_text text = {0};

    wf_text_bytes(&text, 1023);
    wf_text_char(&text, ' ');
    wf_text_bytes(&text, 6 << 20);
    wf_text_char(&text, ' ');
    wf_text_bytes(&text, (1 << 20) - 1);
    wf_text_char(&text, ' ');
    wf_text_bytes(&text, UINT64_MAX);
    wf_text_char(&text, ' ');
    wf_text_time(&text, 12345);
    wf_text_char(&text, ' ');
    wf_text_time(&text, 999);
    wf_text_char(&text, ' ');
    wf_text_time(&text, 999960);
    wf_text_char(&text, ' ');
    wf_text_time(&text, 999949999);
    wf_text_char(&text, ' ');
    wf_text_time(&text, 61000000000);
    ck_assert_str_eq(text.data, "1023 B 6.0 MiB 1.0 MiB 16.0 EiB 12.3 us 999 ns 1.0 ms 999.9 ms "
                                "61.0 s");
    wf_text_free(&text);
}

TEST(running_out_of_memory_is_reported_once_at_the_end)
{
    struct wf_text text = {0};
    char *out = NULL;
    int64_t live = wf_mem_live();

    wf_mem_fail_at(2);
    for (int i = 0; i < 100; i++)
        wf_text_add(&text, "some text ");
    wf_mem_fail_at(0);
    ck_assert_int_eq(wf_text_status(&text), WEFT_ERR_NO_MEMORY);
    ck_assert_str_eq(weft_last_error(), "out of memory: cannot allocate 128 bytes");
    ck_assert_int_eq(wf_text_take(&text, &out), WEFT_ERR_NO_MEMORY);
    ck_assert_ptr_null(out);
    ck_assert(!text.failed);
    ck_assert_int_eq(wf_mem_live(), live);
}

TEST(a_text_without_room_is_unchanged)
{
    struct wf_text text = {0};

    wf_text_add(&text, "before");
    wf_mem_fail_at(1);
    ck_assert(!wf_text_reserve(&text, 1000));
    wf_mem_fail_at(0);
    ck_assert(!wf_text_reserve(&text, SIZE_MAX));
    ck_assert(!text.failed && text.length == 6);
    ck_assert(wf_text_reserve(&text, 1000));
    wf_mem_fail_at(1);
    for (int i = 0; i < 1000; i++)
        wf_text_char(&text, '.');
    wf_mem_fail_at(0);
    ck_assert(!text.failed && text.length == 1006);
    wf_text_free(&text);
}

TEST(room_alone_is_an_empty_string)
{
    struct wf_text text = {0};

    mallopt(M_PERTURB, 0x5a); /* new memory has other bytes than zeros */
    ck_assert(wf_text_reserve(&text, 10));
    ck_assert_str_eq(text.data, "");
    mallopt(M_PERTURB, 0);
    wf_text_free(&text);
}

TEST(more_than_memory_can_hold_fails_without_trying)
{
    struct wf_text text = {0};

    wf_text_append(&text, "", SIZE_MAX - 1);
    ck_assert_int_eq(wf_text_status(&text), WEFT_ERR_NO_MEMORY);
    wf_text_free(&text);
}

static weft_status print_much(char **out)
{
    struct wf_text text = {0};

    for (int i = 0; i < 100; i++)
        wf_text_add(&text, "line %d\n", i);
    return wf_text_take(&text, out);
}

TEST(every_allocation_may_fail)
{
    char *out = NULL;

    ck_assert_uint_ge(ALLOCATIONS_FAIL(print_much(&out), wf_free(out)), 4);
}

TEST(a_failure_takes_the_text_with_it)
{
    struct wf_text text = {0};
    int64_t live = wf_mem_live();

    wf_text_add(&text, "%d, %d", 1, 2);
    ck_assert_int_eq(wf_fail_text(WEFT_ERR_INVALID, &text, "the list is %s: %d", text.data, 3),
                     WEFT_ERR_INVALID);
    ck_assert_str_eq(weft_last_error(), "the list is 1, 2: 3");
    ck_assert_ptr_null(text.data);
    wf_mem_fail_at(1);
    wf_text_add(&text, "list");
    wf_mem_fail_at(0);
    ck_assert_int_eq(wf_fail_text(WEFT_ERR_INVALID, &text, "the list is %s", text.data),
                     WEFT_ERR_NO_MEMORY);
    ck_assert_int_eq(wf_mem_live(), live);
}
