/* kernel_casts.c - casts whose every bit is defined: cast and regions_cast. */
#include "conform/checks/kernel_casts.h"

#include "conform/checks/collective.h"
#include "conform/checks/regions.h"

#include <math.h>
#include <string.h>

enum { SOURCES = 3 };

/* Bits of the mantissa; 0: not a float. */
static int mantissa_of(uint32_t dtype)
{
    static const int bits[WEFT_DTYPE_COUNT] = {
        [WEFT_DTYPE_F16] = 10, [WEFT_DTYPE_BF16] = 7,   [WEFT_DTYPE_F32] = 23,
        [WEFT_DTYPE_F64] = 52, [WEFT_DTYPE_F8E4M3] = 3, [WEFT_DTYPE_F8E5M2] = 2};

    return bits[dtype];
}

bool kit_cast_is_offered(uint32_t from, uint32_t to)
{
    bool integers = from >= WEFT_DTYPE_I8 && from <= WEFT_DTYPE_U64 && to >= WEFT_DTYPE_I8 &&
                    to <= WEFT_DTYPE_U64;

    if (from == to) return false;
    if (mantissa_of(from) > 0 && mantissa_of(to) > 0) return true;
    return integers && wf_dtype_bytes(from) < wf_dtype_bytes(to) &&
           (wf_dtype_is_signed(to) || !wf_dtype_is_signed(from));
}

static uint64_t load_bits(uint32_t dtype, const void *element)
{
    uint64_t bits = 0;

    memcpy(&bits, element, wf_dtype_bytes(dtype)); /* little-endian, as all hosts of weft */
    return bits;
}

/* A NaN keeps its sign and the leading bits of its payload, and becomes quiet. */
static uint64_t want_nan(uint32_t from, uint32_t to, uint64_t bits)
{
    int in = mantissa_of(from), out = mantissa_of(to), width = 8 * (int)wf_dtype_bytes(to);
    uint64_t sign = bits >> (8 * wf_dtype_bytes(from) - 1);
    uint64_t infinity = ((UINT64_C(1) << (width - 1 - out)) - 1) << out;
    uint64_t payload = bits << (64 - in) >> (64 - out);
    uint64_t code = infinity | UINT64_C(1) << (out - 1) | payload;

    if (to == WEFT_DTYPE_F8E4M3) code = 0x7f;
    if (to == WEFT_DTYPE_F8E5M2) code = 0x7e;
    return code | sign << (width - 1);
}

void kit_cast_want(uint32_t from, uint32_t to, const void *element, void *out)
{
    struct wf_number number = wf_number_load(from, element);
    uint64_t bits;

    if (mantissa_of(from) == 0 || !isnan(number.re)) {
        wf_number_store(to, number, out);
        return;
    }
    bits = want_nan(from, to, load_bits(from, element));
    memcpy(out, &bits, wf_dtype_bytes(to));
}

/* Element I of buffer SOURCE: every code of 8 bits; else random bits, and numbers near 1, among
 * which all dtypes round. */
static void make_element(const struct kit *kit, uint32_t dtype, uint32_t source, uint64_t i,
                         void *out)
{
    uint8_t code = (uint8_t)i;

    kit_pattern_bits(kit_case_seed(kit), dtype, (int32_t)source, i, out);
    if (wf_dtype_bytes(dtype) == 1)
        memcpy(out, &code, 1);
    else if (mantissa_of(dtype) > 0 && i % 2 == 0)
        wf_number_store(dtype, (struct wf_number){.re = ldexp((double)(i * 977 % 4096), -11)}, out);
}

static void cast(struct kit *kit, uint32_t from, uint32_t to)
{
    uint64_t count = 600, in = wf_dtype_bytes(from), out = wf_dtype_bytes(to);
    struct kit_image source = {0}, target = {0};
    weft_status status;

    if (!kit_begin(kit, "cast_bits/%s/%s", wf_dtype_name(from), wf_dtype_name(to))) return;
    if (kit_image_make(kit, &source, count * in, 0, KIT_DEVICE) &&
        kit_image_make(kit, &target, count * out, 0, KIT_DEVICE)) {
        for (uint64_t i = 0; i < count; i++)
            make_element(kit, from, 0, i, source.before + source.start + i * in);
        if (kit_image_upload(kit, &source) && kit_image_upload(kit, &target)) {
            for (uint64_t i = 0; i < count; i++)
                kit_cast_want(from, to, source.before + source.start + i * in,
                              target.want + target.start + i * out);
            status =
                kit->plugin->kernel->cast(kit->device, from, to, count, kit_image_at(&source, 0),
                                          kit_image_at(&target, 0), NULL);
            if (status == WEFT_OK) status = kit_finish(kit, NULL, NULL, 10 * KIT_SECOND);
            if (status != WEFT_ERR_UNSUPPORTED && kit_ok(kit, "cast", status))
                kit_image_check(kit, &target, "target", &(struct kit_compare){.dtype = to});
        }
    }
    kit_image_free(kit, &source);
    kit_image_free(kit, &target);
    kit_end(kit);
}

/* ---- regions ---- */

struct bench {
    struct kit *kit;
    uint32_t from, to;
    struct kit_image sources[SOURCES], target;
    const weft_region *region;
};

static void want_element(void *self, uint64_t source_index, uint64_t target_index)
{
    struct bench *b = self;
    uint8_t element[16];

    make_element(b->kit, b->from, b->region->source, source_index, element);
    kit_cast_want(b->from, b->to, element,
                  b->target.want + b->target.start + target_index * wf_dtype_bytes(b->to));
}

static bool make_bench(struct bench *b, const struct kit_region_list *list)
{
    uint64_t in = wf_dtype_bytes(b->from);

    for (uint32_t s = 0; s < SOURCES; s++) {
        struct kit_image *image = &b->sources[s];
        if (!kit_image_make(b->kit, image, list->source_elements * in, 0, KIT_DEVICE)) return false;
        for (uint64_t i = 0; i < list->source_elements; i++)
            make_element(b->kit, b->from, s, i, image->before + image->start + i * in);
        if (!kit_image_upload(b->kit, image)) return false;
    }
    if (!kit_image_make(b->kit, &b->target, list->target_elements * wf_dtype_bytes(b->to), 0,
                        KIT_DEVICE) ||
        !kit_image_upload(b->kit, &b->target))
        return false;
    for (uint32_t i = 0; i < list->count; i++) {
        b->region = &list->regions[i];
        kit_region_walk(b->region, want_element, b);
    }
    return true;
}

static void run_bench(struct bench *b, const struct kit_region_list *list)
{
    const weft_kernel_table *table = b->kit->plugin->kernel;
    const void *sources[SOURCES];
    void *targets[] = {kit_image_at(&b->target, 0)}, *made = NULL;
    weft_status status;

    for (uint32_t s = 0; s < SOURCES; s++)
        sources[s] = kit_image_at(&b->sources[s], 0);
    if (!kit_ok(b->kit, "regions_create",
                table->regions_create(b->kit->device, (uint32_t)wf_dtype_bytes(b->from),
                                      list->count, list->regions, &made)))
        return;
    status = table->regions_cast(made, b->from, b->to, sources, targets, NULL);
    if (status == WEFT_OK) status = kit_finish(b->kit, NULL, NULL, 10 * KIT_SECOND);
    if (status != WEFT_ERR_UNSUPPORTED && kit_ok(b->kit, "regions_cast", status)) {
        kit_image_check(b->kit, &b->target, "target", &(struct kit_compare){.dtype = b->to});
        for (uint32_t s = 0; s < SOURCES; s++)
            kit_image_check(b->kit, &b->sources[s], "a source",
                            &(struct kit_compare){.dtype = b->from});
    }
    table->regions_destroy(made);
}

static void cast_regions(struct kit *kit, const struct kit_region_list *list, uint32_t from,
                         uint32_t to)
{
    struct bench b = {.kit = kit, .from = from, .to = to};

    if (!kit_begin(kit, "regions_cast/%s/%s/%s", list->name, wf_dtype_name(from),
                   wf_dtype_name(to)))
        return;
    if (make_bench(&b, list)) run_bench(&b, list);
    for (uint32_t s = 0; s < SOURCES; s++)
        kit_image_free(kit, &b.sources[s]);
    kit_image_free(kit, &b.target);
    kit_end(kit);
}

void kit_kernel_casts(struct kit *kit)
{
    bool regions = kit->plugin->kernel->regions_cast != NULL;
    struct kit_region_list list;

    for (uint32_t from = 0; from < WEFT_DTYPE_C64; from++)
        for (uint32_t to = 0; to < WEFT_DTYPE_C64; to++) {
            if (!kit_cast_is_offered(from, to)) continue;
            cast(kit, from, to);
            if (regions && kit_region_list(7, SOURCES, &list)) cast_regions(kit, &list, from, to);
        }
    for (uint32_t which = 0; regions && kit_region_list(which, SOURCES, &list); which++) {
        cast_regions(kit, &list, WEFT_DTYPE_F32, WEFT_DTYPE_BF16);
        cast_regions(kit, &list, WEFT_DTYPE_F8E4M3, WEFT_DTYPE_F64);
        cast_regions(kit, &list, WEFT_DTYPE_U8, WEFT_DTYPE_I32);
    }
}
