/* watch.c - questions that the client's thread asks by itself while the program may be waiting, and
 * what it answers to those of other ranks. */
#include "client.h"

#define WATCH_NS   (WF_SECOND_NS / 4)
#define ANSWER_NS  (WF_SECOND_NS / 2)             /* the server waits for the last answer */
#define OVERDUE_NS (ANSWER_NS + 2 * WF_SECOND_NS) /* this client waits for the server */

void wf_question_put(struct wf_text *out, uint64_t comm, const int32_t *ranks, int32_t count,
                     int64_t timeout_ns)
{
    wf_put_u64(out, comm);
    wf_put_u64(out, (uint64_t)timeout_ns);
    wf_put_ranks(out, ranks, count);
}

void wf_client_watch(struct wf_client *client)
{
    if (!atomic_exchange(&client->watches, true)) wf_client_wake(client);
}

static void drop_question(struct wf_client *client)
{
    wf_free(client->question.ranks);
    client->question = (struct wf_question){0};
    client->watched = 0;
}

static void ask(struct wf_client *client)
{
    const struct wf_question *q = &client->question;
    struct wf_text payload = {0};
    int link;

    wf_question_put(&payload, q->comm, q->ranks, q->count, ANSWER_NS);
    pthread_mutex_lock(&client->lock);
    link = wf_client_asks(client);
    if (!client->links[link].over && !payload.failed) {
        client->watched = ++client->last_id;
        wf_connection_send(client->links[link].connection, WF_FRAME_ASK, client->watched, &payload);
    }
    pthread_mutex_unlock(&client->lock);
    wf_text_free(&payload);
}

/* The last question was answered, or its answers are overdue. */
static void ask_next(struct wf_client *client, uint64_t now_ns)
{
    const struct wf_client_events *events = &client->options.events;

    drop_question(client);
    client->overdue_ns = now_ns + (uint64_t)OVERDUE_NS;
    if (events->watch(events->self, &client->question)) ask(client);
}

int wf_client_watch_now(struct wf_client *client)
{
    const struct wf_client_events *events = &client->options.events;
    uint64_t now_ns;

    if (!atomic_load(&client->watches) || events->watch == NULL) return -1;
    now_ns = wf_now_ns();
    if (now_ns >= client->watch_ns) {
        client->watch_ns = now_ns + (uint64_t)WATCH_NS;
        if (client->watched == 0 || now_ns >= client->overdue_ns) ask_next(client, now_ns);
    }
    return (int)((client->watch_ns - now_ns) / 1000000) + 1;
}

bool wf_client_handle_watched(struct wf_client *client, const struct wf_frame *frame)
{
    struct wf_question question = client->question;
    struct wf_text payload = {0};
    struct wf_gathered answers;

    if (client->watched == 0 || frame->id != client->watched) return false;
    client->question = (struct wf_question){0};
    client->watched = 0;
    wf_text_append(&payload, (const char *)frame->payload, frame->bytes);
    if (!payload.failed && wf_gathered_read(&payload, NULL, &answers) == WEFT_OK) {
        client->options.events.answered(client->options.events.self, &question, &answers);
        wf_gathered_free(&answers);
    }
    wf_text_free(&payload);
    wf_free(question.ranks);
    return true;
}

void wf_client_end_watch(struct wf_client *client)
{
    drop_question(client);
}

/* ---- answers to questions of other ranks ---- */

static bool lists_rank(const struct wf_contribution *c, int32_t rank)
{
    for (int32_t i = 0; i < c->count; i++)
        if (c->ranks[i] == rank) return true;
    return false;
}

void wf_client_each_wait(struct wf_client *client, int32_t rank,
                         void (*take)(void *self, const struct wf_contribution *contribution),
                         void *self)
{
    pthread_mutex_lock(&client->lock);
    for (const struct wf_waiter *w = client->waiters; w != NULL; w = w->next)
        if (!w->done && w->contribution != NULL && lists_rank(w->contribution, rank))
            take(self, w->contribution);
    pthread_mutex_unlock(&client->lock);
}
