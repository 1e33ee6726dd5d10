/* clockwork.c - the times of a schedule's actions.
 *
 * Each rank takes its actions in order until one needs a result of another rank that does not exist
 * yet.  A rank that makes such a result wakes the rank that needs it.  Times do not depend on the
 * order in which ranks are taken.  If no rank is awake and actions are left, ranks wait for each
 * other. */
#include "schedule.h"

#include <string.h>

enum { NEVER = -1 };

/* By stage and microbatch: when F and B or I end, and when messages to the stage are issued. */
struct cell {
    int64_t forward, backward, sent_f, received_f, sent_b, received_b;
};

struct rank_state {
    size_t at;
    int64_t clock, lane; /* the end of its last compute action, and of its last collective */
    bool awake;
};

struct machine {
    const weft_schedule *schedule;
    const weft_schedule_stage_cost *costs;
    const struct wf_spans *spans;
    struct cell *cells;
    int64_t *gathered; /* by stage: when its parameters are there */
    struct rank_state *ranks;
    int32_t *stack; /* ranks that are awake */
    int32_t depth;
    bool messages;
};

static const weft_schedule_stage_cost units = {
    .forward = 1, .input = 1, .weight = 1, .activation = 1};

static const weft_schedule_stage_cost *cost_of(const struct machine *m, int32_t stage)
{
    return m->costs != NULL ? &m->costs[stage] : &units;
}

static struct cell *cell_of(const struct machine *m, int32_t stage, int32_t microbatch)
{
    return &m->cells[(size_t)stage * (size_t)m->schedule->microbatches + (size_t)microbatch];
}

static void wake(struct machine *m, int32_t rank)
{
    if (rank < 0 || m->ranks[rank].awake) return;
    m->ranks[rank].awake = true;
    m->stack[m->depth++] = rank;
}

/* When the result of stage OTHER reaches compute action A; NEVER: not yet known. */
static int64_t arrival(const struct machine *m, const weft_schedule_action *a, int32_t other)
{
    const struct cell *mine = cell_of(m, a->stage, a->microbatch);
    const struct cell *theirs = cell_of(m, other, a->microbatch);
    bool forward = a->kind == WEFT_SCHEDULE_ACTION_F;
    int64_t ready = forward ? theirs->forward : theirs->backward;
    const weft_schedule_stage_cost *cost = cost_of(m, other);

    if (wf_schedule_peer(m->schedule, a->stage, other - a->stage) < 0) return ready;
    if (m->messages) {
        int64_t sent = forward ? mine->sent_f : mine->sent_b;
        ready =
            sent == NEVER ? NEVER : wf_max_i64(sent, forward ? mine->received_f : mine->received_b);
    }
    if (ready == NEVER) return NEVER;
    return ready + (int64_t)(forward ? cost->send_forward : cost->send_backward);
}

/* The stage whose result A needs; -1: none. */
static int32_t needed_stage(const weft_schedule *s, const weft_schedule_action *a)
{
    if (a->kind == WEFT_SCHEDULE_ACTION_F) return a->stage - 1;
    if (a->kind == WEFT_SCHEDULE_ACTION_W || !wf_action_computes(a)) return -1;
    return a->stage + 1 < s->stages ? a->stage + 1 : -1;
}

static int64_t time_of(const weft_schedule_stage_cost *cost, uint8_t kind)
{
    switch (kind) {
    case WEFT_SCHEDULE_ACTION_F:
        return (int64_t)cost->forward;
    case WEFT_SCHEDULE_ACTION_B:
        return (int64_t)(cost->input + cost->weight);
    case WEFT_SCHEDULE_ACTION_I:
        return (int64_t)cost->input;
    case WEFT_SCHEDULE_ACTION_W:
        return (int64_t)cost->weight;
    case WEFT_SCHEDULE_ACTION_UNSHARD:
        return (int64_t)cost->unshard;
    case WEFT_SCHEDULE_ACTION_REDUCE_GRADIENT:
        return (int64_t)cost->reduce;
    default:
        return 0;
    }
}

static void note(const struct machine *m, size_t index, int64_t begin, int64_t end)
{
    if (m->spans == NULL) return;
    m->spans->begin[index] = (uint64_t)begin;
    m->spans->end[index] = (uint64_t)end;
}

static void note_exposed(const struct machine *m, int32_t rank, int64_t time)
{
    if (m->spans != NULL && time > 0) m->spans->exposed[rank] += (uint64_t)time;
}

/* Compute action A, whose input is there, ends at its rank's clock. */
static void compute(struct machine *m, int32_t rank, const weft_schedule_action *a)
{
    struct rank_state *r = &m->ranks[rank];
    int32_t other = needed_stage(m->schedule, a);
    int64_t ready = other >= 0 ? arrival(m, a, other) : 0, begin;
    struct cell *cell = cell_of(m, a->stage, a->microbatch);

    begin = wf_max_i64(r->clock, ready);
    if (m->schedule->sharded) {
        note_exposed(m, rank, m->gathered[a->stage] - begin);
        begin = wf_max_i64(begin, m->gathered[a->stage]);
    }
    r->clock = begin + time_of(cost_of(m, a->stage), a->kind);
    note(m, r->at, begin, r->clock);
    if (a->kind == WEFT_SCHEDULE_ACTION_F) cell->forward = r->clock;
    if (a->kind == WEFT_SCHEDULE_ACTION_B || a->kind == WEFT_SCHEDULE_ACTION_I)
        cell->backward = r->clock;
    if (!m->messages && a->kind != WEFT_SCHEDULE_ACTION_W)
        wake(m,
             wf_schedule_peer(m->schedule, a->stage, a->kind == WEFT_SCHEDULE_ACTION_F ? 1 : -1));
}

/* When the message of A is sent. */
static int64_t *sent_time(const struct machine *m, const weft_schedule_action *a)
{
    if (a->kind == WEFT_SCHEDULE_ACTION_SEND_F)
        return &cell_of(m, a->stage + 1, a->microbatch)->sent_f;
    return &cell_of(m, a->stage - 1, a->microbatch)->sent_b;
}

/* Send the message INDEX of RANK, unless a pair has sent it. */
static void post_send(struct machine *m, int32_t rank, size_t index)
{
    const weft_schedule_action *a = &m->schedule->actions[index];
    int64_t *sent = sent_time(m, a), now = m->ranks[rank].clock;

    if (*sent != NEVER) return;
    *sent = now;
    note(m, index, now, now);
    wake(m, m->schedule->rank_of[a->stage + (a->kind == WEFT_SCHEDULE_ACTION_SEND_F ? 1 : -1)]);
}

static void communicate(struct machine *m, int32_t rank, const weft_schedule_action *a)
{
    struct rank_state *r = &m->ranks[rank];
    int64_t begin = r->clock, end = begin;

    switch (a->kind) {
    case WEFT_SCHEDULE_ACTION_SEND_F:
    case WEFT_SCHEDULE_ACTION_SEND_B:
        post_send(m, rank, r->at);
        return;
    case WEFT_SCHEDULE_ACTION_RECV_F:
        cell_of(m, a->stage, a->microbatch)->received_f = begin;
        break;
    case WEFT_SCHEDULE_ACTION_RECV_B:
        cell_of(m, a->stage, a->microbatch)->received_b = begin;
        break;
    case WEFT_SCHEDULE_ACTION_UNSHARD:
    case WEFT_SCHEDULE_ACTION_REDUCE_GRADIENT:
        begin = wf_max_i64(begin, r->lane);
        end = begin + time_of(cost_of(m, a->stage), a->kind);
        r->lane = end;
        if (a->kind == WEFT_SCHEDULE_ACTION_UNSHARD) m->gathered[a->stage] = end;
        break;
    default:
        break;
    }
    note(m, r->at, begin, end);
}

/* The first of A and the action that runs together with it whose input is missing; NULL: none. */
static const weft_schedule_action *find_blocked(const struct machine *m,
                                                const weft_schedule_action *a)
{
    for (const weft_schedule_action *last = a + (a->with_next != 0); a <= last; a++) {
        int32_t other = needed_stage(m->schedule, a);
        if (other >= 0 && arrival(m, a, other) == NEVER) return a;
    }
    return NULL;
}

/* The first of two actions that may run together waits until the inputs of both exist. */
static void advance(struct machine *m, int32_t rank)
{
    const weft_schedule_action *actions = m->schedule->actions;
    struct rank_state *r = &m->ranks[rank];
    size_t end = m->schedule->first[rank + 1];

    for (; r->at < end; r->at++) {
        const weft_schedule_action *a = &actions[r->at];
        size_t send;
        if (find_blocked(m, a) != NULL) return;
        if (!wf_action_computes(a)) {
            communicate(m, rank, a);
            continue;
        }
        compute(m, rank, a);
        send = wf_send_between(actions, end, r->at);
        if (send > 0) post_send(m, rank, send);
    }
    note_exposed(m, rank, r->lane - r->clock);
}

/* ---- ranks that wait for each other ---- */

/* RANK cannot go on: follow what it waits for. */
static weft_status fail_circle(const struct machine *m, int32_t rank)
{
    const weft_schedule *s = m->schedule;
    struct wf_text text = {0};
    size_t begin = m->ranks[rank].at;
    size_t index = (size_t)(find_blocked(m, &s->actions[begin]) - s->actions);
    weft_status status;

    for (int32_t i = 0; i < 6; i++) {
        const weft_schedule_action *a = find_blocked(m, &s->actions[m->ranks[rank].at]);
        int32_t other = needed_stage(s, a), next = s->rank_of[other];
        wf_text_add(&text, "%s%d%s%d of rank %d", i > 0 ? ", which waits for " : "it waits for ",
                    other, a->kind == WEFT_SCHEDULE_ACTION_F ? "F" : "B", a->microbatch, next);
        rank = next;
        if (m->ranks[rank].at == begin) break;
    }
    status = wf_text_status(&text);
    if (status == WEFT_OK)
        status = wf_schedule_refuse(s, index, "%s; so the schedule cannot end", text.data);
    wf_text_free(&text);
    return status;
}

static weft_status run(struct machine *m)
{
    const weft_schedule *s = m->schedule;
    size_t cells = (size_t)s->stages * (size_t)s->microbatches;

    memset(m->cells, 0xff, cells * sizeof *m->cells); /* NEVER */
    for (int32_t r = s->ranks - 1; r >= 0; r--) {
        m->ranks[r].at = s->first[r];
        wake(m, r);
    }
    while (m->depth > 0) {
        int32_t rank = m->stack[--m->depth];
        m->ranks[rank].awake = false;
        if (m->ranks[rank].at < s->first[rank + 1]) advance(m, rank);
    }
    for (int32_t r = 0; r < s->ranks; r++)
        if (m->ranks[r].at < s->first[r + 1]) return fail_circle(m, r);
    return WEFT_OK;
}

weft_status wf_clockwork(const weft_schedule *s, const weft_schedule_stage_cost *costs,
                         const struct wf_spans *spans)
{
    size_t cells = (size_t)s->stages * (size_t)s->microbatches;
    struct machine m = {.schedule = s, .costs = costs, .spans = spans};
    weft_status status;

    for (size_t i = 0; i < s->first[s->ranks] && !m.messages; i++)
        m.messages = s->actions[i].kind == WEFT_SCHEDULE_ACTION_SEND_F;
    m.cells = wf_alloc(cells * sizeof *m.cells);
    m.gathered = wf_calloc((size_t)s->stages, sizeof *m.gathered);
    m.ranks = wf_calloc((size_t)s->ranks, sizeof *m.ranks);
    m.stack = wf_alloc((size_t)s->ranks * sizeof *m.stack);
    if (m.cells == NULL || m.gathered == NULL || m.ranks == NULL || m.stack == NULL)
        status = wf_fail_memory(cells * sizeof *m.cells);
    else
        status = run(&m);
    wf_free(m.cells);
    wf_free(m.gathered);
    wf_free(m.ranks);
    wf_free(m.stack);
    return status;
}
