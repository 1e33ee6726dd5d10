/* spec.h - how a tensor lies on a mesh: placements, specs, and the indices each rank holds.
 *
 * A spec is a shape, a dtype, a mesh and one placement per mesh axis:
 *
 *   R        every rank along the axis holds the same
 *   S(d)     dimension d is split into consecutive chunks, the first ones ceil(size/ranks) long
 *   SS(d,f)  dimension d is cut into f chunks and each chunk is split as by S(d): a rank holds one
 *            part of each, in order
 *   P(op)    every rank holds a contribution; op (sum, avg, min, max, prod) of all is the tensor
 *
 * Several axes may split one dimension.  Each splits what the one before it left, by default from
 * the first axis to the last; another order is part of the spec.
 *
 * Text: `f32[4096,4096] S(0),R`.  `P` is `P(sum)`.  An order other than the default is written as
 * each axis's turn: `S(0)[1],S(0)[0]` splits dimension 0 by axis 1 first.
 *
 * Specs are immutable, shared and unique: equal specs are one object, so `a == b` compares them.
 * All functions here may be called from any thread and, unless they say so, none takes time or
 * memory that grows with the number of ranks. */
#ifndef WEFT_SPEC_H
#define WEFT_SPEC_H

#include "mesh.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_spec weft_spec;

enum weft_placement_kind {
    WEFT_PLACE_REPLICATE = 0,
    WEFT_PLACE_SHARD = 1,
    WEFT_PLACE_STRIDED = 2,
    WEFT_PLACE_PARTIAL = 3
};

/* The placement on one mesh axis.  Fields that a kind has no use for are 0. */
typedef struct weft_placement {
    uint32_t kind;      /* enum weft_placement_kind */
    uint32_t reduction; /* PARTIAL: WEFT_REDUCE_SUM, AVG, MIN, MAX or PROD */
    int32_t dim;        /* SHARD, STRIDED */
    int32_t turn;       /* SHARD, STRIDED: among the axes that split DIM the lowest splits first;
                         * 0 on all of them: from the first axis to the last */
    int64_t factor;     /* STRIDED: at least 1, and with 1 it is a SHARD */
} weft_placement;

/* A tensor of DIMS dimensions (0 to 8) with SHAPE[i] >= 0 on MESH, one of PLACEMENTS per axis.
 * The size in bytes, not counting dimensions of size 0, stays below 2^63.  The caller releases
 * *OUT, which holds a reference to MESH. */
WEFT_API WEFT_NODISCARD weft_status weft_spec_create(const weft_mesh *mesh, uint32_t dtype,
                                                     int32_t dims, const int64_t *shape,
                                                     const weft_placement *placements,
                                                     weft_spec **out);

/* The spec that TEXT describes.  WEFT_ERR_PARSE and WEFT_ERR_INVALID name position and reason. */
WEFT_API WEFT_NODISCARD weft_status weft_spec_parse(const weft_mesh *mesh, const char *text,
                                                    weft_spec **out);

/* The parts of that text, for callers that keep them apart.  A shape is "4096x4096",
 * "4096,4096", "[4096,4096]" or "[]" for a scalar; SHAPE has room for WEFT_MAX_DIMS sizes.
 * Placements are "S(0),R", one for each of AXES axes, into PLACEMENTS[axes].  WEFT_ERR_PARSE names
 * position and reason; what depends on a tensor's shape and mesh, weft_spec_create checks. */
WEFT_API WEFT_NODISCARD weft_status weft_shape_parse(const char *text, int32_t *dims,
                                                     int64_t *shape);
WEFT_API WEFT_NODISCARD weft_status weft_placements_parse(const char *text, int32_t axes,
                                                          weft_placement *placements);

/* One more reference to SPEC, which is returned. */
WEFT_API weft_spec *weft_spec_retain(const weft_spec *spec);

/* Drop a reference and set *SPEC to NULL.  Accepts NULL and a pointer to NULL. */
WEFT_API void weft_spec_release(weft_spec **spec);

/* Write SPEC's text (without its mesh), which weft_spec_parse reads back to the same spec, as
 * snprintf would: at most CAPACITY bytes with the end.  *LENGTH, if wanted, is the whole length. */
WEFT_API WEFT_NODISCARD weft_status weft_spec_print(const weft_spec *spec, char *buffer,
                                                    size_t capacity, size_t *length);

/* ---- what a spec is; pointers live as long as the spec ---- */

/* Not retained: weft_mesh_retain it to keep it longer than the spec. */
WEFT_API const weft_mesh *weft_spec_mesh(const weft_spec *spec);
WEFT_API uint32_t weft_spec_dtype(const weft_spec *spec);       /* enum weft_dtype */
WEFT_API int32_t weft_spec_dims(const weft_spec *spec);         /* of the tensor; 0 for a scalar */
WEFT_API const int64_t *weft_spec_shape(const weft_spec *spec); /* [dims] */
/* One per axis.  Turns count from 1 in each dimension, also where the order is the default. */
WEFT_API const weft_placement *weft_spec_placements(const weft_spec *spec);
WEFT_API int64_t weft_spec_elements(const weft_spec *spec); /* of the whole tensor */
WEFT_API uint64_t weft_spec_hash(const weft_spec *spec);    /* the same in every process */

/* ---- what a rank holds ---- */

/* The shard of one rank.  A rank outside the mesh is no member and holds nothing: shape 0 in every
 * dimension, no elements (also of a tensor without dimensions). */
typedef struct weft_shard {
    bool member;
    int32_t dims;
    int64_t elements;
    int64_t shape[WEFT_MAX_DIMS];
    int64_t offset[WEFT_MAX_DIMS]; /* first global index; the full size where the shard is empty */
} weft_shard;

/* What RANK holds; any number may be asked for. */
WEFT_API void weft_spec_shard(const weft_spec *spec, int32_t rank, weft_shard *out);

/* LENGTH consecutive global indices from START on, in one dimension. */
typedef struct weft_run {
    int64_t start, length;
} weft_run;

/* The run that holds local index POSITION of dimension DIM on RANK, from that index to the run's
 * end; false past the last one.  Runs are as long as they can be, and ascend:
 *     for (int64_t at = 0; weft_spec_run(spec, rank, dim, at, &run); at += run.length) ... */
WEFT_API bool weft_spec_run(const weft_spec *spec, int32_t rank, int32_t dim, int64_t position,
                            weft_run *out);

/* LENGTH global indices from START on that two shards share in one dimension, and where they lie
 * in each. */
typedef struct weft_overlap {
    int64_t start, length;
    int64_t first, second; /* local index of START in the first and in the second shard */
} weft_overlap;

/* The first overlap, in dimension DIM, of the shards of two ranks at or after global index FROM;
 * false if none is left.  The specs may lie on different meshes.
 *     for (int64_t at = 0; weft_spec_overlap(a, i, b, j, dim, at, &o); at = o.start + o.length) */
WEFT_API bool weft_spec_overlap(const weft_spec *first, int32_t first_rank, const weft_spec *second,
                                int32_t second_rank, int32_t dim, int64_t from, weft_overlap *out);

/* LENGTH elements that follow each other both in the whole tensor (row-major) and in the memory of
 * the rank's shard.  Both offsets are in elements. */
typedef struct weft_segment {
    int64_t global, local, length;
} weft_segment;

/* The segment that begins with element POSITION, in row-major order of the shard, of RANK; false
 * past the last.  STRIDES[dims], in elements, describe the shard's memory; NULL: row-major without
 * gaps.
 *     for (int64_t at = 0; weft_spec_segment(spec, rank, NULL, at, &s); at += s.length) ... */
WEFT_API bool weft_spec_segment(const weft_spec *spec, int32_t rank, const int64_t *strides,
                                int64_t position, weft_segment *out);

/* ---- specs from other things ---- */

/* The global shape of which SHARDS are the local shapes: SHARDS[i * dims + d] is the size in
 * dimension d on the rank at place i of MESH's row-major order, for all ranks.  WEFT_ERR_MISMATCH
 * names two ranks that contradict each other.  Linear in the number of ranks. */
WEFT_API WEFT_NODISCARD weft_status weft_shape_from_shards(const weft_mesh *mesh, int32_t dims,
                                                           const weft_placement *placements,
                                                           const int64_t *shards, int64_t *shape);

/* Some systems write the order of splits as strides: S(0)[1],S(0)[0] on a 2x4 mesh as
 * SS(0,4),S(0), read from the first axis to the last.  These two convert, and give a spec that
 * places every element on the same ranks as SPEC does.  Where there is none, because strides do
 * not stand for an order or because sizes are uneven in a way that makes the two differ, they
 * fail with WEFT_ERR_UNSUPPORTED and say which axis or which rank.  Linear in the number of ranks
 * that split one dimension where sizes are uneven. */
WEFT_API WEFT_NODISCARD weft_status weft_spec_order_to_strides(const weft_spec *spec,
                                                               weft_spec **out);
WEFT_API WEFT_NODISCARD weft_status weft_spec_strides_to_order(const weft_spec *spec,
                                                               weft_spec **out);

#ifdef __cplusplus
}
#endif
#endif
