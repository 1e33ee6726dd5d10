/* scratch.c - the layout of a bound plan's scratch.
 *
 * An action needs its input, its output and its staging at the same time, and nothing of earlier
 * actions.  Outputs therefore alternate between the two ends of one piece of memory, with staging
 * between them.  The piece is as large as the largest action needs, which is the scratch that the
 * plan states. */
#include "bound.h"

enum { ALIGNMENT = 256 }; /* bytes, as for staging */

/* Scratch of one action, in bytes. */
struct needs {
    uint64_t in, out, staging;
};

static uint64_t align_bytes(uint64_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static uint64_t shard_bytes(const struct weft_bound *bound, const weft_spec *spec)
{
    struct wf_shard shard;

    wf_shard_of(spec, weft_comm_rank(bound->parent), &shard);
    return align_bytes((uint64_t)shard.elements * wf_dtype_bytes(spec->layout.dtype));
}

static struct needs needs_of(const struct weft_bound *bound, uint32_t index)
{
    const struct wf_action *action = &bound->actions[index];
    struct needs needs = {.staging = wf_packing_bytes(action)};

    if (index > 0) needs.in = shard_bytes(bound, bound->actions[index - 1].step->to);
    if (index + 1 < bound->action_count) needs.out = shard_bytes(bound, action->step->to);
    return needs;
}

uint64_t wf_scratch_bytes(const struct weft_bound *bound)
{
    uint64_t most = 0;

    for (uint32_t i = 0; i < bound->action_count; i++) {
        struct needs needs = needs_of(bound, i);
        uint64_t all = needs.in + needs.out + needs.staging;
        if (all > most) most = all;
    }
    return most;
}

static void assign_actions(struct weft_bound *bound, void *scratch)
{
    uint64_t most = wf_scratch_bytes(bound);
    char *low = scratch;

    for (uint32_t i = 0; i < bound->action_count; i++) {
        struct wf_action *action = &bound->actions[i];
        struct needs needs = needs_of(bound, i);
        action->from_source = i == 0;
        action->to_target = i + 1 == bound->action_count;
        if (most == 0) continue;
        action->in_scratch = i % 2 == 1 ? low : low + most - needs.in;
        action->out_scratch = i % 2 == 0 ? low : low + most - needs.out;
        wf_packing_place(action, low + (i % 2 == 1 ? needs.in : needs.out));
    }
}

void wf_scratch_assign(struct weft_bound *bound, void *scratch)
{
    struct wf_batch *batch = bound->batch;

    assign_actions(bound, scratch);
    if (batch == NULL) return;
    wf_fused_assign(&batch->fused, scratch);
    for (uint32_t i = 0; i < bound->plan->member_count; i++)
        if (batch->alone[i] != NULL) assign_actions(batch->alone[i], scratch);
}

uint64_t weft_bound_scratch(const weft_bound *bound)
{
    return bound != NULL ? bound->scratch_bytes : 0;
}
