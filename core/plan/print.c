/* print.c - plans as people read them. */
#include "plan/figures/figures.h"
#include "plan.h"

#include <string.h>

/* "tp", "dp and tp", "axes 0 and 2". */
static void add_axes(struct wf_text *out, const weft_mesh *mesh, uint32_t axes)
{
    bool named = mesh->axis[0].name[0] != '\0';
    int32_t left = 0;

    for (int32_t a = 0; a < mesh->axes; a++)
        left += (int32_t)(axes >> a & 1);
    if (!named) wf_text_add(out, left > 1 ? "axes " : "axis ");
    for (int32_t a = 0; a < mesh->axes; a++) {
        if (!(axes >> a & 1)) continue;
        if (named)
            wf_text_add(out, "%s", mesh->axis[a].name);
        else
            wf_text_add(out, "%d", a);
        left--;
        if (left > 0) wf_text_add(out, left > 1 ? ", " : " and ");
    }
}

static void add_travel(const struct wf_step *step, bool exact, struct wf_text *out)
{
    if (step->received > 0) {
        wf_text_add(out, exact ? "a rank receives at most " : "a rank receives about ");
        wf_text_bytes(out, step->received);
    } else {
        wf_text_add(out, "no communication");
    }
}

static void add_name(const struct wf_step *step, struct wf_text *out)
{
    if (step->kind == WEFT_STEP_SLICE && step->axes == 0) {
        wf_text_add(out, "cast");
        return;
    }
    wf_text_add(out, "%s ", weft_step_name(step->kind));
    if (step->axes != 0) {
        wf_text_add(out, "over ");
        add_axes(out, step->from->layout.mesh, step->axes);
    } else {
        wf_text_add(out, "between the meshes");
    }
}

static void add_received(struct wf_text *out, const struct wf_step *step, bool exact)
{
    wf_text_add(out, ": ");
    add_travel(step, exact, out);
    wf_text_add(out, "   ");
}

static bool is_local(const struct wf_step *step)
{
    return step->kind == WEFT_STEP_SLICE || step->kind == WEFT_STEP_PARTIAL;
}

/* "S(0),R", or "f32 S(0),R" if the step casts. */
static void add_layout(struct wf_text *out, const struct wf_step *step, const weft_spec *spec)
{
    if (wf_step_cast(step) != WEFT_CAST_NONE)
        wf_text_add(out, "%s ", wf_dtype_name(spec->layout.dtype));
    wf_placements_add_short_text(spec->layout.placements, spec->layout.mesh->axes, out);
}

static void add_step(struct wf_text *out, const struct wf_step *step, bool exact)
{
    add_name(step, out);
    add_received(out, step, exact);
    add_layout(out, step, step->from);
    wf_text_add(out, " -> ");
    add_layout(out, step, step->to);
    if (!is_local(step) && wf_step_cast(step) != WEFT_CAST_NONE)
        wf_text_add(out, ", cast %s it travels",
                    wf_step_cast(step) == WEFT_CAST_BEFORE ? "before" : "after");
    wf_text_add(out, "   ");
    wf_text_time(out, step->cost_ns);
    wf_text_char(out, '\n');
}

/* The common exchange of a batch. */
static void add_exchange_of_many(struct wf_text *out, const weft_plan *plan)
{
    wf_text_add(out, "exchange of %u tensors together", plan->together);
    add_received(out, &plan->steps[0], plan->exact);
    wf_text_time(out, plan->steps[0].cost_ns);
    wf_text_char(out, '\n');
}

/* Steps between two meshes of the same ranks are on a third mesh, which the caller did not name. */
static void add_mesh(struct wf_text *out, const weft_plan *plan)
{
    const weft_mesh *mesh;

    if (plan->members != NULL || plan->step_count == 0) return;
    mesh = plan->steps[0].from->layout.mesh;
    if (mesh == plan->from->layout.mesh) return;
    wf_text_add(out, "the meshes have the same ranks, here as ");
    wf_mesh_add_text(mesh, out);
    wf_text_add(out, ":\n");
}

/* A / B in hundredths, rounded to the nearest. */
static uint64_t ratio_of(uint64_t a, uint64_t b)
{
    return (uint64_t)((double)a / (double)b * 100 + 0.5);
}

/* "at most 8.0 MiB received by a rank (1.00 of the least possible), ".  A lower bound may be too
 * low, so only the ratio 1 is exact.  An estimate may be too low too. */
static void add_least(struct wf_text *out, const weft_plan *plan)
{
    uint64_t least = 0;
    bool known = wf_plan_least(plan, &least) == WEFT_OK;

    wf_text_add(out, plan->exact ? "at most " : "about ");
    wf_text_bytes(out, plan->received);
    wf_text_add(out, plan->exact ? " received by a rank" : " received by a rank, estimated");
    if (known && (least > 0 || plan->received == 0)) {
        uint64_t hundredths = plan->received > least ? ratio_of(plan->received, least) : 100;
        const char *which = plan->received > least ? "at most " : "";
        wf_text_add(out, " (%s%llu.%02llu of the least possible)", plan->exact ? which : "about ",
                    (unsigned long long)(hundredths / 100), (unsigned long long)(hundredths % 100));
    } else if (known) {
        wf_text_add(out, " (the lower bound is 0 B)");
    }
    wf_text_add(out, ", ");
}

static void add_text(struct wf_text *out, const weft_plan *plan)
{
    uint64_t scratch = 0;
    bool counted = true;

    if (wf_plan_scratch(plan, &scratch, &counted) != WEFT_OK) out->failed = true;
    if (plan->step_count == 0) wf_text_add(out, "nothing to do: every rank has what it needs\n");
    add_mesh(out, plan);
    for (uint32_t i = 0; i < plan->step_count; i++) {
        wf_text_add(out, "%u. ", i + 1);
        if (plan->steps[i].from == NULL) {
            add_exchange_of_many(out, plan);
            continue;
        }
        if (plan->members != NULL) wf_text_add(out, "tensor %u: ", plan->steps[i].tensor);
        add_step(out, &plan->steps[i], plan->exact);
    }
    add_least(out, plan);
    if (!counted) wf_text_add(out, "about ");
    wf_text_bytes(out, scratch);
    wf_text_add(out, " of scratch, ");
    wf_text_time(out, plan->cost_ns);
    wf_text_add(out, " predicted");
    if (!plan->least && plan->members == NULL && plan->from->layout.mesh == plan->to->layout.mesh)
        wf_text_add(out, ", not shown to be the least");
    wf_text_char(out, '\n');
}

weft_status weft_plan_print(const weft_plan *plan, char *text, size_t size, size_t *needed)
{
    struct wf_text printed = {0};

    WF_TRY(wf_require_kind(plan, WF_KIND_PLAN, "weft_plan_print: plan"));
    if (size > 0) WF_TRY(wf_require(text, "weft_plan_print: text"));
    add_text(&printed, plan);
    return wf_text_copy_out(&printed, text, size, needed);
}
