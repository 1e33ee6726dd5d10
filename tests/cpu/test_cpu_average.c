/* Averages, and infinities in minima and maxima, at every level of vector hardware. */
#include "kernel/cpu_number.h"
#include "kernel/cpu_reduce.h"
#include "support/suite.h"

#include <float.h>
#include <string.h>

START_TEST(infinities_of_f8e5m2_pass_through_min_and_max)
{
    uint8_t a[70], b[70], out[70];
    const void *sources[2] = {a, b};
    const struct cpu_kernels *const *levels = cpu_kernel_levels();

    memset(a, 0xfc, sizeof a);
    memset(b, 0x7c, sizeof b);
    for (size_t level = 0; levels[level] != NULL; level++)
        for (uint32_t reduction = WEFT_REDUCE_MIN; reduction <= WEFT_REDUCE_MAX; reduction++) {
            struct cpu_reducer r = {.dtype = WEFT_DTYPE_F8E5M2, .reduction = reduction, .size = 2};

            cpu_reduce(levels[level], &r, sources, out, 70);
            for (int i = 0; i < 70; i++)
                ck_assert_uint_eq(out[i], reduction == WEFT_REDUCE_MIN ? 0xfc : 0x7c);
        }
}
END_TEST

START_TEST(averages_are_finite_where_the_mean_is)
{
    float a = FLT_MAX, out;
    uint16_t b = cpu_bf16_of_f32(0x1.fep127f), small;
    const void *sources[4] = {&a, &a, &a, &a}, *halves[3] = {&b, &b, &b};
    struct cpu_reducer r = {.dtype = WEFT_DTYPE_F32, .reduction = WEFT_REDUCE_AVG, .size = 4};
    struct cpu_reducer h = {.dtype = WEFT_DTYPE_BF16, .reduction = WEFT_REDUCE_AVG, .size = 3};

    cpu_reduce(cpu_kernels(), &r, sources, &out, 1);
    ck_assert(out == FLT_MAX);
    cpu_reduce(cpu_kernels(), &h, halves, &small, 1);
    ck_assert_uint_eq(small, b);
}
END_TEST

/* More buffers than the vectors' sums hold. */
START_TEST(averages_of_many_integers_are_exact)
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
END_TEST

SUITE(cpu_average, infinities_of_f8e5m2_pass_through_min_and_max,
      averages_are_finite_where_the_mean_is, averages_of_many_integers_are_exact)
