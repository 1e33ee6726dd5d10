/* experts.c - experts on the ranks of an axis. */
#include "experts.h"

#include <string.h>

static const char function[] = "weft_experts_create";

weft_status wf_experts_check(const weft_experts *experts, const char *name)
{
    return wf_system_check((const struct wf_system *)experts, "weft_experts", name, "the experts");
}

weft_status weft_experts_get(const weft_experts *experts, weft_experts_info *out)
{
    static const char name[] = "weft_experts_get";
    weft_experts_info info;

    WF_TRY(wf_experts_check(experts, name));
    if (out == NULL) return wf_fail_null(name, "out");
    info = (weft_experts_info){.struct_size = sizeof info,
                               .experts = experts->options.experts,
                               .first = experts->first,
                               .here = experts->mine,
                               .ranks = experts->ranks,
                               .capacity = experts->options.capacity};
    return wf_fail_named(wf_info_write("weft_experts_info", &info, sizeof info, out), name);
}

/* ---- exchange ---- */

weft_status wf_experts_exchange(weft_experts *e, bool gather, weft_stream *stream)
{
    size_t bytes = e->words * sizeof *e->sent;

    if (!e->is_direct) WF_TRY(weft_memory_copy(e->context, e->sent, e->device_sent, bytes, stream));
    if (gather)
        WF_TRY(weft_all_gather(e->comm, e->device_sent, e->device_got, 1, WEFT_DTYPE_I64, stream));
    else
        WF_TRY(weft_all_to_all(e->comm, e->device_sent, e->device_got, e->words / (size_t)e->ranks,
                               WEFT_DTYPE_I64, stream));
    if (!e->is_direct) WF_TRY(weft_memory_copy(e->context, e->device_got, e->got, bytes, stream));
    if (stream == NULL && e->is_inline) return WEFT_OK;
    return weft_context_wait(e->context, stream, WEFT_FOREVER);
}

/* ---- life ---- */

static void free_memory(weft_experts *e, int64_t **memory)
{
    if (*memory != NULL && weft_free(e->context, *memory) != WEFT_OK)
        wf_log(WF_LOG_WARNING, "memory of experts is not freed: %s", weft_last_error());
    *memory = NULL;
}

static void free_resources(weft_experts *e)
{
    if (e->is_direct) e->device_sent = e->device_got = NULL;
    free_memory(e, &e->device_sent);
    free_memory(e, &e->device_got);
    free_memory(e, &e->sent);
    free_memory(e, &e->got);
    wf_free(e->lists);
    e->lists = NULL;
    weft_mesh_release(&e->mesh);
    wf_routings_free(e->spares);
    e->spares = NULL;
    e->context = NULL;
    e->comm = NULL;
}

static void end_with_comm(void *user, const char *cause)
{
    weft_experts *e = user;

    free_resources(e);
    wf_system_end(&e->system, cause);
}

static const weft_dependent_calls dependent_calls = {.struct_size = sizeof dependent_calls,
                                                     .end = end_with_comm};

static void free_experts(weft_experts *e)
{
    e->is_released = true;
    if (e->routings == 0) wf_free(e);
}

void wf_experts_forget(weft_experts *e)
{
    e->routings--;
    if (e->is_released) free_experts(e);
}

void weft_experts_release(weft_experts **experts)
{
    weft_experts *mine;

    if (experts == NULL || *experts == NULL) return;
    mine = *experts;
    *experts = NULL;
    if (!wf_system_release(&mine->system, "weft_experts", "weft_experts_release")) return;
    if (!wf_system_has_ended(&mine->system)) free_resources(mine);
    free_experts(mine);
}

/* ---- creation ---- */

static weft_status check_options(const weft_experts_options *o)
{
    if (o->experts < 1 || o->experts > WEFT_EXPERTS_MAX)
        return wf_fail(WEFT_ERR_INVALID,
                       "%s: weft_experts_options.experts is %d; it must be 1 to %d", function,
                       o->experts, WEFT_EXPERTS_MAX);
    if (o->capacity < 0)
        return wf_fail(WEFT_ERR_INVALID,
                       "%s: weft_experts_options.capacity is %lld; it must not be negative",
                       function, (long long)o->capacity);
    return WEFT_OK;
}

/* STATUS is how creation went here. */
static weft_status agree_on_options(const weft_experts *e, weft_status status)
{
    struct wf_text fields = {0};

    wf_field_add(&fields, "experts", "%d", e->options.experts);
    wf_field_add(&fields, "capacity", "%lld", (long long)e->options.capacity);
    return wf_agree_on_fields(e->comm, NULL, function, status, &fields, NULL);
}

static weft_status make_words(weft_experts *e, int64_t **host, int64_t **device)
{
    size_t bytes = e->words * sizeof **host;
    void *memory;

    if (!e->is_direct) {
        WF_TRY(weft_alloc(e->context, bytes, WEFT_MEMORY_PINNED, &memory));
        *host = memory;
    }
    WF_TRY(weft_alloc(e->context, bytes, WEFT_MEMORY_DEVICE, &memory));
    *device = memory;
    if (e->is_direct) *host = *device;
    return WEFT_OK;
}

static weft_status prepare(weft_experts *e, const weft_mesh *mesh, const char *axis)
{
    int32_t ranks = e->ranks, total = e->options.experts;
    size_t bytes = 4 * (size_t)ranks * sizeof *e->lists;

    e->has_messages = weft_comm_has_messages(e->comm);
    e->is_direct = wf_device_has(e->context, WEFT_FEATURE_HOST_MEMORY);
    e->is_inline = wf_device_has(e->context, WEFT_FEATURE_INLINE);
    e->chunk = (total + ranks - 1) / ranks;
    e->first = (int32_t)wf_min_i64((int64_t)e->rank * e->chunk, total);
    e->mine = (int32_t)wf_min_i64(e->chunk, total - e->first);
    e->words = (size_t)ranks * (WF_EXPERTS_COUNTS + (size_t)e->chunk);
    WF_TRY(weft_mesh_slice(mesh, axis, weft_rank(e->context), &e->mesh));
    e->lists = wf_alloc(bytes);
    if (e->lists == NULL) return wf_fail_memory(bytes);
    WF_TRY(make_words(e, &e->sent, &e->device_sent));
    WF_TRY(make_words(e, &e->got, &e->device_got));
    return weft_dependent_create(e->comm, &dependent_calls, e, &e->system.dependent);
}

static weft_status make(weft_experts *e, const weft_mesh *mesh, const char *axis)
{
    WF_TRY(agree_on_options(e, check_options(&e->options)));
    return wf_agree_on_status(e->comm, function, prepare(e, mesh, axis));
}

weft_status weft_experts_create(weft_context *context, const weft_mesh *mesh, const char *axis,
                                const weft_experts_options *options, weft_experts **out)
{
    weft_experts_options o = {0};
    weft_comm *comm = NULL;
    weft_status status;
    weft_experts *e;

    WF_TRY(weft_object_check(context, "weft_context", function, "context"));
    if (options == NULL) return wf_fail_null(function, "options");
    if (out == NULL) return wf_fail_null(function, "out");
    WF_TRY(wf_fail_named(wf_options_read("weft_experts_options", options, &o, sizeof o), function));
    WF_TRY(wf_axis_comm(context, mesh, axis, function, &comm));
    e = wf_calloc(1, sizeof *e);
    if (e == NULL) return wf_agree_on_status(comm, function, wf_fail_memory(sizeof *e));
    weft_object_begin(&e->system.object, "weft_experts");
    e->context = context;
    e->comm = comm;
    e->rank = weft_comm_rank(comm);
    e->ranks = weft_comm_size(comm);
    e->options = o;
    status = make(e, mesh, axis);
    if (status != WEFT_OK) {
        weft_experts_release(&e);
        return status;
    }
    *out = e;
    return WEFT_OK;
}
