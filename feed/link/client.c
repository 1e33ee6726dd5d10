/* client.c - a subscriber's end of a connection to a publisher. */
#include "link.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

static weft_status fail_gone(void)
{
    return wf_fail(WEFT_ERR_PEER, "the publisher has gone");
}

static weft_status wait_for(const struct wf_feed_client *client, short events,
                            const struct wf_feed_wait *wait)
{
    struct pollfd item = {.fd = client->fd, .events = events};

    if (wf_now_ns() >= wait->deadline_ns)
        return wf_fail(WEFT_ERR_TIMEOUT, "the publisher does not answer");
    poll(&item, 1, WF_FEED_TICK_MS);
    if (wait->progress != NULL) wait->progress(wait->user);
    return WEFT_OK;
}

static weft_status send_all(struct wf_feed_client *client, const char *data, size_t bytes,
                            int fd_out, const struct wf_feed_wait *wait)
{
    while (bytes > 0) {
        ssize_t put = wf_feed_send(client->fd, data, bytes, fd_out);

        if (put < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            WF_TRY(wait_for(client, POLLOUT, wait));
            continue;
        }
        if (put <= 0) return fail_gone();
        data += put;
        bytes -= (size_t)put;
        fd_out = -1;
    }
    return WEFT_OK;
}

/* Wait until more bytes are in the inbox. */
static weft_status receive_some(struct wf_feed_client *client, const struct wf_feed_wait *wait)
{
    char buffer[16384];

    for (;;) {
        ssize_t got = wf_feed_receive(client->fd, buffer, sizeof buffer, &client->fd_in);

        if (got > 0) {
            wf_text_append(&client->in.bytes, buffer, (size_t)got);
            return wf_text_status(&client->in.bytes);
        }
        if (got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK)) return fail_gone();
        WF_TRY(wait_for(client, POLLIN, wait));
    }
}

/* The error that a REFUSED frame has. */
static weft_status fail_refused(const struct wf_frame *frame)
{
    struct wf_reader reader = wf_frame_reader(frame);
    weft_status status = wf_take_status(&reader);
    char text[1024];

    wf_take_string(&reader, text, sizeof text);
    if (reader.failed || status >= WEFT_OK) return wf_fail(WEFT_ERR_PARSE, "not a reply of a feed");
    return wf_fail(status, "%s", text);
}

/* Wait for a frame of type REPLY; the caller drops it. */
static weft_status receive_frame(struct wf_feed_client *client, enum wf_feed_frame reply,
                                 const struct wf_feed_wait *wait, struct wf_frame *out)
{
    weft_status status;

    while ((status = wf_frame_next(&client->in, out)) == WEFT_IN_PROGRESS)
        WF_TRY(receive_some(client, wait));
    if (status != WEFT_OK || out->type == reply) return status;
    if (out->type == WF_FEED_REFUSED) {
        status = fail_refused(out);
        wf_frame_drop(&client->in, out);
        return status;
    }
    return wf_fail(WEFT_ERR_PARSE, "the publisher replies with a frame of type %u; expected %u",
                   out->type, reply);
}

static weft_status greet(struct wf_feed_client *client, const char *feed, const char *token,
                         const struct wf_feed_wait *wait)
{
    struct wf_job_key key = wf_feed_key(feed, token);
    struct wf_join join = {.size = 1};
    uint8_t hello[WF_HELLO_BYTES], proof[WF_PROOF_BYTES], want[WF_SHA256_BYTES];
    struct wf_frame frame;

    wf_random_bytes(join.client_nonce, sizeof join.client_nonce);
    wf_join_hello(join.client_nonce, hello);
    WF_TRY(send_all(client, (const char *)hello, sizeof hello, -1, wait));
    while (client->in.bytes.length < WF_HELLO_BYTES)
        WF_TRY(receive_some(client, wait));
    if (!wf_join_read_hello((const uint8_t *)client->in.bytes.data, join.server_nonce))
        return wf_fail(WEFT_ERR_PARSE, "the process at the address is not a publisher");
    client->in.taken = WF_HELLO_BYTES;
    wf_join_proof(&key, &join, proof);
    WF_TRY(send_all(client, (const char *)proof, sizeof proof, -1, wait));
    WF_TRY(receive_frame(client, WF_FEED_ADMITTED, wait, &frame));
    wf_join_server_proof(&key, &join, want);
    if (frame.bytes != sizeof want || !wf_secret_equal(want, frame.payload, sizeof want))
        return wf_fail(WEFT_ERR_INVALID, "the publisher has not proved that it knows the token");
    wf_frame_drop(&client->in, &frame);
    wf_join_seals(&key, &join, &client->seal, &client->in.seal);
    return WEFT_OK;
}

weft_status wf_feed_client_open(struct wf_feed_client *out, const char *address, const char *feed,
                                const char *token, const struct wf_feed_wait *wait)
{
    *out = (struct wf_feed_client){.fd = -1, .fd_in = -1};
    WF_TRY(wf_feed_connect(address, wait, &out->fd));
    return greet(out, feed, token, wait);
}

weft_status wf_feed_client_call(struct wf_feed_client *client,
                                const struct wf_feed_request *request, int fd_out,
                                enum wf_feed_frame reply, const struct wf_feed_wait *wait,
                                struct wf_text *out)
{
    struct wf_text bytes = {0};
    struct wf_frame frame;
    size_t begin = wf_frame_begin(&bytes, &client->seal, (uint16_t)request->type, 0);
    weft_status status;

    wf_feed_request_put(&bytes, request);
    wf_frame_end(&bytes, &client->seal, begin);
    status = wf_text_status(&bytes);
    if (status == WEFT_OK) status = send_all(client, bytes.data, bytes.length, fd_out, wait);
    wf_text_free(&bytes);
    if (status != WEFT_OK || reply == 0) return status;
    WF_TRY(receive_frame(client, reply, wait, &frame));
    if (out != NULL) {
        wf_text_append(out, (const char *)frame.payload, frame.bytes);
        status = wf_text_status(out);
    }
    wf_frame_drop(&client->in, &frame);
    return status;
}

int wf_feed_client_take_fd(struct wf_feed_client *client)
{
    int fd = client->fd_in;

    client->fd_in = -1;
    return fd;
}

void wf_feed_client_close(struct wf_feed_client *client)
{
    wf_feed_close(&client->fd);
    wf_feed_close(&client->fd_in);
    wf_inbox_free(&client->in);
    *client = (struct wf_feed_client){.fd = -1, .fd_in = -1};
}
