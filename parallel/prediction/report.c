/* report.c - the figures of a simulated step. */
#include "prediction/prediction.h"

static void add_share(struct wf_text *out, const char *what, uint64_t part, uint64_t whole)
{
    wf_text_add(out, "%s", what);
    wf_text_time(out, part);
    wf_text_add(out, " (%.1f %%)\n", whole > 0 ? 100 * (double)part / (double)whole : 0);
}

/* A line per stage.  Columns of gathers are for schedules with UNSHARD. */
static void add_table(const weft_prediction *r, int32_t stages, struct wf_text *out)
{
    bool unshards = r->info.sharded, gathers = unshards;
    static const struct {
        const char *name;
        bool is_bytes;
        uint8_t shown; /* 1: with UNSHARD; 2: if a stage gathers */
    } columns[] = {{"forward", 0, 0},     {"backward", 0, 0},  {"unshard", 0, 1},
                   {"reduce", 0, 0},      {"update", 0, 0},    {"parameters", 1, 0},
                   {"gathered", 1, 2},    {"gradients", 1, 0}, {"optimizer", 1, 0},
                   {"activations", 1, 0}, {"logits", 1, 0}};

    for (int32_t i = 0; i < stages; i++)
        gathers = gathers || r->stages[i].gathered > 0;
    wf_text_add(out, "stage  rank");
    for (size_t j = 0; j < WF_COUNT(columns); j++)
        if (columns[j].shown == 0 || (columns[j].shown == 1 ? unshards : gathers))
            wf_text_add(out, j + 1 < WF_COUNT(columns) ? "  %-10s" : "  %s", columns[j].name);
    wf_text_char(out, '\n');
    for (int32_t i = 0; i < stages; i++) {
        const weft_prediction_stage_info *s = &r->stages[i];
        const uint64_t values[] = {s->forward,
                                   s->input + s->weight,
                                   s->unshard,
                                   s->reduce,
                                   s->update,
                                   s->parameters,
                                   s->gathered,
                                   s->gradients,
                                   s->optimizer,
                                   s->activation,
                                   wf_add_capped(s->logits, s->logit_gradients)};
        wf_text_add(out, "%-5d  %-4d", i, weft_schedule_rank_of(r->schedule, i));
        for (size_t j = 0; j < WF_COUNT(columns); j++) {
            size_t from = out->length;
            if (columns[j].shown != 0 && !(columns[j].shown == 1 ? unshards : gathers)) continue;
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

weft_status wf_step_add_text(const weft_prediction *r, struct wf_text *out)
{
    double rate = r->info.peak_flops;
    weft_schedule_info info = {.struct_size = sizeof info};
    int32_t size = weft_mesh_size(r->mesh);

    WF_TRY(weft_schedule_get(r->schedule, &info));
    wf_text_add(out, "%s: %d stage%s on %d pipeline rank%s, %d microbatch%s, %d rank%s in all\n",
                info.name, info.stages, WF_PLURAL(info.stages), info.ranks, WF_PLURAL(info.ranks),
                info.microbatches, info.microbatches == 1 ? "" : "es", size, WF_PLURAL(size));
    wf_text_add(out, "step: ");
    wf_text_time(out, r->info.time);
    wf_text_char(out, '\n');
    if (info.ranks > 1) add_share(out, "bubble: ", r->info.bubble, r->info.time);
    add_share(out, "exposed communication: ", r->info.exposed, r->info.time);
    wf_text_add(out, "memory: ");
    wf_text_bytes(out, r->info.peak);
    wf_text_add(out, " on the rank that holds most\n");
    if (r->info.hardware_utilisation > 0)
        wf_text_add(out,
                    "model FLOPs utilisation: %.1f %% of %.*f %s: operations of forward and "
                    "backward / (time * ranks)\n",
                    100 * r->info.utilisation, rate < 1e13, rate * (rate < 1e12 ? 1e-9 : 1e-12),
                    rate < 1e12 ? "GFLOP/s" : "TFLOP/s");
    if (r->info.recomputed > 0 && r->info.hardware_utilisation > 0)
        wf_text_add(out,
                    "hardware FLOPs utilisation: %.1f %%: with operations that are computed "
                    "again\n",
                    100 * r->info.hardware_utilisation);
    wf_text_add(out, "costs: %s%s%s\n", r->info.costs, r->info.source[0] != '\0' ? ": " : "",
                r->info.source);
    if (r->info.pipelines > 1) wf_text_add(out, "pipelines simulated: %d\n", r->info.pipelines);
    if (r->even && (uint32_t)info.stages > r->info.layers && info.stages > 1)
        wf_text_add(out, "note: the graph has %u layer%s; stages from %u on have none\n",
                    r->info.layers, WF_PLURAL(r->info.layers), r->info.layers);
    if (r->info.unreduced > 0)
        wf_text_add(out,
                    "note: the schedule has no REDUCE_GRAD of %d stage%s; the step does not reduce "
                    "%s gradients\n",
                    r->info.unreduced, WF_PLURAL(r->info.unreduced),
                    r->info.unreduced == 1 ? "its" : "their");
    add_table(r, info.stages, out);
    return wf_text_status(out);
}

static void add_stage(struct wf_json *json, const weft_prediction *r, int32_t index)
{
    const weft_prediction_stage_info *s = &r->stages[index];

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
    wf_json_uint(json, "optimizer_bytes", s->optimizer);
    wf_json_uint(json, "gathered_bytes", s->gathered);
    wf_json_uint(json, "activation_bytes", s->activation);
    wf_json_uint(json, "logit_bytes", s->logits);
    wf_json_uint(json, "logit_gradient_bytes", s->logit_gradients);
    wf_json_uint(json, "held_bytes", wf_step_held(s));
    wf_json_real(json, "flops", s->flops);
    wf_json_real(json, "recomputed_flops", s->recomputed);
    wf_json_end(json, '}');
}

/* A share of the peak rate; null where that is not known. */
static void add_share_of_peak(struct wf_json *json, const weft_prediction *r, const char *name,
                              double share)
{
    if (r->info.hardware_utilisation > 0)
        wf_json_real(json, name, share);
    else
        wf_json_null(json, name);
}

weft_status wf_step_add_json(const weft_prediction *r, struct wf_text *out)
{
    weft_schedule_info info = {.struct_size = sizeof info};
    struct wf_json json = {.out = out};
    char mesh[512];

    WF_TRY(weft_schedule_get(r->schedule, &info));
    WF_TRY(weft_mesh_print(r->mesh, mesh, sizeof mesh, NULL));
    wf_json_begin(&json, NULL, '{');
    wf_json_string(&json, "mesh", mesh);
    wf_json_int(&json, "ranks", weft_mesh_size(r->mesh));
    wf_json_string(&json, "schedule", info.name);
    wf_json_int(&json, "stages", info.stages);
    wf_json_int(&json, "microbatches", info.microbatches);
    wf_json_uint(&json, "layers", r->info.layers);
    wf_json_bool(&json, "sharded", r->info.sharded);
    wf_json_int(&json, "unreduced", r->info.unreduced);
    wf_json_uint(&json, "time_ns", r->info.time);
    wf_json_uint(&json, "bubble_ns", r->info.bubble);
    wf_json_uint(&json, "exposed_ns", r->info.exposed);
    wf_json_uint(&json, "peak_bytes", r->info.peak);
    wf_json_uint(&json, "boundary_bytes", r->info.boundary);
    wf_json_real(&json, "flops", r->info.flops);
    wf_json_real(&json, "recomputed_flops", r->info.recomputed);
    wf_json_uint(&json, "flops_per_s", (uint64_t)r->info.peak_flops);
    add_share_of_peak(&json, r, "utilisation", r->info.utilisation);
    add_share_of_peak(&json, r, "hardware_utilisation", r->info.hardware_utilisation);
    wf_json_string(&json, "costs", r->info.costs);
    wf_json_string(&json, "costs_source", r->info.source);
    wf_json_int(&json, "pipelines", r->info.pipelines);
    wf_json_begin(&json, "stage", '[');
    for (int32_t i = 0; i < info.stages; i++)
        add_stage(&json, r, i);
    wf_json_end(&json, ']');
    wf_json_begin(&json, "rank", '[');
    for (int32_t p = 0; p < info.ranks; p++) {
        wf_json_begin(&json, NULL, '{');
        wf_json_uint(&json, "busy_ns", r->ranks[p].busy);
        wf_json_uint(&json, "end_ns", wf_add_capped(r->ranks[p].end, r->ranks[p].update));
        wf_json_uint(&json, "exposed_ns", r->ranks[p].exposed);
        wf_json_uint(&json, "peak_bytes", r->ranks[p].peak);
        wf_json_end(&json, '}');
    }
    wf_json_end(&json, ']');
    wf_json_end(&json, '}');
    wf_text_char(out, '\n');
    return wf_text_status(out);
}
