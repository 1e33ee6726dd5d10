/* cpu_random.h - random elements, as a function of the element's number alone.
 *
 * The one definition of what a draw gives; docs/random.md states it.  Element i takes word i mod k
 * of the Philox block with the key SEED and the counter (i / k, OFFSET).  k is 4 for elements of up
 * to 32 bits, 2 for 64 bits and 1 for 128 bits.  Every level of vector hardware gives the same
 * bits. */
#ifndef WEFT_CPU_RANDOM_H
#define WEFT_CPU_RANDOM_H

#include "cpu_reduce.h"

enum cpu_distribution {
    CPU_UNIFORM,          /* LOW <= x < HIGH */
    CPU_NORMAL,           /* MEAN and DEVIATION; of complex numbers: of both parts together */
    CPU_TRUNCATED_NORMAL, /* the same within LOW <= x <= HIGH; no complex numbers */
    CPU_BERNOULLI,        /* 1 with PROBABILITY, else 0; any dtype */
    CPU_DROPOUT,          /* 0 with PROBABILITY, else 1 / (1 - PROBABILITY); floats */
    CPU_INTEGERS          /* FIRST <= x < FIRST + RANGE; integers and bool */
};

/* A distribution with its parameters.  The dtype can represent its values. */
struct cpu_draw {
    uint32_t distribution, dtype;
    struct cpu_bits bits;
    double low, high, mean, deviation, probability;
    int64_t first;
    uint64_t range; /* 0: 2^64 */
};

/* A draw and what follows from it. */
struct cpu_sampler {
    struct cpu_draw draw;
    const struct cpu_kernels *kernels;
    uint32_t element;       /* bytes */
    struct cpu_range range; /* of f32 and smaller floats */
    double first, last;     /* the least and the greatest value of the dtype that may be drawn */
    double unit;            /* of uniform f64: the distance of two values */
    double deviation;       /* of each part of a complex number; negative: see SHARE */
    double share, width;    /* of the standard normal numbers: below LOW, and from LOW to HIGH; if
                               LOW is above the mean, of the numbers that are mirrored at it */
    uint64_t threshold;     /* words below it: 1 of Bernoulli, 0 of dropout */
    bool is_certain;        /* all words are below it */
    double above;           /* the number of the other words */
};

void cpu_sampler_set(struct cpu_sampler *sampler, const struct cpu_kernels *kernels,
                     const struct cpu_draw *draw);
/* Set TARGET to elements FIRST .. FIRST + COUNT of the draw. */
void cpu_sample(const struct cpu_sampler *sampler, uint64_t first, size_t count, void *target);
/* Set BELOW to the element that words below the threshold give, and ABOVE to that of the others. */
void cpu_sampler_choice(const struct cpu_sampler *sampler, void *below, void *above);

#endif
