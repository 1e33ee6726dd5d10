#include "rendezvous/server.h"
#include "support/suite.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct wf_connection *here;
static int there;

static void begin(void)
{
    int pair[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    here = wf_connection_create(pair[0], 0);
    ck_assert_ptr_nonnull(here);
    there = pair[1];
}

static void end(void)
{
    wf_connection_release(here);
    if (there >= 0) close(there);
}

TEST(an_unauthenticated_client_is_not_read_beyond_the_handshake)
{
    static const char flood[100000];

    begin();
    ck_assert_int_gt(send(there, flood, sizeof flood, MSG_DONTWAIT), 0);
    for (int i = 0; i < 100; i++)
        wf_connection_read(here);
    ck_assert_uint_lt(here->in.bytes.length, 2 * WF_PROOF_BYTES);
    here->stage = WF_STAGE_MEMBER;
    for (int i = 0; i < 100; i++)
        wf_connection_read(here);
    ck_assert_uint_ge(here->in.bytes.length, sizeof flood / 2);
    end();
}

TEST(what_was_said_before_the_end_is_still_heard)
{
    begin();
    here->stage = WF_STAGE_MEMBER;
    ck_assert_int_eq(send(there, "last bytes", 10, 0), 10);
    close(there);
    there = -1;
    wf_connection_send(here, WF_FRAME_LEAVE, 0, NULL);
    wf_connection_write(here);
    ck_assert(!here->broken); /* the peer is gone, but bytes may be left to read */
    wf_connection_read(here);
    wf_connection_read(here);
    ck_assert_uint_eq(here->in.bytes.length, 10);
    ck_assert(here->ended);
    end();
}

TEST(a_refusal_is_sent_and_then_it_ends)
{
    char bytes[256];
    ssize_t got;

    begin();
    here->stage = WF_STAGE_MEMBER;
    here->rank = 3;
    wf_connection_refuse(here, WEFT_ERR_MISMATCH, "no");
    ck_assert_int_eq(here->rank, -1);
    wf_connection_write(here);
    ck_assert(here->broken);
    got = recv(there, bytes, sizeof bytes, 0);
    ck_assert_int_eq(got, WF_FRAME_HEADER + 4 + 8 + 2);
    end();
}

TEST(what_does_not_fit_is_sent_later)
{
    struct wf_text payload = {0};
    static const char large[4 << 20];
    char bytes[65536];
    size_t total = 0;

    begin();
    wf_text_append(&payload, large, sizeof large);
    wf_connection_send(here, WF_FRAME_TELL, 1, &payload);
    wf_connection_write(here);
    ck_assert_uint_lt(here->sent, here->out.length);
    while (total < sizeof large + WF_FRAME_HEADER) {
        ssize_t got = recv(there, bytes, sizeof bytes, 0);
        ck_assert_int_gt(got, 0);
        total += (size_t)got;
        wf_connection_write(here);
    }
    ck_assert_uint_eq(here->out.length, 0);
    wf_text_free(&payload);
    end();
}
