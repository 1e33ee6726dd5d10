/* list.c - all strategies of a call. */
#include "solve.h"

#include <string.h>

enum { MOST_LISTED = 1 << 16 };

struct weft_op_list {
    uint32_t count, room;
    weft_op_choice **choices;
    uint32_t *slots; /* of a hash table, if choices are compared: 1 + the choice; 0: free */
    uint32_t slot_count;
};

/* A list in the making. */
struct listing {
    struct wf_solver *solver;
    weft_op_list *list;
    uint32_t inputs;   /* of the call */
    bool keeps_shapes; /* inputs of which only the shape is used keep their layouts */
    struct wf_solution base, variant;
};

/* Make room for one more choice. */
static weft_status grow_list(weft_op_list *list)
{
    uint32_t room = list->room != 0 ? 2 * list->room : 16;
    weft_op_choice **grown;

    if (list->count < list->room) return WEFT_OK;
    grown = wf_realloc(list->choices, room * sizeof(weft_op_choice *));
    if (grown == NULL) return wf_fail_memory(room * sizeof(weft_op_choice *));
    list->choices = grown;
    list->room = room;
    return WEFT_OK;
}

static bool same_choice(const weft_op_choice *a, const weft_op_choice *b)
{
    weft_op_choice_info info = {.struct_size = sizeof info};

    if (weft_op_choice_get(a, &info) != WEFT_OK) return false;
    for (uint32_t i = 0; i < info.inputs; i++)
        if (weft_op_choice_input(a, i) != weft_op_choice_input(b, i)) return false;
    for (uint32_t i = 0; i < info.outputs; i++)
        if (weft_op_choice_output(a, i) != weft_op_choice_output(b, i)) return false;
    return true;
}

static uint64_t hash_choice(const weft_op_choice *choice)
{
    weft_op_choice_info info = {.struct_size = sizeof info};
    uint64_t hash = 1;

    if (weft_op_choice_get(choice, &info) != WEFT_OK) return 0;
    for (uint32_t i = 0; i < info.inputs; i++)
        hash = wf_hash_mix(hash, (uintptr_t)weft_op_choice_input(choice, i));
    for (uint32_t i = 0; i < info.outputs; i++)
        hash = wf_hash_mix(hash, (uintptr_t)weft_op_choice_output(choice, i));
    return hash;
}

/* The slot of CHOICE: that of an equal one, or the free one where it belongs. */
static uint32_t *find_choice(const weft_op_list *list, const weft_op_choice *choice)
{
    uint32_t at = (uint32_t)hash_choice(choice) & (list->slot_count - 1);

    while (list->slots[at] != 0 && !same_choice(list->choices[list->slots[at] - 1], choice))
        at = (at + 1) & (list->slot_count - 1);
    return &list->slots[at];
}

/* At most half of the slots are taken. */
static weft_status grow_slots(weft_op_list *list)
{
    uint32_t count = list->slot_count != 0 ? 2 * list->slot_count : 64;
    uint32_t *slots;

    if (2 * list->count < list->slot_count) return WEFT_OK;
    slots = wf_calloc(count, sizeof *slots);
    if (slots == NULL) return wf_fail_memory(count * sizeof *slots);
    wf_free(list->slots);
    list->slots = slots;
    list->slot_count = count;
    for (uint32_t i = 0; i < list->count; i++)
        *find_choice(list, list->choices[i]) = i + 1;
    return WEFT_OK;
}

static weft_status refuse_length(void)
{
    return wf_fail(WEFT_ERR_UNSUPPORTED,
                   "the call has more than %d strategies, which is the most "
                   "that a list has",
                   MOST_LISTED);
}

weft_status wf_list_append(weft_op_list *list, weft_op_choice *choice)
{
    weft_status status = grow_slots(list);
    uint32_t *slot = status == WEFT_OK ? find_choice(list, choice) : NULL;

    if (status == WEFT_OK && *slot == 0) {
        status = list->count < MOST_LISTED ? grow_list(list) : refuse_length();
        if (status == WEFT_OK) {
            list->choices[list->count++] = choice;
            *slot = list->count;
            return WEFT_OK;
        }
    }
    weft_op_choice_release(&choice);
    return status;
}

static weft_status append_choice(struct listing *l)
{
    const struct wf_op *op = &l->solver->op;
    weft_op_list *list = l->list;

    if (list->count == MOST_LISTED) return refuse_length();
    WF_TRY(grow_list(list));
    WF_TRY(wf_choice_make(op->rule, l->inputs, op->output_count, &list->choices[list->count]));
    list->count++;
    return wf_choice_add(list->choices[list->count - 1], l->solver, &l->variant);
}

/* ---- inputs of which only the shape is used: any placement is legal ---- */

static bool is_free(const struct wf_op *op, uint32_t i)
{
    const struct wf_op_tensor *t = &op->tensors[i];

    if (!t->present || !op->rule->slots[t->slot].shape_only) return false;
    for (uint32_t o = 0; o < op->output_count; o++)
        if (op->tensors[op->input_count + o].inplace == (int)i) return false;
    return true;
}

/* Placement NUMBER of a tensor on an axis: R, S of each dimension, P of each kind. */
static weft_placement numbered_placement(const struct wf_op_tensor *t, uint32_t number)
{
    static const uint8_t kinds[] = {WEFT_REDUCE_SUM, WEFT_REDUCE_AVG, WEFT_REDUCE_MAX,
                                    WEFT_REDUCE_MIN, WEFT_REDUCE_PROD};

    if (number == 0) return (weft_placement){.kind = WEFT_PLACE_REPLICATE};
    if (number <= t->dims)
        return (weft_placement){.kind = WEFT_PLACE_SHARD, .dim = (int32_t)number - 1};
    return (weft_placement){.kind = WEFT_PLACE_PARTIAL, .reduction = kinds[number - t->dims - 1]};
}

/* True if every placement of SPEC has a number. */
static bool is_numbered(const weft_spec *spec)
{
    const weft_placement *placements = weft_spec_placements(spec);

    for (int32_t a = wf_spec_axes(spec); a-- > 0;) {
        uint32_t kind = placements[a].kind;
        if (kind != WEFT_PLACE_REPLICATE && kind != WEFT_PLACE_SHARD && kind != WEFT_PLACE_PARTIAL)
            return false;
    }
    return true;
}

/* Add the variants of the base strategy in the inputs from FIRST on. */
static weft_status add_variants(struct listing *l, uint32_t first)
{
    const struct wf_op *op = &l->solver->op;
    uint32_t at[WEFT_MAX_AXES] = {0}, counts[WEFT_MAX_AXES];
    const struct wf_op_tensor *t;
    weft_status status = WEFT_OK;

    while (first < op->input_count && (l->keeps_shapes || !is_free(op, first)))
        first++;
    if (first == op->input_count) {
        for (uint32_t i = 0; i < l->base.count; i++)
            l->variant.specs[i] = weft_spec_retain(l->base.specs[i]);
        memcpy(l->variant.rows, l->base.rows, sizeof l->base.rows);
        return wf_solver_allows(l->solver, &l->variant) ? append_choice(l) : WEFT_OK;
    }
    t = &op->tensors[first];
    if (!is_numbered(t->given)) WF_TRY(add_variants(l, first + 1));
    for (int32_t a = 0; a < op->axes; a++)
        counts[a] = t->dims + 6u;
    do {
        weft_placement placements[WEFT_MAX_AXES];
        weft_spec *spec = NULL;
        for (int32_t a = 0; a < op->axes; a++)
            placements[a] = numbered_placement(t, at[a]);
        status = wf_spec_place(t->given, placements, &spec);
        if (status == WEFT_ERR_INVALID) continue; /* kinds that do not mix */
        if (status != WEFT_OK) return status;
        weft_spec_release(&l->base.specs[first]);
        l->base.specs[first] = spec;
        WF_TRY(add_variants(l, first + 1));
        for (uint32_t i = 0; i < l->variant.count; i++)
            weft_spec_release(&l->variant.specs[i]);
    } while (wf_next_combination(op->axes, counts, at));
    return WEFT_OK;
}

/* ---- strategies ---- */

/* The rows of AXIS that leave inputs which must stay as they are.  Returns how many there are. */
static uint32_t list_rows(const struct wf_solver *solver, int32_t axis, uint8_t *out)
{
    const struct wf_op *op = &solver->op;
    uint32_t count = 0;

    for (uint32_t i = 0; i < solver->rows[axis].count; i++) {
        bool fits = true;
        for (uint32_t t = 0; t < op->input_count && fits; t++) {
            const weft_spec *given = op->tensors[t].given;
            if (given != NULL && wf_solver_fixed(solver, t) == given)
                fits = wf_row_fits(op, &solver->rows[axis].row[i], axis, t, false);
        }
        if (fits) out[count++] = (uint8_t)i;
    }
    return count;
}

static weft_status list_strategies(struct listing *l)
{
    uint8_t rows[WEFT_MAX_AXES][WF_ROWS];
    struct wf_solver *solver = l->solver;
    struct wf_strategy s = {.op = &solver->op, .sizes = &solver->sizes};
    uint32_t counts[WEFT_MAX_AXES], at[WEFT_MAX_AXES] = {0};
    int32_t axes = solver->op.axes;
    weft_status status;
    bool legal;

    wf_solver_complete(solver);
    wf_strategy_default_order(&s);
    for (int32_t a = 0; a < axes; a++) {
        counts[a] = list_rows(solver, a, rows[a]);
        if (counts[a] == 0) return WEFT_OK;
    }
    WF_TRY(wf_check_combinations(&solver->op, counts));
    do {
        for (int32_t a = 0; a < axes; a++)
            s.rows[a] = &solver->rows[a].row[rows[a][at[a]]];
        status = wf_solver_try(solver, &s, &l->base, &legal);
        if (status == WEFT_OK && legal) status = add_variants(l, 0);
        for (uint32_t i = 0; i < l->variant.count; i++)
            weft_spec_release(&l->variant.specs[i]);
    } while (status == WEFT_OK && wf_next_combination(axes, counts, at));
    return status;
}

static void drop_choices(weft_op_list *list)
{
    while (list->count > 0)
        weft_op_choice_release(&list->choices[--list->count]);
}

static weft_status list_solver(struct wf_solver *solver, uint32_t inputs, weft_op_list *list)
{
    struct listing l = {.solver = solver, .list = list, .inputs = inputs};
    weft_status status;

    WF_TRY(wf_solution_begin(solver, &l.base));
    status = wf_solution_begin(solver, &l.variant);
    if (status == WEFT_OK) {
        status = list_strategies(&l);
        if (status == WEFT_ERR_UNSUPPORTED) {
            drop_choices(list);
            l.keeps_shapes = true;
            status = list_strategies(&l);
        }
        wf_solution_end(&l.variant);
    }
    wf_solution_end(&l.base);
    return status;
}

static weft_status list_call(const struct wf_op_entry *entry, const weft_op_call *call,
                             const weft_op_options *options, weft_op_list *list)
{
    struct wf_solver *solver;
    struct wf_element e;
    struct wf_out form;
    weft_status status;

    if (wf_is_foreach(call->name)) {
        WF_TRY(wf_element_begin("weft_op_list_create", entry, call, &e));
        if (options->element >= e.members)
            return wf_fail(WEFT_ERR_INVALID, "operator %.100s: the lists have %u tensor%s",
                           call->name, e.members, WF_PLURAL(e.members));
        wf_element_set(&e, call, (uint32_t)options->element);
        call = &e.call;
    } else if (wf_is_out(call->name, entry)) {
        WF_TRY(wf_out_begin("weft_op_list_create", entry, call, options, &form));
        call = &form.call;
        options = &form.options;
    }
    solver = wf_alloc(sizeof *solver);
    if (solver == NULL) return wf_fail_memory(sizeof *solver);
    status = wf_solver_begin(solver, entry, call, options, (uint32_t)options->element);
    if (status == WEFT_OK) {
        status = wf_check_output_lists(options, solver->op.output_count);
        if (status == WEFT_OK)
            status = list_solver(
                solver, (uint32_t)wf_min_i64((int64_t)call->input_count, solver->op.input_count),
                list);
        wf_solver_end(solver);
    }
    wf_free(solver);
    return status;
}

/* List the strategies of CALL.  Ends the reading that TICKET began. */
static weft_status list_entry(const weft_op_call *call, const weft_op_options *options,
                              uint32_t ticket, weft_op_list *list)
{
    const struct wf_op_entry *entry = wf_op_find_form(call->name);
    struct wf_chain_parts parts;
    weft_status status;

    if (entry != NULL && wf_op_is_chain(entry)) {
        status = wf_chain_read("weft_op_list_create", entry, call, &parts);
        wf_op_leave(ticket);
        if (status == WEFT_OK) status = wf_chain_list(&parts, call, options, list);
        wf_rule_drop(parts.rule);
        return status;
    }
    status = entry != NULL ? list_call(entry, call, options, list)
                           : wf_op_refuse_name("weft_op_list_create", call->name);
    wf_op_leave(ticket);
    return status;
}

weft_status weft_op_list_create(const weft_op_call *call, const weft_op_options *options,
                                weft_op_list **out)
{
    weft_op_call given;
    weft_op_options read;
    weft_op_list *list;
    char ours[128];
    weft_status status;
    uint32_t ticket;

    WF_TRY(wf_require(out, "weft_op_list_create: out"));
    WF_TRY(wf_call_read("weft_op_list_create", call, options, &given, &read));
    list = wf_calloc(1, sizeof *list);
    if (list == NULL) return wf_fail_memory(sizeof *list);
    status = wf_op_enter(&ticket);
    if (status == WEFT_OK) {
        given.name = wf_op_foreign_name(given.name, ours, sizeof ours);
        status = list_entry(&given, &read, ticket, list);
    }
    if (status == WEFT_OK)
        *out = list;
    else
        weft_op_list_release(&list);
    return wf_fail_named(status, "weft_op_list_create");
}

size_t weft_op_list_count(const weft_op_list *list)
{
    return list != NULL ? list->count : 0;
}

const weft_op_choice *weft_op_list_choice(const weft_op_list *list, size_t index)
{
    return list != NULL && index < list->count ? list->choices[index] : NULL;
}

void weft_op_list_release(weft_op_list **list)
{
    weft_op_list *mine;

    if (list == NULL || *list == NULL) return;
    mine = *list;
    *list = NULL;
    drop_choices(mine);
    wf_free(mine->choices);
    wf_free(mine->slots);
    wf_free(mine);
}
