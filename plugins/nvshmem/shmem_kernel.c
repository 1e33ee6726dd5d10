/* shmem_kernel.c - finding and launching the one-sided kernels, a module of their own. */
#include "shmem.h"

#include "kernel_args.h"

static const struct wf_family families[] = {
    [WF_MEET] = {"meet", WF_ALONE},
    [WF_PULL] = {"pull", WF_BY_WORD},
    [WF_PULL_TURNED] = {"pull_turned", WF_BY_WORD},
    [WF_PULL_REDUCE] = {"pull_reduce", WF_BY_DTYPE},
    [WF_GATHER_REDUCE] = {"gather_reduce", WF_BY_DTYPE},
    [WF_MOVE] = {"move", WF_ALONE},
    [WF_POST] = {"post", WF_ALONE},
    [WF_FETCH] = {"fetch", WF_ALONE},
    [WF_DECLINE] = {"decline", WF_ALONE},
};

/* Those built in; where the knob names other kernels, the image is in that file too. */
static gpu_result load(struct wf_module *module)
{
    if (wf_onesided_image(0) == NULL && wf_host->knob(VENDOR_KERNELS_KNOB) != NULL)
        return wf_gpu.module_load(&module->native, "");
    return wf_module_load(module, wf_onesided_image);
}

/* Code that is loaded when it is first launched waits for kernels that run, and one of these may
 * wait for it: so all is found, and thereby loaded, beforehand. */
static weft_status find_all(struct wf_module *module)
{
    for (uint32_t family = 0; family < WF_COUNT(families); family++)
        WF_TRY(wf_module_find(module, family));
    return WEFT_OK;
}

weft_status wf_onesided_open(struct wf_gpu_device *device)
{
    struct wf_module *kernels;
    gpu_result result;

    if (device->kernels == NULL)
        return wf_fail(WEFT_ERR_UNSUPPORTED, "there are no kernels for %s", device->name);
    kernels = wf_module_new(families, WF_COUNT(families));
    if (kernels == NULL) return WEFT_ERR_NO_MEMORY;
    result = load(kernels);
    if (result != GPU_SUCCESS) {
        wf_delete(kernels);
        return wf_fail(WEFT_ERR_UNSUPPORTED, "there are no one-sided kernels for %s: %s",
                       device->name, wf_vendor_error_text(result));
    }
    device->plugin_data = kernels;
    WF_TRY(find_all(kernels));
    WF_TRY(wf_module_find(device->kernels, WF_KERNEL_SCALE)); /* in front of a premul_sum */
    return wf_signals_load(device);
}

void wf_onesided_close(struct wf_gpu_device *device)
{
    struct wf_scope scope;

    if (device->plugin_data == NULL || wf_enter(device, &scope) != WEFT_OK) return;
    wf_module_close(device->plugin_data);
    wf_leave(&scope);
    device->plugin_data = NULL;
}

/* Devices from 9.0 on can prepare a kernel while the one in front of it still runs; the kernel
 * itself then waits for that one's end (wk_follow), which it must do before anything else. Recorded
 * graphs keep plain edges, which all of the driver's functions understand. */
static bool can_be_early(const struct wf_comm *comm, gpu_stream stream)
{
    return comm->device->capability >= 90 && wf_gpu.launch_with != NULL && !wf_is_capturing(stream);
}

weft_status wf_onesided_launch(const struct wf_comm *comm, enum wf_onesided family,
                               uint32_t variant, uint64_t blocks, const void *args,
                               gpu_stream stream)
{
    struct wf_module *module = comm->device->plugin_data;
    struct gpu_launch_attribute early = {.id = GPU_LAUNCH_EARLY, .value = {.is_set = 1}};
    struct gpu_launch how = {.blocks = {(unsigned)blocks, 1, 1},
                             .threads = {WK_THREADS, 1, 1},
                             .stream = stream,
                             .attributes = &early,
                             .attribute_count = 1};
    void *arguments[] = {(void *)(uintptr_t)args};
    gpu_function function;

    if (blocks > INT32_MAX || !can_be_early(comm, stream))
        return wf_module_launch(module, family, variant, blocks, args, stream);
    WF_TRY(wf_module_function(module, family, variant, &function));
    return wf_gpu_check(wf_gpu.launch_with(&how, function, arguments, NULL), "launching a kernel");
}
