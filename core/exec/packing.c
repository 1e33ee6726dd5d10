/* packing.c - the way for backends whose ranks cannot read each other's memory: what each reader
 * wants goes into one message for it, and what arrives is put, or reduced, into place.
 *
 * The two sides of a message agree on its order without a word: both cut the overlap of the same
 * two shards into the same regions. */
#include "bound.h"

#include <string.h>

static int64_t region_elements(const weft_region *r)
{
    int64_t elements = 1;

    for (uint32_t d = 0; d < r->dims; d++)
        elements *= r->extent[d];
    return elements;
}

/* Strides of a region that lies packed. */
static void pack_strides(const weft_region *r, int64_t *strides)
{
    int64_t stride = 1;

    for (uint32_t d = r->dims; d-- > 0; stride *= r->extent[d])
        strides[d] = stride;
}

static weft_status stage(struct weft_bound *bound, uint64_t elements, uint32_t dtype, void **out)
{
    uint64_t bytes = elements * wf_dtype_bytes(dtype);

    WF_TRY(weft_alloc(bound->context, bytes, WEFT_MEMORY_DEVICE, out));
    bound->scratch_bytes += bytes;
    return WEFT_OK;
}

/* Regions of PARTS with their targets packed one after the other, reader by reader. */
static weft_status set_pack(struct weft_bound *bound, struct wf_action *action,
                            struct wf_parts *serve)
{
    struct wf_packing *p = &action->packing;
    uint64_t at = 0;

    for (uint64_t i = 0; i < serve->region_count; i++) {
        weft_region *r = &serve->regions[i];
        int32_t world = weft_comm_world_rank(bound->parent, serve->ranks[r->target]);
        int32_t reader = weft_comm_find_rank(action->comm, world);
        if (reader < 0) return wf_fail(WEFT_ERR_INTERNAL, "a reader takes no part in the step");
        if (p->send_counts[reader] == 0) p->send_offsets[reader] = at;
        r->target = 0;
        r->target_offset = (int64_t)at;
        pack_strides(r, r->target_stride);
        at += (uint64_t)region_elements(r);
        p->send_counts[reader] += (uint64_t)region_elements(r);
    }
    WF_TRY(stage(bound, at, action->dtype, &p->send));
    if (serve->region_count == 0) return WEFT_OK;
    return bound->kernel->regions_create(bound->device, (uint32_t)wf_dtype_bytes(action->dtype),
                                         serve->region_count, serve->regions, &p->pack);
}

/* Regions of PARTS with their sources packed, as they arrive from each rank of a block. */
static weft_status set_unpack(struct weft_bound *bound, struct wf_action *action,
                              const struct wf_parts *parts)
{
    struct wf_packing *p = &action->packing;
    weft_region *regions = wf_alloc(parts->region_count * sizeof *regions);
    weft_status status = WEFT_OK;
    uint64_t at = 0;

    if (regions == NULL) return wf_fail_memory(parts->region_count * sizeof *regions);
    for (uint64_t i = 0; i < parts->region_count; i++) {
        weft_region *r = &regions[i];
        *r = parts->regions[i];
        for (uint32_t h = 0; h < parts->holders; h++) {
            int32_t holder = parts->ranks[r->source + h];
            if (h == 0) r->source_offset = (int64_t)p->receive_counts[holder];
            p->receive_counts[holder] += (uint64_t)region_elements(r);
        }
        pack_strides(r, r->source_stride);
    }
    for (int32_t rank = 0; rank < action->comm->size; rank++) {
        p->receive_offsets[rank] = at;
        at += p->receive_counts[rank];
    }
    status = stage(bound, at, action->dtype, &p->receive);
    for (uint32_t i = 0; i < parts->rank_count && status == WEFT_OK; i++)
        p->arrivals[i] = (const char *)p->receive +
                         p->receive_offsets[parts->ranks[i]] * wf_dtype_bytes(action->dtype);
    if (status == WEFT_OK && parts->region_count > 0)
        status =
            bound->kernel->regions_create(bound->device, (uint32_t)wf_dtype_bytes(action->dtype),
                                          parts->region_count, regions, &action->regions);
    wf_free(regions);
    return status;
}

weft_status wf_packing_set(struct weft_bound *bound, struct wf_action *action,
                           const struct wf_parts *parts)
{
    struct wf_packing *p = &action->packing;
    size_t size = (size_t)action->comm->size;
    struct wf_parts serve;
    weft_status status;

    p->send_counts = wf_calloc(4 * size, sizeof *p->send_counts);
    p->arrivals = wf_calloc(parts->rank_count, sizeof *p->arrivals);
    if (p->send_counts == NULL || p->arrivals == NULL)
        return wf_fail_memory(4 * size * sizeof *p->send_counts);
    p->send_offsets = p->send_counts + size;
    p->receive_counts = p->send_offsets + size;
    p->receive_offsets = p->receive_counts + size;
    WF_TRY(wf_parts_serve(action->step->from, action->step->to, weft_comm_rank(bound->parent), NULL,
                          &serve));
    status = set_pack(bound, action, &serve);
    if (status == WEFT_OK) status = set_unpack(bound, action, parts);
    wf_parts_free(&serve);
    return status;
}

void wf_packing_clear(struct weft_bound *bound, struct wf_action *action)
{
    struct wf_packing *p = &action->packing;

    if (p->pack != NULL) bound->kernel->regions_destroy(p->pack);
    if (weft_free(bound->context, p->send) != WEFT_OK ||
        weft_free(bound->context, p->receive) != WEFT_OK)
        wf_log(WF_WARNING, "staging memory was not freed: %s", weft_last_error());
    wf_free(p->arrivals);
    wf_free(p->send_counts);
}

weft_status wf_packing_run(const struct weft_bound *bound, const struct wf_action *action,
                           const void *in, void *out, weft_stream *stream)
{
    const struct wf_packing *p = &action->packing;

    if (p->pack != NULL)
        WF_TRY(bound->kernel->regions_copy(p->pack, &in, (void *const *)&p->send, stream));
    WF_TRY(weft_all_to_all_v(action->comm, p->send, p->send_counts, p->send_offsets, p->receive,
                             p->receive_counts, p->receive_offsets, action->dtype, stream));
    if (action->regions == NULL) return WEFT_OK;
    if (action->holders == 1)
        return bound->kernel->regions_copy(action->regions, p->arrivals, &out, stream);
    return bound->kernel->regions_reduce(action->regions, action->dtype, action->reduction,
                                         action->holders, p->arrivals, &out, stream);
}
