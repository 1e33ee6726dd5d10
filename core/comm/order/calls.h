/* calls.h - where a program makes its collectives, with WEFT_CHECK.
 *
 * A rank that skips a collective pairs its next one with the one that the others make.  If both are
 * equal, no comparison of the two finds it.  So each rank notes from where in the program each
 * collective was called, and with which memory.  When ranks are found to differ, or a rank leaves
 * the job early, the notes tell the first call in which they differed.  Ranks may call the same
 * collective from different places, so a difference alone is no error. */
#ifndef WEFT_COMM_CALLS_H
#define WEFT_COMM_CALLS_H

#include "rendezvous/rendezvous.h"
#include "weft/comm.h"

#include <stdatomic.h>

#define WF_CALLS_NOTED 64
#define WF_CALLS_PLACE 64 /* bytes of "program+0x1234" */

/* One collective.  The thread that calls writes; others read at any time. */
struct wf_call_note {
    _Atomic uint64_t number; /* of the collective, from 1; 0: none, or it is being written */
    _Atomic uintptr_t from;  /* the address to which its call returns; 0: it is a step of a plan */
    _Atomic uint64_t memory; /* from the first memory that the communicator used */
};

/* A rank that left the job, and how many collectives it had made. */
struct wf_left {
    uint64_t count;
    int32_t rank;
};

struct wf_calls {
    uintptr_t first;            /* memory of the first collective */
    uint64_t left;              /* ranks that left; under the context's lock */
    struct wf_left least, most; /* of them */
    struct wf_call_note recent[WF_CALLS_NOTED];
};

/* The collective of COMM that has just been counted returns to FROM. */
void wf_calls_note(weft_comm *comm, const weft_collective_args *args, const void *from);
/* Add the notes of COMM to OUT. */
void wf_calls_put(const weft_comm *comm, struct wf_text *out);
/* Compare COMM's notes with those of world rank RANK, which wf_calls_put has put, up to the LAST
 * collective.  Add the first difference to OUT as "; ..."; false: there is none. */
bool wf_calls_compare(const weft_comm *comm, weft_blob notes, int32_t rank, uint64_t last,
                      struct wf_text *out);

/* RANK has left the job after COUNT collectives of COMM.  The context's lock is held. */
void wf_calls_left(weft_comm *comm, int32_t rank, uint64_t count);
/* The context of COMM ends: with WEFT_CHECK, log a rank that left after more or fewer collectives.
 */
void wf_calls_warn(const weft_comm *comm);

#endif
