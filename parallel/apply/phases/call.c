/* call.c - weft_op_apply_phases: the operators that have phases, and one call of them. */
#include "phases.h"

#include "ops/rule/registry.h"

#include <string.h>

/* name, attributes, fewest and most inputs, x, the input with integers, outputs of weft_op_apply,
 * any dtype, phases */
static const struct wf_phased operators[] = {
    {"softmax", "dim ", 1, 1, 0, 0, 1, false, wf_phases_softmax},
    {"log_softmax", "dim ", 1, 1, 0, 0, 1, false, wf_phases_softmax},
    {"safe_softmax", "dim ", 1, 1, 0, 0, 1, false, wf_phases_softmax},
    {"softmax_bwd", "dim ", 2, 2, 1, 0, 1, false, wf_phases_softmax_bwd},
    {"log_softmax_bwd", "dim ", 2, 2, 1, 0, 1, false, wf_phases_softmax_bwd},
    {"logsumexp", "dims keepdim ", 1, 1, 0, 0, 1, false, wf_phases_logsumexp},
    {"logsumexp_bwd", "dims keepdim ", 3, 3, 1, 0, 0, false, wf_phases_rows_bwd},
    {"var", "dims keepdim correction unbiased ", 1, 1, 0, 0, 1, false, wf_phases_var},
    {"std", "dims keepdim correction unbiased ", 1, 1, 0, 0, 1, false, wf_phases_var},
    {"var_mean", "dims keepdim correction unbiased ", 1, 1, 0, 0, 2, false, wf_phases_var},
    {"std_mean", "dims keepdim correction unbiased ", 1, 1, 0, 0, 2, false, wf_phases_var},
    {"var_bwd", "dims keepdim correction unbiased ", 3, 3, 1, 0, 0, false, wf_phases_rows_bwd},
    {"layer_norm", "dims eps ", 1, 3, 0, 0, 3, false, wf_phases_layer_norm},
    {"layer_norm_bwd", "dims eps ", 4, 6, 1, 0, 3, false, wf_phases_layer_norm_bwd},
    {"rms_norm", "dims eps ", 1, 2, 0, 0, 2, false, wf_phases_rms_norm},
    {"rms_norm_bwd", "dims eps ", 3, 4, 1, 0, 2, false, wf_phases_rms_norm_bwd},
    {"cumsum", "dim ", 1, 1, 0, 0, 1, true, wf_phases_cumsum},
    {"argmax", "dims keepdim ", 1, 1, 0, 0, 1, true, wf_phases_best},
    {"argmin", "dims keepdim ", 1, 1, 0, 0, 1, true, wf_phases_best},
    {"max_dim", "dims keepdim ", 1, 1, 0, 0, 2, true, wf_phases_best},
    {"min_dim", "dims keepdim ", 1, 1, 0, 0, 2, true, wf_phases_best},
    {"topk", "dim k largest sorted ", 1, 1, 0, 0, 2, true, wf_phases_topk},
    {"cross_entropy", "reduction ignore_index ", 2, 3, 0, 1, 0, false, wf_phases_cross_entropy},
    {"cross_entropy_bwd", "reduction ignore_index ", 4, 6, 1, 2, 0, false,
     wf_phases_cross_entropy_bwd},
    {"embedding", "", 2, 2, 0, 0, 1, true, NULL},
    {"gather", "", 2, 2, 0, 0, 1, true, NULL},
    {"index_select", "", 2, 2, 0, 0, 1, true, NULL},
};

static const struct wf_phased *find_name(const char *name)
{
    for (size_t i = 0; i < WF_COUNT(operators); i++)
        if (strcmp(operators[i].name, name) == 0) return &operators[i];
    return NULL;
}

bool wf_phases_serve(const weft_op_call *call, weft_tensor *const *inputs)
{
    struct wf_phases p = {.call = *call, .op = find_name(call->name)};
    const weft_spec *x, *first;

    if (p.op == NULL || p.op->run == NULL || call->input_count < p.op->least ||
        call->input_count > p.op->most)
        return false;
    for (uint32_t i = 0; i < p.op->least; i++)
        if (inputs[i] == NULL) return false;
    x = weft_tensor_spec(inputs[p.op->main]);
    first = weft_tensor_spec(inputs[0]);
    if (p.op->outputs == 0) /* a loss needs all of the rows and of the classes */
        return wf_rows_are_split(x, UINT32_MAX);
    if (wf_phases_read_dims(&p, weft_spec_dims(x)) != WEFT_OK) return false;
    return wf_rows_are_split(x, p.reduced) ||
           (p.op->main == 1 && weft_spec_dims(first) == weft_spec_dims(x) &&
            wf_rows_are_split(first, p.reduced));
}

weft_status wf_phases_suggest(const weft_op_call *call, weft_tensor *const *inputs,
                              weft_status status)
{
    struct wf_text text = {0};

    if (status != WEFT_ERR_MISMATCH) return status;
    wf_text_add(&text, "%s; or call " WF_PHASES_FUNCTION ", which needs no such move",
                weft_last_error());
    if (wf_phases_serve(call, inputs) && wf_text_status(&text) == WEFT_OK)
        status = wf_fail(status, "%s", text.data);
    wf_text_free(&text);
    return status;
}

/* The name of the call is misspelt, of another program, or of an operator without phases. */
static weft_status refuse_name(const struct wf_phases *p)
{
    weft_status status = WEFT_OK;
    const char *ours;
    char room[128];
    uint32_t ticket;

    WF_TRY(wf_op_enter(&ticket));
    ours = wf_op_foreign_name(p->call.name, room, sizeof room);
    if (wf_op_find_form(ours) == NULL) status = wf_op_refuse_name(WF_PHASES_FUNCTION, p->call.name);
    wf_op_leave(ticket);
    WF_TRY(status);
    if (find_name(ours) != NULL)
        status =
            wf_fail(WEFT_ERR_UNSUPPORTED, "phases are found by weft's names only; write %s", ours);
    else
        status = wf_fail(WEFT_ERR_UNSUPPORTED, "it has no phases; use weft_op_apply");
    return wf_phases_refuse(p, status);
}

static weft_status find(struct wf_phases *p)
{
    p->op = find_name(p->call.name);
    if (p->op == NULL) return refuse_name(p);
    p->main = p->op->main;
    return WEFT_OK;
}

/* The operator as weft_op_apply knows it; its partial outputs are reduced. */
static weft_status apply_whole(struct wf_phases *p, weft_tensor *const *inputs,
                               weft_tensor **outputs)
{
    const struct wf_apply_call call = {WF_PHASES_FUNCTION, p->state,  p->stream, &p->call, inputs,
                                       &p->options,        p->kernel, p->user};
    weft_tensor *made[WF_PHASE_OUTPUTS];

    WF_TRY(wf_op_apply_known(&call, p->op->outputs, made));
    for (uint32_t i = 0; i < p->op->outputs; i++)
        wf_phases_hold(p, made[i]);
    for (uint32_t i = 0; i < p->op->outputs; i++)
        WF_TRY(wf_phases_complete(p, 1, &made[i]));
    memcpy(outputs, made, p->op->outputs * sizeof(weft_tensor *));
    return WEFT_OK;
}

/* If only the gradient of a softmax or a norm is split, the other input is cut to its layout. */
static void choose_main(struct wf_phases *p)
{
    const weft_spec *first = weft_tensor_spec(p->inputs[0]);
    bool like_x =
        p->op->main == 1 && p->op->outputs > 0 && weft_spec_dims(first) == weft_spec_dims(p->x);

    if (!like_x || wf_rows_are_split(p->x, p->reduced) || !wf_rows_are_split(first, p->reduced))
        return;
    p->main = 0;
    p->x = first;
}

/* The main input without partials. */
static weft_status complete_main(struct wf_phases *p)
{
    weft_spec *spec = NULL;
    weft_status status = wf_complete_spec(p->x, &spec);

    p->statistic = weft_spec_dtype(p->x) == WEFT_DTYPE_F64 ? WEFT_DTYPE_F64 : WEFT_DTYPE_F32;
    if (status != WEFT_OK) return wf_phases_give_up(p, status);
    WF_TRY(wf_phases_align(p, p->main, spec));
    p->x = weft_tensor_spec(p->inputs[p->main]);
    return WEFT_OK;
}

static weft_status run(struct wf_phases *p, weft_tensor *const *inputs, weft_tensor **outputs)
{
    const struct wf_phased *op = p->op;

    if (op->run == NULL) return apply_whole(p, inputs, outputs);
    WF_TRY(wf_phases_read_inputs(p, inputs));
    if (strncmp(op->name, "cross_entropy", strlen("cross_entropy")) != 0)
        WF_TRY(wf_phases_read_dims(p, weft_spec_dims(p->x)));
    choose_main(p);
    if (op->outputs > 0 && !wf_rows_are_split(p->x, p->reduced))
        return apply_whole(p, inputs, outputs);
    WF_TRY(complete_main(p));
    return op->run(p, outputs);
}

/* The outputs of a call of OP. */
static uint32_t output_count(const struct wf_phased *op)
{
    if (op->run == wf_phases_cross_entropy) return WF_PHASE_OUTPUTS;
    return op->outputs > 0 ? op->outputs : 1;
}

static weft_status apply(struct wf_phases *p, const weft_op_call *call, weft_tensor *const *inputs,
                         size_t room, weft_tensor **outputs)
{
    weft_tensor *made[WF_PHASE_OUTPUTS] = {NULL};
    weft_status status;

    WF_TRY(weft_stream_check(p->context, p->stream, WF_PHASES_FUNCTION));
    if (inputs == NULL) return wf_fail_null(WF_PHASES_FUNCTION, "inputs");
    if (p->kernel == NULL) return wf_fail_null(WF_PHASES_FUNCTION, "kernel");
    if (outputs == NULL) return wf_fail_null(WF_PHASES_FUNCTION, "outputs");
    WF_TRY(wf_phases_read(p, call));
    WF_TRY(find(p));
    if (output_count(p->op) > room)
        return wf_phases_refuse(p, wf_room_refuse(output_count(p->op), room));
    status = run(p, inputs, made);
    for (size_t i = 0; status == WEFT_OK && i < room; i++)
        outputs[i] = i < output_count(p->op) ? weft_tensor_retain(made[i]) : NULL;
    for (uint32_t i = 0; i < p->held_count; i++)
        weft_tensor_release(&p->held[i]);
    return status;
}

weft_status weft_op_apply_phases(weft_context *context, const weft_op_call *call,
                                 weft_tensor *const *inputs, const weft_op_apply_options *options,
                                 weft_op_kernel kernel, void *user, weft_stream *stream,
                                 size_t output_count, weft_tensor **outputs)
{
    struct wf_phases p = {.context = context, .stream = stream, .kernel = kernel, .user = user};

    WF_TRY(weft_object_check(context, "weft_context", WF_PHASES_FUNCTION, "context"));
    WF_TRY(wf_apply_options_read(WF_PHASES_FUNCTION, context, options, true, &p.options));
    WF_TRY(wf_apply_enter(context, WF_PHASES_FUNCTION, &p.state));
    return wf_apply_leave(context, apply(&p, call, inputs, output_count, outputs));
}
