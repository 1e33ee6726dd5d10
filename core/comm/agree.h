/* agree.h - one step that all ranks of a list take together.
 *
 * Ranks that leave a step because of its time limit no longer agree which step is the next.  The
 * communicator that the step is for then fails on all its ranks, so that no later call of one rank
 * pairs with an earlier call of another.  A step of a failed communicator returns the cause, also
 * if the communicator fails during the step; the other ranks get the cause, if only this rank
 * knows it. */
#ifndef WEFT_COMM_AGREE_H
#define WEFT_COMM_AGREE_H

#include "rendezvous/rendezvous.h"
#include "weft/comm.h"

/* Serials of what a rank does alone: its rank plus one above this bit, a counter below. */
#define WF_SOLO_SHIFT 40

/* A step that RANKS take together. */
struct wf_agreement {
    weft_comm *comm;      /* fails on all its ranks if the time limit passes; NULL: none yet */
    uint64_t number;      /* of the communicator that is used or made; 0: none yet */
    const int32_t *ranks; /* world ranks */
    int32_t count;
    const char *label;
    const char *about; /* this rank's part, for descriptions; NULL: nothing */
    int64_t timeout_ns;
    bool is_long;      /* the time limit is for ranks that make no progress (wf_agree_note) */
    bool despite_peer; /* COMM may have failed with WEFT_ERR_PEER: the remaining ranks go on */
};

/* Take a step together: STATUS is how it went here (then the thread's last error says why not).
 * All get OK and every rank's blob, or the same error. */
weft_status wf_agree(weft_context *context, const struct wf_agreement *agreement,
                     weft_status status, weft_blob blob, struct wf_gathered *out) WF_NODISCARD;
/* This rank makes progress towards the next step like AGREEMENT, which is long: the ranks that wait
 * for it in that step continue to wait.  Call it at most WF_NOTES times within the time limit.
 * Does not wait.  [any thread] */
void wf_agree_note(weft_context *context, const struct wf_agreement *agreement);
/* A step of all ranks of COMM, within its time limit. */
struct wf_agreement wf_agreement_of(weft_comm *comm, const char *label);
/* Take that step. */
weft_status wf_comm_agree(weft_comm *comm, const char *label, weft_status status, weft_blob blob,
                          struct wf_gathered *out) WF_NODISCARD;

/* fault.c: FUNCTION has failed on this rank alone, with STATUS and the thread's last error: COMM
 * fails on all ranks, so that none waits for this one.  The others get WEFT_ERR_ABORTED, or a
 * mismatch as this one.  Returns the cause; if COMM has failed before, STATUS. */
weft_status wf_comm_give_up(weft_comm *comm, weft_status status, const char *function);

#endif
