/* comm.c - what a communicator knows of its ranks and its backend. */
#include "comm.h"

#include "comm/carry/carry.h"

int32_t weft_comm_rank(const weft_comm *comm)
{
    return comm != NULL ? comm->rank : -1;
}

int32_t weft_comm_size(const weft_comm *comm)
{
    return comm != NULL ? comm->size : 0;
}

const char *weft_comm_name(const weft_comm *comm)
{
    return comm != NULL ? comm->name : NULL;
}

weft_context *weft_comm_context(const weft_comm *comm)
{
    return comm != NULL ? comm->context : NULL;
}

int64_t weft_comm_timeout(const weft_comm *comm)
{
    return comm != NULL ? comm->timeout_ns : 0;
}

int32_t weft_comm_world_rank(const weft_comm *comm, int32_t rank)
{
    return comm != NULL && rank >= 0 && rank < comm->size ? comm->world_ranks[rank] : -1;
}

int32_t weft_comm_find_rank(const weft_comm *comm, int32_t world_rank)
{
    for (int32_t i = 0; comm != NULL && i < comm->size; i++)
        if (comm->world_ranks[i] == world_rank) return i;
    return -1;
}

bool weft_comm_same_host(const weft_comm *comm, int32_t a, int32_t b)
{
    if (comm == NULL || a < 0 || b < 0 || a >= comm->size || b >= comm->size) return false;
    return comm->host_ids[a] == comm->host_ids[b];
}

void *weft_comm_native(weft_comm *comm)
{
    if (comm == NULL || !wf_is_usable(comm->made, WF_KIND_COMM) || !WF_HAS(comm->table, native))
        return NULL;
    return comm->table->native(comm->handle);
}

weft_status weft_comm_support(const weft_comm *comm, enum weft_collective collective,
                              enum weft_dtype dtype, enum weft_reduction reduction,
                              enum weft_support_level *level)
{
    weft_support_query query = {.struct_size = sizeof query,
                                .collective = collective,
                                .dtype = dtype,
                                .reduction = reduction};
    uint32_t answer;

    WF_TRY(wf_comm_check(comm, "weft_comm_support"));
    if (level == NULL) return wf_fail_null("weft_comm_support", "level");
    query.size = comm->size;
    WF_TRY(comm->table->support(comm->device, &query, &answer));
    *level = (enum weft_support_level)answer;
    return WEFT_OK;
}

bool weft_comm_has_messages(const weft_comm *comm)
{
    return comm != NULL && wf_is_usable(comm->made, WF_KIND_COMM) && wf_backend_has_messages(comm);
}
