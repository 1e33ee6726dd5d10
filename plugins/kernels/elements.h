/* elements.h - kernels over plain arrays: reduce of k buffers, cast, scale, fill, float keys. */
#ifndef WEFT_KERNELS_ELEMENTS_H
#define WEFT_KERNELS_ELEMENTS_H

#include "reductions.h"

/* First index of thread T of the block, and the step of its loop. */
#define WK_FIRST(t) (uint64_t(wk_block()) * WK_THREADS + (t))
#define WK_STEP     (uint64_t(args.blocks) * WK_THREADS)

/* ---- reduce ---- */

WK_DEVICE uint64_t wk_source(const struct wk_reduce_args &args, uint32_t k)
{
    return args.stride != 0 ? args.base + k * args.stride : wk_buffer(args.buffers, k);
}

/* Averages of integers. */
template <class D, uint32_t N>
WK_DEVICE void wk_average_at(const struct wk_reduce_args &args, uint64_t index)
{
    using pack = wk_pack<typename D::bits, N>;
    struct wk_wide sum[N] = {};

    for (uint32_t k = 0; k < args.size; k++)
        wk_sum_pack<D>(((const pack *)wk_source(args, k))[index], sum);
    ((pack *)args.target)[index] = wk_average_pack<D>(sum, args.divisor);
}

template <class D, uint32_t N>
WK_DEVICE void wk_reduce_at(const struct wk_reduce_args &args, uint64_t index)
{
    using pack = wk_pack<typename D::bits, N>;
    typename D::number sum[N] = {};

    if constexpr (D::kind == WK_INTEGER)
        if (wk_is_wide<D>(args.reduction)) return wk_average_at<D, N>(args, index);
    for (uint32_t k = 0; k < args.size; k++)
        wk_reduce_pack<D>(args, ((const pack *)wk_source(args, k))[index], k == 0, sum);
    ((pack *)args.target)[index] = wk_finish<D>(sum);
}

template <class D> WK_DEVICE void wk_reduce(const struct wk_reduce_args &args)
{
    constexpr uint32_t wide = 16 / sizeof(typename D::bits);
    uint64_t packs = args.word == 16 ? args.count / wide : 0;

    WK_EACH_THREAD(t)
    {
        for (uint64_t i = WK_FIRST(t); i < packs; i += WK_STEP)
            wk_reduce_at<D, wide>(args, i);
        for (uint64_t i = packs * wide + WK_FIRST(t); i < args.count; i += WK_STEP)
            wk_reduce_at<D, 1>(args, i);
    }
}

#define WK_REDUCE(name)                                                                            \
    WK_KERNEL(weft_reduce_##name, struct wk_reduce_args)                                           \
    {                                                                                              \
        wk_reduce<wk_##name>(args);                                                                \
    }

/* ---- cast ---- */

template <class From, class To> WK_DEVICE void wk_cast_to(const struct wk_map_args &args)
{
    using source = typename From::bits;
    using target = typename To::bits;
    constexpr uint32_t n = 16 / (sizeof(source) > sizeof(target) ? sizeof(source) : sizeof(target));
    uint64_t packs = args.wide != 0 ? args.count / n : 0;

    WK_EACH_THREAD(t)
    {
        for (uint64_t p = WK_FIRST(t); p < packs; p += WK_STEP) {
            ((wk_pack<target, n> *)args.target)[p] =
                wk_convert_pack<From, To, n>(((const wk_pack<source, n> *)args.source)[p]);
        }
        for (uint64_t i = packs * n + WK_FIRST(t); i < args.count; i += WK_STEP)
            ((target *)args.target)[i] = wk_convert<From, To>(((const source *)args.source)[i]);
    }
}

/* Call BODY(name, number) for each dtype that is not complex, and for each that is. */
#define WK_REAL_DTYPES(body)                                                                       \
    body(bool, 0) body(i8, 1) body(u8, 2) body(i16, 3) body(u16, 4) body(i32, 5) body(u32, 6)      \
        body(i64, 7) body(u64, 8) body(f16, 9) body(bf16, 10) body(f32, 11) body(f64, 12)          \
            body(f8e4m3, 13) body(f8e5m2, 14)
#define WK_COMPLEX_DTYPES(body) body(c64, 15) body(c128, 16)

#define WK_CAST_CASE(name, number)                                                                 \
    case number:                                                                                   \
        return wk_cast_to<From, wk_##name>(args);

/* Complex dtypes convert to complex dtypes only, others to others only. */
template <class From> WK_DEVICE void wk_cast(const struct wk_map_args &args)
{
    if constexpr (From::kind == WK_COMPLEX) {
        switch (args.to) {
            WK_COMPLEX_DTYPES(WK_CAST_CASE)
        }
    } else {
        switch (args.to) {
            WK_REAL_DTYPES(WK_CAST_CASE)
        }
    }
}

#define WK_CAST(name, number)                                                                      \
    WK_KERNEL(weft_cast_##name, struct wk_map_args)                                                \
    {                                                                                              \
        wk_cast<wk_##name>(args);                                                                  \
    }

/* ---- scale: TARGET[i] = SOURCE[i] * VALUE; TARGET may equal SOURCE ---- */

template <class D>
WK_DEVICE void wk_scale_thread(const struct wk_map_args &args, uint64_t first, uint64_t step)
{
    using pack = wk_pack<typename D::bits, 16 / sizeof(typename D::bits)>;
    constexpr uint32_t n = 16 / sizeof(typename D::bits);
    typename D::number scale = D::get(wk_argument<typename D::bits>(args.value));
    uint64_t packs = args.wide != 0 ? args.count / n : 0;

    for (uint64_t p = first; p < packs; p += step) {
        pack data = ((const pack *)args.source)[p];
        WK_UNROLL
        for (uint32_t i = 0; i < n; i++)
            data.at[i] = D::put(wk_mul<D>(D::get(data.at[i]), scale));
        ((pack *)args.target)[p] = data;
    }
    for (uint64_t i = packs * n + first; i < args.count; i += step) {
        typename D::bits one = ((const typename D::bits *)args.source)[i];
        ((typename D::bits *)args.target)[i] = D::put(wk_mul<D>(D::get(one), scale));
    }
}

#define WK_SCALE(name)                                                                             \
    WK_KERNEL(weft_scale_##name, struct wk_map_args)                                               \
    {                                                                                              \
        WK_EACH_THREAD(t)                                                                          \
        {                                                                                          \
            wk_scale_thread<wk_##name>(args, WK_FIRST(t), WK_STEP);                                \
        }                                                                                          \
    }

/* ---- fill: the pattern is 16 bytes of repeated VALUE ---- */

template <uint32_t Bytes>
WK_DEVICE void wk_fill_thread(const struct wk_map_args &args, uint64_t first, uint64_t step)
{
    using word = typename wk_word<Bytes>::type;
    constexpr uint32_t n = 16 / Bytes;
    uint64_t packs = args.wide != 0 ? args.count / n : 0;
    const wk_word16 whole = {args.value[0], args.value[1]};

    for (uint64_t p = first; p < packs; p += step)
        ((wk_word16 *)args.target)[p] = whole;
    for (uint64_t i = packs * n + first; i < args.count; i += step)
        ((word *)args.target)[i] = wk_argument<word>(&args.value[0], i % n * Bytes);
}

#define WK_FILL(bytes)                                                                             \
    WK_KERNEL(weft_fill_##bytes, struct wk_map_args)                                               \
    {                                                                                              \
        WK_EACH_THREAD(t)                                                                          \
        {                                                                                          \
            wk_fill_thread<bytes>(args, WK_FIRST(t), WK_STEP);                                     \
        }                                                                                          \
    }
WK_FILL(1)
WK_FILL(2)
WK_FILL(4)
WK_FILL(8)

/* ---- keys: floats as integers of the same order, so that integer min and max keep NaN ---- */

template <class U> WK_DEVICE U wk_key(U raw, uint32_t flags, U infinity)
{
    constexpr U top = U(1) << (sizeof(U) * 8 - 1);
    const U nan = (flags & WK_KEY_MIN) != 0 ? U(0) : U(~U(0));

    if ((flags & WK_KEY_BACK) != 0) {
        if (raw == nan) return U(infinity | (infinity >> 1));
        return (raw & top) != 0 ? U(raw & ~top) : U(~raw);
    }
    if (U(raw & ~top) > infinity) return nan;
    return (raw & top) != 0 ? U(~raw) : U(raw | top);
}

#define WK_KEY(name, unsigned_type, infinity)                                                      \
    WK_KERNEL(weft_key_##name, struct wk_map_args)                                                 \
    {                                                                                              \
        WK_EACH_THREAD(t)                                                                          \
        {                                                                                          \
            for (uint64_t i = WK_FIRST(t); i < args.count; i += WK_STEP)                           \
                ((unsigned_type *)args.target)[i] = wk_key<unsigned_type>(                         \
                    ((const unsigned_type *)args.source)[i], args.flags, infinity);                \
        }                                                                                          \
    }
WK_KEY(f32, uint32_t, 0x7f800000u)
WK_KEY(f64, uint64_t, 0x7ff0000000000000u)

/* ---- table: store buffer addresses in device memory, in stream order ---- */

WK_KERNEL(weft_table, struct wk_table_args)
{
    WK_EACH_THREAD(t)
    {
        if (t < args.count) ((uint64_t *)args.table)[args.first + t] = args.near[t];
    }
}

#endif
