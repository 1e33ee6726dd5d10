/* round.h - how the processes of a job agree on its next generation.
 *
 * The server makes rounds.  A round asks every living member (ASK), each answers with its last step
 * (ANSWER), the server tells the members of the next generation who they are (DECIDE), each
 * confirms it (CONFIRM), and the server lets them begin (GO).  A loss before GO makes a new round
 * with a higher number, and nobody begins by an older one.
 *
 * Processes that were never members, newcomers, wait in the server's lobby.  Each decision takes as
 * many as there are places.  A member can ask for a round to take them in (GROW): its generation
 * can go on, so the others are invited (INVITE), and if nothing changes, because nobody waits or
 * the newcomers are lost before they confirm, the members go on in their generation (STAY).
 *
 * This file has no clock and no socket: events come in, messages go out, in order.  It models a
 * server that lives. */
#ifndef WEFT_RENDEZVOUS_ROUND_H
#define WEFT_RENDEZVOUS_ROUND_H

#include "base/base.h"

enum { WF_ROUND_MOST = 64 }; /* processes, as bits of a set */

/* ---- messages ---- */

enum wf_round_kind {
    WF_ROUND_ASK,     /* server: a round has begun */
    WF_ROUND_DECIDE,  /* server: the members and the step of the next generation */
    WF_ROUND_GO,      /* server: the generation begins */
    WF_ROUND_STAY,    /* server: the round changes nothing */
    WF_ROUND_END,     /* server: the job ends, because too few are left */
    WF_ROUND_EXPEL,   /* server: the receiver is not a member any more */
    WF_ROUND_LATE,    /* server: MEMBERS have not answered within the time limit */
    WF_ROUND_WANT,    /* member: its generation, in `round`, cannot go on */
    WF_ROUND_ANSWER,  /* member: its step */
    WF_ROUND_CONFIRM, /* member: it knows the decision */
    WF_ROUND_MOVED,   /* member: another server decides for it, without the receiver's process */
    WF_ROUND_INVITE,  /* server: ASK, but the generation can go on */
    WF_ROUND_GROW     /* member: its generation, in `round`, may take newcomers in */
};

struct wf_round_message {
    uint32_t kind;    /* enum wf_round_kind */
    uint64_t round;   /* of DECIDE and GO also the number of the next generation */
    uint64_t members; /* DECIDE, LATE: bit per process */
    uint64_t step;    /* ANSWER: that the member has completed; DECIDE: the largest of all */
};

typedef void wf_round_send(void *user, int32_t to, const struct wf_round_message *message);

/* ---- the server ---- */

enum wf_round_phase {
    WF_ROUND_RUNNING, /* no round */
    WF_ROUND_ASKED,   /* answers are missing */
    WF_ROUND_WAITING, /* fewer than RANKS_MIN are left: for newcomers */
    WF_ROUND_DECIDED, /* confirmations are missing */
    WF_ROUND_ENDED
};

struct wf_round_server {
    uint32_t phase; /* enum wf_round_phase */
    int32_t ranks_min, ranks_max;
    uint64_t generation, round;
    uint64_t members;             /* of the generation, also lost ones */
    uint64_t lost, lobby;         /* lobby: newcomers that wait for a place */
    uint64_t answered, confirmed; /* in this round */
    uint64_t decided, step;       /* members and step of the next generation */
    bool forced;                  /* the generation cannot go on, even without a loss */
    bool invited;                 /* the members were not asked, but invited */
};

/* A job of COUNT processes, 0 to COUNT - 1, in generation GENERATION.  It ends if fewer than
 * RANKS_MIN are left, and takes newcomers in while it has fewer than RANKS_MAX. */
void wf_round_open(struct wf_round_server *server, uint64_t generation, int32_t count,
                   int32_t ranks_min, int32_t ranks_max);
/* PROCESS is lost: it is proven that it does nothing any more. */
void wf_round_lose(struct wf_round_server *server, int32_t process, wf_round_send *send,
                   void *user);
/* PROCESS, which was never a member, waits for a place. */
void wf_round_join(struct wf_round_server *server, int32_t process, wf_round_send *send,
                   void *user);
/* The time for newcomers is over. */
void wf_round_give_up(struct wf_round_server *server, wf_round_send *send, void *user);
/* MESSAGE came from PROCESS.  A message of an older round is ignored; a lost process is told that
 * it is expelled. */
void wf_round_take(struct wf_round_server *server, int32_t process,
                   const struct wf_round_message *message, wf_round_send *send, void *user);

/* The rank of PROCESS in the generation of MEMBERS, which follows one of BEFORE processes.
 * Newcomers take the numbers of lost processes, both ascending, and further ones the numbers after
 * the last.  If there are too few newcomers, the processes above close up. */
int32_t wf_round_rank(uint64_t members, int32_t before, int32_t process);

/* ---- processes that are silent ---- */

/* What a server has heard of the processes that are connected to it. */
struct wf_round_silence {
    uint64_t present;
    uint64_t far;      /* of PRESENT: a network lies between them and the server */
    uint64_t doubtful; /* heard again after a silence, in which another server may have decided */
    const uint64_t *heard_ns; /* by process */
    uint64_t now_ns, limit_ns;
    bool may_be_cut; /* another server may decide for the processes that this one does not hear */
};

/* True if the server may be on the side of a cut that does not go on.  Of the two sides, one goes
 * on: that with more processes or, if both have the same number, that with the lowest process.  The
 * limit passes for one process after the other, so those that have been silent for half of it count
 * as beyond the cut.  So do doubtful ones. */
bool wf_round_is_cut_off(const struct wf_round_silence *silence);
/* The processes that have been silent for the limit, and are not members any more; none if the
 * server may be cut off. */
uint64_t wf_round_silent(const struct wf_round_silence *silence);

/* ---- a member ---- */

enum wf_member_phase {
    WF_MEMBER_RUNNING,
    WF_MEMBER_ASKED,    /* the program is to call weft_context_next */
    WF_MEMBER_ANSWERED, /* it has called */
    WF_MEMBER_CONFIRMED,
    WF_MEMBER_EXPELLED,
    WF_MEMBER_ENDED
};

struct wf_round_member {
    uint32_t phase; /* enum wf_member_phase */
    uint64_t generation, round;
    uint64_t members, step;  /* of the generation */
    uint64_t decided, begin; /* members and step that the last DECIDE named */
    bool called;             /* the program waits for the next generation */
    bool invited;            /* to this round */
};

/* A member of generation 1, or a newcomer (generation 0) that has called. */
void wf_round_enter(struct wf_round_member *member, uint64_t generation, uint64_t members);
/* The program asks for the next generation, having completed STEP.  Sends the answer if the server
 * has asked, and otherwise that the generation cannot go on. */
void wf_round_call(struct wf_round_member *member, uint64_t step, wf_round_send *send, void *user);
/* The same, but the generation can go on, if there are no newcomers. */
void wf_round_grow(struct wf_round_member *member, uint64_t step, wf_round_send *send, void *user);
/* MESSAGE came from the server. */
void wf_round_hear(struct wf_round_member *member, const struct wf_round_message *message,
                   wf_round_send *send, void *user);

#endif
