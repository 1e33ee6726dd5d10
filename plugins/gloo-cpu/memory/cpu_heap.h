/* heap.h - memory that the other ranks of the host can map.
 *
 * cpu_segment.c makes one growing piece of shared memory without a name, and maps those of other
 * processes; cpu_heap.c hands out parts of it. */
#ifndef WEFT_CPU_HEAP_H
#define WEFT_CPU_HEAP_H

#include "cpu.h"

#include <pthread.h>

/* ---- cpu_segment.c ---- */

/* BASE covers RESERVED bytes of address space, of which the first BYTES exist.  A peer maps all of
 * RESERVED at once, so its mapping stays good while the segment grows, and after its owner closed
 * it, whether that is another process or another rank of this one. */
struct cpu_segment {
    int fd;
    bool limited;    /* lives in /dev/shm, whose size is limited */
    uint64_t serial; /* unlike any other segment of the process, ever */
    uint8_t *base;
    uint64_t reserved, bytes;
};

/* How another process finds the segment. */
struct cpu_segment_address {
    struct cpu_process process;
    uint64_t serial;
    uint64_t device, inode; /* of the file, so that a wrong one is noticed */
    uint64_t reserved;
    uint64_t base; /* in its own process */
    int32_t fd;
    int32_t unused;
};

weft_status cpu_segment_create(struct cpu_segment *out);
void cpu_segment_close(struct cpu_segment *segment);
/* Make the first BYTES exist.  WEFT_ERR_NO_MEMORY, with a sentence, when they cannot. */
weft_status cpu_segment_grow(struct cpu_segment *segment, uint64_t bytes);
/* Give the pages of a range back to the system; they read as zeros afterwards. */
void cpu_segment_discard(struct cpu_segment *segment, uint64_t offset, uint64_t bytes);
weft_status cpu_segment_restore(struct cpu_segment *segment, uint64_t offset, uint64_t bytes);
weft_status cpu_segment_describe(const struct cpu_segment *segment,
                                 struct cpu_segment_address *out);

/* Map a segment of this or another process.  Mappings are shared within the process and counted;
 * every attach needs its detach.  BYTES gets the size that exists now.  ADDRESS is not trusted:
 * WEFT_ERR_MISMATCH if it is that of no segment. [any] */
weft_status cpu_segment_attach(const struct cpu_segment_address *address, uint8_t **base,
                               uint64_t *bytes);
void cpu_segment_detach(const struct cpu_segment_address *address);

/* ---- cpu_heap.c ---- */

#define HEAP_ALIGNMENT 128
#define HEAP_BINS      128

struct cpu_block;
struct cpu_retired;

/* Bookkeeping lies in private memory, out of reach of a caller that writes past its end. [any] */
struct cpu_heap {
    struct cpu_segment segment;
    pthread_mutex_t lock;
    struct cpu_block *first, *last;    /* in address order */
    struct cpu_block *bins[HEAP_BINS]; /* free blocks by size */
    void *used_tree;                   /* used blocks by address */
    struct cpu_retired *retired;
    uint64_t used, idle, keep; /* bytes; IDLE: free with pages; KEEP: most idle kept */
};

weft_status cpu_heap_create(struct cpu_heap *heap);
void cpu_heap_close(struct cpu_heap *heap);
/* KIND is kept for cpu_heap_find. */
weft_status cpu_heap_allocate(struct cpu_heap *heap, uint64_t bytes, uint32_t kind, void **out);
/* False if POINTER was not handed out by this heap. */
bool cpu_heap_free(struct cpu_heap *heap, void *pointer);
/* Free all POINTERS once *COUNTER, which lies in one of them, has reached GOAL: until then peers
 * may still read them. */
void cpu_heap_retire(struct cpu_heap *heap, size_t count, void *const *pointers,
                     const _Atomic(uint32_t) *counter, uint32_t goal);
/* Free what has been retired and may go. */
void cpu_heap_sweep(struct cpu_heap *heap);
/* The allocation POINTER lies in, or in the gap behind it. */
struct cpu_allocation {
    void *base;
    uint64_t bytes; /* as asked for; 1 if that was 0 */
    uint32_t kind;
};
bool cpu_heap_find(struct cpu_heap *heap, const void *pointer, struct cpu_allocation *out);

/* Is the range inside the heap's address space?  No lock: the space never moves. */
static inline bool cpu_heap_holds(const struct cpu_heap *heap, const void *pointer, uint64_t bytes)
{
    uint64_t offset = (uint64_t)(uintptr_t)pointer - (uint64_t)(uintptr_t)heap->segment.base;

    return offset < heap->segment.reserved && bytes <= heap->segment.reserved - offset;
}

#endif
