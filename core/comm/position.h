/* position.h - how far each rank is on a communicator, for messages about a wait that failed. */
#ifndef WEFT_COMM_POSITION_H
#define WEFT_COMM_POSITION_H

#include "comm.h"

/* Write this rank's answer about COMM to rank ASKER of the world to OUT.  The context's lock is
 * held. */
void wf_position_put(weft_comm *comm, int32_t asker, struct wf_text *out);
/* Write this rank's answer to an ASK. */
void wf_position_report(void *context, uint64_t comm, int32_t asker, struct wf_text *out);
/* The answers of ranks to a question about their positions.  A list without ranks is empty. */
struct wf_answers {
    bool failed;           /* nobody could be asked */
    struct wf_text lines;  /* a line per rank */
    struct wf_text silent; /* ranks of the job that do not answer */
    struct wf_text behind; /* ranks of the communicator that have not reached this position */
    weft_status shared;    /* an error of a rank of the communicator that is the cause on all ranks:
                              WEFT_ERR_TIMEOUT or _MISMATCH; WEFT_OK: none */
    struct wf_text why;    /* the rank and the text of `shared` */
    struct wf_text differ; /* "; ..." with WEFT_CHECK: the first collective that ranks call from
                              different places */
    int32_t suspect;       /* a world rank that others wait for: it does not answer, or is behind,
                              and does not wait itself if that is known; -1: none */
    bool suspect_waits;    /* it waits in another communicator */
};

/* Ask the ranks of COMM, and the other ranks of the job, for which they may wait. */
void wf_position_ask(weft_comm *comm, struct wf_answers *out);
void wf_answers_free(struct wf_answers *answers);
/* To the log: this rank's recent operations on COMM, and every rank's position. */
void wf_position_log(weft_comm *comm);
/* The same with the LINES that wf_position_ask has given. */
void wf_position_log_answers(weft_comm *comm, const struct wf_text *lines);

#endif
