#include "rendezvous/client.h"
#include "support/rendezvous.h"
#include "support/suite.h"

static struct rv_rank ranks[64];
static struct rv rv;

static void saw(const struct rv_rank *rank, weft_status status, const char *part)
{
    ck_assert_msg(rank->status == status, "rank %d saw %s: %s", rank->rank,
                  weft_status_name(rank->status), rank->text);
    ck_assert_msg(strstr(rank->text, part) != NULL, "rank %d: no \"%s\" in: %s", rank->rank, part,
                  rank->text);
}

TEST(a_missing_rank_is_named_also_to_itself)
{
    rv = rv_begin(5, "127.0.0.1", 4 * WF_SECOND_NS); /* expires once */
    rv_place(ranks, &rv, 5, NULL);
    for (int rank = 0; rank < 5; rank += 2)
        rv_start(&ranks[rank]);
    for (int rank = 0; rank < 5; rank += 2) {
        rv_join(&ranks[rank]);
        saw(&ranks[rank], WEFT_ERR_TIMEOUT, "ranks 1 and 3 of 5 did not join the job within 4.0 s");
    }
    for (int rank = 1; rank < 5;
         rank += 2) { /* these arrive late, and do not wait for the others */
        rv_start(&ranks[rank]);
        rv_join(&ranks[rank]);
        saw(&ranks[rank], WEFT_ERR_TIMEOUT, "ranks 1 and 3 of 5 did not join the job within 4.0 s");
    }
    rv_all(ranks, &rv, 5, rv_gather); /* and they may try again */
    for (int rank = 0; rank < 5; rank++)
        saw(&ranks[rank], WEFT_OK, "");
    wf_server_release(&rv.server);
}

/* A process that starts after the failure of a join belongs to another attempt. */
TEST(a_new_process_does_not_get_the_cause_of_an_old_failure)
{
    struct wf_server_options options = {.size = 2, .join_timeout_ns = WF_SECOND_NS};
    struct wf_connection member = {.fd = -1, .rank = -1, .stage = WF_STAGE_MEMBER};
    struct wf_server *server;

    ck_assert_int_eq(wf_server_create(&options, NULL, &server), WEFT_OK);
    server->failure.text = wf_strdup("rank 1 is gone");
    server->failure.status = WEFT_ERR_PEER;
    for (int late = 0; late < 2; late++) {
        struct wf_join join = {.rank = 0, .size = 2, .age_ms = late ? 11 : 9};

        member.join = join;
        ck_assert_int_eq(wf_admission_may_join(server, &member, 10000000), !late);
        wf_text_free(&member.out);
    }
    wf_server_release(&server);
}

TEST(two_of_one_rank_are_refused)
{
    int late = 0;

    rv = rv_begin(3, "127.0.0.1", 300 * WF_SECOND_NS);
    rv_place(ranks, &rv, 3, rv_gather);
    ranks[2].rank = 0;
    rv_start(&ranks[0]);
    rv_start(&ranks[2]);
    while (pthread_tryjoin_np(ranks[late].thread, NULL) != 0) {
        late = 2 - late; /* 0 or 2: the rank that came second */
        rv_sleep_ms(1);
    }
    saw(&ranks[late], WEFT_ERR_MISMATCH, "called weft_init twice as rank 0");
    ranks[late] = (struct rv_rank){.rv = &rv,
                                   .rank = 2,
                                   .size = 3,
                                   .token = rv_token,
                                   .join_timeout_ns = 300 * WF_SECOND_NS,
                                   .serving_rank = -1,
                                   .gone_rank = -1,
                                   .body = rv_gather};
    rv_start(&ranks[1]);
    rv_start(&ranks[late]);
    for (int rank = 0; rank < 3; rank++) {
        rv_join(&ranks[rank]);
        saw(&ranks[rank], WEFT_OK, "");
    }
    wf_server_release(&rv.server);
}

TEST(another_number_of_ranks_is_refused)
{
    rv = rv_begin(3, "127.0.0.1", 300 * WF_SECOND_NS);
    rv_place(ranks, &rv, 1, NULL);
    ranks[0].size = 4;
    rv_start(&ranks[0]);
    rv_join(&ranks[0]);
    saw(&ranks[0], WEFT_ERR_MISMATCH, "rank 0 has size 4, but the job has size 3");
    wf_server_release(&rv.server);
}

/* Rank 1 is awaited, so rank 0 need not wait until the time limit.  A second rank 0 is refused
 * alone. */
TEST(another_number_of_ranks_is_an_error_of_all)
{
    struct wf_server_options options = {.size = 2, .join_timeout_ns = WF_SECOND_NS};
    struct wf_server *server;

    ck_assert_int_eq(wf_server_create(&options, NULL, &server), WEFT_OK);
    for (int32_t rank = 0; rank < 2; rank++) {
        struct wf_connection member = {.fd = -1, .rank = 0, .stage = WF_STAGE_MEMBER};
        struct wf_connection other = {.fd = -1, .rank = -1, .stage = WF_STAGE_MEMBER};

        other.join = (struct wf_join){.rank = rank, .size = 3};
        server->members[0] = &member;
        server->present = 1;
        ck_assert(!wf_admission_may_join(server, &other, 10));
        ck_assert_uint_gt(other.out.length, 0);
        ck_assert_int_eq(server->members[0] == NULL, rank == 1);
        ck_assert_int_eq(server->present, rank == 0);
        ck_assert_int_eq(member.out.length > 0, rank == 1);
        wf_text_free(&member.out);
        wf_text_free(&other.out);
    }
    ck_assert_int_eq(server->failure.status, WEFT_ERR_MISMATCH);
    ck_assert_str_eq(server->failure.text, "rank 1 has size 3, but the job has size 2; all ranks "
                                           "must have the same size");
    wf_server_release(&server);
}

/* Rank 1 closes its connections without a departure.  The others get the loss at once, and in every
 * gather. */
static void vanish(struct rv_rank *self)
{
    if (self->rank == 1) {
        wf_server_report_gone(self->rv->server, 1, "is gone: says the test");
        while (ranks[0].gone_rank != 1 || ranks[2].gone_rank != 1)
            rv_sleep_ms(1);
        return;
    }
    while (self->gone_rank != 1)
        rv_sleep_ms(1);
    rv_gather(self);
}

TEST(a_lost_rank_is_reported_to_all)
{
    rv = rv_begin(3, "127.0.0.1", 300 * WF_SECOND_NS);
    rv_all(ranks, &rv, 3, vanish);
    for (int rank = 0; rank < 3; rank += 2) {
        saw(&ranks[rank], WEFT_ERR_PEER, "rank 1 is gone: says the test");
        ck_assert_int_eq(ranks[rank].gone_rank, 1);
        ck_assert_int_eq(ranks[rank].gone_left, 0);
    }
    wf_server_release(&rv.server);
}

static void leave_first(struct rv_rank *self)
{
    if (self->rank == 1) return;
    while (self->gone_rank != 1)
        rv_sleep_ms(1);
    rv_gather(self);
}

TEST(a_departure_is_reported_as_such)
{
    rv = rv_begin(3, "127.0.0.1", 300 * WF_SECOND_NS);
    rv_all(ranks, &rv, 3, leave_first);
    for (int rank = 0; rank < 3; rank += 2) {
        saw(&ranks[rank], WEFT_ERR_PEER, "rank 1 has left the job");
        ck_assert_int_eq(ranks[rank].gone_left, 1);
    }
    wf_server_release(&rv.server);
}

static void send_nonsense(struct rv_rank *self)
{
    struct wf_contribution bad = {.ranks = (int32_t[]){0, 0, 1},
                                  .count = 3,
                                  .label = "nonsense",
                                  .timeout_ns = WF_SECOND_NS,
                                  .text = ""};
    struct wf_gathered got;

    if (self->rank == 2)
        rv_note(self, wf_client_gather(self->client, &bad, &got));
    else
        rv_gather(self);
}

TEST(a_member_that_talks_nonsense_is_thrown_out)
{
    rv = rv_begin(3, "127.0.0.1", 300 * WF_SECOND_NS);
    rv_all(ranks, &rv, 3, send_nonsense);
    saw(&ranks[0], WEFT_ERR_PEER, "rank 2 is gone");
    saw(&ranks[1], WEFT_ERR_PEER, "rank 2 is gone");
    ck_assert_int_eq(ranks[2].status, WEFT_ERR_PEER);
    wf_server_release(&rv.server);
}

/* Rank 2 sends an unknown status. */
static void bring_a_wrong_status(struct rv_rank *self)
{
    struct wf_contribution bad = {.ranks = (int32_t[]){0, 1, 2},
                                  .count = 3,
                                  .label = "a test",
                                  .timeout_ns = WF_SECOND_NS,
                                  .status = (weft_status)7777,
                                  .text = "boo"};
    struct wf_gathered got;

    if (self->rank == 2)
        rv_note(self, wf_client_gather(self->client, &bad, &got));
    else
        rv_gather(self);
}

TEST(a_member_with_an_unknown_status_is_thrown_out)
{
    rv = rv_begin(3, "127.0.0.1", 300 * WF_SECOND_NS);
    rv_all(ranks, &rv, 3, bring_a_wrong_status);
    for (int rank = 0; rank < 2; rank++)
        saw(&ranks[rank], WEFT_ERR_PEER,
            "rank 2 is gone: the rendezvous closed its connection: a contribution has an unknown "
            "status");
    wf_server_release(&rv.server);
}

/* ---- ranks that lie about generations ---- */

static void send_frame(struct rv_rank *self, uint16_t type, const struct wf_text *payload)
{
    struct wf_client *client = self->client;

    pthread_mutex_lock(&client->lock);
    wf_connection_send(client->links[WF_LINK_SERVER].connection, type, 0, payload);
    pthread_mutex_unlock(&client->lock);
    wf_client_wake(client);
}

static void send_terms(struct rv_rank *self)
{
    struct wf_text payload = {0};

    wf_put_u32(&payload, 1);
    wf_put_u64(&payload, 0);
    wf_put_u64(&payload, UINT64_MAX);
    wf_put_u32(&payload, 3);
    wf_put_blob(&payload, "", 0);
    send_frame(self, WF_FRAME_ELASTIC, &payload);
    wf_text_free(&payload);
}

static void send_round(struct rv_rank *self, uint32_t kind, uint64_t round)
{
    struct wf_text payload = {0};

    wf_put_u32(&payload, kind);
    wf_put_u64(&payload, round);
    wf_put_u64(&payload, UINT64_MAX); /* all ranks are lost */
    wf_put_u64(&payload, UINT64_MAX);
    send_frame(self, WF_FRAME_ROUND, &payload);
    wf_text_free(&payload);
}

/* Rank 2 answers what nobody has asked, for generations that do not exist. */
static void name_other_generations(struct rv_rank *self)
{
    send_terms(self);
    for (uint64_t round = 0; self->rank == 2 && round < 9; round++) {
        if (round != 1) send_round(self, WF_ROUND_WANT, round); /* the job is in generation 1 */
        send_round(self, WF_ROUND_ANSWER, round);
        send_round(self, WF_ROUND_CONFIRM, round);
    }
    rv_gather(self);
}

TEST(a_member_of_no_generation_changes_nothing)
{
    rv = rv_begin(3, "127.0.0.1", 300 * WF_SECOND_NS);
    rv_all(ranks, &rv, 3, name_other_generations);
    for (int rank = 0; rank < 3; rank++)
        saw(&ranks[rank], WEFT_OK, "");
    wf_server_release(&rv.server);
}

static void decide_itself(struct rv_rank *self)
{
    send_terms(self);
    if (self->rank == 2) send_round(self, WF_ROUND_GO, 2);
    rv_gather(self);
}

static void ask_without_terms(struct rv_rank *self)
{
    if (self->rank == 2) send_round(self, WF_ROUND_WANT, 1);
    rv_gather(self);
}

TEST(a_member_that_sends_what_only_servers_send_is_thrown_out)
{
    static void (*const bodies[])(struct rv_rank *) = {decide_itself, ask_without_terms};

    for (size_t i = 0; i < WF_COUNT(bodies); i++) {
        rv = rv_begin(3, "127.0.0.1", 300 * WF_SECOND_NS);
        rv_all(ranks, &rv, 3, bodies[i]);
        for (int rank = 0; rank < 2; rank++)
            saw(&ranks[rank], WEFT_ERR_PEER,
                "rank 2 is gone: the rendezvous closed its connection: it sent a message of type");
        wf_server_release(&rv.server);
    }
}

static void come_again(struct rv_rank *self)
{
    rv_gather(self);
    if (self->rank == 0) rv_sleep_ms(100); /* the others return before it has left */
}

TEST(a_second_job_waits_for_the_first_to_end)
{
    rv = rv_begin(3, "unix:weft-test-again", 300 * WF_SECOND_NS);
    rv_place(ranks, &rv, 3, come_again);
    rv_place(ranks + 3, &rv, 3, rv_gather);
    for (int i = 0; i < 3; i++)
        rv_start(&ranks[i]);
    for (int i = 2; i >= 0; i--) {
        rv_join(&ranks[i]);
        rv_start(&ranks[3 + i]);
    }
    for (int i = 3; i < 6; i++)
        rv_join(&ranks[i]);
    for (int i = 0; i < 6; i++)
        saw(&ranks[i], WEFT_OK, "");
    wf_server_release(&rv.server);
}

/* A standby does not know whether a rank that has not joined yet is lost. */
TEST(a_rank_that_has_not_come_to_the_standby_does_not_answer)
{
    static const int32_t asked[] = {1, 2};
    struct wf_server s = {.options = {.size = 3, .standby = true}};
    struct wf_connection c = {.fd = -1, .stage = WF_STAGE_MEMBER, .rank = 0};
    struct wf_inbox answer = {0};
    struct wf_reader reader;
    struct wf_frame frame;
    size_t begin;

    ck_assert_int_eq(wf_members_create(&s), WEFT_OK);
    s.members[0] = &c;
    s.came[0] = s.came[2] = true;
    begin = wf_frame_begin(&c.in.bytes, &c.in.seal, WF_FRAME_ASK, 9);
    wf_question_put(&c.in.bytes, 5, asked, 2, 100);
    wf_frame_end(&c.in.bytes, &c.in.seal, begin);
    wf_members_handle(&s, &c, 1000);
    ck_assert(!c.broken);
    ck_assert_uint_eq(c.out.length, 0);
    (void)wf_members_expire(&s, 1100);
    answer.bytes = c.out;
    ck_assert_int_eq(wf_frame_next(&answer, &frame), WEFT_OK);
    ck_assert_uint_eq(frame.id, 9);
    reader = wf_frame_reader(&frame);
    (void)wf_take_status(&reader);
    (void)wf_take_u64(&reader);
    ck_assert_uint_eq(wf_take_u32(&reader), 2);
    ck_assert_uint_eq(wf_take_blob(&reader).bytes, 0);
    ck_assert_uint_eq(wf_take_blob(&reader).bytes, 4); /* WF_WHERE_GONE */
    wf_inbox_free(&answer);
    wf_inbox_free(&c.in);
    wf_members_release(&s);
}

TEST(sixty_four_ranks_meet)
{
    rv = rv_begin(64, "127.0.0.1", 300 * WF_SECOND_NS);
    rv_all(ranks, &rv, 64, rv_gather);
    for (int i = 0; i < 64; i++)
        saw(&ranks[i], WEFT_OK, "");
    wf_server_release(&rv.server);
}
