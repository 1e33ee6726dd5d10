/* collective.h - one collective case: its geometry, its run and its check. */
#ifndef WEFT_KIT_COLLECTIVE_H
#define WEFT_KIT_COLLECTIVE_H

#include "frame/kit.h"

/* How a collective moves data; the same for a v-variant and the variant with equal counts. */
struct kit_shape {
    bool reduces;
    bool one_source, one_target; /* only the root sends, or receives */
    bool split_send, split_recv; /* the buffer has a part per peer */
    bool varied;                 /* counts and offsets per peer */
};

extern const struct kit_shape kit_shapes[WEFT_COLL_COUNT];
bool kit_is_rooted(uint32_t collective);

/* Layouts of v-variants.  All but EMPTY have some parts of zero elements. */
enum kit_layout {
    KIT_PACKED,   /* uneven parts, one after the other */
    KIT_GAPPED,   /* with gaps between them, wider on odd ranks */
    KIT_PERMUTED, /* in an order that differs from rank to rank */
    KIT_LONELY,   /* all parts but one are empty */
    KIT_EMPTY     /* all parts are empty */
};

struct kit_collective {
    struct kit_group *group;
    uint32_t collective, dtype, reduction;
    uint64_t count; /* v-variants: maximum elements of a part */
    int32_t root;   /* below: positions in the group */
    int32_t late;   /* position of the late rank, or -1 */
    enum kit_layout layout;
    enum kit_pattern pattern;
    enum kit_memory memory;
    uint32_t misaligned; /* bytes */
    uint32_t divisor;    /* divisor of an average, if it is not the number of ranks */
    bool in_place, own_stream;
};

/* ---- geometry.c; positions and elements, the same on all ranks ---- */

/* Number of elements that SOURCE sends to TARGET. */
uint64_t kit_share(const struct kit_collective *c, int32_t source, int32_t target);
/* Offset of the part of PEER in the send or receive buffer of POSITION. */
uint64_t kit_send_offset(const struct kit_collective *c, int32_t position, int32_t peer);
uint64_t kit_recv_offset(const struct kit_collective *c, int32_t position, int32_t peer);
/* Length of the buffers of POSITION with gaps; 0 if POSITION does not have the buffer. */
uint64_t kit_send_extent(const struct kit_collective *c, int32_t position);
uint64_t kit_recv_extent(const struct kit_collective *c, int32_t position);

/* ---- collective.c ---- */

/* Run C inside the open case, on all members of its group, and check it. */
void kit_collective_run(struct kit *kit, const struct kit_collective *c, uint64_t seed);

/* Open a case for C, named after PREFIX ("" or ending in '/'), C's parts and STYLE; run and close
 * it. */
void kit_collective_case(struct kit *kit, const struct kit_collective *c, const char *prefix,
                         const char *style);

#endif
