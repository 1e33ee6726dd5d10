/* gpu_regions.c - prepared lists of regions: sorted by word size, divided into tiles, and kept in
 * device memory.  Without kernels they are copied box by box. */
#include "gpu_shape.h"

#include <stdlib.h>
#include <string.h>

/* Sets of regions that one launch serves.  Transposing regions are in two sets: in STRIDED for
 * reductions and in TURNED for copies. */
enum { WORDS = 5, STRIDED = WORDS, TURNED, SETS };
_Static_assert((int)SETS == (int)GPU_REGION_SETS, "GPU_REGION_SETS must be the number of sets");

struct set {
    struct wk_region *regions;
    void *tiles; /* struct wk_tile or wk_transpose_tile, which have the same size */
    uint64_t region_count, tile_count, region_room, tile_room;
    const struct wk_region *device_regions;
    const void *device_tiles;
};

struct gpu_regions {
    struct gpu_device *device;
    uint32_t element_bytes, source_count, target_count;
    bool *is_used; /* targets, then sources */
    void *device_memory;
    struct set sets[SETS];
};
_Static_assert(sizeof(struct wk_tile) == sizeof(struct wk_transpose_tile), "tiles of equal size");

/* ---- creation ---- */

static weft_status grow(void **items, uint64_t count, uint64_t *room, size_t bytes)
{
    uint64_t wanted = *room > 0 ? 2 * *room : 16;
    void *larger;

    if (count < *room) return WEFT_OK;
    larger = plug_new(wanted * bytes);
    if (larger == NULL) return WEFT_ERR_NO_MEMORY;
    if (count > 0) memcpy(larger, *items, count * bytes);
    plug_free(*items);
    *items = larger;
    *room = wanted;
    return WEFT_OK;
}

static weft_status add_region(const struct gpu_regions *list, struct set *set,
                              const struct gpu_shape *shape)
{
    PLUG_TRY(
        grow((void **)&set->regions, set->region_count, &set->region_room, sizeof *set->regions));
    gpu_shape_write(shape, list->target_count, &set->regions[set->region_count++]);
    return WEFT_OK;
}

static weft_status add_piece(void *self, const struct gpu_shape *piece)
{
    struct gpu_regions *list = self;
    struct gpu_shape turned;
    uint32_t word = gpu_shape_word(piece), index = 0;

    if (gpu_shape_transpose(piece, list->element_bytes, &turned)) {
        PLUG_TRY(add_region(list, &list->sets[TURNED], &turned));
        return add_region(list, &list->sets[STRIDED], piece);
    }
    while (word >> index > 1)
        index++;
    return add_region(list, &list->sets[index], piece);
}

static weft_status add_tile(struct set *set, const void *tile)
{
    PLUG_TRY(grow(&set->tiles, set->tile_count, &set->tile_room, sizeof(struct wk_tile)));
    memcpy((char *)set->tiles + set->tile_count++ * sizeof(struct wk_tile), tile,
           sizeof(struct wk_tile));
    return WEFT_OK;
}

static weft_status tile_rows(struct set *set)
{
    struct wk_tile tile = {0};

    for (uint32_t r = 0; r < set->region_count; r++) {
        for (uint32_t at = 0; at < set->regions[r].bytes;) {
            uint32_t left = set->regions[r].bytes - at, room = WK_TILE_BYTES - tile.bytes;
            if (tile.bytes == 0) tile = (struct wk_tile){.region = r, .offset = at};
            tile.bytes += left < room ? left : room;
            at += left < room ? left : room;
            if (tile.bytes < WK_TILE_BYTES) continue;
            PLUG_TRY(add_tile(set, &tile));
            tile.bytes = 0;
        }
    }
    return tile.bytes > 0 ? add_tile(set, &tile) : WEFT_OK;
}

/* The target position at which a tile starts to write. */
struct target_place {
    uint64_t place;
    struct wk_tile tile;
};

static uint64_t place_of(const struct wk_region *region, uint32_t at)
{
    uint32_t index = at / region->run.value;
    int64_t offset = region->target_offset + at % region->run.value;

    for (uint32_t d = 0; d < region->dims; d++) {
        offset += (int64_t)(index % region->extent[d].value) * region->target_stride[d];
        index /= region->extent[d].value;
    }
    return (uint64_t)region->target << 48 | ((uint64_t)offset & 0xffffffffffff);
}

static int by_place(const void *a, const void *b)
{
    const struct target_place *x = a, *y = b;

    if (x->place != y->place) return x->place < y->place ? -1 : 1;
    return x->tile.region < y->tile.region ? -1 : x->tile.region > y->tile.region;
}

/* Sort tiles by target position, so that tiles which write adjacent positions run at about the
 * same time.  Cache lines that several regions share are then written back whole. */
static weft_status sort_tiles(struct set *set)
{
    struct wk_tile *tiles = set->tiles;
    struct target_place *places;

    if (set->region_count < 2) return WEFT_OK;
    places = plug_new(set->tile_count * sizeof *places);
    if (places == NULL) return WEFT_ERR_NO_MEMORY;
    for (uint64_t i = 0; i < set->tile_count; i++)
        places[i] = (struct target_place){place_of(&set->regions[tiles[i].region], tiles[i].offset),
                                          tiles[i]};
    qsort(places, set->tile_count, sizeof *places, by_place);
    for (uint64_t i = 0; i < set->tile_count; i++)
        tiles[i] = places[i].tile;
    plug_free(places);
    return WEFT_OK;
}

/* As wk_side in plugins/kernels/regions.h. */
static uint32_t turned_side(uint32_t element_bytes)
{
    return element_bytes < 4 ? 128 / element_bytes : 32;
}

static weft_status tile_turned(struct set *set, uint32_t side)
{
    for (uint32_t r = 0; r < set->region_count; r++) {
        const struct wk_region *region = &set->regions[r];
        struct wk_transpose_tile tile = {.region = r};
        uint32_t outer = 1;

        for (uint32_t d = 2; d < region->dims; d++)
            outer *= region->extent[d].value;
        for (tile.outer = 0; tile.outer < outer; tile.outer++)
            for (tile.from1 = 0; tile.from1 < region->extent[1].value; tile.from1 += side)
                for (tile.from0 = 0; tile.from0 < region->extent[0].value; tile.from0 += side)
                    PLUG_TRY(add_tile(set, &tile));
    }
    return WEFT_OK;
}

static uint64_t region_bytes(const struct set *set)
{
    return set->region_count * sizeof *set->regions;
}

static uint64_t tile_bytes(const struct set *set)
{
    return set->tile_count * sizeof(struct wk_tile);
}

static weft_status upload(struct gpu_regions *list)
{
    uint64_t bytes = 0, at = 0;
    vendor_address address = 0;
    char *memory;

    for (int i = 0; i < SETS; i++)
        bytes += region_bytes(&list->sets[i]) + tile_bytes(&list->sets[i]);
    if (bytes == 0) return WEFT_OK;
    PLUG_TRY(gpu_check(gpu_api.memory_alloc(&address, bytes), "allocating a list of regions"));
    list->device_memory = memory = (char *)(uintptr_t)address;
    for (int i = 0; i < SETS; i++) {
        struct set *set = &list->sets[i];
        if (set->region_count == 0) continue;
        set->device_regions = (const void *)(memory + at);
        PLUG_TRY(gpu_upload(list->device, memory + at, set->regions, region_bytes(set)));
        at += region_bytes(set);
        set->device_tiles = memory + at;
        PLUG_TRY(gpu_upload(list->device, memory + at, set->tiles, tile_bytes(set)));
        at += tile_bytes(set);
    }
    return WEFT_OK;
}

static weft_status fill_sets(struct gpu_regions *list, uint64_t count, const weft_region *regions)
{
    struct gpu_shape shape;
    bool empty;

    for (uint64_t i = 0; i < count; i++) {
        PLUG_TRY(gpu_shape_read(&regions[i], list->element_bytes, &shape, &empty));
        if (empty) continue;
        list->is_used[shape.target] = true;
        list->is_used[list->target_count + shape.source] = true;
        PLUG_TRY(gpu_shape_cut(&shape, add_piece, list));
    }
    if (list->device->kernels == NULL) return WEFT_OK;
    for (int i = 0; i <= STRIDED; i++) {
        PLUG_TRY(tile_rows(&list->sets[i]));
        PLUG_TRY(sort_tiles(&list->sets[i]));
    }
    PLUG_TRY(tile_turned(&list->sets[TURNED], turned_side(list->element_bytes)));
    return upload(list);
}

weft_status gpu_regions_create(void *opened, uint32_t element_bytes, uint64_t count,
                               const weft_region *regions, void **out)
{
    struct gpu_device *device = opened;
    struct gpu_regions *list;
    struct gpu_scope scope;
    weft_status status;

    if (element_bytes == 0 || element_bytes > 16 || (element_bytes & (element_bytes - 1)) != 0)
        return plug_fail(WEFT_ERR_INVALID, "element_bytes is %u; expected 1, 2, 4, 8 or 16",
                         element_bytes);
    list = plug_new(sizeof *list);
    if (list == NULL) return WEFT_ERR_NO_MEMORY;
    list->device = device;
    list->element_bytes = element_bytes;
    for (uint64_t i = 0; i < count; i++) {
        if (regions[i].source >= list->source_count) list->source_count = regions[i].source + 1;
        if (regions[i].target >= list->target_count) list->target_count = regions[i].target + 1;
    }
    list->is_used = plug_new((size_t)list->source_count + list->target_count + 1);
    status = list->is_used != NULL ? gpu_enter(device, &scope) : WEFT_ERR_NO_MEMORY;
    if (status == WEFT_OK) {
        status = fill_sets(list, count, regions);
        gpu_leave(&scope);
    }
    if (status == WEFT_OK)
        *out = list;
    else
        gpu_regions_destroy(list);
    return status;
}

void gpu_regions_destroy(void *made)
{
    struct gpu_regions *list = made;

    if (list == NULL) return;
    gpu_list_free(list->device, list->device_memory);
    for (int i = 0; i < SETS; i++) {
        plug_free(list->sets[i].regions);
        plug_free(list->sets[i].tiles);
    }
    plug_free(list->is_used);
    plug_free(list);
}

/* ---- execution ---- */

void gpu_regions_drop(struct gpu_region_buffers *buffers)
{
    if (buffers->all != buffers->few) plug_free((void *)buffers->all);
}

_Static_assert(WK_NEAR == sizeof((struct gpu_region_buffers){0}.few) / sizeof(void *), "room");

weft_status gpu_regions_gather(const void *made, uint32_t more_sources, const void *const *sources,
                               void *const *targets, struct gpu_region_buffers *out)
{
    const struct gpu_regions *list = made;
    uint64_t known = (uint64_t)list->target_count + list->source_count;
    uint64_t first = list->target_count;
    uintptr_t bits = 16;

    out->alignment = 1;
    out->count = sources != NULL ? known + more_sources : first;
    out->all = out->count <= WK_NEAR ? out->few : plug_new(out->count * sizeof *out->all);
    if (out->all == NULL) return WEFT_ERR_NO_MEMORY;
    for (uint64_t i = 0; i < out->count; i++) {
        bool is_target = i < first;
        out->all[i] = is_target ? targets[i] : sources[i - first];
        bits |= (uintptr_t)out->all[i];
        if (out->all[i] != NULL || (i < known && !list->is_used[i])) continue;
        gpu_regions_drop(out);
        return plug_fail(WEFT_ERR_INVALID, "%s %llu of a list of regions is NULL",
                         is_target ? "target" : "source",
                         (unsigned long long)(is_target ? i : i - first));
    }
    out->alignment = (uint32_t)(bits & (UINT64_C(0) - bits));
    return WEFT_OK;
}

static weft_status launch_copies(struct gpu_regions *list, struct wk_buffers *buffers,
                                 uint32_t alignment, vendor_stream stream)
{
    bool turn = alignment >= list->element_bytes;
    weft_status status = WEFT_OK;

    for (uint32_t i = 0; i < SETS && status == WEFT_OK; i++) {
        const struct set *set = &list->sets[i];
        uint32_t word = i < WORDS ? 1u << i : list->element_bytes;
        if (set->region_count == 0 || (i == STRIDED && turn) || (i == TURNED && !turn)) continue;
        if (i == TURNED) {
            struct wk_transpose_args args = {set->device_regions, set->device_tiles, *buffers};
            status = gpu_kernel_launch(list->device, GPU_KERNEL_TRANSPOSE, word, set->tile_count,
                                       &args, stream);
        } else {
            struct wk_copy_args args = {set->device_regions, set->device_tiles, *buffers};
            status = gpu_kernel_launch(list->device, GPU_KERNEL_COPY,
                                       word < alignment ? word : alignment, set->tile_count, &args,
                                       stream);
        }
    }
    return status;
}

struct gpu_device *gpu_regions_device(const void *made)
{
    return ((const struct gpu_regions *)made)->device;
}

uint32_t gpu_regions_element(const void *made)
{
    return ((const struct gpu_regions *)made)->element_bytes;
}

uint32_t gpu_regions_sources(const void *made)
{
    return ((const struct gpu_regions *)made)->source_count;
}

bool gpu_regions_reads(const void *made, uint32_t source)
{
    const struct gpu_regions *list = made;

    return list->is_used[list->target_count + source];
}

uint32_t gpu_regions_sets(const void *made, uint32_t alignment, bool reduces,
                          struct gpu_region_set *sets)
{
    const struct gpu_regions *list = made;
    bool turn = !reduces && alignment >= list->element_bytes;
    uint32_t count = 0;

    for (uint32_t i = 0; i < SETS; i++) {
        const struct set *set = &list->sets[i];
        uint32_t word = i < WORDS ? 1u << i : list->element_bytes;
        if (set->region_count == 0 || (i == STRIDED && turn) || (i == TURNED && !turn)) continue;
        if (reduces)
            word = i < WORDS && word == 16 && alignment == 16 ? 16 : 1;
        else if (word > alignment)
            word = alignment;
        sets[count++] = (struct gpu_region_set){set->device_regions, set->device_tiles,
                                                set->tile_count, word, i == TURNED};
    }
    return count;
}

/* Copy one region without kernels: dims[0] as a box, and a loop over the other dimensions. */
static vendor_result copy_region(const struct wk_region *region, uint32_t dim, char *target,
                                 const char *source, vendor_stream stream)
{
    vendor_result result = GPU_SUCCESS;
    int64_t run = region->run.value;

    if (dim == 0) return gpu_vendor_copy(target, source, region->run.value, stream);
    if (dim == 1 && region->source_stride[0] >= run && region->target_stride[0] >= run) {
        struct gpu_box_2d box = {target,
                                 source,
                                 (uint64_t)region->target_stride[0],
                                 (uint64_t)region->source_stride[0],
                                 region->run.value,
                                 region->extent[0].value};
        return gpu_vendor_copy_2d(&box, stream);
    }
    for (uint32_t i = 0; i < region->extent[dim - 1].value && result == GPU_SUCCESS; i++)
        result = copy_region(region, dim - 1, target + (int64_t)i * region->target_stride[dim - 1],
                             source + (int64_t)i * region->source_stride[dim - 1], stream);
    return result;
}

static weft_status copy_boxes(const struct gpu_regions *list, const void *const *all,
                              vendor_stream stream)
{
    for (uint32_t i = 0; i <= STRIDED; i++) {
        const struct set *set = &list->sets[i];
        for (uint64_t r = 0; r < set->region_count; r++) {
            const struct wk_region *region = &set->regions[r];
            char *target = (char *)(uintptr_t)all[region->target] + region->target_offset;
            const char *source = (const char *)all[region->source] + region->source_offset;
            PLUG_TRY(gpu_check(copy_region(region, region->dims, target, source, stream),
                               "copying a region"));
        }
    }
    return WEFT_OK;
}

static weft_status copy_by_kernels(struct gpu_regions *list, const struct gpu_region_buffers *given,
                                   vendor_stream stream)
{
    struct wk_buffers buffers;
    weft_status status;

    PLUG_TRY(gpu_buffers_fill(list->device, &buffers, given->all, given->count, stream));
    status = launch_copies(list, &buffers, given->alignment, stream);
    gpu_buffers_release(list->device, &buffers, stream);
    return status;
}

weft_status gpu_regions_copy(void *made, const void *const *sources, void *const *targets,
                             void *stream)
{
    struct gpu_regions *list = made;
    struct gpu_region_buffers given;
    struct gpu_scope scope;
    weft_status status;

    PLUG_TRY(gpu_regions_gather(list, 0, sources, targets, &given));
    status = gpu_enter(list->device, &scope);
    if (status == WEFT_OK) {
        status = list->device->kernels != NULL ? copy_by_kernels(list, &given, gpu_native(stream))
                                               : copy_boxes(list, given.all, gpu_native(stream));
        gpu_leave(&scope);
    }
    gpu_regions_drop(&given);
    return status;
}

static weft_status launch_reductions(struct gpu_regions *list, struct wk_regions_reduce_args *args,
                                     uint32_t dtype, uint32_t alignment, vendor_stream stream)
{
    weft_status status = WEFT_OK;

    for (uint32_t i = 0; i <= STRIDED && status == WEFT_OK; i++) {
        const struct set *set = &list->sets[i];
        if (set->region_count == 0) continue;
        args->regions = set->device_regions;
        args->tiles = set->device_tiles;
        args->word = i < WORDS && 1u << i == 16 && alignment == 16 ? 16 : 1;
        status = gpu_kernel_launch(list->device, GPU_KERNEL_REGIONS_REDUCE, dtype, set->tile_count,
                                   args, stream);
    }
    return status;
}

static weft_status check_reduction(const struct gpu_regions *list, uint32_t dtype,
                                   uint32_t reduction, uint32_t size)
{
    if (kit_dtype_bytes(dtype) == 0 || !kit_reduction_defined(reduction, dtype) ||
        reduction == WEFT_REDUCE_PREMUL_SUM || list->device->kernels == NULL)
        return plug_fail(WEFT_ERR_UNSUPPORTED, "regions of %s cannot be reduced by %s",
                         kit_dtype_name(dtype), kit_reduction_name(reduction));
    if (size == 0) return plug_fail(WEFT_ERR_INVALID, "reduce: size is 0; it must be at least 1");
    if (kit_dtype_bytes(dtype) != list->element_bytes)
        return plug_fail(WEFT_ERR_INVALID,
                         "reduce: dtype is %s, but the list has elements of %u bytes",
                         kit_dtype_name(dtype), list->element_bytes);
    return WEFT_OK;
}

weft_status gpu_regions_run_reduction(void *made, uint32_t dtype,
                                      struct wk_regions_reduce_args *args,
                                      const void *const *sources, void *const *targets,
                                      vendor_stream stream)
{
    struct gpu_regions *list = made;
    struct gpu_region_buffers given;
    struct gpu_scope scope;
    weft_status status;

    PLUG_TRY(check_reduction(list, dtype, args->reduction, args->size));
    if (list->source_count == 0) return WEFT_OK;
    PLUG_TRY(gpu_regions_gather(list, args->size - 1, sources, targets, &given));
    status = gpu_enter(list->device, &scope);
    if (status != WEFT_OK) goto drop_given;
    status = gpu_buffers_fill(list->device, &args->buffers, given.all, given.count, stream);
    if (status == WEFT_OK) {
        status = launch_reductions(list, args, dtype, given.alignment, stream);
        gpu_buffers_release(list->device, &args->buffers, stream);
    }
    gpu_leave(&scope);
drop_given:
    gpu_regions_drop(&given);
    return status;
}
