/* packing.c - packed actions, for backends whose ranks cannot read each other's memory: the
 * elements that a reader needs are packed into one message for it, and arrivals are unpacked or
 * reduced.
 *
 * The two sides of a message agree on its layout without communication: both cut the overlap of the
 * same two shards into the same regions.  Where whole shards are gathered or scattered, the
 * backend's own collective transfers the messages. */
#include "plan/figures/figures.h"
#include "bound.h"

#include <string.h>

/* ---- which collective ---- */

/* True if all members have equally many elements of SPEC. */
static bool shares_evenly(const struct weft_bound *bound, const struct wf_action *action,
                          const weft_spec *spec)
{
    int64_t elements = 0;

    for (int32_t i = 0; i < action->comm->size; i++) {
        int32_t world = weft_comm_world_rank(action->comm, i);
        struct wf_shard shard;
        wf_shard_of(spec, weft_comm_find_rank(bound->parent, world), &shard);
        if (i == 0) elements = shard.elements;
        if (shard.elements != elements) return false;
    }
    return true;
}

/* EVEN if SPEC is shared evenly, else UNEVEN, as far as the backend has them; otherwise an
 * all-to-all. */
static uint32_t choose_of(const struct weft_bound *bound, const struct wf_action *action,
                          const weft_spec *spec, uint32_t even, uint32_t uneven)
{
    if (wf_ways_have(&bound->ways, even, action->kind.dtype) && shares_evenly(bound, action, spec))
        return even;
    return wf_ways_have(&bound->ways, uneven, action->kind.dtype) ? uneven : WEFT_COLL_ALL_TO_ALL_V;
}

uint32_t wf_packing_collective(const struct weft_bound *bound, const struct wf_action *action)
{
    const struct wf_step *step = action->step;

    if (wf_step_gathers_shards(step))
        return choose_of(bound, action, step->from, WEFT_COLL_ALL_GATHER, WEFT_COLL_ALL_GATHER_V);
    if (wf_step_scatters_shards(step) && wf_average_is_native(bound, &action->kind))
        return choose_of(bound, action, step->to, WEFT_COLL_REDUCE_SCATTER,
                         WEFT_COLL_REDUCE_SCATTER_V);
    return WEFT_COLL_ALL_TO_ALL_V;
}

static bool reduces_on_the_way(const struct wf_packing *p)
{
    return p->collective == WEFT_COLL_REDUCE_SCATTER || p->collective == WEFT_COLL_REDUCE_SCATTER_V;
}

static bool is_gather(const struct wf_packing *p)
{
    return p->collective == WEFT_COLL_ALL_GATHER || p->collective == WEFT_COLL_ALL_GATHER_V;
}

/* ---- the two sides ---- */

/* DTYPE: that of the regions' sources. */
static weft_status make_list(struct weft_bound *bound, uint32_t dtype, uint64_t count,
                             const weft_region *regions, void **list)
{
    return bound->kernel->regions_create(bound->kernel_device, (uint32_t)wf_dtype_bytes(dtype),
                                         count, regions, list);
}

static weft_status set_out(struct weft_bound *bound, struct wf_action *action)
{
    struct wf_packing *p = &action->packing;
    struct wf_message_layout layout = {.end = WF_END_SOURCE,
                                       .size = action->comm->size,
                                       .holders = 1,
                                       .in_rank_order = p->collective == WEFT_COLL_REDUCE_SCATTER,
                                       .is_cast = action->from != action->kind.dtype};
    struct wf_parts serve;
    weft_status status;

    WF_TRY(wf_parts_serve(action->step->from, action->step->to, action->step->living,
                          weft_comm_rank(bound->parent), NULL, &serve));
    status = wf_parts_renumber(&serve, bound->parent, action->comm);
    layout.peers = serve.ranks;
    if (status == WEFT_OK) {
        wf_messages_lay(&layout, serve.region_count, serve.regions, &p->out);
        /* Messages of one list are consecutive in one buffer. */
        for (uint64_t i = 0; i < serve.region_count && p->out.staged > 0; i++) {
            weft_region *r = &serve.regions[i];
            r->target_offset += (int64_t)p->out.offsets[serve.ranks[r->target]];
            r->target = 0;
        }
        if (p->out.staged > 0)
            status =
                make_list(bound, action->from, serve.region_count, serve.regions, &p->out.list);
    }
    wf_parts_free(&serve);
    return status;
}

static weft_status set_in(struct weft_bound *bound, struct wf_action *action,
                          const struct wf_parts *parts)
{
    struct wf_packing *p = &action->packing;
    struct wf_message_layout layout = {.end = WF_END_TARGET,
                                       .peers = p->blocks,
                                       .size = action->comm->size,
                                       .holders = p->kind.holders,
                                       .in_rank_order = p->collective == WEFT_COLL_ALL_GATHER,
                                       .is_cast = action->kind.dtype != action->to,
                                       .is_shard = is_gather(p)};
    size_t bytes = parts->region_count * sizeof(weft_region);
    weft_region *regions;
    weft_status status = WEFT_OK;

    if (parts->region_count == 0) return WEFT_OK;
    regions = wf_alloc(bytes);
    if (regions == NULL) return wf_fail_memory(bytes);
    memcpy(regions, parts->regions, bytes);
    wf_messages_lay(&layout, parts->region_count, regions, &p->in);
    if (p->in.staged > 0) {
        status = make_list(bound, action->kind.dtype, parts->region_count, regions, &p->in.list);
        if (status == WEFT_OK)
            status = wf_average_make(bound, &p->kind, parts->region_count, regions, &p->average);
        if (status == WEFT_OK)
            status = wf_average_give_room(bound, p->average,
                                          p->in.staged * wf_dtype_bytes(action->kind.dtype));
    }
    wf_free(regions);
    return status;
}

static void set_collective(struct wf_action *action)
{
    const struct wf_packing *p = &action->packing;

    action->collective = (weft_collective_args){
        .struct_size = sizeof(weft_collective_args),
        .collective = p->collective,
        .dtype = action->kind.dtype,
        .reduction = reduces_on_the_way(p) ? action->kind.reduction : 0,
        .root = -1,
        .divisor = reduces_on_the_way(p) ? wf_divisor_of(&action->kind) : 0,
    };
    if (p->collective == WEFT_COLL_ALL_GATHER) action->collective.count = p->in.counts[0];
    if (p->collective == WEFT_COLL_REDUCE_SCATTER) action->collective.count = p->out.counts[0];
    action->collective.send_counts = p->out.counts;
    action->collective.send_offsets = p->out.offsets;
    action->collective.recv_counts = p->in.counts;
    action->collective.recv_offsets = p->in.offsets;
}

/* ---- setting and clearing ---- */

static weft_status allocate_packing(struct wf_action *action, const struct wf_parts *parts)
{
    struct wf_packing *p = &action->packing;
    size_t size = (size_t)action->comm->size;

    p->kind = action->kind;
    if (reduces_on_the_way(p)) p->kind.holders = 1;
    p->block_count = reduces_on_the_way(p) ? 1 : parts->rank_count;
    p->out.counts = wf_calloc(4 * size, sizeof *p->out.counts);
    p->blocks = wf_calloc(p->block_count, sizeof *p->blocks);
    p->arrivals = wf_calloc(p->block_count, sizeof *p->arrivals);
    if (p->out.counts == NULL || p->blocks == NULL || p->arrivals == NULL)
        return wf_fail_memory(4 * size * sizeof *p->out.counts);
    p->out.offsets = p->out.counts + size;
    p->in.counts = p->out.offsets + size;
    p->in.offsets = p->in.counts + size;
    /* If the collective reduces, the result arrives as if from rank 0 alone. */
    if (!reduces_on_the_way(p) && parts->rank_count > 0)
        memcpy(p->blocks, parts->ranks, parts->rank_count * sizeof *p->blocks);
    return WEFT_OK;
}

weft_status wf_packing_set(struct weft_bound *bound, struct wf_action *action,
                           const struct wf_parts *parts)
{
    struct wf_packing *p = &action->packing;

    p->collective = wf_packing_collective(bound, action);
    if (p->collective == WEFT_COLL_ALL_TO_ALL_V)
        WF_TRY(wf_ways_require_exchange(&bound->ways, bound->team, action->kind.dtype));
    WF_TRY(allocate_packing(action, parts));
    if (!is_gather(p)) WF_TRY(set_out(bound, action));
    WF_TRY(set_in(bound, action, parts));
    set_collective(action);
    return WEFT_OK;
}

void wf_packing_clear(struct weft_bound *bound, struct wf_action *action)
{
    struct wf_packing *p = &action->packing;

    if (p->out.list != NULL) bound->kernel->regions_destroy(p->out.list);
    if (p->in.list != NULL) bound->kernel->regions_destroy(p->in.list);
    wf_average_free(bound, p->average);
    wf_free(p->blocks);
    wf_free(p->arrivals);
    wf_free(p->out.counts);
}

/* ---- staging ---- */

/* Staging is aligned for vector accesses. */
static uint64_t staged_bytes(const struct wf_messages *messages, uint32_t dtype)
{
    return (messages->staged * wf_dtype_bytes(dtype) + 255) & ~UINT64_C(255);
}

uint64_t wf_packing_bytes(const struct wf_action *action)
{
    return staged_bytes(&action->packing.out, action->kind.dtype) +
           staged_bytes(&action->packing.in, action->kind.dtype);
}

void wf_packing_place(struct wf_action *action, void *staging)
{
    struct wf_packing *p = &action->packing;
    char *in = (char *)staging + staged_bytes(&p->out, action->kind.dtype);

    if (p->out.staged > 0) p->out.staging = staging;
    if (p->in.staged == 0) return;
    p->in.staging = in;
    for (uint32_t i = 0; i < p->block_count; i++)
        p->arrivals[i] = in + p->in.offsets[p->blocks[i]] * wf_dtype_bytes(action->kind.dtype);
}
