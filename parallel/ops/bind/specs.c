/* specs.c - specs by their public functions. */
#include "specs.h"

#include "weft/extend.h"

#include <string.h>

weft_status wf_spec_require(const weft_spec *spec, const char *function, const char *argument)
{
    if (weft_spec_mesh(spec) != NULL) return WEFT_OK;
    return weft_object_check(spec, "weft_spec", function, argument);
}

weft_status wf_spec_place(const weft_spec *spec, const weft_placement *placements, weft_spec **out)
{
    return weft_spec_create(weft_spec_mesh(spec), weft_spec_dtype(spec), weft_spec_dims(spec),
                            weft_spec_shape(spec), placements, out);
}

bool wf_spec_has_partial(const weft_spec *spec)
{
    const weft_placement *placements = weft_spec_placements(spec);

    for (int32_t a = wf_spec_axes(spec); a-- > 0;)
        if (placements[a].kind == WEFT_PLACE_PARTIAL) return true;
    return false;
}

struct wf_tensor_type wf_spec_type(const weft_spec *spec)
{
    return (struct wf_tensor_type){weft_spec_mesh(spec), weft_spec_dtype(spec),
                                   weft_spec_dims(spec), weft_spec_shape(spec)};
}

bool wf_type_same(const struct wf_tensor_type *a, const struct wf_tensor_type *b)
{
    return a->mesh == b->mesh && a->dtype == b->dtype && a->dims == b->dims &&
           memcmp(a->shape, b->shape, (size_t)a->dims * sizeof *a->shape) == 0;
}

void wf_type_add_text(const struct wf_tensor_type *tensor, struct wf_text *out)
{
    int32_t ranks = weft_mesh_size(tensor->mesh);

    wf_text_add(out, "%s", wf_dtype_name(tensor->dtype));
    wf_shape_add_text(tensor->dims, tensor->shape, out);
    wf_text_add(out, " on a mesh of %d rank%s", ranks, WF_PLURAL(ranks));
}

int32_t wf_spec_largest_rank(const weft_spec *spec)
{
    int32_t coord[WEFT_MAX_AXES], rank = -1;

    wf_placements_largest(weft_spec_placements(spec), wf_spec_axes(spec), coord);
    return weft_mesh_rank(weft_spec_mesh(spec), coord, &rank) == WEFT_OK ? rank : -1;
}
