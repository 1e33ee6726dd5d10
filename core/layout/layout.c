/* layout.c - layout files: a mesh, and placements by patterns of names. */
#include "base/arena.h"
#include "base/kinds.h"
#include "mesh/mesh.h"
#include "shard/shard.h"

#include "weft/layout.h"

#include <string.h>

enum { LISTED_MOST = 256 }; /* patterns that the lists of one line stand for */

struct rule {
    const char *pattern, *placements;
    const char *head_size; /* "": the line says nothing of heads */
    int32_t head_dim;
    uint32_t line;
};

struct weft_layout_file {
    uint64_t made;
    weft_mesh *mesh;
    struct wf_arena arena;
    struct rule *rules;
    size_t count, capacity;
};

/* ---- the text ---- */

static const char *keep(weft_layout_file *layout, struct wf_passage piece)
{
    return wf_arena_text(&layout->arena, piece.start, piece.length);
}

/* MESH cannot replace OWN, whose text is TEXT. */
static weft_status refuse_mesh(const char *text, const weft_mesh *own, const weft_mesh *mesh)
{
    int32_t axes = weft_mesh_axes(own), others = weft_mesh_axes(mesh);
    struct wf_text other = {0};

    wf_mesh_add_text(mesh, &other);
    return wf_fail_text(WEFT_ERR_INVALID, &other,
                        "the mesh %s of the layout has %d ax%s, and the mesh %s, which replaces "
                        "it, %d; it must have as many, because each line has a placement for each "
                        "axis",
                        text, axes, axes == 1 ? "is" : "es", other.data, others);
}

static weft_status read_mesh(weft_layout_file *layout, struct wf_scan *scan, const weft_mesh *mesh)
{
    bool is_empty = !wf_scan_next_line(scan);
    struct wf_scan at = *scan;
    weft_status status;
    const char *text;

    if (is_empty || !wf_scan_word(scan, "mesh") || !wf_is_blank(wf_scan_peek(scan))) {
        if (is_empty || mesh == NULL)
            return wf_scan_fail(scan, "layout", "expected the mesh, such as \"mesh tp=4\"");
        *scan = at; /* the text has patterns only */
        layout->mesh = weft_mesh_retain(mesh);
        return WEFT_OK;
    }
    wf_scan_space(scan);
    at = *scan;
    text = keep(layout, wf_scan_rest(scan));
    if (text == NULL) return wf_fail_memory(strlen(scan->text));
    status = weft_mesh_parse(text, &layout->mesh);
    if (status == WEFT_ERR_NO_MEMORY) return status;
    if (status != WEFT_OK) return wf_scan_refuse(&at, "layout", "%s", weft_last_error());
    if (mesh == NULL) return WEFT_OK;
    if (weft_mesh_axes(mesh) != weft_mesh_axes(layout->mesh))
        return refuse_mesh(text, layout->mesh, mesh);
    weft_mesh_release(&layout->mesh);
    layout->mesh = weft_mesh_retain(mesh);
    return WEFT_OK;
}

/* Numbers of a model are not known yet: any will do for a check. */
static weft_status find_any(void *state, const char *name, size_t length, int64_t *out)
{
    (void)state;
    (void)name;
    (void)length;
    *out = 1;
    return WEFT_OK;
}

static weft_status check_placements(const weft_layout_file *layout, const struct wf_scan *at,
                                    const char *text)
{
    weft_placement placements[WEFT_MAX_AXES];
    int32_t axes = weft_mesh_axes(layout->mesh);
    struct wf_text filled = {0};
    weft_status status;
    bool is_partial = false;

    if (text[0] == '\0') return wf_scan_fail(at, "layout", "expected placements, such as S(0)");
    status = wf_text_fill(text, find_any, NULL, &filled);
    if (status == WEFT_OK) status = wf_placements_parse_on(layout->mesh, filled.data, placements);
    wf_text_free(&filled);
    if (status == WEFT_ERR_NO_MEMORY) return status;
    if (status != WEFT_OK) return wf_scan_refuse(at, "layout", "%s", weft_last_error());
    for (int32_t a = 0; a < axes; a++)
        is_partial = is_partial || placements[a].kind == WEFT_PLACE_PARTIAL;
    weft_placements_free(axes, placements);
    return is_partial ? wf_scan_refuse(at, "layout", "a checkpoint has no partial placement")
                      : WEFT_OK;
}

/* The size of heads in TEXT must be a number, or a product with numbers of the model. */
static weft_status check_head_size(const struct wf_scan *at, int32_t dim, const char *text)
{
    struct wf_text filled = {0};
    weft_status status = wf_text_fill(text, find_any, NULL, &filled);
    int64_t size = 0;

    if (status == WEFT_OK) {
        struct wf_scan scan = {.text = filled.data != NULL ? filled.data : ""};

        status = wf_scan_int(&scan, "the indices of a head, such as 128 or $head_dim", &size);
        if (status == WEFT_ERR_NO_MEMORY) {
            wf_text_free(&filled);
            return status;
        }
        if (status != WEFT_OK || size < 1 || !wf_scan_end(&scan)) {
            wf_text_free(&filled);
            return wf_scan_refuse(at, "layout",
                                  "heads%d(%s): expected a number from 1 or a product of numbers, "
                                  "such as 128 or $head_dim",
                                  dim, text);
        }
    }
    wf_text_free(&filled);
    if (status == WEFT_OK || status == WEFT_ERR_NO_MEMORY) return status;
    return wf_scan_refuse(at, "layout", "%s", weft_last_error());
}

/* Set *LENGTH to the length of the placements in REST, and take the heads behind them, such as
 * heads0($head_dim), into RULE. */
static weft_status read_heads(weft_layout_file *layout, const struct wf_scan *at,
                              struct wf_passage rest, struct rule *rule, size_t *length)
{
    static const char word[] = "heads";
    const size_t most = sizeof word - 1;
    size_t i = 1;

    rule->head_size = "";
    *length = rest.length;
    while (i + most <= rest.length &&
           (!wf_is_blank(rest.start[i - 1]) || memcmp(rest.start + i, word, most) != 0))
        i++;
    if (i + most > rest.length) return WEFT_OK;
    *length = i;
    while (*length > 0 && wf_is_blank(rest.start[*length - 1]))
        --*length;
    i += most;
    if (rest.length < i + 4 || rest.start[i] < '0' || rest.start[i] >= '0' + WEFT_MAX_DIMS ||
        rest.start[i + 1] != '(' || rest.start[rest.length - 1] != ')')
        return wf_scan_refuse(at, "layout",
                              "behind placements, expected heads, a dimension and a size, such as "
                              "heads0($head_dim)");
    rule->head_dim = rest.start[i] - '0';
    rule->head_size = keep(layout, (struct wf_passage){rest.start + i + 2, rest.length - (i + 3)});
    if (rule->head_size == NULL) return wf_fail_memory(rest.length);
    return check_head_size(at, rule->head_dim, rule->head_size);
}

/* A pattern whose names all match an earlier one decides nothing. */
static weft_status check_is_seen(const weft_layout_file *layout, const struct wf_scan *at,
                                 const char *pattern)
{
    for (size_t i = 0; i < layout->count; i++) {
        const struct rule *earlier = &layout->rules[i];

        if (wf_pattern_covers(earlier->pattern, pattern))
            return wf_scan_refuse(at, "layout",
                                  "pattern %.200s decides nothing: the pattern %.200s of line %u "
                                  "matches all its names; put this line before line %u, or remove "
                                  "it",
                                  pattern, earlier->pattern, earlier->line, earlier->line);
    }
    return WEFT_OK;
}

/* Add RULE once for each combination of the lists, such as {q,k,v}, in its pattern.  AT is where
 * the line begins, whose first rule has number FIRST. */
static weft_status add_rules(weft_layout_file *layout, const struct wf_scan *at, size_t first,
                             const struct rule *rule)
{
    const char *open = strchr(rule->pattern, '{'), *close, *item;
    struct rule one = *rule;

    if (open == NULL) {
        WF_TRY(check_is_seen(layout, at, rule->pattern));
        WF_TRY(wf_grow(&layout->rules, sizeof *layout->rules, layout->count, &layout->capacity));
        layout->rules[layout->count++] = *rule;
        return WEFT_OK;
    }
    close = open + strcspn(open, "}");
    if (*close == '\0' || memchr(open, ',', (size_t)(close - open)) == NULL)
        return wf_scan_refuse(at, "layout",
                              "in pattern %.200s, { begins a list such as {q,k,v}; * matches any "
                              "text",
                              rule->pattern);
    for (item = open; item < close;) {
        size_t length = strcspn(++item, ",}");
        struct wf_text text = {0};

        wf_text_add(&text, "%.*s%.*s%s", (int)(open - rule->pattern), rule->pattern, (int)length,
                    item, close + 1);
        one.pattern = text.failed ? NULL : wf_arena_text(&layout->arena, text.data, text.length);
        wf_text_free(&text);
        if (one.pattern == NULL) return wf_fail_memory(length + 1);
        if (layout->count - first == LISTED_MOST)
            return wf_scan_refuse(at, "layout", "the lists stand for more than %d patterns",
                                  LISTED_MOST);
        WF_TRY(add_rules(layout, at, first, &one));
        item += length;
    }
    return WEFT_OK;
}

static weft_status read_rule(weft_layout_file *layout, struct wf_scan *scan)
{
    struct rule rule = {0};
    struct wf_scan begin = *scan, at;
    struct wf_passage rest;

    rule.line = wf_scan_line(scan);
    rule.pattern = keep(layout, wf_scan_field(scan));
    if (rule.pattern == NULL) return wf_fail_memory(sizeof rule);
    wf_scan_space(scan);
    at = *scan;
    rest = wf_scan_rest(scan);
    WF_TRY(read_heads(layout, &at, rest, &rule, &rest.length));
    rule.placements = keep(layout, rest);
    if (rule.placements == NULL) return wf_fail_memory(sizeof rule);
    WF_TRY(check_placements(layout, &at, rule.placements));
    return add_rules(layout, &begin, layout->count, &rule);
}

static weft_status read_layout(weft_layout_file *layout, const char *text, const weft_mesh *mesh)
{
    struct wf_scan scan = {.text = text};

    WF_TRY(read_mesh(layout, &scan, mesh));
    while (wf_scan_next_line(&scan))
        WF_TRY(read_rule(layout, &scan));
    return WEFT_OK;
}

/* PATH is NULL for a TEXT that is not of a file. */
static weft_status make_layout(const char *text, const char *path, const weft_mesh *mesh,
                               weft_layout_file **out)
{
    weft_layout_file *layout = wf_calloc(1, sizeof *layout);
    weft_status status;

    if (layout == NULL) return wf_fail_memory(sizeof *layout);
    layout->made = WF_OF_KIND(WF_KIND_LAYOUT);
    status = read_layout(layout, text, mesh);
    if (status == WEFT_OK) {
        *out = layout;
        return WEFT_OK;
    }
    weft_layout_file_release(&layout);
    return path != NULL ? wf_fail_context(status, "%s", path) : status;
}

weft_status weft_layout_file_parse(const char *text, const weft_mesh *mesh, weft_layout_file **out)
{
    WF_TRY(wf_require(text, "weft_layout_file_parse: text"));
    if (mesh != NULL) WF_TRY(wf_require_kind(mesh, WF_KIND_MESH, "weft_layout_file_parse: mesh"));
    WF_TRY(wf_require(out, "weft_layout_file_parse: out"));
    return wf_fail_named(make_layout(text, NULL, mesh, out), "weft_layout_file_parse");
}

/* ---- files ---- */

extern const struct wf_shipped_list wf_shipped_layouts; /* cmake/weft_shipped.cmake */

weft_status weft_layout_file_open(const char *path, const weft_mesh *mesh, weft_layout_file **out)
{
    struct wf_text text = {0};
    weft_status status;

    WF_TRY(wf_require(path, "weft_layout_file_open: path"));
    if (mesh != NULL) WF_TRY(wf_require_kind(mesh, WF_KIND_MESH, "weft_layout_file_open: mesh"));
    WF_TRY(wf_require(out, "weft_layout_file_open: out"));
    status = wf_shipped_read(&wf_shipped_layouts, path, &text);
    if (status == WEFT_OK) status = make_layout(text.data, path, mesh, out);
    wf_text_free(&text);
    return wf_fail_named(status, "weft_layout_file_open");
}

void weft_layout_file_release(weft_layout_file **layout)
{
    weft_layout_file *object = wf_take(layout, WF_KIND_LAYOUT, "weft_layout_file_release");

    if (object == NULL) return;
    weft_mesh_release(&object->mesh);
    wf_arena_free(&object->arena);
    wf_free(object->rules);
    object->made = wf_released(WF_KIND_LAYOUT);
    wf_free(object);
}

/* ---- names ---- */

const weft_mesh *weft_layout_file_mesh(const weft_layout_file *layout)
{
    return wf_is_kind(layout, WF_KIND_LAYOUT) ? layout->mesh : NULL;
}

/* The first line of LAYOUT that matches NAME; NULL: none does. */
static const struct rule *find_rule(const weft_layout_file *layout, const char *name)
{
    for (size_t i = 0; i < layout->count; i++)
        if (wf_pattern_matches(layout->rules[i].pattern, name)) return &layout->rules[i];
    return NULL;
}

/* Set *OUT to the line of the tensor NAME, for FUNCTION. */
static weft_status need_rule(const weft_layout_file *layout, const char *name, const char *function,
                             const struct rule **out)
{
    *out = find_rule(layout, name);
    if (*out != NULL) return WEFT_OK;
    return wf_fail(
        WEFT_ERR_NOT_FOUND,
        "%s: no pattern of the layout matches tensor \"%.200s\"; is it the layout of this "
        "model? If so, a last line with the pattern * matches every name",
        function, name);
}

weft_status weft_layout_file_find(const weft_layout_file *layout, const char *name,
                                  const char **placements)
{
    const struct rule *rule;

    WF_TRY(wf_require_kind(layout, WF_KIND_LAYOUT, "weft_layout_file_find: layout"));
    WF_TRY(wf_require(name, "weft_layout_file_find: name"));
    WF_TRY(wf_require(placements, "weft_layout_file_find: placements"));
    WF_TRY(need_rule(layout, name, "weft_layout_file_find", &rule));
    *placements = rule->placements;
    return WEFT_OK;
}

weft_status weft_layout_file_heads(const weft_layout_file *layout, const char *name, int32_t *dim,
                                   const char **size)
{
    const struct rule *rule;

    WF_TRY(wf_require_kind(layout, WF_KIND_LAYOUT, "weft_layout_file_heads: layout"));
    WF_TRY(wf_require(name, "weft_layout_file_heads: name"));
    WF_TRY(wf_require(dim, "weft_layout_file_heads: dim"));
    WF_TRY(wf_require(size, "weft_layout_file_heads: size"));
    WF_TRY(need_rule(layout, name, "weft_layout_file_heads", &rule));
    *dim = rule->head_dim;
    *size = rule->head_size;
    return WEFT_OK;
}

weft_status weft_layout_file_warn(const weft_layout_file *layout, size_t count,
                                  const char *const *names)
{
    WF_TRY(wf_require_kind(layout, WF_KIND_LAYOUT, "weft_layout_file_warn: layout"));
    if (count > 0) WF_TRY(wf_require(names, "weft_layout_file_warn: names"));
    for (size_t i = 1; i < layout->count; i++) {
        const struct rule *rule = &layout->rules[i], *first = NULL;
        const char *taken = NULL;

        for (size_t k = 0; k < count && first != rule; k++) {
            if (!wf_pattern_matches(rule->pattern, names[k])) continue;
            first = find_rule(layout, names[k]);
            taken = names[k];
        }
        if (first == NULL || first == rule) continue;
        wf_log(WF_LOG_WARNING,
               "layout, line %u: pattern %.200s decides nothing: line %u (%.200s) decides all that "
               "it matches, such as \"%.200s\"; put line %u before line %u",
               rule->line, rule->pattern, first->line, first->pattern, taken, rule->line,
               first->line);
    }
    return WEFT_OK;
}
