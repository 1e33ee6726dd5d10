/* peers.c - a rank's peers in a step, found without visiting every rank.
 *
 * Dimensions are independent.  For each dimension, the coordinates of the axes that split it are
 * searched level by level for shards that intersect this rank's indices; plain chunks are skipped
 * by arithmetic.  The peers are all combinations of the coordinates found per dimension. */
#include "exec.h"

#include <string.h>

/* Coordinates, on the axes that split one dimension, whose shards intersect this rank's. */
struct found {
    int32_t (*list)[WEFT_MAX_AXES]; /* by level of the split */
    size_t count, room;
};

struct finder {
    const struct wf_peer_query *query;
    int32_t dim, levels;
    const struct wf_split *splits; /* of the dimension, outermost first */
    int64_t first, last;           /* least and greatest index of this rank */
    struct wf_index mine;
    struct found *out;
    int32_t coord[WEFT_MAX_AXES]; /* mesh coordinate so far; the owner's on axes that have one */
};

static weft_status keep_coordinate(struct finder *f)
{
    struct wf_shard shard;
    struct wf_index theirs;
    struct found *out = f->out;

    wf_shard_at(f->query->theirs, f->coord, &shard);
    theirs = wf_shard_index(&shard, f->dim);
    if (f->levels > 0 && wf_index_common(&f->mine, &theirs) == 0) return WEFT_OK;
    WF_TRY(wf_grow(&out->list, sizeof *out->list, out->count, &out->room));
    for (int32_t i = 0; i < f->levels; i++)
        out->list[out->count][i] = f->coord[f->splits[i].axis];
    out->count++;
    return WEFT_OK;
}

/* Coordinates of a split, and the indices that it leaves to one of them. */
struct span {
    int64_t from, to;
};

/* The coordinates of groups that may intersect the indices from FIRST to LAST of what is split. */
static struct span span_groups(const struct wf_split *split, int64_t first, int64_t last)
{
    struct span span = {0, split->size_count - 1};

    if (split->starts == NULL) return span;
    while (span.from < span.to) { /* the first group that ends behind FIRST */
        int64_t middle = (span.from + span.to) / 2;
        if (split->starts[middle] + split->sizes[middle] > first)
            span.to = middle;
        else
            span.from = middle + 1;
    }
    span.to = span.from;
    while (span.to + 1 < split->size_count && split->starts[span.to + 1] <= last)
        span.to++;
    return span;
}

/* The coordinates of chunks that may intersect the indices from FIRST to LAST. */
static struct span span_chunks(int64_t length, int64_t ranks, int64_t first, int64_t last)
{
    int64_t chunk = wf_max_i64(1, (length + ranks - 1) / ranks);

    return (struct span){wf_max_i64(0, first / chunk), wf_min_i64(ranks - 1, last / chunk)};
}

/* Coordinate I of SPLIT, which splits LENGTH indices from *START on: set *START to its first index.
 * Returns the number of its indices. */
static int64_t enter_coordinate(const struct wf_split *split, int64_t length, int64_t ranks,
                                int64_t i, int64_t *start)
{
    int64_t chunk = wf_max_i64(1, (length + ranks - 1) / ranks);

    if (split->kind != WEFT_PLACE_SIZES) {
        *start += i * chunk;
        return wf_max_i64(0, wf_min_i64(chunk, length - i * chunk));
    }
    if (split->starts != NULL)
        *start += split->starts[i];
    else
        for (int64_t k = 0; k < i; k++)
            *start += split->sizes[k];
    return split->sizes[i];
}

/* Level LEVEL splits the indices START .. START + LENGTH.  LENGTH is -1 if an outer level has
 * several runs: the indices are then an unknown part of them. */
static weft_status find_level(struct finder *f, int32_t level, int64_t start, int64_t length)
{
    const struct wf_split *split;
    struct span span;
    int64_t ranks;

    if (level == f->levels) return keep_coordinate(f);
    split = &f->splits[level];
    ranks = f->query->theirs->mesh->axis[split->axis].size;
    if (split->kind == WEFT_PLACE_STRIDED || split->kind == WEFT_PLACE_PARTS) length = -1;
    span = (struct span){0, ranks - 1};
    if (length >= 0 && split->kind == WEFT_PLACE_SIZES)
        span = span_groups(split, f->first - start, f->last - start);
    else if (length >= 0)
        span = span_chunks(length, ranks, f->first - start, f->last - start);
    if (f->query->relation[split->axis] == WF_PEER_SAME) {
        span.from = wf_max_i64(span.from, f->query->coord[split->axis]);
        span.to = wf_min_i64(span.to, f->query->coord[split->axis]);
    }
    for (int64_t i = span.from; i <= span.to; i++) {
        int64_t first = start, inside = -1;
        f->coord[split->axis] = (int32_t)i;
        if (length >= 0) inside = enter_coordinate(split, length, ranks, i, &first);
        WF_TRY(find_level(f, level + 1, length < 0 ? 0 : first, inside));
    }
    f->coord[split->axis] = 0;
    return WEFT_OK;
}

static weft_status find_dim(const struct wf_peer_query *query, int32_t dim, struct found *out)
{
    struct finder f = {.query = query, .dim = dim, .out = out};
    const struct wf_layout *theirs = query->theirs;

    for (int32_t i = 0; i < theirs->split_count; i++)
        if (theirs->splits[i].dim == dim && f.levels++ == 0) f.splits = &theirs->splits[i];
    for (int32_t a = 0; a < theirs->mesh->axes; a++)
        if (theirs->placements[a].kind == WEFT_PLACE_OWNER)
            f.coord[a] = theirs->placements[a].owner;
    f.mine = wf_shard_index(query->mine, dim);
    if (f.mine.length == 0) return WEFT_OK;
    f.first = wf_index_at(&f.mine, 0);
    f.last = wf_index_at(&f.mine, f.mine.length - 1);
    return find_level(&f, 0, 0, theirs->shape[dim]);
}

struct odometer {
    const struct wf_peer_query *query;
    struct found found[WEFT_MAX_DIMS];
    size_t at[WEFT_MAX_DIMS];
    int32_t coord[WEFT_MAX_AXES];
    uint32_t free_axes; /* axes that take all their coordinates */
};

static void set_split_axes(struct odometer *o)
{
    const struct wf_layout *theirs = o->query->theirs;
    int32_t level = 0;

    for (int32_t i = 0; i < theirs->split_count; i++) {
        int32_t dim = theirs->splits[i].dim;
        level = i > 0 && theirs->splits[i - 1].dim == dim ? level + 1 : 0;
        o->coord[theirs->splits[i].axis] = o->found[dim].list[o->at[dim]][level];
    }
}

/* The next combination; false after the last. */
static bool advance_odometer(struct odometer *o)
{
    const struct wf_layout *theirs = o->query->theirs;

    for (int32_t a = theirs->mesh->axes - 1; a >= 0; a--) {
        if (!(o->free_axes >> a & 1)) continue;
        if (++o->coord[a] < theirs->mesh->axis[a].size) return true;
        o->coord[a] = 0;
    }
    for (int32_t d = theirs->dims - 1; d >= 0; d--) {
        if (++o->at[d] < o->found[d].count) {
            set_split_axes(o);
            return true;
        }
        o->at[d] = 0;
    }
    return false;
}

static void begin_odometer(struct odometer *o, uint32_t skip)
{
    const struct wf_layout *theirs = o->query->theirs;

    for (int32_t a = 0; a < theirs->mesh->axes; a++) {
        if (o->query->relation[a] == WF_PEER_SAME) o->coord[a] = o->query->coord[a];
        if (o->query->relation[a] == WF_PEER_ONE) o->coord[a] = o->query->one[a];
        if (o->query->relation[a] == WF_PEER_ANY && !(skip >> a & 1))
            o->free_axes |= UINT32_C(1) << a;
    }
    set_split_axes(o);
}

weft_status wf_peers_each(const struct wf_peer_query *query, uint32_t skip,
                          weft_status (*take)(void *self, const int32_t *coord), void *self)
{
    struct odometer o = {.query = query};
    weft_status status = WEFT_OK;
    bool none = query->mine->elements == 0;

    for (int32_t d = 0; d < query->theirs->dims && !none && status == WEFT_OK; d++) {
        status = find_dim(query, d, &o.found[d]);
        none = o.found[d].count == 0;
    }
    if (status == WEFT_OK && !none) {
        begin_odometer(&o, skip);
        do
            status = take(self, o.coord);
        while (status == WEFT_OK && advance_odometer(&o));
    }
    for (int32_t d = 0; d < query->theirs->dims; d++)
        wf_free(o.found[d].list);
    return status;
}
