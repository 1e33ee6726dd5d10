/* shm_run.c - any collective within a host. */
#include "shm.h"

static uint64_t hash_counts(const uint64_t *counts, int32_t size)
{
    uint64_t hash = (uint64_t)size;

    for (int32_t p = 0; p < size; p++) {
        hash = (hash ^ counts[p]) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
    }
    return hash;
}

static bool has_root(uint32_t collective)
{
    switch (collective) {
    case WEFT_COLL_BROADCAST:
    case WEFT_COLL_REDUCE:
    case WEFT_COLL_GATHER:
    case WEFT_COLL_SCATTER:
    case WEFT_COLL_GATHER_V:
    case WEFT_COLL_SCATTER_V:
        return true;
    default:
        return false;
    }
}

struct cpu_shm_call cpu_shm_call_of(const struct cpu_shm_op *op, int32_t size)
{
    struct cpu_shm_call call;

    if (op->as != NULL) return *op->as;
    call = (struct cpu_shm_call){.identity = op->identity,
                                 .collective = (uint8_t)op->collective,
                                 .dtype = (uint8_t)op->dtype,
                                 .root = has_root(op->collective) ? op->root : -1};
    if (kit_collective_reduces(op->collective)) call.reduction = (uint8_t)op->reduction;
    switch (op->collective) {
    case WEFT_COLL_BARRIER:
        call.dtype = 0;
        break;
    case WEFT_COLL_ALL_GATHER_V:
        call.count = hash_counts(op->recv_counts, size);
        break;
    case WEFT_COLL_REDUCE_SCATTER_V:
        call.count = hash_counts(op->send_counts, size);
        break;
    case WEFT_COLL_ALL_TO_ALL_V:
    case WEFT_COLL_GATHER_V:
    case WEFT_COLL_SCATTER_V:
        break;
    default:
        call.count = op->count;
    }
    return call;
}

/* Apart, so that a run without the check saves no registers for it. */
__attribute__((noinline)) static weft_status check(struct cpu_shm_group *group,
                                                   const struct cpu_shm_op *op)
{
    struct cpu_shm_call call = cpu_shm_call_of(op, group->size);

    return cpu_shm_check_all(group, &call, op);
}

weft_status cpu_shm_run(struct cpu_shm_group *group, const struct cpu_shm_op *op)
{
    if (group->flags & WEFT_COMM_CHECK) PLUG_TRY(check(group, op));
    switch (op->collective) {
    case WEFT_COLL_ALL_REDUCE:
        return cpu_shm_all_reduce(group, op);
    case WEFT_COLL_ALL_GATHER:
    case WEFT_COLL_ALL_GATHER_V:
        return cpu_shm_all_gather(group, op);
    case WEFT_COLL_REDUCE_SCATTER:
    case WEFT_COLL_REDUCE_SCATTER_V:
        return cpu_shm_reduce_scatter(group, op);
    case WEFT_COLL_ALL_TO_ALL:
    case WEFT_COLL_ALL_TO_ALL_V:
        return cpu_shm_all_to_all(group, op);
    case WEFT_COLL_BROADCAST:
        return cpu_shm_broadcast(group, op);
    case WEFT_COLL_REDUCE:
        return cpu_shm_reduce(group, op);
    case WEFT_COLL_GATHER:
    case WEFT_COLL_GATHER_V:
        return cpu_shm_gather(group, op);
    case WEFT_COLL_SCATTER:
    case WEFT_COLL_SCATTER_V:
        return cpu_shm_scatter(group, op);
    default:
        return cpu_shm_barrier(group, op);
    }
}
