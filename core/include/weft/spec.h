/* spec.h - the layout of a tensor on a mesh: placements, specs, and the indices each rank holds.
 *
 * A spec is a shape, a dtype, a mesh and one placement per mesh axis:
 *
 *   R        every rank along the axis holds a replica
 *   S(d)     dimension d is split into consecutive chunks of ceil(size/ranks) indices; the last
 *            chunks may be shorter or empty
 *   SS(d,f)  dimension d is cut into f chunks, each of which is split as by S(d); a rank holds one
 *            piece of each chunk, in order
 *   B(d;n0,n1,...)  dimension d consists of parts of n0, n1, ... indices, each of which is split as
 *            by S(d); a rank holds one piece of each part, in order
 *   G(d;n0,n1,...)  dimension d is split into groups of consecutive indices; the rank at coordinate
 *            i of the axis holds group i, of ni indices
 *   P(op)    every rank holds a contribution; the tensor is op (sum, avg, min, max, prod) of all
 *   O(c)     the rank at coordinate c of the axis holds the shard that R would give; the others
 *            hold nothing: their dimension 0 has size 0, other dimensions are as the owner's
 *
 * Several axes may split one dimension.  Each axis splits the chunks that the axis before it left.
 * The default order is from the first axis to the last; any other order is part of the spec.  The
 * sizes of B and G add up to the number of indices that the axes before left, which must be the
 * same on all ranks.
 *
 * Text: `f32[4096,4096] S(0),R`.  `P` is `P(sum)`.  Any order but the default is written as the
 * turn of each axis: `S(0)[1],S(0)[0]` splits dimension 0 by axis 1 first.
 *
 * These layouts have one form: parts of size 0 are dropped, B with one part is S, B whose parts are
 * the chunks of SS(d,f) is SS(d,f) with the smallest f, G whose sizes are the chunks of S(d) is
 * S(d), SS(d,1) is S(d), and O on an axis of one rank is R.  Other specs may differ although they
 * place every element on the same ranks, such as S(0) and R on an axis of one rank.
 *
 * Specs are immutable, shared and unique: equal specs are one object, so `a == b` compares them.
 * All functions here may be called from any thread.  Unless stated, time and memory do not grow
 * with the number of ranks. */
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
    WEFT_PLACE_PARTIAL = 3,
    WEFT_PLACE_PARTS = 4, /* B */
    WEFT_PLACE_SIZES = 5, /* G */
    WEFT_PLACE_OWNER = 6
};

enum {
    WEFT_MAX_PARTS = 64,   /* sizes of a B */
    WEFT_MAX_SIZES = 65536 /* sizes of a G */
};

/* The placement on one mesh axis.  Fields that the kind does not use are 0; functions refuse others
 * with WEFT_ERR_INVALID. */
typedef struct weft_placement {
    uint32_t kind;        /* enum weft_placement_kind */
    uint32_t reduction;   /* PARTIAL: WEFT_REDUCE_SUM, AVG, MIN, MAX or PROD */
    int32_t dim;          /* SHARD, STRIDED, PARTS, SIZES */
    int32_t turn;         /* of the same: the axes that split DIM do so in ascending order of turn.
                           * Turns count from 0, as in the text, and differ.  0 on all of these axes
                           * is the default order, from the first axis to the last */
    int64_t factor;       /* STRIDED: at least 1; 1 is the same as SHARD */
    size_t size_count;    /* PARTS: 1 to WEFT_MAX_PARTS; SIZES: the ranks of the axis */
    const int64_t *sizes; /* PARTS, SIZES: SIZE_COUNT sizes, none negative; borrowed */
    int32_t owner;        /* OWNER: a coordinate of the axis */
} weft_placement;

/* Create the spec of a tensor with DIMS dimensions (0 to 8) of SHAPE[i] >= 0 elements on MESH, with
 * one placement per axis.  The product of all sizes other than 0 and of the bytes per element must
 * be below 2^63. *OUT keeps a reference to MESH, and copies of the placements' sizes.  The caller
 * releases *OUT.  [PLACEMENTS: one per axis of MESH] */
WEFT_API WEFT_NODISCARD weft_status weft_spec_create(const weft_mesh *mesh, enum weft_dtype dtype,
                                                     int32_t dims, const int64_t *shape,
                                                     const weft_placement *placements,
                                                     weft_spec **out);

/* Create the spec on MESH that TEXT describes.  *OUT keeps a reference to MESH.  The caller
 * releases *OUT.  WEFT_ERR_PARSE: TEXT is malformed; the error text gives the position in TEXT and
 * the reason.  WEFT_ERR_INVALID: TEXT is well formed, but no such spec can exist on MESH; the error
 * text gives TEXT and the reason. */
WEFT_API WEFT_NODISCARD weft_status weft_spec_parse(const weft_mesh *mesh, const char *text,
                                                    weft_spec **out);

/* Create the spec of a tensor with DIMS dimensions of SHAPE[i] elements on MESH, with PLACEMENTS as
 * text, such as "S(0),R".  The caller releases *OUT.  Errors as in weft_spec_create and
 * weft_spec_parse. */
WEFT_API WEFT_NODISCARD weft_status weft_spec_parse_placements(const weft_mesh *mesh,
                                                               enum weft_dtype dtype, int32_t dims,
                                                               const int64_t *shape,
                                                               const char *placements,
                                                               weft_spec **out);

/* Create the spec of the same tensor in another layout: with other placements ("R,S(0)") on the
 * same mesh, or on another MESH.  The caller releases *OUT.  Errors as in weft_spec_parse. */
WEFT_API WEFT_NODISCARD weft_status weft_spec_with(const weft_spec *spec, const char *placements,
                                                   weft_spec **out);
WEFT_API WEFT_NODISCARD weft_status weft_spec_with_mesh(const weft_spec *spec,
                                                        const weft_mesh *mesh,
                                                        const char *placements, weft_spec **out);
/* Create the spec of the same shape and layout with another dtype.  The caller releases *OUT.
 * WEFT_ERR_INVALID: DTYPE is not a dtype, a P(op) of the layout is not defined for it, or the
 * tensor would have 2^63 bytes or more. */
WEFT_API WEFT_NODISCARD weft_status weft_spec_with_dtype(const weft_spec *spec,
                                                         enum weft_dtype dtype, weft_spec **out);

/* Read a shape or a list of placements, for callers that store them separately.  A shape is
 * "4096x4096", "4096,4096", "[4096,4096]", or "[]" for a scalar; SHAPE has room for WEFT_MAX_DIMS
 * sizes.  Placements are "S(0),R", one for each of AXES axes, written to PLACEMENTS, an array of
 * AXES entries.  The caller frees the sizes of B and G in them with weft_placements_free.
 * WEFT_ERR_PARSE: TEXT is malformed; the error text gives the position in TEXT and the reason.
 * weft_spec_create checks whether placements fit a tensor and a mesh.  [SHAPE: WEFT_MAX_DIMS
 * entries] */
WEFT_API WEFT_NODISCARD weft_status weft_shape_parse(const char *text, int32_t *dims,
                                                     int64_t *shape);
WEFT_API WEFT_NODISCARD weft_status weft_placements_parse(const char *text, int32_t axes,
                                                          weft_placement *placements);
/* Free the sizes in PLACEMENTS, which weft_placements_parse wrote, and set them to NULL.  Accepts
 * NULL. */
WEFT_API void weft_placements_free(int32_t axes, weft_placement *placements);

/* Add a reference and return SPEC; NULL for NULL. */
WEFT_API weft_spec *weft_spec_retain(const weft_spec *spec);

/* Drop a reference and set *SPEC to NULL.  Accepts NULL and a pointer to NULL. */
WEFT_API void weft_spec_release(weft_spec **spec);

/* Write the text of SPEC, without its mesh, to TEXT; weft_spec_parse makes the same spec from it
 * and the mesh.  TEXT, SIZE and NEEDED as in weft_mesh_print. */
WEFT_API WEFT_NODISCARD weft_status weft_spec_print(const weft_spec *spec, char *text, size_t size,
                                                    size_t *needed);

/* ---- properties; pointers are valid as long as the spec; 0 or NULL for NULL ---- */

/* Borrowed: call weft_mesh_retain to keep it longer than the spec. */
WEFT_API const weft_mesh *weft_spec_mesh(const weft_spec *spec);
WEFT_API enum weft_dtype weft_spec_dtype(const weft_spec *spec); /* NULL: WEFT_DTYPE_COUNT */
WEFT_API int32_t weft_spec_dims(const weft_spec *spec);          /* 0 for a scalar */
/* Sizes of the whole tensor in elements. [RESULT: one per dimension of SPEC] */
WEFT_API const int64_t *weft_spec_shape(const weft_spec *spec);
/* The placements, one per axis, in the form that equal layouts share.  If an axis splits a
 * dimension, its `turn` counts from 0 without gaps and is set even in the default order, in which
 * the text shows no turn. */
WEFT_API const weft_placement *weft_spec_placements(const weft_spec *spec);
/* Elements of the whole tensor. */
WEFT_API int64_t weft_spec_elements(const weft_spec *spec);
WEFT_API uint64_t weft_spec_hash(const weft_spec *spec); /* the same in every process */

/* ---- shards ---- */

/* The shard of one rank.  A non-member of the mesh has an empty shard: 0 elements, and shape 0 in
 * every dimension. */
typedef struct weft_shard {
    bool member;
    int32_t dims;
    int64_t elements;
    int64_t shape[WEFT_MAX_DIMS];
    int64_t offset[WEFT_MAX_DIMS]; /* first global index of each dimension; the full size of a
                                      dimension of which the shard has no index */
} weft_shard;

/* Write the shard of RANK to *OUT.  RANK may be any number.  For NULL the shard is empty. */
WEFT_API void weft_spec_shard(const weft_spec *spec, int32_t rank, weft_shard *out);
/* Bytes of the shard of RANK, without gaps; 0 for NULL. */
WEFT_API uint64_t weft_spec_shard_bytes(const weft_spec *spec, int32_t rank);

/* For collectives with a count for each rank (weft_all_gather_v): set COUNTS[i] to the number of
 * elements that rank RANKS[i] holds, and OFFSETS[i] to the sum of the counts before it.  RANKS may
 * be NULL: the ranks are 0 to COUNT - 1.  OFFSETS may be NULL.  A rank outside the mesh counts 0.
 * The gathered elements are row-major only if SPEC splits dimension 0 alone, by S or G in the order
 * of RANKS.  Takes time linear in COUNT.
 * [RANKS, COUNTS, OFFSETS: COUNT entries] */
WEFT_API WEFT_NODISCARD weft_status weft_spec_counts(const weft_spec *spec, size_t count,
                                                     const int32_t *ranks, uint64_t *counts,
                                                     uint64_t *offsets);

/* LENGTH consecutive global indices of one dimension, beginning at START. */
typedef struct weft_index_run {
    int64_t start, length;
} weft_index_run;

/* Write the rest of the run that contains local index POSITION of dimension DIM on RANK: out->start
 * is the global index of POSITION.  False if the shard has no index POSITION, SPEC
 * is NULL or has no dimension DIM, or RANK is not a member.  Runs have maximum
 * length and ascend:
 *     for (int64_t at = 0; weft_spec_run(spec, rank, dim, at, &run); at += run.length) ... */
WEFT_API bool weft_spec_run(const weft_spec *spec, int32_t rank, int32_t dim, int64_t position,
                            weft_index_run *out);

/* LENGTH consecutive global indices of one dimension, beginning at START, that two shards share,
 * and their positions in both. */
typedef struct weft_intersection {
    int64_t start, length;
    int64_t first, second; /* local index of START in each shard */
} weft_intersection;

/* Write the first intersection in dimension DIM, at or after global index FROM, of the shards of
 * two ranks.  False if they share no index there.  The specs may have different meshes.
 *     for (int64_t at = 0; weft_spec_intersection(a, i, b, j, dim, at, &o);
 *          at = o.start + o.length) ... */
WEFT_API bool weft_spec_intersection(const weft_spec *first, int32_t first_rank,
                                     const weft_spec *second, int32_t second_rank, int32_t dim,
                                     int64_t from, weft_intersection *out);

/* LENGTH elements that are consecutive both in the whole tensor (row-major) and in the memory of a
 * shard.  GLOBAL and LOCAL are the offsets of the first one, in elements. */
typedef struct weft_segment {
    int64_t global, local, length;
} weft_segment;

/* Write the segment of RANK's shard that begins with element POSITION in row-major order of the
 * shard.  False if POSITION is past the last element.  STRIDES[dims] of the shard's memory are in
 * elements.  STRIDES may be NULL: row-major without gaps.
 *     for (int64_t at = 0; weft_spec_segment(spec, rank, NULL, at, &s); at += s.length) ...
 * [STRIDES: one per dimension of SPEC] */
WEFT_API bool weft_spec_segment(const weft_spec *spec, int32_t rank, const int64_t *strides,
                                int64_t position, weft_segment *out);

/* ---- lost ranks ---- */

/* The elements that are lost together with some ranks. */
typedef struct weft_lost_info {
    size_t struct_size;
    int64_t elements;             /* that are lost */
    uint64_t bytes;               /* of these elements, each counted once */
    size_t shards;                /* that are lost; different ones have no element in common */
    int64_t first[WEFT_MAX_DIMS]; /* index of the first lost element in row-major order, if one is
                                     lost; unused entries are 0 */
} weft_lost_info;

/* Find the elements of SPEC whose values the other ranks cannot form after the COUNT ranks in LOST
 * are lost, and describe them in *INFO, whose struct_size the caller sets.  An element is lost if
 * no other rank holds it, or if no other rank holds one of the contributions to it (P).  The lost
 * elements are whole shards: the first info->shards entries of RANKS become a rank of LOST for each
 * of them, and the others -1.  Call weft_spec_run or weft_spec_segment with such a rank for the
 * elements of its shard.  A rank that LOST repeats counts once, and one outside the mesh holds
 * nothing.  RANKS may be NULL.  Takes time for each rank in LOST.  WEFT_ERR_INVALID: a rank is
 * negative.  [LOST, RANKS: COUNT entries] */
WEFT_API WEFT_NODISCARD weft_status weft_spec_lost(const weft_spec *spec, size_t count,
                                                   const int32_t *lost, int32_t *ranks,
                                                   weft_lost_info *info);

/* ---- conversions ---- */

/* Compute the global shape from the local shapes of all ranks.  SHARDS[i * dims + d] is the size in
 * dimension d of the shard of the rank at position i in row-major order of MESH.  SHAPE has room
 * for DIMS sizes.  SHARDS and SHAPE may be NULL if DIMS is 0.  WEFT_ERR_MISMATCH names two
 * ranks whose shards contradict each other, or a rank that is not an owner and whose shard is not
 * empty.  Linear in the number of ranks.  [PLACEMENTS: one per axis of MESH] [SHAPE: DIMS entries]
 * [SHARDS: DIMS for each rank of MESH] */
WEFT_API WEFT_NODISCARD weft_status weft_shape_from_shards(const weft_mesh *mesh, int32_t dims,
                                                           const weft_placement *placements,
                                                           const int64_t *shards, int64_t *shape);

/* Create the spec whose shards have these local shapes; SHARDS as in weft_shape_from_shards.  An
 * S(d) of PLACEMENTS becomes G(d;...) if the local sizes are not its chunks.  All axis groups of
 * this axis must then have the same list of local sizes.  The axis has at most WEFT_MAX_SIZES
 * ranks. The other placements stay as they are; a G that the caller lists is never replaced by
 * another one. The caller releases *OUT.  WEFT_ERR_MISMATCH as in weft_shape_from_shards, or it
 * names a rank whose shard contradicts a listed G.  WEFT_ERR_INVALID: an outer axis leaves unequal
 * sizes, and an inner one needs G.  Linear in the number of ranks.  [PLACEMENTS: one per axis of
 * MESH] [SHARDS: DIMS for each rank of MESH] */
WEFT_API WEFT_NODISCARD weft_status weft_spec_from_shards(const weft_mesh *mesh,
                                                          enum weft_dtype dtype, int32_t dims,
                                                          const weft_placement *placements,
                                                          const int64_t *shards, weft_spec **out);

/* The same with PLACEMENTS as text, such as "S(0),R".  COUNT is the number of entries of SHARDS:
 * DIMS for each rank of MESH.  Otherwise WEFT_ERR_INVALID.  The caller releases *OUT. */
WEFT_API WEFT_NODISCARD weft_status weft_spec_parse_shards(const weft_mesh *mesh,
                                                           enum weft_dtype dtype,
                                                           const char *placements, int32_t dims,
                                                           size_t count, const int64_t *shards,
                                                           weft_spec **out);

/* Some systems express the order of splits by strides.  There, SS(d,f) on an axis means that later
 * axes, whose sizes multiply to f, have split dimension d before this axis: S(0)[1],S(0)[0] on a
 * 2x4 mesh is SS(0,4),S(0).  These functions convert between the two forms.  The new spec places
 * every element on the same ranks as SPEC.  The caller releases *OUT.  WEFT_ERR_UNSUPPORTED: no
 * such spec exists, because the strides do not express an order or because of uneven sizes; the
 * text names the axis or the rank.  With uneven sizes the time is linear in the number of ranks
 * that split one dimension. */
WEFT_API WEFT_NODISCARD weft_status weft_spec_order_to_strides(const weft_spec *spec,
                                                               weft_spec **out);
WEFT_API WEFT_NODISCARD weft_status weft_spec_strides_to_order(const weft_spec *spec,
                                                               weft_spec **out);

/* ---- gradients ---- */

/* Create the layout of the gradient of a tensor of layout SPEC before the gradients of its copies
 * are added: R becomes P(sum), P(sum) becomes R, and splits and owners stay.  The dual of the dual
 * is SPEC.  The caller releases *OUT.  WEFT_ERR_UNSUPPORTED: an axis has another partial than
 * P(sum), which has no dual; or the dtype has no sum. */
WEFT_API WEFT_NODISCARD weft_status weft_spec_dual(const weft_spec *spec, weft_spec **out);
/* Create the layout that the gradient of a tensor of layout SPEC has by default after wrapping
 * (weft_tensor_wrap) and for a local view: as SPEC, but R where SPEC has a partial.  The caller
 * releases *OUT. */
WEFT_API WEFT_NODISCARD weft_status weft_spec_gradient(const weft_spec *spec, weft_spec **out);
/* Create the layout to which the gradient of a move from SPEC is moved back.  GRADIENT is the
 * layout in which the gradient arrives, on the mesh that the move went to.  If the meshes are the
 * same: as SPEC, but R where SPEC has a partial and GRADIENT has none; a gradient never becomes
 * partial.  Otherwise as weft_spec_gradient.  The caller releases *OUT.  WEFT_ERR_MISMATCH: the
 * shapes differ. */
WEFT_API WEFT_NODISCARD weft_status weft_spec_gradient_of_move(const weft_spec *spec,
                                                               const weft_spec *gradient,
                                                               weft_spec **out);

/* ---- owners ---- */

/* Deal COUNT tensors of BYTES[i] bytes to OWNERS owners, at least 1, so that their loads are about
 * equal: the largest tensor first, each to the owner with the least load.  OUT[i], from
 * 0 to OWNERS - 1, is the owner of tensor i: the c of its O(c).  Of equal tensors the first goes
 * first, and of equal loads the lower owner is chosen.  COUNT 0 does nothing.  The result depends
 * on the arguments alone, so all ranks compute the same.  The largest load is at most 4/3 of the
 * least possible one, and at most 5/4 of the mean load if no tensor exceeds a quarter of the mean.
 * WEFT_ERR_INVALID: OWNERS is below 1, or the bytes add up beyond 2^64 - 1.
 * [OUT: COUNT entries] */
WEFT_API WEFT_NODISCARD weft_status weft_owners_balance(size_t count, const uint64_t *bytes,
                                                        int32_t owners, int32_t *out);

#ifdef __cplusplus
}
#endif
#endif
