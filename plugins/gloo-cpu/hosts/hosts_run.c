/* hosts_run.c - dispatch of collectives over several hosts. */
#include "hosts.h"

static weft_status run(struct cpu_comm *comm, const struct cpu_shm_op *op)
{
    switch (op->collective) {
    case WEFT_COLL_ALL_REDUCE:
    case WEFT_COLL_REDUCE:
        return cpu_hosts_reduce(comm, op);
    case WEFT_COLL_REDUCE_SCATTER:
    case WEFT_COLL_REDUCE_SCATTER_V:
        return cpu_hosts_reduce_scatter(comm, op);
    case WEFT_COLL_ALL_GATHER:
    case WEFT_COLL_ALL_GATHER_V:
        return cpu_hosts_all_gather_any(comm, op);
    case WEFT_COLL_BROADCAST:
        return cpu_hosts_broadcast(comm, op);
    case WEFT_COLL_BARRIER:
        return cpu_hosts_barrier(comm, op);
    default:
        return cpu_hosts_swap(comm, op);
    }
}

weft_status cpu_hosts_run(struct cpu_comm *comm, const struct cpu_shm_op *op)
{
    weft_status status = WEFT_OK;

    comm->group.doing = cpu_call_name(op->collective);
    comm->other_hosts->lane = 0;
    if (comm->group.flags & WEFT_COMM_CHECK) status = cpu_hosts_check(comm, op);
    comm->other_hosts->call = cpu_shm_call_of(op, comm->size);
    if (status == WEFT_OK) status = run(comm, op);
    if (status != WEFT_OK) cpu_hosts_disconnect(comm);
    return status;
}
