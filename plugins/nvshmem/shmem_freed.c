/* shmem_freed.c - memory of the arena that is free once a stream has reached a point.
 *
 * An event marks the point.  A host function on the stream would mark it too, but the work behind
 * it would wait for a thread of the host. */
#include "shmem.h"

#include <pthread.h>

struct freed {
    struct freed *next;
    void *pointer;
    void *reached; /* an event */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct freed *oldest, **newest = &oldest;
static struct freed *spares; /* with events that can be recorded again */

static struct freed *take_spare(void)
{
    struct freed *freed;

    pthread_mutex_lock(&lock);
    freed = spares;
    if (freed != NULL) spares = freed->next;
    pthread_mutex_unlock(&lock);
    return freed;
}

static weft_status make(struct gpu_device *device, struct freed **out)
{
    struct freed *freed = plug_new(sizeof *freed);
    weft_status status;

    if (freed == NULL) return WEFT_ERR_NO_MEMORY;
    status = gpu_event_create(device, &freed->reached);
    if (status == WEFT_OK)
        *out = freed;
    else
        plug_free(freed);
    return status;
}

static void keep_spare(struct freed *freed)
{
    freed->next = spares;
    spares = freed;
}

weft_status shmem_freed_add(struct gpu_device *device, void *pointer, void *stream)
{
    struct freed *freed = take_spare();
    weft_status status;

    if (freed == NULL) PLUG_TRY(make(device, &freed));
    status = gpu_event_record(device, freed->reached, stream);
    freed->pointer = pointer;
    freed->next = NULL;
    pthread_mutex_lock(&lock);
    if (status == WEFT_OK) {
        *newest = freed;
        newest = &freed->next;
    } else {
        keep_spare(freed);
    }
    pthread_mutex_unlock(&lock);
    return status;
}

void shmem_freed_return(struct gpu_device *device, bool all)
{
    struct freed **at = &oldest;

    if (device->is_lost) return;
    pthread_mutex_lock(&lock);
    while (*at != NULL) {
        struct freed *freed = *at;

        if (gpu_event_query(device, freed->reached) == WEFT_OK) {
            *at = freed->next;
            shmem_arena_give(freed->pointer);
            keep_spare(freed);
        } else if (all) {
            at = &freed->next;
        } else {
            break;
        }
    }
    if (*at == NULL) newest = at;
    pthread_mutex_unlock(&lock);
}

weft_status shmem_arena_take_zeroed(struct gpu_device *device, enum shmem_part part, uint64_t bytes,
                                    void **pointer)
{
    struct gpu_scope scope;
    vendor_result result;
    void *memory = NULL;

    shmem_freed_return(device, true);
    PLUG_TRY(shmem_arena_take(part, bytes, &memory));
    if (gpu_enter(device, &scope) != WEFT_OK) goto give_back;
    pthread_mutex_lock(&device->setup_lock);
    result = gpu_api.fill_bytes(GPU_ADDRESS(memory), 0, bytes > 0 ? bytes : 1, device->setup);
    if (result == GPU_SUCCESS) result = gpu_api.stream_sync(device->setup);
    pthread_mutex_unlock(&device->setup_lock);
    gpu_leave(&scope);
    if (gpu_check(result, "clearing symmetric memory") != WEFT_OK) goto give_back;
    *pointer = memory;
    return WEFT_OK;

give_back:
    shmem_arena_give(memory);
    return WEFT_ERR_DEVICE;
}
