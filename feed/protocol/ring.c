/* ring.c - which versions a publisher keeps, and who reads them. */
#include "protocol.h"

static bool is_read(const struct wf_feed_ring *ring, size_t slot)
{
    for (size_t i = 0; i < ring->lease_count; i++)
        if (ring->leases[i].slot == slot) return true;
    return false;
}

size_t wf_feed_ring_choose(const struct wf_feed_ring *ring)
{
    size_t oldest = ring->count;

    for (size_t i = 0; i < ring->count; i++)
        if (!ring->slots[i].whole) return i;
    for (size_t i = 0; i < ring->count; i++)
        if (!is_read(ring, i) &&
            (oldest == ring->count || ring->slots[i].version < ring->slots[oldest].version))
            oldest = i;
    return oldest < ring->count ? oldest : ring->leases[0].slot;
}

/* End the leases that WHICH chooses; returns their number. */
static size_t drop(struct wf_feed_ring *ring, bool by_slot, uint64_t which)
{
    size_t kept = 0, before = ring->lease_count;

    for (size_t i = 0; i < before; i++) {
        struct wf_feed_lease lease = ring->leases[i];
        if ((by_slot ? lease.slot : lease.reader) != which) ring->leases[kept++] = lease;
    }
    ring->lease_count = kept;
    return before - kept;
}

void wf_feed_ring_begin(struct wf_feed_ring *ring, size_t slot)
{
    ring->revoked += drop(ring, true, slot);
    ring->slots[slot] = (struct wf_feed_slot){.serial = ++ring->serial};
}

void wf_feed_ring_end(struct wf_feed_ring *ring, size_t slot, uint64_t version)
{
    if (version == 0) return;
    ring->slots[slot].whole = true;
    ring->slots[slot].version = version;
    ring->newest = version;
}

/* The slot of VERSION; the number of slots: there is none. */
static size_t find(const struct wf_feed_ring *ring, uint64_t version)
{
    size_t i = 0;

    while (i < ring->count && !(ring->slots[i].whole && ring->slots[i].version == version))
        i++;
    return i;
}

static weft_status fail_find(const struct wf_feed_ring *ring, uint64_t version)
{
    if (ring->newest == 0) return wf_fail(WEFT_ERR_NOT_FOUND, "no version is published yet");
    if (version == WEFT_NEWEST)
        return wf_fail(WEFT_ERR_ABORTED, "the newest version, %llu, is overwritten by the next one",
                       (unsigned long long)ring->newest);
    return wf_fail(WEFT_ERR_NOT_FOUND,
                   "version %llu is not kept; the newest one is %llu, and %zu are kept at most",
                   (unsigned long long)version, (unsigned long long)ring->newest, ring->count);
}

weft_status wf_feed_ring_lease(struct wf_feed_ring *ring, uint64_t reader, uint64_t version,
                               size_t *slot)
{
    size_t found;

    wf_feed_ring_release(ring, reader);
    found = find(ring, version == WEFT_NEWEST ? ring->newest : version);
    if (found == ring->count) return fail_find(ring, version);
    WF_TRY(wf_grow(&ring->leases, sizeof *ring->leases, ring->lease_count, &ring->lease_room));
    ring->leases[ring->lease_count++] = (struct wf_feed_lease){.reader = reader, .slot = found};
    *slot = found;
    return WEFT_OK;
}

void wf_feed_ring_release(struct wf_feed_ring *ring, uint64_t reader)
{
    drop(ring, false, reader);
}

void wf_feed_ring_free(struct wf_feed_ring *ring)
{
    wf_free(ring->leases);
    ring->leases = NULL;
    ring->lease_count = ring->lease_room = 0;
}
