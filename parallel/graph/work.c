/* work.c - clauses about what a line costs: time, flops, alloc, free and comm. */
#include "base/text/size.h"
#include "graph/graph.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static weft_status refuse_twice(const struct wf_graph_reader *r, const char *clause)
{
    return wf_scan_refuse(&r->scan, "graph", "the line has two clauses %s", clause);
}

/* "5us", "1.5 ms", "120" (nanoseconds). */
static weft_status read_time(struct wf_graph_reader *r, uint64_t *out)
{
    static const struct {
        const char *name;
        double ns;
    } units[] = {{"", 1}, {"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
    struct wf_scan before = r->scan;
    const char *text;
    double value;
    char *end;

    if (*out != WF_GRAPH_UNKNOWN) return refuse_twice(r, "time");
    WF_TRY(wf_graph_take_text(r, &text));
    value = kit_read_double(text, &end);
    while (*end == ' ')
        end++;
    for (size_t i = 0; end != text && i < WF_COUNT(units); i++) {
        double ns = value * units[i].ns;
        if (strcmp(end, units[i].name) != 0 || !(ns >= 0 && ns < 1e12)) continue;
        *out = (uint64_t)llround(ns);
        return WEFT_OK;
    }
    r->scan = before;
    return wf_graph_fail(r, "a time below 1000 s, such as 12.5us");
}

static weft_status read_alloc(struct wf_graph_reader *r, uint64_t *out)
{
    const char *text = r->scan.text + r->scan.at;
    size_t taken;
    int64_t size = 0;

    if (*out != WF_GRAPH_UNKNOWN) return refuse_twice(r, "alloc");
    taken = wf_scan_size(text, &size);
    if (taken == 0 && text[0] == '0') taken = 1;
    if (taken == 0 || size >> 47 != 0) return wf_graph_fail(r, "a size such as 64M");
    r->scan.at += taken;
    *out = (uint64_t)size;
    return WEFT_OK;
}

static weft_status read_frees(struct wf_graph_reader *r, struct wf_graph_line *line)
{
    int32_t list[WF_GRAPH_INPUTS];
    uint32_t count = 0;

    if (line->free_count > 0) return refuse_twice(r, "free");
    do {
        if (count == WF_GRAPH_INPUTS) return wf_graph_fail(r, "fewer tensors");
        WF_TRY(wf_graph_take_tensor(r, &list[count]));
        r->graph->tensors[list[count++]].freed = r->line;
        wf_scan_space(&r->scan);
    } while (wf_scan_char(&r->scan, ','));
    line->frees = wf_graph_alloc(r->graph, count * sizeof *line->frees);
    if (line->frees == NULL) return wf_fail_memory(count * sizeof *line->frees);
    memcpy(line->frees, list, count * sizeof *line->frees);
    line->free_count = count;
    return WEFT_OK;
}

static weft_status read_flops(struct wf_graph_reader *r, struct wf_graph_line *line)
{
    struct wf_scan before = r->scan;
    const char *text;
    char *end;
    double value;

    if (line->flops >= 0) return refuse_twice(r, "flops");
    WF_TRY(wf_graph_take_text(r, &text));
    value = kit_read_double(text, &end);
    if (strcmp(text, "auto") == 0) return WEFT_OK;
    if (end != text && *end == '\0' && value >= 0 && value < 1e30) {
        line->flops = value;
        return WEFT_OK;
    }
    r->scan = before;
    return wf_graph_fail(r, "a number, or auto");
}

weft_status wf_graph_read_work(struct wf_graph_reader *r, struct wf_graph_line *line, bool *found)
{
    *found = true;
    if (wf_graph_take_keyword(r, "flops")) return read_flops(r, line);
    if (wf_graph_take_keyword(r, "time")) return read_time(r, &line->time_ns);
    if (wf_graph_take_keyword(r, "alloc")) return read_alloc(r, &line->alloc);
    if (wf_graph_take_keyword(r, "free")) return read_frees(r, line);
    if (wf_graph_take_keyword(r, "comm")) {
        if (line->comm != NULL) return refuse_twice(r, "comm");
        WF_TRY(wf_graph_take_text(r, &line->comm));
        return line->comm[0] != '\0' ? WEFT_OK : wf_graph_fail(r, "the name of a communicator");
    }
    *found = false;
    return WEFT_OK;
}
