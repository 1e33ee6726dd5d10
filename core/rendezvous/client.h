/* client.h - what the files of the rendezvous client share. */
#ifndef WEFT_RENDEZVOUS_CLIENT_H
#define WEFT_RENDEZVOUS_CLIENT_H

#include "round.h"
#include "server.h"

#include <stdatomic.h>
#include <unistd.h>

/* Time beyond the server's own time limit after which a client stops waiting for an answer. */
#define WF_SERVER_GRACE_NS WF_SECOND_NS

/* Time limit of an answer to a LOOK, and of the handshake with the standby. */
#define WF_CLIENT_LOOK_NS (2 * WF_SECOND_NS)

/* A call that waits for its answer; lives on the caller's stack. */
struct wf_waiter {
    struct wf_waiter *next;
    uint64_t id; /* 0: not sent */
    int link;
    bool done;
    bool is_clock;                              /* it waits for a CLOCK frame */
    int32_t count;                              /* of blobs that the answer has; 0: it has none */
    const struct wf_contribution *contribution; /* or NULL */
    struct wf_text payload;
};

/* The connections of a client: to the server, and to its standby. */
enum { WF_LINK_SERVER, WF_LINK_STANDBY, WF_LINKS };

enum wf_link_stage {
    WF_LINK_OPEN,
    WF_LINK_HANDSHAKE, /* the thread runs the handshake with the standby */
    WF_LINK_PROVING,
    WF_LINK_ASKED, /* it has ended, and the other server is asked who is gone */
    WF_LINK_LOST
};

struct wf_link {
    struct wf_connection *connection; /* `out` and `seal` under the lock, the rest the thread's */
    int32_t rank;                     /* that serves it, or -1 */
    bool over;                        /* or never begun; under the lock, as are the next */
    bool left;                        /* the server has said goodbye */
    bool silent;                      /* it has not answered the last request in time */
    char why[640];                    /* it is over */
    enum wf_link_stage stage;         /* the thread's, as are the next */
    uint64_t deadline_ns;             /* of the other server's answer */
    bool confirmed;                   /* it answered that the rank is still connected */
};

static inline bool wf_link_is_open(const struct wf_link *link)
{
    return link->connection != NULL && !link->connection->ended && !link->connection->broken;
}

struct wf_client {
    struct wf_client_options options;
    struct wf_link links[WF_LINKS];
    struct wf_server *standby; /* that this rank serves, or NULL */
    struct wf_job_key standby_key;
    struct wf_join standby_join;
    int wake;
    pthread_t thread;
    uint64_t job;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct wf_waiter *waiters;
    uint64_t last_id;
    bool leaving;
    struct wf_departure **departed; /* per rank; NULL: it is here */
    const struct wf_departure *first_lost;
    struct wf_held *held; /* by the thread: what the standby said and the server has not yet */
    char cause[320];      /* the first error that a rank reported, or "" */

    atomic_bool watches;         /* the event `watch` is wanted */
    uint64_t watched;            /* id of the request whose answer is awaited, or 0; the thread's */
    uint64_t watch_ns;           /* when the event is next */
    uint64_t overdue_ns;         /* when the thread stops waiting for that answer */
    struct wf_question question; /* that was asked */

    /* Of an elastic job, under the lock: */
    struct wf_round_member member;
    bool waits;       /* in wf_client_next */
    bool was_told;    /* the last GO of the round that it waits for; its decision is not read yet */
    uint64_t late;    /* ranks that do not call wf_client_next within the time limit */
    bool was_asked;   /* the others want the next generation */
    bool stays;       /* the round that it waits for has changed nothing */
    uint64_t number;  /* of the address where it meets; 0: none */
    int32_t meets_at; /* the rank that serves there, or -1 */
    bool is_quiet;    /* the thread calls no events any more */
    uint64_t beat_ns; /* when the next beat is due; the thread's */
    atomic_bool wants_quiet;
};

static inline bool wf_client_is_elastic(const struct wf_client *client)
{
    return client->options.terms.ranks_min > 0;
}

static inline uint64_t wf_client_generation(const struct wf_client *client)
{
    return client->options.generation > 0 ? client->options.generation : 1;
}

/* The link that requests use.  The lock is held. */
static inline int wf_client_asks(const struct wf_client *client)
{
    return client->links[WF_LINK_SERVER].over && !client->links[WF_LINK_STANDBY].over
               ? WF_LINK_STANDBY
               : WF_LINK_SERVER;
}

/* Wake the thread, which then sends the queued frames. */
static inline void wf_client_wake(struct wf_client *client)
{
    uint64_t one = 1;

    if (write(client->wake, &one, sizeof one) < 0) return; /* full: it is awake anyway */
}

/* ---- enter.c ---- */

/* Connect, prove, wait for all: sets the links, the job and the standby. */
weft_status wf_client_enter(struct wf_client *client) WF_NODISCARD;
/* A connection of FD to a server that runs as this user.  Takes ownership of FD. */
weft_status wf_client_connect_by(int fd, struct wf_connection **out) WF_NODISCARD;
/* Run the handshake on C, with a server on RANK (-1: a launcher's), as JOIN.  Sets the nonces of
 * JOIN. */
weft_status wf_client_prove(struct wf_connection *c, int32_t rank, const struct wf_job_key *key,
                            struct wf_join *join, uint64_t deadline_ns) WF_NODISCARD;
/* How long this process has run, in milliseconds; 0 if the kernel does not say. */
uint64_t wf_client_age(void);
/* Continue the handshake with the standby.  Returns true once it is complete. */
bool wf_client_join_standby(struct wf_client *client);

/* ---- client.c ---- */

/* Send a frame on link number LINK and wait for the answer, in W's payload, which the caller frees.
 * LINK -1 means the link that wf_client_asks returns.  The wait lasts GRACE_NS longer than the time
 * limit that the server has.  WEFT_ERR_PEER also if the standby is asked and a rank of W's
 * contribution is gone.  An abort is sent on all links, on LINK first: the server that is
 * asked must receive it before it sees the departure of a rank that the other server has sent it
 * to. */
weft_status wf_client_request(struct wf_client *client, int link, uint16_t type,
                              const struct wf_text *payload, int64_t timeout_ns, int64_t grace_ns,
                              struct wf_waiter *w) WF_NODISCARD;

/* The payload of an ASK. */
void wf_question_put(struct wf_text *out, uint64_t comm, const int32_t *ranks, int32_t count,
                     int64_t timeout_ns);

/* ---- contribution.c ---- */

/* Fails unless FRAME is an error or has COUNT blobs, one for each rank of the request. */
weft_status wf_answer_check(const struct wf_frame *frame, int32_t count) WF_NODISCARD;
/* Read the outcome of a gather or an inquiry from its answer.  Takes ownership of the bytes, and of
 * BLOBS, which has room for one blob per rank; NULL: they are allocated. */
weft_status wf_gathered_read(struct wf_text *payload, weft_blob *blobs,
                             struct wf_gathered *out) WF_NODISCARD;

/* ---- clock.c ---- */

/* True if link number LINK answers.  [any thread] */
bool wf_client_answers(struct wf_client *client, int link);

/* ---- watch.c: requests that the thread makes itself ---- */

/* Send the pending question, if any.  Returns the milliseconds until the next call is due; -1:
 * never. */
int wf_client_watch_now(struct wf_client *client);
/* If FRAME is the answer to that question, pass it on and return true. */
bool wf_client_handle_watched(struct wf_client *client, const struct wf_frame *frame);
void wf_client_end_watch(struct wf_client *client);

/* ---- member.c: a member of round.h ---- */

/* LINK has opened: send it the terms of the job.  The lock is held. */
void wf_client_send_terms(struct wf_client *client, int link);
/* Read a ROUND frame up to the message's end. */
struct wf_round_message wf_round_message_take(struct wf_reader *reader);
void wf_round_message_put(struct wf_text *out, const struct wf_round_message *message,
                          uint64_t lost);
/* Send the beats that are due.  Returns the milliseconds until the next ones; -1: never. */
int wf_client_beat(struct wf_client *client);
/* Send MESSAGE of CLIENT's member to the server.  The lock is held. */
void wf_client_send_round(void *client, int32_t to, const struct wf_round_message *message);
void wf_client_handle_round(struct wf_client *client, int link, struct wf_reader *reader);
/* If it is wanted, or the thread IS_OVER: call no events from now on. */
void wf_client_see_quiet(struct wf_client *client, bool is_over);
/* The standby has expelled the rank that serves: tell the server. */
void wf_client_leave_server(struct wf_client *client);
/* The server has ended, and the standby takes its place. */
void wf_client_follow_standby(struct wf_client *client);

/* ---- departures.c: reports of ranks that are gone ---- */

void wf_departure_free(struct wf_departure *departure);
/* Keep the first report about RANK, and pass it on. */
void wf_client_note_gone(struct wf_client *client, int32_t rank, bool left, const char *text,
                         weft_blob record);
/* Ask LINK whether RANK is gone.  Returns false if LINK takes no requests. */
bool wf_client_look(struct wf_client *client, int link, int32_t rank, uint64_t id);

/* Hold a report of the standby.  MISSED is the rank whose loss RANK had found before, or -1.
 * Returns false without memory. */
bool wf_held_add(struct wf_client *client, int32_t rank, bool left, int32_t missed,
                 const char *text, weft_blob record);
/* The server has answered the LOOK with ID that the rank is still connected. */
void wf_held_deny(struct wf_client *client, uint64_t id);
bool wf_held_has(const struct wf_client *client, int32_t rank);
/* Pass on reports that need not wait for the server's own report any longer.  Drop reports that the
 * server has made or denied.  Returns true if reports are left. */
bool wf_client_release_held(struct wf_client *client);

/* ---- link.c: the thread that owns the connections ---- */

/* The thread's body. */
void *wf_client_listen(void *client);
/* Handle a frame that arrived on link number LINK. */
void wf_client_handle(struct wf_client *client, int link, const struct wf_frame *frame);

#endif
