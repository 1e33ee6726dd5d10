/* batch.c - every rank has the same number of samples of a microbatch.
 *
 * weft can split 32 samples over 24 ranks, but a training step cannot use that: the mean over ranks
 * would not be the mean over samples, and ranks would take different times. */
#include "graph/graph.h"

#include <inttypes.h>

/* The ranks over which SPEC splits dimension 0, and their axes as text: "dp=2,tp=4". */
static int64_t count_parts(const weft_spec *spec, struct wf_text *axes)
{
    const weft_mesh *mesh = weft_spec_mesh(spec);
    int64_t parts = 1;

    for (int32_t a = 0; a < weft_mesh_axes(mesh); a++) {
        const weft_placement *p = &weft_spec_placements(spec)[a];
        const char *name = weft_mesh_axis_name(mesh, a);
        int32_t size = weft_mesh_axis_size(mesh, a);

        if ((p->kind != WEFT_PLACE_SHARD && p->kind != WEFT_PLACE_STRIDED) || p->dim != 0) continue;
        if (size == 1) continue;
        wf_text_add(axes, "%s", axes->length > 0 ? "," : "");
        if (name != NULL && name[0] != '\0')
            wf_text_add(axes, "%s=%d", name, size);
        else
            wf_text_add(axes, "axis %d of size %d", a, size);
        parts *= size;
    }
    return parts;
}

/* Append the numbers of parts that divide BATCH: all, or those next to PARTS. */
static void add_fitting(int64_t batch, int64_t parts, struct wf_text *out)
{
    enum { MOST = 16 };
    int64_t fits[2 * MOST];
    int32_t below = 0, count = 0;

    for (int64_t n = parts; n >= 1 && below < MOST; n--)
        if (batch % n == 0) fits[MOST - ++below] = n;
    for (int64_t n = parts + 1; n <= batch && n <= 4 * parts && count < MOST - below; n++)
        if (batch % n == 0) fits[MOST + count++] = n;
    for (int32_t i = MOST - below; i < MOST + count; i++)
        wf_text_add(out, "%s%" PRId64,
                    i == MOST - below       ? ""
                    : i == MOST + count - 1 ? " or "
                                            : ", ",
                    fits[i]);
}

static weft_status refuse(const weft_graph *graph, const struct wf_graph_line *line, int64_t batch,
                          int64_t parts, const char *axes)
{
    struct wf_text fitting = {0};
    int64_t less = batch / parts * parts, more = less + parts;
    weft_status status;

    add_fitting(batch, parts, &fitting);
    status = wf_text_status(&fitting);
    if (status == WEFT_OK && less > 0)
        status = wf_fail(WEFT_ERR_INVALID,
                         "graph line %u: a microbatch has %" PRId64 " samples (dimension 0 of %s), "
                         "which %s does not divide evenly; %" PRId64 " samples fit %s ranks, and "
                         "%" PRId64 " ranks take %" PRId64 " or %" PRId64 " samples",
                         line->number, batch, graph->tensors[line->outputs[0]].name, axes, batch,
                         fitting.data, parts, less, more);
    else if (status == WEFT_OK)
        status = wf_fail(WEFT_ERR_INVALID,
                         "graph line %u: a microbatch has %" PRId64 " samples (dimension 0 of %s), "
                         "fewer than the %" PRId64 " ranks of %s; %" PRId64 " samples fit %s "
                         "ranks, and %" PRId64 " ranks take %" PRId64 " samples, or a multiple",
                         line->number, batch, graph->tensors[line->outputs[0]].name, parts, axes,
                         batch, fitting.data, parts, more);
    wf_text_free(&fitting);
    return status;
}

static weft_status check_input(const weft_graph *graph, const struct wf_graph_line *line)
{
    struct wf_text axes = {0};
    weft_spec *spec = NULL;
    weft_status status = WEFT_OK;
    int64_t parts, batch;

    if (weft_spec_parse(graph->mesh, line->spec, &spec) != WEFT_OK)
        return WEFT_OK; /* wf_the check of its line says why */
    batch = weft_spec_dims(spec) > 0 ? weft_spec_shape(spec)[0] : 0;
    parts = count_parts(spec, &axes);
    if (batch > 0 && batch % parts != 0) {
        status = wf_text_status(&axes);
        if (status == WEFT_OK) status = refuse(graph, line, batch, parts, axes.data);
    }
    wf_text_free(&axes);
    weft_spec_release(&spec);
    return status;
}

weft_status wf_graph_check_batch(const weft_graph *graph)
{
    for (uint32_t i = 0; i < graph->line_count; i++)
        if (graph->lines[i].kind == WF_GRAPH_INPUT) WF_TRY(check_input(graph, &graph->lines[i]));
    return WEFT_OK;
}
