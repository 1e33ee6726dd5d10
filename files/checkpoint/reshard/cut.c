/* cut.c - a box of elements in pieces of bounded size: rows without gaps in row-major memory, or
 * tiles. */
#include "checkpoint/file.h"

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
    multiple = 8 / wf_gcd(8, row); /* of rows that end with a byte */
    cut->length = most_bits / row / multiple * multiple;
    for (int32_t d = 0; d < cut->dim; d++)
        outer *= shape[d];
    if (cut->length == 0 || (outer > 1 && row * shape[cut->dim] % 8 != 0)) return false;
    cut->length = wf_min_i64(cut->length, shape[cut->dim]);
    cut->pieces = (uint64_t)(outer * ((shape[cut->dim] + cut->length - 1) / cut->length));
    return true;
}

static int64_t pieces_of(int64_t size, int64_t piece)
{
    return (size + piece - 1) / piece;
}

static int64_t square_root(int64_t value)
{
    int64_t root = 1;

    while ((root + 1) * (root + 1) <= value)
        root++;
    return root;
}

bool wf_cut_make_from(struct wf_cut *cut, uint32_t bits, int32_t dims, const int64_t *shape,
                      uint64_t most, int32_t fast)
{
    int32_t last = dims - 1;
    int64_t fit = (int64_t)(most * 8 / bits), side = 0;

    if (!wf_cut_make(cut, bits, dims, shape, most)) return false;
    if (fast < 0 || fast == last || bits % 8 != 0 || cut->pieces < 2 || shape[fast] == 1 ||
        shape[last] <= fit / shape[fast])
        return true;
    side = square_root(fit);
    cut->dim = fast;
    cut->width = wf_min_i64(side, shape[last]);
    cut->length = wf_min_i64(fit / cut->width, shape[fast]);
    cut->width = wf_min_i64(fit / cut->length, shape[last]);
    cut->pieces =
        (uint64_t)(pieces_of(shape[fast], cut->length) * pieces_of(shape[last], cut->width));
    for (int32_t d = 0; d < last; d++)
        if (d != fast) cut->pieces *= (uint64_t)shape[d];
    return true;
}

static void tile_box(const struct wf_cut *cut, int32_t dims, const int64_t *shape, int64_t number,
                     int64_t *offset, int64_t *sizes)
{
    for (int32_t d = dims - 1; d >= 0; d--) {
        int64_t size = d == dims - 1 ? cut->width : d == cut->dim ? cut->length : 1;
        int64_t pieces = pieces_of(shape[d], size);
        offset[d] = number % pieces * size;
        sizes[d] = wf_min_i64(size, shape[d] - offset[d]);
        number /= pieces;
    }
}

void wf_cut_box(const struct wf_cut *cut, int32_t dims, const int64_t *shape, uint64_t number,
                int64_t *offset, int64_t *sizes)
{
    int64_t per, outer;

    if (dims == 0) return;
    if (cut->width > 0) {
        tile_box(cut, dims, shape, (int64_t)number, offset, sizes);
        return;
    }
    per = pieces_of(shape[cut->dim], cut->length);
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
