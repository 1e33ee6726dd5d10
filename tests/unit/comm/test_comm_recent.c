#include "comm/comm.h"
#include "support/suite.h"

#include <stdio.h>
#include <string.h>

static const char *entry(struct wf_recent *recent, uint64_t n)
{
    static struct wf_text text;

    wf_text_free(&text);
    wf_recent_print(recent, n, &text);
    return text.data != NULL ? text.data : "";
}

TEST(operations_read_as_they_were_called)
{
    static struct wf_recent recent;

    wf_recent_add(&recent, WEFT_COLL_ALL_REDUCE, WEFT_DTYPE_F32, WEFT_REDUCE_MAX, -1, 1024);
    wf_recent_add(&recent, WEFT_COLL_BROADCAST, WEFT_DTYPE_BF16, 0, 3, 1);
    wf_recent_add(&recent, WEFT_COLL_BARRIER, 0, 0, -1, 0);
    wf_recent_add(&recent, WF_RECENT_SEND, WEFT_DTYPE_I8, 0, 2, 7);
    wf_recent_add(&recent, WF_RECENT_RECEIVE, WEFT_DTYPE_I8, 0, 0, 7);
    ck_assert_str_eq(entry(&recent, 0), "");
    ck_assert_str_eq(entry(&recent, 1), "all_reduce max of 1024 f32");
    ck_assert_str_eq(entry(&recent, 2), "broadcast of 1 bf16 with root 3");
    ck_assert_str_eq(entry(&recent, 3), "barrier");
    ck_assert_str_eq(entry(&recent, 4), "send of 7 i8 to rank 2");
    ck_assert_str_eq(entry(&recent, 5), "receive of 7 i8 from rank 0");
    ck_assert_str_eq(entry(&recent, 6), "");
}

TEST(only_recent_operations_are_kept)
{
    static struct wf_recent recent;
    char want[64];

    for (uint64_t n = 1; n <= 1000; n++) {
        wf_recent_add(&recent, WEFT_COLL_ALL_GATHER, WEFT_DTYPE_U8, 0, -1, n);
        snprintf(want, sizeof want, "all_gather of %llu u8", (unsigned long long)n);
        ck_assert_str_eq(entry(&recent, n), want);
    }
    ck_assert_str_eq(entry(&recent, 1000 - WF_RECENT_ENTRIES), "");
    ck_assert_str_ne(entry(&recent, 1000 - WF_RECENT_ENTRIES + 2), "");
    wf_recent_finish(&recent);
    ck_assert_uint_eq(recent.finished, 1000);
}

static struct wf_recent shared;
static atomic_bool over;

static void *write_all(void *argument)
{
    (void)argument;
    for (uint64_t n = 1; n <= 200000; n++)
        wf_recent_add(&shared, WEFT_COLL_ALL_GATHER, WEFT_DTYPE_U8, 0, -1, n);
    over = true;
    return NULL;
}

TEST(a_reader_never_sees_a_mixture)
{
    pthread_t writer;
    char want[64];

    ck_assert_int_eq(pthread_create(&writer, NULL, write_all, NULL), 0);
    while (!over) {
        uint64_t n = atomic_load(&shared.posted);
        const char *got = entry(&shared, n > 30 ? n - 30 : n);

        snprintf(want, sizeof want, "all_gather of %llu u8",
                 (unsigned long long)(n > 30 ? n - 30 : n));
        if (got[0] != '\0') ck_assert_str_eq(got, want);
    }
    pthread_join(writer, NULL);
}
