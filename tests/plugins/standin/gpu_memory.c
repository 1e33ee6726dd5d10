/* gpu_memory.c - memory of the simulated device: the heap, with a list of allocations. */
#include "gpu.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>

struct block {
    struct sg_block facts;
    struct block *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct block *blocks;
static size_t used[SG_MAX_DEVICES];

static size_t capacity(void)
{
    return (size_t)sg_setting("STANDIN_MEMORY", 1L << 34);
}

int sg_alloc(size_t bytes, enum sg_kind kind, void **out)
{
    int device = sg_current();
    struct block *block;
    void *memory = NULL;

    if (sg_is_calling()) return SG_NOT_PERMITTED;
    if (sg_broken() != SG_OK) return sg_broken();
    if (bytes == 0) return SG_INVALID_VALUE;
    block = malloc(sizeof *block);
    if (block == NULL) return SG_OUT_OF_MEMORY;
    pthread_mutex_lock(&lock);
    if (kind == SG_DEVICE && (bytes > capacity() || used[device] > capacity() - bytes)) goto refuse;
    if (posix_memalign(&memory, 512, bytes) != 0) goto refuse;
    *block = (struct block){{memory, bytes, kind, device}, blocks};
    blocks = block;
    if (kind == SG_DEVICE) used[device] += bytes;
    pthread_mutex_unlock(&lock);
    *out = memory;
    return SG_OK;

refuse:
    pthread_mutex_unlock(&lock);
    free(block);
    return SG_OUT_OF_MEMORY;
}

int sg_adopt(void *memory, size_t bytes)
{
    struct block *block = malloc(sizeof *block);

    if (block == NULL) return SG_OUT_OF_MEMORY;
    pthread_mutex_lock(&lock);
    *block = (struct block){{memory, bytes, SG_DEVICE, sg_current()}, blocks};
    blocks = block;
    pthread_mutex_unlock(&lock);
    return SG_OK;
}

int sg_free(void *pointer, enum sg_kind kind)
{
    struct block *found = NULL;

    if (pointer == NULL) return SG_OK;
    pthread_mutex_lock(&lock);
    for (struct block **at = &blocks; *at != NULL; at = &(*at)->next)
        if ((*at)->facts.base == pointer && (*at)->facts.kind == kind) {
            found = *at;
            *at = found->next;
            if (kind == SG_DEVICE) used[found->facts.device] -= found->facts.bytes;
            break;
        }
    pthread_mutex_unlock(&lock);
    if (found == NULL) return SG_INVALID_VALUE;
    free(found->facts.base);
    free(found);
    return SG_OK;
}

void sg_disown(void *memory)
{
    struct block *found = NULL;

    pthread_mutex_lock(&lock);
    for (struct block **at = &blocks; *at != NULL; at = &(*at)->next)
        if ((*at)->facts.base == memory) {
            found = *at;
            *at = found->next;
            break;
        }
    pthread_mutex_unlock(&lock);
    free(found);
}

struct sg_block sg_find(const void *pointer)
{
    struct sg_block found = {NULL, 0, SG_UNKNOWN, -1};
    const char *wanted = pointer;

    pthread_mutex_lock(&lock);
    for (const struct block *b = blocks; b != NULL; b = b->next) {
        const char *base = b->facts.base;
        if (wanted < base || wanted >= base + b->facts.bytes) continue;
        found = b->facts;
        break;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

void sg_memory_info(size_t *available, size_t *total)
{
    size_t most = (size_t)sg_setting("STANDIN_FREE", LONG_MAX);

    pthread_mutex_lock(&lock);
    *total = capacity();
    *available = *total - used[sg_current()];
    pthread_mutex_unlock(&lock);
    if (*available > most) *available = most;
}
