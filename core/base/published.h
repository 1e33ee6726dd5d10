/* published.h - values that threads read without a lock while another thread replaces them.
 *
 *     uint32_t ticket = wf_published_enter(&guard);
 *     value = atomic_load(&pointer);           and use it
 *     wf_published_leave(&guard, ticket);
 *
 *     wf_published_lock(&guard);
 *     atomic_store(&pointer, next);
 *     wf_published_retire(&guard, &before->retired);
 *     wf_published_unlock(&guard); */
#ifndef WEFT_BASE_PUBLISHED_H
#define WEFT_BASE_PUBLISHED_H

#include "base.h"

#include <pthread.h>
#include <stdatomic.h>

/* The first member of a value that can be replaced. */
struct wf_retired {
    struct wf_retired *next;
    void (*drop)(struct wf_retired *item); /* frees it */
};

/* Declare one statically as WF_PUBLISHED.  It guards any number of atomic pointers. */
struct wf_published {
    _Atomic(uint64_t) epoch;
    _Atomic(int64_t) readers[2]; /* of the even and of the odd epochs */
    pthread_mutex_t writers;
    struct wf_retired *retired[2]; /* in this epoch, and in the one before */
};

#define WF_PUBLISHED                                                                               \
    {                                                                                              \
        .writers = PTHREAD_MUTEX_INITIALIZER                                                       \
    }

/* Until wf_published_leave with the ticket, what the reader loads from the guarded pointers stays
 * valid. */
static inline uint32_t wf_published_enter(struct wf_published *published)
{
    for (;;) {
        uint64_t epoch = atomic_load(&published->epoch);
        uint32_t ticket = (uint32_t)(epoch & 1);
        atomic_fetch_add(&published->readers[ticket], 1);
        if (atomic_load(&published->epoch) == epoch) return ticket;
        atomic_fetch_sub(&published->readers[ticket], 1);
    }
}
static inline void wf_published_leave(struct wf_published *published, uint32_t ticket)
{
    atomic_fetch_sub_explicit(&published->readers[ticket], 1, memory_order_release);
}

/* One writer at a time. */
void wf_published_lock(struct wf_published *published);
void wf_published_unlock(struct wf_published *published);
/* ITEM is no longer in any guarded pointer; it is dropped when no reader can have it.  With the
 * lock held. */
void wf_published_retire(struct wf_published *published, struct wf_retired *item);
/* Drop what no reader can have.  With the lock held. */
void wf_published_sweep(struct wf_published *published);

#endif
