/* bind.c - see bind.h. */
#include "bind.h"

weft_status bind_rows(weft_comm *comm, const char *from_mesh, const char *to_mesh, weft_bound **out)
{
    const char *texts[] = {from_mesh, to_mesh};
    weft_mesh *meshes[2] = {NULL, NULL};
    weft_spec *specs[2] = {NULL, NULL};
    weft_plan *plan = NULL;
    weft_status status = WEFT_OK;

    for (int i = 0; i < 2; i++) {
        if (status == WEFT_OK) status = weft_mesh_parse(texts[i], &meshes[i]);
        if (status == WEFT_OK) status = weft_spec_parse(meshes[i], "f32[2,64] S(0)", &specs[i]);
    }
    if (status == WEFT_OK) status = weft_plan_create(specs[0], specs[1], NULL, &plan);
    if (status == WEFT_OK) status = weft_plan_bind(plan, comm, NULL, out);
    weft_plan_release(&plan);
    for (int i = 0; i < 2; i++) {
        weft_spec_release(&specs[i]);
        weft_mesh_release(&meshes[i]);
    }
    return status;
}
