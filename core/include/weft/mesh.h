/* mesh.h - the geometry of ranks: up to eight axes over any set of ranks.
 *
 * A mesh gives every one of its ranks a coordinate.  Along an axis the ranks form groups; the order
 * of a group is always the order of the coordinates.  Meshes are immutable, shared and unique: two
 * meshes with the same axes (sizes and names), the same ranks in the same places and the same hosts
 * are one object, so `a == b` compares them.  All functions here may be called from any thread.
 *
 * Text:   2x4              eight ranks, 0 to 7, in two rows
 *         dp=2,tp=4        the same with named axes
 *         2x2@4-7          ranks 4 to 7
 *         2x2@0,2,1,3      an explicit list, in row-major order of the coordinates
 *         4@0-6:2          ranks 0, 2, 4, 6
 *         4x8/8            ranks 0 to 7 share a host, 8 to 15 the next, and so on
 *
 * Meshes whose ranks follow strides, of any size, take the same small memory; only a list without
 * such an order is kept as a list (of at most 2^24 ranks). */
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

/* struct_size is sizeof(weft_mesh_options); elsewhere zero means default. */
typedef struct weft_mesh_options {
    size_t struct_size;
    const char *const *names; /* one per axis, [A-Za-z_][A-Za-z0-9_]*, all different; NULL: none */
    const int32_t *ranks;     /* product-of-sizes ranks in row-major order; NULL: 0, 1, 2 ... */
    int32_t devices_per_host; /* rank r lives on host r / this; 0: not known */
} weft_mesh_options;

/* A mesh of AXES axes with SIZES[i] >= 1 ranks along axis i.  OPTIONS may be NULL; everything is
 * copied.  Ranks are at least 0, none is given twice, and at most 2^31 - 1 fit.  The caller
 * releases *OUT. */
WEFT_API WEFT_NODISCARD weft_status weft_mesh_create(int32_t axes, const int32_t *sizes,
                                                     const weft_mesh_options *options,
                                                     weft_mesh **out);

/* The mesh that TEXT describes.  WEFT_ERR_PARSE and WEFT_ERR_INVALID name position and reason. */
WEFT_API WEFT_NODISCARD weft_status weft_mesh_parse(const char *text, weft_mesh **out);

/* One more reference to MESH, which is returned. */
WEFT_API weft_mesh *weft_mesh_retain(const weft_mesh *mesh);

/* Drop a reference and set *MESH to NULL.  Accepts NULL and a pointer to NULL. */
WEFT_API void weft_mesh_release(weft_mesh **mesh);

/* Write MESH's text, which weft_mesh_parse reads back to the same mesh, as snprintf would: at most
 * CAPACITY bytes with the end.  *LENGTH, if wanted, is the whole text's length without it. */
WEFT_API WEFT_NODISCARD weft_status weft_mesh_print(const weft_mesh *mesh, char *buffer,
                                                    size_t capacity, size_t *length);

/* ---- what a mesh is ---- */

WEFT_API int32_t weft_mesh_axes(const weft_mesh *mesh); /* how many */
WEFT_API int32_t weft_mesh_size(const weft_mesh *mesh); /* ranks in all */

/* Size and name of an axis; 0 and NULL past the last one.  The name is "" where axes have none. */
WEFT_API int32_t weft_mesh_axis_size(const weft_mesh *mesh, int32_t axis);
WEFT_API const char *weft_mesh_axis_name(const weft_mesh *mesh, int32_t axis);

/* The axis called NAME, or whose index NAME is in digits.  WEFT_ERR_NOT_FOUND lists the names. */
WEFT_API WEFT_NODISCARD weft_status weft_mesh_find_axis(const weft_mesh *mesh, const char *name,
                                                        int32_t *axis);

/* The same on every machine and in every process. */
WEFT_API uint64_t weft_mesh_hash(const weft_mesh *mesh);

/* ---- ranks and coordinates ---- */

/* Coordinate of RANK into COORD[axes]; false, with COORD untouched, if RANK is not in the mesh.
 * Constant time. */
WEFT_API bool weft_mesh_coord_of(const weft_mesh *mesh, int32_t rank, int32_t *coord);

/* Rank at COORD[axes]; WEFT_ERR_INVALID for a coordinate outside the mesh. */
WEFT_API WEFT_NODISCARD weft_status weft_mesh_rank(const weft_mesh *mesh, const int32_t *coord,
                                                   int32_t *rank);

/* Rank at place POSITION of the row-major order of coordinates, or -1 outside 0 .. size - 1. */
WEFT_API int32_t weft_mesh_rank_at(const weft_mesh *mesh, int32_t position);

/* ---- meshes from meshes ---- */

/* The submesh of the axes that AXES lists ("dp,tp", or by index "0,2"), in the order listed, that
 * goes through RANK.  Its first-to-last order along each axis is MESH's.  WEFT_ERR_NOT_FOUND if
 * RANK is not in MESH. */
WEFT_API WEFT_NODISCARD weft_status weft_mesh_slice(const weft_mesh *mesh, const char *axes,
                                                    int32_t rank, weft_mesh **out);

/* The same ranks with the axes that AXES lists (NULL: all) made one, the last listed varying
 * fastest; it takes the place of the first listed.  NAME may be NULL: the old names joined by "_",
 * or none if the axes have none. */
WEFT_API WEFT_NODISCARD weft_status weft_mesh_flatten(const weft_mesh *mesh, const char *axes,
                                                      const char *name, weft_mesh **out);

/* The same ranks with AXIS taken apart into COUNT axes whose sizes multiply to its own.  NAMES are
 * needed if and only if MESH's axes have names. */
WEFT_API WEFT_NODISCARD weft_status weft_mesh_unflatten(const weft_mesh *mesh, int32_t axis,
                                                        int32_t count, const int32_t *sizes,
                                                        const char *const *names, weft_mesh **out);

/* The mesh with the axes of FIRST followed by those of SECOND, two submeshes of WITHIN that share
 * exactly one rank: concatenating the slices "dp" and "tp" gives the slice "dp,tp".  WITHIN may be
 * NULL where ranks follow strides, as in every mesh made without a rank list. */
WEFT_API WEFT_NODISCARD weft_status weft_mesh_concatenate(const weft_mesh *within,
                                                          const weft_mesh *first,
                                                          const weft_mesh *second, weft_mesh **out);

/* ---- hosts ---- */

/* Devices per host, as given; 0: not known. */
WEFT_API int32_t weft_mesh_devices_per_host(const weft_mesh *mesh);

/* Number of hosts that MESH's ranks live on; 1 if devices per host are not known.  Ask a slice for
 * the hosts that one group of an axis spans.  Linear in the number of ranks at worst. */
WEFT_API int32_t weft_mesh_hosts(const weft_mesh *mesh);

/* Host of RANK, whether in the mesh or not; 0 if devices per host are not known. */
WEFT_API int32_t weft_mesh_host_of(const weft_mesh *mesh, int32_t rank);

#ifdef __cplusplus
}
#endif
#endif
