/* loss.c - cross entropy with logits split over classes: three values of each target are reduced,
 * and the logits stay where they are. */
#include "phases.h"

#include "ops/bind/attrs.h"

#include <string.h>

enum { CLASSES = 1 }; /* the dimension of the logits */

enum reduction { NONE, SUM, MEAN };

static const char *const reduction_names[] = {[NONE] = "none", [SUM] = "sum", [MEAN] = "mean"};

/* Set p->reduced, and *OUT to the attribute `reduction`. */
static weft_status read_attrs(struct wf_phases *p, enum reduction *out)
{
    const weft_op_attr *attr = wf_attr_find(&p->call, "reduction", strlen("reduction"));

    if (weft_spec_dims(p->x) <= CLASSES)
        return wf_phases_refuse(p, wf_fail(WEFT_ERR_INVALID,
                                           "input %u has %d dimension%s; dimension 1 must be the "
                                           "classes",
                                           p->main, weft_spec_dims(p->x),
                                           WF_PLURAL(weft_spec_dims(p->x))));
    p->reduced = 1u << CLASSES;
    p->keepdim = false;
    for (uint32_t i = 0;
         attr != NULL && attr->kind == WEFT_ATTR_TEXT && i < WF_COUNT(reduction_names); i++)
        if (attr->text != NULL && strcmp(attr->text, reduction_names[i]) == 0) {
            *out = (enum reduction)i;
            return WEFT_OK;
        }
    if (attr != NULL && attr->kind == WEFT_ATTR_TEXT && attr->text != NULL)
        return wf_phases_refuse(p,
                                wf_fail(WEFT_ERR_INVALID,
                                        "attribute reduction is \"%.50s\"; expected none, sum or "
                                        "mean",
                                        attr->text));
    return wf_phases_refuse(
        p, wf_fail(WEFT_ERR_INVALID, "it needs the attribute reduction: none, sum or mean"));
}

/* The layout of one number of all targets: partial over the axes that split them, or complete. */
static weft_status scalar_spec(struct wf_phases *p, uint32_t reduction, weft_spec **out)
{
    weft_spec *rows = NULL;
    weft_status status =
        wf_rows_spec(p->x, p->reduced, false, WEFT_REDUCE_COUNT, p->statistic, &rows);

    if (status == WEFT_OK)
        status = wf_rows_spec(rows, (1u << weft_spec_dims(rows)) - 1, false, reduction,
                              p->statistic, out);
    weft_spec_release(&rows);
    return status == WEFT_OK ? WEFT_OK : wf_phases_give_up(p, status);
}

/* Sum the loss of each target, and count the targets that count or, with WEIGHTS of the targets,
 * sum these. */
static weft_status add_up(struct wf_phases *p, weft_tensor *loss, weft_tensor *weights,
                          weft_tensor **sum_count)
{
    weft_tensor *in[3] = {loss, p->inputs[1], weights};
    weft_spec *spec = NULL;

    WF_TRY(scalar_spec(p, WEFT_REDUCE_SUM, &spec));
    return wf_phase_statistics(p, "total", spec, weights != NULL ? 3 : 2, in, 2, sum_count);
}

/* COUNT statistics of each target, which travel as one tensor. */
static weft_status row_statistics(struct wf_phases *p, const char *phase, uint32_t inputs,
                                  weft_tensor *const *in, uint32_t count, weft_tensor **out)
{
    weft_spec *spec = NULL;
    weft_status status =
        wf_rows_spec(p->x, p->reduced, false, WEFT_REDUCE_SUM, p->statistic, &spec);

    if (status != WEFT_OK) return wf_phases_give_up(p, status);
    return wf_phase_statistics(p, phase, spec, inputs, in, count, out);
}

/* The loss of each target and the logarithm of the sum of exponentials, the first two OUTPUTS.
 * *WEIGHTS becomes the weight of each target; NULL without weights of classes. */
static weft_status each_loss(struct wf_phases *p, weft_tensor **outputs, weft_tensor **weights)
{
    bool weighted = p->inputs[2] != NULL;
    weft_tensor *in[4] = {p->inputs[0], NULL, p->inputs[1], p->inputs[2]};
    weft_tensor *rows[5] = {NULL}, *terms[3] = {NULL};

    WF_TRY(wf_phase_reduce(p, "max", WEFT_REDUCE_MAX, 1, in, &rows[0]));
    in[1] = rows[0];
    WF_TRY(row_statistics(p, "terms", weighted ? 4 : 3, in, weighted ? 3 : 2, terms));
    rows[1] = terms[0];
    rows[2] = terms[1];
    rows[3] = p->inputs[1];
    rows[4] = *weights = terms[2];
    return wf_phase_finish_rows(p, p->statistic, weighted ? 5 : 4, rows, 2, outputs);
}

weft_status wf_phases_cross_entropy(struct wf_phases *p, weft_tensor **outputs)
{
    weft_tensor *sum_count[2], *weights = NULL;
    enum reduction reduction = NONE;
    weft_spec *spec = NULL;

    WF_TRY(read_attrs(p, &reduction));
    WF_TRY(wf_phases_align_rows(p, 1, false));
    WF_TRY(wf_phases_align_columns(p, 2));
    WF_TRY(each_loss(p, outputs, &weights));
    outputs[2] = NULL;
    if (reduction == NONE) return WEFT_OK;
    WF_TRY(add_up(p, outputs[0], weights, sum_count));
    outputs[0] = sum_count[0];
    if (reduction == SUM) return WEFT_OK;
    outputs[2] = sum_count[1];
    WF_TRY(scalar_spec(p, WEFT_REDUCE_COUNT, &spec));
    return wf_phase(p, "mean", 2, sum_count, 1, &spec, outputs);
}

/* Bring the inputs g t e z to the layout of x. */
static weft_status align_bwd(struct wf_phases *p, enum reduction reduction)
{
    weft_spec *spec = NULL;
    weft_status status;

    WF_TRY(wf_phases_align_rows(p, 2, false));
    WF_TRY(wf_phases_align_rows(p, 3, false));
    WF_TRY(wf_phases_align_columns(p, 5));
    if (reduction == NONE) return wf_phases_align_rows(p, 0, false);
    WF_TRY(scalar_spec(p, WEFT_REDUCE_COUNT, &spec));
    status = wf_phases_align(p, 0, weft_spec_retain(spec));
    if (status == WEFT_OK) status = wf_phases_align(p, 4, weft_spec_retain(spec));
    weft_spec_release(&spec);
    return status;
}

weft_status wf_phases_cross_entropy_bwd(struct wf_phases *p, weft_tensor **outputs)
{
    weft_tensor *weights[2];
    enum reduction reduction = NONE;
    uint32_t count = p->call.input_count < 5 ? (uint32_t)p->call.input_count : 5;

    WF_TRY(read_attrs(p, &reduction));
    if ((reduction == MEAN) != (p->inputs[4] != NULL))
        return wf_phases_refuse(
            p, reduction == MEAN ? wf_fail(WEFT_ERR_INVALID, "reduction mean needs input 4, z")
                                 : wf_fail(WEFT_ERR_INVALID, "reduction %s must not have input 4",
                                           reduction_names[reduction]));
    WF_TRY(align_bwd(p, reduction));
    if (p->inputs[5] == NULL) return wf_phase_finish(p, count, p->inputs, outputs);
    weights[0] = p->inputs[5];
    weights[1] = p->inputs[2];
    WF_TRY(wf_phase_reduce(p, "weight", WEFT_REDUCE_SUM, 2, weights, &p->inputs[5]));
    return wf_phase_finish(p, 6, p->inputs, outputs);
}
