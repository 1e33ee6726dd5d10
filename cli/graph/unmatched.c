/* unmatched.c - lines of styles that match no name of a graph: as a rule they are misspelt. */
#include "graph.h"

#include <string.h>

static bool matches_a_name(const struct graph *g, const char *pattern)
{
    for (uint32_t i = 0; i < g->tensor_count; i++)
        if (wf_pattern_matches(pattern, g->tensors[i].name)) return true;
    return false;
}

weft_status graph_add_unmatched(const struct graph *g, const char *styles, struct wf_text *out)
{
    static const char blanks[] = " \t\r";
    bool has_mesh =
        false; /* the first line with a field has the mesh, the others begin with a pattern */

    for (uint32_t number = 1; *styles != '\0'; number++) {
        const char *field = styles + strspn(styles, blanks);
        size_t length = strcspn(field, " \t\r\n#");

        if (length > 0 && has_mesh) {
            char *pattern = wf_strndup(field, length);

            if (pattern == NULL) return wf_fail_memory(length);
            if (!matches_a_name(g, pattern))
                wf_text_add(out, "weft check: styles line %u: no name of the graph matches %s\n",
                            number, pattern);
            wf_free(pattern);
        }
        has_mesh = has_mesh || length > 0;
        styles += strcspn(styles, "\n");
        styles += *styles == '\n';
    }
    return wf_text_status(out);
}
