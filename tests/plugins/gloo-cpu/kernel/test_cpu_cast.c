/* Casts, compared with exact arithmetic in long double, which holds every i64, u64 and f64 on x86
 * and aarch64. */
#include "kernel/cpu_kernel.h"
#include "kit/arithmetic/cpu_number.h"

#include "support/suite.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static uint64_t state;

static uint64_t next_random(void)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return state ^ state >> 29;
}

static bool is_whole(uint32_t dtype)
{
    return dtype <= WEFT_DTYPE_U64;
}

static bool has_sign(uint32_t dtype)
{
    return dtype == WEFT_DTYPE_I8 || dtype == WEFT_DTYPE_I16 || dtype == WEFT_DTYPE_I32 ||
           dtype == WEFT_DTYPE_I64;
}

static long double load(uint32_t dtype, const void *from)
{
    size_t bytes = kit_dtype_bytes(dtype);
    uint64_t bits = 0;
    float single;
    double wide;

    memcpy(&bits, from, bytes);
    if (is_whole(dtype)) {
        if (has_sign(dtype) && bits >> (8 * bytes - 1) != 0 && bytes < 8)
            bits |= UINT64_MAX << (8 * bytes);
        return has_sign(dtype) ? (long double)(int64_t)bits : (long double)bits;
    }
    memcpy(&single, from, 4);
    memcpy(&wide, from, bytes < 8 ? 4 : 8);
    switch (dtype) {
    case WEFT_DTYPE_F16:
        return (long double)cpu_f32_of_f16((uint16_t)bits);
    case WEFT_DTYPE_BF16:
        return (long double)cpu_f32_of_bf16((uint16_t)bits);
    case WEFT_DTYPE_F8E4M3:
        return (long double)cpu_f32_of_f8e4m3((uint8_t)bits);
    case WEFT_DTYPE_F8E5M2:
        return (long double)cpu_f32_of_f8e5m2((uint8_t)bits);
    case WEFT_DTYPE_F32:
        return (long double)single;
    default:
        return (long double)wide;
    }
}

/* ---- what it should become ---- */

static void expect_whole(uint32_t to, long double value, void *out)
{
    int width = 8 * (int)kit_dtype_bytes(to);
    long double most = ldexpl(1, has_sign(to) ? width - 1 : width) - 1;
    long double least = has_sign(to) ? -most - 1 : 0;
    uint64_t bits;

    if (isnan(value)) value = 0;
    value = truncl(value);
    if (value > most) value = most;
    if (value < least) value = least;
    bits = value < 0 ? (uint64_t)(int64_t)value : (uint64_t)value;
    memcpy(out, &bits, kit_dtype_bytes(to));
}

/* The nearest value of a small float, found among the codes near an estimate. */
static void expect_small(uint32_t to, long double value, void *out)
{
    static const struct {
        uint32_t largest, overflow, nan, sign;
    } limits[WEFT_DTYPE_COUNT] = {[WEFT_DTYPE_F16] = {0x7bff, 0x7c00, 0x7e00, 0x8000},
                                  [WEFT_DTYPE_BF16] = {0x7f7f, 0x7f80, 0x7fc0, 0x8000},
                                  [WEFT_DTYPE_F8E4M3] = {0x7e, 0x7e, 0x7f, 0x80},
                                  [WEFT_DTYPE_F8E5M2] = {0x7b, 0x7b, 0x7e, 0x80}};
    uint32_t low = 0, high = limits[to].largest, code, sign = signbit(value) ? limits[to].sign : 0;
    long double magnitude = fabsl(value), below, above, last, before;
    uint32_t previous = high - 1;

    while (high - low > 1) { /* invariant: value(low) <= magnitude < value(high), if not larger */
        uint32_t middle = (low + high) / 2;

        if (load(to, &middle) <= magnitude)
            low = middle;
        else
            high = middle;
    }
    below = load(to, &low);
    above = load(to, &high);
    code = magnitude - below < above - magnitude ||
                   (magnitude - below == above - magnitude && (low & 1) == 0)
               ? low
               : high;
    last = load(to, &limits[to].largest);
    before = load(to, &previous);
    if (magnitude >= last) code = limits[to].largest;
    if (magnitude >= last + (last - before) / 2) code = limits[to].overflow;
    code |= sign;
    if (isnan(value)) code = limits[to].nan;
    memcpy(out, &code, kit_dtype_bytes(to));
}

static void expect(uint32_t to, long double value, void *out)
{
    float single = (float)value;
    double wide = (double)value;
    uint8_t truth = value != 0;

    switch (to) {
    case WEFT_DTYPE_BOOL:
        memcpy(out, &truth, 1);
        break;
    case WEFT_DTYPE_F32:
        memcpy(out, &single, 4);
        break;
    case WEFT_DTYPE_F64:
        memcpy(out, &wide, 8);
        break;
    case WEFT_DTYPE_F16:
    case WEFT_DTYPE_BF16:
    case WEFT_DTYPE_F8E4M3:
    case WEFT_DTYPE_F8E5M2:
        expect_small(to, value, out);
        break;
    default:
        expect_whole(to, value, out);
    }
}

/* Bits of the mantissa; 0: not a float. */
static int mantissa_of(uint32_t dtype)
{
    static const int bits[WEFT_DTYPE_COUNT] = {
        [WEFT_DTYPE_F16] = 10, [WEFT_DTYPE_BF16] = 7,   [WEFT_DTYPE_F32] = 23,
        [WEFT_DTYPE_F64] = 52, [WEFT_DTYPE_F8E4M3] = 3, [WEFT_DTYPE_F8E5M2] = 2};

    return bits[dtype];
}

/* A NaN keeps its sign and the leading bits of its payload, and becomes quiet; f8 has one code for
 * all NaN of a sign. */
static void expect_nan(uint32_t from, uint32_t to, const void *source, void *out)
{
    int width = 8 * (int)kit_dtype_bytes(to), mantissa = mantissa_of(to);
    uint64_t bits = 0, sign, payload;

    memcpy(&bits, source, kit_dtype_bytes(from));
    sign = bits >> (8 * kit_dtype_bytes(from) - 1);
    payload = bits << (64 - mantissa_of(from)) >> (64 - mantissa);
    bits = ((UINT64_C(1) << (width - 1 - mantissa)) - 1) << mantissa | UINT64_C(1)
                                                                           << (mantissa - 1);
    bits |= payload;
    if (to == WEFT_DTYPE_F8E4M3) bits = 0x7f;
    if (to == WEFT_DTYPE_F8E5M2) bits = 0x7e;
    bits |= sign << (width - 1);
    memcpy(out, &bits, kit_dtype_bytes(to));
}

/* ---- what to cast ---- */

/* All codes of small types; random numbers of all magnitudes and edge cases of large types. */
static size_t make_sources(uint32_t from, unsigned char *out)
{
    size_t bytes = kit_dtype_bytes(from), count = bytes == 1 ? 256 : bytes == 2 ? 65536 : 6000;

    for (size_t i = 0; i < count; i++) {
        uint64_t bits = i;
        double wide;
        float single;

        if (from == WEFT_DTYPE_BOOL) bits = i % 2;
        if (bytes >= 4) {
            bits = next_random() >> (next_random() % 64);
            if (next_random() % 2) bits = -bits;
            if (next_random() % 4 == 0) bits = (UINT64_C(1) << (i % 64)) + (uint64_t)(i % 7) - 3;
        }
        if (from == WEFT_DTYPE_F32 || from == WEFT_DTYPE_F64) {
            wide = ldexp((double)(int64_t)next_random(), (int)(next_random() % 400) - 260);
            if (i % 50 == 0) wide = i % 100 == 0 ? INFINITY : NAN;
            if (i % 3 == 0) wide = (double)((int)(i % 2000) - 1000) / 16;
            /* Next to a tie of f16, where double rounding is wrong. */
            if (i % 7 == 0) wide = (1 + ldexp(1, -11)) * (1 + (i % 2 ? 1 : -1) * ldexp(1, -40));
            single = (float)wide;
            if (from == WEFT_DTYPE_F32)
                memcpy(&bits, &single, 4);
            else
                memcpy(&bits, &wide, 8);
            if (i % 11 == 0) bits = next_random(); /* subnormals, and NaN of both kinds */
            if (i % 11 == 1) bits = next_random() >> 1 | UINT64_C(0x7ff) << (8 * bytes - 12);
            if (i % 11 == 2) bits = next_random() & UINT64_C(0xfffff);
        }
        memcpy(out + i * bytes, &bits, bytes);
    }
    return count;
}

TEST(every_real_pair_rounds_and_saturates_as_it_should)
{
    static unsigned char source[65536 * 2 + 6000 * 8], target[65536 * 8];

    if (LDBL_MANT_DIG < 64) {
        printf("skipped: long double does not hold an i64 here\n");
        return;
    }
    test_seed_begin("every_real_pair_rounds_and_saturates_as_it_should");
    state = test_state(0);
    for (uint32_t from = 0; from < WEFT_DTYPE_C64; from++) {
        size_t count = make_sources(from, source), bytes = kit_dtype_bytes(from);

        for (uint32_t to = 0; to < WEFT_DTYPE_C64; to++) {
            size_t out = kit_dtype_bytes(to);
            unsigned char wanted[8];

            cpu_cast(from, to, count, source, target);
            for (size_t i = 0; i < count; i++) {
                long double value = load(from, source + i * bytes);

                if (from == to)
                    memcpy(wanted, source + i * bytes, bytes);
                else if (isnan(value) && !is_whole(to))
                    expect_nan(from, to, source + i * bytes, wanted);
                else
                    expect(to, value, wanted);
                ck_assert_msg(memcmp(target + i * out, wanted, out) == 0,
                              "%s to %s: %.20Lg became %.20Lg", kit_dtype_name(from),
                              kit_dtype_name(to), value, load(to, target + i * out));
            }
        }
    }
}

TEST(complex_goes_to_complex_only)
{
    float single[4] = {1, 2, -3, 4};
    double wide[4];

    ck_assert_int_eq(cpu_kernel_cast(NULL, WEFT_DTYPE_C64, WEFT_DTYPE_C128, 2, single, wide, NULL),
                     WEFT_OK);
    ck_assert(wide[0] == 1 && wide[1] == 2 && wide[2] == -3 && wide[3] == 4);
    ck_assert_int_eq(cpu_kernel_cast(NULL, WEFT_DTYPE_C64, WEFT_DTYPE_F32, 2, single, wide, NULL),
                     WEFT_ERR_UNSUPPORTED);
    ck_assert_int_eq(cpu_kernel_cast(NULL, WEFT_DTYPE_F32, WEFT_DTYPE_C64, 2, single, wide, NULL),
                     WEFT_ERR_UNSUPPORTED);
    ck_assert_int_eq(cpu_kernel_cast(NULL, 99, WEFT_DTYPE_F32, 2, single, wide, NULL),
                     WEFT_ERR_UNSUPPORTED);
}
