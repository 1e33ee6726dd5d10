/* arguments.c - arguments that training systems share. */
#include "arguments.h"

#include <stdio.h>
#include <string.h>

/* ---- systems ---- */

weft_status wf_system_check(const struct wf_system *system, const char *type, const char *function,
                            const char *name)
{
    WF_TRY(weft_object_check(system, type, function, type + strlen("weft_")));
    if (!wf_system_has_ended(system)) return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID, "%s: %s; %s ended with it", function, system->ended, name);
}

bool wf_system_release(struct wf_system *system, const char *type, const char *function)
{
    if (!weft_object_end(&system->object, type, function)) return false;
    weft_dependent_release(&system->dependent);
    return true;
}

void wf_system_end(struct wf_system *system, const char *cause)
{
    snprintf(system->ended, sizeof system->ended, "%s", cause);
}

weft_status wf_agree_on_status(weft_comm *comm, const char *function, weft_status status)
{
    weft_answers *answers = NULL;

    WF_TRY(weft_agree(comm, function, status, NULL, 0, NULL, &answers));
    weft_answers_release(&answers);
    return WEFT_OK;
}

/* ---- ranks ---- */

weft_status wf_axis_comm(weft_context *context, const weft_mesh *mesh, const char *axis,
                         const char *function, weft_comm **out)
{
    int32_t coord[WEFT_MAX_AXES], index;
    char name[16];

    WF_TRY(weft_object_check(mesh, "weft_mesh", function, "mesh"));
    if (axis == NULL) return wf_fail_null(function, "axis");
    if (weft_is_simulated(context))
        return wf_fail(WEFT_ERR_UNSUPPORTED, "%s: ranks are simulated and do not communicate",
                       function);
    WF_TRY(wf_fail_named(weft_mesh_find_axis(mesh, axis, &index), function));
    if (weft_mesh_coord_of(mesh, weft_rank(context), coord) != WEFT_OK)
        return wf_fail_about(WEFT_ERR_INVALID, function, "mesh");
    snprintf(name, sizeof name, "%d", index);
    return wf_fail_named(weft_comm_along(weft_world(context), mesh, name, NULL, out), function);
}

weft_status wf_messages_require(const weft_comm *comm, const char *function, const char *what)
{
    if (weft_comm_size(comm) == 1 || weft_comm_has_messages(comm)) return WEFT_OK;
    return wf_fail(WEFT_ERR_UNSUPPORTED,
                   "%s: backend %s has no messages (its send returns WEFT_ERR_UNSUPPORTED); %s "
                   "needs a plugin with send and receive",
                   function, weft_context_plugin(weft_comm_context(comm))->name, what);
}

struct wf_axis_text wf_axis_text(const weft_mesh *mesh, int32_t axis)
{
    const char *name = weft_mesh_axis_name(mesh, axis);
    struct wf_axis_text out;

    if (name != NULL && name[0] != '\0')
        snprintf(out.text, sizeof out.text, "axis %.*s", WEFT_MAX_AXIS_NAME, name);
    else
        snprintf(out.text, sizeof out.text, "axis %d", axis);
    return out;
}

bool wf_device_has(weft_context *context, uint64_t feature)
{
    weft_device_info info = {.struct_size = sizeof info};

    return weft_device_get(context, &info) == WEFT_OK && (info.features & feature) != 0;
}

/* ---- shards ---- */

static bool is_dense(const struct wf_held *held)
{
    int64_t stride = 1;

    for (int32_t d = held->dims - 1; d >= 0; d--) {
        if (held->shape[d] > 1 && held->strides[d] != stride) return false;
        stride *= held->shape[d];
    }
    return true;
}

weft_status wf_held_of(const weft_context *context, weft_tensor *tensor, bool is_written,
                       const char *function, const char *argument, struct wf_held *out)
{
    const weft_shard *shard;

    WF_TRY(weft_object_check(tensor, "weft_tensor", function, argument));
    if (weft_tensor_context(tensor) != context)
        return wf_fail(WEFT_ERR_INVALID, "%s: %s belongs to another context", function, argument);
    if (is_written && weft_tensor_is_read_only(tensor))
        return wf_fail(WEFT_ERR_INVALID,
                       "%s: %s is read-only, because its memory is or because its strides make "
                       "elements overlap",
                       function, argument);
    shard = weft_tensor_shard(tensor);
    *out = (struct wf_held){.tensor = tensor,
                            .memory = weft_tensor_memory(tensor),
                            .dtype = weft_spec_dtype(weft_tensor_spec(tensor)),
                            .dims = shard->dims,
                            .elements = shard->elements};
    memcpy(out->shape, shard->shape, sizeof out->shape);
    memcpy(out->strides, weft_tensor_strides(tensor), (size_t)shard->dims * sizeof *out->strides);
    out->is_dense = out->elements == 0 || is_dense(out);
    return WEFT_OK;
}

weft_status wf_held_require_dense(const struct wf_held *held, const char *function,
                                  const char *argument)
{
    if (held->is_dense) return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID,
                   "%s: the shard of %s has gaps between its elements; pass a tensor without gaps",
                   function, argument);
}

uint64_t wf_held_span(const struct wf_held *held)
{
    int64_t last = 0;

    if (held->elements == 0) return 0;
    for (int32_t d = 0; d < held->dims; d++)
        last += (held->shape[d] - 1) * held->strides[d];
    return ((uint64_t)last + 1) * wf_dtype_bytes(held->dtype);
}

weft_status wf_held_posted(weft_context *context, size_t count, const struct wf_held *held,
                           weft_stream *stream, weft_work **work)
{
    for (size_t i = 0; i < count; i++)
        WF_TRY(weft_tensor_use(held[i].tensor, stream));
    return work == NULL ? WEFT_OK : weft_work_record(context, stream, work);
}
