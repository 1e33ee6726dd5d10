/* gpu_device.c - choosing, opening and describing a device with its kernels. */
#include "kernel/gpu_kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool sharing_is_allowed(void)
{
    const char *value = plug_knob("WEFT_SHARE_GPU");

    return value != NULL && (strcmp(value, "1") == 0 || strcmp(value, "yes") == 0 ||
                             strcmp(value, "on") == 0 || strcmp(value, "true") == 0);
}

static weft_status choose(const weft_device_options *options, int count, bool sharing,
                          int32_t *ordinal)
{
    if (options->device >= 0) {
        if (options->device >= count)
            return plug_fail(WEFT_ERR_NO_DEVICE, "%s device %d does not exist: %d are visible",
                             VENDOR_MAKER, options->device, count);
        *ordinal = options->device;
        return WEFT_OK;
    }
    if (options->local_rank < 0)
        return plug_fail(WEFT_ERR_INVALID, "local_rank is %d; it must be at least 0",
                         options->local_rank);
    if (options->local_rank >= count && !sharing)
        return plug_fail(WEFT_ERR_NO_DEVICE,
                         "local rank %d has no %s device of its own: %d are visible; "
                         "WEFT_SHARE_GPU=1 lets ranks share devices, for tests",
                         options->local_rank, VENDOR_MAKER, count);
    *ordinal = options->local_rank % count;
    return WEFT_OK;
}

/* NCCL assumes that ranks with one host id share a host, and refuses two ranks on one device.  It
 * reads the variables once, before its first communicator.  Ranks with different host ids
 * communicate through sockets.  A separate thread for the sockets doubles their speed. */
static void pretend_another_host(void)
{
    char host[64] = "", id[128];

    setenv("NCCL_SOCKET_NTHREADS", "1", 0);
    gethostname(host, sizeof host - 1);
    snprintf(id, sizeof id, "weft-%s-%d", host, (int)getpid());
    setenv("NCCL_HOSTID", id, 0);
}

static weft_status learn(struct gpu_device *device)
{
    char pci[32] = "";

    PLUG_TRY(gpu_check(gpu_api.device_get(&device->handle, device->ordinal), "finding the device"));
    PLUG_TRY(gpu_check(gpu_api.device_name(device->name, (int)sizeof device->name, device->handle),
                       "reading the device's name"));
    PLUG_TRY(gpu_vendor_open(device));
    if (gpu_api.device_pci(pci, (int)sizeof pci, device->handle) == GPU_SUCCESS) {
        size_t used = strlen(device->uuid);
        snprintf(device->uuid + used, sizeof device->uuid - used, "%s%s", used > 0 ? " " : "", pci);
    }
    return WEFT_OK;
}

/* NCCL may read memory of other devices of this process directly.  A device that cannot reach this
 * one is not asked to. */
static void open_pool_to_peers(const struct gpu_device *device)
{
    for (int32_t i = 0; gpu_api.pool_access != NULL && i < device->count; i++) {
        const vendor_pool_access access = {
            .location_type = GPU_POOL_ON_DEVICE, .location_id = i, .flags = GPU_POOL_READ_WRITE};

        if (i != device->ordinal && gpu_api.pool_access(device->pool, &access, 1) != GPU_SUCCESS)
            plug_log(4, "device %d cannot reach memory in stream order of device %d", (int)i,
                     (int)device->ordinal);
    }
}

static void make_pool(struct gpu_device *device)
{
    struct vendor_pool_options options = {.allocation_type = GPU_POOL_PINNED,
                                          .location_type = GPU_POOL_ON_DEVICE,
                                          .location_id = device->ordinal};
    uint64_t keep_all = UINT64_MAX;

    if (gpu_api.pool_create == NULL || gpu_api.pool_set == NULL || gpu_api.pool_alloc == NULL ||
        gpu_api.pool_free == NULL || gpu_api.pool_destroy == NULL)
        return;
    if (gpu_api.pool_create(&device->pool, &options) != GPU_SUCCESS)
        device->pool = NULL;
    else if (gpu_api.pool_set(device->pool, GPU_POOL_RELEASE_THRESHOLD, &keep_all) != GPU_SUCCESS)
        plug_log(4, "%s does not cache idle scratch memory", VENDOR_GPU);
    if (device->pool != NULL) open_pool_to_peers(device);
}

static weft_status furnish(struct gpu_device *device)
{
    struct gpu_scope scope;
    weft_status status;

    PLUG_TRY(gpu_enter(device, &scope));
    status = gpu_check(gpu_api.stream_create(&device->setup, GPU_STREAM_NON_BLOCKING),
                       "creating a stream");
    if (status == WEFT_OK) {
        make_pool(device);
        status = gpu_kernels_open(device);
    }
    gpu_leave(&scope);
    return status;
}

weft_status gpu_open(const weft_device_options *given, void **out)
{
    weft_device_options options;
    struct gpu_device *device;
    bool sharing = sharing_is_allowed();
    int32_t ordinal = 0;
    weft_status status;
    int count = 0;

    plug_take_struct(&options, given, sizeof options);
    PLUG_TRY(gpu_load(&count));
    PLUG_TRY(choose(&options, count, sharing, &ordinal));
    device = plug_new(sizeof *device);
    if (device == NULL) return WEFT_ERR_NO_MEMORY;
    device->ordinal = ordinal;
    device->count = count;
    device->is_shared = sharing;
    pthread_mutex_init(&device->setup_lock, NULL);
    if (sharing) pretend_another_host();
    status = learn(device);
    if (status != WEFT_OK) goto free_device;
    status = furnish(device);
    if (status != WEFT_OK) goto close_device;
    *out = device;
    return WEFT_OK;

close_device:
    gpu_close(device);
    return status;
free_device:
    pthread_mutex_destroy(&device->setup_lock);
    plug_free(device);
    return status;
}

void gpu_close(void *opened)
{
    struct gpu_device *device = opened;
    struct gpu_scope scope;

    if (device == NULL) return;
    if (gpu_enter(device, &scope) == WEFT_OK) {
        gpu_kernels_close(device);
        if (device->pool != NULL) gpu_api.pool_destroy(device->pool);
        if (device->setup != NULL) gpu_api.stream_destroy(device->setup);
        gpu_leave(&scope);
    }
    gpu_vendor_close(device);
    pthread_mutex_destroy(&device->setup_lock);
    plug_free(device);
}

weft_status gpu_describe(void *opened, weft_device_info *out)
{
    const struct gpu_device *device = opened;
    weft_device_info info = {.struct_size = sizeof info, .device = device->ordinal};
    size_t available = 0, total = 0;
    struct gpu_scope scope;
    weft_status status;

    PLUG_TRY(gpu_enter(device, &scope));
    status = gpu_check(gpu_api.memory_info(&available, &total), "reading the device's memory size");
    gpu_leave(&scope);
    if (status != WEFT_OK) return status;
    info.features = WEFT_FEATURE_CAPTURE;
    if (device->count > 1 && !device->is_shared) info.features |= WEFT_FEATURE_THREADS;
    info.memory_total = total;
    info.memory_free = available;
    info.alignment = 256;
    memcpy(info.name, device->name, sizeof info.name);
    memcpy(info.uuid, device->uuid, sizeof info.uuid);
    plug_give_struct(out, &info, sizeof info);
    return WEFT_OK;
}
