/* gpu_module.c - modules of device code: their kernels found by family and variant, and launched.
 */
#include "gpu_kernel.h"
#include "kernel_args.h"

#include <stdio.h>

struct wf_module *wf_module_new(const struct wf_family *families, size_t count)
{
    struct wf_module *module = wf_new(sizeof *module + count * sizeof module->functions[0]);

    if (module == NULL) return NULL;
    module->families = families;
    module->count = count;
    return module;
}

gpu_result wf_module_load(struct wf_module *module, const void *(*image)(size_t index))
{
    gpu_result result = GPU_INVALID_VALUE;

    for (size_t i = 0; image(i) != NULL && result != GPU_SUCCESS; i++)
        result = wf_gpu.module_load(&module->native, image(i));
    return result;
}

void wf_module_close(struct wf_module *module)
{
    wf_gpu.module_unload(module->native);
    wf_delete(module);
}

/* Words are powers of two. */
static uint32_t place_of(const struct wf_family *family, uint32_t variant)
{
    uint32_t place = 0;

    if (family->variants == WF_BY_DTYPE) return variant;
    while (variant >> place > 1)
        place++;
    return place;
}

static void print_name(const struct wf_family *family, uint32_t variant, char *out, size_t size)
{
    if (family->variants == WF_BY_DTYPE)
        snprintf(out, size, "weft_%s_%s", family->name, wf_abi_dtype_name(variant));
    else if (family->variants == WF_BY_WORD)
        snprintf(out, size, "weft_%s_%u", family->name, variant);
    else
        snprintf(out, size, "weft_%s", family->name);
}

weft_status wf_module_function(struct wf_module *module, uint32_t family, uint32_t variant,
                               gpu_function *out)
{
    const struct wf_family *kin = &module->families[family];
    _Atomic(gpu_function) *slot = &module->functions[family][place_of(kin, variant)];
    char name[64], what[128];

    *out = atomic_load_explicit(slot, memory_order_acquire);
    if (*out != NULL) return WEFT_OK;
    print_name(kin, variant, name, sizeof name);
    snprintf(what, sizeof what, "finding the kernel %s", name);
    WF_TRY(wf_gpu_check(wf_gpu.module_function(out, module->native, name), what));
    atomic_store_explicit(slot, *out, memory_order_release);
    return WEFT_OK;
}

weft_status wf_module_find(struct wf_module *module, uint32_t family)
{
    enum wf_variants variants = module->families[family].variants;
    gpu_function function;

    if (variants == WF_BY_DTYPE)
        for (uint32_t dtype = 0; dtype < WEFT_DTYPE_COUNT; dtype++)
            WF_TRY(wf_module_function(module, family, dtype, &function));
    if (variants == WF_BY_WORD)
        for (uint32_t word = 1; word <= 16; word *= 2)
            WF_TRY(wf_module_function(module, family, word, &function));
    return variants == WF_ALONE ? wf_module_function(module, family, 1, &function) : WEFT_OK;
}

weft_status wf_module_launch(struct wf_module *module, uint32_t family, uint32_t variant,
                             uint64_t blocks, const void *args, gpu_stream stream)
{
    void *arguments[] = {(void *)(uintptr_t)args};
    gpu_function function;

    if (blocks > INT32_MAX)
        return wf_fail(WEFT_ERR_UNSUPPORTED, "a launch of %llu blocks is too large",
                       (unsigned long long)blocks);
    WF_TRY(wf_module_function(module, family, variant, &function));
    return wf_gpu_check(wf_gpu.launch(function, (unsigned)blocks, 1, 1, WK_THREADS, 1, 1, 0, stream,
                                      arguments, NULL),
                        "launching a kernel");
}
