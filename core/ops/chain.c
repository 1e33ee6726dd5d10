/* chain.c - calls of operators that are made of others.
 *
 * The parts run one after another: each reads the first result of the part before it, and the next
 * inputs of the call.  A strategy is one of each part, such that the layout between two parts is
 * the same for both.  Only inputs of the call are moved. */
#include "solve.h"

#include <string.h>

struct chain {
    const weft_op_call *call;
    const weft_op_options *options;
    weft_plan_options plan; /* of the moves that are allowed */
    struct wf_op_step steps[WF_OP_STEPS];
    uint32_t step_count;
    weft_spec *inputs[WF_CHAIN_INPUTS], *best_inputs[WF_CHAIN_INPUTS];
    weft_spec *best_outputs[WF_RULE_TENSORS];
    uint32_t output_count;
    uint64_t best;
    bool found;
};

static weft_status refuse(const struct chain *c, const char *reason)
{
    return wf_fail(WEFT_ERR_INVALID, "operator %.100s: %s", c->call->name, reason);
}

/* ---- options ---- */

static bool is_partial(const weft_spec *spec)
{
    for (int32_t a = 0; a < spec->layout.mesh->axes; a++)
        if (spec->layout.placements[a].kind == WEFT_PLACE_PARTIAL) return true;
    return false;
}

static bool is_allowed(const struct chain *c, bool output, uint32_t index, const weft_spec *spec)
{
    const weft_op_options *o = c->options;
    const weft_spec *const *fixed = output ? o->fixed_outputs : o->fixed_inputs;

    if (fixed != NULL && fixed[index] != NULL && fixed[index] != spec) return false;
    if (output && (o->flags & WEFT_OP_NO_PARTIALS) != 0 && is_partial(spec)) return false;
    return o->allow == NULL || o->allow(o->argument, output, index, spec) != 0;
}

/* ---- the search ---- */

/* The time to move input INDEX of the call to SPEC; UINT64_MAX: that is not allowed. */
static weft_status price_input(const struct chain *c, uint32_t index, const weft_spec *spec,
                               uint64_t *ns)
{
    const weft_spec *given = c->call->inputs[index];
    struct wf_path path;
    weft_status status;

    *ns = spec == given ? 0 : UINT64_MAX;
    if (spec == NULL || given == NULL) return WEFT_OK;
    if (!is_allowed(c, false, index, spec)) {
        *ns = UINT64_MAX;
        return WEFT_OK;
    }
    if (spec == given || ((c->options->flags & WEFT_OP_EXACT) != 0 && c->plan.without != 0))
        return WEFT_OK;
    status = wf_plan_price(given, spec, &c->plan, &path, ns);
    if (status != WEFT_OK) *ns = UINT64_MAX; /* P(max) cannot become P(sum) */
    return status == WEFT_ERR_NO_MEMORY ? status : WEFT_OK;
}

/* Keep the inputs on trial and the outputs of the last part. */
static void keep_best(struct chain *c, const weft_op_choice *last, uint64_t cost)
{
    weft_op_choice_info info = {.struct_size = sizeof info};

    if (weft_op_choice_get(last, &info) != WEFT_OK) return;
    for (uint32_t i = 0; i < info.outputs; i++)
        if (i >= WF_RULE_TENSORS || !is_allowed(c, true, i, weft_op_choice_output(last, i))) return;
    for (uint32_t i = 0; i < c->call->input_count; i++) {
        weft_spec_release(&c->best_inputs[i]);
        c->best_inputs[i] = c->inputs[i] != NULL ? weft_spec_retain(c->inputs[i]) : NULL;
    }
    for (uint32_t i = 0; i < info.outputs; i++) {
        weft_spec_release(&c->best_outputs[i]);
        c->best_outputs[i] = weft_spec_retain(weft_op_choice_output(last, i));
    }
    c->output_count = info.outputs;
    c->best = cost;
    c->found = true;
}

static weft_status try_step(struct chain *c, uint32_t step, const weft_spec *before, uint32_t next,
                            uint64_t cost);

/* Go on with strategy ONE of STEP, whose inputs from the call begin at NEXT. */
static weft_status try_choice(struct chain *c, uint32_t step, const weft_op_choice *one,
                              const weft_spec *before, uint32_t next, uint64_t cost)
{
    uint32_t own = before != NULL ? 1 : 0, count = c->steps[step].inputs - own;

    if (before != NULL && weft_op_choice_input(one, 0) != before) return WEFT_OK;
    for (uint32_t i = 0; i < count; i++) {
        const weft_spec *spec = weft_op_choice_input(one, own + i);
        uint64_t ns;
        WF_TRY(price_input(c, next + i, spec, &ns));
        cost = wf_add_capped(cost, ns);
        if (cost == UINT64_MAX || (c->found && cost >= c->best)) return WEFT_OK;
        c->inputs[next + i] = (weft_spec *)(uintptr_t)spec;
    }
    if (step + 1 < c->step_count)
        return try_step(c, step + 1, weft_op_choice_output(one, 0), next + count, cost);
    keep_best(c, one, cost);
    return WEFT_OK;
}

/* Try all strategies of STEP. */
static weft_status try_step(struct chain *c, uint32_t step, const weft_spec *before, uint32_t next,
                            uint64_t cost)
{
    const weft_spec *inputs[WF_RULE_TENSORS];
    uint32_t own = before != NULL ? 1 : 0, count = c->steps[step].inputs;
    weft_op_call call = {.struct_size = sizeof call,
                         .name = c->steps[step].name,
                         .inputs = inputs,
                         .input_count = count,
                         .attr_count = c->call->attr_count,
                         .attrs = c->call->attrs,
                         .mesh = c->call->mesh};
    weft_op_list *list = NULL;
    weft_status status;

    inputs[0] = before;
    for (uint32_t i = own; i < count; i++)
        inputs[i] = c->call->inputs[next + i - own];
    status = weft_op_list_create(&call, NULL, &list);
    for (uint32_t i = 0; status == WEFT_OK && i < weft_op_list_count(list); i++)
        status = try_choice(c, step, weft_op_list_choice(list, i), before, next, cost);
    weft_op_list_release(&list);
    return status;
}

/* ---- answers ---- */

static weft_status begin_chain(struct chain *c)
{
    uint32_t inputs = 1;

    for (uint32_t i = 0; i < c->step_count; i++) {
        if (c->steps[i].inputs == 0 || c->steps[i].inputs > WF_RULE_TENSORS)
            return refuse(c, "a part has no input");
        inputs += c->steps[i].inputs - 1;
    }
    if (inputs != c->call->input_count || inputs > WF_CHAIN_INPUTS)
        return wf_fail(WEFT_ERR_INVALID,
                       "operator %.100s: the call has %u inputs; its parts take %u", c->call->name,
                       c->call->input_count, inputs);
    if (c->options->memory_limit != 0) return refuse(c, "a limit of memory needs a rule");
    return WEFT_OK;
}

static weft_status make_choice(const struct chain *c, const struct wf_rule *rule,
                               weft_op_choice **out)
{
    weft_plan_options options = {.struct_size = sizeof options, .costs = c->options->costs};
    weft_op_choice *choice = NULL;
    weft_status status = wf_choice_make(rule, c->call->input_count, c->output_count, &choice);

    for (uint32_t i = 0; status == WEFT_OK && i < c->call->input_count; i++) {
        const weft_spec *given = c->call->inputs[i];
        weft_plan *plan = NULL;
        if (given != NULL && c->best_inputs[i] != given)
            status = weft_plan_create(given, c->best_inputs[i], &options, &plan);
        if (status == WEFT_OK) wf_choice_set_input(choice, i, c->best_inputs[i], plan);
    }
    for (uint32_t i = 0; status == WEFT_OK && i < c->output_count; i++)
        wf_choice_set_output(choice, i, c->best_outputs[i]);
    if (status == WEFT_OK)
        *out = choice;
    else
        weft_op_choice_release(&choice);
    return status;
}

weft_status wf_chain_solve(const char *function, const struct wf_rule *rule,
                           const struct wf_op_step *steps, uint32_t count, bool moves,
                           const weft_op_call *call, const weft_op_options *options,
                           weft_op_choice **out)
{
    struct chain c = {.call = call, .options = options, .step_count = count, .best = UINT64_MAX};
    weft_status status;

    memcpy(c.steps, steps, count * sizeof *steps);
    c.plan = (weft_plan_options){.struct_size = sizeof c.plan, .costs = options->costs};
    for (uint32_t kind = 0; kind < WEFT_STEP_KINDS; kind++)
        if (kind != WEFT_STEP_SLICE && kind != WEFT_STEP_PARTIAL)
            c.plan.without |= UINT32_C(1) << kind;
    WF_TRY(begin_chain(&c));
    status = try_step(&c, 0, NULL, 0, 0);
    if (status == WEFT_OK && !c.found && moves) {
        c.plan.without = 0;
        status = try_step(&c, 0, NULL, 0, 0);
    }
    if (status == WEFT_OK && c.found)
        status = make_choice(&c, rule, out);
    else if (status == WEFT_OK)
        status = wf_fail(
            WEFT_ERR_MISMATCH,
            "%s: operator %.100s: %s make all parts of \"%.300s\" legal without a move "
            "between them",
            function, call->name,
            moves ? "no layouts of the inputs" : "the layouts of the inputs do not", rule->text);
    for (uint32_t i = 0; i < WF_CHAIN_INPUTS; i++)
        weft_spec_release(&c.best_inputs[i]);
    for (uint32_t i = 0; i < WF_RULE_TENSORS; i++)
        weft_spec_release(&c.best_outputs[i]);
    return status;
}
