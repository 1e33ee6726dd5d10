/* shapes.c - what stages pass on: given, or learned from stage to stage. */
#include "pipeline.h"

#include "base/number.h"
#include "outside/texts.h"

#include <string.h>

static const char function[] = "weft_pipeline_create";

#define ALIGNMENT 256u /* of each tensor in the memory of a slot, bytes */

/* ---- one layout ---- */

static weft_status refuse_mesh(int32_t stage, size_t index, const weft_mesh *have,
                               const weft_mesh *want)
{
    char had[128] = "", wanted[128] = "";

    WF_TRY(weft_mesh_print(have, had, sizeof had, NULL));
    WF_TRY(weft_mesh_print(want, wanted, sizeof wanted, NULL));
    return wf_fail(WEFT_ERR_INVALID,
                   "output %zu of stage %d has a layout on the mesh %s; expected one on the mesh "
                   "of the pipeline, %s",
                   index, stage, had, wanted);
}

static weft_status check_spec(const weft_pipeline *pipeline, int32_t stage, size_t index,
                              const weft_spec *spec)
{
    char text[160] = "";

    if (spec == NULL)
        return wf_fail(WEFT_ERR_INVALID, "output %zu of stage %d has no layout: `spec` is NULL",
                       index, stage);
    WF_TRY(weft_object_check(spec, "weft_spec", function, "weft_pipeline_tensor.spec"));
    if (weft_spec_mesh(spec) != pipeline->mesh)
        return refuse_mesh(stage, index, weft_spec_mesh(spec), pipeline->mesh);
    if (weft_spec_placements(spec)[pipeline->axis].kind == WEFT_PLACE_REPLICATE) return WEFT_OK;
    WF_TRY(weft_spec_print(spec, text, sizeof text, NULL));
    return wf_fail(WEFT_ERR_INVALID,
                   "output %zu of stage %d has the layout %s; it must have R on %s, along which "
                   "the stages are",
                   index, stage, text, wf_axis_text(pipeline->mesh, pipeline->axis).text);
}

/* The layout SPEC on the ranks of a stage. */
static weft_status spec_of_stage(const weft_pipeline *pipeline, const weft_spec *spec,
                                 weft_spec **out)
{
    const weft_placement *all = weft_spec_placements(spec);
    weft_placement left[WEFT_MAX_AXES] = {{.kind = WEFT_PLACE_REPLICATE}};
    int32_t count = 0;

    for (int32_t a = 0; a < weft_mesh_axes(pipeline->mesh); a++)
        if (a != pipeline->axis) left[count++] = all[a];
    return weft_spec_create(pipeline->stage, weft_spec_dtype(spec), weft_spec_dims(spec),
                            weft_spec_shape(spec), left, out);
}

static bool has_gradient(const weft_pipeline_tensor *tensor)
{
    enum weft_dtype dtype = weft_spec_dtype(tensor->spec);

    return !tensor->without_gradient && (wf_dtype_is_float(dtype) || wf_dtype_is_complex(dtype));
}

/* ---- one boundary ---- */

static void clear_boundary(struct wf_boundary *boundary)
{
    for (size_t i = 0; i < boundary->values.count; i++) {
        weft_spec *whole = (weft_spec *)boundary->tensors[i].spec; /* a reference of its own */

        weft_spec_release(&whole);
        weft_spec_release(&boundary->specs[i]);
    }
    wf_free(boundary->tensors);
    wf_free(boundary->specs);
    wf_free(boundary->offsets);
    memset(boundary, 0, sizeof *boundary);
}

void wf_boundaries_free(weft_pipeline *pipeline)
{
    for (int32_t s = 0; pipeline->boundaries != NULL && s < pipeline->stages; s++)
        clear_boundary(&pipeline->boundaries[s]);
    wf_free(pipeline->boundaries);
}

/* Set the offsets of OUT, which has the sizes of its tensors there: those with a gradient come
 * first. */
static void place(struct wf_boundary *out)
{
    uint64_t at = 0;

    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < out->values.count; i++) {
            uint64_t bytes = out->offsets[i];

            if (out->tensors[i].without_gradient != (pass == 1)) continue;
            out->offsets[i] = at;
            at += (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        }
        if (pass == 0) out->grad_bytes = at > 0 ? at : 1;
    }
    out->bytes = at > 0 ? at : 1;
}

static weft_status take_tensors(const weft_pipeline *pipeline, int32_t stage, size_t count,
                                const weft_pipeline_tensor *tensors, struct wf_boundary *out)
{
    uint64_t all = 0;

    clear_boundary(out);
    out->tensors = wf_calloc(count + 1, sizeof *out->tensors);
    out->specs = wf_calloc(count + 1, sizeof *out->specs);
    out->offsets = wf_calloc(count + 1, sizeof *out->offsets);
    if (out->tensors == NULL || out->specs == NULL || out->offsets == NULL)
        return wf_fail_memory((count + 1) * sizeof *out->tensors);
    out->values =
        (weft_pipeline_values){count, count > 0 ? out->tensors : NULL, sizeof *out->tensors};
    for (size_t i = 0; i < count; i++) {
        WF_TRY(check_spec(pipeline, stage, i, tensors[i].spec));
        out->tensors[i].spec = weft_spec_retain(tensors[i].spec);
        out->tensors[i].without_gradient = !has_gradient(&tensors[i]);
        WF_TRY(spec_of_stage(pipeline, tensors[i].spec, &out->specs[i]));
        out->offsets[i] = weft_spec_shard_bytes(out->specs[i], weft_rank(pipeline->context));
        all += out->offsets[i] + ALIGNMENT;
        if (all > INT64_MAX / 2)
            return wf_fail(WEFT_ERR_INVALID, "the outputs of stage %d have 2^62 bytes or more",
                           stage);
    }
    place(out);
    return WEFT_OK;
}

static weft_status take_values(const weft_pipeline *pipeline, int32_t stage,
                               const weft_pipeline_values *given, struct wf_boundary *out)
{
    void *copy = NULL;
    weft_status status;

    if (given->count > 0 && given->tensors == NULL)
        return wf_fail(WEFT_ERR_INVALID, "stage %d passes on %zu tensors, and `tensors` is NULL",
                       stage, given->count);
    if (given->count > 0)
        WF_TRY(wf_items_read("weft_pipeline_tensor", given->count, given->tensors,
                             given->tensor_size, sizeof *given->tensors, &copy));
    status = take_tensors(pipeline, stage, given->count, copy != NULL ? copy : given->tensors, out);
    wf_free(copy);
    return status;
}

static bool is_like(const struct wf_boundary *a, const struct wf_boundary *b)
{
    bool same = a->values.count == b->values.count;

    for (size_t i = 0; same && i < a->values.count; i++)
        same = a->tensors[i].spec == b->tensors[i].spec &&
               a->tensors[i].without_gradient == b->tensors[i].without_gradient;
    return same;
}

/* ---- all of them ---- */

/* The shapes that stage STAGE of this rank states. */
static weft_status ask(weft_pipeline *pipeline, int32_t stage)
{
    static const weft_pipeline_values none;
    const weft_pipeline_options *o = &pipeline->options;
    weft_pipeline_values in = stage > 0 ? pipeline->boundaries[stage - 1].values : none, out;
    uint64_t failures = wf_failure_count();
    weft_status status;

    memset(&out, 0, sizeof out);
    status = o->shapes(o->user, stage, &in, &out);
    if (status != WEFT_OK)
        return wf_fail_context(wf_fail_callback(status, failures, "the callback"),
                               "the shapes of stage %d", stage);
    return take_values(pipeline, stage, &out, &pipeline->boundaries[stage]);
}

/* What a stage passes on as text: a line for each tensor, which begins with `-` if it has no
 * gradient. */
static weft_status write_boundary(const struct wf_boundary *boundary, struct wf_text *out)
{
    for (size_t i = 0; i < boundary->values.count; i++) {
        wf_text_char(out, boundary->tensors[i].without_gradient ? '-' : '+');
        wf_text_spec(out, boundary->tensors[i].spec);
        wf_text_char(out, '\n');
    }
    return wf_text_status(out);
}

/* Take the COUNT tensors of TEXT, which is changed. */
static weft_status read_tensors(const weft_pipeline *pipeline, int32_t stage, size_t count,
                                char *text, struct wf_boundary *out)
{
    weft_pipeline_tensor *tensors = wf_calloc(count + 1, sizeof *tensors);
    weft_status status = WEFT_OK;
    size_t read = 0;

    if (tensors == NULL) return wf_fail_memory((count + 1) * sizeof *tensors);
    for (; read < count && status == WEFT_OK; read++) {
        char *end = strchr(text, '\n');
        weft_spec *spec = NULL;

        *end = '\0';
        status = weft_spec_parse(pipeline->mesh, text + 1, &spec);
        tensors[read] = (weft_pipeline_tensor){spec, text[0] == '-'};
        text = end + 1;
    }
    if (status == WEFT_OK) status = take_tensors(pipeline, stage, count, tensors, out);
    while (read-- > 0) {
        weft_spec *spec = (weft_spec *)tensors[read].spec;

        weft_spec_release(&spec);
    }
    wf_free(tensors);
    return status;
}

/* Take the tensors that rank OWNER has sent. */
static weft_status take_stated(const weft_pipeline *pipeline, int32_t stage, int32_t owner,
                               const weft_answers *got, struct wf_boundary *out)
{
    size_t bytes = weft_answers_bytes(got, owner), count = 0;
    char *text = wf_alloc(bytes + 1);
    weft_status status;

    if (text == NULL) return wf_fail_memory(bytes + 1);
    if (bytes > 0) memcpy(text, weft_answers_data(got, owner), bytes);
    text[bytes] = '\0';
    for (size_t i = 0; i < bytes; i++)
        count += text[i] == '\n';
    status = read_tensors(pipeline, stage, count, text, out);
    wf_free(text);
    return status;
}

/* Stage STAGE tells all ranks what it passes on.  *MINE is how it went on this rank so far. */
static weft_status learn(weft_pipeline *pipeline, int32_t stage, weft_status *mine)
{
    struct wf_boundary *boundary = &pipeline->boundaries[stage];
    int32_t owner = weft_schedule_rank_of(pipeline->schedule, stage);
    bool is_mine = owner == pipeline->rank;
    struct wf_text text = {0};
    weft_answers *got = NULL;
    weft_status status;

    if (*mine == WEFT_OK && is_mine) *mine = ask(pipeline, stage);
    if (*mine == WEFT_OK && is_mine) *mine = write_boundary(boundary, &text);
    status = weft_agree(pipeline->comm, function, *mine, text.data, text.length, NULL, &got);
    wf_text_free(&text);
    if (status == WEFT_OK && !is_mine) *mine = take_stated(pipeline, stage, owner, got, boundary);
    weft_answers_release(&got);
    return status;
}

static void find_like(weft_pipeline *pipeline, int32_t stage)
{
    int32_t like = 0;

    while (!is_like(&pipeline->boundaries[like], &pipeline->boundaries[stage]))
        like++;
    pipeline->boundaries[stage].like = like;
}

weft_status wf_pipeline_shapes_take(weft_pipeline *pipeline, const weft_pipeline_values *given)
{
    for (int32_t s = 0; s + 1 < pipeline->stages; s++) {
        WF_TRY(take_values(pipeline, s, &given[s], &pipeline->boundaries[s]));
        find_like(pipeline, s);
    }
    return WEFT_OK;
}

weft_status wf_pipeline_shapes_learn(weft_pipeline *pipeline)
{
    weft_status mine = WEFT_OK;

    for (int32_t s = 0; s + 1 < pipeline->stages; s++) {
        WF_TRY(learn(pipeline, s, &mine));
        find_like(pipeline, s);
    }
    return wf_agree_on_status(pipeline->comm, function, mine);
}
