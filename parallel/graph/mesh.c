/* mesh.c - the mesh of a graph with other sizes, and with an axis of stages. */
#include "graph/graph.h"

/* "dp,tp": the axes of INNER, all of which MESH must have. */
static weft_status list_axes(const weft_mesh *inner, const weft_mesh *mesh, struct wf_text *out)
{
    for (int32_t a = 0; a < weft_mesh_axes(inner); a++) {
        const char *name = weft_mesh_axis_name(inner, a);
        int32_t axis;
        if (name[0] == '\0')
            return wf_fail(WEFT_ERR_INVALID,
                           "mesh: the axes of the graph's mesh need names, such as dp=2,tp=4");
        if (weft_mesh_find_axis(mesh, name, &axis) != WEFT_OK)
            return wf_fail(WEFT_ERR_INVALID,
                           "mesh: the graph's mesh has the axis %s; give its size, such as %s=1",
                           name, name);
        wf_text_add(out, "%s%s", a > 0 ? "," : "", name);
    }
    return wf_text_status(out);
}

static weft_status check_count(const weft_graph *g, const weft_mesh *mesh)
{
    int32_t axes = weft_mesh_axes(mesh), own = weft_mesh_axes(g->mesh);

    if (own + (g->pipeline >= 0) == axes) return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID,
                   "mesh: it has %d axes, and the graph's mesh %d; only pp may be added", axes,
                   own);
}

weft_status wf_graph_set_mesh(weft_graph *g, const weft_mesh *mesh)
{
    struct wf_text axes = {0};
    weft_mesh *inner = NULL;
    weft_status status;

    g->pipeline = -1;
    g->whole = weft_mesh_retain(mesh != NULL ? mesh : g->mesh);
    if (mesh == NULL) return WEFT_OK;
    if (weft_mesh_find_axis(mesh, "pp", &g->pipeline) != WEFT_OK) g->pipeline = -1;
    status = list_axes(g->mesh, mesh, &axes);
    if (status == WEFT_OK) status = check_count(g, mesh);
    if (status == WEFT_OK)
        status = weft_mesh_slice(mesh, axes.data, weft_mesh_rank_at(mesh, 0), &inner);
    wf_text_free(&axes);
    if (status != WEFT_OK) return status;
    weft_mesh_release(&g->mesh);
    g->mesh = inner;
    return WEFT_OK;
}
