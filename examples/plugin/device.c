/* device.c - the CPU as a device.  Every call does its work at once on every stream. */
#include "example.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ALIGNMENT 64

/* ---- the device ---- */

/* An allocation; its bytes follow at the next multiple of ALIGNMENT. */
struct block {
    struct block *next;
    uint64_t bytes;
    uint32_t kind;
};

struct device {
    pthread_mutex_t lock;
    struct block *blocks;
};

static weft_status probe(weft_probe *out)
{
    out->score = 10; /* below every plugin for production use */
    out->device_count = 1;
    out->library[0] = '\0';
    return WEFT_OK;
}

static weft_status open_device(const weft_device_options *options, void **out)
{
    struct device *device;

    if (options->device > 0)
        return plug_fail(WEFT_ERR_INVALID, "device is %d; the only device is 0", options->device);
    device = plug_alloc(sizeof *device);
    if (device == NULL) return plug_fail(WEFT_ERR_NO_MEMORY, "no memory for a device");
    *device = (struct device){0};
    pthread_mutex_init(&device->lock, NULL);
    *out = device;
    return WEFT_OK;
}

static void close_device(void *self)
{
    struct device *device = self;

    if (device == NULL) return;
    pthread_mutex_destroy(&device->lock);
    plug_free(device);
}

static uint64_t memory_total(void)
{
    return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
}

static weft_status describe(void *self, weft_device_info *out)
{
    weft_device_info info = {
        .struct_size = out->struct_size,
        .features = WEFT_FEATURE_HOST_MEMORY | WEFT_FEATURE_INLINE | WEFT_FEATURE_THREADS,
        .memory_total = memory_total(),
        .memory_free = (uint64_t)sysconf(_SC_AVPHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE),
        .alignment = ALIGNMENT,
        .name = "CPU",
    };
    char host[48] = "";

    (void)self;
    gethostname(host, sizeof host - 1);
    snprintf(info.uuid, sizeof info.uuid, "cpu-%s", host);
    /* The host's struct may be shorter than ours. */
    memcpy(out, &info, out->struct_size < sizeof info ? out->struct_size : sizeof info);
    return WEFT_OK;
}

/* ---- memory ---- */

static weft_status allocate(void *self, uint64_t bytes, uint32_t kind, void **out)
{
    struct device *device = self;
    struct block *block;

    if (kind != WEFT_MEMORY_DEVICE && kind != WEFT_MEMORY_PINNED)
        return plug_fail(WEFT_ERR_UNSUPPORTED, "memory of kind %u cannot be allocated", kind);
    if (bytes > memory_total() ||
        (block = aligned_alloc(ALIGNMENT,
                               ALIGNMENT + (bytes + ALIGNMENT) / ALIGNMENT * ALIGNMENT)) == NULL)
        return plug_fail(WEFT_ERR_NO_MEMORY, "cannot allocate %llu bytes of %llu",
                         (unsigned long long)bytes, (unsigned long long)memory_total());
    block->bytes = bytes;
    block->kind = kind;
    pthread_mutex_lock(&device->lock);
    block->next = device->blocks;
    device->blocks = block;
    pthread_mutex_unlock(&device->lock);
    *out = (uint8_t *)block + ALIGNMENT;
    return WEFT_OK;
}

static weft_status free_memory(void *self, void *pointer)
{
    struct device *device = self;
    struct block **link, *block = NULL;

    if (pointer == NULL) return WEFT_OK;
    pthread_mutex_lock(&device->lock);
    for (link = &device->blocks; *link != NULL; link = &(*link)->next)
        if ((uint8_t *)*link + ALIGNMENT == (uint8_t *)pointer) {
            block = *link;
            *link = block->next;
            break;
        }
    pthread_mutex_unlock(&device->lock);
    if (block == NULL)
        return plug_fail(WEFT_ERR_INVALID, "%p is not from this plugin's allocate", pointer);
    free(block);
    return WEFT_OK;
}

static weft_status query_pointer(void *self, const void *pointer, weft_pointer_info *out)
{
    struct device *device = self;
    const uint8_t *byte = pointer;

    out->kind = WEFT_MEMORY_HOST;
    out->device = -1;
    out->base = NULL;
    out->bytes = 0;
    pthread_mutex_lock(&device->lock);
    for (struct block *block = device->blocks; block != NULL; block = block->next) {
        uint8_t *start = (uint8_t *)block + ALIGNMENT;
        if (byte < start || byte >= start + (block->bytes > 0 ? block->bytes : 1)) continue;
        out->kind = block->kind;
        out->device = 0;
        out->base = start;
        out->bytes = block->bytes;
        break;
    }
    pthread_mutex_unlock(&device->lock);
    return WEFT_OK;
}

static weft_status copy(void *self, void *target, const void *source, uint64_t bytes, void *stream)
{
    (void)self;
    (void)stream;
    if (bytes == 0) return WEFT_OK;
    if (target == NULL || source == NULL)
        return plug_fail(WEFT_ERR_INVALID, "copy of %llu bytes from %p to %p",
                         (unsigned long long)bytes, source, target);
    memcpy(target, source, bytes);
    return WEFT_OK;
}

static weft_status fill(void *self, void *target, uint8_t byte, uint64_t bytes, void *stream)
{
    (void)self;
    (void)stream;
    if (bytes == 0) return WEFT_OK;
    if (target == NULL) return plug_fail(WEFT_ERR_INVALID, "fill at NULL");
    memset(target, byte, bytes);
    return WEFT_OK;
}

/* ---- streams and events ---- */

static weft_status stream_create(void *self, void **stream)
{
    (void)self;
    *stream = plug_alloc(1);
    return *stream != NULL ? WEFT_OK : plug_fail(WEFT_ERR_NO_MEMORY, "no memory for a stream");
}

static void stream_destroy(void *self, void *stream)
{
    (void)self;
    plug_free(stream);
}

static weft_status stream_query(void *self, void *stream)
{
    (void)self;
    (void)stream;
    return WEFT_OK;
}

static weft_status stream_wait(void *self, void *stream, int64_t timeout_ns)
{
    (void)timeout_ns;
    return stream_query(self, stream);
}

static weft_status stream_call(void *self, void *stream, void (*fn)(void *), void *argument)
{
    (void)self;
    (void)stream;
    if (fn == NULL) return plug_fail(WEFT_ERR_INVALID, "stream_call of NULL");
    fn(argument);
    return WEFT_OK;
}

/* An event is the time of its record. */
static weft_status event_create(void *self, void **event)
{
    int64_t *time = plug_alloc(sizeof *time);

    (void)self;
    if (time == NULL) return plug_fail(WEFT_ERR_NO_MEMORY, "no memory for an event");
    *time = 0;
    *event = time;
    return WEFT_OK;
}

static void event_destroy(void *self, void *event)
{
    (void)self;
    plug_free(event);
}

static weft_status event_record(void *self, void *event, void *stream)
{
    (void)self;
    (void)stream;
    *(int64_t *)event = example_now();
    return WEFT_OK;
}

static weft_status event_query(void *self, void *event)
{
    (void)self;
    (void)event;
    return WEFT_OK;
}

static weft_status event_wait(void *self, void *event, int64_t timeout_ns)
{
    (void)timeout_ns;
    return event_query(self, event);
}

static weft_status stream_wait_event(void *self, void *stream, void *event)
{
    (void)stream;
    return event_query(self, event);
}

static weft_status event_elapsed(void *self, void *from, void *to, int64_t *nanoseconds)
{
    (void)self;
    *nanoseconds = *(int64_t *)to - *(int64_t *)from;
    return WEFT_OK;
}

const weft_device_table example_device = {
    .struct_size = sizeof example_device,
    .signature = WEFT_DEVICE_SIGNATURE,
    .probe = probe,
    .open = open_device,
    .close = close_device,
    .describe = describe,
    .allocate = allocate,
    .free = free_memory,
    .query_pointer = query_pointer,
    .copy = copy,
    .fill = fill,
    .stream_create = stream_create,
    .stream_destroy = stream_destroy,
    .stream_query = stream_query,
    .stream_wait = stream_wait,
    .stream_call = stream_call,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .event_query = event_query,
    .event_wait = event_wait,
    .stream_wait_event = stream_wait_event,
    .event_elapsed = event_elapsed,
};
