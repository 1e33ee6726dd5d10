/* held.c - the bytes of inputs and parameters on the rank that holds most.
 *
 * The first coordinate of an axis holds most of every tensor, unless sizes are listed or a tensor
 * has an owner.  Of an axis with owners only those and the first coordinate are looked at, so the
 * work depends on the text and not on the number of ranks. */
#include "graph/graph.h"

#include <stdlib.h>
#include <string.h>

/* Coordinates of an axis, one of which holds most; ascending. */
struct candidates {
    int32_t *list;
    size_t count, at; /* at: the one that is looked at */
    int64_t stride;   /* of the axis, in positions of the mesh */
};

static const weft_spec *declared_spec(const weft_graph *g, const struct wf_graph_line *line)
{
    bool declares = line->kind == WF_GRAPH_INPUT || line->kind == WF_GRAPH_PARAM;

    return declares ? g->tensors[line->outputs[0]].spec : NULL;
}

/* Bytes of the inputs and parameters on RANK. */
static uint64_t held_by(const weft_graph *g, int32_t rank)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < g->line_count; i++) {
        const weft_spec *spec = declared_spec(g, &g->lines[i]);
        if (spec != NULL)
            sum = wf_add_capped(
                sum, wf_mul_capped(weft_spec_shard_bytes(spec, rank), g->lines[i].repeat));
    }
    return sum;
}

static int compare_coordinates(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

    return (x > y) - (x < y);
}

static void sort_distinct(struct candidates *c)
{
    size_t kept = 1;

    qsort(c->list, c->count, sizeof *c->list, compare_coordinates);
    for (size_t i = 1; i < c->count; i++)
        if (c->list[i] != c->list[kept - 1]) c->list[kept++] = c->list[i];
    c->count = kept;
}

static weft_status find_candidates(const weft_graph *g, int32_t axis, struct candidates *out)
{
    int32_t size = weft_mesh_axis_size(g->mesh, axis);
    bool sizes = false;
    size_t owners = 0, room;

    for (uint32_t i = 0; i < g->line_count; i++) {
        const weft_spec *spec = declared_spec(g, &g->lines[i]);
        if (spec == NULL) continue;
        sizes = sizes || weft_spec_placements(spec)[axis].kind == WEFT_PLACE_SIZES;
        owners += weft_spec_placements(spec)[axis].kind == WEFT_PLACE_OWNER;
    }
    room = sizes ? (size_t)size : owners + 1;
    out->list = wf_calloc(room, sizeof *out->list);
    if (out->list == NULL) return wf_fail_memory(room * sizeof *out->list);
    out->count = sizes ? room : 1;
    for (size_t i = 0; i < out->count; i++)
        out->list[i] = (int32_t)i;
    for (uint32_t i = 0; i < g->line_count && !sizes; i++) {
        const weft_spec *spec = declared_spec(g, &g->lines[i]);
        if (spec != NULL && weft_spec_placements(spec)[axis].kind == WEFT_PLACE_OWNER)
            out->list[out->count++] = weft_spec_placements(spec)[axis].owner;
    }
    sort_distinct(out);
    return WEFT_OK;
}

/* Set AXES to the next combination of coordinates; false after the last one. */
static bool advance(struct candidates *axes, int32_t count)
{
    for (int32_t a = count - 1; a >= 0; a--) {
        if (++axes[a].at < axes[a].count) return true;
        axes[a].at = 0;
    }
    return false;
}

weft_status wf_graph_count_held(weft_graph *g)
{
    struct candidates axes[WEFT_MAX_AXES];
    int32_t count = weft_mesh_axes(g->mesh);
    int64_t stride = 1;
    weft_status status = WEFT_OK;

    memset(axes, 0, sizeof axes);
    for (int32_t a = count - 1; a >= 0 && status == WEFT_OK; a--) {
        axes[a].stride = stride;
        stride *= weft_mesh_axis_size(g->mesh, a);
        status = find_candidates(g, a, &axes[a]);
    }
    if (status == WEFT_OK) {
        do {
            int64_t position = 0;
            uint64_t bytes;
            for (int32_t a = 0; a < count; a++)
                position += axes[a].list[axes[a].at] * axes[a].stride;
            bytes = held_by(g, weft_mesh_rank_at(g->mesh, (int32_t)position));
            if (bytes > g->held) g->held = bytes;
        } while (advance(axes, count));
    }
    for (int32_t a = 0; a < count; a++)
        wf_free(axes[a].list);
    return status;
}
