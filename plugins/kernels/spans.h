/* spans.h - kernels over lists of spans of floats: sums of powers, limits of the norm, clamps.
 *
 * A block works on one tile of a span.  Which thread takes which elements depends on the tile
 * alone, not on the alignment, so that equal elements give equal sums. */
#ifndef WEFT_KERNELS_SPANS_H
#define WEFT_KERNELS_SPANS_H

#include "exponentials.h"

/* ---- sums of powers ---- */

template <uint32_t Power> WK_DEVICE double wk_power_of(double value, double p)
{
    double size = value > 0 ? value : 0 - value; /* not -0 */

    if constexpr (Power == WK_POWER_TWO)
        return value * value;
    else if constexpr (Power == WK_POWER_ANY)
        return wk_raise(size, p);
    else if constexpr (Power == WK_POWER_LARGEST)
        return size != size ? wk_infinity() : size;
    else
        return size;
}

WK_DEVICE double wk_combined(double a, double b, uint32_t power)
{
    if (power == WK_POWER_LARGEST) return a > b ? a : b;
    return a + b;
}

/* The part of thread T. */
template <class D, uint32_t Power>
WK_DEVICE double wk_add_powers(const typename D::bits *from, uint32_t count, double p, uint32_t t)
{
    constexpr uint32_t n = 16 / sizeof(typename D::bits);
    const bool is_aligned = uint64_t(from) % 16 == 0;
    double sum = 0;

    for (uint32_t at = t * n; at < count; at += WK_THREADS * n) {
        if (is_aligned && count - at >= n) {
            const wk_pack<typename D::bits, n> pack =
                *(const wk_pack<typename D::bits, n> *)(from + at);
            WK_UNROLL
            for (uint32_t i = 0; i < n; i++)
                sum = wk_combined(sum, wk_power_of<Power>(double(D::get(pack.at[i])), p), Power);
        } else {
            for (uint32_t i = at; i < count && i < at + n; i++)
                sum = wk_combined(sum, wk_power_of<Power>(double(D::get(from[i])), p), Power);
        }
    }
    return sum;
}

/* Call BODY(name, number) for each float dtype. */
#define WK_FLOAT_DTYPES(body)                                                                      \
    body(f16, 9) body(bf16, 10) body(f32, 11) body(f64, 12) body(f8e4m3, 13) body(f8e5m2, 14)

#define WK_POWERS_CASE(name, number)                                                               \
    case number:                                                                                   \
        return wk_add_powers<wk_##name, Power>(                                                    \
            (const typename wk_##name::bits *)args.memory[tile.span] + tile.first, tile.count,     \
            args.p, t);

template <uint32_t Power>
WK_DEVICE double wk_tile_powers(const struct wk_spans_args &args, const struct wk_span_tile &tile,
                                uint32_t t)
{
    switch (tile.dtype) {
        WK_FLOAT_DTYPES(WK_POWERS_CASE)
    }
    return 0;
}

/* Combine PARTS of all threads in parts[0]. */
WK_DEVICE void wk_fold(double *parts, uint32_t power)
{
    for (uint32_t half = WK_THREADS / 2; half > 0; half /= 2) {
        WK_BARRIER();
        WK_EACH_THREAD(t)
        {
            if (t < half) parts[t] = wk_combined(parts[t], parts[t + half], power);
        }
    }
}

#define WK_SPAN_POWERS(name, power)                                                                \
    WK_KERNEL(weft_span_powers_##name, struct wk_spans_args)                                       \
    {                                                                                              \
        WK_SHARED double parts[WK_THREADS];                                                        \
        WK_EACH_THREAD(t)                                                                          \
        {                                                                                          \
            parts[t] = wk_tile_powers<power>(args, args.tiles[wk_block()], t);                     \
        }                                                                                          \
        wk_fold(parts, power);                                                                     \
        WK_EACH_THREAD(t)                                                                          \
        {                                                                                          \
            if (t == 0) args.partials[wk_block()] = parts[0];                                      \
        }                                                                                          \
    }
WK_SPAN_POWERS(one, WK_POWER_ONE)
WK_SPAN_POWERS(two, WK_POWER_TWO)
WK_SPAN_POWERS(any, WK_POWER_ANY)
WK_SPAN_POWERS(largest, WK_POWER_LARGEST)

WK_KERNEL(weft_span_sums, struct wk_span_sums_args)
{
    WK_SHARED double parts[WK_THREADS];
    WK_EACH_THREAD(t)
    {
        double sum = 0;

        for (uint32_t i = args.first[wk_block()] + t; i < args.first[wk_block() + 1];
             i += WK_THREADS)
            sum = wk_combined(sum, args.partials[i], args.power);
        parts[t] = sum;
    }
    wk_fold(parts, args.power);
    WK_EACH_THREAD(t)
    {
        if (t == 0) args.sums[wk_block()] = parts[0];
    }
}

/* ---- changes ---- */

struct wk_multiplied {
    double factor;
    bool is_zero;
    template <class D> WK_DEVICE typename D::bits of(typename D::bits raw) const
    {
        if (is_zero) return wk_bits<typename D::bits>(typename wk_word<sizeof raw>::type(0));
        if constexpr (sizeof(raw) == 8)
            return raw * factor;
        else
            return wk_element_of<D>(D::get(raw) * float(factor));
    }
};

struct wk_clamped {
    double most;
    template <class D> WK_DEVICE typename D::bits of(typename D::bits raw) const
    {
        const double value = double(D::get(raw));

        if (!(value > most || value < -most)) return raw;
        if constexpr (sizeof(raw) == 8)
            return value > most ? most : -most;
        else
            return wk_element_of<D>(float(value > most ? most : -most));
    }
};

template <class D, class Change>
WK_DEVICE void wk_change_elements(typename D::bits *data, uint32_t count, const Change &change,
                                  uint32_t t)
{
    constexpr uint32_t n = 16 / sizeof(typename D::bits);
    const bool is_aligned = uint64_t(data) % 16 == 0;

    for (uint32_t at = t * n; at < count; at += WK_THREADS * n) {
        if (is_aligned && count - at >= n) {
            wk_pack<typename D::bits, n> pack = *(wk_pack<typename D::bits, n> *)(data + at);
            WK_UNROLL
            for (uint32_t i = 0; i < n; i++)
                pack.at[i] = change.template of<D>(pack.at[i]);
            *(wk_pack<typename D::bits, n> *)(data + at) = pack;
        } else {
            for (uint32_t i = at; i < count && i < at + n; i++)
                data[i] = change.template of<D>(data[i]);
        }
    }
}

#define WK_CHANGE_CASE(name, number)                                                               \
    case number:                                                                                   \
        wk_change_elements<wk_##name>((typename wk_##name::bits *)args.memory[tile.span] +         \
                                          tile.first,                                              \
                                      tile.count, change, t);                                      \
        break;

template <class Change>
WK_DEVICE void wk_change_tile(const struct wk_spans_args &args, const Change &change, uint32_t t)
{
    const struct wk_span_tile tile = args.tiles[wk_block()];

    switch (tile.dtype) {
        WK_FLOAT_DTYPES(WK_CHANGE_CASE)
    }
}

WK_DEVICE double wk_norm_of(const struct wk_spans_args &args)
{
    if (args.power == WK_POWER_TWO) return wk_square_root(*args.sum);
    return args.power == WK_POWER_ANY ? wk_raise(*args.sum, 1 / args.p) : *args.sum;
}

WK_DEVICE double wk_factor_of(const struct wk_spans_args &args, double norm)
{
    if (args.nonfinite != WK_NONFINITE_SCALE && !(norm <= wk_ieee<double>::largest))
        return args.nonfinite == WK_NONFINITE_ZERO ? 0 : 1;
    return args.most / (norm + 1e-6);
}

/* There is at least one block, so that the norm is written. */
WK_KERNEL(weft_span_limit, struct wk_spans_args)
{
    WK_SHARED double factor[1];
    WK_EACH_THREAD(t)
    {
        if (t == 0) {
            const double norm = wk_norm_of(args);

            factor[0] = wk_factor_of(args, norm);
            if (wk_block() == 0) *args.norm = norm;
        }
    }
    WK_BARRIER();
    WK_EACH_THREAD(t)
    {
        const struct wk_multiplied change = {factor[0],
                                             factor[0] == 0 && args.nonfinite == WK_NONFINITE_ZERO};

        if (wk_block() < args.tile_count && !(change.factor >= 1)) wk_change_tile(args, change, t);
    }
}

WK_KERNEL(weft_span_clamp, struct wk_spans_args)
{
    WK_EACH_THREAD(t)
    {
        wk_change_tile(args, wk_clamped{args.most}, t);
    }
}

WK_KERNEL(weft_span_table, struct wk_span_table_args)
{
    WK_EACH_THREAD(t)
    {
        for (uint64_t i = t; i < args.count; i += WK_THREADS)
            ((uint64_t *)args.table)[args.first + i] = args.memory[i];
    }
}

#endif
