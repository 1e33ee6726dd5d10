/* message.c - the elements that two shards share, as regions of one of them.
 *
 * Whether these regions follow one another in memory decides if a message is staged. */
#include "figures.h"

static void close_piece(struct wf_dim_pieces *p)
{
    if (p->count == 0) return;
    p->dense = p->dense && (p->teeth == 1 || p->step == p->length);
    p->single = p->single && p->teeth * p->length == 1;
    p->end = p->at + (p->teeth - 1) * p->step + p->length;
}

static void add_overlap(struct wf_dim_pieces *p, const weft_intersection *o)
{
    p->total += o->length;
    if (p->count > 0 && p->length == o->length) {
        int64_t step = o->first - (p->at + (p->teeth - 1) * p->step);
        int64_t other = o->second - (p->other + (p->teeth - 1) * p->other_step);
        if (p->teeth == 1 || (step == p->step && other == p->other_step)) {
            p->step = step;
            p->other_step = other;
            p->teeth++;
            return;
        }
    }
    close_piece(p);
    if (p->count > 0) p->adjacent = p->adjacent && o->first == p->end;
    if (p->count == 0) p->start = o->first;
    p->count++;
    p->at = o->first;
    p->other = o->second;
    p->length = o->length;
    p->teeth = 1;
    p->step = p->other_step = 0;
}

static void cut_dim(const struct wf_shard *mine, const struct wf_shard *theirs, int32_t dim,
                    struct wf_dim_pieces *out)
{
    struct wf_index a = wf_shard_index(mine, dim), b = wf_shard_index(theirs, dim);
    weft_intersection o;

    *out = (struct wf_dim_pieces){.adjacent = true, .dense = true, .single = true};
    for (int64_t at = 0; wf_index_overlap(&a, &b, at, &o); at = o.start + o.length)
        add_overlap(out, &o);
    close_piece(out);
}

void wf_message_lay(const struct wf_shard *mine, const struct wf_shard *theirs,
                    struct wf_cuts *cuts, struct wf_message *out)
{
    bool whole = true, covered = true; /* of the dimensions inside: one region, all indices */
    int64_t stride = 1;

    *out = (struct wf_message){.elements = 1, .in_run = true};
    if (mine->elements == 0 || theirs->elements == 0) out->elements = 0;
    for (int32_t d = mine->dims - 1; d >= 0 && out->elements > 0; d--) {
        struct wf_dim_pieces *p = &cuts->list[d];
        bool full;
        if (!(cuts->done >> d & 1)) cut_dim(mine, theirs, d, p);
        cuts->done |= cuts->fixed & UINT32_C(1) << d;
        out->elements *= (uint64_t)p->total;
        full = p->dense && p->adjacent && p->start == 0 && p->end == mine->shape[d];
        if (whole) /* the innermost dimension that is not whole may be a run */
            out->in_run = out->in_run && p->dense && p->adjacent;
        else
            out->in_run = out->in_run && p->single && (p->count == 1 || (covered && p->adjacent));
        covered = covered && full;
        whole = whole && full && p->count == 1;
        out->offset += p->start * stride;
        stride *= mine->shape[d];
    }
}
