/* mesh.h - the internals of a mesh. */
#ifndef WEFT_MESH_MESH_H
#define WEFT_MESH_MESH_H

#include "base/base.h"
#include "base/fork.h"
#include "weft/mesh.h"

enum {
    WF_MESH_MODES = 31,         /* each has a size of at least 2, and their product is below 2^31 */
    WF_MESH_LIST_MAX = 1 << 24, /* longest explicit rank list */
    WF_MESH_NOBODY = -1         /* no rank */
};

/* One digit of a rank.  An axis whose ranks follow one stride has one mode, an axis made by
 * flattening may have several, and an axis of size 1 has none. */
struct wf_mode {
    int32_t size, stride; /* stride: ranks between neighbours */
    int32_t axis, weight; /* the digit counts WEIGHT steps of coordinate AXIS */
};

struct wf_axis {
    int32_t size;
    char name[WEFT_MAX_AXIS_NAME + 1];
};

/* A mesh is regular or listed.  Regular: rank = origin + sum of digit * stride.  The modes nest:
 * each stride is larger than the reach of all smaller ones together, so that a rank has one set of
 * digits.  Listed: `ranks` in row-major order, and a hash table from ranks to positions.  Whatever
 * is regular is stored as such: a mesh has one form. */
struct weft_mesh {
    struct wf_interned head;
    int32_t axes, size, devices_per_host;
    struct wf_axis axis[WEFT_MAX_AXES];
    int32_t origin, mode_count;
    struct wf_mode modes[WF_MESH_MODES]; /* in row-major order of the coordinates */
    uint8_t by_stride[WF_MESH_MODES];    /* indices into modes, largest stride first */
    int32_t *ranks;                      /* NULL: regular */
    int32_t *positions;                  /* open addressing; -1: free */
    uint32_t position_mask;
    int32_t hosts; /* of a listed mesh; those of a regular one are counted on demand */
};

/* ---- coord.c ---- */

int32_t wf_mesh_rank(const weft_mesh *mesh, const int32_t *coord);
/* Write the coordinate of RANK to COORD[axes]; false, with COORD unchanged, for a non-member. */
bool wf_mesh_coord(const weft_mesh *mesh, int32_t rank, int32_t *coord);
/* WEFT_ERR_INVALID if COORD is outside of MESH; the text does not name a function. */
weft_status wf_mesh_check_coord(const weft_mesh *mesh, const int32_t *coord) WF_NODISCARD;
/* Coordinate of POSITION in row-major order. */
void wf_mesh_coord_at(const weft_mesh *mesh, int32_t position, int32_t *coord);
/* Position of RANK in row-major order, or -1. */
int32_t wf_mesh_index(const weft_mesh *mesh, int32_t rank);
/* Position of RANK in a listed mesh's list, or -1. */
int32_t wf_mesh_position(const weft_mesh *mesh, int32_t rank);
/* Write the ranks whose coordinates differ from RANK's in the axes of AXES (a bit per axis) at most
 * to OUT, which has room for all ranks of MESH.  Returns their number; 0: MESH does not have RANK.
 */
int32_t wf_mesh_group(const weft_mesh *mesh, uint32_t axes, int32_t rank, int32_t *out);

/* ---- build.c: from a draft to the one mesh like it ---- */

/* Allocate a draft: zeroed, with the sizes and names of its axes and its size set, without modes
 * and ranks.  NAMES may be NULL. */
weft_status wf_mesh_draft(int32_t axes, const int32_t *sizes, const char *const *names,
                          weft_mesh **out) WF_NODISCARD;
/* Append a mode to the draft's axis AXIS.  Modes are given in row-major order.  Modes of size 1 are
 * left out, and a mode that continues its neighbour in the same axis is merged with it. */
void wf_mesh_add_mode(weft_mesh *draft, int32_t axis, int32_t size, int32_t stride);
/* Give the draft the modes of ranks FIRST, FIRST + STEP, ... in row-major order. */
void wf_mesh_follow(weft_mesh *draft, int32_t first, int32_t step);
/* Allocate the rank list of the draft; WEFT_ERR_INVALID if it would be too long. */
weft_status wf_mesh_give_list(weft_mesh *draft) WF_NODISCARD;
/* Set the fields that follow from the sizes and strides of the modes.  False if the modes do not
 * nest, or reach beyond the largest rank: then they do not describe a regular mesh. */
bool wf_mesh_settle_modes(weft_mesh *draft) WF_NODISCARD;
/* Make the mesh from DRAFT, whose modes or ranks are set.  Takes ownership of DRAFT, also on
 * failure. */
weft_status wf_mesh_finish_take(weft_mesh *draft, weft_mesh **out) WF_NODISCARD;
void wf_mesh_free(weft_mesh *draft);

/* ---- axes.c: naming axes ---- */

/* The axes that TEXT lists by name or index, none twice, into AXES[WEFT_MAX_AXES]. */
weft_status wf_mesh_read_axes(const weft_mesh *mesh, const char *text, int32_t *axes,
                              int32_t *count) WF_NODISCARD;

/* ---- derive.c ---- */

/* As weft_mesh_slice, for the axes AXES[0 .. COUNT). */
weft_status wf_mesh_slice(const weft_mesh *mesh, int32_t count, const int32_t *axes, int32_t rank,
                          weft_mesh **out) WF_NODISCARD;

/* The same ranks in the same order under other axes, whose SIZES multiply to MESH's size.  NAMES
 * may be NULL. */
weft_status wf_mesh_reshape(const weft_mesh *mesh, int32_t axes, const int32_t *sizes,
                            const char *const *names, weft_mesh **out) WF_NODISCARD;

/* ---- hosts.c ---- */

/* Count the hosts of a listed mesh. */
weft_status wf_mesh_count_hosts(weft_mesh *draft) WF_NODISCARD;

/* ---- text.c ---- */

void wf_mesh_add_text(const weft_mesh *mesh, struct wf_text *text);

#endif
