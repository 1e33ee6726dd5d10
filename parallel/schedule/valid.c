/* valid.c - what every schedule fulfils.  The first violation is reported. */
#include "schedule.h"

#include <string.h>

/* The actions that a microbatch has had in a stage: bit k is an action of kind k. */
enum {
    DID_F = 1 << WEFT_SCHEDULE_ACTION_F,
    DID_B = 1 << WEFT_SCHEDULE_ACTION_B,
    DID_I = 1 << WEFT_SCHEDULE_ACTION_I,
    DID_W = 1 << WEFT_SCHEDULE_ACTION_W,
    DID_RECV_F = 1 << WEFT_SCHEDULE_ACTION_RECV_F,
    DID_RECV_B = 1 << WEFT_SCHEDULE_ACTION_RECV_B
};

struct stage_state {
    bool gathered, reduced, awaited; /* AWAITED: the reduction */
    int32_t weights;                 /* microbatches whose gradients of weights are computed */
};

struct checker {
    const weft_schedule *schedule;
    uint16_t *cells; /* by stage and microbatch */
    struct stage_state *stages;
    bool messages; /* the schedule has sends and receives */
};

weft_status wf_schedule_refuse(const weft_schedule *s, size_t index, const char *format, ...)
{
    struct wf_text reason = {0}, name = {0};
    weft_status status;
    int32_t rank = 0;
    va_list args;

    while (s->first[rank + 1] <= index)
        rank++;
    va_start(args, format);
    wf_text_addv(&reason, format, args);
    va_end(args);
    wf_action_add(&name, &s->actions[index], NULL);
    status = wf_text_status(&reason);
    if (status == WEFT_OK) status = wf_text_status(&name);
    if (status == WEFT_OK)
        status = wf_fail(WEFT_ERR_INVALID, "schedule: rank %d, action %zu (%s): %s", rank,
                         index - s->first[rank] + 1, name.data, reason.data);
    wf_text_free(&reason);
    wf_text_free(&name);
    return status;
}

/* ---- sizes, and the ranks of stages ---- */

/* There are fewer forwards than stages times microbatches: name the first that is missing.  COUNTS
 * has more elements than there are forwards, so one of them belongs to a stage that lacks some. */
static weft_status fail_missing(const weft_schedule *s, size_t forwards, uint32_t *counts)
{
    size_t count = s->first[s->ranks], stage = 0, microbatch = 0;

    memset(counts, 0, (forwards + 1) * sizeof *counts);
    for (size_t i = 0; i < count; i++)
        if (s->actions[i].kind == WEFT_SCHEDULE_ACTION_F && (size_t)s->actions[i].stage <= forwards)
            counts[s->actions[i].stage]++;
    while (counts[stage] > 0 && counts[stage] >= (uint32_t)s->microbatches)
        stage++;
    if (counts[stage] == 0)
        return wf_fail(WEFT_ERR_INVALID, "schedule: no rank has a forward of stage %zu of %d",
                       stage, s->stages);
    memset(counts, 0, (forwards + 1) * sizeof *counts);
    for (size_t i = 0; i < count; i++) {
        const weft_schedule_action *a = &s->actions[i];
        if (a->kind == WEFT_SCHEDULE_ACTION_F && (size_t)a->stage == stage &&
            (size_t)a->microbatch <= forwards)
            counts[a->microbatch]++;
    }
    while (counts[microbatch] > 0)
        microbatch++;
    return wf_fail(WEFT_ERR_INVALID, "schedule: %zuF%zu is missing; there are %d microbatches",
                   stage, microbatch, s->microbatches);
}

static weft_status find_sizes(weft_schedule *s)
{
    size_t forwards = 0;
    weft_status status;
    uint32_t *counts;

    for (int32_t r = 0; r < s->ranks; r++)
        if (s->first[r] == s->first[r + 1])
            return wf_fail(WEFT_ERR_INVALID, "schedule: rank %d has no actions", r);
    for (size_t i = 0; i < s->first[s->ranks]; i++) {
        const weft_schedule_action *a = &s->actions[i];
        if (a->stage >= s->stages) s->stages = a->stage + 1;
        if (a->microbatch >= s->microbatches) s->microbatches = a->microbatch + 1;
        forwards += a->kind == WEFT_SCHEDULE_ACTION_F;
    }
    if ((uint64_t)s->stages * (uint64_t)s->microbatches <= forwards && forwards > 0) return WEFT_OK;
    counts = wf_alloc((forwards + 1) * sizeof *counts);
    if (counts == NULL) return wf_fail_memory((forwards + 1) * sizeof *counts);
    status = fail_missing(s, forwards, counts);
    wf_free(counts);
    return status;
}

static weft_status find_ranks(weft_schedule *s)
{
    s->rank_of = wf_alloc((size_t)s->stages * sizeof *s->rank_of);
    if (s->rank_of == NULL) return wf_fail_memory((size_t)s->stages * sizeof *s->rank_of);
    for (int32_t stage = 0; stage < s->stages; stage++)
        s->rank_of[stage] = -1;
    for (int32_t r = 0; r < s->ranks; r++)
        for (size_t i = s->first[r]; i < s->first[r + 1]; i++) {
            int32_t *rank = &s->rank_of[s->actions[i].stage];
            if (*rank < 0) *rank = r;
            if (*rank != r)
                return wf_schedule_refuse(s, i, "stage %d is on rank %d already",
                                          s->actions[i].stage, *rank);
        }
    return WEFT_OK;
}

/* ---- the order on each rank ---- */

static weft_status check_compute(const struct checker *c, size_t index,
                                 const weft_schedule_action *a)
{
    const weft_schedule *s = c->schedule;
    uint16_t did = c->cells[wf_schedule_cell(s, a)];
    bool forward = a->kind == WEFT_SCHEDULE_ACTION_F, weights = a->kind == WEFT_SCHEDULE_ACTION_W;

    if (s->sharded && !c->stages[a->stage].gathered)
        return wf_schedule_refuse(s, index, "no UNSHARD of stage %d comes before it", a->stage);
    if (!forward && !(did & DID_F))
        return wf_schedule_refuse(s, index, "no %dF%d comes before it", a->stage, a->microbatch);
    if (weights && !(did & DID_I))
        return wf_schedule_refuse(s, index, "no %dI%d comes before it", a->stage, a->microbatch);
    if (!forward && !weights && (did & (DID_B | DID_I)))
        return wf_schedule_refuse(s, index, "a backward of it comes before");
    if (!c->messages || weights) return WEFT_OK;
    if (forward && wf_schedule_peer(s, a->stage, -1) >= 0 && !(did & DID_RECV_F))
        return wf_schedule_refuse(s, index, "no %dRECV_F%d comes before it", a->stage,
                                  a->microbatch);
    if (!forward && wf_schedule_peer(s, a->stage, 1) >= 0 && !(did & DID_RECV_B))
        return wf_schedule_refuse(s, index, "no %dRECV_B%d comes before it", a->stage,
                                  a->microbatch);
    return WEFT_OK;
}

static weft_status check_message(const struct checker *c, size_t index,
                                 const weft_schedule_action *a)
{
    const weft_schedule *s = c->schedule;
    uint16_t did = c->cells[wf_schedule_cell(s, a)];
    bool up = a->kind == WEFT_SCHEDULE_ACTION_SEND_F || a->kind == WEFT_SCHEDULE_ACTION_RECV_B;

    if (wf_schedule_peer(s, a->stage, up ? 1 : -1) < 0)
        return wf_schedule_refuse(s, index, "no other rank has stage %d", a->stage + (up ? 1 : -1));
    if (a->kind == WEFT_SCHEDULE_ACTION_SEND_F && !(did & DID_F))
        return wf_schedule_refuse(s, index, "no %dF%d comes before it", a->stage, a->microbatch);
    if (a->kind == WEFT_SCHEDULE_ACTION_SEND_B && !(did & (DID_B | DID_I)))
        return wf_schedule_refuse(s, index, "no backward of it comes before");
    return WEFT_OK;
}

static weft_status check_wait(const struct checker *c, size_t index, const weft_schedule_action *a)
{
    uint8_t kind =
        a->kind == WF_WAIT_SEND_F ? WEFT_SCHEDULE_ACTION_SEND_F : WEFT_SCHEDULE_ACTION_SEND_B;

    if (c->cells[wf_schedule_cell(c->schedule, a)] >> kind & 1) return WEFT_OK;
    return wf_schedule_refuse(c->schedule, index, "no %d%s%d comes before it", a->stage,
                              weft_schedule_action_name((enum weft_schedule_action_kind)kind),
                              a->microbatch);
}

static weft_status check_stage(const struct checker *c, size_t index, const weft_schedule_action *a)
{
    const weft_schedule *s = c->schedule;
    struct stage_state *stage = &c->stages[a->stage];

    if (a->kind == WEFT_SCHEDULE_ACTION_UNSHARD && stage->gathered)
        return wf_schedule_refuse(s, index, "the stage is gathered already");
    if (a->kind == WEFT_SCHEDULE_ACTION_RESHARD && !stage->gathered)
        return wf_schedule_refuse(s, index, "the stage is not gathered");
    if (a->kind == WEFT_SCHEDULE_ACTION_REDUCE_GRADIENT && stage->reduced)
        return wf_schedule_refuse(s, index, "the gradients are reduced already");
    if (a->kind == WEFT_SCHEDULE_ACTION_REDUCE_GRADIENT && stage->weights < s->microbatches)
        return wf_schedule_refuse(s, index, "gradients of microbatches are missing, %d in all",
                                  s->microbatches - stage->weights);
    if (a->kind == WF_WAIT_REDUCE_GRAD && !stage->reduced)
        return wf_schedule_refuse(s, index, "no %dREDUCE_GRAD comes before it", a->stage);
    if (a->kind == WF_WAIT_REDUCE_GRAD && stage->awaited)
        return wf_schedule_refuse(s, index, "the action comes twice");
    if (a->kind == WEFT_SCHEDULE_ACTION_REDUCE_GRADIENT)
        stage->reduced = true;
    else if (a->kind == WF_WAIT_REDUCE_GRAD)
        stage->awaited = true;
    else
        stage->gathered = a->kind == WEFT_SCHEDULE_ACTION_UNSHARD;
    return WEFT_OK;
}

/* Two actions that run together are a forward and a backward, side by side, and neither needs the
 * result of the other. */
static weft_status check_pair(const weft_schedule *s, size_t index, size_t end)
{
    const weft_schedule_action *a = &s->actions[index], *next = a + 1;
    bool two = index + 1 < end && wf_action_computes(a) && wf_action_computes(next) &&
               next->with_next == 0 && a->kind != WEFT_SCHEDULE_ACTION_W &&
               next->kind != WEFT_SCHEDULE_ACTION_W &&
               (a->kind == WEFT_SCHEDULE_ACTION_F) != (next->kind == WEFT_SCHEDULE_ACTION_F);

    if (!two) return wf_schedule_refuse(s, index, "OVERLAP_F_B takes one forward and one backward");
    if (a->stage == next->stage && a->microbatch == next->microbatch)
        return wf_schedule_refuse(s, index, "OVERLAP_F_B takes no backward of the same forward");
    return WEFT_OK;
}

static weft_status check_action(const struct checker *c, size_t index, size_t end)
{
    const weft_schedule *s = c->schedule;
    const weft_schedule_action *a = &s->actions[index];
    bool waits = a->kind == WF_WAIT_SEND_F || a->kind == WF_WAIT_SEND_B;
    uint16_t *did;

    if (a->with_next != 0) WF_TRY(check_pair(s, index, end));
    if (a->kind > WEFT_SCHEDULE_ACTION_RECV_B && !waits) return check_stage(c, index, a);
    did = &c->cells[wf_schedule_cell(s, a)];
    if (*did >> a->kind & 1) return wf_schedule_refuse(s, index, "the action comes twice");
    if (wf_action_computes(a))
        WF_TRY(check_compute(c, index, a));
    else
        WF_TRY(waits ? check_wait(c, index, a) : check_message(c, index, a));
    *did |= (uint16_t)(1 << a->kind);
    if (a->kind == WEFT_SCHEDULE_ACTION_B || a->kind == WEFT_SCHEDULE_ACTION_W)
        c->stages[a->stage].weights++;
    return WEFT_OK;
}

/* ---- completeness ---- */

static weft_status check_complete(const struct checker *c, int32_t stage, int32_t microbatch)
{
    const weft_schedule *s = c->schedule;
    weft_schedule_action at = {.stage = stage, .microbatch = microbatch};
    uint16_t did = c->cells[wf_schedule_cell(s, &at)];
    const char *missing = NULL;

    if (!(did & DID_F))
        missing = "F";
    else if (!(did & (DID_B | DID_I)))
        missing = "B";
    else if (!(did & (DID_B | DID_W)))
        missing = "W";
    else if (c->messages && wf_schedule_peer(s, stage, 1) >= 0 &&
             !(did >> WEFT_SCHEDULE_ACTION_SEND_F & 1))
        missing = "SEND_F";
    else if (c->messages && wf_schedule_peer(s, stage, -1) >= 0 &&
             !(did >> WEFT_SCHEDULE_ACTION_SEND_B & 1))
        missing = "SEND_B";
    if (missing == NULL) return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID, "schedule: %d%s%d is missing on rank %d", stage, missing,
                   microbatch, s->rank_of[stage]);
}

static weft_status check_all(const struct checker *c)
{
    const weft_schedule *s = c->schedule;

    for (int32_t r = 0; r < s->ranks; r++)
        for (size_t i = s->first[r]; i < s->first[r + 1]; i++)
            WF_TRY(check_action(c, i, s->first[r + 1]));
    for (int32_t stage = 0; stage < s->stages; stage++)
        for (int32_t m = 0; m < s->microbatches; m++)
            WF_TRY(check_complete(c, stage, m));
    if (c->messages) WF_TRY(wf_messages_validate(s));
    return wf_clockwork(s, NULL, NULL);
}

weft_status wf_schedule_validate(weft_schedule *s)
{
    struct checker c = {.schedule = s};
    bool alone = true;
    weft_status status;

    WF_TRY(find_sizes(s));
    WF_TRY(find_ranks(s));
    for (size_t i = 0; i < s->first[s->ranks]; i++) {
        uint8_t kind = s->actions[i].kind;
        c.messages |= kind >= WEFT_SCHEDULE_ACTION_SEND_F && kind <= WEFT_SCHEDULE_ACTION_RECV_B;
        s->sharded |= kind == WEFT_SCHEDULE_ACTION_UNSHARD;
    }
    for (int32_t stage = 1; stage < s->stages; stage++)
        alone &= wf_schedule_peer(s, stage, -1) < 0;
    s->lowered = c.messages || alone;
    c.cells = wf_calloc((size_t)s->stages * (size_t)s->microbatches, sizeof *c.cells);
    c.stages = wf_calloc((size_t)s->stages, sizeof *c.stages);
    status =
        c.cells != NULL && c.stages != NULL ? check_all(&c) : wf_fail_memory((size_t)s->stages);
    wf_free(c.cells);
    wf_free(c.stages);
    wf_waits_drop(s);
    return status;
}
