/* client.h - what the two files of the rendezvous client share. */
#ifndef WEFT_COMM_CLIENT_H
#define WEFT_COMM_CLIENT_H

#include "server.h"

/* How much longer than the server a client waits before it gives the server up. */
#define WF_SERVER_GRACE_NS (5 * WF_SECOND_NS)

struct waiter;

struct wf_client {
    struct wf_client_options options;
    struct wf_connection *connection; /* `out` under the lock, the rest the thread's */
    int wake;
    pthread_t thread;
    uint64_t job;
    int32_t serving_rank;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct waiter *waiters;
    uint64_t last_id;
    bool leaving, over;
    char over_text[200];            /* why nothing can be asked any more */
    struct wf_departure **departed; /* per rank; NULL: it is here */
};

/* ---- enter.c ---- */

/* Connect, prove, wait for all: sets connection, job and serving_rank. */
weft_status wf_client_enter(struct wf_client *client) WF_NODISCARD;

#endif
