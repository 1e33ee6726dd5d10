/* shm_read.c - reading a peer's memory: directly, or through the kernel. */
#include "shm.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>

void *cpu_shm_reach(const struct cpu_shm_group *group, int32_t rank,
                    const struct cpu_shm_address *place)
{
    const struct cpu_shm_peer *peer = &group->peers[rank];

    if (peer->same_process) return (void *)(uintptr_t)place->pointer;
    if (place->offset == SHM_NOWHERE) return NULL;
    return peer->heap + place->offset;
}

/* The kernel copies at most IOV_MAX pieces and 2 GiB at once; one piece each time is enough. */
static weft_status attach_read(struct cpu_shm_group *group, int32_t rank, uint64_t from, void *to,
                               uint64_t bytes)
{
    char name[64];

    while (bytes > 0) {
        size_t piece = bytes < (1u << 30) ? (size_t)bytes : 1u << 30;
        struct iovec local = {to, piece}, remote = {(void *)(uintptr_t)from, piece};
        ssize_t got =
            process_vm_readv(group->peers[rank].address.process.pid, &local, 1, &remote, 1, 0);

        if (got <= 0)
            return cpu_shm_fail(group, WEFT_ERR_PEER, "memory of %s cannot be read: %s",
                                cpu_shm_name(group, rank, name, sizeof name),
                                got < 0 ? strerror(errno) : "nothing there");
        from += (uint64_t)got;
        to = (unsigned char *)to + got;
        bytes -= (uint64_t)got;
    }
    return WEFT_OK;
}

weft_status cpu_shm_read(struct cpu_shm_group *group, int32_t rank,
                         const struct cpu_shm_address *place, uint64_t offset, void *target,
                         uint64_t bytes)
{
    const unsigned char *source = cpu_shm_reach(group, rank, place);

    if (source == NULL) return attach_read(group, rank, place->pointer + offset, target, bytes);
    memcpy(target, source + offset, bytes);
    return WEFT_OK;
}

static void log_unreadable(const struct cpu_shm_group *group, int32_t rank, const char *why)
{
    static atomic_flag said = ATOMIC_FLAG_INIT;
    char name[64];

    if (atomic_flag_test_and_set(&said)) return;
    plug_log(3,
             "gloo-cpu: process_vm_readv is not permitted on %s (%s): messages and pulls of memory "
             "that is not from weft_alloc are copied twice",
             cpu_shm_name(group, rank, name, sizeof name), why);
}

bool cpu_shm_readable(const struct cpu_shm_group *group, int32_t rank)
{
    const struct cpu_shm_peer *peer = &group->peers[rank];
    uint64_t seen = 0, wanted = peer->control->token;
    struct iovec local = {&seen, sizeof seen};
    struct iovec remote;
    ssize_t got;

    if (peer->same_process) return true;
    if (!plug_knob_flag("WEFT_CPU_CMA", true)) return false;
    /* The control block begins with the token, in the peer's own address space. */
    remote.iov_base =
        (void *)(uintptr_t)(peer->address.base + (uint64_t)((uint8_t *)peer->control - peer->heap));
    remote.iov_len = sizeof seen;
    got = process_vm_readv(peer->address.process.pid, &local, 1, &remote, 1, 0);
    if (got == (ssize_t)sizeof seen && seen == wanted) return true;
    log_unreadable(group, rank, got < 0 ? strerror(errno) : "it belongs to another process");
    return false;
}
