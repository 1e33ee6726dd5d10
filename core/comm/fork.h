/* fork.h - what a fork of this process does not get.
 *
 * A child of fork() has copies of contexts, communicators and the rest, but none of the threads
 * that serve them, and would speak for its parent if it used them.  So every object notes in which
 * generation of the process it was made, the child is the next one, and calls compare the two.
 * Descriptors of the rendezvous are closed in the child: a peer sees that the parent has died when
 * the last copy of its connection is closed.  exec closes them by itself (SOCK_CLOEXEC). */
#ifndef WEFT_COMM_FORK_H
#define WEFT_COMM_FORK_H

#include "base/base.h"

#include <stdatomic.h>

/* How many forks lie between this process and the one that loaded weft. */
extern _Atomic uint32_t wf_generation;

/* In place of an object's generation: what it depends on was released. */
#define WF_ENDED UINT32_MAX

/* Only a fork changes it, and then this thread is the only one. */
static inline uint32_t wf_generation_now(void)
{
    return atomic_load_explicit(&wf_generation, memory_order_relaxed);
}

/* May an object that was made in generation MADE be used? */
static inline bool wf_is_usable(uint32_t made)
{
    return __builtin_expect(made == wf_generation_now(), 1);
}

/* "weft_copy: this process is a fork ..." */
weft_status wf_fail_fork(const char *function);

/* A context is begun.  WEFT_ERR_INVALID in a fork of a process that has begun one, released or not:
 * vendor libraries that it has started do not work in a fork. */
weft_status wf_fork_enter(void) WF_NODISCARD;

/* Descriptors that a fork closes.  No fork happens between wf_fd_hold and the wf_fd_keep that
 * follows it:
 *
 *     wf_fd_hold();
 *     fd = wf_fd_keep(socket(...));
 *
 * keep returns FD; -1 with errno stays what it is. */
void wf_fd_hold(void);
int wf_fd_keep(int fd);
/* The same for a pipe or a pair of sockets; CODE, not 0 where there are none, is returned. */
int wf_fd_keep_pair(int code, int fds[2]);
/* In place of close, for what was kept. */
void wf_fd_close(int fd);

#endif
