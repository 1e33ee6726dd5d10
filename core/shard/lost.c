/* lost.c - what no rank holds any more after some ranks are lost.
 *
 * Splits give every element to one coordinate of the axes that split.  Only ranks that differ along
 * axes of replicas hold the same values: a value is lost if all of them are.  The ranks that differ
 * along axes of contributions hold parts of the same elements, which are lost with one of these
 * parts.  So lost elements are whole shards, and different ones have no element in common. */
#include "shard.h"

/* A lost rank that holds elements. */
struct holder {
    int64_t elements; /* position of the rank with the same elements and coordinate 0 along the axes
                         of replicas and of contributions */
    int64_t values;   /* the same along the axes of replicas only */
    int32_t rank;
};

static int64_t position_without(const weft_spec *spec, const int32_t *coord, bool contributions)
{
    const weft_mesh *mesh = spec->layout.mesh;
    int64_t position = 0;

    for (int32_t i = 0; i < mesh->axes; i++) {
        uint32_t kind = spec->layout.placements[i].kind;
        bool counts = kind != WEFT_PLACE_REPLICATE && (kind != WEFT_PLACE_PARTIAL || contributions);
        position = position * mesh->axis[i].size + (counts ? coord[i] : 0);
    }
    return position;
}

static bool comes_after(const struct holder *a, const struct holder *b)
{
    if (a->elements != b->elements) return a->elements > b->elements;
    if (a->values != b->values) return a->values > b->values;
    return a->rank > b->rank;
}

/* Move the holder at AT of the heap down to its place; the last in order is first. */
static void sink_holder(struct holder *heap, size_t count, size_t at)
{
    struct holder moved = heap[at];
    size_t child;

    while ((child = 2 * at + 1) < count) {
        if (child + 1 < count && comes_after(&heap[child + 1], &heap[child])) child++;
        if (!comes_after(&heap[child], &moved)) break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = moved;
}

/* Equal elements, values and ranks become neighbours. */
static void sort_holders(struct holder *holders, size_t count)
{
    for (size_t i = count / 2; i-- > 0;)
        sink_holder(holders, count, i);
    for (size_t left = count; left > 1;) {
        struct holder last = holders[0];
        holders[0] = holders[--left];
        holders[left] = last;
        sink_holder(holders, left, 0);
    }
}

/* List those of COUNT lost ranks that hold elements, in order. */
static size_t list_holders(const weft_spec *spec, size_t count, const int32_t *lost,
                           struct holder *out)
{
    size_t holders = 0;

    for (size_t i = 0; i < count; i++) {
        int32_t coord[WEFT_MAX_AXES];
        struct wf_shard shard;

        if (!wf_mesh_coord(spec->layout.mesh, lost[i], coord)) continue;
        wf_shard_at(&spec->layout, coord, &shard);
        if (shard.elements == 0) continue;
        out[holders++] = (struct holder){position_without(spec, coord, false),
                                         position_without(spec, coord, true), lost[i]};
    }
    sort_holders(out, holders);
    return holders;
}

static int32_t count_replicas(const weft_spec *spec)
{
    int32_t replicas = 1;

    for (int32_t i = 0; i < spec->layout.mesh->axes; i++)
        if (spec->layout.placements[i].kind == WEFT_PLACE_REPLICATE)
            replicas *= spec->layout.mesh->axis[i].size;
    return replicas;
}

/* True if SHARD's first element comes before element FIRST in row-major order. */
static bool comes_before(const struct wf_shard *shard, const int64_t *first)
{
    for (int32_t d = 0; d < shard->dims; d++)
        if (shard->offset[d] != first[d]) return shard->offset[d] < first[d];
    return false;
}

/* Add the shard of RANK, which is lost, to INFO. */
static void add_shard(const weft_spec *spec, int32_t rank, int32_t *ranks, weft_lost_info *info)
{
    struct wf_shard shard;

    wf_shard_of(spec, rank, &shard);
    if (info->shards == 0 || comes_before(&shard, info->first))
        for (int32_t d = 0; d < shard.dims; d++)
            info->first[d] = shard.offset[d];
    info->elements += shard.elements;
    if (ranks != NULL) ranks[info->shards] = rank;
    info->shards++;
}

/* Add each shard of which HOLDERS have all replicas of a value. */
static void add_shards(const weft_spec *spec, const struct holder *holders, size_t count,
                       int32_t *ranks, weft_lost_info *info)
{
    int32_t replicas = count_replicas(spec), held = 0;
    const struct holder *first = holders; /* with the same values */
    bool added = false;

    for (size_t i = 0; i < count; i++) {
        const struct holder *at = &holders[i], *before = i > 0 ? at - 1 : NULL;

        if (before != NULL && at->rank == before->rank && at->values == before->values) continue;
        if (before == NULL || at->elements != before->elements) added = false;
        if (before == NULL || at->values != before->values) {
            first = at;
            held = 0;
        }
        if (++held < replicas || added) continue;
        add_shard(spec, first->rank, ranks, info);
        added = true;
    }
}

weft_status weft_spec_lost(const weft_spec *spec, size_t count, const int32_t *lost, int32_t *ranks,
                           weft_lost_info *info)
{
    weft_lost_info found = {.struct_size = sizeof found};
    struct holder *holders = NULL;

    WF_TRY(wf_require_kind(spec, WF_KIND_SPEC, "weft_spec_lost: spec"));
    if (count > 0) WF_TRY(wf_require(lost, "weft_spec_lost: lost"));
    WF_TRY(wf_require(info, "weft_spec_lost: info"));
    WF_TRY(wf_info_check("weft_lost_info", info));
    for (size_t i = 0; i < count; i++)
        if (lost[i] < 0)
            return wf_fail(WEFT_ERR_INVALID,
                           "weft_spec_lost: lost[%zu] is %d; a rank must not be negative", i,
                           lost[i]);
    if (count > 0) {
        holders = wf_alloc(count * sizeof *holders);
        if (holders == NULL) return wf_fail_memory(count * sizeof *holders);
        add_shards(spec, holders, list_holders(spec, count, lost, holders), ranks, &found);
        wf_free(holders);
    }
    found.bytes = (uint64_t)found.elements * weft_dtype_bytes(weft_spec_dtype(spec));
    for (size_t i = found.shards; ranks != NULL && i < count; i++)
        ranks[i] = -1;
    return wf_info_write("weft_lost_info", &found, sizeof found, info);
}
