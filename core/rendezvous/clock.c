/* clock.c - the server's clock, as far as this process can know it, and whether it answers. */
#include "client.h"

#define ROUNDS    8
#define ANSWER_NS WF_SECOND_NS
#define ALIVE_NS  (5 * WF_SECOND_NS) /* a host may be busy */

/* One answer, and the times around it. */
struct round {
    uint64_t sent_ns, server_ns, arrived_ns, identity;
};

static bool has_ended(struct wf_client *client)
{
    bool over;

    pthread_mutex_lock(&client->lock);
    over = client->leaving || client->links[WF_LINK_SERVER].over;
    pthread_mutex_unlock(&client->lock);
    return over;
}

/* The answer is in W's payload, which the caller frees. */
static weft_status request(struct wf_client *client, int link, int64_t timeout_ns,
                           struct wf_waiter *w)
{
    static const char nothing[1];
    struct wf_text payload = {0};
    weft_status status;

    w->is_clock = true;
    wf_text_append(&payload, nothing, 0);
    status = wf_client_request(client, link, WF_FRAME_CLOCK, &payload, timeout_ns, 0, w);
    wf_text_free(&payload);
    return status;
}

bool wf_client_answers(struct wf_client *client, int link)
{
    struct wf_waiter w = {0};
    weft_status status = request(client, link, ALIVE_NS, &w);

    wf_text_free(&w.payload);
    return status == WEFT_OK;
}

static weft_status ask(struct wf_client *client, struct round *out)
{
    struct wf_waiter w = {0};
    struct wf_reader reader;
    weft_status status;

    if (has_ended(client)) return WEFT_ERR_PEER;
    out->sent_ns = wf_now_ns();
    status = request(client, WF_LINK_SERVER, ANSWER_NS, &w);
    reader = (struct wf_reader){(const uint8_t *)w.payload.data, w.payload.length, false};
    out->server_ns = wf_take_u64(&reader);
    out->identity = wf_take_u64(&reader);
    out->arrived_ns = wf_take_u64(&reader);
    wf_text_free(&w.payload);
    if (status == WEFT_OK && (reader.failed || out->server_ns > INT64_MAX))
        return wf_fail(WEFT_ERR_INTERNAL, "the rendezvous sent a time that cannot be");
    return status;
}

weft_status wf_client_clock(struct wf_client *client, uint64_t identity,
                            struct wf_clock_offset *out)
{
    struct wf_clock_offset best = {.bound_ns = UINT64_MAX};
    struct round round;

    for (int i = 0; i < ROUNDS; i++) {
        uint64_t half;

        WF_TRY(ask(client, &round));
        half = (round.arrived_ns - round.sent_ns) / 2;
        if (round.identity == identity) {
            *out = (struct wf_clock_offset){.at_ns = round.sent_ns + half};
            return WEFT_OK;
        }
        if (half + 1 >= best.bound_ns) continue;
        best.at_ns = round.sent_ns + half;
        best.offset_ns = (int64_t)round.server_ns - (int64_t)best.at_ns;
        best.bound_ns = half + 1;
    }
    *out = best;
    return WEFT_OK;
}
