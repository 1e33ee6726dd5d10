/* Random elements: known answers, equal bits in every slice and at every level, and shapes of the
 * distributions. */
#include "kit/arithmetic/cpu_random.h"

#include "kit/arithmetic/cpu_casts.h"
#include "kit/arithmetic/random_formulas.h"
#include "kernel/cpu_level.h"
#include "support/suite.h"

#include <stdlib.h>

enum { MANY = 200000 };

static struct cpu_draw draw_of(uint32_t distribution, uint32_t dtype)
{
    return (struct cpu_draw){.distribution = distribution,
                             .dtype = dtype,
                             .bits = {UINT64_C(0x123456789abcdef0), 7},
                             .low = -2,
                             .high = 3,
                             .mean = 0.5,
                             .deviation = 2,
                             .probability = 0.3,
                             .first = 5,
                             .range = 50};
}

static void *sample(const struct cpu_kernels *kernels, const struct cpu_draw *draw, uint64_t first,
                    size_t count)
{
    size_t bytes = count * kit_dtype_bytes(draw->dtype);
    struct cpu_sampler sampler;
    char *out = malloc(bytes + 1);

    ck_assert_ptr_nonnull(out);
    out[bytes] = 'x';
    cpu_sampler_set(&sampler, kernels, draw);
    cpu_sample(&sampler, first, count, out);
    ck_assert_int_eq(out[bytes], 'x');
    return out;
}

TEST(philox_gives_the_published_answers)
{
    static const struct {
        uint64_t block;
        struct cpu_bits bits;
        uint32_t words[4];
    } known[] = {
        {0, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {UINT64_MAX, {UINT64_MAX, UINT64_MAX}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {UINT64_C(0x85a308d3243f6a88),
         {UINT64_C(0x299f31d0a4093822), UINT64_C(0x0370734413198a2e)},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };

    for (const struct cpu_kernels *const *level = cpu_kernel_levels(); *level != NULL; level++)
        for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
            uint32_t words[8];

            (*level)->draw_words(&known[i].bits, known[i].block, 2, words);
            ck_assert_mem_eq(words, known[i].words, sizeof known[i].words);
        }
}

/* Distributions that are defined on DTYPE. */
static bool is_defined(uint32_t distribution, uint32_t dtype)
{
    bool integer = dtype <= WEFT_DTYPE_U64;
    bool complex = dtype == WEFT_DTYPE_C64 || dtype == WEFT_DTYPE_C128;

    if (distribution == CPU_BERNOULLI) return true;
    if (distribution == CPU_INTEGERS) return integer && dtype != WEFT_DTYPE_BOOL;
    return !integer && !(complex && distribution == CPU_TRUNCATED_NORMAL);
}

TEST(every_slice_and_level_has_the_bits_of_the_whole)
{
    static const uint64_t begins[] = {0, 1, 2, 3, 5, 1021, UINT64_C(17179869180)};

    for (uint32_t dtype = 0; dtype < WEFT_DTYPE_COUNT; dtype++)
        for (uint32_t distribution = 0; distribution <= CPU_INTEGERS; distribution++) {
            struct cpu_draw draw = draw_of(distribution, dtype);
            size_t element = kit_dtype_bytes(dtype);

            if (!is_defined(distribution, dtype)) continue;
            for (size_t b = 0; b < sizeof begins / sizeof *begins; b++) {
                char *whole = sample(&cpu_kernels_base, &draw, begins[b], 3000);
                const struct cpu_kernels *const *level = cpu_kernel_levels();

                for (; *level != NULL; level++)
                    for (size_t at = 0; at < 3000; at += 1 + at / 2) {
                        size_t count = at % 7 == 0 ? 1 : 3000 - at;
                        char *part = sample(*level, &draw, begins[b] + at, count);

                        ck_assert_msg(memcmp(part, whole + at * element, count * element) == 0,
                                      "%s, distribution %u, from %zu, %s", kit_dtype_name(dtype),
                                      distribution, at, (*level)->level);
                        free(part);
                    }
                free(whole);
            }
        }
}

static uint64_t hash_of(const void *bytes, size_t count)
{
    const unsigned char *at = bytes;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < count; i++)
        hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    return hash;
}

TEST(the_bits_are_the_same_on_every_machine)
{
    static const struct {
        uint32_t distribution, dtype;
        uint64_t hash;
    } known[] = {
        {CPU_UNIFORM, WEFT_DTYPE_F32, UINT64_C(0xcf0ecff77c240c0f)},
        {CPU_NORMAL, WEFT_DTYPE_F32, UINT64_C(0xbd5cd338650c2503)},
        {CPU_TRUNCATED_NORMAL, WEFT_DTYPE_F32, UINT64_C(0x559fd6dace803114)},
        {CPU_UNIFORM, WEFT_DTYPE_F64, UINT64_C(0x941bc1ff412d1125)},
        {CPU_NORMAL, WEFT_DTYPE_F64, UINT64_C(0xc7fdfb5ef29aa795)},
        {CPU_TRUNCATED_NORMAL, WEFT_DTYPE_F64, UINT64_C(0x17eb84734c227b9b)},
        {CPU_NORMAL, WEFT_DTYPE_BF16, UINT64_C(0x55a87b15dd83f0d6)},
        {CPU_INTEGERS, WEFT_DTYPE_I64, UINT64_C(0xe434dbb5c0b462d8)},
        {CPU_DROPOUT, WEFT_DTYPE_F16, UINT64_C(0xe4cc813104a43d15)},
    };

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct cpu_draw draw = draw_of(known[i].distribution, known[i].dtype);
        void *out = sample(cpu_kernels(), &draw, 3, MANY);
        uint64_t hash = hash_of(out, MANY * kit_dtype_bytes(draw.dtype));

        ck_assert_msg(hash == known[i].hash, "row %zu: %#llx", i, (unsigned long long)hash);
        free(out);
    }
}

static double normal_below(double z)
{
    return 0.5 * erfc(-z * 0.70710678118654752);
}

/* The share of all numbers below X. */
static double share_below(const struct cpu_draw *draw, double x)
{
    double low = normal_below((draw->low - draw->mean) / draw->deviation);
    double high = normal_below((draw->high - draw->mean) / draw->deviation);
    double share = normal_below((x - draw->mean) / draw->deviation);

    if (draw->distribution == CPU_UNIFORM) return (x - draw->low) / (draw->high - draw->low);
    if (draw->distribution == CPU_NORMAL) return share;
    return (share - low) / (high - low);
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Kolmogorov's distance of MANY numbers from the distribution: more than 1.95 / sqrt(n) has a
 * probability of 0.001, but the seed is fixed. */
static void check_shape(const struct cpu_draw *draw)
{
    double *values = sample(cpu_kernels(), draw, 0, MANY), distance = 0;

    qsort(values, MANY, sizeof *values, compare_doubles);
    for (size_t i = 0; i < MANY; i++) {
        double want = share_below(draw, values[i]);
        double error = fmax(fabs(want - (double)i / MANY), fabs(want - (double)(i + 1) / MANY));

        distance = fmax(distance, error);
    }
    ck_assert_msg(distance < 1.95 / sqrt(MANY), "distribution %u: %g", draw->distribution,
                  distance);
    if (draw->distribution != CPU_NORMAL) {
        ck_assert(values[0] >= draw->low && values[MANY - 1] <= draw->high);
        ck_assert(draw->distribution != CPU_UNIFORM || values[MANY - 1] < draw->high);
    }
    free(values);
}

TEST(numbers_have_the_shape_of_their_distribution)
{
    static const double limits[][2] = {{-2, 3},  {-1e9, 1e9}, {4, 5},
                                       {-9, -8}, {0.5, 0.75}, {9, 99}};

    for (uint32_t distribution = CPU_UNIFORM; distribution <= CPU_TRUNCATED_NORMAL; distribution++)
        for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
            struct cpu_draw draw = draw_of(distribution, WEFT_DTYPE_F64);

            draw.low = limits[i][0];
            draw.high = limits[i][1];
            check_shape(&draw);
        }
}

TEST(single_precision_follows_double_precision)
{
    for (uint32_t k = 0; k < 1000000; k++) {
        uint32_t word = k * UINT32_C(2654435761);
        float unit = unit_f32(word), sine, cosine;
        double turn = (double)word * 0x1p-32 * 6.283185307179586, log_of = -log((double)unit);

        turn_f32(word, &sine, &cosine);
        ck_assert(fabs(sine - sin(turn)) < 1.2e-7 && fabs(cosine - cos(turn)) < 1.2e-7);
        ck_assert(fabs(minus_log_f32(unit) - log_of) <= 1.2e-7 * log_of);
    }
}

TEST(small_floats_stay_within_their_limits)
{
    static const uint32_t dtypes[] = {WEFT_DTYPE_F32, WEFT_DTYPE_F16, WEFT_DTYPE_BF16,
                                      WEFT_DTYPE_F8E4M3, WEFT_DTYPE_F8E5M2};
    static const double limits[][2] = {{0, 1}, {0.1, 0.3}, {-1, 0}, {-3, -1.9}, {1, 300}};

    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
        for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
            for (int truncates = 0; truncates < 2; truncates++) {
                struct cpu_draw draw =
                    draw_of(truncates ? CPU_TRUNCATED_NORMAL : CPU_UNIFORM, dtypes[d]);
                double least = INFINITY, most = -INFINITY;
                static double values[20000];
                void *out;

                draw.low = limits[i][0];
                draw.high = limits[i][1];
                out = sample(cpu_kernels(), &draw, 0, 20000);
                cpu_cast_elements(cpu_kernels(), dtypes[d], WEFT_DTYPE_F64, out, values, 20000);
                for (size_t k = 0; k < 20000; k++) {
                    least = fmin(least, values[k]);
                    most = fmax(most, values[k]);
                }
                ck_assert_msg(least >= draw.low &&
                                  (truncates ? most <= draw.high : most < draw.high),
                              "%s: %g to %g", kit_dtype_name(dtypes[d]), least, most);
                free(out);
            }
}

TEST(integers_and_chances_are_even)
{
    struct cpu_draw draw = draw_of(CPU_INTEGERS, WEFT_DTYPE_I16),
                    chance = draw_of(CPU_BERNOULLI, 0);
    int16_t *numbers;
    uint8_t *heads;
    int counts[50] = {0}, ones = 0;

    draw.first = -20;
    numbers = sample(cpu_kernels(), &draw, 0, MANY);
    for (size_t i = 0; i < MANY; i++) {
        ck_assert(numbers[i] >= -20 && numbers[i] < 30);
        counts[numbers[i] + 20]++;
    }
    for (int i = 0; i < 50; i++)
        ck_assert_int_lt(abs(counts[i] - MANY / 50), 320); /* five deviations */
    heads = sample(cpu_kernels(), &chance, 0, MANY);
    for (size_t i = 0; i < MANY; i++)
        ones += heads[i];
    ck_assert_int_lt(abs(ones - 60000), 1025);
    free(numbers);
    free(heads);
    for (int k = 0; k < 2; k++)
        for (uint32_t dtype = 0; dtype <= WEFT_DTYPE_F64; dtype++) {
            double value;
            void *out;
            chance = draw_of(CPU_BERNOULLI, dtype);
            chance.probability = k;
            out = sample(cpu_kernels(), &chance, 11, 5);
            if (dtype > WEFT_DTYPE_U64) {
                cpu_cast_elements(cpu_kernels(), dtype, WEFT_DTYPE_F64, out, &value, 1);
                ck_assert(value == k);
            } else {
                ck_assert_int_eq(*(char *)out, k);
            }
            free(out);
        }
}
