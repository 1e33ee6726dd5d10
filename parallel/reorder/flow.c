/* flow.c - checks the nodes of a program. */
#include "flow.h"

#include <string.h>

enum { COMMS = 65536 };

static weft_status refuse(size_t node, const char *reason)
{
    return wf_fail(WEFT_ERR_INVALID, "weft_reorder_create: node %zu %s", node, reason);
}

static weft_status check_inputs(const struct wf_flow *flow, int32_t index)
{
    const weft_reorder_node *node = &flow->nodes[index];

    if (node->input_count > 0 && node->inputs == NULL)
        return refuse((size_t)index, "has inputs, but inputs is NULL");
    for (uint32_t i = 0; i < node->input_count; i++) {
        int32_t input = node->inputs[i];
        if (input < 0 || input >= index)
            return wf_fail(WEFT_ERR_INVALID,
                           "weft_reorder_create: node %d needs node %d, which does not come before "
                           "it",
                           index, input);
        if (flow->nodes[input].kind != WEFT_REORDER_NODE_START) continue;
        if (node->kind != WEFT_REORDER_NODE_WAIT || i > 0)
            return wf_fail(WEFT_ERR_INVALID,
                           "weft_reorder_create: node %d uses node %d, a start; only a wait may",
                           index, input);
        if (flow->wait_of[input] >= 0)
            return wf_fail(WEFT_ERR_INVALID,
                           "weft_reorder_create: nodes %d and %d wait for node %d",
                           flow->wait_of[input], index, input);
        flow->wait_of[input] = index;
        flow->start_of[index] = input;
    }
    if (node->kind == WEFT_REORDER_NODE_WAIT && flow->start_of[index] < 0)
        return refuse((size_t)index, "is a wait, and its first input is not a start");
    return WEFT_OK;
}

static weft_status check_node(const struct wf_flow *flow, int32_t index)
{
    const weft_reorder_node *node = &flow->nodes[index];

    if (node->kind > WEFT_REORDER_NODE_WAIT) return refuse((size_t)index, "has no valid kind");
    if (node->time >> 40 != 0 || node->alloc >> 48 != 0)
        return refuse((size_t)index, "takes 2^40 ns or 2^48 bytes, or more");
    if (node->kind == WEFT_REORDER_NODE_START && node->comm < 0)
        return refuse((size_t)index, "is a start without a communicator");
    if (node->comm >= COMMS)
        return refuse((size_t)index, "has a communicator of number 65536 or more");
    if (node->flags & WEFT_REORDER_NODE_GIVEN &&
        (node->input_count > 0 || node->kind != WEFT_REORDER_NODE_COMPUTE || node->comm >= 0))
        return refuse((size_t)index, "is given, so it has no inputs and no communicator");
    return check_inputs(flow, index);
}

static weft_status check_nodes(struct wf_flow *flow)
{
    memset(flow->wait_of, 0xff, (size_t)flow->count * sizeof *flow->wait_of);
    memset(flow->start_of, 0xff, (size_t)flow->count * sizeof *flow->start_of);
    for (int32_t i = 0; i < flow->count; i++) {
        WF_TRY(check_node(flow, i));
        if (flow->nodes[i].comm >= flow->comms) flow->comms = flow->nodes[i].comm + 1;
    }
    for (int32_t i = 0; i < flow->count; i++)
        if (flow->nodes[i].kind == WEFT_REORDER_NODE_START && flow->wait_of[i] < 0)
            return refuse((size_t)i, "is a start, and no node waits for it");
    return WEFT_OK;
}

weft_status wf_flow_create(const weft_reorder_node *nodes, size_t count, struct wf_flow *out)
{
    weft_status status;

    *out = (struct wf_flow){.nodes = nodes, .count = (int32_t)count};
    if (count > 1u << 22)
        return wf_fail(WEFT_ERR_INVALID, "weft_reorder_create: %zu nodes; the most is %u", count,
                       1u << 22);
    out->wait_of = wf_alloc(count * sizeof *out->wait_of);
    out->start_of = wf_alloc(count * sizeof *out->start_of);
    if (out->wait_of == NULL || out->start_of == NULL)
        status = wf_fail_memory(count * sizeof *out->wait_of);
    else
        status = check_nodes(out);
    if (status == WEFT_OK) status = wf_flow_connect(out);
    if (status != WEFT_OK) wf_flow_free(out);
    return status;
}

static void free_lists(struct wf_lists *lists)
{
    wf_free(lists->first);
    wf_free(lists->item);
}

void wf_flow_free(struct wf_flow *flow)
{
    free_lists(&flow->before);
    free_lists(&flow->after);
    free_lists(&flow->uses);
    wf_free(flow->wait_of);
    wf_free(flow->start_of);
    *flow = (struct wf_flow){0};
}
