/* gpu_memory.c - device and pinned memory, scratch from a pool, copies and pointer queries. */
#include "gpu.h"

#include <stdio.h>

weft_status gpu_allocate(void *opened, uint64_t bytes, uint32_t kind, void **pointer)
{
    struct gpu_device *device = opened;
    struct gpu_scope scope;
    vendor_address address = 0;
    void *pinned = NULL;
    vendor_result result;
    char what[96];

    if (kind != WEFT_MEMORY_DEVICE && kind != WEFT_MEMORY_PINNED)
        return plug_fail(
            WEFT_ERR_UNSUPPORTED,
            "allocate: kind is %u; expected WEFT_MEMORY_DEVICE (0) or WEFT_MEMORY_PINNED (1)",
            kind);
    PLUG_TRY(gpu_enter(device, &scope));
    if (kind == WEFT_MEMORY_DEVICE) {
        result = gpu_api.memory_alloc(&address, bytes > 0 ? bytes : 1);
        pinned = (void *)(uintptr_t)address;
    } else {
        result = gpu_api.pinned_alloc(&pinned, bytes > 0 ? bytes : 1, GPU_PINNED_PORTABLE);
    }
    gpu_leave(&scope);
    snprintf(what, sizeof what, "allocating %llu bytes of %s memory", (unsigned long long)bytes,
             kind == WEFT_MEMORY_DEVICE ? "device" : "pinned host");
    PLUG_TRY(gpu_check(result, what));
    *pointer = pinned;
    return WEFT_OK;
}

/* Cache of pointers that kernels may use.  A query of the driver takes longer than the rest of a
 * call, and most calls reuse buffers. */
enum { KNOWN = 64 };
static _Atomic(uintptr_t) known[KNOWN];

static _Atomic(uintptr_t) *place_of(const void *pointer)
{
    uint64_t hash = (uint64_t)(uintptr_t)pointer * UINT64_C(0x9e3779b97f4a7c15);

    return &known[hash >> 58];
}

static void forget_all(void)
{
    for (size_t i = 0; i < KNOWN; i++)
        atomic_store_explicit(&known[i], 0, memory_order_relaxed);
}

/* Free POINTER when the work that is on STREAM now has run.  Within a scope. */
static weft_status give_back(const struct gpu_device *device, void *pointer, vendor_stream stream)
{
    if (device->pool != NULL)
        return gpu_check(gpu_api.pool_free(GPU_ADDRESS(pointer), stream),
                         "freeing memory on a stream");
    /* waits for work that uses the memory */
    return gpu_check(gpu_api.memory_free(GPU_ADDRESS(pointer)), "freeing memory");
}

weft_status gpu_free(void *opened, void *pointer)
{
    struct gpu_device *device = opened;
    struct gpu_scope scope;
    uint32_t kind = WEFT_MEMORY_HOST;
    int32_t ordinal = -1;
    vendor_result result;

    if (pointer == NULL || device->is_lost) return WEFT_OK;
    forget_all();
    PLUG_TRY(gpu_enter(device, &scope));
    result = gpu_vendor_pointer_kind(pointer, &kind, &ordinal);
    if (result == GPU_SUCCESS && kind == WEFT_MEMORY_DEVICE)
        result = gpu_api.memory_free(GPU_ADDRESS(pointer));
    else if (result == GPU_SUCCESS && kind == WEFT_MEMORY_PINNED)
        result = gpu_api.pinned_free(pointer);
    gpu_leave(&scope);
    if (result == GPU_SUCCESS && kind == WEFT_MEMORY_HOST)
        return plug_fail(WEFT_ERR_INVALID, "%p is not from this plugin's allocate", pointer);
    return gpu_check(result, "freeing memory");
}

/* Memory of the pool that a graph captures would belong to the graph. */
static weft_status check_capture(const char *what, vendor_stream stream)
{
    if (!gpu_is_capturing(stream)) return WEFT_OK;
    return plug_fail(WEFT_ERR_UNSUPPORTED, "%s: the stream is being captured into a graph", what);
}

weft_status gpu_allocate_on(void *opened, uint64_t bytes, void *stream, void **pointer)
{
    struct gpu_device *device = opened;
    struct gpu_scope scope;
    weft_status status;

    PLUG_TRY(gpu_enter(device, &scope));
    status = check_capture("allocate_on", gpu_native(stream));
    if (status == WEFT_OK)
        status = gpu_borrow(device, bytes > 0 ? bytes : 1, gpu_native(stream), pointer);
    gpu_leave(&scope);
    return status;
}

weft_status gpu_free_on(void *opened, void *pointer, void *stream)
{
    struct gpu_device *device = opened;
    struct gpu_scope scope;
    weft_status status;

    if (pointer == NULL || device->is_lost) return WEFT_OK;
    forget_all();
    PLUG_TRY(gpu_enter(device, &scope));
    status = check_capture("free_on", gpu_native(stream));
    if (status == WEFT_OK) status = give_back(device, pointer, gpu_native(stream));
    gpu_leave(&scope);
    return status;
}

weft_status gpu_query_pointer(void *opened, const void *pointer, weft_pointer_info *out)
{
    const struct gpu_device *device = opened;
    weft_pointer_info info = {.struct_size = sizeof info, .kind = WEFT_MEMORY_HOST, .device = -1};
    vendor_address base = 0;
    struct gpu_scope scope;
    size_t bytes = 0;
    vendor_result result;

    PLUG_TRY(gpu_enter(device, &scope));
    result = gpu_vendor_pointer_kind(pointer, &info.kind, &info.device);
    if (result == GPU_SUCCESS && info.kind != WEFT_MEMORY_HOST &&
        gpu_api.address_range(&base, &bytes, GPU_ADDRESS(pointer)) == GPU_SUCCESS) {
        info.base = (void *)(uintptr_t)base;
        info.bytes = bytes;
    }
    gpu_leave(&scope);
    PLUG_TRY(gpu_check(result, "querying a pointer"));
    if (info.kind != WEFT_MEMORY_DEVICE) info.device = -1;
    plug_give_struct(out, &info, sizeof info);
    return WEFT_OK;
}

bool gpu_is_known(const void *pointer)
{
    return pointer != NULL &&
           atomic_load_explicit(place_of(pointer), memory_order_relaxed) == (uintptr_t)pointer;
}

weft_status gpu_usable(const void *pointer, const char *what)
{
    uint32_t kind = WEFT_MEMORY_HOST;
    int32_t ordinal;

    if (pointer == NULL) return plug_fail(WEFT_ERR_INVALID, "%s is NULL", what);
    if (gpu_is_known(pointer)) return WEFT_OK;
    PLUG_TRY(gpu_check(gpu_vendor_pointer_kind(pointer, &kind, &ordinal), "querying a pointer"));
    if (kind == WEFT_MEMORY_HOST)
        return plug_fail(WEFT_ERR_INVALID,
                         "%s is %p, plain host memory, which the device cannot use: use device or "
                         "pinned memory from " VENDOR_GPU "",
                         what, pointer);
    atomic_store_explicit(place_of(pointer), (uintptr_t)pointer, memory_order_relaxed);
    return WEFT_OK;
}

weft_status gpu_copy(void *opened, void *target, const void *source, uint64_t bytes, void *stream)
{
    const struct gpu_device *device = opened;
    struct gpu_scope scope;
    vendor_result result;

    if (bytes == 0) return WEFT_OK;
    if (target == NULL || source == NULL)
        return plug_fail(WEFT_ERR_INVALID, "copy: source or target is NULL, but bytes is %llu",
                         (unsigned long long)bytes);
    PLUG_TRY(gpu_enter(device, &scope));
    result = gpu_vendor_copy(target, source, bytes, gpu_native(stream));
    gpu_leave(&scope);
    return gpu_check(result, "copying memory");
}

weft_status gpu_fill_bytes(void *opened, void *target, uint8_t byte, uint64_t bytes, void *stream)
{
    const struct gpu_device *device = opened;
    struct gpu_scope scope;
    vendor_result result;

    if (bytes == 0) return WEFT_OK;
    if (target == NULL)
        return plug_fail(WEFT_ERR_INVALID, "fill: target is NULL, but bytes is %llu",
                         (unsigned long long)bytes);
    PLUG_TRY(gpu_enter(device, &scope));
    result = gpu_api.fill_bytes(GPU_ADDRESS(target), byte, bytes, gpu_native(stream));
    gpu_leave(&scope);
    return gpu_check(result, "filling memory");
}

weft_status gpu_borrow(struct gpu_device *device, uint64_t bytes, vendor_stream stream,
                       void **pointer)
{
    vendor_address address = 0;
    vendor_result result;
    char what[64];

    if (device->pool != NULL)
        result = gpu_api.pool_alloc(&address, bytes, device->pool, stream);
    else
        result = gpu_api.memory_alloc(&address, bytes);
    snprintf(what, sizeof what, "allocating %llu bytes of device memory on a stream",
             (unsigned long long)bytes);
    PLUG_TRY(gpu_check(result, what));
    *pointer = (void *)(uintptr_t)address;
    return WEFT_OK;
}

void gpu_give_back(struct gpu_device *device, void *pointer, vendor_stream stream)
{
    if (pointer != NULL && give_back(device, pointer, stream) != WEFT_OK)
        plug_log(1, "scratch memory could not be freed: %s", plug_last_text());
}

weft_status gpu_upload(struct gpu_device *device, void *target, const void *source, uint64_t bytes)
{
    vendor_result result;

    pthread_mutex_lock(&device->setup_lock);
    result = gpu_vendor_copy(target, source, bytes, device->setup);
    if (result == GPU_SUCCESS) result = gpu_api.stream_sync(device->setup);
    pthread_mutex_unlock(&device->setup_lock);
    return gpu_check(result, "copying to the device");
}
