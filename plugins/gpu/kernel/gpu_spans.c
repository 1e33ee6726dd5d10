/* gpu_spans.c - prepared lists of spans: divided into tiles, which are kept in device memory in the
 * order of their sums. */
#include "gpu_kernel.h"
#include "kernel_args.h"

#include <math.h>
#include <string.h>

_Static_assert((int)WK_NONFINITE_SCALE == (int)WEFT_NONFINITE_SCALE &&
                   (int)WK_NONFINITE_KEEP == (int)WEFT_NONFINITE_KEEP &&
                   (int)WK_NONFINITE_ZERO == (int)WEFT_NONFINITE_ZERO,
               "plugins/kernels/spans.h must number the policies as the ABI does");

struct gpu_spans {
    struct gpu_device *device;
    weft_span *spans;
    uint64_t count;
    uint32_t sums, tile_count;
    void *device_memory;
    struct wk_span_tile *tiles; /* this and the following: in DEVICE_MEMORY */
    uint64_t *addresses;
    double *partials;
    uint32_t *first; /* tile of each sum, then TILE_COUNT */
};

/* ---- creation ---- */

static weft_status check_kernels(struct gpu_device *device)
{
    struct gpu_scope scope;
    weft_status status;

    PLUG_TRY(gpu_enter(device, &scope));
    status = gpu_kernels_offer(device, GPU_KERNEL_SPAN_POWERS_ONE, GPU_KERNEL_SPAN_TABLE, 1);
    gpu_leave(&scope);
    return status;
}

static weft_status check_spans(uint64_t count, const weft_span *spans, uint32_t sums)
{
    uint64_t tiles = 0;

    for (uint64_t i = 0; i < count; i++) {
        if (spans[i].dtype < WEFT_DTYPE_F16 || spans[i].dtype > WEFT_DTYPE_F8E5M2)
            return plug_fail(WEFT_ERR_UNSUPPORTED, "span %llu is of %s; expected floats",
                             (unsigned long long)i, kit_dtype_name(spans[i].dtype));
        if (spans[i].sum >= sums)
            return plug_fail(WEFT_ERR_INVALID, "span %llu has sum %u of %u", (unsigned long long)i,
                             spans[i].sum, sums);
        if (spans[i].count > UINT64_C(1) << 48 || tiles > INT32_MAX)
            return plug_fail(WEFT_ERR_UNSUPPORTED, "the spans have too many elements");
        tiles += (spans[i].count + WK_SPAN_ELEMENTS - 1) / WK_SPAN_ELEMENTS;
    }
    if (tiles > INT32_MAX)
        return plug_fail(WEFT_ERR_UNSUPPORTED, "the spans have too many elements");
    return WEFT_OK;
}

static uint32_t tiles_of(const weft_span *span)
{
    return (uint32_t)((span->count + WK_SPAN_ELEMENTS - 1) / WK_SPAN_ELEMENTS);
}

/* FIRST gets the first tile of each sum, and the number of tiles after them. */
static void number_tiles(const struct gpu_spans *list, uint32_t *first)
{
    for (uint64_t i = 0; i < list->count; i++)
        first[list->spans[i].sum + 1] += tiles_of(&list->spans[i]);
    for (uint32_t k = 0; k < list->sums; k++)
        first[k + 1] += first[k];
}

/* NEXT[k] is the place of the next tile of sum k. */
static void make_tiles(const struct gpu_spans *list, uint32_t *next, struct wk_span_tile *tiles)
{
    for (uint64_t i = 0; i < list->count; i++) {
        const weft_span *span = &list->spans[i];

        for (uint64_t at = 0; at < span->count; at += WK_SPAN_ELEMENTS) {
            uint64_t left = span->count - at;

            tiles[next[span->sum]++] = (struct wk_span_tile){
                .first = at,
                .span = (uint32_t)i,
                .count = left < WK_SPAN_ELEMENTS ? (uint32_t)left : WK_SPAN_ELEMENTS,
                .dtype = span->dtype};
        }
    }
}

static weft_status allocate(struct gpu_spans *list)
{
    uint64_t tiles = list->tile_count * sizeof *list->tiles;
    uint64_t addresses = list->count * sizeof *list->addresses;
    uint64_t partials = list->tile_count * sizeof *list->partials;
    uint64_t first = ((uint64_t)list->sums + 1) * sizeof *list->first;
    vendor_address address = 0;

    PLUG_TRY(gpu_check(gpu_api.memory_alloc(&address, tiles + addresses + partials + first),
                       "allocating a list of spans"));
    list->device_memory = (void *)(uintptr_t)address;
    list->tiles = list->device_memory;
    list->addresses = (void *)((char *)list->device_memory + tiles);
    list->partials = (void *)((char *)list->addresses + addresses);
    list->first = (void *)((char *)list->partials + partials);
    return WEFT_OK;
}

static weft_status upload(struct gpu_spans *list, uint32_t *first, struct wk_span_tile *tiles)
{
    PLUG_TRY(allocate(list));
    PLUG_TRY(
        gpu_upload(list->device, list->first, first, ((uint64_t)list->sums + 1) * sizeof *first));
    if (list->tile_count == 0) return WEFT_OK;
    make_tiles(list, first, tiles);
    return gpu_upload(list->device, list->tiles, tiles, list->tile_count * sizeof *tiles);
}

static weft_status fill(struct gpu_spans *list)
{
    uint32_t *first = plug_new(((size_t)list->sums + 1) * sizeof *first);
    struct wk_span_tile *tiles = NULL;
    struct gpu_scope scope;
    weft_status status = WEFT_ERR_NO_MEMORY;

    if (first != NULL) {
        number_tiles(list, first);
        list->tile_count = first[list->sums];
        tiles = plug_new(((size_t)list->tile_count + 1) * sizeof *tiles);
    }
    if (tiles != NULL) status = gpu_enter(list->device, &scope);
    if (status == WEFT_OK) {
        status = upload(list, first, tiles);
        gpu_leave(&scope);
    }
    plug_free(tiles);
    plug_free(first);
    return status;
}

weft_status gpu_spans_create(void *opened, uint64_t count, const weft_span *spans, uint32_t sums,
                             void **out)
{
    struct gpu_spans *list;
    weft_status status;

    PLUG_TRY(check_kernels(opened));
    PLUG_TRY(check_spans(count, spans, sums));
    list = plug_new(sizeof *list);
    if (list == NULL) return WEFT_ERR_NO_MEMORY;
    list->device = opened;
    list->count = count;
    list->sums = sums;
    list->spans = plug_new((count + 1) * sizeof *list->spans);
    status = list->spans != NULL ? WEFT_OK : WEFT_ERR_NO_MEMORY;
    if (status == WEFT_OK && count > 0) memcpy(list->spans, spans, count * sizeof *spans);
    if (status == WEFT_OK) status = fill(list);
    if (status == WEFT_OK)
        *out = list;
    else
        gpu_spans_destroy(list);
    return status;
}

void gpu_spans_destroy(void *made)
{
    struct gpu_spans *list = made;

    if (list == NULL) return;
    gpu_list_free(list->device, list->device_memory);
    plug_free(list->spans);
    plug_free(list);
}

/* ---- runs ---- */

static weft_status check_memory(const struct gpu_spans *list, void *const *memory)
{
    for (uint64_t i = 0; i < list->count; i++)
        if (list->spans[i].count > 0 && memory[i] == NULL)
            return plug_fail(WEFT_ERR_INVALID, "the memory of span %llu is NULL",
                             (unsigned long long)i);
    return WEFT_OK;
}

/* The addresses travel as arguments of kernels, so that the host's list may change. */
static weft_status write_addresses(const struct gpu_spans *list, void *const *memory,
                                   vendor_stream stream)
{
    struct wk_span_table_args args = {.table = (uintptr_t)list->addresses};

    for (; args.first < list->count; args.first += args.count) {
        uint64_t left = list->count - args.first;

        args.count = left < WK_SPAN_ADDRESSES ? left : WK_SPAN_ADDRESSES;
        for (uint64_t i = 0; i < args.count; i++)
            args.memory[i] = (uintptr_t)memory[args.first + i];
        PLUG_TRY(gpu_kernel_launch(list->device, GPU_KERNEL_SPAN_TABLE, 1, 1, &args, stream));
    }
    return WEFT_OK;
}

static struct wk_spans_args args_of(const struct gpu_spans *list)
{
    return (struct wk_spans_args){.tiles = list->tiles,
                                  .memory = list->addresses,
                                  .partials = list->partials,
                                  .tile_count = list->tile_count};
}

/* Launch BLOCKS blocks of KERNEL, unless there are none, over the spans at MEMORY. */
static weft_status launch(const struct gpu_spans *list, enum gpu_kernel kernel, uint32_t blocks,
                          void *const *memory, const struct wk_spans_args *args,
                          vendor_stream stream)
{
    if (list->tile_count > 0) PLUG_TRY(write_addresses(list, memory, stream));
    if (blocks == 0) return WEFT_OK;
    return gpu_kernel_launch(list->device, kernel, 1, blocks, args, stream);
}

static uint32_t power_of(double p)
{
    if (isinf(p)) return WK_POWER_LARGEST;
    return p == 1 ? WK_POWER_ONE : p == 2 ? WK_POWER_TWO : WK_POWER_ANY;
}

static weft_status add_powers(const struct gpu_spans *list, void *const *memory, double p,
                              double *sums, vendor_stream stream)
{
    static const enum gpu_kernel kernels[] = {[WK_POWER_ONE] = GPU_KERNEL_SPAN_POWERS_ONE,
                                              [WK_POWER_TWO] = GPU_KERNEL_SPAN_POWERS_TWO,
                                              [WK_POWER_ANY] = GPU_KERNEL_SPAN_POWERS_ANY,
                                              [WK_POWER_LARGEST] = GPU_KERNEL_SPAN_POWERS_LARGEST};
    struct wk_spans_args args = args_of(list);
    struct wk_span_sums_args of_sums = {
        .partials = list->partials, .first = list->first, .sums = sums, .power = power_of(p)};

    args.p = p;
    PLUG_TRY(launch(list, kernels[of_sums.power], list->tile_count, memory, &args, stream));
    return gpu_kernel_launch(list->device, GPU_KERNEL_SPAN_SUMS, 1, list->sums, &of_sums, stream);
}

weft_status gpu_spans_powers(void *made, void *const *memory, double p, double *sums, void *stream)
{
    struct gpu_spans *list = made;
    struct gpu_scope scope;
    weft_status status;

    if (!(p > 0)) return plug_fail(WEFT_ERR_INVALID, "spans_powers: p is %g", p);
    PLUG_TRY(check_memory(list, memory));
    if (list->sums == 0) return WEFT_OK;
    if (sums == NULL) return plug_fail(WEFT_ERR_INVALID, "spans_powers: sums is NULL");
    PLUG_TRY(gpu_enter(list->device, &scope));
    status = add_powers(list, memory, p, sums, gpu_native(stream));
    gpu_leave(&scope);
    return status;
}

weft_status gpu_spans_limit(void *made, void *const *memory, const weft_norm_limit *limit,
                            const double *sum, double *norm, void *stream)
{
    struct gpu_spans *list = made;
    struct wk_spans_args args = args_of(list);
    struct gpu_scope scope;
    weft_status status;

    if (limit->nonfinite > WEFT_NONFINITE_ZERO)
        return plug_fail(WEFT_ERR_UNSUPPORTED, "spans_limit: nonfinite is %u", limit->nonfinite);
    if (!(limit->p > 0) || !(limit->most >= 0))
        return plug_fail(WEFT_ERR_INVALID, "spans_limit: p is %g, most is %g", limit->p,
                         limit->most);
    if (sum == NULL || norm == NULL)
        return plug_fail(WEFT_ERR_INVALID, "spans_limit: sum or norm is NULL");
    PLUG_TRY(check_memory(list, memory));
    args.sum = sum;
    args.norm = norm;
    args.p = limit->p;
    args.most = limit->most;
    args.power = power_of(limit->p);
    args.nonfinite = limit->nonfinite;
    PLUG_TRY(gpu_enter(list->device, &scope));
    status = launch(list, GPU_KERNEL_SPAN_LIMIT, list->tile_count > 0 ? list->tile_count : 1,
                    memory, &args, gpu_native(stream));
    gpu_leave(&scope);
    return status;
}

weft_status gpu_spans_clamp(void *made, void *const *memory, double most, void *stream)
{
    struct gpu_spans *list = made;
    struct wk_spans_args args = args_of(list);
    struct gpu_scope scope;
    weft_status status;

    if (!(most >= 0)) return plug_fail(WEFT_ERR_INVALID, "spans_clamp: most is %g", most);
    PLUG_TRY(check_memory(list, memory));
    args.most = most;
    PLUG_TRY(gpu_enter(list->device, &scope));
    status =
        launch(list, GPU_KERNEL_SPAN_CLAMP, list->tile_count, memory, &args, gpu_native(stream));
    gpu_leave(&scope);
    return status;
}
