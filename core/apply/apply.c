/* apply.c - one call of an operator: its layouts, the moves of its inputs, its outputs, and the
 * engine's kernel. */
#include "apply.h"

#include "exec/context/guard.h"
#include "exec/host/host.h"
#include "ops/bind/attrs.h"
#include "ops/ops.h"

#include <stdio.h>
#include <string.h>

enum { FEW = 12 }; /* tensors without an allocation */

typedef weft_status kernel_function(void *user, const weft_op_run *run);

struct application {
    const char *function; /* that the program called */
    weft_context *context;
    weft_stream *stream;
    weft_op_call call; /* its inputs are the specs of the tensors */
    const weft_spec **specs;
    weft_op_choice *choice;
    uint32_t inputs, outputs;
    uint32_t known;            /* number of outputs that the caller knows, or WF_ANY_OUTPUTS */
    weft_tensor *const *given; /* inputs, before their moves */
    /* inputs, then outputs; NULL: absent.  The call holds references to inputs that it has moved,
     * and to outputs if the caller gets them. */
    weft_tensor **tensors;
    bool moves; /* some input */
    weft_op_local *locals;
    struct wf_local_attrs attrs;
    void *room; /* of many tensors; NULL: they fit here */
    size_t room_bytes;
    bool keeps_outputs; /* the caller gets references to them */

    const weft_spec *few_specs[FEW];
    weft_tensor *few_tensors[FEW];
    weft_op_local few_locals[FEW];
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
    return wf_carrier_of(a->context)->give_up(a->context, status, a->function);
}

/* ---- arguments ---- */

static weft_status read_inputs(struct application *a, weft_tensor *const *inputs)
{
    char what[32];

    a->inputs = a->call.input_count;
    if (inputs == NULL && a->inputs > 0) return wf_fail_null(a->function, "inputs");
    a->specs = a->inputs <= FEW ? a->few_specs : wf_alloc(a->inputs * sizeof *a->specs);
    if (a->specs == NULL) return wf_fail_memory(a->inputs * sizeof *a->specs);
    for (uint32_t i = 0; i < a->inputs; i++) {
        a->specs[i] = NULL;
        if (inputs[i] == NULL) continue;
        if (!wf_tensor_is_usable(inputs[i])) {
            snprintf(what, sizeof what, "inputs[%u]", i);
            return wf_tensor_check(inputs[i], a->function, what);
        }
        if (inputs[i]->context != a->context)
            return refuse(a, wf_fail(WEFT_ERR_INVALID, "input %u belongs to another context", i));
        a->specs[i] = inputs[i]->spec;
    }
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
    struct wf_apply_state *state = wf_apply_state(a->context);
    bool moves = state->moves != WEFT_OP_MOVES_REFUSED, is_long = a->inputs >= WF_LONG_CALL;
    weft_op_options options = {.struct_size = sizeof options, .costs = a->context->costs};
    weft_status status;

    if (is_long) {
        WF_TRY(wf_attrs_check(a->function, &a->call));
        a->choice = wf_long_call_find(state, &a->call, moves);
    }
    if (a->choice != NULL) return WEFT_OK;
    status = wf_op_answer(a->function, moves, &a->call, &options, &a->choice);
    if (status != WEFT_OK) return wf_phases_suggest(&a->call, a->given, status);
    if (is_long) wf_long_call_keep(state, &a->call, moves, a->choice);
    return WEFT_OK;
}

/* Room for the tensors: that of the last such call, if a kernel does not use it just now. */
static weft_status make_room(struct application *a, uint32_t tensors)
{
    struct wf_apply_state *state = wf_apply_state(a->context);
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
    struct wf_apply_state *state = wf_apply_state(a->context);

    if (a->room == NULL) return;
    wf_free(state->room);
    state->room = a->room;
    state->room_bytes = a->room_bytes;
}

static weft_status choose(struct application *a)
{
    weft_op_choice_info info = {.struct_size = sizeof info};
    uint32_t tensors;

    WF_TRY(find_choice(a));
    WF_TRY(weft_op_choice_get(a->choice, &info));
    a->outputs = info.outputs;
    a->moves = info.moves > 0;
    tensors = a->inputs + a->outputs;
    a->locals = a->few_locals;
    if (tensors > FEW)
        WF_TRY(make_room(a, tensors));
    else
        a->tensors = a->few_tensors;
    for (uint32_t i = 0; i < a->inputs; i++)
        a->tensors[i] = a->given[i];
    memset(a->tensors + a->inputs, 0, a->outputs * sizeof *a->tensors);
    return WEFT_OK;
}

/* ---- moves ---- */

static void show_move(const struct application *a, uint32_t input, const weft_tensor *tensor)
{
    const weft_plan *plan = weft_op_choice_move(a->choice, input);
    char from[256] = "", to[256] = "";
    struct wf_text price = {0};

    if (weft_spec_print(tensor->spec, from, sizeof from, NULL) != WEFT_OK ||
        weft_spec_print(weft_op_choice_input(a->choice, input), to, sizeof to, NULL) != WEFT_OK)
        return;
    wf_text_time(&price, plan->cost_ns);
    wf_log(WF_LOG_NOTICE,
           "%s: operator %.100s moves input %u%s%.100s from %s to %s, which takes %s", a->function,
           a->call.name, input, tensor->name != NULL ? ", " : "",
           tensor->name != NULL ? tensor->name : "", from, to,
           wf_text_status(&price) == WEFT_OK ? price.data : "unknown time");
    wf_text_free(&price);
}

/* Make tensors for the inputs that are moved, and list them in FROM and TO. */
static weft_status make_targets(struct application *a, weft_tensor **from, weft_tensor **to,
                                uint32_t *count)
{
    bool shown = wf_apply_state(a->context)->moves == WEFT_OP_MOVES_SHOWN;

    for (uint32_t i = 0; i < a->inputs; i++) {
        weft_tensor *tensor = a->given[i];

        if (tensor == NULL || weft_op_choice_move(a->choice, i) == NULL) continue;
        if (shown) show_move(a, i, tensor);
        WF_TRY(wf_tensor_make(a->context, weft_op_choice_input(a->choice, i), tensor->name,
                              a->stream, a->function, &a->tensors[i]));
        from[*count] = tensor;
        to[(*count)++] = a->tensors[i];
    }
    return WEFT_OK;
}

static weft_status move_inputs(struct application *a)
{
    bool *implicit = &wf_exec_state(a->context)->moves.implicit;
    weft_tensor *few[2 * FEW], **from = few, **to;
    uint32_t count = 0;
    weft_status status;

    if (!a->moves) return WEFT_OK;
    if (a->inputs > FEW) from = wf_calloc(2 * (size_t)a->inputs, sizeof *from);
    if (from == NULL) return give_up(a, wf_fail_memory(2 * a->inputs * sizeof *from));
    to = from + a->inputs;
    status = make_targets(a, from, to, &count);
    if (status != WEFT_OK) {
        status = give_up(a, status);
    } else if (count > 0) {
        *implicit = true;
        status = wf_tensors_move_into(count, from, to, a->stream, NULL, a->function);
        *implicit = false;
        if (status != WEFT_OK) status = refuse(a, status);
    }
    if (from != few) wf_free(from);
    return status;
}

/* ---- outputs ---- */

/* The output is its input. */
static weft_status share_input(struct application *a, uint32_t input, weft_tensor **output)
{
    weft_tensor *tensor = a->tensors[input];

    if (tensor->is_read_only)
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
            continue;
        }
        if (!a->keeps_outputs)
            return refuse(a, wf_fail(WEFT_ERR_INVALID,
                                     "outputs is NULL, but output %u has memory of its own", i));
        status = wf_output_make(a->context, weft_op_choice_output(a->choice, i), a->stream,
                                a->function, output);
        if (status != WEFT_OK) return give_up(a, status);
    }
    return WEFT_OK;
}

static weft_status check_overlap(const struct application *a)
{
    struct wf_written written = {a->inputs, a->outputs, a->tensors, wf_choice_memories(a->choice)};
    weft_status status = wf_written_check(&written);

    return status == WEFT_OK ? WEFT_OK : refuse(a, status);
}

/* ---- the kernel ---- */

/* LOCAL is the number of a shard that this process holds: 0 or, if ranks are simulated, its rank.
 */
static bool has_outputs(const struct application *a, int32_t local)
{
    for (uint32_t i = a->inputs; i < a->inputs + a->outputs; i++)
        if (a->tensors[i]->locals[local].shard.elements > 0) return true;
    return false;
}

/* True if the rank has no element of the inputs, though they have elements elsewhere. */
static bool has_no_inputs(const struct application *a, int32_t local)
{
    bool elsewhere = false;

    for (uint32_t i = 0; i < a->inputs; i++) {
        const weft_tensor *tensor = a->tensors[i];

        if (tensor == NULL) continue;
        if (tensor->locals[local].shard.elements > 0) return false;
        elsewhere = elsewhere || weft_spec_elements(tensor->spec) > 0;
    }
    return elsewhere;
}

/* The reduction of SPEC's partials; WEFT_REDUCE_COUNT: it has none. */
static uint32_t reduction_of(const weft_spec *spec)
{
    for (int32_t i = 0; i < spec->layout.mesh->axes; i++)
        if (spec->layout.placements[i].kind == WEFT_PLACE_PARTIAL)
            return spec->layout.placements[i].reduction;
    return WEFT_REDUCE_COUNT;
}

static bool all_partial(const struct application *a)
{
    for (uint32_t i = a->inputs; i < a->inputs + a->outputs; i++)
        if (reduction_of(a->tensors[i]->spec) == WEFT_REDUCE_COUNT) return false;
    return true;
}

/* The rank contributes nothing. */
static weft_status fill_identities(const struct application *a, int32_t local)
{
    for (uint32_t i = a->inputs; i < a->inputs + a->outputs; i++) {
        weft_tensor *tensor = a->tensors[i];
        _Alignas(16) unsigned char element[16];

        wf_element_identity(tensor->spec->layout.dtype, reduction_of(tensor->spec), element);
        WF_TRY(wf_local_fill(tensor, &tensor->locals[local], element, a->stream));
    }
    return WEFT_OK;
}

/* The kernel uses the tensors on the stream.  Of a real rank's tensor without gaps, only the first
 * line of the cache is read. */
static void set_locals(struct application *a, int32_t local)
{
    bool simulated = a->context->is_simulated;
    uint32_t count = a->inputs + a->outputs;

    for (uint32_t i = 0; i < count; i++) {
        weft_tensor *tensor = a->tensors[i];
        const struct wf_local *one;

        if (tensor == NULL) {
            a->locals[i] = (weft_op_local){0};
            continue;
        }
        one = simulated ? &tensor->locals[local] : &tensor->own;
        wf_tensor_use(tensor, a->stream);
        a->locals[i] = (weft_op_local){tensor->spec, &one->shard, one->strides,
                                       simulated || !tensor->is_dense ? one->memory : tensor->held,
                                       .is_written = i >= a->inputs};
    }
    for (uint32_t i = 0; i < a->outputs; i++) {
        uint32_t input = weft_op_choice_memory(a->choice, i);
        if (input < a->inputs) a->locals[input].is_written = true;
    }
}

static weft_status call_kernel(struct application *a, int32_t local, kernel_function *kernel,
                               void *user)
{
    weft_op_run run = {.struct_size = sizeof run,
                       .name = a->call.name,
                       .context = a->context,
                       .stream = a->stream,
                       .rank = a->tensors[a->inputs]->locals[local].rank,
                       .input_count = a->inputs,
                       .output_count = a->outputs,
                       .attr_count = a->call.attr_count,
                       .inputs = a->locals,
                       .outputs = a->locals + a->inputs,
                       .count = wf_choice_count(a->choice),
                       .choice = a->choice};
    uint64_t failures = wf_failure_count();
    char what[48] = "the kernel";
    weft_status status;

    set_locals(a, local);
    wf_local_attrs_free(&a->attrs);
    WF_TRY(wf_local_attrs_set(&a->attrs, &a->call, a->choice, a->locals, run.rank));
    run.attrs = a->attrs.values;
    status = kernel(user, &run);
    if (status == WEFT_OK) return WEFT_OK;
    if (a->context->is_simulated) snprintf(what, sizeof what, "the kernel on rank %d", run.rank);
    return wf_fail_callback(status, failures, what);
}

static weft_status compute(struct application *a, kernel_function *kernel, void *user)
{
    int32_t count = a->tensors[a->inputs]->local_count;
    bool partial = all_partial(a);

    for (int32_t i = 0; i < count; i++) {
        weft_status status;

        if (!has_outputs(a, i)) continue;
        status = partial && has_no_inputs(a, i) ? fill_identities(a, i)
                                                : call_kernel(a, i, kernel, user);
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
        if (success && outputs != NULL && a->outputs > 0)
            memcpy(outputs, made, a->outputs * sizeof *outputs);
        for (uint32_t i = 0; !success && outputs != NULL && i < a->outputs; i++)
            weft_tensor_release(&made[i]);
    }
    if (a->specs != a->few_specs) wf_free(a->specs);
    end_room(a);
    wf_local_attrs_free(&a->attrs);
    weft_op_choice_release(&a->choice);
}

static weft_status run(struct application *a, kernel_function *kernel, void *user)
{
    weft_status status;

    WF_TRY(read_inputs(a, a->given));
    WF_TRY(choose(a));
    if (a->known != WF_ANY_OUTPUTS && a->outputs != a->known)
        return refuse(a, wf_fail(WEFT_ERR_INVALID, "its rule has %u output%s; expected %u",
                                 a->outputs, WF_PLURAL(a->outputs), a->known));
    if (a->outputs == 0) return WEFT_OK;
    status = wf_apply_agree(a->context, weft_op_choice_output(a->choice, 0), a->function);
    if (status != WEFT_OK) return refuse(a, status);
    WF_TRY(move_inputs(a));
    WF_TRY(make_outputs(a));
    if (a->context->config->check) WF_TRY(check_overlap(a));
    return compute(a, kernel, user);
}

static weft_status apply(struct application *a, const weft_op_call *call, kernel_function *kernel,
                         void *user, weft_tensor **outputs)
{
    weft_status status;

    WF_TRY(wf_stream_check(a->context, a->stream, a->function));
    if (kernel == NULL) return wf_fail_null(a->function, "kernel");
    WF_TRY(read_call(a, call));
    status = run(a, kernel, user);
    end(a, status == WEFT_OK, outputs);
    return status;
}

weft_status wf_op_apply_as(const char *function, weft_context *context, const weft_op_call *call,
                           weft_tensor *const *inputs,
                           weft_status (*kernel)(void *user, const weft_op_run *run), void *user,
                           weft_stream *stream, uint32_t known, weft_tensor **outputs)
{
    struct application a;

    WF_TRY(wf_context_check(context, function));
    a.function = function;
    a.context = context;
    a.stream = stream;
    a.specs = NULL;
    a.choice = NULL;
    a.known = known;
    a.given = inputs;
    a.tensors = NULL;
    a.moves = false;
    a.locals = NULL;
    a.room = NULL;
    a.keeps_outputs = outputs != NULL;
    a.attrs.memory = NULL;
    a.attrs.numbers = NULL;
    a.inputs = a.outputs = 0;
    WF_TRY(wf_apply_enter(context, function));
    return wf_apply_leave(context, apply(&a, call, kernel, user, outputs));
}

weft_status weft_op_apply(weft_context *context, const weft_op_call *call,
                          weft_tensor *const *inputs,
                          weft_status (*kernel)(void *user, const weft_op_run *run), void *user,
                          weft_stream *stream, weft_tensor **outputs)
{
    return wf_op_apply_as("weft_op_apply", context, call, inputs, kernel, user, stream,
                          WF_ANY_OUTPUTS, outputs);
}
