/* reductions.h - the ABI's reductions of two numbers, for every dtype that has them. */
#ifndef WEFT_KERNELS_REDUCTIONS_H
#define WEFT_KERNELS_REDUCTIONS_H

#include "numbers.h"

/* As enum weft_reduction in the ABI; gpu_kernel.c asserts that they agree.  premul_sum has no
 * kernel: each rank scales its data first, and the reduction is a sum. */
enum wk_reduction { WK_SUM, WK_PROD, WK_MIN, WK_MAX, WK_AVG, WK_BAND, WK_BOR, WK_BXOR };

/* Integers wrap, so they are computed as unsigned types of at least 32 bits. */
template <class T, bool Wide = (sizeof(T) > 4)> struct wk_wrapping {
    using type = uint32_t;
};
template <class T> struct wk_wrapping<T, true> {
    using type = uint64_t;
};

template <class D> WK_DEVICE typename D::number wk_add(typename D::number a, typename D::number b)
{
    using number = typename D::number;

    if constexpr (D::kind == WK_COMPLEX) {
        return number{a.re + b.re, a.im + b.im};
    } else if constexpr (D::kind == WK_INTEGER) {
        using wrapping = typename wk_wrapping<number>::type;
        return number(wrapping(a) + wrapping(b));
    } else {
        return a + b;
    }
}

template <class D> WK_DEVICE typename D::number wk_mul(typename D::number a, typename D::number b)
{
    using number = typename D::number;

    if constexpr (D::kind == WK_COMPLEX) {
        return number{a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
    } else if constexpr (D::kind == WK_INTEGER) {
        using wrapping = typename wk_wrapping<number>::type;
        return number(wrapping(a) * wrapping(b));
    } else {
        return a * b;
    }
}

/* NaN propagates.  If the numbers are equal, such as zeros of both signs, the result is the second,
 * as in gloo-cpu. */
template <class D, bool Largest>
WK_DEVICE typename D::number wk_extreme(typename D::number a, typename D::number b)
{
    if constexpr (D::kind == WK_COMPLEX) {
        return a;
    } else {
        if (a != a) return a;
        if (b != b) return b;
        return (Largest ? a > b : a < b) ? a : b;
    }
}

template <class D, int Reduction>
WK_DEVICE typename D::number wk_combine(typename D::number a, typename D::number b)
{
    using number = typename D::number;

    if constexpr (D::kind == WK_BOOL) {
        if constexpr (Reduction == WK_SUM || Reduction == WK_MAX || Reduction == WK_BOR)
            return number(a | b);
        else if constexpr (Reduction == WK_BXOR)
            return number(a ^ b);
        else
            return number(a & b);
    } else if constexpr (Reduction == WK_PROD) {
        return wk_mul<D>(a, b);
    } else if constexpr (Reduction == WK_MIN || Reduction == WK_MAX) {
        return wk_extreme<D, Reduction == WK_MAX>(a, b);
    } else if constexpr (D::kind == WK_INTEGER && Reduction == WK_BAND) {
        return number(a & b);
    } else if constexpr (D::kind == WK_INTEGER && Reduction == WK_BOR) {
        return number(a | b);
    } else if constexpr (D::kind == WK_INTEGER && Reduction == WK_BXOR) {
        return number(a ^ b);
    } else {
        return wk_add<D>(a, b);
    }
}

/* One float's part of an average. */
template <class D> WK_DEVICE typename D::number wk_divide(typename D::number a, uint32_t divisor)
{
    using number = typename D::number;

    if constexpr (D::kind == WK_COMPLEX) {
        using part = typename D::part;
        return number{a.re / part(divisor), a.im / part(divisor)};
    } else if constexpr (D::kind == WK_FLOAT) {
        return a / number(divisor);
    } else {
        return a;
    }
}

/* Add a part of a mean.  The mean of finite numbers is finite.  If its parts are rounded up, the
 * last addition may round to infinity.  The largest finite number is then nearer to the mean. */
template <class F> WK_DEVICE F wk_mean_add(F a, F b)
{
    constexpr F largest = wk_ieee<F>::largest;
    const F c = a + b;

    if (c > largest && a <= largest && b <= largest) return largest;
    if (c < -largest && a >= -largest && b >= -largest) return -largest;
    return c;
}

template <class D, uint32_t N>
WK_DEVICE void wk_mean_add_all(typename D::number (&sum)[N], const typename D::number (&value)[N])
{
    WK_UNROLL
    for (uint32_t i = 0; i < N; i++) {
        if constexpr (D::kind == WK_COMPLEX) {
            sum[i].re = wk_mean_add(sum[i].re, value[i].re);
            sum[i].im = wk_mean_add(sum[i].im, value[i].im);
        } else if constexpr (D::kind == WK_FLOAT) {
            sum[i] = wk_mean_add(sum[i], value[i]);
        }
    }
}

/* The exact sum of integers, in 128 bits. */
struct wk_wide {
    uint64_t low, high;

    template <class T> WK_DEVICE void add(T value)
    {
        uint64_t bits = uint64_t(value);

        high += wk_negative(value) ? ~uint64_t(0) : 0;
        low += bits;
        high += low < bits;
    }
    /* The lower half of the quotient, rounded toward zero.  Computes 32 bits at a time. */
    WK_DEVICE uint64_t divided(uint32_t divisor) const
    {
        const bool negative = high >> 63 != 0;
        const uint64_t bottom = negative ? 0 - low : low;
        const uint64_t top = negative ? ~high + (low == 0) : high;
        uint64_t rest = top % divisor, quotient;

        rest = rest << 32 | bottom >> 32;
        quotient = rest / divisor << 32;
        rest = rest % divisor << 32 | (bottom & 0xffffffffu);
        quotient |= rest / divisor;
        return negative ? 0 - quotient : quotient;
    }
};

/* True if REDUCTION is summed in a struct wk_wide. */
template <class D> WK_DEVICE bool wk_is_wide(uint32_t reduction)
{
    return D::kind == WK_INTEGER && reduction == WK_AVG;
}

/* True if D has the reduction. */
template <class D, int Reduction>
constexpr bool wk_defined = D::kind == WK_INTEGER || (D::kind == WK_BOOL && Reduction != WK_AVG) ||
                            ((D::kind == WK_FLOAT || D::kind == WK_COMPLEX) &&
                             Reduction != WK_BAND && Reduction != WK_BOR && Reduction != WK_BXOR &&
                             (D::kind == WK_FLOAT || (Reduction != WK_MIN && Reduction != WK_MAX)));

/* SUM[i] = SUM[i] op VALUE[i].  The reduction is a run-time value but equal for all threads, so
 * there is one branch per pack. */
template <class D, int Reduction, uint32_t N>
WK_DEVICE void wk_combine_all(typename D::number (&sum)[N], const typename D::number (&value)[N])
{
    if constexpr (wk_defined<D, Reduction>) {
        WK_UNROLL
        for (uint32_t i = 0; i < N; i++)
            sum[i] = wk_combine<D, Reduction>(sum[i], value[i]);
    }
}

/* ARGS has the reduction, the number of buffers and the divisor of an average. */
template <class D, class Args, uint32_t N>
WK_DEVICE void wk_combine_pack(const Args &args, typename D::number (&sum)[N],
                               const typename D::number (&value)[N])
{
    if (args.reduction == WK_AVG && args.divisor >= args.size)
        return wk_mean_add_all<D>(sum, value);
    switch (args.reduction) {
    case WK_PROD:
        return wk_combine_all<D, WK_PROD>(sum, value);
    case WK_MIN:
        return wk_combine_all<D, WK_MIN>(sum, value);
    case WK_MAX:
        return wk_combine_all<D, WK_MAX>(sum, value);
    case WK_BAND:
        return wk_combine_all<D, WK_BAND>(sum, value);
    case WK_BOR:
        return wk_combine_all<D, WK_BOR>(sum, value);
    case WK_BXOR:
        return wk_combine_all<D, WK_BXOR>(sum, value);
    default: /* sum, avg */
        return wk_combine_all<D, WK_SUM>(sum, value);
    }
}

/* Floats of an average are divided before they are combined. */
template <class D, uint32_t N>
WK_DEVICE void wk_prepare_pack(uint32_t reduction, uint32_t divisor, typename D::number (&value)[N])
{
    if (reduction != WK_AVG) return;
    WK_UNROLL
    for (uint32_t i = 0; i < N; i++)
        value[i] = wk_divide<D>(value[i], divisor);
}

/* Convert each element to its storage format. */
template <class D, uint32_t N>
WK_DEVICE wk_pack<typename D::bits, N> wk_finish(const typename D::number (&sum)[N])
{
    wk_pack<typename D::bits, N> out;

    WK_UNROLL
    for (uint32_t i = 0; i < N; i++) {
        if constexpr (D::keeps)
            out.at[i] = D::keep(sum[i]);
        else
            out.at[i] = D::put(sum[i]);
    }
    return out;
}

/* SUM[i] = SUM[i] op IN[i], or IN[i] if FIRST.  ARGS as in wk_combine_pack. */
template <class D, class Args, uint32_t N>
WK_DEVICE void wk_reduce_pack(const Args &args, const wk_pack<typename D::bits, N> &in, bool first,
                              typename D::number (&sum)[N])
{
    typename D::number value[N];

    WK_UNROLL
    for (uint32_t i = 0; i < N; i++)
        value[i] = D::get(in.at[i]);
    wk_prepare_pack<D>(args.reduction, args.divisor, value);
    WK_UNROLL
    for (uint32_t i = 0; i < N && first; i++)
        sum[i] = value[i];
    if (!first) wk_combine_pack<D>(args, sum, value);
}

/* The exact sum of integers: SUM[i] += IN[i]. */
template <class D, uint32_t N>
WK_DEVICE void wk_sum_pack(const wk_pack<typename D::bits, N> &in, struct wk_wide (&sum)[N])
{
    WK_UNROLL
    for (uint32_t i = 0; i < N; i++)
        sum[i].add(in.at[i]);
}

template <class D, uint32_t N>
WK_DEVICE wk_pack<typename D::bits, N> wk_average_pack(const struct wk_wide (&sum)[N],
                                                       uint32_t divisor)
{
    wk_pack<typename D::bits, N> out;

    WK_UNROLL
    for (uint32_t i = 0; i < N; i++)
        out.at[i] = typename D::bits(sum[i].divided(divisor));
    return out;
}

#endif
