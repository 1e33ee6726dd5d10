/* fence.c - proof that processes of lost ranks are dead.
 *
 * A rank of the CPU backend writes into the memory of the ranks on its host.  One that is stopped
 * may go on later, in the middle of such a write.  So this rank's memory is used again only when
 * the process is dead, which a descriptor of the process shows. */
#include "comm/comm.h"
#include "rendezvous/launch.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif

/* The kernel takes hundreds of milliseconds to end a process on a busy host. */
#define GRACE_NS (WF_SECOND_NS / 20) /* before a process that may end by itself is killed */
#define LIMIT_NS (10 * WF_SECOND_NS) /* for the end of a process that was killed */

struct wf_process wf_fence_process(void)
{
    struct wf_process own = {.pid = (uint64_t)getpid()};
    struct stat info;

    if (stat("/proc/self/ns/pid", &info) == 0) own.space = (uint64_t)info.st_ino;
    own.began = wf_process_began(own.pid);
    return own;
}

weft_status wf_fence_begin(weft_context *context)
{
    size_t bytes = WEFT_ELASTIC_MAX * sizeof *context->peers; /* there may be more later */

    if (context->terms.ranks_min == 0 || context->peers != NULL) return WEFT_OK;
    context->peers = wf_alloc(bytes);
    if (context->peers == NULL) return wf_fail_memory(bytes);
    for (int32_t rank = 0; rank < WEFT_ELASTIC_MAX; rank++)
        context->peers[rank] = (struct wf_peer){.pidfd = -1};
    return WEFT_OK;
}

/* A process that has ended before its descriptor was opened may have left its number to another. */
static bool is_same(const struct wf_process *process)
{
    uint64_t began = wf_process_began(process->pid);

    return began == process->began || began == 0;
}

void wf_fence_note(weft_context *context, int32_t rank, const struct wf_process *process, bool near)
{
    struct wf_peer *peer = &context->peers[rank];

    if (peer->pidfd >= 0) wf_fd_close(peer->pidfd);
    *peer = (struct wf_peer){
        .pidfd = -1, .pid = process->pid, .is_near = near && rank != context->rank};
    if (!peer->is_near || process->space == 0 || process->space != wf_fence_process().space ||
        process->pid == 0 || process->pid > INT32_MAX)
        return;
    wf_fd_hold();
    peer->pidfd = wf_fd_keep((int)syscall(SYS_pidfd_open, (pid_t)process->pid, 0));
    if (peer->pidfd < 0) {
        peer->is_near = errno != ESRCH; /* it has ended */
    } else if (!is_same(process)) {
        wf_fd_close(peer->pidfd);
        peer->pidfd = -1;
    }
}

static bool is_dead(int pidfd, uint64_t limit_ns)
{
    uint64_t until_ns = wf_now_ns() + limit_ns, now_ns;
    struct pollfd waiting = {.fd = pidfd, .events = POLLIN};

    do {
        now_ns = wf_now_ns();
        if (poll(&waiting, 1, now_ns < until_ns ? (int)((until_ns - now_ns) / 1000000) + 1 : 0) > 0)
            return true;
    } while (now_ns < until_ns);
    return false;
}

static weft_status fail_alive(const struct wf_peer *peer, int32_t rank, const char *why,
                              const char *reason)
{
    return wf_fail(WEFT_ERR_TIMEOUT,
                   "rank %d %s, but its process %llu on this host may still run, and could write "
                   "memory of this rank: %s; end the process, then call weft_context_next again",
                   rank, why, (unsigned long long)peer->pid, reason);
}

weft_status wf_fence_wait(weft_context *context, int32_t rank, const char *why)
{
    const struct wf_peer *peer = &context->peers[rank];

    if (!peer->is_near) return WEFT_OK;
    if (peer->pidfd < 0)
        return fail_alive(peer, rank, why,
                          "the kernel does not show it to this rank (pidfd_open), as in another "
                          "namespace of processes or times");
    if (is_dead(peer->pidfd, GRACE_NS)) return WEFT_OK;
    if (context->terms.silent_ns == 0) {
        if (is_dead(peer->pidfd, LIMIT_NS)) return WEFT_OK;
        return fail_alive(peer, rank, why, "silent_ns says that no rank is killed");
    }
    wf_log(WF_LOG_NOTICE, "process %llu of rank %d is killed: the rank %s",
           (unsigned long long)peer->pid, rank, why);
    if (syscall(SYS_pidfd_send_signal, peer->pidfd, SIGKILL, NULL, 0) != 0 && errno != ESRCH)
        return fail_alive(peer, rank, why, kit_error_text(errno));
    if (is_dead(peer->pidfd, LIMIT_NS)) return WEFT_OK;
    return fail_alive(peer, rank, why, "it was killed, but does not end");
}

void wf_fence_end(weft_context *context)
{
    for (int32_t rank = 0; context->peers != NULL && rank < WEFT_ELASTIC_MAX; rank++)
        if (context->peers[rank].pidfd >= 0) wf_fd_close(context->peers[rank].pidfd);
    wf_free(context->peers);
    context->peers = NULL;
}
