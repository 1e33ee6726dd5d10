/* name.c - plans and their steps in words, for messages. */
#include "bound.h"

#include "weft/status.h"

#include <stdio.h>
#include <string.h>

static void add_spec(struct wf_text *text, const weft_spec *spec)
{
    const struct wf_layout *layout = &spec->layout;

    wf_text_add(text, "%s", wf_dtype_name(layout->dtype));
    wf_shape_add_text(layout->dims, layout->shape, text);
    wf_text_char(text, ' ');
    wf_placements_add_short_text(layout->placements, layout->mesh->axes, text);
}

/* "f32[8] S(0) -> f32[8] R on 4". */
static void add_change(struct wf_text *text, const weft_spec *from, const weft_spec *to)
{
    add_spec(text, from);
    wf_text_add(text, " -> ");
    add_spec(text, to);
    wf_text_add(text, " on ");
    wf_mesh_add_text(from->layout.mesh, text);
    if (from->layout.mesh == to->layout.mesh) return;
    wf_text_add(text, " and ");
    wf_mesh_add_text(to->layout.mesh, text);
}

static void add_steps(struct wf_text *text, const weft_plan *plan)
{
    for (uint32_t i = 0; i < plan->step_count; i++)
        wf_text_add(text, "%s%s", i == 0 ? ", by " : ", ", weft_step_name(plan->steps[i].kind));
}

void wf_tensor_name(const struct wf_member *member, char *out, size_t bytes)
{
    struct wf_text text = {0};

    add_change(&text, member->from, member->to);
    if (member->alone != NULL)
        add_steps(&text, member->alone);
    else
        wf_text_add(&text, ", in the common exchange");
    snprintf(out, bytes, "%s", text.failed || text.data == NULL ? "" : text.data);
    wf_text_free(&text);
}

void wf_plan_name(const weft_plan *plan, bool with_steps, char *out, size_t bytes)
{
    struct wf_text text = {0};

    if (plan->members != NULL)
        wf_text_add(&text, "a batch of %u tensor%s", plan->member_count,
                    WF_PLURAL(plan->member_count));
    else
        add_change(&text, plan->from, plan->to);
    if (with_steps && plan->members != NULL && plan->member_count > 0) {
        wf_text_add(&text, ", the first of them ");
        add_change(&text, plan->members[0].from, plan->members[0].to);
    }
    if (with_steps && plan->members == NULL) add_steps(&text, plan);
    snprintf(out, bytes, "%s", text.failed || text.data == NULL ? "" : text.data);
    wf_text_free(&text);
}

weft_status wf_step_failed(const weft_bound *bound, const struct wf_action *action,
                           weft_status status)
{
    const weft_plan *plan = bound->plan;
    char name[240];

    wf_plan_name(plan, false, name, sizeof name);
    if (action->number == 0)
        return wf_fail_context(status, "%s, the copy %s the steps", name,
                               action->step == &bound->before ? "before" : "after");
    return wf_fail_context(status, "%s, step %u of %u (%s)", name, action->number, plan->step_count,
                           weft_step_name(action->step->kind));
}

weft_status wf_run_failed(const weft_bound *bound, uint64_t last, weft_status status,
                          const char *function)
{
    wf_runs_undo(&bound->team->runs, bound->runs, last);
    wf_runs_end(&bound->team->runs);
    /* Local work on a stream that has ended with the communicator does not know the cause. */
    if (status == WEFT_ERR_ABORTED && wf_comm_has_failed(bound->parent))
        status = wf_comm_cause(bound->parent);
    return wf_fail_context(status, "%s", function);
}

weft_status wf_fail_tensor(weft_status status, const char *function, const char *what,
                           const char *name)
{
    size_t length = strlen(function);
    char text[1800];

    if (name == NULL || name[0] == '\0') return status;
    snprintf(text, sizeof text, "%s", weft_last_error());
    if (strncmp(text, function, length) != 0 || text[length] != ':')
        return wf_fail(status, "%s: %s %.100s: %s", function, what, name, text);
    return wf_fail(status, "%s: %s %.100s:%s", function, what, name, text + length + 1);
}

const char *wf_bound_name(const weft_bound *bound)
{
    return bound->is_named ? wf_trace_text(bound->context->trace, bound->label) : "";
}

/* A group starts its operations at its end, but a step uses what the step before has received. */
weft_status wf_run_refuse_group(const weft_bound *bound, const char *function)
{
    return wf_comm_note(bound->team,
                        wf_fail(WEFT_ERR_INVALID,
                                "%s on %s: a call group is open, and a redistribution cannot be "
                                "part of a call group; call weft_group_end first",
                                function, bound->team->name));
}
