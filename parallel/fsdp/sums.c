/* sums.c - gradients added up on this rank, and the memory of gradients.
 *
 * All work is posted to the stream that reduces.  Memory that a call allocates is freed in the
 * order of this stream as soon as the work is posted. */
#include "fsdp.h"

/* The dtype in which gradients of PARAM are added up.  GRADIENT may be NULL. */
uint32_t wf_fsdp_reduce_dtype(const weft_fsdp_group *group, const struct wf_fsdp_param *param,
                              const weft_tensor *gradient)
{
    if (group->reduce_dtype >= 0) return (uint32_t)group->reduce_dtype;
    if (param->sum != NULL) return weft_spec_dtype(weft_tensor_spec(param->sum));
    return weft_spec_dtype(gradient != NULL ? weft_tensor_spec(gradient) : param->gradient_spec);
}

/* ---- memory ---- */

weft_status wf_fsdp_make(weft_fsdp_group *group, const weft_spec *spec, const char *name,
                         const char *function, weft_tensor **out)
{
    const weft_tensor_options options = {
        .struct_size = sizeof options, .name = name, .stream = group->fsdp->reduce};

    WF_TRY(wf_fail_named(weft_tensor_create(group->fsdp->context, spec, &options, out), function));
    wf_fsdp_count(group, (int64_t)weft_tensor_bytes(*out));
    return WEFT_OK;
}

void wf_fsdp_free(weft_fsdp_group *group, weft_tensor **tensor)
{
    wf_fsdp_count(group, -(int64_t)weft_tensor_bytes(*tensor));
    weft_tensor_release(tensor);
}

/* ---- sums ---- */

/* GRADIENT in DTYPE, as a new tensor. */
weft_status wf_fsdp_make_cast(weft_fsdp_group *group, weft_tensor *gradient, uint32_t dtype,
                              const char *function, weft_tensor **out)
{
    weft_spec *spec = NULL;
    weft_status status;

    WF_TRY(weft_spec_with_dtype(weft_tensor_spec(gradient), (enum weft_dtype)dtype, &spec));
    status = wf_fsdp_make(group, spec, NULL, function, out);
    weft_spec_release(&spec);
    if (status == WEFT_OK) status = wf_fsdp_cast(gradient, *out, group->fsdp->reduce);
    if (status != WEFT_OK && *out != NULL) wf_fsdp_free(group, out);
    return status;
}

static weft_status add_to_sum(weft_fsdp_group *group, struct wf_fsdp_param *param,
                              weft_tensor *gradient, const char *function)
{
    uint32_t dtype = wf_fsdp_reduce_dtype(group, param, gradient);
    weft_tensor *same = NULL;
    weft_status status;

    if (param->sum == NULL) {
        WF_TRY(wf_fsdp_make_cast(group, gradient, dtype, function, &same));
        param->sum = same;
        return WEFT_OK;
    }
    if (weft_spec_dtype(weft_tensor_spec(gradient)) == dtype)
        return wf_fsdp_add(gradient, param->sum, group->fsdp->reduce);
    WF_TRY(wf_fsdp_make_cast(group, gradient, dtype, function, &same));
    status = wf_fsdp_add(same, param->sum, group->fsdp->reduce);
    wf_fsdp_free(group, &same);
    return status;
}

/* Zeros for a gradient that is absent on this rank. */
weft_status wf_fsdp_make_zeros(weft_fsdp_group *group, const weft_spec *spec, const char *function,
                               weft_tensor **out)
{
    WF_TRY(wf_fsdp_make(group, spec, NULL, function, out));
    return weft_tensor_fill(*out, 0, group->fsdp->reduce);
}

/* Add GRADIENT, or zeros if it is NULL and zeros are wanted, to the sum. */
weft_status wf_fsdp_sum(weft_fsdp_group *group, struct wf_fsdp_param *param, weft_tensor *gradient,
                        const char *function)
{
    weft_tensor *zeros = NULL;
    weft_status status = WEFT_OK;

    if (gradient != NULL) return add_to_sum(group, param, gradient, function);
    if (!group->absent_as_zero || param->frozen || param->sum != NULL) return WEFT_OK;
    status = wf_fsdp_make_zeros(group, param->gradient_spec, function, &zeros);
    if (status == WEFT_OK) status = add_to_sum(group, param, zeros, function);
    if (zeros != NULL) wf_fsdp_free(group, &zeros);
    return status;
}

/* The gradients of a parameter that is listed again are added to those of the first one. */
weft_status wf_fsdp_sum_shared(weft_fsdp_group *group, weft_tensor *const *gradients,
                               const char *function)
{
    for (uint32_t i = 0; i < group->count; i++)
        if (!wf_fsdp_is_first(group, i) && gradients[i] != NULL)
            WF_TRY(add_to_sum(group, &group->params[group->params[i].same_as], gradients[i],
                              function));
    return WEFT_OK;
}
