/* derive.c - a table from what a plugin says of its collectives.
 *
 * A plugin prices a collective as a whole, by its largest buffer; a table prices what a rank
 * receives, and its copies and reductions apart. */
#include "cost.h"

enum { SMALL = 1024, LARGE = 16 << 20 }; /* bytes */

/* How a kind of step is one of the plugin's collectives: in units of 1 / ranks of its largest
 * buffer, what a rank receives, copies and reduces. */
static const struct likeness {
    uint32_t kind, collective;
    bool twice; /* peers are met there and back, and the bytes of each way are received */
    bool copies_own, reduces_all;
} likenesses[] = {
    {WEFT_STEP_ALL_GATHER, WEFT_COLL_ALL_GATHER, false, true, false},
    {WEFT_STEP_REDUCE_SCATTER, WEFT_COLL_REDUCE_SCATTER, false, false, true},
    {WEFT_STEP_ALL_REDUCE, WEFT_COLL_ALL_REDUCE, true, false, true},
    {WEFT_STEP_ALL_TO_ALL, WEFT_COLL_ALL_TO_ALL, false, true, false},
    {WEFT_STEP_PERMUTE, WEFT_COLL_ALL_TO_ALL_V, false, false, false},
    {WEFT_STEP_EXCHANGE, WEFT_COLL_ALL_TO_ALL_V, false, true, false},
};

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

/* The two latencies, with FEW and with MANY ranks, as what a peer costs and what the rest does. */
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
    rate->femtoseconds = less(whole, local) / ((like->twice ? 2 : 1) * (ranks - 1));
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
