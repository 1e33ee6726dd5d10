/* drawing.c - the example with regions_draw, which is not wrong: it draws element by element with
 * the arithmetic of the plugin kit. */
#include "casts.h"

#include "kit/arithmetic/cpu_random.h"

static struct cpu_sampler sampler_of(const weft_draw *draw)
{
    static const uint32_t distributions[] = {[WEFT_DRAW_UNIFORM] = CPU_UNIFORM,
                                             [WEFT_DRAW_NORMAL] = CPU_NORMAL,
                                             [WEFT_DRAW_TRUNCATED] = CPU_TRUNCATED_NORMAL,
                                             [WEFT_DRAW_CHOICE] = CPU_INTEGERS,
                                             [WEFT_DRAW_INTEGERS] = CPU_INTEGERS};
    struct cpu_sampler s = {
        .draw = {.distribution = distributions[draw->distribution],
                 .dtype = draw->dtype,
                 .bits = {draw->seed, draw->offset},
                 .mean = draw->mean,
                 .first = (int64_t)draw->least,
                 .range = draw->range},
        .kernels = &cpu_kernels_base,
        .element = (uint32_t)kit_dtype_bytes(draw->dtype),
        .first = draw->first,
        .last = draw->last,
        .unit = draw->unit,
        .deviation = draw->deviation,
        .share = draw->share,
        .width = draw->width,
        .range = {.low = (float)draw->first, .unit = (float)draw->unit, .last = (float)draw->last}};

    s.range.dropped = draw->dtype == WEFT_DTYPE_F16      ? 21
                      : draw->dtype == WEFT_DTYPE_BF16   ? 24
                      : draw->dtype == WEFT_DTYPE_F8E4M3 ? 28
                      : draw->dtype == WEFT_DTYPE_F8E5M2 ? 29
                                                         : 8;
    return s;
}

/* Element NUMBER: one of two, by the word alone. */
static void draw_choice(const weft_draw *draw, uint64_t number, uint8_t *out)
{
    uint64_t bytes = kit_dtype_bytes(draw->dtype), word = 0;
    weft_draw raw = {.distribution = WEFT_DRAW_INTEGERS,
                     .dtype = bytes <= 4 ? WEFT_DTYPE_U32 : WEFT_DTYPE_U64,
                     .seed = draw->seed,
                     .offset = draw->offset};
    struct cpu_sampler sampler = sampler_of(&raw);

    cpu_sample(&sampler, bytes == 16 ? 2 * number : number, 1, &word);
    memcpy(out, word < draw->threshold ? draw->below : draw->above, bytes);
}

struct drawing {
    const weft_draw *draw;
    struct cpu_sampler sampler;
    uint8_t *target;
};

static void draw_dimension(const struct drawing *d, const weft_region *region, uint32_t dim,
                           int64_t number, int64_t target)
{
    uint8_t *out = d->target + target * (int64_t)kit_dtype_bytes(d->draw->dtype);

    if (dim < region->dims && dim < WEFT_MAX_DIMS) {
        for (int64_t i = 0; i < region->extent[dim]; i++)
            draw_dimension(d, region, dim + 1, number + i * region->source_stride[dim],
                           target + i * region->target_stride[dim]);
        return;
    }
    if (d->draw->distribution == WEFT_DRAW_CHOICE)
        draw_choice(d->draw, (uint64_t)number, out);
    else
        cpu_sample(&d->sampler, (uint64_t)number, 1, out);
}

static weft_status regions_draw(void *list, const weft_draw *draw, void *const *targets,
                                void *stream)
{
    const struct known_list *known = *find_known(list);
    struct drawing d = {.draw = draw, .sampler = sampler_of(draw)};

    (void)stream;
    for (uint64_t i = 0; i < known->count; i++) {
        const weft_region *region = &known->regions[i];

        d.target = targets[region->target];
        draw_dimension(&d, region, 0, region->source_offset, region->target_offset);
    }
    return WEFT_OK;
}

INSTALL(install_casts(), wrong.kernel.regions_draw = regions_draw)
