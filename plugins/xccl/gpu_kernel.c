/* gpu_kernel.c - finding and launching kernels, and the kernel table's calls over plain arrays. */
#include "gpu.h"
#include "kernel_args.h"

#include <stdio.h>
#include <string.h>

enum { VARIANTS = 17 }; /* dtypes; word sizes are fewer */

struct wf_kernels {
    gpu_module module;
    _Atomic(gpu_function) functions[WF_KERNEL_FAMILIES][VARIANTS];
};

static const char *const dtype_names[] = {
#define NAME(name, value, text, bytes) [value] = text,
    WEFT_DTYPE_LIST(NAME)
#undef NAME
};
static const uint8_t dtype_sizes[] = {
#define SIZE(name, value, text, bytes) [value] = bytes,
    WEFT_DTYPE_LIST(SIZE)
#undef SIZE
};
_Static_assert(WF_COUNT(dtype_names) == VARIANTS, "one kernel for each dtype");
_Static_assert(WEFT_REDUCE_SUM == 0 && WEFT_REDUCE_AVG == 4 && WEFT_REDUCE_PREMUL_SUM == 8,
               "plugins/kernels/reductions.h numbers the reductions as the ABI does");

size_t wf_dtype_bytes(uint32_t dtype)
{
    return dtype < VARIANTS ? dtype_sizes[dtype] : 0;
}

bool wf_reduction_defined(uint32_t reduction, uint32_t dtype)
{
    bool is_complex = dtype == WEFT_DTYPE_C64 || dtype == WEFT_DTYPE_C128;
    bool is_float = dtype >= WEFT_DTYPE_F16 && !is_complex;

    switch (reduction) {
    case WEFT_REDUCE_SUM:
    case WEFT_REDUCE_PROD:
        return true;
    case WEFT_REDUCE_MIN:
    case WEFT_REDUCE_MAX:
        return !is_complex;
    case WEFT_REDUCE_AVG:
    case WEFT_REDUCE_PREMUL_SUM:
        return dtype != WEFT_DTYPE_BOOL;
    default:
        return reduction < WEFT_REDUCE_COUNT && !is_complex && !is_float;
    }
}

/* ---- loading ---- */

/* The file at PATH, read whole; NULL if that cannot be done. */
static void *read_image(const char *path)
{
    FILE *file = fopen(path, "rb");
    char *image = NULL;
    long bytes;

    if (file == NULL) return NULL;
    if (fseek(file, 0, SEEK_END) == 0 && (bytes = ftell(file)) > 0 &&
        fseek(file, 0, SEEK_SET) == 0) {
        image = wf_new((size_t)bytes + 1);
        if (image != NULL && fread(image, 1, (size_t)bytes, file) != (size_t)bytes) {
            wf_delete(image);
            image = NULL;
        }
    }
    fclose(file);
    return image;
}

/* Those that the knob names and no others, or those built in that fit the device. */
static gpu_result load_module(gpu_module *module)
{
    const char *path = wf_host->knob(VENDOR_KERNELS_KNOB);
    void *image = path != NULL ? read_image(path) : NULL;
    gpu_result result = GPU_INVALID_VALUE;

    if (image != NULL) result = wf_gpu.module_load(module, image);
    wf_delete(image);
    if (path != NULL) return result;
    for (size_t i = 0; wf_vendor_image(i) != NULL && result != GPU_SUCCESS; i++)
        result = wf_gpu.module_load(module, wf_vendor_image(i));
    return result;
}

weft_status wf_kernels_open(struct wf_gpu_device *device)
{
    bool any = wf_vendor_image(0) != NULL || wf_host->knob(VENDOR_KERNELS_KNOB) != NULL;
    struct wf_kernels *kernels;
    gpu_result result;

    if (!any) {
        wf_log(3, "%s: built without kernels; strided copies take their place", VENDOR_PLUGIN);
        return WEFT_OK;
    }
    kernels = wf_new(sizeof *kernels);
    if (kernels == NULL) return WEFT_ERR_NO_MEMORY;
    result = load_module(&kernels->module);
    if (result != GPU_SUCCESS) {
        wf_log(1, "%s: no kernels for %s (%s); strided copies take their place", VENDOR_PLUGIN,
               device->name, wf_vendor_error_text(result));
        wf_delete(kernels);
        return WEFT_OK;
    }
    device->kernels = kernels;
    return WEFT_OK;
}

void wf_kernels_close(struct wf_gpu_device *device)
{
    if (device->kernels == NULL) return;
    wf_gpu.module_unload(device->kernels->module);
    wf_delete(device->kernels);
    device->kernels = NULL;
}

/* ---- launching ---- */

static uint32_t variant_index(enum wf_kernel family, uint32_t variant)
{
    uint32_t index = 0;

    if (family > WF_KERNEL_TABLE) return variant; /* a dtype */
    while (variant >> index > 1)
        index++;
    return index;
}

static void kernel_name(enum wf_kernel family, uint32_t variant, char *out, size_t size)
{
    static const char *const families[] = {"copy",  "transpose", "fill",           "table",
                                           "key",   "reduce",    "regions_reduce", "cast",
                                           "scale", "signal",    "await_signal"};

    if (family == WF_KERNEL_TABLE || family >= WF_KERNEL_SIGNAL)
        snprintf(out, size, "weft_%s", families[family]);
    else if (family < WF_KERNEL_TABLE)
        snprintf(out, size, "weft_%s_%u", families[family], variant);
    else
        snprintf(out, size, "weft_%s_%s", families[family], dtype_names[variant]);
}

static weft_status find(struct wf_gpu_device *device, enum wf_kernel family, uint32_t variant,
                        gpu_function *out)
{
    _Atomic(gpu_function) *slot;
    char name[64], what[128];

    if (device->kernels == NULL)
        return wf_fail(WEFT_ERR_UNSUPPORTED, "there are no kernels for %s", device->name);
    slot = &device->kernels->functions[family][variant_index(family, variant)];
    *out = atomic_load_explicit(slot, memory_order_acquire);
    if (*out != NULL) return WEFT_OK;
    kernel_name(family, variant, name, sizeof name);
    snprintf(what, sizeof what, "finding the kernel %s", name);
    WF_TRY(wf_gpu_check(wf_gpu.module_function(out, device->kernels->module, name), what));
    atomic_store_explicit(slot, *out, memory_order_release);
    return WEFT_OK;
}

weft_status wf_launch(struct wf_gpu_device *device, enum wf_kernel family, uint32_t variant,
                      uint64_t blocks, const void *args, gpu_stream stream)
{
    void *arguments[] = {(void *)(uintptr_t)args};
    gpu_function function;

    if (blocks > INT32_MAX)
        return wf_fail(WEFT_ERR_UNSUPPORTED, "a launch of %llu blocks is too large",
                       (unsigned long long)blocks);
    WF_TRY(find(device, family, variant, &function));
    return wf_gpu_check(wf_gpu.launch(function, (unsigned)blocks, 1, 1, WK_THREADS, 1, 1, 0, stream,
                                      arguments, NULL),
                        "launching a kernel");
}

weft_status wf_signals_load(struct wf_gpu_device *device)
{
    gpu_function function;

    WF_TRY(find(device, WF_KERNEL_SIGNAL, 1, &function));
    return find(device, WF_KERNEL_AWAIT_SIGNAL, 1, &function);
}

uint32_t wf_blocks(uint64_t count, uint32_t per_thread)
{
    uint64_t each = (uint64_t)per_thread * WK_THREADS;
    uint64_t blocks = count / each + (count % each != 0);

    return blocks < 1 ? 1 : blocks > 8192 ? 8192 : (uint32_t)blocks;
}

weft_status wf_buffers_fill(struct wf_gpu_device *device, struct wk_buffers *buffers,
                            const void *const *addresses, uint64_t count, gpu_stream stream)
{
    struct wk_table_args args = {0};
    void *table = NULL;
    weft_status status = WEFT_OK;

    buffers->far = NULL;
    if (count <= WK_NEAR) {
        for (uint64_t i = 0; i < count; i++)
            buffers->near[i] = (uintptr_t)addresses[i];
        return WEFT_OK;
    }
    WF_TRY(wf_gpu_borrow(device, count * sizeof(uint64_t), stream, &table));
    args.table = (uintptr_t)table;
    for (; args.first < count && status == WEFT_OK; args.first += args.count) {
        args.count = count - args.first < WK_NEAR ? count - args.first : WK_NEAR;
        for (uint64_t i = 0; i < args.count; i++)
            args.near[i] = (uintptr_t)addresses[args.first + i];
        status = wf_launch(device, WF_KERNEL_TABLE, 1, 1, &args, stream);
    }
    if (status == WEFT_OK)
        buffers->far = table;
    else
        wf_gpu_give_back(device, table, stream);
    return status;
}

void wf_buffers_release(struct wf_gpu_device *device, struct wk_buffers *buffers, gpu_stream stream)
{
    wf_gpu_give_back(device, (void *)(uintptr_t)buffers->far, stream);
    buffers->far = NULL;
}
