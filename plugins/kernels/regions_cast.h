/* regions_cast.h - copying regions into another dtype.
 *
 * A list of regions counts bytes of the source's elements on both sides (wk_write). */
#ifndef WEFT_KERNELS_REGIONS_CAST_H
#define WEFT_KERNELS_REGIONS_CAST_H

#include "regions.h"

/* True for the casts that plans make; docs/dtypes.md lists them. */
template <class From, class To> WK_DEVICE constexpr bool wk_offers_cast(void)
{
    using source = typename From::bits;
    using target = typename To::bits;

    if constexpr (From::kind == WK_FLOAT && To::kind == WK_FLOAT)
        return true;
    else if constexpr (From::kind == WK_INTEGER && To::kind == WK_INTEGER)
        return sizeof(source) < sizeof(target) &&
               (target(-1) < target(0) || !(source(-1) < source(0)));
    else
        return false;
}

/* N elements at a time. */
template <class From, class To, uint32_t N, class Args>
WK_DEVICE void wk_regions_cast_thread(const Args &args, const struct wk_tile &tile, uint32_t first)
{
    using source_pack = wk_pack<typename From::bits, N>;
    using target_pack = wk_pack<typename To::bits, N>;
    using source_word = typename wk_word<sizeof(source_pack)>::type;
    using target_word = typename wk_word<sizeof(target_pack)>::type;
    constexpr uint32_t element = sizeof(typename From::bits), step = N * element;
    const source_word *from[WK_BATCH];
    target_word *to[WK_BATCH];
    source_word value[WK_BATCH];

    for (uint32_t start = first * step; start < tile.bytes; start += WK_BATCH * WK_THREADS * step) {
        WK_UNROLL
        for (uint32_t i = 0; i < WK_BATCH; i++) {
            uint32_t at = start + i * WK_THREADS * step;
            to[i] = nullptr;
            value[i] = source_word();
            if (at >= tile.bytes) continue;
            const struct wk_region &region = wk_find(args.regions, tile, at);
            int64_t source, target;
            wk_place(region, at, source, target);
            from[i] =
                (const source_word *)(wk_buffer(args.buffers, region.source) + uint64_t(source));
            to[i] = (target_word *)(wk_buffer(args.buffers, region.target) +
                                    uint64_t(target / int64_t(element) *
                                             int64_t(sizeof(typename To::bits))));
        }
        WK_UNROLL
        for (uint32_t i = 0; i < WK_BATCH; i++)
            if (to[i] != nullptr) value[i] = wk_load_once(from[i]);
        WK_UNROLL
        for (uint32_t i = 0; i < WK_BATCH; i++)
            if (to[i] != nullptr)
                wk_store_once(to[i], wk_bits<target_word>(wk_convert_pack<From, To, N>(
                                         wk_bits<source_pack>(value[i]))));
    }
}

/* Cast N elements at byte AT of TILE. */
template <class From, class To, uint32_t N, class Args>
WK_DEVICE void wk_cast_at(const Args &args, const struct wk_tile &tile, uint32_t at)
{
    const struct wk_region &region = wk_find(args.regions, tile, at);
    int64_t source, target;

    wk_place(region, at, source, target);
    wk_write<From, To, N>(
        wk_buffer(args.buffers, region.target), target,
        *(const wk_pack<typename From::bits, N> *)(wk_buffer(args.buffers, region.source) +
                                                   uint64_t(source)));
}

/* WORDS words of 16 bytes. */
template <uint32_t Words> struct wk_words {
    struct wk_word16 at[Words];
};

/* N elements at a time, in 16 or 32 bytes on each side: where a run has room for them and the
 * target is aligned, which is almost everywhere, their place is computed once for both halves. */
template <class From, class To, uint32_t N, class Args>
WK_DEVICE void wk_regions_cast_halves(const Args &args, const struct wk_tile &tile, uint32_t first)
{
    using source_words = wk_words<N * sizeof(typename From::bits) / 16>;
    using target_words = wk_words<N * sizeof(typename To::bits) / 16>;
    constexpr uint32_t element = sizeof(typename From::bits), step = N * element;
    constexpr uint32_t batch = WK_BATCH / 2;
    uint64_t from[batch], to[batch];
    source_words value[batch];

    for (uint32_t start = first * step; start < tile.bytes; start += batch * WK_THREADS * step) {
        WK_UNROLL
        for (uint32_t i = 0; i < batch; i++) {
            uint32_t begin = start + i * WK_THREADS * step, at = begin;
            to[i] = 0;
            value[i] = source_words();
            if (begin >= tile.bytes) continue;
            const struct wk_region &region = wk_find(args.regions, tile, at);
            uint32_t within = at - wk_quotient(at, region.run) * region.run.value;
            int64_t source, target;
            wk_place(region, at, source, target);
            from[i] = wk_buffer(args.buffers, region.source) + uint64_t(source);
            to[i] = wk_buffer(args.buffers, region.target) +
                    uint64_t(target / int64_t(element) * int64_t(sizeof(typename To::bits)));
            if (within + step <= region.run.value && begin + step <= tile.bytes &&
                (from[i] | to[i]) % 16 == 0)
                continue;
            to[i] = 0;
            wk_cast_at<From, To, N / 2>(args, tile, begin);
            if (begin + step / 2 < tile.bytes)
                wk_cast_at<From, To, N / 2>(args, tile, begin + step / 2);
        }
        WK_UNROLL
        for (uint32_t i = 0; i < batch; i++)
            for (uint32_t k = 0; k < sizeof(source_words) / 16 && to[i] != 0; k++)
                value[i].at[k] = wk_load_once((const struct wk_word16 *)from[i] + k);
        WK_UNROLL
        for (uint32_t i = 0; i < batch; i++) {
            if (to[i] == 0) continue;
            const target_words out = wk_bits<target_words>(
                wk_convert_pack<From, To, N>(wk_bits<wk_pack<typename From::bits, N>>(value[i])));
            WK_UNROLL
            for (uint32_t k = 0; k < sizeof(target_words) / 16; k++)
                wk_store_once((struct wk_word16 *)to[i] + k, out.at[k]);
        }
    }
}

template <class From, class To, class Args>
WK_DEVICE void wk_regions_cast_to(const Args &args, const struct wk_tile &tile)
{
    if constexpr (wk_offers_cast<From, To>()) {
        constexpr uint32_t source = sizeof(typename From::bits), target = sizeof(typename To::bits);
        constexpr uint32_t n = 16 / (source > target ? source : target);
        constexpr bool halves = source == 2 * target || target == 2 * source;
        WK_EACH_THREAD(t)
        {
            if (args.word != 16) {
                wk_regions_cast_thread<From, To, 1>(args, tile, t);
            } else {
                if constexpr (halves)
                    wk_regions_cast_halves<From, To, 2 * n>(args, tile, t);
                else
                    wk_regions_cast_thread<From, To, n>(args, tile, t);
            }
        }
    }
}

#define WK_REGIONS_CAST_CASE(name, number)                                                         \
    case number:                                                                                   \
        return wk_regions_cast_to<From, wk_##name>(args, tile);

template <class From, class Args>
WK_DEVICE void wk_regions_cast(const Args &args, const struct wk_tile &tile)
{
    switch (args.to) {
        WK_REAL_DTYPES(WK_REGIONS_CAST_CASE)
    }
}

/* ---- reductions into another dtype ---- */

template <class From, class To, class Args>
WK_DEVICE void wk_reduce_cast_to(const Args &args, const struct wk_tile &tile)
{
    if constexpr (wk_offers_cast<From, To>()) wk_regions_reduce<From, To>(args, tile);
}

#define WK_REDUCE_CAST_CASE(name, number)                                                          \
    case number:                                                                                   \
        return wk_reduce_cast_to<From, wk_##name>(args, tile);

/* ARGS has the fields of a cast, and a reduction, the number of sources and a divisor. */
template <class From, class Args>
WK_DEVICE void wk_reduce_cast(const Args &args, const struct wk_tile &tile)
{
    switch (args.to) {
        WK_REAL_DTYPES(WK_REDUCE_CAST_CASE)
    }
}

#define WK_REGIONS_CAST(name, number)                                                              \
    WK_KERNEL(weft_regions_cast_##name, struct wk_regions_cast_args)                               \
    {                                                                                              \
        const struct wk_tile tile = args.tiles[wk_block()];                                        \
        wk_regions_cast<wk_##name>(args, tile);                                                    \
    }

#endif
