/* kernel_draws.c - random numbers of regions: every bit is defined by docs/random.md.
 *
 * The expected elements are computed one by one, with the formulas that plugins may compile too;
 * known_draws.c would find an error in these.  Compiled without fused multiply-add. */
#include "cases.h"

#include "kernel_draws.h"

#include "kit/arithmetic/random_formulas.h"
#include "checks/casts.h"
#include "checks/bench.h"

#include <string.h>

enum { DISTRIBUTIONS = 5 };

static const char *const names[DISTRIBUTIONS] = {"uniform", "normal", "truncated", "choice",
                                                 "integers"};

static bool is_integer(uint32_t dtype)
{
    return dtype <= WEFT_DTYPE_U64;
}

static bool is_defined(uint32_t distribution, uint32_t dtype)
{
    if (distribution == WEFT_DRAW_CHOICE) return true;
    if (distribution == WEFT_DRAW_INTEGERS) return is_integer(dtype);
    return !is_integer(dtype) &&
           !(distribution == WEFT_DRAW_TRUNCATED && wf_dtype_is_complex(dtype));
}

/* ---- the element with a number ---- */

struct block {
    uint32_t words[4];
};

static struct block block_of(const weft_draw *draw, uint64_t number)
{
    struct block b = {{(uint32_t)number, (uint32_t)(number >> 32), (uint32_t)draw->offset,
                       (uint32_t)(draw->offset >> 32)}};

    for (uint32_t r = 0; r < PHILOX_ROUNDS; r++)
        philox_round(&b.words[0], &b.words[1], &b.words[2], &b.words[3],
                     (uint32_t)draw->seed + r * PHILOX_WEYL_0,
                     (uint32_t)(draw->seed >> 32) + r * PHILOX_WEYL_1);
    return b;
}

static uint64_t word_64(const struct block *b, uint32_t i)
{
    return b->words[2 * i] | (uint64_t)b->words[2 * i + 1] << 32;
}

/* Bits of the significand, the first one included. */
static uint32_t precision_of(uint32_t dtype)
{
    static const uint32_t bits[WEFT_DTYPE_COUNT] = {[WEFT_DTYPE_F16] = 11,
                                                    [WEFT_DTYPE_BF16] = 8,
                                                    [WEFT_DTYPE_F32] = 24,
                                                    [WEFT_DTYPE_F8E4M3] = 4,
                                                    [WEFT_DTYPE_F8E5M2] = 3};

    return bits[dtype];
}

/* Number INDEX of f64. */
static double wide_float(const weft_draw *draw, uint64_t index)
{
    struct block b = block_of(draw, index / 2);
    double pair[2];

    if (draw->distribution == WEFT_DRAW_UNIFORM)
        return uniform_f64(word_64(&b, index % 2), draw->first, draw->unit, draw->last);
    if (draw->distribution == WEFT_DRAW_TRUNCATED)
        return truncated_normal(draw->share + unit_f64(word_64(&b, index % 2)) * draw->width,
                                draw->mean, draw->deviation, draw->first, draw->last);
    normal_pair_f64(word_64(&b, 0), word_64(&b, 1), &pair[0], &pair[1]);
    return draw->mean + draw->deviation * pair[index % 2];
}

/* Number INDEX of DTYPE, of up to 32 bits. */
static void near_float(const weft_draw *draw, uint32_t dtype, uint64_t index, void *out)
{
    struct block b = block_of(draw, index / 4);
    uint32_t word = b.words[index % 4], first = (uint32_t)(index % 4 & 2);
    float pair[2], value;

    if (draw->distribution == WEFT_DRAW_TRUNCATED) {
        double wide = truncated_normal(draw->share + unit_of_word_32(word) * draw->width,
                                       draw->mean, draw->deviation, draw->first, draw->last);
        kit_cast_want(WEFT_DTYPE_F64, dtype, &wide, out);
        return;
    }
    if (draw->distribution == WEFT_DRAW_UNIFORM) {
        value = uniform_f32(word, 32 - precision_of(dtype), (float)draw->first, (float)draw->unit,
                            (float)draw->last);
    } else {
        normal_pair_f32(b.words[first], b.words[first + 1], &pair[0], &pair[1]);
        value = (float)draw->mean + (float)draw->deviation * pair[index % 2];
    }
    if (dtype == WEFT_DTYPE_F32)
        memcpy(out, &value, sizeof value);
    else
        kit_cast_want(WEFT_DTYPE_F32, dtype, &value, out);
}

static void want_float(const weft_draw *draw, uint64_t index, uint8_t *out)
{
    bool complex = wf_dtype_is_complex(draw->dtype);
    bool wide = draw->dtype == WEFT_DTYPE_F64 || draw->dtype == WEFT_DTYPE_C128;

    for (uint64_t part = 0; part < (complex ? 2 : 1); part++) {
        uint64_t number = complex ? 2 * index + part : index;
        double value;

        if (!wide) {
            near_float(draw, complex ? WEFT_DTYPE_F32 : draw->dtype, number, out + 4 * part);
            continue;
        }
        value = wide_float(draw, number);
        memcpy(out + 8 * part, &value, sizeof value);
    }
}

/* The upper half of the product of A, of BITS bits, and B. */
static uint64_t upper_half(uint64_t a, uint64_t b, uint32_t bits)
{
    uint64_t upper = 0, lower = 0;

    if (bits == 32) return a * b >> 32;
    for (int i = 63; i >= 0; i--) { /* twice the sum so far, and A if the bit of B is set */
        upper = upper << 1 | lower >> 63;
        lower <<= 1;
        if ((b >> i & 1) == 0) continue;
        lower += a;
        upper += lower < a;
    }
    return upper;
}

static void want_bits(const weft_draw *draw, uint64_t index, uint8_t *out)
{
    uint32_t bytes = (uint32_t)wf_dtype_bytes(draw->dtype), each = bytes <= 4 ? 4 : 16 / bytes;
    struct block b = block_of(draw, index / each);
    uint32_t at = (uint32_t)(index % each);
    uint64_t word = bytes <= 4 ? b.words[at] : word_64(&b, at), value;

    if (draw->distribution == WEFT_DRAW_CHOICE) {
        memcpy(out, word < draw->threshold ? draw->below : draw->above, bytes);
        return;
    }
    value = draw->least +
            (draw->range == 0 ? word : upper_half(word, draw->range, bytes <= 4 ? 32 : 64));
    memcpy(out, &value, bytes); /* little-endian, as all hosts of weft */
}

/* ---- cases ---- */

static weft_draw make_draw(const struct kit *kit, uint32_t distribution, uint32_t dtype)
{
    bool wide = wf_dtype_bytes(dtype) > 4, is_bool = dtype == WEFT_DTYPE_BOOL;
    weft_draw draw = {.struct_size = sizeof draw,
                      .distribution = distribution,
                      .dtype = dtype,
                      .seed = kit_case_seed(kit),
                      .offset = UINT64_C(0x100000005)};

    if (distribution == WEFT_DRAW_UNIFORM || distribution == WEFT_DRAW_TRUNCATED) {
        draw.first = -1;
        draw.last = 1.75;
    }
    if (distribution == WEFT_DRAW_UNIFORM)
        draw.unit =
            dtype == WEFT_DTYPE_F64 || dtype == WEFT_DTYPE_C128
                ? 2.9 / 0x1p53
                : (double)(2.9f / (float)(UINT32_C(1) << precision_of(
                                              dtype == WEFT_DTYPE_C64 ? WEFT_DTYPE_F32 : dtype)));
    if (distribution == WEFT_DRAW_NORMAL || distribution == WEFT_DRAW_TRUNCATED) {
        draw.mean = 0.25;
        draw.deviation = distribution == WEFT_DRAW_NORMAL ? 2 : -1;
    }
    if (distribution == WEFT_DRAW_TRUNCATED) {
        draw.share = 0.125;
        draw.width = 0.8;
    }
    if (distribution == WEFT_DRAW_INTEGERS) {
        draw.least = is_bool ? 0 : 3;
        draw.range = is_bool ? 2 : dtype == WEFT_DTYPE_U64 ? 0 : 100;
    }
    if (distribution != WEFT_DRAW_CHOICE) return draw;
    draw.threshold = wide ? UINT64_C(0x4000000000000000) : UINT64_C(0x40000000);
    memset(draw.below, is_bool ? 0 : 0x21, wf_dtype_bytes(dtype));
    memset(draw.above, is_bool ? 1 : 0x43, wf_dtype_bytes(dtype));
    return draw;
}

static double want(const struct kit_bench *b, uint32_t source, uint64_t index, void *out)
{
    const weft_draw *draw = b->self;

    (void)source;
    if (draw->distribution == WEFT_DRAW_CHOICE || draw->distribution == WEFT_DRAW_INTEGERS)
        want_bits(draw, index, out);
    else
        want_float(draw, index, out);
    return 0;
}

/* AHEAD: the regions take elements whose numbers begin there. */
static void draw_regions(struct kit *kit, uint32_t which, uint32_t distribution, uint32_t dtype,
                         int64_t ahead)
{
    struct kit_bench b = {.kit = kit, .from = dtype, .to = dtype, .want = want};
    struct kit_region_list list;
    weft_draw draw;

    if (!kit_region_list(which, 1, &list)) return;
    if (!kit_begin(kit, "regions_draw/%s/%s/%s%s", list.name, wf_dtype_name(dtype),
                   names[distribution], ahead != 0 ? "/ahead" : ""))
        return;
    for (uint32_t i = 0; i < list.count; i++)
        list.regions[i].source_offset += ahead;
    draw = make_draw(kit, distribution, dtype);
    b.self = &draw;
    if (kit_bench_make_regions(&b, &list) &&
        kit_done_if_supported(
            kit, "regions_draw",
            kit->plugin->kernel->regions_draw(b.regions, &draw, b.target_pointers, NULL)))
        kit_bench_check(&b);
    kit_bench_free(&b);
    kit_end(kit);
}

/* An empty list asks, and a wrong size of the elements is refused. */
void kit_kernel_regions_draw_asked(struct kit *kit)
{
    const weft_kernel_table *table = kit->plugin->kernel;
    weft_draw draw = make_draw(kit, WEFT_DRAW_UNIFORM, WEFT_DTYPE_F32);
    weft_status status;
    void *list = NULL;

    if (kit_ok(kit, "regions_create", table->regions_create(kit->device, 4, 0, NULL, &list))) {
        status = table->regions_draw(list, &draw, NULL, NULL);
        kit_check(kit, status == WEFT_OK || status == WEFT_ERR_UNSUPPORTED,
                  "regions_draw of an empty list: WEFT_%s", weft_status_name(status));
        draw.dtype = WEFT_DTYPE_F64;
        if (status == WEFT_OK)
            kit_expect(kit, "regions_draw of f64 with a list of 4-byte elements",
                       table->regions_draw(list, &draw, NULL, NULL), WEFT_ERR_INVALID);
        table->regions_destroy(list);
    }
}

void kit_kernel_draws(struct kit *kit)
{
    enum { ROW = 1, STRIDED = 2 };
    const int64_t ahead = (INT64_C(1) << 34) + 1; /* numbers of blocks have more than 32 bits */
    struct kit_region_list list;

    for (uint32_t distribution = 0; distribution < DISTRIBUTIONS; distribution++)
        for (uint32_t dtype = 0; dtype < WEFT_DTYPE_COUNT; dtype++) {
            if (!is_defined(distribution, dtype)) continue;
            draw_regions(kit, ROW, distribution, dtype, 0);
            draw_regions(kit, ROW, distribution, dtype, ahead);
            draw_regions(kit, STRIDED, distribution, dtype, 0);
            kit_known_draw(kit, distribution, dtype, names[distribution]);
        }
    for (uint32_t which = 0; kit_region_list(which, 1, &list); which++)
        if (which != ROW && which != STRIDED)
            draw_regions(kit, which, WEFT_DRAW_NORMAL, WEFT_DTYPE_F32, 0);
}

bool kit_when_draws(struct kit *kit)
{
    return kit->plugin->kernel->regions_draw != NULL;
}
