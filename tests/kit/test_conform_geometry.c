#include "checks/collective.h"
#include "support/suite.h"

#include <string.h>

static struct kit_collective collective(struct kit_group *group, uint32_t which, int32_t size,
                                        enum kit_layout layout)
{
    *group = (struct kit_group){.size = size};
    return (struct kit_collective){
        .group = group, .collective = which, .count = 7, .layout = layout, .root = size - 1};
}

/* Mark the parts of one buffer; false if two overlap or one passes the end. */
static bool mark(const struct kit_collective *c, bool send, int32_t position)
{
    uint8_t used[4096] = {0};
    uint64_t extent = send ? kit_send_extent(c, position) : kit_recv_extent(c, position);
    const struct kit_shape *shape = &kit_shapes[c->collective];

    if (extent > sizeof used) return false;
    for (int32_t peer = 0; peer < c->group->size; peer++) {
        uint64_t start =
            send ? kit_send_offset(c, position, peer) : kit_recv_offset(c, position, peer);
        uint64_t length = send ? kit_share(c, position, peer) : kit_share(c, peer, position);
        if (start + length > extent) return false;
        if (!(send ? shape->split_send : shape->split_recv)) continue; /* shared by all peers */
        for (uint64_t i = start; i < start + length; i++)
            if (used[i]++ != 0) return false;
    }
    return true;
}

TEST(parts_lie_within_their_buffer_and_apart)
{
    struct kit_group group;

    for (uint32_t which = 0; which < WEFT_COLL_COUNT; which++)
        for (int32_t size = 1; size <= 9; size++)
            for (int layout = KIT_PACKED; layout <= KIT_EMPTY; layout++) {
                struct kit_collective c = collective(&group, which, size, (enum kit_layout)layout);
                for (int32_t me = 0; me < size; me++) {
                    bool sends = !kit_shapes[which].one_source || me == c.root;
                    bool receives = !kit_shapes[which].one_target || me == c.root;
                    ck_assert_msg(!sends || mark(&c, true, me), "send, %s, layout %d, %d of %d",
                                  wf_collective_name(which), layout, me, size);
                    ck_assert_msg(!receives || mark(&c, false, me), "recv, %s, layout %d, %d of %d",
                                  wf_collective_name(which), layout, me, size);
                }
            }
}

TEST(some_parts_are_empty_and_some_are_not)
{
    struct kit_group group;
    struct kit_collective c = collective(&group, WEFT_COLL_ALL_TO_ALL_V, 4, KIT_PERMUTED);
    bool empty = false, full = false;

    for (int32_t i = 0; i < 16; i++) {
        empty = empty || kit_share(&c, i / 4, i % 4) == 0;
        full = full || kit_share(&c, i / 4, i % 4) > 0;
    }
    ck_assert(empty && full);
}

TEST(all_to_all_v_can_be_in_place)
{
    struct kit_group group;

    for (int layout = KIT_PACKED; layout <= KIT_EMPTY; layout++) {
        struct kit_collective c =
            collective(&group, WEFT_COLL_ALL_TO_ALL_V, 5, (enum kit_layout)layout);
        for (int32_t i = 0; i < 25; i++) {
            ck_assert_uint_eq(kit_share(&c, i / 5, i % 5), kit_share(&c, i % 5, i / 5));
            ck_assert_uint_eq(kit_send_offset(&c, i / 5, i % 5), kit_recv_offset(&c, i / 5, i % 5));
        }
    }
}

TEST(layouts_are_what_their_names_say)
{
    struct kit_group group;
    struct kit_collective packed = collective(&group, WEFT_COLL_ALL_GATHER_V, 4, KIT_PACKED);
    struct kit_collective gapped = packed, permuted = packed, empty = packed;

    gapped.layout = KIT_GAPPED;
    permuted.layout = KIT_PERMUTED;
    empty.layout = KIT_EMPTY;
    ck_assert_uint_gt(kit_recv_extent(&gapped, 0), kit_recv_extent(&packed, 0));
    ck_assert_uint_eq(kit_recv_extent(&permuted, 0), kit_recv_extent(&packed, 0));
    ck_assert_uint_gt(kit_recv_offset(&permuted, 0, 0), kit_recv_offset(&permuted, 0, 3));
    ck_assert_uint_ne(kit_recv_offset(&permuted, 0, 0), kit_recv_offset(&permuted, 1, 0));
    ck_assert_uint_eq(kit_recv_extent(&empty, 0), 0);
}

TEST(only_the_root_has_the_buffer_of_one_side)
{
    struct kit_group group;
    struct kit_collective gather = collective(&group, WEFT_COLL_GATHER, 3, KIT_PACKED);
    struct kit_collective scatter = gather, barrier = gather;

    scatter.collective = WEFT_COLL_SCATTER;
    barrier.collective = WEFT_COLL_BARRIER;
    ck_assert_uint_eq(kit_recv_extent(&gather, 0), 0);
    ck_assert_uint_eq(kit_recv_extent(&gather, 2), 21);
    ck_assert_uint_eq(kit_send_extent(&scatter, 0), 0);
    ck_assert_uint_eq(kit_send_extent(&scatter, 2), 21);
    ck_assert_uint_eq(kit_send_extent(&barrier, 2) + kit_recv_extent(&barrier, 2), 0);
}
