/* travel.c - dispatch and combine.
 *
 * Every token goes straight from the sender's order, by expert, to the receiver's order, by expert
 * and then by rank.  If each rank has one expert, that is one weft_all_to_all_v.  If a rank has
 * several, two ranks exchange several blocks, and one call group has a message for each: ranks then
 * wait for each other once, not once per expert.  The tag tells a dispatch from a combine, so that
 * ranks that make different calls do not take each other's tokens. */
#include "experts.h"

#include "base/range.h"

/* One direction of one call. */
struct travel {
    weft_routing *routing;
    const char *function;
    struct wf_held held[2]; /* source, target */
    enum weft_dtype dtype;
    int64_t width;
    const void *from;
    void *to;
    bool back;
    weft_stream *stream;
    weft_work **work;
};

/* Counts and offsets in elements, by rank, of the tokens at home and at the experts. */
struct lists {
    uint64_t *home, *home_offsets, *away, *away_offsets;
};

static struct lists lists_of(const weft_experts *e)
{
    size_t ranks = (size_t)e->ranks;

    return (struct lists){e->lists, e->lists + ranks, e->lists + 2 * ranks, e->lists + 3 * ranks};
}

/* The tokens of expert INDEX of every rank.  *AT: tokens of earlier experts of this rank. */
static void fill_lists(const struct travel *t, int32_t index, const struct lists *l, int64_t *at)
{
    const weft_routing *routing = t->routing;
    const weft_experts *e = routing->experts;
    uint64_t width = (uint64_t)t->width;

    for (int32_t rank = 0; rank < e->ranks; rank++) {
        int64_t expert = (int64_t)rank * e->chunk + index;
        int64_t received = index < e->mine ? routing->by_rank[(int64_t)index * e->ranks + rank] : 0;
        bool exists = expert < e->options.experts;

        l->home[rank] = exists ? (uint64_t)wf_routing_kept(routing, (int32_t)expert) * width : 0;
        l->home_offsets[rank] = exists ? (uint64_t)routing->start[expert] * width : 0;
        l->away[rank] = (uint64_t)received * width;
        l->away_offsets[rank] = (uint64_t)*at * width;
        *at += received;
    }
}

/* The tokens between this rank and PEER, by L, as messages or, to this rank itself, as a copy. */
static weft_status post_pair(const struct travel *t, const struct lists *l, int32_t peer)
{
    const weft_experts *e = t->routing->experts;
    size_t element = wf_dtype_bytes(t->dtype);
    uint64_t sent = t->back ? l->away[peer] : l->home[peer],
             sent_at = t->back ? l->away_offsets[peer] : l->home_offsets[peer],
             got = t->back ? l->home[peer] : l->away[peer],
             got_at = t->back ? l->home_offsets[peer] : l->away_offsets[peer];
    const char *from = (const char *)t->from + sent_at * element;
    char *to = (char *)t->to + got_at * element;
    uint32_t tag = t->back ? 1 : 0;

    if (peer == e->rank)
        return sent == 0 ? WEFT_OK
                         : weft_memory_copy(e->context, from, to, sent * element, t->stream);
    if (sent > 0) WF_TRY(weft_send(e->comm, from, sent, t->dtype, peer, tag, t->stream));
    return got == 0 ? WEFT_OK : weft_receive(e->comm, to, got, t->dtype, peer, tag, t->stream);
}

static weft_status post_messages(const struct travel *t)
{
    const weft_experts *e = t->routing->experts;
    struct lists l = lists_of(e);
    int64_t at = 0;

    for (int32_t i = 0; i < e->chunk; i++) {
        fill_lists(t, i, &l, &at);
        for (int32_t step = 0; step < e->ranks; step++)
            WF_TRY(post_pair(t, &l, (e->rank + step) % e->ranks));
    }
    return WEFT_OK;
}

/* The tokens of expert INDEX of every rank, in one exchange. */
static weft_status post_exchange(const struct travel *t, int32_t index, int64_t *at)
{
    const weft_experts *e = t->routing->experts;
    struct lists l = lists_of(e);

    fill_lists(t, index, &l, at);
    if (t->back)
        return weft_all_to_all_v(e->comm, t->from, l.away, l.away_offsets, t->to, l.home,
                                 l.home_offsets, t->dtype, t->stream);
    return weft_all_to_all_v(e->comm, t->from, l.home, l.home_offsets, t->to, l.away,
                             l.away_offsets, t->dtype, t->stream);
}

static weft_status post_exchanges(const struct travel *t)
{
    int64_t at = 0;

    for (int32_t i = 0; i < t->routing->experts->chunk; i++)
        WF_TRY(post_exchange(t, i, &at));
    return WEFT_OK;
}

static weft_status post_together(const struct travel *t)
{
    const weft_experts *e = t->routing->experts;
    weft_comm *comm = e->comm;
    weft_status status, ended;

    if (e->chunk == 1 || !e->has_messages) return post_exchanges(t);
    WF_TRY(weft_group_begin(comm));
    status = post_messages(t);
    ended = weft_group_end(comm); /* the first error of the group */
    return status == WEFT_OK ? ended : status;
}

static weft_status clear_dropped(const struct travel *t)
{
    const weft_routing *routing = t->routing;
    uint64_t row = (uint64_t)t->width * wf_dtype_bytes(t->dtype);

    if (routing->sent == wf_routing_tokens(routing)) return WEFT_OK;
    for (int32_t i = 0; i < routing->experts->options.experts; i++) {
        int64_t first = routing->start[i] + wf_routing_kept(routing, i);
        uint64_t dropped = (uint64_t)(routing->start[i + 1] - first);

        if (dropped > 0)
            WF_TRY(weft_memory_fill(routing->experts->context,
                                    (char *)t->to + (uint64_t)first * row, 0, dropped * row,
                                    t->stream));
    }
    return WEFT_OK;
}

/* A token would be overwritten before it has left.  Whether it would depends on the counts of this
 * rank, so the other ranks may be on their way. */
static weft_status check_overlap(const struct travel *t, int64_t sent, int64_t got)
{
    uint64_t row = (uint64_t)t->width * wf_dtype_bytes(t->dtype);

    if (!wf_ranges_overlap(t->from, (uint64_t)sent * row, t->to, (uint64_t)got * row))
        return WEFT_OK;
    return weft_comm_fail(t->routing->experts->comm, t->function,
                          wf_fail(WEFT_ERR_INVALID,
                                  "%s (%lld rows at %p) and %s (%lld rows at %p) overlap",
                                  t->back ? "outputs" : "tokens", (long long)sent, t->from,
                                  t->back ? "tokens" : "received", (long long)got, t->to));
}

/* The tokens at home or at the experts, which are argument ARGUMENT: held[INDEX] of T. */
static weft_status take_shard(struct travel *t, int index, weft_tensor *tensor,
                              const char *argument, int64_t rows)
{
    struct wf_held *held = &t->held[index];

    WF_TRY(
        wf_held_of(t->routing->experts->context, tensor, index == 1, t->function, argument, held));
    if (held->dims != 2 || held->shape[0] != rows)
        return wf_fail(WEFT_ERR_INVALID,
                       "%s: the shard of %s has %d dimensions and %lld rows; it must have 2 "
                       "dimensions and %lld rows, one for each token",
                       t->function, argument, held->dims,
                       (long long)(held->dims > 0 ? held->shape[0] : 0), (long long)rows);
    return wf_held_require_dense(held, t->function, argument);
}

static weft_status check_alike(const struct travel *t)
{
    const struct wf_held *from = &t->held[0], *to = &t->held[1];

    if (from->dtype != to->dtype)
        return wf_fail(WEFT_ERR_INVALID,
                       "%s: the tensors have the dtypes %s and %s; pass one dtype", t->function,
                       weft_dtype_name(from->dtype), weft_dtype_name(to->dtype));
    if (from->shape[1] == to->shape[1]) return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID,
                   "%s: the tensors have the widths %lld and %lld; pass one width", t->function,
                   (long long)from->shape[1], (long long)to->shape[1]);
}

static weft_status check(struct travel *t, weft_tensor *source, weft_tensor *target)
{
    const weft_routing *routing = t->routing;
    int64_t at_home = wf_routing_tokens(routing), away = routing->received;
    int64_t sent = t->back ? away : at_home, got = t->back ? at_home : away;

    WF_TRY(weft_stream_check(routing->experts->context, t->stream, t->function));
    WF_TRY(take_shard(t, 0, source, t->back ? "outputs" : "tokens", sent));
    WF_TRY(take_shard(t, 1, target, t->back ? "tokens" : "received", got));
    WF_TRY(check_alike(t));
    t->dtype = t->held[0].dtype;
    t->width = t->held[0].shape[1];
    t->from = t->held[0].memory;
    t->to = t->held[1].memory;
    return check_overlap(t, sent, got);
}

static weft_status run(struct travel *t, weft_tensor *source, weft_tensor *target,
                       const weft_routing_call_options *options)
{
    weft_routing_call_options o = {0};

    WF_TRY(wf_routing_check(t->routing, t->function));
    WF_TRY(wf_fail_named(wf_options_read("weft_routing_call_options", options, &o, sizeof o),
                         t->function));
    WF_TRY(check(t, source, target));
    WF_TRY(wf_fail_named(post_together(t), t->function));
    if (t->back && !o.keep_dropped) WF_TRY(wf_fail_named(clear_dropped(t), t->function));
    return wf_fail_named(
        wf_held_posted(t->routing->experts->context, 2, t->held, t->stream, t->work), t->function);
}

weft_status weft_routing_dispatch(weft_routing *routing, weft_tensor *tokens, weft_tensor *received,
                                  const weft_routing_call_options *options, weft_stream *stream,
                                  weft_work **work)
{
    struct travel t = {
        .routing = routing, .function = "weft_routing_dispatch", .stream = stream, .work = work};

    return run(&t, tokens, received, options);
}

weft_status weft_routing_combine(weft_routing *routing, weft_tensor *outputs, weft_tensor *tokens,
                                 const weft_routing_call_options *options, weft_stream *stream,
                                 weft_work **work)
{
    struct travel t = {.routing = routing,
                       .function = "weft_routing_combine",
                       .back = true,
                       .stream = stream,
                       .work = work};

    return run(&t, outputs, tokens, options);
}
