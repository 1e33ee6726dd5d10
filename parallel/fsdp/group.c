/* group.c - the life of a group: its parameters are checked, and their layouts are derived. */
#include "fsdp.h"

#include "base/number.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char what[] = "weft_fsdp_group_create", type[] = "weft_fsdp_group";

weft_status wf_fsdp_group_check(const weft_fsdp_group *group, const char *function)
{
    WF_TRY(weft_object_check(group, type, function, "group"));
    if (!group->has_ended) return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID, "%s on group: %s", function, group->cause);
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

/* The text that was given last: of the parameter, of the group, or of FSDP. */
static const char *axes_of(const char *param, const char *group, const char *fsdp)
{
    if (param != NULL) return param;
    return group != NULL ? group : fsdp;
}

static weft_status fail_param(const struct wf_fsdp_param *param, uint32_t index, weft_status status)
{
    const char *name = weft_tensor_name(param->stored);

    if (status == WEFT_OK) return WEFT_OK;
    if (name[0] == '\0') return wf_fail_context(status, "parameter %u", index);
    return wf_fail_context(status, "parameter %u, \"%s\"", index, name);
}

static weft_status check_stored(const weft_tensor *tensor)
{
    const weft_spec *spec = weft_tensor_spec(tensor);

    if (!wf_fsdp_is_dense(tensor))
        return wf_fail(WEFT_ERR_INVALID, "the tensor has gaps between its elements");
    if (wf_fsdp_has(weft_tensor_context(tensor), tensor))
        return wf_fail(WEFT_ERR_INVALID, "the tensor is in another group; list it twice in one "
                                         "group if two layers share it");
    for (int32_t a = 0; a < weft_mesh_axes(weft_spec_mesh(spec)); a++)
        if (weft_spec_placements(spec)[a].kind == WEFT_PLACE_PARTIAL)
            return wf_fail(WEFT_ERR_INVALID,
                           "the tensor is partial on %s; weft_tensor_move reduces it",
                           wf_axis_text(weft_spec_mesh(spec), a).text);
    return WEFT_OK;
}

static int32_t ranks_along(const weft_mesh *mesh, uint32_t axes)
{
    int32_t ranks = 1;

    for (int32_t a = 0; a < weft_mesh_axes(mesh); a++)
        if ((axes >> a & 1) != 0) ranks *= weft_mesh_axis_size(mesh, a);
    return ranks;
}

static weft_status set_axes(struct wf_fsdp_param *param, const char *shard, const char *replicate)
{
    const weft_spec *spec = weft_tensor_spec(param->stored);
    const weft_mesh *mesh = weft_spec_mesh(spec);

    WF_TRY(wf_fsdp_axes(mesh, shard, &param->shard));
    WF_TRY(wf_fsdp_axes(mesh, replicate, &param->replicate));
    WF_TRY(wf_fsdp_apart(mesh, param->shard, param->replicate, shard, replicate));
    for (int32_t a = 0; a < weft_mesh_axes(mesh); a++)
        if ((param->replicate >> a & 1) != 0 &&
            weft_spec_placements(spec)[a].kind != WEFT_PLACE_REPLICATE)
            return wf_fail(WEFT_ERR_INVALID,
                           "the tensor is not replicated along %s, a replicate axis",
                           wf_axis_text(mesh, a).text);
    param->ranks = ranks_along(mesh, param->shard);
    param->replicas = ranks_along(mesh, param->replicate);
    return WEFT_OK;
}

static const char cause[] = "it is sharded; weft_fsdp_unshard_begin gathers it";

static weft_status make_param(const weft_fsdp_group *group, struct wf_fsdp_param *param,
                              const weft_fsdp_param *given)
{
    const weft_placement replicated = {.kind = WEFT_PLACE_REPLICATE};
    const weft_tensor *stored = param->stored;
    const weft_spec *spec = weft_tensor_spec(stored);
    bool is_float = wf_dtype_is_float(weft_spec_dtype(spec));
    weft_spec *gathered = NULL;
    weft_status status;

    param->frozen = param->frozen || !is_float;
    WF_TRY(wf_fsdp_replace(spec, param->shard, replicated, is_float ? group->gather_dtype : -1,
                           &gathered));
    status = given->gathered != NULL
                 ? wf_fsdp_use_memory(given->gathered, gathered, "gathered", &param->gathered)
                 : weft_tensor_create_vacant(weft_tensor_context(stored), gathered,
                                             weft_tensor_name(stored), cause, &param->gathered);
    param->has_memory = given->gathered != NULL;
    if (status == WEFT_OK) status = wf_fsdp_use_gradient(group, param, given->gradient);
    if (status == WEFT_OK && !param->frozen)
        status = wf_fsdp_partial(gathered, param->shard | param->replicate, WEFT_REDUCE_SUM, -1,
                                 &param->gradient_spec);
    weft_spec_release(&gathered);
    return status;
}

/* PARAM is that of index SAME_AS, listed again. */
static weft_status share_param(weft_fsdp_group *group, struct wf_fsdp_param *param,
                               const weft_fsdp_param *given)
{
    struct wf_fsdp_param *first = &group->params[param->same_as];

    if (param->shard != first->shard || param->replicate != first->replicate ||
        param->asked_frozen != first->asked_frozen ||
        given->gathered != (first->has_memory ? first->gathered : NULL) ||
        given->gradient != first->gradient)
        return wf_fail(
            WEFT_ERR_INVALID,
            "the tensor is parameter %u too, with other axes, another `frozen` or other memory",
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
    const weft_fsdp *fsdp = group->fsdp;

    while (group->params[param->same_as].stored != given->tensor)
        param->same_as++;
    param->frozen = param->asked_frozen = given->frozen;
    WF_TRY(check_stored(param->stored));
    WF_TRY(set_axes(param, axes_of(given->shard, options->shard, fsdp->shard),
                    axes_of(given->replicate, options->replicate, fsdp->replicate)));
    if (param->same_as < index) return share_param(group, param, given);
    WF_TRY(make_param(group, param, given));
    param->gathered_room = param->has_memory ? 0 : wf_fsdp_room(param->gathered);
    if (param->gathered_room > INT64_MAX - group->gathered_room)
        return wf_fail(WEFT_ERR_NO_MEMORY, "the gathered parameters have 2^63 bytes or more");
    group->gathered_room += param->gathered_room;
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
    WF_TRY(read_dtype("weft_fsdp_group_options.gather_dtype", options->gather_dtype,
                      &group->gather_dtype));
    WF_TRY(read_dtype("weft_fsdp_group_options.reduce_dtype", options->reduce_dtype,
                      &group->reduce_dtype));
    WF_TRY(read_dtype("weft_fsdp_group_options.gradient_dtype", options->gradient_dtype,
                      &group->gradient_dtype));
    if (!(options->divide >= 0 && isfinite(options->divide)))
        return wf_fail(WEFT_ERR_INVALID,
                       "weft_fsdp_group_options.divide is %g; expected a positive number, or 0",
                       options->divide);
    group->divide = options->divide;
    group->sum_only = options->sum_only;
    group->absent_as_zero = options->absent_as_zero;
    return WEFT_OK;
}

static void free_list(weft_fsdp_group *group)
{
    for (uint32_t i = 0; group->params != NULL && i < group->count; i++) {
        struct wf_fsdp_param *param = &group->params[i];

        if (wf_fsdp_is_first(group, i)) {
            if (!param->has_memory) weft_tensor_vacate(param->gathered, "its group was released");
            weft_tensor_release(&param->gathered);
            weft_spec_release(&param->gradient_spec);
        }
        wf_fsdp_drop_kept(param, "its group was released");
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
    weft_dependent_release(&group->dependent);
    weft_mesh_release(&group->mesh);
    wf_free(group->name);
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

/* Add what must be equal on all ranks, besides the layouts of stored and gathered parameters. */
static void add_fields(const weft_fsdp_group *group, struct wf_text *fields)
{
    uint64_t digest = 0;

    for (uint32_t i = 0; i < group->count; i++) {
        const struct wf_fsdp_param *param = &group->params[i];

        digest = wf_hash_mix(digest, (uint64_t)param->shard << 32 | param->replicate);
        digest = wf_hash_mix(digest, (uint64_t)param->same_as << 1 | param->frozen);
    }
    wf_field_add(fields, "divide", "%.17g", group->divide);
    wf_field_add(fields, "sum_only", "%s", group->sum_only ? "true" : "false");
    wf_field_add(fields, "absent_as_zero", "%s", group->absent_as_zero ? "true" : "false");
    wf_field_add(fields, "reduce_dtype", "%s", dtype_text(group->reduce_dtype));
    wf_field_add(fields, "gradient_dtype", "%s", dtype_text(group->gradient_dtype));
    wf_field_add(fields, "axes or frozen parameters", "digest %016llx", (unsigned long long)digest);
}

weft_status wf_fsdp_exchange(weft_fsdp_group *group, struct wf_exchange **list, uint32_t count,
                             const char *function, weft_status status, struct wf_exchange **out)
{
    struct wf_text options = {0};
    const weft_fsdp *fsdp = group->fsdp;
    const struct wf_exchange_query query = {
        .context = fsdp->context,
        .options = group->gathers == NULL ? &options : NULL,
        .channel = !group->has_part          ? NULL
                   : list == &group->gathers ? fsdp->gather_comm
                                             : fsdp->reduce_comm,
        .mesh = group->mesh,
        .name = group->name,
        .function = function,
        .count = count,
        .from = group->from,
        .to = group->to,
    };

    if (query.options != NULL && query.channel != NULL) add_fields(group, &options);
    status = wf_exchange_find(list, &query, status, out);
    wf_text_free(&options);
    return status;
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
    return wf_fsdp_check_apart(group);
}

/* All ranks of the meshes have made the same group, or none has.  STATUS is this rank's result. */
static weft_status bind_gather(weft_fsdp_group *group, weft_status status)
{
    struct wf_exchange *unused = NULL;
    uint32_t found = 0;

    for (uint32_t i = 0; i < group->count; i++) {
        const struct wf_fsdp_param *param = &group->params[i];

        if (status == WEFT_OK && !wf_fsdp_is_first(group, i)) continue;
        group->from[found] = weft_tensor_spec(param->stored);
        group->to[found++] = weft_tensor_spec(status == WEFT_OK ? param->gathered : param->stored);
    }
    return wf_fsdp_exchange(group, &group->gathers, found, what, status, &unused);
}

static void end_group(void *user, const char *why)
{
    weft_fsdp_group *group = user;

    snprintf(group->cause, sizeof group->cause, "%s", why);
    group->has_ended = true;
}

static const weft_dependent_calls calls = {.struct_size = sizeof calls, .end = end_group};

/* TENSOR is parameter INDEX's FIELD. */
static weft_status check_tensor(const weft_fsdp *fsdp, const weft_tensor *tensor, uint32_t index,
                                const char *field)
{
    char name[64];

    snprintf(name, sizeof name, "params[%u].%s", index, field);
    WF_TRY(weft_object_check(tensor, "weft_tensor", what, name));
    if (weft_tensor_context(tensor) == fsdp->context) return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID, "%s: %s belongs to another context", what, name);
}

static weft_status check_params(const weft_fsdp *fsdp, uint32_t count,
                                const weft_fsdp_param *params)
{
    for (uint32_t i = 0; i < count; i++) {
        WF_TRY(check_tensor(fsdp, params[i].tensor, i, "tensor"));
        if (params[i].gathered != NULL)
            WF_TRY(check_tensor(fsdp, params[i].gathered, i, "gathered"));
        if (params[i].gradient != NULL)
            WF_TRY(check_tensor(fsdp, params[i].gradient, i, "gradient"));
    }
    return WEFT_OK;
}

/* The ranks of all meshes of the parameters, and whether this one is among them. */
static weft_status find_ranks(weft_fsdp_group *group)
{
    weft_context *context = group->fsdp->context;
    int32_t size = weft_size(context), count = 0;
    int32_t *ranks = wf_calloc((size_t)size, sizeof *ranks);
    const weft_mesh_options options = {.struct_size = sizeof options, .ranks = ranks};
    weft_status status;

    if (ranks == NULL) return wf_fail_memory((size_t)size * sizeof *ranks);
    for (uint32_t i = 0; i < group->count; i++) {
        const weft_mesh *mesh = weft_spec_mesh(weft_tensor_spec(group->params[i].stored));

        for (int32_t at = 0; at < weft_mesh_size(mesh); at++)
            ranks[weft_mesh_rank_at(mesh, at)] = 1; /* it is among them */
    }
    group->has_part = !weft_is_simulated(context) && ranks[weft_rank(context)] != 0;
    for (int32_t rank = 0; rank < size; rank++)
        if (ranks[rank] != 0) ranks[count++] = rank; /* COUNT is at most RANK */
    status = weft_mesh_create(1, &count, &options, &group->mesh);
    wf_free(ranks);
    return status;
}

/* GROUP is complete. */
static weft_status join(weft_fsdp_group *group)
{
    WF_TRY(
        weft_dependent_create(weft_world(group->fsdp->context), &calls, group, &group->dependent));
    weft_object_begin(&group->object, type);
    wf_fsdp_join(group->fsdp, group);
    return WEFT_OK;
}

static weft_status create(weft_fsdp *fsdp, uint32_t count, const weft_fsdp_param *params,
                          const weft_fsdp_group_options *options, weft_fsdp_group **out)
{
    weft_fsdp_group *group;
    weft_status status;

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
    status = find_ranks(group);
    if (status != WEFT_OK && fsdp->gather_comm != NULL)
        status = weft_comm_fail(fsdp->gather_comm, what, status);
    if (status == WEFT_OK) status = bind_gather(group, fill_group(group, params, options));
    if (status == WEFT_OK) status = join(group);
    if (status != WEFT_OK) {
        status = wf_fsdp_fail(group, status, what);
        free_group(group);
        return status;
    }
    *out = group;
    return WEFT_OK;
}

weft_status weft_fsdp_group_create(weft_fsdp *fsdp, size_t count, const weft_fsdp_param *params,
                                   size_t param_size, const weft_fsdp_group_options *options,
                                   weft_fsdp_group **out)
{
    weft_fsdp_group_options wanted = {0};
    void *copy = NULL;
    weft_status status;

    WF_TRY(wf_fsdp_check(fsdp, what));
    WF_TRY(wf_fail_named(
        wf_options_read("weft_fsdp_group_options", options, &wanted, sizeof wanted), what));
    if (out == NULL) return wf_fail_null(what, "out");
    if (count == 0 || count > INT32_MAX)
        return wf_fail(WEFT_ERR_INVALID, "%s: count is %zu; expected 1 to %d", what, count,
                       INT32_MAX);
    if (params == NULL) return wf_fail_null(what, "params");
    WF_TRY(wf_fail_named(
        wf_items_read("weft_fsdp_param", count, params, param_size, sizeof *params, &copy), what));
    status = create(fsdp, (uint32_t)count, copy != NULL ? copy : params, &wanted, out);
    wf_free(copy);
    return status;
}

void weft_fsdp_group_release(weft_fsdp_group **group)
{
    weft_fsdp_group *mine = group != NULL ? *group : NULL;
    weft_fsdp *fsdp;

    if (mine == NULL || !weft_object_end(&mine->object, type, "weft_fsdp_group_release")) return;
    *group = NULL;
    if (!mine->has_ended) wf_fsdp_wait(mine);
    fsdp = mine->fsdp;
    wf_fsdp_part(fsdp, mine);
    free_group(mine);
    wf_fsdp_end_if_unused(fsdp);
}
