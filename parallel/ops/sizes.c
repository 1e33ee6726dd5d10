/* sizes.c - sizes that placements list: kept for a call, followed through products of factors, and
 * compared by the indices that they give to ranks. */
#include "strategy.h"

#include <string.h>

struct wf_sizes_list {
    struct wf_sizes_list *next;
    int64_t count;
    int64_t sizes[];
};

/* ---- lists ---- */

static bool has_sizes(const struct wf_sizes_list *list, const int64_t *sizes, int32_t count,
                      int64_t times, int64_t repeats)
{
    if (list->count != count * repeats) return false;
    for (int64_t i = 0; i < list->count; i++)
        if (list->sizes[i] != sizes[i % count] * times) return false;
    return true;
}

/* Add a list of COUNT sizes, which the caller sets; NULL: memory is exhausted. */
static struct wf_sizes_list *add_list(struct wf_sizes *lists, int64_t count)
{
    struct wf_sizes_list *list = wf_alloc(sizeof *list + (size_t)count * sizeof list->sizes[0]);

    if (list == NULL) {
        lists->failed = true;
        return NULL;
    }
    list->count = count;
    list->next = lists->first;
    lists->first = list;
    return list;
}

/* True if LIST has the sums of the sizes before each of SPLIT. */
static bool has_starts(const struct wf_sizes_list *list, const struct wf_split *split)
{
    int64_t sum = 0;

    if (list->count != split->size_count) return false;
    for (int64_t i = 0; i < list->count; sum += split->sizes[i++])
        if (list->sizes[i] != sum) return false;
    return true;
}

void wf_sizes_set_starts(struct wf_sizes *lists, struct wf_layout *layout)
{
    for (int32_t i = 0; i < layout->split_count; i++) {
        struct wf_split *split = &layout->splits[i];
        struct wf_sizes_list *list = lists->first;
        int64_t sum = 0;
        if (split->kind != WEFT_PLACE_SIZES || split->size_count <= WEFT_MAX_PARTS) continue;
        while (list != NULL && !has_starts(list, split))
            list = list->next;
        if (list == NULL) {
            list = add_list(lists, split->size_count);
            for (int64_t k = 0; list != NULL && k < list->count; sum += split->sizes[k++])
                list->sizes[k] = sum;
        }
        if (list != NULL) split->starts = list->sizes;
    }
}

const int64_t *wf_sizes_keep(struct wf_sizes *lists, const int64_t *sizes, int32_t count,
                             int64_t times, int64_t repeats)
{
    struct wf_sizes_list *list = lists->first;

    while (list != NULL && !has_sizes(list, sizes, count, times, repeats))
        list = list->next;
    if (list != NULL) return list->sizes;
    list = add_list(lists, count * repeats);
    for (int64_t i = 0; list != NULL && i < list->count; i++)
        list->sizes[i] = sizes[i % count] * times;
    return list != NULL ? list->sizes : NULL;
}

void wf_sizes_end(struct wf_sizes *lists)
{
    while (lists->first != NULL) {
        struct wf_sizes_list *next = lists->first->next;
        wf_free(lists->first);
        lists->first = next;
    }
}

/* ---- products ---- */

/* The number of sizes of P that one pass of a factor of EACH indices has; 0: none. */
static int32_t count_pass(const weft_placement *p, int64_t each)
{
    int64_t sum = 0;

    for (size_t i = 0; i < p->size_count; i++) {
        sum += p->sizes[i];
        if (sum >= each) return sum == each ? (int32_t)i + 1 : 0;
    }
    return 0;
}

/* The first COUNT sizes of P divided by INNER; false: they are not multiples of it. */
static bool divide_sizes(const weft_placement *p, int32_t count, int64_t inner,
                         struct wf_sizes *lists, weft_placement *out)
{
    int64_t few[WEFT_MAX_PARTS], *sizes = few;

    if (count > WEFT_MAX_PARTS) {
        sizes = wf_alloc((size_t)count * sizeof *sizes);
        if (sizes == NULL) {
            lists->failed = true;
            return false;
        }
    }
    *out = (weft_placement){.kind = p->kind, .size_count = (size_t)count};
    for (int32_t i = 0; i < count; i++) {
        if (p->sizes[i] % inner != 0) out->size_count = 0;
        sizes[i] = p->sizes[i] / inner;
    }
    if (out->size_count > 0) out->sizes = wf_sizes_keep(lists, sizes, count, 1, 1);
    if (sizes != few) wf_free(sizes);
    return out->sizes != NULL;
}

/* The one form of a placement that lists sizes. */
static void settle_style(const struct wf_op *op, weft_placement *style)
{
    struct wf_layout layout = {.dims = 0};

    wf_op_begin_layout(op, WEFT_DTYPE_U8, 1, &layout);
    for (size_t i = 0; i < style->size_count; i++)
        layout.shape[0] += style->sizes[i];
    for (int32_t a = 0; a < op->axes; a++) {
        if (style->kind == WEFT_PLACE_SIZES && (size_t)op->ranks[a] != style->size_count) continue;
        layout.placements[a] = *style;
        if (wf_layout_settle(&layout) == WEFT_OK) *style = layout.placements[a];
        break;
    }
    style->dim = style->turn = 0;
}

bool wf_factor_style(const struct wf_op *op, const struct wf_op_tensor *tensor,
                     const weft_placement *p, uint32_t factor, struct wf_sizes *lists,
                     weft_placement *out)
{
    const struct wf_op_dim *dim = &tensor->dim[p->dim];
    int64_t outer = 1, inner = 1;
    int32_t f = 0, count = (int32_t)p->size_count;

    if (dim->count == 1) {
        *out = *p;
        out->dim = out->turn = 0;
        return true;
    }
    if (!wf_placement_has_sizes(p)) return false; /* runs decide about the rows of S */
    for (; dim->factor[f] != factor; f++)
        outer *= op->factors[dim->factor[f]].size;
    for (f++; f < dim->count; f++)
        inner *= op->factors[dim->factor[f]].size;
    if (outer == 0 || inner == 0) return false;
    if (outer > 1) {
        if (p->kind != WEFT_PLACE_PARTS) return false;
        count = count_pass(p, op->factors[factor].size * inner);
    }
    if (count == 0 || !divide_sizes(p, count, inner, lists, out)) return false;
    settle_style(op, out);
    return true;
}

/* ---- comparison ---- */

bool wf_splits_alone(const struct wf_op *op, const weft_placement *placements, int32_t axis)
{
    for (int32_t a = 0; a < op->axes; a++)
        if (a != axis && wf_placement_splits(&placements[a]) &&
            placements[a].dim == placements[axis].dim)
            return false;
    return true;
}

/* A dimension of SIZE indices that AXIS splits in STYLE. */
static bool set_layout(const struct wf_op *op, int32_t axis, int64_t size,
                       const weft_placement *style, struct wf_layout *out)
{
    *out = (struct wf_layout){.shape = {size}};
    wf_op_begin_layout(op, WEFT_DTYPE_U8, 1, out);
    out->placements[axis] = *style;
    out->placements[axis].dim = out->placements[axis].turn = 0;
    return wf_layout_settle(out) == WEFT_OK;
}

bool wf_style_places_same(const struct wf_op *op, int32_t axis, int64_t size,
                          const weft_placement *a, const weft_placement *b)
{
    struct wf_layout of_a, of_b;
    int32_t coord[WEFT_MAX_AXES] = {0};

    if (wf_style_same(a, b)) return true;
    if (!set_layout(op, axis, size, a, &of_a) || !set_layout(op, axis, size, b, &of_b))
        return false;
    for (; coord[axis] < op->ranks[axis]; coord[axis]++) {
        struct wf_shard shard_a, shard_b;
        struct wf_index x, y;
        wf_shard_at(&of_a, coord, &shard_a);
        wf_shard_at(&of_b, coord, &shard_b);
        x = wf_shard_index(&shard_a, 0);
        y = wf_shard_index(&shard_b, 0);
        if (x.length != y.length || wf_index_common(&x, &y) != x.length) return false;
    }
    return true;
}
