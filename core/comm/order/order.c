/* order.c - one order of all runs, merged from the orders of several ranks. */
#include "order.h"

#define NAMED      4  /* ranks of a circle */
#define NOTE_BYTES 20 /* of a run in an answer */

bool wf_runs_answer_read(weft_blob blob, int32_t rank, struct wf_runs_answer *out)
{
    struct wf_reader reader = {blob.data, (size_t)blob.bytes, false};
    weft_blob counts;

    if (blob.bytes == 0 || wf_take_u32(&reader) != WF_WHERE_KNOWN) return false;
    (void)wf_take_u64(&reader); /* posted, finished, the last operation */
    (void)wf_take_u64(&reader);
    (void)wf_take_blob(&reader);
    counts = wf_take_blob(&reader);
    wf_take_string(&reader, out->waits_in, sizeof out->waits_in);
    if (reader.failed || counts.bytes == 0) return false;
    out->rank = rank;
    out->counts = (struct wf_reader){counts.data, (size_t)counts.bytes, false};
    out->collectives = wf_take_u64(&out->counts);
    out->binding = wf_take_u32(&out->counts);
    out->step = wf_take_u32(&out->counts);
    out->note_count = wf_take_u32(&out->counts);
    out->notes = out->counts;
    if (out->note_count > WF_RUNS_NOTES) return false;
    for (uint32_t i = 0; i < out->note_count * NOTE_BYTES / 4; i++)
        (void)wf_take_u32(&out->counts);
    return !out->counts.failed;
}

void wf_order_set(const struct wf_runs_answer *answer, struct wf_order *out)
{
    struct wf_reader reader = answer->notes;

    out->rank = answer->rank;
    out->counts = answer->counts;
    for (uint32_t i = 0; i < answer->note_count; i++) {
        out->runs[out->count].binding = wf_take_u32(&reader);
        out->runs[out->count].number = wf_take_u64(&reader);
        (void)wf_take_u64(&reader);
        if (out->runs[out->count].binding != 0) out->count++; /* 0: not this rank's plan */
    }
}

bool wf_order_count(const struct wf_reader *counts, uint32_t binding, uint64_t *begun)
{
    struct wf_reader reader = *counts;

    while (reader.left > 0) {
        uint32_t found = wf_take_u32(&reader);

        *begun = wf_take_u64(&reader);
        if (reader.failed) return false;
        if (found == binding) return true;
    }
    return false;
}

static bool is_next(const struct wf_order *order, uint32_t binding, uint64_t number)
{
    return order->next < order->count && order->runs[order->next].binding == binding &&
           order->runs[order->next].number == number;
}

/* True if ORDER has another run before run NUMBER of BINDING. */
static bool blocks(const struct wf_order *order, uint32_t binding, uint64_t number)
{
    uint64_t begun;

    if (order->next == order->count || is_next(order, binding, number)) return false;
    for (uint32_t i = order->next + 1; i < order->count; i++)
        if (order->runs[i].binding == binding && order->runs[i].number == number) return true;
    return wf_order_count(&order->counts, binding, &begun) && begun < number;
}

/* A rank that has another run before the next run of orders[I], or -1. */
static int32_t find_blocker(const struct wf_order *orders, int32_t count, int32_t i)
{
    for (int32_t k = 0; k < count; k++)
        if (blocks(&orders[k], orders[i].runs[orders[i].next].binding,
                   orders[i].runs[orders[i].next].number))
            return k;
    return -1;
}

/* Take one run that all ranks can begin now.  False: every run is blocked. */
static bool take_one(struct wf_order *orders, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        uint32_t binding = orders[i].runs[orders[i].next].binding;
        uint64_t number = orders[i].runs[orders[i].next].number;

        if (orders[i].next == orders[i].count || find_blocker(orders, count, i) >= 0) continue;
        for (int32_t k = 0; k < count; k++)
            if (is_next(&orders[k], binding, number)) orders[k].next++;
        return true;
    }
    return false;
}

/* Every rank with runs left is blocked by another one, so COUNT steps end in a circle. */
static void describe_circle(const struct wf_order *orders, int32_t count, int32_t at,
                            struct wf_text *out)
{
    int32_t first;

    for (int32_t i = 0; i < count; i++)
        at = find_blocker(orders, count, at);
    first = at;
    for (int named = 0; named < NAMED && (named == 0 || at != first); named++) {
        int32_t blocker = find_blocker(orders, count, at);

        wf_text_add(out, "%srank %d runs binding %u before binding %u", named > 0 ? ", " : "",
                    orders[blocker].rank, orders[blocker].runs[orders[blocker].next].binding,
                    orders[at].runs[orders[at].next].binding);
        at = blocker;
    }
}

void wf_order_merge(struct wf_order *orders, int32_t count, struct wf_text *out)
{
    while (take_one(orders, count))
        continue;
    for (int32_t i = 0; i < count; i++)
        if (orders[i].next < orders[i].count) {
            describe_circle(orders, count, i, out);
            return;
        }
}
