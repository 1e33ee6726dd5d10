/* random.h - random numbers that depend on the element alone, not on the layout.
 *
 *     weft_random random = {.seed = 42};
 *     TRY(weft_tensor_normal(weights, &random, 0, 0.02, stream));
 *
 * Element i of the whole tensor, in row-major order, gets a number that follows from the seed, the
 * offset and i.  So a tensor has the same bits in every layout, on every mesh and backend, and as
 * on one rank.  Nothing is communicated.  docs/random.md states the formulas.
 *
 * The state is a value of the caller.  Each draw uses one offset and adds 1 to it.  Ranks that draw
 * the same tensor must have the same state.  To skip or repeat draws, or to save and restore the
 * state, write its fields. */
#ifndef WEFT_RANDOM_H
#define WEFT_RANDOM_H

#include "tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The state.  Two draws have equal bits if the seed, the offset, the distribution and its
 * parameters, the dtype and the shape are equal. */
typedef struct weft_random {
    uint64_t seed, offset;
} weft_random;

/* These functions set every element of TENSOR, in the order of STREAM, and add 1 to the offset of
 * RANDOM.  Not collective, but replicas are equal only if all ranks make the same draws.  A tensor
 * with a partial placement is refused, because its ranks hold contributions to the elements.
 * WEFT_ERR_INVALID: a parameter is not finite or out of range, or no number of the dtype is within
 * the limits.  LOW and HIGH of uniform numbers, MEAN and DEVIATION of normal numbers and
 * 1 / (1 - PROBABILITY) of a dropout mask are also out of range if they are beyond the largest
 * number of the dtype.
 * WEFT_ERR_UNSUPPORTED: the distribution is not defined on the dtype.  RANDOM keeps its offset if a
 * call fails. */

/* Draw uniform numbers x, LOW <= x < HIGH.  Floats and complex numbers; of the latter, both parts.
 * WEFT_ERR_INVALID also: HIGH - LOW is beyond the largest number of f32, or the step of the draw,
 * (HIGH - LOW) / 2^p, is below the smallest normal number of f32 (docs/random.md).  For f64 and
 * c128 it is f64 instead of f32. */
WEFT_API WEFT_NODISCARD weft_status weft_tensor_uniform(weft_tensor *tensor, weft_random *random,
                                                        double low, double high,
                                                        weft_stream *stream);
/* Draw from the normal distribution.  DEVIATION is at least 0.  Floats and complex numbers, whose
 * parts have DEVIATION / sqrt(2) each; MEAN is the mean of both parts. */
WEFT_API WEFT_NODISCARD weft_status weft_tensor_normal(weft_tensor *tensor, weft_random *random,
                                                       double mean, double deviation,
                                                       weft_stream *stream);
/* Draw from the normal distribution within LOW <= x <= HIGH, by its quantiles: no element is drawn
 * again. DEVIATION is positive.  Floats.  If both limits are on one side of the mean, more than 37
 * deviations away from it, every element is the limit that is nearer to the mean.  Limits beyond
 * the range of the dtype are allowed; the elements stay within it. */
WEFT_API WEFT_NODISCARD weft_status weft_tensor_truncated_normal(weft_tensor *tensor,
                                                                 weft_random *random, double mean,
                                                                 double deviation, double low,
                                                                 double high, weft_stream *stream);
/* Draw 1 with PROBABILITY, from 0 to 1, else 0.  Any dtype, bool included. */
WEFT_API WEFT_NODISCARD weft_status weft_tensor_bernoulli(weft_tensor *tensor, weft_random *random,
                                                          double probability, weft_stream *stream);
/* Draw a mask for dropout: 0 with PROBABILITY, from 0 to 1, else 1 / (1 - PROBABILITY).  Floats and
 * complex numbers. */
WEFT_API WEFT_NODISCARD weft_status weft_tensor_dropout(weft_tensor *tensor, weft_random *random,
                                                        double probability, weft_stream *stream);
/* Draw integers x, LOW <= x < HIGH: HIGH is exclusive, and may be one more than the largest number
 * of the dtype. Integers and bool, whose numbers are 0 and 1.  The numbers from 2^63 - 1 on, of i64
 * and u64, cannot be drawn, because HIGH is an int64_t.  For dtypes of up to 32 bits, a number's
 * probability differs from 1 / (HIGH - LOW) by at most 2^-32. */
WEFT_API WEFT_NODISCARD weft_status weft_tensor_integers(weft_tensor *tensor, weft_random *random,
                                                         int64_t low, int64_t high,
                                                         weft_stream *stream);

#ifdef __cplusplus
}
#endif
#endif
