#include "support/rendezvous.h"
#include "support/suite.h"

#include <poll.h>

static struct rv_rank rank;

static void one_rank(const struct rv *rv, const char *token, int64_t join_timeout_ns)
{
    rv_place(&rank, rv, 1, NULL);
    rank.size = 2;
    rank.token = token;
    rank.join_timeout_ns = join_timeout_ns;
    rv_start(&rank);
}

static void saw(weft_status status, const char *part)
{
    rv_join(&rank);
    ck_assert_msg(rank.status == status, "%s: %s", weft_status_name(rank.status), rank.text);
    ck_assert_msg(strstr(rank.text, part) != NULL, "no \"%s\" in: %s", part, rank.text);
}

TEST(a_wrong_token_is_refused_at_once)
{
    struct rv rv = rv_begin(2, "127.0.0.1", 300 * WF_SECOND_NS);

    one_rank(&rv, "a guess", 300 * WF_SECOND_NS);
    saw(WEFT_ERR_INVALID,
        "the token (WEFT_TOKEN or weft_init_options.token) is not the token of this job");
    wf_server_release(&rv.server);
}

/* A server that is not a rendezvous: sends BYTES to every client. */
static struct {
    struct wf_address address;
    int listener, fds[8], count;
    const void *bytes;
    size_t length;
    pthread_t thread;
    atomic_bool over;
} impostor;

static void *impose(void *argument)
{
    struct pollfd waiting = {.fd = impostor.listener, .events = POLLIN};
    int fd;

    (void)argument;
    if (poll(&waiting, 1, -1) <= 0) return NULL;
    fd = accept(impostor.listener, NULL, NULL);
    if (send(fd, impostor.bytes, impostor.length, MSG_NOSIGNAL) < 0) impostor.count = -1;
    while (!impostor.over)
        rv_sleep_ms(1);
    close(fd);
    return NULL;
}

static struct rv begin_impostor(const void *bytes, size_t length)
{
    size_t count;
    int fds[WF_MAX_LISTENERS];

    impostor.address = (struct wf_address){.host = "127.0.0.1"};
    ck_assert_int_eq(wf_address_listen(&impostor.address, fds, &count), WEFT_OK);
    impostor.listener = fds[0];
    impostor.over = false;
    impostor.bytes = bytes;
    impostor.length = length;
    ck_assert_int_eq(pthread_create(&impostor.thread, NULL, impose, NULL), 0);
    return (struct rv){NULL, impostor.address};
}

static void end_impostor(void)
{
    impostor.over = true;
    pthread_join(impostor.thread, NULL);
    close(impostor.listener);
}

TEST(something_else_behind_the_port_is_noticed)
{
    struct rv rv = begin_impostor("220 mail.example ESMTP ready\r\n", 30);

    one_rank(&rv, rv_token, 300 * WF_SECOND_NS);
    saw(WEFT_ERR_MISMATCH, "is not a weft rendezvous");
    end_impostor();
}

TEST(a_server_that_does_not_know_the_token_is_not_believed)
{
    struct wf_text said = {0};
    uint8_t hello[WF_HELLO_BYTES], nonce[WF_NONCE_BYTES] = {9}, proof[WF_SHA256_BYTES] = {1};
    struct wf_seal plain = {0};
    size_t begin;
    struct rv rv;

    wf_join_hello(nonce, hello);
    wf_text_append(&said, (const char *)hello, sizeof hello);
    begin = wf_frame_begin(&said, &plain, WF_FRAME_ADMITTED, 0);
    wf_put_blob(&said, proof, sizeof proof);
    wf_frame_end(&said, &plain, begin);
    rv = begin_impostor(said.data, said.length);
    one_rank(&rv, rv_token, 300 * WF_SECOND_NS);
    saw(WEFT_ERR_INVALID, "does not know the token of this job");
    end_impostor();
    wf_text_free(&said);
}

TEST(a_server_that_is_silent_is_given_up)
{
    struct rv rv = begin_impostor("", 0);

    one_rank(&rv, rv_token, 2 * WF_SECOND_NS);
    saw(WEFT_ERR_TIMEOUT, "the rendezvous does not answer");
    end_impostor();
}

TEST(a_missing_server_is_given_up)
{
    struct rv rv = {NULL, {.host = "weft-test-nobody", .is_unix = true}};

    one_rank(&rv, rv_token, WF_SECOND_NS / 5);
    saw(WEFT_ERR_TIMEOUT, "the rendezvous cannot be reached: Connection refused");
}

TEST(a_server_that_comes_later_is_waited_for)
{
    struct rv rv = {NULL, {.host = "weft-test-later", .is_unix = true}}, real;
    struct rv_rank other;

    one_rank(&rv, rv_token, 300 * WF_SECOND_NS);
    rv_sleep_ms(200);
    real = rv_begin(2, "unix:weft-test-later", 300 * WF_SECOND_NS);
    rv_place(&other, &real, 1, NULL);
    other.rank = 1;
    other.size = 2;
    rv_start(&other);
    rv_join(&other);
    saw(WEFT_OK, "");
    wf_server_release(&real.server);
}
