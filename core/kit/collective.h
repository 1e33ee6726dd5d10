/* collective.h - the arguments that each collective needs on every rank or on its root. */
#ifndef WEFT_KIT_COLLECTIVE_H
#define WEFT_KIT_COLLECTIVE_H

#include "weft_plugin.h"

#include <stdbool.h>
#include <stdint.h>

enum kit_needs {
    KIT_REDUCES = 1,
    KIT_ROOTED = 2,
    KIT_SEND = 4,       /* every rank sends */
    KIT_RECV = 8,       /* every rank receives */
    KIT_ROOT_SEND = 16, /* only the root sends */
    KIT_ROOT_RECV = 32,
    KIT_SPLIT_SEND = 64, /* the send buffer has one part per rank */
    KIT_SPLIT_RECV = 128,
    KIT_SEND_ARRAYS = 256, /* send_counts and send_offsets; only on the root if KIT_ROOTED */
    KIT_RECV_ARRAYS = 512
};

#define KIT_BOTH      (KIT_SEND | KIT_RECV)
#define KIT_FROM_ROOT (KIT_ROOTED | KIT_ROOT_SEND | KIT_RECV)
#define KIT_TO_ROOT   (KIT_ROOTED | KIT_SEND | KIT_ROOT_RECV)
#define KIT_SEND_V    (KIT_SPLIT_SEND | KIT_SEND_ARRAYS)
#define KIT_RECV_V    (KIT_SPLIT_RECV | KIT_RECV_ARRAYS)

/* Bits of enum kit_needs; 0 for a barrier and for an unknown collective.  Inline, so that the
 * result is a constant if COLLECTIVE is. */
static inline uint32_t kit_collective_needs(uint32_t collective)
{
    static const uint16_t needs[WEFT_COLL_COUNT] = {
        [WEFT_COLL_ALL_REDUCE] = KIT_BOTH | KIT_REDUCES,
        [WEFT_COLL_ALL_GATHER] = KIT_BOTH | KIT_SPLIT_RECV,
        [WEFT_COLL_REDUCE_SCATTER] = KIT_BOTH | KIT_REDUCES | KIT_SPLIT_SEND,
        [WEFT_COLL_ALL_TO_ALL] = KIT_BOTH | KIT_SPLIT_SEND | KIT_SPLIT_RECV,
        [WEFT_COLL_BROADCAST] = KIT_FROM_ROOT,
        [WEFT_COLL_REDUCE] = KIT_TO_ROOT | KIT_REDUCES,
        [WEFT_COLL_GATHER] = KIT_TO_ROOT | KIT_SPLIT_RECV,
        [WEFT_COLL_SCATTER] = KIT_FROM_ROOT | KIT_SPLIT_SEND,
        [WEFT_COLL_ALL_GATHER_V] = KIT_BOTH | KIT_RECV_V,
        [WEFT_COLL_REDUCE_SCATTER_V] = KIT_BOTH | KIT_REDUCES | KIT_SEND_V,
        [WEFT_COLL_ALL_TO_ALL_V] = KIT_BOTH | KIT_SEND_V | KIT_RECV_V,
        [WEFT_COLL_GATHER_V] = KIT_TO_ROOT | KIT_RECV_V,
        [WEFT_COLL_SCATTER_V] = KIT_FROM_ROOT | KIT_SEND_V,
    };

    return collective < WEFT_COLL_COUNT ? needs[collective] : 0;
}

/* Arrays and numbers of elements that one rank passes to a collective. */
struct kit_use {
    bool send_arrays, recv_arrays; /* this rank must pass them */
    uint64_t send, recv; /* elements; in collectives with equal parts, elements of one part */
};

/* Whether RANK must pass arrays.  Sets only `send_arrays` and `recv_arrays`. */
static inline struct kit_use kit_collective_arrays(uint32_t collective, int32_t root, int32_t rank)
{
    uint32_t need = kit_collective_needs(collective);
    bool gives = (need & KIT_ROOTED) == 0 || root == rank;

    return (struct kit_use){.send_arrays = gives && (need & KIT_SEND_ARRAYS) != 0,
                            .recv_arrays = gives && (need & KIT_RECV_ARRAYS) != 0};
}

/* The sum of SIZE counts; UINT64_MAX on overflow. */
uint64_t kit_counts_total(const uint64_t *counts, int32_t size);

/* Sets all fields.  ARGS has the arrays that this rank must pass. */
static inline struct kit_use kit_collective_use(const weft_collective_args *args, int32_t rank,
                                                int32_t size)
{
    uint32_t need = kit_collective_needs(args->collective);
    bool is_root = (need & KIT_ROOTED) != 0 && args->root == rank;
    struct kit_use use = kit_collective_arrays(args->collective, args->root, rank);

    if ((need & KIT_SEND) != 0 || (is_root && (need & KIT_ROOT_SEND) != 0)) {
        use.send = use.send_arrays ? kit_counts_total(args->send_counts, size) : args->count;
        if (args->collective == WEFT_COLL_ALL_GATHER_V) use.send = args->recv_counts[rank];
    }
    if ((need & KIT_RECV) != 0 || (is_root && (need & KIT_ROOT_RECV) != 0)) {
        use.recv = use.recv_arrays ? kit_counts_total(args->recv_counts, size) : args->count;
        if (args->collective == WEFT_COLL_REDUCE_SCATTER_V) use.recv = args->send_counts[rank];
    }
    return use;
}

#endif
