#include "rendezvous/client.h"
#include "support/rendezvous.h"
#include "support/suite.h"

static struct rv_rank ranks[64];
static struct rv rv;

static void all_ok(int32_t size)
{
    for (int32_t rank = 0; rank < size; rank++)
        ck_assert_msg(ranks[rank].status == WEFT_OK, "rank %d: %s", rank, ranks[rank].text);
}

static weft_status gather(struct rv_rank *self, const int32_t *list, int32_t count, weft_blob blob,
                          struct wf_gathered *out)
{
    struct wf_contribution mine = {.ranks = list,
                                   .count = count,
                                   .label = "a test",
                                   .timeout_ns = 10 * WF_SECOND_NS,
                                   .text = "",
                                   .blob = blob};

    return wf_client_gather(self->client, &mine, out);
}

/* Blobs of a megabyte, larger than any socket buffer. */
static void gather_large(struct rv_rank *self)
{
    static const int32_t list[] = {2, 0, 1};
    size_t bytes = (1u << 20) + (size_t)self->rank;
    char *blob = malloc(bytes);
    struct wf_gathered got;

    memset(blob, 'a' + self->rank, bytes);
    rv_note(self, gather(self, list, 3, (weft_blob){blob, bytes}, &got));
    for (int i = 0; self->status == WEFT_OK && i < 3; i++) {
        const char *in = got.blobs[i].data;
        size_t want = (1u << 20) + (size_t)list[i];
        if (got.blobs[i].bytes != want || in[0] != 'a' + list[i] || in[want - 1] != 'a' + list[i])
            rv_note(self, wf_fail(WEFT_ERR_INTERNAL, "blob %d is wrong", i));
    }
    if (self->status == WEFT_OK) wf_gathered_free(&got);
    free(blob);
}

TEST(blobs_may_be_long)
{
    rv = rv_begin(3, "127.0.0.1", 10 * WF_SECOND_NS);
    rv_all(ranks, &rv, 3, gather_large);
    all_ok(3);
    wf_server_release(&rv.server);
}

/* Two threads of one rank, each with its own list, in different orders on different ranks. */
struct pair_job {
    struct rv_rank *self;
    int32_t list[2];
    weft_status status;
};

static void *gather_pair(void *argument)
{
    struct pair_job *job = argument;
    struct wf_gathered got;

    for (int i = 0; i < 50 && job->status == WEFT_OK; i++) {
        job->status = gather(job->self, job->list, 2, (weft_blob){"x", 1}, &got);
        if (job->status == WEFT_OK) wf_gathered_free(&got);
    }
    return NULL;
}

static void gather_from_threads(struct rv_rank *self)
{
    int32_t next = (self->rank + 1) % 3, last = (self->rank + 2) % 3;
    struct pair_job jobs[2] = {{self, {self->rank, next}, WEFT_OK},
                               {self, {last, self->rank}, WEFT_OK}};
    pthread_t threads[2];

    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, gather_pair, &jobs[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    rv_note(self, jobs[0].status != WEFT_OK ? jobs[0].status : jobs[1].status);
}

TEST(threads_of_a_rank_do_not_wait_for_each_other)
{
    rv = rv_begin(3, "127.0.0.1", 10 * WF_SECOND_NS);
    rv_all(ranks, &rv, 3, gather_from_threads);
    all_ok(3);
    wf_server_release(&rv.server);
}

static void ask_and_abort(struct rv_rank *self)
{
    static const int32_t list[] = {1, 0, 2};
    struct wf_gathered got;

    if (self->rank == 0) {
        rv_note(self, wf_client_ask(self->client, 5, list, 3, 5 * WF_SECOND_NS, &got));
        if (self->status == WEFT_OK) {
            if (got.blobs[0].bytes != 11 || memcmp(got.blobs[0].data, "rank 1 in 5", 11) != 0 ||
                memcmp(got.blobs[1].data, "rank 0 in 5", 11) != 0)
                rv_note(self, wf_fail(WEFT_ERR_INTERNAL, "wrong answers"));
            wf_gathered_free(&got);
        }
        wf_client_abort(self->client, 7, list, 3, WEFT_ERR_ABORTED, "enough");
    }
    for (int i = 0; i < 1000 && self->rank != 0 && self->aborts == 0; i++)
        rv_sleep_ms(5);
    if (self->status == WEFT_OK) rv_gather(self);
}

static void report_mismatch(struct rv_rank *self)
{
    static const int32_t list[] = {0, 1};

    if (self->rank == 0)
        wf_client_report(self->client, 7, list, 2, WEFT_ERR_MISMATCH, "they differ",
                         UINT64_C(1) << 40);
    for (int i = 0; i < 1000 && self->rank != 0 && self->aborts == 0; i++)
        rv_sleep_ms(5);
    rv_gather(self);
}

TEST(a_report_has_the_number_of_complete_collectives)
{
    rv = rv_begin(2, "127.0.0.1", 10 * WF_SECOND_NS);
    rv_all(ranks, &rv, 2, report_mismatch);
    all_ok(2);
    ck_assert_int_ge(ranks[1].aborts, 7);
    ck_assert_uint_eq(ranks[1].complete, UINT64_C(1) << 40);
    wf_server_release(&rv.server);
}

TEST(questions_and_aborts_reach_ranks_that_are_busy)
{
    rv = rv_begin(3, "127.0.0.1", 10 * WF_SECOND_NS);
    rv_all(ranks, &rv, 3, ask_and_abort);
    all_ok(3);
    ck_assert_int_eq(ranks[0].aborts, 0); /* the aborting rank gets no event */
    ck_assert_int_eq(ranks[1].aborts, 7);
    ck_assert_int_eq(ranks[2].aborts, 7);
    wf_server_release(&rv.server);
}

static atomic_int waiting;

static void wait_for_the_end(struct rv_rank *self)
{
    struct wf_gathered got;
    int32_t list[] = {0, 1};

    waiting++;
    if (self->rank == 0) rv_note(self, gather(self, list, 2, (weft_blob){"", 0}, &got));
    for (int i = 0; i < 1000 && self->rank == 1 && waiting < 3; i++)
        rv_sleep_ms(5);
    if (self->rank == 1) rv_note(self, gather(self, list, 2, (weft_blob){"", 0}, &got));
}

TEST(a_server_that_ends_cleanly_ends_waits)
{
    rv = rv_begin(2, "127.0.0.1", 10 * WF_SECOND_NS);
    waiting = 0;
    rv_place(ranks, &rv, 2, wait_for_the_end);
    rv_start(&ranks[0]);
    rv_start(&ranks[1]);
    while (waiting < 2)
        rv_sleep_ms(1);
    wf_server_release(&rv.server);
    waiting++;
    for (int i = 0; i < 2; i++) {
        rv_join(&ranks[i]);
        ck_assert_int_eq(ranks[i].status, WEFT_ERR_PEER);
        ck_assert_ptr_nonnull(strstr(ranks[i].text, "the rendezvous has ended"));
    }
}

TEST(an_answer_with_an_unknown_status_is_an_error)
{
    static const uint32_t wrong[] = {7777, 1};

    for (size_t i = 0; i < WF_COUNT(wrong); i++) {
        struct wf_text payload = {0};
        struct wf_gathered got;

        wf_put_u32(&payload, wrong[i]);
        wf_put_string(&payload, "boo");
        ck_assert_int_eq(wf_gathered_read(&payload, NULL, &got), WEFT_ERR_INTERNAL);
        wf_text_free(&payload);
    }
}
