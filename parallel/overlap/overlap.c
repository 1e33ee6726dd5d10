/* overlap.c - preparation on a communicator. */
#include "overlap.h"

#include "base/number.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char function[] = "weft_overlap_create";

weft_status wf_overlap_check(const weft_overlap *overlap, const char *name)
{
    return wf_system_check((const struct wf_system *)overlap, "weft_overlap", name, "the overlap");
}

weft_status wf_overlap_sync(const weft_overlap *o, weft_stream *stream)
{
    if (stream == NULL && o->is_inline) return WEFT_OK;
    return weft_context_wait(o->context, stream, WEFT_FOREVER);
}

weft_status wf_overlap_await(const weft_overlap *o, weft_stream *stream, weft_work **work)
{
    weft_status status = WEFT_OK;

    if (*work != NULL)
        status = o->by_streams ? weft_stream_wait_work(stream, *work)
                               : weft_work_wait(*work, WEFT_FOREVER);
    weft_work_release(work);
    return status;
}

weft_status wf_overlap_add(const weft_overlap *o, uint32_t dtype, uint32_t ranks, size_t count,
                           void *target, weft_stream *stream)
{
    const weft_kernel_table *kernels = weft_context_plugin(o->context)->kernel;
    struct wf_reduction sum = {dtype, WEFT_REDUCE_SUM, ranks, 0};

    if (!o->by_streams) {
        wf_elements_reduce(&sum, o->sources, target, count);
        return WEFT_OK;
    }
    if (kernels == NULL || !WF_HAS(kernels, reduce))
        return wf_fail(WEFT_ERR_UNSUPPORTED, "the backend has no kernel that adds elements");
    return kernels->reduce(weft_context_device(o->context), dtype, WEFT_REDUCE_SUM, count, ranks,
                           o->sources, target, stream);
}

/* ---- life ---- */

static void free_memory(weft_overlap *o, char **memory)
{
    if (*memory != NULL && weft_free(o->context, *memory) != WEFT_OK)
        wf_log(WF_LOG_WARNING, "memory of an overlap is not freed: %s", weft_last_error());
    *memory = NULL;
}

static void free_resources(weft_overlap *o)
{
    weft_stream_release(&o->side);
    if (o->symm != NULL) o->memory = NULL;
    free_memory(o, &o->memory);
    for (int i = 0; i < 2; i++)
        free_memory(o, &o->products[i]);
}

static void end_with_comm(void *user, const char *cause)
{
    weft_overlap *o = user;

    free_resources(o);
    o->context = NULL;
    o->comm = NULL;
    wf_system_end(&o->system, cause);
}

static const weft_dependent_calls dependent_calls = {.struct_size = sizeof dependent_calls,
                                                     .end = end_with_comm};

static void free_overlap(weft_overlap *o)
{
    weft_symm_release(&o->symm);
    wf_free(o->works);
    wf_free(o->counts);
    wf_free((void *)o->sources);
    weft_spec_release(&o->spec);
    wf_free(o);
}

void weft_overlap_release(weft_overlap **overlap)
{
    weft_overlap *mine;

    if (overlap == NULL || *overlap == NULL) return;
    mine = *overlap;
    *overlap = NULL;
    if (!wf_system_release(&mine->system, "weft_overlap", "weft_overlap_release")) return;
    if (!wf_system_has_ended(&mine->system)) free_resources(mine);
    free_overlap(mine);
}

/* ---- creation ---- */

static weft_status check_options(const weft_comm *comm, const weft_overlap_options *options)
{
    if (options->bytes == 0 || options->bytes > UINT64_C(1) << 60)
        return wf_fail(WEFT_ERR_INVALID,
                       "%s: weft_overlap_options.bytes is %llu; it must be within 1 .. 2^60",
                       function, (unsigned long long)options->bytes);
    return options->messages ? wf_messages_require(comm, function, "an overlap by messages")
                             : WEFT_OK;
}

/* What this rank can do. */
enum { CONCURRENT = 1, ADDS = 2 };

/* STATUS is how creation went here. */
static weft_status agree(weft_overlap *o, bool messages, weft_status status)
{
    uint32_t abilities = (o->concurrent ? CONCURRENT : 0u) | (o->adds ? ADDS : 0u);
    struct wf_text fields = {0};

    wf_field_add(&fields, "bytes", "%llu", (unsigned long long)o->bytes);
    wf_field_add(&fields, "messages", "%s", messages ? "true" : "false");
    status = wf_agree_on_fields(o->comm, NULL, function, status, &fields, &abilities);
    o->concurrent = (abilities & CONCURRENT) != 0;
    o->adds = (abilities & ADDS) != 0;
    return status;
}

static void look_around(weft_overlap *o)
{
    o->by_streams = !wf_device_has(o->context, WEFT_FEATURE_HOST_MEMORY);
    o->is_inline = wf_device_has(o->context, WEFT_FEATURE_INLINE);
    o->concurrent =
        o->by_streams || sysconf(_SC_NPROCESSORS_ONLN) >= 2 * (long)weft_local_size(o->context);
    for (int32_t i = 1; i < o->ranks; i++)
        if (!weft_comm_same_host(o->comm, 0, i)) o->between_hosts = true;
}

/* Symmetric memory, unless no rank has it. */
static weft_status make_window(weft_overlap *o)
{
    weft_status status = weft_symm_create(o->comm, 2 * o->bytes, NULL, &o->symm);

    if (status == WEFT_ERR_UNSUPPORTED) return WEFT_OK;
    WF_TRY(wf_fail_named(status, function));
    o->memory = weft_symm_local(o->symm);
    return WEFT_OK;
}

static weft_status allocate(weft_overlap *o, uint64_t bytes, char **out)
{
    void *memory;

    WF_TRY(weft_alloc(o->context, bytes, WEFT_MEMORY_DEVICE, &memory));
    *out = memory;
    return WEFT_OK;
}

/* Whether pieces can be added up: not by a device whose kernels were not found. */
static bool can_add(weft_overlap *o)
{
    const uint64_t least = sizeof(float);
    weft_status status;

    if (!o->by_streams || o->bytes < least) return !o->by_streams;
    o->sources[0] = o->memory;
    status = wf_overlap_add(o, WEFT_DTYPE_F32, 1, 1, o->memory, o->side);
    if (status == WEFT_OK) status = wf_overlap_sync(o, o->side);
    if (status != WEFT_OK) wf_log(WF_LOG_DEBUG, "reduce-scatters are plain: %s", weft_last_error());
    return status == WEFT_OK;
}

static weft_status make_memory(weft_overlap *o)
{
    size_t ranks = (size_t)o->ranks, works = ranks * WEFT_OVERLAP_MAX_CHUNKS;

    o->counts = wf_alloc(2 * ranks * sizeof *o->counts);
    o->sources = wf_alloc(ranks * sizeof *o->sources);
    if (o->counts == NULL || o->sources == NULL) return wf_fail_memory(ranks * sizeof *o->counts);
    o->offsets = o->counts + ranks;
    if (o->symm == NULL) WF_TRY(allocate(o, o->bytes, &o->memory));
    for (int i = 0; i < 2; i++)
        WF_TRY(allocate(o, o->bytes / ranks + 1, &o->products[i]));
    o->works = wf_calloc(works, sizeof(weft_work *));
    if (o->works == NULL) return wf_fail_memory(works * sizeof(weft_work *));
    WF_TRY(weft_stream_create(o->context, &o->side));
    o->adds = can_add(o);
    return weft_dependent_create(o->comm, &dependent_calls, o, &o->system.dependent);
}

static weft_status make(weft_overlap *o, const weft_overlap_options *options)
{
    look_around(o);
    WF_TRY(agree(o, options->messages, check_options(o->comm, options)));
    if (!options->messages && o->ranks > 1) WF_TRY(make_window(o));
    return agree(o, options->messages, make_memory(o));
}

weft_status weft_overlap_get(const weft_overlap *overlap, weft_overlap_info *out)
{
    static const char name[] = "weft_overlap_get";
    weft_overlap_info info;

    WF_TRY(wf_overlap_check(overlap, name));
    if (out == NULL) return wf_fail_null(name, "out");
    info = (weft_overlap_info){.struct_size = sizeof info,
                               .ranks = overlap->ranks,
                               .symmetric = overlap->symm != NULL,
                               .concurrent = overlap->concurrent,
                               .bytes = overlap->bytes};
    return wf_fail_named(wf_info_write("weft_overlap_info", &info, sizeof info, out), name);
}

weft_status weft_overlap_create(weft_context *context, const weft_mesh *mesh, const char *axis,
                                const weft_overlap_options *options, weft_overlap **out)
{
    weft_overlap_options wanted = {0};
    weft_comm *comm = NULL;
    weft_status status;
    weft_overlap *o;

    WF_TRY(weft_object_check(context, "weft_context", function, "context"));
    if (options == NULL) return wf_fail_null(function, "options");
    if (out == NULL) return wf_fail_null(function, "out");
    WF_TRY(wf_fail_named(wf_options_read("weft_overlap_options", options, &wanted, sizeof wanted),
                         function));
    WF_TRY(wf_axis_comm(context, mesh, axis, function, &comm));
    o = wf_calloc(1, sizeof *o);
    if (o == NULL) return wf_agree_on_status(comm, function, wf_fail_memory(sizeof *o));
    weft_object_begin(&o->system.object, "weft_overlap");
    o->context = context;
    o->comm = comm;
    o->rank = weft_comm_rank(comm);
    o->ranks = weft_comm_size(comm);
    o->bytes = wanted.bytes;
    status = make(o, &wanted);
    if (status != WEFT_OK) {
        char text[1024];

        snprintf(text, sizeof text, "%s", weft_last_error());
        weft_overlap_release(&o);
        return wf_fail(status, "%s", text);
    }
    *out = o;
    return WEFT_OK;
}
