/* dot.c - plans as DOT graphs. */
#include "plan/drawing.h"

#include "common/describe.h"

/* WITH_DTYPE: the plan casts. */
static void add_node(const weft_spec *spec, uint32_t number, bool with_dtype, struct wf_text *out)
{
    wf_text_add(out, "  layout%u [label=\"", number);
    if (with_dtype) wf_text_add(out, "%s ", weft_dtype_name(weft_spec_dtype(spec)));
    wf_text_placements(out, spec);
    wf_text_add(out, "\\n");
    wf_text_mesh(out, weft_spec_mesh(spec));
    wf_text_add(out, "\"];\n");
}

void plan_add_dot(const weft_plan *plan, struct wf_text *out)
{
    weft_plan_info info = {.struct_size = sizeof info};
    weft_plan_step_info step = {.struct_size = sizeof step};
    bool casts;

    if (weft_plan_get(plan, &info) != WEFT_OK) return;
    wf_text_add(out, "digraph plan {\n  rankdir=LR;\n  node [shape=box, style=rounded];\n");
    casts = weft_spec_dtype(info.from) != weft_spec_dtype(info.to);
    add_node(info.from, 0, casts, out);
    for (uint32_t i = 0; weft_plan_step_get(plan, i, &step) == WEFT_OK; i++) {
        add_node(step.to, i + 1, casts, out);
        wf_text_add(out, "  layout%u -> layout%u [label=\"", i, i + 1);
        describe_step(&step, out);
        wf_text_add(out, "\\n");
        describe_travel(&step, out);
        wf_text_add(out, "; ");
        wf_text_time(out, step.cost_ns);
        wf_text_add(out, "\"];\n");
    }
    wf_text_add(out, "}\n");
}
