/* global.c - the global shape, or a whole spec, from the local shapes, on which the ranks must
 * agree. */
#include "shard.h"

#include <string.h>

struct locals {
    struct wf_layout *layout;
    const int64_t *sizes;        /* [position * dims + dim] */
    const weft_placement *given; /* as the caller wrote them */
    const char *function;        /* that was called */
    const char *help;            /* if sizes are not chunks */
    const char *list_help;       /* if sizes are not those of a G; before "S(d)" */
    bool lists;                  /* an S whose sizes are not chunks becomes a G */
};

static bool splits_dim(const weft_placement *p, int32_t dim)
{
    return wf_placement_splits(p) && p->dim == dim;
}

/* The coordinate on AXIS of the ranks that are summed, for axes that do not split: the owner's, or
 * 0. */
static int32_t base_coord(const struct locals *locals, int32_t axis)
{
    const weft_placement *p = &locals->layout->placements[axis];

    return p->kind == WEFT_PLACE_OWNER ? p->owner : 0;
}

static int32_t position_of(const weft_mesh *mesh, const int32_t *coord)
{
    int32_t position = 0;

    for (int32_t i = 0; i < mesh->axes; i++)
        position = position * mesh->axis[i].size + coord[i];
    return position;
}

/* Sum of the local sizes over AXES, from COORD on, where they are 0. */
static weft_status sum_sizes(const struct locals *locals, int32_t dim, uint32_t axes,
                             int32_t *coord, int64_t *out)
{
    const weft_mesh *mesh = locals->layout->mesh;
    int32_t dims = locals->layout->dims, axis;
    int64_t sum = 0;

    do {
        int32_t position = position_of(mesh, coord);
        if (!wf_add_i64(sum, locals->sizes[(int64_t)position * dims + dim], &sum))
            return wf_fail(WEFT_ERR_INVALID, "dimension %d: the local sizes add up beyond 2^63 - 1",
                           dim);
        for (axis = mesh->axes - 1; axis >= 0; axis--) {
            if (!(axes >> axis & 1)) continue;
            if (++coord[axis] < mesh->axis[axis].size) break;
            coord[axis] = 0;
        }
    } while (axis >= 0);
    *out = sum;
    return WEFT_OK;
}

static weft_status sum_dim(const struct locals *locals, int32_t dim)
{
    int32_t coord[WEFT_MAX_AXES];
    uint32_t axes = 0;

    for (int32_t a = 0; a < locals->layout->mesh->axes; a++) {
        coord[a] = base_coord(locals, a);
        if (splits_dim(&locals->layout->placements[a], dim)) axes |= UINT32_C(1) << a;
    }
    return sum_sizes(locals, dim, axes, coord, &locals->layout->shape[dim]);
}

static int64_t size_at(const struct locals *locals, int32_t position, int32_t dim)
{
    return locals->sizes[(int64_t)position * locals->layout->dims + dim];
}

static int64_t share_at(const struct locals *locals, int32_t position, int32_t dim)
{
    int32_t coord[WEFT_MAX_AXES];
    struct wf_shard shard;

    wf_mesh_coord_at(locals->layout->mesh, position, coord);
    wf_shard_at(locals->layout, coord, &shard);
    return shard.shape[dim];
}

/* The position that holds the same part of DIM as POSITION, on the line that was summed. */
static int32_t replica_of(const struct locals *locals, int32_t position, int32_t dim)
{
    const struct wf_layout *layout = locals->layout;
    int32_t coord[WEFT_MAX_AXES];

    wf_mesh_coord_at(layout->mesh, position, coord);
    for (int32_t i = 0; i < layout->mesh->axes; i++)
        if (!splits_dim(&layout->placements[i], dim)) coord[i] = base_coord(locals, i);
    return position_of(layout->mesh, coord);
}

/* True if an axis has an owner, and it is not the rank at POSITION. */
static bool owns_nothing(const struct locals *locals, int32_t position)
{
    const struct wf_layout *layout = locals->layout;
    int32_t coord[WEFT_MAX_AXES];

    wf_mesh_coord_at(layout->mesh, position, coord);
    for (int32_t i = 0; i < layout->mesh->axes; i++)
        if (layout->placements[i].kind == WEFT_PLACE_OWNER &&
            layout->placements[i].owner != coord[i])
            return true;
    return false;
}

/* ---- messages ---- */

/* The rank at POSITION does not hold what a G of the caller gives it in dimension DIM. */
static weft_status refuse_given(const struct locals *locals, int32_t position, int32_t dim)
{
    const weft_mesh *mesh = locals->layout->mesh;
    struct wf_text text = {0};

    wf_placements_add_short_text(locals->given, mesh->axes, &text);
    return wf_fail_text(WEFT_ERR_MISMATCH, &text,
                        "%s: rank %d is to hold %lld %s of dimension %d by %s, but its shard "
                        "has %lld; %s S(%d)",
                        locals->function, weft_mesh_rank_at(mesh, position),
                        (long long)share_at(locals, position, dim),
                        wf_index_word(share_at(locals, position, dim)), dim, text.data,
                        (long long)size_at(locals, position, dim), locals->list_help, dim);
}

static bool has_given_list(const struct locals *locals, int32_t dim)
{
    for (int32_t a = 0; a < locals->layout->mesh->axes; a++)
        if (locals->given[a].kind == WEFT_PLACE_SIZES && locals->given[a].dim == dim) return true;
    return false;
}

/* The coordinates of the groups that split INDEX has inside of the first rank of the line that was
 * summed (MINE false), and of the rank at POSITION of that line. */
static void start_group(const struct locals *locals, int32_t index, int32_t position, bool mine,
                        int32_t *coord)
{
    const struct wf_layout *layout = locals->layout;
    int32_t dim = layout->splits[index].dim, at[WEFT_MAX_AXES];

    wf_mesh_coord_at(layout->mesh, position, at);
    for (int32_t a = 0; a < layout->mesh->axes; a++)
        coord[a] = base_coord(locals, a);
    for (int32_t i = 0; mine && i < index; i++)
        if (layout->splits[i].dim == dim)
            coord[layout->splits[i].axis] = at[layout->splits[i].axis];
}

/* Coordinate AT of SPLIT's axis holds SIZES in the groups of two RANKS. */
static weft_status refuse_groups(const struct locals *locals, const struct wf_split *split,
                                 int32_t at, const int64_t *sizes, const int32_t *ranks)
{
    const char *name = locals->layout->mesh->axis[split->axis].name;
    struct wf_text axis = {0};

    if (name[0] != '\0')
        wf_text_add(&axis, "%s", name);
    else
        wf_text_add(&axis, "%d", split->axis);
    return wf_fail_text(WEFT_ERR_MISMATCH, &axis,
                        "%s: dimension %d: the groups of axis %s differ: coordinate %d holds %lld "
                        "%s in the group of rank %d, but %lld in the group of rank %d; sizes "
                        "that are not chunks must be the same in all groups of an axis",
                        locals->function, split->dim, axis.data, at, (long long)sizes[0],
                        wf_index_word(sizes[0]), ranks[0], (long long)sizes[1], ranks[1]);
}

/* WEFT_ERR_MISMATCH if the groups of split INDEX have equally many indices, but other sizes, inside
 * of the rank at POSITION than inside of the first one. */
static weft_status compare_groups(const struct locals *locals, int32_t index, int32_t position)
{
    const struct wf_layout *layout = locals->layout;
    const struct wf_split *split = &layout->splits[index];
    int32_t coord[2][WEFT_MAX_AXES], differs = -1, ranks[2] = {0, 0};
    int64_t sums[2] = {0, 0}, sizes[2] = {0, 0}, size[2];
    uint32_t inside = 0;

    for (int32_t i = index + 1; i < layout->split_count; i++)
        if (layout->splits[i].dim == split->dim) inside |= UINT32_C(1) << layout->splits[i].axis;
    start_group(locals, index, position, false, coord[0]);
    start_group(locals, index, position, true, coord[1]);
    for (int32_t c = 0; c < layout->mesh->axis[split->axis].size; c++) {
        for (int g = 0; g < 2; g++) {
            coord[g][split->axis] = c;
            WF_TRY(sum_sizes(locals, split->dim, inside, coord[g], &size[g]));
            sums[g] += size[g];
        }
        if (differs >= 0 || size[0] == size[1]) continue;
        differs = c;
        memcpy(sizes, size, sizeof sizes);
        for (int g = 0; g < 2; g++)
            ranks[g] = wf_mesh_rank(layout->mesh, coord[g]);
    }
    if (differs < 0 || sums[0] != sums[1]) return WEFT_OK;
    return refuse_groups(locals, split, differs, sizes, ranks);
}

/* WEFT_OK: the groups of all splits of DIM may differ as they do. */
static weft_status compare_all_groups(const struct locals *locals, int32_t position, int32_t dim)
{
    const struct wf_layout *layout = locals->layout;

    for (int32_t i = 0; locals->lists && i < layout->split_count; i++)
        if (layout->splits[i].dim == dim) WF_TRY(compare_groups(locals, i, position));
    return WEFT_OK;
}

/* The first rank that does not hold its share is at POSITION, in dimension DIM.  If its replica
 * holds its share, the two disagree.  Otherwise the rank itself is on the line that was summed;
 * since the sum is right, a later rank of the line deviates in the other direction. */
static weft_status refuse_sizes(const struct locals *locals, int32_t position, int32_t dim)
{
    const weft_mesh *mesh = locals->layout->mesh;
    int32_t replica = replica_of(locals, position, dim), other = position + 1;
    bool too_little = size_at(locals, position, dim) < share_at(locals, position, dim);

    if (dim == 0 && owns_nothing(locals, position))
        return wf_fail(WEFT_ERR_MISMATCH,
                       "%s: rank %d is not the owner, so its shard must have size 0 in dimension "
                       "0, but has %lld",
                       locals->function, weft_mesh_rank_at(mesh, position),
                       (long long)size_at(locals, position, dim));
    if (replica != position)
        return wf_fail(WEFT_ERR_MISMATCH,
                       "%s: ranks %d and %d hold the same part of dimension %d, but their shards "
                       "have sizes %lld and %lld there",
                       locals->function, weft_mesh_rank_at(mesh, replica),
                       weft_mesh_rank_at(mesh, position), dim,
                       (long long)size_at(locals, replica, dim),
                       (long long)size_at(locals, position, dim));
    if (has_given_list(locals, dim)) return refuse_given(locals, position, dim);
    WF_TRY(compare_all_groups(locals, position, dim));
    while (replica_of(locals, other, dim) != other ||
           size_at(locals, other, dim) == share_at(locals, other, dim) ||
           (size_at(locals, other, dim) < share_at(locals, other, dim)) == too_little)
        other++;
    return wf_fail(WEFT_ERR_MISMATCH,
                   "%s: dimension %d has %lld %s in all, so the shard of rank %d must have "
                   "%lld, but has %lld, and the shard of rank %d must have %lld, but has %lld; %s",
                   locals->function, dim, (long long)locals->layout->shape[dim],
                   wf_index_word(locals->layout->shape[dim]), weft_mesh_rank_at(mesh, position),
                   (long long)share_at(locals, position, dim),
                   (long long)size_at(locals, position, dim), weft_mesh_rank_at(mesh, other),
                   (long long)share_at(locals, other, dim), (long long)size_at(locals, other, dim),
                   locals->help);
}

/* Check the arguments that both functions have, and set the layout's placements and shape. */
static weft_status read_locals(struct locals *locals)
{
    const weft_placement *placements = locals->given;
    struct wf_layout *layout = locals->layout;
    const weft_mesh *mesh = layout->mesh;
    int32_t dims = layout->dims;

    if (dims < 0 || dims > WEFT_MAX_DIMS)
        return wf_fail(WEFT_ERR_INVALID, "%s: the tensor has %d dimensions; the maximum is %d",
                       locals->function, dims, WEFT_MAX_DIMS);
    for (int64_t i = 0; i < (int64_t)mesh->size * dims; i++)
        if (locals->sizes[i] < 0)
            return wf_fail(WEFT_ERR_INVALID,
                           "%s: the shard of rank %d has size %lld in dimension %d; a size must "
                           "not be negative",
                           locals->function, weft_mesh_rank_at(mesh, (int32_t)(i / dims)),
                           (long long)locals->sizes[i], (int32_t)(i % dims));
    WF_TRY(wf_placements_check_fields(placements, mesh->axes, locals->function));
    wf_layout_set_mesh(layout, mesh);
    memcpy(layout->placements, placements, (size_t)mesh->axes * sizeof *placements);
    WF_TRY(wf_layout_check(layout));
    for (int32_t d = 0; d < dims; d++)
        WF_TRY(sum_dim(locals, d));
    WF_TRY(wf_shape_check(dims, layout->shape, layout->dtype));
    return wf_layout_settle(layout);
}

/* WEFT_OK if every rank's shard has its local shape.  The layout is that of a spec, in which the
 * sums of listed sizes are known. */
static weft_status check_shares(const struct locals *locals)
{
    const struct wf_layout *layout = locals->layout;

    for (int32_t position = 0; position < layout->mesh->size; position++) {
        int32_t coord[WEFT_MAX_AXES];
        struct wf_shard want;
        wf_mesh_coord_at(layout->mesh, position, coord);
        wf_shard_at(layout, coord, &want);
        for (int32_t d = 0; d < layout->dims; d++)
            if (size_at(locals, position, d) != want.shape[d])
                return refuse_sizes(locals, position, d);
    }
    return WEFT_OK;
}

/* Create the spec of the layout, unless the local shapes contradict it. */
static weft_status make_spec(const struct locals *locals, weft_spec **out)
{
    struct locals checked = *locals;
    weft_spec *spec = NULL;
    weft_status status;

    WF_TRY(wf_spec_intern(locals->layout, &spec));
    checked.layout = &spec->layout;
    status = check_shares(&checked);
    if (status == WEFT_OK)
        *out = spec;
    else
        weft_spec_release(&spec);
    return status;
}

weft_status weft_shape_from_shards(const weft_mesh *mesh, int32_t dims,
                                   const weft_placement *placements, const int64_t *shards,
                                   int64_t *shape)
{
    struct wf_layout layout = {.mesh = mesh, .dtype = WEFT_DTYPE_U8, .dims = dims};
    struct locals locals = {.layout = &layout,
                            .sizes = shards,
                            .given = placements,
                            .function = "weft_shape_from_shards",
                            .help = "weft_spec_from_shards accepts sizes that are not chunks",
                            .list_help = "weft_spec_from_shards takes the sizes from the shards "
                                         "for"};
    weft_spec *spec = NULL;
    weft_status status;

    WF_TRY(wf_require_kind(mesh, WF_KIND_MESH, "weft_shape_from_shards: mesh"));
    WF_TRY(wf_require(placements, "weft_shape_from_shards: placements"));
    if (dims != 0) {
        WF_TRY(wf_require(shards, "weft_shape_from_shards: shards"));
        WF_TRY(wf_require(shape, "weft_shape_from_shards: shape"));
    }
    status = read_locals(&locals);
    if (status != WEFT_OK) return wf_fail_named(status, locals.function);
    WF_TRY(make_spec(&locals, &spec));
    weft_spec_release(&spec);
    if (dims > 0) memcpy(shape, layout.shape, (size_t)dims * sizeof *shape);
    return WEFT_OK;
}

/* ---- specs from shards ---- */

/* Write the sizes that split INDEX, an S, leaves to each coordinate of its axis.  Splits outside of
 * it are at coordinate 0: if their rests differ, no sizes can be listed inside. */
static weft_status sizes_of_split(const struct locals *locals, int32_t index, int64_t *sizes)
{
    const struct wf_layout *layout = locals->layout;
    const struct wf_split *split = &layout->splits[index];
    int32_t coord[WEFT_MAX_AXES];
    uint32_t inside = 0;

    for (int32_t a = 0; a < layout->mesh->axes; a++)
        coord[a] = base_coord(locals, a);
    for (int32_t i = index + 1; i < layout->split_count; i++)
        if (layout->splits[i].dim == split->dim) inside |= UINT32_C(1) << layout->splits[i].axis;
    for (int32_t i = 0; i < layout->mesh->axis[split->axis].size; i++) {
        coord[split->axis] = i;
        WF_TRY(sum_sizes(locals, split->dim, inside, coord, &sizes[i]));
    }
    return WEFT_OK;
}

/* True if SIZES of split INDEX are not the chunks of their sum. */
static bool is_listed(const struct locals *locals, int32_t index, const int64_t *sizes)
{
    const struct wf_layout *layout = locals->layout;
    int32_t ranks = layout->mesh->axis[layout->splits[index].axis].size;
    int64_t sum = 0;

    for (int32_t i = 0; i < ranks; i++)
        sum += sizes[i];
    for (int32_t i = 0; i < ranks; i++)
        if (wf_split_share(&layout->splits[index], sum, ranks, i) != sizes[i]) return true;
    return false;
}

/* True if the caller wrote an S, or SS(d,1), on AXIS.  A G stays, also if its sizes are chunks. */
static bool is_given_shard(const struct locals *locals, int32_t axis)
{
    const weft_placement *p = &locals->given[axis];

    return p->kind == WEFT_PLACE_SHARD || (p->kind == WEFT_PLACE_STRIDED && p->factor == 1);
}

/* Settle the layout, some of whose splits have become G. */
static weft_status settle_lists(const struct locals *locals)
{
    weft_status status = wf_layout_settle(locals->layout);
    struct wf_text text = {0};

    if (status != WEFT_ERR_INVALID) return status;
    wf_placements_add_short_text(locals->layout->placements, locals->layout->mesh->axes, &text);
    if (!text.failed)
        status = wf_fail_context(status,
                                 "%s: the local sizes are not chunks, so the shards need the "
                                 "placements %s",
                                 locals->function, text.data);
    wf_text_free(&text);
    return status;
}

/* Make a G of every S whose sizes are not chunks. */
static weft_status list_sizes(struct locals *locals, int64_t **lists)
{
    struct wf_layout *layout = locals->layout;

    for (int32_t i = 0; i < layout->split_count; i++) {
        const struct wf_split *split = &layout->splits[i];
        int32_t ranks = layout->mesh->axis[split->axis].size;
        if (!is_given_shard(locals, split->axis) || ranks > WEFT_MAX_SIZES) continue;
        lists[i] = wf_alloc((size_t)ranks * sizeof *lists[i]);
        if (lists[i] == NULL) return wf_fail_memory((size_t)ranks * sizeof *lists[i]);
        WF_TRY(sizes_of_split(locals, i, lists[i]));
    }
    for (int32_t i = 0; i < layout->split_count; i++) {
        weft_placement *p = &layout->placements[layout->splits[i].axis];
        if (lists[i] == NULL || !is_listed(locals, i, lists[i])) continue;
        p->kind = WEFT_PLACE_SIZES;
        p->sizes = lists[i];
        p->size_count = (size_t)layout->mesh->axis[layout->splits[i].axis].size;
    }
    return settle_lists(locals);
}

/* The sizes of a G come from its list; without one, S takes them from the shards. */
static weft_status check_lists(const weft_mesh *mesh, const weft_placement *placements)
{
    for (int32_t a = 0; a < mesh->axes; a++)
        if (placements[a].kind == WEFT_PLACE_SIZES && placements[a].sizes == NULL)
            return wf_fail(WEFT_ERR_INVALID,
                           "weft_spec_from_shards: placement %d, G: weft_placement.sizes is NULL; "
                           "pass S(%d), and the sizes come from the shards",
                           a, placements[a].dim);
    return WEFT_OK;
}

weft_status wf_spec_from_shards(const char *function, const weft_mesh *mesh, enum weft_dtype dtype,
                                int32_t dims, const weft_placement *placements,
                                const int64_t *shards, weft_spec **out)
{
    struct wf_layout layout = {.mesh = mesh, .dtype = dtype, .dims = dims};
    struct locals locals = {.layout = &layout,
                            .sizes = shards,
                            .given = placements,
                            .function = function,
                            .help = "only S(d) on an axis of at most 65536 ranks accepts sizes "
                                    "that are not chunks",
                            .list_help = "to take the sizes from the shards, pass",
                            .lists = true};
    int64_t *lists[WEFT_MAX_AXES] = {0};
    weft_status status;

    if (dims != 0 && shards == NULL) return wf_fail_null(function, "shards");
    if (out == NULL) return wf_fail_null(function, "out");
    WF_TRY(check_lists(mesh, placements));
    status = read_locals(&locals);
    if (status == WEFT_OK) status = list_sizes(&locals, lists);
    if (status == WEFT_OK) status = make_spec(&locals, out);
    if (status != WEFT_OK) status = wf_fail_named(status, locals.function);
    for (int i = 0; i < WEFT_MAX_AXES; i++)
        wf_free(lists[i]);
    return status;
}

weft_status weft_spec_from_shards(const weft_mesh *mesh, enum weft_dtype dtype, int32_t dims,
                                  const weft_placement *placements, const int64_t *shards,
                                  weft_spec **out)
{
    WF_TRY(wf_require_kind(mesh, WF_KIND_MESH, "weft_spec_from_shards: mesh"));
    WF_TRY(wf_require(placements, "weft_spec_from_shards: placements"));
    return wf_spec_from_shards("weft_spec_from_shards", mesh, dtype, dims, placements, shards, out);
}
