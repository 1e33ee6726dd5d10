/* mesh.h - ranks arranged along up to eight axes.
 *
 * A mesh gives each of its ranks a coordinate.  The ranks of an axis group are ordered by their
 * coordinates.  Meshes are immutable, shared and unique: meshes with equal axes (sizes and names),
 * equal ranks at equal coordinates and equal hosts are one object, so `a == b` compares them.  All
 * functions here may be called from any thread.
 *
 * Text:   2x4              eight ranks, 0 to 7, in two rows
 *         dp=2,tp=4        the same with named axes
 *         2x2@4-7          ranks 4 to 7
 *         2x2@0,2,1,3      an explicit list, in row-major order of the coordinates
 *         4@0-6:2          ranks 0, 2, 4, 6
 *         4x8/8            ranks 0 to 7 share a host, 8 to 15 the next, and so on
 *         dp=*,tp=4        all ranks of a job, in rows of four (weft_mesh_parse_for)
 *
 * A mesh whose ranks follow strides needs the same small memory whatever its size.  Any other rank
 * list is stored as a list, of at most 2^24 ranks. */
#ifndef WEFT_MESH_H
#define WEFT_MESH_H

#include "status.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_MAX_AXES      8
#define WEFT_MAX_AXIS_NAME 31 /* bytes, without the end */

typedef struct weft_mesh weft_mesh;

typedef struct weft_mesh_options {
    size_t struct_size;
    const char *const *names; /* one per axis, [A-Za-z_][A-Za-z0-9_]*, all different; NULL: none */
    const int32_t *ranks;     /* product-of-sizes ranks in row-major order; NULL: 0, 1, 2 ... */
    int32_t devices_per_host; /* rank r runs on host r / this; 0: not known */
} weft_mesh_options;

/* Create a mesh of AXES axes with SIZES[i] >= 1 ranks along axis i.  OPTIONS may be NULL; all
 * arguments are copied.  Ranks must not be negative and must not repeat.  A mesh has at most
 * 2^31 - 1 ranks.  The caller releases *OUT. */
WEFT_API WEFT_NODISCARD weft_status weft_mesh_create(int32_t axes, const int32_t *sizes,
                                                     const weft_mesh_options *options,
                                                     weft_mesh **out);

/* Create the mesh that TEXT describes.  The caller releases *OUT.  WEFT_ERR_PARSE: TEXT is
 * malformed.  WEFT_ERR_INVALID: TEXT is well formed, but no such mesh can exist.  The error text
 * gives the position in TEXT and the reason. */
WEFT_API WEFT_NODISCARD weft_status weft_mesh_parse(const char *text, weft_mesh **out);

/* The same for a mesh in a job of RANKS ranks, such as weft_size.  One axis may have the size `*`:
 * the ranks divided by the other sizes.  `dp=*` is a mesh of all ranks, and `dp=*,tp=4` has as many
 * rows of four as the job has.  The caller releases *OUT.  WEFT_ERR_PARSE also: two sizes are
 * `*`, or the other sizes do not divide RANKS. */
WEFT_API WEFT_NODISCARD weft_status weft_mesh_parse_for(const char *text, int32_t ranks,
                                                        weft_mesh **out);

/* Add a reference and return MESH; NULL for NULL. */
WEFT_API weft_mesh *weft_mesh_retain(const weft_mesh *mesh);

/* Drop a reference and set *MESH to NULL.  Accepts NULL and a pointer to NULL. */
WEFT_API void weft_mesh_release(weft_mesh **mesh);

/* Write the text of MESH to TEXT; weft_mesh_parse makes the same mesh from it.  At most SIZE
 * bytes are written, including the terminating zero; longer text is cut, and the status is still
 * WEFT_OK.  Unless NEEDED is NULL, *NEEDED is set to the length of the whole text without the
 * terminating zero.  TEXT may be NULL if SIZE is 0. */
WEFT_API WEFT_NODISCARD weft_status weft_mesh_print(const weft_mesh *mesh, char *text, size_t size,
                                                    size_t *needed);

/* ---- properties ---- */

/* Number of axes; 0 for NULL. */
WEFT_API int32_t weft_mesh_axes(const weft_mesh *mesh);

/* Number of ranks; 0 for NULL. */
WEFT_API int32_t weft_mesh_size(const weft_mesh *mesh);

/* Number of ranks along axis AXIS; 0 if MESH has no such axis. */
WEFT_API int32_t weft_mesh_axis_size(const weft_mesh *mesh, int32_t axis);
/* Name of axis AXIS, "" if the axes are not named; NULL if MESH has no such axis.  Borrowed. */
WEFT_API const char *weft_mesh_axis_name(const weft_mesh *mesh, int32_t axis);

/* Set *AXIS to the axis with the name NAME.  NAME may also be the index of the axis, such as "0".
 * WEFT_ERR_NOT_FOUND: MESH has no such axis; the text lists the axes. */
WEFT_API WEFT_NODISCARD weft_status weft_mesh_find_axis(const weft_mesh *mesh, const char *name,
                                                        int32_t *axis);

/* A hash of MESH that is the same on every machine and in every process; 0 for NULL. */
WEFT_API uint64_t weft_mesh_hash(const weft_mesh *mesh);

/* ---- ranks and coordinates ---- */

/* Write the coordinate of RANK to COORD, an array with one entry per axis of MESH.
 * WEFT_ERR_NOT_FOUND: RANK is not in MESH.  Takes constant time.  [COORD: one per axis of MESH] */
WEFT_API WEFT_NODISCARD weft_status weft_mesh_coord_of(const weft_mesh *mesh, int32_t rank,
                                                       int32_t *coord);

/* Set *RANK to the rank at COORD, an array with one entry per axis of MESH.  WEFT_ERR_INVALID: the
 * coordinate is outside the mesh.  [COORD: one per axis of MESH] */
WEFT_API WEFT_NODISCARD weft_status weft_mesh_rank(const weft_mesh *mesh, const int32_t *coord,
                                                   int32_t *rank);

/* The rank at POSITION, from 0 to size - 1, in row-major order of the coordinates; -1 if MESH has
 * no such position. */
WEFT_API int32_t weft_mesh_rank_at(const weft_mesh *mesh, int32_t position);

/* ---- meshes from meshes ---- */

/* Create the submesh that contains RANK and has the axes that AXES lists ("dp,tp", or by index
 * "0,2"), in the listed order.  Along each axis the ranks keep their order.  The caller releases
 * *OUT.  WEFT_ERR_NOT_FOUND: RANK is not in MESH, or MESH has no such axis. */
WEFT_API WEFT_NODISCARD weft_status weft_mesh_slice(const weft_mesh *mesh, const char *axes,
                                                    int32_t rank, weft_mesh **out);

/* Create a mesh of the same ranks in which the axes that AXES lists are one axis.  The
 * last listed axis varies fastest.  The new axis replaces the first listed one.  AXES may be
 * NULL: all axes.  NAME is the name of the new axis.  NAME may be NULL: the new name is then the
 * old names joined by "_", or the new axis has no name if the axes of MESH have none.  The caller
 * releases *OUT. */
WEFT_API WEFT_NODISCARD weft_status weft_mesh_flatten(const weft_mesh *mesh, const char *axes,
                                                      const char *name, weft_mesh **out);

/* Create a mesh of the same ranks in which COUNT axes of SIZES[i] ranks replace axis AXIS.  The
 * product of SIZES must be the size of AXIS.  NAMES may be NULL: the new axes have no names.  They
 * must have names if the axes of MESH have names, and none otherwise.  The caller releases *OUT.
 * [NAMES: COUNT entries] */
WEFT_API WEFT_NODISCARD weft_status weft_mesh_unflatten(const weft_mesh *mesh, int32_t axis,
                                                        size_t count, const int32_t *sizes,
                                                        const char *const *names, weft_mesh **out);

/* Create the mesh with the axes of FIRST followed by those of SECOND, two submeshes of WITHIN that
 * share exactly one rank: the slices "dp" and "tp" give the slice "dp,tp".  WITHIN is the mesh that
 * both were sliced from.  WITHIN may be NULL if the ranks of that mesh follow strides, as in every
 * mesh made without a rank list.  The caller releases *OUT. */
WEFT_API WEFT_NODISCARD weft_status weft_mesh_concatenate(const weft_mesh *within,
                                                          const weft_mesh *first,
                                                          const weft_mesh *second, weft_mesh **out);

/* The mesh that follows a mesh when ranks are lost (weft_mesh_follow). */
enum weft_follow {
    WEFT_FOLLOW_REPLACE = 0, /* new ranks take the coordinates of the lost ones */
    WEFT_FOLLOW_DROP = 1,    /* the coordinates of one axis at which a rank is lost leave */
    WEFT_FOLLOW_PACK = 2     /* the ranks that are left, in one axis */
};

/* Create the mesh that follows MESH in a job that has lost ranks.  The job now has COUNT ranks.
 * OLD_RANKS[r] is the number that rank r had before, or -1 if rank r is new.  A rank of MESH whose
 * number OLD_RANKS does not have is lost.  The other ranks stay in the order of MESH, with their
 * numbers of now.
 * WEFT_FOLLOW_REPLACE: the sizes stay.  The k-th smallest lost number of the job is replaced by the
 * k-th new rank, so that meshes that share no rank still share none afterwards.
 * WEFT_FOLLOW_DROP: AXIS, by name or index, loses each coordinate at which a rank is lost.
 * WEFT_FOLLOW_PACK: AXIS is the name of the one axis.
 * AXIS may be NULL unless coordinates are dropped.  Devices per host are kept if every rank keeps
 * its number, and are not known otherwise.  Ranks need not agree on the result, because it follows
 * from the arguments.  The caller releases *OUT.  WEFT_ERR_INVALID: OLD_RANKS repeats a rank, there
 * are too few new ranks, or no rank is left.  WEFT_ERR_NOT_FOUND: MESH has no such axis.
 * [OLD_RANKS: COUNT entries] */
WEFT_API WEFT_NODISCARD weft_status weft_mesh_follow(const weft_mesh *mesh, size_t count,
                                                     const int32_t *old_ranks,
                                                     enum weft_follow policy, const char *axis,
                                                     weft_mesh **out);

/* ---- hosts ---- */

/* Devices per host, as given at creation; 0: not known. */
WEFT_API int32_t weft_mesh_devices_per_host(const weft_mesh *mesh);

/* Number of hosts that the ranks of MESH run on; 1 if devices per host are not known.  For the
 * hosts of one axis group, call it on a slice.  Takes time linear in the number of ranks at
 * worst. */
WEFT_API int32_t weft_mesh_hosts(const weft_mesh *mesh);

/* The host of RANK, which need not be in MESH; 0 if devices per host are not known. */
WEFT_API int32_t weft_mesh_host_of(const weft_mesh *mesh, int32_t rank);

#ifdef __cplusplus
}
#endif
#endif
