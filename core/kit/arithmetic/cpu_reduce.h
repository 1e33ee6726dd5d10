/* cpu_reduce.h - element-wise reduction of buffers.
 *
 * This is the single definition of reductions on a host: the type in which each dtype is computed,
 * and its rounding.  The core compiles it (for the simulator and averages on the host), and so does
 * gloo-cpu.  cpu_kernels.h is compiled for each vector instruction set, and cpu_reduce.c composes
 * its kernels.  Every level gives the same bits.  Buffers are combined strictly in the given order,
 * so the result depends on nothing else. */
#ifndef WEFT_CPU_REDUCE_H
#define WEFT_CPU_REDUCE_H

#include "kit/names.h"

enum cpu_binary { CPU_ADD, CPU_MULTIPLY, CPU_MIN, CPU_MAX, CPU_AND, CPU_OR, CPU_XOR, CPU_BINARIES };

/* TARGET may equal a source. */
typedef void cpu_binary_kernel(void *target, const void *a, const void *b, size_t count);
/* target = value / parts, and target = sum + value / parts. */
typedef void cpu_divide_kernel(void *target, const void *value, uint32_t parts, size_t count);
typedef void cpu_divide_add_kernel(void *target, const void *sum, const void *value, uint32_t parts,
                                   size_t count);
/* target = value * *scale, and target = sum + value * *scale. */
typedef void cpu_scale_kernel(void *target, const void *value, const void *scale, size_t count);
typedef void cpu_scale_add_kernel(void *target, const void *sum, const void *value,
                                  const void *scale, size_t count);
typedef void cpu_convert_kernel(void *target, const void *source, size_t count);

/* Holds any sum of integers. */
__extension__ typedef __int128 cpu_wide;

/* Averages of integers: sums in a wider type, then a division. */
struct cpu_averaging {
    void (*sum)(void *sums, const void *source, size_t count); /* sums, cpu_wide, += source */
    cpu_divide_kernel *divide;                                 /* target = sums / parts */
    /* The same with sums of NEAR_BYTES, which hold at least NEAR_MAX numbers; NULL: none. */
    void (*sum_near)(void *sums, const void *source, size_t count);
    void (*divide_near)(void *target, const void *sums, uint32_t parts, bool fits, size_t count);
    uint32_t near_bytes, near_most;
};

/* Kernels of one dtype.  NULL if undefined, and for the small floats, which are widened to f32
 * first. */
struct cpu_arithmetic {
    cpu_binary_kernel *binary[CPU_BINARIES];
    cpu_divide_kernel *divide; /* not for integers; the next three neither */
    cpu_divide_add_kernel *divide_add;
    cpu_divide_add_kernel
        *mean_add; /* the same for a mean: finite numbers do not become infinite */
    cpu_divide_add_kernel *divide_pair; /* target = sum / parts + value / parts */
    cpu_scale_kernel *scale;
    cpu_scale_add_kernel *scale_add;
    cpu_convert_kernel *widen, *narrow; /* f16, bf16 and f8 only: from and to f32 */
    cpu_convert_kernel *narrow_reduced; /* keeps infinities; NULL: narrow */
    float largest;                      /* f16 and bf16 only */
    struct cpu_averaging average;       /* integers only */
};

/* Random numbers; see cpu_random.h. */
struct cpu_bits {
    uint64_t seed, offset;
};

/* Multiples of UNIT from LOW on, at most LAST, by the upper bits of a word. */
struct cpu_range {
    uint32_t dropped; /* lower bits */
    float low, unit, last;
};

struct cpu_kernels {
    const char *level; /* "neon", "avx2" */
    void (*draw_words)(const struct cpu_bits *bits, uint64_t first, size_t count, uint32_t *out);
    void (*draw_uniform)(const struct cpu_range *range, const uint32_t *words, size_t count,
                         float *out);
    void (*draw_normal)(float mean, float deviation, const uint32_t *words, size_t count,
                        float *out);
    void (*limit)(float *data, float largest,
                  size_t count); /* limits finite numbers to +-LARGEST */
    struct cpu_arithmetic of[WEFT_DTYPE_COUNT];
};

extern const struct cpu_kernels cpu_kernels_base; /* for every processor of the architecture */

/* target[i] = sources[0][i] op ... op sources[size - 1][i].  TARGET may be one of the sources. */
struct cpu_reducer {
    uint32_t dtype, reduction;
    uint32_t size;
    uint32_t parts;            /* avg: the divisor; 0: SIZE */
    bool divided;              /* avg of floats: the sources are already divided */
    bool wide;                 /* avg of integers: TARGET receives the sums as cpu_wide */
    const void *const *scales; /* premul_sum: one factor per source */
};

/* The reduction must be defined on the dtype. */
void cpu_reduce(const struct cpu_kernels *kernels, const struct cpu_reducer *reducer,
                const void *const *sources, void *target, size_t count);
/* Divide sums of integers to averages of DTYPE. */
void cpu_divide_wide(const struct cpu_kernels *kernels, uint32_t dtype, uint32_t parts,
                     const void *sums, void *target, size_t count);
/* data[i] *= *scale. */
void cpu_scale(const struct cpu_kernels *kernels, uint32_t dtype, const void *scale, void *data,
               size_t count);

#endif
