/* averages.h - the definition of an average of integers: for every element, the exact sum of the
 * contributions of all holders, divided by the product of the sizes of the averaging axes,
 * truncated toward zero, and wrapped to the dtype. */
#ifndef WEFT_TESTS_AVERAGES_H
#define WEFT_TESTS_AVERAGES_H

#include "base/number.h"
#include "system/redistribute/pairs.h"

enum { AVERAGE_RANKS = 24, AVERAGE_ELEMENTS = 64 };

/* Numbers at the ends of the dtype's range, near them, and anywhere. */
static inline uint64_t average_input(uint64_t seed, uint32_t dtype, int64_t index, int32_t holder)
{
    uint64_t bits = wf_hash_mix(wf_hash_mix(seed, (uint64_t)index), (uint64_t)holder);
    uint64_t top = UINT64_C(1) << (8 * wf_dtype_bytes(dtype) - 1);
    uint64_t most = wf_dtype_is_signed(dtype) ? top - 1 : 2 * top - 1;

    bits ^= bits >> 29;
    switch (bits % 8) {
    case 0:
    case 1:
        return most;
    case 2:
    case 3:
        return ~most;
    case 4:
        return most - (bits >> 8) % 5;
    case 5:
        return ~most + (bits >> 8) % 5;
    default:
        return bits >> 8;
    }
}

/* A number that identifies RANK's coordinates on the axes of KIND. */
static inline int32_t average_place(const weft_spec *spec, int32_t rank, uint32_t kind)
{
    const weft_mesh *mesh = weft_spec_mesh(spec);
    int32_t coord[WEFT_MAX_AXES], place = 0;

    ck_assert(weft_mesh_coord_of(mesh, rank, coord) == WEFT_OK);
    for (int32_t a = 0; a < weft_mesh_axes(mesh); a++)
        if (weft_spec_placements(spec)[a].kind == kind)
            place = place * weft_mesh_axis_size(mesh, a) + coord[a];
    return place;
}

/* RANK's shard of SPEC, row-major. */
static inline void average_fill(uint64_t seed, const weft_spec *spec, int32_t rank, void *shard)
{
    uint32_t dtype = weft_spec_dtype(spec);
    int32_t holder = average_place(spec, rank, WEFT_PLACE_PARTIAL);
    weft_segment segment;

    for (int64_t at = 0; weft_spec_segment(spec, rank, NULL, at, &segment); at += segment.length)
        for (int64_t i = 0; i < segment.length; i++) {
            uint64_t bits = average_input(seed, dtype, segment.global + i, holder);
            memcpy((char *)shard + (size_t)(segment.local + i) * wf_dtype_bytes(dtype), &bits,
                   wf_dtype_bytes(dtype));
        }
}

/* The tensor of each replica: WHOLE[replica][element].  Returns the number of replicas. */
static inline int32_t average_whole(const weft_spec *spec, const void *const *shards,
                                    uint64_t (*whole)[AVERAGE_ELEMENTS])
{
    static wf_wide sums[AVERAGE_RANKS][AVERAGE_ELEMENTS];
    const weft_mesh *mesh = weft_spec_mesh(spec);
    uint32_t dtype = weft_spec_dtype(spec);
    size_t bytes = wf_dtype_bytes(dtype);
    int32_t copies = 1;
    int64_t divisor = 1;
    weft_segment segment;

    memset(sums, 0, sizeof sums);
    for (int32_t a = 0; a < weft_mesh_axes(mesh); a++) {
        const weft_placement *p = &weft_spec_placements(spec)[a];
        if (p->kind == WEFT_PLACE_REPLICATE) copies *= weft_mesh_axis_size(mesh, a);
        if (p->kind == WEFT_PLACE_PARTIAL && p->reduction == WEFT_REDUCE_AVG)
            divisor *= weft_mesh_axis_size(mesh, a);
    }
    for (int32_t place = 0; place < weft_mesh_size(mesh); place++) {
        int32_t rank = weft_mesh_rank_at(mesh, place);
        wf_wide *sum = sums[average_place(spec, rank, WEFT_PLACE_REPLICATE)];
        for (int64_t at = 0; weft_spec_segment(spec, rank, NULL, at, &segment);
             at += segment.length)
            for (int64_t i = 0; i < segment.length; i++) {
                const char *from = shards[place];
                struct wf_number x =
                    wf_number_load(dtype, from + (size_t)(segment.local + i) * bytes);
                sum[segment.global + i] +=
                    wf_dtype_is_signed(dtype) ? (wf_wide)(int64_t)x.integer : (wf_wide)x.integer;
            }
    }
    for (int32_t c = 0; c < copies; c++)
        for (int i = 0; i < AVERAGE_ELEMENTS; i++) {
            uint64_t wrapped = (uint64_t)(sums[c][i] / divisor);
            whole[c][i] = 0;
            memcpy(&whole[c][i], &wrapped, bytes);
        }
    return copies;
}

/* True if SOURCES, as filled by average_fill, and TARGETS represent the same tensor. */
static inline bool average_same(const weft_spec *from, const void *const *sources,
                                const weft_spec *to, const void *const *targets)
{
    static uint64_t wanted[AVERAGE_RANKS][AVERAGE_ELEMENTS], got[AVERAGE_RANKS][AVERAGE_ELEMENTS];
    int32_t copies;

    average_whole(from, sources, wanted);
    copies = average_whole(to, targets, got);
    for (int32_t c = 0; c < copies; c++)
        if (memcmp(got[c], wanted[0], sizeof wanted[0]) != 0) return false;
    return true;
}

/* R, S(d), P(avg) and P(sum), at least one of them an average.  An axis that is partial in LIKE
 * (NULL: none) may stay partial, but only of the same kind. */
static inline weft_spec *average_spec(struct random *r, const weft_mesh *mesh, uint32_t dtype,
                                      int32_t dims, const int64_t *shape, const weft_spec *like)
{
    weft_placement placements[WEFT_MAX_AXES] = {{0}};
    weft_spec *spec = NULL;

    for (int32_t a = 0; a < weft_mesh_axes(mesh); a++) {
        const weft_placement *had =
            like != NULL && weft_spec_mesh(like) == mesh ? &weft_spec_placements(like)[a] : NULL;
        int32_t kind = random_in(r, 0, 3);
        if (kind == 1 && dims > 0)
            placements[a] =
                (weft_placement){.kind = WEFT_PLACE_SHARD, .dim = random_in(r, 0, dims - 1)};
        if (kind < 2) continue;
        placements[a] =
            (weft_placement){.kind = WEFT_PLACE_PARTIAL,
                             .reduction = random_chance(r, 3) ? WEFT_REDUCE_SUM : WEFT_REDUCE_AVG};
        if (had != NULL && had->kind == WEFT_PLACE_PARTIAL) placements[a] = *had;
    }
    ck_assert_msg(weft_spec_create(mesh, dtype, dims, shape, placements, &spec) == WEFT_OK, "%s",
                  weft_last_error());
    return spec;
}

/* Two specs of one tensor, on one mesh or on two. */
static inline struct pair average_pair(struct random *r, int32_t world)
{
    uint32_t dtype = (uint32_t)random_in(r, WEFT_DTYPE_I8, WEFT_DTYPE_U64);
    weft_mesh *mesh = pair_mesh(r, world), *other;
    int32_t dims = random_in(r, 0, 2);
    int64_t shape[2] = {random_in(r, 1, 8), random_in(r, 1, 6)};
    struct pair pair = {0};

    other = random_chance(r, 4) ? pair_other_mesh(r, mesh, world) : weft_mesh_retain(mesh);
    pair.from = average_spec(r, mesh, dtype, dims, shape, NULL);
    pair.to = average_spec(r, other, dtype, dims, shape, pair.from);
    pair_options(r, &pair);
    pair.options.without = 0;
    weft_mesh_release(&mesh);
    weft_mesh_release(&other);
    return pair;
}

#endif
