/* report.c - what a pass has changed, for each collective. */
#include "reorder/program.h"

#include <inttypes.h>

static const struct graph_line *line_of(const struct program *p, int32_t node)
{
    return &p->graph->lines[node];
}

static const char *name_of(const struct program *p, int32_t node)
{
    const struct graph_line *line = line_of(p, node);
    int32_t tensor = line->output_count > 0 ? line->outputs[0] : -1;

    return tensor >= 0 ? p->graph->tensors[tensor].name : "_";
}

/* Copy the figures of REORDER.  The library counts all of a node of communication as exposed. */
static weft_status get_figures(const struct program *p, const weft_reorder *reorder,
                               weft_reorder_info *out)
{
    *out = (weft_reorder_info){.struct_size = sizeof *out};
    WF_TRY(weft_reorder_get(reorder, out));
    out->exposed_before -= p->compute;
    out->exposed_after -= p->compute;
    return WEFT_OK;
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

weft_status program_add_text(const struct program *p, const weft_reorder *reorder, const char *pass,
                             uint64_t limit, struct wf_text *out)
{
    weft_reorder_info info;
    weft_reorder_collective_info c = {.struct_size = sizeof c};

    WF_TRY(get_figures(p, reorder, &info));
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
        WF_TRY(weft_reorder_collective_get(reorder, i, &c));
        wf_text_add(out, "line %" PRIu32 ", %s on %s, ", line_of(p, c.start)->number,
                    name_of(p, c.start), p->comms[p->nodes[c.start].comm]);
        wf_text_time(out, c.time);
        add_change(out, ": exposed", c.exposed_before, c.exposed_after, wf_text_time);
        wf_text_add(out, "; start %d up, ended by: %s; wait %d down, ended by: %s\n", c.moves_up,
                    weft_reorder_limit_name((enum weft_reorder_limit)c.limit_up), c.moves_down,
                    weft_reorder_limit_name((enum weft_reorder_limit)c.limit_down));
    }
    wf_text_add(out, "order of lines:");
    for (uint32_t i = 0; i < p->graph->line_count; i++)
        wf_text_add(out, " %" PRIu32, line_of(p, weft_reorder_at(reorder, i))->number);
    wf_text_char(out, '\n');
    return wf_text_status(out);
}

static void add_collective(struct wf_json *json, const struct program *p,
                           const weft_reorder_collective_info *c)
{
    wf_json_begin(json, NULL, '{');
    wf_json_uint(json, "line", line_of(p, c->start)->number);
    wf_json_uint(json, "wait_line", line_of(p, c->wait)->number);
    wf_json_string(json, "name", name_of(p, c->start));
    wf_json_string(json, "comm", p->comms[p->nodes[c->start].comm]);
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

weft_status program_add_json(const struct program *p, const weft_reorder *reorder, const char *pass,
                             uint64_t limit, struct wf_text *out)
{
    weft_reorder_info info;
    weft_reorder_collective_info c = {.struct_size = sizeof c};
    struct wf_json json = {.out = out};
    char digest[24];

    WF_TRY(get_figures(p, reorder, &info));
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
        add_collective(&json, p, &c);
    }
    wf_json_end(&json, ']');
    wf_json_begin(&json, "order", '[');
    for (uint32_t i = 0; i < p->graph->line_count; i++)
        wf_json_uint(&json, NULL, line_of(p, weft_reorder_at(reorder, i))->number);
    wf_json_end(&json, ']');
    wf_json_end(&json, '}');
    wf_text_char(out, '\n');
    return wf_text_status(out);
}
