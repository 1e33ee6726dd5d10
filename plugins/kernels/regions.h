/* regions.h - kernels over lists of regions: copy, transpose, reduce.
 *
 * The regions of a list form one sequence of bytes, divided into tiles.  A block takes a tile, and
 * its threads take adjacent words, so that both sides are accessed in whole cache lines if the runs
 * are long enough.  A word is as wide as runs, strides and buffers allow, at most 16 bytes. */
#ifndef WEFT_KERNELS_REGIONS_H
#define WEFT_KERNELS_REGIONS_H

#include "reductions.h"

#define WK_BATCH 4u /* words in flight per thread */

WK_DEVICE uint32_t wk_quotient(uint32_t n, const struct wk_divisor &by)
{
    return uint32_t((uint64_t(n) * by.multiplier) >> by.shift);
}

/* Offsets of byte AT of REGION in the source and target buffers. */
WK_DEVICE void wk_place(const struct wk_region &region, uint32_t at, int64_t &source,
                        int64_t &target)
{
    uint32_t index = wk_quotient(at, region.run);
    uint32_t within = at - index * region.run.value;

    source = region.source_offset + within;
    target = region.target_offset + within;
    for (uint32_t d = 0; d < region.dims; d++) {
        uint32_t next = wk_quotient(index, region.extent[d]);
        uint32_t i = index - next * region.extent[d].value;
        source += int64_t(i) * region.source_stride[d];
        target += int64_t(i) * region.target_stride[d];
        index = next;
    }
}

/* The region that contains byte AT of the tile.  AT becomes the offset in that region. */
WK_DEVICE const struct wk_region &wk_find(const struct wk_region *regions,
                                          const struct wk_tile &tile, uint32_t &at)
{
    const struct wk_region *region = &regions[tile.region];

    at += tile.offset;
    while (at >= region->bytes) {
        at -= region->bytes;
        region++;
    }
    return *region;
}

/* ARGS is the kernel's struct, or another struct with regions and buffers.  The same holds
 * below. */
template <uint32_t Bytes, class Args>
WK_DEVICE void wk_copy_thread(const Args &args, const struct wk_tile &tile, uint32_t first)
{
    using word = typename wk_word<Bytes>::type;
    const word *from[WK_BATCH];
    word *to[WK_BATCH];
    word value[WK_BATCH];

    for (uint32_t start = first * Bytes; start < tile.bytes;
         start += WK_BATCH * WK_THREADS * Bytes) {
        WK_UNROLL
        for (uint32_t i = 0; i < WK_BATCH; i++) {
            uint32_t at = start + i * WK_THREADS * Bytes;
            to[i] = nullptr;
            value[i] = word();
            if (at >= tile.bytes) continue;
            const struct wk_region &region = wk_find(args.regions, tile, at);
            int64_t source, target;
            wk_place(region, at, source, target);
            from[i] = (const word *)(wk_buffer(args.buffers, region.source) + uint64_t(source));
            to[i] = (word *)(wk_buffer(args.buffers, region.target) + uint64_t(target));
        }
        WK_UNROLL
        for (uint32_t i = 0; i < WK_BATCH; i++)
            if (to[i] != nullptr) value[i] = wk_load_once(from[i]);
        WK_UNROLL
        for (uint32_t i = 0; i < WK_BATCH; i++)
            if (to[i] != nullptr) wk_store_once(to[i], value[i]);
    }
}

template <uint32_t Bytes, class Args>
WK_DEVICE void wk_copy_block(const Args &args, const struct wk_tile &tile)
{
    WK_EACH_THREAD(t)
    {
        wk_copy_thread<Bytes>(args, tile, t);
    }
}

#define WK_COPY(bytes)                                                                             \
    WK_KERNEL(weft_copy_##bytes, struct wk_copy_args)                                              \
    {                                                                                              \
        const struct wk_tile tile = args.tiles[wk_block()];                                        \
        wk_copy_block<bytes>(args, tile);                                                          \
    }

/* ---- transpose: through shared memory, so that both sides access whole cache lines ---- */

/* Elements per side of a tile: lines of 128 bytes, and at least 32 elements. */
template <uint32_t Bytes> constexpr uint32_t wk_side = Bytes < 4 ? 128 / Bytes : 32;

template <uint32_t Bytes, class Args>
WK_DEVICE void wk_transpose_block(const Args &args, const struct wk_transpose_tile &tile,
                                  typename wk_word<Bytes>::type (*shared)[wk_side<Bytes> + 1])
{
    using word = typename wk_word<Bytes>::type;
    constexpr uint32_t side = wk_side<Bytes>, step = WK_THREADS / side;
    const struct wk_region &region = args.regions[tile.region];
    uint32_t left0 = region.extent[0].value - tile.from0;
    uint32_t left1 = region.extent[1].value - tile.from1;
    uint32_t count0 = left0 < side ? left0 : side, count1 = left1 < side ? left1 : side;
    int64_t source = region.source_offset + int64_t(tile.from0) * region.source_stride[0] +
                     int64_t(tile.from1) * region.source_stride[1];
    int64_t target = region.target_offset + int64_t(tile.from0) * region.target_stride[0] +
                     int64_t(tile.from1) * region.target_stride[1];
    uint32_t outer = tile.outer;

    for (uint32_t d = 2; d < region.dims; d++) {
        uint32_t next = wk_quotient(outer, region.extent[d]);
        uint32_t i = outer - next * region.extent[d].value;
        source += int64_t(i) * region.source_stride[d];
        target += int64_t(i) * region.target_stride[d];
        outer = next;
    }
    source += int64_t(wk_buffer(args.buffers, region.source));
    target += int64_t(wk_buffer(args.buffers, region.target));
    WK_EACH_THREAD(t)
    {
        const uint32_t i0 = t % side;
        const int64_t from = source + int64_t(i0) * Bytes;
        for (uint32_t first = t / side; first < count1 && i0 < count0; first += WK_BATCH * step) {
            word value[WK_BATCH] = {};
            WK_UNROLL
            for (uint32_t i = 0; i < WK_BATCH; i++)
                if (first + i * step < count1)
                    value[i] = wk_load_once(
                        (const word *)(from + int64_t(first + i * step) * region.source_stride[1]));
            WK_UNROLL
            for (uint32_t i = 0; i < WK_BATCH; i++)
                if (first + i * step < count1) shared[first + i * step][i0] = value[i];
        }
    }
    WK_BARRIER();
    WK_EACH_THREAD(t)
    {
        const uint32_t i1 = t % side;
        const int64_t to = target + int64_t(i1) * Bytes;
        for (uint32_t i0 = t / side; i0 < count0 && i1 < count1; i0 += step)
            wk_store_once((word *)(to + int64_t(i0) * region.target_stride[0]), shared[i1][i0]);
    }
}

#define WK_TRANSPOSE(bytes)                                                                        \
    WK_KERNEL(weft_transpose_##bytes, struct wk_transpose_args)                                    \
    {                                                                                              \
        constexpr uint32_t side = wk_side<bytes>;                                                  \
        WK_SHARED typename wk_word<bytes>::type shared[side][side + 1];                            \
        wk_transpose_block<bytes>(args, args.tiles[wk_block()], shared);                           \
    }

/* ---- reduce ---- */

template <class A, class B> constexpr bool wk_same = false;
template <class A> constexpr bool wk_same<A, A> = true;

/* Write N elements of dtype From as dtype To.  A list of regions counts bytes of the source's
 * elements on both sides, and so does OFFSET. */
template <class From, class To, uint32_t N>
WK_DEVICE void wk_write(uint64_t buffer, int64_t offset,
                        const wk_pack<typename From::bits, N> &value)
{
    constexpr int64_t source = sizeof(typename From::bits), target = sizeof(typename To::bits);

    if constexpr (wk_same<From, To>)
        *(wk_pack<typename From::bits, N> *)(buffer + uint64_t(offset)) = value;
    else
        *(wk_pack<typename To::bits, N> *)(buffer + uint64_t(offset / source * target)) =
            wk_convert_pack<From, To, N>(value);
}

/* Averages of integers of dtype D, written as dtype To. */
template <class D, class To, uint32_t N, class Args>
WK_DEVICE void wk_regions_average_thread(const Args &args, const struct wk_tile &tile,
                                         uint32_t first)
{
    using pack = wk_pack<typename D::bits, N>;
    constexpr uint32_t step = N * sizeof(typename D::bits);

    for (uint32_t start = first * step; start < tile.bytes; start += WK_THREADS * step) {
        struct wk_wide sum[N] = {};
        uint32_t at = start;
        const struct wk_region &region = wk_find(args.regions, tile, at);
        int64_t source, target;
        wk_place(region, at, source, target);
        for (uint32_t k = 0; k < args.size; k++)
            wk_sum_pack<D>(
                *(const pack *)(wk_buffer(args.buffers, region.source + k) + uint64_t(source)),
                sum);
        wk_write<D, To, N>(wk_buffer(args.buffers, region.target), target,
                           wk_average_pack<D>(sum, args.divisor));
    }
}

template <class D, class To, uint32_t N, class Args>
WK_DEVICE void wk_regions_reduce_thread(const Args &args, const struct wk_tile &tile,
                                        uint32_t first)
{
    using pack = wk_pack<typename D::bits, N>;
    constexpr uint32_t step = N * sizeof(typename D::bits);

    if constexpr (D::kind == WK_INTEGER)
        if (wk_is_wide<D>(args.reduction))
            return wk_regions_average_thread<D, To, N>(args, tile, first);

    for (uint32_t start = first * step; start < tile.bytes; start += WK_THREADS * step) {
        typename D::number sum[N] = {};
        uint32_t at = start;
        const struct wk_region &region = wk_find(args.regions, tile, at);
        int64_t source, target;
        wk_place(region, at, source, target);
        for (uint32_t k = 0; k < args.size; k += WK_BATCH) {
            pack in[WK_BATCH] = {};
            WK_UNROLL
            for (uint32_t j = 0; j < WK_BATCH; j++)
                if (k + j < args.size)
                    in[j] = *(const pack *)(wk_buffer(args.buffers, region.source + k + j) +
                                            uint64_t(source));
            WK_UNROLL
            for (uint32_t j = 0; j < WK_BATCH; j++) {
                if (k + j >= args.size) break;
                wk_reduce_pack<D>(args, in[j], k + j == 0, sum);
            }
        }
        wk_write<D, To, N>(wk_buffer(args.buffers, region.target), target, wk_finish<D>(sum));
    }
}

template <class D, class To, class Args>
WK_DEVICE void wk_regions_reduce(const Args &args, const struct wk_tile &tile)
{
    constexpr uint32_t source = sizeof(typename D::bits), target = sizeof(typename To::bits);

    WK_EACH_THREAD(t)
    {
        if (args.word == 16)
            wk_regions_reduce_thread<D, To, 16 / (source > target ? source : target)>(args, tile,
                                                                                      t);
        else
            wk_regions_reduce_thread<D, To, 1>(args, tile, t);
    }
}

#define WK_REGIONS_REDUCE(name)                                                                    \
    WK_KERNEL(weft_regions_reduce_##name, struct wk_regions_reduce_args)                           \
    {                                                                                              \
        wk_regions_reduce<wk_##name, wk_##name>(args, args.tiles[wk_block()]);                     \
    }

#endif
