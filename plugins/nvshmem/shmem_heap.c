/* shmem_heap.c - a first-fit allocator that merges adjacent free blocks.  The list of blocks is in
 * host memory, because the managed memory is device memory. */
#include "shmem.h"

#include <string.h>

weft_status shmem_heap_open(struct shmem_heap *heap, uint64_t bytes)
{
    *heap = (struct shmem_heap){.bytes = bytes / SHMEM_HEAP_ALIGNMENT * SHMEM_HEAP_ALIGNMENT,
                                .room = 64};
    heap->blocks = plug_new(heap->room * sizeof *heap->blocks);
    if (heap->blocks == NULL) return WEFT_ERR_NO_MEMORY;
    heap->blocks[0] = (struct shmem_heap_block){0, heap->bytes, false};
    heap->count = 1;
    return WEFT_OK;
}

static weft_status make_room(struct shmem_heap *heap)
{
    size_t room = 2 * heap->room;
    struct shmem_heap_block *larger;

    if (heap->count < heap->room) return WEFT_OK;
    larger = plug_new(room * sizeof *larger);
    if (larger == NULL) return WEFT_ERR_NO_MEMORY;
    memcpy(larger, heap->blocks, heap->count * sizeof *larger);
    plug_free(heap->blocks);
    heap->blocks = larger;
    heap->room = room;
    return WEFT_OK;
}

/* Split block I after BYTES. */
static void cut(struct shmem_heap *heap, size_t i, uint64_t bytes)
{
    struct shmem_heap_block *block = &heap->blocks[i];

    if (block->bytes == bytes) return;
    memmove(block + 2, block + 1, (heap->count - i - 1) * sizeof *block);
    block[1] = (struct shmem_heap_block){block->offset + bytes, block->bytes - bytes, false};
    block->bytes = bytes;
    heap->count++;
}

uint64_t shmem_heap_largest(const struct shmem_heap *heap)
{
    uint64_t largest = 0;

    for (size_t i = 0; i < heap->count; i++)
        if (!heap->blocks[i].used && heap->blocks[i].bytes > largest)
            largest = heap->blocks[i].bytes;
    return largest;
}

weft_status shmem_heap_take(struct shmem_heap *heap, uint64_t wanted, uint64_t *offset)
{
    uint64_t bytes = wanted > 0 ? wanted : 1;

    PLUG_TRY(make_room(heap));
    if (bytes <= heap->bytes)
        bytes = (bytes + SHMEM_HEAP_ALIGNMENT - 1) / SHMEM_HEAP_ALIGNMENT * SHMEM_HEAP_ALIGNMENT;
    for (size_t i = 0; i < heap->count; i++) {
        struct shmem_heap_block *block = &heap->blocks[i];
        if (block->used || block->bytes < bytes) continue;
        cut(heap, i, bytes);
        block->used = true;
        heap->used += bytes;
        *offset = block->offset;
        return WEFT_OK;
    }
    return plug_fail(WEFT_ERR_NO_MEMORY,
                     "cannot allocate %llu bytes of symmetric memory: of %llu bytes %llu are free, "
                     "%llu of them in one piece; set %s to a larger size",
                     (unsigned long long)wanted, (unsigned long long)heap->bytes,
                     (unsigned long long)(heap->bytes - heap->used),
                     (unsigned long long)shmem_heap_largest(heap), VENDOR_HEAP_KNOB);
}

/* The index of the block that contains OFFSET. */
static size_t index_of(const struct shmem_heap *heap, uint64_t offset)
{
    size_t low = 0, high = heap->count;

    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (heap->blocks[middle].offset <= offset)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Merge block I and the next one if both are free. */
static void join_next(struct shmem_heap *heap, size_t i)
{
    struct shmem_heap_block *block = &heap->blocks[i];

    if (i + 1 >= heap->count || block[0].used || block[1].used) return;
    block->bytes += block[1].bytes;
    memmove(block + 1, block + 2, (heap->count - i - 2) * sizeof *block);
    heap->count--;
}

bool shmem_heap_give(struct shmem_heap *heap, uint64_t offset)
{
    size_t i = index_of(heap, offset);

    if (!heap->blocks[i].used || heap->blocks[i].offset != offset) return false;
    heap->blocks[i].used = false;
    heap->used -= heap->blocks[i].bytes;
    join_next(heap, i);
    if (i > 0) join_next(heap, i - 1);
    return true;
}

const struct shmem_heap_block *shmem_heap_find(const struct shmem_heap *heap, uint64_t offset)
{
    const struct shmem_heap_block *block;

    if (heap->count == 0 || offset >= heap->bytes) return NULL;
    block = &heap->blocks[index_of(heap, offset)];
    return block->used ? block : NULL;
}
