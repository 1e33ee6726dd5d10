/* json.c - a plan as JSON, with exact bytes. */
#include "plan/figures/figures.h"
#include "exec.h"
#include "weft/exec.h"

static void add_mesh(struct wf_json *json, const char *key, const weft_mesh *mesh)
{
    struct wf_text text = {0};

    wf_mesh_add_text(mesh, &text);
    if (text.failed) json->out->failed = true;
    wf_json_string(json, key, text.data);
    wf_text_free(&text);
}

static void add_placements(struct wf_json *json, const char *key, const weft_spec *spec)
{
    struct wf_text text = {0};

    wf_placements_add_text(spec->layout.placements, spec->layout.mesh->axes, &text);
    if (text.failed) json->out->failed = true;
    wf_json_string(json, key, text.data);
    wf_text_free(&text);
}

static void add_tensor(struct wf_json *json, const weft_spec *from, const weft_spec *to)
{
    wf_json_begin(json, "shape", '[');
    for (int32_t d = 0; d < from->layout.dims; d++)
        wf_json_int(json, NULL, from->layout.shape[d]);
    wf_json_end(json, ']');
    wf_json_string(json, "dtype", wf_dtype_name(from->layout.dtype));
    wf_json_string(json, "to_dtype", wf_dtype_name(to->layout.dtype));
    add_mesh(json, "mesh", from->layout.mesh);
    add_mesh(json, "to_mesh", to->layout.mesh);
    add_placements(json, "from", from);
    add_placements(json, "to", to);
}

static void add_tensors(struct wf_json *json, const weft_plan *plan)
{
    wf_json_begin(json, "tensors", '[');
    for (uint32_t i = 0; i < plan->member_count; i++) {
        wf_json_begin(json, NULL, '{');
        add_tensor(json, plan->members[i].from, plan->members[i].to);
        wf_json_bool(json, "together", plan->members[i].alone == NULL);
        wf_json_end(json, '}');
    }
    wf_json_end(json, ']');
}

/* The dtypes before and after STEP, and where it casts. */
static void add_dtypes(struct wf_json *json, const struct wf_step *step)
{
    uint32_t cast = wf_step_cast(step);

    wf_json_string(json, "dtype", wf_dtype_name(step->from->layout.dtype));
    wf_json_string(json, "to_dtype", wf_dtype_name(step->to->layout.dtype));
    if (cast == WEFT_CAST_NONE)
        wf_json_null(json, "cast");
    else
        wf_json_string(json, "cast", cast == WEFT_CAST_BEFORE ? "before" : "after");
}

static weft_status add_step(struct wf_json *json, const weft_plan *plan, uint32_t index)
{
    const struct wf_step *step = &plan->steps[index];
    weft_plan_step_info info = {.struct_size = sizeof info};

    WF_TRY(weft_plan_step_get(plan, index, &info));
    wf_json_begin(json, NULL, '{');
    wf_json_string(json, "kind", weft_step_name(step->kind));
    if (plan->members != NULL && step->from != NULL) wf_json_uint(json, "tensor", step->tensor);
    wf_json_begin(json, "axes", '[');
    for (int32_t a = 0; a < WEFT_MAX_AXES; a++)
        if (step->axes >> a & 1) wf_json_int(json, NULL, a);
    wf_json_end(json, ']');
    if (step->from != NULL) {
        add_mesh(json, "mesh", step->from->layout.mesh);
        if (step->to->layout.mesh != step->from->layout.mesh)
            add_mesh(json, "to_mesh", step->to->layout.mesh);
        add_placements(json, "from", step->from);
        add_placements(json, "to", step->to);
        add_dtypes(json, step);
    }
    wf_json_uint(json, "bytes_sent", info.bytes_sent);
    wf_json_uint(json, "bytes_received", info.bytes_received);
    wf_json_bool(json, "exact", info.exact);
    wf_json_uint(json, "scratch_bytes", info.scratch_bytes);
    wf_json_bool(json, "scratch_exact", info.scratch_exact);
    wf_json_uint(json, "cost_ns", step->cost_ns);
    wf_json_end(json, '}');
    return WEFT_OK;
}

/* The members of the JSON object that PLAN and its runner-up have in common. */
static weft_status add_plan(struct wf_json *json, const weft_plan *plan)
{
    struct wf_measure measure = wf_plan_total(plan);
    uint64_t least, scratch;
    bool scratch_exact;

    WF_TRY(weft_plan_lower_bound(plan, &least));
    WF_TRY(wf_plan_scratch(plan, &scratch, &scratch_exact));
    wf_json_begin(json, "steps", '[');
    for (uint32_t i = 0; i < plan->step_count; i++)
        WF_TRY(add_step(json, plan, i));
    wf_json_end(json, ']');
    wf_json_uint(json, "bytes_received_max", plan->received);
    wf_json_uint(json, "bytes_received_total", measure.total);
    wf_json_bool(json, "exact", measure.exact && plan->exact && measure.total != UINT64_MAX);
    wf_json_uint(json, "bytes_lower_bound", least);
    wf_json_bool(json, "least", plan->least);
    wf_json_uint(json, "peak_bytes", scratch);
    wf_json_bool(json, "scratch_exact", scratch_exact);
    wf_json_uint(json, "cost_ns", plan->cost_ns);
    return WEFT_OK;
}

static weft_status add_object(struct wf_json *json, const weft_plan *plan,
                              const weft_plan *runner_up)
{
    wf_json_begin(json, NULL, '{');
    if (plan->members != NULL)
        add_tensors(json, plan);
    else
        add_tensor(json, plan->from, plan->to);
    wf_json_string(json, "costs", weft_cost_table_name(plan->costs));
    WF_TRY(add_plan(json, plan));
    if (runner_up != NULL) {
        wf_json_begin(json, "runner_up", '{');
        WF_TRY(add_plan(json, runner_up));
        wf_json_end(json, '}');
    } else {
        wf_json_null(json, "runner_up");
    }
    wf_json_end(json, '}');
    return WEFT_OK;
}

weft_status weft_plan_json_print(const weft_plan *plan, const weft_plan *runner_up, char *text,
                                 size_t size, size_t *needed)
{
    struct wf_text printed = {0};
    struct wf_json json = {.out = &printed};
    weft_status status;

    WF_TRY(wf_require_kind(plan, WF_KIND_PLAN, "weft_plan_json_print: plan"));
    if (runner_up != NULL)
        WF_TRY(wf_require_kind(runner_up, WF_KIND_PLAN, "weft_plan_json_print: runner_up"));
    if (size > 0) WF_TRY(wf_require(text, "weft_plan_json_print: text"));
    status = add_object(&json, plan, runner_up);
    if (status == WEFT_OK) return wf_text_copy_out(&printed, text, size, needed);
    wf_text_free(&printed);
    return status;
}
