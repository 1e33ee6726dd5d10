/* reduce.c - gradients reduced to the layouts of their parameters, as one exchange. */
#include "fsdp.h"

/* ---- layouts ---- */

/* A plan adds up in the wider of two dtypes, and casts on the way. */
static bool can_widen(uint32_t from, uint32_t to)
{
    return from == to || wf_dtype_bytes(to) > wf_dtype_bytes(from);
}

/* True if other ranks may wait for this one in a reduction of GRADIENTS. */
static bool is_awaited(const weft_fsdp_group *group, weft_tensor *const *gradients)
{
    for (uint32_t i = 0; i < group->count; i++) {
        const struct wf_fsdp_param *param = &group->params[group->params[i].same_as];
        bool travels = gradients[i] != NULL || param->sum != NULL || param->partial != NULL ||
                       (group->absent_as_zero && !param->frozen);

        if (travels && weft_mesh_size(weft_spec_mesh(weft_tensor_spec(param->stored))) > 1)
            return true;
    }
    return false;
}

/* This rank has failed with STATUS before an exchange.  An invalid argument is one on all ranks;
 * after any other error the other ranks would wait. */
static weft_status give_up(const weft_fsdp_group *group, weft_tensor *const *gradients,
                           weft_status status, const char *function)
{
    if (status == WEFT_ERR_INVALID || !group->has_part || !is_awaited(group, gradients))
        return status;
    return weft_comm_fail(group->fsdp->reduce_comm, function, status);
}

/* ---- items: what travels ---- */

static bool stays_partial(const struct wf_fsdp_param *param, uint32_t flags)
{
    return param->replicate != 0 && ((flags & WEFT_FSDP_SHARD_ONLY) != 0 || param->partial != NULL);
}

/* Frees the memory of the items, in stream order. */
static void clear_items(weft_fsdp_group *group, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct wf_fsdp_item *item = &group->items[i];
        struct wf_fsdp_param *param = &group->params[item->index];

        if (item->owns_source) wf_fsdp_free(group, &item->source);
        if (item->target != NULL && item->target != param->gradient)
            wf_fsdp_free(group, &item->target);
        if (item->is_set) weft_tensor_release(&item->source);
        weft_tensor_release(&item->target);
        weft_spec_release(&item->from);
        weft_spec_release(&item->to);
        *item = (struct wf_fsdp_item){0};
    }
}

/* SPEC with the reductions of DIVISION. */
static weft_status set_reductions(const struct wf_fsdp_param *param, const weft_spec *spec,
                                  const struct wf_division *division, weft_spec **out)
{
    weft_spec *sharded = NULL;
    weft_status status;

    WF_TRY(wf_fsdp_partial(spec, param->shard, division->shard_op, -1, &sharded));
    status = wf_fsdp_partial(sharded, param->replicate, division->replicate_op, -1, out);
    weft_spec_release(&sharded);
    return status;
}

/* Set ROUTE's layouts.  A gradient that is scaled before the sum, or narrowed, is cast first. */
static weft_status fill_route(const struct wf_fsdp_param *param, const struct wf_division *division,
                              struct wf_fsdp_route *route)
{
    uint32_t given = weft_spec_dtype(route->given);
    const weft_spec *stored = weft_tensor_spec(param->stored);
    bool casts =
        given != route->dtype && (division->before != 1 || !can_widen(given, route->dtype));
    weft_spec *source = NULL;
    weft_status status;

    WF_TRY(weft_spec_with_dtype(route->given, (enum weft_dtype)(casts ? route->dtype : given),
                                &source));
    status = set_reductions(param, source, division, &route->from);
    weft_spec_release(&source);
    WF_TRY(status);
    if (!route->stays_partial)
        return weft_spec_with_dtype(stored, (enum weft_dtype)route->dtype, &route->to);
    return wf_fsdp_partial(stored, param->replicate, division->replicate_op, (int32_t)route->dtype,
                           &route->to);
}

/* The route of gradients of layout GIVEN is that of PARAM's last reduction, or is made. */
static weft_status find_route(struct wf_fsdp_param *param, const struct wf_division *division,
                              const weft_spec *given, uint32_t dtype, bool partial)
{
    struct wf_fsdp_route *route = &param->route;
    weft_status status;

    if (route->to != NULL && route->given == given && route->dtype == dtype &&
        route->stays_partial == partial)
        return WEFT_OK;
    wf_fsdp_clear_route(route);
    route->given = weft_spec_retain(given);
    route->dtype = dtype;
    route->stays_partial = partial;
    status = fill_route(param, division, route);
    if (status != WEFT_OK) wf_fsdp_clear_route(route);
    return status;
}

/* Prepare the reduction of GRADIENT, or of the sum, of parameter INDEX.  Sets the layouts and, of
 * the tensors, only what exists already. */
static weft_status set_item(weft_fsdp_group *group, uint32_t index, weft_tensor *gradient,
                            uint32_t flags, struct wf_fsdp_item *item)
{
    struct wf_fsdp_param *param = &group->params[index];
    uint32_t dtype = wf_fsdp_reduce_dtype(group, param, gradient);

    *item = (struct wf_fsdp_item){.index = index,
                                  .source = param->sum != NULL ? param->sum : gradient,
                                  .stays_partial = stays_partial(param, flags)};
    item->division =
        wf_fsdp_division(dtype, param->ranks, param->replicas, group->divide, group->sum_only);
    WF_TRY(find_route(param, &item->division,
                      item->source != NULL ? weft_tensor_spec(item->source) : param->gradient_spec,
                      dtype, item->stays_partial));
    item->from = weft_spec_retain(param->route.from);
    item->to = weft_spec_retain(param->route.to);
    if (param->partial != NULL && weft_tensor_spec(param->partial) != item->to)
        return wf_fail(WEFT_ERR_INVALID,
                       "parameter %u: the gradient has another dtype than the one that was reduced "
                       "with WEFT_FSDP_SHARD_ONLY before",
                       index);
    return WEFT_OK;
}

static weft_status set_items(weft_fsdp_group *group, weft_tensor *const *gradients, uint32_t flags,
                             uint32_t *count)
{
    for (uint32_t i = 0; i < group->count; i++) {
        const struct wf_fsdp_param *param = &group->params[i];

        if (!wf_fsdp_is_first(group, i)) continue;
        if (gradients[i] == NULL && param->sum == NULL && (!group->absent_as_zero || param->frozen))
            continue;
        WF_TRY(set_item(group, i, gradients[i], flags, &group->items[(*count)++]));
    }
    return WEFT_OK;
}

/* Give ITEM the elements that travel: the gradient, the sum, or a copy in another dtype.  All are
 * scaled in place. */
static weft_status set_source(weft_fsdp_group *group, struct wf_fsdp_item *item,
                              const char *function)
{
    weft_tensor *given = item->source;
    enum weft_dtype dtype = weft_spec_dtype(item->from);
    weft_status status = WEFT_OK;

    item->source = NULL;
    item->is_set = item->owns_source = true;
    if (given == NULL) return wf_fsdp_make_zeros(group, item->from, function, &item->source);
    item->owns_source = weft_spec_dtype(weft_tensor_spec(given)) != dtype;
    if (!item->owns_source)
        item->source = weft_tensor_retain(given);
    else
        status = wf_fsdp_make_cast(group, given, dtype, function, &item->source);
    WF_TRY(status);
    WF_TRY(weft_tensor_use(item->source, group->fsdp->reduce));
    return wf_fsdp_scale(item->source, item->division.before, group->fsdp->reduce);
}

/* The gradient of PARAM, made at its first use. */
static weft_status find_gradient(weft_fsdp_group *group, struct wf_fsdp_param *param,
                                 const char *function)
{
    weft_tensor *made = NULL;
    weft_spec *spec = NULL;
    weft_status status;

    if (param->gradient != NULL) return WEFT_OK;
    WF_TRY(weft_spec_with_dtype(weft_tensor_spec(param->stored),
                                (enum weft_dtype)wf_fsdp_gradient_dtype(group, param), &spec));
    status = wf_fsdp_make(group, spec, weft_tensor_name(param->stored), function, &made);
    weft_spec_release(&spec);
    WF_TRY(status);
    param->gradient = made;
    param->owns_gradient = true;
    return WEFT_OK;
}

/* Give ITEM the memory of its result: the gradient itself, or memory of its own. */
static weft_status set_target(weft_fsdp_group *group, struct wf_fsdp_item *item,
                              const char *function)
{
    struct wf_fsdp_param *param = &group->params[item->index];

    if (item->stays_partial) return wf_fsdp_make(group, item->to, NULL, function, &item->target);
    WF_TRY(find_gradient(group, param, function));
    if (param->has_gradient || weft_tensor_spec(param->gradient) != item->to)
        return wf_fsdp_make(group, item->to, NULL, function, &item->target);
    item->target = weft_tensor_retain(param->gradient);
    return WEFT_OK;
}

/* ---- results ---- */

/* Add the result of ITEM to the gradient, or set it. */
static weft_status finish(weft_fsdp_group *group, struct wf_fsdp_item *item, const char *function)
{
    struct wf_fsdp_param *param = &group->params[item->index];
    weft_stream *stream = group->fsdp->reduce;
    weft_tensor *same = NULL;
    weft_status status;

    WF_TRY(wf_fsdp_scale(item->target, item->division.after, stream));
    if (item->target == param->gradient) return WEFT_OK;
    if (!param->has_gradient) return wf_fsdp_cast(item->target, param->gradient, stream);
    if (weft_spec_dtype(item->to) == weft_spec_dtype(weft_tensor_spec(param->gradient)))
        return wf_fsdp_add(item->target, param->gradient, stream);
    WF_TRY(wf_fsdp_make(group, weft_tensor_spec(param->gradient), NULL, function, &same));
    status = wf_fsdp_cast(item->target, same, stream);
    if (status == WEFT_OK) status = wf_fsdp_add(same, param->gradient, stream);
    wf_fsdp_free(group, &same);
    return status;
}

/* The result of ITEM still has to be reduced along the replicate axes. */
static weft_status keep_partial(weft_fsdp_group *group, struct wf_fsdp_item *item)
{
    struct wf_fsdp_param *param = &group->params[item->index];

    if (param->partial != NULL)
        return wf_fsdp_add(item->target, param->partial, group->fsdp->reduce);
    param->partial = item->target;
    item->target = NULL;
    return WEFT_OK;
}

/* Reduce the first COUNT items as one exchange. */
static weft_status post_items(weft_fsdp_group *group, uint32_t count, const char *function)
{
    struct wf_exchange *exchange = NULL;
    weft_status status = WEFT_OK;

    if (count == 0) return WEFT_OK;
    for (uint32_t i = 0; i < count; i++) {
        group->from[i] = group->items[i].from;
        group->to[i] = group->items[i].to;
    }
    WF_TRY(wf_fsdp_exchange(group, &group->reductions, count, function, WEFT_OK, &exchange));
    for (uint32_t i = 0; i < count; i++) {
        status = set_source(group, &group->items[i], function);
        if (status == WEFT_OK) status = set_target(group, &group->items[i], function);
        if (status == WEFT_OK)
            status = wf_exchange_set(exchange, i, group->items[i].source, group->items[i].target);
        if (status != WEFT_OK) return wf_exchange_give_up(exchange, status, function);
    }
    return wf_exchange_run(exchange, group->fsdp->reduce, function);
}

static bool has_partials(const weft_fsdp_group *group)
{
    for (uint32_t i = 0; i < group->count; i++)
        if (group->params[i].partial != NULL) return true;
    return false;
}

/* Take the results of the first COUNT items. */
static weft_status take_results(weft_fsdp_group *group, uint32_t count, const char *function)
{
    for (uint32_t i = 0; i < count; i++) {
        struct wf_fsdp_item *item = &group->items[i];
        struct wf_fsdp_param *param = &group->params[item->index];

        WF_TRY(weft_tensor_use(item->target, group->fsdp->reduce));
        if (item->stays_partial)
            WF_TRY(keep_partial(group, item));
        else
            WF_TRY(finish(group, item, function));
        param->has_gradient = param->has_gradient || !item->stays_partial;
        wf_fsdp_free(group, &param->sum);
    }
    return WEFT_OK;
}

static weft_status reduce(weft_fsdp_group *group, weft_tensor *const *gradients, uint32_t flags,
                          weft_status status, const char *function)
{
    uint32_t count = 0;

    if (status == WEFT_OK) status = set_items(group, gradients, flags, &count);
    status = status == WEFT_OK ? post_items(group, count, function)
                               : give_up(group, gradients, status, function);
    if (status == WEFT_OK) {
        status = take_results(group, count, function);
        if (status != WEFT_OK && (flags & WEFT_FSDP_SHARD_ONLY) == 0 && has_partials(group))
            status = give_up(group, gradients, status, function);
    }
    clear_items(group, count);
    return status;
}

static weft_status set_partials(weft_fsdp_group *group, uint32_t *count)
{
    for (uint32_t i = 0; i < group->count; i++) {
        const struct wf_fsdp_param *param = &group->params[i];
        struct wf_fsdp_item *item = &group->items[*count];
        uint32_t dtype;

        if (param->partial == NULL) continue;
        dtype = weft_spec_dtype(weft_tensor_spec(param->partial));
        (*count)++;
        *item = (struct wf_fsdp_item){.index = i, .source = param->partial};
        item->division =
            wf_fsdp_division(dtype, param->ranks, param->replicas, group->divide, group->sum_only);
        item->division.before = 1; /* was done */
        item->from = weft_spec_retain(weft_tensor_spec(param->partial));
        WF_TRY(weft_spec_with_dtype(weft_tensor_spec(param->stored), (enum weft_dtype)dtype,
                                    &item->to));
    }
    return WEFT_OK;
}

/* Reduce what was reduced along the shard axes only along the replicate axes too. */
static weft_status reduce_partials(weft_fsdp_group *group, weft_tensor *const *gradients,
                                   const char *function)
{
    uint32_t count = 0;
    weft_status status = set_partials(group, &count);

    status = status == WEFT_OK ? post_items(group, count, function)
                               : give_up(group, gradients, status, function);
    if (status == WEFT_OK) status = take_results(group, count, function);
    clear_items(group, count);
    for (uint32_t i = 0; i < group->count && status == WEFT_OK; i++)
        wf_fsdp_free(group, &group->params[i].partial);
    return status;
}

weft_status wf_fsdp_reduce(weft_fsdp_group *group, weft_tensor *const *gradients, uint32_t flags,
                           weft_status status, const char *function)
{
    WF_TRY(reduce(group, gradients, flags, status, function));
    if ((flags & WEFT_FSDP_SHARD_ONLY) != 0) return WEFT_OK;
    return reduce_partials(group, gradients, function);
}
