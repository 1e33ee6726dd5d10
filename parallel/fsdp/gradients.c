/* gradients.c - the calls with gradients. */
#include "fsdp.h"

#include "base/number.h"

#include <stdlib.h>

/* True if the two, which have one shape and one mesh, have one layout. */
static bool has_placements(const weft_tensor *tensor, const weft_tensor *other)
{
    const weft_spec *is = weft_tensor_spec(tensor), *of = weft_tensor_spec(other);
    weft_spec *same = NULL;
    bool found;

    if (is == of || weft_spec_dtype(is) == weft_spec_dtype(of)) return is == of;
    if (weft_spec_with_dtype(is, weft_spec_dtype(of), &same) != WEFT_OK) return false;
    found = same == of;
    weft_spec_release(&same);
    return found;
}

static weft_status check_layout(const struct wf_fsdp_param *param, const weft_tensor *gradient)
{
    const weft_spec *is = weft_tensor_spec(gradient), *of = weft_tensor_spec(param->stored);
    const int64_t *has = weft_spec_shape(is), *must = weft_spec_shape(of);
    const weft_placement *placements = weft_spec_placements(is);

    if (!wf_fsdp_is_dense(gradient)) return wf_fail(WEFT_ERR_INVALID, "the gradient has gaps");
    if (weft_spec_mesh(is) != weft_spec_mesh(of))
        return wf_fail(WEFT_ERR_INVALID, "the gradient has another mesh than the parameter");
    if (!wf_dtype_is_float(weft_spec_dtype(is)))
        return wf_fail(WEFT_ERR_INVALID, "the gradient is of %s; expected floats",
                       weft_dtype_name(weft_spec_dtype(is)));
    if (weft_spec_dims(is) != weft_spec_dims(of))
        return wf_fail(WEFT_ERR_INVALID, "the gradient has %d dimensions, the parameter %d",
                       weft_spec_dims(is), weft_spec_dims(of));
    for (int32_t d = 0; d < weft_spec_dims(is); d++)
        if (has[d] != must[d])
            return wf_fail(WEFT_ERR_INVALID,
                           "dimension %d of the gradient has size %lld, that of "
                           "the parameter %lld",
                           d, (long long)has[d], (long long)must[d]);
    for (int32_t a = 0; a < weft_mesh_axes(weft_spec_mesh(is)); a++)
        if (((param->shard | param->replicate) >> a & 1) != 0 &&
            (placements[a].kind != WEFT_PLACE_PARTIAL ||
             placements[a].reduction != WEFT_REDUCE_SUM))
            return wf_fail(WEFT_ERR_INVALID,
                           "the gradient is not P(sum) on %s, along which data differs; "
                           "weft_fsdp_gradient_create makes one that fits",
                           wf_axis_text(weft_spec_mesh(is), a).text);
    if (param->sum != NULL && !has_placements(gradient, param->sum))
        return wf_fail(WEFT_ERR_INVALID,
                       "the gradient has another layout than the sum of those before");
    return WEFT_OK;
}

/* The gradients of a parameter that is listed again are added up, so they have one layout. */
static weft_status check_shared(const weft_fsdp_group *group, uint32_t index,
                                weft_tensor *const *gradients)
{
    uint32_t same_as = group->params[index].same_as, first = same_as;

    while (group->params[first].same_as != same_as || gradients[first] == NULL)
        first++;
    if (has_placements(gradients[index], gradients[first])) return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID,
                   "the gradient has another layout than that of parameter %u, the same tensor",
                   first);
}

static weft_status check_gradient(const weft_fsdp_group *group, uint32_t index,
                                  weft_tensor *const *gradients, const char *function)
{
    const struct wf_fsdp_param *param = &group->params[group->params[index].same_as];
    const weft_tensor *gradient = gradients[index];

    WF_TRY(weft_object_check(gradient, "weft_tensor", function, "gradient"));
    if (weft_tensor_context(gradient) != group->fsdp->context)
        return wf_fail(WEFT_ERR_INVALID, "the gradient belongs to another context");
    if (param->frozen)
        return wf_fail(WEFT_ERR_INVALID, "the parameter is frozen; its gradient must be NULL");
    WF_TRY(check_layout(param, gradient));
    if (group->absent_as_zero && weft_tensor_spec(gradient) != param->gradient_spec)
        return wf_fail(
            WEFT_ERR_INVALID,
            "the gradient has another layout or dtype than weft_fsdp_gradient_spec, which "
            "`absent_as_zero` needs");
    return check_shared(group, index, gradients);
}

static int by_gradient(const void *a, const void *b)
{
    const struct wf_fsdp_given *x = a, *y = b;
    uintptr_t first = (uintptr_t)x->gradient, second = (uintptr_t)y->gradient;

    if (first != second) return first < second ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* A gradient is scaled in place, so it cannot be that of two parameters. */
static weft_status check_once(const weft_fsdp_group *group, weft_tensor *const *gradients)
{
    struct wf_fsdp_given *given = group->given;
    uint32_t count = 0;

    for (uint32_t i = 0; i < group->count; i++)
        if (gradients[i] != NULL) given[count++] = (struct wf_fsdp_given){gradients[i], i};
    qsort(given, count, sizeof *given, by_gradient);
    for (uint32_t i = 1; i < count; i++)
        if (given[i].gradient == given[i - 1].gradient &&
            group->params[given[i].index].same_as != group->params[given[i - 1].index].same_as)
            return wf_fail_context(wf_fail(WEFT_ERR_INVALID,
                                           "the gradient is that of parameter %u too",
                                           given[i - 1].index),
                                   "parameter %u", given[i].index);
    return WEFT_OK;
}

static weft_status check_gradients(const weft_fsdp_group *group, weft_tensor *const *gradients,
                                   uint32_t flags, const char *function)
{
    const uint32_t known = WEFT_FSDP_KEEP | WEFT_FSDP_LOCAL | WEFT_FSDP_SHARD_ONLY;

    if (gradients == NULL) return wf_fail_null(function, "gradients");
    if ((flags & ~known) != 0)
        return wf_fail(WEFT_ERR_INVALID, "flags are 0x%x; a flag is not known", flags);
    if (group->reducing)
        return wf_fail(WEFT_ERR_INVALID, "a reduction has begun; weft_fsdp_reduce_end is missing");
    for (uint32_t i = 0; i < group->count; i++)
        if (gradients[i] != NULL) {
            weft_status status = check_gradient(group, i, gradients, function);

            if (status != WEFT_OK) return wf_fail_context(status, "parameter %u", i);
        }
    return check_once(group, gradients);
}

/* True if a reduction takes the sum of PARAM.  That does not depend on which gradients this rank
 * lacks, if ranks may differ in it. */
static bool has_sum(const weft_fsdp_group *group, const struct wf_fsdp_param *param)
{
    return param->sum != NULL || (param->is_shared && group->absent_as_zero);
}

/* Add up what has to be added up on this rank: all gradients, or those of parameters that have a
 * sum. */
static weft_status sum_gradients(weft_fsdp_group *group, weft_tensor *const *gradients, bool all,
                                 const char *function)
{
    weft_fsdp *fsdp = group->fsdp;

    WF_TRY(wf_fsdp_follow(fsdp, fsdp->compute, fsdp->reduce, function));
    WF_TRY(wf_fsdp_sum_shared(group, gradients, function));
    for (uint32_t i = 0; i < group->count; i++)
        if (wf_fsdp_is_first(group, i) && (all || has_sum(group, &group->params[i])))
            WF_TRY(wf_fsdp_sum(group, &group->params[i], gradients[i], function));
    return WEFT_OK;
}

static weft_status reduce_all(weft_fsdp_group *group, weft_tensor *const *gradients, uint32_t flags,
                              const char *function)
{
    bool is_local = (flags & WEFT_FSDP_LOCAL) != 0;
    weft_fsdp *fsdp = group->fsdp;
    weft_status status = WEFT_OK;

    if ((flags & WEFT_FSDP_KEEP) == 0) status = wf_fsdp_drop(group, function);
    if (status == WEFT_OK) status = sum_gradients(group, gradients, is_local, function);
    if (!is_local) status = wf_fsdp_reduce(group, gradients, flags, status, function);
    if (status != WEFT_OK || fsdp->reduce == fsdp->compute) return status;
    weft_work_release(&group->reduce_work); /* of the reduction before */
    return weft_work_record(fsdp->context, fsdp->reduce, &group->reduce_work);
}

weft_status weft_fsdp_reduce_begin(weft_fsdp_group *group, weft_tensor *const *gradients,
                                   uint32_t flags)
{
    static const char function[] = "weft_fsdp_reduce_begin";

    WF_TRY(wf_fsdp_group_check(group, function));
    WF_TRY(wf_fsdp_fail(group, check_gradients(group, gradients, flags, function), function));
    WF_TRY(wf_fsdp_fail(group, reduce_all(group, gradients, flags, function), function));
    group->reducing = true;
    return WEFT_OK;
}

static void forget_gradients(weft_fsdp_group *group)
{
    for (uint32_t i = 0; i < group->count; i++) {
        group->params[i].has_gradient = false;
        wf_fsdp_free(group, &group->params[i].sum);
        wf_fsdp_free(group, &group->params[i].partial);
    }
    weft_work_release(&group->reduce_work);
}

weft_status weft_fsdp_reduce_end(weft_fsdp_group *group)
{
    static const char function[] = "weft_fsdp_reduce_end";
    weft_status status = WEFT_OK;

    WF_TRY(wf_fsdp_group_check(group, function));
    if (!group->reducing)
        return wf_fsdp_fail(
            group,
            wf_fail(WEFT_ERR_INVALID, "no reduction has begun; weft_fsdp_reduce_begin is missing"),
            function);
    if (group->reduce_work != NULL) {
        status = weft_stream_wait_work(group->fsdp->compute, group->reduce_work);
        if (status == WEFT_OK) status = wf_fsdp_work_error(group->reduce_work);
    }
    for (uint32_t i = 0; i < group->count && status == WEFT_OK; i++)
        if (group->params[i].gradient != NULL)
            status = weft_tensor_use(group->params[i].gradient, group->fsdp->compute);
    group->reducing = false;
    if (status != WEFT_OK) forget_gradients(group);
    return wf_fsdp_fail(group, status, function);
}

weft_tensor *weft_fsdp_gradient(const weft_fsdp_group *group, size_t index)
{
    const struct wf_fsdp_param *param;

    if (wf_fsdp_group_check(group, "weft_fsdp_gradient") != WEFT_OK) return NULL;
    if (index >= group->count || group->reducing) return NULL;
    param = &group->params[group->params[index].same_as];
    return param->has_gradient ? param->gradient : NULL;
}

weft_status weft_fsdp_gradients_clear(weft_fsdp_group *group)
{
    static const char function[] = "weft_fsdp_gradients_clear";
    weft_status status;

    WF_TRY(wf_fsdp_group_check(group, function));
    if (group->reducing)
        return wf_fsdp_fail(
            group,
            wf_fail(WEFT_ERR_INVALID, "a reduction has begun; weft_fsdp_reduce_end is missing"),
            function);
    status = wf_fsdp_work_error(group->reduce_work);
    forget_gradients(group);
    return wf_fsdp_fail(group, status, function);
}

const weft_spec *weft_fsdp_gradient_spec(const weft_fsdp_group *group, size_t index)
{
    if (wf_fsdp_group_check(group, "weft_fsdp_gradient_spec") != WEFT_OK) return NULL;
    return index < group->count ? group->params[index].gradient_spec : NULL;
}

weft_status weft_fsdp_gradient_create(weft_fsdp_group *group, size_t index, weft_tensor **out)
{
    static const char function[] = "weft_fsdp_gradient_create";
    weft_tensor_options options = {.struct_size = sizeof options};
    weft_tensor *made = NULL;
    weft_status status;

    WF_TRY(wf_fsdp_group_check(group, function));
    options.stream = group->fsdp->compute;
    if (out == NULL) return wf_fail_null(function, "out");
    if (index >= group->count || group->params[index].gradient_spec == NULL)
        return wf_fsdp_fail(group,
                            wf_fail(WEFT_ERR_INVALID, "parameter %zu %s", index,
                                    index < group->count ? "is frozen" : "does not exist"),
                            function);
    options.name = weft_tensor_name(group->params[index].stored);
    status = weft_tensor_create(group->fsdp->context, group->params[index].gradient_spec, &options,
                                &made);
    if (status == WEFT_OK) status = weft_tensor_fill(made, 0, group->fsdp->compute);
    if (status != WEFT_OK)
        weft_tensor_release(&made);
    else
        *out = made;
    return wf_fsdp_fail(group, status, function);
}
