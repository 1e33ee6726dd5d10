/* Which of several lost ranks is reported as the cause. */
#include "standby_job.h"

/* Rank 2 reports an error, rank 3 is lost, then the server's connections close. */
static void lose_the_server_last(struct rv_rank *self)
{
    static const int32_t all[] = {0, 1, 2, 3};

    await_standby(self);
    gather_all(self);
    if (self->status != WEFT_OK) return;
    if (self->rank == 2)
        wf_client_report(self->client, 7, all, 4, WEFT_ERR_TIMEOUT, "rank 9 does not answer", 0);
    while (self->rank != 2 && self->aborts == 0)
        rv_sleep_ms(1);
    if (self->rank == 3) vanish(self->client);
    while (self->rank < 2 && self->gone_rank < 0)
        rv_sleep_ms(1);
    if (self->rank == 1) {
        shutdown(self->client->links[WF_LINK_SERVER].connection->fd, SHUT_RDWR);
        while (!is_over(self->client, WF_LINK_SERVER))
            rv_sleep_ms(1);
        rv_note(self, wf_fail(WEFT_ERR_PEER, "%s", wf_client_gone(self->client, 0)->text));
    }
    arrived++;
    while (self->rank != 3 && arrived < 4)
        rv_sleep_ms(1);
}

TEST(a_server_that_closes_last_is_not_the_cause)
{
    rv = begin_serving("unix:weft-test-last");
    start_all(lose_the_server_last);
    join_all();
    saw(&ranks[1], WEFT_ERR_PEER,
        "before it, rank 3 was lost, and this error was reported: rank 9 does not answer");
    wf_server_release(&rv.server);
}

/* Rank 3 is lost and rank 2 leaves because of it.  A later gather without rank 3 names both. */
static void leave_after_a_loss(struct rv_rank *self)
{
    static const int32_t some[] = {0, 2};
    uint64_t serial;

    await_standby(self);
    gather_all(self);
    if (self->status != WEFT_OK) return;
    if (self->rank == 3) {
        vanish(self->client);
        return;
    }
    while (self->gone_rank < 0)
        rv_sleep_ms(1);
    if (self->rank == 0) rv_note(self, gather(self, some, 2, &serial));
}

TEST(a_loss_is_named_where_others_left_because_of_it)
{
    rv = begin_serving("unix:weft-test-loss");
    start_all(leave_after_a_loss);
    join_all();
    saw(&ranks[0], WEFT_ERR_PEER, "rank 2 has left the job; before it, rank 3 was lost");
    wf_server_release(&rv.server);
}

/* Only the server learns of the loss of rank 3.  Rank 0 leaves because of it, and so does the
 * server.  Rank 2 sends a contribution that it began before the server's reports arrived. */
static void contribute_after_the_server(struct rv_rank *self)
{
    static const int32_t all[] = {0, 1, 2, 3};
    struct wf_contribution mine = {.ranks = all,
                                   .count = 4,
                                   .label = "a test",
                                   .timeout_ns = 20 * WF_SECOND_NS,
                                   .text = "",
                                   .blob = {"x", 1}};
    struct wf_waiter w = {.count = 4, .contribution = &mine};
    struct wf_text payload = {0};
    struct wf_gathered got;

    await_standby(self);
    gather_all(self);
    if (self->status != WEFT_OK) return;
    if (self->rank == 3) shutdown(self->client->links[WF_LINK_SERVER].connection->fd, SHUT_RDWR);
    while (self->rank == 0 && self->gone_rank < 0)
        rv_sleep_ms(1);
    if (self->rank == 0) return;
    while (!is_over(self->client, WF_LINK_SERVER))
        rv_sleep_ms(1);
    if (self->rank == 2) {
        wf_contribution_put(&payload, &mine);
        rv_note(self, wf_client_request(self->client, -1, WF_FRAME_GATHER, &payload,
                                        mine.timeout_ns, WF_SERVER_GRACE_NS, &w));
        if (self->status == WEFT_OK) rv_note(self, wf_gathered_read(&w.payload, NULL, &got));
        wf_text_free(&w.payload);
        wf_text_free(&payload);
    }
    arrived++;
    while (arrived < 3)
        rv_sleep_ms(1);
}

TEST(a_rank_that_leaves_with_the_server_is_not_the_cause)
{
    rv = begin_serving("unix:weft-test-after");
    start_all(contribute_after_the_server);
    rv_join(&ranks[0]);
    wf_server_release(&rv.server);
    for (int rank = 1; rank < 4; rank++)
        rv_join(&ranks[rank]);
    saw(&ranks[2], WEFT_ERR_PEER, "rank 3 is gone");
}

static atomic_bool server_has_ended;

/* The server ends while all ranks run BODY: each of them reports rank 0 as the first to be lost. */
static void check_server_is_first(const char *address, void (*body)(struct rv_rank *))
{
    server_has_ended = false;
    rv = begin_serving(address);
    start_all(body);
    while (arrived < 4)
        rv_sleep_ms(1);
    pthread_cancel(rv.server->thread);
    server_has_ended = true;
    join_all();
    for (int rank = 1; rank < 4; rank++)
        ck_assert_msg(ranks[rank].gone_rank == 0, "rank %d: rank %d was the first to be lost", rank,
                      ranks[rank].gone_rank);
    wf_server_release(&rv.server);
}

/* Rank 0's process ends slowly: rank 3's connection to its server closes first, its own connection
 * to the standby 400 ms later, and the connections of ranks 1 and 2 to its server last.  Rank 3
 * ends because of the loss. */
static void end_slowly(struct rv_rank *self)
{
    await_standby(self);
    gather_all(self);
    if (self->status != WEFT_OK) return;
    arrived++;
    while (!server_has_ended)
        rv_sleep_ms(1);
    rv_sleep_ms(self->rank == 3 ? 0 : self->rank == 0 ? 400 : 500);
    if (self->rank > 0) shutdown(self->client->links[WF_LINK_SERVER].connection->fd, SHUT_RDWR);
    while (self->rank > 0 && self->gone_rank < 0)
        rv_sleep_ms(1);
    if (self->rank == 0 || self->rank == 3) vanish(self->client);
}

TEST(a_server_whose_process_ends_slowly_is_the_cause)
{
    check_server_is_first("unix:weft-test-slow", end_slowly);
}

/* Rank 0 was killed, and the kernel has closed nothing but rank 3's connection to its server.  Rank
 * 3 ends because of the loss. */
static void close_one_connection(struct rv_rank *self)
{
    await_standby(self);
    gather_all(self);
    if (self->status != WEFT_OK) return;
    arrived++;
    while (!server_has_ended)
        rv_sleep_ms(1);
    if (self->rank == 3) shutdown(self->client->links[WF_LINK_SERVER].connection->fd, SHUT_RDWR);
    while (self->rank > 0 && self->gone_rank < 0)
        rv_sleep_ms(1);
    if (self->rank == 3) vanish(self->client);
    arrived++;
    while (self->rank == 0 && arrived < 8)
        rv_sleep_ms(1);
}

TEST(a_server_whose_loss_one_rank_has_found_is_the_cause)
{
    check_server_is_first("unix:weft-test-found", close_one_connection);
}

/* The standby has a LOOK about the lost rank when the process learns of the loss. */
static void read_look(void *self, const struct wf_departure *departure)
{
    struct wf_inbox sent = {0};
    struct wf_reader reader;
    struct wf_frame frame;
    char bytes[256];
    ssize_t got = recv(*(int *)self, bytes, sizeof bytes, MSG_DONTWAIT);

    ck_assert_int_gt(got, 0);
    wf_text_append(&sent.bytes, bytes, (size_t)got);
    ck_assert_int_eq(wf_frame_next(&sent, &frame), WEFT_OK);
    ck_assert_uint_eq(frame.type, WF_FRAME_LOOK);
    reader = wf_frame_reader(&frame);
    ck_assert_uint_eq(wf_take_u32(&reader), (uint32_t)departure->rank);
    wf_inbox_free(&sent);
}

TEST(the_standby_is_told_of_a_loss_before_the_process)
{
    struct wf_departure *departed[4] = {0};
    struct wf_client client = {.departed = departed, .lock = PTHREAD_MUTEX_INITIALIZER};
    int ends[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    client.changed = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    client.options.size = 4;
    client.options.events.self = &ends[1];
    client.options.events.gone = read_look;
    client.links[WF_LINK_SERVER].over = true;
    client.links[WF_LINK_STANDBY].connection = wf_connection_create(ends[0], 0);
    wf_client_note_gone(&client, 3, false, "is gone", (weft_blob){"", 0});
    ck_assert_ptr_nonnull(client.first_lost);
    wf_departure_free(departed[3]);
    wf_connection_release(client.links[WF_LINK_STANDBY].connection);
    close(ends[1]);
}

/* Rank 3 loses its connection to the standby, and nothing else. */
static void lose_the_standby(struct rv_rank *self)
{
    await_standby(self);
    gather_all(self);
    if (self->status != WEFT_OK) return;
    if (self->rank == 3) {
        shutdown(self->client->links[WF_LINK_STANDBY].connection->fd, SHUT_RDWR);
        while (!is_over(self->client, WF_LINK_STANDBY))
            rv_sleep_ms(1);
    }
    rv_sleep_ms(3000); /* longer than the standby's report waits for the server's */
    gather_all(self);
    if (self->status == WEFT_OK && self->gone_rank >= 0)
        rv_note(self, wf_fail(WEFT_ERR_INTERNAL, "rank %d is said to be gone", self->gone_rank));
    if (self->status == WEFT_OK) gather_all(self);
}

TEST(a_rank_that_loses_the_standby_alone_is_not_gone)
{
    rv = begin_serving("unix:weft-test-alone");
    start_all(lose_the_standby);
    join_all();
    for (int rank = 0; rank < 4; rank++)
        saw(&ranks[rank], WEFT_OK, "");
    wf_server_release(&rv.server);
}

/* The standby reports rank 3.  This rank's thread then rests longer than the server may take to
 * answer, and asks the server. */
TEST(the_server_has_time_to_answer_a_question_that_is_asked_late)
{
    struct wf_departure *departed[4] = {0};
    struct wf_client client = {.departed = departed, .lock = PTHREAD_MUTEX_INITIALIZER};
    struct rv_rank self = {.gone_rank = -1};
    struct wf_connection *server;
    struct wf_inbox sent = {0};
    struct wf_text payload = {0};
    struct wf_frame look;
    char bytes[256];
    int ends[2];
    ssize_t got;

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    client.changed = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    client.options.size = 4;
    client.options.events = (struct wf_client_events){.self = &self, .gone = rv_gone};
    client.links[WF_LINK_STANDBY].over = true;
    client.links[WF_LINK_SERVER].connection = server = wf_connection_create(ends[0], 0);
    ck_assert(wf_held_add(&client, 3, false, -1, "is gone", (weft_blob){"", 0}));
    rv_sleep_ms(3000);
    ck_assert(wf_client_release_held(&client)); /* it asks, and holds the report */
    got = recv(ends[1], bytes, sizeof bytes, MSG_DONTWAIT);
    ck_assert_int_gt(got, 0);
    wf_text_append(&sent.bytes, bytes, (size_t)got);
    ck_assert_int_eq(wf_frame_next(&sent, &look), WEFT_OK);
    wf_put_u32(&payload, true);
    wf_client_handle(&client, WF_LINK_SERVER,
                     &(struct wf_frame){.type = WF_FRAME_PASSED,
                                        .id = look.id,
                                        .payload = (const uint8_t *)payload.data,
                                        .bytes = payload.length});
    ck_assert(!wf_client_release_held(&client));
    ck_assert_int_eq(self.gone_rank, -1);
    wf_text_free(&payload);
    wf_inbox_free(&sent);
    wf_connection_release(server);
    close(ends[1]);
}
