/* Averages, and infinities in reductions, at every vector level. */
#include "kit/arithmetic/cpu_number.h"
#include "kernel/cpu_level.h"
#include "plug_host.h"
#include "support/suite.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

TEST(infinities_of_f8e5m2_stay_infinities)
{
    static const struct {
        uint32_t reduction;
        uint8_t a, b, wanted;
    } cases[] = {
        {WEFT_REDUCE_MIN, 0xfc, 0x7c, 0xfc},  {WEFT_REDUCE_MAX, 0xfc, 0x7c, 0x7c},
        {WEFT_REDUCE_SUM, 0x7c, 0x80, 0x7c},  {WEFT_REDUCE_SUM, 0x7b, 0x7b, 0x7b},
        {WEFT_REDUCE_AVG, 0xfc, 0x3c, 0xfc},  {WEFT_REDUCE_PROD, 0x7c, 0xbc, 0xfc},
        {WEFT_REDUCE_PROD, 0x7b, 0xfb, 0xfb},
    };
    uint8_t a[70], b[70], out[70];
    const void *sources[2] = {a, b};
    const struct cpu_kernels *const *levels = cpu_kernel_levels();

    for (size_t level = 0; levels[level] != NULL; level++)
        for (size_t c = 0; c < PLUG_LENGTH(cases); c++) {
            struct cpu_reducer r = {
                .dtype = WEFT_DTYPE_F8E5M2, .reduction = cases[c].reduction, .size = 2};

            memset(a, cases[c].a, sizeof a);
            memset(b, cases[c].b, sizeof b);
            cpu_reduce(levels[level], &r, sources, out, 70);
            for (int i = 0; i < 70; i++)
                ck_assert_uint_eq(out[i], cases[c].wanted);
        }
}

/* ---- averages of floats ---- */

enum { RANKS = 70, LENGTH = 9 };

static double largest(uint32_t dtype)
{
    switch (dtype) {
    case WEFT_DTYPE_F16:
        return 65504;
    case WEFT_DTYPE_BF16:
        return 0x1.fep127;
    case WEFT_DTYPE_F32:
        return (double)FLT_MAX;
    default:
        return DBL_MAX;
    }
}

static void put(uint32_t dtype, double value, void *at)
{
    float single = (float)value;
    uint16_t half = dtype == WEFT_DTYPE_F16 ? cpu_f16_of_f32(single) : cpu_bf16_of_f32(single);

    if (dtype == WEFT_DTYPE_F64)
        memcpy(at, &value, sizeof value);
    else if (dtype == WEFT_DTYPE_F32)
        memcpy(at, &single, sizeof single);
    else
        memcpy(at, &half, sizeof half);
}

static double get(uint32_t dtype, const void *at)
{
    double value;
    float single;
    uint16_t half;

    memcpy(&half, at, sizeof half);
    if (dtype == WEFT_DTYPE_F16) return (double)cpu_f32_of_f16(half);
    if (dtype == WEFT_DTYPE_BF16) return (double)cpu_f32_of_bf16(half);
    memcpy(&single, at, sizeof single);
    if (dtype == WEFT_DTYPE_F32) return (double)single;
    memcpy(&value, at, sizeof value);
    return value;
}

/* Element I of R of DTYPE's buffers, each LENGTH long, of which VALUES has one element each. */
static double average(const struct cpu_kernels *kernels, const struct cpu_reducer *r,
                      const double *values)
{
    static _Alignas(16) unsigned char buffers[RANKS][LENGTH * 8], out[LENGTH * 8];
    const void *sources[RANKS];
    size_t bytes = kit_dtype_bytes(r->dtype);

    for (uint32_t k = 0; k < r->size; k++) {
        sources[k] = buffers[k];
        for (size_t i = 0; i < LENGTH; i++)
            put(r->dtype, values[k], buffers[k] + i * bytes);
    }
    cpu_reduce(kernels, r, sources, out, LENGTH);
    for (size_t i = 1; i < LENGTH; i++) /* whether in a vector or behind the last */
        ck_assert(memcmp(out, out + i * bytes, bytes) == 0);
    return get(r->dtype, out);
}

static const uint32_t floats[] = {WEFT_DTYPE_F16, WEFT_DTYPE_BF16, WEFT_DTYPE_F32, WEFT_DTYPE_F64};

TEST(averages_are_finite_where_the_mean_is)
{
    const struct cpu_kernels *const *levels = cpu_kernel_levels();
    double values[RANKS];

    for (size_t level = 0; levels[level] != NULL; level++)
        for (size_t f = 0; f < PLUG_LENGTH(floats); f++)
            for (uint32_t size = 1; size <= RANKS; size++) {
                struct cpu_reducer r = {
                    .dtype = floats[f], .reduction = WEFT_REDUCE_AVG, .size = size};
                double most = largest(floats[f]), got;

                for (uint32_t k = 0; k < size; k++)
                    values[k] = most;
                got = average(levels[level], &r, values);
                ck_assert_msg(got <= most && got >= most * (1 - size * 0x1p-22),
                              "the mean of %u times %g is %g", size, most, got);
                for (uint32_t k = 0; k < size; k++)
                    values[k] = -most;
                ck_assert(average(levels[level], &r, values) == -got);
                values[size / 2] = -INFINITY;
                ck_assert(average(levels[level], &r, values) == (double)-INFINITY);
                values[0] = INFINITY;
                if (size > 1) ck_assert(isnan(average(levels[level], &r, values)));
            }
}

/* The hosts' parts, already rounded up to bf16, are added. */
TEST(parts_of_a_mean_add_up_to_finite_numbers)
{
    for (size_t f = 0; f < PLUG_LENGTH(floats); f++) {
        struct cpu_reducer r = {
            .dtype = floats[f], .reduction = WEFT_REDUCE_AVG, .size = 3, .divided = true};
        double most = largest(floats[f]), parts[3] = {most / 2, most / 4, most / 2};
        double halves[3] = {most / 2, most / 2, 1}, infinite[3] = {1, INFINITY, 1};

        ck_assert(average(cpu_kernels(), &r, parts) == most);
        ck_assert(average(cpu_kernels(), &r, halves) == most);
        ck_assert(average(cpu_kernels(), &r, infinite) == (double)INFINITY);
    }
}

/* More contributions than the divisor are a sum, which overflows as sums do. */
TEST(sums_of_means_overflow)
{
    struct cpu_reducer r = {
        .dtype = WEFT_DTYPE_F64, .reduction = WEFT_REDUCE_AVG, .size = 6, .parts = 3};
    double values[6] = {DBL_MAX, DBL_MAX, DBL_MAX, DBL_MAX, DBL_MAX, DBL_MAX};

    ck_assert(average(cpu_kernels(), &r, values) == (double)INFINITY);
}

/* A float of any exponent, or a subnormal one. */
static double any_float(uint32_t dtype, uint64_t bits)
{
    double value;

    if (dtype == WEFT_DTYPE_F64) {
        memcpy(&value, &bits, sizeof value);
    } else {
        float single;
        uint32_t half = (uint32_t)(bits >> 32);
        memcpy(&single, &half, sizeof single);
        value = (double)single;
    }
    if (bits % 4 == 0)
        value = (double)(int)(bits >> 8 & 15) * (dtype == WEFT_DTYPE_F64 ? 0x1p-1074 : 0x1p-149);
    return isfinite(value) ? value : 1;
}

/* docs/dtypes.md: at most n * epsilon * (mean of the magnitudes) + n * (smallest number). */
TEST(averages_of_floats_are_as_near_as_promised)
{
    uint64_t state = UINT64_C(20261115);

    for (int i = 0; i < 20000; i++) {
        uint32_t dtype = i % 2 == 0 ? WEFT_DTYPE_F32 : WEFT_DTYPE_F64;
        uint32_t size = 1 + (uint32_t)(i / 2) % 12;
        struct cpu_reducer r = {.dtype = dtype, .reduction = WEFT_REDUCE_AVG, .size = size};
        long double epsilon = dtype == WEFT_DTYPE_F32 ? 0x1p-23L : 0x1p-52L;
        long double least = dtype == WEFT_DTYPE_F32 ? 0x1p-149L : 0x1p-1074L;
        long double mean = 0, magnitude = 0, error;
        double values[RANKS], got;

        for (uint32_t k = 0; k < size; k++) {
            state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            values[k] = any_float(dtype, state ^ state >> 29);
            if (i % 3 == 0 && k > 0) /* close to each other, where bits are lost */
                values[k] = values[0] * (1 - (double)(state >> 40) * 0x1p-40);
            if (dtype == WEFT_DTYPE_F32) values[k] = (double)(float)values[k];
            mean += (long double)values[k] / size;
            magnitude += fabsl((long double)values[k]) / size;
        }
        got = average(cpu_kernels(), &r, values);
        error = fabsl((long double)got - mean);
        ck_assert_msg(error <= size * epsilon * magnitude + size * least,
                      "case %d: the mean %Lg of %u numbers is %g", i, mean, size, got);
    }
}

/* More buffers than the sums of the vector type can hold. */
TEST(averages_of_many_integers_are_exact)
{
    enum { MANY = 300 };
    static const int16_t least = INT16_MIN, most = INT16_MAX;
    const void *sources[MANY];
    struct cpu_reducer r = {.dtype = WEFT_DTYPE_I16, .reduction = WEFT_REDUCE_AVG, .size = MANY};
    int16_t out;

    for (int i = 0; i < MANY; i++)
        sources[i] = i < 3 ? &most : &least;
    for (uint32_t size = 254; size <= MANY; size++) {
        int64_t sum = 3 * INT16_MAX + (int64_t)(size - 3) * INT16_MIN;

        r.size = size;
        r.parts = 0;
        cpu_reduce(cpu_kernels(), &r, sources, &out, 1);
        ck_assert_int_eq(out, sum / size);
        r.parts = 5;
        cpu_reduce(cpu_kernels(), &r, sources, &out, 1);
        ck_assert_int_eq(out, (int16_t)(sum / 5));
    }
}
