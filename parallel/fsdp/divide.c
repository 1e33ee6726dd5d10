/* divide.c - what gradients are divided by, and when: before, during or after the sum. */
#include "fsdp.h"

#include <math.h>

/* About the square root of TOTAL: the power of two that keeps both the contributions and their sum
 * in the range of a dtype with few bits for the exponent. */
static double half_of(double total)
{
    double half = 1;

    while (floor(total / half) == total / half && total / half > half)
        half *= 2;
    return half;
}

struct wf_division wf_fsdp_division(uint32_t dtype, int32_t ranks, int32_t replicas, double divide,
                                    bool sum_only)
{
    bool has_range = dtype == WEFT_DTYPE_F32 || dtype == WEFT_DTYPE_BF16;
    double all = (double)ranks * replicas, total = divide > 0 ? divide : all;
    struct wf_division out = {1, WEFT_REDUCE_SUM, WEFT_REDUCE_SUM, 1};

    if (!has_range) {
        out.before = 1 / half_of(total);
        out.after = 1 / (total * out.before);
    } else if (sum_only) {
        out.after = 1 / total;
    } else if (divide > 0 && divide != ranks) {
        out.before = 1 / divide;
    } else if (all > 1 || divide > 0) {
        out.shard_op = WEFT_REDUCE_AVG;
        out.replicate_op = divide > 0 ? WEFT_REDUCE_SUM : WEFT_REDUCE_AVG;
    }
    return out;
}
