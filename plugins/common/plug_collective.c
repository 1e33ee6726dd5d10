/* plug_collective.c - see plug_collective.h. */
#include "plug_collective.h"

struct plug_use plug_collective_arrays(uint32_t collective, int32_t root, int32_t rank)
{
    uint32_t need = plug_collective_needs(collective);
    bool gives = (need & PLUG_ROOTED) == 0 || root == rank;

    return (struct plug_use){.send_arrays = gives && (need & PLUG_SEND_ARRAYS) != 0,
                             .recv_arrays = gives && (need & PLUG_RECV_ARRAYS) != 0};
}

/* The sum of COUNTS; UINT64_MAX on overflow. */
static uint64_t total(const uint64_t *counts, int32_t size)
{
    uint64_t sum = 0;

    for (int32_t r = 0; r < size; r++)
        sum = counts[r] > UINT64_MAX - sum ? UINT64_MAX : sum + counts[r];
    return sum;
}

struct plug_use plug_collective_use(const weft_collective_args *args, int32_t rank, int32_t size)
{
    uint32_t need = plug_collective_needs(args->collective);
    bool is_root = (need & PLUG_ROOTED) != 0 && args->root == rank;
    struct plug_use use = plug_collective_arrays(args->collective, args->root, rank);

    if ((need & PLUG_SEND) != 0 || (is_root && (need & PLUG_ROOT_SEND) != 0)) {
        use.send = use.send_arrays ? total(args->send_counts, size) : args->count;
        if (args->collective == WEFT_COLL_ALL_GATHER_V) use.send = args->recv_counts[rank];
    }
    if ((need & PLUG_RECV) != 0 || (is_root && (need & PLUG_ROOT_RECV) != 0)) {
        use.recv = use.recv_arrays ? total(args->recv_counts, size) : args->count;
        if (args->collective == WEFT_COLL_REDUCE_SCATTER_V) use.recv = args->send_counts[rank];
    }
    return use;
}
