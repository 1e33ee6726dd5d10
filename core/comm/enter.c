/* enter.c - how a rank comes to the rendezvous: connect, prove, wait for all. */
#include "client.h"

#include <poll.h>
#include <time.h>
#include <unistd.h>

static weft_status lost(const char *what)
{
    return wf_fail(WEFT_ERR_PEER, "the rendezvous closed the connection %s", what);
}

/* Send and receive in the calling thread until something whole has arrived or it is too late. */
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

static weft_status wait_for_hello(struct wf_connection *c, uint64_t deadline_ns,
                                  struct wf_join *join)
{
    while (c->in.bytes.length < WF_HELLO_BYTES) {
        if (c->ended) return lost("before it said hello");
        WF_TRY(pump(c, deadline_ns));
    }
    if (!wf_join_read_hello((const uint8_t *)c->in.bytes.data, join->server_nonce))
        return wf_fail(WEFT_ERR_MISMATCH, "what answers there is no rendezvous of this weft");
    c->in.taken = WF_HELLO_BYTES;
    return WEFT_OK;
}

static weft_status wait_for_frame(struct wf_connection *c, uint64_t deadline_ns, uint16_t type,
                                  struct wf_frame *frame)
{
    weft_status status;
    struct wf_reader reader;
    char text[1024];

    while ((status = wf_frame_next(&c->in, frame)) == WEFT_IN_PROGRESS) {
        if (c->ended) return lost("before all ranks had come");
        WF_TRY(pump(c, deadline_ns));
    }
    if (status != WEFT_OK) return status;
    if (frame->type == type) return WEFT_OK;
    if (frame->type != WF_FRAME_REFUSED)
        return wf_fail(WEFT_ERR_INTERNAL, "the rendezvous sent frame %u where %u was due",
                       (unsigned)frame->type, (unsigned)type);
    reader = wf_frame_reader(frame);
    status = (weft_status)wf_take_u32(&reader);
    wf_take_string(&reader, text, sizeof text);
    return wf_fail(status == WEFT_OK ? WEFT_ERR_INTERNAL : status, "%s", text);
}

static weft_status prove(struct wf_client *client, uint64_t deadline_ns)
{
    struct wf_connection *c = client->connection;
    struct wf_join join = {
        .rank = client->options.rank, .size = client->options.size, .pid = (uint64_t)getpid()};
    uint8_t hello[WF_HELLO_BYTES], proof[WF_PROOF_BYTES], expected[WF_SHA256_BYTES];
    struct wf_frame frame;
    struct wf_reader reader;
    weft_blob shown;

    wf_random_bytes(join.client_nonce, sizeof join.client_nonce);
    wf_join_hello(join.client_nonce, hello);
    wf_text_append(&c->out, (const char *)hello, sizeof hello);
    WF_TRY(wait_for_hello(c, deadline_ns, &join));
    wf_join_proof(&client->options.key, &join, proof);
    wf_text_append(&c->out, (const char *)proof, sizeof proof);
    WF_TRY(wf_text_status(&c->out));
    WF_TRY(wait_for_frame(c, deadline_ns, WF_FRAME_ADMITTED, &frame));
    reader = wf_frame_reader(&frame);
    shown = wf_take_blob(&reader);
    wf_join_server_proof(&client->options.key, &join, expected);
    if (shown.bytes != sizeof expected || !wf_secret_equal(shown.data, expected, sizeof expected))
        return wf_fail(WEFT_ERR_INVALID, "what answers there does not know the job's token");
    wf_frame_drop(&c->in, &frame);
    return WEFT_OK;
}

static weft_status wait_until_ready(struct wf_client *client, uint64_t deadline_ns)
{
    struct wf_connection *c = client->connection;
    struct wf_frame frame;
    struct wf_reader reader;

    WF_TRY(wait_for_frame(c, deadline_ns, WF_FRAME_READY, &frame));
    reader = wf_frame_reader(&frame);
    client->job = wf_take_u64(&reader);
    client->serving_rank = (int32_t)wf_take_u32(&reader);
    wf_frame_drop(&c->in, &frame);
    return WEFT_OK;
}

static weft_status reach(struct wf_client *client, uint64_t deadline_ns)
{
    int fd;

    if (client->options.address != NULL)
        WF_TRY(wf_address_connect(client->options.address, deadline_ns, &fd));
    else
        WF_TRY(wf_server_connect(client->options.server, &fd));
    if (!wf_address_same_user(fd)) {
        wf_fd_close(fd);
        return wf_fail(WEFT_ERR_INVALID, "the rendezvous there belongs to another user");
    }
    client->connection = wf_connection_create(fd, 0);
    if (client->connection == NULL) {
        wf_fd_close(fd);
        return wf_fail_memory(sizeof *client->connection);
    }
    client->connection->stage = WF_STAGE_MEMBER; /* take in all there is */
    return WEFT_OK;
}

/* One attempt.  WEFT_IN_PROGRESS: the server has us come again. */
static weft_status join_once(struct wf_client *client, uint64_t deadline_ns)
{
    weft_status status;
    bool admitted = false;

    WF_TRY(reach(client, deadline_ns));
    status = prove(client, deadline_ns);
    if (status == WEFT_OK) {
        admitted = true;
        status = wait_until_ready(client, deadline_ns + (uint64_t)WF_SERVER_GRACE_NS);
    }
    if (status == WEFT_OK) return WEFT_OK;
    wf_connection_release(client->connection);
    client->connection = NULL;
    /* Closed before it let us in: a server that ends, or one that strangers keep busy. */
    return status == WEFT_ERR_PEER && !admitted ? WEFT_IN_PROGRESS : status;
}

weft_status wf_client_enter(struct wf_client *client)
{
    static const struct timespec pause = {0, 20000000};
    uint64_t deadline_ns = wf_now_ns() + (uint64_t)client->options.join_timeout_ns;
    weft_status status;

    while ((status = join_once(client, deadline_ns)) == WEFT_IN_PROGRESS) {
        if (wf_now_ns() >= deadline_ns)
            return wf_fail_context(WEFT_ERR_TIMEOUT, "the rendezvous lets nobody in");
        nanosleep(&pause, NULL);
    }
    return status;
}
