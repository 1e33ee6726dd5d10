/* apply.c - one call of an operator: its layouts, the moves of its inputs, its outputs, and the
 * engine's kernel. */
#include "apply.h"

#include "ops/bind/attrs.h"
#include "ops/ops.h"

#include <stdio.h>
#include <string.h>

enum { FEW = 12 }; /* tensors without an allocation */

struct application {
    const char *function; /* that the program called */
    weft_context *context;
    struct wf_apply_state *state;
    weft_stream *stream;
    const struct wf_apply_options *options;
    weft_op_call call; /* its inputs are the specs of the tensors */
    const weft_spec **specs;
    weft_op_choice *choice;
    uint32_t inputs, outputs;
    bool is_known;             /* the operator has as many outputs as the caller has room for */
    size_t output_room;        /* of the caller */
    weft_tensor *const *given; /* inputs, before their moves */
    /* inputs, then outputs; NULL: absent.  The call holds references to inputs that it has moved,
     * and to outputs if the caller gets them. */
    weft_tensor **tensors;
    bool moves; /* some input */
    weft_tensor_local *locals;
    struct wf_local_attrs attrs;
    void *room; /* of many tensors; NULL: they fit here */
    size_t room_bytes;
    bool keeps_outputs; /* the caller gets references to them */
    uint32_t made;      /* outputs that are in TENSORS */

    const weft_spec *few_specs[FEW];
    weft_tensor *few_tensors[FEW];
    weft_tensor_local few_locals[FEW];
};

static weft_status refuse(const struct application *a, weft_status status)
{
    char about[128];

    snprintf(about, sizeof about, "operator %.100s", a->call.name);
    return wf_fail_about(status, a->function, about);
}

/* Only this rank fails: the others must not wait for it. */
static weft_status give_up(const struct application *a, weft_status status)
{
    status = wf_fail_context(status, "operator %.100s", a->call.name);
    return weft_comm_fail(weft_world(a->context), a->function, status);
}

/* ---- arguments ---- */

/* Room for the specs of more than FEW inputs. */
static weft_status make_specs(struct application *a)
{
    WF_TRY(wf_call_check_counts(a->function, &a->call));
    a->specs = wf_alloc(a->call.input_count * sizeof *a->specs);
    return a->specs != NULL ? WEFT_OK : wf_fail_memory(a->call.input_count * sizeof *a->specs);
}

static weft_status read_inputs(struct application *a, weft_tensor *const *inputs)
{
    a->specs = a->few_specs;
    if (a->call.input_count > FEW) WF_TRY(make_specs(a));
    a->inputs = (uint32_t)a->call.input_count;
    WF_TRY(weft_tensors_check(a->context, a->inputs, inputs, a->function, "inputs", a->specs));
    a->call.inputs = a->specs;
    return WEFT_OK;
}

static weft_status read_call(struct application *a, const weft_op_call *call)
{
    if (call != NULL && call->struct_size == sizeof *call) {
        a->call = *call;
    } else {
        if (call == NULL) return wf_fail_null(a->function, "call");
        a->call = (weft_op_call){0};
        WF_TRY(wf_fail_named(wf_options_read("weft_op_call", call, &a->call, sizeof a->call),
                             a->function));
    }
    a->call.struct_size = sizeof a->call;
    if (a->call.name == NULL)
        return wf_fail(WEFT_ERR_INVALID, "%s: weft_op_call.name is NULL", a->function);
    return wf_call_check_flags(a->function, &a->call);
}

/* ---- the strategy ---- */

static weft_status find_choice(struct application *a)
{
    struct wf_apply_state *state = a->state;
    bool moves = a->options->moves != WEFT_OP_MOVES_REFUSED;
    bool is_long = a->inputs >= WF_LONG_CALL && !a->options->has_strategy;
    weft_status status;

    if (is_long) {
        WF_TRY(wf_attrs_check(a->function, &a->call));
        a->choice = wf_long_call_find(state, &a->call, moves);
    }
    if (a->choice != NULL) return WEFT_OK;
    status = wf_op_answer(a->function, moves, &a->call, &a->options->strategy, &a->choice);
    if (status != WEFT_OK) return wf_phases_suggest(&a->call, a->given, status);
    if (is_long) wf_long_call_keep(state, &a->call, moves, a->choice);
    return WEFT_OK;
}

/* Room for the tensors: that of the last such call, if a kernel does not use it just now. */
static weft_status make_room(struct application *a, uint32_t tensors)
{
    struct wf_apply_state *state = a->state;
    size_t bytes = tensors * (sizeof *a->tensors + sizeof *a->locals);

    a->room = state->room;
    a->room_bytes = state->room_bytes;
    state->room = NULL;
    state->room_bytes = 0;
    if (a->room_bytes < bytes) {
        wf_free(a->room);
        a->room_bytes = bytes;
        a->room = wf_alloc(bytes);
    }
    if (a->room == NULL) return give_up(a, wf_fail_memory(bytes));
    a->locals = a->room;
    a->tensors = (weft_tensor **)(void *)(a->locals + tensors);
    return WEFT_OK;
}

static void end_room(struct application *a)
{
    if (a->room == NULL) return;
    wf_free(a->state->room);
    a->state->room = a->room;
    a->state->room_bytes = a->room_bytes;
}

static weft_status choose(struct application *a)
{
    const weft_op_choice_info *info;
    uint32_t tensors;

    WF_TRY(find_choice(a));
    info = wf_choice_info(a->choice);
    a->outputs = (uint32_t)info->outputs;
    a->moves = info->moves > 0;
    tensors = a->inputs + a->outputs;
    a->locals = a->few_locals;
    if (tensors > FEW)
        WF_TRY(make_room(a, tensors));
    else
        a->tensors = a->few_tensors;
    for (uint32_t i = 0; i < a->inputs; i++)
        a->tensors[i] = a->given[i];
    return WEFT_OK;
}

/* ---- moves ---- */

/* Make tensors for the inputs that are moved, and list them in FROM and TO. */
static weft_status make_targets(struct application *a, weft_tensor **from, weft_tensor **to,
                                uint32_t *count)
{
    bool shown = a->options->moves == WEFT_OP_MOVES_SHOWN;

    for (uint32_t i = 0; i < a->inputs; i++) {
        weft_tensor *tensor = a->given[i];
        const weft_spec *spec = weft_op_choice_input(a->choice, i);
        const weft_plan *plan = tensor != NULL ? weft_op_choice_move(a->choice, i) : NULL;

        if (plan == NULL) continue;
        if (shown) wf_move_show(a->function, a->call.name, i, tensor, spec, plan);
        WF_TRY(
            wf_tensor_new(a->context, spec, weft_tensor_name(tensor), a->stream, &a->tensors[i]));
        from[*count] = tensor;
        to[(*count)++] = a->tensors[i];
    }
    return WEFT_OK;
}

/* Most calls have no moves, and need not make room for them. */
static __attribute__((noinline)) weft_status move_inputs(struct application *a)
{
    const weft_move_options implicit = {
        .struct_size = sizeof implicit, .implicit = true, .made_for = a->call.name};
    weft_tensor *few[2 * FEW], **from = few, **to;
    uint32_t count = 0;
    weft_status status;

    if (a->inputs > FEW) from = wf_calloc(2 * (size_t)a->inputs, sizeof *from);
    if (from == NULL) return give_up(a, wf_fail_memory(2 * a->inputs * sizeof *from));
    to = from + a->inputs;
    status = make_targets(a, from, to, &count);
    if (status != WEFT_OK) {
        status = give_up(a, status);
    } else if (count > 0) {
        status = weft_tensors_move_into(count, from, to, &implicit, a->stream, NULL);
        if (status != WEFT_OK) status = wf_move_refuse(status, a->function, a->call.name);
    }
    if (from != few) wf_free(from);
    return status;
}

/* ---- outputs ---- */

/* The output is its input. */
static weft_status share_input(struct application *a, uint32_t input, weft_tensor **output)
{
    weft_tensor *tensor = a->tensors[input];

    if (weft_tensor_is_read_only(tensor))
        return refuse(a,
                      wf_fail(WEFT_ERR_INVALID, "input %u is written, but it is read-only", input));
    *output = a->keeps_outputs ? weft_tensor_retain(tensor) : tensor;
    return WEFT_OK;
}

static weft_status make_outputs(struct application *a)
{
    const uint32_t *memories = wf_choice_memories(a->choice);

    for (uint32_t i = 0; i < a->outputs; i++) {
        weft_tensor **output = &a->tensors[a->inputs + i];
        uint32_t input = memories[i] - 1;
        weft_status status;

        if (input < a->inputs) {
            WF_TRY(share_input(a, input, output));
            a->made++;
            continue;
        }
        if (!a->keeps_outputs)
            return refuse(a, wf_fail(WEFT_ERR_INVALID,
                                     "outputs is NULL, but output %u has memory of its own", i));
        status = wf_output_make(a->state, weft_op_choice_output(a->choice, i), a->stream, output);
        if (status != WEFT_OK) return give_up(a, status);
        a->made++;
    }
    return WEFT_OK;
}

/* ---- the kernel ---- */

/* Set a->locals to the shards of RANK, which work on the stream uses. */
static weft_status lend(struct application *a, int32_t rank)
{
    const uint32_t *memories = wf_choice_memories(a->choice);

    WF_TRY(weft_tensors_lend(a->context, rank, a->inputs + a->outputs, a->tensors, a->inputs,
                             a->stream, a->locals, sizeof *a->locals));
    for (uint32_t i = 0; i < a->outputs; i++) {
        uint32_t input = memories[i] - 1;
        if (input < a->inputs) a->locals[input].is_written = true;
    }
    return WEFT_OK;
}

static weft_status check_overlap(struct application *a)
{
    struct wf_written written = {.inputs = a->inputs,
                                 .outputs = a->outputs,
                                 .locals = a->locals,
                                 .memories = wf_choice_memories(a->choice)};
    const struct wf_apply_state *state = a->state;
    weft_status status = WEFT_OK;

    for (int32_t rank = state->first_rank; rank < state->last_rank && status == WEFT_OK; rank++) {
        written.rank = rank;
        status = lend(a, rank);
        if (status == WEFT_OK) status = wf_written_check(&written);
    }
    wf_free(written.room);
    return status == WEFT_OK ? WEFT_OK : refuse(a, status);
}

static bool has_outputs(const struct application *a)
{
    for (uint32_t i = a->inputs; i < a->inputs + a->outputs; i++)
        if (a->locals[i].shard->elements > 0) return true;
    return false;
}

/* True if the rank has no element of the inputs, though they have elements elsewhere. */
static bool has_no_inputs(const struct application *a)
{
    bool elsewhere = false;

    for (uint32_t i = 0; i < a->inputs; i++) {
        const weft_tensor_local *local = &a->locals[i];

        if (local->spec == NULL) continue;
        if (local->shard->elements > 0) return false;
        elsewhere = elsewhere || weft_spec_elements(local->spec) > 0;
    }
    return elsewhere;
}

static weft_status call_kernel(struct application *a, int32_t rank, weft_op_kernel kernel,
                               void *user)
{
    weft_op_run run = {.struct_size = sizeof run,
                       .name = a->call.name,
                       .context = a->context,
                       .stream = a->stream,
                       .rank = rank,
                       .input_count = a->inputs,
                       .output_count = a->outputs,
                       .local_size = sizeof(weft_tensor_local),
                       .attr_count = a->call.attr_count,
                       .attr_size = sizeof(weft_op_attr),
                       .inputs = a->locals,
                       .outputs = a->locals + a->inputs,
                       .count = wf_choice_count(a->choice),
                       .choice = a->choice};
    uint64_t failures = wf_failure_count();
    char what[48] = "the kernel";
    weft_status status;

    if (a->attrs.memory != NULL || a->attrs.numbers != NULL) wf_local_attrs_free(&a->attrs);
    WF_TRY(wf_local_attrs_set(&a->attrs, &a->call, a->choice, a->locals, rank));
    run.attrs = a->attrs.values;
    status = kernel(user, &run);
    if (status == WEFT_OK) return WEFT_OK;
    if (a->state->is_simulated) snprintf(what, sizeof what, "the kernel on rank %d", rank);
    return wf_fail_callback(status, failures, what);
}

static weft_status compute_rank(struct application *a, int32_t rank, weft_op_kernel kernel,
                                void *user)
{
    weft_tensor **outputs = a->tensors + a->inputs;

    WF_TRY(lend(a, rank));
    if (!has_outputs(a)) return WEFT_OK;
    if (has_no_inputs(a) && wf_are_partial(a->outputs, outputs))
        return wf_fill_identities(a->outputs, outputs, rank, a->stream);
    return call_kernel(a, rank, kernel, user);
}

static weft_status compute(struct application *a, weft_op_kernel kernel, void *user)
{
    const struct wf_apply_state *state = a->state;

    for (int32_t rank = state->first_rank; rank < state->last_rank; rank++) {
        weft_status status = compute_rank(a, rank, kernel, user);

        if (status != WEFT_OK) return give_up(a, status);
    }
    return WEFT_OK;
}

/* ---- the call ---- */

/* The memory of moved inputs is freed in the order of the stream, which their kernel uses. */
static void release_moved(struct application *a)
{
    for (uint32_t i = 0; a->moves && i < a->inputs; i++)
        if (a->tensors[i] != a->given[i]) weft_tensor_release(&a->tensors[i]);
}

/* Give the outputs to the caller or, if the call failed, release them.  OUTPUTS may be the array of
 * the inputs. */
static void end(struct application *a, bool success, weft_tensor **outputs)
{
    if (a->tensors != NULL) {
        weft_tensor **made = a->tensors + a->inputs;

        release_moved(a);
        if (success && outputs != NULL) {
            if (a->outputs > 0) memcpy(outputs, made, a->outputs * sizeof *outputs);
            for (size_t i = a->outputs; i < a->output_room; i++)
                outputs[i] = NULL;
        }
        for (uint32_t i = 0; !success && outputs != NULL && i < a->made; i++)
            weft_tensor_release(&made[i]);
    }
    if (a->specs != a->few_specs) wf_free(a->specs);
    end_room(a);
    wf_local_attrs_free(&a->attrs);
    weft_op_choice_release(&a->choice);
}

/* The operator has another number of outputs than the caller has room for. */
static weft_status check_room(const struct application *a)
{
    if (!a->keeps_outputs) return WEFT_OK;
    if (a->is_known)
        return refuse(a, wf_fail(WEFT_ERR_INVALID, "its rule has %u output%s; expected %zu",
                                 a->outputs, WF_PLURAL(a->outputs), a->output_room));
    return a->outputs < a->output_room ? WEFT_OK
                                       : refuse(a, wf_room_refuse(a->outputs, a->output_room));
}

static weft_status run(struct application *a, weft_op_kernel kernel, void *user)
{
    weft_status status;

    WF_TRY(read_inputs(a, a->given));
    WF_TRY(choose(a));
    if (a->outputs != a->output_room) WF_TRY(check_room(a));
    if (a->outputs == 0) return WEFT_OK;
    status = wf_apply_agree(a->state, weft_op_choice_output(a->choice, 0), a->function);
    if (status != WEFT_OK) return refuse(a, status);
    if (a->moves) WF_TRY(move_inputs(a));
    WF_TRY(make_outputs(a));
    if (a->state->checks) WF_TRY(check_overlap(a));
    return compute(a, kernel, user);
}

static weft_status apply(struct application *a, const weft_op_call *call, weft_op_kernel kernel,
                         void *user, weft_tensor **outputs)
{
    weft_status status;

    if (a->stream != NULL) WF_TRY(weft_stream_check(a->context, a->stream, a->function));
    if (kernel == NULL) return wf_fail_null(a->function, "kernel");
    WF_TRY(read_call(a, call));
    status = run(a, kernel, user);
    end(a, status == WEFT_OK, outputs);
    return status;
}

/* What a call begins with.  Arrays for few tensors are not set. */
static inline void begin(struct application *a, const char *function, struct wf_apply_state *state,
                         weft_tensor *const *inputs, weft_stream *stream, size_t output_room,
                         bool keeps_outputs)
{
    a->function = function;
    a->context = state->context;
    a->state = state;
    a->stream = stream;
    a->options = &state->plain;
    a->specs = NULL;
    a->choice = NULL;
    a->is_known = false;
    a->output_room = output_room;
    a->given = inputs;
    a->tensors = NULL;
    a->moves = false;
    a->locals = NULL;
    a->room = NULL;
    a->keeps_outputs = keeps_outputs;
    a->attrs.memory = NULL;
    a->attrs.numbers = NULL;
    a->inputs = a->outputs = a->made = 0;
}

weft_status wf_op_apply_known(const struct wf_apply_call *call, size_t count, weft_tensor **outputs)
{
    struct application a;

    begin(&a, call->function, call->state, call->inputs, call->stream, count, outputs != NULL);
    a.options = call->options;
    a.is_known = true;
    return apply(&a, call->call, call->kernel, call->user, outputs);
}

weft_status weft_op_apply(weft_context *context, const weft_op_call *call,
                          weft_tensor *const *inputs, const weft_op_apply_options *options,
                          weft_op_kernel kernel, void *user, weft_stream *stream,
                          size_t output_count, weft_tensor **outputs)
{
    static const char function[] = "weft_op_apply";
    struct wf_apply_options read;
    struct wf_apply_state *state;
    struct application a;
    weft_status status = WEFT_OK;

    WF_TRY(wf_apply_enter(context, function, &state));
    begin(&a, function, state, inputs, stream, output_count, outputs != NULL);
    if (options != NULL) {
        status = wf_apply_options_read(function, context, options, false, &read);
        a.options = &read;
    }
    if (status == WEFT_OK) status = apply(&a, call, kernel, user, outputs);
    return wf_apply_leave(context, status);
}
