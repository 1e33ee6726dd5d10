/* report.c - what a pass has changed, for each collective. */
#include "reorder/report.h"

#include <inttypes.h>

/* Line INDEX of GRAPH, which exists. */
static weft_graph_line_info line_of(const weft_graph *graph, int32_t index)
{
    weft_graph_line_info info = {.struct_size = sizeof info};

    if (weft_graph_line_get(graph, (size_t)index, &info) != WEFT_OK)
        info = (weft_graph_line_info){.name = "_"};
    return info;
}

/* Copy the figures of REORDER.  The library counts all of a node of communication as exposed. */
static weft_status get_figures(const weft_graph *graph, const weft_reorder *reorder,
                               weft_reorder_info *out)
{
    weft_graph_info info = {.struct_size = sizeof info};

    *out = (weft_reorder_info){.struct_size = sizeof *out};
    WF_TRY(weft_reorder_get(reorder, out));
    WF_TRY(weft_graph_get(graph, &info));
    for (size_t i = 0; i < info.lines; i++) {
        uint64_t compute = line_of(graph, (int32_t)i).inner_compute;
        out->exposed_before -= compute;
        out->exposed_after -= compute;
    }
    return WEFT_OK;
}

/* Append the numbers of the lines in the order of REORDER, each by ADD. */
static void each_line(const weft_graph *graph, const weft_reorder *reorder,
                      void (*add)(void *, uint32_t), void *argument)
{
    int32_t line;

    for (size_t i = 0; (line = weft_reorder_at(reorder, i)) >= 0; i++)
        add(argument, line_of(graph, line).number);
}

static void add_text_number(void *out, uint32_t number)
{
    wf_text_add(out, " %" PRIu32, number);
}

static void add_json_number(void *json, uint32_t number)
{
    wf_json_uint(json, NULL, number);
}

static void add_change(struct wf_text *out, const char *what, uint64_t before, uint64_t after,
                       void (*add)(struct wf_text *, uint64_t))
{
    wf_text_add(out, "%s ", what);
    add(out, before);
    wf_text_add(out, " -> ");
    add(out, after);
}

/* An order can exceed LIMIT, 0 for none, if the given order does, or if its pass has no limit. */
static void add_excess(struct wf_text *out, const weft_reorder_info *info, uint64_t limit)
{
    if (limit == 0 || info->peak_after <= limit) return;
    wf_text_add(out, "note: the order needs ");
    wf_text_bytes(out, info->peak_after);
    wf_text_add(out, ", more than --memory-limit ");
    wf_text_bytes(out, limit);
    wf_text_add(out, info->peak_before > limit ? "; the given order needs more than that too\n"
                                               : "; this pass does not limit memory\n");
}

weft_status reorder_add_text(const weft_graph *graph, const weft_reorder *reorder, const char *pass,
                             uint64_t limit, struct wf_text *out)
{
    weft_reorder_info info;
    weft_reorder_collective_info c = {.struct_size = sizeof c};

    WF_TRY(get_figures(graph, reorder, &info));
    wf_text_add(out, "%s: ", pass);
    add_change(out, "time", info.time_before, info.time_after, wf_text_time);
    add_change(out, ", exposed", info.exposed_before, info.exposed_after, wf_text_time);
    add_change(out, ", peak", info.peak_before, info.peak_after, wf_text_bytes);
    wf_text_add(out, "\n%zu collective%s; digest of the order %016" PRIx64 "\n", info.collectives,
                WF_PLURAL(info.collectives), info.digest);
    add_excess(out, &info, limit);
    if (info.collectives == 0)
        wf_text_add(out, "note: no line has `start`; moves of other lines stay where they are\n");
    for (size_t i = 0; i < info.collectives; i++) {
        weft_graph_line_info start;
        WF_TRY(weft_reorder_collective_get(reorder, i, &c));
        start = line_of(graph, c.start);
        wf_text_add(out, "line %" PRIu32 ", %s on %s, ", start.number, start.name, start.comm);
        wf_text_time(out, c.time);
        add_change(out, ": exposed", c.exposed_before, c.exposed_after, wf_text_time);
        wf_text_add(out, "; start %d up, ended by: %s; wait %d down, ended by: %s\n", c.moves_up,
                    weft_reorder_limit_name((enum weft_reorder_limit)c.limit_up), c.moves_down,
                    weft_reorder_limit_name((enum weft_reorder_limit)c.limit_down));
    }
    wf_text_add(out, "order of lines:");
    each_line(graph, reorder, add_text_number, out);
    wf_text_char(out, '\n');
    return wf_text_status(out);
}

static void add_collective(struct wf_json *json, const weft_graph *graph,
                           const weft_reorder_collective_info *c)
{
    weft_graph_line_info start = line_of(graph, c->start);

    wf_json_begin(json, NULL, '{');
    wf_json_uint(json, "line", start.number);
    wf_json_uint(json, "wait_line", line_of(graph, c->wait).number);
    wf_json_string(json, "name", start.name);
    wf_json_string(json, "comm", start.comm);
    wf_json_uint(json, "time_ns", c->time);
    wf_json_uint(json, "exposed_before_ns", c->exposed_before);
    wf_json_uint(json, "exposed_after_ns", c->exposed_after);
    wf_json_int(json, "moves_up", c->moves_up);
    wf_json_int(json, "moves_down", c->moves_down);
    wf_json_string(json, "limit_up", weft_reorder_limit_name((enum weft_reorder_limit)c->limit_up));
    wf_json_string(json, "limit_down",
                   weft_reorder_limit_name((enum weft_reorder_limit)c->limit_down));
    wf_json_end(json, '}');
}

weft_status reorder_add_json(const weft_graph *graph, const weft_reorder *reorder, const char *pass,
                             uint64_t limit, struct wf_text *out)
{
    weft_reorder_info info;
    weft_reorder_collective_info c = {.struct_size = sizeof c};
    struct wf_json json = {.out = out};
    char digest[24];

    WF_TRY(get_figures(graph, reorder, &info));
    snprintf(digest, sizeof digest, "%016" PRIx64, info.digest);
    wf_json_begin(&json, NULL, '{');
    wf_json_string(&json, "pass", pass);
    wf_json_uint(&json, "time_before_ns", info.time_before);
    wf_json_uint(&json, "time_after_ns", info.time_after);
    wf_json_uint(&json, "exposed_before_ns", info.exposed_before);
    wf_json_uint(&json, "exposed_after_ns", info.exposed_after);
    wf_json_uint(&json, "peak_before", info.peak_before);
    wf_json_uint(&json, "peak_after", info.peak_after);
    if (limit > 0)
        wf_json_uint(&json, "memory_limit", limit);
    else
        wf_json_null(&json, "memory_limit");
    wf_json_string(&json, "digest", digest);
    wf_json_begin(&json, "collectives", '[');
    for (size_t i = 0; i < info.collectives; i++) {
        WF_TRY(weft_reorder_collective_get(reorder, i, &c));
        add_collective(&json, graph, &c);
    }
    wf_json_end(&json, ']');
    wf_json_begin(&json, "order", '[');
    each_line(graph, reorder, add_json_number, &json);
    wf_json_end(&json, ']');
    wf_json_end(&json, '}');
    wf_text_char(out, '\n');
    return wf_text_status(out);
}
