/* drawer.c - random elements, drawn by the device's kernels.
 *
 * The device gets a list of regions whose sources are the numbers of elements in the whole tensor.
 * The list stays with the shard. */
#include "tensor.h"

#include "kit/arithmetic/cpu_random.h"
#include "base/number.h"
#include "exec/exec.h"
#include "exec/host/host.h"

#include <string.h>

/* ---- the list ---- */

enum { WORD = 16, CUTS = 3 }; /* WORD: bytes that kernels write at once */

/* Append PART of REGION, COUNT elements from FIRST on, to OUT. */
static uint64_t add_cut(const weft_region *region, int64_t first, int64_t count, weft_region *out)
{
    if (count == 0) return 0;
    *out = *region;
    out->source_offset += first;
    out->target_offset += first;
    out->extent[0] = count;
    return 1;
}

/* A run without gaps is cut where whole words of random bits begin and end. */
static uint64_t cut_run(const weft_region *region, int64_t per_word, weft_region *out)
{
    int64_t count = region->extent[0], head = -region->source_offset & (per_word - 1), body;
    uint64_t cuts;

    if (region->dims != 1 || region->source_stride[0] != 1 || region->target_stride[0] != 1) {
        *out = *region;
        return 1;
    }
    if (head > count) head = count;
    body = (count - head) & -per_word;
    cuts = add_cut(region, 0, head, out);
    cuts += add_cut(region, head, body, out + cuts);
    return cuts + add_cut(region, head + body, count - head - body, out + cuts);
}

static weft_status make_list(const weft_tensor *tensor, const struct wf_region_list *runs,
                             void **out)
{
    weft_context *context = tensor->context;
    uint32_t element = (uint32_t)wf_dtype_bytes(tensor->spec->layout.dtype);
    size_t bytes = (runs->count + 1) * CUTS * sizeof(weft_region);
    weft_region *cuts = wf_alloc(bytes);
    uint64_t count = 0;
    weft_status status;

    if (cuts == NULL) return wf_fail_memory(bytes);
    for (uint64_t i = 0; i < runs->count; i++)
        count += cut_run(&runs->regions[i], WORD / (int64_t)element, cuts + count);
    status = wf_kernels_of(context)->regions_create(wf_kernels_device(context), element, count,
                                                    cuts, out);
    wf_free(cuts);
    return status;
}

/* The list from an element's number in the whole tensor to its place in LOCAL. */
static weft_status prepare_list(const weft_tensor *tensor, struct wf_local *local)
{
    const struct wf_layout *layout = &tensor->spec->layout;
    struct wf_shard whole = {
        .dims = layout->dims, .member = true, .elements = tensor->spec->elements};
    int64_t numbers[WEFT_MAX_DIMS], strides[WEFT_MAX_DIMS];
    struct wf_region_list runs = {0};
    struct wf_shard shard;
    weft_status status;

    if (local->dense.drawer != NULL) return WEFT_OK;
    memcpy(whole.shape, layout->shape, sizeof whole.shape);
    wf_shard_of(tensor->spec, local->rank, &shard);
    wf_row_major(layout->dims, layout->shape, numbers);
    wf_row_major(layout->dims, shard.shape, strides);
    status = wf_regions_add(&runs, &whole, numbers, &shard,
                            local->is_dense ? strides : local->strides, 0, 0);
    if (status == WEFT_OK) status = make_list(tensor, &runs, &local->dense.drawer);
    wf_free(runs.regions);
    return status;
}

/* ---- the draw ---- */

static uint32_t distribution_of(const struct cpu_draw *draw)
{
    switch (draw->distribution) {
    case CPU_UNIFORM:
        return WEFT_DRAW_UNIFORM;
    case CPU_NORMAL:
        return WEFT_DRAW_NORMAL;
    case CPU_TRUNCATED_NORMAL:
        return WEFT_DRAW_TRUNCATED;
    case CPU_INTEGERS:
        return WEFT_DRAW_INTEGERS;
    default:
        return WEFT_DRAW_CHOICE;
    }
}

/* The fields that the distribution does not use stay 0. */
static void describe(const struct cpu_sampler *s, weft_draw *out)
{
    const struct cpu_draw *draw = &s->draw;
    bool wide = draw->dtype == WEFT_DTYPE_F64 || draw->dtype == WEFT_DTYPE_C128 ||
                draw->distribution == CPU_TRUNCATED_NORMAL;

    *out = (weft_draw){.struct_size = sizeof *out,
                       .distribution = distribution_of(draw),
                       .dtype = draw->dtype,
                       .seed = draw->bits.seed,
                       .offset = draw->bits.offset,
                       .first = s->first,
                       .last = s->last,
                       .mean = wide ? draw->mean : (double)(float)draw->mean,
                       .deviation = wide ? s->deviation : (double)(float)s->deviation,
                       .share = s->share,
                       .width = s->width};
    if (out->distribution == WEFT_DRAW_UNIFORM) out->unit = wide ? s->unit : (double)s->range.unit;
    if (out->distribution == WEFT_DRAW_INTEGERS) {
        out->least = (uint64_t)draw->first;
        out->range = draw->range;
    }
    if (out->distribution != WEFT_DRAW_CHOICE) return;
    cpu_sampler_choice(s, out->below, out->above);
    out->threshold = s->threshold;
    if (s->is_certain) memcpy(out->above, out->below, sizeof out->above);
}

weft_status wf_local_draw(const weft_tensor *tensor, struct wf_local *local,
                          const struct cpu_sampler *sampler, weft_stream *stream,
                          const char *function)
{
    const weft_kernel_table *kernels = wf_kernels_of(tensor->context);
    weft_draw draw;

    if (!WF_HAS(kernels, regions_draw)) return WEFT_ERR_UNSUPPORTED;
    WF_TRY(prepare_list(tensor, local));
    WF_TRY(wf_dense_follow(tensor, &local->dense, stream, function));
    describe(sampler, &draw);
    return kernels->regions_draw(local->dense.drawer, &draw, &local->memory, stream);
}
