/* client.c - a rank's end of the rendezvous: requests.
 *
 * The client's thread, in link.c, owns the connections.  Callers queue frames and wait for answers;
 * no caller blocks on a socket. */
#include "client.h"

#include "weft/status.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define LEAVE_NS WF_SECOND_NS
/* Time limit of a report, and the time beyond its deadline that an answer about positions may take.
 */
#define REPORT_NS (WF_SECOND_NS / 2)

/* ---- joining and leaving ---- */

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
    code = pthread_create(&client->thread, NULL, wf_client_listen, client);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code == 0) return WEFT_OK;
    pthread_mutex_destroy(&client->lock);
    pthread_cond_destroy(&client->changed);
    return wf_fail(WEFT_ERR_SYSTEM, "cannot start the thread of the rendezvous: %s",
                   kit_error_text(code));
}

static void disconnect(struct wf_client *client)
{
    for (int link = 0; link < WF_LINKS; link++)
        if (client->links[link].connection != NULL)
            wf_connection_release(client->links[link].connection);
    wf_server_release(&client->standby);
}

weft_status wf_client_create(const struct wf_client_options *options, struct wf_client **out)
{
    struct wf_client *client = wf_calloc(1, sizeof *client);
    weft_status status;

    if (client == NULL) return wf_fail_memory(sizeof *client);
    client->options = *options;
    for (int link = 0; link < WF_LINKS; link++)
        client->links[link] = (struct wf_link){.rank = -1, .over = true};
    client->departed = wf_calloc((size_t)options->size, sizeof(struct wf_departure *));
    if (client->departed == NULL) {
        status = wf_fail_memory((size_t)options->size * sizeof(struct wf_departure *));
        goto free_client;
    }
    wf_fd_hold();
    client->wake = wf_fd_keep(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (client->wake < 0) {
        status = wf_fail(WEFT_ERR_SYSTEM, "cannot create an event descriptor: %s",
                         kit_error_text(errno));
        goto free_departed;
    }
    status = wf_client_enter(client);
    if (status != WEFT_OK) goto close_wake;
    status = start_thread(client);
    if (status != WEFT_OK) goto disconnect;
    *out = client;
    return WEFT_OK;

disconnect:
    disconnect(client);
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

/* True if a link is open: the server closes it after this rank's LEAVE frame. */
static bool has_links(const struct wf_client *client)
{
    for (int link = 0; link < WF_LINKS; link++)
        if (!client->links[link].over && !client->links[link].silent) return true;
    return false;
}

void wf_client_release(struct wf_client **held, const struct wf_text *record)
{
    struct wf_client *client = *held;
    struct timespec until = moment(wf_now_ns() + LEAVE_NS);

    if (client == NULL) return;
    pthread_mutex_lock(&client->lock);
    client->leaving = true;
    for (int link = 0; link < WF_LINKS; link++)
        if (!client->links[link].over)
            wf_connection_send(client->links[link].connection, WF_FRAME_LEAVE, 0, record);
    wf_client_wake(client);
    while (has_links(client) &&
           pthread_cond_timedwait(&client->changed, &client->lock, &until) != ETIMEDOUT)
        continue;
    pthread_mutex_unlock(&client->lock);
    for (int link = 0; link < WF_LINKS; link++)
        if (client->links[link].connection != NULL)
            shutdown(client->links[link].connection->fd, SHUT_RDWR);
    pthread_join(client->thread, NULL);
    pthread_mutex_destroy(&client->lock);
    pthread_cond_destroy(&client->changed);
    disconnect(client);
    wf_fd_close(client->wake);
    for (int32_t rank = 0; rank < client->options.size; rank++)
        wf_departure_free(client->departed[rank]);
    wf_free(client->departed);
    wf_free(client);
    *held = NULL;
}

/* ---- requests ---- */

/* Set the last error to the reason why LINK takes no requests: a lost rank, or the end of its
 * server.  The lock is held. */
static void note_over(const struct wf_client *client, const struct wf_link *link)
{
    const struct wf_departure *first = client->first_lost;

    if (first != NULL)
        (void)wf_fail(WEFT_ERR_PEER, "rank %d %s", first->rank, first->text);
    else
        (void)wf_fail(WEFT_ERR_PEER, "%s", link->why);
}

static bool has_ended(const struct wf_waiter *w)
{
    const struct wf_contribution *c = w->contribution;

    return c != NULL && c->ended != NULL && c->ended(c->self);
}

/* Send at once: the process may end before the thread runs.  The lock is held. */
static void send_by(struct wf_client *client, int link, uint16_t type, uint64_t id,
                    const struct wf_text *payload)
{
    struct wf_link *l = &client->links[link];

    if (l->over || payload->failed) return;
    wf_connection_send(l->connection, type, id, payload);
    wf_connection_write(l->connection);
}

/* By all links but EXCEPT.  The lock is held. */
static void send_aborts(struct wf_client *client, int except, const struct wf_text *payload)
{
    for (int link = 0; link < WF_LINKS; link++)
        if (link != except) send_by(client, link, WF_FRAME_ABORT, 0, payload);
    pthread_cond_broadcast(&client->changed); /* the communicator may have failed here */
}

/* True if W goes on to wait after the time limit: ranks may make progress, and the server, which
 * knows it, answers.  The lock is held, but not meanwhile. */
static bool waits_on(struct wf_client *client, const struct wf_waiter *w)
{
    bool answers;

    if (w->contribution == NULL || !w->contribution->is_long) return false;
    pthread_mutex_unlock(&client->lock);
    answers = wf_client_answers(client, w->link);
    pthread_mutex_lock(&client->lock);
    return answers;
}

/* Wait for the answer to W.  Returns ETIMEDOUT if the time limit passed.  The lock is held. */
static int await(struct wf_client *client, const struct wf_waiter *w, int64_t timeout_ns,
                 int64_t grace_ns)
{
    uint64_t most_ns = (uint64_t)timeout_ns + (uint64_t)grace_ns;
    struct timespec until = moment(wf_now_ns() + most_ns);
    int code = 0;

    while (!w->done && !client->links[w->link].over && !has_ended(w) && code != ETIMEDOUT) {
        code = timeout_ns < 0 ? pthread_cond_wait(&client->changed, &client->lock)
                              : pthread_cond_timedwait(&client->changed, &client->lock, &until);
        if (code != ETIMEDOUT || !waits_on(client, w)) continue;
        until = moment(wf_now_ns() + most_ns);
        code = 0;
    }
    return code;
}

/* Fails if W is a contribution for the standby and a rank of its list is gone.  The standby may not
 * know of that rank, which may have ended together with the server, or before it joined the
 * standby.  The lock is held from the choice of W's link until W is sent: all reports of the server
 * have arrived when its link is over, but not before. */
static weft_status check_departed(const struct wf_client *client, const struct wf_waiter *w)
{
    const struct wf_contribution *c = w->contribution;
    const struct wf_departure *departure = NULL;

    if (c == NULL || w->link != WF_LINK_STANDBY) return WEFT_OK;
    for (int32_t i = 0; i < c->count; i++) {
        const struct wf_departure *found = client->departed[c->ranks[i]];

        if (found != NULL && (departure == NULL || found == client->first_lost)) departure = found;
    }
    if (departure == NULL) return WEFT_OK;
    return wf_fail(WEFT_ERR_PEER, "rank %d %s", departure->rank, departure->text);
}

weft_status wf_client_request(struct wf_client *client, int link, uint16_t type,
                              const struct wf_text *payload, int64_t timeout_ns, int64_t grace_ns,
                              struct wf_waiter *w)
{
    struct wf_waiter **at = &client->waiters;
    struct wf_link *l;
    weft_status status;
    bool over;
    int code;

    WF_TRY(wf_text_status(payload));
    pthread_mutex_lock(&client->lock);
    w->link = link >= 0 ? link : wf_client_asks(client);
    l = &client->links[w->link];
    status = check_departed(client, w);
    if (status == WEFT_OK && !l->over && !wf_connection_reserve(l->connection, payload->length))
        status = wf_fail_memory(payload->length);
    if (status != WEFT_OK) {
        pthread_mutex_unlock(&client->lock);
        return status;
    }
    w->id = ++client->last_id;
    w->next = client->waiters;
    client->waiters = w;
    send_by(client, w->link, type, w->id, payload);
    if (type == WF_FRAME_ABORT) send_aborts(client, w->link, payload);
    wf_client_wake(client);
    code = await(client, w, timeout_ns, grace_ns);
    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
    over = l->over;
    if (over) note_over(client, l);
    if (code == ETIMEDOUT) l->silent = !w->done;
    pthread_mutex_unlock(&client->lock);
    if (w->done) return wf_text_status(&w->payload);
    if (over) return WEFT_ERR_PEER;
    if (has_ended(w))
        return wf_fail(
            WEFT_ERR_ABORTED,
            "the communicator failed during the wait; weft_comm_async_error returns the cause");
    if (l->rank < 0) return wf_fail(WEFT_ERR_TIMEOUT, "the rendezvous does not answer");
    return wf_fail(WEFT_ERR_TIMEOUT, "the rendezvous does not answer; rank %d serves it", l->rank);
}

/* True if the server left before it answered W.  Then no rank has an answer, and all ranks can
 * repeat the request at the standby. */
static bool was_left(struct wf_client *client, const struct wf_waiter *w)
{
    bool left;

    pthread_mutex_lock(&client->lock);
    left = !w->done && w->link == WF_LINK_SERVER && client->links[WF_LINK_SERVER].left &&
           wf_client_asks(client) == WF_LINK_STANDBY;
    pthread_mutex_unlock(&client->lock);
    return left;
}

static weft_status bring(struct wf_client *client, const struct wf_contribution *contribution,
                         struct wf_waiter *w)
{
    struct wf_text payload = {0};
    weft_status status;

    wf_contribution_put(&payload, contribution);
    if (payload.length >= WF_FRAME_MAX)
        status = wf_fail(WEFT_ERR_INVALID,
                         "%s: %zu bytes are too many for the rendezvous; the maximum is %llu",
                         contribution->label, payload.length, (unsigned long long)WF_FRAME_MAX - 1);
    else
        status = wf_client_request(client, -1, WF_FRAME_GATHER, &payload, contribution->timeout_ns,
                                   WF_SERVER_GRACE_NS, w);
    wf_text_free(&payload);
    return status;
}

/* There is no memory for CONTRIBUTION, and it was not sent: send a failure, which needs less. */
static weft_status bring_failure(struct wf_client *client,
                                 const struct wf_contribution *contribution, struct wf_waiter *w)
{
    struct wf_contribution failed = *contribution;
    char text[160];

    snprintf(text, sizeof text, "%s", weft_last_error());
    failed.blob = (weft_blob){"", 0};
    if (failed.status == WEFT_OK) {
        failed.status = WEFT_ERR_NO_MEMORY;
        failed.text = text;
    }
    return bring(client, &failed, w);
}

weft_status wf_client_gather(struct wf_client *client, const struct wf_contribution *contribution,
                             struct wf_gathered *out)
{
    uint64_t deadline_ns = wf_deadline(contribution->timeout_ns);
    struct wf_waiter w = {.count = contribution->count, .contribution = contribution};
    size_t bytes = (size_t)contribution->count * sizeof(weft_blob);
    /* Allocated first: afterwards the other ranks may have succeeded. */
    weft_blob *blobs = wf_alloc(bytes);
    weft_status status = blobs != NULL ? bring(client, contribution, &w) : wf_fail_memory(bytes);

    if (status == WEFT_ERR_NO_MEMORY && w.id == 0) status = bring_failure(client, contribution, &w);
    if (status == WEFT_ERR_PEER && was_left(client, &w)) {
        struct wf_contribution again = *contribution;

        again.timeout_ns = wf_time_left(deadline_ns);
        status = bring(client, &again, &w);
    }
    if (status == WEFT_OK) status = wf_gathered_read(&w.payload, blobs, out);
    if (status != WEFT_OK) wf_free(blobs);
    wf_text_free(&w.payload);
    return status;
}

void wf_client_note(struct wf_client *client, const struct wf_contribution *contribution)
{
    struct wf_text payload = {0};

    wf_contribution_put(&payload, contribution);
    pthread_mutex_lock(&client->lock);
    send_by(client, wf_client_asks(client), WF_FRAME_GATHER, 0, &payload);
    wf_client_wake(client);
    pthread_mutex_unlock(&client->lock);
    wf_text_free(&payload);
}

static void put_abort(struct wf_text *out, uint64_t comm, weft_status status, uint64_t complete,
                      const int32_t *ranks, int32_t count, const char *text)
{
    wf_put_u64(out, comm);
    wf_put_u32(out, (uint32_t)status);
    wf_put_u64(out, complete);
    wf_put_ranks(out, ranks, count);
    wf_put_string(out, text);
}

/* Send PAYLOAD, an abort, without waiting. */
static void post_abort(struct wf_client *client, const struct wf_text *payload)
{
    pthread_mutex_lock(&client->lock);
    send_aborts(client, -1, payload);
    wf_client_wake(client);
    pthread_mutex_unlock(&client->lock);
}

void wf_client_abort(struct wf_client *client, uint64_t comm, const int32_t *ranks, int32_t count,
                     weft_status status, const char *text)
{
    struct wf_text payload = {0};

    put_abort(&payload, comm, status, 0, ranks, count, text);
    post_abort(client, &payload);
    wf_text_free(&payload);
}

void wf_client_report(struct wf_client *client, uint64_t comm, const int32_t *ranks, int32_t count,
                      weft_status status, const char *text, uint64_t complete)
{
    struct wf_text payload = {0};
    struct wf_waiter w = {0};
    bool waits;
    int link;

    pthread_mutex_lock(&client->lock);
    link = wf_client_asks(client);
    waits = !client->links[link].silent;
    pthread_mutex_unlock(&client->lock);
    put_abort(&payload, comm, status, complete, ranks, count, text);
    if (!waits)
        post_abort(client, &payload);
    else if (wf_client_request(client, link, WF_FRAME_ABORT, &payload, 0, REPORT_NS, &w) != WEFT_OK)
        wf_log(WF_LOG_DEBUG, "an error was not reported to the other ranks: %s", weft_last_error());
    wf_text_free(&payload);
    wf_text_free(&w.payload);
}

/* True if LINK can be asked for positions: the server's, unless it is silent and the standby can
 * answer. */
static bool may_ask(struct wf_client *client, int link)
{
    bool has_standby, silent;

    pthread_mutex_lock(&client->lock);
    has_standby = !client->links[WF_LINK_STANDBY].over;
    silent = client->links[WF_LINK_SERVER].silent;
    pthread_mutex_unlock(&client->lock);
    return link == WF_LINK_STANDBY ? has_standby : !(silent && has_standby);
}

weft_status wf_client_ask(struct wf_client *client, uint64_t comm, const int32_t *ranks,
                          int32_t count, int64_t timeout_ns, struct wf_gathered *out)
{
    struct wf_text payload = {0};
    weft_status status = WEFT_ERR_PEER;

    wf_question_put(&payload, comm, ranks, count, timeout_ns);
    /* If the server's process is stopped, the standby reports its rank as not answering. */
    for (int link = 0; link < WF_LINKS && status != WEFT_OK; link++) {
        struct wf_waiter w = {.count = count};

        if (!may_ask(client, link)) continue;
        status = wf_client_request(client, link, WF_FRAME_ASK, &payload, timeout_ns, REPORT_NS, &w);
        if (status == WEFT_OK) status = wf_gathered_read(&w.payload, NULL, out);
        wf_text_free(&w.payload);
    }
    wf_text_free(&payload);
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

const struct wf_departure *wf_client_first_lost(struct wf_client *client)
{
    const struct wf_departure *departure;

    pthread_mutex_lock(&client->lock);
    departure = client->first_lost;
    pthread_mutex_unlock(&client->lock);
    return departure;
}

bool wf_client_first_error(struct wf_client *client, char *out, size_t bytes)
{
    pthread_mutex_lock(&client->lock);
    snprintf(out, bytes, "%s", client->cause);
    pthread_mutex_unlock(&client->lock);
    return out[0] != '\0';
}

uint64_t wf_client_job(const struct wf_client *client)
{
    return client->job;
}
