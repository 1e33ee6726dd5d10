#include "rendezvous/rendezvous.h"
#include "support/suite.h"

#include <stdio.h>
#include <string.h>

#define SIZE 4

/* The last delivery to each rank. */
static struct {
    int count;
    uint64_t id, serial;
    weft_status status;
    char text[2000], blobs[64];
} seen[SIZE];

static void deliver(void *self, int32_t rank, uint64_t id, const struct wf_text *payload)
{
    struct wf_reader reader = {(const uint8_t *)payload->data, payload->length, false};

    ck_assert_ptr_null(self);
    seen[rank].count++;
    seen[rank].id = id;
    seen[rank].status = (weft_status)wf_take_u32(&reader);
    seen[rank].text[0] = seen[rank].blobs[0] = '\0';
    if (seen[rank].status != WEFT_OK) {
        wf_take_string(&reader, seen[rank].text, sizeof seen[rank].text);
        return;
    }
    seen[rank].serial = wf_take_u64(&reader);
    for (uint32_t n = wf_take_u32(&reader); n > 0; n--) {
        weft_blob blob = wf_take_blob(&reader);
        strncat(seen[rank].blobs, blob.data, (size_t)blob.bytes);
        strcat(seen[rank].blobs, "|");
    }
    ck_assert(!reader.failed && reader.left == 0);
}

static struct wf_gathers *begin(void)
{
    struct wf_gathers *m;

    memset(seen, 0, sizeof seen);
    ck_assert_int_eq(wf_gathers_create(SIZE, (struct wf_gather_sink){NULL, deliver}, 0, &m),
                     WEFT_OK);
    return m;
}

/* LIST is a string of digits. */
static weft_status post_full(struct wf_gathers *m, uint64_t now, int32_t rank, uint64_t id,
                             const char *list, const char *label, weft_status status,
                             const char *text)
{
    int32_t ranks[8], count = 0;
    struct wf_contribution c = {.ranks = ranks, .label = label, .timeout_ns = 100};

    for (; list[count] != '\0'; count++)
        ranks[count] = list[count] - '0';
    c.count = count;
    c.status = status;
    c.text = c.blob.data = text;
    c.blob.bytes = strlen(text);
    return wf_gathers_post(m, now, rank, id, &c);
}

static void post(struct wf_gathers *m, int32_t rank, const char *list, const char *text)
{
    ck_assert_int_eq(post_full(m, 0, rank, 10 + (uint64_t)rank, list, "x", WEFT_OK, text), WEFT_OK);
}

TEST(all_get_every_blob_in_the_lists_order)
{
    struct wf_gathers *m = begin();

    post(m, 0, "201", "zero");
    post(m, 1, "201", "");
    ck_assert_int_eq(seen[0].count, 0);
    post(m, 2, "201", "two");
    for (int rank = 0; rank < 3; rank++) {
        ck_assert_int_eq(seen[rank].count, 1);
        ck_assert_uint_eq(seen[rank].id, 10 + (uint64_t)rank);
        ck_assert_str_eq(seen[rank].blobs, "two|zero||");
    }
    ck_assert_int_eq(seen[3].count, 0);
    ck_assert_uint_eq(wf_gathers_open(m), 0);
    wf_gathers_release(&m);
}

TEST(lists_that_differ_only_in_order_do_not_meet)
{
    struct wf_gathers *m = begin();

    post(m, 0, "01", "a");
    post(m, 1, "10", "b");
    ck_assert_int_eq(seen[0].count + seen[1].count, 0);
    ck_assert_uint_eq(wf_gathers_open(m), 2);
    wf_gathers_release(&m);
}

TEST(every_gather_has_a_number_of_its_own)
{
    struct wf_gathers *m = begin();
    uint64_t last = 0;

    for (int i = 0; i < 100; i++) {
        post(m, 0, i % 2 ? "01" : "10", "");
        post(m, 1, i % 2 ? "01" : "10", "");
        ck_assert_uint_eq(seen[0].serial, seen[1].serial);
        ck_assert_uint_gt(seen[0].serial, last);
        last = seen[0].serial;
    }
    ck_assert_uint_eq(wf_gathers_open(m), 0);
    wf_gathers_release(&m);
}

TEST(one_ranks_failure_is_everyones_with_its_number)
{
    struct wf_gathers *m = begin();

    post(m, 0, "0123", "fine");
    post(m, 3, "0123", "fine");
    ck_assert_int_eq(post_full(m, 0, 1, 5, "0123", "x", WEFT_ERR_DEVICE, "no such device"),
                     WEFT_OK);
    for (int rank = 0; rank < 4; rank++) {
        if (rank == 2) continue;
        ck_assert_int_eq(seen[rank].status, WEFT_ERR_DEVICE);
        ck_assert_str_eq(seen[rank].text, "rank 1: no such device");
    }
    ck_assert_int_eq(seen[2].count, 0);
    ck_assert_uint_eq(wf_gathers_open(m), 1);
    post(m, 2, "0123", "late");
    ck_assert_str_eq(seen[2].text, "rank 1: no such device");
    ck_assert_uint_eq(wf_gathers_open(m), 0);
    wf_gathers_release(&m);
}

TEST(a_late_rank_hears_of_the_failure_whatever_it_came_for)
{
    struct wf_gathers *m = begin();

    ck_assert_int_eq(post_full(m, 0, 0, 1, "01", "the end", WEFT_ERR_SYSTEM, "bad"), WEFT_OK);
    ck_assert_int_eq(post_full(m, 0, 1, 2, "01", "an exchange", WEFT_OK, ""), WEFT_OK);
    ck_assert_str_eq(seen[1].text, "rank 0: bad");
    wf_gathers_release(&m);
}

/* The rank fails because of what an earlier gather answered. */
TEST(a_failure_names_one_rank_only)
{
    struct wf_gathers *m = begin();

    ck_assert_int_eq(post_full(m, 0, 1, 1, "01", "x", WEFT_ERR_SYSTEM, "rank 0: bad"), WEFT_OK);
    ck_assert_str_eq(seen[1].text, "rank 0: bad");
    post(m, 0, "01", "late");
    ck_assert_int_eq(post_full(m, 0, 1, 2, "01", "x", WEFT_ERR_SYSTEM, "rank is 4"), WEFT_OK);
    ck_assert_str_eq(seen[1].text, "rank 1: rank is 4");
    wf_gathers_release(&m);
}

TEST(the_next_gather_of_a_list_does_not_wait_for_the_failed_one)
{
    struct wf_gathers *m = begin();

    ck_assert_int_eq(post_full(m, 0, 0, 1, "01", "x", WEFT_ERR_SYSTEM, "bad"), WEFT_OK);
    post(m, 0, "01", "again"); /* rank 1 has not received the first */
    post(m, 1, "01", "first");
    ck_assert_int_eq(seen[1].status, WEFT_ERR_SYSTEM);
    ck_assert_int_eq(seen[0].count, 1);
    post(m, 1, "01", "again");
    ck_assert_str_eq(seen[0].blobs, "again|again|");
    ck_assert_str_eq(seen[1].blobs, "again|again|");
    wf_gathers_release(&m);
}

TEST(ranks_in_different_calls_get_both_names)
{
    struct wf_gathers *m = begin();

    ck_assert_int_eq(post_full(m, 0, 0, 1, "01", "a split of world", WEFT_OK, ""), WEFT_OK);
    ck_assert_int_eq(post_full(m, 0, 1, 2, "01", "a barrier", WEFT_OK, ""), WEFT_OK);
    for (int rank = 0; rank < 2; rank++) {
        ck_assert_int_eq(seen[rank].status, WEFT_ERR_MISMATCH);
        ck_assert_str_eq(seen[rank].text,
                         "rank 1 is at a barrier, but rank 0 is at a split of world");
    }
    wf_gathers_release(&m);
}

/* RANK posts a step of ranks 0 to COUNT - 1. */
static void post_step(struct wf_gathers *m, uint64_t now, uint64_t comm, int32_t count,
                      int32_t rank, const char *label)
{
    struct wf_contribution c = {.comm = comm,
                                .ranks = (int32_t[]){0, 1, 2},
                                .count = count,
                                .label = label,
                                .timeout_ns = 100,
                                .text = "",
                                .blob = {"", 0}};

    ck_assert_int_eq(wf_gathers_post(m, now, rank, 1, &c), WEFT_OK);
}

static void post_for(struct wf_gathers *m, uint64_t comm, int32_t rank, const char *label)
{
    post_step(m, 0, comm, 2, rank, label);
}

TEST(calls_on_different_communicators_do_not_meet)
{
    struct wf_gathers *m = begin();

    post_for(m, 7, 0, "binding a plan on dp#7");
    post_for(m, 1, 1, "a split of world");
    ck_assert_int_eq(seen[0].count + seen[1].count, 0);
    ck_assert_uint_eq(wf_gathers_expire(m, 100), 200);
    ck_assert_str_eq(seen[0].text, "rank 1 of 2 did not reach binding a plan on dp#7 within 100 "
                                   "ns; rank 1 is at a split of world");
    for (int rank = 0; rank < 2; rank++) /* a third one works */
        post_for(m, 8, rank, "a split of tp#8");
    ck_assert_int_eq(seen[0].status, WEFT_OK);
    ck_assert_int_eq(seen[1].status, WEFT_OK);
    wf_gathers_release(&m);
}

TEST(ranks_at_two_steps_of_a_communicator_get_one_text)
{
    struct wf_gathers *m = begin();

    post_step(m, 0, 7, 2, 0, "a");
    post_step(m, 50, 7, 3, 1, "b");
    post_step(m, 50, 7, 3, 2, "b");
    ck_assert_uint_eq(wf_gathers_expire(m, 100), 200);
    for (int rank = 0; rank < 3; rank++) {
        ck_assert_int_eq(seen[rank].status, WEFT_ERR_TIMEOUT);
        ck_assert_str_eq(seen[rank].text,
                         "rank 1 of 2 did not reach a within 100 ns; rank 1 is at b");
    }
    wf_gathers_release(&m);
}

TEST(the_time_limit_does_not_name_a_rank_that_waits_elsewhere)
{
    struct wf_gathers *m = begin();

    post(m, 0, "0123", "");
    post(m, 2, "0123", "");
    ck_assert_int_eq(post_full(m, 50, 3, 7, "13", "an exchange", WEFT_OK, ""), WEFT_OK);
    ck_assert_uint_eq(wf_gathers_expire(m, 100), 150);
    ck_assert_str_eq(seen[0].text, "rank 1 of 4 did not reach x within 100 ns");
    ck_assert_uint_eq(wf_gathers_expire(m, 150), 200);
    ck_assert_str_eq(seen[3].text,
                     "rank 1 of ranks 1 and 3 did not reach an exchange within 100 ns");
    wf_gathers_release(&m);
}

/* Ranks 0 and 1 may serve the rendezvous, and exit because of a failure. */
static int32_t told[SIZE], told_count;

static void note_order(void *self, int32_t rank, uint64_t id, const struct wf_text *payload)
{
    (void)self;
    (void)id;
    (void)payload;
    told[told_count++] = rank;
}

TEST(ranks_that_may_serve_get_a_failure_last)
{
    struct wf_gathers *m;

    told_count = 0;
    ck_assert_int_eq(wf_gathers_create(SIZE, (struct wf_gather_sink){NULL, note_order}, 0, &m),
                     WEFT_OK);
    for (int32_t rank = 0; rank < 3; rank++)
        post(m, rank, "0123", "");
    wf_gathers_gone(m, 3, "is gone");
    ck_assert_int_eq(told_count, 3);
    ck_assert_int_eq(told[0], 2);
    ck_assert_int_eq(told[1], 1);
    ck_assert_int_eq(told[2], 0);
    wf_gathers_release(&m);
}

TEST(the_time_limit_names_the_missing_rank)
{
    struct wf_gathers *m = begin();

    ck_assert_int_eq(post_full(m, 1000, 0, 1, "0123", "a split of world", WEFT_OK, ""), WEFT_OK);
    ck_assert_int_eq(post_full(m, 1050, 2, 1, "0123", "a split of world", WEFT_OK, ""), WEFT_OK);
    ck_assert_uint_eq(wf_gathers_expire(m, 1099), 1100);
    ck_assert_int_eq(seen[0].count, 0);
    ck_assert_uint_eq(wf_gathers_expire(m, 1100), 1200);
    ck_assert_int_eq(seen[0].status, WEFT_ERR_TIMEOUT);
    ck_assert_str_eq(seen[2].text,
                     "ranks 1 and 3 of 4 did not reach a split of world within 100 ns");
    post(m, 1, "0123", "");
    ck_assert_int_eq(seen[1].status, WEFT_ERR_TIMEOUT);
    wf_gathers_release(&m);
}

TEST(a_rank_that_makes_progress_is_not_late)
{
    struct wf_gathers *m = begin();

    ck_assert_int_eq(post_full(m, 0, 2, 9, "0123", "a save", WEFT_IN_PROGRESS, ""), WEFT_OK);
    ck_assert_uint_eq(wf_gathers_open(m), 0); /* nobody waits yet */
    ck_assert_int_eq(post_full(m, 1000, 0, 1, "0123", "a save", WEFT_OK, ""), WEFT_OK);
    ck_assert_int_eq(post_full(m, 1010, 3, 9, "0123", "a save", WEFT_IN_PROGRESS, ""), WEFT_OK);
    ck_assert_int_eq(post_full(m, 1020, 1, 1, "0123", "a save", WEFT_OK, ""), WEFT_OK);
    ck_assert_int_eq(post_full(m, 1040, 2, 9, "0123", "a save", WEFT_IN_PROGRESS, ""), WEFT_OK);
    ck_assert_uint_eq(wf_gathers_expire(m, 1100), 1122); /* a note counts for an eighth more */
    ck_assert_int_eq(post_full(m, 1110, 3, 9, "0123", "a save", WEFT_IN_PROGRESS, ""), WEFT_OK);
    ck_assert_uint_eq(wf_gathers_expire(m, 1122), 1152);
    ck_assert_int_eq(seen[0].count + seen[1].count + seen[2].count + seen[3].count, 0);
    ck_assert_uint_eq(wf_gathers_expire(m, 1152), 1252);
    ck_assert_int_eq(seen[0].status, WEFT_ERR_TIMEOUT);
    ck_assert_str_eq(seen[1].text, "rank 2 of 4 made no progress in a save for 100 ns");
    wf_gathers_release(&m);
}

TEST(a_gather_that_timed_out_ends_when_a_rank_comes_again_or_later)
{
    struct wf_gathers *m = begin();

    post(m, 0, "01", "");
    ck_assert_uint_eq(wf_gathers_expire(m, 100), 200);
    ck_assert_int_eq(seen[0].status, WEFT_ERR_TIMEOUT);
    post(m, 0, "01", "again"); /* rank 1 did not join the first, and joins this one */
    post(m, 1, "01", "first");
    ck_assert_str_eq(seen[0].blobs, "again|first|");
    ck_assert_str_eq(seen[1].blobs, "again|first|");
    ck_assert_uint_eq(wf_gathers_open(m), 0);
    post(m, 0, "01", "");
    ck_assert_uint_eq(wf_gathers_expire(m, 100), 200);
    ck_assert_uint_eq(wf_gathers_expire(m, 200), UINT64_MAX);
    ck_assert_uint_eq(wf_gathers_open(m), 0);
    wf_gathers_release(&m);
}

TEST(the_least_time_limit_counts)
{
    struct wf_gathers *m = begin();
    struct wf_contribution c = {.ranks = (int32_t[]){0, 1, 2},
                                .count = 3,
                                .label = "x",
                                .timeout_ns = WEFT_FOREVER,
                                .text = "",
                                .blob = {"", 0}};

    ck_assert_int_eq(wf_gathers_post(m, 0, 0, 1, &c), WEFT_OK);
    ck_assert_uint_eq(wf_gathers_expire(m, 10), UINT64_MAX);
    c.timeout_ns = 50;
    ck_assert_int_eq(wf_gathers_post(m, 10, 1, 1, &c), WEFT_OK);
    ck_assert_uint_eq(wf_gathers_expire(m, 10), 60);
    ck_assert_uint_eq(wf_gathers_expire(m, 60), 110);
    ck_assert_str_eq(seen[0].text, "rank 2 of 3 did not reach x within 50 ns");
    wf_gathers_release(&m);
}

TEST(a_rank_that_is_gone_ends_its_gathers_now_and_later)
{
    struct wf_gathers *m = begin();

    post(m, 0, "012", "");
    post(m, 1, "01", "");
    wf_gathers_gone(m, 2, "is gone: killed");
    ck_assert_int_eq(seen[0].status, WEFT_ERR_PEER);
    ck_assert_str_eq(seen[0].text, "rank 2 is gone: killed");
    ck_assert_int_eq(seen[1].count, 0);
    post(m, 1, "12", "");
    ck_assert_str_eq(seen[1].text, "rank 2 is gone: killed");
    post(m, 0, "01", ""); /* the remaining ranks continue */
    ck_assert_int_eq(seen[0].status, WEFT_OK);
    post(m, 1, "012", ""); /* the failed one */
    ck_assert_uint_eq(wf_gathers_open(m), 0);
    wf_gathers_gone(m, 0, "has left the job");
    post(m, 1, "012", "");
    ck_assert_str_eq(seen[1].text, "rank 2 is gone: killed"); /* the rank that left first */
    wf_gathers_release(&m);
}

TEST(ill_formed_lists_are_refused)
{
    struct wf_gathers *m = begin();

    ck_assert_int_eq(post_full(m, 0, 0, 1, "12", "x", WEFT_OK, ""), WEFT_ERR_INVALID);
    ck_assert_int_eq(post_full(m, 0, 0, 1, "00", "x", WEFT_OK, ""), WEFT_ERR_INVALID);
    ck_assert_int_eq(post_full(m, 0, 0, 1, "04", "x", WEFT_OK, ""), WEFT_ERR_INVALID);
    ck_assert_int_eq(post_full(m, 0, 0, 1, "01230", "x", WEFT_OK, ""), WEFT_ERR_INVALID);
    ck_assert_int_eq(post_full(m, 0, 0, 1, "", "x", WEFT_OK, ""), WEFT_ERR_INVALID);
    ck_assert_uint_eq(wf_gathers_open(m), 0);
    wf_gathers_release(&m);
}

TEST(a_contribution_crosses_the_wire)
{
    int32_t list[] = {3, 1}, ranks[SIZE];
    struct wf_contribution in = {.ranks = list,
                                 .count = 2,
                                 .label = "a label",
                                 .timeout_ns = -1,
                                 .status = WEFT_ERR_DEVICE,
                                 .text = "a text",
                                 .blob = {"blob", 4}};
    struct wf_contribution out;
    struct wf_text wire = {0};
    struct wf_reader reader;
    char label[32], text[32];

    wf_contribution_put(&wire, &in);
    for (size_t length = 0; length <= wire.length; length++) {
        weft_status status;

        reader = (struct wf_reader){(const uint8_t *)wire.data, length, false};
        status = wf_contribution_take(&reader, ranks, SIZE, label, sizeof label, text, sizeof text,
                                      &out);
        ck_assert_int_eq(status, length == wire.length ? WEFT_OK : WEFT_ERR_PARSE);
    }
    ck_assert_int_eq(out.count, 2);
    ck_assert_int_eq(ranks[0], 3);
    ck_assert_int_eq(ranks[1], 1);
    ck_assert_str_eq(out.label, "a label");
    ck_assert_str_eq(out.text, "a text");
    ck_assert_int_eq(out.status, WEFT_ERR_DEVICE);
    ck_assert_int_eq(out.timeout_ns, -1);
    ck_assert_mem_eq(out.blob.data, "blob", 4);
    wf_text_free(&wire);
}

TEST(no_gather_leaves_memory_behind)
{
    int64_t live = wf_mem_live();
    struct wf_gathers *m = begin();

    for (int i = 0; i < 1000; i++) {
        post(m, 0, "0123", "some bytes");
        post(m, 2, "0123", "some bytes");
        ck_assert_int_eq(post_full(m, 0, 1, 1, "0123", "x", i % 3 ? WEFT_OK : -5, "t"), WEFT_OK);
        post(m, 3, "0123", "some bytes");
    }
    ck_assert_uint_eq(wf_gathers_open(m), 0);
    wf_gathers_release(&m);
    ck_assert_int_eq(wf_mem_live(), live);
}
