/* experts.c - experts on the ranks of an axis. */
#include "experts.h"

#include "comm/carry/carry.h"
#include "mesh/mesh.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const char function[] = "weft_experts_create";

weft_status wf_experts_check(const weft_experts *experts, const char *name)
{
    if (experts == NULL) return wf_fail_null(name, "experts");
    if (wf_is_usable(experts->made, WF_KIND_EXPERTS)) return WEFT_OK;
    if (experts->made == wf_ended(WF_KIND_EXPERTS))
        return wf_fail(WEFT_ERR_INVALID, "%s: %s; the experts ended with it", name, experts->ended);
    return wf_fail_unusable(name, "experts", experts->made, WF_KIND_EXPERTS);
}

int32_t weft_experts_count(const weft_experts *experts)
{
    return wf_experts_check(experts, "weft_experts_count") == WEFT_OK ? experts->options.experts
                                                                      : 0;
}

/* ---- exchange ---- */

static bool is_direct(const weft_experts *e)
{
    return (e->context->features & WEFT_FEATURE_HOST_MEMORY) != 0;
}

weft_status wf_experts_exchange(weft_experts *e, bool gather, weft_stream *stream)
{
    size_t bytes = e->words * sizeof *e->sent;

    if (!is_direct(e)) WF_TRY(weft_memory_copy(e->context, e->sent, e->device_sent, bytes, stream));
    if (gather)
        WF_TRY(weft_all_gather(e->comm, e->device_sent, e->device_got, 1, WEFT_DTYPE_I64, stream));
    else
        WF_TRY(weft_all_to_all(e->comm, e->device_sent, e->device_got,
                               e->words / (size_t)e->comm->size, WEFT_DTYPE_I64, stream));
    if (!is_direct(e)) WF_TRY(weft_memory_copy(e->context, e->device_got, e->got, bytes, stream));
    if (wf_comm_is_inline(e->comm, stream)) return WEFT_OK;
    return weft_stream_wait(e->context, stream, WEFT_FOREVER);
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
    if (is_direct(e)) e->device_sent = e->device_got = NULL;
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

static void end_with_comm(struct wf_dependent *self, const char *cause)
{
    weft_experts *e = (weft_experts *)(void *)((char *)self - offsetof(weft_experts, dependent));

    free_resources(e);
    e->made = wf_ended(WF_KIND_EXPERTS);
    snprintf(e->ended, sizeof e->ended, "%s", cause);
}

static void free_experts(weft_experts *e)
{
    e->made = wf_released(WF_KIND_EXPERTS);
    if (e->routings == 0) wf_free(e);
}

void wf_experts_forget(weft_experts *e)
{
    e->routings--;
    if (e->made == wf_released(WF_KIND_EXPERTS)) free_experts(e);
}

void weft_experts_release(weft_experts **experts)
{
    weft_experts *mine;

    if (experts == NULL || *experts == NULL) return;
    mine = *experts;
    *experts = NULL;
    if (mine->made == wf_ended(WF_KIND_EXPERTS)) {
        free_experts(mine);
        return;
    }
    if (!wf_is_usable(mine->made, WF_KIND_EXPERTS)) {
        wf_warn_unusable("weft_experts_release", mine->made, WF_KIND_EXPERTS);
        return;
    }
    wf_dependent_remove(&mine->dependent);
    free_resources(mine);
    free_experts(mine);
}

/* ---- creation ---- */

static weft_status check_options(const weft_experts_options *o)
{
    if (o->experts < 1 || o->experts > WEFT_EXPERTS_MAX)
        return wf_fail(WEFT_ERR_INVALID, "%s: %d experts; there must be 1 to %d", function,
                       o->experts, WEFT_EXPERTS_MAX);
    if (o->capacity < 0)
        return wf_fail(WEFT_ERR_INVALID, "%s: capacity is %lld; it must not be negative", function,
                       (long long)o->capacity);
    return WEFT_OK;
}

/* These values must be equal on all ranks along the axis. */
struct name {
    int64_t experts, capacity;
};

static weft_status compare(const weft_experts *e, const struct wf_gathered *got)
{
    struct name first = {0}, theirs;

    for (int32_t i = 0; i < got->count; i++) {
        if (got->blobs[i].bytes != sizeof theirs)
            return wf_fail(WEFT_ERR_MISMATCH, "%s: rank %d of %s sent no experts", function, i,
                           e->comm->name);
        memcpy(&theirs, got->blobs[i].data, sizeof theirs);
        if (i == 0) first = theirs;
        if (memcmp(&first, &theirs, sizeof first) != 0)
            return wf_fail(WEFT_ERR_MISMATCH,
                           "%s: rank 0 of %s has %lld experts with capacity %lld, rank %d has %lld "
                           "with capacity %lld",
                           function, e->comm->name, (long long)first.experts,
                           (long long)first.capacity, i, (long long)theirs.experts,
                           (long long)theirs.capacity);
    }
    return WEFT_OK;
}

/* STATUS is how creation went here. */
static weft_status agree(const weft_experts *e, const char *step, weft_status status)
{
    struct name mine = {e->options.experts, e->options.capacity};
    struct wf_gathered got;
    char label[200];

    snprintf(label, sizeof label, "%s on %s (%s)", function, e->comm->name, step);
    status = wf_comm_agree(e->comm, label, status, (weft_blob){&mine, sizeof mine}, &got);
    if (status != WEFT_OK) return wf_fail_named(status, function);
    status = compare(e, &got);
    wf_gathered_free(&got);
    return status;
}

static weft_status make_words(weft_experts *e, int64_t **host, int64_t **device)
{
    size_t bytes = e->words * sizeof **host;
    void *memory;

    if (!is_direct(e)) {
        WF_TRY(weft_alloc(e->context, bytes, WEFT_MEMORY_PINNED, &memory));
        *host = memory;
    }
    WF_TRY(weft_alloc(e->context, bytes, WEFT_MEMORY_DEVICE, &memory));
    *device = memory;
    if (is_direct(e)) *host = *device;
    return WEFT_OK;
}

static weft_status prepare(weft_experts *e, const weft_mesh *mesh, const char *axis)
{
    int32_t ranks = e->comm->size, total = e->options.experts;
    size_t bytes = 4 * (size_t)ranks * sizeof *e->lists;

    e->has_messages = wf_backend_has_messages(e->comm);
    e->chunk = (total + ranks - 1) / ranks;
    e->first = (int32_t)wf_min_i64((int64_t)e->comm->rank * e->chunk, total);
    e->mine = (int32_t)wf_min_i64(e->chunk, total - e->first);
    e->words = (size_t)ranks * (WF_EXPERTS_COUNTS + (size_t)e->chunk);
    WF_TRY(weft_mesh_slice(mesh, axis, e->context->rank, &e->mesh));
    e->lists = wf_alloc(bytes);
    if (e->lists == NULL) return wf_fail_memory(bytes);
    WF_TRY(make_words(e, &e->sent, &e->device_sent));
    return make_words(e, &e->got, &e->device_got);
}

static weft_status make(weft_experts *e, const weft_mesh *mesh, const char *axis)
{
    WF_TRY(agree(e, "options", check_options(&e->options)));
    return agree(e, "memory", prepare(e, mesh, axis));
}

static weft_status find_comm(weft_context *context, const weft_mesh *mesh, const char *axis,
                             char *name, size_t bytes, weft_comm **out)
{
    int32_t coord[WEFT_MAX_AXES], index;

    if (context->is_simulated)
        return wf_fail(WEFT_ERR_UNSUPPORTED, "%s: ranks are simulated and do not communicate",
                       function);
    WF_TRY(wf_fail_named(weft_mesh_find_axis(mesh, axis, &index), function));
    if (weft_mesh_coord_of(mesh, context->rank, coord) != WEFT_OK)
        return wf_fail_about(WEFT_ERR_INVALID, function, "mesh");
    snprintf(name, bytes, "%d", index);
    return wf_fail_named(weft_comm_along(context->world, mesh, name, out), function);
}

weft_status weft_experts_create(weft_context *context, const weft_mesh *mesh, const char *axis,
                                const weft_experts_options *options, weft_experts **out)
{
    weft_experts_options o = {0};
    char index[16];
    weft_comm *comm = NULL;
    weft_status status;
    weft_experts *e;

    WF_TRY(wf_context_check(context, function));
    WF_TRY(wf_require_kind(mesh, WF_KIND_MESH, "weft_experts_create: mesh"));
    if (axis == NULL) return wf_fail_null(function, "axis");
    if (options == NULL) return wf_fail_null(function, "options");
    if (out == NULL) return wf_fail_null(function, "out");
    WF_TRY(wf_fail_named(wf_options_read("weft_experts_options", options, &o, sizeof o), function));
    WF_TRY(find_comm(context, mesh, axis, index, sizeof index, &comm));
    e = wf_calloc(1, sizeof *e);
    if (e == NULL) {
        struct wf_gathered got;
        return wf_fail_named(
            wf_comm_agree(comm, function, wf_fail_memory(sizeof *e), (weft_blob){"", 0}, &got),
            function);
    }
    e->made = wf_made_now(WF_KIND_EXPERTS);
    e->context = context;
    e->comm = comm;
    e->options = o;
    status = make(e, mesh, index);
    if (status != WEFT_OK) {
        free_resources(e);
        free_experts(e);
        return status;
    }
    e->dependent.end = end_with_comm;
    wf_dependent_add(&e->dependent, comm);
    *out = e;
    return WEFT_OK;
}
