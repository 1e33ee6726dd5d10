/* cpu_heap.c - allocation from a segment.
 *
 * Blocks tile the segment in address order.  Free blocks are in bins by size, four bins per power
 * of two, and are merged with free neighbours at once.  A search takes the first block that is
 * large enough in the request's own bin, else any block of a larger bin. */
#include "cpu_heap.h"

#include <search.h>
#include <string.h>
#include <unistd.h>

#define PAGE        UINT64_C(4096)
#define LARGE       (UINT64_C(64) << 10) /* used blocks from this size on are page-aligned */
#define GROWTH      (UINT64_C(1) << 20)
#define DISCARD_MIN (UINT64_C(1) << 20)

struct cpu_block {
    struct cpu_block *before, *after;  /* neighbours by address */
    struct cpu_block *previous, *next; /* in the bin, if free */
    uint64_t offset, bytes;
    uint64_t asked; /* bytes requested, if used; at least 1 */
    uint32_t kind;
    bool free, discarded; /* DISCARDED: the pages were returned to the system */
};

/* Blocks that peers may still read. */
struct cpu_retired {
    struct cpu_retired *next;
    const _Atomic(uint32_t) *counter;
    uint32_t goal;
    size_t count;
    void *pointers[];
};

/* Order of used_tree.  A key is a used block, or one byte to look up. */
static int by_address(const void *a, const void *b)
{
    const struct cpu_block *x = a, *y = b;

    if (x->offset + x->bytes <= y->offset) return -1;
    if (y->offset + y->bytes <= x->offset) return 1;
    return 0;
}

/* A larger block is never in a lower bin. */
static unsigned bin_of(uint64_t units)
{
    unsigned top = 63u - (unsigned)__builtin_clzll(units | 4);
    unsigned bin =
        units < 4 ? (unsigned)units : (top - 1) * 4 + (unsigned)((units >> (top - 2)) & 3);

    return bin < HEAP_BINS ? bin : HEAP_BINS - 1;
}

static weft_status fail_full(const struct cpu_heap *heap, uint64_t bytes)
{
    uint64_t reserved = heap->segment.reserved;

    return plug_fail(WEFT_ERR_NO_MEMORY,
                     "%llu bytes do not fit: %llu of the %llu bytes of the shared heap are in "
                     "use%s; WEFT_CPU_HEAP sets its size",
                     (unsigned long long)bytes, (unsigned long long)heap->used,
                     (unsigned long long)reserved,
                     bytes <= reserved - heap->used ? ", and no free part is large enough" : "");
}

static void bin_insert(struct cpu_heap *heap, struct cpu_block *block)
{
    unsigned number = bin_of(block->bytes / HEAP_ALIGNMENT);
    struct cpu_block **bin = &heap->bins[number];

    block->free = true;
    block->previous = NULL;
    block->next = *bin;
    if (*bin != NULL) (*bin)->previous = block;
    *bin = block;
    heap->filled[number / 64] |= UINT64_C(1) << number % 64;
    if (!block->discarded) heap->idle += block->bytes;
}

static void bin_remove(struct cpu_heap *heap, struct cpu_block *block)
{
    unsigned number = bin_of(block->bytes / HEAP_ALIGNMENT);

    if (block->previous != NULL)
        block->previous->next = block->next;
    else
        heap->bins[number] = block->next;
    if (block->next != NULL) block->next->previous = block->previous;
    if (heap->bins[number] == NULL) heap->filled[number / 64] &= ~(UINT64_C(1) << number % 64);
    block->free = false;
    if (!block->discarded) heap->idle -= block->bytes;
}

static uint64_t unit_of(uint64_t bytes)
{
    return bytes >= LARGE ? PAGE : HEAP_ALIGNMENT;
}

/* Bytes to skip in BLOCK so that a used block of BYTES is aligned. */
static uint64_t pad_of(const struct cpu_block *block, uint64_t bytes)
{
    return -block->offset & (unit_of(bytes) - 1);
}

/* The first bin from BIN on that has a block; HEAP_BINS: none. */
static unsigned next_bin(const struct cpu_heap *heap, unsigned bin)
{
    for (; bin < HEAP_BINS; bin += 64 - bin % 64) {
        uint64_t filled = heap->filled[bin / 64] >> bin % 64;

        if (filled != 0) return bin + (unsigned)__builtin_ctzll(filled);
    }
    return HEAP_BINS;
}

static struct cpu_block *bin_search(struct cpu_heap *heap, uint64_t bytes)
{
    unsigned bin = next_bin(heap, bin_of(bytes / HEAP_ALIGNMENT));

    for (; bin < HEAP_BINS; bin = next_bin(heap, bin + 1))
        for (struct cpu_block *b = heap->bins[bin]; b != NULL; b = b->next)
            if (b->bytes >= bytes + pad_of(b, bytes)) return b;
    return NULL;
}

static void link_after(struct cpu_heap *heap, struct cpu_block *place, struct cpu_block *block)
{
    block->before = place;
    block->after = place != NULL ? place->after : heap->first;
    if (block->after != NULL)
        block->after->before = block;
    else
        heap->last = block;
    if (place != NULL)
        place->after = block;
    else
        heap->first = block;
}

static void unlink_block(struct cpu_heap *heap, struct cpu_block *block)
{
    if (block->before != NULL)
        block->before->after = block->after;
    else
        heap->first = block->after;
    if (block->after != NULL)
        block->after->before = block->before;
    else
        heap->last = block->before;
    plug_free(block);
}

/* Cut BLOCK to BYTES and return the rest.  Neither is in a bin. */
static weft_status cut(struct cpu_heap *heap, struct cpu_block *block, uint64_t bytes,
                       struct cpu_block **out)
{
    struct cpu_block *rest = plug_alloc(sizeof *rest);

    if (rest == NULL) return plug_fail_memory(sizeof *rest);
    rest->offset = block->offset + bytes;
    rest->bytes = block->bytes - bytes;
    rest->discarded = block->discarded;
    block->bytes = bytes;
    link_after(heap, block, rest);
    *out = rest;
    return WEFT_OK;
}

/* Put BLOCK, which is in no bin, into its bin, merged with free neighbours of the same kind. */
static struct cpu_block *give(struct cpu_heap *heap, struct cpu_block *block)
{
    struct cpu_block *before = block->before, *after = block->after;

    if (after != NULL && after->free && after->discarded == block->discarded) {
        bin_remove(heap, after);
        block->bytes += after->bytes;
        unlink_block(heap, after);
    }
    if (before != NULL && before->free && before->discarded == block->discarded) {
        bin_remove(heap, before);
        before->bytes += block->bytes;
        unlink_block(heap, block);
        block = before;
    }
    bin_insert(heap, block);
    return block;
}

/* Append a new block to the segment.  It is in no bin. */
static weft_status extend(struct cpu_heap *heap, uint64_t bytes, struct cpu_block **out)
{
    struct cpu_block *block, *last = heap->last;
    uint64_t missing = bytes, end = heap->segment.bytes, room;
    weft_status status;

    if (last != NULL && last->free && !last->discarded)
        missing += pad_of(last, bytes) - last->bytes;
    room = heap->segment.reserved - end;
    if (missing > room) return fail_full(heap, bytes);
    missing = (missing + GROWTH - 1) / GROWTH * GROWTH;
    if (missing > room) missing = room;
    block = plug_alloc(sizeof *block);
    if (block == NULL) return plug_fail_memory(sizeof *block);
    status = cpu_segment_grow(&heap->segment, end + missing);
    if (status != WEFT_OK) {
        plug_free(block);
        return status;
    }
    block->offset = end;
    block->bytes = missing;
    link_after(heap, last, block);
    block = give(heap, block);
    bin_remove(heap, block);
    *out = block;
    return WEFT_OK;
}

/* Trim BLOCK, which is in no bin, to BYTES on their alignment.  The rest becomes free.  On failure
 * all of BLOCK becomes free. */
static weft_status trim(struct cpu_heap *heap, struct cpu_block **block, uint64_t bytes)
{
    uint64_t pad = pad_of(*block, bytes);
    struct cpu_block *rest = NULL;
    weft_status status = WEFT_OK;

    if (pad > 0) {
        status = cut(heap, *block, pad, &rest);
        give(heap, *block);
        if (status != WEFT_OK) return status;
        *block = rest;
    }
    if ((*block)->bytes > bytes) {
        status = cut(heap, *block, bytes, &rest);
        give(heap, status == WEFT_OK ? rest : *block);
    }
    return status;
}

static weft_status take(struct cpu_heap *heap, uint64_t bytes, struct cpu_block **out)
{
    struct cpu_block *block = bin_search(heap, bytes);
    weft_status status;

    if (block == NULL)
        PLUG_TRY(extend(heap, bytes, &block));
    else
        bin_remove(heap, block);
    PLUG_TRY(trim(heap, &block, bytes));
    if (block->discarded) {
        status = cpu_segment_restore(&heap->segment, block->offset, block->bytes);
        if (status != WEFT_OK) goto give_back;
        block->discarded = false;
    }
    if (tsearch(block, &heap->used_tree, by_address) == NULL) {
        status = plug_fail_memory(sizeof(void *));
        goto give_back;
    }
    heap->used += bytes;
    *out = block;
    return WEFT_OK;

give_back:
    give(heap, block);
    return status;
}

weft_status cpu_heap_allocate(struct cpu_heap *heap, uint64_t bytes, uint32_t kind, void **out)
{
    uint64_t unit = unit_of(bytes), asked = bytes > 0 ? bytes : 1;
    struct cpu_block *block = NULL;
    weft_status status;

    pthread_mutex_lock(&heap->lock);
    if (bytes > heap->segment.reserved)
        status = fail_full(heap, bytes);
    else
        status = take(heap, (asked + unit - 1) / unit * unit, &block);
    if (status == WEFT_OK) {
        block->kind = kind;
        block->asked = asked;
        *out = heap->segment.base + block->offset;
    }
    pthread_mutex_unlock(&heap->lock);
    return status;
}

/* Large blocks are page-aligned, so all their pages can be returned. */
static void discard(struct cpu_heap *heap, struct cpu_block *block)
{
    if (block->bytes < DISCARD_MIN) return;
    cpu_segment_discard(&heap->segment, block->offset, block->bytes);
    block->discarded = true;
}

static struct cpu_block *find(struct cpu_heap *heap, const void *pointer)
{
    struct cpu_block key = {.bytes = 1};
    struct cpu_block *const *node;

    if (!cpu_heap_holds(heap, pointer, 1)) return NULL;
    key.offset = (uint64_t)((const uint8_t *)pointer - heap->segment.base);
    node = tfind(&key, &heap->used_tree, by_address);
    return node != NULL ? *node : NULL;
}

bool cpu_heap_free(struct cpu_heap *heap, void *pointer)
{
    struct cpu_block *block;
    bool found;

    pthread_mutex_lock(&heap->lock);
    block = find(heap, pointer);
    found = block != NULL && heap->segment.base + block->offset == (uint8_t *)pointer;
    if (found) {
        tdelete(block, &heap->used_tree, by_address);
        heap->used -= block->bytes;
        if (heap->idle + block->bytes > heap->keep) discard(heap, block);
        give(heap, block);
    }
    pthread_mutex_unlock(&heap->lock);
    return found;
}

void cpu_heap_retire(struct cpu_heap *heap, size_t count, void *const *pointers,
                     const _Atomic(uint32_t) *counter, uint32_t goal)
{
    struct cpu_retired *entry = plug_alloc(sizeof *entry + count * sizeof *pointers);

    if (entry == NULL) return; /* the blocks are then kept until the heap is closed */
    entry->counter = counter;
    entry->goal = goal;
    entry->count = count;
    memcpy(entry->pointers, pointers, count * sizeof *pointers);
    pthread_mutex_lock(&heap->lock);
    entry->next = heap->retired;
    heap->retired = entry;
    pthread_mutex_unlock(&heap->lock);
    cpu_heap_sweep(heap);
}

static struct cpu_retired *next_to_go(struct cpu_heap *heap)
{
    struct cpu_retired **at = &heap->retired, *entry;

    pthread_mutex_lock(&heap->lock);
    while (*at != NULL && atomic_load((*at)->counter) < (*at)->goal)
        at = &(*at)->next;
    entry = *at;
    if (entry != NULL) *at = entry->next;
    pthread_mutex_unlock(&heap->lock);
    return entry;
}

void cpu_heap_sweep(struct cpu_heap *heap)
{
    struct cpu_retired *entry;

    while ((entry = next_to_go(heap)) != NULL) {
        for (size_t i = 0; i < entry->count; i++)
            cpu_heap_free(heap, entry->pointers[i]);
        plug_free(entry);
    }
}

bool cpu_heap_find(struct cpu_heap *heap, const void *pointer, struct cpu_allocation *out)
{
    struct cpu_block *block;

    pthread_mutex_lock(&heap->lock);
    block = find(heap, pointer);
    if (block != NULL)
        *out =
            (struct cpu_allocation){heap->segment.base + block->offset, block->asked, block->kind};
    pthread_mutex_unlock(&heap->lock);
    return block != NULL;
}

weft_status cpu_heap_create(struct cpu_heap *heap)
{
    uint64_t memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);

    PLUG_TRY(cpu_segment_create(&heap->segment));
    pthread_mutex_init(&heap->lock, NULL);
    heap->keep = memory / 16;
    return WEFT_OK;
}

void cpu_heap_close(struct cpu_heap *heap)
{
    while (heap->retired != NULL) {
        struct cpu_retired *entry = heap->retired;

        heap->retired = entry->next;
        plug_free(entry);
    }
    while (heap->first != NULL) {
        struct cpu_block *block = heap->first;

        if (!block->free) tdelete(block, &heap->used_tree, by_address);
        unlink_block(heap, block);
    }
    pthread_mutex_destroy(&heap->lock);
    cpu_segment_close(&heap->segment);
}
