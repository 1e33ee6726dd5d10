/* unmatched.c - lines of styles that decide nothing in a graph: as a rule they are misspelt, or in
 * the wrong order. */
#include "graph/graph.h"

#include <string.h>

struct style_line {
    uint32_t number;
    char *pattern, *axis;
};

/* Append what is wrong with LINE, if anything is. */
static weft_status add_line(const weft_graph *g, const struct style_line *line, struct wf_text *out)
{
    const char *taken = NULL, *by = NULL;
    int32_t axis = 0;

    WF_TRY(weft_mesh_find_axis(weft_styles_mesh(g->styles), line->axis, &axis));
    for (uint32_t i = 0; i < g->tensor_count; i++) {
        const char *name = g->tensors[i].name;

        if (!wf_pattern_matches(line->pattern, name)) continue;
        WF_TRY(weft_styles_find(g->styles, name, axis, &by));
        if (strcmp(by, line->pattern) == 0) return WEFT_OK;
        taken = name;
    }
    if (taken == NULL)
        wf_text_add(out, "styles line %u: no name of the graph matches %s\n", line->number,
                    line->pattern);
    else
        wf_text_add(out,
                    "styles line %u: %s decides nothing: %s of an earlier line "
                    "decides %s\n",
                    line->number, line->pattern, by, taken);
    return WEFT_OK;
}

weft_status wf_graph_add_unmatched(const weft_graph *g, const char *text, struct wf_text *out)
{
    static const char blanks[] = " \t\r", ends[] = " \t\r\n#";
    bool has_mesh =
        false; /* the first line with a field has the mesh, the others begin with a pattern */
    weft_status status = WEFT_OK;

    for (uint32_t number = 1; *text != '\0' && status == WEFT_OK; number++) {
        const char *field = text + strspn(text, blanks);
        size_t length = strcspn(field, ends);
        const char *axis = field + length + strspn(field + length, blanks);

        if (length > 0 && has_mesh) {
            struct style_line line = {number, wf_strndup(field, length),
                                      wf_strndup(axis, strcspn(axis, ends))};

            status = line.pattern != NULL && line.axis != NULL ? add_line(g, &line, out)
                                                               : wf_fail_memory(length);
            wf_free(line.pattern);
            wf_free(line.axis);
        }
        has_mesh = has_mesh || length > 0;
        text += strcspn(text, "\n");
        text += *text == '\n';
    }
    return status == WEFT_OK ? wf_text_status(out) : status;
}
