/* layout.h - the arithmetic of layouts: placements of a tensor's dimensions on the axes of a mesh,
 * and the indices that a rank holds.
 *
 * It computes with values alone and knows no object: of the mesh it uses the number of axes and the
 * ranks along each, which a layout has with it. */
#ifndef WEFT_BASE_LAYOUT_LAYOUT_H
#define WEFT_BASE_LAYOUT_LAYOUT_H

#include "base/base.h"
#include "weft/spec.h"

/* One split of a dimension by a mesh axis.  The sizes are borrowed from the layout's placements. */
struct wf_split {
    int32_t dim, axis;
    uint32_t kind; /* enum weft_placement_kind: one that splits */
    int32_t size_count;
    int64_t factor;        /* STRIDED; 1 for the others */
    const int64_t *sizes;  /* PARTS, SIZES */
    const int64_t *starts; /* SIZES of a spec: sums of the sizes before each; NULL: not known */
};

/* The contents of a spec, also of one that does not exist yet; wf_layout_settle checks them.  The
 * sizes of its placements are borrowed, unless it is a spec's. */
struct wf_layout {
    const weft_mesh *mesh;
    int32_t axes, ranks[WEFT_MAX_AXES]; /* of the mesh: its axes, and the ranks along each */
    uint32_t dtype;
    int32_t dims, split_count;
    bool owned; /* a placement is OWNER */
    int64_t shape[WEFT_MAX_DIMS];
    weft_placement placements[WEFT_MAX_AXES];
    struct wf_split splits[WEFT_MAX_AXES]; /* by dimension, then by turn */
};

/* ---- placement.c: placements checked and ordered ---- */

/* Check LAYOUT's placements as far as they do not depend on its shape.  Messages name the placement
 * and its axis. */
weft_status wf_layout_check(const struct wf_layout *layout) WF_NODISCARD;
/* WEFT_ERR_INVALID: one of AXES PLACEMENTS, an argument of FUNCTION, sets a field that its kind
 * does not use. */
weft_status wf_placements_check_fields(const weft_placement *placements, int32_t axes,
                                       const char *function) WF_NODISCARD;
/* Check LAYOUT's placements, change them to the form that equal layouts share (turns from 0, unused
 * fields 0, forms as in spec.h), and derive its splits.  Parts of size 0 stay in the list; they do
 * not count in comparisons, and a spec has none. */
weft_status wf_layout_settle(struct wf_layout *layout) WF_NODISCARD;

static inline bool wf_placement_splits(const weft_placement *p)
{
    return p->kind == WEFT_PLACE_SHARD || p->kind == WEFT_PLACE_STRIDED ||
           p->kind == WEFT_PLACE_PARTS || p->kind == WEFT_PLACE_SIZES;
}

static inline bool wf_placement_has_sizes(const weft_placement *p)
{
    return p->kind == WEFT_PLACE_PARTS || p->kind == WEFT_PLACE_SIZES;
}

/* True if two settled placements are equal. */
bool wf_placement_same(const weft_placement *a, const weft_placement *b);

/* A settled placement as a number below 2^16, without its factor, sizes and owner: kind, dimension,
 * turn and reduction.  The same on every machine, and ordered by kind. */
uint16_t wf_placement_code(const weft_placement *p);

/* ---- shape.c ---- */

/* WEFT_ERR_INVALID: DTYPE is unknown, DIMS or a size is out of range, or the bytes of the tensor
 * exceed 2^63 - 1. */
weft_status wf_shape_check(int32_t dims, const int64_t *shape, uint32_t dtype) WF_NODISCARD;

/* ---- print.c ---- */

void wf_placement_add_text(const weft_placement *p, struct wf_text *text); /* without its turn */
/* As wf_placement_add_text, with at most eight sizes, for messages. */
void wf_placement_add_short_text(const weft_placement *p, struct wf_text *text);
/* True if dimension DIM is split from the first axis to the last. */
bool wf_placements_in_order(const weft_placement *placements, int32_t axes, int32_t dim);
void wf_placements_add_text(const weft_placement *placements, int32_t axes, struct wf_text *text);
void wf_placements_add_short_text(const weft_placement *placements, int32_t axes,
                                  struct wf_text *text);

/* ---- index.c: the indices of a dimension that a rank holds, without listing them ---- */

/* An ascending sequence of numbers: TEETH runs of TAKE numbers, one every PERIOD, from FIRST on;
 * then a run of TAIL_TAKE at TAIL.  These runs are never adjacent.  If TEETH is 0, it is piece AT
 * of RANKS of each of PART_COUNT consecutive parts, the first of which begins at FIRST. */
struct wf_comb {
    int64_t first, teeth;
    union {
        int64_t period, part_count;
    };
    union {
        int64_t take, ranks;
    };
    union {
        int64_t tail;
        const int64_t *parts; /* sizes; borrowed from the layout */
    };
    union {
        int64_t tail_take, at;
    };
};

/* Nested combs: local index -> the last comb -> ... -> the first comb -> global index.  Depth 0 is
 * the identity.  The combs are borrowed. */
struct wf_index {
    int64_t length;
    int32_t depth;
    const struct wf_comb *combs;
};

/* A rank's shard in every dimension.  It borrows the sizes of parts from its layout. */
struct wf_shard {
    int32_t dims;
    bool member;
    int64_t elements;
    int64_t shape[WEFT_MAX_DIMS], offset[WEFT_MAX_DIMS];
    int32_t first_comb[WEFT_MAX_DIMS + 1];
    struct wf_comb combs[WEFT_MAX_AXES];
};

/* The shard at COORD; NULL: that of a non-member. */
void wf_shard_at(const struct wf_layout *layout, const int32_t *coord, struct wf_shard *out);
/* The coordinate with the largest shard; the others have no more indices in any dimension. */
void wf_placements_largest(const weft_placement *placements, int32_t axes, int32_t *coord);
static inline void wf_layout_largest(const struct wf_layout *layout, int32_t *coord)
{
    wf_placements_largest(layout->placements, layout->axes, coord);
}
/* Number of indices, out of LENGTH, that coordinate AT of RANKS holds after SPLIT. */
int64_t wf_split_share(const struct wf_split *split, int64_t length, int32_t ranks, int32_t at);
/* The coordinate that has the most indices after SPLIT, or the fewest. */
int32_t wf_split_most(const struct wf_split *split);
int32_t wf_split_least(const struct wf_split *split, int32_t ranks);

static inline struct wf_index wf_shard_index(const struct wf_shard *shard, int32_t dim)
{
    int32_t first = shard->first_comb[dim];
    return (struct wf_index){shard->shape[dim], shard->first_comb[dim + 1] - first,
                             &shard->combs[first]};
}

/* For messages. */
static inline const char *wf_index_word(int64_t count)
{
    return count == 1 ? "index" : "indices";
}
/* Global index of local index POSITION, in [0, length). */
int64_t wf_index_at(const struct wf_index *index, int64_t position);
/* Least local index whose global index is at least GLOBAL; the length if no index is. */
int64_t wf_index_seek(const struct wf_index *index, int64_t global);
/* The run from local index POSITION on; false at or past the length. */
bool wf_index_run(const struct wf_index *index, int64_t position, weft_index_run *out);
/* First overlap at or after global index FROM.  Indices that only one side holds are skipped, so
 * the cost of visiting all overlaps depends on the number of overlaps and alternating runs, not on
 * sizes. */
bool wf_index_overlap(const struct wf_index *a, const struct wf_index *b, int64_t from,
                      weft_intersection *out);
/* Runs of INDEX, at most. */
int64_t wf_index_runs(const struct wf_index *index);
/* Number of common indices.  Takes time for each run of the side that has fewer. */
int64_t wf_index_common(const struct wf_index *a, const struct wf_index *b);
/* The same, estimated from RUNS_MAX runs if both sides have more; at most the length of either. */
int64_t wf_index_common_about(const struct wf_index *a, const struct wf_index *b, int64_t runs_max);

#endif
