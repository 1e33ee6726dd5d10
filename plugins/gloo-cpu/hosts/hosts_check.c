/* hosts_check.c - WEFT_COMM_CHECK: compares the calls of the ranks of all hosts. */
#include "hosts.h"

#include <string.h>

/* The ranks of one host compare their calls when they synchronize.  All ranks use this call
 * here. */
static const struct cpu_shm_call checking = {.collective = WEFT_COLL_ALL_GATHER, .root = -1};

weft_status cpu_hosts_check(struct cpu_comm *comm, const struct cpu_shm_op *op)
{
    struct cpu_hosts *hosts = comm->other_hosts;
    struct cpu_shm_call mine = cpu_shm_call_of(op, comm->size), first = mine;
    size_t bytes = sizeof mine * (size_t)comm->size;
    int32_t other = -1, own = hosts->first[hosts->own] + comm->places[comm->rank];
    unsigned char *stage;

    for (int32_t h = 0; h < hosts->count; h++)
        hosts->host_room[h] = (size_t)cpu_hosts_size(hosts, h) * sizeof mine;
    hosts->call = checking;
    PLUG_TRY(cpu_hosts_share(comm, &checking, bytes, &stage));
    memcpy(stage + sizeof mine * (size_t)own, &mine, sizeof mine);
    PLUG_TRY(cpu_hosts_finish(comm));
    PLUG_TRY(cpu_hosts_all_gather(comm, stage, hosts->host_room));
    PLUG_TRY(cpu_hosts_share(comm, &checking, bytes, &stage));
    memcpy(&first, stage, sizeof first);
    for (int32_t i = 1; i < comm->size && other < 0; i++) {
        memcpy(&mine, stage + sizeof mine * (size_t)i, sizeof mine);
        if (!cpu_shm_call_same(&first, &mine)) other = i;
    }
    PLUG_TRY(cpu_hosts_finish(comm));
    if (other < 0) return WEFT_OK;
    /* All ranks get here and report the same difference. */
    return cpu_shm_call_differs(&comm->group, comm->names[hosts->ranks[0]], &first,
                                comm->names[hosts->ranks[other]], &mine);
}
