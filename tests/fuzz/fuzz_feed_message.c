/* Any bytes are a request, a description or a lease of a feed, or are refused.  What is taken for a
 * description can be planned with. */
#include "fuzz.h"

#include "protocol/protocol.h"

enum { ENTRIES_MAX = 8, RANKS_MAX = 8 };

static void plan(const struct wf_feed_description *feed)
{
    const weft_spec *specs[ENTRIES_MAX];
    size_t entries[ENTRIES_MAX], count = feed->count < ENTRIES_MAX ? feed->count : ENTRIES_MAX;
    struct wf_feed_plan made;

    for (size_t i = 0; i < count; i++) {
        if (weft_mesh_size(weft_spec_mesh(feed->entries[i].spec)) > 64) return; /* takes long */
        specs[i] = feed->entries[i].spec;
        entries[i] = i;
    }
    if (count < feed->count || feed->ranks > 4096) return;
    if (wf_feed_plan_make(feed, count, specs, entries, 0, RANKS_MAX, &made) != WEFT_OK) return;
    for (size_t i = 0; i < made.source_count; i++) {
        const struct wf_feed_source *source = &made.sources[i];
        FUZZ_ASSERT(source->holder < made.holders && source->rank < feed->ranks);
        FUZZ_ASSERT(source->offset < made.slot_bytes[source->holder]);
    }
    wf_feed_plan_free(&made);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wf_frame frame = {.payload = data + 1, .bytes = size - 1};
    weft_blob payload = {data + 1, size - 1};
    struct wf_feed_description feed;
    struct wf_feed_request request;
    struct wf_feed_leased leased;

    if (size == 0) return 0;
    frame.type = data[0] % WF_FRAME_TYPES;
    if (wf_feed_request_take(&frame, &request) == WEFT_OK)
        FUZZ_ASSERT(frame.bytes <= 8 && (unsigned)request.type == frame.type);
    if (wf_feed_leased_take(payload, 2, 3, &leased) == WEFT_OK)
        FUZZ_ASSERT(leased.slot < 2 && leased.sums.bytes == 24);
    if (wf_feed_description_take(payload, &feed) == WEFT_OK) {
        plan(&feed);
        wf_feed_description_free(&feed);
    }
    return 0;
}
