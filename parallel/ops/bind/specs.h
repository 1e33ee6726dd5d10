/* specs.h - specs by their public functions, and their layouts as values. */
#ifndef WEFT_OPS_BIND_SPECS_H
#define WEFT_OPS_BIND_SPECS_H

#include "base/layout/layout.h"

/* The axes of SPEC's mesh. */
static inline int32_t wf_spec_axes(const weft_spec *spec)
{
    return weft_mesh_axes(weft_spec_mesh(spec));
}

/* A tensor, whatever its layout. */
struct wf_tensor_type {
    const weft_mesh *mesh;
    uint32_t dtype;
    int32_t dims;
    const int64_t *shape; /* borrowed */
};

struct wf_tensor_type wf_spec_type(const weft_spec *spec);
bool wf_type_same(const struct wf_tensor_type *a, const struct wf_tensor_type *b);
/* "f32[8,16] on a mesh of 8 ranks" */
void wf_type_add_text(const struct wf_tensor_type *tensor, struct wf_text *out);

/* WEFT_ERR_INVALID: SPEC, which is ARGUMENT of FUNCTION or of the struct FUNCTION, is not a
 * spec. */
weft_status wf_spec_require(const weft_spec *spec, const char *function,
                            const char *argument) WF_NODISCARD;
/* The spec of the same tensor with PLACEMENTS, one per axis of its mesh. */
weft_status wf_spec_place(const weft_spec *spec, const weft_placement *placements,
                          weft_spec **out) WF_NODISCARD;
/* True if a placement of SPEC is partial. */
bool wf_spec_has_partial(const weft_spec *spec);
/* The rank with the largest shard; the others have no more indices in any dimension. */
int32_t wf_spec_largest_rank(const weft_spec *spec);

#endif
