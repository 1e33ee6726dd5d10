/* parts.c - one rank's share of a step: its peers in both directions, and the boxes to move. */
#include "plan/figures/figures.h"
#include "exec.h"

#include <string.h>

struct share {
    const weft_spec *from, *to;
    int32_t rank, living;
    const int64_t *strides; /* of this rank's shard */
    struct wf_peer_query query;
    struct wf_shard mine;
    uint32_t reduced; /* source axes whose contributions are reduced */
    struct wf_region_list regions;
    uint32_t rank_room;
    struct wf_parts *out;
};

/* ---- axes ---- */

static const weft_placement *placement_of(const weft_spec *spec, int32_t axis)
{
    return &spec->layout.placements[axis];
}

static bool one_mesh(const struct share *s)
{
    return s->from->layout.mesh == s->to->layout.mesh;
}

/* A partial that the target has on the same axis is kept. */
static bool kept_partial(const struct share *s, int32_t axis)
{
    return one_mesh(s) && placement_of(s->from, axis)->kind == WEFT_PLACE_PARTIAL &&
           placement_of(s->to, axis)->kind == WEFT_PLACE_PARTIAL;
}

/* The owner's coordinate on AXIS of SPEC's mesh, or -1. */
static int32_t owner_on(const weft_spec *spec, int32_t axis)
{
    const weft_placement *p = placement_of(spec, axis);

    return p->kind == WEFT_PLACE_OWNER ? p->owner : -1;
}

/* True if AXIS is a new partial of which only coordinate 0 receives the value.  All coordinates of
 * an average receive it. */
static bool one_holder(const struct share *s, int32_t axis)
{
    return placement_of(s->to, axis)->kind == WEFT_PLACE_PARTIAL && !kept_partial(s, axis) &&
           placement_of(s->to, axis)->reduction != WEFT_REDUCE_AVG;
}

static void set_reduction(struct share *s)
{
    struct wf_parts *out = s->out;
    const weft_mesh *mesh = s->from->layout.mesh;
    int64_t averaged = 1, holders = 1;

    out->reduction = WEFT_REDUCE_SUM;
    for (int32_t a = 0; a < mesh->axes; a++) {
        const weft_placement *p = placement_of(s->from, a);
        if (p->kind != WEFT_PLACE_PARTIAL || kept_partial(s, a)) continue;
        s->reduced |= UINT32_C(1) << a;
        holders *= mesh->axis[a].size;
        if (p->reduction == WEFT_REDUCE_AVG)
            averaged *= mesh->axis[a].size;
        else
            out->reduction = p->reduction;
    }
    out->holders = (uint32_t)holders;
    out->divisor = averaged;
    if (averaged > 1) out->reduction = WEFT_REDUCE_AVG;
}

/* ---- collecting ---- */

static weft_status add_rank(struct share *s, int32_t rank)
{
    struct wf_parts *out = s->out;

    if (out->rank_count == s->rank_room) {
        uint32_t room = s->rank_room == 0 ? 8 : 2 * s->rank_room;
        int32_t *ranks = wf_realloc(out->ranks, room * sizeof *ranks);
        if (ranks == NULL) return wf_fail_memory(room * sizeof *ranks);
        out->ranks = ranks;
        s->rank_room = room;
    }
    out->ranks[out->rank_count++] = rank;
    return WEFT_OK;
}

static weft_status read_from(void *self, const int32_t *coord)
{
    struct share *s = self;
    const struct wf_layout *from = &s->from->layout;
    uint32_t block = s->out->rank_count;
    int32_t holder[WEFT_MAX_AXES], living[WEFT_MAX_AXES];
    int64_t strides[WEFT_MAX_DIMS];
    struct wf_shard theirs;
    int32_t a;

    memcpy(holder, coord, sizeof holder);
    do {
        memcpy(living, holder, sizeof living);
        wf_copy_revive(from, s->living, living);
        WF_TRY(add_rank(s, wf_mesh_rank(from->mesh, living)));
        for (a = from->mesh->axes - 1; a >= 0; a--) {
            if (!(s->reduced >> a & 1)) continue;
            if (++holder[a] < from->mesh->axis[a].size) break;
            holder[a] = 0;
        }
    } while (a >= 0);
    wf_shard_at(from, coord, &theirs);
    wf_row_major(from->dims, theirs.shape, strides);
    return wf_regions_add(&s->regions, &theirs, strides, &s->mine, s->strides, block, 0);
}

static weft_status serve_to(void *self, const int32_t *coord)
{
    struct share *s = self;
    const struct wf_layout *to = &s->to->layout;
    int32_t reader = wf_mesh_rank(to->mesh, coord), reads[WEFT_MAX_AXES];
    int64_t strides[WEFT_MAX_DIMS];
    uint64_t before = s->regions.count;
    struct wf_shard theirs;

    if (!one_mesh(s)) {
        wf_copy_choose(s->from, s->to, reader, coord, reads);
        for (int32_t a = 0; a < s->from->layout.mesh->axes; a++)
            if (placement_of(s->from, a)->kind != WEFT_PLACE_REPLICATE)
                reads[a] = s->query.coord[a];
        wf_copy_revive(&s->from->layout, s->living, reads);
        for (int32_t a = 0; a < s->from->layout.mesh->axes; a++)
            if (reads[a] != s->query.coord[a]) return WEFT_OK;
    }
    wf_shard_at(to, coord, &theirs);
    wf_row_major(to->dims, theirs.shape, strides);
    WF_TRY(
        wf_regions_add(&s->regions, &s->mine, s->strides, &theirs, strides, 0, s->out->rank_count));
    return s->regions.count > before ? add_rank(s, reader) : WEFT_OK;
}

/* ---- the two directions ---- */

static weft_status collect_peers(struct share *s, uint32_t skip,
                                 weft_status (*take)(void *self, const int32_t *coord))
{
    weft_status status = wf_peers_each(&s->query, skip, take, s);

    s->out->regions = s->regions.regions;
    s->out->region_count = s->regions.count;
    if (status != WEFT_OK) wf_parts_free(s->out);
    return status;
}

weft_status wf_parts_read(const weft_spec *from, const weft_spec *to, int32_t living, int32_t rank,
                          const int64_t *strides, struct wf_parts *out)
{
    struct share s = {
        .from = from, .to = to, .rank = rank, .living = living, .strides = strides, .out = out};
    const weft_mesh *mesh = to->layout.mesh;
    int32_t coord[WEFT_MAX_AXES];
    int64_t row_major[WEFT_MAX_DIMS];

    memset(out, 0, sizeof *out);
    set_reduction(&s);
    if (!wf_mesh_coord(mesh, rank, coord)) return WEFT_OK;
    for (int32_t a = 0; a < mesh->axes; a++)
        if (one_holder(&s, a) && coord[a] != 0) out->identity = true;
    if (out->identity) return WEFT_OK;
    wf_shard_at(&to->layout, coord, &s.mine);
    wf_row_major(to->layout.dims, s.mine.shape, row_major);
    if (strides == NULL) s.strides = row_major;
    s.query.theirs = &from->layout;
    s.query.mine = &s.mine;
    wf_copy_choose(from, to, rank, coord, s.query.coord);
    for (int32_t a = 0; a < from->layout.mesh->axes; a++) {
        s.query.relation[a] = WF_PEER_SAME;
        s.query.one[a] = owner_on(from, a);
        if (s.query.one[a] >= 0) s.query.relation[a] = WF_PEER_ONE;
        if (wf_placement_splits(placement_of(from, a))) s.query.relation[a] = WF_PEER_BY_INDEX;
        if (s.reduced >> a & 1) s.query.relation[a] = WF_PEER_ANY;
    }
    return collect_peers(&s, s.reduced, read_from);
}

/* How a reader's coordinate on AXIS of the target's mesh follows from this rank's. */
static uint32_t reader_relation(const struct share *s, int32_t axis)
{
    const weft_placement *to = placement_of(s->to, axis);

    if (one_mesh(s) && !wf_placement_splits(placement_of(s->from, axis)) &&
        owner_on(s->from, axis) < 0 && !(s->reduced >> axis & 1))
        return WF_PEER_SAME;
    if (wf_placement_splits(to)) return WF_PEER_BY_INDEX;
    return one_holder(s, axis) || owner_on(s->to, axis) >= 0 ? WF_PEER_ONE : WF_PEER_ANY;
}

weft_status wf_parts_serve(const weft_spec *from, const weft_spec *to, int32_t living, int32_t rank,
                           const int64_t *strides, struct wf_parts *out)
{
    struct share s = {
        .from = from, .to = to, .rank = rank, .living = living, .strides = strides, .out = out};
    int64_t row_major[WEFT_MAX_DIMS];

    memset(out, 0, sizeof *out);
    set_reduction(&s);
    if (!wf_mesh_coord(from->layout.mesh, rank, s.query.coord)) return WEFT_OK;
    wf_shard_at(&from->layout, s.query.coord, &s.mine);
    wf_row_major(from->layout.dims, s.mine.shape, row_major);
    if (strides == NULL) s.strides = row_major;
    s.query.theirs = &to->layout;
    s.query.mine = &s.mine;
    for (int32_t a = 0; a < to->layout.mesh->axes; a++) {
        s.query.relation[a] = reader_relation(&s, a);
        s.query.one[a] = owner_on(to, a) >= 0 ? owner_on(to, a) : 0; /* 0 holds a new partial */
        if (one_mesh(&s) && one_holder(&s, a) && s.query.relation[a] == WF_PEER_SAME &&
            s.query.coord[a] != 0)
            return WEFT_OK; /* the replica at coordinate 0 serves */
    }
    return collect_peers(&s, 0, serve_to);
}

void wf_parts_free(struct wf_parts *parts)
{
    wf_free(parts->ranks);
    wf_free(parts->regions);
    parts->ranks = NULL;
    parts->regions = NULL;
    parts->rank_count = 0;
    parts->region_count = 0;
}
