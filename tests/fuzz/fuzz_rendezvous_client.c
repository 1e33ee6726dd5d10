/* A rank handles or ignores any authentic frame of a rendezvous server or its standby.  An input is
 * a list of records: link, type, id, length, payload. */
#include "fuzz.h"

#include "rendezvous/client.h"

#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SIZE = 3 };

static struct wf_client *client;
static struct wf_seal seals[WF_LINKS]; /* of the frames that the servers send */
static int ends[WF_LINKS];             /* the servers' ends of the connections */

static void gone(void *self, const struct wf_departure *departure)
{
    (void)self;
    FUZZ_ASSERT(departure->rank >= 0 && departure->rank < SIZE);
    FUZZ_ASSERT(memchr(departure->text, '\0', sizeof departure->text) != NULL);
}

static void abort_comm(void *self, uint64_t comm, weft_status status, const char *text,
                       uint64_t complete)
{
    (void)self;
    (void)comm;
    (void)complete;
    FUZZ_ASSERT(wf_abort_may_be(status));
    FUZZ_ASSERT(strlen(text) < 1024);
}

static void tell_where(void *self, uint64_t comm, int32_t asker, struct wf_text *out)
{
    (void)self;
    (void)asker;
    wf_put_u64(out, comm);
}

static void begin(void)
{
    client = calloc(1, sizeof *client);
    if (client == NULL) abort();
    client->options = (struct wf_client_options){
        .rank = 2,
        .size = SIZE,
        .events = {.gone = gone, .abort = abort_comm, .where = tell_where}};
    client->departed = calloc(SIZE, sizeof(struct wf_departure *));
    client->wake = eventfd(0, EFD_NONBLOCK);
    pthread_mutex_init(&client->lock, NULL);
    pthread_cond_init(&client->changed, NULL);
    for (int link = 0; link < WF_LINKS; link++) {
        int pair[2];

        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) != 0) abort();
        ends[link] = pair[1];
        client->links[link] = (struct wf_link){.rank = link};
        client->links[link].connection = wf_connection_create(pair[0], 0);
        if (client->links[link].connection == NULL || client->departed == NULL) abort();
        seals[link] = (struct wf_seal){.on = true};
        client->links[link].connection->in.seal = seals[link];
    }
}

static void end(void)
{
    client->links[WF_LINK_SERVER].stage = WF_LINK_LOST;
    (void)wf_client_release_held(client); /* the client holds nothing without a server */
    for (int link = 0; link < WF_LINKS; link++) {
        wf_connection_release(client->links[link].connection);
        close(ends[link]);
    }
    for (int rank = 0; rank < SIZE; rank++)
        wf_departure_free(client->departed[rank]);
    pthread_mutex_destroy(&client->lock);
    pthread_cond_destroy(&client->changed);
    close(client->wake);
    free(client->departed);
    free(client);
}

/* Play one record.  Returns the number of bytes left. */
static size_t play(const uint8_t *data, size_t size)
{
    int link = data[0] % WF_LINKS;
    size_t length = data[3] < size - 4 ? data[3] : size - 4, at;
    struct wf_inbox *inbox = &client->links[link].connection->in;
    struct wf_waiter w = {.id = 1, .link = link, .count = SIZE};
    struct wf_gathered got;
    struct wf_frame frame;

    at = wf_frame_begin(&inbox->bytes, &seals[link], data[1], data[2]);
    wf_text_append(&inbox->bytes, (const char *)data + 4, length);
    wf_frame_end(&inbox->bytes, &seals[link], at);
    client->waiters = &w;
    if (wf_frame_next(inbox, &frame) == WEFT_OK) {
        wf_client_handle(client, link, &frame);
        wf_frame_drop(inbox, &frame);
    } else { /* unknown type: the connection would end */
        wf_inbox_free(inbox);
        inbox->checked = false;
        inbox->seal.sequence++;
    }
    client->waiters = NULL;
    if (w.done && wf_gathered_read(&w.payload, NULL, &got) == WEFT_OK) {
        FUZZ_ASSERT(got.count == SIZE);
        for (int32_t i = 0; i < got.count; i++)
            FUZZ_ASSERT(got.blobs[i].bytes <= got.bytes.length);
        wf_gathered_free(&got);
    }
    wf_text_free(&w.payload);
    return size - 4 - length;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    begin();
    for (size_t left = size; left >= 4;)
        left = play(data + size - left, left);
    end();
    return 0;
}
