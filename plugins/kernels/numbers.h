/* numbers.h - the ABI's dtypes: storage, type of computation, and rounding.
 *
 * Small floats are converted bit by bit, which gives the same result with every compiler.  f16 uses
 * the instruction that both devices have, bf16 that of CUDA. */
#ifndef WEFT_KERNELS_NUMBERS_H
#define WEFT_KERNELS_NUMBERS_H

#include "portable.h"

/* ---- small floats ------------------------------------------------------------- */

/* Layout of an IEEE-like format narrower than F.  LARGEST: bits of the largest finite number. */
template <int Exponent, int Mantissa, uint32_t Largest, uint32_t NaN, bool Saturates>
struct wk_format {
    static constexpr int exponent = Exponent, mantissa = Mantissa;
    static constexpr int bias = (1 << (Exponent - 1)) - 1;
    static constexpr uint32_t largest = Largest, nan = NaN;
    static constexpr uint32_t past =
        Saturates ? Largest : Largest + 1; /* code of values beyond the largest */
    static constexpr uint32_t sign = 1u << (Exponent + Mantissa);
};
using wk_format_f16 = wk_format<5, 10, 0x7bff, 0x7e00, false>;
using wk_format_bf16 = wk_format<8, 7, 0x7f7f, 0x7fc0, false>;
using wk_format_e4m3 = wk_format<4, 3, 0x7e, 0x7f, true>;
using wk_format_e5m2 = wk_format<5, 2, 0x7b, 0x7e, true>;

template <class F> struct wk_ieee;
template <> struct wk_ieee<float> {
    using bits = uint32_t;
    static constexpr int mantissa = 23, bias = 127;
    static constexpr float largest = 0x1.fffffep127f;
};
template <> struct wk_ieee<double> {
    using bits = uint64_t;
    static constexpr int mantissa = 52, bias = 1023;
    static constexpr double largest = 0x1.fffffffffffffp1023;
};

/* Round to nearest even. */
template <class Format, class F> WK_DEVICE uint32_t wk_narrow(F value)
{
    using bits = typename wk_ieee<F>::bits;
    constexpr int mantissa = wk_ieee<F>::mantissa, bias = wk_ieee<F>::bias;
    constexpr int drop = mantissa - Format::mantissa;
    constexpr bits top = bits(1) << (sizeof(bits) * 8 - 1);
    constexpr bits infinity = bits(2 * bias + 1) << mantissa;
    /* The smallest normal number, and a number whose last bit has the value of the format's
     * smallest step. */
    constexpr bits normal = bits(bias + 1 - Format::bias) << mantissa;
    constexpr bits ruler = bits(bias + 1 - Format::bias + drop) << mantissa;
    bits raw = wk_bits<bits>(value);
    uint32_t sign = (raw & top) != 0 ? Format::sign : 0;
    uint32_t out;

    raw &= ~top;
    if (raw > infinity) return Format::nan;
    if (raw < normal) {
        F sum = wk_bits<F>(raw) + wk_bits<F>(ruler);
        return sign | uint32_t(wk_bits<bits>(sum) - ruler);
    }
    raw += (bits(1) << (drop - 1)) - 1 + ((raw >> drop) & 1);
    raw = (raw - (bits(bias - Format::bias) << mantissa)) >> drop;
    out = raw > Format::largest ? Format::past : uint32_t(raw);
    return sign | out;
}

template <class Format> WK_DEVICE float wk_widen(uint32_t raw)
{
    constexpr int drop = 23 - Format::mantissa;
    uint32_t sign = (raw & Format::sign) != 0 ? 0x80000000u : 0;
    uint32_t magnitude = raw & (Format::sign - 1);
    float scale = wk_bits<float>(uint32_t(127 + 127 - Format::bias) << 23);
    float value = wk_bits<float>(magnitude << drop) * scale;
    constexpr bool has_infinity = Format::largest + 1 != Format::nan;

    if (magnitude > Format::largest)
        return wk_bits<float>(
            sign | (has_infinity && magnitude == Format::largest + 1 ? 0x7f800000u : 0x7fc00000u));
    return wk_bits<float>(wk_bits<uint32_t>(value) | sign);
}

WK_DEVICE float wk_f16_get(uint16_t raw)
{
#if defined(__CUDACC__)
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(raw));
    return value;
#elif defined(__HIP__)
    return float(wk_bits<_Float16>(raw));
#else
    return wk_widen<wk_format_f16>(raw);
#endif
}

WK_DEVICE uint16_t wk_f16_put(float value)
{
#if defined(__CUDACC__)
    uint16_t raw;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(raw) : "f"(value));
    return raw;
#elif defined(__HIP__)
    return wk_bits<uint16_t>(_Float16(value));
#else
    return uint16_t(wk_narrow<wk_format_f16>(value));
#endif
}

WK_DEVICE float wk_bf16_get(uint16_t raw)
{
    return wk_bits<float>(uint32_t(raw) << 16);
}

/* NaN is a case of its own: the instruction gives another code, and the addition to the bits would
 * turn some NaN into infinity. */
WK_DEVICE uint16_t wk_bf16_put(float value)
{
    if (value != value) return 0x7fc0;
#if defined(__CUDACC__)
    uint16_t raw;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(raw) : "f"(value));
    return raw;
#else
    uint32_t raw = wk_bits<uint32_t>(value);
    return uint16_t((raw + 0x7fff + ((raw >> 16) & 1)) >> 16);
#endif
}

/* ---- dtypes -------------------------------------------------------------------- */

enum wk_kind { WK_BOOL, WK_INTEGER, WK_FLOAT, WK_COMPLEX };

/* `bits` is one element in memory, and `number` is the type of computation.  A dtype that `keeps`
 * has a `keep` in addition to `put`, for results of reductions: infinities stay, while casts
 * saturate. */
template <class T> struct wk_integer {
    using bits = T;
    using number = T;
    static constexpr wk_kind kind = WK_INTEGER;
    static constexpr bool keeps = false;
    static WK_DEVICE number get(bits raw)
    {
        return raw;
    }
    static WK_DEVICE bits put(number value)
    {
        return value;
    }
};

struct wk_bool : wk_integer<uint8_t> {
    static constexpr wk_kind kind = WK_BOOL;
};
struct wk_i8 : wk_integer<int8_t> {
};
struct wk_u8 : wk_integer<uint8_t> {
};
struct wk_i16 : wk_integer<int16_t> {
};
struct wk_u16 : wk_integer<uint16_t> {
};
struct wk_i32 : wk_integer<int32_t> {
};
struct wk_u32 : wk_integer<uint32_t> {
};
struct wk_i64 : wk_integer<int64_t> {
};
struct wk_u64 : wk_integer<uint64_t> {
};
struct wk_f32 : wk_integer<float> {
    static constexpr wk_kind kind = WK_FLOAT;
};
struct wk_f64 : wk_integer<double> {
    static constexpr wk_kind kind = WK_FLOAT;
};

struct wk_f16 {
    using bits = uint16_t;
    using number = float;
    using format = wk_format_f16;
    static constexpr wk_kind kind = WK_FLOAT;
    static constexpr bool keeps = false;
    static WK_DEVICE number get(bits raw)
    {
        return wk_f16_get(raw);
    }
    static WK_DEVICE bits put(number value)
    {
        return wk_f16_put(value);
    }
};

struct wk_bf16 {
    using bits = uint16_t;
    using number = float;
    using format = wk_format_bf16;
    static constexpr wk_kind kind = WK_FLOAT;
    static constexpr bool keeps = false;
    static WK_DEVICE number get(bits raw)
    {
        return wk_bf16_get(raw);
    }
    static WK_DEVICE bits put(number value)
    {
        return wk_bf16_put(value);
    }
};

template <class Format> struct wk_f8 {
    using bits = uint8_t;
    using number = float;
    using format = Format;
    static constexpr wk_kind kind = WK_FLOAT;
    static constexpr bool keeps =
        Format::largest + 1 != Format::nan; /* the format has infinities */
    static WK_DEVICE number get(bits raw)
    {
        return wk_widen<Format>(raw);
    }
    static WK_DEVICE bits put(number value)
    {
        return bits(wk_narrow<Format>(value));
    }
    static WK_DEVICE bits keep(number value)
    {
        uint32_t raw = wk_bits<uint32_t>(value);

        if ((raw & 0x7fffffffu) != 0x7f800000u) return put(value);
        return bits((raw >> 31 != 0 ? Format::sign : 0) | (Format::largest + 1));
    }
};
using wk_f8e4m3 = wk_f8<wk_format_e4m3>;
using wk_f8e5m2 = wk_f8<wk_format_e5m2>;

template <class F> struct wk_pair {
    F re, im;
};
template <class F> struct wk_complex {
    using bits = wk_pair<F>; /* aligned as its parts, as the ABI allows */
    using number = wk_pair<F>;
    using part = F;
    static constexpr wk_kind kind = WK_COMPLEX;
    static constexpr bool keeps = false;
    static WK_DEVICE number get(bits raw)
    {
        return raw;
    }
    static WK_DEVICE bits put(number value)
    {
        return value;
    }
};
using wk_c64 = wk_complex<float>;
using wk_c128 = wk_complex<double>;

/* ---- casts --------------------------------------------------------------------- */

/* Bits of a float's mantissa. */
template <class D> struct wk_mantissa {
    static constexpr int bits = D::format::mantissa;
};
template <> struct wk_mantissa<wk_f32> {
    static constexpr int bits = 23;
};
template <> struct wk_mantissa<wk_f64> {
    static constexpr int bits = 52;
};

/* A NaN keeps its sign and the leading bits of its payload, and becomes quiet; f8 has one code for
 * all of a sign. */
template <class From, class To> WK_DEVICE typename To::bits wk_convert_nan(typename From::bits raw)
{
    using source = typename wk_word<sizeof(typename From::bits)>::type;
    using target = typename wk_word<sizeof(typename To::bits)>::type;
    constexpr int in = wk_mantissa<From>::bits, out = wk_mantissa<To>::bits;
    constexpr int width = int(sizeof(target)) * 8;
    const uint64_t bits = uint64_t(wk_bits<source>(raw));
    const uint64_t sign = bits >> (sizeof(source) * 8 - 1);
    const uint64_t payload = (bits & ((uint64_t(1) << in) - 1)) << (52 - in) >> (52 - out);
    const uint64_t infinity = ((uint64_t(1) << (width - 1 - out)) - 1) << out;
    uint64_t code = infinity | uint64_t(1) << (out - 1) | payload;

    if constexpr (sizeof(target) == 1) code = To::format::nan;
    return wk_bits<typename To::bits>(target(sign << (width - 1) | code));
}

/* Toward zero, saturating; NaN gives 0. */
template <class I, class F> WK_DEVICE I wk_to_integer(F value)
{
    constexpr bool is_signed = I(-1) < I(0);
    constexpr int digits = int(sizeof(I)) * 8 - (is_signed ? 1 : 0);
    constexpr I most = is_signed ? I((uint64_t(1) << digits) - 1) : I(-1);
    constexpr I least = is_signed ? I(-most - 1) : I(0);
    const F limit = F(uint64_t(1) << (digits - 1)) * F(2); /* one more than the maximum */

    if (value != value) return I(0);
    if (value >= limit) return most;
    if (value <= F(least)) return least;
    return I(value);
}

template <class I> WK_DEVICE bool wk_negative(I value)
{
    if constexpr (I(-1) < I(0))
        return value < I(0);
    else
        return false;
}

/* Between integers, saturating. */
template <class To, class From> WK_DEVICE To wk_clamp(From value)
{
    constexpr bool to_signed = To(-1) < To(0);
    constexpr uint64_t most =
        to_signed ? (uint64_t(1) << (sizeof(To) * 8 - 1)) - 1 : uint64_t(To(-1));
    constexpr int64_t least = to_signed ? -int64_t(most) - 1 : 0;

    if (wk_negative(value)) return int64_t(value) < least ? To(least) : To(value);
    return uint64_t(value) > most ? To(most) : To(value);
}

/* A 64-bit integer as a double that still rounds correctly to a narrower format: discarded bits are
 * kept as one sticky bit. */
template <class I> WK_DEVICE double wk_sticky(I value)
{
    bool negative = wk_negative(value);
    uint64_t magnitude = negative ? uint64_t(0) - uint64_t(value) : uint64_t(value);

    if (magnitude >> 53 != 0)
        magnitude = (magnitude & ~uint64_t(0xfff)) | ((magnitude & 0xfff) != 0 ? 0x800 : 0);
    return negative ? -double(magnitude) : double(magnitude);
}

template <class To> struct wk_float_of;
template <> struct wk_float_of<wk_f32> {
    template <class N> static WK_DEVICE float make(N value)
    {
        return float(value);
    }
};
template <> struct wk_float_of<wk_f64> {
    template <class N> static WK_DEVICE double make(N value)
    {
        return double(value);
    }
};
template <class To> struct wk_float_of {
    static WK_DEVICE typename To::bits make(float value)
    {
        return To::put(value);
    }
    static WK_DEVICE typename To::bits make(double value)
    {
        return typename To::bits(wk_narrow<typename To::format>(value));
    }
    template <class I> static WK_DEVICE typename To::bits make(I value)
    {
        return make(wk_sticky(value));
    }
};

template <class From, class To> WK_DEVICE typename To::bits wk_convert(typename From::bits raw)
{
    using target = typename To::bits;
    typename From::number value = From::get(raw);

    if constexpr (From::kind == WK_COMPLEX)
        return target{typename To::part(value.re), typename To::part(value.im)};
    else if constexpr (To::kind == WK_BOOL)
        return target(value != typename From::number(0));
    else if constexpr (From::kind == WK_FLOAT && To::kind == WK_FLOAT)
        return value != value ? wk_convert_nan<From, To>(raw) : wk_float_of<To>::make(value);
    else if constexpr (To::kind == WK_FLOAT)
        return wk_float_of<To>::make(value);
    else if constexpr (From::kind == WK_FLOAT)
        return wk_to_integer<target>(value);
    else
        return wk_clamp<target>(value);
}

/* The same for N elements.  NaN is rare: it is looked for once. */
template <class From, class To, uint32_t N>
WK_DEVICE wk_pack<typename To::bits, N> wk_convert_pack(const wk_pack<typename From::bits, N> &in)
{
    wk_pack<typename To::bits, N> out;
    bool has_nan = false;

    WK_UNROLL
    for (uint32_t i = 0; i < N; i++) {
        if constexpr (From::kind == WK_FLOAT && To::kind == WK_FLOAT) {
            typename From::number value = From::get(in.at[i]);
            has_nan = has_nan || value != value;
            out.at[i] = wk_float_of<To>::make(value);
        } else {
            out.at[i] = wk_convert<From, To>(in.at[i]);
        }
    }
    if (has_nan) {
        WK_UNROLL
        for (uint32_t i = 0; i < N; i++)
            out.at[i] = wk_convert<From, To>(in.at[i]);
    }
    return out;
}

#endif
