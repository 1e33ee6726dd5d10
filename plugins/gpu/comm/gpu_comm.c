/* gpu_comm.c - the common part of the creation of communicators. */
#include "vendor.h"
#include VENDOR_COMM

#include <stdio.h>
#include <string.h>

/* Copy the world ranks and hosts.  Both may be unknown for wrapped communicators. */
static weft_status copy_ranks(struct gpu_comm *comm, const weft_comm_options *options)
{
    size_t size = (size_t)options->size;

    comm->world_ranks = plug_new(size * sizeof *comm->world_ranks);
    comm->host_ids = plug_new(size * sizeof *comm->host_ids);
    if (comm->world_ranks == NULL || comm->host_ids == NULL) return WEFT_ERR_NO_MEMORY;
    for (int32_t r = 0; r < options->size; r++)
        comm->world_ranks[r] = options->world_ranks != NULL ? options->world_ranks[r] : r;
    if (options->host_ids != NULL)
        memcpy(comm->host_ids, options->host_ids, size * sizeof *comm->host_ids);
    return WEFT_OK;
}

weft_status gpu_comm_allocate(struct gpu_device *device, const weft_comm_options *options,
                              struct gpu_comm **out)
{
    struct gpu_comm *comm;
    weft_status status;

    if (options->size < 1 || options->rank < 0 || options->rank >= options->size)
        return plug_fail(WEFT_ERR_INVALID,
                         "rank is %d and size is %d; rank must be from 0 to size - 1",
                         options->rank, options->size);
    comm = plug_new(sizeof *comm);
    if (comm == NULL) return WEFT_ERR_NO_MEMORY;
    comm->device = device;
    comm->rank = options->rank;
    comm->size = options->size;
    comm->flags = options->flags;
    comm->timeout_ns = options->timeout_ns;
    snprintf(comm->name, sizeof comm->name, "%s", options->name != NULL ? options->name : "");
    pthread_mutex_init(&comm->lock, NULL);
    status = copy_ranks(comm, options);
    if (status == WEFT_OK)
        *out = comm;
    else
        gpu_comm_free(comm);
    return status;
}

void gpu_comm_free(struct gpu_comm *comm)
{
    gpu_group_free(&comm->group);
    plug_free(comm->host_ids);
    plug_free(comm->world_ranks);
    pthread_mutex_destroy(&comm->lock);
    plug_free(comm);
}
