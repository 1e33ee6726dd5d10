/* hosts_fail.c - failure of a communicator across hosts. */
#include "hosts.h"

#include <stdio.h>
#include <string.h>

/* The notice that a rank sends when it disconnects. */
struct notice {
    int32_t status;
    char text[GLOO_NOTICE_BYTES - sizeof(int32_t)];
};

/* Gloo's collectives do not name the late host.  The message names all other hosts. */
static weft_status fail_late(struct cpu_comm *comm, const char *doing, const char *words)
{
    const struct cpu_hosts *hosts = comm->other_hosts;
    char names[256];
    size_t used = 0;

    for (int32_t h = 0; h < hosts->count && used < sizeof names - 32; h++)
        if (h != hosts->own)
            used += (size_t)snprintf(names + used, sizeof names - used, "%srank %d",
                                     used > 0 ? ", " : "",
                                     (int)comm->names[hosts->ranks[hosts->first[h]]]);
    return cpu_shm_fail(&comm->group, WEFT_ERR_TIMEOUT, "%s: no answer from %s of %s: %s", doing,
                        hosts->count > 2 ? "one of the hosts" : "the host", names, words);
}

weft_status cpu_hosts_fail(struct cpu_comm *comm, bool mesh, const char *doing,
                           const struct gloo_failure *failure)
{
    struct cpu_hosts *hosts = comm->other_hosts;
    struct cpu_shm_group *group = &comm->group;
    struct gloo_group *network = mesh ? hosts->mesh : hosts->leaders;
    struct notice notice = {0};
    int32_t rank = failure->peer;

    if (cpu_shm_has_failed(group)) return cpu_shm_fault(group);
    if (failure->status == WEFT_ERR_ABORTED)
        return cpu_shm_fail(group, failure->status, "%s", failure->text);
    if (rank < 0 && failure->status == WEFT_ERR_TIMEOUT && !mesh)
        return fail_late(comm, doing, failure->text);
    if (rank < 0) return cpu_shm_fail(group, failure->status, "%s: %s", doing, failure->text);
    if (!mesh) rank = hosts->ranks[hosts->first[rank]];
    hosts->bridge->read_notice(network, failure->peer, &notice);
    if (notice.status != WEFT_OK)
        return cpu_shm_fail(group, cpu_shm_pass_on(notice.status), "%.*s", (int)sizeof notice.text,
                            notice.text);
    if (failure->status == WEFT_ERR_TIMEOUT)
        return cpu_shm_fail(group, WEFT_ERR_TIMEOUT,
                            "%s: rank %d, on another host, did not answer: %s", doing,
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
    if (hosts->leaders != NULL) hosts->bridge->hang_up(hosts->leaders, &notice);
    hosts->bridge->hang_up(hosts->mesh, &notice);
}
