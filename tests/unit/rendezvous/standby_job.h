/* standby_job.h - four ranks with a server as rank 0 would serve it, and its standby on rank 1. */
#ifndef WEFT_TEST_STANDBY_JOB_H
#define WEFT_TEST_STANDBY_JOB_H

#include "rendezvous/client.h"
#include "support/rendezvous.h"
#include "support/suite.h"

static struct rv_rank ranks[4];
static struct rv rv;
static atomic_int arrived;

/* A rendezvous as rank 0 would serve it. */
static inline struct rv begin_serving(const char *address)
{
    struct rv made;
    struct wf_server_options options = {.size = 4,
                                        .serving_rank = 0,
                                        .join_timeout_ns = 20 * WF_SECOND_NS,
                                        .key = wf_job_key(rv_token)};

    ck_assert_int_eq(wf_address_parse("the test", address, 0, &made.address), WEFT_OK);
    ck_assert_int_eq(wf_server_create(&options, &made.address, &made.server), WEFT_OK);
    ck_assert_int_eq(wf_server_start(made.server), WEFT_OK);
    return made;
}

static inline void start_all(void (*body)(struct rv_rank *))
{
    arrived = 0;
    rv_place(ranks, &rv, 4, body);
    for (int rank = 0; rank < 4; rank++) {
        ranks[rank].serving_rank = 0;
        rv_start(&ranks[rank]);
    }
}

static inline void join_all(void)
{
    for (int rank = 0; rank < 4; rank++)
        rv_join(&ranks[rank]);
}

static inline void saw(const struct rv_rank *rank, weft_status status, const char *part)
{
    ck_assert_msg(rank->status == status && strstr(rank->text, part) != NULL, "rank %d saw %s: %s",
                  rank->rank, weft_status_name(rank->status), rank->text);
}

static inline weft_status gather(struct rv_rank *self, const int32_t *list, int32_t count,
                                 uint64_t *serial)
{
    struct wf_contribution mine = {.ranks = list,
                                   .count = count,
                                   .label = "a test",
                                   .timeout_ns = 20 * WF_SECOND_NS,
                                   .text = "",
                                   .blob = {"x", 1}};
    struct wf_gathered got;
    weft_status status = wf_client_gather(self->client, &mine, &got);

    if (status != WEFT_OK) return status;
    *serial = got.serial;
    wf_gathered_free(&got);
    return WEFT_OK;
}

static inline bool is_over(struct wf_client *client, int link)
{
    bool over;

    pthread_mutex_lock(&client->lock);
    over = client->links[link].over;
    pthread_mutex_unlock(&client->lock);
    return over;
}

/* Wait until the handshake with the standby is complete. */
static inline void await_standby(struct rv_rank *self)
{
    while (is_over(self->client, WF_LINK_STANDBY))
        rv_sleep_ms(1);
}

/* All four ranks gather; the status is noted. */
static inline void gather_all(struct rv_rank *self)
{
    static const int32_t all[] = {0, 1, 2, 3};
    uint64_t serial;

    rv_note(self, gather(self, all, 4, &serial));
}

/* The data that the rank sends to the server is lost from now on. */
static inline void stop_server_for(struct rv_rank *self)
{
    pthread_mutex_lock(&self->client->lock);
    self->client->links[WF_LINK_SERVER].connection->send_failed = true;
    pthread_mutex_unlock(&self->client->lock);
}

/* Close the connections of a rank, as if its process had ended. */
static inline void vanish(struct wf_client *client)
{
    for (int link = WF_LINKS - 1; link >= 0; link--)
        shutdown(client->links[link].connection->fd, SHUT_RDWR);
}

#endif
