/* derive.c - a cost table from a plugin's costs of its collectives.
 *
 * A plugin prices a collective as a whole, by its largest buffer.  A table prices the bytes that a
 * rank receives, and its copies and reductions separately. */
#include "cost.h"

enum { SMALL = 1024, LARGE = 16 << 20 }; /* bytes */

/* The collective of the plugin that stands for a kind of step, and the bytes that a rank receives,
 * copies and reduces, in units of 1 / ranks of the largest buffer. */
static const struct likeness {
    uint32_t kind, collective;
    bool twice; /* two passes over the peers, each receiving the bytes */
    bool copies_own, reduces_all;
    bool rooted; /* one rank has the buffer before or after: a rank receives all of it */
} likenesses[] = {
    {WEFT_STEP_ALL_GATHER, WEFT_COLL_ALL_GATHER, false, true, false, false},
    {WEFT_STEP_REDUCE_SCATTER, WEFT_COLL_REDUCE_SCATTER, false, false, true, false},
    {WEFT_STEP_ALL_REDUCE, WEFT_COLL_ALL_REDUCE, true, false, true, false},
    {WEFT_STEP_ALL_TO_ALL, WEFT_COLL_ALL_TO_ALL, false, true, false, false},
    {WEFT_STEP_PERMUTE, WEFT_COLL_ALL_TO_ALL_V, false, false, false, false},
    {WEFT_STEP_EXCHANGE, WEFT_COLL_ALL_TO_ALL_V, false, true, false, false},
    {WEFT_STEP_BROADCAST, WEFT_COLL_BROADCAST, false, false, false, true},
    {WEFT_STEP_REDUCE, WEFT_COLL_REDUCE, false, false, true, true},
};

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

/* Split the latencies with FEW and with MANY ranks into a cost per peer and a constant. */
static void set_latency(struct wf_rate *rate, bool twice, uint64_t few_ns, uint64_t many_ns,
                        uint64_t many)
{
    uint64_t ways = twice ? 2 : 1;

    rate->peer_ns = less(many_ns, few_ns) / (ways * (many - 2));
    rate->base_ns = less(few_ns, ways * rate->peer_ns);
}

static void set_rate(const weft_cost_table *table, const struct likeness *like, uint64_t per_byte,
                     uint64_t ranks, struct wf_rate *rate)
{
    uint64_t whole = per_byte * ranks, local = 0;

    if (like->copies_own) local += table->copy;
    if (like->reduces_all) local += table->reduce * ranks;
    if (like->rooted) {
        /* a broadcast's rank receives the buffer once, a reduction's owner from all others */
        uint64_t reduced = like->reduces_all ? table->reduce * ranks : 0;
        rate->femtoseconds = less(per_byte, reduced) / (like->reduces_all ? ranks - 1 : 1);
    } else {
        rate->femtoseconds = less(whole, local) / ((like->twice ? 2 : 1) * (ranks - 1));
    }
    if (rate->femtoseconds == 0) rate->femtoseconds = 1;
}

void wf_cost_derive(weft_cost_table *table, int32_t ranks, wf_cost_answer *answer, void *self)
{
    int32_t many = ranks < 4 ? 4 : ranks;

    for (size_t i = 0; i < WF_COUNT(likenesses); i++) {
        const struct likeness *like = &likenesses[i];
        struct wf_rate *rate = &table->rates[like->kind][WF_WITHIN_HOST];
        weft_support_query query = {.struct_size = sizeof query,
                                    .collective = like->collective,
                                    .dtype = WEFT_DTYPE_F32,
                                    .reduction = like->reduces_all ? WEFT_REDUCE_SUM : 0};
        weft_cost few, more, bytes;
        query.size = 2;
        if (answer(self, &query, SMALL, &few) != WEFT_OK) continue;
        query.size = many;
        if (answer(self, &query, SMALL, &more) != WEFT_OK) continue;
        query.size = ranks < 2 ? 2 : ranks;
        if (answer(self, &query, LARGE, &bytes) != WEFT_OK) continue;
        set_latency(rate, like->twice, few.latency_ns, more.latency_ns, (uint64_t)many);
        set_rate(table, like, bytes.femtoseconds_per_byte, (uint64_t)query.size, rate);
    }
}
