/* geometry.c - which elements go where in each collective, and the layouts of v-variants. */
#include "collective.h"

/* The test's own table: plugins may use kit/collective.h, and must not be judged by it. */
const struct kit_shape kit_shapes[WEFT_COLL_COUNT] = {
    [WEFT_COLL_ALL_REDUCE] = {.reduces = true},
    [WEFT_COLL_ALL_GATHER] = {.split_recv = true},
    [WEFT_COLL_REDUCE_SCATTER] = {.reduces = true, .split_send = true},
    [WEFT_COLL_ALL_TO_ALL] = {.split_send = true, .split_recv = true},
    [WEFT_COLL_BROADCAST] = {.one_source = true},
    [WEFT_COLL_REDUCE] = {.reduces = true, .one_target = true},
    [WEFT_COLL_GATHER] = {.split_recv = true, .one_target = true},
    [WEFT_COLL_SCATTER] = {.split_send = true, .one_source = true},
    [WEFT_COLL_BARRIER] = {.reduces = false},
    [WEFT_COLL_ALL_GATHER_V] = {.split_recv = true, .varied = true},
    [WEFT_COLL_REDUCE_SCATTER_V] = {.reduces = true, .split_send = true, .varied = true},
    [WEFT_COLL_ALL_TO_ALL_V] = {.split_send = true, .split_recv = true, .varied = true},
    [WEFT_COLL_GATHER_V] = {.split_recv = true, .one_target = true, .varied = true},
    [WEFT_COLL_SCATTER_V] = {.split_send = true, .one_source = true, .varied = true},
};

bool kit_is_rooted(uint32_t collective)
{
    return kit_shapes[collective].one_source || kit_shapes[collective].one_target;
}

/* Length of the part that two positions share in a v-variant.  Symmetric, so that all_to_all_v can
 * be run in place; with one position only, the other is 0. */
static uint64_t varied_share(const struct kit_collective *c, int32_t a, int32_t b)
{
    uint64_t low = (uint64_t)(a < b ? a : b), high = (uint64_t)(a < b ? b : a);
    uint64_t lonely = (uint64_t)c->group->size / 2;

    if (c->layout == KIT_EMPTY) return 0;
    if (c->layout == KIT_LONELY) return high == lonely ? c->count : 0;
    if (high % 3 == 1 && low % 2 == 0) return 0;
    return 1 + (high * 5 + low * 3 + c->count) % c->count;
}

uint64_t kit_share(const struct kit_collective *c, int32_t source, int32_t target)
{
    const struct kit_shape *shape = &kit_shapes[c->collective];

    if (c->collective == WEFT_COLL_BARRIER) return 0;
    if (!shape->varied) return c->count;
    if (shape->split_send && shape->split_recv) return varied_share(c, source, target);
    return varied_share(c, 0, shape->split_recv ? source : target);
}

static uint64_t part_length(const struct kit_collective *c, bool send, int32_t position,
                            int32_t peer)
{
    return send ? kit_share(c, position, peer) : kit_share(c, peer, position);
}

/* Index of the part of PEER in memory order. */
static int32_t order_of(const struct kit_collective *c, int32_t position, int32_t peer)
{
    int32_t size = c->group->size;

    return c->layout == KIT_PERMUTED ? (2 * size - 1 - peer + position) % size : peer;
}

static uint64_t offset(const struct kit_collective *c, bool send, int32_t position, int32_t peer)
{
    uint64_t gap = c->layout == KIT_GAPPED ? 2 + (uint64_t)position % 2 : 0;
    uint64_t at = gap;

    if (!kit_shapes[c->collective].varied) return c->count * (uint64_t)peer;
    for (int32_t other = 0; other < c->group->size; other++)
        if (order_of(c, position, other) < order_of(c, position, peer))
            at += part_length(c, send, position, other) + gap;
    return at;
}

uint64_t kit_send_offset(const struct kit_collective *c, int32_t position, int32_t peer)
{
    return kit_shapes[c->collective].split_send ? offset(c, true, position, peer) : 0;
}

uint64_t kit_recv_offset(const struct kit_collective *c, int32_t position, int32_t peer)
{
    return kit_shapes[c->collective].split_recv ? offset(c, false, position, peer) : 0;
}

static uint64_t extent(const struct kit_collective *c, bool send, int32_t position)
{
    uint64_t end = 0;

    for (int32_t peer = 0; peer < c->group->size; peer++) {
        uint64_t start =
            send ? kit_send_offset(c, position, peer) : kit_recv_offset(c, position, peer);
        uint64_t length = part_length(c, send, position, peer);
        if (start + length > end) end = start + length;
    }
    return end;
}

uint64_t kit_send_extent(const struct kit_collective *c, int32_t position)
{
    if (kit_shapes[c->collective].one_source && position != c->root) return 0;
    return extent(c, true, position);
}

uint64_t kit_recv_extent(const struct kit_collective *c, int32_t position)
{
    if (kit_shapes[c->collective].one_target && position != c->root) return 0;
    return extent(c, false, position);
}
