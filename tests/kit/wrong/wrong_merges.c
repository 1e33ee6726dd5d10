/* wrong_merges.c - a merge adds results, without their log-sum-exp.
 * Runs: --only kernel/merge_rows/merged
 * Fails: kernel/merge_rows/merged/f32 */
#include "wrong.h"

static weft_status merge_rows(void *device, const weft_merge *merge, void *stream)
{
    const int64_t *extent = merge->extent;
    const float *out = merge->out.memory;
    float *total = merge->total.memory;

    (void)device, (void)stream;
    if (merge->dtype != WEFT_DTYPE_F32) return WEFT_ERR_UNSUPPORTED;
    for (int64_t r = 0; r < extent[0] * extent[1] * extent[2]; r++)
        for (int64_t i = 0; i < merge->depth; i++) {
            int64_t at[3] = {r / extent[2] / extent[1], r / extent[2] % extent[1], r % extent[2]};
            int64_t from = i, to = i;

            for (int d = 0; d < 3; d++) {
                from += at[d] * merge->out.stride[d];
                to += at[d] * merge->total.stride[d];
            }
            total[to] += out[from];
        }
    return WEFT_OK;
}

INSTALL(wrong.kernel.merge_rows = merge_rows)
