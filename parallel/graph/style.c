/* style.c - layouts of a graph that has none of its own, by a list of styles. */
#include "graph/graph.h"
#include "weft/layout.h"

#include <stdlib.h>
#include <string.h>

weft_status wf_graph_style(const weft_graph *g, int32_t tensor, uint8_t kind, weft_spec **spec)
{
    enum weft_style_part part = WEFT_STYLE_OUTPUT;
    weft_spec *styled = NULL;

    if (g->styles == NULL) return WEFT_OK;
    if (kind == WF_GRAPH_PARAM)
        part = weft_spec_dims(*spec) > 1 ? WEFT_STYLE_WEIGHT : WEFT_STYLE_BIAS;
    WF_TRY(weft_styles_apply(g->styles, g->tensors[tensor].name, part, *spec, &styled));
    weft_spec_release(spec);
    *spec = styled;
    return WEFT_OK;
}

/* ---- layout files ---- */

/* A line of the file. */
struct entry {
    const char *pattern; /* of the styles, or a name */
    char *placements;
    const char *name; /* of the parameter */
    bool is_named;    /* the pattern is the name */
};

/* The longest pattern that gives NAME a layout; NAME itself if none does. */
static const char *longest_pattern(const weft_graph *g, const char *name)
{
    const char *longest = NULL, *pattern;

    for (int32_t axis = 0; axis < weft_mesh_axes(g->mesh); axis++)
        if (weft_styles_find(g->styles, name, axis, &pattern) == WEFT_OK &&
            (longest == NULL || strlen(pattern) > strlen(longest)))
            longest = pattern;
    return longest != NULL ? longest : name;
}

static weft_status set_entry(const weft_graph *g, const struct wf_graph_tensor *tensor,
                             struct entry *out)
{
    struct wf_text placements = {0};

    wf_text_placements(&placements, tensor->spec);
    out->name = tensor->name;
    out->pattern = longest_pattern(g, tensor->name);
    return wf_text_take(&placements, &out->placements);
}

static void name_entry(struct entry *entry)
{
    entry->pattern = entry->name;
    entry->is_named = true;
}

/* Parameters with the same pattern and different placements get lines of their own. */
static void name_ambiguous(struct entry *entries, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *pattern = entries[i].pattern;
        bool ambiguous = false;

        for (size_t j = i + 1; j < count && !entries[i].is_named; j++)
            if (strcmp(pattern, entries[j].pattern) == 0 &&
                strcmp(entries[i].placements, entries[j].placements) != 0)
                ambiguous = true;
        for (size_t j = i; j < count && ambiguous; j++)
            if (strcmp(pattern, entries[j].pattern) == 0) name_entry(&entries[j]);
    }
}

/* Names first, then longer patterns before shorter ones. */
static int compare_entries(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    size_t m = strlen(x->pattern), n = strlen(y->pattern);

    if (x->is_named != y->is_named) return x->is_named ? -1 : 1;
    if (m != n) return m > n ? -1 : 1;
    return strcmp(x->pattern, y->pattern);
}

/* The line of the file that gives ENTRY its layout. */
static const struct entry *find_first(const struct entry *entries, const struct entry *entry)
{
    while (!wf_pattern_matches(entries->pattern, entry->name))
        entries++;
    return entries;
}

/* Sort ENTRIES into the order of the file.  A parameter to which the pattern of others gives
 * another layout gets a line of its own.  Its pattern may leave the file, so all are looked at
 * again. */
static void order_entries(struct entry *entries, size_t count)
{
    bool again = true;

    while (again) {
        again = false;
        qsort(entries, count, sizeof *entries, compare_entries);
        for (size_t i = 0; i < count; i++) {
            struct entry *entry = &entries[i];
            if (strcmp(find_first(entries, entry)->placements, entry->placements) == 0) continue;
            name_entry(entry);
            again = true;
        }
    }
}

static weft_status add_entries(const weft_graph *g, struct entry *entries, size_t count,
                               struct wf_text *out)
{
    name_ambiguous(entries, count);
    order_entries(entries, count);
    wf_text_add(out, "mesh ");
    wf_text_mesh(out, g->mesh);
    wf_text_char(out, '\n');
    for (size_t i = 0; i < count; i++)
        if (i == 0 || strcmp(entries[i].pattern, entries[i - 1].pattern) != 0)
            wf_text_add(out, "%-36s %s\n", entries[i].pattern, entries[i].placements);
    return wf_text_status(out);
}

/* The file gives every parameter the layout that the check has proved. */
static weft_status prove(const struct entry *entries, size_t count, const char *text)
{
    weft_layout_file *layout = NULL;
    weft_status status = weft_layout_file_parse(text, NULL, &layout);

    for (size_t i = 0; i < count && status == WEFT_OK; i++) {
        const char *found = "";

        status = weft_layout_file_find(layout, entries[i].name, &found);
        if (status == WEFT_OK && strcmp(found, entries[i].placements) != 0)
            status = wf_fail(WEFT_ERR_INTERNAL, "the layout file gives %.100s %.100s, not %.100s",
                             entries[i].name, found, entries[i].placements);
    }
    weft_layout_file_release(&layout);
    return status;
}

weft_status wf_graph_add_layout(const weft_graph *g, struct wf_text *out)
{
    struct entry *entries = wf_calloc(g->line_count + 1, sizeof *entries);
    weft_status status = WEFT_OK;
    size_t count = 0;

    if (entries == NULL) return wf_fail_memory((g->line_count + 1) * sizeof *entries);
    for (uint32_t i = 0; i < g->line_count && status == WEFT_OK; i++)
        if (g->lines[i].kind == WF_GRAPH_PARAM)
            status = set_entry(g, &g->tensors[g->lines[i].outputs[0]], &entries[count++]);
    if (status == WEFT_OK) status = add_entries(g, entries, count, out);
    if (status == WEFT_OK) status = prove(entries, count, out->data);
    while (count > 0)
        wf_free(entries[--count].placements);
    wf_free(entries);
    return status;
}
