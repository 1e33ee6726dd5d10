/* chain.c - calls of operators that are made of others.
 *
 * The parts run one after another: each reads the first result of the part before it, and the next
 * inputs of the call.  A strategy is one of each part, such that the layout between two parts is
 * the same for both.  Only inputs of the call are moved. */
#include "chain.h"

#include "ops.h"

#include <string.h>

enum { CHAIN_ATTRS = 16 /* of one call */ };

/* A list of all strategies in the making. */
struct listing {
    const struct wf_chain *chain;
    const weft_op_choice *trial[WF_OP_STEPS]; /* a strategy of each part */
    weft_op_list *list;
};

static weft_status refuse(const struct wf_chain *c, const char *reason)
{
    return wf_fail(WEFT_ERR_INVALID, "operator %.100s: %s", c->call->name, reason);
}

/* ---- options ---- */

static bool is_allowed(const struct wf_chain *c, bool output, uint32_t index, const weft_spec *spec)
{
    const weft_op_options *o = c->options;
    const weft_spec *const *fixed = output ? o->fixed_outputs : o->fixed_inputs;

    if (fixed != NULL && fixed[index] != NULL && fixed[index] != spec) return false;
    if (output && (o->flags & WEFT_OP_FLAG_NO_PARTIALS) != 0 && wf_spec_has_partial(spec))
        return false;
    return o->allow == NULL || o->allow(o->user, output, index, spec);
}

/* ---- gradients ---- */

static bool is_replicated(const weft_spec *spec, int32_t axis)
{
    return spec == NULL || weft_spec_placements(spec)[axis].kind == WEFT_PLACE_REPLICATE;
}

/* True if all ranks along AXIS do the same in strategy ONE of a part. */
static bool is_whole(const weft_op_choice *one, int32_t axis)
{
    weft_op_choice_info info = {.struct_size = sizeof info};

    if (weft_op_choice_get(one, &info) != WEFT_OK) return false;
    for (uint32_t i = 0; i < info.inputs; i++)
        if (!is_replicated(weft_op_choice_input(one, i), axis)) return false;
    for (uint32_t i = 0; i < info.outputs; i++)
        if (!is_replicated(weft_op_choice_output(one, i), axis)) return false;
    return true;
}

/* GRADIENT of an input of part ONE, whose output's gradient is a sum of contributions along the
 * axes SUMMED, which the part does not expect.  A part is linear in that gradient: if all its ranks
 * do the same, its gradients are such sums too.  *OUT stays NULL if it is not known. */
static weft_status sum_gradient(const weft_op_choice *one, const weft_spec *gradient,
                                uint32_t summed, weft_spec **out)
{
    weft_placement placements[WEFT_MAX_AXES];
    int32_t axes;

    if (gradient == NULL) return WEFT_OK;
    axes = wf_spec_axes(gradient);
    memcpy(placements, weft_spec_placements(gradient), (size_t)axes * sizeof *placements);
    for (int32_t a = 0; a < axes; a++) {
        if ((summed >> a & 1) == 0) continue;
        if (!is_whole(one, a)) return WEFT_OK;
        placements[a] = (weft_placement){.kind = WEFT_PLACE_PARTIAL, .reduction = WEFT_REDUCE_SUM};
    }
    return wf_spec_place(gradient, placements, out);
}

/* The axes along which GRADIENT has contributions where WANTED is replicated.  False: they differ
 * in another way. */
static bool compare_gradients(const weft_spec *gradient, const weft_spec *wanted, uint32_t *summed)
{
    *summed = 0;
    if (gradient == NULL || wanted == NULL) return false;
    for (int32_t a = 0; a < wf_spec_axes(wanted); a++) {
        const weft_placement *p = &weft_spec_placements(gradient)[a];
        if (wf_placement_same(p, &weft_spec_placements(wanted)[a])) continue;
        if (p->kind != WEFT_PLACE_PARTIAL || !is_replicated(wanted, a)) return false;
        *summed |= UINT32_C(1) << a;
    }
    return true;
}

/* Set the gradients of CHOICE from those of its parts, from the last one to the first. */
static weft_status set_gradients(const struct wf_chain *c, const weft_op_choice *const *parts,
                                 weft_op_choice *choice)
{
    uint32_t last = c->step_count - 1, end = (uint32_t)c->call->input_count, summed = 0;
    weft_op_choice_info info = {.struct_size = sizeof info};
    const weft_spec *wanted;

    WF_TRY(weft_op_choice_get(parts[last], &info));
    for (uint32_t i = 0; i < info.outputs; i++) {
        WF_TRY(wf_choice_gradient(parts[last], c->steps[last].inputs + i, &wanted));
        wf_choice_set_gradient(choice, end + i, wanted);
    }
    for (uint32_t step = c->step_count; step-- > 0;) {
        uint32_t own = step > 0 ? 1 : 0, first = end - (c->steps[step].inputs - own);
        weft_status status = WEFT_OK;
        uint32_t next = 0;
        bool known = true;
        for (uint32_t i = 0; i < c->steps[step].inputs; i++) {
            weft_spec *made = NULL;
            WF_TRY(wf_choice_gradient(parts[step], i, &wanted));
            WF_TRY(sum_gradient(parts[step], wanted, summed, &made));
            if (i >= own) wf_choice_set_gradient(choice, first + i - own, made);
            if (i < own)
                status = wf_choice_gradient(parts[step - 1], c->steps[step - 1].inputs, &wanted);
            if (i < own) known = compare_gradients(made, wanted, &next);
            weft_spec_release(&made);
            WF_TRY(status);
        }
        if (!known) return WEFT_OK; /* nor are those of the parts before */
        end = first;
        summed = next;
    }
    return WEFT_OK;
}

/* ---- answers ---- */

/* The choice that consists of PARTS.  MOVES: with the plans of its inputs. */
static weft_status fill_choice(const struct wf_chain *c, const weft_op_choice *const *parts,
                               bool moves, weft_op_choice *choice)
{
    weft_plan_options options = {.struct_size = sizeof options, .costs = c->options->costs};
    weft_op_choice_info info = {.struct_size = sizeof info};
    double count = 1;
    uint32_t at = 0;

    for (uint32_t step = 0; step < c->step_count; step++) {
        count *= wf_choice_count(parts[step]);
        for (uint32_t i = step > 0 ? 1 : 0; i < c->steps[step].inputs; i++, at++) {
            const weft_spec *given = c->call->inputs[at],
                            *spec = weft_op_choice_input(parts[step], i);
            weft_plan *plan = NULL;
            if (moves && given != NULL && spec != given)
                WF_TRY(weft_plan_create(given, spec, &options, &plan));
            wf_choice_set_input(choice, at, spec, plan);
        }
    }
    wf_choice_set_count(choice, count);
    WF_TRY(weft_op_choice_get(parts[c->step_count - 1], &info));
    for (uint32_t i = 0; i < info.outputs; i++)
        wf_choice_set_output(choice, i, weft_op_choice_output(parts[c->step_count - 1], i));
    return set_gradients(c, parts, choice);
}

static weft_status make_choice(const struct wf_chain *c, const weft_op_choice *const *parts,
                               bool moves, weft_op_choice **out)
{
    weft_op_choice_info info = {.struct_size = sizeof info};
    weft_op_choice *choice = NULL;
    weft_status status;

    WF_TRY(weft_op_choice_get(parts[c->step_count - 1], &info));
    WF_TRY(
        wf_choice_make(c->rule, (uint32_t)c->call->input_count, (uint32_t)info.outputs, &choice));
    status = fill_choice(c, parts, moves, choice);
    if (status == WEFT_OK)
        *out = choice;
    else
        weft_op_choice_release(&choice);
    return status;
}

/* ---- strategies of one part ---- */

weft_status wf_chain_price(const struct wf_chain *c, uint32_t index, const weft_spec *spec,
                           uint64_t *ns)
{
    const weft_spec *given = c->call->inputs[index];
    weft_plan *plan = NULL;
    weft_status status;

    *ns = spec == given ? 0 : UINT64_MAX;
    if (spec == NULL || given == NULL) return WEFT_OK;
    if (!is_allowed(c, false, index, spec)) {
        *ns = UINT64_MAX;
        return WEFT_OK;
    }
    if (*ns == 0 || ((c->options->flags & WEFT_OP_FLAG_EXACT) != 0 && c->plan.without != 0))
        return WEFT_OK;
    status = weft_plan_create(given, spec, &c->plan, &plan);
    *ns = status == WEFT_OK ? weft_plan_cost_ns(plan) : UINT64_MAX; /* P(max) to P(sum) */
    weft_plan_release(&plan);
    return status == WEFT_ERR_NO_MEMORY ? status : WEFT_OK;
}

weft_status wf_chain_price_outputs(const struct wf_chain *c, const weft_op_choice *last,
                                   uint64_t *ns)
{
    const weft_spec *const *wanted = c->options->wanted_outputs;
    weft_op_choice_info info = {.struct_size = sizeof info};

    *ns = 0;
    WF_TRY(weft_op_choice_get(last, &info));
    WF_TRY(wf_check_output_lists(c->options, (uint32_t)info.outputs));
    for (uint32_t i = 0; i < info.outputs; i++) {
        const weft_spec *output = weft_op_choice_output(last, i);
        struct wf_tensor_type tensor = wf_spec_type(output);
        uint64_t one = UINT64_MAX;
        WF_TRY(wf_check_wanted(c->options, i, &tensor));
        if (is_allowed(c, true, i, output))
            WF_TRY(wf_price_output(c->options, output, wanted != NULL ? wanted[i] : NULL, &one));
        *ns = wf_add_capped(*ns, one);
    }
    return WEFT_OK;
}

weft_status wf_chain_list_step(const struct wf_chain *c, uint32_t step, const weft_spec *before,
                               uint32_t next, weft_op_list **out)
{
    const weft_spec *inputs[WF_RULE_TENSORS], *fixed[WF_RULE_TENSORS] = {before};
    uint32_t own = before != NULL ? 1 : 0, count = c->steps[step].inputs;
    weft_op_options options = {.struct_size = sizeof options};
    weft_op_attr attrs[CHAIN_ATTRS];
    weft_op_call call = {.struct_size = sizeof call,
                         .name = c->steps[step].name,
                         .inputs = inputs,
                         .input_count = count,
                         .attr_size = sizeof(weft_op_attr),
                         .attrs = attrs,
                         .flags = c->call->flags,
                         .mesh = c->call->mesh};

    for (uint32_t i = 0; i < c->call->attr_count; i++)
        if ((c->steps[step].attrs >> i & 1) != 0) attrs[call.attr_count++] = c->call->attrs[i];
    inputs[0] = before;
    for (uint32_t i = own; i < count; i++)
        inputs[i] = c->call->inputs[next + i - own];
    if (before != NULL) options.fixed_inputs = fixed;
    options.fixed_input_count = count;
    return weft_op_list_create(&call, &options, out);
}

/* ---- all strategies ---- */

static weft_status list_step(struct listing *l, uint32_t step, const weft_spec *before,
                             uint32_t next);

/* Go on with strategy ONE of STEP, whose inputs from the call begin at NEXT. */
static weft_status list_choice(struct listing *l, uint32_t step, const weft_op_choice *one,
                               const weft_spec *before, uint32_t next)
{
    const struct wf_chain *c = l->chain;
    uint32_t own = before != NULL ? 1 : 0, count = c->steps[step].inputs - own;
    weft_op_choice *choice = NULL;
    uint64_t ns;

    for (uint32_t i = 0; i < count; i++) {
        const weft_spec *spec = weft_op_choice_input(one, own + i);
        if (spec != NULL && !is_allowed(c, false, next + i, spec)) return WEFT_OK;
    }
    l->trial[step] = one;
    if (step + 1 < c->step_count)
        return list_step(l, step + 1, weft_op_choice_output(one, 0), next + count);
    WF_TRY(wf_chain_price_outputs(c, one, &ns));
    if (ns == UINT64_MAX) return WEFT_OK;
    WF_TRY(make_choice(c, l->trial, false, &choice));
    return wf_list_append(l->list, choice);
}

/* List all strategies of STEP and of those behind it. */
static weft_status list_step(struct listing *l, uint32_t step, const weft_spec *before,
                             uint32_t next)
{
    weft_op_list *list = NULL;
    weft_status status = wf_chain_list_step(l->chain, step, before, next, &list);

    for (uint32_t i = 0; status == WEFT_OK && i < weft_op_list_count(list); i++)
        status = list_choice(l, step, weft_op_list_choice(list, i), before, next);
    weft_op_list_release(&list);
    return status;
}

/* ---- calls ---- */

static weft_status begin_chain(struct wf_chain *c)
{
    uint32_t inputs = 1;

    for (uint32_t i = 0; i < c->step_count; i++) {
        if (c->steps[i].inputs == 0 || c->steps[i].inputs > WF_RULE_TENSORS)
            return refuse(c, "a part has no input");
        inputs += c->steps[i].inputs - 1;
    }
    if (inputs != c->call->input_count || inputs > WF_CHAIN_INPUTS)
        return wf_fail(
            WEFT_ERR_INVALID, "operator %.100s: the call has %zu input%s; its parts take %u",
            c->call->name, c->call->input_count, WF_PLURAL(c->call->input_count), inputs);
    if (c->options->memory_limit != 0) return refuse(c, "a limit of memory needs a rule");
    return WEFT_OK;
}

static const struct wf_op_entry *find_part(const void *where, const char *name)
{
    (void)where;
    return wf_op_find(name);
}

/* Give each attribute of CALL to the parts that know it. */
static weft_status share_attrs(const char *function, const weft_op_call *call,
                               struct wf_chain_parts *parts)
{
    if (call->attr_count > CHAIN_ATTRS)
        return wf_fail(WEFT_ERR_INVALID,
                       "%s: operator %.100s: the call has %zu attributes; the maximum is %d",
                       function, call->name, call->attr_count, CHAIN_ATTRS);
    for (uint32_t i = 0; i < call->attr_count; i++) {
        uint32_t known = 0;
        for (uint32_t j = 0; j < parts->count; j++) {
            const struct wf_op_entry *part = wf_op_find(parts->steps[j].name);
            if (part == NULL || !wf_attr_is_known(part, call->attrs[i].name)) continue;
            parts->steps[j].attrs |= UINT32_C(1) << i;
            known++;
        }
        if (known == 0)
            return wf_fail(WEFT_ERR_INVALID,
                           "%s: operator %.100s: no part of \"%.300s\" has attribute %.50s",
                           function, call->name, parts->rule->text, call->attrs[i].name);
    }
    return WEFT_OK;
}

weft_status wf_chain_read(const char *function, const struct wf_op_entry *entry,
                          const weft_op_call *call, struct wf_chain_parts *out)
{
    out->rule = wf_rule_retain(entry->rules[0]);
    out->count = 0;
    if (strlen(call->name) != entry->length)
        return wf_fail(WEFT_ERR_UNSUPPORTED,
                       "%s: operator %.100s: an operator that is made of others has no such form",
                       function, call->name);
    WF_TRY(wf_op_list_steps(entry, find_part, NULL, out->steps, &out->count));
    return share_attrs(function, call, out);
}

static struct wf_chain chain_of(const struct wf_chain_parts *parts, const weft_op_call *call,
                                const weft_op_options *options)
{
    struct wf_chain c = {
        .call = call, .options = options, .rule = parts->rule, .step_count = parts->count};

    memcpy(c.steps, parts->steps, parts->count * sizeof *parts->steps);
    c.plan = (weft_plan_options){.struct_size = sizeof c.plan, .costs = options->costs};
    return c;
}

weft_status wf_chain_list(const struct wf_chain_parts *parts, const weft_op_call *call,
                          const weft_op_options *options, weft_op_list *list)
{
    struct wf_chain c = chain_of(parts, call, options);
    struct listing l = {.chain = &c, .list = list};

    WF_TRY(begin_chain(&c));
    return list_step(&l, 0, NULL, 0);
}

weft_status wf_chain_solve(const char *function, const struct wf_chain_parts *parts, bool moves,
                           const weft_op_call *call, const weft_op_options *options,
                           weft_op_choice **out)
{
    struct wf_chain c = chain_of(parts, call, options);
    struct wf_chain_best best;
    weft_status status;

    for (uint32_t kind = 0; kind < WEFT_STEP_KINDS; kind++)
        if (kind != WEFT_STEP_SLICE && kind != WEFT_STEP_PARTIAL)
            c.plan.without |= UINT32_C(1) << kind;
    WF_TRY(begin_chain(&c));
    status = wf_chain_search(&c, &best);
    if (status == WEFT_OK && (!best.found || best.output_ns > 0) && moves) {
        wf_chain_best_end(&best);
        c.plan.without = 0;
        status = wf_chain_search(&c, &best);
    }
    if (status == WEFT_OK && best.found)
        status = make_choice(&c, (const weft_op_choice *const *)best.parts, true, out);
    if (status == WEFT_OK && best.found) wf_choice_set_output_ns(*out, best.output_ns);
    if (status == WEFT_OK && !best.found)
        status =
            wf_fail(WEFT_ERR_MISMATCH,
                    "%s: operator %.100s: %s make all parts of \"%.300s\" legal without a move "
                    "between them",
                    function, call->name,
                    moves ? "no layouts of the inputs" : "the layouts of the inputs do not",
                    parts->rule->text);
    wf_chain_best_end(&best);
    return status;
}
