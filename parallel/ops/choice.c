/* choice.c - the object that tells a caller how to run an operator. */
#include "cache.h"
#include "ops.h"
#include "solve.h"

#include <string.h>

/* What the gradient of a tensor depends on besides its spec. */
struct mark {
    bool has_gradient;
    uint8_t divided; /* bit per axis along which the ranks compute different things */
};

struct weft_op_choice {
    _Atomic(int64_t) references;
    weft_op_choice_info info;
    struct wf_rule *rule;
    /* inputs, then outputs */
    weft_spec **specs;
    _Atomic(weft_spec *) *gradients; /* NULL until somebody asks for it */
    weft_plan **moves;
    struct mark *marks;
    uint32_t *memories; /* per output: 1 + the input whose memory it is; 0: its own */
    double count;       /* of wf_choice_count */
    uint32_t size_count;
    struct wf_local_size sizes[WF_LOCAL_SIZES];
};

weft_status wf_choice_make(const struct wf_rule *rule, uint32_t inputs, uint32_t outputs,
                           weft_op_choice **out)
{
    size_t tensors = (size_t)inputs + outputs;
    size_t bytes = sizeof(weft_op_choice) + tensors * (3 * sizeof(void *) + sizeof(struct mark)) +
                   outputs * sizeof(uint32_t);
    weft_op_choice *choice = wf_calloc(1, bytes);

    if (choice == NULL) return wf_fail_memory(bytes);
    atomic_init(&choice->references, 1);
    choice->rule = wf_rule_retain((struct wf_rule *)(uintptr_t)rule);
    choice->info = (weft_op_choice_info){.struct_size = sizeof choice->info,
                                         .rule = rule->text,
                                         .inputs = inputs,
                                         .outputs = outputs,
                                         .local = true};
    choice->count = 1;
    choice->specs = (weft_spec **)(void *)(choice + 1);
    choice->gradients = (_Atomic(weft_spec *) *)(void *)(choice->specs + tensors);
    choice->moves = (weft_plan **)(void *)(choice->specs + 2 * tensors);
    choice->memories = (uint32_t *)(void *)(choice->specs + 3 * tensors);
    choice->marks = (struct mark *)(void *)(choice->memories + outputs);
    *out = choice;
    return WEFT_OK;
}

/* ---- gradients ---- */

bool wf_choice_has_gradient(uint32_t dtype)
{
    return dtype >= WEFT_DTYPE_F16 && dtype < WEFT_DTYPE_COUNT;
}

/* Only sums of contributions pass gradients on as they are. */
static bool is_sum(const struct wf_op *op, const weft_spec *spec)
{
    const weft_placement *placements = weft_spec_placements(spec);

    for (int32_t a = 0; a < op->axes; a++) {
        const weft_placement *p = &placements[a];
        if (p->kind == WEFT_PLACE_PARTIAL && p->reduction != WEFT_REDUCE_SUM) return false;
    }
    return true;
}

static bool is_differentiable(const struct wf_op *op, const struct wf_solution *solution)
{
    for (uint32_t i = op->input_count; i < solution->count; i++)
        if (!is_sum(op, solution->specs[i])) return false;
    return true;
}

static bool is_replica(const weft_spec *spec, int32_t axis)
{
    return weft_spec_placements(spec)[axis].kind == WEFT_PLACE_REPLICATE;
}

/* True if input TENSOR is a replica along AXIS, and so is an output with a gradient that depends on
 * it.  Where the ranks compute different parts of another output, one way to the input has
 * contributions and the other one replicas. */
static bool is_used_whole(const struct wf_op *op, const struct wf_solution *solution,
                          uint32_t tensor, int32_t axis)
{
    const struct wf_op_tensor *t = &op->tensors[tensor];

    if (!is_replica(solution->specs[tensor], axis)) return false;
    for (uint32_t i = op->input_count; i < solution->count; i++) {
        const struct wf_op_tensor *output = &op->tensors[i];
        if ((op->rule->slots[output->slot].depends >> t->slot & 1) != 0 &&
            wf_choice_has_gradient(output->dtype) && is_replica(solution->specs[i], axis))
            return true;
    }
    return false;
}

/* Inputs that are used whole and in parts have no gradient layout. */
static void drop_mixed(const struct wf_op *op, const struct wf_solution *solution, uint32_t tensor,
                       struct mark *mark)
{
    for (int32_t a = 0; a < op->axes && mark->has_gradient; a++)
        if ((mark->divided >> a & 1) != 0 && is_used_whole(op, solution, tensor, a))
            mark->has_gradient = false;
}

static struct mark mark_tensor(const struct wf_op *op, const struct wf_solution *solution,
                               uint32_t tensor)
{
    const struct wf_op_tensor *t = &op->tensors[tensor];
    struct mark mark = {.divided = 0};

    mark.has_gradient = wf_choice_has_gradient(t->dtype) && is_sum(op, solution->specs[tensor]) &&
                        !(tensor < op->input_count && op->rule->slots[t->slot].shape_only);
    for (int32_t a = 0; a < op->axes; a++)
        if (tensor < op->input_count && solution->rows[a]->kind != WF_ROW_WHOLE && op->ranks[a] > 1)
            mark.divided |= (uint8_t)(1u << a);
    return mark;
}

/* The layout of the gradient of TENSOR.  Every rank differentiates what it computes: the gradient
 * of a part is a part, that of a contribution to a sum is the whole gradient, and that of a replica
 * that the ranks use for different parts is a contribution. */
weft_status wf_choice_gradient(const weft_op_choice *choice, size_t tensor, const weft_spec **out)
{
    const struct mark *mark = &choice->marks[tensor];
    weft_spec *known = atomic_load(&choice->gradients[tensor]), *made;
    weft_placement placements[WEFT_MAX_AXES];
    bool differs = false;
    int32_t axes;

    *out = known;
    if (known != NULL || !mark->has_gradient) return WEFT_OK;
    axes = wf_spec_axes(choice->specs[tensor]);
    memcpy(placements, weft_spec_placements(choice->specs[tensor]),
           (size_t)axes * sizeof *placements);
    for (int32_t a = 0; a < axes; a++) {
        weft_placement *p = &placements[a];
        bool replica = p->kind == WEFT_PLACE_REPLICATE && (mark->divided >> a & 1) != 0;
        if (p->kind != WEFT_PLACE_PARTIAL && !replica) continue;
        *p = (weft_placement){.kind = WEFT_PLACE_REPLICATE};
        if (replica)
            *p = (weft_placement){.kind = WEFT_PLACE_PARTIAL, .reduction = WEFT_REDUCE_SUM};
        differs = true;
    }
    *out = choice->specs[tensor];
    if (!differs) return WEFT_OK;
    WF_TRY(wf_spec_place(choice->specs[tensor], placements, &made));
    *out = made;
    if (atomic_compare_exchange_strong(&choice->gradients[tensor], &known, made)) return WEFT_OK;
    weft_spec_release(&made); /* another thread was first */
    *out = known;
    return WEFT_OK;
}

static const weft_spec *gradient_of(const weft_op_choice *choice, size_t tensor)
{
    const weft_spec *spec;

    return wf_choice_gradient(choice, tensor, &spec) == WEFT_OK ? spec : NULL;
}

/* Where tensor I of SOLVER belongs in the lists of CHOICE; UINT32_MAX: the call does not have it.
 */
static uint32_t place_of(const weft_op_choice *choice, const struct wf_solver *solver, uint32_t i)
{
    uint32_t at = wf_solver_position(solver, i);

    if (i >= solver->op.input_count) return (uint32_t)choice->info.inputs + at;
    return at < choice->info.inputs ? at : UINT32_MAX;
}

/* Note the attributes that are sizes, with the positions that the tensors have in the call. */
static void set_sizes(weft_op_choice *choice, const struct wf_solver *solver)
{
    choice->size_count = wf_local_sizes_find(&solver->op, choice->sizes);
    for (uint32_t i = 0; i < choice->size_count; i++) {
        struct wf_local_size *size = &choice->sizes[i];

        size->tensor = (int32_t)place_of(choice, solver, (uint32_t)size->tensor);
        if (size->by_tensor >= 0)
            size->by_tensor = (int32_t)place_of(choice, solver, (uint32_t)size->by_tensor);
    }
}

/* The elements that one element of the first output is reduced from, divided by the ranks that
 * split a factor which this output averages. */
static double count_of(const struct wf_op *op, const struct wf_solution *solution)
{
    const struct wf_op_tensor *output = &op->tensors[op->input_count];
    uint64_t reduced = output->sources & ~output->factors;
    double count = 1;

    for (uint32_t f = 0; f < op->factor_count; f++)
        if ((reduced >> f & 1) != 0) count *= (double)op->factors[f].size;
    for (int32_t a = 0; a < op->axes; a++) {
        const struct wf_row *row = solution->rows[a];
        struct wf_entry entry = wf_row_entry(op, row, op->input_count);

        if (row->kind != WF_ROW_PARTIAL && entry.kind == WF_ENTRY_PARTIAL &&
            entry.value == WEFT_REDUCE_AVG)
            count /= op->ranks[a];
    }
    return count;
}

weft_status wf_choice_add(weft_op_choice *choice, const struct wf_solver *solver,
                          struct wf_solution *solution)
{
    bool differentiable = is_differentiable(&solver->op, solution);

    for (uint32_t i = 0; i < solution->count; i++) {
        uint32_t at = place_of(choice, solver, i);
        if (at == UINT32_MAX || choice->specs[at] != NULL || solution->specs[i] == NULL) continue;
        if (differentiable) choice->marks[at] = mark_tensor(&solver->op, solution, i);
        if (solver->op.output_count > 1) drop_mixed(&solver->op, solution, i, &choice->marks[at]);
        choice->specs[at] = solution->specs[i];
        solution->specs[i] = NULL;
        if (i >= solver->op.input_count) {
            int in = solver->op.tensors[i].inplace;
            if (in >= 0)
                choice->memories[at - choice->info.inputs] =
                    place_of(choice, solver, (uint32_t)in) + 1;
            continue;
        }
        choice->moves[at] = solution->moves[i];
        solution->moves[i] = NULL;
        choice->info.moves += choice->moves[at] != NULL;
        if (weft_plan_communicates(choice->moves[at])) choice->info.local = false;
    }
    choice->info.cost_ns = wf_add_capped(choice->info.cost_ns, solution->cost_ns);
    choice->info.output_ns = wf_add_capped(choice->info.output_ns, solution->output_ns);
    if (solver->element > 0) return WEFT_OK;
    set_sizes(choice, solver);
    if (solver->op.output_count > 0) choice->count = count_of(&solver->op, solution);
    return WEFT_OK;
}

double wf_choice_count(const weft_op_choice *choice)
{
    return choice->count;
}

void wf_choice_set_count(weft_op_choice *choice, double count)
{
    choice->count = count;
}

const struct wf_local_size *wf_choice_local_sizes(const weft_op_choice *choice, uint32_t *count)
{
    *count = choice->size_count;
    return choice->sizes;
}

void wf_choice_set_input(weft_op_choice *choice, uint32_t index, const weft_spec *spec,
                         weft_plan *move)
{
    choice->specs[index] = weft_spec_retain(spec);
    choice->moves[index] = move;
    if (move == NULL) return;
    choice->info.moves++;
    if (weft_plan_communicates(move)) choice->info.local = false;
    choice->info.cost_ns = wf_add_capped(choice->info.cost_ns, weft_plan_cost_ns(move));
}

void wf_choice_set_output(weft_op_choice *choice, uint32_t index, const weft_spec *spec)
{
    choice->specs[choice->info.inputs + index] = weft_spec_retain(spec);
}

void wf_choice_set_memory(weft_op_choice *choice, uint32_t output, uint32_t input)
{
    choice->memories[output] = input + 1;
}

void wf_choice_set_output_ns(weft_op_choice *choice, uint64_t ns)
{
    choice->info.output_ns = ns;
}

void wf_choice_set_gradient(weft_op_choice *choice, uint32_t index, const weft_spec *spec)
{
    atomic_store(&choice->gradients[index], spec != NULL ? weft_spec_retain(spec) : NULL);
}

weft_op_choice *wf_choice_retain(weft_op_choice *choice)
{
    atomic_fetch_add_explicit(&choice->references, 1, memory_order_relaxed);
    return choice;
}

weft_op_choice *weft_op_choice_retain(const weft_op_choice *choice)
{
    return choice != NULL ? wf_choice_retain((weft_op_choice *)(uintptr_t)choice) : NULL;
}

void weft_op_choice_release(weft_op_choice **choice)
{
    weft_op_choice *mine;
    size_t tensors;

    if (choice == NULL || *choice == NULL) return;
    mine = *choice;
    *choice = NULL;
    if (atomic_fetch_sub_explicit(&mine->references, 1, memory_order_acq_rel) != 1) return;
    tensors = mine->info.inputs + mine->info.outputs;
    for (size_t i = 0; i < tensors; i++) {
        weft_spec *gradient = atomic_load(&mine->gradients[i]);
        weft_spec_release(&gradient);
        weft_spec_release(&mine->specs[i]);
        weft_plan_release(&mine->moves[i]);
    }
    wf_rule_drop(mine->rule);
    wf_free(mine);
}

weft_status weft_op_choice_get(const weft_op_choice *choice, weft_op_choice_info *out)
{
    WF_TRY(wf_require(choice, "weft_op_choice_get: choice"));
    WF_TRY(wf_require(out, "weft_op_choice_get: out"));
    return wf_info_write("weft_op_choice_info", &choice->info, sizeof choice->info, out);
}

const weft_op_choice_info *wf_choice_info(const weft_op_choice *choice)
{
    return &choice->info;
}

const weft_spec *weft_op_choice_input(const weft_op_choice *choice, size_t index)
{
    return choice != NULL && index < choice->info.inputs ? choice->specs[index] : NULL;
}

const weft_spec *weft_op_choice_output(const weft_op_choice *choice, size_t index)
{
    if (choice == NULL || index >= choice->info.outputs) return NULL;
    return choice->specs[choice->info.inputs + index];
}

size_t weft_op_choice_memory(const weft_op_choice *choice, size_t index)
{
    if (choice == NULL || index >= choice->info.outputs) return SIZE_MAX;
    return (size_t)choice->memories[index] - 1;
}

const uint32_t *wf_choice_memories(const weft_op_choice *choice)
{
    return choice->memories;
}

const weft_plan *weft_op_choice_move(const weft_op_choice *choice, size_t index)
{
    return choice != NULL && index < choice->info.inputs ? choice->moves[index] : NULL;
}

const weft_spec *weft_op_choice_gradient(const weft_op_choice *choice, size_t index)
{
    if (choice == NULL || index >= choice->info.inputs) return NULL;
    return gradient_of(choice, index);
}

const weft_spec *weft_op_choice_output_gradient(const weft_op_choice *choice, size_t index)
{
    if (choice == NULL || index >= choice->info.outputs) return NULL;
    return gradient_of(choice, choice->info.inputs + index);
}
