/* enter.c - a rank's side of joining: connect, prove knowledge of the token, wait for all ranks. */
#include "client.h"

#include "launch.h"

#include "weft/status.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* RANK serves the rendezvous; -1: no rank does. */
static weft_status lost(int32_t rank, const char *what)
{
    if (rank < 0)
        return wf_fail(
            WEFT_ERR_PEER,
            "the rendezvous closed the connection %s; the output of its launcher has the reason",
            what);
    return wf_fail(WEFT_ERR_PEER, "the rendezvous on rank %d is gone: its connection closed %s",
                   rank, what);
}

/* Send and receive once in the calling thread.  Fails after DEADLINE_NS. */
static weft_status pump(struct wf_connection *c, uint64_t deadline_ns)
{
    struct pollfd waiting = {.fd = c->fd, .events = POLLIN};
    uint64_t now_ns;
    int ready;

    wf_connection_write(c);
    if (c->sent < c->out.length) waiting.events |= POLLOUT;
    now_ns = wf_now_ns();
    if (now_ns >= deadline_ns) return wf_fail(WEFT_ERR_TIMEOUT, "the rendezvous does not answer");
    ready =
        poll(&waiting, 1, (int)wf_min_i64((int64_t)((deadline_ns - now_ns) / 1000000) + 1, 1000));
    if (ready > 0 && (waiting.revents & (POLLIN | POLLHUP | POLLERR))) wf_connection_read(c);
    return WEFT_OK;
}

/* Start the handshake on C as JOIN. */
static void send_hello(struct wf_connection *c, struct wf_join *join)
{
    uint8_t hello[WF_HELLO_BYTES];

    wf_random_bytes(join->client_nonce, sizeof join->client_nonce);
    wf_join_hello(join->client_nonce, hello);
    wf_text_append(&c->out, (const char *)hello, sizeof hello);
}

/* The server's hello has arrived: answer with the proof. */
static weft_status answer_hello(struct wf_connection *c, const struct wf_job_key *key,
                                struct wf_join *join)
{
    uint8_t proof[WF_PROOF_BYTES];

    if (!wf_join_read_hello((const uint8_t *)c->in.bytes.data, join->server_nonce))
        return wf_fail(
            WEFT_ERR_MISMATCH,
            "the server at this address is not a weft rendezvous, or has another version");
    c->in.taken = WF_HELLO_BYTES;
    wf_join_proof(key, join, proof);
    wf_text_append(&c->out, (const char *)proof, sizeof proof);
    return wf_text_status(&c->out);
}

/* The server admitted this rank with FRAME.  Fails unless the server knows the token.  From here
 * on, all frames are sealed. */
static weft_status check_server(struct wf_connection *c, const struct wf_job_key *key,
                                const struct wf_join *join, const struct wf_frame *frame)
{
    struct wf_reader reader = wf_frame_reader(frame);
    uint8_t expected[WF_SHA256_BYTES];
    weft_blob shown = wf_take_blob(&reader);

    wf_join_server_proof(key, join, expected);
    if (shown.bytes != sizeof expected || !wf_secret_equal(shown.data, expected, sizeof expected))
        return wf_fail(WEFT_ERR_INVALID, "the rendezvous does not know the token of this job; all "
                                         "ranks need the same WEFT_RENDEZVOUS and WEFT_TOKEN");
    wf_frame_drop(&c->in, frame);
    wf_join_seals(key, join, &c->seal, &c->in.seal);
    return WEFT_OK;
}

static weft_status wait_for_frame(struct wf_connection *c, int32_t rank, uint64_t deadline_ns,
                                  uint16_t type, struct wf_frame *frame)
{
    weft_status status;
    struct wf_reader reader;
    char text[1024];

    while ((status = wf_frame_next(&c->in, frame)) == WEFT_IN_PROGRESS) {
        if (c->ended) return lost(rank, "before all ranks had joined");
        WF_TRY(pump(c, deadline_ns));
    }
    if (status != WEFT_OK) return status;
    if (frame->type == type) return WEFT_OK;
    if (frame->type == WF_FRAME_LEAVE) { /* the server of an earlier job ends */
        (void)wf_fail(WEFT_ERR_PEER, "the rendezvous ended before all ranks had joined");
        return WEFT_IN_PROGRESS;
    }
    if (frame->type != WF_FRAME_REFUSED)
        return wf_fail(WEFT_ERR_INTERNAL, "the rendezvous sent frame %u; expected frame %u",
                       (unsigned)frame->type, (unsigned)type);
    /* The sender is not authenticated yet, so its text is not used. */
    if (!c->in.seal.on)
        return wf_fail(
            WEFT_ERR_INVALID,
            "the token (WEFT_TOKEN or weft_init_options.token) is not the token of this job");
    reader = wf_frame_reader(frame);
    status = wf_take_status(&reader);
    wf_take_string(&reader, text, sizeof text);
    if (reader.failed || status == WEFT_OK)
        return wf_fail(WEFT_ERR_INTERNAL, "the rendezvous refused with an unknown status");
    return wf_fail(status, "%s", text);
}

weft_status wf_client_prove(struct wf_connection *c, int32_t rank, const struct wf_job_key *key,
                            struct wf_join *join, uint64_t deadline_ns)
{
    struct wf_frame frame;

    send_hello(c, join);
    while (c->in.bytes.length < WF_HELLO_BYTES) {
        if (c->ended) return lost(rank, "before its first answer");
        WF_TRY(pump(c, deadline_ns));
    }
    WF_TRY(answer_hello(c, key, join));
    WF_TRY(wait_for_frame(c, rank, deadline_ns, WF_FRAME_ADMITTED, &frame));
    return check_server(c, key, join, &frame);
}

weft_status wf_client_connect_by(int fd, struct wf_connection **out)
{
    if (!wf_address_same_user(fd)) {
        char peer[WF_PEER_TEXT];

        wf_address_peer(fd, peer);
        wf_fd_close(fd);
        return wf_fail(WEFT_ERR_INVALID,
                       "%s serves this rendezvous; expected a process of this user (uid %u); set "
                       "WEFT_RENDEZVOUS to another "
                       "name on all ranks",
                       peer, (unsigned)geteuid());
    }
    *out = wf_connection_create(fd, 0);
    if (*out == NULL) {
        wf_fd_close(fd);
        return wf_fail_memory(sizeof **out);
    }
    (*out)->stage = WF_STAGE_MEMBER; /* read without the limit of the handshake */
    return WEFT_OK;
}

uint64_t wf_client_age(void)
{
    uint64_t started = wf_process_began((uint64_t)getpid());
    uint64_t per_second = (uint64_t)sysconf(_SC_CLK_TCK), now_ms, started_ms;
    struct timespec now;

    if (started == 0 || per_second == 0 || clock_gettime(CLOCK_BOOTTIME, &now) != 0) return 0;
    now_ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
    started_ms = started * 1000 / per_second;
    return now_ms > started_ms ? now_ms - started_ms : 0;
}

static struct wf_join claim(const struct wf_client *client)
{
    return (struct wf_join){.rank = client->options.rank,
                            .size = client->options.size,
                            .pid = (uint64_t)getpid(),
                            .age_ms = wf_client_age()};
}

/* ---- the standby ---- */

/* If the server of two ranks ends, an elastic job goes on with the other one. */
static bool is_worth_standby(const struct wf_client *client)
{
    return client->options.size > WF_STANDBY_RANK + 1 || client->options.terms.ranks_min > 0;
}

/* Start a standby on the local address of FD, which other ranks can reach.  Returns the standby's
 * number.  Returns 0 if that fails; the job then runs without a standby. */
static uint64_t offer_standby(struct wf_client *client, int fd)
{
    struct wf_server_options options = {.size = client->options.size,
                                        .generation = client->options.generation,
                                        .serving_rank = client->options.rank,
                                        .standby = true,
                                        .join_timeout_ns = client->options.join_timeout_ns};
    struct wf_address address;

    if (client->options.serving_rank < 0 || client->options.rank != WF_STANDBY_RANK ||
        !is_worth_standby(client) || !wf_address_beside(fd, &address))
        return 0;
    wf_server_release(&client->standby);
    if (wf_server_create(&options, &address, &client->standby) == WEFT_OK)
        return wf_address_number(&address);
    wf_log(WF_LOG_INFO, "no standby for the rendezvous: %s", weft_last_error());
    return 0;
}

static weft_status reach_standby(struct wf_client *client, const char *where,
                                 struct wf_connection **out)
{
    struct wf_address address;
    int fd;

    if (client->standby != NULL) {
        client->standby->options.key = client->standby_key;
        WF_TRY(wf_server_start(client->standby));
        WF_TRY(wf_server_connect(client->standby, &fd));
    } else {
        WF_TRY(wf_address_parse("the standby", where, -1, &address));
        WF_TRY(wf_address_begin(&address, &fd));
    }
    return wf_client_connect_by(fd, out);
}

static void log_no_standby(void)
{
    wf_log(WF_LOG_INFO, "the standby of the rendezvous on rank %d is not used: %s", WF_STANDBY_RANK,
           weft_last_error());
}

/* Begin a connection to the standby at WHERE.  The client's thread completes it. */
static void begin_standby(struct wf_client *client, const char *where)
{
    struct wf_link *link = &client->links[WF_LINK_STANDBY];

    client->standby_key = wf_standby_key(&client->options.key, client->job);
    client->standby_join = claim(client);
    if (reach_standby(client, where, &link->connection) != WEFT_OK) {
        log_no_standby();
        return;
    }
    link->stage = WF_LINK_HANDSHAKE;
    link->rank = WF_STANDBY_RANK;
    link->deadline_ns = wf_now_ns() + (uint64_t)WF_CLIENT_LOOK_NS;
    send_hello(link->connection, &client->standby_join);
}

static weft_status greet(struct wf_client *client, struct wf_link *link)
{
    struct wf_connection *c = link->connection;
    struct wf_frame frame;

    if (link->stage == WF_LINK_HANDSHAKE) {
        if (c->in.bytes.length < WF_HELLO_BYTES) return WEFT_IN_PROGRESS;
        WF_TRY(answer_hello(c, &client->standby_key, &client->standby_join));
        link->stage = WF_LINK_PROVING;
    }
    WF_TRY(wf_frame_next(&c->in, &frame));
    if (frame.type != WF_FRAME_ADMITTED)
        return wf_fail(
            WEFT_ERR_INVALID,
            "the token (WEFT_TOKEN or weft_init_options.token) is not the token of this job");
    return check_server(c, &client->standby_key, &client->standby_join, &frame);
}

bool wf_client_join_standby(struct wf_client *client)
{
    struct wf_link *link = &client->links[WF_LINK_STANDBY];
    weft_status status;

    if (link->stage != WF_LINK_HANDSHAKE && link->stage != WF_LINK_PROVING)
        return link->stage == WF_LINK_OPEN;
    status = greet(client, link);
    if (status == WEFT_IN_PROGRESS) return false;
    if (status != WEFT_OK) {
        log_no_standby();
        link->connection->broken = true;
        return false;
    }
    pthread_mutex_lock(&client->lock);
    link->stage = WF_LINK_OPEN;
    link->over = false;
    wf_client_send_terms(client, WF_LINK_STANDBY);
    pthread_mutex_unlock(&client->lock);
    return true;
}

/* ---- the server ---- */

static weft_status wait_until_ready(struct wf_client *client, uint64_t deadline_ns)
{
    struct wf_link *link = &client->links[WF_LINK_SERVER];
    char where[WF_ADDRESS_TEXT];
    struct wf_frame frame;
    struct wf_reader reader;

    WF_TRY(wait_for_frame(link->connection, client->options.serving_rank, deadline_ns,
                          WF_FRAME_READY, &frame));
    reader = wf_frame_reader(&frame);
    client->job = wf_take_u64(&reader);
    link->rank = (int32_t)wf_take_u32(&reader);
    wf_take_string(&reader, where, sizeof where);
    wf_frame_drop(&link->connection->in, &frame);
    if (reader.failed || link->rank < -1 || link->rank >= client->options.size)
        return wf_fail(WEFT_ERR_INTERNAL,
                       "the rendezvous says that rank %d serves it, but the job has %d ranks",
                       link->rank, client->options.size);
    link->over = false;
    wf_client_send_terms(client, WF_LINK_SERVER);
    wf_log(WF_LOG_DEBUG, "all %d ranks have joined", client->options.size);
    if (where[0] != '\0')
        begin_standby(client, where);
    else
        wf_server_release(&client->standby);
    return WEFT_OK;
}

static weft_status reach(struct wf_client *client, uint64_t deadline_ns)
{
    const char *help = client->options.help;
    weft_status status;
    char reason[512];
    int fd;

    /* The server of a later generation has listened before its address was told. */
    if (client->options.generation > 0 && wf_now_ns() + WF_SECOND_NS < deadline_ns)
        deadline_ns = wf_now_ns() + WF_SECOND_NS;
    if (client->options.address != NULL)
        status = wf_address_connect(client->options.address, deadline_ns, &fd);
    else
        status = wf_server_connect(client->options.server, &fd);
    if (status == WEFT_ERR_TIMEOUT && help != NULL) {
        snprintf(reason, sizeof reason, "%s", weft_last_error());
        return wf_fail(status, "%s; %s", reason, help);
    }
    if (status != WEFT_OK) return status;
    return wf_client_connect_by(fd, &client->links[WF_LINK_SERVER].connection);
}

/* Makes one attempt to join.  WEFT_IN_PROGRESS: the server asks this rank to try again. */
static weft_status join_once(struct wf_client *client, uint64_t deadline_ns)
{
    struct wf_link *link = &client->links[WF_LINK_SERVER];
    struct wf_join join = claim(client);
    weft_status status;
    bool admitted = false;

    WF_TRY(reach(client, deadline_ns));
    join.standby = offer_standby(client, link->connection->fd);
    status = wf_client_prove(link->connection, client->options.serving_rank, &client->options.key,
                             &join, deadline_ns);
    if (status == WEFT_OK) {
        admitted = true;
        status = wait_until_ready(client, deadline_ns + (uint64_t)WF_SERVER_GRACE_NS);
    }
    if (status == WEFT_OK) return WEFT_OK;
    wf_connection_release(link->connection);
    link->connection = NULL;
    wf_server_release(&client->standby);
    /* Closed before admission: the server ends, or has too many connections in the handshake. */
    return status == WEFT_ERR_PEER && !admitted ? WEFT_IN_PROGRESS : status;
}

weft_status wf_client_enter(struct wf_client *client)
{
    static const struct timespec pause = {0, 20000000};
    uint64_t deadline_ns = wf_now_ns() + (uint64_t)client->options.join_timeout_ns;
    weft_status status;

    while ((status = join_once(client, deadline_ns)) == WEFT_IN_PROGRESS) {
        if (wf_now_ns() >= deadline_ns)
            return wf_fail_context(WEFT_ERR_TIMEOUT,
                                   "the rendezvous closed every connection of this rank before it "
                                   "had joined, until the time limit");
        nanosleep(&pause, NULL);
    }
    return status;
}
