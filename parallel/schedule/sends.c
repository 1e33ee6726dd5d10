/* sends.c - where messages are sent and received.
 *
 * The sender decides the order of receives: behind an action whose result goes to another rank
 * comes the send, and the receive is put at the end of what the other rank has done by then.  So
 * messages between two ranks have one order on both. */
#include "schedule.h"

enum { HAS_F = 1, HAS_B = 2, DID_F = 4, DID_B = 8 };

struct placer {
    const weft_schedule *schedule;
    const struct wf_draft *rows;
    struct wf_draft *out;
    size_t *at;     /* by rank: the next action of its row */
    uint8_t *cells; /* by stage and microbatch: received, or done */
};

static uint8_t *cell_of(const struct placer *p, int32_t stage, int32_t microbatch)
{
    return &p->cells[(size_t)stage * (size_t)p->schedule->microbatches + (size_t)microbatch];
}

static bool is_ready(const struct placer *p, const weft_schedule_action *a)
{
    const weft_schedule *s = p->schedule;
    bool forward = a->kind == WEFT_SCHEDULE_ACTION_F;
    int32_t other = a->stage + (forward ? -1 : 1);

    if (!wf_action_computes(a) || a->kind == WEFT_SCHEDULE_ACTION_W) return true;
    if (other < 0 || other >= s->stages) return true;
    if (s->rank_of[other] == s->rank_of[a->stage])
        return *cell_of(p, other, a->microbatch) & (forward ? DID_F : DID_B);
    return *cell_of(p, a->stage, a->microbatch) & (forward ? HAS_F : HAS_B);
}

static void send_result(struct placer *p, int32_t rank, const weft_schedule_action *a)
{
    bool forward = a->kind == WEFT_SCHEDULE_ACTION_F;
    int32_t step = forward ? 1 : -1, peer = wf_schedule_peer(p->schedule, a->stage, step);

    if (!wf_action_computes(a) || a->kind == WEFT_SCHEDULE_ACTION_W) return;
    *cell_of(p, a->stage, a->microbatch) |= forward ? DID_F : DID_B;
    if (peer < 0) return;
    wf_draft_put(p->out, rank, forward ? WEFT_SCHEDULE_ACTION_SEND_F : WEFT_SCHEDULE_ACTION_SEND_B,
                 a->stage, a->microbatch);
    wf_draft_put(p->out, peer, forward ? WEFT_SCHEDULE_ACTION_RECV_F : WEFT_SCHEDULE_ACTION_RECV_B,
                 a->stage + step, a->microbatch);
    *cell_of(p, a->stage + step, a->microbatch) |= forward ? HAS_F : HAS_B;
}

/* Take the next action of RANK, or two that run together.  False: an input is missing. */
static bool take(struct placer *p, int32_t rank)
{
    const weft_schedule_action *a = &p->rows->rows[rank].actions[p->at[rank]];
    size_t count = a->with_next != 0 ? 2 : 1;

    for (size_t i = 0; i < count; i++)
        if (!is_ready(p, &a[i])) return false;
    for (size_t i = 0; i < count; i++)
        wf_draft_add(p->out, rank, a[i]);
    for (size_t i = 0; i < count; i++)
        send_result(p, rank, &a[i]);
    p->at[rank] += count;
    return true;
}

static weft_status place(struct placer *p)
{
    bool left = true, progress = true;

    while (left && progress) {
        left = progress = false;
        for (int32_t r = 0; r < p->rows->ranks; r++) {
            if (p->at[r] == p->rows->rows[r].count) continue;
            left = true;
            progress |= take(p, r);
        }
    }
    WF_TRY(wf_draft_status(p->out));
    return left ? wf_fail(WEFT_ERR_INTERNAL, "weft_schedule_lower: no action is ready") : WEFT_OK;
}

weft_status wf_add_sends(const weft_schedule *schedule, const struct wf_draft *draft,
                         struct wf_draft *out)
{
    struct placer p = {.schedule = schedule, .rows = draft, .out = out};
    weft_status status = wf_draft_begin(draft->ranks, out);

    p.at = wf_calloc((size_t)draft->ranks, sizeof *p.at);
    p.cells = wf_calloc((size_t)schedule->stages, (size_t)schedule->microbatches);
    if (status == WEFT_OK)
        status = p.at != NULL && p.cells != NULL ? place(&p) : wf_fail_memory(sizeof *p.at);
    wf_free(p.at);
    wf_free(p.cells);
    return status;
}
