/* transport.c - what a backend has. */
#include "carry.h"

bool wf_backend_has(const weft_comm *comm, uint32_t collective, uint32_t dtype, uint32_t reduction,
                    uint32_t level)
{
    weft_support_query query = {.struct_size = sizeof query,
                                .collective = collective,
                                .dtype = dtype,
                                .reduction = wf_collective_reduces(collective) ? reduction : 0,
                                .size = comm->size};
    uint32_t answer;

    return comm->table->support(comm->device, &query, &answer) == WEFT_OK && answer >= level;
}

bool wf_backend_pulls(const weft_comm *comm)
{
    const weft_kernel_table *kernel = comm->plugin->kernel;
    weft_pull_args question = {.struct_size = sizeof question};

    return WF_HAS(comm->table, pull) && kernel != NULL && WF_HAS(kernel, regions_create) &&
           comm->table->pull(comm->handle, &question) != WEFT_ERR_UNSUPPORTED;
}

bool wf_backend_exchanges(const weft_comm *comm)
{
    const weft_kernel_table *kernel = comm->plugin->kernel;
    weft_pull_args question = {.struct_size = sizeof question};

    return WF_HAS(comm->table, exchange) && kernel != NULL && WF_HAS(kernel, regions_create) &&
           comm->table->exchange(comm->handle, &question) != WEFT_ERR_UNSUPPORTED;
}

/* A plugin without messages refuses every message.  Any other refuses this one, which has no peer,
 * as invalid. */
bool wf_backend_has_messages(const weft_comm *comm)
{
    weft_message question = {.struct_size = sizeof question, .dtype = WEFT_DTYPE_U8, .peer = -1};

    return comm->table->send(comm->handle, &question) != WEFT_ERR_UNSUPPORTED;
}

static enum wf_transport find_transport(const weft_comm *comm)
{
    if (wf_backend_has(comm, WEFT_COLL_ALL_TO_ALL_V, WEFT_DTYPE_U8, 0, WEFT_SUPPORT_EMULATED))
        return WF_TRANSPORT_ALL_TO_ALL_V;
    if (wf_backend_has_messages(comm)) return WF_TRANSPORT_MESSAGES;
    if (wf_backend_pulls(comm)) return WF_TRANSPORT_PULL;
    if (wf_backend_has(comm, WEFT_COLL_ALL_GATHER, WEFT_DTYPE_U8, 0, WEFT_SUPPORT_EMULATED))
        return WF_TRANSPORT_ALL_GATHER;
    return WF_TRANSPORT_NONE;
}

enum wf_transport wf_transport_of(weft_comm *comm)
{
    if (comm->transport == WF_TRANSPORT_UNKNOWN) comm->transport = find_transport(comm);
    return (enum wf_transport)comm->transport;
}

const char *wf_transport_name(enum wf_transport transport)
{
    static const char *const names[] = {
        [WF_TRANSPORT_UNKNOWN] = "unknown",       [WF_TRANSPORT_ALL_TO_ALL_V] = "all_to_all_v",
        [WF_TRANSPORT_MESSAGES] = "messages",     [WF_TRANSPORT_PULL] = "pull",
        [WF_TRANSPORT_ALL_GATHER] = "all_gather", [WF_TRANSPORT_NONE] = "nothing"};

    return names[transport];
}

weft_status wf_transport_refuse(const weft_comm *comm, const char *what)
{
    return wf_fail(WEFT_ERR_UNSUPPORTED,
                   "%s on %s: backend %s does not have it, and has nothing to carry it: a plugin "
                   "needs all_to_all_v of u8, send and receive, pull with a kernel table, or "
                   "all_gather of u8",
                   what, comm->name, comm->plugin->name);
}
