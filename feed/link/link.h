/* link.h - processes of one host: their sockets and their shared memory.
 *
 *     memory.c   memory that others can read only
 *     socket.c   addresses, and descriptors that are sent
 *     server.c   the publisher's end; service.c answers requests
 *     client.c   a subscriber's end */
#ifndef WEFT_FEED_LINK_LINK_H
#define WEFT_FEED_LINK_LINK_H

#include "protocol/protocol.h"

#include <pthread.h>
#include <sys/types.h>

/* ---- memory.c ---- */

/* A slot of memory that has the copies of a holder: WF_FEED_HEADER bytes of serials, then slots. */
struct wf_feed_memory {
    int fd; /* -1: none */
    char *data;
    uint64_t bytes, slot_bytes;
};

/* Memory that this process writes, and others can only read, through copies of its descriptor.  The
 * host has the memory now. */
weft_status wf_feed_memory_create(size_t slots, uint64_t slot_bytes,
                                  struct wf_feed_memory *out) WF_NODISCARD;
/* Map the memory FD of another process for reading, and take FD also on failure.  WEFT_ERR_INVALID:
 * it has another size, or can shrink. */
weft_status wf_feed_memory_map(int fd, size_t slots, uint64_t slot_bytes,
                               struct wf_feed_memory *out) WF_NODISCARD;
void wf_feed_memory_free(struct wf_feed_memory *memory);
/* The memory of SLOT. */
static inline char *wf_feed_memory_slot(const struct wf_feed_memory *memory, uint64_t slot)
{
    return memory->data + WF_FEED_HEADER + slot * memory->slot_bytes;
}
/* The serial of the publication that has written SLOT; 0: one does.  Elements that are read between
 * two calls that return the same number, not 0, are of this publication. */
uint64_t wf_feed_memory_serial(const struct wf_feed_memory *memory, uint64_t slot);
/* Later reads of wf_feed_memory_serial are behind all reads before. */
void wf_feed_memory_read_fence(void);
/* Before this process writes SLOT: SERIAL is 0.  Behind it: it is the publication's. */
void wf_feed_memory_set_serial(struct wf_feed_memory *memory, uint64_t slot, uint64_t serial);

/* ---- socket.c ---- */

#define WF_FEED_ADDRESS_TEXT 108 /* "unix:NAME" with the terminating zero */

/* WEFT_ERR_INVALID: ADDRESS is not "unix:NAME". */
weft_status wf_feed_address_check(const char *address) WF_NODISCARD;
/* WEFT_ERR_SYSTEM: another process listens there. */
weft_status wf_feed_listen(const char *address, int *fd) WF_NODISCARD;

/* How long a call waits. */
struct wf_feed_wait {
    uint64_t deadline_ns;
    void (*progress)(void *user); /* called again and again meanwhile; NULL: nothing is */
    void *user;
};

enum { WF_FEED_TICK_MS = 100 }; /* between two calls of `progress`, about */

/* Connect, again and again until the deadline.  The peer is a process of this user. */
weft_status wf_feed_connect(const char *address, const struct wf_feed_wait *wait,
                            int *fd) WF_NODISCARD;
bool wf_feed_same_user(int fd);
/* As send and recv without waiting.  FD_OUT: a descriptor goes with the first byte; -1: none.
 * *FD_IN becomes one that has come, if it is -1; others are closed. */
ssize_t wf_feed_send(int fd, const void *data, size_t bytes, int fd_out);
ssize_t wf_feed_receive(int fd, void *data, size_t bytes, int *fd_in);
/* Close *FD unless it is -1, and set it to -1. */
void wf_feed_close(int *fd);

/* The key of a feed that has TOKEN. */
struct wf_job_key wf_feed_key(const char *feed, const char *token);

/* ---- server.c ---- */

struct wf_feed_connection;

/* The end of a publisher.  Its thread answers; the publisher's calls change `ring` and `sums` under
 * `guard`. */
struct wf_feed_server {
    pthread_mutex_t guard;
    struct wf_feed_ring ring;
    uint64_t *sums; /* [ring.count][description->count] */
    const struct wf_feed_description *description;
    struct wf_text description_bytes; /* as a payload */
    int *memories;                    /* [holders] descriptors; -1: not yet offered */
    int32_t holders, offers;
    struct wf_job_key key;
    int listener, wake[2];
    bool stopping, has_thread;
    pthread_t thread;
    struct wf_feed_connection *connections;
    uint64_t serial; /* of connections */
};

enum {
    WF_FEED_CONNECTIONS_MAX = 1024,
    WF_FEED_GREETING_MAX = 64 /* connections before the proof */
};

/* Listen at ADDRESS and start the thread.  DESCRIPTION is borrowed; RING has its slots.  The caller
 * stops the server, also on failure. */
weft_status wf_feed_server_start(struct wf_feed_server *server, const char *address,
                                 const char *feed, const char *token,
                                 const struct wf_feed_description *description) WF_NODISCARD;
void wf_feed_server_stop(struct wf_feed_server *server);
/* Ranks that are connected and read, or may read. */
size_t wf_feed_server_subscribers(struct wf_feed_server *server);
/* The memory of HOLDER of this process; the descriptor is copied. */
weft_status wf_feed_server_offer(struct wf_feed_server *server, int32_t holder,
                                 int fd) WF_NODISCARD;

/* ---- service.c: one connection ---- */

enum wf_feed_stage { WF_FEED_STAGE_HELLO, WF_FEED_STAGE_PROOF, WF_FEED_STAGE_MEMBER };

struct wf_feed_connection {
    struct wf_feed_connection *next;
    int fd, fd_in, fd_out; /* its socket; descriptors that have come, and that go; -1: none */
    enum wf_feed_stage stage;
    uint64_t number, deadline_ns; /* DEADLINE_NS of the handshake */
    struct wf_join join;
    struct wf_inbox in;
    struct wf_seal seal;
    struct wf_text out;
    size_t sent;
    bool ended;   /* no more bytes come or go; close it */
    bool parting; /* close it when OUT is sent */
    bool offers;  /* it is a rank of the publisher */
};

/* Take the bytes that have come to C and answer, under the server's guard. */
void wf_feed_serve(struct wf_feed_server *server, struct wf_feed_connection *c);

/* ---- client.c ---- */

/* A connection to a publisher, for one thread. */
struct wf_feed_client {
    int fd, fd_in;
    struct wf_inbox in;
    struct wf_seal seal;
};

/* WEFT_ERR_INVALID: the token or the name of the feed is wrong.  WEFT_ERR_TIMEOUT.  The caller
 * closes *OUT, also on failure. */
weft_status wf_feed_client_open(struct wf_feed_client *out, const char *address, const char *feed,
                                const char *token, const struct wf_feed_wait *wait) WF_NODISCARD;
/* Send REQUEST, with the descriptor FD_OUT unless it is -1, and wait for the reply of type REPLY
 * (0: none).  The payload of the reply becomes *OUT, which may be NULL.  WEFT_ERR_PEER: the
 * publisher has gone.  Other errors: those that the publisher replies. */
weft_status wf_feed_client_call(struct wf_feed_client *client,
                                const struct wf_feed_request *request, int fd_out,
                                enum wf_feed_frame reply, const struct wf_feed_wait *wait,
                                struct wf_text *out) WF_NODISCARD;
void wf_feed_client_close(struct wf_feed_client *client);
/* The descriptor that came last; -1: none.  The caller closes it. */
int wf_feed_client_take_fd(struct wf_feed_client *client);

#endif
