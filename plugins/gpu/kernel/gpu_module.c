/* gpu_module.c - modules of device code: lookup of kernels by family and variant, and launches. */
#include "gpu_kernel.h"
#include "kernel_args.h"

#include <stdio.h>

struct gpu_module *gpu_module_new(const struct gpu_family *families, size_t count)
{
    struct gpu_module *module = plug_new(sizeof *module + count * sizeof module->functions[0]);

    if (module == NULL) return NULL;
    module->families = families;
    module->count = count;
    return module;
}

vendor_result gpu_module_load(struct gpu_module *module, const void *(*image)(size_t index))
{
    vendor_result result = GPU_INVALID_VALUE;

    for (size_t i = 0; image(i) != NULL && result != GPU_SUCCESS; i++)
        result = gpu_api.module_load(&module->native, image(i));
    return result;
}

void gpu_module_close(struct gpu_module *module)
{
    gpu_api.module_unload(module->native);
    plug_free(module);
}

static bool is_by_dtype(const struct gpu_family *family)
{
    return family->variants == GPU_BY_DTYPE || family->variants == GPU_BY_REAL_DTYPE;
}

/* Index of VARIANT.  Word sizes are powers of two. */
static uint32_t place_of(const struct gpu_family *family, uint32_t variant)
{
    uint32_t place = 0;

    if (is_by_dtype(family)) return variant;
    while (variant >> place > 1)
        place++;
    return place;
}

static void print_name(const struct gpu_family *family, uint32_t variant, char *out, size_t size)
{
    if (is_by_dtype(family))
        snprintf(out, size, "weft_%s_%s", family->name, kit_dtype_name(variant));
    else if (family->variants == GPU_BY_WORD)
        snprintf(out, size, "weft_%s_%u", family->name, variant);
    else
        snprintf(out, size, "weft_%s", family->name);
}

weft_status gpu_module_function(struct gpu_module *module, uint32_t family, uint32_t variant,
                                vendor_function *out)
{
    const struct gpu_family *kin = &module->families[family];
    _Atomic(vendor_function) *slot = &module->functions[family][place_of(kin, variant)];
    char name[64], what[128];

    *out = atomic_load_explicit(slot, memory_order_acquire);
    if (*out != NULL) return WEFT_OK;
    print_name(kin, variant, name, sizeof name);
    snprintf(what, sizeof what, "finding the kernel %s", name);
    PLUG_TRY(gpu_check(gpu_api.module_function(out, module->native, name), what));
    atomic_store_explicit(slot, *out, memory_order_release);
    return WEFT_OK;
}

weft_status gpu_module_find(struct gpu_module *module, uint32_t family)
{
    enum gpu_variants variants = module->families[family].variants;
    vendor_function function;

    if (is_by_dtype(&module->families[family]))
        for (uint32_t dtype = 0; dtype < WEFT_DTYPE_COUNT; dtype++)
            if (variants == GPU_BY_DTYPE || dtype < WEFT_DTYPE_C64)
                PLUG_TRY(gpu_module_function(module, family, dtype, &function));
    if (variants == GPU_BY_WORD)
        for (uint32_t word = 1; word <= 16; word *= 2)
            PLUG_TRY(gpu_module_function(module, family, word, &function));
    return variants == GPU_ALONE ? gpu_module_function(module, family, 1, &function) : WEFT_OK;
}

weft_status gpu_module_launch(struct gpu_module *module, uint32_t family, uint32_t variant,
                              uint64_t blocks, const void *args, vendor_stream stream)
{
    void *arguments[] = {(void *)(uintptr_t)args};
    vendor_function function;

    if (blocks > INT32_MAX)
        return plug_fail(WEFT_ERR_UNSUPPORTED, "a launch of %llu blocks is too large",
                         (unsigned long long)blocks);
    PLUG_TRY(gpu_module_function(module, family, variant, &function));
    return gpu_check(gpu_api.launch(function, (unsigned)blocks, 1, 1, WK_THREADS, 1, 1, 0, stream,
                                    arguments, NULL),
                     "launching a kernel");
}
