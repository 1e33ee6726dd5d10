/* cut.c - a box of elements in pieces of bounded size, each without gaps in row-major memory. */
#include "file/file.h"

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

bool wf_cut_make(struct wf_cut *cut, uint32_t bits, int32_t dims, const int64_t *shape,
                 uint64_t most)
{
    int64_t row = bits, most_bits = (int64_t)most * 8, outer = 1, all = bits, multiple;

    for (int32_t d = 0; d < dims; d++)
        all *= shape[d];
    *cut = (struct wf_cut){.pieces = all > 0, .length = dims > 0 ? shape[0] : 1};
    if (all <= most_bits) return true;
    cut->dim = dims - 1;
    for (; cut->dim > 0 && row * shape[cut->dim] <= most_bits; cut->dim--)
        row *= shape[cut->dim];
    multiple = 8 / common_divisor(8, row); /* of rows that end with a byte */
    cut->length = most_bits / row / multiple * multiple;
    for (int32_t d = 0; d < cut->dim; d++)
        outer *= shape[d];
    if (cut->length == 0 || (outer > 1 && row * shape[cut->dim] % 8 != 0)) return false;
    cut->length = wf_min_i64(cut->length, shape[cut->dim]);
    cut->pieces = (uint64_t)(outer * ((shape[cut->dim] + cut->length - 1) / cut->length));
    return true;
}

void wf_cut_box(const struct wf_cut *cut, int32_t dims, const int64_t *shape, uint64_t number,
                int64_t *offset, int64_t *sizes)
{
    int64_t per, outer;

    if (dims == 0) return;
    per = (shape[cut->dim] + cut->length - 1) / cut->length;
    outer = (int64_t)number / per;
    for (int32_t d = dims - 1; d > cut->dim; d--) {
        offset[d] = 0;
        sizes[d] = shape[d];
    }
    offset[cut->dim] = (int64_t)number % per * cut->length;
    sizes[cut->dim] = wf_min_i64(cut->length, shape[cut->dim] - offset[cut->dim]);
    for (int32_t d = cut->dim - 1; d >= 0; d--) {
        offset[d] = outer % shape[d];
        sizes[d] = 1;
        outer /= shape[d];
    }
}
