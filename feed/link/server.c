/* server.c - the publisher's end: a thread that accepts connections and answers. */
#include "link.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define GREETING_NS (10 * WF_SECOND_NS) /* for a handshake */

static void drop(struct wf_feed_server *server, struct wf_feed_connection *c)
{
    wf_feed_ring_release(&server->ring, c->number);
    wf_feed_close(&c->fd);
    wf_feed_close(&c->fd_in);
    wf_feed_close(&c->fd_out);
    wf_inbox_free(&c->in);
    wf_text_free(&c->out);
    wf_free(c);
}

/* How many connections there are, and how many of them in the handshake. */
static size_t count(const struct wf_feed_server *server, size_t *greeting)
{
    size_t all = 0;

    *greeting = 0;
    for (const struct wf_feed_connection *c = server->connections; c != NULL; c = c->next) {
        all++;
        *greeting += c->stage != WF_FEED_STAGE_MEMBER;
    }
    return all;
}

static void accept_one(struct wf_feed_server *server)
{
    int fd = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    struct wf_feed_connection *c;
    size_t greeting;

    if (fd < 0) return;
    c = wf_feed_same_user(fd) && count(server, &greeting) < WF_FEED_CONNECTIONS_MAX &&
                greeting < WF_FEED_GREETING_MAX
            ? wf_calloc(1, sizeof *c)
            : NULL;
    if (c == NULL) {
        wf_feed_close(&fd);
        return;
    }
    c->fd = fd;
    c->fd_in = c->fd_out = -1;
    c->number = ++server->serial;
    c->deadline_ns = wf_now_ns() + GREETING_NS;
    c->next = server->connections;
    server->connections = c;
}

static void serve_all(struct wf_feed_server *server)
{
    struct wf_feed_connection **at = &server->connections;
    uint64_t now_ns = wf_now_ns();

    while (*at != NULL) {
        struct wf_feed_connection *c = *at;

        wf_feed_serve(server, c);
        if (c->stage != WF_FEED_STAGE_MEMBER && now_ns > c->deadline_ns) c->ended = true;
        if (c->ended) {
            *at = c->next;
            drop(server, c);
        } else {
            at = &c->next;
        }
    }
}

/* Wait for something to do; the guard is held, but not while it waits. */
static void wait_for_events(struct wf_feed_server *server)
{
    struct pollfd items[WF_FEED_CONNECTIONS_MAX + 2] = {{.fd = server->wake[0], .events = POLLIN},
                                                        {.fd = server->listener, .events = POLLIN}};
    nfds_t used = 2;
    char bytes[64];

    for (const struct wf_feed_connection *c = server->connections; c != NULL; c = c->next)
        items[used++] =
            (struct pollfd){.fd = c->fd, .events = c->out.length > 0 ? POLLOUT : POLLIN};
    pthread_mutex_unlock(&server->guard);
    poll(items, used, 1000);
    while (read(server->wake[0], bytes, sizeof bytes) > 0)
        ;
    pthread_mutex_lock(&server->guard);
}

static void *server_main(void *argument)
{
    struct wf_feed_server *server = argument;

    pthread_mutex_lock(&server->guard);
    while (!server->stopping) {
        wait_for_events(server);
        accept_one(server);
        serve_all(server);
    }
    pthread_mutex_unlock(&server->guard);
    return NULL;
}

static void wake(struct wf_feed_server *server)
{
    ssize_t put = write(server->wake[1], "", 1); /* a full pipe wakes, too */

    (void)put;
}

static weft_status start_thread(struct wf_feed_server *server)
{
    sigset_t all, before;
    int error;

    if (pipe2(server->wake, O_CLOEXEC | O_NONBLOCK) != 0)
        return wf_fail(WEFT_ERR_SYSTEM, "cannot make a pipe: %s", strerror(errno));
    sigfillset(&all); /* signals are the caller's */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&server->thread, NULL, server_main, server);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    server->has_thread = error == 0;
    return error == 0 ? WEFT_OK
                      : wf_fail(WEFT_ERR_SYSTEM, "cannot start a thread: %s", strerror(error));
}

weft_status wf_feed_server_start(struct wf_feed_server *server, const char *address,
                                 const char *feed, const char *token,
                                 const struct wf_feed_description *description)
{
    server->listener = server->wake[0] = server->wake[1] = -1;
    pthread_mutex_init(&server->guard, NULL);
    server->description = description;
    server->key = wf_feed_key(feed, token);
    server->holders = description->simulated ? 1 : description->ranks;
    server->memories = wf_alloc((size_t)server->holders * sizeof *server->memories);
    server->sums = wf_calloc(server->ring.count * description->count + 1, sizeof *server->sums);
    if (server->memories == NULL || server->sums == NULL)
        return wf_fail_memory(server->ring.count * description->count * sizeof *server->sums);
    for (int32_t i = 0; i < server->holders; i++)
        server->memories[i] = -1;
    wf_feed_description_put(&server->description_bytes, description);
    WF_TRY(wf_text_status(&server->description_bytes));
    WF_TRY(wf_feed_listen(address, &server->listener));
    return start_thread(server);
}

void wf_feed_server_stop(struct wf_feed_server *server)
{
    if (server->has_thread) {
        pthread_mutex_lock(&server->guard);
        server->stopping = true;
        pthread_mutex_unlock(&server->guard);
        wake(server);
        pthread_join(server->thread, NULL);
    }
    while (server->connections != NULL) {
        struct wf_feed_connection *c = server->connections;
        server->connections = c->next;
        drop(server, c);
    }
    wf_feed_close(&server->listener);
    wf_feed_close(&server->wake[0]);
    wf_feed_close(&server->wake[1]);
    for (int32_t i = 0; server->memories != NULL && i < server->holders; i++)
        wf_feed_close(&server->memories[i]);
    wf_free(server->memories);
    wf_free(server->sums);
    wf_text_free(&server->description_bytes);
    wf_feed_ring_free(&server->ring);
    pthread_mutex_destroy(&server->guard);
}

size_t wf_feed_server_subscribers(struct wf_feed_server *server)
{
    size_t found = 0;

    pthread_mutex_lock(&server->guard);
    for (const struct wf_feed_connection *c = server->connections; c != NULL; c = c->next)
        found += c->stage == WF_FEED_STAGE_MEMBER && !c->offers;
    pthread_mutex_unlock(&server->guard);
    return found;
}

weft_status wf_feed_server_offer(struct wf_feed_server *server, int32_t holder, int fd)
{
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);

    if (copy < 0) return wf_fail(WEFT_ERR_SYSTEM, "no descriptor is free: %s", strerror(errno));
    pthread_mutex_lock(&server->guard);
    server->memories[holder] = copy;
    server->offers++;
    pthread_mutex_unlock(&server->guard);
    wake(server);
    return WEFT_OK;
}
