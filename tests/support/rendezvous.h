/* rendezvous.h - a rendezvous server and its clients in one test process. */
#ifndef WEFT_TESTS_RENDEZVOUS_H
#define WEFT_TESTS_RENDEZVOUS_H

#include "rendezvous/rendezvous.h"
#include "weft/status.h"

#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static const char rv_token[] = "the test's token";

struct rv {
    struct wf_server *server;
    struct wf_address address;
};

static inline struct rv rv_begin(int32_t size, const char *address, int64_t join_timeout_ns)
{
    struct rv rv;
    struct wf_server_options options = {.size = size,
                                        .serving_rank = -1,
                                        .join_timeout_ns = join_timeout_ns,
                                        .key = wf_job_key(rv_token)};

    ck_assert_int_eq(wf_address_parse("the test", address, 0, &rv.address), WEFT_OK);
    ck_assert_msg(wf_server_create(&options, &rv.address, &rv.server) == WEFT_OK, "%s",
                  weft_last_error());
    ck_assert_int_eq(wf_server_start(rv.server), WEFT_OK);
    return rv;
}

static inline void rv_sleep_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

/* One rank: joins, and runs a body. */
struct rv_rank {
    const struct rv *rv;
    int32_t rank, size;
    const char *token;
    int32_t serving_rank; /* the serving rank, or -1 */
    int64_t join_timeout_ns;
    struct wf_client *client;
    weft_status status;
    char text[2048];
    void (*body)(struct rv_rank *self);
    pthread_t thread;
    atomic_int gone_rank, gone_left, aborts; /* from events */
    _Atomic uint64_t complete;               /* of the last abort */
};

static inline void rv_gone(void *self, const struct wf_departure *departure)
{
    struct rv_rank *rank = self;

    if (rank->gone_rank >= 0) return; /* the first one is kept */
    rank->gone_left = departure->left;
    rank->gone_rank = departure->rank;
}

static inline void rv_abort(void *self, uint64_t comm, weft_status status, const char *text,
                            uint64_t complete)
{
    (void)status;
    (void)text;
    ((struct rv_rank *)self)->complete = complete;
    ((struct rv_rank *)self)->aborts += (int)comm;
}

static inline void rv_where(void *self, uint64_t comm, int32_t asker, struct wf_text *out)
{
    (void)asker;
    wf_text_add(out, "rank %d in %d", ((struct rv_rank *)self)->rank, (int)comm);
}

static inline void rv_note(struct rv_rank *self, weft_status status)
{
    self->status = status;
    snprintf(self->text, sizeof self->text, "%s", status != WEFT_OK ? weft_last_error() : "");
}

static inline void *rv_run(void *argument)
{
    struct rv_rank *self = argument;
    struct wf_client_options options = {
        .rank = self->rank,
        .size = self->size,
        .key = wf_job_key(self->token),
        .join_timeout_ns = self->join_timeout_ns,
        .address = &self->rv->address,
        .serving_rank = self->serving_rank,
        .events = {.self = self, .gone = rv_gone, .abort = rv_abort, .where = rv_where}};

    rv_note(self, wf_client_create(&options, &self->client));
    if (self->status != WEFT_OK) return NULL;
    if (self->body != NULL) self->body(self);
    wf_client_release(&self->client, NULL);
    return NULL;
}

static inline void rv_place(struct rv_rank *ranks, const struct rv *rv, int32_t size,
                            void (*body)(struct rv_rank *))
{
    for (int32_t rank = 0; rank < size; rank++)
        ranks[rank] = (struct rv_rank){.rv = rv,
                                       .rank = rank,
                                       .size = size,
                                       .token = rv_token,
                                       .serving_rank = -1,
                                       .join_timeout_ns = 300 * WF_SECOND_NS,
                                       .gone_rank = -1,
                                       .body = body};
}

static inline void rv_start(struct rv_rank *rank)
{
    ck_assert_int_eq(pthread_create(&rank->thread, NULL, rv_run, rank), 0);
}

static inline void rv_join(struct rv_rank *rank)
{
    pthread_join(rank->thread, NULL);
}

static inline void rv_all(struct rv_rank *ranks, const struct rv *rv, int32_t size,
                          void (*body)(struct rv_rank *))
{
    rv_place(ranks, rv, size, body);
    for (int32_t rank = 0; rank < size; rank++)
        rv_start(&ranks[rank]);
    for (int32_t rank = 0; rank < size; rank++)
        rv_join(&ranks[rank]);
}

static inline int rv_connect_raw(const struct rv *rv)
{
    int fd = -1;

    ck_assert_int_eq(wf_address_connect(&rv->address, wf_now_ns() + 300 * WF_SECOND_NS, &fd),
                     WEFT_OK);
    return fd;
}

/* All ranks gather, and the sum of all contributions must be right. */
static inline void rv_gather(struct rv_rank *self)
{
    int32_t list[64];
    struct wf_contribution mine = {.ranks = list,
                                   .count = self->size,
                                   .label = "a test",
                                   .timeout_ns = 300 * WF_SECOND_NS,
                                   .text = "",
                                   .blob = {&self->rank, sizeof self->rank}};
    struct wf_gathered got;

    for (int32_t i = 0; i < self->size; i++)
        list[i] = i;
    rv_note(self, wf_client_gather(self->client, &mine, &got));
    if (self->status != WEFT_OK) return;
    for (int32_t i = 0; i < self->size; i++)
        if (got.blobs[i].bytes != sizeof i || memcmp(got.blobs[i].data, &i, sizeof i) != 0)
            rv_note(self, wf_fail(WEFT_ERR_INTERNAL, "blob %d is wrong", i));
    wf_gathered_free(&got);
}

#endif
