/* reshape.c - another shape for the elements of a tensor.
 *
 * Dimensions are taken in groups: the old and the new dimensions of a group have the same number of
 * elements.  For the axes that split a group, placements of the new dimensions are tried until
 * every rank holds the same elements, in the same order, as before. */
#include "tensor.h"

#include <string.h>

enum { MOST_AXES = 3 }; /* that split one group */

/* Consecutive old and new dimensions with the same number of elements. */
struct group {
    int32_t old_begin, old_end, new_begin, new_end;
    uint32_t axes; /* that split the old dimensions, a bit per axis */
};

struct reshape {
    const weft_tensor *tensor;
    const struct wf_layout *old;
    int32_t dims;
    const int64_t *shape;
    weft_placement placements[WEFT_MAX_AXES]; /* of the new tensor */
    int64_t *sizes[WEFT_MAX_AXES];            /* that PLACEMENTS refer to; NULL: none */
    struct group group;                       /* the current one */
};

/* ---- groups ---- */

/* Set the group that begins where the current one ends.  False after the last one. */
static bool next_group(struct reshape *r)
{
    struct group *g = &r->group;
    int64_t old = 1, new = 1;

    g->old_begin = g->old_end;
    g->new_begin = g->new_end;
    if (g->old_end == r->old->dims && g->new_end == r->dims) return false;
    do {
        if (g->new_end == r->dims || (old <= new && g->old_end < r->old->dims))
            old *= r->old->shape[g->old_end++];
        else
            new *= r->shape[g->new_end++];
    } while (old != new || (g->old_end == g->old_begin && g->old_end < r->old->dims) ||
             (g->new_end == g->new_begin && g->new_end < r->dims));
    while (g->old_end < r->old->dims && r->old->shape[g->old_end] == 1)
        g->old_end++;
    while (g->new_end < r->dims && r->shape[g->new_end] == 1)
        g->new_end++;
    g->axes = 0;
    for (int32_t a = 0; a < r->old->mesh->axes; a++) {
        const weft_placement *p = &r->old->placements[a];

        if (wf_placement_splits(p) && p->dim >= g->old_begin && p->dim < g->old_end)
            g->axes |= UINT32_C(1) << a;
    }
    return true;
}

/* The layout of the group's old or new dimensions alone. */
static weft_status group_spec(const struct reshape *r, bool is_new, weft_spec **out)
{
    const struct group *g = &r->group;
    int32_t begin = is_new ? g->new_begin : g->old_begin, end = is_new ? g->new_end : g->old_end;
    weft_placement placements[WEFT_MAX_AXES] = {{0}};

    for (int32_t a = 0; a < r->old->mesh->axes; a++) {
        if ((g->axes >> a & 1) == 0) continue;
        placements[a] = is_new ? r->placements[a] : r->old->placements[a];
        placements[a].dim -= begin;
    }
    return wf_view_spec(r->tensor->spec, end - begin, (is_new ? r->shape : r->old->shape) + begin,
                        placements, out);
}

/* ---- the same elements ---- */

/* RANK holds the same elements in the same order in both layouts. */
static bool holds_alike(const weft_spec *a, const weft_spec *b, int32_t rank)
{
    weft_segment one = {0}, other = {0};
    int64_t at = 0;

    for (;;) {
        bool has_one = weft_spec_segment(a, rank, NULL, at, &one);
        bool has_other = weft_spec_segment(b, rank, NULL, at, &other);

        if (!has_one || !has_other) return has_one == has_other;
        if (one.global != other.global) return false;
        at += one.length < other.length ? one.length : other.length;
    }
}

static bool all_hold_alike(const weft_spec *a, const weft_spec *b, uint32_t axes)
{
    const weft_mesh *mesh = a->layout.mesh;
    int32_t coord[WEFT_MAX_AXES] = {0};

    for (int32_t i = 0; i < mesh->size; i++) {
        int32_t rank = weft_mesh_rank_at(mesh, i);
        bool skip = weft_mesh_coord_of(mesh, rank, coord) != WEFT_OK;

        for (int32_t axis = 0; axis < mesh->axes; axis++)
            skip = skip || ((axes >> axis & 1) == 0 && coord[axis] != 0);
        if (!skip && !holds_alike(a, b, rank)) return false;
    }
    return true;
}

/* ---- placements that are tried ---- */

/* Use S(DIM) along AXIS. */
static weft_status try_shard(struct reshape *r, int32_t axis, int32_t dim)
{
    r->placements[axis] = (weft_placement){.kind = WEFT_PLACE_SHARD, .dim = dim};
    return WEFT_OK;
}

static weft_status reserve_sizes(struct reshape *r, int32_t axis, int32_t count)
{
    int64_t *sizes = wf_calloc((size_t)count, sizeof *sizes);

    if (sizes == NULL) return wf_fail_memory((size_t)count * sizeof *sizes);
    wf_free(r->sizes[axis]);
    r->sizes[axis] = sizes;
    return WEFT_OK;
}

/* Use G(DIM; sizes) along AXIS, with each rank's share of the elements of OLD. */
static weft_status try_sizes(struct reshape *r, int32_t axis, int32_t dim, const weft_spec *old)
{
    const weft_mesh *mesh = r->old->mesh;
    int32_t count = weft_mesh_axis_size(mesh, axis), coord[WEFT_MAX_AXES] = {0};
    int64_t total = 0;

    WF_TRY(reserve_sizes(r, axis, count));
    for (coord[axis] = 0; coord[axis] < count; coord[axis]++) {
        weft_shard shard;
        int32_t rank;

        WF_TRY(weft_mesh_rank(mesh, coord, &rank));
        weft_spec_shard(old, rank, &shard);
        r->sizes[axis][coord[axis]] = shard.elements;
        total += shard.elements;
    }
    for (int32_t i = 0; i < count && total > 0; i++)
        r->sizes[axis][i] = r->sizes[axis][i] / (total / wf_gcd(total, r->shape[dim])) *
                            (r->shape[dim] / wf_gcd(total, r->shape[dim]));
    r->placements[axis] = (weft_placement){
        .kind = WEFT_PLACE_SIZES, .dim = dim, .sizes = r->sizes[axis], .size_count = (size_t)count};
    return WEFT_OK;
}

/* Use B(DIM; ...) along AXIS: one part for each row that the old dimension splits, if the other
 * axes of the group leave 1 / OTHERS of the rows. */
static weft_status try_parts(struct reshape *r, int32_t axis, int32_t dim, int64_t others)
{
    int64_t rows = 1, size = r->shape[dim] / others;

    for (int32_t d = r->group.old_begin; d < r->old->placements[axis].dim; d++)
        rows *= r->old->shape[d];
    rows /= others;
    if (rows < 2 || rows > WEFT_MAX_PARTS) return try_shard(r, axis, dim);
    WF_TRY(reserve_sizes(r, axis, (int32_t)rows));
    for (int64_t i = 0; i < rows; i++)
        r->sizes[axis][i] = size / rows;
    r->placements[axis] = (weft_placement){
        .kind = WEFT_PLACE_PARTS, .dim = dim, .sizes = r->sizes[axis], .size_count = (size_t)rows};
    return WEFT_OK;
}

/* Use the old placement of AXIS for DIM. */
static weft_status try_old(struct reshape *r, int32_t axis, int32_t dim)
{
    r->placements[axis] = r->old->placements[axis];
    r->placements[axis].dim = dim;
    r->placements[axis].turn = 0;
    return WEFT_OK;
}

/* Use choice NUMBER of AXIS.  *EXISTS is false if there is no such choice. */
static weft_status try_choice(struct reshape *r, int32_t axis, int32_t number, const weft_spec *old,
                              bool *exists)
{
    enum { KINDS = 5 };
    const struct group *g = &r->group;
    int32_t dim = g->new_begin + number / KINDS;
    int64_t others = 1;

    *exists = dim < g->new_end;
    if (!*exists) return WEFT_OK;
    for (int32_t a = 0; a < r->old->mesh->axes; a++)
        if (a != axis && (g->axes >> a & 1) != 0) others *= weft_mesh_axis_size(r->old->mesh, a);
    switch (number % KINDS) {
    case 0:
        return try_shard(r, axis, dim);
    case 1:
        return try_sizes(r, axis, dim, old);
    case 2:
        return try_parts(r, axis, dim, 1);
    case 3:
        return try_parts(r, axis, dim, others);
    default:
        return try_old(r, axis, dim);
    }
}

/* *RIGHT tells whether the placements of the group's axes describe it. */
static weft_status judge(const struct reshape *r, const weft_spec *old, bool *right)
{
    weft_spec *new = NULL;
    weft_status status = group_spec(r, true, &new);

    *right = status == WEFT_OK && all_hold_alike(old, new, r->group.axes);
    weft_spec_release(&new);
    return status == WEFT_ERR_NO_MEMORY ? status : WEFT_OK;
}

/* Try the choices of all axes of AXES, a set of the group's. */
static weft_status search(struct reshape *r, uint32_t axes, const weft_spec *old, bool *found)
{
    int32_t first[MOST_AXES] = {0}, number[MOST_AXES] = {0}, count = 0, at = 0;
    bool exists = true;

    for (; axes != 0 && count < MOST_AXES; axes &= axes - 1)
        first[count++] = __builtin_ctz(axes);
    while (at >= 0) {
        WF_TRY(try_choice(r, first[at], number[at], old, &exists));
        if (!exists) {
            number[at--] = 0;
            if (at >= 0) number[at]++;
            continue;
        }
        if (at + 1 < count) {
            at++;
            continue;
        }
        WF_TRY(judge(r, old, found));
        if (*found) return WEFT_OK;
        number[at]++;
    }
    return WEFT_OK;
}

/* The new dimension that DIM of the group's old ones has become, if only dimensions of size 1 come
 * before it or are left out; otherwise -1. */
static int32_t same_dim(const struct reshape *r, int32_t dim)
{
    int32_t to = r->group.new_begin;

    for (int32_t d = r->group.old_begin; r->old->shape[dim] != 1; d++, to++) {
        while (d < dim && r->old->shape[d] == 1)
            d++;
        while (to < r->group.new_end && r->shape[to] == 1)
            to++;
        if (to == r->group.new_end || r->shape[to] != r->old->shape[d]) return -1;
        if (d == dim) return to;
    }
    return -1;
}

/* Set the placements as they are, with their turns.  False if a dimension has become another. */
static bool keep_placements(struct reshape *r)
{
    const struct group *g = &r->group;
    bool is_longer = g->new_end - g->new_begin >= g->old_end - g->old_begin;

    for (int32_t a = 0; a < r->old->mesh->axes; a++) {
        int32_t dim;

        if ((g->axes >> a & 1) == 0) continue;
        r->placements[a] = r->old->placements[a];
        dim = same_dim(r, r->placements[a].dim);
        if (dim < 0 && !is_longer) return false;
        if (dim < 0) dim = r->placements[a].dim + g->new_begin - g->old_begin;
        r->placements[a].dim = dim;
    }
    return true;
}

/* Set the placements of the group's axes.  *FOUND is false if none describe it. */
static weft_status place_group(struct reshape *r, bool *found)
{
    struct group *g = &r->group;
    weft_spec *old = NULL;
    weft_status status = WEFT_OK;

    *found = g->axes == 0;
    if (g->axes == 0) return WEFT_OK;
    WF_TRY(group_spec(r, false, &old));
    if (keep_placements(r)) status = judge(r, old, found);
    if (status == WEFT_OK && !*found && __builtin_popcount(g->axes) <= MOST_AXES)
        status = search(r, g->axes, old, found);
    weft_spec_release(&old);
    return status;
}

/* Place all groups.  An error is about the first one that has no placements; the move that it names
 * makes all of them possible. */
static weft_status find_reshaped(struct reshape *r, weft_spec **out)
{
    struct group first = {0};
    uint32_t axes = 0;
    bool found = true;

    for (int32_t a = 0; a < r->old->mesh->axes; a++)
        if (!wf_placement_splits(&r->old->placements[a])) r->placements[a] = r->old->placements[a];
    while (next_group(r)) {
        WF_TRY(place_group(r, &found));
        if (found) continue;
        if (axes == 0) first = r->group;
        axes |= r->group.axes;
    }
    if (axes == 0) return wf_view_spec(r->tensor->spec, r->dims, r->shape, r->placements, out);
    (void)wf_fail(WEFT_ERR_UNSUPPORTED,
                  "no placements describe dimensions %d to %d of the new shape, because dimensions "
                  "%d to %d of the tensor are split",
                  first.new_begin, first.new_end - 1, first.old_begin, first.old_end - 1);
    return wf_view_refuse(r->tensor, axes);
}

/* ---- strides ---- */

/* A shard with as few dimensions as its memory allows. */
struct joined {
    int32_t count;
    int64_t sizes[WEFT_MAX_DIMS], strides[WEFT_MAX_DIMS];
};

static void join_dims(const struct wf_local *local, struct joined *out)
{
    out->count = 0;
    for (int32_t d = 0; d < local->shard.dims; d++) {
        int64_t size = local->shard.shape[d], stride = local->strides[d];

        if (size == 1) continue;
        if (out->count > 0 && out->strides[out->count - 1] == size * stride) {
            out->sizes[out->count - 1] *= size;
            out->strides[out->count - 1] = stride;
            continue;
        }
        out->sizes[out->count] = size;
        out->strides[out->count++] = stride;
    }
}

/* The strides of the shard SHARD over the memory of LOCAL.  False if the memory has gaps where
 * SHARD has none. */
static bool find_strides(const struct wf_local *local, const weft_shard *shard, int64_t *strides)
{
    struct joined old;
    int64_t stride = 1, left = 1; /* of the joined dimension that is being divided */

    join_dims(local, &old);
    for (int32_t d = shard->dims - 1; d >= 0; d--) {
        if (shard->shape[d] > 1 && left == 1) {
            if (old.count == 0) return false;
            old.count--;
            left = old.sizes[old.count];
            stride = old.strides[old.count];
        }
        strides[d] = stride;
        if (left % shard->shape[d] != 0) return false;
        left /= shard->shape[d];
        stride *= shard->shape[d];
    }
    return true;
}

static weft_status place_reshaped(const void *self, const weft_tensor *tensor,
                                  const struct wf_local *base, const weft_shard *shard,
                                  int64_t *offset, int64_t *strides)
{
    (void)self;
    *offset = 0;
    if (find_strides(base, shard, strides)) return WEFT_OK;
    return wf_fail(WEFT_ERR_UNSUPPORTED,
                   "the shard of rank %d has gaps that the new shape cannot express; move it to "
                   "a tensor without gaps first (weft_tensor_move with the same spec), which "
                   "copies %llu bytes",
                   base->rank, (unsigned long long)wf_local_bytes(tensor, base));
}

static weft_status check_shape(const weft_tensor *tensor, int32_t dims, const int64_t *shape)
{
    int64_t elements = 1;

    if (dims < 0 || dims > WEFT_MAX_DIMS)
        return wf_fail(WEFT_ERR_INVALID, "dims is %d; expected 0 to %d", dims, WEFT_MAX_DIMS);
    for (int32_t d = 0; d < dims; d++) {
        if (shape[d] < 0)
            return wf_fail(WEFT_ERR_INVALID, "shape[%d] is %lld; a size must not be negative", d,
                           (long long)shape[d]);
        if (!wf_mul_i64(elements, shape[d], &elements))
            return wf_fail(WEFT_ERR_INVALID, "the new shape has more than 2^63 - 1 elements");
    }
    if (elements == tensor->spec->elements) return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID, "the new shape has %lld elements, but the tensor has %lld",
                   (long long)elements, (long long)tensor->spec->elements);
}

/* A tensor without elements has no groups: what splits no dimension stays, and what splits a
 * dimension that the new shape has too. */
static weft_status find_empty(struct reshape *r, weft_spec **out)
{
    uint32_t axes = 0; /* that split other dimensions */

    r->group = (struct group){.old_end = r->old->dims, .new_end = r->dims};
    for (int32_t a = 0; a < r->old->mesh->axes; a++) {
        weft_placement *p = &r->placements[a];

        *p = r->old->placements[a];
        if (!wf_placement_splits(p)) continue;
        p->dim = same_dim(r, p->dim);
        if (p->dim < 0) axes |= UINT32_C(1) << a;
    }
    if (axes == 0) return wf_view_spec(r->tensor->spec, r->dims, r->shape, r->placements, out);
    (void)wf_fail(WEFT_ERR_UNSUPPORTED, "a tensor without elements that is split has no new shape");
    return wf_view_refuse(r->tensor, axes);
}

static weft_status reshape(weft_tensor *tensor, int32_t dims, const int64_t *shape,
                           weft_tensor **out)
{
    struct reshape r = {
        .tensor = tensor, .old = &tensor->spec->layout, .dims = dims, .shape = shape};
    weft_spec *spec = NULL;
    weft_status status = check_shape(tensor, dims, shape);

    if (status == WEFT_OK)
        status = tensor->spec->elements > 0 ? find_reshaped(&r, &spec) : find_empty(&r, &spec);
    for (int32_t a = 0; a < WEFT_MAX_AXES; a++)
        wf_free(r.sizes[a]);
    if (status == WEFT_OK) status = wf_tensor_view(tensor, spec, place_reshaped, NULL, out);
    weft_spec_release(&spec);
    return status;
}

weft_status weft_tensor_reshape(weft_tensor *tensor, int32_t dims, const int64_t *shape,
                                weft_tensor **out)
{
    WF_TRY(wf_tensor_check(tensor, "weft_tensor_reshape", "tensor"));
    if (shape == NULL && dims != 0) return wf_fail_null("weft_tensor_reshape", "shape");
    if (out == NULL) return wf_fail_null("weft_tensor_reshape", "out");
    return wf_tensor_fail(tensor, reshape(tensor, dims, shape, out), "weft_tensor_reshape");
}
