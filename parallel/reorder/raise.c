/* raise.c - starts as early as possible, and waits as late as possible.
 *
 * Nodes that a start needs run before others, those of the first start first.  Waits are the same
 * seen from the end: nodes that need a wait run after others. */
#include "flow.h"

void wf_flow_leads_to(const struct wf_flow *flow, int32_t *out)
{
    int32_t starts = 0;

    for (int32_t i = 0; i < flow->count; i++)
        starts += flow->nodes[i].kind == WEFT_REORDER_NODE_START;
    for (int32_t i = flow->count - 1; i >= 0; i--) {
        out[i] = flow->nodes[i].kind == WEFT_REORDER_NODE_START ? --starts : INT32_MAX;
        for (uint32_t j = flow->after.first[i]; j < flow->after.first[i + 1]; j++)
            if (out[flow->after.item[j]] < out[i]) out[i] = out[flow->after.item[j]];
    }
}

/* By node, the number of the last wait that it needs, counted from the end. */
static void comes_from(const struct wf_flow *flow, int32_t *out)
{
    int32_t waits = 0;

    for (int32_t i = 0; i < flow->count; i++)
        waits += flow->nodes[i].kind == WEFT_REORDER_NODE_WAIT;
    for (int32_t i = 0; i < flow->count; i++) {
        out[i] = flow->nodes[i].kind == WEFT_REORDER_NODE_WAIT ? --waits : INT32_MAX;
        for (uint32_t j = flow->before.first[i]; j < flow->before.first[i + 1]; j++)
            if (out[flow->before.item[j]] < out[i]) out[i] = out[flow->before.item[j]];
    }
}

/* Nodes in the order of (PRIORITY, index), each behind all that BEFORE lists for it. */
static weft_status sort(const struct wf_flow *flow, const struct wf_lists *before,
                        const struct wf_lists *after, const int32_t *priority, bool backwards,
                        int32_t *order)
{
    size_t count = (size_t)flow->count;
    struct wf_ready ready = {.keys = wf_alloc(count * sizeof *ready.keys)};
    uint32_t *left = wf_alloc(count * sizeof *left);
    int32_t made = 0;

    if (ready.keys == NULL || left == NULL) {
        wf_free(ready.keys);
        wf_free(left);
        return wf_fail_memory(count * sizeof *ready.keys);
    }
#define KEY(node)                                                                                  \
    ((uint64_t)(uint32_t)priority[node] << 32 |                                                    \
     (uint32_t)(backwards ? flow->count - 1 - (node) : (node)))
    for (int32_t i = 0; i < flow->count; i++) {
        left[i] = before->first[i + 1] - before->first[i];
        if (left[i] == 0) wf_ready_push(&ready, KEY(i));
    }
    while (ready.count > 0) {
        int32_t node = (int32_t)(uint32_t)wf_ready_pop(&ready);
        if (backwards) node = flow->count - 1 - node;
        order[backwards ? flow->count - 1 - made : made] = node;
        made++;
        for (uint32_t j = after->first[node]; j < after->first[node + 1]; j++)
            if (--left[after->item[j]] == 0) wf_ready_push(&ready, KEY(after->item[j]));
    }
#undef KEY
    wf_free(ready.keys);
    wf_free(left);
    return WEFT_OK;
}

static weft_status pass(const struct wf_flow *flow, bool backwards, int32_t *order)
{
    int32_t *priority = wf_alloc((size_t)flow->count * sizeof *priority);
    weft_status status;

    if (priority == NULL) return wf_fail_memory((size_t)flow->count * sizeof *priority);
    if (backwards)
        comes_from(flow, priority);
    else
        wf_flow_leads_to(flow, priority);
    for (int32_t i = 0; i < flow->count; i++)
        if (flow->nodes[i].flags & WEFT_REORDER_NODE_GIVEN)
            priority[i] = backwards ? INT32_MAX : -1;
    for (int32_t i = 0; i < flow->count; i++)
        priority[i] += priority[i] < INT32_MAX; /* GIVEN becomes 0 */
    status = sort(flow, backwards ? &flow->after : &flow->before,
                  backwards ? &flow->before : &flow->after, priority, backwards, order);
    wf_free(priority);
    return status;
}

weft_status wf_pass_raise(const struct wf_flow *flow, int32_t *order)
{
    return pass(flow, false, order);
}

weft_status wf_pass_sink(const struct wf_flow *flow, int32_t *order)
{
    return pass(flow, true, order);
}
