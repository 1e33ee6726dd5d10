/* client.c - a rank's end of the rendezvous.
 *
 * A thread of its own owns the connection: it sends what callers queue, hands them their answers,
 * and hears of failures while the program is busy elsewhere.  Callers never touch the socket, so
 * none of them can block on it. */
#include "client.h"

#include "weft/status.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define GOODBYE_NS WF_SECOND_NS

/* A call that waits for its answer; lives on the caller's stack. */
struct waiter {
    struct waiter *next;
    uint64_t id;
    bool done;
    struct wf_text payload;
};

/* ---- the thread ---- */

static void wake(struct wf_client *client)
{
    uint64_t one = 1;

    if (write(client->wake, &one, sizeof one) < 0) return; /* full: it is awake anyway */
}

static void answer(struct wf_client *client, const struct wf_frame *frame)
{
    pthread_mutex_lock(&client->lock);
    for (struct waiter *w = client->waiters; w != NULL; w = w->next) {
        if (w->id != frame->id || w->done) continue;
        wf_text_append(&w->payload, (const char *)frame->payload, frame->bytes);
        w->done = true;
    }
    pthread_cond_broadcast(&client->changed);
    pthread_mutex_unlock(&client->lock);
}

static void free_departure(struct wf_departure *departure)
{
    if (departure == NULL) return;
    wf_text_free(&departure->farewell);
    wf_free(departure);
}

/* Keep the first word about a rank, and pass it on. */
static void note_gone(struct wf_client *client, int32_t rank, bool left, const char *text,
                      weft_blob farewell)
{
    struct wf_departure *departure;
    bool news;

    if (rank < 0 || rank >= client->options.size) return;
    departure = wf_calloc(1, sizeof *departure);
    if (departure == NULL) return; /* the time limit will tell */
    departure->rank = rank;
    departure->left = left;
    snprintf(departure->text, sizeof departure->text, "%s", text);
    wf_text_append(&departure->farewell, farewell.data, (size_t)farewell.bytes);
    pthread_mutex_lock(&client->lock);
    news = client->departed[rank] == NULL;
    if (news) client->departed[rank] = departure;
    pthread_mutex_unlock(&client->lock);
    if (news)
        client->options.events.gone(client->options.events.self, departure);
    else
        free_departure(departure);
}

static void hear_gone(struct wf_client *client, struct wf_reader *reader)
{
    int32_t rank = (int32_t)wf_take_u32(reader);
    bool left = wf_take_u32(reader) != 0;
    char text[512];

    wf_take_string(reader, text, sizeof text);
    note_gone(client, rank, left, text, wf_take_blob(reader));
}

static void hear_abort(struct wf_client *client, struct wf_reader *reader)
{
    uint64_t comm = wf_take_u64(reader);
    char text[512];

    wf_take_string(reader, text, sizeof text);
    client->options.events.abort(client->options.events.self, comm, text);
}

static void hear_ask(struct wf_client *client, struct wf_reader *reader, uint64_t id)
{
    struct wf_text where = {0}, payload = {0};

    client->options.events.where(client->options.events.self, wf_take_u64(reader), &where);
    wf_put_blob(&payload, where.data, where.length);
    pthread_mutex_lock(&client->lock);
    wf_connection_send(client->connection, WF_FRAME_TELL, id, &payload);
    pthread_mutex_unlock(&client->lock);
    wf_text_free(&where);
    wf_text_free(&payload);
}

static void end(struct wf_client *client, const char *text)
{
    pthread_mutex_lock(&client->lock);
    if (!client->over) snprintf(client->over_text, sizeof client->over_text, "%s", text);
    client->over = true;
    pthread_cond_broadcast(&client->changed);
    pthread_mutex_unlock(&client->lock);
}

static void hear(struct wf_client *client, const struct wf_frame *frame)
{
    struct wf_reader reader = wf_frame_reader(frame);

    switch (frame->type) {
    case WF_FRAME_GATHERED:
    case WF_FRAME_TELL:
        answer(client, frame);
        break;
    case WF_FRAME_GONE:
        hear_gone(client, &reader);
        break;
    case WF_FRAME_ABORT:
        hear_abort(client, &reader);
        break;
    case WF_FRAME_ASK:
        hear_ask(client, &reader, frame->id);
        break;
    case WF_FRAME_LEAVE:
        end(client, "the rank that served the rendezvous has left the job");
        break;
    default:
        break;
    }
}

/* The server is no more, and did not say why. */
static void lose_server(struct wf_client *client)
{
    static const char text[] = "is gone: it served the rendezvous, which no longer answers";
    bool expected;

    pthread_mutex_lock(&client->lock);
    expected = client->leaving || client->over;
    pthread_mutex_unlock(&client->lock);
    end(client, "the rendezvous no longer answers");
    if (!expected && client->serving_rank >= 0)
        note_gone(client, client->serving_rank, false, text, (weft_blob){"", 0});
}

static void hear_all(struct wf_client *client)
{
    struct wf_inbox *inbox = &client->connection->in;
    struct wf_frame frame;

    while (wf_frame_next(inbox, &frame) == WEFT_OK) {
        hear(client, &frame);
        wf_frame_drop(inbox, &frame);
    }
}

static void *listen_to_server(void *argument)
{
    struct wf_client *client = argument;
    struct wf_connection *c = client->connection;
    char prefix[24];

    pthread_setname_np(pthread_self(), "weft-client");
    snprintf(prefix, sizeof prefix, "rank %d", client->options.rank);
    wf_log_set_prefix(prefix);
    hear_all(client); /* what came together with the last of the handshake */
    while (!c->ended && !c->broken) {
        struct pollfd fds[2] = {{.fd = c->fd, .events = POLLIN},
                                {.fd = client->wake, .events = POLLIN}};
        uint64_t count;

        pthread_mutex_lock(&client->lock);
        wf_connection_write(c);
        if (c->sent < c->out.length) fds[0].events |= POLLOUT;
        pthread_mutex_unlock(&client->lock);
        if (poll(fds, 2, -1) < 0 && errno != EINTR) break;
        if ((fds[1].revents & POLLIN) && read(client->wake, &count, sizeof count) < 0) continue;
        if (fds[0].revents & (POLLIN | POLLHUP | POLLERR)) wf_connection_read(c);
        hear_all(client);
    }
    lose_server(client);
    return NULL;
}

/* ---- coming and going ---- */

static weft_status start_thread(struct wf_client *client)
{
    pthread_condattr_t monotonic;
    sigset_t all, before;
    int code;

    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&client->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_init(&client->lock, NULL);
    sigfillset(&all); /* signals are for the program's own threads */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    code = pthread_create(&client->thread, NULL, listen_to_server, client);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code == 0) return WEFT_OK;
    pthread_mutex_destroy(&client->lock);
    pthread_cond_destroy(&client->changed);
    return wf_fail(WEFT_ERR_SYSTEM, "no thread for the rendezvous: %s", strerror(code));
}

weft_status wf_client_create(const struct wf_client_options *options, struct wf_client **out)
{
    struct wf_client *client = wf_calloc(1, sizeof *client);
    weft_status status;

    if (client == NULL) return wf_fail_memory(sizeof *client);
    client->options = *options;
    client->departed = wf_calloc((size_t)options->size, sizeof(struct wf_departure *));
    if (client->departed == NULL) {
        status = wf_fail_memory((size_t)options->size * sizeof(struct wf_departure *));
        goto free_client;
    }
    wf_fd_hold();
    client->wake = wf_fd_keep(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (client->wake < 0) {
        status = wf_fail(WEFT_ERR_SYSTEM, "no event descriptor: %s", strerror(errno));
        goto free_departed;
    }
    status = wf_client_enter(client);
    if (status != WEFT_OK) goto close_wake;
    status = start_thread(client);
    if (status != WEFT_OK) goto disconnect;
    *out = client;
    return WEFT_OK;

disconnect:
    wf_connection_release(client->connection);
close_wake:
    wf_fd_close(client->wake);
free_departed:
    wf_free(client->departed);
free_client:
    wf_free(client);
    return status;
}

static struct timespec moment(uint64_t ns)
{
    return (struct timespec){(time_t)(ns / WF_SECOND_NS), (long)(ns % WF_SECOND_NS)};
}

void wf_client_release(struct wf_client **held, const struct wf_text *farewell)
{
    struct wf_client *client = *held;
    struct timespec until = moment(wf_now_ns() + GOODBYE_NS);

    if (client == NULL) return;
    pthread_mutex_lock(&client->lock);
    client->leaving = true;
    wf_connection_send(client->connection, WF_FRAME_LEAVE, 0, farewell);
    wake(client);
    while (!client->over &&
           pthread_cond_timedwait(&client->changed, &client->lock, &until) != ETIMEDOUT)
        continue;
    pthread_mutex_unlock(&client->lock);
    shutdown(client->connection->fd, SHUT_RDWR);
    pthread_join(client->thread, NULL);
    pthread_mutex_destroy(&client->lock);
    pthread_cond_destroy(&client->changed);
    wf_connection_release(client->connection);
    wf_fd_close(client->wake);
    for (int32_t rank = 0; rank < client->options.size; rank++)
        free_departure(client->departed[rank]);
    wf_free(client->departed);
    wf_free(client);
    *held = NULL;
}

/* ---- asking ---- */

/* Queue a frame and wait for the answer, in W's payload, which the caller frees. */
static weft_status request(struct wf_client *client, uint16_t type, const struct wf_text *payload,
                           int64_t timeout_ns, struct waiter *w)
{
    uint64_t deadline_ns = wf_now_ns() + (uint64_t)timeout_ns + (uint64_t)WF_SERVER_GRACE_NS;
    struct timespec until = moment(deadline_ns);
    struct waiter **at = &client->waiters;
    int code = 0;

    WF_TRY(wf_text_status(payload));
    pthread_mutex_lock(&client->lock);
    w->id = ++client->last_id;
    w->next = client->waiters;
    client->waiters = w;
    wf_connection_send(client->connection, type, w->id, payload);
    wake(client);
    while (!w->done && !client->over && code != ETIMEDOUT)
        code = timeout_ns < 0 ? pthread_cond_wait(&client->changed, &client->lock)
                              : pthread_cond_timedwait(&client->changed, &client->lock, &until);
    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
    pthread_mutex_unlock(&client->lock);
    if (w->done) return wf_text_status(&w->payload);
    if (client->over) return wf_fail(WEFT_ERR_PEER, "%s", client->over_text);
    return wf_fail(WEFT_ERR_TIMEOUT, "the rendezvous does not answer%s",
                   client->serving_rank == 0 ? "; rank 0 serves it" : "");
}

static weft_status read_gathered(struct wf_text *payload, struct wf_gathered *out)
{
    struct wf_reader reader = {(const uint8_t *)payload->data, payload->length, false};
    weft_status status = (weft_status)wf_take_u32(&reader);
    struct wf_gathered got = {0};
    char text[2000];

    if (status != WEFT_OK) {
        wf_take_string(&reader, text, sizeof text);
        return wf_fail(status, "%s", text);
    }
    got.serial = wf_take_u64(&reader);
    got.count = (int32_t)wf_take_u32(&reader);
    if (reader.failed || got.count < 0 || (size_t)got.count > reader.left / 8)
        return wf_fail(WEFT_ERR_INTERNAL, "the rendezvous sent an answer that ends too early");
    got.blobs = wf_calloc((size_t)got.count, sizeof *got.blobs);
    if (got.blobs == NULL) return wf_fail_memory((size_t)got.count * sizeof *got.blobs);
    for (int32_t i = 0; i < got.count; i++)
        got.blobs[i] = wf_take_blob(&reader);
    if (reader.failed) {
        wf_free(got.blobs);
        return wf_fail(WEFT_ERR_INTERNAL, "the rendezvous sent an answer that ends too early");
    }
    got.bytes = *payload;
    *payload = (struct wf_text){0};
    *out = got;
    return WEFT_OK;
}

weft_status wf_client_gather(struct wf_client *client, const struct wf_contribution *contribution,
                             struct wf_gathered *out)
{
    struct wf_text payload = {0};
    struct waiter w = {0};
    weft_status status;

    wf_contribution_put(&payload, contribution);
    if (payload.length >= WF_FRAME_MOST)
        status = wf_fail(WEFT_ERR_INVALID, "%s: %zu bytes are more than the rendezvous carries",
                         contribution->label, payload.length);
    else
        status = request(client, WF_FRAME_GATHER, &payload, contribution->timeout_ns, &w);
    if (status == WEFT_OK) status = read_gathered(&w.payload, out);
    wf_text_free(&payload);
    wf_text_free(&w.payload);
    return status;
}

void wf_gathered_free(struct wf_gathered *gathered)
{
    wf_free(gathered->blobs);
    wf_text_free(&gathered->bytes);
    *gathered = (struct wf_gathered){0};
}

static void put_ranks(struct wf_text *out, const int32_t *ranks, int32_t count)
{
    wf_put_u32(out, (uint32_t)count);
    for (int32_t i = 0; i < count; i++)
        wf_put_u32(out, (uint32_t)ranks[i]);
}

void wf_client_abort(struct wf_client *client, uint64_t comm, const int32_t *ranks, int32_t count,
                     const char *text)
{
    struct wf_text payload = {0};

    wf_put_u64(&payload, comm);
    put_ranks(&payload, ranks, count);
    wf_put_string(&payload, text);
    pthread_mutex_lock(&client->lock);
    if (!payload.failed) wf_connection_send(client->connection, WF_FRAME_ABORT, 0, &payload);
    wf_connection_write(client->connection); /* now: the process may end before the thread runs */
    wake(client);
    pthread_mutex_unlock(&client->lock);
    wf_text_free(&payload);
}

weft_status wf_client_ask(struct wf_client *client, uint64_t comm, const int32_t *ranks,
                          int32_t count, int64_t timeout_ns, struct wf_gathered *out)
{
    struct wf_text payload = {0};
    struct waiter w = {0};
    weft_status status;

    wf_put_u64(&payload, comm);
    wf_put_u64(&payload, (uint64_t)timeout_ns);
    put_ranks(&payload, ranks, count);
    status = request(client, WF_FRAME_ASK, &payload, timeout_ns, &w);
    if (status == WEFT_OK) status = read_gathered(&w.payload, out);
    wf_text_free(&payload);
    wf_text_free(&w.payload);
    return status;
}

const struct wf_departure *wf_client_gone(struct wf_client *client, int32_t rank)
{
    const struct wf_departure *departure;

    pthread_mutex_lock(&client->lock);
    departure = client->departed[rank];
    pthread_mutex_unlock(&client->lock);
    return departure;
}

uint64_t wf_client_job(const struct wf_client *client)
{
    return client->job;
}
