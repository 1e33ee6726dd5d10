/* connection.c - one connection of the rendezvous server: bytes in, bytes out. */
#include "server.h"

#include "weft/status.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

struct wf_connection *wf_connection_create(int fd, uint64_t now_ns)
{
    struct wf_connection *c = wf_calloc(1, sizeof *c);

    if (c == NULL) return NULL;
    c->fd = fd;
    c->rank = c->missed = c->place = -1;
    c->begun_ns = now_ns;
    c->deadline_ns = now_ns + WF_STAGE_LIMIT_NS;
    return c;
}

void wf_connection_release(struct wf_connection *c)
{
    wf_fd_close(c->fd);
    wf_inbox_free(&c->in);
    wf_free(c->fault);
    wf_free(c->heard);
    wf_free(c->why);
    wf_text_free(&c->choices);
    wf_text_free(&c->out);
    wf_free(c);
}

void wf_connection_read(struct wf_connection *c)
{
    char buffer[16384];
    ssize_t got;

    for (int i = 0; i < 16; i++) { /* then the other connections are served */
        /* Before the proof, read no more bytes than the handshake needs. */
        size_t most = c->stage == WF_STAGE_MEMBER ? sizeof buffer : WF_PROOF_BYTES;

        if (c->stage < WF_STAGE_MEMBER && c->in.bytes.length >= WF_PROOF_BYTES) return;
        got = recv(c->fd, buffer, most, MSG_DONTWAIT);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
        if (got <= 0) {
            c->ended = true;
            return;
        }
        if (c->stage == WF_STAGE_PARTING) continue; /* its input is ignored */
        wf_text_append(&c->in.bytes, buffer, (size_t)got);
        if (c->in.bytes.failed) c->broken = true;
        if ((size_t)got < most) return;
    }
}

void wf_connection_write(struct wf_connection *c)
{
    while (c->sent < c->out.length) {
        ssize_t put = send(c->fd, c->out.data + c->sent, c->out.length - c->sent,
                           MSG_DONTWAIT | MSG_NOSIGNAL);

        if (put < 0 && errno == EINTR) continue;
        if (put < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
        if (put < 0) {
            c->send_failed =
                true; /* frames that the peer sent before its end are still to be read */
            break;
        }
        c->sent += (size_t)put;
    }
    wf_text_free(&c->out);
    c->sent = 0;
    if (c->stage == WF_STAGE_PARTING) c->broken = true;
}

bool wf_connection_reserve(struct wf_connection *c, size_t bytes)
{
    return wf_text_reserve(&c->out, WF_FRAME_HEADER + 2 * WF_FRAME_TAG + bytes);
}

void wf_connection_send(struct wf_connection *c, uint16_t type, uint64_t id,
                        const struct wf_text *payload)
{
    size_t begin;

    if (c->send_failed) return;
    begin = wf_frame_begin(&c->out, &c->seal, type, id);
    if (payload != NULL) {
        wf_text_append(&c->out, payload->data, payload->length);
        if (payload->failed) c->broken = true;
    }
    wf_frame_end(&c->out, &c->seal, begin);
    if (c->out.failed) c->broken = true;
}

void wf_connection_reject(struct wf_connection *c)
{
    struct wf_text why = {0};

    wf_text_add(&why, "%.300s", weft_last_error());
    if (c->why != NULL || wf_text_take(&why, &c->why) != WEFT_OK) wf_text_free(&why);
    c->broken = true;
}

void wf_connection_refuse(struct wf_connection *c, weft_status status, const char *text)
{
    struct wf_text payload = {0};

    wf_put_u32(&payload, (uint32_t)status);
    wf_put_string(&payload, text);
    wf_connection_send(c, WF_FRAME_REFUSED, 0, &payload);
    wf_text_free(&payload);
    c->stage = WF_STAGE_PARTING;
    c->deadline_ns = wf_now_ns() + WF_STAGE_LIMIT_NS;
    c->rank = -1;
}
