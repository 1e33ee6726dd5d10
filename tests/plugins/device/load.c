/* load.c - opening a plugin by hand, and timing what it puts on a stream. */
#include "load.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static _Thread_local char last_error[1024];

static void log_line(int32_t level, const char *text)
{
    if (level <= 1) fprintf(stderr, "%s\n", text);
}

static void set_error(weft_status status, const char *vendor, int64_t code, const char *text)
{
    snprintf(last_error, sizeof last_error, "%d: %s%s%lld%s%s", status,
             vendor != NULL ? vendor : "", vendor != NULL ? " " : "",
             vendor != NULL ? (long long)code : 0, vendor != NULL ? ": " : " ", text);
}

static const char *knob(const char *name)
{
    const char *value = getenv(name);

    return value != NULL && value[0] != '\0' ? value : NULL;
}

static const weft_host host = {
    .struct_size = sizeof host,
    .abi_major = WEFT_ABI_MAJOR,
    .abi_minor = WEFT_ABI_MINOR,
    .log = log_line,
    .set_error = set_error,
    .allocate = malloc,
    .release = free,
    .knob = knob,
};

void must(weft_status status, const char *what)
{
    if (status == WEFT_OK) return;
    fprintf(stderr, "%s failed: %s\n", what, last_error);
    exit(1);
}

const weft_plugin *load_plugin(const char *file, int32_t local_rank, void **device)
{
    const weft_plugin *(*entry)(const weft_host *) = NULL;
    weft_device_options options = {
        .struct_size = sizeof options, .local_rank = local_rank, .device = -1};
    weft_probe probe = {.struct_size = sizeof probe};
    void *handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    const weft_plugin *plugin;

    if (handle == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    *(void **)(void *)&entry = dlsym(handle, "weft_plugin_entry");
    plugin = entry != NULL ? entry(&host) : NULL;
    if (plugin == NULL) {
        fprintf(stderr, "%s is not a plugin\n", file);
        exit(1);
    }
    must(plugin->device->probe(&probe), "probe");
    must(plugin->device->open(&options, device), "open");
    return plugin;
}

double now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

void *device_memory(const weft_plugin *plugin, void *device, uint64_t bytes)
{
    void *memory = NULL;

    must(plugin->device->allocate(device, bytes, WEFT_MEMORY_DEVICE, &memory), "allocate");
    return memory;
}

double device_us(const weft_plugin *plugin, void *device, void *stream, int rounds, int count,
                 void (*body)(void *self), void *self)
{
    const weft_device_table *table = plugin->device;
    void *from = NULL, *to = NULL;
    double best = 1e300;

    must(table->event_create(device, &from), "event_create");
    must(table->event_create(device, &to), "event_create");
    for (int round = 0; round < rounds; round++) {
        int64_t nanoseconds = 0;
        double each;
        must(table->event_record(device, from, stream), "event_record");
        for (int i = 0; i < count; i++)
            body(self);
        must(table->event_record(device, to, stream), "event_record");
        must(table->event_wait(device, to, INT64_C(60000000000)), "event_wait");
        must(table->event_elapsed(device, from, to, &nanoseconds), "event_elapsed");
        each = (double)nanoseconds / 1e3 / count;
        if (each < best) best = each;
    }
    table->event_destroy(device, from);
    table->event_destroy(device, to);
    return best;
}
