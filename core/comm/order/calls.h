/* calls.h - where a program makes its collectives, with WEFT_CHECK.
 *
 * A rank that skips a collective pairs its next one with the one that the others make.  If both are
 * equal, no comparison of the two finds it.  So each rank notes from where in the program each
 * collective was called, and with which memory.  When ranks are found to differ, or a rank leaves
 * the job early, the notes tell the first call in which they differed.  Ranks may call the same
 * collective from different places, so a difference alone is no error.  A call that only some ranks
 * refuse has the same effect as one that they skip, so refused calls are counted. */
#ifndef WEFT_COMM_CALLS_H
#define WEFT_COMM_CALLS_H

#include "rendezvous/rendezvous.h"
#include "weft/comm.h"

#include <stdatomic.h>

#define WF_CALLS_NOTED 64
#define WF_CALLS_PLACE 64 /* bytes of "program+0x1234" */
#define WF_CALLS_WHY   256

/* One collective.  The thread that calls writes; others read at any time. */
struct wf_call_note {
    _Atomic uint64_t number; /* of the collective, from 1; 0: none, or it is being written */
    _Atomic uintptr_t from;  /* the address to which its call returns; 0: it is a step of a plan */
    _Atomic uint64_t memory; /* from the first memory that the communicator used */
};

/* Calls that were refused.  The fields after COUNT describe the first one; they are set before
 * COUNT. */
struct wf_refused {
    _Atomic uint64_t count;
    uint64_t number; /* of the collective that it would have been */
    uintptr_t from;
    char why[WF_CALLS_WHY];
};

/* A rank that left the job, how many collectives it had made, and where the last one. */
struct wf_left {
    uint64_t count;
    int32_t rank;
    char place[WF_CALLS_PLACE]; /* "": it is not known */
};

struct wf_calls {
    uintptr_t first;            /* memory of the first collective */
    uint64_t left;              /* ranks that left; under the context's lock */
    struct wf_left least, most; /* of them */
    struct wf_refused refused;
    struct wf_call_note recent[WF_CALLS_NOTED];
};

/* The next collective of COMM, which is not counted yet, returns to FROM. */
void wf_calls_note(weft_comm *comm, const weft_collective_args *args, const void *from);
/* That collective was refused, for the reason in weft_last_error.  It is noted, unless it is a step
 * of a plan. */
void wf_calls_refuse(weft_comm *comm);
/* Add where this rank makes collective NUMBER of COMM to OUT, as "; ...", if that is noted. */
void wf_calls_place(const weft_comm *comm, uint64_t number, struct wf_text *out);
/* Add the notes of COMM to OUT. */
void wf_calls_put(const weft_comm *comm, struct wf_text *out);
/* Compare COMM's notes with those of world rank RANK, which wf_calls_put has put, up to the LAST
 * collective.  Add calls that only one of the two has refused, and the first difference, to OUT as
 * "; ..."; false: there are none. */
bool wf_calls_compare(const weft_comm *comm, weft_blob notes, int32_t rank, uint64_t last,
                      struct wf_text *out);

/* RANK, with NOTES, has left the job after COUNT collectives of COMM.  The context's lock is held.
 */
void wf_calls_left(weft_comm *comm, int32_t rank, uint64_t count, weft_blob notes);
/* The context of COMM ends: with WEFT_CHECK, log a rank that left after more or fewer collectives.
 */
void wf_calls_warn(const weft_comm *comm);

#endif
