/* service.c - one connection of a publisher: the handshake, then requests.  Bytes that come are not
 * trusted: what does not fit ends the connection. */
#include "link.h"

#include "weft/status.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

enum { REQUESTS_MAX = 65536 }; /* bytes of requests that wait */

static void reply(struct wf_feed_connection *c, enum wf_feed_frame type, const void *payload,
                  size_t bytes)
{
    size_t begin = wf_frame_begin(&c->out, &c->seal, (uint16_t)type, 0);

    wf_text_append(&c->out, payload, bytes);
    wf_frame_end(&c->out, &c->seal, begin);
    if (c->out.failed) c->ended = true;
}

static void reply_text(struct wf_feed_connection *c, enum wf_feed_frame type,
                       const struct wf_text *payload)
{
    if (payload->failed)
        c->ended = true;
    else
        reply(c, type, payload->data, payload->length);
}

/* Reply that the request fails with STATUS and the thread's last error. */
static void refuse(struct wf_feed_connection *c, weft_status status)
{
    struct wf_text payload = {0};

    wf_put_u32(&payload, (uint32_t)status);
    wf_put_string(&payload, weft_last_error());
    reply_text(c, WF_FEED_REFUSED, &payload);
    wf_text_free(&payload);
}

/* ---- requests ---- */

static void lease(struct wf_feed_server *server, struct wf_feed_connection *c, uint64_t version)
{
    struct wf_text payload = {0};
    struct wf_feed_leased leased;
    size_t slot, count = server->description->count;
    weft_status status = wf_feed_ring_lease(&server->ring, c->number, version, &slot);

    if (status != WEFT_OK) {
        refuse(c, status);
        return;
    }
    leased = (struct wf_feed_leased){.version = server->ring.slots[slot].version,
                                     .serial = server->ring.slots[slot].serial,
                                     .slot = slot,
                                     .sums = {server->sums + slot * count, count * 8}};
    wf_feed_leased_put(&payload, &leased);
    reply_text(c, WF_FEED_LEASED, &payload);
    wf_text_free(&payload);
}

static void map(struct wf_feed_server *server, struct wf_feed_connection *c, int32_t holder)
{
    if (holder >= 0 && holder < server->holders) {
        c->fd_out = fcntl(server->memories[holder], F_DUPFD_CLOEXEC, 0);
        if (c->fd_out >= 0) {
            reply(c, WF_FEED_MEMORY, "", 0);
            return;
        }
    }
    refuse(c, wf_fail(WEFT_ERR_NOT_FOUND, "holder %d: the publisher has %d, or no descriptor",
                      holder, server->holders));
}

static void offer(struct wf_feed_server *server, struct wf_feed_connection *c, int32_t holder)
{
    c->offers = true;
    if (c->fd_in < 0 || holder < 0 || holder >= server->holders || server->memories[holder] >= 0) {
        refuse(c, wf_fail(WEFT_ERR_INVALID, "the memory of holder %d was not asked for", holder));
        return;
    }
    server->memories[holder] = c->fd_in;
    c->fd_in = -1;
    server->offers++;
    reply(c, WF_FEED_TAKEN, "", 0);
}

static void answer(struct wf_feed_server *server, struct wf_feed_connection *c,
                   const struct wf_feed_request *request)
{
    switch (request->type) {
    case WF_FEED_DESCRIBE:
        reply_text(c, WF_FEED_DESCRIPTION, &server->description_bytes);
        break;
    case WF_FEED_MAP:
        map(server, c, request->holder);
        break;
    case WF_FEED_LEASE:
        lease(server, c, request->version);
        break;
    case WF_FEED_RELEASE:
        wf_feed_ring_release(&server->ring, c->number);
        break;
    default:
        offer(server, c, request->holder);
        break;
    }
}

/* Answer the next request.  False: there is none, or it has to wait until all memory is offered. */
static bool answer_one(struct wf_feed_server *server, struct wf_feed_connection *c)
{
    struct wf_feed_request request;
    struct wf_frame frame;
    weft_status status = wf_frame_next(&c->in, &frame);

    if (status == WEFT_IN_PROGRESS) {
        if (c->in.bytes.length > REQUESTS_MAX) c->ended = true;
        return false;
    }
    if (status != WEFT_OK || wf_feed_request_take(&frame, &request) != WEFT_OK) {
        c->ended = true;
        return false;
    }
    if (request.type != WF_FEED_OFFER && server->offers < server->holders) return false;
    wf_frame_drop(&c->in, &frame);
    answer(server, c, &request);
    return true;
}

/* ---- the handshake ---- */

static void read_hello(struct wf_feed_connection *c)
{
    uint8_t hello[WF_HELLO_BYTES];

    if (!wf_join_may_be_hello((const uint8_t *)c->in.bytes.data, c->in.bytes.length)) {
        c->ended = true;
        return;
    }
    if (c->in.bytes.length < WF_HELLO_BYTES) return;
    if (!wf_join_read_hello((const uint8_t *)c->in.bytes.data, c->join.client_nonce)) {
        c->ended = true;
        return;
    }
    c->in.taken = WF_HELLO_BYTES;
    wf_random_bytes(c->join.server_nonce, sizeof c->join.server_nonce);
    wf_join_hello(c->join.server_nonce, hello);
    wf_text_append(&c->out, (const char *)hello, sizeof hello);
    c->stage = WF_FEED_STAGE_PROOF;
}

static void read_proof(struct wf_feed_server *server, struct wf_feed_connection *c)
{
    const uint8_t *at = (const uint8_t *)c->in.bytes.data + c->in.taken;
    uint8_t proof[WF_SHA256_BYTES];

    if (c->in.bytes.length - c->in.taken < WF_PROOF_BYTES) return;
    if (!wf_join_read_proof(&server->key, at, &c->join)) {
        refuse(c, wf_fail(WEFT_ERR_INVALID, "the token or the name of the feed is wrong"));
        c->parting = true;
        return;
    }
    c->in.taken += WF_PROOF_BYTES;
    wf_join_server_proof(&server->key, &c->join, proof);
    reply(c, WF_FEED_ADMITTED, proof, sizeof proof);
    wf_join_seals(&server->key, &c->join, &c->in.seal, &c->seal);
    c->stage = WF_FEED_STAGE_MEMBER;
}

/* ---- bytes ---- */

static void read_bytes(struct wf_feed_connection *c)
{
    char buffer[4096];

    while (!c->ended) {
        size_t most = c->stage == WF_FEED_STAGE_MEMBER ? sizeof buffer : WF_PROOF_BYTES;
        ssize_t got;

        if (c->in.bytes.length > REQUESTS_MAX ||
            (c->stage < WF_FEED_STAGE_MEMBER &&
             c->in.bytes.length >= WF_HELLO_BYTES + WF_PROOF_BYTES))
            return;
        got = wf_feed_receive(c->fd, buffer, most, &c->fd_in);
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
        if (got <= 0) {
            c->ended = true;
            return;
        }
        wf_text_append(&c->in.bytes, buffer, (size_t)got);
        if (c->in.bytes.failed) c->ended = true;
        if ((size_t)got < most) return;
    }
}

static void write_bytes(struct wf_feed_connection *c)
{
    while (!c->ended && c->sent < c->out.length) {
        ssize_t put =
            wf_feed_send(c->fd, c->out.data + c->sent, c->out.length - c->sent, c->fd_out);

        if (put < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
        if (put <= 0) {
            c->ended = true;
            return;
        }
        wf_feed_close(&c->fd_out);
        c->sent += (size_t)put;
    }
    if (c->ended) return;
    wf_text_free(&c->out);
    c->sent = 0;
    if (c->parting) c->ended = true; /* the refusal has gone */
}

void wf_feed_serve(struct wf_feed_server *server, struct wf_feed_connection *c)
{
    write_bytes(c);
    if (c->ended || c->out.length > 0) return;
    read_bytes(c);
    if (!c->ended && c->stage == WF_FEED_STAGE_HELLO && c->in.bytes.length > 0) read_hello(c);
    if (!c->ended && c->stage == WF_FEED_STAGE_PROOF && !c->parting) read_proof(server, c);
    write_bytes(c);
    while (!c->ended && c->stage == WF_FEED_STAGE_MEMBER && c->out.length == 0 &&
           answer_one(server, c))
        write_bytes(c); /* one request at a time: the next one when its reply has gone */
}
