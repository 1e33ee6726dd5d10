/* patterns.c - input data of the ranks.
 *
 * Plugins may add in any order and store partial results, so the exact pattern keeps every partial
 * result representable: small multiples of a half for sums, powers of two for products. */
#include "kit.h"

#include <math.h>
#include <string.h>

static uint64_t mix(uint64_t seed, int32_t rank, uint64_t index)
{
    uint64_t h = wf_hash_mix(wf_hash_mix(seed, (uint64_t)rank + 1), index);

    h ^= h >> 32;
    h *= UINT64_C(0xd6e8feb86659fd93);
    return h ^ (h >> 32);
}

/* A number in [-most, most]. */
static double spread(uint64_t bits, double most)
{
    return (double)(int64_t)(bits % (2 * (uint64_t)most + 1)) - most;
}

/* A whole number such that the sum over SIZE ranks of them, in any order, stays exact. */
static double small_whole(uint64_t bits, double limit, int32_t size, int32_t rank, uint64_t index)
{
    double most = floor(limit / size);

    if (most >= 1) return spread(bits, most < 64 ? most : 64);
    /* With more ranks than the format has room for, only some of them contribute a value. */
    if ((uint64_t)rank % (uint64_t)size != (index + bits % 2) % (uint64_t)size) return 0;
    return 1;
}

static double exact_real(uint32_t dtype, uint32_t reduction, int32_t size, int32_t rank,
                         uint64_t index, uint64_t bits)
{
    double limit = wf_dtype_exact_limit(dtype);

    switch (reduction) {
    case WEFT_REDUCE_PROD:
        if (rank >= 4) return (bits & 8) != 0 ? -1 : 1;
        return ldexp((bits & 8) != 0 ? -1 : 1, (int)(bits % 3) - 1);
    case WEFT_REDUCE_AVG:
        return small_whole(bits, limit, size, rank, index) * size * 0.5;
    case WEFT_REDUCE_PREMUL_SUM: /* some factors are twice as large as others */
        return small_whole(bits, limit / 2, size, rank, index) * 0.5;
    default:
        return small_whole(bits, limit, size, rank, index) * 0.5;
    }
}

static struct wf_number exact_complex(uint32_t dtype, uint32_t reduction, int32_t size,
                                      int32_t rank, uint64_t index, uint64_t bits)
{
    struct wf_number number = {0};

    if (reduction == WEFT_REDUCE_PROD) {
        double part = exact_real(dtype, reduction, size, rank, index, bits);
        if ((bits & 16) != 0)
            number.re = part;
        else
            number.im = part;
    } else {
        number.re = exact_real(dtype, reduction, size, rank, index, bits);
        number.im = exact_real(dtype, reduction, size, rank, index, bits >> 20);
    }
    return number;
}

static struct wf_number exact_integer(uint32_t dtype, uint32_t reduction, int32_t size,
                                      uint64_t bits)
{
    struct wf_number number = {.integer = bits};

    if (dtype == WEFT_DTYPE_BOOL) {
        /* Mostly ones for "and", mostly zeros for "or", so that both results occur. */
        bool is_or = reduction == WEFT_REDUCE_SUM || reduction == WEFT_REDUCE_MAX ||
                     reduction == WEFT_REDUCE_BOR;
        number.integer = (bits % (uint64_t)(size + 1) == 0) == is_or;
    } else if (reduction == WEFT_REDUCE_AVG) {
        double most = floor(wf_dtype_exact_limit(dtype) / size);
        uint64_t range = most < 1000 ? (uint64_t)most : 1000;
        number.integer = bits % (range + 1);
        if (wf_dtype_is_signed(dtype) && (bits & 0x10000) != 0) number.integer = 0 - number.integer;
    }
    return number;
}

/* Minimum and maximum do not round, so any finite number is allowed. */
static double any_finite(uint32_t dtype, uint64_t bits)
{
    return ldexp(spread(bits, 7), (int)((bits >> 20) % 6) - (dtype == WEFT_DTYPE_F8E4M3 ? 3 : 4));
}

static struct wf_number exact(uint32_t dtype, uint32_t reduction, int32_t size, int32_t rank,
                              uint64_t index, uint64_t bits)
{
    if (wf_dtype_is_complex(dtype)) return exact_complex(dtype, reduction, size, rank, index, bits);
    if (!wf_dtype_is_float(dtype)) return exact_integer(dtype, reduction, size, bits);
    if (reduction == WEFT_REDUCE_MIN || reduction == WEFT_REDUCE_MAX)
        return (struct wf_number){.re = any_finite(dtype, bits)};
    return (struct wf_number){.re = exact_real(dtype, reduction, size, rank, index, bits)};
}

static double largest(uint32_t dtype)
{
    switch (dtype) {
    case WEFT_DTYPE_F16:
        return 65504;
    case WEFT_DTYPE_F8E4M3:
        return 448;
    case WEFT_DTYPE_F8E5M2:
        return 57344;
    case WEFT_DTYPE_F64:
    case WEFT_DTYPE_C128:
        return 0x1.fffffffffffffp1023;
    case WEFT_DTYPE_BF16:
        return 0x1.fep127;
    default:
        return 0x1.fffffep127;
    }
}

/* The limits of an integer dtype, or numbers between them; 0 for other dtypes. */
static uint64_t extreme_integer(uint32_t dtype, uint64_t bits)
{
    uint64_t top, most;

    if (dtype == WEFT_DTYPE_BOOL) return bits & 1;
    if (dtype >= WEFT_DTYPE_F16) return 0;
    top = UINT64_C(1) << (8 * wf_dtype_bytes(dtype) - 1);
    most = wf_dtype_is_signed(dtype) ? top - 1 : 2 * top - 1;
    if (bits % 4 == 0) return most;
    return bits % 4 == 1 ? ~most : bits;
}

/* The largest number, so that sums overflow.  For averages a smaller one, so that rounding does
 * not overflow. */
static double extreme_real(uint32_t dtype, uint32_t reduction, uint64_t bits)
{
    if (reduction == WEFT_REDUCE_AVG) return 0.75 * largest(dtype);
    if (reduction == WEFT_REDUCE_SUM || dtype != WEFT_DTYPE_F8E5M2) return largest(dtype);
    if (bits % 3 == 2) return any_finite(dtype, bits);
    return bits % 3 == 0 ? (double)INFINITY : (double)-INFINITY;
}

void kit_pattern_element(enum kit_pattern pattern, uint64_t seed, uint32_t dtype,
                         uint32_t reduction, int32_t size, int32_t rank, uint64_t index,
                         void *element)
{
    uint64_t bits = mix(seed, rank, index);
    struct wf_number number = exact(dtype, reduction, size, rank, index, bits);

    switch (pattern) {
    case KIT_EXACT:
        break;
    case KIT_ROUNDING:
        number.re = 0.5 + (double)(bits >> 12) * 0x1p-52; /* in [0.5, 1.5) */
        number.im = 0.5 + (double)(bits << 20 >> 12) * 0x1p-52;
        break;
    case KIT_NAN:
        if (index % 3 == 0 && rank == (int32_t)(index % (uint64_t)size)) number.re = (double)NAN;
        break;
    case KIT_EXTREME:
        number.integer = extreme_integer(dtype, bits);
        number.re = number.im = extreme_real(dtype, reduction, bits);
        break;
    }
    wf_number_store(dtype, number, element);
    if (dtype == WEFT_DTYPE_F8E5M2 && isinf(number.re)) /* numbers saturate when stored */
        *(uint8_t *)element = number.re > 0 ? 0x7c : 0xfc;
}

void kit_pattern_bits(uint64_t seed, uint32_t dtype, int32_t rank, uint64_t index, void *element)
{
    uint64_t bits[2] = {mix(seed, rank, index), mix(~seed, rank, index)};

    if (dtype == WEFT_DTYPE_BOOL) bits[0] &= 1;
    memcpy(element, bits, wf_dtype_bytes(dtype));
}

void kit_pattern_scale(uint32_t dtype, int32_t rank, void *element)
{
    static const double factors[] = {0.5, -0.5, 1, -1};
    struct wf_number scale = {.integer = 3 + 2 * (uint64_t)rank, .re = factors[rank % 4]};

    if (wf_dtype_is_complex(dtype) && rank % 2 == 0)
        scale = (struct wf_number){.im = factors[rank % 4]};
    wf_number_store(dtype, scale, element);
}
