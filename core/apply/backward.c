/* backward.c - the calls that compute the gradients of a call, one after another. */
#include "apply.h"

#include "exec/context/guard.h"
#include "weft/phases.h"

#include <stdio.h>
#include <string.h>

static const char function[] = "weft_op_backward_apply";

struct pass {
    weft_context *context;
    const weft_op_backward *backward;
    weft_tensor *const *forward; /* inputs, then outputs */
    weft_tensor *const *gradients;
    uint32_t inputs;
    weft_tensor **results;
    weft_stream *stream;
};

/* Refuse a tensor of other sizes or another dtype than SPEC, which the backward was made for. */
static weft_status refuse_unlike(const weft_tensor *tensor, const weft_spec *spec, const char *list,
                                 uint32_t index)
{
    char have[256], want[256];

    WF_TRY(weft_spec_print(tensor->spec, have, sizeof have, NULL));
    WF_TRY(weft_spec_print(spec, want, sizeof want, NULL));
    return wf_fail(WEFT_ERR_INVALID,
                   "%s: %s[%u] is %s, and the backward was made for %s; sizes and dtypes must be "
                   "the same",
                   function, list, index, have, want);
}

static weft_status check_tensor(const struct pass *p, const weft_op_operand *operand,
                                const weft_tensor *tensor, const char *list, uint32_t index)
{
    const weft_spec *spec = weft_op_backward_spec(p->backward, operand);
    const struct wf_layout *have, *want;
    char what[32];

    snprintf(what, sizeof what, "%s[%u]", list, index);
    WF_TRY(wf_tensor_check(tensor, function, what));
    if (tensor->context != p->context)
        return wf_fail(WEFT_ERR_INVALID, "%s: %s belongs to another context", function, what);
    if (spec == NULL) return WEFT_OK;
    have = &tensor->spec->layout;
    want = &spec->layout;
    if (have->dtype == want->dtype && have->dims == want->dims &&
        memcmp(have->shape, want->shape, (size_t)have->dims * sizeof have->shape[0]) == 0)
        return WEFT_OK;
    return refuse_unlike(tensor, spec, list, index);
}

static weft_status find_tensor(const struct pass *p, const weft_op_operand *operand,
                               weft_tensor **out)
{
    bool gradient = operand->source == WEFT_OP_FROM_GRADIENT;
    const char *list = gradient ? "gradients" : "forward";
    uint32_t index = operand->index;

    *out = NULL;
    if (operand->source == WEFT_OP_FROM_NOTHING) return WEFT_OK;
    if (operand->source == WEFT_OP_FROM_RESULT) {
        *out = p->results[index];
        return WEFT_OK;
    }
    if (operand->source == WEFT_OP_FROM_OUTPUT) index += p->inputs;
    *out = gradient ? p->gradients[index] : p->forward[index];
    if (*out != NULL) return check_tensor(p, operand, *out, list, index);
    return wf_fail(WEFT_ERR_INVALID, "%s: %s[%u] is NULL, and a call reads it", function, list,
                   index);
}

/* `transpose` needs no kernel. */
static weft_status transpose(const weft_op_call *call, weft_tensor *tensor, weft_tensor **out)
{
    int64_t a = call->attrs[0].list[0], b = call->attrs[0].list[1];
    int32_t dims = tensor->spec->layout.dims;

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
    return wf_apply_state(p->context)->moves == WEFT_OP_MOVES_REFUSED &&
           one->result_count <= WEFT_OP_PHASES_OUTPUTS && wf_phases_serve(one->call, inputs);
}

static weft_status run_call(struct pass *p, const weft_op_gradient_call *one, weft_tensor **room,
                            weft_status (*kernel)(void *user, const weft_op_run *run), void *user)
{
    for (uint32_t i = 0; i < one->call->input_count; i++)
        WF_TRY(find_tensor(p, &one->operands[i], &room[i]));
    if (is_transpose(one->call))
        return transpose(one->call, room[0], &p->results[one->first_result]);
    if (needs_phases(p, one, room))
        return weft_op_apply_phases(p->context, one->call, room, kernel, user, p->stream,
                                    p->results + one->first_result);
    return wf_op_apply_as(function, p->context, one->call, room, kernel, user, p->stream,
                          one->result_count, p->results + one->first_result);
}

static weft_status find_gradients(const struct pass *p, weft_tensor **found)
{
    for (uint32_t i = 0; i < p->inputs; i++) {
        const weft_op_operand *operand = weft_op_backward_gradient(p->backward, i);

        if (operand != NULL) WF_TRY(find_tensor(p, operand, &found[i]));
    }
    return WEFT_OK;
}

/* Run all calls of P. */
static weft_status run(struct pass *p, weft_status (*kernel)(void *user, const weft_op_run *run),
                       void *user, weft_tensor **input_gradients)
{
    weft_op_backward_info info = {.struct_size = sizeof info};
    weft_tensor **room, **found;
    weft_status status = WEFT_OK;
    uint32_t most = 0;
    size_t places;

    WF_TRY(weft_op_backward_get(p->backward, &info));
    p->inputs = info.inputs;
    for (uint32_t i = 0; i < info.calls; i++) {
        uint32_t count = weft_op_backward_call(p->backward, i)->call->input_count;
        if (count > most) most = count;
    }
    places = (size_t)info.results + most + info.inputs;
    p->results = wf_calloc(places, sizeof *p->results);
    if (p->results == NULL) return wf_fail_memory(places * sizeof *p->results);
    room = p->results + info.results;
    found = room + most;
    for (uint32_t i = 0; status == WEFT_OK && i < info.calls; i++)
        status = run_call(p, weft_op_backward_call(p->backward, i), room, kernel, user);
    if (status == WEFT_OK) status = find_gradients(p, found);
    for (uint32_t i = 0; status == WEFT_OK && i < info.inputs; i++)
        input_gradients[i] = found[i] != NULL ? weft_tensor_retain(found[i]) : NULL;
    for (uint32_t i = 0; i < info.results; i++)
        weft_tensor_release(&p->results[i]);
    wf_free(p->results);
    return status;
}

weft_status weft_op_backward_apply(weft_context *context, const weft_op_backward *backward,
                                   weft_tensor *const *forward, weft_tensor *const *gradients,
                                   weft_status (*kernel)(void *user, const weft_op_run *run),
                                   void *user, weft_stream *stream, weft_tensor **input_gradients)
{
    struct pass p = {context, backward, forward, gradients, 0, NULL, stream};

    WF_TRY(wf_context_check(context, function));
    if (backward == NULL) return wf_fail_null(function, "backward");
    if (forward == NULL) return wf_fail_null(function, "forward");
    if (gradients == NULL) return wf_fail_null(function, "gradients");
    if (kernel == NULL) return wf_fail_null(function, "kernel");
    if (input_gradients == NULL) return wf_fail_null(function, "input_gradients");
    WF_TRY(wf_apply_enter(context, function));
    return wf_apply_leave(context, run(&p, kernel, user, input_gradients));
}
