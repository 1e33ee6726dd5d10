/* gpu_kernel.c - loads and launches kernels, and runs the kernel table over plain arrays. */
#include "gpu_kernel.h"
#include "kernel_args.h"
#include "kit/trust.h"

#include <stdio.h>
#include <unistd.h>

_Static_assert(WEFT_REDUCE_SUM == 0 && WEFT_REDUCE_AVG == 4 && WEFT_REDUCE_BXOR == 7,
               "plugins/kernels/reductions.h must number the reductions as the ABI does");

static const struct gpu_family families[] = {
    [GPU_KERNEL_COPY] = {"copy", GPU_BY_WORD},
    [GPU_KERNEL_TRANSPOSE] = {"transpose", GPU_BY_WORD},
    [GPU_KERNEL_FILL] = {"fill", GPU_BY_WORD},
    [GPU_KERNEL_TABLE] = {"table", GPU_ALONE},
    [GPU_KERNEL_KEY] = {"key", GPU_BY_DTYPE},
    [GPU_KERNEL_REDUCE] = {"reduce", GPU_BY_DTYPE},
    [GPU_KERNEL_REGIONS_REDUCE] = {"regions_reduce", GPU_BY_DTYPE},
    [GPU_KERNEL_REGIONS_CAST] = {"regions_cast", GPU_BY_DTYPE},
    [GPU_KERNEL_CAST] = {"cast", GPU_BY_DTYPE},
    [GPU_KERNEL_SCALE] = {"scale", GPU_BY_DTYPE},
    [GPU_KERNEL_DRAW_UNIFORM] = {"draw_uniform", GPU_BY_DTYPE},
    [GPU_KERNEL_DRAW_NORMAL] = {"draw_normal", GPU_BY_DTYPE},
    [GPU_KERNEL_DRAW_TRUNCATED] = {"draw_truncated", GPU_BY_DTYPE},
    [GPU_KERNEL_DRAW_CHOICE] = {"draw_choice", GPU_BY_WORD},
    [GPU_KERNEL_DRAW_INTEGERS] = {"draw_integers", GPU_BY_WORD},
    [GPU_KERNEL_SPAN_POWERS_ONE] = {"span_powers_one", GPU_ALONE},
    [GPU_KERNEL_SPAN_POWERS_TWO] = {"span_powers_two", GPU_ALONE},
    [GPU_KERNEL_SPAN_POWERS_ANY] = {"span_powers_any", GPU_ALONE},
    [GPU_KERNEL_SPAN_POWERS_LARGEST] = {"span_powers_largest", GPU_ALONE},
    [GPU_KERNEL_SPAN_SUMS] = {"span_sums", GPU_ALONE},
    [GPU_KERNEL_SPAN_LIMIT] = {"span_limit", GPU_ALONE},
    [GPU_KERNEL_SPAN_CLAMP] = {"span_clamp", GPU_ALONE},
    [GPU_KERNEL_SPAN_TABLE] = {"span_table", GPU_ALONE},
    [GPU_KERNEL_MERGE] = {"merge", GPU_BY_DTYPE},
    [GPU_KERNEL_SIGNAL] = {"signal", GPU_ALONE},
    [GPU_KERNEL_AWAIT_SIGNAL] = {"await_signal", GPU_ALONE},
};

/* ---- loading ---- */

static FILE *open_image(const char *path)
{
    struct wf_trusted trusted;
    FILE *file;

    if (!gpu_library_trust(path, &trusted, NULL)) {
        plug_log(1, "%s=%s is not read: %s", VENDOR_KERNELS_KNOB, path, trusted.why);
        return NULL;
    }
    file = fdopen(trusted.fd, "rb");
    if (file == NULL) close(trusted.fd);
    return file;
}

/* Read the whole file at PATH; NULL on failure. */
static void *read_image(const char *path)
{
    FILE *file = open_image(path);
    char *image = NULL;
    long bytes;

    if (file == NULL) return NULL;
    if (fseek(file, 0, SEEK_END) == 0 && (bytes = ftell(file)) > 0 &&
        fseek(file, 0, SEEK_SET) == 0) {
        image = plug_new((size_t)bytes + 1);
        if (image != NULL && fread(image, 1, (size_t)bytes, file) != (size_t)bytes) {
            plug_free(image);
            image = NULL;
        }
    }
    fclose(file);
    return image;
}

/* Load the file that the knob names, else the built-in image that fits the device. */
static vendor_result load(struct gpu_module *module)
{
    const char *path = plug_knob(VENDOR_KERNELS_KNOB);
    vendor_result result = GPU_INVALID_VALUE;
    void *image;

    if (path == NULL) return gpu_module_load(module, gpu_vendor_image);
    image = read_image(path);
    if (image != NULL) result = gpu_api.module_load(&module->native, image);
    plug_free(image);
    return result;
}

weft_status gpu_kernels_open(struct gpu_device *device)
{
    bool any = gpu_vendor_image(0) != NULL || plug_knob(VENDOR_KERNELS_KNOB) != NULL;
    struct gpu_module *kernels;
    vendor_result result;

    if (!any) {
        plug_log(2,
                 "%s: built without kernels, so slower strided copies are used; -D%s=ON builds the "
                 "kernels, %s names a file of them",
                 VENDOR_PLUGIN, VENDOR_KERNELS_OPTION, VENDOR_KERNELS_KNOB);
        return WEFT_OK;
    }
    kernels = gpu_module_new(families, PLUG_LENGTH(families));
    if (kernels == NULL) return WEFT_ERR_NO_MEMORY;
    result = load(kernels);
    if (result != GPU_SUCCESS) {
        plug_log(1, "%s: no kernels for %s (%s); strided copies are used instead", VENDOR_PLUGIN,
                 device->name, gpu_vendor_error_text(result));
        plug_free(kernels);
        return WEFT_OK;
    }
    device->kernels = kernels;
    return WEFT_OK;
}

void gpu_list_free(const struct gpu_device *device, void *memory)
{
    struct gpu_scope scope;

    if (memory == NULL || device->is_lost || gpu_enter(device, &scope) != WEFT_OK) return;
    gpu_api.memory_free(GPU_ADDRESS(memory)); /* waits for work that uses it */
    gpu_leave(&scope);
}

void gpu_kernels_close(struct gpu_device *device)
{
    if (device->kernels == NULL) return;
    gpu_module_close(device->kernels);
    device->kernels = NULL;
}

/* ---- launching ---- */

static weft_status check_kernels(const struct gpu_device *device)
{
    if (device->kernels != NULL) return WEFT_OK;
    return plug_fail(WEFT_ERR_UNSUPPORTED, "no kernels for %s", device->name);
}

weft_status gpu_kernel_launch(struct gpu_device *device, enum gpu_kernel family, uint32_t variant,
                              uint64_t blocks, const void *args, vendor_stream stream)
{
    PLUG_TRY(check_kernels(device));
    return gpu_module_launch(device->kernels, family, variant, blocks, args, stream);
}

weft_status gpu_kernels_offer(struct gpu_device *device, enum gpu_kernel first,
                              enum gpu_kernel last, uint32_t variant)
{
    vendor_function function;

    PLUG_TRY(check_kernels(device));
    for (uint32_t family = first; family <= (uint32_t)last; family++)
        PLUG_TRY(gpu_module_function(device->kernels, family, variant, &function));
    return WEFT_OK;
}

weft_status gpu_signals_load(struct gpu_device *device)
{
    PLUG_TRY(check_kernels(device));
    PLUG_TRY(gpu_module_find(device->kernels, GPU_KERNEL_SIGNAL));
    return gpu_module_find(device->kernels, GPU_KERNEL_AWAIT_SIGNAL);
}

uint32_t gpu_blocks(uint64_t count, uint32_t per_thread)
{
    uint64_t each = (uint64_t)per_thread * WK_THREADS;
    uint64_t blocks = count / each + (count % each != 0);

    return blocks < 1 ? 1 : blocks > 8192 ? 8192 : (uint32_t)blocks;
}

weft_status gpu_buffers_fill(struct gpu_device *device, struct wk_buffers *buffers,
                             const void *const *addresses, uint64_t count, vendor_stream stream)
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
    PLUG_TRY(gpu_borrow(device, count * sizeof(uint64_t), stream, &table));
    args.table = (uintptr_t)table;
    for (; args.first < count && status == WEFT_OK; args.first += args.count) {
        args.count = count - args.first < WK_NEAR ? count - args.first : WK_NEAR;
        for (uint64_t i = 0; i < args.count; i++)
            args.near[i] = (uintptr_t)addresses[args.first + i];
        status = gpu_kernel_launch(device, GPU_KERNEL_TABLE, 1, 1, &args, stream);
    }
    if (status == WEFT_OK)
        buffers->far = table;
    else
        gpu_give_back(device, table, stream);
    return status;
}

void gpu_buffers_release(struct gpu_device *device, struct wk_buffers *buffers,
                         vendor_stream stream)
{
    gpu_give_back(device, (void *)(uintptr_t)buffers->far, stream);
    buffers->far = NULL;
}
