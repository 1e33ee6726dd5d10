/* plan.c - which elements a rank reads, and from where. */
#include "protocol.h"

/* What the search of sources needs, for all tensors. */
struct search {
    const struct wf_feed_description *feed;
    struct wf_feed_plan *plan;
};

uint64_t wf_feed_align(uint64_t bytes)
{
    return bytes > UINT64_MAX - WF_FEED_ALIGN
               ? UINT64_MAX
               : (bytes + WF_FEED_ALIGN - 1) / WF_FEED_ALIGN * WF_FEED_ALIGN;
}

uint64_t wf_feed_shard_bytes(const weft_spec *spec, int32_t first, int32_t end)
{
    uint64_t bytes = 0;

    for (int32_t rank = first; rank < end; rank++)
        bytes = wf_add_capped(bytes, weft_spec_shard_bytes(spec, rank));
    return bytes;
}

static int32_t holder_of(const struct wf_feed_description *feed, int32_t rank)
{
    return feed->simulated ? 0 : rank;
}

/* Elements that the two shards share. */
static int64_t shared(const weft_spec *source, int32_t source_rank, const weft_spec *target,
                      int32_t target_rank)
{
    int64_t elements = 1;

    for (int32_t d = 0; d < weft_spec_dims(source) && elements > 0; d++) {
        weft_intersection found;
        int64_t length = 0;
        for (int64_t at = 0;
             weft_spec_intersection(source, source_rank, target, target_rank, d, at, &found);
             at = found.start + found.length)
            length += found.length;
        elements *= length;
    }
    return elements;
}

/* Where RANK's shard of the tensor at OFFSET begins in its holder. */
static uint64_t shard_offset(const struct wf_feed_description *feed, const weft_spec *spec,
                             int32_t rank, uint64_t offset)
{
    return feed->simulated ? offset + wf_feed_shard_bytes(spec, 0, rank) : offset;
}

/* Add the sources of TARGET's shard.  Of the replicas at the publisher, each rank reads another
 * one, as far as there are enough. */
static weft_status add_sources(struct search *search, const weft_spec *spec,
                               struct wf_feed_target *target)
{
    struct wf_feed_plan *plan = search->plan;
    const weft_spec *source = search->feed->entries[target->entry].spec;
    const weft_mesh *mesh = weft_spec_mesh(source);
    int32_t wanted = target->rank % wf_feed_replicas(source), replica;
    weft_shard shard, theirs;
    int64_t found = 0;

    weft_spec_shard(spec, target->rank, &shard);
    target->first = plan->source_count;
    for (int32_t i = 0; i < weft_mesh_size(mesh) && found < shard.elements; i++) {
        int32_t rank = weft_mesh_rank_at(mesh, i), holder = holder_of(search->feed, rank);
        int64_t elements;

        if (!wf_feed_replica(source, rank, &replica) || replica != wanted) continue;
        weft_spec_shard(source, rank, &theirs);
        elements = theirs.elements > 0 ? shared(source, rank, spec, target->rank) : 0;
        if (elements == 0) continue;
        WF_TRY(
            wf_grow(&plan->sources, sizeof *plan->sources, plan->source_count, &plan->source_room));
        plan->sources[plan->source_count++] = (struct wf_feed_source){
            .rank = rank,
            .holder = holder,
            .offset = shard_offset(search->feed, source, rank, plan->slot_bytes[holder])};
        found += elements;
    }
    target->count = plan->source_count - target->first;
    if (found == shard.elements) return WEFT_OK;
    return wf_fail(WEFT_ERR_INTERNAL, "tensor \"%.200s\": of %lld elements, %lld have a source",
                   search->feed->entries[target->entry].name, (long long)shard.elements,
                   (long long)found);
}

/* Add the targets of the ranks from FIRST to END - 1 of tensor TENSOR, which is ENTRY. */
static weft_status add_targets(struct search *search, size_t tensor, const weft_spec *spec,
                               size_t entry, int32_t first, int32_t end)
{
    struct wf_feed_plan *plan = search->plan;
    uint64_t offset = 0;

    for (int32_t rank = first; rank < end; rank++) {
        uint64_t bytes = weft_spec_shard_bytes(spec, rank);
        struct wf_feed_target target = {
            .tensor = tensor, .entry = entry, .rank = rank, .offset = offset};

        if (bytes == 0) continue;
        WF_TRY(add_sources(search, spec, &target));
        WF_TRY(
            wf_grow(&plan->targets, sizeof *plan->targets, plan->target_count, &plan->target_room));
        plan->targets[plan->target_count++] = target;
        plan->bytes += bytes;
        offset += bytes;
    }
    return WEFT_OK;
}

/* The next tensor of each holder begins behind SPEC. */
static weft_status add_slot_bytes(const struct wf_feed_description *feed, const weft_spec *spec,
                                  uint64_t *slot_bytes)
{
    const weft_mesh *mesh = weft_spec_mesh(spec);

    for (int32_t i = 0; i < weft_mesh_size(mesh); i++) {
        int32_t rank = weft_mesh_rank_at(mesh, i), holder = holder_of(feed, rank);
        slot_bytes[holder] = wf_add_capped(slot_bytes[holder], weft_spec_shard_bytes(spec, rank));
    }
    for (int32_t h = 0; h < (feed->simulated ? 1 : feed->ranks); h++) {
        slot_bytes[h] = wf_feed_align(slot_bytes[h]);
        if (slot_bytes[h] > INT64_MAX / 2 / WEFT_PUBLISHER_VERSIONS_MAX)
            return wf_fail(WEFT_ERR_INVALID, "the tensors of the feed have too many bytes");
    }
    return WEFT_OK;
}

/* ENTRIES in the order of the feed: the tensor of each entry, or COUNT. */
static size_t *tensors_by_entry(const struct wf_feed_description *feed, size_t count,
                                const size_t *entries)
{
    size_t *tensors = wf_alloc((feed->count + 1) * sizeof *tensors);

    if (tensors == NULL) return NULL;
    for (size_t i = 0; i < feed->count; i++)
        tensors[i] = count;
    for (size_t i = 0; i < count; i++)
        tensors[entries[i]] = i;
    return tensors;
}

weft_status wf_feed_plan_make(const struct wf_feed_description *feed, size_t count,
                              const weft_spec *const *specs, const size_t *entries, int32_t first,
                              int32_t end, struct wf_feed_plan *out)
{
    struct wf_feed_plan plan = {.holders = feed->simulated ? 1 : feed->ranks};
    struct search search = {feed, &plan};
    size_t *tensors = tensors_by_entry(feed, count, entries);
    weft_status status = WEFT_OK;

    plan.slot_bytes = wf_calloc((size_t)plan.holders, sizeof *plan.slot_bytes);
    if (tensors == NULL || plan.slot_bytes == NULL)
        status = wf_fail_memory((feed->count + (size_t)plan.holders) * sizeof *tensors);
    for (size_t i = 0; i < feed->count && status == WEFT_OK; i++) {
        size_t tensor = tensors[i];
        if (tensor < count) status = add_targets(&search, tensor, specs[tensor], i, first, end);
        if (status == WEFT_OK)
            status = add_slot_bytes(feed, feed->entries[i].spec, plan.slot_bytes);
    }
    wf_free(tensors);
    if (status != WEFT_OK)
        wf_feed_plan_free(&plan);
    else
        *out = plan;
    return status;
}

void wf_feed_plan_free(struct wf_feed_plan *plan)
{
    wf_free(plan->targets);
    wf_free(plan->sources);
    wf_free(plan->slot_bytes);
    *plan = (struct wf_feed_plan){0};
}
