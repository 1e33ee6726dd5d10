/* hosts_run.c - any collective over several hosts. */
#include "hosts.h"

static weft_status run(struct wf_cpu_comm *comm, const struct wf_shm_op *op)
{
    switch (op->collective) {
    case WEFT_COLL_ALL_REDUCE:
    case WEFT_COLL_REDUCE:
        return wf_hosts_reduce(comm, op);
    case WEFT_COLL_REDUCE_SCATTER:
    case WEFT_COLL_REDUCE_SCATTER_V:
        return wf_hosts_reduce_scatter(comm, op);
    case WEFT_COLL_ALL_GATHER:
    case WEFT_COLL_ALL_GATHER_V:
        return wf_hosts_all_gather_any(comm, op);
    case WEFT_COLL_BROADCAST:
        return wf_hosts_broadcast(comm, op);
    case WEFT_COLL_BARRIER:
        return wf_hosts_barrier(comm, op);
    default:
        return wf_hosts_swap(comm, op);
    }
}

weft_status wf_hosts_run(struct wf_cpu_comm *comm, const struct wf_shm_op *op)
{
    weft_status status = WEFT_OK;

    comm->group.doing = wf_cpu_collective_name(op->collective);
    if (comm->group.flags & WEFT_COMM_CHECK) status = wf_hosts_check(comm, op);
    if (status == WEFT_OK) status = run(comm, op);
    if (status != WEFT_OK) wf_hosts_hang_up(comm);
    return status;
}
