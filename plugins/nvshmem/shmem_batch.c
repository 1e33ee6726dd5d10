/* shmem_batch.c - execution of calls: first messages, then collectives in their order. */
#include "shmem.h"

weft_status gpu_ops_run(struct gpu_comm *comm, const struct gpu_op *ops, size_t count)
{
    bool messages = false;
    weft_status status;

    for (size_t i = 0; i < count && (comm->flags & WEFT_COMM_CHECK) != 0; i++)
        if (ops[i].kind < GPU_OP_SEND) PLUG_TRY(shmem_match(comm, &ops[i]));
    for (size_t i = 0; i < count; i++)
        messages = messages || ops[i].kind >= GPU_OP_SEND;
    status = messages ? shmem_messages_run(comm, ops, count) : WEFT_OK;
    if (status != WEFT_OK) return shmem_decline(comm, status, ops[0].stream);
    for (size_t i = 0; i < count && status == WEFT_OK; i++)
        if (ops[i].kind < GPU_OP_SEND) status = shmem_collective_run(comm, &ops[i]);
    return status;
}
