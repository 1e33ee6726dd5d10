/* ring.h - reads of which the kernel does several at once (io_uring).
 *
 * A ring only makes reads faster.  Where the kernel has no io_uring, or does not permit it,
 * wf_rings_take returns NULL, and the caller reads without a ring. */
#ifndef WEFT_FILE_RING_H
#define WEFT_FILE_RING_H

#include "base/base.h"

#include <pthread.h>

/* Rings that are not in use.  A thread takes one, reads, and gives it back. */
struct wf_rings {
    pthread_mutex_t guard;
    struct wf_ring *idle;
    bool refused; /* the kernel has refused one */
};

void wf_rings_begin(struct wf_rings *rings);
void wf_rings_end(struct wf_rings *rings);
/* The result is NULL if the kernel refuses. */
struct wf_ring *wf_rings_take(struct wf_rings *rings);
void wf_rings_give(struct wf_rings *rings, struct wf_ring *ring);

/* A read of fewer bytes gains nothing from a ring. */
#define WF_RING_LEAST ((size_t)2 << 20)

/* Read BYTES at OFFSET.  The result is how many bytes, from the first one on, were read.  If they
 * are fewer than BYTES, the file ends there or a request failed; the caller reads on to learn it.
 */
size_t wf_ring_read(struct wf_ring *ring, int fd, void *target, size_t bytes,
                    uint64_t offset) WF_NODISCARD;

#endif
