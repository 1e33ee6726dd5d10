/* read.c - the lines of a graph.
 *
 *     line    = "mesh" MESH | "phase" PHASE | "rule" RULE | "input" NAME SPEC | "param" NAME SPEC |
 * "output" NAME [ PLACEMENTS ] | NAME { "," NAME } "=" OPERATOR "(" [ argument { "," argument } ]
 * ")" each with {
 * ";" clause }, and "#" begins a comment clause  = "x" N | "to" PLACEMENTS | "out" SHAPE { ","
 * SHAPE } | "flops" N | "flops" "auto" | "time" TIME | "alloc" SIZE | "free" NAME { "," NAME } |
 * "comm" NAME | "mixed" | "recompute" | "pieces" | "f8" | "memory" SIZE | "keep" NAME "on" AXIS "="
 * PLACEMENT
 *
 * A `;` in parentheses belongs to a placement. */
#include "base/text/size.h"
#include "graph/graph.h"

#include <stdlib.h>
#include <string.h>

bool wf_graph_take_keyword(struct wf_graph_reader *r, const char *word)
{
    struct wf_scan before = r->scan;
    char c;

    if (!wf_scan_word(&r->scan, word)) return false;
    c = wf_scan_peek(&r->scan);
    if (c == ' ' || c == '\t') {
        wf_scan_space(&r->scan);
        return true;
    }
    r->scan = before;
    return false;
}

/* STATUS is of the reader of a part of the line. */
static weft_status fail_part(const struct wf_graph_reader *r, weft_status status)
{
    if (status == WEFT_OK || status == WEFT_ERR_NO_MEMORY) return status;
    return wf_fail_context(WEFT_ERR_PARSE, "graph line %u", r->line);
}

/* ---- clauses ---- */

static weft_status read_repeat(struct wf_graph_reader *r, struct wf_graph_line *line)
{
    struct wf_scan before = r->scan;
    int64_t count;

    if (line->repeated) return wf_scan_refuse(&before, "graph", "the line has two clauses x");
    WF_TRY(wf_scan_int(&r->scan, "how often the line is repeated", &count));
    if (count < 1 || count > WF_GRAPH_REPEATS)
        return wf_scan_refuse(&before, "graph", "a line is repeated 1 to %d times",
                              WF_GRAPH_REPEATS);
    line->repeat = (uint32_t)count;
    line->repeated = true;
    return WEFT_OK;
}

static weft_status read_memory(struct wf_graph_reader *r)
{
    size_t taken;

    if (r->graph->memory != 0)
        return wf_scan_refuse(&r->scan, "graph", "the graph has two clauses memory");
    taken = wf_scan_size(r->scan.text + r->scan.at, &r->graph->memory);
    if (taken == 0) return wf_graph_fail(r, "a size such as 60G");
    r->scan.at += taken;
    return WEFT_OK;
}

/* "wq on tp=S(0)" */
static weft_status read_keep(struct wf_graph_reader *r)
{
    struct wf_graph_keep *keep = wf_graph_alloc(r->graph, sizeof *keep);
    const char *axis;
    size_t length;
    int32_t tensor;
    char *copy;

    if (keep == NULL) return wf_fail_memory(sizeof *keep);
    WF_TRY(wf_graph_take_tensor(r, &tensor));
    wf_scan_space(&r->scan);
    if (!wf_graph_take_keyword(r, "on")) return wf_graph_fail(r, "on");
    if (wf_scan_peek(&r->scan) >= '0' && wf_scan_peek(&r->scan) <= '9') {
        axis = r->scan.text + r->scan.at;
        length = strspn(axis, "0123456789");
        r->scan.at += length;
    } else if (!wf_graph_take_name(r, &axis, &length)) {
        return wf_graph_fail(r, "an axis");
    }
    if (!wf_scan_char(&r->scan, '=')) return wf_graph_fail(r, "=");
    WF_TRY(wf_graph_take_text(r, &keep->placement));
    copy = wf_graph_alloc(r->graph, length + 1);
    if (copy == NULL) return wf_fail_memory(length + 1);
    memcpy(copy, axis, length);
    keep->axis = copy;
    keep->tensor = (uint32_t)tensor;
    keep->line = r->line;
    keep->next = r->graph->keeps;
    r->graph->keeps = keep;
    return WEFT_OK;
}

/* "f32[4,6], i64[4]": the shapes of the outputs. */
static weft_status read_shapes(struct wf_graph_reader *r, struct wf_graph_line *line)
{
    weft_op_tensor shapes[16];

    if (line->given_count > 0)
        return wf_scan_refuse(&r->scan, "graph", "the line has two clauses out");
    do {
        weft_op_tensor *t = &shapes[line->given_count];
        const char *name;
        size_t length, inside;
        struct wf_scan at;
        char text[256];
        wf_scan_space(&r->scan);
        if (line->given_count == WF_COUNT(shapes)) return wf_graph_fail(r, "at most 16 shapes");
        *t = (weft_op_tensor){.dims = 0};
        at = r->scan;
        if (!wf_scan_name(&r->scan, &name, &length))
            return wf_graph_fail(r, "a dtype and a shape, such as f32[4,6]");
        if (!wf_dtype_find(name, length, &t->dtype)) return wf_dtype_refuse(&at, "graph", length);
        inside = strcspn(r->scan.text + r->scan.at, "]\n");
        if (inside + 2 > sizeof text || r->scan.text[r->scan.at + inside] != ']')
            return wf_graph_fail(r, "a shape, such as [4,6]");
        memcpy(text, r->scan.text + r->scan.at, inside + 1);
        text[inside + 1] = '\0';
        if (text[0] != '[') return wf_graph_fail(r, "a shape, such as [4,6]");
        WF_TRY(fail_part(r, weft_shape_parse(text, &t->dims, t->shape)));
        r->scan.at += inside + 1;
        line->given_count++;
        wf_scan_space(&r->scan);
    } while (wf_scan_char(&r->scan, ','));
    line->given = wf_graph_alloc(r->graph, line->given_count * sizeof *line->given);
    if (line->given == NULL) return wf_fail_memory(line->given_count * sizeof *line->given);
    memcpy(line->given, shapes, line->given_count * sizeof *line->given);
    return WEFT_OK;
}

static weft_status read_recompute(struct wf_graph_reader *r, struct wf_graph_line *line)
{
    if (line->phase != WF_GRAPH_BACKWARD)
        return wf_scan_refuse(&r->scan, "graph", "recompute is for lines of the backward pass");
    line->recompute = true;
    return WEFT_OK;
}

static weft_status read_clause(struct wf_graph_reader *r, struct wf_graph_line *line)
{
    bool found;

    wf_scan_space(&r->scan);
    if (wf_scan_char(&r->scan, 'x')) return read_repeat(r, line);
    if (wf_graph_take_keyword(r, "memory")) return read_memory(r);
    if (wf_graph_take_keyword(r, "keep")) return read_keep(r);
    WF_TRY(wf_graph_read_work(r, line, &found));
    if (found) return WEFT_OK;
    if (line->kind == WF_GRAPH_CALL && wf_scan_word(&r->scan, "mixed")) {
        line->mixed = true;
        return WEFT_OK;
    }
    if (line->kind >= WF_GRAPH_CALL && wf_scan_word(&r->scan, "recompute"))
        return read_recompute(r, line);
    if (line->kind == WF_GRAPH_MOVE && wf_scan_word(&r->scan, "pieces")) {
        line->pieces = true;
        return WEFT_OK;
    }
    if (line->kind == WF_GRAPH_CALL && wf_scan_word(&r->scan, "f8")) {
        line->f8 = true;
        return WEFT_OK;
    }
    if (line->kind >= WF_GRAPH_CALL && wf_graph_take_keyword(r, "out")) return read_shapes(r, line);
    if (line->kind >= WF_GRAPH_CALL && line->spec != NULL && wf_graph_take_keyword(r, "to"))
        return wf_scan_refuse(&r->scan, "graph", "the line has two clauses to");
    if (line->kind >= WF_GRAPH_CALL && wf_graph_take_keyword(r, "to"))
        return wf_graph_take_text(r, &line->spec);
    return wf_graph_fail(r,
                         "a clause: x32, to S(0),R, out f32[4], flops auto, time 5us, alloc 64K, "
                         "free x, comm dp, mixed, recompute, pieces, f8, memory 60G, or keep w on "
                         "tp=S(0)");
}

/* ---- lines ---- */

static weft_status read_mesh(struct wf_graph_reader *r)
{
    const char *text;

    if (r->graph->styles != NULL)
        return wf_scan_refuse(&r->scan, "graph", "with --style, the mesh is that of the styles");
    if (r->graph->mesh != NULL)
        return wf_scan_refuse(&r->scan, "graph", "a line above gives the mesh already");
    WF_TRY(wf_graph_take_text(r, &text));
    return fail_part(r, weft_mesh_parse(text, &r->graph->mesh));
}

/* "phase backward": of the lines that follow. */
static weft_status read_phase(struct wf_graph_reader *r)
{
    static const char *const names[] = {"forward", "backward", "update"};
    struct wf_scan before = r->scan;
    const char *text;

    WF_TRY(wf_graph_take_text(r, &text));
    for (size_t i = r->graph->phase; i < WF_COUNT(names); i++)
        if (strcmp(text, names[i]) == 0) {
            r->graph->phase = (uint8_t)i;
            return WEFT_OK;
        }
    r->scan = before;
    return wf_graph_fail(r, r->graph->phase == WF_GRAPH_FORWARD ? "forward, backward or update"
                                                                : "backward or update");
}

/* Keep the rule, which ends with the line, at the same line and position of the graph's rules. */
static weft_status read_rule(struct wf_graph_reader *r, size_t begin)
{
    struct wf_text *rules = &r->graph->rules;
    size_t length = strcspn(r->scan.text + r->scan.at, "\r\n");

    while (r->graph->rule_line < r->line) {
        wf_text_char(rules, '\n');
        r->graph->rule_line++;
    }
    for (; begin < r->scan.at; begin++)
        wf_text_char(rules, ' ');
    wf_text_append(rules, r->scan.text + r->scan.at, length);
    r->scan.at += length;
    return wf_text_status(rules);
}

/* "input x f32[4] S(0)", behind its first word. */
static weft_status read_tensor(struct wf_graph_reader *r, uint8_t kind)
{
    struct wf_scan before = r->scan;
    struct wf_graph_line *line;
    const char *name, *text;
    size_t length;
    int32_t tensor, result, *numbers = wf_graph_alloc(r->graph, 2 * sizeof *numbers);

    if (numbers == NULL) return wf_fail_memory(2 * sizeof *numbers);
    if (!wf_graph_take_name(r, &name, &length)) return wf_graph_fail(r, "the name of a tensor");
    tensor = wf_graph_find(r->graph, name, length);
    if (kind == WF_GRAPH_OUTPUT && tensor < 0)
        return wf_scan_refuse(&before, "graph", "no line above defines it");
    if (kind != WF_GRAPH_OUTPUT && tensor >= 0)
        return wf_scan_refuse(&before, "graph", "line %u defines it already",
                              r->graph->tensors[tensor].line);
    WF_TRY(wf_graph_define(r->graph, name, length, r->line, kind == WF_GRAPH_OUTPUT, &result));
    WF_TRY(wf_graph_take_text(r, &text));
    if (kind != WF_GRAPH_OUTPUT && text[0] == '\0')
        return wf_graph_fail(r, "a spec: f32[4,6] S(0)");
    WF_TRY(wf_graph_add_line(r->graph, &line));
    numbers[0] = tensor;
    numbers[1] = result;
    line->kind = kind;
    line->number = r->line;
    line->spec = text[0] != '\0' ? text : NULL;
    line->inputs = numbers;
    line->outputs = numbers + 1;
    line->input_count = kind == WF_GRAPH_OUTPUT;
    line->output_count = 1;
    return WEFT_OK;
}

/* True if an assignment comes behind the next word, which may then be any name. */
static bool is_assignment(const struct wf_graph_reader *r)
{
    struct wf_graph_reader ahead = *r;
    const char *name;
    size_t length;

    if (!wf_graph_take_name(&ahead, &name, &length)) return false;
    wf_scan_space(&ahead.scan);
    return wf_scan_peek(&ahead.scan) == '=' || wf_scan_peek(&ahead.scan) == ',';
}

static weft_status read_line(struct wf_graph_reader *r)
{
    static const char *const words[] = {"input", "param", "output"}; /* by their kinds */
    uint32_t before = r->graph->line_count;
    const char *name;
    size_t length, kind = 0, begin = r->scan.at;

    if (is_assignment(r)) {
        (void)wf_graph_take_name(r, &name, &length);
        WF_TRY(wf_graph_read_call(r, name, length));
    } else if (wf_graph_take_keyword(r, "mesh")) {
        WF_TRY(read_mesh(r));
    } else if (wf_graph_take_keyword(r, "rule")) {
        return read_rule(r, begin);
    } else if (wf_graph_take_keyword(r, "phase")) {
        WF_TRY(read_phase(r));
    } else {
        while (kind < WF_COUNT(words) && !wf_graph_take_keyword(r, words[kind]))
            kind++;
        if (kind == WF_COUNT(words))
            return wf_graph_fail(r,
                                 "mesh, rule, phase, input, param, output, or \"y = operator(x)\"");
        WF_TRY(read_tensor(r, (uint8_t)kind));
    }
    for (wf_scan_space(&r->scan); wf_scan_char(&r->scan, ';'); wf_scan_space(&r->scan)) {
        if (r->graph->line_count == before) return wf_graph_fail(r, "the end of the line");
        WF_TRY(read_clause(r, &r->graph->lines[before]));
    }
    return WEFT_OK;
}

weft_status wf_graph_read(const char *text, weft_graph *g)
{
    struct wf_graph_reader r = {.graph = g, .scan = {text, 0}, .line = 1};

    g->rule_line = 1;
    g->mesh = weft_mesh_retain(weft_styles_mesh(g->styles));
    for (; !wf_scan_end(&r.scan); r.line++) {
        char c;
        wf_scan_space(&r.scan);
        c = wf_scan_peek(&r.scan);
        if (c != '#' && c != '\n' && c != '\r' && c != '\0') WF_TRY(read_line(&r));
        wf_scan_space(&r.scan);
        if (wf_scan_peek(&r.scan) == '#') r.scan.at += strcspn(text + r.scan.at, "\n");
        (void)wf_scan_char(&r.scan, '\r');
        if (!wf_scan_end(&r.scan) && !wf_scan_char(&r.scan, '\n'))
            return wf_graph_fail(&r, "; or the end of the line");
    }
    if (g->rules.length > 0) WF_TRY(weft_op_replace(g->rules.data));
    if (g->mesh == NULL)
        return wf_fail(WEFT_ERR_PARSE, "graph: no line gives the mesh, such as \"mesh dp=2,tp=4\"; "
                                       "in weft check, --style gives one too");
    return WEFT_OK;
}
