/* server.h - what the files of the rendezvous server share.
 *
 * One thread owns this state.  Other threads use the command pipe only. */
#ifndef WEFT_RENDEZVOUS_SERVER_H
#define WEFT_RENDEZVOUS_SERVER_H

#include "rendezvous.h"

#include <pthread.h>
#include <stdatomic.h>

struct pollfd;

enum wf_stage {
    WF_STAGE_HELLO,  /* nothing proved: a port scan gets this far */
    WF_STAGE_PROOF,  /* has sent its hello, and was sent our nonce */
    WF_STAGE_MEMBER, /* has proved the token, and is a rank */
    WF_STAGE_PARTING /* only queued bytes are still sent */
};

struct wf_connection {
    int fd;
    enum wf_stage stage;
    bool ended;                     /* nothing more arrives */
    bool send_failed;               /* nothing more can be sent */
    bool broken;                    /* to be closed */
    uint64_t begun_ns, deadline_ns; /* of the stage; UINT64_MAX for members */
    int32_t rank;                   /* -1 before it is a member */
    bool leaving;                   /* the next frame in `in` is LEAVE */
    int32_t missed;                 /* the rank that its LOOK asks about, or -1 */
    char *fault;                    /* the first error that it reported, or NULL */
    char *heard;                    /* the first error of another rank that it was sent, or NULL */
    char *why;                      /* this end closes it, or NULL: the other end has */
    bool is_newcomer;               /* it waits in the lobby; RANK is -1 */
    bool moves;                     /* to the server of a later generation */
    int32_t place;                  /* a newcomer's number among this server's processes, or -1 */
    struct wf_text choices;         /* a newcomer's settings */
    struct wf_join join;
    struct wf_inbox in;
    struct wf_text out;
    struct wf_seal seal; /* of `out` */
    size_t sent;         /* of `out` */
};

/* A LOOK of rank ASKER about RANK that is not answered. */
struct wf_look {
    struct wf_look *next;
    int32_t asker, rank;
    uint64_t id, deadline_ns;
};

enum wf_command_kind {
    WF_COMMAND_STOP,
    WF_COMMAND_ADOPT,
    WF_COMMAND_GONE,
    WF_COMMAND_REAP,
    WF_COMMAND_LOBBY
};

/* Goes through a pipe in one piece. */
struct wf_command {
    enum wf_command_kind kind;
    int fd;
    int32_t rank;
    char *text;                     /* the receiver frees it */
    struct wf_connection *newcomer; /* the receiver's, from now on */
};

struct wf_elastic;
struct wf_round_message;

struct wf_server {
    struct wf_server_options options;
    int listeners[WF_MAX_LISTENERS];
    size_t listener_count;
    int commands[2];
    pthread_t thread;
    bool started, stopping;
    uint64_t clock; /* identity of this process's clock */

    struct wf_connection **connections;
    size_t count, capacity;
    struct pollfd *polls;
    uint64_t listen_again_ns; /* accepting rests until then */
    bool out_of_files;

    atomic_bool running;       /* all ranks have joined */
    uint64_t join_deadline_ns; /* UINT64_MAX before the first rank has joined */
    uint64_t job;
    struct wf_connection **members; /* by rank; NULL: not yet, or not any more */
    int32_t present;
    int32_t first_lost; /* the rank that was lost first, or -1 */
    bool *came;         /* by rank: it has joined since the table was empty */
    char *absent;       /* describes a rank whose process has ended; no rank can join then */
    struct {            /* the last failed attempt of the job to join */
        weft_status status;
        char *text; /* NULL: none */
        uint64_t at_ns;
        bool *reported; /* by rank */
    } failure;
    struct wf_gathers *gathers;
    struct wf_inquiries inquiries;
    struct wf_look *looks;
    struct wf_elastic *elastic; /* NULL: the job is not elastic */
    /* Opens the server of the next generation; server.c sets it, because elastic.c is below it. */
    void (*open_successor)(struct wf_server *server, const struct wf_round_message *go);
    _Atomic(struct wf_server *) successor; /* serves the next generation; NULL: there is none */
    atomic_bool has_moved;                 /* all members have met there */
    struct wf_server *origin;              /* a launcher's first server, which frees it; or NULL */
    pthread_mutex_t entered_lock;
    struct wf_text entered; /* numbers of newcomers that have been given a place; the first server's
                               only */
};

/* Maximum number of connections in the handshake, and time limit of each of its stages. */
#define WF_PENDING_MAX      128
#define WF_NEWCOMERS_MAX    64 /* that wait */
#define WF_STAGE_LIMIT_NS   (5 * WF_SECOND_NS)
#define WF_PENDING_SPARE_NS (WF_SECOND_NS / 10)

/* ---- connection.c: one connection's bytes ---- */

struct wf_connection *wf_connection_create(int fd, uint64_t now_ns) WF_NODISCARD;
void wf_connection_release(struct wf_connection *connection);
/* Read the bytes that have arrived; sets `ended`. */
void wf_connection_read(struct wf_connection *connection);
/* Send queued bytes without blocking; sets `send_failed`. */
void wf_connection_write(struct wf_connection *connection);
/* Make room for a frame of BYTES of payload.  False: there is no memory, and nothing has changed.
 */
bool wf_connection_reserve(struct wf_connection *connection, size_t bytes);
/* Queue a frame of PAYLOAD, which may be NULL. */
void wf_connection_send(struct wf_connection *connection, uint16_t type, uint64_t id,
                        const struct wf_text *payload);
/* Close CONNECTION because of a frame that the peer must not send; the last error is the reason. */
void wf_connection_reject(struct wf_connection *connection);
/* Queue a refusal, after which the connection ends. */
void wf_connection_refuse(struct wf_connection *connection, weft_status status, const char *text);

/* ---- admission.c: ranks that join ---- */

/* True if CONNECTION, which has proved the token, may join as the rank of its claim.  Otherwise it
 * is refused. */
bool wf_admission_may_join(struct wf_server *server, struct wf_connection *connection,
                           uint64_t now_ns);
/* Handle the input of CONNECTION, which is not a member yet. */
void wf_admission_handle(struct wf_server *server, struct wf_connection *connection,
                         uint64_t now_ns);

/* ---- members.c: frames and departures of members ---- */

/* Queue a frame for RANK, if it is a member. */
void wf_members_deliver(struct wf_server *server, uint16_t type, int32_t rank, uint64_t id,
                        const struct wf_text *payload);

/* Handle the frames in CONNECTION's inbox. */
void wf_members_handle(struct wf_server *server, struct wf_connection *connection, uint64_t now_ns);
/* CONNECTION has ended without a LEAVE frame. */
void wf_members_lost(struct wf_server *server, struct wf_connection *connection);
/* Refuse all ranks that have joined, with one reason; they may try again.  A process that is
 * already running and connects later is refused with the same reason, once. */
void wf_members_fail_join(struct wf_server *server, weft_status status, const char *text);
/* CONNECTION is `leaving`: handle its LEAVE frame. */
void wf_members_leave(struct wf_server *server, struct wf_connection *connection);
/* RANK's process has ended. */
void wf_members_ended(struct wf_server *server, int32_t rank, const char *text);
/* Answer every LOOK whose rank is gone or whose time limit has passed.  The members have been sent
 * all departures. */
void wf_members_answer_looks(struct wf_server *server, uint64_t now_ns);
/* End overdue gathers, inquiries and joins.  Returns the earliest remaining deadline. */
uint64_t wf_members_expire(struct wf_server *server, uint64_t now_ns);
/* Remove member C, which TEXT describes, after it is told that it is expelled. */
void wf_members_expel(struct wf_server *server, struct wf_connection *c, const char *text);
weft_status wf_members_create(struct wf_server *server) WF_NODISCARD;
void wf_members_release(struct wf_server *server);

/* ---- elastic.c: the next generation of an elastic job ---- */

/* Handle an ELASTIC or ROUND frame of C.  False: it cannot be read. */
bool wf_elastic_take_terms(struct wf_server *server, struct wf_connection *c,
                           const struct wf_frame *frame);
bool wf_elastic_take(struct wf_server *server, const struct wf_connection *c,
                     const struct wf_frame *frame);
/* RANK, whose connection was FD, does nothing any more. */
void wf_elastic_lost(struct wf_server *server, int32_t rank, int fd, const char *text);
/* RANK runs.  QUESTION is 0 or the beat that it answers. */
void wf_elastic_beat(struct wf_server *server, int32_t rank, uint64_t question, uint64_t now_ns);
/* Expel ranks that are silent, or that others wait for.  Returns the earliest time at which one may
 * have to be. */
uint64_t wf_elastic_expire(struct wf_server *server, uint64_t now_ns);
void wf_elastic_free(struct wf_server *server);
/* Handle FRAME of the newcomer at C.  False: it cannot be read. */
bool wf_elastic_take_newcomer(struct wf_server *server, struct wf_connection *c,
                              const struct wf_frame *frame, uint64_t now_ns);
/* The newcomer at C has shown its settings, or has come from another server: it waits for a place,
 * or moves on. */
void wf_elastic_seat(struct wf_server *server, struct wf_connection *c);
/* The newcomer at C has ended.  C is closed afterwards. */
void wf_elastic_unseat(struct wf_server *server, struct wf_connection *c);
/* RANK of the generation in which the launcher started it has ended: tell the server of the newest
 * generation. */
void wf_elastic_ended(struct wf_server *server, int32_t rank, const char *text);

/* ---- lobby.c: newcomers' connections ---- */

/* Pass C, which moves, to the server of a later generation.  False: there is none. */
bool wf_lobby_pass(struct wf_server *server, struct wf_connection *c);
/* The newcomer at C is given a place. */
void wf_lobby_note(struct wf_server *server, const struct wf_connection *c);

/* ---- successor.c: the server at which the next generation meets ---- */

/* Open it for the members of GO.  A failure is logged. */
void wf_successor_open(struct wf_server *server, const struct wf_round_message *go);
/* Free the successors whose members have all moved on. */
void wf_successor_reap(struct wf_server *server);
void wf_successor_release(struct wf_server *server);

/* ---- commands.c: what other threads make the server's thread do ---- */

/* Make SERVER's thread free the successors whose members have all moved on.  [any thread] */
void wf_server_reap(struct wf_server *server);
/* Returns false if the thread cannot be told; the caller then keeps what COMMAND has.  [any thread]
 */
bool wf_server_order(struct wf_server *server, const struct wf_command *command);
/* Free the commands that are left when the thread has ended. */
void wf_server_drop_commands(struct wf_server *server);

#endif
