/* poison.h - an allocator that spoils memory when it is freed and gives it to nobody: a reader
 * finds bytes 0xff, and a writer is found at the end.  For a backend whose memory the host uses;
 * ranks may be threads. */
#ifndef WEFT_TESTS_POISON_H
#define WEFT_TESTS_POISON_H

#include "comm/comm.h"
#include "plugin/plugin.h"

#include <pthread.h>

struct poisoned {
    struct poisoned *next;
    void *device;
    unsigned char *memory;
    uint64_t bytes;
};

static struct {
    pthread_mutex_t lock;
    const weft_device_table *real; /* the same for all ranks */
    struct poisoned *first;
    uint64_t blocks;
} poison = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* This takes the place of the plugin of a context. */
struct poison_plugin {
    const weft_plugin *real;
    weft_plugin plugin;
    weft_device_table device;
};

static inline weft_status poison_keep(void *device, void *pointer, uint64_t bytes)
{
    struct poisoned *block = wf_calloc(1, sizeof *block);

    if (block == NULL) return wf_fail_memory(sizeof *block);
    *block = (struct poisoned){.device = device, .memory = pointer, .bytes = bytes};
    pthread_mutex_lock(&poison.lock);
    block->next = poison.first;
    poison.first = block;
    poison.blocks++;
    pthread_mutex_unlock(&poison.lock);
    return WEFT_OK;
}

static inline weft_status poison_free_on(void *device, void *pointer, void *stream)
{
    weft_pointer_info info = {.struct_size = sizeof info};

    if (pointer == NULL) return WEFT_OK;
    WF_TRY(poison.real->query_pointer(device, pointer, &info));
    if (info.base != pointer) return wf_fail(WEFT_ERR_INVALID, "free: no memory of the plugin");
    WF_TRY(poison_keep(device, pointer, info.bytes));
    return poison.real->fill(device, pointer, 0xff, info.bytes, stream);
}

static inline weft_status poison_free(void *device, void *pointer)
{
    return poison_free_on(device, pointer, NULL);
}

/* CONTEXT's memory is spoilt from now on.  PLUGIN stays until poison_end. */
static inline void poison_begin(weft_context *context, struct poison_plugin *plugin)
{
    pthread_mutex_lock(&poison.lock);
    poison.real = context->plugin->device;
    pthread_mutex_unlock(&poison.lock);
    plugin->real = context->plugin;
    plugin->plugin = *context->plugin;
    plugin->device = *context->plugin->device;
    plugin->device.free = poison_free;
    plugin->device.free_on = poison_free_on;
    plugin->plugin.device = &plugin->device;
    context->plugin = &plugin->plugin;
}

static inline bool poison_is_intact(const struct poisoned *block)
{
    for (uint64_t i = 0; i < block->bytes; i++)
        if (block->memory[i] != 0xff) return false;
    return true;
}

/* All work of CONTEXT is complete: nobody has written to memory that was freed.  Free it. */
static inline weft_status poison_end(weft_context *context, struct poison_plugin *plugin)
{
    struct poisoned **at = &poison.first;
    weft_status status = WEFT_OK;

    pthread_mutex_lock(&poison.lock);
    while (*at != NULL) {
        struct poisoned *block = *at;

        if (block->device != context->device) {
            at = &block->next;
            continue;
        }
        if (status == WEFT_OK && !poison_is_intact(block))
            status =
                wf_fail(WEFT_ERR_INTERNAL, "%llu bytes at %p were written after they were freed",
                        (unsigned long long)block->bytes, (void *)block->memory);
        *at = block->next;
        if (plugin->real->device->free(context->device, block->memory) != WEFT_OK)
            status = WEFT_ERR_INTERNAL;
        wf_free(block);
    }
    pthread_mutex_unlock(&poison.lock);
    context->plugin = plugin->real;
    return status;
}

#endif
