/* cpu_device.c - the host's memory as a device. */
#include "cpu_comm.h"
#include "kernel/cpu_level.h"
#include "network/carriers.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

weft_status cpu_probe(weft_probe *out)
{
    weft_probe probe = {.score = 100, .device_count = 1};

    (void)net_describe(probe.library, sizeof probe.library);
    plug_give_struct(out, &probe, sizeof probe);
    return WEFT_OK;
}

weft_status cpu_device_open(const weft_device_options *given, void **out)
{
    struct cpu_device *device;
    weft_device_options options;
    weft_status status;

    plug_take_struct(&options, given, sizeof options);
    if (options.device > 0 || options.device < -1)
        return plug_fail(WEFT_ERR_INVALID, "device is %d; the host has one device, number 0",
                         (int)options.device);
    PLUG_TRY(cpu_level_check());
    PLUG_TRY(net_choice_check());
    device = plug_alloc(sizeof *device);
    if (device == NULL) return plug_fail_memory(sizeof *device);
    status = cpu_heap_create(&device->heap);
    if (status != WEFT_OK) {
        plug_free(device);
        return status;
    }
    device->local_rank = options.local_rank;
    *out = device;
    return WEFT_OK;
}

void cpu_device_close(void *handle)
{
    struct cpu_device *device = handle;

    if (device == NULL || device->is_held) return;
    cpu_heap_close(&device->heap);
    plug_free(device);
}

/* The boot is the same for all processes of a host, and differs between hosts. */
static void read_boot_id(char *out, size_t bytes)
{
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");

    if (file == NULL || fgets(out, (int)bytes, file) == NULL) gethostname(out, bytes);
    if (file != NULL) fclose(file);
    out[bytes - 1] = '\0';
    out[strcspn(out, "\n")] = '\0';
}

weft_status cpu_device_describe(void *handle, weft_device_info *out)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    weft_device_info info = {.device = 0,
                             .features = WEFT_FEATURE_HOST_MEMORY | WEFT_FEATURE_INLINE |
                                         WEFT_FEATURE_TAGS | WEFT_FEATURE_THREADS,
                             .memory_total = (uint64_t)sysconf(_SC_PHYS_PAGES) * page,
                             .memory_free = (uint64_t)sysconf(_SC_AVPHYS_PAGES) * page,
                             .alignment = HEAP_ALIGNMENT};
    struct utsname system;

    (void)handle;
    if (uname(&system) != 0) memcpy(system.machine, "cpu", 4);
    snprintf(info.name, sizeof info.name, "%s, %d cores", system.machine, cpu_processors());
    read_boot_id(info.uuid, sizeof info.uuid);
    plug_give_struct(out, &info, sizeof info);
    return WEFT_OK;
}

weft_status cpu_device_allocate(void *handle, uint64_t bytes, uint32_t kind, void **pointer)
{
    struct cpu_device *device = handle;

    if (kind != WEFT_MEMORY_DEVICE && kind != WEFT_MEMORY_PINNED)
        return plug_fail(
            WEFT_ERR_UNSUPPORTED,
            "allocate: kind is %u; expected WEFT_MEMORY_DEVICE (0) or WEFT_MEMORY_PINNED (1)",
            kind);
    return cpu_heap_allocate(&device->heap, bytes, kind, pointer);
}

weft_status cpu_device_free(void *handle, void *pointer)
{
    struct cpu_device *device = handle;

    if (pointer == NULL || cpu_heap_free(&device->heap, pointer)) return WEFT_OK;
    return plug_fail(WEFT_ERR_INVALID, "free: %p is not from this plugin's allocate", pointer);
}

/* Memory of the heap, which peers read, is ready at once. */
weft_status cpu_device_allocate_on(void *handle, uint64_t bytes, void *stream, void **pointer)
{
    (void)stream;
    return cpu_device_allocate(handle, bytes, WEFT_MEMORY_DEVICE, pointer);
}

struct release {
    struct cpu_heap *heap;
    void *pointer;
};

static void run_release(void *argument, struct cpu_error *error)
{
    const struct release *release = argument;

    if (cpu_heap_free(release->heap, release->pointer)) return;
    error->status = WEFT_ERR_INVALID;
    snprintf(error->text, sizeof error->text, "free_on: %p was freed before", release->pointer);
}

weft_status cpu_device_free_on(void *handle, void *pointer, void *stream)
{
    struct cpu_device *device = handle;
    struct release release = {&device->heap, pointer};
    struct cpu_allocation found;

    if (pointer == NULL) return WEFT_OK;
    if (!cpu_heap_find(&device->heap, pointer, &found) || found.base != pointer)
        return plug_fail(WEFT_ERR_INVALID, "free_on: %p is not from this plugin's allocate_on",
                         pointer);
    return cpu_stream_run(stream, run_release, &release, sizeof release);
}

weft_status cpu_device_query_pointer(void *handle, const void *pointer, weft_pointer_info *out)
{
    struct cpu_device *device = handle;
    struct cpu_allocation found = {.kind = WEFT_MEMORY_HOST};
    weft_pointer_info info = {.device = -1};

    if (cpu_heap_find(&device->heap, pointer, &found))
        info.device = 0;
    else if (cpu_heap_holds(&device->heap, pointer, 1))
        return plug_fail(WEFT_ERR_INVALID,
                         "%p is in no allocation: the memory was freed, or was never allocated",
                         pointer);
    info.kind = found.kind;
    info.base = found.base;
    info.bytes = found.bytes;
    plug_give_struct(out, &info, sizeof info);
    return WEFT_OK;
}

struct movement {
    void *target;
    const void *source;
    uint64_t bytes;
    uint8_t byte;
};

static void run_copy(void *argument, struct cpu_error *error)
{
    struct movement *move = argument;

    (void)error;
    if (move->bytes > 0) memmove(move->target, move->source, move->bytes);
}

static void run_fill(void *argument, struct cpu_error *error)
{
    struct movement *move = argument;

    (void)error;
    if (move->bytes > 0) memset(move->target, move->byte, move->bytes);
}

weft_status cpu_device_copy(void *device, void *target, const void *source, uint64_t bytes,
                            void *stream)
{
    struct movement move = {.target = target, .source = source, .bytes = bytes};

    (void)device;
    if (bytes > 0 && (target == NULL || source == NULL))
        return plug_fail(WEFT_ERR_INVALID, "copy: %s is NULL",
                         target == NULL ? "target" : "source");
    return cpu_stream_run(stream, run_copy, &move, sizeof move);
}

weft_status cpu_device_fill(void *device, void *target, uint8_t byte, uint64_t bytes, void *stream)
{
    struct movement move = {.target = target, .bytes = bytes, .byte = byte};

    (void)device;
    if (bytes > 0 && target == NULL) return plug_fail(WEFT_ERR_INVALID, "fill: target is NULL");
    return cpu_stream_run(stream, run_fill, &move, sizeof move);
}
