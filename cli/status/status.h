/* status.h - what the ranks of this host do, from their recorders.
 *
 *     model.c  recorders become jobs, communicators and positions
 *     waits.c  which rank waits for which
 *     differ.c the first call that ranks made differently
 *     text.c   as text
 *     json.c   as JSON
 *     file.c   the records of one recorder
 *
 * A position is where a rank is on a communicator.  Ranks are read one after another while they
 * run, so they are read twice: a rank that has moved in between does not wait. */
#ifndef WEFT_CLI_STATUS_H
#define WEFT_CLI_STATUS_H

#include "common/cli.h"
#include "weft/trace.h"
#include "weft/recorder.h"

/* What distinguishes a rank from the others of a communicator, the worst first. */
enum status_mark {
    STATUS_ENDED,   /* the rank has ended without leaving the job */
    STATUS_STOPPED, /* by a signal or a debugger */
    STATUS_MISSING, /* it does not have the communicator */
    STATUS_BEHIND,  /* others have begun later collectives */
    STATUS_OTHER,   /* it is in another operation with the same number */
    STATUS_NONE
};

enum { STATUS_PEERS = 16 };

struct status_rank {
    const weft_recorder *recorder;
    weft_recorder_info info;
    bool moved;                /* it has begun an operation between the two readings */
    const weft_record *newest; /* operation, on any communicator; NULL: none */
};

/* A rank on a communicator. */
struct status_position {
    struct status_rank *rank;
    bool has_comm;
    weft_status failed;          /* of the communicator on this rank */
    const weft_record *begun;    /* newest operation; NULL: none in the recorder */
    const weft_record *finished; /* newest that is complete; NULL likewise */
    const weft_record *pending;  /* newest collective that has not ended, and if the job has ended
                                    also one that failed; NULL: none */
    uint64_t sequence;           /* of the newest collective; 0: none in the recorder */
    const weft_record *peers[STATUS_PEERS]; /* messages that are as PENDING may be */
    int32_t peer_count;
    enum status_mark mark;
    bool in_group;
};

/* Ranks of a communicator that are in the same state. */
struct status_group {
    const struct status_position *first; /* its operation is that of all */
    bool *members;                       /* of all ranks of the job */
    uint64_t since_ns; /* how long the longest is in it, or how long ago it ended */
};

struct status_comm {
    uint64_t number;
    const char *name, *ranks, *carrier;
    int32_t size;
    int32_t absent;                    /* ranks whose recorders are not on this host */
    struct status_position *positions; /* in the order of ranks */
    int32_t position_count;
    struct status_group *groups; /* by mark, then by first rank */
    int32_t group_count;
    bool idle; /* no rank is in an operation on it, none is conspicuous, and it has not failed */
};

/* A rank that waits for others of which no recorder is here. */
struct status_elsewhere {
    const struct status_comm *comm; /* on which it waits; NULL: it does not */
    int32_t rank;                   /* world rank that it waits for; -1: one or several of COMM */
};

/* What a rank called where ranks differ. */
enum status_caller {
    STATUS_NO_CALL, /* nothing, as far as its recorder tells */
    STATUS_USUAL,   /* the same as most */
    STATUS_DIFFERENT,
    STATUS_THIRD /* neither of the two */
};

/* The first collective of a communicator in which ranks differ, or two calls in which ranks wait
 * for each other. */
struct status_difference {
    const struct status_comm *comm;         /* of the usual call; NULL: the recorders have none */
    uint64_t sequence;                      /* of the collective; 0: the calls are of two kinds */
    const struct status_rank *rank, *other; /* the first with the usual call, and with the other */
    const weft_record *record, *other_record;
    enum status_caller *callers; /* of each rank of the job */
    bool is_known;               /* more than half of the ranks made the usual call */
};

struct status_job {
    uint64_t id;
    int32_t size, alive; /* ALIVE 0: it has ended; its last operations tell who waited for whom */
    uint64_t begun_ns, read_ns;
    struct status_rank *ranks; /* in order */
    int32_t rank_count;
    struct status_comm *comms;
    size_t comm_count;
    /* waits[w * rank_count + b]: the communicator on which rank index W waits for B, counted from
     * 1; 0: it does not. */
    uint32_t *waits;
    struct status_elsewhere *elsewhere; /* of each rank */
    struct status_difference difference;
};

struct status {
    weft_recorders *recorders;
    struct status_job *jobs; /* live ones first */
    size_t count;
};

/* Read the recorders of this host.  The caller frees *OUT. */
weft_status status_create(struct status *out) WF_NODISCARD;
void status_free(struct status *status);

/* How long ago NS was at READ_NS; 0 for 0. */
uint64_t status_since(uint64_t read_ns, uint64_t ns);
/* True if RECORD is an operation of all ranks of its communicator. */
bool status_is_collective(const weft_record *record);
bool status_is_message(const weft_record *record);
/* True if ranks create or release something together.  They count these apart from collectives. */
bool status_is_creation(const weft_record *record);
/* True if the list of world ranks "0-3,8" has RANK. */
bool status_has_rank(const char *list, int32_t rank);

/* Set the marks of all positions, job->waits and job->elsewhere. */
weft_status status_find_waits(struct status_job *job) WF_NODISCARD;
/* Put the positions of COMM into groups. */
weft_status status_group(const struct status_job *job, struct status_comm *comm) WF_NODISCARD;
/* Set the marks of idle communicators.  The one with the newest operation is not idle. */
void status_find_idle(struct status_job *job);
/* True if rank index BLAMED holds up others and does not itself wait.  WAITING, of rank_count, is
 * set to those that wait for it, also by way of others. */
bool status_is_cause(const struct status_job *job, int32_t blamed, bool *waiting);
/* Add to WAITING, of rank_count, the ranks that wait for those in it, also by way of others. */
void status_add_waiting(const struct status_job *job, bool *waiting);
/* Set WAITING, of rank_count, to the ranks that wait for others.  True if there are any. */
bool status_any_wait(const struct status_job *job, bool *waiting);
/* True if a rank waits for another, or has not ended an operation. */
bool status_has_waits(const struct status_job *job);
/* True if RECORD failed because of what this rank or another gave to it, not for want of a rank. */
bool status_was_refused(const weft_record *record);
/* Set job->difference to the first collective that ranks called differently.  The first
 * communicator that has such a call decides. */
weft_status status_compare_calls(struct status_job *job) WF_NODISCARD;
/* Set job->difference, if no collective differs, to two calls in which ranks wait for each other.
 * A job that runs and does not wait has no difference. */
void status_find_difference(struct status_job *job);
/* True if the job has ended and its first difference shows that no other rank waited because of
 * RANK. */
bool status_is_cleared(const struct status_job *job, const struct status_rank *rank);
/* True if RECORD is of an operation that has a reduction. */
bool status_reduces(const weft_record *record);
/* Set *OUT to the `count` argument of the collective RECORD on a communicator of SIZE ranks.  False
 * if the operation has none. */
bool status_call_count(const weft_record *record, int32_t size, uint64_t *out);
/* The name of a position's mark: "ended", "stopped", "behind" ...; NULL for STATUS_NONE. */
const char *status_mark_name(const struct status_position *position);

/* "ranks 0-5,7" of the indices I of JOB for which CHOSEN[I]. */
void status_add_ranks(struct wf_text *out, const struct status_job *job, const bool *chosen);
/* "3,5-7": the world ranks of COMM whose recorders are not on this host. */
void status_add_absent(struct wf_text *out, const struct status_comm *comm);
/* IN_FULL: not only a line.  ALL: idle communicators too. */
void status_add_text(struct wf_text *out, const struct status_job *job, bool in_full, bool all);
void status_add_json(struct wf_json *json, const struct status_job *job);
/* RECORD of RECORDER, which was read at READ_NS; NULL: none. */
void status_add_record(struct wf_json *json, const char *key, const weft_recorder *recorder,
                       uint64_t read_ns, const weft_record *record);

/* Print the recorder in file PATH.  Returns the exit code. */
int status_print_file(const struct cli_command *command, const char *path, bool as_json);

#endif
