/* cpu_cost.c - the cost of a collective within a host: estimates, accurate to a factor of two on
 * current machines. */
#include "cpu_comm.h"

#define CALL_NS            UINT64_C(560)   /* a call, and synchronizing the ranks */
#define PEER_NS            UINT64_C(40)    /* one exchange of cache lines between two cores */
#define COPY_FS_PER_BYTE   UINT64_C(45000) /* each core, while the others copy too */
#define REDUCE_FS_PER_BYTE UINT64_C(60000)

weft_status cpu_comm_cost(void *device, const weft_support_query *given, uint64_t bytes,
                          weft_cost *out)
{
    uint64_t processors = (uint64_t)cpu_processors(), size, crowd, per_byte;
    weft_support_query query;
    weft_cost cost = {.measured = 0};

    (void)device;
    plug_take_struct(&query, given, sizeof query);
    if (query.collective >= WEFT_COLL_COUNT)
        return plug_fail(WEFT_ERR_UNSUPPORTED, "collective %u is unknown", query.collective);
    size = query.size < 1 ? 1 : (uint64_t)query.size;
    crowd = (size + processors - 1) / processors;
    per_byte = kit_collective_reduces(query.collective) ? REDUCE_FS_PER_BYTE : COPY_FS_PER_BYTE;
    cost.latency_ns = (CALL_NS + PEER_NS * size) * (bytes > SHM_INLINE ? 2 : 1) * crowd;
    cost.femtoseconds_per_byte = size == 1 ? COPY_FS_PER_BYTE / 2 : per_byte * crowd;
    plug_give_struct(out, &cost, sizeof cost);
    return WEFT_OK;
}
