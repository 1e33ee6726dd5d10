/* plug_collective.h - the arguments that each collective needs on every rank or on its root. */
#ifndef WEFT_PLUG_COLLECTIVE_H
#define WEFT_PLUG_COLLECTIVE_H

#include "plug_host.h"

enum plug_needs {
    PLUG_REDUCES = 1,
    PLUG_ROOTED = 2,
    PLUG_SEND = 4,       /* every rank sends */
    PLUG_RECV = 8,       /* every rank receives */
    PLUG_ROOT_SEND = 16, /* only the root sends */
    PLUG_ROOT_RECV = 32,
    PLUG_SPLIT_SEND = 64, /* the send buffer has one part per rank */
    PLUG_SPLIT_RECV = 128,
    PLUG_SEND_ARRAYS = 256, /* send_counts and send_offsets; only on the root if PLUG_ROOTED */
    PLUG_RECV_ARRAYS = 512
};

#define PLUG_BOTH      (PLUG_SEND | PLUG_RECV)
#define PLUG_FROM_ROOT (PLUG_ROOTED | PLUG_ROOT_SEND | PLUG_RECV)
#define PLUG_TO_ROOT   (PLUG_ROOTED | PLUG_SEND | PLUG_ROOT_RECV)
#define PLUG_SEND_V    (PLUG_SPLIT_SEND | PLUG_SEND_ARRAYS)
#define PLUG_RECV_V    (PLUG_SPLIT_RECV | PLUG_RECV_ARRAYS)

/* Bits of enum plug_needs; 0 for a barrier and for an unknown collective.  Inline, so that the
 * result is a constant if COLLECTIVE is. */
static inline uint32_t plug_collective_needs(uint32_t collective)
{
    static const uint16_t needs[WEFT_COLL_COUNT] = {
        [WEFT_COLL_ALL_REDUCE] = PLUG_BOTH | PLUG_REDUCES,
        [WEFT_COLL_ALL_GATHER] = PLUG_BOTH | PLUG_SPLIT_RECV,
        [WEFT_COLL_REDUCE_SCATTER] = PLUG_BOTH | PLUG_REDUCES | PLUG_SPLIT_SEND,
        [WEFT_COLL_ALL_TO_ALL] = PLUG_BOTH | PLUG_SPLIT_SEND | PLUG_SPLIT_RECV,
        [WEFT_COLL_BROADCAST] = PLUG_FROM_ROOT,
        [WEFT_COLL_REDUCE] = PLUG_TO_ROOT | PLUG_REDUCES,
        [WEFT_COLL_GATHER] = PLUG_TO_ROOT | PLUG_SPLIT_RECV,
        [WEFT_COLL_SCATTER] = PLUG_FROM_ROOT | PLUG_SPLIT_SEND,
        [WEFT_COLL_ALL_GATHER_V] = PLUG_BOTH | PLUG_RECV_V,
        [WEFT_COLL_REDUCE_SCATTER_V] = PLUG_BOTH | PLUG_REDUCES | PLUG_SEND_V,
        [WEFT_COLL_ALL_TO_ALL_V] = PLUG_BOTH | PLUG_SEND_V | PLUG_RECV_V,
        [WEFT_COLL_GATHER_V] = PLUG_TO_ROOT | PLUG_RECV_V,
        [WEFT_COLL_SCATTER_V] = PLUG_FROM_ROOT | PLUG_SEND_V,
    };

    return collective < WEFT_COLL_COUNT ? needs[collective] : 0;
}

/* Arrays and numbers of elements that one rank passes to a collective. */
struct plug_use {
    bool send_arrays, recv_arrays; /* this rank must pass them */
    uint64_t send, recv; /* elements; in collectives with equal parts, elements of one part */
};

/* Whether RANK must pass arrays.  Sets only `send_arrays` and `recv_arrays`. */
static inline struct plug_use plug_collective_arrays(uint32_t collective, int32_t root,
                                                     int32_t rank)
{
    uint32_t need = plug_collective_needs(collective);
    bool gives = (need & PLUG_ROOTED) == 0 || root == rank;

    return (struct plug_use){.send_arrays = gives && (need & PLUG_SEND_ARRAYS) != 0,
                             .recv_arrays = gives && (need & PLUG_RECV_ARRAYS) != 0};
}

/* The sum of SIZE counts; UINT64_MAX on overflow. */
uint64_t plug_counts_total(const uint64_t *counts, int32_t size);

/* Sets all fields.  ARGS has the arrays that this rank must pass. */
static inline struct plug_use plug_collective_use(const weft_collective_args *args, int32_t rank,
                                                  int32_t size)
{
    uint32_t need = plug_collective_needs(args->collective);
    bool is_root = (need & PLUG_ROOTED) != 0 && args->root == rank;
    struct plug_use use = plug_collective_arrays(args->collective, args->root, rank);

    if ((need & PLUG_SEND) != 0 || (is_root && (need & PLUG_ROOT_SEND) != 0)) {
        use.send = use.send_arrays ? plug_counts_total(args->send_counts, size) : args->count;
        if (args->collective == WEFT_COLL_ALL_GATHER_V) use.send = args->recv_counts[rank];
    }
    if ((need & PLUG_RECV) != 0 || (is_root && (need & PLUG_ROOT_RECV) != 0)) {
        use.recv = use.recv_arrays ? plug_counts_total(args->recv_counts, size) : args->count;
        if (args->collective == WEFT_COLL_REDUCE_SCATTER_V) use.recv = args->send_counts[rank];
    }
    return use;
}

#endif
