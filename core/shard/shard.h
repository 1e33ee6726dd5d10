/* shard.h - the internals of a spec.  The arithmetic of layouts is in base/layout. */
#ifndef WEFT_SHARD_SHARD_H
#define WEFT_SHARD_SHARD_H

#include "base/base.h"
#include "base/fork.h"
#include "base/layout/layout.h"
#include "mesh/mesh.h"
#include "weft/spec.h"

struct weft_spec {
    struct wf_interned head;
    int64_t elements;
    struct wf_layout layout; /* holds a reference to its mesh; its sizes and starts are LISTS */
    int64_t lists[];
};

/* Set the mesh of LAYOUT, and what LAYOUT has of it. */
static inline void wf_layout_set_mesh(struct wf_layout *layout, const weft_mesh *mesh)
{
    layout->mesh = mesh;
    layout->axes = mesh->axes;
    for (int32_t i = 0; i < mesh->axes; i++)
        layout->ranks[i] = mesh->axis[i].size;
}

/* ---- spec.c ---- */

/* The spec of LAYOUT, of which the mesh is set and which need not be settled.  The mesh is
 * retained. */
weft_status wf_spec_intern(struct wf_layout *layout, weft_spec **out) WF_NODISCARD;
/* ---- global.c ---- */

/* weft_spec_from_shards for FUNCTION, whose mesh and placements are valid. */
weft_status wf_spec_from_shards(const char *function, const weft_mesh *mesh, enum weft_dtype dtype,
                                int32_t dims, const weft_placement *placements,
                                const int64_t *shards, weft_spec **out) WF_NODISCARD;

/* ---- text.c ---- */

/* weft_placements_parse for the axes of MESH, which errors name. */
weft_status wf_placements_parse_on(const weft_mesh *mesh, const char *text,
                                   weft_placement *placements) WF_NODISCARD;

/* ---- foreign.c ---- */

/* Add "; did you mean S(0)?" if the text at WORD, a name of LENGTH and perhaps something in
 * brackets, is another system's placement. */
void wf_placement_suggest(const char *word, size_t length, struct wf_text *out);
/* The reduction that NAME means in other systems ("mean" is "avg"); NULL: none. */
const char *wf_reduction_meant(const char *name, size_t length);

/* ---- local.c ---- */

/* The shard of RANK. */
void wf_shard_of(const weft_spec *spec, int32_t rank, struct wf_shard *out);

/* ---- segment.c ---- */

/* As weft_spec_segment, for a shard of a tensor of SHAPE. */
bool wf_shard_segment(const struct wf_shard *shard, const int64_t *shape, const int64_t *strides,
                      int64_t position, weft_segment *out);

#endif
