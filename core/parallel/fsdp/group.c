/* group.c - the life of a group: its parameters are checked, and their layouts are derived. */
#include "fsdp.h"

#include "base/number.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char what[] = "weft_fsdp_group_create";

weft_status wf_fsdp_group_check(const weft_fsdp_group *group, const char *function)
{
    if (group == NULL) return wf_fail_null(function, "group");
    if (wf_is_usable(group->made, WF_KIND_FSDP_GROUP)) return WEFT_OK;
    if (group->made == wf_ended(WF_KIND_FSDP_GROUP))
        return wf_fail(WEFT_ERR_INVALID, "%s: the context of group was released", function);
    return wf_fail_unusable(function, "group", group->made, WF_KIND_FSDP_GROUP);
}

weft_status wf_fsdp_fail(const weft_fsdp_group *group, weft_status status, const char *function)
{
    char about[256];

    if (status == WEFT_OK) return WEFT_OK;
    if (group->name == NULL) return wf_fail_named(status, function);
    snprintf(about, sizeof about, "group \"%.200s\"", group->name);
    return wf_fail_about(status, function, about);
}

/* ---- parameters ---- */

static weft_status fail_param(const struct wf_fsdp_param *param, uint32_t index, weft_status status)
{
    if (status == WEFT_OK) return WEFT_OK;
    if (param->stored->name == NULL) return wf_fail_context(status, "parameter %u", index);
    return wf_fail_context(status, "parameter %u, \"%s\"", index, param->stored->name);
}

static weft_status check_stored(const weft_tensor *tensor)
{
    const struct wf_layout *layout = &tensor->spec->layout;

    if (!tensor->is_dense)
        return wf_fail(WEFT_ERR_INVALID, "the tensor has gaps between its elements");
    if (tensor->is_grouped)
        return wf_fail(WEFT_ERR_INVALID, "the tensor is in another group; list it twice in one "
                                         "group if two layers share it");
    for (int32_t a = 0; a < layout->mesh->axes; a++)
        if (layout->placements[a].kind == WEFT_PLACE_PARTIAL)
            return wf_fail(WEFT_ERR_INVALID,
                           "the tensor is partial on axis %d; weft_tensor_move reduces it", a);
    return WEFT_OK;
}

static int32_t ranks_along(const weft_mesh *mesh, uint32_t axes)
{
    int32_t ranks = 1;

    for (int32_t a = 0; a < mesh->axes; a++)
        if ((axes >> a & 1) != 0) ranks *= weft_mesh_axis_size(mesh, a);
    return ranks;
}

static weft_status set_axes(struct wf_fsdp_param *param, const char *shard, const char *replicate)
{
    const struct wf_layout *layout = &param->stored->spec->layout;

    WF_TRY(wf_fsdp_axes(layout->mesh, shard, &param->shard));
    WF_TRY(wf_fsdp_axes(layout->mesh, replicate, &param->replicate));
    if ((param->shard & param->replicate) != 0)
        return wf_fail(WEFT_ERR_INVALID,
                       "axis %d is a shard axis (\"%s\") and a replicate axis (\"%s\"); list it "
                       "in one of them",
                       __builtin_ctz(param->shard & param->replicate), shard, replicate);
    for (int32_t a = 0; a < layout->mesh->axes; a++)
        if ((param->replicate >> a & 1) != 0 && layout->placements[a].kind != WEFT_PLACE_REPLICATE)
            return wf_fail(WEFT_ERR_INVALID,
                           "the tensor is not replicated along axis %d, a replicate axis", a);
    param->ranks = ranks_along(layout->mesh, param->shard);
    param->replicas = ranks_along(layout->mesh, param->replicate);
    return WEFT_OK;
}

static const char cause[] = "it is sharded; weft_fsdp_unshard_begin gathers it";

static weft_status make_param(const weft_fsdp_group *group, struct wf_fsdp_param *param)
{
    const weft_placement replicated = {.kind = WEFT_PLACE_REPLICATE};
    const weft_tensor *stored = param->stored;
    bool is_float = wf_dtype_is_float(stored->spec->layout.dtype);
    weft_spec *gathered = NULL;
    weft_status status;

    param->frozen = param->frozen || !is_float;
    WF_TRY(wf_fsdp_replace(stored->spec, param->shard, replicated,
                           is_float ? group->gather_dtype : -1, &gathered));
    status =
        wf_tensor_make_vacant(stored->context, gathered, stored->name, cause, &param->gathered);
    if (status == WEFT_OK && !param->frozen)
        status = wf_fsdp_partial(gathered, param->shard | param->replicate, WEFT_REDUCE_SUM, -1,
                                 &param->gradient_spec);
    weft_spec_release(&gathered);
    return status;
}

/* PARAM is that of index SAME_AS, listed again. */
static weft_status share_param(weft_fsdp_group *group, struct wf_fsdp_param *param)
{
    struct wf_fsdp_param *first = &group->params[param->same_as];

    if (param->shard != first->shard || param->replicate != first->replicate ||
        param->asked_frozen != first->asked_frozen)
        return wf_fail(WEFT_ERR_INVALID,
                       "the tensor is parameter %u too, with other axes or another `frozen`",
                       param->same_as);
    first->is_shared = true;
    param->gathered = first->gathered;
    param->gradient_spec = first->gradient_spec;
    param->frozen = first->frozen;
    return WEFT_OK;
}

static weft_status add_param(weft_fsdp_group *group, uint32_t index, const weft_fsdp_param *given,
                             const weft_fsdp_group_options *options)
{
    struct wf_fsdp_param *param = &group->params[index];
    const char *shard = options->shard != NULL ? options->shard : "0";
    uint64_t room;

    while (group->params[param->same_as].stored != given->tensor)
        param->same_as++;
    param->frozen = param->asked_frozen = given->frozen;
    WF_TRY(check_stored(param->stored));
    WF_TRY(set_axes(param, given->shard != NULL ? given->shard : shard,
                    given->replicate != NULL ? given->replicate : options->replicate));
    if (param->same_as < index) return share_param(group, param);
    WF_TRY(make_param(group, param));
    room = wf_fsdp_room(param->gathered);
    if (room > INT64_MAX - group->gathered_room)
        return wf_fail(WEFT_ERR_NO_MEMORY, "the gathered parameters have 2^63 bytes or more");
    group->gathered_room += room;
    return WEFT_OK;
}

/* ---- creation ---- */

static weft_status read_dtype(const char *field, const char *text, int32_t *out)
{
    enum weft_dtype dtype;

    *out = -1;
    if (text == NULL) return WEFT_OK;
    if (weft_dtype_parse(text, &dtype) != WEFT_OK)
        return wf_fail_context(WEFT_ERR_INVALID, "%s", field);
    if (!wf_dtype_is_float((uint32_t)dtype))
        return wf_fail(WEFT_ERR_INVALID, "%s is %s; expected a dtype of floats", field, text);
    *out = (int32_t)dtype;
    return WEFT_OK;
}

static weft_status set_policy(weft_fsdp_group *group, const weft_fsdp_group_options *options)
{
    WF_TRY(read_dtype("gather_dtype", options->gather_dtype, &group->gather_dtype));
    WF_TRY(read_dtype("reduce_dtype", options->reduce_dtype, &group->reduce_dtype));
    WF_TRY(read_dtype("gradient_dtype", options->gradient_dtype, &group->gradient_dtype));
    if (!(options->divide >= 0 && isfinite(options->divide)))
        return wf_fail(WEFT_ERR_INVALID, "divide is %g; expected a positive number, or 0",
                       options->divide);
    group->divide = options->divide;
    group->sum_only = options->sum_only;
    group->absent_as_zero = options->absent_as_zero;
    return WEFT_OK;
}

static void free_list(weft_fsdp_group *group)
{
    static const char released[] = "its group was released";

    for (uint32_t i = 0; group->params != NULL && i < group->count; i++) {
        struct wf_fsdp_param *param = &group->params[i];

        if (wf_fsdp_is_first(group, i)) {
            wf_tensor_retire(&param->gathered, released);
            weft_spec_release(&param->gradient_spec);
        }
        wf_tensor_retire(&param->kept, released);
        weft_tensor_release(&param->gradient);
        weft_tensor_release(&param->sum);
        weft_tensor_release(&param->partial);
        wf_fsdp_clear_route(&param->route);
        weft_tensor_release(&param->stored);
    }
    wf_free(group->params);
    wf_free(group->from);
    wf_free(group->to);
    wf_free(group->items);
    wf_free(group->given);
    wf_free(group->prefetch[0].groups);
    wf_free(group->prefetch[1].groups);
}

static void free_group(weft_fsdp_group *group)
{
    wf_exchanges_free(&group->gathers);
    wf_exchanges_free(&group->reductions);
    weft_work_release(&group->gather_work);
    weft_work_release(&group->reduce_work);
    free_list(group);
    wf_free(group->name);
    group->made = wf_released(WF_KIND_FSDP_GROUP);
    wf_free(group);
}

static weft_status make_lists(weft_fsdp_group *group, uint32_t count)
{
    group->params = wf_calloc(count, sizeof *group->params);
    group->from = wf_calloc(count, sizeof *group->from);
    group->to = wf_calloc(count, sizeof *group->to);
    group->items = wf_calloc(count, sizeof *group->items);
    group->given = wf_calloc(count, sizeof *group->given);
    if (group->params == NULL || group->from == NULL || group->to == NULL || group->items == NULL ||
        group->given == NULL)
        return wf_fail_memory(count * sizeof *group->params);
    group->count = count;
    return WEFT_OK;
}

static const char *dtype_text(int32_t dtype)
{
    return dtype >= 0 ? weft_dtype_name((enum weft_dtype)dtype) : "of the tensor";
}

/* Print what must be equal on all ranks, besides the layouts of stored and gathered parameters. */
static void print_options(const weft_fsdp_group *group, char *out, size_t room)
{
    uint64_t digest = 0;

    for (uint32_t i = 0; i < group->count; i++) {
        const struct wf_fsdp_param *param = &group->params[i];

        digest = wf_hash_mix(digest, (uint64_t)param->shard << 32 | param->replicate);
        digest = wf_hash_mix(digest, (uint64_t)param->same_as << 1 | param->frozen);
    }
    wf_print(out, room,
             "divide %.17g, sum_only %d, absent_as_zero %d, reduce_dtype %s, gradient_dtype %s, "
             "axes and frozen parameters %016llx",
             group->divide, group->sum_only, group->absent_as_zero, dtype_text(group->reduce_dtype),
             dtype_text(group->gradient_dtype), (unsigned long long)digest);
}

weft_status wf_fsdp_exchange(weft_fsdp_group *group, struct wf_exchange **list, uint32_t count,
                             const char *function, weft_status status, struct wf_exchange **out)
{
    char options[200];
    const struct wf_exchange_query query = {
        .context = group->fsdp->context,
        .options = group->gathers == NULL ? options : NULL,
        .channel = list == &group->gathers ? group->fsdp->gather_comm : group->fsdp->reduce_comm,
        .name = group->name,
        .function = function,
        .count = count,
        .from = group->from,
        .to = group->to,
    };

    if (query.options != NULL) print_options(group, options, sizeof options);
    return wf_exchange_find(list, &query, status, out);
}

/* Set what is local of GROUP. */
static weft_status fill_group(weft_fsdp_group *group, const weft_fsdp_param *params,
                              const weft_fsdp_group_options *options)
{
    WF_TRY(set_policy(group, options));
    if (options->name != NULL) {
        group->name = wf_strdup(options->name);
        if (group->name == NULL) return wf_fail_memory(strlen(options->name) + 1);
    }
    for (uint32_t i = 0; i < group->count; i++)
        WF_TRY(fail_param(&group->params[i], i, add_param(group, i, &params[i], options)));
    return WEFT_OK;
}

/* All ranks of the meshes have made the same group, or none has.  STATUS is this rank's result. */
static weft_status bind_gather(weft_fsdp_group *group, weft_status status)
{
    struct wf_exchange *unused = NULL;
    uint32_t found = 0;

    for (uint32_t i = 0; i < group->count; i++) {
        const struct wf_fsdp_param *param = &group->params[i];

        if (status == WEFT_OK && !wf_fsdp_is_first(group, i)) continue;
        group->from[found] = param->stored->spec;
        group->to[found++] = status == WEFT_OK ? param->gathered->spec : param->stored->spec;
    }
    return wf_fsdp_exchange(group, &group->gathers, found, what, status, &unused);
}

static void end_group(struct wf_dependent *dependent, const char *why)
{
    weft_fsdp_group *group = (void *)((char *)dependent - offsetof(weft_fsdp_group, dependent));

    (void)why;
    group->made = wf_ended(WF_KIND_FSDP_GROUP);
}

static weft_status check_params(const weft_fsdp *fsdp, uint32_t count,
                                const weft_fsdp_param *params)
{
    if (count == 0) return wf_fail(WEFT_ERR_INVALID, "%s: count is 0; expected 1 or more", what);
    if (params == NULL) return wf_fail_null(what, "params");
    for (uint32_t i = 0; i < count; i++) {
        char name[64];

        snprintf(name, sizeof name, "params[%u].tensor", i);
        WF_TRY(wf_tensor_check(params[i].tensor, what, name));
        if (params[i].tensor->context != fsdp->context)
            return wf_fail(WEFT_ERR_INVALID, "%s: %s belongs to another context", what, name);
    }
    return WEFT_OK;
}

weft_status weft_fsdp_group_create(weft_fsdp *fsdp, uint32_t count, const weft_fsdp_param *params,
                                   const weft_fsdp_group_options *options, weft_fsdp_group **out)
{
    weft_fsdp_group_options wanted = {0};
    weft_fsdp_group *group;
    weft_status status;

    WF_TRY(wf_fsdp_check(fsdp, what));
    WF_TRY(wf_fail_named(
        wf_options_read("weft_fsdp_group_options", options, &wanted, sizeof wanted), what));
    if (out == NULL) return wf_fail_null(what, "out");
    WF_TRY(check_params(fsdp, count, params));
    group = wf_calloc(1, sizeof *group);
    if (group == NULL) return wf_fail_named(wf_fail_memory(sizeof *group), what);
    group->fsdp = fsdp;
    status = make_lists(group, count);
    if (status != WEFT_OK) {
        free_group(group);
        return wf_fail_named(status, what);
    }
    for (uint32_t i = 0; i < count; i++)
        group->params[i].stored = weft_tensor_retain(params[i].tensor);
    status = bind_gather(group, fill_group(group, params, &wanted));
    if (status != WEFT_OK) {
        status = wf_fsdp_fail(group, status, what);
        free_group(group);
        return status;
    }
    for (uint32_t i = 0; i < count; i++)
        group->params[i].stored->is_grouped = true;
    wf_fsdp_join(fsdp, group);
    group->made = wf_made_now(WF_KIND_FSDP_GROUP);
    group->dependent.end = end_group;
    wf_dependent_add(&group->dependent, fsdp->context->world);
    *out = group;
    return WEFT_OK;
}

void weft_fsdp_group_release(weft_fsdp_group **group)
{
    weft_fsdp_group *mine = group != NULL ? *group : NULL;
    weft_fsdp *fsdp;

    if (mine == NULL) return;
    if (mine->made != wf_ended(WF_KIND_FSDP_GROUP) &&
        !wf_is_usable(mine->made, WF_KIND_FSDP_GROUP)) {
        wf_warn_unusable("weft_fsdp_group_release", mine->made, WF_KIND_FSDP_GROUP);
        return;
    }
    *group = NULL;
    for (uint32_t i = 0; i < mine->count; i++)
        mine->params[i].stored->is_grouped = false;
    if (mine->made != wf_ended(WF_KIND_FSDP_GROUP)) {
        wf_dependent_remove(&mine->dependent);
        wf_fsdp_wait(mine);
    }
    fsdp = mine->fsdp;
    wf_fsdp_part(fsdp, mine);
    free_group(mine);
    wf_fsdp_end_if_unused(fsdp);
}
