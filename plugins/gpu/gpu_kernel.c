/* gpu_kernel.c - finding and launching kernels, and the kernel table's calls over plain arrays. */
#include "gpu_kernel.h"
#include "kernel_args.h"

#include <stdio.h>

_Static_assert(WEFT_REDUCE_SUM == 0 && WEFT_REDUCE_AVG == 4 && WEFT_REDUCE_BXOR == 7,
               "plugins/kernels/reductions.h numbers the reductions as the ABI does");

static const struct wf_family families[] = {
    [WF_KERNEL_COPY] = {"copy", WF_BY_WORD},
    [WF_KERNEL_TRANSPOSE] = {"transpose", WF_BY_WORD},
    [WF_KERNEL_FILL] = {"fill", WF_BY_WORD},
    [WF_KERNEL_TABLE] = {"table", WF_ALONE},
    [WF_KERNEL_KEY] = {"key", WF_BY_DTYPE},
    [WF_KERNEL_REDUCE] = {"reduce", WF_BY_DTYPE},
    [WF_KERNEL_REGIONS_REDUCE] = {"regions_reduce", WF_BY_DTYPE},
    [WF_KERNEL_CAST] = {"cast", WF_BY_DTYPE},
    [WF_KERNEL_SCALE] = {"scale", WF_BY_DTYPE},
    [WF_KERNEL_SIGNAL] = {"signal", WF_ALONE},
    [WF_KERNEL_AWAIT_SIGNAL] = {"await_signal", WF_ALONE},
};

/* ---- loading ---- */

/* The file at PATH, read whole; NULL if that cannot be done. */
static void *read_image(const char *path)
{
    FILE *file = fopen(path, "rbe");
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
static gpu_result load(struct wf_module *module)
{
    const char *path = wf_host->knob(VENDOR_KERNELS_KNOB);
    gpu_result result = GPU_INVALID_VALUE;
    void *image;

    if (path == NULL) return wf_module_load(module, wf_vendor_image);
    image = read_image(path);
    if (image != NULL) result = wf_gpu.module_load(&module->native, image);
    wf_delete(image);
    return result;
}

weft_status wf_kernels_open(struct wf_gpu_device *device)
{
    bool any = wf_vendor_image(0) != NULL || wf_host->knob(VENDOR_KERNELS_KNOB) != NULL;
    struct wf_module *kernels;
    gpu_result result;

    if (!any) {
        wf_log(3, "%s: built without kernels; strided copies take their place", VENDOR_PLUGIN);
        return WEFT_OK;
    }
    kernels = wf_module_new(families, WF_COUNT(families));
    if (kernels == NULL) return WEFT_ERR_NO_MEMORY;
    result = load(kernels);
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
    wf_module_close(device->kernels);
    device->kernels = NULL;
}

/* ---- launching ---- */

static weft_status check_kernels(const struct wf_gpu_device *device)
{
    if (device->kernels != NULL) return WEFT_OK;
    return wf_fail(WEFT_ERR_UNSUPPORTED, "there are no kernels for %s", device->name);
}

weft_status wf_launch(struct wf_gpu_device *device, enum wf_kernel family, uint32_t variant,
                      uint64_t blocks, const void *args, gpu_stream stream)
{
    WF_TRY(check_kernels(device));
    return wf_module_launch(device->kernels, family, variant, blocks, args, stream);
}

weft_status wf_signals_load(struct wf_gpu_device *device)
{
    WF_TRY(check_kernels(device));
    WF_TRY(wf_module_find(device->kernels, WF_KERNEL_SIGNAL));
    return wf_module_find(device->kernels, WF_KERNEL_AWAIT_SIGNAL);
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
