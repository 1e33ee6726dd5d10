/* newcomer.c - a process that waits for a place in an elastic job: its end of the rendezvous.
 *
 * The process does nothing else meanwhile, so it needs no thread: the caller's sends the beats. */
#include "client.h"

#include "weft/status.h"

#include <poll.h>
#include <stdio.h>
#include <unistd.h>

struct wf_newcomer {
    struct wf_client_options options;
    struct wf_connection *connection;
    struct wf_round_member member;
    uint64_t beat_ns; /* when the next beat is due */
    uint64_t number;  /* of the address where the generation meets */
    int32_t before;   /* ranks of the generation before */
    int32_t place;    /* this process's number among its processes */
    bool was_told;    /* that a generation has begun, since the last call */
};

void wf_newcomer_release(struct wf_newcomer **held)
{
    if (*held == NULL) return;
    if ((*held)->connection != NULL) wf_connection_release((*held)->connection);
    wf_free(*held);
    *held = NULL;
}

static weft_status join(struct wf_newcomer *n, uint64_t deadline_ns)
{
    const struct wf_client_options *options = &n->options;
    struct wf_join claim = {.rank = options->rank,
                            .size = options->size,
                            .pid = (uint64_t)getpid(),
                            .age_ms = wf_client_age()};
    struct wf_text settings = {0};
    weft_status status;
    int fd;

    WF_TRY(wf_address_connect(options->address, deadline_ns, &fd));
    WF_TRY(wf_client_connect_by(fd, &n->connection));
    WF_TRY(wf_client_prove(n->connection, -1, &options->key, &claim, deadline_ns));
    wf_text_append(&settings, options->choices.data, (size_t)options->choices.bytes);
    status = wf_text_status(&settings);
    if (status == WEFT_OK) wf_connection_send(n->connection, WF_FRAME_LOBBY, 0, &settings);
    wf_text_free(&settings);
    wf_connection_write(n->connection);
    return status;
}

weft_status wf_newcomer_create(const struct wf_client_options *options, struct wf_newcomer **out)
{
    struct wf_newcomer *n = wf_calloc(1, sizeof *n);
    weft_status status;

    if (n == NULL) return wf_fail_memory(sizeof *n);
    n->options = *options;
    wf_round_enter(&n->member, 0, 0);
    status = join(n, wf_now_ns() + (uint64_t)options->join_timeout_ns);
    if (status == WEFT_OK)
        *out = n;
    else
        wf_newcomer_release(&n);
    return status;
}

/* ---- what the server says ---- */

static void send_round(void *user, int32_t to, const struct wf_round_message *message)
{
    struct wf_newcomer *n = user;
    struct wf_text payload = {0};

    (void)to;
    wf_round_message_put(&payload, message, 0);
    wf_connection_send(n->connection, WF_FRAME_ROUND, 0, &payload);
    wf_text_free(&payload);
}

static void hear(struct wf_newcomer *n, const struct wf_frame *frame)
{
    struct wf_reader reader = wf_frame_reader(frame);
    struct wf_round_message message = wf_round_message_take(&reader);
    uint64_t number = wf_take_u64(&reader);
    int32_t before, place;

    (void)wf_take_u32(&reader); /* no rank serves */
    before = (int32_t)wf_take_u32(&reader);
    place = (int32_t)wf_take_u32(&reader);
    if (reader.failed || place < before || place >= WF_ROUND_MOST) return;
    wf_round_hear(&n->member, &message, send_round, n);
    if (message.kind != WF_ROUND_GO || n->member.generation != message.round) return;
    n->number = number;
    n->before = before;
    n->place = place;
    n->was_told = true;
}

static weft_status refused(const struct wf_frame *frame)
{
    struct wf_reader reader = wf_frame_reader(frame);
    weft_status status = wf_take_status(&reader);
    char text[1024];

    wf_take_string(&reader, text, sizeof text);
    if (reader.failed || status == WEFT_OK)
        return wf_fail(WEFT_ERR_INTERNAL, "the rendezvous refused with an unknown status");
    return wf_fail(status, "%s", text);
}

static weft_status handle_all(struct wf_newcomer *n)
{
    struct wf_connection *c = n->connection;
    struct wf_frame frame;
    weft_status status = WEFT_OK;

    while (status == WEFT_OK && (status = wf_frame_next(&c->in, &frame)) == WEFT_OK) {
        if (frame.type == WF_FRAME_ROUND) hear(n, &frame);
        if (frame.type == WF_FRAME_BEAT) wf_connection_send(c, WF_FRAME_BEAT, frame.id, NULL);
        if (frame.type == WF_FRAME_REFUSED) status = refused(&frame);
        if (frame.type == WF_FRAME_LEAVE) n->member.phase = WF_MEMBER_ENDED;
        wf_frame_drop(&c->in, &frame);
    }
    return status == WEFT_IN_PROGRESS ? WEFT_OK : status;
}

/* ---- waiting ---- */

/* Send and receive once, and a beat when it is due. */
static void pump(struct wf_newcomer *n)
{
    struct wf_connection *c = n->connection;
    struct pollfd waiting = {.fd = c->fd, .events = POLLIN};
    uint64_t now_ns = wf_now_ns(), pause_ns = n->options.terms.silent_ns / 8;

    if (pause_ns > 0 && now_ns >= n->beat_ns) {
        wf_connection_send(c, WF_FRAME_BEAT, 0, NULL);
        n->beat_ns = now_ns + pause_ns;
    }
    wf_connection_write(c);
    if (c->sent < c->out.length) waiting.events |= POLLOUT;
    if (poll(&waiting, 1, pause_ns > 0 ? (int)((n->beat_ns - now_ns) / 1000000) + 1 : -1) > 0)
        wf_connection_read(c);
}

static weft_status wait_for_place(struct wf_newcomer *n)
{
    for (;;) {
        WF_TRY(handle_all(n));
        if (n->was_told) return WEFT_OK;
        if (n->member.phase == WF_MEMBER_ENDED)
            return wf_fail(WEFT_ERR_PEER,
                           "the job has ended, and had no place for this process (number %d)",
                           n->options.rank);
        if (n->member.phase == WF_MEMBER_EXPELLED)
            return wf_fail(WEFT_ERR_PEER,
                           "this process (number %d) was expelled from the job: it did not answer",
                           n->options.rank);
        if (n->connection->ended || n->connection->broken)
            return wf_fail(WEFT_ERR_PEER,
                           "the rendezvous closed the connection of this process (number %d), "
                           "which waited for a place in the job",
                           n->options.rank);
        pump(n);
    }
}

weft_status wf_newcomer_next(struct wf_newcomer *n, struct wf_decision *out)
{
    n->was_told = false;
    if (n->member.generation > 0) wf_round_call(&n->member, n->member.step, send_round, n);
    WF_TRY(wait_for_place(n));
    *out = (struct wf_decision){.generation = n->member.generation,
                                .step = n->member.step,
                                .members = n->member.members,
                                .rank = wf_round_rank(n->member.members, n->before, n->place),
                                .size = __builtin_popcountll(n->member.members),
                                .is_address = true,
                                .serving_rank = -1,
                                .key = wf_next_key(&n->options.base, n->member.generation),
                                .base = n->options.base};
    if (!wf_address_of_peer(n->connection->fd, n->number, &out->address))
        return wf_fail(WEFT_ERR_SYSTEM, "the rendezvous of generation %llu cannot be reached",
                       (unsigned long long)out->generation);
    return WEFT_OK;
}
