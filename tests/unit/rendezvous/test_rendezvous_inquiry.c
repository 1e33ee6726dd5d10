#include "rendezvous/rendezvous.h"
#include "support/suite.h"

#include <string.h>

static int delivered;
static int32_t asker;
static uint64_t answered_id;
static char answers[64];

static void deliver(void *self, int32_t rank, uint64_t id, const struct wf_text *payload)
{
    struct wf_reader reader = {(const uint8_t *)payload->data, payload->length, false};

    ck_assert_ptr_null(self);
    delivered++;
    asker = rank;
    answered_id = id;
    answers[0] = '\0';
    ck_assert_int_eq((int)wf_take_u32(&reader), WEFT_OK);
    (void)wf_take_u64(&reader);
    for (uint32_t n = wf_take_u32(&reader); n > 0; n--) {
        weft_blob blob = wf_take_blob(&reader);
        strncat(answers, blob.data, (size_t)blob.bytes);
        strcat(answers, "|");
    }
    ck_assert(!reader.failed);
}

static struct wf_inquiries begin(void)
{
    delivered = 0;
    return (struct wf_inquiries){.sink = {NULL, deliver}};
}

static const int32_t three[] = {2, 0, 5};

TEST(the_last_answer_ends_it)
{
    struct wf_inquiries q = begin();
    uint64_t number;

    ck_assert_int_eq(wf_inquiry_open(&q, 100, 7, 99, three, 3, &number), WEFT_OK);
    wf_inquiry_answer(&q, number, 5, (weft_blob){"five", 4});
    wf_inquiry_answer(&q, number, 5, (weft_blob){"twice", 5});
    wf_inquiry_answer(&q, number, 1, (weft_blob){"not asked", 9});
    wf_inquiry_answer(&q, number, 2, (weft_blob){"two", 3});
    ck_assert_int_eq(delivered, 0);
    wf_inquiry_answer(&q, number, 0, (weft_blob){"zero", 4});
    ck_assert_int_eq(delivered, 1);
    ck_assert_int_eq(asker, 7);
    ck_assert_uint_eq(answered_id, 99);
    ck_assert_str_eq(answers, "two|zero|five|");
    wf_inquiry_answer(&q, number, 0, (weft_blob){"late", 4});
    ck_assert_int_eq(delivered, 1);
}

TEST(the_time_limit_ends_it_with_what_there_is)
{
    struct wf_inquiries q = begin();
    uint64_t first, second;
    int64_t live = wf_mem_live();

    ck_assert_int_eq(wf_inquiry_open(&q, 100, 1, 1, three, 3, &first), WEFT_OK);
    ck_assert_int_eq(wf_inquiry_open(&q, 200, 1, 2, three, 3, &second), WEFT_OK);
    wf_inquiry_answer(&q, first, 0, (weft_blob){"zero", 4});
    ck_assert_uint_eq(wf_inquiries_expire(&q, 99), 100);
    ck_assert_uint_eq(wf_inquiries_expire(&q, 150), 200);
    ck_assert_uint_eq(answered_id, 1);
    ck_assert_str_eq(answers, "|zero||");
    wf_inquiries_free(&q);
    ck_assert_int_eq(delivered, 1);
    ck_assert_int_eq(wf_mem_live(), live);
}
