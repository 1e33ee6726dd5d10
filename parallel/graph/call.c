/* call.c - calls of operators in the text of a graph: "a, b = op(x, y, key=value)". */
#include "graph/graph.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

weft_status wf_graph_fail(const struct wf_graph_reader *r, const char *expected)
{
    return wf_scan_fail(&r->scan, "graph", "expected %s", expected);
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool wf_graph_take_name(struct wf_graph_reader *r, const char **start, size_t *length)
{
    size_t first = r->scan.at;

    if (!is_letter(wf_scan_peek(&r->scan))) return false;
    for (char c = 'a'; is_letter(c) || is_digit(c) || c == '.'; c = wf_scan_peek(&r->scan))
        r->scan.at++;
    *start = r->scan.text + first;
    *length = r->scan.at - first;
    return true;
}

static weft_status copy_text(weft_graph *g, const char *start, size_t length, const char **out)
{
    char *copy = wf_graph_alloc(g, length + 1);

    *out = "";
    if (copy == NULL) return wf_fail_memory(length + 1);
    memcpy(copy, start, length);
    *out = copy;
    return WEFT_OK;
}

weft_status wf_graph_take_text(struct wf_graph_reader *r, const char **out)
{
    size_t first, last;
    int depth = 0;

    wf_scan_space(&r->scan);
    first = last = r->scan.at;
    for (char c; (c = wf_scan_peek(&r->scan)) != '\0' && c != '\n' && c != '#'; r->scan.at++) {
        if (c == ';' && depth == 0) break;
        depth += (c == '(') - (c == ')');
        if (c != ' ' && c != '\t' && c != '\r') last = r->scan.at + 1;
    }
    return copy_text(r->graph, r->scan.text + first, last - first, out);
}

weft_status wf_graph_take_tensor(struct wf_graph_reader *r, int32_t *out)
{
    struct wf_scan before;
    const char *name;
    size_t length;

    wf_scan_space(&r->scan);
    before = r->scan;
    if (!wf_graph_take_name(r, &name, &length)) return wf_graph_fail(r, "the name of a tensor");
    *out = wf_graph_find(r->graph, name, length);
    if (*out >= 0 && r->graph->tensors[*out].freed != 0)
        return wf_scan_refuse(&before, "graph", "line %u frees %.100s",
                              r->graph->tensors[*out].freed, r->graph->tensors[*out].name);
    if (*out >= 0) return WEFT_OK;
    return wf_scan_refuse(&before, "graph", "no line above defines %.*s",
                          (int)(length < 100 ? length : 100), name);
}

/* ---- attributes ---- */

static weft_status read_list(struct wf_graph_reader *r, weft_op_attr *out)
{
    int64_t list[64];
    int64_t *copy;

    out->kind = WEFT_ATTR_LIST;
    for (wf_scan_space(&r->scan); !wf_scan_char(&r->scan, ']'); wf_scan_space(&r->scan)) {
        bool negative;
        if (out->count == WF_COUNT(list)) return wf_graph_fail(r, "at most 64 numbers");
        if (out->count > 0 && !wf_scan_char(&r->scan, ','))
            return wf_graph_fail(r, "\",\" or \"]\"");
        wf_scan_space(&r->scan);
        negative = wf_scan_char(&r->scan, '-');
        WF_TRY(wf_scan_int(&r->scan, "a number", &list[out->count]));
        if (negative) list[out->count] = -list[out->count];
        out->count++;
    }
    copy = wf_graph_alloc(r->graph, (out->count + 1) * sizeof *copy);
    if (copy == NULL) return wf_fail_memory((out->count + 1) * sizeof *copy);
    memcpy(copy, list, out->count * sizeof *copy);
    out->list = copy;
    return WEFT_OK;
}

static weft_status read_quoted(struct wf_graph_reader *r, weft_op_attr *out)
{
    size_t first = r->scan.at;

    while (wf_scan_peek(&r->scan) != '"') {
        if (wf_scan_peek(&r->scan) == '\n' || wf_scan_end(&r->scan)) return wf_graph_fail(r, "\"");
        r->scan.at++;
    }
    out->kind = WEFT_ATTR_TEXT;
    WF_TRY(copy_text(r->graph, r->scan.text + first, r->scan.at - first, &out->text));
    r->scan.at++;
    return WEFT_OK;
}

/* A number, true, false, or a word. */
static weft_status read_word(struct wf_graph_reader *r, weft_op_attr *out)
{
    size_t first = r->scan.at, length = strcspn(r->scan.text + first, " \t\r\n,);#");
    const char *text;
    char *end;

    if (length == 0) return wf_graph_fail(r, "a value");
    r->scan.at += length;
    WF_TRY(copy_text(r->graph, r->scan.text + first, length, &text));
    *out = (weft_op_attr){.name = out->name, .kind = WEFT_ATTR_TEXT, .text = text};
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0) {
        out->kind = WEFT_ATTR_INT;
        out->integer = text[0] == 't';
        return WEFT_OK;
    }
    if (!is_digit(text[0]) && text[0] != '-' && text[0] != '.' && strcmp(text, "inf") != 0)
        return WEFT_OK;
    out->integer = strtoll(text, &end, 10);
    out->kind = WEFT_ATTR_INT;
    if (*end == '\0' && length < 19) return WEFT_OK;
    out->real = kit_read_double(text, &end);
    out->kind = *end == '\0' && !isnan(out->real) ? WEFT_ATTR_REAL : WEFT_ATTR_TEXT;
    return WEFT_OK;
}

static weft_status read_attr(struct wf_graph_reader *r, const char *name, size_t length,
                             weft_op_attr *out)
{
    *out = (weft_op_attr){.name = NULL};
    WF_TRY(copy_text(r->graph, name, length, &out->name));
    wf_scan_space(&r->scan);
    if (wf_scan_char(&r->scan, '[')) return read_list(r, out);
    if (wf_scan_char(&r->scan, '"')) return read_quoted(r, out);
    return read_word(r, out);
}

/* ---- calls ---- */

/* A call, before it is copied to its line. */
struct draft {
    uint32_t output_count, input_count, attr_count;
    int32_t outputs[WF_GRAPH_INPUTS], inputs[WF_GRAPH_INPUTS];
    weft_op_attr attrs[WF_GRAPH_ATTRS];
};

static weft_status read_argument(struct wf_graph_reader *r, struct draft *d)
{
    struct wf_scan before = r->scan;
    const char *name;
    size_t length;

    if (d->input_count == WF_GRAPH_INPUTS || d->attr_count == WF_GRAPH_ATTRS)
        return wf_graph_fail(r, "fewer arguments");
    if (wf_scan_char(&r->scan, '-')) {
        d->inputs[d->input_count++] = -1;
        return WEFT_OK;
    }
    if (!wf_graph_take_name(r, &name, &length))
        return wf_graph_fail(r, "a tensor, name=value or -");
    wf_scan_space(&r->scan);
    if (wf_scan_char(&r->scan, '=')) return read_attr(r, name, length, &d->attrs[d->attr_count++]);
    r->scan = before;
    return wf_graph_take_tensor(r, &d->inputs[d->input_count++]);
}

static weft_status read_arguments(struct wf_graph_reader *r, struct draft *d)
{
    bool any = false;

    wf_scan_space(&r->scan);
    if (!wf_scan_char(&r->scan, '(')) return wf_graph_fail(r, "(");
    for (wf_scan_space(&r->scan); !wf_scan_char(&r->scan, ')'); any = true) {
        if (any && !wf_scan_char(&r->scan, ',')) return wf_graph_fail(r, "\",\" or \")\"");
        wf_scan_space(&r->scan);
        WF_TRY(read_argument(r, d));
        wf_scan_space(&r->scan);
    }
    return WEFT_OK;
}

/* Define one of the results; "_" has no name. */
static weft_status add_result(struct wf_graph_reader *r, const char *name, size_t length,
                              struct draft *d)
{
    int32_t found = wf_graph_find(r->graph, name, length);
    int32_t *out = &d->outputs[d->output_count];

    if (d->output_count == WF_GRAPH_INPUTS) return wf_graph_fail(r, "fewer results");
    d->output_count++;
    *out = -1;
    if (length == 1 && name[0] == '_') return WEFT_OK;
    if (found >= 0)
        return wf_scan_refuse(&r->scan, "graph", "line %u defines %.100s already",
                              r->graph->tensors[found].line, r->graph->tensors[found].name);
    return wf_graph_define(r->graph, name, length, r->line, false, out);
}

static uint8_t kind_of(const char *op)
{
    if (strcmp(op, "move") == 0) return WF_GRAPH_MOVE;
    if (strcmp(op, "start") == 0) return WF_GRAPH_START;
    return strcmp(op, "wait") == 0 ? WF_GRAPH_WAIT : WF_GRAPH_CALL;
}

static weft_status keep_call(struct wf_graph_reader *r, const struct draft *d, const char *op)
{
    struct wf_graph_line *line;
    int32_t *numbers =
        wf_graph_alloc(r->graph, (d->input_count + d->output_count + 1) * sizeof *numbers);
    weft_op_attr *attrs = wf_graph_alloc(r->graph, (d->attr_count + 1) * sizeof *attrs);

    if (numbers == NULL || attrs == NULL) return wf_fail_memory(sizeof *d);
    WF_TRY(wf_graph_add_line(r->graph, &line));
    memcpy(numbers, d->inputs, d->input_count * sizeof *numbers);
    memcpy(numbers + d->input_count, d->outputs, d->output_count * sizeof *numbers);
    memcpy(attrs, d->attrs, d->attr_count * sizeof *attrs);
    line->number = r->line;
    line->kind = kind_of(op);
    line->op = op;
    line->inputs = numbers;
    line->outputs = numbers + d->input_count;
    line->attrs = attrs;
    line->input_count = d->input_count;
    line->output_count = d->output_count;
    line->attr_count = d->attr_count;
    return WEFT_OK;
}

weft_status wf_graph_read_call(struct wf_graph_reader *r, const char *first, size_t length)
{
    /* results are defined behind the arguments, so that a line cannot read its own */
    struct {
        const char *name;
        size_t length;
    } names[WF_GRAPH_INPUTS] = {{first, length}};
    struct draft d = {.output_count = 0};
    const char *name, *op;
    uint32_t count = 1;

    for (wf_scan_space(&r->scan); wf_scan_char(&r->scan, ','); wf_scan_space(&r->scan)) {
        wf_scan_space(&r->scan);
        if (count == WF_GRAPH_INPUTS) return wf_graph_fail(r, "fewer results");
        if (!wf_graph_take_name(r, &names[count].name, &names[count].length))
            return wf_graph_fail(r, "the name of a tensor");
        count++;
    }
    if (!wf_scan_char(&r->scan, '=')) return wf_graph_fail(r, "=");
    wf_scan_space(&r->scan);
    if (!wf_graph_take_name(r, &name, &length)) return wf_graph_fail(r, "the name of an operator");
    WF_TRY(copy_text(r->graph, name, length, &op));
    WF_TRY(read_arguments(r, &d));
    for (uint32_t i = 0; i < count; i++)
        WF_TRY(add_result(r, names[i].name, names[i].length, &d));
    return keep_call(r, &d, op);
}
