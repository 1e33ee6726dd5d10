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

#include "base.h"

#include <stdatomic.h>

/* Number of forks between the process that loaded weft and this process. */
extern _Atomic uint32_t wf_generation;

/* The kinds of objects.  The values occur in no other object's first member. */
enum wf_kind {
    WF_KIND_CONTEXT = 0x77660001,
    WF_KIND_COMM,
    WF_KIND_SYMM,
    WF_KIND_BOUND,
    WF_KIND_THREADS,
    WF_KIND_RENDEZVOUS,
    WF_KIND_WORK,
    WF_KIND_MESH,
    WF_KIND_SPEC,
    WF_KIND_PLAN,
    WF_KIND_TENSOR,
    WF_KIND_CHECKPOINT,
    WF_KIND_CHECKPOINT_WRITER,
    WF_KIND_LAYOUT,
    WF_KIND_RESHARD,
    WF_KIND_RULES,
    WF_KIND_SIMULATED_COMM, /* a weft_comm that cannot communicate */
    WF_KIND_SAVING,
    WF_KIND_FSDP,
    WF_KIND_FSDP_GROUP,
    WF_KIND_CP_PLAN,
    WF_KIND_CP,
    WF_KIND_STYLES,
    WF_KIND_PIPELINE,
    WF_KIND_EXPERTS,
    WF_KIND_ROUTING,
    WF_KIND_OVERLAP,
};

/* The first member of an object that every process may use, also a fork. */
#define WF_OF_KIND(kind) ((uint64_t)(kind) << 32)

/* An object's first member, `made`: its kind and the generation that made it.  So a call can tell
 * when it is given an object of another kind. */
static inline uint64_t wf_made_in(enum wf_kind kind, uint32_t generation)
{
    return (uint64_t)kind << 32 | generation;
}

/* Only a fork changes the generation, and then this thread is the only one. */
static inline uint64_t wf_made_now(enum wf_kind kind)
{
    return wf_made_in(kind, atomic_load_explicit(&wf_generation, memory_order_relaxed));
}

/* In place of an object's generation: the object that it depends on was released. */
static inline uint64_t wf_ended(enum wf_kind kind)
{
    return wf_made_in(kind, UINT32_MAX);
}

/* In place of an object's generation: the object itself was released.  Its memory is kept for a
 * while, so that calls with a copy of its pointer are refused. */
static inline uint64_t wf_released(enum wf_kind kind)
{
    return wf_made_in(kind, UINT32_MAX - 1);
}

/* True if the object with MADE is of KIND and belongs to this process. */
static inline bool wf_is_usable(uint64_t made, enum wf_kind kind)
{
    return __builtin_expect(made == wf_made_now(kind), 1);
}

/* "weft_memory_copy: this process is a fork ..." */
weft_status wf_fail_fork(const char *function);
/* Why FUNCTION cannot use ARGUMENT, which has MADE: it is not of KIND, was released, or is a parent
 * process's. */
weft_status wf_fail_unusable(const char *function, const char *argument, uint64_t made,
                             enum wf_kind kind);
/* True if OBJECT is not NULL and its first member is WF_OF_KIND(KIND). */
static inline bool wf_is_kind(const void *object, enum wf_kind kind)
{
    return object != NULL && *(const uint64_t *)object == WF_OF_KIND(kind);
}

/* As wf_require, for an argument of that KIND. */
weft_status wf_refuse_kind(const void *object, enum wf_kind kind, const char *what);
static inline weft_status wf_require_kind(const void *object, enum wf_kind kind, const char *what)
{
    return wf_is_kind(object, kind) ? WEFT_OK : wf_refuse_kind(object, kind, what);
}

/* FUNCTION cannot release an object that has MADE: log a warning if it was released before or is
 * not of KIND.  In a fork of the process that made the object, that is not a mistake. */
void wf_warn_unusable(const char *function, uint64_t made, enum wf_kind kind);

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
