/* cpu_box_cast.c - copying a box into another dtype, or its reduction. */
#include "cpu_kernel.h"
#include "cpu_regions.h"

#include "kit/arithmetic/cpu_casts.h"
#include "stream/cpu_stream.h"

#include <string.h>

enum { BLOCK = 512 }; /* elements that are cast at a time, where a side is strided */

struct cast {
    uint32_t from, to;
    size_t in, out; /* bytes of an element */
};

static struct cast cast_of(uint32_t from, uint32_t to)
{
    return (struct cast){from, to, kit_dtype_bytes(from), kit_dtype_bytes(to)};
}

/* COUNT elements, of which either side may be strided. */
static void cast_strided(const struct cast *cast, const unsigned char *source,
                         int64_t source_stride, unsigned char *target, int64_t target_stride,
                         int64_t count)
{
    _Alignas(64) unsigned char gathered[BLOCK * 8], converted[BLOCK * 8];

    if (source_stride == 1 && target_stride == 1) {
        cpu_cast(cast->from, cast->to, (size_t)count, source, target);
        return;
    }
    for (int64_t first = 0, part; first < count; first += part) {
        const unsigned char *from = source + first * source_stride * (int64_t)cast->in;
        unsigned char *to = target + first * target_stride * (int64_t)cast->out;

        part = count - first < BLOCK ? count - first : BLOCK;
        if (source_stride != 1) cpu_copy_strided(cast->in, gathered, 1, from, source_stride, part);
        cpu_cast(cast->from, cast->to, (size_t)part, source_stride != 1 ? gathered : from,
                 target_stride != 1 ? converted : to);
        if (target_stride != 1) cpu_copy_strided(cast->out, to, target_stride, converted, 1, part);
    }
}

/* Ask for the beginning of the next line.  A processor fetches on by itself within a line, but
 * begins a new one only when it is there. */
static void ask_for_next(const unsigned char *next, size_t bytes)
{
    enum { HEAD = 1024, CACHE_LINE = 64 }; /* bytes */

    for (size_t at = 0; at < bytes && at < HEAD; at += CACHE_LINE)
        __builtin_prefetch(next + at, 0, 2);
}

void cpu_box_cast(const struct cpu_box *box, uint32_t from, uint32_t to, const void *source,
                  void *target)
{
    struct cast cast = cast_of(from, to);
    struct cpu_line_walk at = {0};
    int64_t in = (int64_t)cast.in, out = (int64_t)cast.out;
    int64_t step = box->dims > 1 ? box->source_stride[box->dims - 2] * in : 0;

    while (cpu_box_next_line(box, &at)) {
        const struct cpu_line *line = &at.line;
        const unsigned char *begin = (const unsigned char *)source + line->source * in;

        if (line->source_stride == 1 && step != 0)
            ask_for_next(begin + step, (size_t)(line->count * in));
        cast_strided(&cast, begin, line->source_stride,
                     (unsigned char *)target + line->target * out, line->target_stride,
                     line->count);
    }
}

/* A line, block by block. */
static weft_status reduce_line(const struct cast *cast, const struct cpu_line *line,
                               const struct cpu_reducer *reducer, const void *const *sources,
                               unsigned char *target)
{
    _Alignas(64) unsigned char reduced[BLOCK * 8];
    struct cpu_box part = {.dims = 1, .source_stride = {line->source_stride}, .target_stride = {1}};

    for (int64_t first = 0; first < line->count; first += part.extent[0]) {
        part.source_offset = line->source + first * line->source_stride;
        part.extent[0] = line->count - first < BLOCK ? line->count - first : BLOCK;
        PLUG_TRY(cpu_box_reduce(&part, reducer, sources, reduced));
        cast_strided(cast, reduced, 1,
                     target + (line->target + first * line->target_stride) * (int64_t)cast->out,
                     line->target_stride, part.extent[0]);
    }
    return WEFT_OK;
}

weft_status cpu_box_reduce_cast(const struct cpu_box *box, const struct cpu_reducer *reducer,
                                uint32_t to, const void *const *sources, void *target)
{
    struct cast cast = cast_of(reducer->dtype, to);
    struct cpu_line_walk at = {0};

    while (cpu_box_next_line(box, &at))
        PLUG_TRY(reduce_line(&cast, &at.line, reducer, sources, target));
    return WEFT_OK;
}

weft_status cpu_cast_check(const char *what, size_t element, uint32_t from, uint32_t to)
{
    if (from >= WEFT_DTYPE_C64 || to >= WEFT_DTYPE_C64)
        return plug_fail(WEFT_ERR_UNSUPPORTED, "%s: cast from %s to %s is not supported", what,
                         kit_dtype_name(from), kit_dtype_name(to));
    if (kit_dtype_bytes(from) != element)
        return plug_fail(WEFT_ERR_INVALID,
                         "%s: dtype is %s, but the list has elements of %zu bytes", what,
                         kit_dtype_name(from), element);
    return WEFT_OK;
}

/* ---- a list ---- */

struct work {
    const struct cpu_regions *list;
    const void *const *sources;
    void *const *targets;
    uint32_t from, to;
};

static void run_work(void *argument, struct cpu_error *error)
{
    const struct work *work = argument;

    (void)error;
    for (uint64_t i = 0; i < work->list->count; i++) {
        const struct cpu_box *box = &work->list->boxes[i];

        cpu_box_cast(box, work->from, work->to, work->sources[box->source],
                     work->targets[box->target]);
    }
}

weft_status cpu_regions_cast(void *list, uint32_t from, uint32_t to, const void *const *sources,
                             void *const *targets, void *stream)
{
    struct work work = {list, sources, targets, from, to};
    size_t source_count, target_count;

    PLUG_TRY(cpu_cast_check("regions_cast", work.list->element, from, to));
    cpu_regions_count(work.list, &source_count, &target_count);
    return cpu_stream_run_lent(
        stream, run_work, &work, sizeof work,
        (struct cpu_lent[]){{offsetof(struct work, sources), source_count * sizeof(void *)},
                            {offsetof(struct work, targets), target_count * sizeof(void *)}},
        2);
}
