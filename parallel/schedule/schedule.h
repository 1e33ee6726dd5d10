/* schedule.h - the parts of a schedule: a draft of rows of actions becomes a valid schedule. */
#ifndef WEFT_SCHEDULE_SCHEDULE_H
#define WEFT_SCHEDULE_SCHEDULE_H

#include "base/base.h"
#include "weft/schedule.h"

#include <stdatomic.h>

struct weft_schedule {
    _Atomic(int64_t) references;
    char name[16];
    int32_t ranks, stages, microbatches;
    bool lowered, sharded;         /* sharded: it has UNSHARD actions */
    int32_t *rank_of;              /* by stage */
    size_t *first;                 /* by rank, and one more: where its actions begin */
    weft_schedule_action *actions; /* of all ranks, one after the other */
    uint64_t digest;
};

/* The rank of the stage before or behind STAGE that sends it a message; -1: none does. */
static inline int32_t wf_schedule_peer(const weft_schedule *s, int32_t stage, int32_t step)
{
    int32_t other = stage + step;

    if (other < 0 || other >= s->stages || s->rank_of[other] == s->rank_of[stage]) return -1;
    return s->rank_of[other];
}

static inline size_t wf_schedule_cell(const weft_schedule *s, const weft_schedule_action *a)
{
    return (size_t)a->stage * (size_t)s->microbatches + (size_t)a->microbatch;
}

/* Kinds that texts may have, but no schedule. */
enum {
    WF_WAIT_SEND_F = WEFT_SCHEDULE_ACTION_KINDS,
    WF_WAIT_SEND_B,
    WF_WAIT_REDUCE_GRAD,
    WF_TEXT_KINDS
};

static inline bool wf_action_computes(const weft_schedule_action *a)
{
    return a->kind <= WEFT_SCHEDULE_ACTION_W;
}

/* A rank that runs a pair in order sends the first result before the second action begins.  The
 * index of that send, if ACTIONS[INDEX] is the first of a pair and no other send comes before it;
 * else 0. */
size_t wf_send_between(const weft_schedule_action *actions, size_t count, size_t index);

/* ---- draft.c: rows of actions that grow ---- */

struct wf_row {
    weft_schedule_action *actions;
    size_t count, room;
};

/* Running out of memory sets `failed`, and more than WEFT_SCHEDULE_ACTIONS actions set `full`; both
 * drop later actions. */
struct wf_draft {
    int32_t ranks;
    struct wf_row *rows;
    size_t count; /* of all rows */
    bool failed, full;
};

weft_status wf_draft_begin(int32_t ranks, struct wf_draft *out) WF_NODISCARD;
/* Add a row; false: memory ran out. */
bool wf_draft_grow(struct wf_draft *draft);
void wf_draft_add(struct wf_draft *draft, int32_t rank, weft_schedule_action action);
void wf_draft_put(struct wf_draft *draft, int32_t rank, uint8_t kind, int32_t stage,
                  int32_t microbatch);
/* WEFT_ERR_NO_MEMORY or WEFT_ERR_INVALID: DRAFT has dropped actions. */
weft_status wf_draft_status(const struct wf_draft *draft) WF_NODISCARD;
void wf_draft_free(struct wf_draft *draft);
/* Make the schedule NAME of DRAFT, which is freed in any case. */
weft_status wf_draft_finish(struct wf_draft *draft, const char *name,
                            weft_schedule **out) WF_NODISCARD;

/* ---- names.c ---- */

/* As weft_schedule_action_name, for the kinds of texts too. */
const char *wf_text_kind_name(int kind);

/* Append "2F0"; with NEXT, which may be NULL, "(0F5;7B3)OVERLAP_F_B" if the two belong together. */
void wf_action_add(struct wf_text *out, const weft_schedule_action *action,
                   const weft_schedule_action *next);

/* ---- loops.c and vshape.c: the rows of known schedules ---- */

struct wf_shape {
    int32_t ranks, chunks, microbatches;
};

typedef void wf_generator(const struct wf_shape *shape, int32_t rank, struct wf_draft *out);
wf_generator wf_gpipe, wf_1f1b, wf_looped_bfs, wf_interleaved, wf_zb1p, wf_zbv, wf_dualpipev;

/* ---- valid.c ---- */

/* Find the ranks of stages, and the first violation.  Drops waits. */
weft_status wf_schedule_validate(weft_schedule *schedule) WF_NODISCARD;
/* WEFT_ERR_INVALID "rank 2, action 5 (3B1): ..." about action INDEX of all actions. */
weft_status wf_schedule_refuse(const weft_schedule *schedule, size_t index, const char *format, ...)
    WF_PRINTF(3, 4);

/* ---- waits.c ---- */

void wf_waits_drop(weft_schedule *schedule);
/* Append the waits that stand behind ACTION, each after a comma; at the end of a row, those that
 * are left. */
void wf_waits_add(struct wf_text *out, const weft_schedule *schedule,
                  const weft_schedule_action *action);
void wf_waits_end(struct wf_text *out, const weft_schedule *schedule, int32_t rank);

/* ---- messages.c ---- */

/* Sends and receives of a pair of ranks have the same order. */
weft_status wf_messages_validate(const weft_schedule *schedule) WF_NODISCARD;

/* ---- clockwork.c: ranks take their actions in order ---- */

struct wf_spans {
    uint64_t *begin, *end; /* by action */
    uint64_t *exposed;     /* by rank */
};

/* Run SCHEDULE with COSTS by stage (NULL: units) and write the times to SPANS, which may be NULL.
 * WEFT_ERR_INVALID: the ranks wait for each other. */
weft_status wf_clockwork(const weft_schedule *schedule, const weft_schedule_stage_cost *costs,
                         const struct wf_spans *spans) WF_NODISCARD;

/* ---- sends.c ---- */

/* Add sends and receives to the rows of DRAFT, which are those of SCHEDULE and may have UNSHARD,
 * RESHARD and REDUCE_GRAD actions too; the result is in OUT, which the caller frees. */
weft_status wf_add_sends(const weft_schedule *schedule, const struct wf_draft *draft,
                         struct wf_draft *out) WF_NODISCARD;
/* Move the receives of all rows of DRAFT to the actions that need them; the result is in OUT. */
weft_status wf_defer_receives(const weft_schedule *schedule, const struct wf_draft *draft,
                              struct wf_draft *out) WF_NODISCARD;

#endif
