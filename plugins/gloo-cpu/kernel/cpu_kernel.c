/* cpu_kernel.c - reduce, scale and fill, in stream order. */
#include "cpu_kernel.h"

#include "cpu_level.h"
#include "stream/cpu_stream.h"

#include <string.h>

struct reduce_work {
    struct cpu_reducer reducer;
    const void *const *sources;
    void *target;
    uint64_t count;
};

static void run_reduce(void *argument, struct cpu_error *error)
{
    struct reduce_work *work = argument;

    (void)error;
    cpu_reduce(cpu_kernels(), &work->reducer, work->sources, work->target, work->count);
}

weft_status cpu_kernel_reduce(void *device, uint32_t dtype, uint32_t reduction, uint64_t count,
                              uint32_t size, const void *const *sources, void *target, void *stream)
{
    struct reduce_work work = {.reducer = {.dtype = dtype, .reduction = reduction, .size = size},
                               .sources = sources,
                               .target = target,
                               .count = count};
    struct cpu_lent lent = {offsetof(struct reduce_work, sources), size * sizeof *sources};

    (void)device;
    if (reduction == WEFT_REDUCE_PREMUL_SUM || !kit_reduction_defined(reduction, dtype))
        return plug_fail(WEFT_ERR_UNSUPPORTED, "reduce: %s is not defined on %s",
                         kit_reduction_name(reduction), kit_dtype_name(dtype));
    if (size == 0) return plug_fail(WEFT_ERR_INVALID, "reduce: size is 0; it must be at least 1");
    if (count > 0 && (sources == NULL || target == NULL))
        return plug_fail(WEFT_ERR_INVALID, "reduce: %s is NULL",
                         sources == NULL ? "sources" : "target");
    if (count == 0) return WEFT_OK;
    return cpu_stream_run_lent(stream, run_reduce, &work, sizeof work, &lent, 1);
}

/* Arguments of scale and fill. */
struct element_work {
    uint32_t dtype;
    _Alignas(16) unsigned char element[16];
    void *data;
    uint64_t count;
};

static void run_scale(void *argument, struct cpu_error *error)
{
    struct element_work *work = argument;

    (void)error;
    cpu_scale(cpu_kernels(), work->dtype, work->element, work->data, work->count);
}

static void run_fill(void *argument, struct cpu_error *error)
{
    struct element_work *work = argument;
    size_t bytes = kit_dtype_bytes(work->dtype), filled = bytes, all = bytes * work->count;
    unsigned char *data = work->data;

    (void)error;
    if (work->count == 0) return;
    memcpy(data, work->element, bytes);
    /* Double the filled part, but copy from a part that stays in the L1 cache. */
    while (filled < all) {
        size_t more = filled < 4096 ? filled : filled / 4096 * 4096;

        if (more > 4096) more = 4096;
        if (more > all - filled) more = all - filled;
        memcpy(data + filled, data, more);
        filled += more;
    }
}

static weft_status start(cpu_work run, struct element_work *work, const void *element, void *stream,
                         const char *name)
{
    if (element == NULL || (work->count > 0 && work->data == NULL))
        return plug_fail(WEFT_ERR_INVALID, "%s: %s is NULL", name,
                         element == NULL ? "the element" : "the memory");
    memcpy(work->element, element, kit_dtype_bytes(work->dtype));
    return cpu_stream_run(stream, run, work, sizeof *work);
}

weft_status cpu_kernel_scale(void *device, uint32_t dtype, uint64_t count, const void *scale,
                             void *data, void *stream)
{
    struct element_work work = {.dtype = dtype, .data = data, .count = count};

    (void)device;
    if (!kit_reduction_defined(WEFT_REDUCE_PREMUL_SUM, dtype))
        return plug_fail(WEFT_ERR_UNSUPPORTED, "scale: not supported on %s", kit_dtype_name(dtype));
    return start(run_scale, &work, scale, stream, "scale");
}

weft_status cpu_kernel_fill(void *device, uint32_t dtype, uint64_t count, const void *value,
                            void *target, void *stream)
{
    struct element_work work = {.dtype = dtype, .data = target, .count = count};

    (void)device;
    if (dtype >= WEFT_DTYPE_COUNT)
        return plug_fail(WEFT_ERR_UNSUPPORTED, "fill: dtype %u is unknown", dtype);
    return start(run_fill, &work, value, stream, "fill");
}
