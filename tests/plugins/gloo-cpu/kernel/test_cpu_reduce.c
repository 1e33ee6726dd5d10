/* Reductions of every dtype at every vector level, compared with one element at a time. */
#include "kit/arithmetic/cpu_number.h"
#include "kernel/cpu_level.h"

#include "support/suite.h"

#include <complex.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define MAX_COUNT 9001
#define MAX_SIZE  5

static unsigned char data[MAX_SIZE][(MAX_COUNT + 1) * 16], scales[MAX_SIZE][16];
static uint64_t state;

static uint64_t next_random(void)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return state >> 20;
}

/* A small number as an element, so that floats stay finite.  Only the parts of c64 are rounded. */
static void put_small(uint32_t dtype, void *out)
{
    int whole = (int)(next_random() % 17) - 8;
    float real = (float)whole * 0.375f;
    double wide = (double)real;
    float complex_single[2] = {real * 1.1F, (float)(next_random() % 5) / 3};
    double complex_double[2] = {wide, (double)(next_random() % 5)};
    uint16_t half = dtype == WEFT_DTYPE_F16 ? cpu_f16_of_f32(real) : cpu_bf16_of_f32(real);
    uint8_t byte = dtype == WEFT_DTYPE_F8E4M3 ? cpu_f8e4m3_of_f32(real) : cpu_f8e5m2_of_f32(real);
    uint64_t bits = next_random() << 32 ^ next_random();

    switch (dtype) {
    case WEFT_DTYPE_BOOL:
        *(uint8_t *)out = (uint8_t)(next_random() & 1);
        break;
    case WEFT_DTYPE_F16:
    case WEFT_DTYPE_BF16:
        memcpy(out, &half, 2);
        break;
    case WEFT_DTYPE_F8E4M3:
    case WEFT_DTYPE_F8E5M2:
        memcpy(out, &byte, 1);
        break;
    case WEFT_DTYPE_F32:
        memcpy(out, &real, 4);
        break;
    case WEFT_DTYPE_F64:
        memcpy(out, &wide, 8);
        break;
    case WEFT_DTYPE_C64:
        memcpy(out, complex_single, 8);
        break;
    case WEFT_DTYPE_C128:
        memcpy(out, complex_double, 16);
        break;
    default:
        memcpy(out, &bits, kit_dtype_bytes(dtype));
    }
}

static void make_data(uint32_t dtype, size_t offset)
{
    size_t bytes = kit_dtype_bytes(dtype);

    for (int k = 0; k < MAX_SIZE; k++) {
        for (size_t i = 0; i < MAX_COUNT; i++)
            put_small(dtype, data[k] + offset + i * bytes);
        put_small(dtype, scales[k]);
    }
}

/* ---- one element at a time ---- */

static double load_real(uint32_t dtype, const void *from)
{
    uint16_t half;
    float single;
    double wide;

    memcpy(&half, from, 2);
    switch (dtype) {
    case WEFT_DTYPE_F16:
        return (double)cpu_f32_of_f16(half);
    case WEFT_DTYPE_BF16:
        return (double)cpu_f32_of_bf16(half);
    case WEFT_DTYPE_F8E4M3:
        return (double)cpu_f32_of_f8e4m3(*(const uint8_t *)from);
    case WEFT_DTYPE_F8E5M2:
        return (double)cpu_f32_of_f8e5m2(*(const uint8_t *)from);
    case WEFT_DTYPE_F32:
        memcpy(&single, from, 4);
        return (double)single;
    default:
        memcpy(&wide, from, 8);
        return wide;
    }
}

static void store_real(uint32_t dtype, double value, void *to)
{
    float single = (float)value;
    uint16_t half = dtype == WEFT_DTYPE_F16 ? cpu_f16_of_f32(single) : cpu_bf16_of_f32(single);
    uint8_t byte =
        dtype == WEFT_DTYPE_F8E4M3 ? cpu_f8e4m3_of_f32(single) : cpu_f8e5m2_of_f32(single);

    switch (kit_dtype_bytes(dtype)) {
    case 1:
        memcpy(to, &byte, 1);
        break;
    case 2:
        memcpy(to, &half, 2);
        break;
    case 4:
        memcpy(to, &single, 4);
        break;
    default:
        memcpy(to, &value, 8);
    }
}

/* The precision in which the plugin computes: f64 for f64, else f32. */
static double step(uint32_t dtype, double value)
{
    return dtype == WEFT_DTYPE_F64 ? value : (double)(float)value;
}

static uint32_t parts_of(const struct cpu_reducer *r)
{
    return r->parts != 0 ? r->parts : r->size;
}

static void reduce_real(const struct cpu_reducer *r, const void *const *from, void *to)
{
    double all = load_real(r->dtype, from[0]);
    bool scaled = r->reduction == WEFT_REDUCE_PREMUL_SUM;
    uint32_t parts = r->reduction == WEFT_REDUCE_AVG ? parts_of(r) : 1;

    if (scaled) all = step(r->dtype, all * load_real(r->dtype, r->scales[0]));
    all = step(r->dtype, all / parts);
    for (uint32_t k = 1; k < r->size; k++) {
        double x = load_real(r->dtype, from[k]);

        if (scaled) x = step(r->dtype, x * load_real(r->dtype, r->scales[k]));
        x = step(r->dtype, x / parts);
        if (r->reduction == WEFT_REDUCE_PROD)
            all = step(r->dtype, all * x);
        else if (r->reduction == WEFT_REDUCE_MIN)
            all = x < all ? x : all;
        else if (r->reduction == WEFT_REDUCE_MAX)
            all = x > all ? x : all;
        else
            all = step(r->dtype, all + x);
    }
    store_real(r->dtype, all, to);
}

static int64_t load_whole(uint32_t dtype, const void *from)
{
    static const bool with_sign[] = {[WEFT_DTYPE_I8] = true,
                                     [WEFT_DTYPE_I16] = true,
                                     [WEFT_DTYPE_I32] = true,
                                     [WEFT_DTYPE_U64] = false};
    size_t bytes = kit_dtype_bytes(dtype);
    uint64_t bits = 0;

    memcpy(&bits, from, bytes);
    if (with_sign[dtype] && bits >> (8 * bytes - 1) != 0) bits |= UINT64_MAX << (8 * bytes - 1);
    return (int64_t)bits;
}

static bool less(uint32_t dtype, int64_t a, int64_t b)
{
    return dtype == WEFT_DTYPE_U64 ? (uint64_t)a < (uint64_t)b : a < b;
}

static uint64_t combine_whole(uint32_t dtype, uint32_t reduction, uint64_t a, uint64_t b)
{
    bool is_bool = dtype == WEFT_DTYPE_BOOL;

    switch (reduction) {
    case WEFT_REDUCE_PROD:
        return is_bool ? (a & b) : a * b;
    case WEFT_REDUCE_MIN:
        return less(dtype, (int64_t)b, (int64_t)a) ? b : a;
    case WEFT_REDUCE_MAX:
        return less(dtype, (int64_t)a, (int64_t)b) ? b : a;
    case WEFT_REDUCE_BAND:
        return a & b;
    case WEFT_REDUCE_BOR:
        return a | b;
    case WEFT_REDUCE_BXOR:
        return a ^ b;
    default:
        return is_bool ? (a | b) : a + b;
    }
}

static void average_whole(const struct cpu_reducer *r, const void *const *from, void *to)
{
    cpu_wide sum = 0, parts = parts_of(r);
    uint64_t all;

    for (uint32_t k = 0; k < r->size; k++) {
        int64_t x = load_whole(r->dtype, from[k]);
        sum += r->dtype == WEFT_DTYPE_U64 ? (cpu_wide)(uint64_t)x : (cpu_wide)x;
    }
    all = (uint64_t)(sum / parts);
    memcpy(to, &all, kit_dtype_bytes(r->dtype));
}

static void reduce_whole(const struct cpu_reducer *r, const void *const *from, void *to)
{
    uint64_t all = 0;

    if (r->reduction == WEFT_REDUCE_AVG) {
        average_whole(r, from, to);
        return;
    }

    for (uint32_t k = 0; k < r->size; k++) {
        uint64_t x = (uint64_t)load_whole(r->dtype, from[k]);

        if (r->reduction == WEFT_REDUCE_PREMUL_SUM)
            x *= (uint64_t)load_whole(r->dtype, r->scales[k]);
        all = k == 0 ? x : combine_whole(r->dtype, r->reduction, all, x);
        memcpy(to, &all, kit_dtype_bytes(r->dtype));
        all = (uint64_t)load_whole(r->dtype, to);
    }
    memcpy(to, &all, kit_dtype_bytes(r->dtype));
}

/* A fused multiplication and addition gives other bits of c64.  Those of c128 here are small
 * halves, of which every result is exact. */
static void multiply_complex(uint32_t part, double a, double b, double c, double d, double *re,
                             double *im)
{
    *re = step(part, step(part, a * c) - step(part, b * d));
    *im = step(part, step(part, a * d) + step(part, b * c));
}

static void reduce_complex(const struct cpu_reducer *r, const void *const *from, void *to)
{
    uint32_t part = r->dtype == WEFT_DTYPE_C64 ? WEFT_DTYPE_F32 : WEFT_DTYPE_F64;
    size_t half = kit_dtype_bytes(part);
    double re = 0, im = 0;

    for (uint32_t k = 0; k < r->size; k++) {
        double a = load_real(part, from[k]), b = load_real(part, (const char *)from[k] + half);

        if (r->reduction == WEFT_REDUCE_PREMUL_SUM) {
            double s = load_real(part, r->scales[k]);
            double t = load_real(part, (const char *)r->scales[k] + half);

            multiply_complex(part, a, b, s, t, &a, &b);
        }
        if (r->reduction == WEFT_REDUCE_AVG) {
            a = step(part, a / parts_of(r));
            b = step(part, b / parts_of(r));
        }
        if (k == 0) {
            re = a;
            im = b;
        } else if (r->reduction == WEFT_REDUCE_PROD) {
            multiply_complex(part, re, im, a, b, &re, &im);
        } else {
            re = step(part, re + a);
            im = step(part, im + b);
        }
    }
    store_real(part, re, to);
    store_real(part, im, (char *)to + half);
}

static void reduce_one(const struct cpu_reducer *r, const void *const *from, void *to)
{
    if (r->dtype >= WEFT_DTYPE_C64)
        reduce_complex(r, from, to);
    else if (r->dtype >= WEFT_DTYPE_F16)
        reduce_real(r, from, to);
    else
        reduce_whole(r, from, to);
}

static void check(const struct cpu_kernels *kernels, struct cpu_reducer *r, size_t count,
                  size_t offset)
{
    static unsigned char out[(MAX_COUNT + 1) * 16];
    const void *sources[MAX_SIZE], *at[MAX_SIZE], *scale[MAX_SIZE];
    size_t bytes = kit_dtype_bytes(r->dtype);
    unsigned char expected[16];

    for (uint32_t k = 0; k < r->size; k++) {
        sources[k] = data[k] + offset;
        scale[k] = scales[k];
    }
    r->scales = scale;
    memset(out, 0xee, sizeof out);
    cpu_reduce(kernels, r, sources, out + offset, count);
    for (size_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < r->size; k++)
            at[k] = data[k] + offset + i * bytes;
        reduce_one(r, at, expected);
        ck_assert_msg(memcmp(out + offset + i * bytes, expected, bytes) == 0,
                      "%s: %s of %u %s, element %zu of %zu", kernels->level,
                      kit_reduction_name(r->reduction), r->size, kit_dtype_name(r->dtype), i,
                      count);
    }
    ck_assert_uint_eq(out[offset + count * bytes], 0xee);
}

TEST(every_reduction_of_every_dtype_is_right_at_every_level)
{
    static const size_t counts[] = {0, 1, 3, 17, 1023, MAX_COUNT};
    const struct cpu_kernels *const *levels = cpu_kernel_levels();

    test_seed_begin("every_reduction_of_every_dtype_is_right_at_every_level");
    for (size_t level = 0; levels[level] != NULL; level++)
        for (uint32_t dtype = 0; dtype < WEFT_DTYPE_COUNT; dtype++) {
            size_t offset = dtype >= WEFT_DTYPE_C64 ? 0 : kit_dtype_bytes(dtype);

            state = test_state(dtype);
            make_data(dtype, offset);
            for (uint32_t reduction = 0; reduction < WEFT_REDUCE_COUNT; reduction++)
                for (uint32_t size = 1; size <= MAX_SIZE; size++) {
                    struct cpu_reducer r = {.dtype = dtype, .reduction = reduction, .size = size};

                    if (!kit_reduction_defined(reduction, dtype)) continue;
                    check(levels[level], &r, counts[(size + reduction) % 6], offset);
                    for (r.parts = 2; r.parts < 4 && reduction == WEFT_REDUCE_AVG; r.parts++)
                        check(levels[level], &r, counts[(size + r.parts) % 6], offset);
                }
        }
}

TEST(the_target_may_be_any_of_the_sources)
{
    for (int which = 0; which < 3; which++) {
        float a[300], b[300], c[300], *all[3] = {a, b, c};
        const void *sources[3] = {a, b, c};
        struct cpu_reducer r = {.dtype = WEFT_DTYPE_F32, .reduction = WEFT_REDUCE_SUM, .size = 3};

        for (int i = 0; i < 300; i++) {
            a[i] = (float)i;
            b[i] = (float)(2 * i);
            c[i] = 5;
        }
        cpu_reduce(cpu_kernels(), &r, sources, all[which], 300);
        for (int i = 0; i < 300; i++)
            ck_assert(all[which][i] == (float)(3 * i + 5));
    }
}

TEST(min_and_max_hand_nan_on)
{
    float a[70], b[70], out[70];
    const void *sources[2] = {a, b};

    for (uint32_t reduction = WEFT_REDUCE_MIN; reduction <= WEFT_REDUCE_MAX; reduction++) {
        struct cpu_reducer r = {.dtype = WEFT_DTYPE_F32, .reduction = reduction, .size = 2};

        for (int i = 0; i < 70; i++) {
            a[i] = i % 3 == 0 ? NAN : 1;
            b[i] = i % 5 == 0 ? NAN : 2;
        }
        cpu_reduce(cpu_kernels(), &r, sources, out, 70);
        for (int i = 0; i < 70; i++)
            ck_assert((isnan(out[i]) != 0) == (i % 3 == 0 || i % 5 == 0));
    }
}

/* 2048 + 1 + 1 in f16, added up in f16, would stay 2048. */
TEST(small_floats_add_up_in_f32_and_round_once)
{
    uint16_t a = cpu_f16_of_f32(2048), b = cpu_f16_of_f32(1), out;
    const void *sources[3] = {&a, &b, &b};
    struct cpu_reducer r = {.dtype = WEFT_DTYPE_F16, .reduction = WEFT_REDUCE_SUM, .size = 3};

    cpu_reduce(cpu_kernels(), &r, sources, &out, 1);
    ck_assert_uint_eq(out, cpu_f16_of_f32(2050));
}

/* ---- conversions: instructions and loops give the bits that number.h defines ---- */

static uint32_t widen_one(uint32_t dtype, uint32_t code)
{
    switch (dtype) {
    case WEFT_DTYPE_F16:
        return cpu_bits_of_f32(cpu_f32_of_f16((uint16_t)code));
    case WEFT_DTYPE_BF16:
        return cpu_bits_of_f32(cpu_f32_of_bf16((uint16_t)code));
    case WEFT_DTYPE_F8E4M3:
        return cpu_bits_of_f32(cpu_f32_of_f8e4m3((uint8_t)code));
    default:
        return cpu_bits_of_f32(cpu_f32_of_f8e5m2((uint8_t)code));
    }
}

static uint32_t narrow_one(uint32_t dtype, float value)
{
    switch (dtype) {
    case WEFT_DTYPE_F16:
        return cpu_f16_of_f32(value);
    case WEFT_DTYPE_BF16:
        return cpu_bf16_of_f32(value);
    case WEFT_DTYPE_F8E4M3:
        return cpu_f8e4m3_of_f32(value);
    default:
        return cpu_f8e5m2_of_f32(value);
    }
}

static const uint32_t small_dtypes[] = {WEFT_DTYPE_F16, WEFT_DTYPE_BF16, WEFT_DTYPE_F8E4M3,
                                        WEFT_DTYPE_F8E5M2};

static void check_widen(const struct cpu_kernels *kernels, uint32_t dtype)
{
    static unsigned char codes[65536 * 2];
    static float wide[65536];
    size_t bytes = kit_dtype_bytes(dtype), count = (size_t)1 << (8 * bytes);

    for (uint32_t code = 0; code < count; code++)
        memcpy(codes + code * bytes, &code, bytes); /* little-endian, as all of weft */
    /* Odd lengths, so that every element is once in the remainder of a vector. */
    for (size_t at = 0, length = 1; at < count; at += length, length = 1 + (length + 6) % 61) {
        if (length > count - at) length = count - at;
        kernels->of[dtype].widen(wide + at, codes + at * bytes, length);
    }
    for (uint32_t code = 0; code < count; code++)
        ck_assert_msg(cpu_bits_of_f32(wide[code]) == widen_one(dtype, code),
                      "%s: %s %#x became %#x, not %#x", kernels->level, kit_dtype_name(dtype), code,
                      cpu_bits_of_f32(wide[code]), widen_one(dtype, code));
}

static void check_narrow(const struct cpu_kernels *kernels, uint32_t dtype, uint32_t low)
{
    static float values[65536];
    static unsigned char codes[65536 * 2];
    size_t bytes = kit_dtype_bytes(dtype);

    for (uint32_t high = 0; high < 65536; high++)
        values[high] = cpu_f32_of_bits(high << 16 | low);
    for (size_t at = 0, length = 1; at < 65536; at += length, length = 1 + (length + 6) % 61) {
        if (length > 65536 - at) length = 65536 - at;
        kernels->of[dtype].narrow(codes + at * bytes, values + at, length);
    }
    for (uint32_t high = 0; high < 65536; high++) {
        uint32_t code = 0, wanted = narrow_one(dtype, values[high]);

        memcpy(&code, codes + high * bytes, bytes);
        ck_assert_msg(code == wanted, "%s: f32 %#x became %s %#x, not %#x", kernels->level,
                      high << 16 | low, kit_dtype_name(dtype), code, wanted);
    }
}

TEST(conversions_give_the_same_bits_at_every_level)
{
    static const uint32_t lows[] = {0,      1,      0x0fff, 0x1000, 0x1001,
                                    0x2000, 0x7fff, 0x8000, 0x8001, 0xffff};
    const struct cpu_kernels *const *levels = cpu_kernel_levels();

    for (size_t level = 0; levels[level] != NULL; level++)
        for (size_t i = 0; i < 4; i++) {
            check_widen(levels[level], small_dtypes[i]);
            for (size_t k = 0; k < sizeof lows / sizeof lows[0]; k++)
                check_narrow(levels[level], small_dtypes[i], lows[k]);
        }
}

#if defined(__x86_64__)
TEST(the_levels_are_those_of_this_processor)
{
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    const struct cpu_kernels *const *levels = cpu_kernel_levels();

    ck_assert_str_eq(levels[0]->level, "sse2");
    ck_assert_int_eq(levels[1] != NULL, avx2);
    ck_assert_int_eq(avx2 && levels[2] != NULL, avx512);
}
#endif
