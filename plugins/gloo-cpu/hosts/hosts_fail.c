/* hosts_fail.c - failure of a communicator across hosts. */
#include "hosts.h"

#include <stdio.h>
#include <string.h>

/* The notice that a rank sends when it disconnects. */
struct notice {
    int32_t status;
    char text[NET_NOTICE_BYTES - sizeof(int32_t)];
};

weft_status cpu_hosts_fail(struct cpu_comm *comm, const char *doing,
                           const struct net_failure *failure)
{
    struct cpu_hosts *hosts = comm->other_hosts;
    struct cpu_shm_group *group = &comm->group;
    struct notice notice = {0};
    int32_t rank = failure->peer;

    if (cpu_shm_has_failed(group)) return cpu_shm_fault(group);
    if (failure->status == WEFT_ERR_ABORTED)
        return cpu_shm_fail(group, failure->status, "%s", failure->text);
    if (rank < 0) return cpu_shm_fail(group, failure->status, "%s: %s", doing, failure->text);
    hosts->carrier->read_notice(hosts->network, rank, &notice);
    if (notice.status != WEFT_OK)
        return cpu_shm_fail(group, cpu_shm_pass_on(notice.status), "%.*s", (int)sizeof notice.text,
                            notice.text);
    if (failure->status == WEFT_ERR_TIMEOUT)
        return cpu_shm_fail(group, WEFT_ERR_TIMEOUT,
                            "%s: rank %d, on another host, did not answer: %s", doing,
                            (int)comm->names[rank], failure->text);
    if (failure->status == WEFT_ERR_MISMATCH)
        return cpu_shm_fail(group, WEFT_ERR_MISMATCH,
                            "%s: rank %d, on another host, does not match: %s", doing,
                            (int)comm->names[rank], failure->text);
    return cpu_shm_fail(group, failure->status, "%s: rank %d, on another host, is gone: %s", doing,
                        (int)comm->names[rank], failure->text);
}

void cpu_hosts_disconnect(struct cpu_comm *comm)
{
    struct cpu_hosts *hosts = comm->other_hosts;
    struct notice notice = {.status = atomic_load(&comm->group.fault.status)};

    if (notice.status == WEFT_OK || atomic_exchange(&hosts->disconnected, true)) return;
    snprintf(notice.text, sizeof notice.text, "%s", comm->group.fault.text);
    hosts->carrier->hang_up(hosts->network, &notice);
}
