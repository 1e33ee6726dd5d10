/* gpu_regions_cast.c - copying a list of regions into another dtype. */
#include "gpu_kernel.h"
#include "kernel_args.h"

/* As wk_offers_cast of plugins/kernels/regions_cast.h. */
bool gpu_cast_is_offered(uint32_t from, uint32_t to)
{
    bool floats = from >= WEFT_DTYPE_F16 && from <= WEFT_DTYPE_F8E5M2 && to >= WEFT_DTYPE_F16 &&
                  to <= WEFT_DTYPE_F8E5M2;
    bool integers = from >= WEFT_DTYPE_I8 && from <= WEFT_DTYPE_U64 && to >= WEFT_DTYPE_I8 &&
                    to <= WEFT_DTYPE_U64;
    bool from_signed = from == WEFT_DTYPE_I8 || from == WEFT_DTYPE_I16 || from == WEFT_DTYPE_I32;
    bool to_signed = to == WEFT_DTYPE_I16 || to == WEFT_DTYPE_I32 || to == WEFT_DTYPE_I64;

    return floats ||
           (integers && kit_dtype_bytes(from) < kit_dtype_bytes(to) && (to_signed || !from_signed));
}

static weft_status check_cast(const void *list, uint32_t from, uint32_t to)
{
    if (!gpu_cast_is_offered(from, to) || gpu_regions_device(list)->kernels == NULL)
        return plug_fail(WEFT_ERR_UNSUPPORTED, "regions cannot be cast from %s to %s",
                         kit_dtype_name(from), kit_dtype_name(to));
    if (kit_dtype_bytes(from) != gpu_regions_element(list))
        return plug_fail(WEFT_ERR_INVALID,
                         "regions_cast: dtype is %s, but the list has elements of %u bytes",
                         kit_dtype_name(from), gpu_regions_element(list));
    return WEFT_OK;
}

static weft_status launch_casts(void *list, uint32_t from, struct wk_regions_cast_args *args,
                                uint32_t alignment, vendor_stream stream)
{
    struct gpu_region_set sets[GPU_REGION_SETS];
    uint32_t count = gpu_regions_sets(list, alignment, true, sets);
    weft_status status = WEFT_OK;

    for (uint32_t i = 0; i < count && status == WEFT_OK; i++) {
        args->regions = sets[i].regions;
        args->tiles = sets[i].tiles;
        args->word = sets[i].word;
        status = gpu_kernel_launch(gpu_regions_device(list), GPU_KERNEL_REGIONS_CAST, from,
                                   sets[i].tile_count, args, stream);
    }
    return status;
}

weft_status gpu_regions_cast(void *list, uint32_t from, uint32_t to, const void *const *sources,
                             void *const *targets, void *stream)
{
    struct wk_regions_cast_args args = {.to = to};
    vendor_stream native = gpu_native(stream);
    struct gpu_device *device = gpu_regions_device(list);
    struct gpu_region_buffers given;
    struct gpu_scope scope;
    weft_status status;

    PLUG_TRY(check_cast(list, from, to));
    if (gpu_regions_sources(list) == 0) return WEFT_OK;
    PLUG_TRY(gpu_regions_gather(list, 0, sources, targets, &given));
    status = gpu_enter(device, &scope);
    if (status != WEFT_OK) goto drop_given;
    status = gpu_buffers_fill(device, &args.buffers, given.all, given.count, native);
    if (status == WEFT_OK) {
        status = launch_casts(list, from, &args, given.alignment, native);
        gpu_buffers_release(device, &args.buffers, native);
    }
    gpu_leave(&scope);
drop_given:
    gpu_regions_drop(&given);
    return status;
}
