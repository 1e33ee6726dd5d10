/* rendezvous.h - the server that connects the ranks of a job, and its clients.
 *
 * Every rank holds one connection to a server.  The server runs in rank 0's process, in `weft run`,
 * or, for ranks that are threads, in their process.  Ranks use it to join, to create communicators
 * and to report failures.  Tensors do not pass through it.
 *
 *     address.c   "host:port", "[v6]:port", "unix:name": listening and connecting
 *     gather.c    all-gathers among lists of ranks; no sockets, no clock
 *     inquiry.c   asking ranks for their positions
 *     round.c     the protocol of generations; no sockets, no clock
 *     elastic.c   the server's side of it; next.c is the client's, newcomer.c that of a process
 *                 that waits for a place; lobby.c: the server keeps it
 *     server.c    the server; connection.c, admission.c and members.c are parts of it
 *     client.c    a rank's end; enter.c joins, link.c is its thread, departures.c keeps reports of
 *                 ranks that are gone, watch.c asks questions of its own, clock.c for the time
 *     launch.h    this rank's number and host, and the choices that ranks compare
 *
 * In jobs of at least three ranks, and in elastic jobs, a server on rank 0 has a standby on rank 1.
 * Every rank holds a second connection, to the standby.  Both servers learn of failures and pass
 * them on.  Requests go to the standby once the server has ended. */
#ifndef WEFT_RENDEZVOUS_RENDEZVOUS_H
#define WEFT_RENDEZVOUS_RENDEZVOUS_H

#include "base/base.h"
#include "base/fork.h"
#include "base/frame/frame.h"

/* The rank whose process runs the standby. */
#define WF_STANDBY_RANK 1

/* ---- address.c ---- */

/* Where a rendezvous is.  An empty host with a port is not valid. */
struct wf_address {
    char host[256]; /* name or number; for Unix sockets the abstract name */
    uint16_t port;
    bool is_unix;
};

#define WF_ADDRESS_TEXT  288
#define WF_PEER_TEXT     96
#define WF_MAX_LISTENERS 4

/* WHAT names where TEXT is from ("WEFT_RENDEZVOUS").  A missing port is DEFAULT_PORT, or an error
 * when that is negative. */
weft_status wf_address_parse(const char *what, const char *text, int default_port,
                             struct wf_address *out) WF_NODISCARD;
void wf_address_print(const struct wf_address *address, char out[WF_ADDRESS_TEXT]);
/* True if the text alone names this host: a Unix socket, localhost, 127.x, ::1. */
bool wf_address_is_local(const struct wf_address *address);

/* Listen on every address the host resolves to, the same port on each; port 0 takes a free one and
 * writes it back.  Sockets do not block. */
weft_status wf_address_listen(struct wf_address *address, int fds[WF_MAX_LISTENERS],
                              size_t *count) WF_NODISCARD;
/* Connect, trying each address the host resolves to, again and again until DEADLINE_NS of
 * wf_now_ns.  The socket does not block. */
weft_status wf_address_connect(const struct wf_address *address, uint64_t deadline_ns,
                               int *fd) WF_NODISCARD;
/* Begin to connect to the first address the host resolves to, without waiting. */
weft_status wf_address_begin(const struct wf_address *address, int *fd) WF_NODISCARD;
/* True if the peer of a Unix socket has this process's user.  True for all other sockets. */
bool wf_address_same_user(int fd);
/* True if both ends of the socket FD have the same address: no network lies between them. */
bool wf_address_same_host(int fd);
/* The process at the other end of a Unix socket: "process 12 of user bob (uid 1001)". */
void wf_address_peer(int fd, char out[WF_PEER_TEXT]);
/* An address for a standby: this end's address of the socket FD, with a port or name that is
 * free. */
bool wf_address_beside(int fd, struct wf_address *out);
/* The number of such an ADDRESS: its port, or the number in its name. */
uint64_t wf_address_number(const struct wf_address *address);
/* The address with NUMBER of the peer of FD. */
bool wf_address_of_peer(int fd, uint64_t number, struct wf_address *out);

/* ---- frames; base/frame/frame.h has their form ---- */

enum wf_frame_type {
    WF_FRAME_REFUSED = 1, /* server: status, text; the connection ends */
    WF_FRAME_ADMITTED,    /* server: its proof */
    WF_FRAME_READY,       /* server: all have joined; job number, serving rank or -1, standby */
    WF_FRAME_GATHER,      /* client: a contribution to a gather; id is the client's */
    WF_FRAME_GATHERED,    /* server: the outcome of the gather; the client's id */
    WF_FRAME_GONE,        /* server: rank, whether it departed, the rank whose loss it had found
                             before or -1, text, its record */
    WF_FRAME_ABORT,       /* both: communicator's number, status, number of its collectives that
                             are complete on the rank, ranks, text */
    WF_FRAME_ASK,         /* client: asks for positions of ranks.  server: asks this rank's;
                             communicator's number, rank that asks */
    WF_FRAME_TELL,        /* client: its position.  server: all answers */
    WF_FRAME_LEAVE,       /* client: it departs, with its record.  server: it ends */
    WF_FRAME_LOOK,        /* client: a rank seems to be gone; asks which ranks are */
    WF_FRAME_PASSED,      /* server: all frames due to the client's ABORT or LOOK have been sent;
                             its id; for a LOOK, whether the rank is still connected */
    WF_FRAME_CLOCK,       /* client: asks for the time.  server: its time, and the identity of its
                             clock */
    WF_FRAME_ELASTIC,     /* client: the terms of its elastic job */
    WF_FRAME_BEAT,        /* client: it runs.  server: asks for a beat with its id */
    WF_FRAME_ROUND,       /* both: a message of round.h.  client: also the ranks that it knows to be
                             lost.  server: also where the next generation meets, and the number of
                             ranks and the receiver's number, for newcomers */
    WF_FRAME_LOBBY,       /* newcomer: its settings */
};

_Static_assert(WF_FRAME_LOBBY < WF_FRAME_TYPES, "wire.c takes all types");

/* How long a server waits for the end of a rank that a LOOK asks about: a rank's connections to the
 * server and to the standby do not close at the same moment.  On a busy host the kernel takes
 * hundreds of milliseconds to end a process. */
#define WF_LOOK_NS (WF_SECOND_NS * 3 / 2)

/* The order in which ranks are sent a failure.  Ranks whose processes may serve are last, because
 * they may end because of it. */
static inline int32_t wf_turn_of(int32_t rank)
{
    return rank <= WF_STANDBY_RANK ? WF_STANDBY_RANK + 1 - rank : 0;
}

/* True if an ABORT frame may carry STATUS: an abort, or the error of one rank. */
static inline bool wf_abort_may_be(weft_status status)
{
    return status == WEFT_ERR_ABORTED || status == WEFT_ERR_PEER || status == WEFT_ERR_TIMEOUT ||
           status == WEFT_ERR_MISMATCH;
}

/* ---- gather.c: all-gathers among lists of ranks ---- */

/* How many notes of its progress a rank can send within a time limit. */
#define WF_NOTES 8

/* One rank's contribution to a gather.  The memory is borrowed. */
struct wf_contribution {
    uint64_t comm;        /* the number of the communicator that it is for; 0: none yet */
    const int32_t *ranks; /* world ranks, in the group's order */
    int32_t count;
    const char *label; /* names the call in messages; equal on all ranks */
    int64_t timeout_ns;
    weft_status status; /* a failure ends the gather for all; WEFT_IN_PROGRESS: the rank has not
                         * come, but makes progress, so it is not late now */
    const char *text;   /* the error text of `status` */
    weft_blob blob;
    bool is_long; /* ranks may come after the time limit, if they make progress */
    bool (*ended)(const void *self); /* the wait ends when it returns true; may be NULL */
    const void *self;
};

/* Receives results: the payload of a GATHERED frame for request ID of RANK. */
struct wf_gather_sink {
    void *self;
    void (*deliver)(void *self, int32_t rank, uint64_t id, const struct wf_text *payload);
};

struct wf_gathers;

/* The first gather's number is SERIAL + 1. */
weft_status wf_gathers_create(int32_t size, struct wf_gather_sink sink, uint64_t serial,
                              struct wf_gathers **out) WF_NODISCARD;
void wf_gathers_release(struct wf_gathers **gathers);
/* RANK contributes.  Every contribution gets one delivery, now or later; a note of progress gets
 * none.  Fails only if memory is missing or the list of ranks is invalid. */
weft_status wf_gathers_post(struct wf_gathers *gathers, uint64_t now_ns, int32_t rank, uint64_t id,
                            const struct wf_contribution *contribution) WF_NODISCARD;
/* RANK contributes to no gather any more; TEXT is the reason. */
void wf_gathers_gone(struct wf_gathers *gathers, int32_t rank, const char *text);
/* End gathers whose time limit has passed.  Returns the earliest remaining deadline, or
 * UINT64_MAX. */
uint64_t wf_gathers_expire(struct wf_gathers *gathers, uint64_t now_ns);
size_t wf_gathers_open(const struct wf_gathers *gathers);

/* ---- contribution.c ---- */

/* A contribution as a GATHER payload.  Reading points into the frame; RANKS has room for MOST. */
void wf_contribution_put(struct wf_text *out, const struct wf_contribution *contribution);
weft_status wf_contribution_take(struct wf_reader *reader, int32_t *ranks, int32_t most,
                                 char *label, size_t label_bytes, char *text, size_t text_bytes,
                                 struct wf_contribution *out) WF_NODISCARD;

/* ---- inquiry.c: asking ranks for their positions ---- */

struct wf_inquiry;

struct wf_inquiries {
    struct wf_inquiry *first;
    uint64_t number;
    struct wf_gather_sink sink; /* gets a payload as a gather's, a blob per rank asked */
};

/* RANK's request ID asks RANKS.  *NUMBER identifies the inquiry in the answers. */
weft_status wf_inquiry_open(struct wf_inquiries *inquiries, uint64_t deadline_ns, int32_t rank,
                            uint64_t id, const int32_t *ranks, int32_t count,
                            uint64_t *number) WF_NODISCARD;
/* Add an answer.  The inquiry ends with the last one.  An answer with an unknown number is late and
 * is ignored. */
void wf_inquiry_answer(struct wf_inquiries *inquiries, uint64_t number, int32_t rank,
                       weft_blob answer);
/* End overdue inquiries with the answers that have arrived.  Returns the earliest remaining
 * deadline, or UINT64_MAX. */
uint64_t wf_inquiries_expire(struct wf_inquiries *inquiries, uint64_t now_ns);
void wf_inquiries_free(struct wf_inquiries *inquiries);

/* ---- server.c ---- */

/* What the ranks of an elastic job have agreed on. */
struct wf_elastic_terms {
    int32_t ranks_min;  /* 0: the job is not elastic */
    int32_t ranks_max;  /* of a generation, with newcomers */
    uint64_t silent_ns; /* a rank that is silent for so long is expelled; 0: none is */
    uint64_t answer_ns; /* a rank that does not ask for the next generation for so long, while
                           others wait for it, is expelled; UINT64_MAX: none is */
};

struct wf_server_options {
    int32_t size;
    uint64_t generation;  /* of an elastic job; 0: the first */
    int32_t serving_rank; /* rank whose process runs it, or -1 */
    bool standby;         /* it is a standby: each rank may join at any time, once */
    bool grows; /* processes may come later, and wait for a place; a launcher's server only */
    int64_t join_timeout_ns;
    struct wf_job_key key;
    struct wf_job_key base; /* if no rank serves: the key of the first generation */
};

struct wf_server;

/* Listen on ADDRESS (written back as by wf_address_listen; NULL: nowhere) without a thread yet, so
 * that the caller may still fork. */
weft_status wf_server_create(const struct wf_server_options *options, struct wf_address *address,
                             struct wf_server **out) WF_NODISCARD;
weft_status wf_server_start(struct wf_server *server) WF_NODISCARD;
/* A connection for a rank in this process.  [any thread] */
weft_status wf_server_connect(struct wf_server *server, int *fd) WF_NODISCARD;
/* RANK's process has ended; TEXT describes how.  The other ranks are sent this, unless RANK had
 * departed.  From now on every rank that tries to join is refused.  [any thread] */
void wf_server_report_gone(struct wf_server *server, int32_t rank, const char *text);
/* The server of the next generation, which runs in the same process; NULL: there is none.  SERVER
 * owns it, unless it was taken.  [any thread] */
struct wf_server *wf_server_successor(struct wf_server *server);
struct wf_server *wf_server_take_successor(struct wf_server *server);
/* True if the newcomer with NUMBER has been given a place.  [any thread] */
bool wf_server_has_entered(struct wf_server *server, int32_t number);
/* Sends LEAVE to the remaining members and stops. */
void wf_server_release(struct wf_server **server);

/* ---- client.c ---- */

/* A rank that has departed or was lost. */
struct wf_departure {
    int32_t rank;
    bool left;             /* it departed; else it was lost */
    char text[512];        /* "is gone: ...", "has left the job" */
    struct wf_text record; /* its departure record, which comm writes and reads */
};

/* A question of the client's thread: positions of ranks in a communicator. */
struct wf_question {
    uint64_t comm;
    int32_t *ranks; /* to be freed */
    int32_t count;
};

struct wf_gathered;

/* Callbacks of the client's thread.  It calls them without holding the client's lock. */
struct wf_client_events {
    void *self;
    void (*gone)(void *self, const struct wf_departure *departure);
    void (*abort)(void *self, uint64_t comm, weft_status status, const char *text,
                  uint64_t complete);
    /* The others want the next generation of an elastic job. */
    void (*asked)(void *self);
    /* Describe communicator COMM's position to rank ASKER: an enum wf_where and what follows it. */
    void (*where)(void *self, uint64_t comm, int32_t asker, struct wf_text *out);
    /* After wf_client_watch, the thread calls `watch` several times a second.  `watch` returns true
     * and fills OUT if it has a question.  `answered` gets the answers, one blob per rank, as from
     * wf_client_ask. */
    bool (*watch)(void *self, struct wf_question *out);
    void (*answered)(void *self, const struct wf_question *question,
                     const struct wf_gathered *answers);
};

struct wf_client_options {
    int32_t rank, size;
    struct wf_job_key key;
    struct wf_job_key base; /* as in wf_server_options */
    weft_blob choices; /* settings that newcomers must share, as rows of wf_choices; borrowed */
    int64_t join_timeout_ns;
    const struct wf_address *address; /* NULL: SERVER */
    struct wf_server *server;
    int32_t serving_rank; /* that serves the rendezvous, or -1 */
    const char *help;     /* what to check if ADDRESS cannot be reached, or NULL */
    uint64_t generation;  /* of an elastic job; 0: the first */
    struct wf_elastic_terms terms;
    struct wf_client_events events;
};

struct wf_client;

/* Connect, prove knowledge of the token, and wait until all ranks have joined. */
weft_status wf_client_create(const struct wf_client_options *options,
                             struct wf_client **out) WF_NODISCARD;
/* Depart, with RECORD for the other ranks (NULL: none), and free the client.  Accepts NULL. */
void wf_client_release(struct wf_client **client, const struct wf_text *record);
uint64_t wf_client_job(const struct wf_client *client);

/* The outcome of a gather.  `serial` is unique among the gathers of the job.  Blobs point into
 * `bytes`. */
struct wf_gathered {
    uint64_t serial;
    weft_blob *blobs; /* one per rank of the list */
    int32_t count;
    struct wf_text bytes;
};

/* Send CONTRIBUTION and wait for those of the other ranks.  If a rank fails, all ranks get the same
 * status and text.  WEFT_ERR_ABORTED if CONTRIBUTION's `ended` has ended the wait.  [any thread;
 * one at a time per communicator] */
weft_status wf_client_gather(struct wf_client *client, const struct wf_contribution *contribution,
                             struct wf_gathered *out) WF_NODISCARD;
void wf_gathered_free(struct wf_gathered *gathered);
/* Send CONTRIBUTION, a note of this rank's progress towards a gather, at most WF_NOTES times within
 * the time limit.  Does not wait.  [any thread] */
void wf_client_note(struct wf_client *client, const struct wf_contribution *contribution);
/* Call TAKE with every contribution that has no answer yet and lists RANK.  TAKE is called with
 * locks held.  An answer that RANK had before it asked this rank has arrived here too.  [any
 * thread] */
void wf_client_each_wait(struct wf_client *client, int32_t rank,
                         void (*take)(void *self, const struct wf_contribution *contribution),
                         void *self);
/* Wake every waiting call, which then looks at its `ended`.  [any thread] */
void wf_client_notify(struct wf_client *client);

/* Report to RANKS that communicator COMM is aborted, or has failed with another STATUS.  Does not
 * wait.  [any thread] */
void wf_client_abort(struct wf_client *client, uint64_t comm, const int32_t *ranks, int32_t count,
                     weft_status status, const char *text);
/* Report to RANKS that communicator COMM has failed with STATUS.  Its first COMPLETE collectives
 * are complete here and can complete on all ranks; 0 if they must end at once.  Waits, for a
 * limited time, until the server has sent the report, so that this process may end afterwards. [any
 * thread] */
void wf_client_report(struct wf_client *client, uint64_t comm, const int32_t *ranks, int32_t count,
                      weft_status status, const char *text, uint64_t complete);
/* A rank's answer to ASK begins with this number.  If the rank knows the communicator, its position
 * follows (position.c). */
enum wf_where { WF_WHERE_UNKNOWN, WF_WHERE_KNOWN, WF_WHERE_GONE };

/* Ask for the positions of RANKS in communicator COMM.  OUT gets one blob per rank; the blob of a
 * rank that did not answer in time is empty.  [any thread] */
weft_status wf_client_ask(struct wf_client *client, uint64_t comm, const int32_t *ranks,
                          int32_t count, int64_t timeout_ns, struct wf_gathered *out) WF_NODISCARD;
/* From now on, the client's thread calls the event `watch` and asks its questions.  [any thread] */
void wf_client_watch(struct wf_client *client);
/* At AT_NS of this process's wf_now_ns, the server's was OFFSET_NS ahead, with an error of at most
 * BOUND_NS. */
struct wf_clock_offset {
    uint64_t at_ns;
    int64_t offset_ns;
    uint64_t bound_ns;
};

/* Measure the server's clock.  If the server has the clock IDENTITY, the offset and the bound are
 * 0. WEFT_ERR_PEER: the server has ended; there is no text.  [any thread] */
weft_status wf_client_clock(struct wf_client *client, uint64_t identity,
                            struct wf_clock_offset *out) WF_NODISCARD;
/* RANK's departure or loss, or NULL.  The client owns it.  [any thread] */
const struct wf_departure *wf_client_gone(struct wf_client *client, int32_t rank);
/* The same for the rank that was lost first. */
const struct wf_departure *wf_client_first_lost(struct wf_client *client);
/* ---- next.c: the next generation of an elastic job ---- */

/* What the members of a generation were told. */
struct wf_decision {
    uint64_t generation, step;
    uint64_t members;          /* a bit per rank of the generation before */
    int32_t rank, size;        /* this rank's */
    bool is_address;           /* ADDRESS is set; else SERVER, unless SIZE is 1 */
    struct wf_address address; /* where they meet */
    struct wf_server *server;  /* the same, in this process; the old server owns it */
    int32_t serving_rank;      /* of the next generation, or -1 */
    struct wf_job_key key, base;
    bool stays; /* nothing changes: the generation goes on */
};

/* True if a rank is lost, or has asked for the next generation.  [any thread] */
bool wf_client_wants_next(struct wf_client *client);
/* Agree with the living ranks on the next generation.  This rank has completed STEP.  Waits for
 * them; may be called again if the members of *OUT do not all meet.  WEFT_ERR_PEER: this rank was
 * expelled, too few ranks are left, or the rendezvous has ended.  WEFT_ERR_TIMEOUT: the rendezvous
 * does not answer. */
weft_status wf_client_next(struct wf_client *client, uint64_t step,
                           struct wf_decision *out) WF_NODISCARD;
/* The same where the generation can go on: *OUT says whether it does, because there are no
 * newcomers. */
weft_status wf_client_grow(struct wf_client *client, uint64_t step,
                           struct wf_decision *out) WF_NODISCARD;
/* Call no events from now on. */
void wf_client_quiet(struct wf_client *client);
/* The members of the last decision have met: tell the servers of before, one of which may not have
 * decided. */
void wf_client_move_on(struct wf_client *client);
/* The members of the last decision have met: the server of theirs that runs in this process now
 * belongs to the caller; NULL: none does. */
struct wf_server *wf_client_take_server(struct wf_client *client);
/* The key of a generation: KEY is the base, or that of the server that decided. */
struct wf_job_key wf_next_key(const struct wf_job_key *key, uint64_t generation);

/* ---- newcomer.c: a process that waits for a place in an elastic job ---- */

struct wf_newcomer;

/* Connect to the launcher's server, as number OPTIONS->rank, which is at least OPTIONS->size. */
weft_status wf_newcomer_create(const struct wf_client_options *options,
                               struct wf_newcomer **out) WF_NODISCARD;
void wf_newcomer_release(struct wf_newcomer **newcomer);
/* Wait for a place, without a limit; again, if the members of *OUT did not all meet.
 * WEFT_ERR_PEER: the job has ended, or this process was expelled. */
weft_status wf_newcomer_next(struct wf_newcomer *newcomer, struct wf_decision *out) WF_NODISCARD;

/* The first error that another rank has reported, cut to BYTES; false: none.  [any thread] */
bool wf_client_first_error(struct wf_client *client, char *out, size_t bytes);

#endif
