/* styles.c - lists of styles as text: a mesh, then patterns of names with an axis and a style. */
#include "style.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct line {
    char *pattern;
    int32_t axis;
    uint32_t number; /* in the text, from 1 */
    weft_style style;
    char *passed; /* the style as text; the placement of PLACED */
};

struct weft_styles {
    uint64_t made;
    _Atomic(int32_t) owners;
    weft_mesh *mesh;
    struct line *lines;
    size_t count, room;
};

/* ---- the text ---- */

/* The line of AT is not as expected. */
static weft_status fail_line(struct wf_scan *at, const char *expected)
{
    uint32_t number = wf_scan_line(at);
    struct wf_passage found = wf_scan_rest(at);

    return wf_fail(WEFT_ERR_PARSE, "styles line %u: expected %s; found \"%.*s\"", number, expected,
                   (int)wf_min_i64((int64_t)found.length, 100), found.start);
}

/* "sequence(D)": the dimension; false: it is something else. */
static bool read_sequence(const char *text, int32_t *dim)
{
    char *end;
    long value;

    if (strncmp(text, "sequence(", 9) != 0) return false;
    value = strtol(text + 9, &end, 10);
    if (end == text + 9 || strcmp(end, ")") != 0 || value < 1 || value >= WEFT_MAX_DIMS)
        return false;
    *dim = (int32_t)value;
    return true;
}

/* LINE's text is neither a style nor a placement, for which the last failure has the reason. */
static weft_status refuse_style(const struct line *line)
{
    static const struct {
        const char *theirs, *ours;
    } foreign[] = {{"colwise", "column"},
                   {"colwiseparallel", "column"},
                   {"columnwise", "column"},
                   {"columnparallel", "column"},
                   {"cols", "column"},
                   {"columns", "column"},
                   {"rowwise", "row"},
                   {"rowwiseparallel", "row"},
                   {"rowparallel", "row"},
                   {"rows", "row"},
                   {"sequenceparallel", "sequence"},
                   {"lossparallel", "loss"},
                   {"loss_parallel", "loss"}};
    size_t length = strcspn(line->passed, "(");
    char reason[1024];

    snprintf(reason, sizeof reason, "%s", weft_last_error());
    for (size_t i = 0; i < WF_COUNT(foreign); i++)
        if (strlen(foreign[i].theirs) == length &&
            wf_same_letters(foreign[i].theirs, line->passed, length))
            snprintf(reason, sizeof reason, "did you mean %s?", foreign[i].ours);
    return wf_fail(WEFT_ERR_PARSE,
                   "styles line %u: expected column, row, column(embedding), row(embedding), "
                   "sequence, sequence(D), loss, or a placement; found \"%.100s\": %s",
                   line->number, line->passed, reason);
}

/* The style that LINE's text names; a placement otherwise. */
static weft_status read_style(struct line *line)
{
    static const struct {
        const char *name;
        uint32_t kind;
        bool embedding;
    } names[] = {
        {"column", WEFT_STYLE_COLUMN, false},           {"row", WEFT_STYLE_ROW, false},
        {"column(embedding)", WEFT_STYLE_COLUMN, true}, {"row(embedding)", WEFT_STYLE_ROW, true},
        {"sequence", WEFT_STYLE_SEQUENCE, false},       {"loss", WEFT_STYLE_LOSS, false}};
    weft_placement placement[1];
    const char *text = line->passed;
    weft_status status;

    line->style = (weft_style){.struct_size = sizeof line->style};
    for (size_t i = 0; i < WF_COUNT(names); i++)
        if (strcmp(names[i].name, text) == 0) {
            line->style.kind = names[i].kind;
            line->style.embedding = names[i].embedding;
            return WEFT_OK;
        }
    if (read_sequence(text, &line->style.sequence_dim)) {
        line->style.kind = WEFT_STYLE_SEQUENCE;
        return WEFT_OK;
    }
    status = weft_placements_parse(text, 1, placement);
    if (status == WEFT_ERR_NO_MEMORY) return status;
    if (status != WEFT_OK) return refuse_style(line);
    weft_placements_free(1, placement);
    line->style.kind = WEFT_STYLE_PLACED;
    return WEFT_OK;
}

static weft_status read_mesh(weft_styles *styles, struct wf_scan *scan, const weft_mesh *mesh)
{
    struct wf_scan at = *scan;
    struct wf_passage word = wf_scan_field(scan), rest = wf_scan_rest(scan);
    weft_status status;
    char *text;

    if (word.length != 4 || memcmp(word.start, "mesh", 4) != 0 || rest.length == 0)
        return fail_line(&at, "the mesh, such as \"mesh dp=2,tp=4\"");
    text = wf_strndup(rest.start, rest.length);
    if (text == NULL) return wf_fail_memory(rest.length);
    status = weft_mesh_parse(text, &styles->mesh);
    wf_free(text);
    if (status != WEFT_OK) return wf_fail_context(status, "styles line %u", wf_scan_line(&at));
    if (mesh == NULL) return WEFT_OK;
    weft_mesh_release(&styles->mesh);
    styles->mesh = weft_mesh_retain(mesh);
    return WEFT_OK;
}

static weft_status find_axis(const weft_styles *styles, struct wf_passage field, struct line *line)
{
    char *axis = wf_strndup(field.start, field.length);
    weft_status status;

    if (axis == NULL) return wf_fail_memory(field.length);
    status = weft_mesh_find_axis(styles->mesh, axis, &line->axis);
    wf_free(axis);
    if (status == WEFT_ERR_NOT_FOUND) status = WEFT_ERR_PARSE;
    return status == WEFT_OK ? WEFT_OK : wf_fail_context(status, "styles line %u", line->number);
}

/* LINE, the last one, decides nothing if an earlier one decides all its names on its axis. */
static weft_status check_is_seen(const weft_styles *styles, const struct line *line)
{
    for (const struct line *earlier = styles->lines; earlier < line; earlier++)
        if (earlier->axis == line->axis && wf_pattern_covers(earlier->pattern, line->pattern))
            return wf_fail(WEFT_ERR_PARSE,
                           "styles line %u: pattern %.200s decides nothing: the pattern %.200s of "
                           "line %u matches all its names on the same axis; put this line before "
                           "line %u, or remove it",
                           line->number, line->pattern, earlier->pattern, earlier->number,
                           earlier->number);
    return WEFT_OK;
}

static weft_status read_line(weft_styles *styles, struct wf_scan *scan)
{
    struct wf_scan at = *scan;
    struct wf_passage pattern = wf_scan_field(scan), axis = wf_scan_field(scan),
                      style = wf_scan_rest(scan);
    struct line *line;

    if (axis.length == 0 || style.length == 0)
        return fail_line(&at, "a pattern, an axis and a style");
    WF_TRY(wf_grow(&styles->lines, sizeof *styles->lines, styles->count, &styles->room));
    line = &styles->lines[styles->count++];
    memset(line, 0, sizeof *line);
    line->number = wf_scan_line(&at);
    line->pattern = wf_strndup(pattern.start, pattern.length);
    line->passed = wf_strndup(style.start, style.length);
    if (line->pattern == NULL || line->passed == NULL)
        return wf_fail_memory(pattern.length + style.length);
    WF_TRY(find_axis(styles, axis, line));
    WF_TRY(check_is_seen(styles, line));
    return read_style(line);
}

static weft_status read_text(weft_styles *styles, const char *text, const weft_mesh *mesh)
{
    struct wf_scan scan = {.text = text};

    if (!wf_scan_next_line(&scan))
        return wf_fail(WEFT_ERR_PARSE,
                       "styles: no line gives the mesh, such as \"mesh dp=2,tp=4\"");
    WF_TRY(read_mesh(styles, &scan, mesh));
    while (wf_scan_next_line(&scan))
        WF_TRY(read_line(styles, &scan));
    return WEFT_OK;
}

weft_status weft_styles_parse(const char *text, const weft_mesh *mesh, weft_styles **out)
{
    static const char function[] = "weft_styles_parse";
    weft_styles *styles;
    weft_status status;

    WF_TRY(wf_require(text, "weft_styles_parse: text"));
    if (mesh != NULL) WF_TRY(wf_require_kind(mesh, WF_KIND_MESH, "weft_styles_parse: mesh"));
    WF_TRY(wf_require(out, "weft_styles_parse: out"));
    styles = wf_calloc(1, sizeof *styles);
    if (styles == NULL) return wf_fail_memory(sizeof *styles);
    styles->made = WF_OF_KIND(WF_KIND_STYLES);
    styles->owners = 1;
    status = wf_fail_named(read_text(styles, text, mesh), function);
    if (status == WEFT_OK)
        *out = styles;
    else
        weft_styles_release(&styles);
    return status;
}

weft_styles *wf_styles_retain(const weft_styles *styles)
{
    weft_styles *mine = (weft_styles *)(uintptr_t)styles;

    if (mine != NULL) atomic_fetch_add(&mine->owners, 1);
    return mine;
}

void weft_styles_release(weft_styles **styles)
{
    weft_styles *object = wf_take(styles, WF_KIND_STYLES, "weft_styles_release");

    if (object == NULL || atomic_fetch_sub(&object->owners, 1) != 1) return;
    for (size_t i = 0; i < object->count; i++) {
        wf_free(object->lines[i].pattern);
        wf_free(object->lines[i].passed);
    }
    wf_free(object->lines);
    weft_mesh_release(&object->mesh);
    object->made = wf_released(WF_KIND_STYLES);
    wf_free(object);
}

/* ---- names ---- */

const weft_mesh *weft_styles_mesh(const weft_styles *styles)
{
    return wf_is_kind(styles, WF_KIND_STYLES) ? styles->mesh : NULL;
}

/* The first line that matches NAME on AXIS; NULL: none does. */
static const struct line *find_line(const weft_styles *styles, const char *name, int32_t axis)
{
    for (size_t i = 0; i < styles->count; i++)
        if (styles->lines[i].axis == axis && wf_pattern_matches(styles->lines[i].pattern, name))
            return &styles->lines[i];
    return NULL;
}

weft_status weft_styles_find(const weft_styles *styles, const char *name, int32_t axis,
                             const char **pattern)
{
    const struct line *line;

    WF_TRY(wf_require_kind(styles, WF_KIND_STYLES, "weft_styles_find: styles"));
    WF_TRY(wf_require(name, "weft_styles_find: name"));
    WF_TRY(wf_require(pattern, "weft_styles_find: pattern"));
    line = find_line(styles, name, axis);
    if (line == NULL)
        return wf_fail(WEFT_ERR_NOT_FOUND,
                       "weft_styles_find: no line matches \"%.200s\" on axis %d", name, axis);
    *pattern = line->pattern;
    return WEFT_OK;
}

/* *SPEC, which is replaced, with the layout of LINE on its axis. */
static weft_status apply_line(const struct line *line, const char *name, enum weft_style_part part,
                              weft_spec **spec)
{
    weft_style style = line->style;
    weft_spec *from = NULL, *to = NULL;
    weft_status status;

    if (style.kind == WEFT_STYLE_PLACED) style.passed = line->passed;
    if (style.kind == WEFT_STYLE_LOSS && part == WEFT_STYLE_OUTPUT) part = WEFT_STYLE_INPUT;
    status = wf_style_place(&style, part, *spec, line->axis, &from, &to);
    if (status != WEFT_OK)
        return wf_fail_context(status, "styles line %u, tensor %.200s", line->number, name);
    weft_spec_release(&from);
    weft_spec_release(spec);
    *spec = to;
    return WEFT_OK;
}

weft_status weft_styles_apply(const weft_styles *styles, const char *name,
                              enum weft_style_part part, const weft_spec *spec, weft_spec **out)
{
    static const char function[] = "weft_styles_apply";
    weft_spec *made;
    weft_status status = WEFT_OK;

    WF_TRY(wf_require_kind(styles, WF_KIND_STYLES, "weft_styles_apply: styles"));
    WF_TRY(wf_require(name, "weft_styles_apply: name"));
    WF_TRY(wf_require_kind(spec, WF_KIND_SPEC, "weft_styles_apply: spec"));
    WF_TRY(wf_require(out, "weft_styles_apply: out"));
    if (weft_spec_mesh(spec) != styles->mesh)
        return wf_fail(WEFT_ERR_INVALID,
                       "%s: the spec of %.200s is on another mesh than the styles; make it with "
                       "weft_styles_mesh",
                       function, name);
    made = weft_spec_retain(spec);
    for (int32_t axis = 0; axis < weft_mesh_axes(styles->mesh) && status == WEFT_OK; axis++) {
        const struct line *line = find_line(styles, name, axis);

        if (line != NULL) status = apply_line(line, name, part, &made);
    }
    if (status == WEFT_OK)
        *out = made;
    else
        weft_spec_release(&made);
    return wf_fail_named(status, function);
}
