/* shmem_kernel.c - finding and launching the one-sided kernels, a module of their own. */
#include "shmem.h"

#include <stdio.h>
#include <string.h>

enum { VARIANTS = WEFT_DTYPE_COUNT };

struct wf_onesided_kernels {
    gpu_module module;
    _Atomic(gpu_function) functions[WF_ONESIDED_FAMILIES][VARIANTS];
};

static const char *const dtype_names[] = {
#define NAME(name, value, text, bytes) [value] = text,
    WEFT_DTYPE_LIST(NAME)
#undef NAME
};
static const char *const family_names[] = {"meet",          "pull", "pull_turned", "pull_reduce",
                                           "gather_reduce", "move", "post",        "fetch"};

/* Those built in; where the knob names other kernels, the image is in that file too. */
static gpu_result load(gpu_module *module)
{
    gpu_result result = GPU_INVALID_VALUE;

    if (wf_onesided_image(0) == NULL && wf_host->knob(VENDOR_KERNELS_KNOB) != NULL)
        return wf_gpu.module_load(module, "");
    for (size_t i = 0; wf_onesided_image(i) != NULL && result != GPU_SUCCESS; i++)
        result = wf_gpu.module_load(module, wf_onesided_image(i));
    return result;
}

static uint32_t variant_index(enum wf_onesided family, uint32_t variant)
{
    uint32_t index = 0;

    if (family == WF_PULL_REDUCE || family == WF_GATHER_REDUCE) return variant;
    while (variant >> index > 1)
        index++;
    return index;
}

static void kernel_name(enum wf_onesided family, uint32_t variant, char *out, size_t size)
{
    if (family == WF_PULL_REDUCE || family == WF_GATHER_REDUCE)
        snprintf(out, size, "weft_%s_%s", family_names[family], dtype_names[variant]);
    else if (family == WF_PULL || family == WF_PULL_TURNED)
        snprintf(out, size, "weft_%s_%u", family_names[family], variant);
    else
        snprintf(out, size, "weft_%s", family_names[family]);
}

static weft_status find(struct wf_onesided_kernels *kernels, enum wf_onesided family,
                        uint32_t variant, gpu_function *out)
{
    _Atomic(gpu_function) *slot = &kernels->functions[family][variant_index(family, variant)];
    char name[64], what[128];

    *out = atomic_load_explicit(slot, memory_order_acquire);
    if (*out != NULL) return WEFT_OK;
    kernel_name(family, variant, name, sizeof name);
    snprintf(what, sizeof what, "finding the kernel %s", name);
    WF_TRY(wf_gpu_check(wf_gpu.module_function(out, kernels->module, name), what));
    atomic_store_explicit(slot, *out, memory_order_release);
    return WEFT_OK;
}

/* Code that is loaded when it is first launched waits for kernels that run, and one of these may
 * wait for it: so all is found, and thereby loaded, beforehand. */
static weft_status find_all(struct wf_onesided_kernels *kernels)
{
    gpu_function function;

    for (uint32_t word = 1; word <= 16; word *= 2) {
        WF_TRY(find(kernels, WF_PULL, word, &function));
        WF_TRY(find(kernels, WF_PULL_TURNED, word, &function));
    }
    for (uint32_t dtype = 0; dtype < WEFT_DTYPE_COUNT; dtype++) {
        WF_TRY(find(kernels, WF_PULL_REDUCE, dtype, &function));
        WF_TRY(find(kernels, WF_GATHER_REDUCE, dtype, &function));
    }
    WF_TRY(find(kernels, WF_MEET, 1, &function));
    for (int family = WF_MOVE; family <= WF_FETCH; family++)
        WF_TRY(find(kernels, (enum wf_onesided)family, 1, &function));
    return WEFT_OK;
}

weft_status wf_onesided_open(struct wf_gpu_device *device)
{
    struct wf_onesided_kernels *kernels;
    gpu_result result;

    if (device->kernels == NULL)
        return wf_fail(WEFT_ERR_UNSUPPORTED, "there are no kernels for %s", device->name);
    kernels = wf_new(sizeof *kernels);
    if (kernels == NULL) return WEFT_ERR_NO_MEMORY;
    result = load(&kernels->module);
    if (result != GPU_SUCCESS) {
        wf_delete(kernels);
        return wf_fail(WEFT_ERR_UNSUPPORTED, "there are no one-sided kernels for %s: %s",
                       device->name, wf_vendor_error_text(result));
    }
    device->plugin_data = kernels;
    WF_TRY(find_all(kernels));
    return wf_signals_load(device);
}

void wf_onesided_close(struct wf_gpu_device *device)
{
    struct wf_onesided_kernels *kernels = device->plugin_data;
    struct wf_scope scope;

    if (kernels == NULL) return;
    if (wf_enter(device, &scope) == WEFT_OK) {
        wf_gpu.module_unload(kernels->module);
        wf_leave(&scope);
    }
    wf_delete(kernels);
    device->plugin_data = NULL;
}

weft_status wf_onesided_launch(const struct wf_comm *comm, enum wf_onesided family,
                               uint32_t variant, uint64_t blocks, const void *args,
                               gpu_stream stream)
{
    void *arguments[] = {(void *)(uintptr_t)args};
    gpu_function function;

    if (blocks > INT32_MAX)
        return wf_fail(WEFT_ERR_UNSUPPORTED, "a launch of %llu blocks is too large",
                       (unsigned long long)blocks);
    WF_TRY(find(comm->device->plugin_data, family, variant, &function));
    return wf_gpu_check(wf_gpu.launch(function, (unsigned)blocks, 1, 1, WK_THREADS, 1, 1, 0, stream,
                                      arguments, NULL),
                        "launching a kernel");
}
