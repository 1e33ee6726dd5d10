/* report.c - the figures of a simulated step. */
#include "step/step.h"

static uint64_t held_at_start(const struct step_stage *stage)
{
    return wf_add_capped(stage->parameters, stage->gradients);
}

static void add_share(struct wf_text *out, const char *what, uint64_t part, uint64_t whole)
{
    wf_text_add(out, "%s", what);
    wf_text_time(out, part);
    wf_text_add(out, " (%.1f %%)\n", whole > 0 ? 100 * (double)part / (double)whole : 0);
}

/* A line per stage.  Columns of gathers are for schedules with UNSHARD. */
static void add_table(const struct step_result *r, int32_t stages, struct wf_text *out)
{
    static const struct {
        const char *name;
        bool is_bytes, of_gathers;
    } columns[] = {{"forward", 0, 0},  {"backward", 0, 0},  {"unshard", 0, 1},
                   {"reduce", 0, 0},   {"update", 0, 0},    {"parameters", 1, 0},
                   {"gathered", 1, 1}, {"gradients", 1, 0}, {"a microbatch", 1, 0}};

    wf_text_add(out, "stage  rank");
    for (size_t j = 0; j < WF_COUNT(columns); j++)
        if (!columns[j].of_gathers || r->sharded)
            wf_text_add(out, j + 1 < WF_COUNT(columns) ? "  %-10s" : "  %s", columns[j].name);
    wf_text_char(out, '\n');
    for (int32_t i = 0; i < stages; i++) {
        const struct step_stage *s = &r->stages[i];
        const uint64_t values[] = {s->forward,   s->input + s->weight, s->unshard,  s->reduce,
                                   s->update,    s->parameters,        s->gathered, s->gradients,
                                   s->activation};
        wf_text_add(out, "%-5d  %-4d", i, weft_schedule_rank_of(r->schedule, i));
        for (size_t j = 0; j < WF_COUNT(columns); j++) {
            size_t from = out->length;
            if (columns[j].of_gathers && !r->sharded) continue;
            wf_text_add(out, "  ");
            if (columns[j].is_bytes)
                wf_text_bytes(out, values[j]);
            else
                wf_text_time(out, values[j]);
            while (!out->failed && out->length - from < 12 && j + 1 < WF_COUNT(columns))
                wf_text_char(out, ' ');
        }
        wf_text_char(out, '\n');
    }
}

weft_status step_add_text(const struct step_request *request, const struct step_result *r,
                          struct wf_text *out)
{
    double rate = (double)weft_cost_table_peak_flops(request->costs);
    weft_schedule_info info = {.struct_size = sizeof info};
    int32_t size = weft_mesh_size(request->mesh);

    WF_TRY(weft_schedule_get(r->schedule, &info));
    wf_text_add(out, "%s: %d stage%s on %d pipeline rank%s, %d microbatch%s, %d rank%s in all\n",
                info.name, info.stages, WF_PLURAL(info.stages), info.ranks, WF_PLURAL(info.ranks),
                info.microbatches, info.microbatches == 1 ? "" : "es", size, WF_PLURAL(size));
    wf_text_add(out, "step: ");
    wf_text_time(out, r->time);
    wf_text_char(out, '\n');
    add_share(out, "bubble: ", r->bubble, r->time);
    add_share(out, "exposed communication: ", r->exposed, r->time);
    wf_text_add(out, "memory: ");
    wf_text_bytes(out, r->peak);
    wf_text_add(out, " on the rank that holds most\n");
    if (r->utilisation > 0)
        wf_text_add(out, "model FLOPs utilisation: %.1f %% of %.*f %s\n", 100 * r->utilisation,
                    rate < 1e13, rate * (rate < 1e12 ? 1e-9 : 1e-12),
                    rate < 1e12 ? "GFLOP/s" : "TFLOP/s");
    if (r->pipelines > 1) wf_text_add(out, "pipelines simulated: %d\n", r->pipelines);
    if ((uint32_t)info.stages > r->layers && info.stages > 1)
        wf_text_add(out, "note: the graph has %u layer%s; stages from %u on have none\n", r->layers,
                    WF_PLURAL(r->layers), r->layers);
    if (r->unreduced > 0)
        wf_text_add(out,
                    "note: the schedule has no REDUCE_GRAD of %d stage%s; the step does not reduce "
                    "%s gradients\n",
                    r->unreduced, WF_PLURAL(r->unreduced), r->unreduced == 1 ? "its" : "their");
    add_table(r, info.stages, out);
    return wf_text_status(out);
}

static void add_stage(struct wf_json *json, const struct step_result *r, int32_t index)
{
    const struct step_stage *s = &r->stages[index];

    wf_json_begin(json, NULL, '{');
    wf_json_int(json, "rank", weft_schedule_rank_of(r->schedule, index));
    wf_json_uint(json, "forward_ns", s->forward);
    wf_json_uint(json, "input_ns", s->input);
    wf_json_uint(json, "weight_ns", s->weight);
    wf_json_uint(json, "communication_ns", s->communication);
    wf_json_uint(json, "unshard_ns", s->unshard);
    wf_json_uint(json, "reduce_ns", s->reduce);
    wf_json_uint(json, "update_ns", s->update);
    wf_json_uint(json, "parameter_bytes", s->parameters);
    wf_json_uint(json, "gradient_bytes", s->gradients);
    wf_json_uint(json, "gathered_bytes", s->gathered);
    wf_json_uint(json, "activation_bytes", s->activation);
    wf_json_uint(json, "held_bytes", held_at_start(s));
    wf_json_real(json, "flops", s->flops);
    wf_json_end(json, '}');
}

weft_status step_add_json(const struct step_request *request, const struct step_result *r,
                          struct wf_text *out)
{
    weft_schedule_info info = {.struct_size = sizeof info};
    struct wf_json json = {.out = out};
    char mesh[512];

    WF_TRY(weft_schedule_get(r->schedule, &info));
    WF_TRY(weft_mesh_print(request->mesh, mesh, sizeof mesh, NULL));
    wf_json_begin(&json, NULL, '{');
    wf_json_string(&json, "mesh", mesh);
    wf_json_int(&json, "ranks", weft_mesh_size(request->mesh));
    wf_json_string(&json, "schedule", info.name);
    wf_json_int(&json, "stages", info.stages);
    wf_json_int(&json, "microbatches", info.microbatches);
    wf_json_uint(&json, "layers", r->layers);
    wf_json_bool(&json, "sharded", r->sharded);
    wf_json_int(&json, "unreduced", r->unreduced);
    wf_json_uint(&json, "time_ns", r->time);
    wf_json_uint(&json, "bubble_ns", r->bubble);
    wf_json_uint(&json, "exposed_ns", r->exposed);
    wf_json_uint(&json, "peak_bytes", r->peak);
    wf_json_uint(&json, "boundary_bytes", r->boundary);
    wf_json_real(&json, "flops", r->flops);
    wf_json_uint(&json, "flops_per_s", weft_cost_table_peak_flops(request->costs));
    if (r->utilisation > 0)
        wf_json_real(&json, "utilisation", r->utilisation);
    else
        wf_json_null(&json, "utilisation");
    wf_json_int(&json, "pipelines", r->pipelines);
    wf_json_begin(&json, "stage", '[');
    for (int32_t i = 0; i < info.stages; i++)
        add_stage(&json, r, i);
    wf_json_end(&json, ']');
    wf_json_begin(&json, "rank", '[');
    for (int32_t p = 0; p < info.ranks; p++) {
        wf_json_begin(&json, NULL, '{');
        wf_json_uint(&json, "busy_ns", r->ranks[p].busy);
        wf_json_uint(&json, "end_ns", wf_add_capped(r->ranks[p].end, r->update[p]));
        wf_json_uint(&json, "exposed_ns", r->ranks[p].exposed);
        wf_json_uint(&json, "peak_bytes", r->ranks[p].peak);
        wf_json_end(&json, '}');
    }
    wf_json_end(&json, ']');
    wf_json_end(&json, '}');
    wf_text_char(out, '\n');
    return wf_text_status(out);
}
