/* describe.c - see describe.h. */
#include "common/describe.h"

#include <inttypes.h>

void describe_shape(int32_t dims, const int64_t *shape, struct wf_text *out)
{
    wf_text_char(out, '[');
    for (int32_t i = 0; i < dims; i++)
        wf_text_add(out, "%s%lld", i > 0 ? "," : "", (long long)shape[i]);
    wf_text_char(out, ']');
}

void describe_runs(const weft_spec *spec, int32_t rank, struct wf_text *out)
{
    enum { SHOWN_RUNS = 6 };
    weft_shard shard;

    weft_spec_shard(spec, rank, &shard);
    if (shard.dims == 0) wf_text_add(out, shard.elements > 0 ? "the scalar" : "none");
    for (int32_t d = 0; d < shard.dims; d++) {
        int64_t at = 0;
        weft_index_run run;
        if (d > 0) wf_text_add(out, " x ");
        if (shard.shape[d] == 0) wf_text_add(out, "none");
        for (int i = 0; i < SHOWN_RUNS && weft_spec_run(spec, rank, d, at, &run); i++) {
            wf_text_add(out, "%s%" PRId64, i > 0 ? "," : "", run.start);
            if (run.length > 1) wf_text_add(out, "-%" PRId64, run.start + run.length - 1);
            at += run.length;
        }
        if (at < shard.shape[d]) wf_text_add(out, ",...");
    }
}

/* Add "dp", "dp, cp and tp", "axis 0" or "axes 0 and 1". */
static void add_axes(const weft_mesh *mesh, uint32_t axes, struct wf_text *out)
{
    bool named = weft_mesh_axis_name(mesh, 0)[0] != '\0';
    int left = __builtin_popcount(axes);

    if (!named) wf_text_add(out, left > 1 ? "axes " : "axis ");
    for (int32_t a = 0; a < weft_mesh_axes(mesh); a++) {
        if ((axes >> a & 1) == 0) continue;
        if (named)
            wf_text_add(out, "%s", weft_mesh_axis_name(mesh, a));
        else
            wf_text_add(out, "%d", a);
        left--;
        if (left > 0) wf_text_add(out, left > 1 ? ", " : " and ");
    }
}

void describe_step(const weft_plan_step_info *step, struct wf_text *out)
{
    if (step->kind == WEFT_STEP_SLICE && step->axes == 0) {
        wf_text_add(out, "cast");
        return;
    }
    wf_text_add(out, "%s ", weft_step_name(step->kind));
    if (step->axes == 0) {
        wf_text_add(out, "between the meshes");
    } else {
        wf_text_add(out, "over ");
        add_axes(weft_spec_mesh(step->from), step->axes, out);
    }
    if (step->cast != WEFT_CAST_NONE)
        wf_text_add(out, step->cast == WEFT_CAST_BEFORE ? ", cast first" : ", then cast");
}

void describe_travel(const weft_plan_step_info *step, struct wf_text *out)
{
    if (step->bytes_received > 0) {
        wf_text_add(out, step->exact ? "a rank receives at most " : "a rank receives about ");
        wf_text_bytes(out, step->bytes_received);
    } else {
        wf_text_add(out, "no communication");
    }
}

/* ---- JSON ---- */

static void take(struct wf_json *json, const char *key, struct wf_text *text)
{
    if (text->failed) json->out->failed = true;
    wf_json_string(json, key, text->data);
    wf_text_free(text);
}

void describe_json_mesh(struct wf_json *json, const char *key, const weft_mesh *mesh)
{
    struct wf_text text = {0};

    wf_text_mesh(&text, mesh);
    take(json, key, &text);
}

void describe_json_placements(struct wf_json *json, const char *key, const weft_spec *spec)
{
    struct wf_text text = {0};

    wf_text_placements(&text, spec);
    take(json, key, &text);
}

void describe_json_shape(struct wf_json *json, const char *key, int32_t dims, const int64_t *shape)
{
    wf_json_begin(json, key, '[');
    for (int32_t i = 0; i < dims; i++)
        wf_json_int(json, NULL, shape[i]);
    wf_json_end(json, ']');
}

void describe_json_runs(struct wf_json *json, const char *key, const weft_spec *spec, int32_t rank)
{
    wf_json_begin(json, key, '[');
    for (int32_t d = 0; d < weft_spec_dims(spec); d++) {
        weft_index_run run;
        wf_json_begin(json, NULL, '[');
        for (int64_t at = 0; weft_spec_run(spec, rank, d, at, &run); at += run.length) {
            wf_json_begin(json, NULL, '[');
            wf_json_int(json, NULL, run.start);
            wf_json_int(json, NULL, run.length);
            wf_json_end(json, ']');
        }
        wf_json_end(json, ']');
    }
    wf_json_end(json, ']');
}
