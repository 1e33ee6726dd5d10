/* kernel_args.h - arguments of the kernels.  Every kernel takes one of these structs by value.  C,
 * the CUDA and HIP compilers, and the tests' host build of the kernels include this file. */
#ifndef WEFT_KERNEL_ARGS_H
#define WEFT_KERNEL_ARGS_H

#include <stdint.h>

#define WK_THREADS      256u   /* per block, in every kernel */
#define WK_TILE_BYTES   16384u /* bytes of a region list that one block copies */
#define WK_NEAR         60u    /* maximum number of buffers inside the arguments */
#define WK_DIMS         8u
#define WK_REGION_BYTES 0x40000000u /* maximum size of a region, so that 31 bits count bytes */

/* A list of buffers: in NEAR if FAR is NULL, else in FAR, in device memory. */
struct wk_buffers {
    const uint64_t *far;
    uint64_t near[WK_NEAR];
};

/* n / d for n < 2^31 is (n * multiplier) >> shift. */
struct wk_divisor {
    uint32_t value, multiplier, shift;
};

/* A box of runs.  Each run is RUN.value contiguous bytes on both sides; dims[0] varies fastest
 * after the run. Offsets and strides are in bytes. */
struct wk_region {
    uint32_t source, target; /* indices in the buffer list; targets follow the sources */
    uint32_t bytes, dims;
    int64_t source_offset, target_offset;
    struct wk_divisor run, extent[WK_DIMS];
    int64_t source_stride[WK_DIMS], target_stride[WK_DIMS];
};

/* Work of one block: up to WK_TILE_BYTES from byte OFFSET of REGION on, continuing in the following
 * regions. */
struct wk_tile {
    uint32_t region, offset, bytes, reserved;
};

struct wk_copy_args {
    const struct wk_region *regions;
    const struct wk_tile *tiles;
    struct wk_buffers buffers;
};

/* Like a copy, but each element is reduced over SIZE consecutive sources of the list. */
struct wk_regions_reduce_args {
    const struct wk_region *regions;
    const struct wk_tile *tiles;
    uint32_t reduction, size, word, divisor; /* DIVISOR: of an average */
    struct wk_buffers buffers;
};

/* Like a copy, but each element becomes one of dtype TO.  WORD 16: 16 bytes at a time. */
struct wk_regions_cast_args {
    const struct wk_region *regions;
    const struct wk_tile *tiles;
    uint32_t to, word;
    struct wk_buffers buffers;
};

/* A tile of a region with different fastest dimensions on the two sides.  dims[0] has a source
 * stride of one element, dims[1] a target stride of one element. */
struct wk_transpose_tile {
    uint32_t region, outer; /* OUTER is the index in the remaining dimensions */
    uint32_t from0, from1;  /* first element in dims[0] and dims[1] */
};

struct wk_transpose_args {
    const struct wk_region *regions;
    const struct wk_transpose_tile *tiles;
    struct wk_buffers buffers;
};

/* TARGET[i] = reduction over k of source k.  Source k is in BUFFERS, or, if STRIDE is not 0, at
 * BASE + k * STRIDE bytes.  avg divides by DIVISOR. */
struct wk_reduce_args {
    uint64_t base, stride;
    uint64_t target, count;
    uint32_t reduction, size, word, blocks;
    uint32_t divisor, reserved;
    struct wk_buffers buffers;
};

/* Elementwise kernels: cast, scale, fill, and floats to ordered integer keys and back. */
struct wk_map_args {
    uint64_t source, target, count;
    uint32_t to, wide, blocks, flags; /* TO: dtype; WIDE: pointers are aligned for whole vectors */
    uint64_t value[2];
};

enum wk_key_flag {
    WK_KEY_BACK = 1, /* keys to floats */
    WK_KEY_MIN = 2   /* NaN is the smallest key instead of the largest */
};

#define WK_DRAW_ROUNDS 10u

/* Random numbers, in words of 16 bytes or else in elements; the sources of the regions are bytes of
 * the draw.  The fields are those of weft_draw; NEAR_ ones are for floats of up to 32 bits. */
struct wk_draw_args {
    const struct wk_region *regions;
    const struct wk_tile *tiles;
    uint32_t word;
    float near_first, near_last, near_unit, near_mean, near_deviation;
    uint32_t keys[WK_DRAW_ROUNDS][2]; /* of the rounds of Philox: they follow from the seed */
    uint32_t offset[2];
    double first, last, unit, mean, deviation, share, width;
    uint64_t threshold, least, range, below[2], above[2];
    struct wk_buffers buffers; /* targets */
};

#define WK_SPAN_ELEMENTS 8192u /* maximum elements of a span that one block works on */

/* COUNT elements of a span, from element FIRST on. */
struct wk_span_tile {
    uint64_t first;
    uint32_t span, count, dtype, reserved;
};

enum wk_power { WK_POWER_ONE, WK_POWER_TWO, WK_POWER_ANY, WK_POWER_LARGEST };
enum wk_nonfinite { WK_NONFINITE_SCALE, WK_NONFINITE_KEEP, WK_NONFINITE_ZERO };

/* Powers: PARTIALS[b] is the sum of tile b.  Limits: *SUM is the sum of powers of all elements, and
 * *NORM is set to their norm.  Clamps use MOST alone. */
struct wk_spans_args {
    const struct wk_span_tile *tiles;
    const uint64_t *memory; /* the address of each span */
    double *partials;
    const double *sum;
    double *norm;
    double p, most;
    uint32_t tile_count, power, nonfinite, reserved;
};

/* SUMS[b] combines PARTIALS from FIRST[b] to FIRST[b + 1]. */
struct wk_span_sums_args {
    const double *partials;
    const uint32_t *first;
    double *sums;
    uint32_t power, reserved;
};

#define WK_SPAN_ADDRESSES 448u /* that arguments hold; arguments have at most 4096 bytes */

/* Writes COUNT addresses of spans from entry FIRST of TABLE on. */
struct wk_span_table_args {
    uint64_t table, first, count;
    uint64_t memory[WK_SPAN_ADDRESSES];
};

#define WK_MERGE_ROWS 32u /* that one block merges */

/* Rows of weft_merge; addresses, and strides in elements.  Without LSE, OUT is added. */
struct wk_merge_args {
    uint64_t out, lse, total, total_lse;
    int64_t out_stride[3], lse_stride[3], total_stride[3], total_lse_stride[3];
    uint64_t rows, extent[2]; /* EXTENT: of the last two dimensions of rows */
    uint32_t depth, reserved;
};

/* Writes COUNT buffer addresses from entry FIRST of TABLE on. */
struct wk_table_args {
    uint64_t table, first, count;
    uint64_t near[WK_NEAR];
};

#endif
