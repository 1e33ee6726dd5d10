/* kernel_casts.c - casts whose every bit is defined: cast and regions_cast. */
#include "cases.h"

#include "checks/bench.h"
#include "checks/casts.h"

#include <math.h>
#include <string.h>

/* Element I of buffer SOURCE: every code of 8 bits; else random bits, and numbers near 1, among
 * which all dtypes round. */
static void element(const struct kit_bench *b, uint32_t source, uint64_t i, void *out)
{
    uint8_t code = (uint8_t)i;

    kit_pattern_bits(kit_case_seed(b->kit), b->from, (int32_t)source, i, out);
    if (wf_dtype_bytes(b->from) == 1)
        memcpy(out, &code, 1);
    else if (wf_dtype_is_float(b->from) && i % 2 == 0)
        wf_number_store(b->from, (struct wf_number){.re = ldexp((double)(i * 977 % 4096), -11)},
                        out);
}

static double want(const struct kit_bench *b, uint32_t source, uint64_t i, void *out)
{
    uint8_t bytes[16];

    element(b, source, i, bytes);
    kit_cast_want(b->from, b->to, bytes, out);
    return 0;
}

static void cast_regions(struct kit *kit, const struct kit_region_list *list, uint32_t from,
                         uint32_t to)
{
    struct kit_bench b = {.kit = kit,
                          .from = from,
                          .to = to,
                          .size = list->sources,
                          .element = element,
                          .want = want};

    if (!kit_begin(kit, "regions_cast/%s/%s/%s", list->name, wf_dtype_name(from),
                   wf_dtype_name(to)))
        return;
    if (kit_bench_make_regions(&b, list) &&
        kit_done_if_supported(kit, "regions_cast",
                              kit->plugin->kernel->regions_cast(
                                  b.regions, from, to, b.source_pointers, b.target_pointers, NULL)))
        kit_bench_check(&b);
    kit_bench_free(&b);
    kit_end(kit);
}

void kit_kernel_casts(struct kit *kit)
{
    enum { SOURCES = 3, MANY = 7 };
    bool regions = kit->plugin->kernel->regions_cast != NULL;
    struct kit_region_list list;

    for (uint32_t from = 0; from < WEFT_DTYPE_C64; from++)
        for (uint32_t to = 0; to < WEFT_DTYPE_C64; to++) {
            if (!kit_cast_is_offered(from, to)) continue;
            kit_bench_cast(&(struct kit_bench){.kit = kit,
                                               .from = from,
                                               .to = to,
                                               .size = 1,
                                               .element = element,
                                               .want = want},
                           "cast_bits", 600);
            if (regions && kit_region_list(MANY, SOURCES, &list))
                cast_regions(kit, &list, from, to);
        }
    for (uint32_t which = 0; regions && kit_region_list(which, SOURCES, &list); which++) {
        cast_regions(kit, &list, WEFT_DTYPE_F32, WEFT_DTYPE_BF16);
        cast_regions(kit, &list, WEFT_DTYPE_F8E4M3, WEFT_DTYPE_F64);
        cast_regions(kit, &list, WEFT_DTYPE_U8, WEFT_DTYPE_I32);
    }
}
