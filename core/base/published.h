/* published.h - values that threads read without a lock while another thread replaces them. */
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
    _Atomic(int64_t) readers;
    pthread_mutex_t writers;
    struct wf_retired *retired; /* replaced, and perhaps still read */
};

#define WF_PUBLISHED                                                                               \
    {                                                                                              \
        .writers = PTHREAD_MUTEX_INITIALIZER                                                       \
    }

/* Between enter and leave, what a reader loads from the guarded pointers stays valid.  Load with
 * memory_order_seq_cst. */
static inline void wf_published_enter(struct wf_published *published)
{
    atomic_fetch_add(&published->readers, 1);
}
static inline void wf_published_leave(struct wf_published *published)
{
    atomic_fetch_sub_explicit(&published->readers, 1, memory_order_release);
}

/* One writer at a time. */
void wf_published_lock(struct wf_published *published);
void wf_published_unlock(struct wf_published *published);
/* ITEM is no longer in any guarded pointer; it is dropped when no reader can have it.  With the
 * lock held, after a store with memory_order_seq_cst. */
void wf_published_retire(struct wf_published *published, struct wf_retired *item);
/* Drop what no reader can have.  With the lock held. */
void wf_published_sweep(struct wf_published *published);

#endif
