/* merge.c - results of several problems become one, in host memory. */
#include "cp.h"

#include "base/number.h"

#include <math.h>

enum { CHUNK = 256 }; /* elements that are converted at once */

static const char *row(const weft_cp_local *local, size_t element, int64_t b, int64_t h, int64_t s)
{
    return (const char *)local->memory +
           (size_t)(b * local->batch + h * local->head + s * local->sequence) * element;
}

static void add(float *total, const float *values, int64_t count, float unused)
{
    (void)unused;
    for (int64_t i = 0; i < count; i++)
        total[i] += values[i];
}

static void blend(float *total, const float *values, int64_t count, float share)
{
    for (int64_t i = 0; i < count; i++)
        total[i] += share * (values[i] - total[i]);
}

typedef void combine(float *total, const float *values, int64_t count, float share);

static void combine_row(combine *how, float *total, uint32_t dtype, const void *values,
                        int64_t count, float share)
{
    float chunk[CHUNK];
    size_t element = wf_dtype_bytes(dtype);

    if (dtype == WEFT_DTYPE_F32) {
        how(total, values, count, share);
        return;
    }
    for (int64_t at = 0; at < count; at += CHUNK) {
        int64_t now = wf_min_i64(CHUNK, count - at);

        wf_elements_cast(dtype, WEFT_DTYPE_F32, (const char *)values + (size_t)at * element, chunk,
                         (size_t)now);
        how(total + at, chunk, now, share);
    }
}

/* The share of the new value in the merged row, and the merged logarithm in *TOTAL.  If the new
 * row saw no key, its share is 0, also if the old one saw none. */
static float merge_lse(float *total, float lse)
{
    float old = *total, share;

    if (lse == -INFINITY) return 0;
    if (old == -INFINITY) {
        *total = lse;
        return 1;
    }
    share = 1 / (1 + expf(old - lse));
    *total = fmaxf(old, lse) + log1pf(expf(-fabsf(old - lse)));
    return share;
}

void wf_cp_merge(const struct wf_cp_box *box, uint32_t dtype, const weft_cp_local *out,
                 const weft_cp_local *lse, const weft_cp_local *total,
                 const weft_cp_local *total_lse)
{
    size_t element = wf_dtype_bytes(dtype);

    for (int64_t b = 0; b < box->batch; b++)
        for (int64_t h = 0; h < box->heads; h++)
            for (int64_t s = 0; s < box->count; s++) {
                float *merged = (float *)(uintptr_t)row(total_lse, sizeof(float), b, h, s);
                const void *added = row(lse, sizeof(float), b, h, s);
                float share = merge_lse(merged, *(const float *)added);

                if (share == 0) continue; /* OUT need not be a number */
                combine_row(blend, (float *)(uintptr_t)row(total, sizeof(float), b, h, s), dtype,
                            row(out, element, b, h, s), box->depth, share);
            }
}

void wf_cp_add(const struct wf_cp_box *box, uint32_t dtype, const weft_cp_local *values,
               const weft_cp_local *total)
{
    size_t element = wf_dtype_bytes(dtype);

    for (int64_t b = 0; b < box->batch; b++)
        for (int64_t h = 0; h < box->heads; h++)
            for (int64_t s = 0; s < box->count; s++)
                combine_row(add, (float *)(uintptr_t)row(total, sizeof(float), b, h, s), dtype,
                            row(values, element, b, h, s), box->depth, 1);
}
