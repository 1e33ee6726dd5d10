/* draws.h - random numbers of regions: an element's source is its number in the draw.
 *
 * The formulas are those of processors, in random_formulas.h, so the bits are equal.  Lists of
 * regions count bytes.  A word of 16 bytes begins with the first element of a Philox block, because
 * the source of such a word is a multiple of 16 bytes. */
#ifndef WEFT_KERNELS_DRAWS_H
#define WEFT_KERNELS_DRAWS_H

#include "regions.h"
#include "roots.h"

#define RANDOM_FUNCTION WK_DEVICE
#define RANDOM_ROOT_F32 wk_root
#define RANDOM_ROOT_F64 wk_root
#if defined(__CUDACC__) /* one instruction instead of two */
#define RANDOM_LESSER_F32(a, b) fminf(a, b)
#endif
#include "../../core/kit/arithmetic/random_formulas.h"

/* ---- blocks of random bits ---- */

struct wk_random_block {
    uint32_t at[4];
};

WK_DEVICE struct wk_random_block wk_philox(const struct wk_draw_args &args, uint64_t block)
{
    uint32_t a = uint32_t(block), b = uint32_t(block >> 32), c = args.offset[0], d = args.offset[1];

    WK_UNROLL
    for (uint32_t r = 0; r < PHILOX_ROUNDS; r++)
        philox_round(&a, &b, &c, &d, args.keys[r][0], args.keys[r][1]);
    return {{a, b, c, d}};
}

WK_DEVICE uint64_t wk_word_64(const struct wk_random_block &words, uint32_t i)
{
    return words.at[2 * i] | uint64_t(words.at[2 * i + 1]) << 32;
}

/* ---- distributions: all elements of one block ---- */

/* Elements of a block with elements of BYTES. */
template <uint32_t Bytes> constexpr uint32_t wk_per_block = Bytes <= 4 ? 4 : 16 / Bytes;

/* VALUE as an element.  An f32 keeps its bits. */
template <class D> WK_DEVICE typename D::bits wk_element_of(float value)
{
    if constexpr (wk_same<D, wk_f32>)
        return value;
    else
        return wk_convert<wk_f32, D>(value);
}

template <class D> struct wk_draw_uniform {
    using bits = typename D::bits;
    static WK_DEVICE void make(const struct wk_draw_args &args, const struct wk_random_block &words,
                               bits *out)
    {
        if constexpr (wk_same<D, wk_f64>) {
            WK_UNROLL
            for (uint32_t i = 0; i < 2; i++)
                out[i] = uniform_f64(wk_word_64(words, i), args.first, args.unit, args.last);
        } else {
            WK_UNROLL
            for (uint32_t i = 0; i < 4; i++)
                out[i] = wk_float_of<D>::make(uniform_f32(words.at[i], 31 - wk_mantissa<D>::bits,
                                                          args.near_first, args.near_unit,
                                                          args.near_last)); /* never NaN */
        }
    }
};

template <class D> struct wk_draw_normal {
    using bits = typename D::bits;
    static WK_DEVICE void make(const struct wk_draw_args &args, const struct wk_random_block &words,
                               bits *out)
    {
        if constexpr (wk_same<D, wk_f64>) {
            double first, second;
            normal_pair_f64(wk_word_64(words, 0), wk_word_64(words, 1), &first, &second);
            out[0] = args.mean + args.deviation * first;
            out[1] = args.mean + args.deviation * second;
        } else {
            WK_UNROLL
            for (uint32_t i = 0; i < 4; i += 2) {
                float first, second;
                normal_pair_f32(words.at[i], words.at[i + 1], &first, &second);
                out[i] = wk_element_of<D>(args.near_mean + args.near_deviation * first);
                out[i + 1] = wk_element_of<D>(args.near_mean + args.near_deviation * second);
            }
        }
    }
};

template <class D> struct wk_draw_truncated {
    using bits = typename D::bits;
    static WK_DEVICE void make(const struct wk_draw_args &args, const struct wk_random_block &words,
                               bits *out)
    {
        for (uint32_t i = 0; i < wk_per_block<sizeof(bits)>; i++) {
            double unit = wk_same<D, wk_f64> ? unit_f64(wk_word_64(words, i % 2))
                                             : unit_of_word_32(words.at[i]);
            out[i] = wk_convert<wk_f64, D>(truncated_normal(
                args.share + unit * args.width, args.mean, args.deviation, args.first, args.last));
        }
    }
};

/* Word I of a block with elements of BYTES. */
template <uint32_t Bytes>
WK_DEVICE uint64_t wk_word_of(const struct wk_random_block &words, uint32_t i)
{
    if constexpr (Bytes <= 4)
        return words.at[i];
    else
        return wk_word_64(words, i);
}

template <uint32_t Bytes> struct wk_draw_choice {
    using bits = typename wk_word<Bytes>::type;
    static WK_DEVICE void make(const struct wk_draw_args &args, const struct wk_random_block &words,
                               bits *out)
    {
        const bits below = wk_argument<bits>(args.below), above = wk_argument<bits>(args.above);

        WK_UNROLL
        for (uint32_t i = 0; i < wk_per_block<Bytes>; i++)
            out[i] = wk_word_of<Bytes>(words, i) < args.threshold ? below : above;
    }
};

/* The upper half of A * B. */
WK_DEVICE uint64_t wk_upper_half(uint64_t a, uint64_t b)
{
    uint64_t a0 = uint32_t(a), a1 = a >> 32, b0 = uint32_t(b), b1 = b >> 32;
    uint64_t middle = a1 * b0 + (a0 * b0 >> 32), other = a0 * b1 + uint32_t(middle);

    return a1 * b1 + (middle >> 32) + (other >> 32);
}

template <uint32_t Bytes> struct wk_draw_integers {
    using bits = typename wk_word<Bytes>::type;
    static WK_DEVICE void make(const struct wk_draw_args &args, const struct wk_random_block &words,
                               bits *out)
    {
        WK_UNROLL
        for (uint32_t i = 0; i < wk_per_block<Bytes>; i++) {
            uint64_t word = wk_word_of<Bytes>(words, i);
            if constexpr (Bytes <= 4)
                word = word * args.range >> 32;
            else if (args.range != 0)
                word = wk_upper_half(word, args.range);
            out[i] = bits(args.least + word);
        }
    }
};

/* ---- regions ---- */

/* 16 bytes at byte SOURCE of the draw. */
template <class Draw>
WK_DEVICE struct wk_word16 wk_draw_word(const struct wk_draw_args &args, uint64_t source)
{
    constexpr uint32_t bytes = sizeof(typename Draw::bits), per_block = wk_per_block<bytes>;
    constexpr uint32_t blocks = 16 / bytes / per_block;
    wk_pack<typename Draw::bits, 16 / bytes> out;

    WK_UNROLL
    for (uint32_t i = 0; i < blocks; i++)
        Draw::make(args, wk_philox(args, source / (bytes * per_block) + i), out.at + i * per_block);
    return wk_bits<struct wk_word16>(out);
}

/* A tile of one run: a word's place is a sum.  The rounds of four words overlap. */
template <class Draw>
WK_DEVICE void wk_draw_run(const struct wk_draw_args &args, uint64_t source, uint64_t memory,
                           uint32_t first, uint32_t bytes)
{
    constexpr uint32_t stride = WK_THREADS * 16, together = 4;
    uint32_t step = first * 16;

    for (; step + (together - 1) * stride < bytes; step += together * stride) {
        struct wk_word16 words[together];
        WK_UNROLL
        for (uint32_t i = 0; i < together; i++)
            words[i] = wk_draw_word<Draw>(args, source + step + i * stride);
        WK_UNROLL
        for (uint32_t i = 0; i < together; i++)
            *(struct wk_word16 *)(memory + step + i * stride) = words[i];
    }
    for (; step < bytes; step += stride)
        *(struct wk_word16 *)(memory + step) = wk_draw_word<Draw>(args, source + step);
}

/* Tiles of words.  Most tiles are part of one run. */
template <class Draw>
WK_DEVICE void wk_draw_words(const struct wk_draw_args &args, const struct wk_tile &tile,
                             uint32_t first)
{
    uint32_t start = 0;
    const struct wk_region *region = &wk_find(args.regions, tile, start);
    uint32_t within = start - wk_quotient(start, region->run) * region->run.value;
    int64_t source, target;

    wk_place(*region, start, source, target);
    if (within + tile.bytes <= region->run.value) {
        wk_draw_run<Draw>(args, uint64_t(source),
                          wk_buffer(args.buffers, region->target) + uint64_t(target), first,
                          tile.bytes);
        return;
    }
    for (uint32_t step = first * 16; step < tile.bytes; step += WK_THREADS * 16) {
        uint32_t at = step;
        region = &wk_find(args.regions, tile, at);
        wk_place(*region, at, source, target);
        *(struct wk_word16 *)(wk_buffer(args.buffers, region->target) + uint64_t(target)) =
            wk_draw_word<Draw>(args, uint64_t(source));
    }
}

/* Store one element, whose address is aligned to half of its bytes if these are 8 or 16, as
 * complex numbers may be. */
template <class B> WK_DEVICE void wk_store_element(uint64_t to, const B &value)
{
    if constexpr (sizeof(B) >= 8) {
        using half = typename wk_word<sizeof(B) / 2>::type;
        struct halves {
            half at[2];
        };
        const halves parts = wk_bits<halves>(value);
        ((half *)to)[0] = parts.at[0];
        ((half *)to)[1] = parts.at[1];
    } else {
        *(B *)to = value;
    }
}

template <class Draw>
WK_DEVICE void wk_draw_elements(const struct wk_draw_args &args, const struct wk_tile &tile,
                                uint32_t first)
{
    using bits = typename Draw::bits;
    constexpr uint32_t bytes = sizeof(bits), per_block = wk_per_block<bytes>;

    for (uint32_t start = first * bytes; start < tile.bytes; start += WK_THREADS * bytes) {
        uint32_t at = start;
        const struct wk_region &region = wk_find(args.regions, tile, at);
        int64_t source, target;
        bits all[per_block];
        wk_place(region, at, source, target);
        uint64_t index = uint64_t(source) / bytes;
        Draw::make(args, wk_philox(args, index / per_block), all);
        bits value = all[0];
        WK_UNROLL
        for (uint32_t i = 1; i < per_block; i++)
            if (index % per_block == i) value = all[i];
        wk_store_element(wk_buffer(args.buffers, region.target) + uint64_t(target), value);
    }
}

template <class Draw> WK_DEVICE void wk_draw(const struct wk_draw_args &args)
{
    const struct wk_tile tile = args.tiles[wk_block()];

    WK_EACH_THREAD(t)
    {
        if (args.word == 16)
            wk_draw_words<Draw>(args, tile, t);
        else
            wk_draw_elements<Draw>(args, tile, t);
    }
}

/* Call BODY for each dtype that has the three distributions of floats. */
#define WK_DRAWN_DTYPES(body) body(f16) body(bf16) body(f32) body(f64) body(f8e4m3) body(f8e5m2)

#define WK_DRAW_KERNEL(kind, variant, draw)                                                        \
    WK_KERNEL(weft_draw_##kind##_##variant, struct wk_draw_args)                                   \
    {                                                                                              \
        wk_draw<draw>(args);                                                                       \
    }
#define WK_DRAW_FLOATS(name)                                                                       \
    WK_DRAW_KERNEL(uniform, name, wk_draw_uniform<wk_##name>)                                      \
    WK_DRAW_KERNEL(normal, name, wk_draw_normal<wk_##name>)                                        \
    WK_DRAW_KERNEL(truncated, name, wk_draw_truncated<wk_##name>)

WK_DRAWN_DTYPES(WK_DRAW_FLOATS)
WK_DRAW_KERNEL(choice, 1, wk_draw_choice<1>)
WK_DRAW_KERNEL(choice, 2, wk_draw_choice<2>)
WK_DRAW_KERNEL(choice, 4, wk_draw_choice<4>)
WK_DRAW_KERNEL(choice, 8, wk_draw_choice<8>)
WK_DRAW_KERNEL(choice, 16, wk_draw_choice<16>)
WK_DRAW_KERNEL(integers, 1, wk_draw_integers<1>)
WK_DRAW_KERNEL(integers, 2, wk_draw_integers<2>)
WK_DRAW_KERNEL(integers, 4, wk_draw_integers<4>)
WK_DRAW_KERNEL(integers, 8, wk_draw_integers<8>)

#endif
