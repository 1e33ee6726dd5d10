#include "standby_job.h"

/* The server ends, the ranks synchronize through the standby, then one is lost. */
static void outlive_the_server(struct rv_rank *self)
{
    static const int32_t all[] = {0, 1, 2, 3};
    uint64_t before = 0, after = 0;

    await_standby(self);
    rv_note(self, gather(self, all, 4, &before));
    arrived++;
    while (!is_over(self->client, WF_LINK_SERVER))
        rv_sleep_ms(1);
    if (self->status == WEFT_OK) rv_note(self, gather(self, all, 4, &after));
    if (self->status == WEFT_OK && after <= before)
        rv_note(self, wf_fail(WEFT_ERR_INTERNAL, "the number of a gather was used before"));
    if (self->status != WEFT_OK) return;
    if (self->rank == 3) {
        vanish(self->client);
        return;
    }
    rv_note(self, gather(self, all, 4, &after));
}

TEST(the_standby_serves_once_the_server_has_ended)
{
    static const char *const addresses[] = {"127.0.0.1", "unix:weft-test-standby"};

    for (size_t i = 0; i < WF_COUNT(addresses); i++) {
        rv = begin_serving(addresses[i]);
        start_all(outlive_the_server);
        while (arrived < 4)
            rv_sleep_ms(1);
        wf_server_release(&rv.server);
        join_all();
        saw(&ranks[3], WEFT_OK, "");
        for (int rank = 0; rank < 3; rank++)
            saw(&ranks[rank], WEFT_ERR_PEER, "rank 3 is gone");
    }
}

/* Rank 2 reports an error and leaves.  The others synchronize. */
static void report_and_leave(struct rv_rank *self)
{
    static const int32_t all[] = {0, 1, 2, 3};

    await_standby(self);
    gather_all(self);
    if (self->status != WEFT_OK) return;
    if (self->rank == 2) {
        wf_client_report(self->client, 7, all, 4, WEFT_ERR_TIMEOUT, "rank 9 does not answer", 0);
        return;
    }
    gather_all(self);
}

TEST(a_rank_that_leaves_after_an_error_is_not_the_cause)
{
    rv = begin_serving("unix:weft-test-report");
    start_all(report_and_leave);
    join_all();
    for (int rank = 0; rank < 4; rank++) {
        if (rank == 2) continue;
        saw(&ranks[rank], WEFT_ERR_PEER,
            "rank 2 has left the job; it had reported: rank 9 does not answer");
        ck_assert_int_ge(ranks[rank].aborts, 7); /* from one server or from both */
    }
    wf_server_release(&rv.server);
}

/* Rank 2 reports an error to rank 3, which leaves because of it.  Ranks 0 and 1 wait for rank 3. */
static void leave_because_of_a_report(struct rv_rank *self)
{
    static const int32_t some[] = {0, 1, 3}, one[] = {3};
    uint64_t serial;

    await_standby(self);
    gather_all(self);
    if (self->status != WEFT_OK) return;
    if (self->rank == 2)
        wf_client_report(self->client, 7, one, 1, WEFT_ERR_TIMEOUT, "rank 9 does not answer", 0);
    while (self->rank == 3 && self->aborts == 0)
        rv_sleep_ms(1);
    if (self->rank < 2) rv_note(self, gather(self, some, 3, &serial));
    arrived++;
    while (self->rank == 2 && arrived < 4)
        rv_sleep_ms(1);
}

TEST(a_rank_that_leaves_because_of_a_report_is_not_the_cause)
{
    rv = begin_serving("unix:weft-test-heard");
    start_all(leave_because_of_a_report);
    join_all();
    for (int rank = 0; rank < 2; rank++)
        saw(&ranks[rank], WEFT_ERR_PEER,
            "rank 3 has left the job; before, it was sent this error: rank 9 does not answer");
    wf_server_release(&rv.server);
}

static atomic_bool stalled, met;

/* Block the thread of a rank, so that it sends nothing until the ranks have synchronized. */
static void stall(void *self, uint64_t comm, int32_t asker, struct wf_text *out)
{
    stalled = true;
    while (!met)
        rv_sleep_ms(1);
    rv_where(self, comm, asker, out);
}

/* The same, but the thread of rank 2 is busy while it reports. */
static void report_while_the_thread_is_busy(struct rv_rank *self)
{
    static const int32_t some[] = {1, 3}, one[] = {3}, busy[] = {2};
    struct wf_gathered got;
    uint64_t serial;

    await_standby(self);
    if (self->rank == 2) {
        pthread_mutex_lock(&self->client->lock);
        self->client->options.events.where = stall;
        pthread_mutex_unlock(&self->client->lock);
    }
    gather_all(self);
    if (self->status != WEFT_OK) return;
    if (self->rank == 0) {
        rv_note(self, wf_client_ask(self->client, 5, busy, 1, 20 * WF_SECOND_NS, &got));
        if (self->status == WEFT_OK) wf_gathered_free(&got);
    } else if (self->rank == 1) {
        rv_note(self, gather(self, some, 2, &serial));
        met = true;
    } else if (self->rank == 2) {
        while (!stalled)
            rv_sleep_ms(1);
        wf_client_report(self->client, 7, one, 1, WEFT_ERR_TIMEOUT, "rank 9 does not answer", 0);
        while (!met)
            rv_sleep_ms(1);
    }
    while (self->rank == 3 && self->aborts == 0)
        rv_sleep_ms(1);
}

TEST(a_report_arrives_before_the_ranks_that_leave_because_of_it)
{
    stalled = met = false;
    rv = begin_serving("unix:weft-test-busy");
    start_all(report_while_the_thread_is_busy);
    join_all();
    saw(&ranks[0], WEFT_OK, "");
    saw(&ranks[1], WEFT_ERR_PEER,
        "rank 3 has left the job; before, it was sent this error: rank 9 does not answer");
    wf_server_release(&rv.server);
}

/* The server does not answer, as if its process were stopped.  The standby answers. */
static void ask_a_stopped_server(struct rv_rank *self)
{
    static const int32_t all[] = {0, 1, 2, 3};
    struct wf_gathered got;

    await_standby(self);
    gather_all(self);
    if (self->rank == 2 && self->status == WEFT_OK) {
        stop_server_for(self);
        rv_note(self, wf_client_ask(self->client, 5, all, 4, WF_SECOND_NS / 10, &got));
        if (self->status == WEFT_OK && memcmp(got.blobs[3].data, "rank 3 in 5", 11) != 0)
            rv_note(self, wf_fail(WEFT_ERR_INTERNAL, "wrong answers"));
        if (self->status == WEFT_OK) wf_gathered_free(&got);
    }
    arrived++;
    while (arrived < 4)
        rv_sleep_ms(1);
}

TEST(the_standby_answers_for_a_server_that_is_stopped)
{
    rv = begin_serving("unix:weft-test-stopped");
    start_all(ask_a_stopped_server);
    join_all();
    for (int rank = 0; rank < 4; rank++)
        saw(&ranks[rank], WEFT_OK, "");
    wf_server_release(&rv.server);
}

/* A call ends soon after its time limit, although the server does not answer. */
static void gather_at_a_stopped_server(struct rv_rank *self)
{
    static const int32_t all[] = {0, 1, 2, 3};
    struct wf_contribution mine = {.ranks = all,
                                   .count = 4,
                                   .label = "a test",
                                   .timeout_ns = WF_SECOND_NS / 10,
                                   .text = "",
                                   .blob = {"x", 1}};
    struct wf_gathered got;
    uint64_t begun;

    await_standby(self);
    gather_all(self);
    if (self->rank == 2 && self->status == WEFT_OK) {
        stop_server_for(self);
        begun = wf_now_ns();
        rv_note(self, wf_client_gather(self->client, &mine, &got));
        wf_client_report(self->client, 7, all, 4, WEFT_ERR_TIMEOUT, "rank 9 does not answer", 0);
        if (wf_now_ns() - begun > 4 * (uint64_t)WF_SECOND_NS)
            rv_note(self, wf_fail(WEFT_ERR_INTERNAL, "it takes too long"));
    }
    arrived++;
    while (arrived < 4)
        rv_sleep_ms(1);
}

TEST(a_server_that_is_stopped_does_not_prolong_a_call)
{
    rv = begin_serving("unix:weft-test-limit");
    start_all(gather_at_a_stopped_server);
    join_all();
    saw(&ranks[2], WEFT_ERR_TIMEOUT, "the rendezvous does not answer; rank 0 serves it");
    wf_server_release(&rv.server);
}

/* An answer, as a server with the job's token may write it. */
static void put_answer(struct wf_text *out, uint32_t status, uint32_t count, uint32_t blobs)
{
    wf_put_u32(out, status);
    if (status != WEFT_OK) return;
    wf_put_u64(out, 1);
    wf_put_u32(out, count);
    for (uint32_t i = 0; i < blobs; i++)
        wf_put_blob(out, "abc", 3);
}

static void take_answer(uint32_t status, uint32_t count, uint32_t blobs, bool fits, bool watched)
{
    struct wf_client client = {.lock = PTHREAD_MUTEX_INITIALIZER,
                               .changed = PTHREAD_COND_INITIALIZER};
    struct wf_waiter w = {.id = 7, .link = WF_LINK_SERVER, .count = 3};
    struct wf_connection connection = {.fd = -1};
    struct wf_text payload = {0};
    struct wf_frame frame = {.type = WF_FRAME_GATHERED, .id = 7};

    put_answer(&payload, status, count, blobs);
    frame.payload = (const uint8_t *)payload.data;
    frame.bytes = payload.length;
    client.links[WF_LINK_SERVER].connection = &connection;
    if (watched) {
        client.watched = 7;
        client.question.count = 3;
    } else {
        client.waiters = &w;
    }
    wf_client_handle(&client, WF_LINK_SERVER, &frame);
    ck_assert_int_eq(connection.broken, !fits);
    ck_assert_int_eq(w.done, fits);
    ck_assert(fits || strstr(connection.why, "the rendezvous sent an answer") != NULL);
    wf_text_free(&w.payload);
    wf_text_free(&payload);
    wf_free(connection.why);
}

TEST(an_answer_of_another_number_of_ranks_closes_the_connection)
{
    take_answer(WEFT_OK, 3, 3, true, false);
    take_answer(WEFT_OK, 2, 2, false, false);
    take_answer(WEFT_OK, 0, 0, false, false);
    take_answer(WEFT_OK, 4, 4, false, false);
    take_answer(WEFT_OK, 3, 2, false, false);
    take_answer(WEFT_OK, UINT32_MAX, 3, false, false);
    take_answer(WEFT_IN_PROGRESS, 3, 3, false, false);
    take_answer((uint32_t)WEFT_ERR_PEER, 0, 0, false, false); /* without a text */
    take_answer(WEFT_OK, 2, 2, false, true);
}
