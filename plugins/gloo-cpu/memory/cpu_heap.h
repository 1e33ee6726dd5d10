/* cpu_heap.h - memory that the other ranks of the host can map.
 *
 * cpu_segment.c creates one growing anonymous piece of shared memory and maps the segments of other
 * processes.  cpu_heap.c allocates from it. */
#ifndef WEFT_CPU_HEAP_H
#define WEFT_CPU_HEAP_H

#include "cpu.h"

#include <pthread.h>

/* ---- cpu_segment.c ---- */

/* BASE covers RESERVED bytes of address space, of which the first BYTES exist.  A peer maps all of
 * RESERVED at once.  Its mapping stays valid while the segment grows and after the owner closes
 * it.  The owner may be another process or another rank of this process. */
struct cpu_segment {
    int fd;
    bool limited;    /* lives in /dev/shm, whose size is limited */
    uint64_t serial; /* unique among all segments that this process ever creates */
    uint8_t *base;
    uint64_t reserved, bytes;
};

/* The data with which another process finds the segment. */
struct cpu_segment_address {
    struct cpu_process process;
    uint64_t serial;
    uint64_t device, inode; /* of the file, to detect a wrong file */
    uint64_t reserved;
    uint64_t base; /* in the owner's address space */
    int32_t fd;
    int32_t unused;
};

weft_status cpu_segment_create(struct cpu_segment *out);
void cpu_segment_close(struct cpu_segment *segment);
/* Extend the segment to BYTES.  WEFT_ERR_NO_MEMORY, described, if that fails. */
weft_status cpu_segment_grow(struct cpu_segment *segment, uint64_t bytes);
/* Return the pages of a range to the system.  They read as zeros afterwards. */
void cpu_segment_discard(struct cpu_segment *segment, uint64_t offset, uint64_t bytes);
weft_status cpu_segment_restore(struct cpu_segment *segment, uint64_t offset, uint64_t bytes);
weft_status cpu_segment_describe(const struct cpu_segment *segment,
                                 struct cpu_segment_address *out);

/* Map a segment of this or another process.  Mappings are shared within the process and counted.
 * Every attach needs a detach.  *BYTES receives the current size.  ADDRESS is not trusted:
 * WEFT_ERR_MISMATCH if it does not name a segment. [any] */
weft_status cpu_segment_attach(const struct cpu_segment_address *address, uint8_t **base,
                               uint64_t *bytes);
void cpu_segment_detach(const struct cpu_segment_address *address);

/* ---- cpu_heap.c ---- */

#define HEAP_ALIGNMENT 128
#define HEAP_BINS      128

struct cpu_block;
struct cpu_retired;

/* The bookkeeping is in private memory, so that a caller's overrun cannot corrupt it. [any] */
struct cpu_heap {
    struct cpu_segment segment;
    pthread_mutex_t lock;
    struct cpu_block *first, *last;    /* in address order */
    struct cpu_block *bins[HEAP_BINS]; /* free blocks by size */
    uint64_t filled[HEAP_BINS / 64];   /* bit by bin: it has a block */
    void *used_tree;                   /* used blocks by address */
    struct cpu_retired *retired;
    uint64_t used, idle, keep; /* bytes; IDLE: free, with pages; KEEP: maximum of IDLE */
};

weft_status cpu_heap_create(struct cpu_heap *heap);
void cpu_heap_close(struct cpu_heap *heap);
/* KIND is returned by cpu_heap_find. */
weft_status cpu_heap_allocate(struct cpu_heap *heap, uint64_t bytes, uint32_t kind, void **out);
/* False if POINTER is not from this heap. */
bool cpu_heap_free(struct cpu_heap *heap, void *pointer);
/* Free all POINTERS once *COUNTER, which is in one of them, reaches GOAL.  Peers may read them
 * until then. */
void cpu_heap_retire(struct cpu_heap *heap, size_t count, void *const *pointers,
                     const _Atomic(uint32_t) *counter, uint32_t goal);
/* Free the retired blocks whose counters have reached their goals. */
void cpu_heap_sweep(struct cpu_heap *heap);
/* The allocation that contains POINTER, including the gap after it. */
struct cpu_allocation {
    void *base;
    uint64_t bytes; /* as requested; 1 if that was 0 */
    uint32_t kind;
};
bool cpu_heap_find(struct cpu_heap *heap, const void *pointer, struct cpu_allocation *out);

/* True if the range is inside the heap's address space.  Takes no lock, because the space never
 * moves. */
static inline bool cpu_heap_holds(const struct cpu_heap *heap, const void *pointer, uint64_t bytes)
{
    uint64_t offset = (uint64_t)(uintptr_t)pointer - (uint64_t)(uintptr_t)heap->segment.base;

    return offset < heap->segment.reserved && bytes <= heap->segment.reserved - offset;
}

#endif
