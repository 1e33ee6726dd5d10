/* spec.c - specs from options. */
#include "common/cli.h"

weft_status cli_spec(const weft_mesh *mesh, enum weft_dtype dtype, int32_t dims,
                     const int64_t *shape, const char *placements, weft_spec **out)
{
    const weft_placement replicated[WEFT_MAX_AXES] = {{.kind = WEFT_PLACE_REPLICATE}};
    weft_spec *whole = NULL;
    weft_status status;

    WF_TRY(weft_spec_create(mesh, dtype, dims, shape, replicated, &whole));
    status = weft_spec_with(whole, placements, out);
    weft_spec_release(&whole);
    return status;
}
