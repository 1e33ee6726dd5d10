/* gpu_regions_draw.c - random numbers for a list of regions. */
#include "gpu_kernel.h"
#include "kit/arithmetic/random_formulas.h"
#include "kernel_args.h"

#include <string.h>

_Static_assert(WK_DRAW_ROUNDS == (uint32_t)PHILOX_ROUNDS, "a key for each round");

static bool is_integer(uint32_t dtype)
{
    return dtype <= WEFT_DTYPE_U64;
}

static bool is_complex(uint32_t dtype)
{
    return dtype == WEFT_DTYPE_C64 || dtype == WEFT_DTYPE_C128;
}

static bool is_defined(uint32_t distribution, uint32_t dtype)
{
    switch (distribution) {
    case WEFT_DRAW_UNIFORM:
    case WEFT_DRAW_NORMAL:
        return !is_integer(dtype);
    case WEFT_DRAW_TRUNCATED:
        return !is_integer(dtype) && !is_complex(dtype);
    case WEFT_DRAW_INTEGERS:
        return is_integer(dtype);
    default:
        return distribution == WEFT_DRAW_CHOICE;
    }
}

static weft_status check_draw(const void *list, const weft_draw *draw)
{
    if (kit_dtype_bytes(draw->dtype) == 0 || !is_defined(draw->distribution, draw->dtype) ||
        gpu_regions_device(list)->kernels == NULL)
        return plug_fail(WEFT_ERR_UNSUPPORTED, "distribution %u of %s cannot be drawn",
                         draw->distribution, kit_dtype_name(draw->dtype));
    if (kit_dtype_bytes(draw->dtype) != gpu_regions_element(list))
        return plug_fail(WEFT_ERR_INVALID,
                         "regions_draw: dtype is %s, but the list has elements of %u bytes",
                         kit_dtype_name(draw->dtype), gpu_regions_element(list));
    return WEFT_OK;
}

/* The kernel that DRAW takes.  To kernels of floats, a complex number is two numbers. */
static enum gpu_kernel kernel_of(const weft_draw *draw, uint32_t *variant)
{
    *variant = draw->dtype == WEFT_DTYPE_C64    ? WEFT_DTYPE_F32
               : draw->dtype == WEFT_DTYPE_C128 ? WEFT_DTYPE_F64
                                                : draw->dtype;
    if (draw->distribution == WEFT_DRAW_UNIFORM) return GPU_KERNEL_DRAW_UNIFORM;
    if (draw->distribution == WEFT_DRAW_NORMAL) return GPU_KERNEL_DRAW_NORMAL;
    if (draw->distribution == WEFT_DRAW_TRUNCATED) return GPU_KERNEL_DRAW_TRUNCATED;
    *variant = (uint32_t)kit_dtype_bytes(draw->dtype);
    return draw->distribution == WEFT_DRAW_CHOICE ? GPU_KERNEL_DRAW_CHOICE
                                                  : GPU_KERNEL_DRAW_INTEGERS;
}

/* RANGE 0 is all values of the word; kernels of at most four bytes get their number. */
static uint64_t range_of(const weft_draw *draw)
{
    bool is_short = kit_dtype_bytes(draw->dtype) <= 4;

    return draw->range == 0 && is_short ? UINT64_C(1) << 32 : draw->range;
}

static void set_args(const weft_draw *draw, struct wk_draw_args *args)
{
    *args = (struct wk_draw_args){
        .near_first = (float)draw->first,
        .near_last = (float)draw->last,
        .near_unit = (float)draw->unit,
        .near_mean = (float)draw->mean,
        .near_deviation = (float)draw->deviation,
        .offset = {(uint32_t)draw->offset, (uint32_t)(draw->offset >> 32)},
        .first = draw->first,
        .last = draw->last,
        .unit = draw->unit,
        .mean = draw->mean,
        .deviation = draw->deviation,
        .share = draw->share,
        .width = draw->width,
        .threshold = draw->threshold,
        .least = draw->least,
        .range = range_of(draw),
    };
    for (uint32_t r = 0; r < WK_DRAW_ROUNDS; r++) {
        args->keys[r][0] = (uint32_t)draw->seed + r * PHILOX_WEYL_0;
        args->keys[r][1] = (uint32_t)(draw->seed >> 32) + r * PHILOX_WEYL_1;
    }
    memcpy(args->below, draw->below, sizeof args->below);
    memcpy(args->above, draw->above, sizeof args->above);
}

static weft_status launch(void *list, const weft_draw *draw, struct wk_draw_args *args,
                          uint32_t alignment, vendor_stream stream)
{
    struct gpu_region_set sets[GPU_REGION_SETS];
    uint32_t variant, count = gpu_regions_sets(list, alignment, true, sets);
    enum gpu_kernel kernel = kernel_of(draw, &variant);
    weft_status status = WEFT_OK;

    for (uint32_t i = 0; i < count && status == WEFT_OK; i++) {
        args->regions = sets[i].regions;
        args->tiles = sets[i].tiles;
        args->word = sets[i].word;
        status = gpu_kernel_launch(gpu_regions_device(list), kernel, variant, sets[i].tile_count,
                                   args, stream);
    }
    return status;
}

weft_status gpu_regions_draw(void *list, const weft_draw *draw, void *const *targets, void *stream)
{
    struct gpu_device *device = gpu_regions_device(list);
    vendor_stream native = gpu_native(stream);
    struct gpu_region_buffers given;
    struct wk_draw_args args;
    struct gpu_scope scope;
    weft_status status;

    PLUG_TRY(check_draw(list, draw));
    if (gpu_regions_sources(list) == 0) return WEFT_OK;
    PLUG_TRY(gpu_regions_gather(list, 0, NULL, targets, &given));
    set_args(draw, &args);
    status = gpu_enter(device, &scope);
    if (status != WEFT_OK) goto drop_given;
    status = gpu_buffers_fill(device, &args.buffers, given.all, given.count, native);
    if (status == WEFT_OK) {
        status = launch(list, draw, &args, given.alignment, native);
        gpu_buffers_release(device, &args.buffers, native);
    }
    gpu_leave(&scope);
drop_given:
    gpu_regions_drop(&given);
    return status;
}
