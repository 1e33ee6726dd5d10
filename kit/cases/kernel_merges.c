/* kernel_merges.c - results of attention merged by their log-sum-exp, and added. */
#include "cases.h"

#include "checks/casts.h"

#include <math.h>
#include <string.h>

/* Rows have gaps, and their dimensions are in another order in memory. */
enum { FIRST = 2, SECOND = 3, THIRD = 37, DEPTH = 70, GAP = 3 };
enum { ROWS = FIRST * SECOND * THIRD, ROOM = ROWS * (DEPTH + GAP) };

struct bench {
    struct kit *kit;
    uint32_t dtype;
    bool adds;
    struct kit_image out, lse, total, total_lse;
};

static const int64_t strides[3] = {(DEPTH + GAP), FIRST *(DEPTH + GAP),
                                   SECOND *FIRST *(DEPTH + GAP)};
static const int64_t lse_strides[3] = {SECOND * THIRD, THIRD, 1};

/* Where row R is, in elements. */
static int64_t place(const int64_t *stride, int64_t r)
{
    return r % THIRD * stride[2] + r / THIRD % SECOND * stride[1] + r / THIRD / SECOND * stride[0];
}

static double out_of(int64_t row, int64_t at)
{
    return (double)((row * 7 + at * 3) % 9 - 4) / 4;
}

static double total_of(int64_t row, int64_t at)
{
    return (double)((row * 5 + at) % 11 - 5) / 8;
}

static double lse_of(int64_t row)
{
    if (row % 5 == 1 || row % 5 == 3) return -(double)INFINITY;
    return row % 7 == 0 ? 200 : (double)(row % 4) - 1.5;
}

static double total_lse_of(int64_t row)
{
    if (row % 5 == 2 || row % 5 == 3) return -(double)INFINITY;
    return row % 11 == 0 ? 300 : (double)(row % 3);
}

static uint8_t *at(struct kit_image *image, uint8_t *copy, int64_t index, size_t bytes)
{
    return copy + image->start + (size_t)index * bytes;
}

static void store_f32(struct kit_image *image, int64_t index, double value)
{
    float near = (float)value;

    memcpy(at(image, image->before, index, sizeof near), &near, sizeof near);
}

/* A row that saw no key has results that are not numbers. */
static void fill(struct bench *b)
{
    for (int64_t r = 0; r < ROWS; r++) {
        store_f32(&b->lse, place(lse_strides, r), lse_of(r));
        store_f32(&b->total_lse, place(lse_strides, r), total_lse_of(r));
        for (int64_t i = 0; i < DEPTH; i++) {
            bool unseen = !b->adds && isinf(lse_of(r));
            double value = unseen ? (double)NAN : out_of(r, i);
            uint8_t *out =
                at(&b->out, b->out.before, place(strides, r) + i, wf_dtype_bytes(b->dtype));

            kit_cast_want(WEFT_DTYPE_F64, b->dtype, &value, out);
            store_f32(&b->total, place(strides, r) + i, total_of(r, i));
        }
    }
}

static void want_row(const struct bench *b, int64_t r, double *share, double *lse)
{
    double old = total_lse_of(r), new = lse_of(r);

    *lse = old;
    *share = 0;
    if (b->adds || new == -(double)INFINITY) return;
    *share = old == -(double)INFINITY ? 1 : 1 / (1 + exp(old - new));
    *lse = old == -(double)INFINITY ? new : fmax(old, new) + log1p(exp(-fabs(old - new)));
}

static double got_f32(struct kit_image *image, int64_t index)
{
    float value;

    memcpy(&value, at(image, image->got, index, sizeof value), sizeof value);
    return (double)value;
}

static bool is_near(double got, double want)
{
    return got == want || fabs(got - want) <= 1e-6 * (1 + fabs(want));
}

static void check_rows(struct bench *b)
{
    if (!kit_image_download(b->kit, &b->total) || !kit_image_download(b->kit, &b->total_lse))
        return;
    for (int64_t r = 0; r < ROWS; r++) {
        double share, lse, got = got_f32(&b->total_lse, place(lse_strides, r));

        want_row(b, r, &share, &lse);
        kit_check(b->kit, is_near(got, lse), "row %lld: log-sum-exp is %g, not %g", (long long)r,
                  got, lse);
        for (int64_t i = 0; i < DEPTH + GAP; i++) {
            double old = total_of(r, i), want = old + share * (out_of(r, i) - old);

            if (b->adds) want = old + out_of(r, i);
            got = got_f32(&b->total, place(strides, r) + i);
            if (i < DEPTH)
                kit_check(b->kit, is_near(got, want), "row %lld, element %lld: %g, not %g",
                          (long long)r, (long long)i, got, want);
        }
    }
}

/* Bytes between rows stay, and so do the results. */
static void check_gaps(struct bench *b)
{
    for (int64_t r = 0; r < ROWS; r++)
        for (int64_t i = DEPTH; i < DEPTH + GAP; i++) {
            int64_t index = place(strides, r) + i;

            kit_check(b->kit,
                      memcmp(at(&b->total, b->total.got, index, sizeof(float)),
                             at(&b->total, b->total.want, index, sizeof(float)),
                             sizeof(float)) == 0,
                      "row %lld: a gap was written", (long long)r);
        }
    kit_image_check(b->kit, &b->out, "out", &(struct kit_compare){.dtype = b->dtype});
    kit_image_check(b->kit, &b->lse, "lse", &(struct kit_compare){.dtype = WEFT_DTYPE_F32});
}

static weft_rows rows_of(const struct kit_image *image, const int64_t *stride)
{
    weft_rows rows = {.memory = kit_image_at(image, 0)};

    memcpy(rows.stride, stride, sizeof rows.stride);
    return rows;
}

static void run(struct bench *b)
{
    weft_merge merge = {.struct_size = sizeof merge,
                        .dtype = b->dtype,
                        .extent = {FIRST, SECOND, THIRD},
                        .depth = DEPTH,
                        .out = rows_of(&b->out, strides),
                        .lse = rows_of(&b->lse, lse_strides),
                        .total = rows_of(&b->total, strides),
                        .total_lse = rows_of(&b->total_lse, lse_strides)};
    weft_status status;

    if (b->adds) merge.lse = merge.total_lse = (weft_rows){0};
    status = b->kit->plugin->kernel->merge_rows(b->kit->device, &merge, NULL);
    if (!kit_done_if_supported(b->kit, "merge_rows", status)) return;
    check_rows(b);
    check_gaps(b);
}

static void merge(struct kit *kit, uint32_t dtype, bool adds)
{
    struct bench b = {.kit = kit, .dtype = dtype, .adds = adds};

    if (!kit_begin(kit, "merge_rows/%s/%s", adds ? "added" : "merged", wf_dtype_name(dtype)))
        return;
    if (kit_image_make(kit, &b.out, ROOM * wf_dtype_bytes(dtype), 0, KIT_DEVICE) &&
        kit_image_make(kit, &b.lse, ROWS * sizeof(float), 0, KIT_DEVICE) &&
        kit_image_make(kit, &b.total, ROOM * sizeof(float), 0, KIT_DEVICE) &&
        kit_image_make(kit, &b.total_lse, ROWS * sizeof(float), 0, KIT_DEVICE)) {
        fill(&b);
        if (kit_image_upload(kit, &b.out) && kit_image_upload(kit, &b.lse) &&
            kit_image_upload(kit, &b.total) && kit_image_upload(kit, &b.total_lse))
            run(&b);
    }
    kit_images_free(kit, &b.out, &b.lse);
    kit_images_free(kit, &b.total, &b.total_lse);
    kit_end(kit);
}

/* A call without rows asks; f64 and missing memory are refused. */
void kit_kernel_merge_rows_asked(struct kit *kit)
{
    weft_merge none = {.struct_size = sizeof none, .dtype = WEFT_DTYPE_BF16, .depth = 8};
    weft_merge wide = {.struct_size = sizeof wide, .dtype = WEFT_DTYPE_F64};
    weft_status status = kit->plugin->kernel->merge_rows(kit->device, &none, NULL);

    kit_check(kit, status == WEFT_OK || status == WEFT_ERR_UNSUPPORTED,
              "merge_rows without rows: WEFT_%s", weft_status_name(status));
    if (status == WEFT_OK) {
        none.extent[0] = none.extent[1] = none.extent[2] = 1;
        kit_expect(kit, "merge_rows of memory that is NULL",
                   kit->plugin->kernel->merge_rows(kit->device, &none, NULL), WEFT_ERR_INVALID);
        kit_expect(kit, "merge_rows of f64",
                   kit->plugin->kernel->merge_rows(kit->device, &wide, NULL), WEFT_ERR_UNSUPPORTED);
    }
}

void kit_kernel_merges(struct kit *kit)
{
    for (uint32_t dtype = WEFT_DTYPE_F16; dtype <= WEFT_DTYPE_F8E5M2; dtype++) {
        if (dtype == WEFT_DTYPE_F64) continue;
        merge(kit, dtype, false);
        merge(kit, dtype, true);
    }
}

bool kit_when_merges(struct kit *kit)
{
    return kit->plugin->kernel->merge_rows != NULL;
}
