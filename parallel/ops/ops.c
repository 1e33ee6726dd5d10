/* ops.c - the public functions on calls of operators. */
#include "ops.h"

#include "cache.h"
#include "solve.h"

#include <string.h>

enum mode { CHECK, PROPOSE };

/* True if the operator takes and returns lists: each element is a call of its own. */
static bool is_elementwise(const struct wf_rule *rule)
{
    bool in = false, out = false;

    for (int i = 0; i < rule->input_count; i++)
        in = in || rule->slots[i].list;
    for (int i = 0; i < rule->output_count; i++)
        out = out || rule->slots[rule->input_count + i].list;
    return in && out;
}

static uint32_t count_elements(const struct wf_rule *rule, const weft_op_call *call)
{
    uint32_t lists = 0;

    if (!is_elementwise(rule)) return 1;
    for (int i = 0; i < rule->input_count; i++)
        lists += rule->slots[i].list;
    return ((uint32_t)call->input_count - (rule->input_count - lists)) / lists;
}

/* ---- check and propose ---- */

/* Check the layouts that the options want of the outputs. */
static weft_status check_wanted(const struct wf_solver *solver)
{
    const struct wf_op *op = &solver->op;

    if (solver->options.wanted_outputs == NULL) return WEFT_OK;
    for (uint32_t i = op->input_count; i < op->input_count + op->output_count; i++) {
        struct wf_tensor_type output = wf_op_type(op, &op->tensors[i]);
        WF_TRY(wf_check_wanted(&solver->options, wf_solver_position(solver, i), &output));
    }
    return WEFT_OK;
}

/* Add up the priced moves of the outputs of SOLUTION. */
static weft_status price_outputs(const struct wf_solver *solver, struct wf_solution *solution)
{
    const weft_spec *const *wanted = solver->options.wanted_outputs;

    if (!wf_options_price_outputs(&solver->options)) return WEFT_OK;
    for (uint32_t i = solver->op.input_count; i < solution->count; i++) {
        uint32_t at = wf_solver_position(solver, i);
        uint64_t ns;
        WF_TRY(wf_price_output(&solver->options, solution->specs[i],
                               wanted != NULL ? wanted[at] : NULL, &ns));
        solution->output_ns = wf_add_capped(solution->output_ns, ns);
    }
    return WEFT_OK;
}

static weft_status solve_element(struct wf_solver *solver, enum mode mode, const char *function,
                                 struct wf_solution *out)
{
    bool may_move = mode == PROPOSE && (solver->options.flags & WEFT_OP_FLAG_NO_MOVES) == 0;
    bool found = false, matches;

    WF_TRY(check_wanted(solver));
    if (solver->options.fixed_inputs == NULL || mode == CHECK)
        WF_TRY(wf_solver_match(solver, out, &found));
    matches = found;
    if (found) WF_TRY(price_outputs(solver, out));
    if ((!found || out->output_ns > 0) && may_move) WF_TRY(wf_solver_propose(solver, out, &found));
    if (!found && matches) {
        WF_TRY(wf_solver_match(solver, out, &found));
        WF_TRY(price_outputs(solver, out));
    }
    return found ? WEFT_OK : wf_solver_refuse(solver, function);
}

/* Solve one of COUNT elements, and add it to *CHOICE, which is made first. */
static weft_status add_element(struct wf_solver *solver, enum mode mode, const char *function,
                               uint32_t inputs, uint32_t count, weft_op_choice **choice)
{
    struct wf_solution solution;
    weft_status status;

    WF_TRY(wf_check_output_lists(&solver->options, solver->op.output_count * count));
    WF_TRY(wf_solution_begin(solver, &solution));
    status = solve_element(solver, mode, function, &solution);
    if (status == WEFT_OK && *choice == NULL)
        status = wf_choice_make(solver->op.rule, inputs, solver->op.output_count * count, choice);
    if (status == WEFT_OK) status = wf_choice_add(*choice, solver, &solution);
    wf_solution_end(&solution);
    return status;
}

/* Solve all elements of CALL into *OUT, which gets room for INPUTS inputs. */
static weft_status solve_elements(struct wf_solver *solver, const char *function, enum mode mode,
                                  const struct wf_op_entry *entry, const weft_op_call *call,
                                  const weft_op_options *options, uint32_t inputs,
                                  weft_op_choice **out)
{
    bool each = wf_is_foreach(call->name);
    struct wf_element e;
    uint32_t count = 1;

    if (each) WF_TRY(wf_element_begin(function, entry, call, &e));
    for (uint32_t i = 0; i < count; i++) {
        weft_status status;
        if (each) wf_element_set(&e, call, i);
        WF_TRY(wf_solver_begin(solver, entry, each ? &e.call : call, options, each ? 0 : i));
        count = each ? e.members : count_elements(solver->op.rule, call);
        solver->element = i;
        solver->is_foreach = each;
        solver->has_shared = each && e.has_shared;
        solver->is_out = inputs > call->input_count;
        solver->members = each || is_elementwise(solver->op.rule) ? count : 0;
        status = add_element(solver, mode, function, inputs, count, out);
        wf_solver_end(solver);
        if (status != WEFT_OK) return status;
    }
    return WEFT_OK;
}

/* Solve a call of `NAME.out`. */
static weft_status solve_out(struct wf_solver *solver, const char *function, enum mode mode,
                             const struct wf_op_entry *entry, const weft_op_call *call,
                             const weft_op_options *options, weft_op_choice **out)
{
    struct wf_out form;

    WF_TRY(wf_out_begin(function, entry, call, options, &form));
    WF_TRY(solve_elements(solver, function, mode, entry, &form.call, &form.options,
                          (uint32_t)call->input_count, out));
    for (uint32_t i = (uint32_t)form.call.input_count; i < call->input_count; i++)
        wf_choice_set_input(*out, i, call->inputs[i], NULL);
    for (uint32_t i = 0; i < form.count; i++)
        wf_choice_set_memory(*out, i, (uint32_t)form.call.input_count + i);
    return WEFT_OK;
}

static weft_status solve_call(const char *function, enum mode mode, const struct wf_op_entry *entry,
                              const weft_op_call *call, const weft_op_options *options,
                              weft_op_choice **out)
{
    struct wf_solver *solver = wf_alloc(sizeof *solver);
    weft_op_choice *choice = NULL;
    weft_status status;

    if (solver == NULL) return wf_fail_memory(sizeof *solver);
    if (wf_is_out(call->name, entry))
        status = solve_out(solver, function, mode, entry, call, options, &choice);
    else
        status = solve_elements(solver, function, mode, entry, call, options,
                                (uint32_t)call->input_count, &choice);
    wf_free(solver);
    if (status == WEFT_OK)
        *out = choice;
    else
        weft_op_choice_release(&choice);
    return status;
}

/* The kept choice of a call of the common form: without attributes, stated outputs and flags.  It
 * is read where it is.  NULL: it is not kept, or of another form. */
static WF_HOT weft_op_choice *find_kept(enum mode mode, const weft_op_call *call,
                                        const weft_op_options *options)
{
    static const weft_op_options none = {.struct_size = sizeof none};
    const struct wf_op_entry *entry;
    weft_op_choice *choice = NULL;
    struct wf_key key;
    uint32_t ticket;

    if (options == NULL) options = &none;
    if (call == NULL || call->struct_size != sizeof *call || call->attr_count != 0 ||
        call->outputs != NULL || (call->output_count | call->flags) != 0 || call->name == NULL ||
        call->inputs == NULL || options->struct_size != sizeof *options ||
        options->allow != NULL || /* what a predicate allows is not kept */
        options->wanted_outputs != NULL || wf_op_enter(&ticket) != WEFT_OK)
        return NULL;
    entry = wf_op_find(call->name);
    if (entry != NULL && wf_key_set(&key, entry, mode, call, options)) choice = wf_cache_find(&key);
    wf_op_leave(ticket);
    return choice;
}

/* Solve a call of an operator that is made of others.  Ends the reading that TICKET began. */
static weft_status solve_chain(const char *function, enum mode mode,
                               const struct wf_op_entry *entry, const weft_op_call *call,
                               const weft_op_options *options, uint32_t ticket,
                               weft_op_choice **out)
{
    bool moves = mode == PROPOSE && (options->flags & WEFT_OP_FLAG_NO_MOVES) == 0;
    struct wf_chain_parts parts;
    weft_status status = wf_chain_read(function, entry, call, &parts);

    wf_op_leave(ticket);
    if (status == WEFT_OK) status = wf_chain_solve(function, &parts, moves, call, options, out);
    wf_rule_drop(parts.rule);
    return status;
}

/* The kept choice of CALL, or a new one.  Ends the reading that TICKET began. */
static weft_status answer_entry(const char *function, enum mode mode,
                                const struct wf_op_entry *entry, const weft_op_call *call,
                                const weft_op_options *options, uint32_t ticket,
                                weft_op_choice **out)
{
    struct wf_key key;
    weft_op_choice *choice = NULL;
    weft_status status = WEFT_OK;
    bool kept;

    if (wf_key_set(&key, entry, mode, call, options)) choice = wf_cache_find(&key);
    kept = choice != NULL;
    if (kept) {
        wf_op_leave(ticket);
    } else if (wf_op_is_chain(entry)) {
        status = solve_chain(function, mode, entry, call, options, ticket, &choice);
    } else {
        status = solve_call(function, mode, entry, call, options, &choice);
        wf_op_leave(ticket);
    }
    if (status == WEFT_OK && !kept) wf_cache_keep(&key, call, options, choice);
    if (status == WEFT_OK) *out = choice;
    return status;
}

static weft_status answer_call(const char *function, enum mode mode, const weft_op_call *given,
                               const weft_op_options *options, weft_op_choice **out)
{
    weft_op_call call;
    weft_op_options read;
    const struct wf_op_entry *entry;
    struct wf_op_entry made;
    char ours[128];
    weft_op_choice *choice;
    weft_status status;
    uint32_t ticket;

    if (out == NULL) return wf_fail(WEFT_ERR_INVALID, "%s: out is NULL", function);
    choice = find_kept(mode, given, options);
    if (choice != NULL) {
        *out = choice;
        return WEFT_OK;
    }
    WF_TRY(wf_call_read(function, given, options, &call, &read));
    WF_TRY(wf_op_enter(&ticket));
    call.name = wf_op_foreign_name(call.name, ours, sizeof ours);
    entry = wf_op_find_form(call.name);
    if (entry != NULL)
        return wf_fail_named(answer_entry(function, mode, entry, &call, &read, ticket, out),
                             function);
    if ((read.flags & WEFT_OP_FLAG_FALLBACK) == 0) {
        status = wf_op_refuse_name(function, call.name);
        wf_op_leave(ticket);
        return status;
    }
    status = wf_fallback_begin(function, &call, &made);
    if (status == WEFT_OK)
        status = answer_entry(function, mode, &made, &call, &read, ticket, out);
    else
        wf_op_leave(ticket);
    wf_fallback_end(&made);
    return wf_fail_named(status, function);
}

weft_status wf_call_check_dtypes(const weft_op_call *call)
{
    struct wf_op op = {.name = call->name};
    const struct wf_op_entry *entry;
    weft_status status = WEFT_OK;
    uint32_t ticket;

    WF_TRY(wf_op_enter(&ticket));
    entry = wf_op_find(call->name);
    for (uint32_t i = 0; entry != NULL && i < entry->rule_count && op.rule == NULL; i++)
        if (wf_attr_guards_hold(entry->rules[i], call)) op.rule = entry->rules[i];
    if (op.rule != NULL) status = wf_op_check_dtypes(&op, call, 0);
    wf_op_leave(ticket);
    return status;
}

weft_status wf_op_answer(const char *function, bool moves, const weft_op_call *call,
                         const weft_op_options *options, weft_op_choice **out)
{
    return answer_call(function, moves ? PROPOSE : CHECK, call, options, out);
}

weft_status weft_op_check(const weft_op_call *call, const weft_op_options *options,
                          weft_op_choice **out)
{
    return answer_call("weft_op_check", CHECK, call, options, out);
}

weft_status weft_op_propose(const weft_op_call *call, const weft_op_options *options,
                            weft_op_choice **out)
{
    return answer_call("weft_op_propose", PROPOSE, call, options, out);
}
