/* describe.c - see describe.h. */
#include "common/describe.h"

#include <inttypes.h>
#include <string.h>

/* ---- what the library prints ---- */

typedef weft_status printer(const void *object, char *text, size_t size, size_t *needed);

static weft_status print_mesh(const void *object, char *text, size_t size, size_t *needed)
{
    return weft_mesh_print(object, text, size, needed);
}

static weft_status print_spec(const void *object, char *text, size_t size, size_t *needed)
{
    return weft_spec_print(object, text, size, needed);
}

static weft_status print_plan(const void *object, char *text, size_t size, size_t *needed)
{
    return weft_plan_print(object, text, size, needed);
}

/* Append the text that PRINT writes for OBJECT.  If AFTER is not NULL, only the part behind its
 * first occurrence. */
static void append(printer *print, const void *object, const char *after, struct wf_text *out)
{
    size_t length = 0;
    char *buffer = NULL;
    const char *text;

    if (print(object, NULL, 0, &length) == WEFT_OK) buffer = wf_alloc(length + 1);
    if (buffer == NULL || print(object, buffer, length + 1, NULL) != WEFT_OK) {
        out->failed = true;
    } else {
        text = after != NULL ? strstr(buffer, after) : buffer;
        if (text != NULL) wf_text_add(out, "%s", text + (after != NULL ? strlen(after) : 0));
    }
    wf_free(buffer);
}

void describe_mesh(const weft_mesh *mesh, struct wf_text *out)
{
    append(print_mesh, mesh, NULL, out);
}

void describe_spec(const weft_spec *spec, struct wf_text *out)
{
    append(print_spec, spec, NULL, out);
}

void describe_placements(const weft_spec *spec, struct wf_text *out)
{
    append(print_spec, spec, "] ", out);
}

void describe_plan(const weft_plan *plan, struct wf_text *out)
{
    append(print_plan, plan, NULL, out);
}

/* ---- the rest ---- */

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

    describe_mesh(mesh, &text);
    take(json, key, &text);
}

void describe_json_placements(struct wf_json *json, const char *key, const weft_spec *spec)
{
    struct wf_text text = {0};

    describe_placements(spec, &text);
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
