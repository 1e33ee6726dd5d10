/* shmem_arena.c - allocation from the arena of this process: users have one part, communicators and
 * windows another. */
#include "shmem.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* the heaps */

/* Size of the plugin's own part: enough for dozens of communicators, and a small share of the
 * arena. */
static uint64_t own_share(uint64_t bytes)
{
    const uint64_t most = UINT64_C(16) << 20;

    return bytes / 8 < most ? bytes / 8 : most;
}

weft_status shmem_arena_open(uint64_t bytes)
{
    uint64_t own = own_share(bytes), slots = SHMEM_TEAM_SLOTS * shmem_job.slot_bytes;
    weft_status status;

    pthread_mutex_lock(&lock);
    status = shmem_heap_open(&shmem_job.heap, bytes - own - slots);
    if (status == WEFT_OK) status = shmem_heap_open(&shmem_job.own, own);
    pthread_mutex_unlock(&lock);
    return status;
}

weft_status shmem_arena_take(enum shmem_part part, uint64_t bytes, void **pointer)
{
    weft_status status = WEFT_ERR_NO_MEMORY;
    uint64_t offset = 0, start = shmem_job.heap.bytes;

    pthread_mutex_lock(&lock);
    if (part == SHMEM_OWN) status = shmem_heap_take(&shmem_job.own, bytes, &offset);
    if (status != WEFT_OK) {
        status = shmem_heap_take(&shmem_job.heap, bytes, &offset);
        start = 0;
    }
    pthread_mutex_unlock(&lock);
    if (status == WEFT_OK) *pointer = shmem_job.arena + start + offset;
    return status;
}

uint64_t shmem_arena_left(void)
{
    uint64_t left;

    pthread_mutex_lock(&lock);
    left = shmem_heap_largest(&shmem_job.heap);
    pthread_mutex_unlock(&lock);
    return left;
}

/* The part of the arena that contains OFFSET.  *START is the start of the part. */
static struct shmem_heap *part_at(uint64_t offset, uint64_t *start)
{
    bool is_own = offset >= shmem_job.heap.bytes;

    *start = is_own ? shmem_job.heap.bytes : 0;
    return is_own ? &shmem_job.own : &shmem_job.heap;
}

static bool is_inside(const void *pointer)
{
    const char *at = pointer;

    return shmem_job.arena != NULL && at >= shmem_job.arena &&
           at < shmem_job.arena + shmem_job.bytes;
}

bool shmem_arena_give(void *pointer)
{
    uint64_t offset, start;
    struct shmem_heap *heap;
    bool given;

    if (!is_inside(pointer)) return false;
    offset = (uint64_t)((char *)pointer - shmem_job.arena);
    heap = part_at(offset, &start);
    pthread_mutex_lock(&lock);
    given = shmem_heap_give(heap, offset - start);
    pthread_mutex_unlock(&lock);
    return given;
}

bool shmem_arena_block(const void *pointer, void **base, uint64_t *bytes)
{
    const struct shmem_heap_block *block;
    const struct shmem_heap *heap;
    uint64_t offset, start;

    if (!is_inside(pointer)) return false;
    offset = (uint64_t)((const char *)pointer - shmem_job.arena);
    heap = part_at(offset, &start);
    pthread_mutex_lock(&lock);
    block = shmem_heap_find(heap, offset - start);
    if (block != NULL) {
        *base = shmem_job.arena + start + block->offset;
        *bytes = block->bytes;
    }
    pthread_mutex_unlock(&lock);
    return block != NULL;
}

bool shmem_arena_holds(const void *pointer, uint64_t bytes, uint64_t *offset)
{
    if (!is_inside(pointer)) return false;
    *offset = (uint64_t)((const char *)pointer - shmem_job.arena);
    return bytes <= shmem_job.bytes - *offset;
}
