/* cpu_cast.c - conversion between dtypes, in stream order. */
#include "cpu_kernel.h"

#include "kit/arithmetic/cpu_casts.h"
#include "cpu_level.h"
#include "stream/cpu_stream.h"

static bool is_complex(uint32_t dtype)
{
    return dtype == WEFT_DTYPE_C64 || dtype == WEFT_DTYPE_C128;
}

void cpu_cast(uint32_t from, uint32_t to, size_t count, const void *source, void *target)
{
    cpu_cast_elements(cpu_kernels(), from, to, source, target, count);
}

struct work {
    uint32_t from, to;
    uint64_t count;
    const void *source;
    void *target;
};

static void run_work(void *argument, struct cpu_error *error)
{
    struct work *work = argument;

    (void)error;
    cpu_cast(work->from, work->to, work->count, work->source, work->target);
}

weft_status cpu_kernel_cast(void *device, uint32_t from, uint32_t to, uint64_t count,
                            const void *source, void *target, void *stream)
{
    struct work work = {from, to, count, source, target};

    (void)device;
    if (from >= WEFT_DTYPE_COUNT || to >= WEFT_DTYPE_COUNT || is_complex(from) != is_complex(to))
        return plug_fail(WEFT_ERR_UNSUPPORTED, "cast from %s to %s is not supported",
                         kit_dtype_name(from), kit_dtype_name(to));
    if (count > 0 && (source == NULL || target == NULL))
        return plug_fail(WEFT_ERR_INVALID, "cast: %s is NULL",
                         source == NULL ? "source" : "target");
    return cpu_stream_run(stream, run_work, &work, sizeof work);
}
