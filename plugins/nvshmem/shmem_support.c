/* shmem_support.c - supported operations and their costs. */
#include "shmem.h"

/* Every collective is a kernel of the plugin, or of NVSHMEM if the user requests that. */
weft_status gpu_comm_support(void *device, const weft_support_query *given, uint32_t *level)
{
    weft_support_query query;
    bool known;

    (void)device;
    plug_take_struct(&query, given, sizeof query);
    known = query.collective == WEFT_COLL_BARRIER ||
            (query.collective < WEFT_COLL_COUNT && query.dtype < WEFT_DTYPE_COUNT &&
             (!kit_collective_reduces(query.collective) ||
              kit_reduction_defined(query.reduction, query.dtype)));
    *level = known ? WEFT_SUPPORT_NATIVE : WEFT_SUPPORT_NO;
    return WEFT_OK;
}

/* Estimates for devices that NVLink connects.  Ranks that share a device are about as fast. */
#define CALL_NS     UINT64_C(8000)
#define PEER_NS     UINT64_C(1000)
#define FS_PER_BYTE UINT64_C(2500)

weft_status shmem_comm_cost(void *device, const weft_support_query *given, uint64_t bytes,
                            weft_cost *out)
{
    weft_cost cost = {.struct_size = sizeof cost, .femtoseconds_per_byte = FS_PER_BYTE};
    weft_support_query query;

    (void)device;
    (void)bytes;
    plug_take_struct(&query, given, sizeof query);
    if (query.collective >= WEFT_COLL_COUNT)
        return plug_fail(WEFT_ERR_UNSUPPORTED, "collective %u is unknown", query.collective);
    cost.latency_ns = CALL_NS + PEER_NS * (query.size > 1 ? (uint64_t)query.size - 1 : 0);
    plug_give_struct(out, &cost, sizeof cost);
    return WEFT_OK;
}

weft_status gpu_op_supported(const struct gpu_comm *comm, const struct gpu_op *op)
{
    (void)comm;
    if (!kit_collective_reduces(op->kind) || kit_reduction_defined(op->reduction, op->dtype))
        return WEFT_OK;
    return plug_fail(WEFT_ERR_UNSUPPORTED, "%s: %s is not defined on %s", gpu_op_name(op->kind),
                     kit_reduction_name(op->reduction), kit_dtype_name(op->dtype));
}
