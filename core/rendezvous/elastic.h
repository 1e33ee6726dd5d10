/* elastic.h - what the files of an elastic job's rendezvous server share. */
#ifndef WEFT_RENDEZVOUS_ELASTIC_H
#define WEFT_RENDEZVOUS_ELASTIC_H

#include "round.h"
#include "server.h"

struct wf_elastic {
    struct wf_round_server round;
    struct wf_elastic_terms terms;
    struct wf_text choices; /* the members' settings */
    /* Processes are the ranks, and then the newcomers. */
    uint64_t heard_ns[WF_ROUND_MOST];
    uint64_t questions[WF_ROUND_MOST]; /* the beat that a process has not answered since it was
                                          silent, or 0 */
    struct wf_connection *newcomers[WF_ROUND_MOST];
    uint64_t wait_ns; /* since when the job waits for newcomers, or 0 */
    uint64_t last_question;
    uint64_t checked_ns;              /* when silence was last looked for */
    uint64_t waited_round, waited_ns; /* since when ranks wait for others in that round */
    uint64_t opened_round, number;    /* what the successor was opened for, and its address */
    int32_t serving_rank;             /* of the successor */
    int32_t now[WF_ROUND_MOST];       /* a process's number in the successor, or -1 */
    bool is_over;                     /* all members have left */
    uint64_t apart; /* ranks whose connections closed when they may have been beyond a cut */
    bool gave_way;  /* the other server has decided */
};

static inline bool wf_is_member(uint64_t members, int32_t rank)
{
    return rank >= 0 && (members >> rank & 1) != 0;
}

#endif
