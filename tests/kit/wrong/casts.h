/* casts.h - regions_cast and pull_cast, which the example does not have, for plugins that are wrong
 * in one of them. */
#ifndef WEFT_TESTS_WRONG_CASTS_H
#define WEFT_TESTS_WRONG_CASTS_H

#include "wrong.h"

#include <stdlib.h>
#include <string.h>

/* A list of regions, by the pointer that the example knows it as. */
struct known_list {
    struct known_list *next;
    void *list;
    uint64_t count;
    weft_region regions[];
};

static struct known_list *known_lists;

static weft_status create_known(void *device, uint32_t element_bytes, uint64_t count,
                                const weft_region *regions, void **list)
{
    struct known_list *known = calloc(1, sizeof *known + count * sizeof *regions);
    weft_status status;

    if (known == NULL) return WEFT_ERR_NO_MEMORY;
    status = right.kernel.regions_create(device, element_bytes, count, regions, list);
    if (status != WEFT_OK) {
        free(known);
        return status;
    }
    known->list = *list;
    known->count = count;
    if (count > 0) memcpy(known->regions, regions, count * sizeof *regions);
    known->next = known_lists;
    known_lists = known;
    return WEFT_OK;
}

static struct known_list **find_known(const void *list)
{
    struct known_list **at = &known_lists;

    while (*at != NULL && (*at)->list != list)
        at = &(*at)->next;
    return at;
}

static void destroy_known(void *list)
{
    struct known_list **at = find_known(list), *known = *at;

    if (known != NULL) *at = known->next;
    free(known);
    right.kernel.regions_destroy(list);
}

/* ---- casts, and where they are wrong ---- */

/* The cast of the element at index SOURCE of one buffer to index TARGET of another. */
struct cast {
    uint32_t from, to;
    const uint8_t *source;
    uint8_t *target;
    /* the wrong conversion of one element; NULL: the right one */
    void (*convert)(uint32_t from, uint32_t to, const void *source, void *target);
    int64_t shift; /* added to TARGET where a region begins at another place than 0 */
};

static void convert_right(uint32_t from, uint32_t to, const void *source, void *target)
{
    (void)example_cast(from, to, 1, source, target);
}

static void cast_dimension(const struct cast *cast, const weft_region *region, uint32_t dim,
                           int64_t source, int64_t target)
{
    if (dim < region->dims) {
        for (int64_t i = 0; i < region->extent[dim]; i++)
            cast_dimension(cast, region, dim + 1, source + i * region->source_stride[dim],
                           target + i * region->target_stride[dim]);
        return;
    }
    (cast->convert != NULL ? cast->convert : convert_right)(
        cast->from, cast->to, cast->source + source * (int64_t)kit_dtype_bytes(cast->from),
        cast->target + target * (int64_t)kit_dtype_bytes(cast->to));
}

static int64_t shift_of(const struct cast *cast, const weft_region *region)
{
    return region->target_offset != 0 ? cast->shift : 0;
}

static weft_status cast_regions(void *list, struct cast cast, const void *const *sources,
                                void *const *targets)
{
    const struct known_list *known = *find_known(list);

    for (uint64_t i = 0; i < known->count; i++) {
        const weft_region *region = &known->regions[i];

        cast.source = sources[region->source];
        cast.target = targets[region->target];
        cast_dimension(&cast, region, 0, region->source_offset,
                       region->target_offset + shift_of(&cast, region));
    }
    return WEFT_OK;
}

/* One more than the last index that the regions of KNOWN write. */
static uint64_t elements_written(const struct known_list *known)
{
    int64_t most = 0;

    for (uint64_t i = 0; i < known->count; i++) {
        int64_t last = known->regions[i].target_offset;

        for (uint32_t d = 0; d < known->regions[i].dims; d++)
            if (known->regions[i].extent[d] > 1)
                last += (known->regions[i].extent[d] - 1) * known->regions[i].target_stride[d];
        if (last + 1 > most) most = last + 1;
    }
    return (uint64_t)most;
}

/* Pull into memory of the same layout, and cast from there. */
static weft_status cast_pulled(void *comm, const weft_pull_args *args, struct cast cast)
{
    const struct known_list *known = args->regions != NULL ? *find_known(args->regions) : NULL;
    weft_pull_args other = *args;
    uint8_t *pulled = NULL;
    weft_status status;

    if (known == NULL) return right.comm.pull(comm, args);
    pulled = calloc(elements_written(known) + 1, kit_dtype_bytes(cast.from));
    if (pulled == NULL) return WEFT_ERR_NO_MEMORY;
    other.recv = pulled;
    status = right.comm.pull(comm, &other);
    cast.source = pulled;
    cast.target = args->recv;
    for (uint64_t i = 0; i < known->count && status == WEFT_OK; i++) {
        weft_region region = known->regions[i];

        memcpy(region.source_stride, region.target_stride, sizeof region.source_stride);
        cast_dimension(&cast, &region, 0, region.target_offset,
                       region.target_offset + shift_of(&cast, &region));
    }
    free(pulled);
    return status;
}

static weft_status regions_cast_right(void *list, uint32_t from, uint32_t to,
                                      const void *const *sources, void *const *targets,
                                      void *stream)
{
    (void)stream;
    return cast_regions(list, (struct cast){.from = from, .to = to}, sources, targets);
}

static weft_status pull_cast_right(void *comm, const weft_pull_args *args, uint32_t to)
{
    return cast_pulled(comm, args, (struct cast){.from = args->dtype, .to = to});
}

static void install_casts(void)
{
    wrong.kernel.regions_create = create_known;
    wrong.kernel.regions_destroy = destroy_known;
    wrong.kernel.regions_cast = regions_cast_right;
    wrong.comm.pull_cast = pull_cast_right;
}

/* ---- wrong conversions ---- */

/* Rounds toward zero. */
static inline void convert_cut(uint32_t from, uint32_t to, const void *source, void *target)
{
    if (from == WEFT_DTYPE_F32 && to == WEFT_DTYPE_BF16)
        memcpy(target, (const uint8_t *)source + 2, 2);
    else
        convert_right(from, to, source, target);
}

/* Makes every NaN of f64 the same one. */
static inline void convert_one_nan(uint32_t from, uint32_t to, const void *source, void *target)
{
    static const uint64_t nan = UINT64_C(0x7ff8000000000000);
    double value;

    convert_right(from, to, source, target);
    if (to != WEFT_DTYPE_F64) return;
    memcpy(&value, target, sizeof value);
    if (value != value) memcpy(target, &nan, sizeof nan);
}

/* ---- wrong functions, of a file that defines DEFECT: members of struct cast ---- */

#ifdef DEFECT
static inline weft_status wrong_regions_cast(void *list, uint32_t from, uint32_t to,
                                             const void *const *sources, void *const *targets,
                                             void *stream)
{
    (void)stream;
    return cast_regions(list, (struct cast){.from = from, .to = to, DEFECT}, sources, targets);
}

static inline weft_status wrong_pull_cast(void *comm, const weft_pull_args *args, uint32_t to)
{
    return cast_pulled(comm, args, (struct cast){.from = args->dtype, .to = to, DEFECT});
}
#endif

#endif
