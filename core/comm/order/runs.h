/* runs.h - the order in which bound plans run on a communicator.
 *
 * The steps of different plans may run on different groups of the communicator's ranks.  Ranks that
 * run two such plans in different orders then wait in different groups, and no backend can compare
 * their calls.  So each rank counts the runs of every bound plan and notes their order.  If a run
 * seems to wait, the thread of the rendezvous client asks another rank for its counts.  If two
 * ranks have begun two runs in different orders, all ranks get WEFT_ERR_MISMATCH. */
#ifndef WEFT_COMM_RUNS_H
#define WEFT_COMM_RUNS_H

#include "rendezvous/rendezvous.h"
#include "weft/context.h"

#include <stdatomic.h>

#define WF_RUNS_TEXT 160
#define WF_STEP_TEXT 320 /* of a step that ranks take together */
/* Runs that are noted.  One note may be that of a run that has failed. */
#define WF_RUNS_RECENT 64
#define WF_RUNS_NOTES  (WF_RUNS_RECENT - 1) /* of them in an answer */

/* The runs of one bound plan on this rank. */
struct wf_plan_runs {
    struct wf_plan_runs *next; /* in the communicator's list; under the context's lock */
    uint32_t binding;
    uint64_t digest;
    _Atomic uint64_t begun;
    _Atomic uint64_t last;      /* which run of the communicator the last one is; 0: none yet */
    _Atomic uint32_t step;      /* that it is in, from 1 */
    _Atomic(weft_comm *) group; /* of that step; NULL: it has none */
    uint32_t record;            /* of the run in progress; 0: none */
    bool is_for_all;            /* every rank of the communicator runs it */
    const char *function;       /* that runs it */
    const char *name;           /* of the tensor or batch; NULL or "": none */
    char text[WF_RUNS_TEXT];    /* "f32[8] S(0) -> f32[8] R on 4" */
};

/* One run. */
struct wf_run_note {
    _Atomic uint32_t binding;
    _Atomic uint64_t number;      /* among the runs of its plan, from 1 */
    _Atomic uint64_t collectives; /* that the communicator had posted before it */
};

/* The runs of all plans bound to one communicator.  One writer, the thread that runs them: it sets
 * `begun`, then the plan's counts and the note, then `settled`.  A reader that finds both equal
 * before and after it reads the counts has read one consistent state. */
struct wf_runs {
    struct wf_plan_runs *list; /* plans that this rank runs; under the context's lock */
    _Atomic uint64_t begun, settled;
    _Atomic uint64_t done;  /* the last run that ended before its call returned */
    _Atomic uint64_t noted; /* runs so far; run N's note is recent[N % WF_RUNS_RECENT] */
    struct wf_run_note recent[WF_RUNS_RECENT];
    /* The client's thread has these: */
    uint64_t seen;    /* `begun`, when it looked last; also when it asked last */
    uint64_t next_ns; /* when it asks again, if nothing begins until then */
    uint64_t gap_ns;  /* between that and the question after it */
    uint64_t asked;   /* ranks since the last run began */
};

/* PLAN has COUNT runs, its last one is LAST (0: the run that begins), and NOTED runs are noted. */
static inline void wf_runs_count(struct wf_runs *runs, struct wf_plan_runs *plan, uint64_t count,
                                 uint64_t last, uint64_t noted)
{
    uint64_t number = atomic_load_explicit(&runs->settled, memory_order_relaxed) + 1;

    atomic_store_explicit(&plan->begun, count, memory_order_release);
    atomic_store_explicit(&plan->last, last != 0 ? last : number, memory_order_release);
    atomic_store_explicit(&runs->noted, noted, memory_order_release);
    atomic_store_explicit(&runs->settled, number, memory_order_release);
}

/* Readers of the counts retry from here until wf_runs_count. */
static inline void wf_runs_unsettle(struct wf_runs *runs)
{
    atomic_store_explicit(&runs->begun,
                          atomic_load_explicit(&runs->settled, memory_order_relaxed) + 1,
                          memory_order_relaxed);
}

/* A run of PLAN begins after COLLECTIVES collectives of the communicator. */
static inline void wf_runs_begin(struct wf_runs *runs, struct wf_plan_runs *plan,
                                 uint64_t collectives)
{
    uint64_t count = atomic_load_explicit(&plan->begun, memory_order_relaxed) + 1;
    uint64_t noted = atomic_load_explicit(&runs->noted, memory_order_relaxed);
    struct wf_run_note *note = &runs->recent[noted % WF_RUNS_RECENT];

    wf_runs_unsettle(runs);
    atomic_store_explicit(&note->binding, plan->binding, memory_order_release);
    atomic_store_explicit(&note->number, count, memory_order_release);
    atomic_store_explicit(&note->collectives, collectives, memory_order_release);
    wf_runs_count(runs, plan, count, 0, noted + 1);
}

/* The run of PLAN that has begun last failed on this rank, which may try again.  Before it, PLAN's
 * `last` was LAST. */
static inline void wf_runs_undo(struct wf_runs *runs, struct wf_plan_runs *plan, uint64_t last)
{
    wf_runs_unsettle(runs);
    wf_runs_count(runs, plan, atomic_load_explicit(&plan->begun, memory_order_relaxed) - 1, last,
                  atomic_load_explicit(&runs->noted, memory_order_relaxed) - 1);
}

/* The run of PLAN comes to step NUMBER, on GROUP. */
static inline void wf_runs_step(struct wf_plan_runs *plan, uint32_t number, weft_comm *group)
{
    atomic_store_explicit(&plan->step, number, memory_order_relaxed);
    atomic_store_explicit(&plan->group, group, memory_order_relaxed);
}

/* The run that has begun last is over. */
static inline void wf_runs_end(struct wf_runs *runs)
{
    atomic_store_explicit(&runs->done, atomic_load_explicit(&runs->begun, memory_order_relaxed),
                          memory_order_relaxed);
}

/* Put PLAN, whose binding, digest and text are set, into COMM's list, and take it out. */
void wf_runs_add(weft_comm *comm, struct wf_plan_runs *plan);
void wf_runs_remove(weft_comm *comm, struct wf_plan_runs *plan);

/* Add this rank's counts to OUT, the answer about COMM.  The context's lock is held. */
void wf_runs_report(weft_comm *comm, struct wf_text *out);

/* "work on a stream", with the plan whose run has begun last on COMM or on its owner.  STREAM is
 * the stream's name, or "". */
void wf_runs_describe_last(weft_comm *comm, const char *stream, char *out, size_t bytes);

/* Events of the client: see struct wf_client_events. */
bool wf_runs_watch(void *context, struct wf_question *out);
void wf_runs_receive(void *context, const struct wf_question *question,
                     const struct wf_gathered *answers);

#endif
