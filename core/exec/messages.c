/* messages.c - one side of an exchange: the regions of a tensor as one message per rank.
 *
 * A message contains all regions that go to, or come from, one rank, one after the other.  If the
 * regions already lie that way in the tensor, the tensor itself is the message buffer. */
#include "bound.h"

weft_status wf_parts_renumber(struct wf_parts *parts, const weft_comm *parent,
                              const weft_comm *comm)
{
    for (uint32_t i = 0; i < parts->rank_count; i++) {
        int32_t rank = weft_comm_find_rank(comm, weft_comm_world_rank(parent, parts->ranks[i]));
        if (rank < 0)
            return wf_fail(WEFT_ERR_INTERNAL,
                           "rank %d takes part in a step, but is not in the axis group of the step",
                           parts->ranks[i]);
        parts->ranks[i] = rank;
    }
    return WEFT_OK;
}

static int64_t *strides_at(weft_region *r, enum wf_end end)
{
    return end == WF_END_SOURCE ? r->source_stride : r->target_stride;
}

static int64_t *offset_at(weft_region *r, enum wf_end end)
{
    return end == WF_END_SOURCE ? &r->source_offset : &r->target_offset;
}

static enum wf_end other_end(enum wf_end end)
{
    return end == WF_END_SOURCE ? WF_END_TARGET : WF_END_SOURCE;
}

static uint32_t peer_index(const weft_region *r, enum wf_end end)
{
    return end == WF_END_SOURCE ? r->target : r->source;
}

static bool lies_in_one_run(weft_region *r, enum wf_end end)
{
    const int64_t *strides = strides_at(r, end);
    int64_t stride = 1;

    for (uint32_t d = r->dims; d-- > 0; stride *= r->extent[d])
        if (strides[d] != stride) return false;
    return true;
}

/* Set the counts, and the offsets of messages that lie in the tensor.  Do all of them lie there? */
static bool find_in_tensor(const struct wf_message_layout *layout, uint64_t count,
                           weft_region *regions, struct wf_messages *messages)
{
    bool found = layout->holders == 1 && !layout->is_cast;

    for (uint64_t i = 0; i < count; i++) {
        weft_region *r = &regions[i];
        const int32_t *peers = &layout->peers[peer_index(r, layout->end)];
        uint64_t at = (uint64_t)*offset_at(r, layout->end);
        uint64_t elements = wf_region_elements(r);
        if (messages->counts[peers[0]] == 0) messages->offsets[peers[0]] = at;
        found = found && lies_in_one_run(r, layout->end) &&
                at == messages->offsets[peers[0]] + messages->counts[peers[0]];
        for (uint32_t h = 0; h < layout->holders; h++)
            messages->counts[peers[h]] += elements;
    }
    for (int32_t rank = 0; rank < layout->size && layout->in_rank_order; rank++)
        found = found && messages->offsets[rank] == (uint64_t)rank * messages->counts[rank];
    return found;
}

/* Set the other ends of REGIONS to follow one another from the beginning of each peer's message
 * (with HOLDERS: of each holder's message). */
static void point_at_staging(const struct wf_message_layout *layout, uint64_t count,
                             weft_region *regions, struct wf_messages *messages)
{
    enum wf_end staging = other_end(layout->end);

    for (int32_t rank = 0; rank < layout->size; rank++)
        messages->counts[rank] = 0;
    for (uint64_t i = 0; i < count; i++) {
        weft_region *r = &regions[i];
        const int32_t *peers = &layout->peers[peer_index(r, layout->end)];
        uint64_t elements = wf_region_elements(r);

        if (!layout->is_shard) {
            *offset_at(r, staging) = (int64_t)messages->counts[peers[0]];
            wf_region_pack(r, strides_at(r, staging));
        }
        for (uint32_t h = 0; h < layout->holders; h++)
            messages->counts[peers[h]] += elements;
    }
}

void wf_messages_lay(const struct wf_message_layout *layout, uint64_t count, weft_region *regions,
                     struct wf_messages *messages)
{
    messages->staged = 0;
    if (find_in_tensor(layout, count, regions, messages)) return;
    for (int32_t rank = 0; rank < layout->size; rank++) {
        messages->offsets[rank] = messages->staged;
        messages->staged += messages->counts[rank];
    }
    point_at_staging(layout, count, regions, messages);
}
