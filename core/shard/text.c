/* text.c - reads shapes, placements and specs as people write them.  print.c writes them.
 *
 *     spec       = DTYPE "[" [ SIZE { "," SIZE } ] "]" placements
 *     placements = placement { "," placement }                        one per mesh axis
 *     placement  = "R" | "P" [ "(" OP ")" ] | "O(" COORDINATE ")" | split [ "[" TURN "]" ]
 *     split      = "S(" DIM ")" | "SS(" DIM "," FACTOR ")" | ("B(" | "G(") DIM ";" sizes ")"
 *     sizes      = SIZE { "," SIZE }
 *     shape      = SIZE { ("x" | ",") SIZE } | "[" [ SIZE { "," SIZE } ] "]"
 *
 * Blanks may stand between the parts. */
#include "shard.h"

#include <string.h>

struct reader {
    struct wf_scan scan;
    const char *kind;      /* kind of text, for messages */
    const weft_mesh *mesh; /* for messages; NULL: not known */
    int32_t dims;          /* of the tensor; 0: none, or not known */
    int32_t list_count;
    int64_t *lists[WEFT_MAX_AXES]; /* the sizes of placements; the caller frees them */
};

static void free_lists(const struct reader *r)
{
    for (int32_t i = 0; i < r->list_count; i++)
        wf_free(r->lists[i]);
}

static weft_status read_int(struct reader *r, const char *what, int64_t most, int64_t *out)
{
    struct wf_scan start;
    char first;

    wf_scan_space(&r->scan);
    start = r->scan;
    first = wf_scan_peek(&start);
    if (first < '0' || first > '9') return wf_scan_fail(&start, r->kind, "expected %s", what);
    if (wf_scan_int(&r->scan, what, out) != WEFT_OK || *out > most)
        return wf_scan_refuse(&start, r->kind, "%s must be at most %lld", what, (long long)most);
    return WEFT_OK;
}

static bool take_char(struct reader *r, char c)
{
    wf_scan_space(&r->scan);
    return wf_scan_char(&r->scan, c);
}

static weft_status expect_char(struct reader *r, char c)
{
    if (take_char(r, c)) return WEFT_OK;
    return wf_scan_fail(&r->scan, r->kind, "expected '%c'", c);
}

static weft_status expect_end(struct reader *r)
{
    wf_scan_space(&r->scan);
    if (wf_scan_end(&r->scan)) return WEFT_OK;
    return wf_scan_fail(&r->scan, r->kind, "expected the end");
}

static weft_status read_sizes(struct reader *r, char between, int32_t *dims, int64_t *shape)
{
    *dims = 0;
    do {
        wf_scan_space(&r->scan);
        if (*dims == WEFT_MAX_DIMS)
            return wf_scan_refuse(&r->scan, r->kind,
                                  "a dimension beyond the %d that a tensor may have",
                                  WEFT_MAX_DIMS);
        WF_TRY(read_int(r, "the size of a dimension", INT64_MAX, &shape[(*dims)++]));
    } while (take_char(r, between));
    return WEFT_OK;
}

static weft_status read_bracketed(struct reader *r, int32_t *dims, int64_t *shape)
{
    *dims = 0;
    WF_TRY(expect_char(r, '['));
    if (take_char(r, ']')) return WEFT_OK;
    WF_TRY(read_sizes(r, ',', dims, shape));
    if (wf_scan_peek(&r->scan) == 'x')
        return wf_scan_refuse(&r->scan, r->kind,
                              "sizes in brackets are separated by ',', as in [4,6]");
    return expect_char(r, ']');
}

weft_status weft_shape_parse(const char *text, int32_t *dims, int64_t *shape)
{
    struct reader r = {.scan = {text, 0}, .kind = "shape"};
    int64_t sizes[WEFT_MAX_DIMS];
    int32_t count;

    WF_TRY(wf_require(text, "weft_shape_parse: text"));
    WF_TRY(wf_require(dims, "weft_shape_parse: dims"));
    WF_TRY(wf_require(shape, "weft_shape_parse: shape"));
    wf_scan_space(&r.scan);
    if (wf_scan_peek(&r.scan) == '[')
        WF_TRY(read_bracketed(&r, &count, sizes));
    else
        WF_TRY(read_sizes(&r, strchr(text, ',') != NULL ? ',' : 'x', &count, sizes));
    if (count == 1 && strchr("x,]", wf_scan_peek(&r.scan)) == NULL)
        return wf_scan_fail(&r.scan, r.kind, "expected 'x' or ','");
    WF_TRY(expect_end(&r));
    memcpy(shape, sizes, (size_t)count * sizeof *shape);
    *dims = count;
    return WEFT_OK;
}

static weft_status read_partial(struct reader *r, weft_placement *out)
{
    struct wf_scan start;
    const char *name, *meant;
    size_t length;

    *out = (weft_placement){.kind = WEFT_PLACE_PARTIAL, .reduction = WEFT_REDUCE_SUM};
    if (!take_char(r, '(')) return WEFT_OK;
    wf_scan_space(&r->scan);
    start = r->scan;
    if (!wf_scan_name(&r->scan, &name, &length))
        return wf_scan_fail(&start, r->kind,
                            "expected sum, avg, min, max or prod; P alone is P(sum)");
    if (wf_reduction_find(name, length, &out->reduction)) return expect_char(r, ')');
    meant = wf_reduction_meant(name, length);
    return wf_scan_refuse(&start, r->kind,
                          "\"%.*s\" is not a reduction; the reductions are sum, avg, min, max and "
                          "prod%s%s%s",
                          (int)wf_min_i64((int64_t)length, 40), name,
                          meant != NULL ? "; did you mean P(" : "", meant != NULL ? meant : "",
                          meant != NULL ? ")?" : "");
}

/* Other systems count dimensions from the end with negative numbers. */
static weft_status check_sign(struct reader *r)
{
    wf_scan_space(&r->scan);
    if (wf_scan_peek(&r->scan) != '-') return WEFT_OK;
    if (r->dims == 0) return wf_scan_refuse(&r->scan, r->kind, "dimensions count from 0");
    return wf_scan_refuse(&r->scan, r->kind,
                          "dimensions count from 0, and the last one of this tensor is %d",
                          r->dims - 1);
}

/* The sizes that a placement of KIND may have. */
static size_t most_sizes(uint32_t kind)
{
    return kind == WEFT_PLACE_PARTS ? WEFT_MAX_PARTS : WEFT_MAX_SIZES;
}

static weft_status grow_sizes(int64_t **sizes, size_t count, size_t *room)
{
    size_t more = *room == 0 ? 8 : 2 * *room;
    int64_t *grown;

    if (count < *room) return WEFT_OK;
    grown = wf_realloc(*sizes, more * sizeof *grown);
    if (grown == NULL) return wf_fail_memory(more * sizeof *grown);
    *sizes = grown;
    *room = more;
    return WEFT_OK;
}

/* Read ";4096,1024,1024". */
static weft_status read_list(struct reader *r, weft_placement *out)
{
    const char *name = out->kind == WEFT_PLACE_PARTS ? "B" : "G";
    int64_t *sizes = NULL;
    size_t room = 0;
    weft_status status = WEFT_OK;

    if (!take_char(r, ';'))
        return wf_scan_fail(&r->scan, r->kind, "expected ';' and sizes, as in %s(%d;3,2)", name,
                            out->dim);
    do {
        wf_scan_space(&r->scan);
        if (wf_scan_peek(&r->scan) == '-')
            status = wf_scan_refuse(&r->scan, r->kind, "a size must not be negative");
        else if (out->size_count == most_sizes(out->kind))
            status = wf_scan_refuse(&r->scan, r->kind, "%s has more than %zu %s", name,
                                    most_sizes(out->kind),
                                    out->kind == WEFT_PLACE_PARTS ? "parts" : "sizes");
        if (status == WEFT_OK) status = grow_sizes(&sizes, out->size_count, &room);
        if (status == WEFT_OK) status = read_int(r, "a size", INT64_MAX, &sizes[out->size_count]);
        if (status == WEFT_OK) out->size_count++;
    } while (status == WEFT_OK && take_char(r, ','));
    r->lists[r->list_count++] = sizes;
    out->sizes = sizes;
    return status;
}

/* While a text is read: a placement that splits a dimension and has no turn. */
#define NO_TURN (-1)

static weft_status read_split(struct reader *r, uint32_t kind, weft_placement *out)
{
    int64_t dim, turn;

    *out = (weft_placement){.kind = kind, .turn = NO_TURN};
    if (!take_char(r, '('))
        return wf_scan_fail(&r->scan, r->kind, "expected '(' and %s",
                            kind == WEFT_PLACE_PARTS   ? "a dimension with sizes, as in B(0;3,2)"
                            : kind == WEFT_PLACE_SIZES ? "a dimension with sizes, as in G(0;3,2)"
                            : kind == WEFT_PLACE_STRIDED
                                ? "a dimension with a factor, as in SS(0,2)"
                                : "a dimension, as in S(0)");
    WF_TRY(check_sign(r));
    WF_TRY(read_int(r,
                    kind == WEFT_PLACE_PARTS   ? "the dimension of B(dim;sizes)"
                    : kind == WEFT_PLACE_SIZES ? "the dimension of G(dim;sizes)"
                                               : "a dimension",
                    WEFT_MAX_DIMS - 1, &dim));
    out->dim = (int32_t)dim;
    if (kind == WEFT_PLACE_STRIDED) {
        if (!take_char(r, ','))
            return wf_scan_fail(&r->scan, r->kind, "expected ',' and a factor, as in SS(%d,2)",
                                out->dim);
        WF_TRY(read_int(r, "a factor", INT64_MAX, &out->factor));
    }
    if (wf_placement_has_sizes(out)) {
        WF_TRY(read_list(r, out));
        if (!take_char(r, ')'))
            return wf_scan_fail(&r->scan, r->kind, "expected ',' and the next size, or ')'");
    } else {
        WF_TRY(expect_char(r, ')'));
    }
    if (!take_char(r, '[')) return WEFT_OK;
    WF_TRY(read_int(r, "the turn of a split", WEFT_MAX_AXES - 1, &turn));
    out->turn = (int32_t)turn;
    return expect_char(r, ']');
}

static weft_status read_owner(struct reader *r, weft_placement *out)
{
    int64_t owner;

    *out = (weft_placement){.kind = WEFT_PLACE_OWNER};
    if (!take_char(r, '('))
        return wf_scan_fail(&r->scan, r->kind,
                            "expected '(' and the owner's coordinate, as in O(2)");
    wf_scan_space(&r->scan);
    if (wf_scan_peek(&r->scan) == '-')
        return wf_scan_refuse(&r->scan, r->kind, "coordinates count from 0");
    WF_TRY(read_int(r, "the owner's coordinate", INT32_MAX, &owner));
    out->owner = (int32_t)owner;
    if (take_char(r, ')')) return WEFT_OK;
    return wf_scan_fail(&r->scan, r->kind, "O has one owner; expected ')'");
}

static const char placements_known[] = "R, S(dim), SS(dim,factor), B(dim;sizes),"
                                       " G(dim;sizes), P(op) and O(coordinate)";

/* The WORD at START is not a placement. */
static weft_status refuse_placement(const struct reader *r, struct wf_scan start, const char *word,
                                    size_t length)
{
    struct wf_text suggestion = {0};
    weft_status status;
    uint32_t dtype;

    if (wf_dtype_find(word, length, &dtype))
        return wf_scan_refuse(&start, r->kind,
                              "\"%.*s\" is a dtype; expected the placements alone, such as S(0),R",
                              (int)length, word);
    if (start.text[start.at + length] == ':')
        return wf_scan_refuse(&start, r->kind,
                              "placements go in the order of the axes, without their names: write "
                              "S(0),R, one for each axis of the mesh");
    wf_text_add(&suggestion, "%s", "");
    wf_placement_suggest(word, length, &suggestion);
    status = wf_text_status(&suggestion);
    if (status == WEFT_OK)
        status = wf_scan_refuse(
            &start, r->kind, "\"%.*s\" is not a placement; the placements are %s%s",
            (int)wf_min_i64((int64_t)length, 40), word, placements_known, suggestion.data);
    wf_text_free(&suggestion);
    return status;
}

static weft_status read_placement(struct reader *r, weft_placement *out)
{
    struct wf_scan start;
    const char *word;
    size_t length;

    wf_scan_space(&r->scan);
    start = r->scan;
    if (wf_scan_peek(&start) == '[' || wf_scan_peek(&start) == '(')
        return wf_scan_refuse(&start, r->kind,
                              "placements have no brackets around them: write S(0),R, one for each "
                              "axis of the mesh");
    if (!wf_scan_name(&r->scan, &word, &length))
        return wf_scan_fail(&start, r->kind, "expected one of the placements %s", placements_known);
    if (length == 1 && word[0] == 'R') {
        *out = (weft_placement){.kind = WEFT_PLACE_REPLICATE};
        if (!take_char(r, '(')) return WEFT_OK;
        return wf_scan_refuse(&start, r->kind, "R has nothing in brackets; write R");
    }
    if (length == 1 && word[0] == 'P') return read_partial(r, out);
    if (length == 1 && word[0] == 'O') return read_owner(r, out);
    if (length == 1 && word[0] == 'S') return read_split(r, WEFT_PLACE_SHARD, out);
    if (length == 1 && word[0] == 'B') return read_split(r, WEFT_PLACE_PARTS, out);
    if (length == 1 && word[0] == 'G') return read_split(r, WEFT_PLACE_SIZES, out);
    if (length == 2 && memcmp(word, "SS", 2) == 0) return read_split(r, WEFT_PLACE_STRIDED, out);
    return refuse_placement(r, start, word, length);
}

static weft_status refuse_turn(struct reader *r, const weft_placement *p)
{
    wf_scan_space(&r->scan);
    if (wf_placement_splits(p) || wf_scan_peek(&r->scan) != '[') return WEFT_OK;
    return wf_scan_refuse(&r->scan, r->kind,
                          "R, P and O have no turn; only placements that split a dimension do");
}

/* All axes that split a dimension have turns, from 0 without gaps, or none has one. */
static weft_status check_turns(const struct reader *r, const weft_placement *p, int32_t axes,
                               int32_t axis)
{
    int32_t splits = 0;

    for (int32_t i = 0; i < axes; i++) {
        if (!wf_placement_splits(&p[i]) || p[i].dim != p[axis].dim) continue;
        splits++;
        if ((p[i].turn == NO_TURN) != (p[axis].turn == NO_TURN))
            return wf_fail(WEFT_ERR_PARSE,
                           "%s \"%.200s\": placement %d has a turn, and placement %d has none; "
                           "both split dimension %d, so give both a turn or none",
                           r->kind, r->scan.text, p[i].turn == NO_TURN ? axis : i,
                           p[i].turn == NO_TURN ? i : axis, p[i].dim);
        if (i < axis && p[i].turn != NO_TURN && p[i].turn == p[axis].turn)
            return wf_fail(WEFT_ERR_PARSE,
                           "%s \"%.200s\": placements %d and %d both have turn [%d]; the turns of "
                           "dimension %d must differ",
                           r->kind, r->scan.text, i, axis, p[i].turn, p[i].dim);
    }
    if (p[axis].turn < splits) return WEFT_OK;
    return wf_fail(WEFT_ERR_PARSE,
                   "%s \"%.200s\": placement %d has turn [%d], but the turns of dimension %d are 0 "
                   "to %d",
                   r->kind, r->scan.text, axis, p[axis].turn, p[axis].dim, splits - 1);
}

/* Check the turns, and set those that the text does not have to the default order. */
static weft_status settle_turns(const struct reader *r, weft_placement *p, int32_t axes)
{
    for (int32_t i = 0; i < axes; i++)
        if (wf_placement_splits(&p[i])) WF_TRY(check_turns(r, p, axes, i));
    for (int32_t i = 0; i < axes; i++)
        if (p[i].turn == NO_TURN) p[i].turn = 0;
    return WEFT_OK;
}

/* A placement has ended, but neither a comma nor the end follows. */
static weft_status refuse_gap(const struct reader *r)
{
    const char *text = r->scan.text;
    size_t length = r->scan.at;

    while (text[length - 1] == ' ' || text[length - 1] == '\t')
        length--;
    return wf_scan_fail(&r->scan, r->kind, "expected ',' between placements after \"%.*s\"",
                        (int)wf_min_i64((int64_t)length, 200), text);
}

/* How many placements the text has, of which COUNT are read: commas outside brackets. */
static int32_t count_placements(const struct reader *r, int32_t count)
{
    int depth = 0;

    for (const char *at = r->scan.text + r->scan.at; *at != '\0'; at++) {
        depth += (*at == '(' || *at == '[') - (*at == ')' || *at == ']');
        count += *at == ',' && depth == 0;
    }
    return count;
}

/* COUNT is not the number of axes: name both, and the axes if the mesh is known. */
static weft_status refuse_count(const struct reader *r, int32_t count, int32_t axes)
{
    struct wf_text mesh = {0};
    weft_status status;

    wf_text_add(&mesh, "mesh");
    if (r->mesh != NULL) {
        wf_text_char(&mesh, ' ');
        wf_mesh_add_text(r->mesh, &mesh);
    }
    wf_text_add(&mesh, " has %d ax%s", axes, axes == 1 ? "is" : "es");
    for (int32_t a = 0; r->mesh != NULL && a < axes; a++) {
        const char *name = weft_mesh_axis_name(r->mesh, a);
        if (name == NULL || name[0] == '\0') break;
        wf_text_add(&mesh, "%s%s", a == 0 ? " (" : ", ", name);
        if (a == axes - 1) wf_text_char(&mesh, ')');
    }
    status = wf_text_status(&mesh);
    if (status == WEFT_OK)
        status = wf_scan_refuse(&r->scan, r->kind,
                                "%d placement%s, but the %s; write one placement for each axis%s",
                                count, WF_PLURAL(count), mesh.data,
                                count < axes ? ", R for those that do not split the tensor" : "");
    wf_text_free(&mesh);
    return status;
}

static weft_status read_placements(struct reader *r, int32_t axes, weft_placement *out)
{
    int32_t count = 0;

    do {
        if (count == axes) return refuse_count(r, count_placements(r, count + 1), axes);
        WF_TRY(read_placement(r, &out[count]));
        WF_TRY(refuse_turn(r, &out[count++]));
    } while (take_char(r, ','));
    wf_scan_space(&r->scan);
    if (count < axes && !wf_scan_end(&r->scan)) return refuse_gap(r);
    WF_TRY(expect_end(r));
    if (count < axes) return refuse_count(r, count, axes);
    return settle_turns(r, out, axes);
}

static weft_status parse_placements(const char *text, const weft_mesh *mesh, int32_t axes,
                                    weft_placement *placements)
{
    struct reader r = {.scan = {text, 0}, .kind = "placements", .mesh = mesh};
    weft_placement read[WEFT_MAX_AXES];
    weft_status status = read_placements(&r, axes, read);

    if (status == WEFT_OK)
        memcpy(placements, read, (size_t)axes * sizeof *placements);
    else
        free_lists(&r);
    return status;
}

weft_status wf_placements_parse_on(const weft_mesh *mesh, const char *text,
                                   weft_placement *placements)
{
    return parse_placements(text, mesh, mesh->axes, placements);
}

weft_status weft_placements_parse(const char *text, int32_t axes, weft_placement *placements)
{
    WF_TRY(wf_require(text, "weft_placements_parse: text"));
    WF_TRY(wf_require(placements, "weft_placements_parse: placements"));
    if (axes < 1 || axes > WEFT_MAX_AXES)
        return wf_fail(WEFT_ERR_INVALID,
                       "weft_placements_parse: axes is %d; it must be from 1 to %d", axes,
                       WEFT_MAX_AXES);
    return parse_placements(text, NULL, axes, placements);
}

void weft_placements_free(int32_t axes, weft_placement *placements)
{
    for (int32_t i = 0; placements != NULL && i < axes; i++) {
        if (!wf_placement_has_sizes(&placements[i])) continue;
        wf_free((void *)(uintptr_t)placements[i].sizes);
        placements[i].sizes = NULL;
        placements[i].size_count = 0;
    }
}

static weft_status read_dtype(struct reader *r, uint32_t *out)
{
    struct wf_scan start;
    const char *name;
    size_t length;

    wf_scan_space(&r->scan);
    start = r->scan;
    if (!wf_scan_name(&r->scan, &name, &length))
        return wf_scan_fail(&start, r->kind, "expected a dtype such as f32");
    if (wf_dtype_find(name, length, out)) return WEFT_OK;
    if (length == 1 || wf_scan_peek(&r->scan) == '(') /* a placement */
        return wf_scan_fail(&start, r->kind,
                            "expected a dtype and a shape first, as in f32[4096,4096] S(0)");
    return wf_dtype_refuse(&start, r->kind, length);
}

weft_status weft_spec_parse(const weft_mesh *mesh, const char *text, weft_spec **out)
{
    struct reader r = {.scan = {text, 0}, .kind = "spec", .mesh = mesh};
    struct wf_layout layout = {.mesh = mesh};
    weft_status status;

    WF_TRY(wf_require_kind(mesh, WF_KIND_MESH, "weft_spec_parse: mesh"));
    WF_TRY(wf_require(text, "weft_spec_parse: text"));
    WF_TRY(wf_require(out, "weft_spec_parse: out"));
    WF_TRY(read_dtype(&r, &layout.dtype));
    WF_TRY(read_bracketed(&r, &layout.dims, layout.shape));
    r.dims = layout.dims;
    status = read_placements(&r, mesh->axes, layout.placements);
    if (status == WEFT_OK) status = wf_spec_intern(&layout, out);
    free_lists(&r);
    return status == WEFT_ERR_INVALID ? wf_fail_context(status, "spec \"%.200s\"", text) : status;
}
