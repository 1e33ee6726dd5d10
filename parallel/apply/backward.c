/* backward.c - the calls that compute the gradients of a call, one after another. */
#include "apply.h"

#include "weft/phases.h"

#include <stdio.h>
#include <string.h>

static const char function[] = "weft_op_backward_apply";

struct pass {
    weft_context *context;
    struct wf_apply_state *state;
    const weft_op_backward *backward;
    weft_tensor *const *forward; /* inputs, then outputs */
    weft_tensor *const *gradients;
    size_t inputs;
    weft_tensor **results;
    weft_stream *stream;
    const weft_op_apply_options *options; /* of the caller */
    struct wf_apply_options read;
    weft_op_kernel kernel;
    void *user;
};

/* Refuse a tensor of other sizes or another dtype than SPEC, which the backward was made for. */
static weft_status refuse_unlike(const weft_tensor *tensor, const weft_spec *spec, const char *list,
                                 size_t index)
{
    char have[256], want[256];

    WF_TRY(weft_spec_print(weft_tensor_spec(tensor), have, sizeof have, NULL));
    WF_TRY(weft_spec_print(spec, want, sizeof want, NULL));
    return wf_fail(WEFT_ERR_INVALID,
                   "%s: %s[%zu] is %s, and the backward was made for %s; sizes and dtypes must be "
                   "the same",
                   function, list, index, have, want);
}

static weft_status check_tensor(const struct pass *p, const weft_op_operand *operand,
                                const weft_tensor *tensor, const char *list, size_t index)
{
    const weft_spec *want = weft_op_backward_spec(p->backward, operand);
    const weft_spec *have = weft_tensor_spec(tensor);
    char what[32];

    snprintf(what, sizeof what, "%s[%zu]", list, index);
    WF_TRY(weft_object_check(tensor, "weft_tensor", function, what));
    if (weft_tensor_context(tensor) != p->context)
        return wf_fail(WEFT_ERR_INVALID, "%s: %s belongs to another context", function, what);
    if (want == NULL || (weft_spec_dtype(have) == weft_spec_dtype(want) &&
                         weft_spec_dims(have) == weft_spec_dims(want) &&
                         memcmp(weft_spec_shape(have), weft_spec_shape(want),
                                (size_t)weft_spec_dims(want) * sizeof(int64_t)) == 0))
        return WEFT_OK;
    return refuse_unlike(tensor, want, list, index);
}

static weft_status find_tensor(const struct pass *p, const weft_op_operand *operand,
                               weft_tensor **out)
{
    bool gradient = operand->source == WEFT_OP_FROM_GRADIENT;
    const char *list = gradient ? "gradients" : "forward";
    size_t index = operand->index;

    *out = NULL;
    if (operand->source == WEFT_OP_FROM_NOTHING) return WEFT_OK;
    if (operand->source == WEFT_OP_FROM_RESULT) {
        *out = p->results[index];
        return WEFT_OK;
    }
    if (operand->source == WEFT_OP_FROM_OUTPUT) index += p->inputs;
    *out = gradient ? p->gradients[index] : p->forward[index];
    if (*out != NULL) return check_tensor(p, operand, *out, list, index);
    return wf_fail(WEFT_ERR_INVALID, "%s: %s[%zu] is NULL, and a call reads it", function, list,
                   index);
}

/* `transpose` needs no kernel. */
static weft_status transpose(const weft_op_call *call, weft_tensor *tensor, weft_tensor **out)
{
    int64_t a = call->attrs[0].list[0], b = call->attrs[0].list[1];
    int32_t dims = weft_spec_dims(weft_tensor_spec(tensor));

    return weft_tensor_transpose(tensor, (int32_t)(a < 0 ? a + dims : a),
                                 (int32_t)(b < 0 ? b + dims : b), out);
}

static bool is_transpose(const weft_op_call *call)
{
    return strcmp(call->name, "transpose") == 0 && call->input_count == 1 &&
           call->attr_count == 1 && call->attrs[0].kind == WEFT_ATTR_LIST &&
           call->attrs[0].count == 2;
}

/* Where moves are permitted, inputs are moved to layouts that need no phases. */
static bool needs_phases(const struct pass *p, const weft_op_gradient_call *one,
                         weft_tensor *const *inputs)
{
    return p->read.moves == WEFT_OP_MOVES_REFUSED && one->result_count <= WEFT_MAX_PHASE_OUTPUTS &&
           wf_phases_serve(one->call, inputs);
}

static weft_status run_call(struct pass *p, const weft_op_gradient_call *one, weft_tensor **room)
{
    const struct wf_apply_call call = {function, p->state, p->stream, one->call,
                                       room,     &p->read, p->kernel, p->user};

    for (size_t i = 0; i < one->call->input_count; i++)
        WF_TRY(find_tensor(p, &one->operands[i], &room[i]));
    if (is_transpose(one->call))
        return transpose(one->call, room[0], &p->results[one->first_result]);
    if (needs_phases(p, one, room))
        return weft_op_apply_phases(p->context, one->call, room, p->options, p->kernel, p->user,
                                    p->stream, one->result_count, p->results + one->first_result);
    return wf_op_apply_known(&call, one->result_count, p->results + one->first_result);
}

static weft_status find_gradients(const struct pass *p, weft_tensor **found)
{
    for (size_t i = 0; i < p->inputs; i++) {
        const weft_op_operand *operand = weft_op_backward_gradient(p->backward, i);

        if (operand != NULL) WF_TRY(find_tensor(p, operand, &found[i]));
    }
    return WEFT_OK;
}

/* Run all calls of P. */
static weft_status run(struct pass *p, weft_tensor **input_gradients)
{
    weft_op_backward_info info = {.struct_size = sizeof info};
    weft_tensor **room, **found;
    weft_status status = WEFT_OK;
    size_t most = 0, places;

    WF_TRY(weft_op_backward_get(p->backward, &info));
    p->inputs = info.inputs;
    for (size_t i = 0; i < info.calls; i++) {
        size_t count = weft_op_backward_call(p->backward, i)->call->input_count;
        if (count > most) most = count;
    }
    places = info.results + most + info.inputs;
    p->results = wf_calloc(places, sizeof *p->results);
    if (p->results == NULL) return wf_fail_memory(places * sizeof *p->results);
    room = p->results + info.results;
    found = room + most;
    for (size_t i = 0; status == WEFT_OK && i < info.calls; i++)
        status = run_call(p, weft_op_backward_call(p->backward, i), room);
    if (status == WEFT_OK) status = find_gradients(p, found);
    for (size_t i = 0; status == WEFT_OK && i < info.inputs; i++)
        input_gradients[i] = found[i] != NULL ? weft_tensor_retain(found[i]) : NULL;
    for (size_t i = 0; i < info.results; i++)
        weft_tensor_release(&p->results[i]);
    wf_free(p->results);
    return status;
}

weft_status weft_op_backward_apply(weft_context *context, const weft_op_backward *backward,
                                   weft_tensor *const *forward, weft_tensor *const *gradients,
                                   const weft_op_apply_options *options, weft_op_kernel kernel,
                                   void *user, weft_stream *stream, weft_tensor **input_gradients)
{
    struct pass p = {.context = context,
                     .backward = backward,
                     .forward = forward,
                     .gradients = gradients,
                     .stream = stream,
                     .options = options,
                     .kernel = kernel,
                     .user = user};

    WF_TRY(weft_object_check(context, "weft_context", function, "context"));
    if (backward == NULL) return wf_fail_null(function, "backward");
    if (forward == NULL) return wf_fail_null(function, "forward");
    if (gradients == NULL) return wf_fail_null(function, "gradients");
    if (kernel == NULL) return wf_fail_null(function, "kernel");
    if (input_gradients == NULL) return wf_fail_null(function, "input_gradients");
    WF_TRY(wf_apply_options_read(function, context, options, true, &p.read));
    WF_TRY(wf_apply_enter(context, function, &p.state));
    return wf_apply_leave(context, run(&p, input_gradients));
}
