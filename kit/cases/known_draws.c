/* known_draws.c - random numbers that are known without the code that plugins draw with.
 *
 * The words of the first table row are published with Philox-4x32-10; those of the second follow
 * from it by definition.  The normal numbers and quantiles were computed from the words by the
 * definitions of docs/random.md, with 60 digits.  Other numbers follow from the words exactly. */
#include "cases.h"

#include "kernel_draws.h"

#include "checks/bench.h"

#include <math.h>
#include <string.h>

enum { WORDS = 8 }; /* of two blocks */

__extension__ typedef unsigned __int128 natural_128;

/* What elements of 32-bit and of 64-bit words are. */
struct values {
    double narrow[WORDS], wide[WORDS / 2];
};

struct known {
    uint64_t seed, offset, block; /* the first of two blocks */
    uint32_t words[WORDS];
    struct values normal;
    struct values quantile; /* of a number from 0 to 1 */
    struct values far;      /* of 2^-70 and a number from 0 to 2^-64 */
};

static const struct known known[] = {
    {0,
     0,
     0,
     {0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8, 0xF8E4CCA4, 0x5CB200DB, 0xB1A574EB,
      0x097EFF67},
     {{0.991137679254033008, -0.924662588390511597, -0.617608959811804032, -0.482068587035424003,
       -0.153638230165615814, 0.180825897891821219, 0.831735104675157547, 0.197439719217322043},
      {-0.397667538444182205, -0.310395478801738387, 1.38684442710283786, 0.329213200192143841}},
     {{-0.255815970432981499, 1.17759123917213513, 0.630183656356043476, 0.267562249390520004,
       1.91480327327364935, -0.35287489689493245, 0.507023739647120312, -1.78545119223443224},
      {1.17759123905427295, 0.267562249533099874, -0.352874896601618297, -1.7854511916772371}},
     {{-9.17547505128140459, -9.09208213120691421, -9.11122067061891648, -9.1318468382633505,
       -9.08148375529868801, -9.18552607308262393, -9.11742527311121937, -9.39510986175258976},
      {-9.09208213120976534, -9.13184683825378655, -9.18552607305129603, -9.39510986166242644}}},
    {UINT64_C(0x299F31D0A4093822),
     UINT64_C(0x0370734413198A2E),
     UINT64_C(0x3243F6A88),
     {0xEED885AF, 0xE7610B66, 0x67F15A48, 0x7AD698D4, 0xC0B7FE2D, 0x52D83F76, 0xF77D5973,
      0x0188A658},
     {{0.306491219309872073, -0.211617096054865849, -1.33187670321228678, 0.169641242738593486,
       -0.336252832597666655, 0.674407492326971447, 0.259849218687009063, 0.00978660208629503275},
      {-0.446107035795476456, 0.0568206887361300174, 1.50107387160589303, 0.0565343752434543337}},
     {{1.49844656240616288, 1.30365588844520626, -0.237778366000791527, -0.0505627067641820058,
       0.683351145583108009, -0.457621544614652455, 1.83512521042214286, -2.5126527850361335},
      {1.30365588903629848, -0.0505627068190970405, -0.457621544450822302, -2.51265277863638503}},
     {{-9.0858947730918175, -9.08929106617735075, -9.17367650065959323, -9.15627810892610699,
       -9.10877988239846634, -9.19708202377885795, -9.08208962997350603, -9.48850779078347793},
      {-9.08929106616542858, -9.1562781089308744, -9.19708202376020767, -9.48850779025933079}}},
};

struct draws {
    const struct known *known;
    weft_draw draw;
    bool far;       /* TRUNCATED: the shares of `far` */
    uint64_t first; /* the number of the first element */
};

/* ---- what elements are ---- */

/* Parts of numbers have more than 32 bits. */
static bool is_wide(uint32_t dtype)
{
    return dtype == WEFT_DTYPE_F64 || dtype == WEFT_DTYPE_C128;
}

/* Bits of the significand of a part, the first one included. */
static int precision_of(uint32_t dtype)
{
    return (int)-log2(wf_dtype_epsilon(dtype));
}

static uint64_t wide_word(const struct known *k, uint32_t i)
{
    return k->words[2 * i] | (uint64_t)k->words[2 * i + 1] << 32;
}

/* The real number I. */
static double real_number(const struct draws *b, uint32_t i)
{
    const struct known *k = b->known;
    const struct values *values = b->far ? &k->far : &k->quantile;
    bool wide = is_wide(b->draw.dtype);
    int dropped = (wide ? 64 : 32) - precision_of(b->draw.dtype);

    if (b->draw.distribution == WEFT_DRAW_UNIFORM)
        return b->draw.first +
               (double)((wide ? wide_word(k, i) : k->words[i]) >> dropped) * b->draw.unit;
    if (b->draw.distribution == WEFT_DRAW_NORMAL) values = &k->normal;
    return b->draw.mean + b->draw.deviation * (wide ? values->wide[i] : values->narrow[i]);
}

/* Returns the allowed error. */
static double want_real(const struct draws *b, uint32_t i, void *out)
{
    uint32_t dtype = b->draw.dtype;
    bool two = wf_dtype_is_complex(dtype);
    struct wf_number number = {.re = real_number(b, two ? 2 * i : i)};

    if (two) number.im = real_number(b, 2 * i + 1);
    wf_number_store(dtype, number, out);
    if (b->draw.distribution == WEFT_DRAW_UNIFORM) return 0;
    if (is_wide(dtype)) return 2e-14;
    return 4e-6 + (wf_dtype_bytes(dtype) < 4 ? 2 * wf_dtype_epsilon(dtype) * fabs(number.re) : 0);
}

static void want_integer(const struct draws *b, uint32_t i, void *out)
{
    size_t bytes = wf_dtype_bytes(b->draw.dtype);
    uint64_t word = bytes <= 4 ? b->known->words[i] : wide_word(b->known, bytes == 16 ? 2 * i : i);
    uint64_t value = b->draw.least + word;

    if (b->draw.distribution == WEFT_DRAW_CHOICE) {
        memcpy(out, word < b->draw.threshold ? b->draw.below : b->draw.above, bytes);
        return;
    }
    if (b->draw.range != 0)
        value =
            b->draw.least + (uint64_t)((natural_128)word * b->draw.range >> (bytes <= 4 ? 32 : 64));
    memcpy(out, &value, bytes); /* little-endian, as all hosts of weft */
}

/* ---- cases ---- */

static void set_draw(struct draws *b, uint32_t distribution, uint32_t dtype)
{
    bool is_raw = dtype == WEFT_DTYPE_U32 || dtype == WEFT_DTYPE_U64;
    bool is_bool = dtype == WEFT_DTYPE_BOOL;
    weft_draw *draw = &b->draw;

    *draw = (weft_draw){.struct_size = sizeof *draw,
                        .distribution = distribution,
                        .dtype = dtype,
                        .seed = b->known->seed,
                        .offset = b->known->offset};
    if (distribution == WEFT_DRAW_UNIFORM) {
        draw->first = -1;
        draw->unit = ldexp(1, 1 - precision_of(dtype));
        draw->last = 1 - draw->unit;
    } else if (distribution == WEFT_DRAW_INTEGERS) {
        draw->least = is_raw || is_bool ? 0 : 3;
        draw->range = is_raw ? 0 : is_bool ? 2 : 100;
    } else if (distribution == WEFT_DRAW_CHOICE) {
        draw->threshold = UINT64_C(1) << (wf_dtype_bytes(dtype) <= 4 ? 31 : 63);
        memset(draw->below, is_bool ? 0 : 0x21, wf_dtype_bytes(dtype));
        memset(draw->above, is_bool ? 1 : 0x43, wf_dtype_bytes(dtype));
    } else {
        draw->mean = 0.25;
        draw->deviation = distribution == WEFT_DRAW_NORMAL ? 2 : -1;
    }
    if (distribution != WEFT_DRAW_TRUNCATED) return;
    draw->first = -16;
    draw->last = 16;
    draw->share = b->far ? 0x1p-70 : 0;
    draw->width = b->far ? 0x1p-64 : 1;
}

static bool are_bits(const struct draws *b)
{
    return b->draw.distribution == WEFT_DRAW_CHOICE || b->draw.distribution == WEFT_DRAW_INTEGERS;
}

static double want(const struct kit_bench *bench, uint32_t source, uint64_t index, void *out)
{
    const struct draws *b = bench->self;

    (void)source;
    if (!are_bits(b)) return want_real(b, (uint32_t)(index - b->first), out);
    want_integer(b, (uint32_t)(index - b->first), out);
    return 0;
}

static void check_known(struct kit *kit, const struct known *k, uint32_t distribution,
                        uint32_t dtype, bool far)
{
    uint32_t bytes = (uint32_t)wf_dtype_bytes(dtype), count = bytes <= 4 ? WORDS : 32 / bytes;
    struct draws b = {.known = k, .far = far, .first = k->block * (count / 2)};
    struct kit_bench bench = {.kit = kit, .from = dtype, .to = dtype, .want = want, .self = &b};
    struct kit_region_list list = {.count = 1,
                                   .target_elements = count,
                                   .regions = {{.dims = 1,
                                                .source_offset = (int64_t)b.first,
                                                .extent = {count},
                                                .source_stride = {1},
                                                .target_stride = {1}}}};

    set_draw(&b, distribution, dtype);
    bench.by_value = !are_bits(&b);
    if (kit_bench_make_regions(&bench, &list) &&
        kit_done_if_supported(
            kit, "regions_draw",
            kit->plugin->kernel->regions_draw(bench.regions, &b.draw, bench.target_pointers, NULL)))
        kit_bench_check(&bench);
    kit_bench_free(&bench);
}

void kit_known_draw(struct kit *kit, uint32_t distribution, uint32_t dtype, const char *name)
{
    if (!kit_begin(kit, "regions_draw/known/%s/%s", wf_dtype_name(dtype), name)) return;
    for (size_t i = 0; i < WF_COUNT(known); i++) {
        check_known(kit, &known[i], distribution, dtype, false);
        if (distribution == WEFT_DRAW_TRUNCATED)
            check_known(kit, &known[i], distribution, dtype, true);
    }
    kit_end(kit);
}
