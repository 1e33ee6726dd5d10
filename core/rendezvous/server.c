/* server.c - the rendezvous server: one thread that polls all connections.
 *
 * Peers that do not know the token can use only bounded resources: the number of connections in the
 * handshake, the bytes of each, and the time of each are limited.  They get no byte before they
 * have sent the magic. */
#include "server.h"

#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* What a process that serves opens besides a connection per rank: a pipe, listeners, its own rank's
 * connections, and shared memory. */
#define FILES_BESIDE_RANKS 10

/* ---- making and starting ---- */

static void close_sockets(struct wf_server *s)
{
    for (size_t i = 0; i < s->listener_count; i++)
        wf_fd_close(s->listeners[i]);
    for (int i = 0; i < 2; i++)
        if (s->commands[i] >= 0) wf_fd_close(s->commands[i]);
}

static weft_status allocate(struct wf_server *s)
{
    s->capacity = (size_t)s->options.size + WF_PENDING_MAX + 2;
    if (s->options.grows) s->capacity += WF_NEWCOMERS_MAX;
    s->connections = wf_calloc(s->capacity, sizeof(struct wf_connection *));
    s->polls = wf_calloc(s->capacity + WF_MAX_LISTENERS + 1, sizeof *s->polls);
    if (s->connections == NULL || s->polls == NULL)
        return wf_fail_memory(s->capacity * sizeof *s->polls);
    return wf_members_create(s);
}

static void free_memory(struct wf_server *s)
{
    wf_members_release(s);
    wf_elastic_free(s);
    pthread_mutex_destroy(&s->entered_lock);
    wf_text_free(&s->entered);
    wf_free(s->connections);
    wf_free(s->polls);
    wf_free(s);
}

/* The number of descriptors that this process can still open, at most WANTED. */
static uint64_t count_free_files(uint64_t limit, uint64_t wanted)
{
    uint64_t count = 0;

    for (uint64_t fd = 0; fd < limit && fd <= INT_MAX && count < wanted; fd++)
        if (fcntl((int)fd, F_GETFD) < 0) count++;
    return count;
}

/* The server needs one file descriptor per rank and a few more.  Fails now, not after a timeout, if
 * the limit is too low. */
static weft_status check_file_limit(const struct wf_server_options *options)
{
    struct rlimit limit;
    uint64_t needed = (uint64_t)options->size + FILES_BESIDE_RANKS, free;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return WEFT_OK;
    free = count_free_files(limit.rlim_cur, needed);
    if (free >= needed) return WEFT_OK;
    return wf_fail(WEFT_ERR_SYSTEM,
                   "the rendezvous of %d ranks opens about %llu files, but this process can open "
                   "only %llu more%s",
                   options->size, (unsigned long long)needed, (unsigned long long)free,
                   kit_limit_text(EMFILE));
}

weft_status wf_server_create(const struct wf_server_options *options, struct wf_address *address,
                             struct wf_server **out)
{
    struct wf_server *s;
    weft_status status;

    WF_TRY(check_file_limit(options));
    s = wf_calloc(1, sizeof *s);
    if (s == NULL) return wf_fail_memory(sizeof *s);
    s->options = *options;
    s->clock = wf_clock_identity();
    s->commands[0] = s->commands[1] = -1;
    pthread_mutex_init(&s->entered_lock, NULL);
    s->open_successor = wf_successor_open;
    status = allocate(s);
    if (status != WEFT_OK) goto free_server;
    wf_fd_hold();
    if (wf_fd_keep_pair(pipe2(s->commands, O_CLOEXEC), s->commands) != 0) {
        status = wf_fail(WEFT_ERR_SYSTEM, "the rendezvous cannot create a pipe: %s",
                         kit_error_text(errno));
        goto free_server;
    }
    if (address != NULL) status = wf_address_listen(address, s->listeners, &s->listener_count);
    if (status != WEFT_OK) goto close_all;
    *out = s;
    return WEFT_OK;

close_all:
    close_sockets(s);
free_server:
    free_memory(s);
    return status;
}

/* ---- connections ---- */

static void add_connection(struct wf_server *s, int fd, uint64_t now_ns)
{
    struct wf_connection *c = s->count < s->capacity ? wf_connection_create(fd, now_ns) : NULL;

    if (c == NULL)
        wf_fd_close(fd);
    else
        s->connections[s->count++] = c;
}

static bool is_pending(const struct wf_connection *c)
{
    return c->stage != WF_STAGE_MEMBER;
}

/* Make room for one more connection in the handshake: close the oldest one if it had enough time;
 * otherwise accept no connections for a while. */
static bool make_room(struct wf_server *s, uint64_t now_ns)
{
    struct wf_connection *oldest = NULL;
    size_t pending = 0;

    for (size_t i = 0; i < s->count; i++) {
        struct wf_connection *c = s->connections[i];

        if (!is_pending(c) || c->broken) continue;
        pending++;
        if (oldest == NULL || c->begun_ns < oldest->begun_ns) oldest = c;
    }
    if (pending < WF_PENDING_MAX || oldest == NULL) return true;
    if (now_ns - oldest->begun_ns >= WF_PENDING_SPARE_NS) {
        oldest->broken = true;
        return s->count < s->capacity;
    }
    s->listen_again_ns = oldest->begun_ns + WF_PENDING_SPARE_NS;
    return false;
}

/* ERROR: this process has no descriptor for another connection.  Connections in the handshake end
 * soon and free theirs.  If there are none, the job cannot begin: the ranks that have joined, and
 * those that connect once these have ended, get the reason. */
static void rest_without_files(struct wf_server *s, int error, uint64_t now_ns)
{
    struct wf_text text = {0};

    if (!s->out_of_files)
        wf_log(WF_LOG_WARNING, "the rendezvous cannot accept another connection: %s",
               kit_error_text(error));
    s->out_of_files = true;
    s->listen_again_ns = now_ns + WF_PENDING_SPARE_NS;
    if (s->running || s->present == 0 || (size_t)s->present < s->count) return;
    wf_text_add(&text,
                "the process that serves the rendezvous cannot accept more than %d of %d ranks: %s",
                s->present, s->options.size, kit_error_text(error));
    wf_members_fail_join(s, WEFT_ERR_SYSTEM,
                         text.failed || text.data == NULL ? "out of memory" : text.data);
    wf_text_free(&text);
}

static void accept_from(struct wf_server *s, int listener, uint64_t now_ns)
{
    for (int i = 0; i < 64 && make_room(s, now_ns); i++) {
        int fd;

        wf_fd_hold();
        fd = wf_fd_keep(accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (fd < 0 && (errno == EMFILE || errno == ENFILE)) rest_without_files(s, errno, now_ns);
        if (fd < 0) return;
        if (wf_address_same_user(fd))
            add_connection(s, fd, now_ns);
        else
            wf_fd_close(fd);
    }
}

/* If several ranks end at the same time, first remove those that were lost without a report.  A
 * rank that reported an error, or that departs, may have ended because of them. */
static void settle_departures(struct wf_server *s)
{
    struct wf_connection *c;

    for (int reported = 0; reported < 2; reported++)
        for (size_t i = 0; i < s->count; i++) {
            c = s->connections[i];
            if (c->broken && !c->leaving && (c->fault != NULL) == reported) wf_members_lost(s, c);
        }
    for (size_t i = 0; i < s->count; i++)
        if (s->connections[i]->leaving) wf_members_leave(s, s->connections[i]);
}

static void drop_broken(struct wf_server *s)
{
    size_t kept = 0;

    settle_departures(s);
    for (size_t i = 0; i < s->count; i++) {
        struct wf_connection *c = s->connections[i];

        if (c->broken && c->is_newcomer) wf_elastic_unseat(s, c);
        if (c->moves && !c->broken) {
            if (wf_lobby_pass(s, c)) continue;
            c->broken = true;
        }
        if (c->broken)
            wf_connection_release(c);
        else
            s->connections[kept++] = c;
    }
    s->count = kept;
}

/* ---- commands ---- */

static void send_leave(struct wf_server *s)
{
    for (size_t i = 0; i < s->count; i++) {
        struct wf_connection *c = s->connections[i];

        if (c->rank >= 0 || c->is_newcomer) wf_connection_send(c, WF_FRAME_LEAVE, 0, NULL);
        c->stage = WF_STAGE_PARTING;
        c->rank = -1;
        c->deadline_ns = wf_now_ns() + WF_SECOND_NS;
    }
    s->stopping = true;
}

static void adopt_newcomer(struct wf_server *s, struct wf_connection *c)
{
    if (s->count == s->capacity) {
        wf_connection_release(c);
        return;
    }
    s->connections[s->count++] = c;
    wf_elastic_seat(s, c);
}

static void obey(struct wf_server *s, uint64_t now_ns)
{
    struct wf_command command;

    if (read(s->commands[0], &command, sizeof command) != sizeof command) return;
    if (command.kind == WF_COMMAND_ADOPT) add_connection(s, command.fd, now_ns);
    if (command.kind == WF_COMMAND_GONE)
        wf_members_ended(s, command.rank, command.text != NULL ? command.text : "is gone");
    if (command.kind == WF_COMMAND_REAP) wf_successor_reap(s);
    if (command.kind == WF_COMMAND_LOBBY) adopt_newcomer(s, command.newcomer);
    if (command.kind == WF_COMMAND_STOP) send_leave(s);
    wf_free(command.text);
}

/* ---- the loop ---- */

static int milliseconds_until(uint64_t moment_ns, uint64_t now_ns)
{
    if (moment_ns == UINT64_MAX) return -1;
    if (moment_ns <= now_ns) return 0;
    return (int)wf_min_i64((int64_t)((moment_ns - now_ns + 999999) / 1000000), 60000);
}

/* Close overdue connections.  Returns the earliest remaining deadline. */
static uint64_t expire_connections(struct wf_server *s, uint64_t now_ns)
{
    uint64_t earliest = UINT64_MAX;

    for (size_t i = 0; i < s->count; i++) {
        struct wf_connection *c = s->connections[i];

        if (c->deadline_ns <= now_ns) c->broken = true;
        if (c->deadline_ns < earliest) earliest = c->deadline_ns;
    }
    return earliest;
}

static size_t fill_polls(struct wf_server *s, bool listening)
{
    size_t used = 0;

    s->polls[used++] = (struct pollfd){.fd = s->commands[0], .events = POLLIN};
    for (size_t i = 0; i < s->listener_count; i++)
        s->polls[used++] =
            (struct pollfd){.fd = listening ? s->listeners[i] : -1, .events = POLLIN};
    for (size_t i = 0; i < s->count; i++) {
        struct wf_connection *c = s->connections[i];
        bool has_output = c->sent < c->out.length || c->stage == WF_STAGE_PARTING;

        s->polls[used++] =
            (struct pollfd){.fd = c->fd, .events = (short)(POLLIN | (has_output ? POLLOUT : 0))};
    }
    return used;
}

/* Read and handle input of the first COUNT connections: of all, or of those that poll has marked.
 */
static void handle_all(struct wf_server *s, size_t count, bool all, uint64_t now_ns)
{
    const struct pollfd *polls = s->polls + 1 + s->listener_count;

    for (size_t i = 0; i < count; i++) {
        struct wf_connection *c = s->connections[i];

        if (c->broken) continue;
        if (all || (polls[i].revents & (POLLIN | POLLHUP | POLLERR))) wf_connection_read(c);
        wf_members_handle(s, c, now_ns);
        if (c->ended) c->broken = true;
    }
}

/* True if a member ends, or a LOOK is pending. */
static bool has_departures(const struct wf_server *s)
{
    for (size_t i = 0; i < s->count; i++) {
        const struct wf_connection *c = s->connections[i];

        if (c->rank >= 0 && (c->broken || c->leaving)) return true;
    }
    return s->looks != NULL;
}

/* Wait for events and handle them.  Returns false when the server has to stop. */
static bool turn(struct wf_server *s)
{
    uint64_t now_ns = wf_now_ns(), next = wf_members_expire(s, now_ns);
    uint64_t overdue = expire_connections(s, now_ns);
    bool listening = !s->stopping && now_ns >= s->listen_again_ns;
    size_t before;
    struct wf_connection *c;

    drop_broken(s);
    if (s->stopping && s->count == 0) return false;
    if (overdue < next) next = overdue;
    if (!listening && !s->stopping && s->listen_again_ns < next) next = s->listen_again_ns;
    if (poll(s->polls, fill_polls(s, listening), milliseconds_until(next, wf_now_ns())) < 0)
        return errno == EINTR || errno == EAGAIN || errno == ENOMEM;

    now_ns = wf_now_ns();
    before = s->count;
    handle_all(s, before, false, now_ns);
    if (has_departures(s)) {
        handle_all(s, before, true, now_ns); /* handle earlier departures first */
        settle_departures(s);
        wf_members_answer_looks(s, now_ns);
    }
    for (size_t i = 0; i < before; i++) {
        c = s->connections[i];
        if (!c->broken && (c->sent < c->out.length || c->stage == WF_STAGE_PARTING))
            wf_connection_write(c);
    }
    for (size_t i = 0; i < s->listener_count; i++)
        if (s->polls[1 + i].revents & POLLIN) accept_from(s, s->listeners[i], now_ns);
    if (s->polls[0].revents & POLLIN) obey(s, now_ns);
    return true;
}

static void *serve(void *argument)
{
    struct wf_server *s = argument;

    pthread_setname_np(pthread_self(), "weft-rendezvous");
    while (turn(s))
        continue;
    return NULL;
}

weft_status wf_server_start(struct wf_server *s)
{
    sigset_t all, before;
    int code;

    sigfillset(&all); /* signals are for the program's own threads */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    code = pthread_create(&s->thread, NULL, serve, s);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code != 0)
        return wf_fail(WEFT_ERR_SYSTEM, "the rendezvous cannot start a thread: %s",
                       kit_error_text(code));
    s->started = true;
    return WEFT_OK;
}

void wf_server_release(struct wf_server **server)
{
    struct wf_server *s = *server;

    if (s == NULL) return;
    if (s->started) {
        wf_server_order(s, &(struct wf_command){.kind = WF_COMMAND_STOP});
        pthread_join(s->thread, NULL);
    }
    wf_successor_release(s); /* it sends commands to this server */
    wf_server_drop_commands(s);
    for (size_t i = 0; i < s->count; i++)
        wf_connection_release(s->connections[i]);
    close_sockets(s);
    free_memory(s);
    *server = NULL;
}
