/* Which versions are kept, and whose lease ends: every sequence of a few steps, against a list. */
#include "protocol/protocol.h"
#include "support/suite.h"
#include "weft/status.h"

enum { SLOTS = 3, READERS = 2, STEPS = 5, ACTIONS = 2 + 2 * READERS };

/* Publish, publish and fail, lease the newest one, release. */
static void act(struct wf_feed_ring *ring, int action, uint64_t *version)
{
    struct wf_feed_slot before[SLOTS];
    struct wf_feed_lease oldest =
        ring->lease_count > 0 ? ring->leases[0] : (struct wf_feed_lease){0};
    size_t slot, leases = ring->lease_count, read = 0;

    for (size_t i = 0; i < ring->count; i++) {
        before[i] = ring->slots[i];
        for (size_t k = 0, found = 0; k < leases; k++)
            if (ring->leases[k].slot == i && found++ == 0) read++;
    }
    if (action >= 2) {
        uint64_t reader = (uint64_t)(action - 2) % READERS;
        if (action < 2 + READERS) {
            weft_status status = wf_feed_ring_lease(ring, reader, WEFT_NEWEST, &slot);
            if (status == WEFT_OK)
                ck_assert(ring->slots[slot].whole && ring->slots[slot].version == ring->newest);
            else
                ck_assert_int_eq(status, *version == 0 ? WEFT_ERR_NOT_FOUND : WEFT_ERR_ABORTED);
        } else {
            wf_feed_ring_release(ring, reader);
        }
        return;
    }
    slot = wf_feed_ring_choose(ring);
    wf_feed_ring_begin(ring, slot);
    for (size_t i = 0; i < ring->count; i++) /* an empty slot first, then the oldest unread one */
        if (!before[i].whole) ck_assert(!before[slot].whole);
    if (before[slot].whole && read < ring->count) ck_assert_uint_eq(ring->lease_count, leases);
    if (before[slot].whole && read == ring->count) ck_assert_uint_eq(slot, oldest.slot);
    ck_assert_uint_eq(ring->revoked >= leases - ring->lease_count, 1);
    wf_feed_ring_end(ring, slot, action == 0 ? ++*version : 0);
    ck_assert(ring->slots[slot].whole == (action == 0));
}

TEST(every_sequence_of_steps_keeps_what_is_read)
{
    for (size_t count = 1; count <= SLOTS; count++) {
        int sequences = 1;

        for (int i = 0; i < STEPS; i++)
            sequences *= ACTIONS;
        for (int sequence = 0; sequence < sequences; sequence++) {
            struct wf_feed_slot slots[SLOTS] = {{0}};
            struct wf_feed_ring ring = {.slots = slots, .count = count};
            uint64_t version = 0;

            for (int i = 0, rest = sequence; i < STEPS; i++, rest /= ACTIONS)
                act(&ring, rest % ACTIONS, &version);
            ck_assert_uint_le(ring.lease_count, READERS);
            wf_feed_ring_free(&ring);
        }
    }
}

TEST(a_version_that_is_not_kept_is_refused_with_what_is_kept)
{
    struct wf_feed_slot slots[2] = {{0}};
    struct wf_feed_ring ring = {.slots = slots, .count = 2};
    size_t slot;

    for (uint64_t version = 5; version < 8; version++) {
        slot = wf_feed_ring_choose(&ring);
        wf_feed_ring_begin(&ring, slot);
        wf_feed_ring_end(&ring, slot, version);
    }
    ck_assert_int_eq(wf_feed_ring_lease(&ring, 1, 5, &slot), WEFT_ERR_NOT_FOUND);
    ck_assert_str_eq(weft_last_error(),
                     "version 5 is not kept; the newest one is 7, and 2 are kept at most");
    ck_assert_int_eq(wf_feed_ring_lease(&ring, 1, 6, &slot), WEFT_OK);
    ck_assert_uint_eq(ring.slots[slot].version, 6);
    wf_feed_ring_free(&ring);
}
