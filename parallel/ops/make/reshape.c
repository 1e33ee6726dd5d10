/* reshape.c - the factors that two shapes of the same elements have in common.
 *
 * Both shapes are walked from the left.  The greatest common divisor of what is left of both
 * dimensions is a factor of both: what follows it has the same number of elements on both sides, so
 * its stride is the same.  Where there is no common divisor, dimensions are gathered until their
 * products meet.  In such a block, common divisors are taken from the right in the same way.  What
 * remains is whole. */
#include "make.h"

#include <string.h>

/* One of the two shapes. */
struct side {
    int32_t dims;
    int64_t shape[WEFT_MAX_DIMS], left[WEFT_MAX_DIMS]; /* left: without the factors found */
    struct wf_made_dim made[WEFT_MAX_DIMS];            /* factors from the left */
    struct wf_made_dim inner[WEFT_MAX_DIMS];           /* factors from the right, innermost first */
};

static void add_factor(struct wf_made_dim *dim, int factor)
{
    if (dim->count < WEFT_MAX_DIMS) dim->factor[dim->count++] = factor;
}

static void add_common(struct wf_maker *m, struct side *x, int i, struct side *y, int j,
                       int64_t size, bool from_right)
{
    int factor = wf_maker_factor(m, size);

    if (factor < 0) return;
    add_factor(from_right ? &x->inner[i] : &x->made[i], factor);
    add_factor(from_right ? &y->inner[j] : &y->made[j], factor);
    if (size > 0) {
        x->left[i] /= size;
        y->left[j] /= size;
    }
}

/* Dimensions [*I, *I_END) of x and [*J, *J_END) of y have equal products of what is left. */
static void gather_block(const struct side *x, int i, int *i_end, const struct side *y, int j,
                         int *j_end)
{
    int64_t a = x->left[i], b = y->left[j];

    *i_end = i + 1;
    *j_end = j + 1;
    while (a != b && *i_end + *j_end <= x->dims + y->dims) {
        if (a < b && *i_end < x->dims)
            a *= x->left[(*i_end)++];
        else if (*j_end < y->dims)
            b *= y->left[(*j_end)++];
        else
            return;
    }
}

static void keep_rest(struct wf_maker *m, struct side *side, int first, int end)
{
    for (int d = first; d < end; d++) {
        int factor;
        if (side->left[d] == 1) continue;
        factor = wf_maker_factor(m, side->left[d]);
        if (factor < 0) continue;
        add_factor(&side->made[d], factor);
        m->whole |= UINT32_C(1) << factor;
        side->left[d] = 1;
    }
}

static void match_block(struct wf_maker *m, struct side *x, int i, int i_end, struct side *y, int j,
                        int j_end)
{
    int a = i_end - 1, b = j_end - 1;

    while (a >= i && b >= j) {
        int64_t common;
        if (x->left[a] == 1) {
            a--;
        } else if (y->left[b] == 1) {
            b--;
        } else if ((common = wf_gcd(x->left[a], y->left[b])) > 1) {
            add_common(m, x, a, y, b, common, true);
        } else {
            break;
        }
    }
    keep_rest(m, x, i, i_end);
    keep_rest(m, y, j, j_end);
}

/* Match dimensions [I, I_END) of x with [J, J_END) of y, which have equal products, none 0. */
static void match_range(struct wf_maker *m, struct side *x, int i, int i_end, struct side *y, int j,
                        int j_end)
{
    while (i < i_end && j < j_end) {
        int64_t common;
        if (x->shape[i] == 1 && y->shape[j] == 1) {
            add_common(m, x, i++, y, j++, 1, false);
        } else if (x->left[i] == 1) {
            i++;
        } else if (y->left[j] == 1) {
            j++;
        } else if ((common = wf_gcd(x->left[i], y->left[j])) > 1) {
            add_common(m, x, i, y, j, common, false);
        } else {
            int a, b;
            gather_block(x, i, &a, y, j, &b);
            match_block(m, x, i, a, y, j, b);
        }
    }
}

static int64_t product(const struct side *side, int first, int end)
{
    int64_t p = 1;

    for (int d = first; d < end; d++)
        p *= side->shape[d]; /* below 2^63: the specs were checked */
    return p;
}

/* Sizes of 0 cut the shapes into ranges, which match if their products agree. */
static void match_empty(struct wf_maker *m, struct side *x, struct side *y)
{
    int i = 0, j = 0;

    while (i < x->dims && j < y->dims) {
        int a = i, b = j;
        while (a < x->dims && x->shape[a] != 0)
            a++;
        while (b < y->dims && y->shape[b] != 0)
            b++;
        if (product(x, i, a) != product(y, j, b) || (a < x->dims) != (b < y->dims)) break;
        match_range(m, x, i, a, y, j, b);
        if (a < x->dims) {
            add_common(m, x, a, y, b, 0, false);
            x->left[a] = y->left[b] = 1;
        }
        i = a + 1;
        j = b + 1;
    }
    keep_rest(m, x, 0, x->dims);
    keep_rest(m, y, 0, y->dims);
}

static void begin_side(struct side *side, int32_t dims, const int64_t *shape)
{
    memset(side, 0, sizeof *side);
    side->dims = dims;
    memcpy(side->shape, shape, (size_t)dims * sizeof *shape);
    memcpy(side->left, shape, (size_t)dims * sizeof *shape);
}

/* The factors from the right are inside of those from the left. */
static void end_side(struct side *side)
{
    for (int d = 0; d < side->dims; d++)
        for (int i = side->inner[d].count - 1; i >= 0; i--)
            add_factor(&side->made[d], side->inner[d].factor[i]);
}

/* The shape that the attribute gives; -1 stands for what is left. */
static weft_status read_shape(const struct wf_maker *m, int64_t *shape, uint32_t *count)
{
    const int64_t *list;
    int64_t known = 1, total = 1;
    int open = -1;

    WF_TRY(wf_maker_list(m, "shape", &list, count));
    for (int d = 0; d < m->dims; d++)
        total *= m->shape[d];
    for (uint32_t d = 0; d < *count; d++) {
        shape[d] = list[d];
        if (list[d] == -1 && open < 0)
            open = (int)d;
        else if (list[d] == -1)
            return wf_op_refuse(m->op, "attribute shape has the size -1 twice");
        else if (list[d] < 0)
            return wf_op_refuse(m->op, "attribute shape has the size %lld", (long long)list[d]);
        else if (!wf_mul_i64(known, list[d], &known))
            return wf_op_refuse(m->op, "the sizes of attribute shape multiply to more than "
                                       "2^63 - 1");
    }
    if (open >= 0 && known > 0 && total % known == 0) {
        shape[open] = total / known;
        known = total;
    }
    if (known == total && (open < 0 || shape[open] >= 0)) return WEFT_OK;
    return wf_op_refuse(m->op,
                        "x has %lld element%s, and the sizes of attribute shape multiply to "
                        "%lld%s",
                        (long long)total, WF_PLURAL(total), (long long)known,
                        open >= 0 ? " without the -1, which no single size replaces" : "");
}

weft_status wf_make_reshape(struct wf_maker *m)
{
    struct side x, y;
    int64_t shape[WEFT_MAX_DIMS];
    uint32_t count;

    WF_TRY(read_shape(m, shape, &count));
    begin_side(&x, m->dims, m->shape);
    begin_side(&y, (int32_t)count, shape);
    if (product(&x, 0, x.dims) == 0)
        match_empty(m, &x, &y);
    else
        match_range(m, &x, 0, x.dims, &y, 0, y.dims);
    end_side(&x);
    end_side(&y);
    wf_maker_tensor(m, "x", x.dims, x.made);
    wf_text_add(m->out, " ->");
    wf_maker_tensor(m, "y", y.dims, y.made);
    wf_maker_sizes(m);
    wf_text_add(m->out, "; pass x");
    return WEFT_OK;
}
