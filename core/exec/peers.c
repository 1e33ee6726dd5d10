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
    int32_t coord[WEFT_MAX_AXES]; /* mesh coordinate so far */
};

static weft_status keep_coordinate(struct finder *f)
{
    struct wf_shard shard;
    struct wf_index theirs;
    struct found *out = f->out;

    wf_shard_at(f->query->theirs, f->coord, &shard);
    theirs = wf_shard_index(&shard, f->dim);
    if (f->levels > 0 && wf_index_common(&f->mine, &theirs) == 0) return WEFT_OK;
    if (out->count == out->room) {
        size_t room = out->room == 0 ? 4 : 2 * out->room;
        void *list = wf_realloc(out->list, room * sizeof *out->list);
        if (list == NULL) return wf_fail_memory(room * sizeof *out->list);
        out->list = list;
        out->room = room;
    }
    for (int32_t i = 0; i < f->levels; i++)
        out->list[out->count][i] = f->coord[f->splits[i].axis];
    out->count++;
    return WEFT_OK;
}

/* Level LEVEL splits the indices START .. START + LENGTH.  LENGTH is -1 if an outer level is
 * strided: the indices are then an unknown part of them. */
static weft_status find_level(struct finder *f, int32_t level, int64_t start, int64_t length)
{
    const struct wf_split *split;
    int64_t ranks, chunk, from, to;

    if (level == f->levels) return keep_coordinate(f);
    split = &f->splits[level];
    ranks = f->query->theirs->mesh->axis[split->axis].size;
    if (split->factor != 1) length = -1;
    chunk = length < 0 ? 0 : wf_max_i64(1, (length + ranks - 1) / ranks);
    from = length < 0 ? 0 : wf_max_i64(0, (f->first - start) / chunk);
    to = length < 0 ? ranks - 1 : wf_min_i64(ranks - 1, (f->last - start) / chunk);
    if (f->query->relation[split->axis] == WF_PEER_SAME) {
        from = wf_max_i64(from, f->query->coord[split->axis]);
        to = wf_min_i64(to, f->query->coord[split->axis]);
    }
    for (int64_t i = from; i <= to; i++) {
        f->coord[split->axis] = (int32_t)i;
        if (length < 0)
            WF_TRY(find_level(f, level + 1, 0, -1));
        else
            WF_TRY(find_level(f, level + 1, start + i * chunk,
                              wf_max_i64(0, wf_min_i64(chunk, length - i * chunk))));
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
