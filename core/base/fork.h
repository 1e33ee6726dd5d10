/* fork.h - objects and descriptors that a fork of this process must not use.
 *
 * A child of fork() has copies of contexts, communicators and other objects, but not the threads
 * that serve them.  If it used them, it would send messages in its parent's name.  So every object
 * records the generation of the process that made it.  A child has the next generation, and calls
 * compare the two.  Descriptors of the rendezvous are closed in the child: a peer sees the end of
 * the parent only when the last copy of its connection is closed.  exec closes them by itself
 * (SOCK_CLOEXEC). */
#ifndef WEFT_BASE_FORK_H
#define WEFT_BASE_FORK_H

#include "kinds.h"

#include <stdatomic.h>

/* Number of forks between the process that loaded weft and this process. */
extern _Atomic uint32_t wf_generation;

/* Only a fork changes the generation, and then this thread is the only one. */
static inline uint64_t wf_made_now(enum wf_kind kind)
{
    return wf_made_in(kind, atomic_load_explicit(&wf_generation, memory_order_relaxed));
}

/* True if the object with MADE is of KIND and belongs to this process. */
static inline bool wf_is_usable(uint64_t made, enum wf_kind kind)
{
    return __builtin_expect(made == wf_made_now(kind), 1);
}

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
/* The same for a pipe or a pair of sockets.  Returns CODE, the result of the call that made them.
 */
int wf_fd_keep_pair(int code, int fds[2]);
/* Replaces close for descriptors that were kept. */
int wf_fd_close(int fd);

#endif
