/* cpu_random.c - random elements from blocks of random words. */
#include "cpu_random.h"

#include "cpu_casts.h"
#include "random_formulas.h"

#include <string.h>

enum {
    BLOCKS = 256,       /* of a chunk; even */
    WORDS = 4 * BLOCKS, /* of 32 bits */
    BLOCK_BYTES = 16    /* elements of a block, of more than 16 bits */
};

union chunk {
    float singles[WORDS];
    double doubles[WORDS];
    char bytes[BLOCKS * BLOCK_BYTES];
};

/* ---- bits ---- */

/* COUNT blocks, four words each.  OUT has room for one block more. */
static void fill_words(const struct cpu_sampler *s, uint64_t first, size_t count, uint32_t *out)
{
    uint64_t before_wrap = (UINT64_C(1) << 32) - (uint32_t)first;

    if (count <= before_wrap) {
        s->kernels->draw_words(&s->draw.bits, first, count + (count & 1), out);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        uint32_t pair[8];

        s->kernels->draw_words(&s->draw.bits, first + i, 2, pair);
        memcpy(out + 4 * i, pair, 4 * sizeof *out);
    }
}

static uint64_t word_64(const uint32_t *words, size_t i)
{
    return words[2 * i] | (uint64_t)words[2 * i + 1] << 32;
}

/* ---- floats ---- */

/* Elements of up to 32 bits per part: COUNT of them, one word each. */
static void make_singles(const struct cpu_sampler *s, const uint32_t *words, size_t count,
                         float *out)
{
    const struct cpu_draw *draw = &s->draw;

    if (draw->distribution == CPU_UNIFORM) {
        s->kernels->draw_uniform(&s->range, words, count, out);
    } else if (draw->distribution == CPU_NORMAL) {
        s->kernels->draw_normal((float)draw->mean, (float)s->deviation, words, count, out);
    } else {
        float below = draw->distribution == CPU_DROPOUT ? 0 : 1, above = (float)s->above;

        for (size_t i = 0; i < count; i++)
            out[i] = words[i] < s->threshold ? below : above;
    }
}

static double truncated(const struct cpu_sampler *s, double unit)
{
    return truncated_normal(s->share + unit * s->width, s->draw.mean, s->deviation, s->first,
                            s->last);
}

/* Elements of 64 bits per part: COUNT of them, two words each. */
static void make_doubles(const struct cpu_sampler *s, const uint32_t *words, size_t count,
                         double *out)
{
    const struct cpu_draw *draw = &s->draw;

    for (size_t i = 0; i < count; i++) {
        uint64_t word = word_64(words, i);

        if (draw->distribution == CPU_UNIFORM) {
            out[i] = uniform_f64(word, s->first, s->unit, s->last);
        } else if (draw->distribution == CPU_TRUNCATED_NORMAL) {
            out[i] = truncated(s, unit_f64(word));
        } else if (draw->distribution == CPU_NORMAL) {
            double z[2];

            normal_pair_f64(word, word_64(words, i + 1), &z[0], &z[1]);
            out[i] = draw->mean + s->deviation * z[0];
            i++;
            out[i] = draw->mean + s->deviation * z[1];
        } else {
            bool below = s->is_certain || word < s->threshold;

            out[i] = below ? (draw->distribution == CPU_DROPOUT ? 0 : 1) : s->above;
        }
    }
}

/* Complex elements whose parts are not drawn apart: the imaginary part is 0. */
static void make_real(const struct cpu_sampler *s, const uint32_t *words, size_t count,
                      union chunk *out)
{
    double value;

    for (size_t i = 0; i < count; i++) {
        make_doubles(s, words + i * s->element / 4, 1, &value);
        if (s->draw.dtype == WEFT_DTYPE_C64) {
            out->singles[2 * i] = (float)value;
            out->singles[2 * i + 1] = 0;
        } else {
            out->doubles[2 * i] = value;
            out->doubles[2 * i + 1] = 0;
        }
    }
}

/* ---- integers ---- */

__extension__ typedef unsigned __int128 natural_128;

static void store_integer(uint32_t bytes, uint64_t value, char *out)
{
    uint32_t four = (uint32_t)value;
    uint16_t two = (uint16_t)value;
    uint8_t one = (uint8_t)value;

    if (bytes == 8) memcpy(out, &value, 8);
    if (bytes == 4) memcpy(out, &four, 4);
    if (bytes == 2) memcpy(out, &two, 2);
    if (bytes == 1) memcpy(out, &one, 1);
}

static uint64_t integer_of(const struct cpu_sampler *s, uint64_t word)
{
    const struct cpu_draw *draw = &s->draw;
    uint32_t bits = s->element == 8 ? 64 : 32;

    if (draw->distribution == CPU_BERNOULLI) return s->is_certain || word < s->threshold;
    if (draw->range == 0) return (uint64_t)draw->first + word;
    return (uint64_t)draw->first + (uint64_t)((natural_128)word * draw->range >> bits);
}

static void make_integers(const struct cpu_sampler *s, const uint32_t *words, size_t count,
                          char *out)
{
    for (size_t i = 0; i < count; i++)
        store_integer(s->element, integer_of(s, s->element == 8 ? word_64(words, i) : words[i]),
                      out + i * s->element);
}

/* ---- chunks ---- */

static bool is_integer(uint32_t dtype)
{
    return dtype <= WEFT_DTYPE_U64;
}

static bool has_two_parts(uint32_t dtype)
{
    return dtype == WEFT_DTYPE_C64 || dtype == WEFT_DTYPE_C128;
}

/* Elements per block. */
static uint32_t per_block(const struct cpu_sampler *s)
{
    return s->element <= 4 ? 4 : BLOCK_BYTES / s->element;
}

/* Elements of floats that have at most 32 bits. */
static void make_small(const struct cpu_sampler *s, const uint32_t *words, size_t count, void *out)
{
    uint32_t dtype = s->draw.dtype;
    union chunk made;

    if (s->draw.distribution == CPU_TRUNCATED_NORMAL) {
        for (size_t i = 0; i < count; i++)
            made.doubles[i] = truncated(s, unit_of_word_32(words[i]));
        cpu_cast_elements(s->kernels, WEFT_DTYPE_F64, dtype, made.doubles, out, count);
    } else {
        make_singles(s, words, count, made.singles);
        cpu_cast_elements(s->kernels, WEFT_DTYPE_F32, dtype, made.singles, out, count);
    }
}

/* All elements of COUNT blocks. */
static void make_blocks(const struct cpu_sampler *s, uint64_t first, size_t count, void *out)
{
    uint32_t words[WORDS + 4], dtype = s->draw.dtype, distribution = s->draw.distribution;
    bool apart = distribution == CPU_UNIFORM || distribution == CPU_NORMAL;

    fill_words(s, first, count, words);
    if (is_integer(dtype))
        make_integers(s, words, count * per_block(s), out);
    else if (has_two_parts(dtype) && !apart)
        make_real(s, words, count * per_block(s), out);
    else if (dtype == WEFT_DTYPE_F64 || dtype == WEFT_DTYPE_C128)
        make_doubles(s, words, 2 * count, out);
    else if ((dtype == WEFT_DTYPE_F32 || dtype == WEFT_DTYPE_C64) &&
             distribution != CPU_TRUNCATED_NORMAL)
        make_singles(s, words, 4 * count, out);
    else
        make_small(s, words, 4 * count, out);
}

void cpu_sample(const struct cpu_sampler *sampler, uint64_t first, size_t count, void *target)
{
    uint32_t each = per_block(sampler), element = sampler->element;
    char *out = target;
    union chunk made;

    while (count > 0) {
        uint64_t block = first / each, skip = first % each;
        size_t blocks =
            count + skip > (size_t)BLOCKS * each ? BLOCKS : (count + skip + each - 1) / each;
        size_t some = blocks * each - skip;

        if (skip == 0 && some <= count) {
            make_blocks(sampler, block, blocks, out);
        } else {
            if (some > count) some = count;
            make_blocks(sampler, block, blocks, made.bytes);
            memcpy(out, made.bytes + skip * element, some * element);
        }
        out += some * element;
        first += some;
        count -= some;
    }
}

/* ---- what follows from a draw ---- */

/* The value of DTYPE next to VALUE, one of its values. */
static double next_value(const struct cpu_kernels *kernels, uint32_t dtype, double value, bool up)
{
    uint64_t bits = 0, sign = UINT64_C(1) << (8 * kit_dtype_bytes(dtype) - 1);
    int64_t rank; /* of the value among all, 0 for both zeros */

    cpu_cast_elements(kernels, WEFT_DTYPE_F64, dtype, &value, &bits, 1);
    rank = bits & sign ? -(int64_t)(bits ^ sign) : (int64_t)bits;
    rank += up ? 1 : -1;
    bits = rank < 0 ? (uint64_t)-rank | sign : (uint64_t)rank;
    cpu_cast_elements(kernels, dtype, WEFT_DTYPE_F64, &bits, &value, 1);
    return value;
}

static double rounded(const struct cpu_kernels *kernels, uint32_t dtype, double value)
{
    uint64_t bits = 0;

    cpu_cast_elements(kernels, WEFT_DTYPE_F64, dtype, &value, &bits, 1);
    cpu_cast_elements(kernels, dtype, WEFT_DTYPE_F64, &bits, &value, 1);
    return value;
}

/* The share of the standard normal numbers below Z: the number whose quantile is Z. */
static double normal_share(double z)
{
    uint64_t least = UINT64_C(0x0100000000000000), most = UINT64_C(0x3FE0000000000000);
    double p;

    if (z > 0) return 1.0 - normal_share(-z);
    while (most - least > 1) {
        uint64_t middle = least + (most - least) / 2;

        memcpy(&p, &middle, sizeof p);
        if (normal_quantile(p) < z)
            least = middle;
        else
            most = middle;
    }
    memcpy(&p, &most, sizeof p);
    return p;
}

/* Bits of the significand, the first one included. */
static uint32_t precision_of(uint32_t dtype)
{
    switch (dtype) {
    case WEFT_DTYPE_F16:
        return 11;
    case WEFT_DTYPE_BF16:
        return 8;
    case WEFT_DTYPE_F8E4M3:
        return 4;
    case WEFT_DTYPE_F8E5M2:
        return 3;
    default:
        return 24;
    }
}

static void set_range(struct cpu_sampler *s)
{
    const struct cpu_draw *draw = &s->draw;
    bool open = draw->distribution == CPU_UNIFORM;
    uint32_t part = draw->dtype == WEFT_DTYPE_C64    ? WEFT_DTYPE_F32
                    : draw->dtype == WEFT_DTYPE_C128 ? WEFT_DTYPE_F64
                                                     : draw->dtype;
    uint32_t precision = precision_of(part);

    s->first = rounded(s->kernels, part, draw->low);
    if (s->first < draw->low) s->first = next_value(s->kernels, part, s->first, true);
    s->last = rounded(s->kernels, part, draw->high);
    if (s->last > draw->high || (open && s->last >= draw->high))
        s->last = next_value(s->kernels, part, s->last, false);
    s->unit = (draw->high - s->first) * 0x1p-53;
    s->range.dropped = 32 - precision;
    s->range.low = (float)s->first;
    s->range.unit = (float)(draw->high - s->first) / (float)(UINT32_C(1) << precision);
    s->range.last = (float)s->last;
}

static void set_shares(struct cpu_sampler *s)
{
    const struct cpu_draw *draw = &s->draw;
    double low = (draw->low - draw->mean) / draw->deviation;
    double high = (draw->high - draw->mean) / draw->deviation;

    bool flips = low > 0; /* shares near 1 would be less exact */

    s->share = normal_share(flips ? -high : low);
    s->width = normal_share(flips ? -low : high) - s->share;
    if (flips) s->deviation = -s->deviation;
}

void cpu_sampler_set(struct cpu_sampler *sampler, const struct cpu_kernels *kernels,
                     const struct cpu_draw *draw)
{
    bool wide = draw->dtype == WEFT_DTYPE_F64 || draw->dtype == WEFT_DTYPE_I64 ||
                draw->dtype == WEFT_DTYPE_U64 || has_two_parts(draw->dtype);

    *sampler = (struct cpu_sampler){.draw = *draw, .kernels = kernels};
    sampler->element = (uint32_t)kit_dtype_bytes(draw->dtype);
    sampler->deviation = draw->deviation * (has_two_parts(draw->dtype) ? 0x1.6a09e667f3bcdp-1 : 1);
    if (draw->distribution == CPU_UNIFORM || draw->distribution == CPU_TRUNCATED_NORMAL)
        set_range(sampler);
    if (draw->distribution == CPU_TRUNCATED_NORMAL) set_shares(sampler);
    sampler->is_certain = wide && draw->probability >= 1;
    if (!sampler->is_certain)
        sampler->threshold = wide ? (uint64_t)(draw->probability * 0x1p64)
                                  : (uint64_t)(draw->probability * 0x1p32 + 0.5);
    if (draw->distribution == CPU_DROPOUT && draw->probability < 1)
        sampler->above = 1.0 / (1.0 - draw->probability);
}

void cpu_sampler_choice(const struct cpu_sampler *sampler, void *below, void *above)
{
    struct cpu_sampler one = *sampler;

    one.threshold = UINT64_C(1) << 32;
    one.is_certain = true;
    cpu_sample(&one, 0, 1, below);
    one.threshold = 0;
    one.is_certain = false;
    cpu_sample(&one, 0, 1, above);
}
