/* gpu_device.c - choosing, opening and describing a device. */
#include "gpu_kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

weft_status wf_enter(const struct wf_gpu_device *device, struct wf_scope *scope)
{
    return wf_gpu_check(wf_vendor_enter(device, scope), "switching to the device");
}

void wf_leave(const struct wf_scope *scope)
{
    wf_vendor_leave(scope);
}

weft_status wf_gpu_bind_thread(void *device)
{
    return wf_gpu_check(wf_vendor_bind(device), "switching to the device");
}

static bool sharing_is_allowed(void)
{
    const char *value = wf_host->knob("WEFT_SHARE_GPU");

    return value != NULL && (strcmp(value, "1") == 0 || strcmp(value, "yes") == 0 ||
                             strcmp(value, "on") == 0 || strcmp(value, "true") == 0);
}

static weft_status choose(const weft_device_options *options, int count, bool sharing,
                          int32_t *ordinal)
{
    if (options->device >= 0) {
        if (options->device >= count)
            return wf_fail(WEFT_ERR_NO_DEVICE, "there is no %s device %d: %d are visible",
                           VENDOR_MAKER, options->device, count);
        *ordinal = options->device;
        return WEFT_OK;
    }
    if (options->local_rank < 0)
        return wf_fail(WEFT_ERR_INVALID, "a local rank cannot be %d", options->local_rank);
    if (options->local_rank >= count && !sharing)
        return wf_fail(WEFT_ERR_NO_DEVICE,
                       "local rank %d has no %s device of its own: %d are visible; "
                       "WEFT_SHARE_GPU=1 lets ranks share them, for tests",
                       options->local_rank, VENDOR_MAKER, count);
    *ordinal = options->local_rank % count;
    return WEFT_OK;
}

/* The library takes ranks with one host id for ranks of one host, and refuses two of them on one
 * device.  It reads the variables once, before its first communicator.  Between such hosts all goes
 * through sockets, which a thread of their own serves twice as fast as the one that does
 * everything. */
static void pretend_another_host(void)
{
    char host[64] = "", id[128];

    setenv("NCCL_SOCKET_NTHREADS", "1", 0);
    gethostname(host, sizeof host - 1);
    snprintf(id, sizeof id, "weft-%s-%d", host, (int)getpid());
    setenv("NCCL_HOSTID", id, 0);
}

static weft_status learn(struct wf_gpu_device *device)
{
    char pci[32] = "";

    WF_TRY(wf_gpu_check(wf_gpu.device_get(&device->handle, device->ordinal), "finding the device"));
    WF_TRY(wf_gpu_check(wf_gpu.device_name(device->name, (int)sizeof device->name, device->handle),
                        "asking for the device's name"));
    WF_TRY(wf_vendor_open(device));
    if (wf_gpu.device_pci(pci, (int)sizeof pci, device->handle) == GPU_SUCCESS) {
        size_t used = strlen(device->uuid);
        snprintf(device->uuid + used, sizeof device->uuid - used, "%s%s", used > 0 ? " " : "", pci);
    }
    return WEFT_OK;
}

static void make_pool(struct wf_gpu_device *device)
{
    struct gpu_pool_options options = {.allocation_type = GPU_POOL_PINNED,
                                       .location_type = GPU_POOL_ON_DEVICE,
                                       .location_id = device->ordinal};
    uint64_t keep_all = UINT64_MAX;

    if (wf_gpu.pool_create == NULL || wf_gpu.pool_set == NULL || wf_gpu.pool_alloc == NULL ||
        wf_gpu.pool_free == NULL || wf_gpu.pool_destroy == NULL)
        return;
    if (wf_gpu.pool_create(&device->pool, &options) != GPU_SUCCESS)
        device->pool = NULL;
    else if (wf_gpu.pool_set(device->pool, GPU_POOL_RELEASE_THRESHOLD, &keep_all) != GPU_SUCCESS)
        wf_log(4, "%s keeps no idle scratch memory", VENDOR_GPU);
}

static weft_status furnish(struct wf_gpu_device *device)
{
    struct wf_scope scope;
    weft_status status;

    WF_TRY(wf_enter(device, &scope));
    status = wf_gpu_check(wf_gpu.stream_create(&device->setup, GPU_STREAM_NON_BLOCKING),
                          "creating a stream");
    if (status == WEFT_OK) {
        make_pool(device);
        status = wf_kernels_open(device);
    }
    wf_leave(&scope);
    return status;
}

weft_status wf_gpu_open(const weft_device_options *given, void **out)
{
    weft_device_options options;
    struct wf_gpu_device *device;
    bool sharing = sharing_is_allowed();
    int32_t ordinal = 0;
    weft_status status;
    int count = 0;

    wf_read(&options, given, sizeof options);
    WF_TRY(wf_gpu_load(&count));
    WF_TRY(choose(&options, count, sharing, &ordinal));
    device = wf_new(sizeof *device);
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
    wf_gpu_close(device);
    return status;
free_device:
    pthread_mutex_destroy(&device->setup_lock);
    wf_delete(device);
    return status;
}

void wf_gpu_close(void *opened)
{
    struct wf_gpu_device *device = opened;
    struct wf_scope scope;

    if (device == NULL) return;
    if (wf_enter(device, &scope) == WEFT_OK) {
        wf_kernels_close(device);
        if (device->pool != NULL) wf_gpu.pool_destroy(device->pool);
        if (device->setup != NULL) wf_gpu.stream_destroy(device->setup);
        wf_leave(&scope);
    }
    wf_vendor_close(device);
    pthread_mutex_destroy(&device->setup_lock);
    wf_delete(device);
}

weft_status wf_gpu_describe(void *opened, weft_device_info *out)
{
    const struct wf_gpu_device *device = opened;
    weft_device_info info = {.struct_size = sizeof info, .device = device->ordinal};
    size_t available = 0, total = 0;
    struct wf_scope scope;
    weft_status status;

    WF_TRY(wf_enter(device, &scope));
    status = wf_gpu_check(wf_gpu.memory_info(&available, &total), "asking for the device's memory");
    wf_leave(&scope);
    if (status != WEFT_OK) return status;
    info.features = WEFT_FEATURE_CAPTURE;
    if (device->count > 1 && !device->is_shared) info.features |= WEFT_FEATURE_THREADS;
    info.memory_total = total;
    info.memory_free = available;
    info.alignment = 256;
    memcpy(info.name, device->name, sizeof info.name);
    memcpy(info.uuid, device->uuid, sizeof info.uuid);
    wf_answer(out, &info, sizeof info);
    return WEFT_OK;
}
