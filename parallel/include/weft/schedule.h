/* schedule.h - the order of work in a pipeline: which rank runs which stage for which microbatch.
 *
 * Library: libweft_parallel (CMake weft::parallel, pkg-config weft-parallel).
 *
 *     weft_schedule *schedule;
 *     if (weft_schedule_create("zbv", 4, 0, 16, &schedule) != WEFT_OK) fail(weft_last_error());
 *
 * A model is cut into stages, and a batch into microbatches.  A schedule has a list of actions for
 * each rank; docs/training/pipeline.md describes them.  Every schedule object is valid: no action
 * is missing, none comes before what it needs, and the ranks do not wait for each other in a
 * circle. Schedules and timelines are immutable and shared.  Nothing here communicates, and equal
 * arguments give equal results on all ranks.  All functions here may be called from any thread. */
#ifndef WEFT_SCHEDULE_H
#define WEFT_SCHEDULE_H

#include "weft/status.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Kinds of actions.  F, B, I and W are compute actions; they, sends and receives have a
 * microbatch. */
#define WEFT_SCHEDULE_ACTION_LIST(X)                                                               \
    X(F, 0, "F")             /* forward */                                                         \
    X(B, 1, "B")             /* backward: gradients of inputs and of weights */                    \
    X(I, 2, "I")             /* backward: gradients of inputs only */                              \
    X(W, 3, "W")             /* backward: gradients of weights only, after I */                    \
    X(SEND_F, 4, "SEND_F")   /* send the outputs of F to the next stage */                         \
    X(RECV_F, 5, "RECV_F")   /* receive them */                                                    \
    X(SEND_B, 6, "SEND_B")   /* send the gradients of inputs to the stage before */                \
    X(RECV_B, 7, "RECV_B")   /* receive them */                                                    \
    X(UNSHARD, 8, "UNSHARD") /* gather the stage's parameters */                                   \
    X(RESHARD, 9, "RESHARD") /* free the gathered parameters */                                    \
    /* reduce the stage's gradients over data-parallel ranks */                                    \
    X(REDUCE_GRADIENT, 10, "REDUCE_GRAD")

#define WEFT_SCHEDULE_ACTION_ENUM(name, value, text) WEFT_SCHEDULE_ACTION_##name = value,
enum weft_schedule_action_kind {
    WEFT_SCHEDULE_ACTION_LIST(WEFT_SCHEDULE_ACTION_ENUM) WEFT_SCHEDULE_ACTION_KINDS
};
#undef WEFT_SCHEDULE_ACTION_ENUM

/* The name of KIND, such as "SEND_F"; NULL if it is not a kind. */
WEFT_API const char *weft_schedule_action_name(enum weft_schedule_action_kind kind);

typedef struct weft_schedule_action {
    int32_t stage;
    int32_t microbatch; /* -1 for UNSHARD, RESHARD and REDUCE_GRAD */
    uint8_t kind;       /* enum weft_schedule_action_kind */
    /* The rank may run this action and the next one together, as OVERLAP_F_B; else in order. */
    bool with_next;
} weft_schedule_action;

typedef struct weft_schedule weft_schedule;

/* The most that schedules can have. */
#define WEFT_SCHEDULE_RANKS   4096
#define WEFT_SCHEDULE_ACTIONS (INT64_C(1) << 25) /* of all ranks */

/* The name of the INDEX-th schedule that weft_schedule_create knows; NULL: there are fewer. */
WEFT_API const char *weft_schedule_known(size_t index);

/* Create the schedule NAME for RANKS ranks, CHUNKS stages on each, and MICROBATCHES microbatches.
 * CHUNKS 0 is 1 for "gpipe" and "1f1b", and 2 for the others.  The caller releases *OUT.
 * WEFT_ERR_NOT_FOUND: the error text lists the names.  WEFT_ERR_INVALID: the schedule does not
 * exist for these numbers; or it would have more actions than WEFT_SCHEDULE_ACTIONS, its sends,
 * receives and REDUCE_GRAD included. */
WEFT_API WEFT_NODISCARD weft_status weft_schedule_create(const char *name, int32_t ranks,
                                                         int32_t chunks, int32_t microbatches,
                                                         weft_schedule **out);

/* Create the schedule that TEXT describes, in the CSV format of PyTorch: one line per rank, actions
 * between commas, empty fields are ignored.  It may have compute actions only, or all actions.
 * WAIT_SEND_F, WAIT_SEND_B and WAIT_REDUCE_GRAD are checked and dropped: a pipeline waits by
 * itself.  Its name is "csv".  The caller releases *OUT.  WEFT_ERR_PARSE: TEXT is malformed; the
 * error text gives the position.  WEFT_ERR_INVALID: the schedule is not valid, and the error text
 * names the first violation; or TEXT has more than WEFT_SCHEDULE_ACTIONS actions, waits included.
 */
WEFT_API WEFT_NODISCARD weft_status weft_schedule_parse(const char *text, weft_schedule **out);

enum weft_schedule_print_flags {
    /* A WAIT_SEND_F, WAIT_SEND_B or WAIT_REDUCE_GRAD for each send and each REDUCE_GRAD, which
     * PyTorch 2.15 needs in a text with all actions, and earlier versions do not know. */
    WEFT_SCHEDULE_PRINT_WAITS = 1 << 0
};

/* Write SCHEDULE as CSV text (weft_schedule_parse) to TEXT.  FLAGS (enum
 * weft_schedule_print_flags) add what it does not have itself.  TEXT, SIZE and NEEDED as in
 * weft_mesh_print (mesh.h). */
WEFT_API WEFT_NODISCARD weft_status weft_schedule_print(const weft_schedule *schedule,
                                                        uint32_t flags, char *text, size_t size,
                                                        size_t *needed);

/* Write ACTION, such as "2F0", or "(0F5;7B3)OVERLAP_F_B" with the action NEXT if ACTION->with_next
 * is set, to TEXT.  NEXT may be NULL.  TEXT, SIZE and NEEDED as in weft_mesh_print. */
WEFT_API WEFT_NODISCARD weft_status weft_schedule_action_print(const weft_schedule_action *action,
                                                               const weft_schedule_action *next,
                                                               char *text, size_t size,
                                                               size_t *needed);

/* Add a reference and return SCHEDULE; NULL for NULL. */
WEFT_API weft_schedule *weft_schedule_retain(const weft_schedule *schedule);
/* Drop a reference and set *SCHEDULE to NULL.  Accepts NULL and a pointer to NULL. */
WEFT_API void weft_schedule_release(weft_schedule **schedule);

/* ---- properties ---------------------------------------------------------------- */

typedef struct weft_schedule_info {
    size_t struct_size;
    const char *name; /* valid as long as the schedule */
    int32_t ranks, stages, microbatches;
    size_t actions;  /* of all ranks */
    uint64_t digest; /* 64-bit hash of the actions: equal schedules have equal digests */
    bool lowered;    /* it has sends and receives, or no stage needs them */
} weft_schedule_info;

/* Copy the properties of SCHEDULE to *OUT, whose struct_size the caller sets. */
WEFT_API WEFT_NODISCARD weft_status weft_schedule_get(const weft_schedule *schedule,
                                                      weft_schedule_info *out);

/* The rank that runs STAGE; -1 if there is no such stage. */
WEFT_API int32_t weft_schedule_rank_of(const weft_schedule *schedule, int32_t stage);

/* Set *OUT to the actions of RANK, in order, and *COUNT to their number.  Valid as long as
 * SCHEDULE.  ACTION_SIZE is sizeof(weft_schedule_action).  WEFT_ERR_INVALID: there is no such rank,
 * or ACTION_SIZE is another size. */
WEFT_API WEFT_NODISCARD weft_status weft_schedule_actions(const weft_schedule *schedule,
                                                          int32_t rank, size_t *count,
                                                          const weft_schedule_action **out,
                                                          size_t action_size);

/* ---- lowering ------------------------------------------------------------------ */

enum weft_lower {
    WEFT_LOWER_SHARDED = 1 << 0, /* add UNSHARD and RESHARD: the next 3 stages are gathered */
    WEFT_LOWER_REDUCE = 1 << 1,  /* add REDUCE_GRAD after the last backward of each stage */
    WEFT_LOWER_MERGE = 1 << 2,   /* I, and W of the same microbatch behind it, become B */
    WEFT_LOWER_LATE = 1 << 3     /* a receive stands right before the action that needs it */
};

/* Create the schedule that a rank carries out: SCHEDULE, which has compute actions only, with sends
 * and receives, and what FLAGS (enum weft_lower) add.  Stages on one rank exchange no messages.
 * Messages between two ranks are received in the order in which they are sent.  The caller releases
 * *OUT.  WEFT_ERR_INVALID: SCHEDULE has other actions already, or the result would have more than
 * WEFT_SCHEDULE_ACTIONS actions. */
WEFT_API WEFT_NODISCARD weft_status weft_schedule_lower(const weft_schedule *schedule,
                                                        uint32_t flags, weft_schedule **out);

/* ---- timelines ----------------------------------------------------------------- */

/* The times of the actions of one stage, in a unit of the caller's choice. */
typedef struct weft_schedule_stage_cost {
    uint64_t forward, input, weight; /* F, I and W; B takes as long as I and W */
    uint64_t send_forward;           /* from F to F of the next stage, if on another rank */
    uint64_t send_backward;          /* from B or I to B or I of the stage before */
    uint64_t unshard, reduce;
    uint64_t activation; /* memory that a microbatch holds from F to B or W */
    uint64_t parameters; /* memory of gathered parameters, from UNSHARD to RESHARD */
} weft_schedule_stage_cost;

typedef struct weft_timeline_options {
    size_t struct_size;
    /* One per stage.  NULL: F, I, W and an activation are 1 each, all else is 0. [stage_count
     * entries] */
    size_t stage_count; /* of the schedule; 0 if STAGES is NULL */
    const weft_schedule_stage_cost *stages;
    size_t stage_size; /* sizeof(weft_schedule_stage_cost) if STAGES is set */
    /* The most memory that a rank may hold; 0: no limit. */
    uint64_t memory_limit;
} weft_timeline_options;

/* The times at which ranks carry out a schedule.  Each rank runs its compute actions in order, one
 * at a time, as soon as their inputs are there.  Messages take no time of ranks.  Collectives
 * (UNSHARD, REDUCE_GRAD) of a rank run one after the other beside its compute. */
typedef struct weft_timeline weft_timeline;

/* Create the timeline of SCHEDULE.  OPTIONS may be NULL.  The caller releases *OUT.
 * WEFT_ERR_INVALID: the options have costs of another number of stages; a rank would hold more than
 * the memory limit, and the error text names the rank and its action; or times exceed 2^62. */
WEFT_API WEFT_NODISCARD weft_status weft_timeline_create(const weft_schedule *schedule,
                                                         const weft_timeline_options *options,
                                                         weft_timeline **out);

/* Free TIMELINE and set it to NULL.  Accepts NULL and a pointer to NULL. */
WEFT_API void weft_timeline_release(weft_timeline **timeline);

typedef struct weft_timeline_info {
    size_t struct_size;
    uint64_t makespan; /* from the begin of the first action to the end of the last one */
    uint64_t busy;     /* time of compute actions, of all ranks */
    double idle_share; /* 1 - busy / (makespan * ranks) */
    uint64_t peak;     /* memory of the rank that holds most */
} weft_timeline_info;

/* Copy the figures of TIMELINE to *OUT, whose struct_size the caller sets. */
WEFT_API WEFT_NODISCARD weft_status weft_timeline_get(const weft_timeline *timeline,
                                                      weft_timeline_info *out);

typedef struct weft_timeline_rank_info {
    size_t struct_size;
    uint64_t busy;    /* time of compute actions */
    uint64_t end;     /* of the last action */
    uint64_t exposed; /* time in which the rank waits for its collectives only */
    uint64_t peak;    /* memory */
} weft_timeline_rank_info;

/* Copy the figures of RANK to *OUT, whose struct_size the caller sets.  WEFT_ERR_INVALID: there is
 * no such rank. */
WEFT_API WEFT_NODISCARD weft_status weft_timeline_rank_get(const weft_timeline *timeline,
                                                           int32_t rank,
                                                           weft_timeline_rank_info *out);

/* Set *BEGIN and *END to the times of action INDEX of RANK, as in weft_schedule_actions.  Those of
 * a send or receive are the times at which it is issued.  WEFT_ERR_INVALID: there is no such
 * action. */
WEFT_API WEFT_NODISCARD weft_status weft_timeline_span(const weft_timeline *timeline, int32_t rank,
                                                       size_t index, uint64_t *begin,
                                                       uint64_t *end);

/* The schedule of TIMELINE.  Valid as long as TIMELINE; NULL for NULL. */
WEFT_API const weft_schedule *weft_timeline_schedule(const weft_timeline *timeline);

/* Write the schedule, its times and its figures as JSON (docs/cli.md, `weft schedule`) to TEXT.
 * TEXT, SIZE and NEEDED as in weft_mesh_print. */
WEFT_API WEFT_NODISCARD weft_status weft_timeline_json_print(const weft_timeline *timeline,
                                                             char *text, size_t size,
                                                             size_t *needed);

#ifdef __cplusplus
}
#endif
#endif
