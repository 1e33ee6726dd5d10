/* pull.c - reading a version from the publisher's memory. */
#include "subscribe.h"

#include <string.h>

uint64_t wf_feed_bytes_here(const weft_subscriber *subscriber, size_t index)
{
    return wf_feed_shard_bytes(subscriber->mine.entries[index].spec, subscriber->job.first,
                               subscriber->job.end);
}

static size_t ranks_here(const weft_subscriber *subscriber)
{
    return (size_t)(subscriber->job.end - subscriber->job.first);
}

size_t wf_feed_outcome_bytes(const weft_subscriber *subscriber)
{
    return (1 + subscriber->mine.count * ranks_here(subscriber)) * sizeof *subscriber->outcome;
}

static uint64_t *sum_of(const weft_subscriber *subscriber, size_t tensor, int32_t rank)
{
    return &subscriber->outcome[1 + tensor * ranks_here(subscriber) +
                                (size_t)(rank - subscriber->job.first)];
}

/* ---- where elements go ---- */

/* The memory of RANK's shard of TENSOR, if the host can write it and it has no gaps; else NULL. */
static char *memory_in_place(const weft_subscriber *subscriber, const weft_tensor *tensor,
                             int32_t rank)
{
    weft_tensor_local_info local = {.struct_size = sizeof local};
    weft_device_info device = {.struct_size = sizeof device};
    int64_t strides[WEFT_MAX_DIMS];

    if (weft_tensor_is_read_only(tensor) ||
        weft_device_get(subscriber->job.context, &device) != WEFT_OK ||
        (device.features & WEFT_FEATURE_HOST_MEMORY) == 0 ||
        weft_tensor_local_of(tensor, rank, &local) != WEFT_OK)
        return NULL;
    wf_row_major(local.shard.dims, local.shard.shape, strides);
    for (int32_t d = 0; d < local.shard.dims; d++)
        if (local.shard.shape[d] > 1 && local.strides[d] != strides[d]) return NULL;
    return local.memory;
}

/* Where the elements of TARGET go, and in *BOUNCES whether they are copied to the tensor then. */
static weft_status place(weft_subscriber *subscriber, const struct wf_feed_target *target,
                         bool *bounces, char **out)
{
    const weft_tensor *tensor;
    uint64_t bytes = 0;

    *bounces = false;
    if (subscriber->apply == WEFT_FEED_COPY) {
        *out = subscriber->shadow + subscriber->offsets[target->tensor] + target->offset;
        return WEFT_OK;
    }
    tensor = subscriber->sets[1 - subscriber->serving][target->tensor];
    *out = memory_in_place(subscriber, tensor, target->rank);
    if (*out != NULL) return WEFT_OK;
    *bounces = true;
    for (size_t i = 0; i < subscriber->mine.count && subscriber->bounce == NULL; i++)
        if (wf_feed_bytes_here(subscriber, i) > bytes) bytes = wf_feed_bytes_here(subscriber, i);
    if (subscriber->bounce == NULL) subscriber->bounce = wf_alloc(bytes);
    if (subscriber->bounce == NULL) return wf_fail_memory(bytes);
    *out = subscriber->bounce + target->offset;
    return WEFT_OK;
}

/* ---- reading ---- */

/* Whether the slots of TARGET's sources still have the version. */
static bool is_whole(const struct wf_feed_link *link, const struct wf_feed_target *target,
                     const struct wf_feed_grant *grant)
{
    for (size_t i = target->first; i < target->first + target->count; i++)
        if (wf_feed_memory_serial(&link->memories[link->plan.sources[i].holder], grant->slot) !=
            grant->serial)
            return false;
    return true;
}

/* Read TARGET to TO.  *WHOLE is false if it was overwritten meanwhile. */
static weft_status read_target(weft_subscriber *subscriber, const struct wf_feed_target *target,
                               const struct wf_feed_grant *grant, char *to, bool *whole)
{
    const struct wf_feed_link *link = &subscriber->link;
    const weft_spec *spec = subscriber->mine.entries[target->tensor].spec;

    *whole = is_whole(link, target, grant);
    for (size_t i = target->first; i < target->first + target->count && *whole; i++) {
        const struct wf_feed_source *source = &link->plan.sources[i];
        const char *from =
            wf_feed_memory_slot(&link->memories[source->holder], grant->slot) + source->offset;
        WF_TRY(wf_feed_copy(&subscriber->runs, link->description.entries[target->entry].spec,
                            source->rank, from, spec, target->rank, to));
    }
    wf_feed_memory_read_fence();
    *whole = *whole && is_whole(link, target, grant);
    return WEFT_OK;
}

/* TARGET is the last one of its tensor. */
static bool is_last(const struct wf_feed_plan *plan, size_t target)
{
    return target + 1 == plan->target_count ||
           plan->targets[target + 1].tensor != plan->targets[target].tensor;
}

static weft_status pull_target(weft_subscriber *subscriber, size_t index,
                               const struct wf_feed_grant *grant, bool *whole)
{
    const struct wf_feed_plan *plan = &subscriber->link.plan;
    const struct wf_feed_target *target = &plan->targets[index];
    const weft_spec *spec = subscriber->mine.entries[target->tensor].spec;
    uint64_t begun_ns = wf_now_ns(), read_ns;
    bool bounces;
    char *to;

    WF_TRY(place(subscriber, target, &bounces, &to));
    WF_TRY(read_target(subscriber, target, grant, to, whole));
    read_ns = wf_now_ns();
    *sum_of(subscriber, target->tensor, target->rank) = wf_feed_sum(spec, target->rank, to);
    subscriber->info.pull_ns += read_ns - begun_ns;
    subscriber->info.check_ns += wf_now_ns() - read_ns;
    if (!bounces || !is_last(plan, index)) return WEFT_OK;
    return weft_tensor_from_host(subscriber->sets[1 - subscriber->serving][target->tensor],
                                 subscriber->bounce, wf_feed_bytes_here(subscriber, target->tensor),
                                 NULL);
}

weft_status wf_feed_pull(weft_subscriber *subscriber, const struct wf_feed_grant *grant,
                         const bool *only, const struct wf_feed_wait *wait)
{
    const struct wf_feed_plan *plan = &subscriber->link.plan;
    bool whole = true;

    if (only == NULL) memset(subscriber->outcome, 0, wf_feed_outcome_bytes(subscriber));
    for (size_t i = 0; i < plan->target_count && whole; i++) {
        if (only != NULL && !only[plan->targets[i].tensor]) continue;
        WF_TRY(pull_target(subscriber, i, grant, &whole));
        if (wait->progress != NULL) wait->progress(wait->user);
    }
    subscriber->outcome[0] = whole ? WF_FEED_PULLED : WF_FEED_REVOKED;
    return WEFT_OK;
}

/* ---- audit ---- */

weft_status wf_feed_sum_served(weft_subscriber *subscriber, weft_stream *stream)
{
    weft_status status = WEFT_OK;

    memset(subscriber->outcome, 0, wf_feed_outcome_bytes(subscriber));
    for (size_t i = 0; i < subscriber->mine.count && status == WEFT_OK; i++) {
        const weft_spec *spec = subscriber->mine.entries[i].spec;
        uint64_t bytes = wf_feed_bytes_here(subscriber, i);
        char *copy = bytes > 0 ? wf_alloc(bytes) : NULL, *at = copy;

        if (bytes == 0) continue;
        if (copy == NULL) return wf_fail_memory(bytes);
        status = weft_tensor_to_host(subscriber->sets[subscriber->serving][i], copy, bytes, stream);
        for (int32_t rank = subscriber->job.first; rank < subscriber->job.end; rank++) {
            if (status == WEFT_OK) *sum_of(subscriber, i, rank) = wf_feed_sum(spec, rank, at);
            at += weft_spec_shard_bytes(spec, rank);
        }
        wf_free(copy);
    }
    return status;
}
