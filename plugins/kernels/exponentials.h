/* exponentials.h - exponentials, powers and roots in f64.
 *
 * They are the same operations on all devices and give the same bits.  AMD's libraries are not
 * needed for them. */
#ifndef WEFT_KERNELS_EXPONENTIALS_H
#define WEFT_KERNELS_EXPONENTIALS_H

#include "draws.h"
#include "numbers.h"

WK_DEVICE double wk_infinity(void)
{
    return wk_bits<double>(uint64_t(0x7ff0000000000000u));
}

/* 2^EXPONENT, for EXPONENT from -1022 to 1023. */
WK_DEVICE double wk_power_of_two(int32_t exponent)
{
    return wk_bits<double>(uint64_t(exponent + 1023) << 52);
}

/* exp(X).  The error is at most 1e-15 of the result, and one step if the result is denormal. */
WK_DEVICE double wk_exp(double x)
{
    const double terms[] = {1.0 / 6227020800,
                            1.0 / 479001600,
                            1.0 / 39916800,
                            1.0 / 3628800,
                            1.0 / 362880,
                            1.0 / 40320,
                            1.0 / 5040,
                            1.0 / 720,
                            1.0 / 120,
                            1.0 / 24,
                            1.0 / 6,
                            1.0 / 2,
                            1.0,
                            1.0};
    double r, sum = 0;
    int32_t n;

    if (x != x) return x;
    if (x > 710) return wk_infinity();
    if (x < -746) return 0;
    n = int32_t(x * 1.4426950408889634 + (x < 0 ? -0.5 : 0.5));
    r = x - n * 6.93147180369123816490e-01; /* exact: the constant has 32 bits */
    r = r - n * 1.90821492927058770002e-10;
    WK_UNROLL
    for (double term : terms)
        sum = term + r * sum;
    return sum * wk_power_of_two(n / 2) * wk_power_of_two(n - n / 2);
}

/* log(X), for X above 0. */
WK_DEVICE double wk_log(double x)
{
    if (x > wk_ieee<double>::largest) return x;
    if (x < 0x1p-1022) return log_f64(x * 0x1p54) - 37.429947750237048;
    return log_f64(x);
}

/* X^P, for X of 0 or more and P above 0.  NaN stays.  1 to any P, also an infinite one, is 1. */
WK_DEVICE double wk_raise(double x, double p)
{
    if (x == 1) return 1;
    return x > 0 ? wk_exp(p * wk_log(x)) : x;
}

/* The square root of X of 0 or more, rounded correctly.  NaN stays. */
WK_DEVICE double wk_square_root(double x)
{
    int32_t shift = 0, exponent;
    uint64_t bits;

    if (!(x > 0) || x > wk_ieee<double>::largest) return x;
    if (x < 0x1p-1022) {
        x *= 0x1p108;
        shift = -54;
    }
    bits = wk_bits<uint64_t>(x);
    exponent = int32_t(bits >> 52) - 1023;
    bits -= uint64_t(int64_t(exponent & ~1)) << 52; /* from 1 to 4 */
    return wk_root(wk_bits<double>(bits)) * wk_power_of_two((exponent & ~1) / 2 + shift);
}

#endif
