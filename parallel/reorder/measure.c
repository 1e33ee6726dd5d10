/* measure.c - the time and the memory of an order.
 *
 * Compute nodes run one after the other.  The collectives of one communicator run one after the
 * other beside them, each from its start on. */
#include "flow.h"

#include <string.h>

void wf_flow_freed(const struct wf_flow *flow, const int32_t *order, int32_t *last, uint64_t *freed)
{
    memset(last, 0xff, (size_t)flow->count * sizeof *last);
    memset(freed, 0, (size_t)flow->count * sizeof *freed);
    for (int32_t i = 0; i < flow->count; i++) {
        int32_t node = order[i];
        for (uint32_t j = flow->uses.first[node]; j < flow->uses.first[node + 1]; j++)
            last[flow->uses.item[j]] = node;
    }
    for (int32_t i = 0; i < flow->count; i++) {
        int32_t wait = flow->wait_of[i];
        uint32_t flags = flow->nodes[i].flags | (wait >= 0 ? flow->nodes[wait].flags : 0);
        if (flags & WEFT_REORDER_NODE_KEPT || flow->start_of[i] >= 0) last[i] = -1;
        if (last[i] >= 0) freed[last[i]] += flow->nodes[i].alloc;
    }
}

static uint64_t find_peak(const struct wf_flow *flow, const int32_t *order, const uint64_t *freed)
{
    uint64_t held = 0, peak = 0;

    for (int32_t i = 0; i < flow->count; i++)
        if (flow->nodes[i].flags & WEFT_REORDER_NODE_GIVEN) held += flow->nodes[i].alloc;
    for (int32_t i = 0; i < flow->count; i++) {
        const weft_reorder_node *node = &flow->nodes[order[i]];
        if (node->kind != WEFT_REORDER_NODE_WAIT && !(node->flags & WEFT_REORDER_NODE_GIVEN))
            held += node->alloc;
        if (held > peak) peak = held;
        held -= freed[order[i]];
    }
    return peak;
}

/* LANES: by communicator, when its last collective ends; ENDS: the same by start. */
static void run(const struct wf_flow *flow, const int32_t *order, uint64_t *lanes, uint64_t *ends,
                uint64_t *exposed, struct wf_measure *out)
{
    uint64_t clock = 0, waits;

    memset(lanes, 0, (size_t)flow->comms * sizeof *lanes);
    for (int32_t i = 0; i < flow->count; i++) {
        int32_t index = order[i];
        const weft_reorder_node *node = &flow->nodes[index];
        if (node->kind == WEFT_REORDER_NODE_START) {
            uint64_t begin = clock > lanes[node->comm] ? clock : lanes[node->comm];
            ends[index] = lanes[node->comm] = begin + node->time;
        } else if (node->kind == WEFT_REORDER_NODE_WAIT) {
            int32_t start = flow->start_of[index];
            waits = ends[start] > clock ? ends[start] - clock : 0;
            if (exposed != NULL) exposed[start] = waits;
            out->exposed += waits;
            clock += waits;
        } else if (node->comm >= 0) {
            uint64_t begin = clock > lanes[node->comm] ? clock : lanes[node->comm];
            lanes[node->comm] = begin + node->time;
            out->exposed += lanes[node->comm] - clock;
            clock = lanes[node->comm];
        } else {
            clock += node->time;
        }
    }
    out->time = clock;
}

weft_status wf_flow_measure(const struct wf_flow *flow, const int32_t *order, uint64_t *exposed,
                            struct wf_measure *out)
{
    size_t bytes = (size_t)flow->count * sizeof(uint64_t);
    uint64_t *freed = wf_alloc(bytes), *lanes = wf_alloc((size_t)flow->comms * sizeof *lanes);
    int32_t *last = wf_alloc((size_t)flow->count * sizeof *last);
    weft_status status = WEFT_OK;

    *out = (struct wf_measure){0};
    if (freed != NULL && lanes != NULL && last != NULL) {
        wf_flow_freed(flow, order, last, freed);
        out->peak = find_peak(flow, order, freed);
        run(flow, order, lanes, freed, exposed, out); /* FREED is no longer needed */
    } else {
        status = wf_fail_memory(bytes);
    }
    wf_free(freed);
    wf_free(lanes);
    wf_free(last);
    return status;
}
