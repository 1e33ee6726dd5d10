/* late.c - receives right before the actions that need them.
 *
 * On some devices a receive that waits for its sender blocks other work.  Receives from one rank
 * keep their order.  Before a message to a rank of a higher number, the receives from that rank are
 * posted: of two ranks that send to each other, the lower one then receives first. */
#include "schedule.h"

/* A row with the receives that are not posted yet, in order. */
struct later {
    const weft_schedule *schedule;
    const struct wf_row *row;
    struct wf_draft *out;
    int32_t rank;
    size_t *waiting; /* indices into the row */
    size_t first, count;
};

static bool receives(const weft_schedule_action *a)
{
    return a->kind == WEFT_SCHEDULE_ACTION_RECV_F || a->kind == WEFT_SCHEDULE_ACTION_RECV_B;
}

static int32_t sender_of(const struct later *l, const weft_schedule_action *a)
{
    return wf_schedule_peer(l->schedule, a->stage, a->kind == WEFT_SCHEDULE_ACTION_RECV_F ? -1 : 1);
}

/* Post the waiting receives from PEER, up to index LAST of the row. */
static void post(struct later *l, int32_t peer, size_t last)
{
    size_t kept = l->first;

    for (size_t i = l->first; i < l->count; i++) {
        const weft_schedule_action *a = &l->row->actions[l->waiting[i]];
        if (l->waiting[i] <= last && sender_of(l, a) == peer)
            wf_draft_add(l->out, l->rank, *a);
        else
            l->waiting[kept++] = l->waiting[i];
    }
    l->count = kept;
    if (l->first == l->count) l->first = l->count = 0;
}

/* Post what compute action A needs. */
static void post_for(struct later *l, const weft_schedule_action *a)
{
    uint8_t kind = a->kind == WEFT_SCHEDULE_ACTION_F ? WEFT_SCHEDULE_ACTION_RECV_F
                                                     : WEFT_SCHEDULE_ACTION_RECV_B;

    if (a->kind == WEFT_SCHEDULE_ACTION_W) return;
    for (size_t i = l->first; i < l->count; i++) {
        const weft_schedule_action *r = &l->row->actions[l->waiting[i]];
        if (r->kind != kind || r->stage != a->stage || r->microbatch != a->microbatch) continue;
        post(l, sender_of(l, r), l->waiting[i]);
        return;
    }
}

static void write_row(struct later *l)
{
    for (size_t i = 0; i < l->row->count; i++) {
        const weft_schedule_action *a = &l->row->actions[i];
        bool second = i > 0 && a[-1].with_next != 0;
        if (receives(a)) {
            l->waiting[l->count++] = i;
            continue;
        }
        if (wf_action_computes(a) && !second) {
            post_for(l, a);
            if (a->with_next != 0) post_for(l, a + 1);
        }
        if (a->kind == WEFT_SCHEDULE_ACTION_SEND_F || a->kind == WEFT_SCHEDULE_ACTION_SEND_B) {
            int32_t peer = wf_schedule_peer(l->schedule, a->stage,
                                            a->kind == WEFT_SCHEDULE_ACTION_SEND_F ? 1 : -1);
            if (l->rank < peer) post(l, peer, i);
        }
        wf_draft_add(l->out, l->rank, *a);
    }
}

weft_status wf_defer_receives(const weft_schedule *schedule, const struct wf_draft *draft,
                              struct wf_draft *out)
{
    WF_TRY(wf_draft_begin(draft->ranks, out));
    for (int32_t r = 0; r < draft->ranks; r++) {
        struct later l = {.schedule = schedule, .row = &draft->rows[r], .out = out, .rank = r};
        l.waiting = wf_alloc(l.row->count * sizeof *l.waiting);
        if (l.waiting == NULL) return wf_fail_memory(l.row->count * sizeof *l.waiting);
        write_row(&l);
        wf_free(l.waiting);
    }
    return out->failed ? wf_fail_memory(sizeof(weft_schedule_action)) : WEFT_OK;
}
