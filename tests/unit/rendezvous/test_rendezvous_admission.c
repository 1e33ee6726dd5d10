#include "support/caught.h"
#include "support/rendezvous.h"
#include "support/suite.h"

#include <fcntl.h>
#include <poll.h>

static struct rv_rank ranks[4];

/* A proxy between a client and the server: forwards bytes and records the bytes of the client. */
static struct {
    struct wf_address address;
    const struct rv *behind;
    int listener;
    struct wf_text said;    /* by the client */
    size_t spoil_client_at; /* index of the byte to modify, or SIZE_MAX */
    size_t spoil_server_at;
    pthread_t thread;
} between;

/* Forward received bytes; false at the end. */
static bool pass(int from, int to, size_t *passed, size_t spoil_at, struct wf_text *copy)
{
    char bytes[4096];
    ssize_t got = recv(from, bytes, sizeof bytes, MSG_DONTWAIT);

    if (got <= 0) return false;
    if (spoil_at >= *passed && spoil_at < *passed + (size_t)got) bytes[spoil_at - *passed] ^= 1;
    *passed += (size_t)got;
    if (copy != NULL) wf_text_append(copy, bytes, (size_t)got);
    return send(to, bytes, (size_t)got, MSG_NOSIGNAL) == got;
}

static void *relay(void *argument)
{
    struct pollfd coming = {.fd = between.listener, .events = POLLIN};
    size_t up = 0, down = 0;
    struct pollfd both[2];

    (void)argument;
    if (poll(&coming, 1, 10000) <= 0) return NULL;
    both[0] = (struct pollfd){.fd = accept(between.listener, NULL, NULL), .events = POLLIN};
    both[1] = (struct pollfd){.fd = rv_connect_raw(between.behind), .events = POLLIN};
    while (poll(both, 2, 20000) > 0) {
        if (both[0].revents != 0 &&
            !pass(both[0].fd, both[1].fd, &up, between.spoil_client_at, &between.said))
            break;
        if (both[1].revents != 0 &&
            !pass(both[1].fd, both[0].fd, &down, between.spoil_server_at, NULL))
            break;
    }
    close(both[0].fd);
    close(both[1].fd);
    return NULL;
}

static struct rv begin_between(const struct rv *behind)
{
    int fds[WF_MAX_LISTENERS];
    size_t count;

    between.address = (struct wf_address){.host = "127.0.0.1"};
    between.behind = behind;
    between.said = (struct wf_text){0};
    between.spoil_client_at = between.spoil_server_at = SIZE_MAX;
    ck_assert_int_eq(wf_address_listen(&between.address, fds, &count), WEFT_OK);
    between.listener = fds[0];
    return (struct rv){NULL, between.address};
}

static void end_between(void)
{
    pthread_join(between.thread, NULL);
    close(between.listener);
    wf_text_free(&between.said);
}

/* Two ranks gather, the first through the proxy. */
static void gather_between(const struct rv *rv, const struct rv *way)
{
    rv_place(ranks, rv, 2, rv_gather);
    ranks[0].rv = way;
    ck_assert_int_eq(pthread_create(&between.thread, NULL, relay, NULL), 0);
    rv_start(&ranks[0]);
    rv_start(&ranks[1]);
    rv_join(&ranks[0]);
    rv_join(&ranks[1]);
}

/* Send BYTES to the server and read its answer until it closes. */
static size_t replay(const struct rv *rv, const char *bytes, size_t length, uint8_t *out,
                     size_t most)
{
    int fd = rv_connect_raw(rv);
    struct pollfd waiting = {.fd = fd, .events = POLLIN};
    size_t total = 0;
    ssize_t got = 1;

    ck_assert_int_eq(send(fd, bytes, length, MSG_NOSIGNAL), (ssize_t)length);
    while (got > 0 && poll(&waiting, 1, 20000) > 0) {
        got = recv(fd, out + total, most - total, 0);
        if (got > 0) total += (size_t)got;
    }
    close(fd);
    return total;
}

/* A client's whole conversation, sent again.  The server's nonce differs, so the proof is wrong,
 * and the server reports only that. */
TEST(a_recorded_conversation_gets_nothing)
{
    struct rv rv = rv_begin(2, "127.0.0.1", 10 * WF_SECOND_NS), way = begin_between(&rv);
    uint8_t said[1024];
    struct wf_reader reader = {said + WF_HELLO_BYTES, 8, false};

    gather_between(&rv, &way);
    for (int i = 0; i < 2; i++)
        ck_assert_msg(ranks[i].status == WEFT_OK, "rank %d: %s", i, ranks[i].text);
    ck_assert_uint_gt(between.said.length,
                      WF_HELLO_BYTES + WF_PROOF_BYTES + 2 * (WF_FRAME_HEADER + WF_FRAME_TAG));
    ck_assert_uint_eq(replay(&rv, between.said.data, between.said.length, said, sizeof said),
                      WF_HELLO_BYTES + WF_FRAME_HEADER + 4 + 8);
    ck_assert_uint_eq(wf_take_u32(&reader), 4 + 8);
    ck_assert_uint_eq(wf_take_u32(&reader), WF_FRAME_REFUSED);
    rv_all(ranks, &rv, 2, rv_gather); /* and no rank was taken */
    for (int i = 0; i < 2; i++)
        ck_assert_msg(ranks[i].status == WEFT_OK, "rank %d: %s", i, ranks[i].text);
    end_between();
    wf_server_release(&rv.server);
}

/* The gather's payload is modified on its way to the server. */
TEST(a_frame_that_is_changed_ends_its_connection)
{
    struct rv rv = rv_begin(2, "127.0.0.1", 10 * WF_SECOND_NS), way = begin_between(&rv);

    between.spoil_client_at = WF_HELLO_BYTES + WF_PROOF_BYTES + WF_FRAME_HEADER + WF_FRAME_TAG + 30;
    gather_between(&rv, &way);
    ck_assert_int_eq(ranks[0].status, WEFT_ERR_PEER);
    ck_assert_int_eq(ranks[1].status, WEFT_ERR_PEER);
    ck_assert_msg(strstr(ranks[1].text, "rank 0 is gone: the rendezvous closed its connection: "
                                        "frame 0 of the connection failed authentication") != NULL,
                  "%s", ranks[1].text);
    end_between();
    wf_server_release(&rv.server);
}

/* READY, the first sealed frame, is modified on its way to the client. */
TEST(a_frame_that_is_changed_is_not_believed_by_a_rank)
{
    struct rv rv = rv_begin(2, "127.0.0.1", 10 * WF_SECOND_NS), way = begin_between(&rv);

    between.spoil_server_at =
        WF_HELLO_BYTES + WF_FRAME_HEADER + 8 + WF_SHA256_BYTES + WF_FRAME_HEADER + WF_FRAME_TAG + 2;
    gather_between(&rv, &way);
    ck_assert_int_eq(ranks[0].status, WEFT_ERR_INVALID);
    ck_assert_msg(strstr(ranks[0].text, "failed authentication") != NULL, "%s", ranks[0].text);
    ck_assert_int_eq(ranks[1].status, WEFT_ERR_PEER);
    end_between();
    wf_server_release(&rv.server);
}

/* ---- a rank that does not wait for the handshake ---- */

static void receive(int fd, void *out, size_t bytes)
{
    ck_assert_int_eq(recv(fd, out, bytes, MSG_WAITALL), (ssize_t)bytes);
}

/* Join as RANK of 2 and send a frame at once. */
static int join_and_send(const struct rv *rv, int32_t rank, uint16_t type)
{
    struct wf_job_key key = wf_job_key(rv_token);
    struct wf_join join = {.rank = rank, .size = 2, .pid = 1};
    uint8_t hello[WF_HELLO_BYTES], proof[WF_PROOF_BYTES];
    uint8_t admitted[WF_FRAME_HEADER + 8 + WF_SHA256_BYTES];
    struct wf_seal to_server, to_client;
    struct wf_text out = {0};
    int fd = rv_connect_raw(rv);

    ck_assert_int_eq(fcntl(fd, F_SETFL, 0), 0); /* it blocks */
    wf_random_bytes(join.client_nonce, sizeof join.client_nonce);
    wf_join_hello(join.client_nonce, hello);
    ck_assert_int_eq(send(fd, hello, sizeof hello, 0), sizeof hello);
    receive(fd, hello, sizeof hello);
    ck_assert(wf_join_read_hello(hello, join.server_nonce));
    wf_join_proof(&key, &join, proof);
    ck_assert_int_eq(send(fd, proof, sizeof proof, 0), sizeof proof);
    receive(fd, admitted, sizeof admitted);
    wf_join_seals(&key, &join, &to_server, &to_client);
    wf_frame_end(&out, &to_server, wf_frame_begin(&out, &to_server, type, 1));
    ck_assert_int_eq(send(fd, out.data, out.length, 0), (ssize_t)out.length);
    wf_text_free(&out);
    return fd;
}

TEST(a_frame_before_all_have_joined_is_logged)
{
    static const char why[] = "a frame of type 4 came before all ranks had joined";
    struct rv rv = rv_begin(2, "unix:weft-test-early", 100 * WF_SECOND_NS);
    const char *log;
    char byte;
    int fd;

    catch_begin();
    fd = join_and_send(&rv, 1, WF_FRAME_GATHER);
    ck_assert_int_eq(recv(fd, &byte, 1, 0), 0); /* the connection is closed */
    log = catch_end();
    ck_assert_msg(strstr(log, "the rendezvous closes rank 1's connection") != NULL &&
                      strstr(log, why) != NULL,
                  "%s", log);
    close(fd);
    wf_server_release(&rv.server);
}

/* ---- processes that have ended ---- */

static void refused_at_once(const struct rv *rv, int32_t rank, const char *part)
{
    uint64_t begun = wf_now_ns();

    rv_place(ranks, rv, 3, NULL);
    rv_start(&ranks[rank]);
    rv_join(&ranks[rank]);
    ck_assert_int_eq(ranks[rank].status, WEFT_ERR_PEER);
    ck_assert_msg(strstr(ranks[rank].text, part) != NULL, "%s", ranks[rank].text);
    ck_assert_uint_lt(wf_now_ns() - begun, 60 * WF_SECOND_NS); /* not the time limit for joining */
}

static atomic_int joined;

static void *join_and_fail(void *argument)
{
    struct rv_rank *self = argument;

    joined++;
    return rv_run(self);
}

/* The launcher may detect the end of a process before the server sees its connection close. */
TEST(a_rank_that_ends_before_all_have_joined_is_named_to_late_ranks)
{
    struct rv rv = rv_begin(3, "unix:weft-test-ended", 100 * WF_SECOND_NS);

    rv_place(ranks, &rv, 3, NULL);
    ranks[2].join_timeout_ns = 100 * WF_SECOND_NS;
    joined = 0;
    ck_assert_int_eq(pthread_create(&ranks[2].thread, NULL, join_and_fail, &ranks[2]), 0);
    while (joined == 0)
        rv_sleep_ms(1);
    rv_sleep_ms(50);
    wf_server_report_gone(rv.server, 2, "is gone: says the test");
    pthread_join(ranks[2].thread, NULL);
    ck_assert_int_eq(ranks[2].status, WEFT_ERR_PEER);
    refused_at_once(&rv, 0, "rank 2 is gone: says the test");
    refused_at_once(&rv, 1, "rank 2 is gone: says the test");
    wf_server_release(&rv.server);
}

TEST(a_rank_that_ended_after_a_job_is_named_to_the_next_job)
{
    struct rv rv = rv_begin(3, "unix:weft-test-ended", 100 * WF_SECOND_NS);

    rv_all(ranks, &rv, 3, rv_gather);
    for (int i = 0; i < 3; i++)
        ck_assert_msg(ranks[i].status == WEFT_OK, "rank %d: %s", i, ranks[i].text);
    wf_server_report_gone(rv.server, 1, "is gone: it ended with exit code 0");
    refused_at_once(&rv, 0, "rank 1 is gone: it ended with exit code 0");
    wf_server_release(&rv.server);
}
