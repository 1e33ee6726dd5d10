/* kinds.h - the kind of an object is its first member, so that calls refuse other pointers.
 *
 * Objects that a fork of the process must not use have the generation of their process there, too
 * (fork.h). */
#ifndef WEFT_BASE_KINDS_H
#define WEFT_BASE_KINDS_H

#include "base.h"

#include <string.h>

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
    WF_KIND_CP_PLAN,
    WF_KIND_STYLES,
    WF_KIND_LIBRARY = 0x20000000 /* the first of the kinds of other libraries (extend/objects.c) */
};

/* The first member of an object that every process may use, also a fork. */
#define WF_OF_KIND(kind) ((uint64_t)(kind) << 32)

/* An object's first member, `made`: its kind and the generation that made it.  So a call can tell
 * when it is given an object of another kind. */
static inline uint64_t wf_made_in(enum wf_kind kind, uint32_t generation)
{
    return (uint64_t)kind << 32 | generation;
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

/* "weft_tensor" for an object that begins with MADE; NULL: it is none of the above. */
const char *wf_kind_name(uint64_t made);
/* The kind with the name TYPE; 0: none of the above. */
enum wf_kind wf_kind_find(const char *type);
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

/* The object that FUNCTION releases: *HELD, which becomes NULL.  HELD is a pointer to a pointer, or
 * NULL.  NULL if there is no object, or after such a warning. */
static inline void *wf_take(void *held, enum wf_kind kind, const char *function)
{
    void *object = NULL, *const nothing = NULL;

    if (held != NULL) memcpy(&object, held, sizeof object);
    if (object == NULL) return NULL;
    memcpy(held, &nothing, sizeof nothing);
    if (wf_is_kind(object, kind)) return object;
    wf_warn_unusable(function, *(const uint64_t *)object, kind);
    return NULL;
}

#endif
