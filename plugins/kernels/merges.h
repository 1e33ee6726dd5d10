/* merges.h - partial results of attention, merged by their log-sum-exp. */
#ifndef WEFT_KERNELS_MERGES_H
#define WEFT_KERNELS_MERGES_H

#include "exponentials.h"

/* The first element of row ROW, in elements. */
WK_DEVICE int64_t wk_row(const struct wk_merge_args &args, const int64_t *stride, uint64_t row)
{
    const uint64_t inner = row % args.extent[1], rest = row / args.extent[1];

    return int64_t(inner) * stride[2] + int64_t(rest % args.extent[0]) * stride[1] +
           int64_t(rest / args.extent[0]) * stride[0];
}

/* Merge the logarithms of a row.  Returns the share of the new value, 0 if it saw no key. */
WK_DEVICE float wk_merge_lse(float *total, float lse)
{
    const double old = double(*total), added = double(lse), infinity = wk_infinity();

    if (added == -infinity) return 0;
    if (old == -infinity) {
        *total = lse;
        return 1;
    }
    *total = float((old > added ? old : added) +
                   wk_log(1 + wk_exp(old > added ? added - old : old - added)));
    return float(1 / (1 + wk_exp(old - added)));
}

/* Where rows of a block are, and the share of their new values. */
struct wk_merged_row {
    int64_t out, total; /* first elements */
    float share;
};

WK_DEVICE struct wk_merged_row wk_merge_row(const struct wk_merge_args &args, uint64_t row)
{
    struct wk_merged_row merged = {wk_row(args, args.out_stride, row),
                                   wk_row(args, args.total_stride, row), 1};

    if (args.lse != 0)
        merged.share =
            wk_merge_lse((float *)args.total_lse + wk_row(args, args.total_lse_stride, row),
                         ((const float *)args.lse)[wk_row(args, args.lse_stride, row)]);
    return merged;
}

/* Merge element AT of a row.  If the share is 0, OUT need not be a number. */
template <class D>
WK_DEVICE void wk_merge_element(const struct wk_merge_args &args, const struct wk_merged_row &row,
                                uint32_t at)
{
    float *total = (float *)args.total + row.total + at;
    const float value = D::get(((const typename D::bits *)args.out)[row.out + at]);

    if (args.lse == 0)
        *total += value;
    else if (row.share != 0)
        *total += row.share * (value - *total);
}

#define WK_MERGE_LANES 32u /* threads that work on one row */

#define WK_MERGE(name)                                                                             \
    WK_KERNEL(weft_merge_##name, struct wk_merge_args)                                             \
    {                                                                                              \
        WK_SHARED struct wk_merged_row merged[WK_MERGE_ROWS];                                      \
        const uint64_t first = uint64_t(wk_block()) * WK_MERGE_ROWS;                               \
        const uint64_t left = args.rows - first;                                                   \
        const uint32_t rows = left < WK_MERGE_ROWS ? uint32_t(left) : WK_MERGE_ROWS;               \
        WK_EACH_THREAD(t)                                                                          \
        {                                                                                          \
            if (t < rows) merged[t] = wk_merge_row(args, first + t);                               \
        }                                                                                          \
        WK_BARRIER();                                                                              \
        WK_EACH_THREAD(t)                                                                          \
        {                                                                                          \
            for (uint32_t r = t / WK_MERGE_LANES; r < rows; r += WK_THREADS / WK_MERGE_LANES)      \
                for (uint32_t at = t % WK_MERGE_LANES; at < args.depth; at += WK_MERGE_LANES)      \
                    wk_merge_element<wk_##name>(args, merged[r], at);                              \
        }                                                                                          \
    }
/* Call BODY for each dtype that is merged. */
#define WK_MERGED_DTYPES(body) body(f16) body(bf16) body(f32) body(f8e4m3) body(f8e5m2)
WK_MERGED_DTYPES(WK_MERGE)

#endif
