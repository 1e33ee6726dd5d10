/* describe.c - what libweft prints of layouts, appended to a text. */
#include "graph/graph.h"

#include <string.h>

typedef weft_status printer(const void *object, char *text, size_t size, size_t *needed);

static weft_status print_mesh(const void *object, char *text, size_t size, size_t *needed)
{
    return weft_mesh_print(object, text, size, needed);
}

static weft_status print_spec(const void *object, char *text, size_t size, size_t *needed)
{
    return weft_spec_print(object, text, size, needed);
}

/* Append the text that PRINT writes for OBJECT, from behind AFTER on. */
static void add(printer *print, const void *object, const char *after, struct wf_text *out)
{
    size_t length = 0;
    char *buffer = NULL;
    const char *text;

    if (print(object, NULL, 0, &length) == WEFT_OK) buffer = wf_alloc(length + 1);
    if (buffer == NULL || print(object, buffer, length + 1, NULL) != WEFT_OK) {
        out->failed = true;
    } else {
        text = strstr(buffer, after);
        if (text != NULL) wf_text_add(out, "%s", text + strlen(after));
    }
    wf_free(buffer);
}

void wf_graph_add_spec(const weft_spec *spec, struct wf_text *out)
{
    add(print_spec, spec, "", out);
}

void wf_graph_add_placements(const weft_spec *spec, struct wf_text *out)
{
    add(print_spec, spec, "] ", out);
}

void wf_graph_add_mesh(const weft_mesh *mesh, struct wf_text *out)
{
    add(print_mesh, mesh, "", out);
}
