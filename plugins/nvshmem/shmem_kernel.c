/* shmem_kernel.c - lookup and launch of the one-sided kernels, which are a separate module. */
#include "shmem.h"

#include "kernel_args.h"

static const struct gpu_family families[] = {
    [SHMEM_SYNC] = {"sync", GPU_ALONE},
    [SHMEM_PULL] = {"pull", GPU_BY_WORD},
    [SHMEM_PULL_TURNED] = {"pull_turned", GPU_BY_WORD},
    [SHMEM_PULL_REDUCE] = {"pull_reduce", GPU_BY_DTYPE},
    [SHMEM_PULL_CAST] = {"pull_cast", GPU_BY_REAL_DTYPE},
    [SHMEM_GATHER_REDUCE] = {"gather_reduce", GPU_BY_DTYPE},
    [SHMEM_MOVE] = {"move", GPU_ALONE},
    [SHMEM_POST] = {"post", GPU_ALONE},
    [SHMEM_FETCH] = {"fetch", GPU_ALONE},
    [SHMEM_DECLINE] = {"decline", GPU_ALONE},
};

/* Load the built-in image, or the file that the knob names, which contains this image too. */
static vendor_result load(struct gpu_module *module)
{
    if (shmem_onesided_image(0) == NULL && plug_knob(VENDOR_KERNELS_KNOB) != NULL)
        return gpu_api.module_load(&module->native, "");
    return gpu_module_load(module, shmem_onesided_image);
}

/* Code that is loaded at its first launch waits for running kernels, which may wait for that
 * launch.  All kernels are therefore looked up, and thereby loaded, beforehand. */
static weft_status find_all(struct gpu_module *module)
{
    for (uint32_t family = 0; family < PLUG_LENGTH(families); family++)
        PLUG_TRY(gpu_module_find(module, family));
    return WEFT_OK;
}

weft_status shmem_onesided_open(struct gpu_device *device)
{
    struct gpu_module *kernels;
    vendor_result result;

    if (device->kernels == NULL)
        return plug_fail(WEFT_ERR_UNSUPPORTED, "no kernels for %s", device->name);
    kernels = gpu_module_new(families, PLUG_LENGTH(families));
    if (kernels == NULL) return WEFT_ERR_NO_MEMORY;
    result = load(kernels);
    if (result != GPU_SUCCESS) {
        plug_free(kernels);
        return plug_fail(WEFT_ERR_UNSUPPORTED, "no one-sided kernels for %s: %s", device->name,
                         gpu_vendor_error_text(result));
    }
    device->plugin_data = kernels;
    PLUG_TRY(find_all(kernels));
    PLUG_TRY(gpu_module_find(device->kernels, GPU_KERNEL_SCALE)); /* runs before a premul_sum */
    return gpu_signals_load(device);
}

void shmem_onesided_close(struct gpu_device *device)
{
    struct gpu_scope scope;

    if (device->plugin_data == NULL || gpu_enter(device, &scope) != WEFT_OK) return;
    gpu_module_close(device->plugin_data);
    gpu_leave(&scope);
    device->plugin_data = NULL;
}

/* Devices from 9.0 on can start a kernel before the preceding one has ended.  The kernel then first
 * waits for the end of its predecessor (wk_follow).  Recorded graphs use plain edges, which all
 * functions of the driver support. */
static bool can_be_early(const struct gpu_comm *comm, vendor_stream stream)
{
    return comm->device->capability >= 90 && gpu_api.launch_with != NULL &&
           !gpu_is_capturing(stream);
}

weft_status shmem_onesided_launch(const struct gpu_comm *comm, enum shmem_onesided family,
                                  uint32_t variant, uint64_t blocks, const void *args,
                                  vendor_stream stream)
{
    struct gpu_module *module = comm->device->plugin_data;
    struct vendor_launch_attribute early = {.id = GPU_LAUNCH_EARLY, .value = {.is_set = 1}};
    struct vendor_launch how = {.blocks = {(unsigned)blocks, 1, 1},
                                .threads = {WK_THREADS, 1, 1},
                                .stream = stream,
                                .attributes = &early,
                                .attribute_count = 1};
    void *arguments[] = {(void *)(uintptr_t)args};
    vendor_function function;

    if (blocks > INT32_MAX || !can_be_early(comm, stream))
        return gpu_module_launch(module, family, variant, blocks, args, stream);
    PLUG_TRY(gpu_module_function(module, family, variant, &function));
    return gpu_check(gpu_api.launch_with(&how, function, arguments, NULL), "launching a kernel");
}
