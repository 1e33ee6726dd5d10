/* reorder.c - runs a pass, and reports what it has changed. */
#include "flow.h"

#include <string.h>

struct weft_reorder {
    int32_t *order;
    int32_t count;
    weft_reorder_collective_info *collectives;
    weft_reorder_info info;
};

/* Arrays by node that a report needs. */
struct report {
    int32_t *at;
    uint64_t *before, *after;
    struct wf_limits limits;
};

const char *weft_reorder_limit_name(enum weft_reorder_limit limit)
{
#define NAME(name, value, text) [value] = (text),
    static const char *const names[WEFT_REORDER_LIMITS] = {WEFT_REORDER_LIMIT_LIST(NAME)};
#undef NAME

    return (unsigned)limit < WEFT_REORDER_LIMITS ? names[limit] : NULL;
}

/* ---- what limits a collective where it stands ---- */

/* The position of the last node before START that it cannot pass, or of the first behind WAIT. */
static uint32_t limit_of(const struct wf_flow *flow, const int32_t *at, int32_t node, bool up)
{
    const struct wf_lists *lists = up ? &flow->before : &flow->after;
    int32_t nearest = -1;

    for (uint32_t i = lists->first[node]; i < lists->first[node + 1]; i++) {
        int32_t other = lists->item[i];
        if (nearest < 0 || (up ? at[other] > at[nearest] : at[other] < at[nearest]))
            nearest = other;
    }
    if (nearest < 0 || flow->nodes[nearest].flags & WEFT_REORDER_NODE_GIVEN)
        return WEFT_REORDER_LIMIT_END;
    if (wf_node_communicates(&flow->nodes[nearest])) return WEFT_REORDER_LIMIT_FENCE;
    if (flow->nodes[nearest].kind == (up ? WEFT_REORDER_NODE_START : WEFT_REORDER_NODE_WAIT))
        return WEFT_REORDER_LIMIT_ORDER;
    return WEFT_REORDER_LIMIT_DEPENDENCY;
}

static weft_status run_pass(const struct wf_flow *flow, uint32_t pass, uint64_t limit,
                            weft_reorder *r, struct report *report)
{
    weft_status status = WEFT_ERR_INVALID;

    if (pass == WEFT_REORDER_ITERATIVE)
        return wf_pass_iterative(flow, limit, r->order, &report->limits);
    if (pass == WEFT_REORDER_RAISE) status = wf_pass_raise(flow, r->order);
    if (pass == WEFT_REORDER_SINK) status = wf_pass_sink(flow, r->order);
    if (pass == WEFT_REORDER_LIST) status = wf_pass_list(flow, limit, r->order);
    if (pass > WEFT_REORDER_LIST)
        return wf_fail(WEFT_ERR_INVALID, "weft_reorder_create: there is no pass %u", pass);
    WF_TRY(status);
    for (int32_t i = 0; i < flow->count; i++)
        report->at[r->order[i]] = i;
    for (int32_t i = 0; i < flow->count; i++) {
        if (flow->wait_of[i] < 0) continue;
        report->limits.up[i] = limit_of(flow, report->at, i, true);
        report->limits.down[i] = limit_of(flow, report->at, flow->wait_of[i], false);
    }
    return WEFT_OK;
}

/* The list pass promises no more memory than allowed, and no more time than before; where it cannot
 * keep that, the order stays. */
static void keep_given_order(weft_reorder *r, struct report *report, struct wf_measure *after,
                             const struct wf_measure *before)
{
    for (int32_t i = 0; i < r->count; i++) {
        r->order[i] = i;
        report->limits.up[i] = report->limits.down[i] =
            after->time > before->time ? WEFT_REORDER_LIMIT_OTHER : WEFT_REORDER_LIMIT_MEMORY;
    }
    memcpy(report->after, report->before, (size_t)r->count * sizeof *report->after);
    *after = *before;
}

static weft_status describe(const struct wf_flow *flow, weft_reorder *r,
                            const struct report *report)
{
    uint32_t made = 0;
    uint64_t digest = wf_hash_mix((uint64_t)flow->count, 2);

    for (int32_t i = 0; i < flow->count; i++) {
        r->info.collectives += flow->wait_of[i] >= 0;
        digest = wf_hash_mix(digest, (uint64_t)(uint32_t)r->order[i] << 32 |
                                         (uint32_t)flow->nodes[r->order[i]].comm);
        report->at[r->order[i]] = i;
    }
    r->info.digest = digest;
    r->collectives = wf_calloc(r->info.collectives, sizeof *r->collectives);
    if (r->collectives == NULL) return wf_fail_memory(r->info.collectives * sizeof *r->collectives);
    for (int32_t i = 0; i < flow->count; i++) {
        weft_reorder_collective_info *c = &r->collectives[made];
        if (flow->wait_of[i] < 0) continue;
        made++;
        c->start = i;
        c->wait = flow->wait_of[i];
        c->time = flow->nodes[i].time;
        c->exposed_before = report->before[i];
        c->exposed_after = report->after[i];
        c->limit_up = report->limits.up[i];
        c->limit_down = report->limits.down[i];
        c->moves_up = i - report->at[i];
        c->moves_down = report->at[c->wait] - c->wait;
    }
    return WEFT_OK;
}

static weft_status find_order(const struct wf_flow *flow, const weft_reorder_options *options,
                              weft_reorder *r, struct report *report)
{
    struct wf_measure before, after;
    uint64_t limit = options->memory_limit;

    for (int32_t i = 0; i < flow->count; i++)
        r->order[i] = i;
    WF_TRY(wf_flow_measure(flow, r->order, report->before, &before));
    if (limit == 0) limit = before.peak;
    WF_TRY(run_pass(flow, options->pass, limit, r, report));
    WF_TRY(wf_flow_measure(flow, r->order, report->after, &after));
    if (options->pass == WEFT_REORDER_LIST &&
        (after.time > before.time || (after.peak > limit && after.peak > before.peak)))
        keep_given_order(r, report, &after, &before);
    r->info.time_before = before.time;
    r->info.time_after = after.time;
    r->info.exposed_before = before.exposed;
    r->info.exposed_after = after.exposed;
    r->info.peak_before = before.peak;
    r->info.peak_after = after.peak;
    return describe(flow, r, report);
}

static weft_status reorder(const struct wf_flow *flow, const weft_reorder_options *options,
                           weft_reorder *r)
{
    size_t count = (size_t)flow->count;
    struct report report = {.at = wf_alloc(count * sizeof *report.at)};
    weft_status status;

    r->count = flow->count;
    r->order = wf_alloc(count * sizeof *r->order);
    report.before = wf_calloc(count, sizeof *report.before);
    report.after = wf_calloc(count, sizeof *report.after);
    report.limits.up = wf_calloc(count, sizeof *report.limits.up);
    report.limits.down = wf_calloc(count, sizeof *report.limits.down);
    if (r->order == NULL || report.at == NULL || report.before == NULL || report.after == NULL ||
        report.limits.up == NULL || report.limits.down == NULL)
        status = wf_fail_memory(count * sizeof *report.before);
    else
        status = find_order(flow, options, r, &report);
    wf_free(report.at);
    wf_free(report.before);
    wf_free(report.after);
    wf_free(report.limits.up);
    wf_free(report.limits.down);
    return status;
}

/* ---- the interface ---- */

static weft_status create(size_t count, const weft_reorder_node *nodes,
                          const weft_reorder_options *options, weft_reorder **out)
{
    struct wf_flow flow;
    weft_reorder *r;
    weft_status status;

    WF_TRY(wf_flow_create(nodes, count, &flow));
    r = wf_calloc(1, sizeof *r);
    status = r != NULL ? reorder(&flow, options, r) : wf_fail_memory(sizeof *r);
    wf_flow_free(&flow);
    if (status == WEFT_OK)
        *out = r;
    else
        weft_reorder_release(&r);
    return status;
}

weft_status weft_reorder_create(size_t count, const weft_reorder_node *nodes, size_t node_size,
                                const weft_reorder_options *options, weft_reorder **out)
{
    weft_reorder_options given;
    void *copy = NULL;
    weft_status status;

    WF_TRY(wf_require(out, "weft_reorder_create: out"));
    if (count > 0) WF_TRY(wf_require(nodes, "weft_reorder_create: nodes"));
    memset(&given, 0, sizeof given);
    WF_TRY(wf_options_read("weft_reorder_options", options, &given, sizeof given));
    if (count > 0)
        WF_TRY(wf_fail_named(
            wf_items_read("weft_reorder_node", count, nodes, node_size, sizeof *nodes, &copy),
            "weft_reorder_create"));
    status = create(count, copy != NULL ? copy : nodes, &given, out);
    wf_free(copy);
    return status;
}

void weft_reorder_release(weft_reorder **reorder)
{
    if (reorder == NULL || *reorder == NULL) return;
    wf_free((*reorder)->order);
    wf_free((*reorder)->collectives);
    wf_free(*reorder);
    *reorder = NULL;
}

weft_status weft_reorder_get(const weft_reorder *reorder, weft_reorder_info *out)
{
    WF_TRY(wf_require(reorder, "weft_reorder_get: reorder"));
    WF_TRY(wf_require(out, "weft_reorder_get: out"));
    return wf_info_write("weft_reorder_info", &reorder->info, sizeof reorder->info, out);
}

int32_t weft_reorder_at(const weft_reorder *reorder, size_t position)
{
    return reorder != NULL && position < (size_t)reorder->count ? reorder->order[position] : -1;
}

weft_status weft_reorder_collective_get(const weft_reorder *reorder, size_t index,
                                        weft_reorder_collective_info *out)
{
    WF_TRY(wf_require(reorder, "weft_reorder_collective_get: reorder"));
    WF_TRY(wf_require(out, "weft_reorder_collective_get: out"));
    if (index >= reorder->info.collectives)
        return wf_fail(WEFT_ERR_INVALID,
                       "weft_reorder_collective_get: collective %zu; there are %zu", index,
                       reorder->info.collectives);
    return wf_info_write("weft_reorder_collective_info", &reorder->collectives[index],
                         sizeof reorder->collectives[index], out);
}
