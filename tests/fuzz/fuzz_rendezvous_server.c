/* The rendezvous server answers any authentic frame of a member or closes its connection, and its
 * view of the ranks stays consistent.  An input is a byte of options and then records: rank, type,
 * id, length, payload.  Types beyond the known ones are events: the connection ends, time passes,
 * the rank's process has ended. */
#include "fuzz.h"

#include "rendezvous/server.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SIZE = 3, EVENT_END = 0xf0, EVENT_TIME, EVENT_PROCESS };

static struct {
    struct wf_server *server;
    struct wf_connection *ranks[SIZE];
    struct wf_seal seals[SIZE]; /* of the frames that the rank sends */
    int ends[SIZE];             /* the rank's end of its connection */
    uint64_t now_ns;
} job;

static void hear(int rank, const void *bytes, size_t length)
{
    struct wf_connection *c = job.ranks[rank];

    wf_text_append(&c->in.bytes, bytes, length);
    wf_members_handle(job.server, c, job.now_ns);
}

/* A rank joins as after the handshake. */
static void join(int rank)
{
    struct wf_join join = {.rank = rank, .size = SIZE, .pid = 7, .standby = 5};
    uint8_t hello[WF_HELLO_BYTES], proof[WF_PROOF_BYTES];
    struct wf_connection *c;
    struct wf_seal back;
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) != 0) abort();
    c = job.ranks[rank] = wf_connection_create(pair[0], job.now_ns);
    if (c == NULL) abort();
    job.ends[rank] = pair[1];
    job.server->connections[job.server->count++] = c;
    wf_join_hello(join.client_nonce, hello);
    hear(rank, hello, sizeof hello);
    FUZZ_ASSERT(wf_join_read_hello((const uint8_t *)c->out.data, join.server_nonce));
    wf_join_proof(&job.server->options.key, &join, proof);
    hear(rank, proof, sizeof proof);
    FUZZ_ASSERT(c->rank == rank);
    wf_join_seals(&job.server->options.key, &join, &job.seals[rank], &back);
}

static void settle(void)
{
    for (int rank = 0; rank < SIZE; rank++) {
        struct wf_connection *c = job.ranks[rank];

        if (c->broken && !c->leaving) wf_members_lost(job.server, c);
        if (c->leaving) wf_members_leave(job.server, c);
    }
}

static void check(void)
{
    int32_t present = 0;

    for (int rank = 0; rank < SIZE; rank++) {
        const struct wf_connection *c = job.ranks[rank];

        FUZZ_ASSERT(c->rank == -1 || (c->rank == rank && job.server->members[rank] == c));
        FUZZ_ASSERT(job.server->members[rank] == NULL || job.server->members[rank] == c);
        present += job.server->members[rank] != NULL;
    }
    FUZZ_ASSERT(present == job.server->present);
}

/* Play one record.  Returns the number of bytes left. */
static size_t play(const uint8_t *data, size_t size)
{
    int rank = data[0] % SIZE;
    struct wf_connection *c = job.ranks[rank];
    size_t length = data[3] < size - 4 ? data[3] : size - 4;
    struct wf_text frame = {0};
    size_t begin;

    if (data[1] == EVENT_TIME) {
        job.now_ns += (uint64_t)data[2] * WF_SECOND_NS;
        (void)wf_members_expire(job.server, job.now_ns);
    } else if (data[1] == EVENT_PROCESS) {
        wf_members_ended(job.server, rank, "has ended");
    } else if (data[1] == EVENT_END) {
        c->broken = true;
    } else if (c->rank >= 0 && !c->broken) {
        begin = wf_frame_begin(&frame, &job.seals[rank], data[1], data[2]);
        wf_text_append(&frame, (const char *)data + 4, length);
        wf_frame_end(&frame, &job.seals[rank], begin);
        hear(rank, frame.data, frame.length);
    }
    wf_text_free(&frame);
    settle();
    check();
    return size - 4 - length;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wf_server_options options = {.size = SIZE, .join_timeout_ns = WF_SECOND_NS};

    if (size == 0) return 0;
    wf_log_set_level(WF_LOG_ERROR);
    options.serving_rank = data[0] & 1 ? 0 : -1;
    options.standby = (data[0] & 2) != 0;
    job.now_ns = WF_SECOND_NS;
    if (wf_server_create(&options, NULL, &job.server) != WEFT_OK) abort();
    for (int rank = 0; rank < SIZE; rank++)
        join(rank);
    for (size_t left = size - 1; left >= 4;)
        left = play(data + size - left, left);
    wf_server_release(&job.server);
    for (int rank = 0; rank < SIZE; rank++)
        close(job.ends[rank]);
    return 0;
}
