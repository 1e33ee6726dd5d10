/* memory.c - the backend's memory and streams. */
#include "comm/position.h"
#include "timing.h"

#include <stdio.h>

/* A wait that exceeds a time limit of at least this logs every rank's position. */
#define WORTH_LOGGING_NS WF_SECOND_NS

/* Enter ENTRY into the ledger and return its memory. */
static weft_status keep(weft_context *context, struct wf_ledger_entry entry, void **out)
{
    weft_status status = WEFT_OK;

    if (entry.pointer != NULL) status = wf_ledger_add(&context->ledger, &entry);
    if (status != WEFT_OK) {
        if (context->plugin->device->free(context->device, entry.pointer) != WEFT_OK)
            wf_log(WF_LOG_WARNING, "memory could not be freed: %s", weft_last_error());
        return wf_fail_memory((size_t)entry.bytes);
    }
    *out = entry.pointer;
    return WEFT_OK;
}

weft_status weft_alloc(weft_context *context, uint64_t bytes, enum weft_memory_kind kind,
                       void **out)
{
    void *pointer = NULL;

    WF_TRY(wf_context_check(context, "weft_alloc"));
    if (out == NULL) return wf_fail_null("weft_alloc", "out");
    if (kind != WEFT_MEMORY_DEVICE && kind != WEFT_MEMORY_PINNED)
        return wf_fail(
            WEFT_ERR_INVALID,
            "weft_alloc: kind is %u; expected WEFT_MEMORY_DEVICE (%d) or WEFT_MEMORY_PINNED (%d)",
            kind, WEFT_MEMORY_DEVICE, WEFT_MEMORY_PINNED);
    if (bytes > INT64_MAX)
        return wf_fail(WEFT_ERR_INVALID, "weft_alloc: %llu bytes are more than 2^63 - 1",
                       (unsigned long long)bytes);
    WF_TRY(context->plugin->device->allocate(context->device, bytes, kind, &pointer));
    return keep(context, (struct wf_ledger_entry){pointer, bytes, false}, out);
}

/* Free the memory of ENTRY, which is not in the ledger: on STREAM if it is ordered, else when the
 * work on STREAM is complete. */
static weft_status free_entry(weft_context *context, const struct wf_ledger_entry *entry,
                              weft_stream *stream)
{
    const weft_device_table *device = context->plugin->device;
    weft_status status;

    if (entry->is_ordered) return device->free_on(context->device, entry->pointer, stream);
    status = device->stream_wait(context->device, stream, context->timeout_ns);
    if (status == WEFT_ERR_TIMEOUT) return status; /* after another error, the work is over */
    return device->free(context->device, entry->pointer);
}

weft_status weft_free(weft_context *context, void *pointer)
{
    struct wf_ledger_entry entry;
    weft_status status;
    bool known;

    WF_TRY(wf_context_check(context, "weft_free"));
    if (pointer != NULL) WF_TRY(wf_modules_check_free(context, pointer));
    known = wf_ledger_take(&context->ledger, pointer, &entry); /* before another call gets it */
    status = context->plugin->device->free(context->device, pointer);
    if (status != WEFT_OK && known && wf_ledger_add(&context->ledger, &entry) != WEFT_OK)
        wf_log(WF_LOG_WARNING, "weft_free: %s", weft_last_error());
    if (status == WEFT_ERR_INVALID)
        return wf_fail(WEFT_ERR_INVALID,
                       "weft_free: %p was not returned by weft_alloc of this context, or was freed "
                       "already",
                       pointer);
    return status != WEFT_OK ? wf_fail_context(status, "weft_free") : WEFT_OK;
}

/* ---- memory in stream order ---- */

static bool orders_memory(const weft_context *context)
{
    return WF_HAS(context->plugin->device, allocate_on) && WF_HAS(context->plugin->device, free_on);
}

weft_status wf_memory_take(weft_context *context, uint64_t bytes, weft_stream *stream,
                           const char *function, void **out)
{
    const weft_device_table *device = context->plugin->device;
    struct wf_ledger_entry entry = {.bytes = bytes, .is_ordered = orders_memory(context)};

    if (bytes > INT64_MAX)
        return wf_fail(WEFT_ERR_INVALID, "%s: %llu bytes are more than 2^63 - 1", function,
                       (unsigned long long)bytes);
    if (entry.is_ordered)
        WF_TRY(device->allocate_on(context->device, bytes, stream, &entry.pointer));
    else
        WF_TRY(device->allocate(context->device, bytes, WEFT_MEMORY_DEVICE, &entry.pointer));
    return keep(context, entry, out);
}

weft_status wf_memory_give(weft_context *context, void *pointer, weft_stream *stream,
                           const char *function)
{
    struct wf_ledger_entry entry;
    weft_status status;

    if (pointer == NULL) return WEFT_OK;
    WF_TRY(wf_modules_check_free(context, pointer));
    if (!wf_ledger_take(&context->ledger, pointer, &entry))
        return wf_fail(WEFT_ERR_INVALID,
                       "%s: %p was not returned by weft_alloc or weft_alloc_on of this context, or "
                       "was freed already",
                       function, pointer);
    if (wf_stream_check(context, stream, function) == WEFT_OK)
        status = free_entry(context, &entry, stream);
    else
        status = context->plugin->device->free(context->device, pointer);
    if (status == WEFT_OK) return WEFT_OK;
    if (wf_ledger_add(&context->ledger, &entry) != WEFT_OK)
        wf_log(WF_LOG_WARNING, "%s: %s", function, weft_last_error());
    return wf_fail_named(status, function);
}

weft_status weft_alloc_on(weft_context *context, uint64_t bytes, weft_stream *stream, void **out)
{
    WF_TRY(wf_context_check(context, "weft_alloc_on"));
    if (out == NULL) return wf_fail_null("weft_alloc_on", "out");
    WF_TRY(wf_stream_check(context, stream, "weft_alloc_on"));
    return wf_fail_named(wf_memory_take(context, bytes, stream, "weft_alloc_on", out),
                         "weft_alloc_on");
}

weft_status weft_free_on(weft_context *context, void *pointer, weft_stream *stream)
{
    WF_TRY(wf_context_check(context, "weft_free_on"));
    WF_TRY(wf_stream_check(context, stream, "weft_free_on"));
    return wf_memory_give(context, pointer, stream, "weft_free_on");
}

weft_status weft_pointer_get(weft_context *context, const void *pointer, weft_pointer_info *out)
{
    weft_pointer_info info = {.struct_size = sizeof info};

    WF_TRY(wf_context_check(context, "weft_pointer_get"));
    if (out == NULL) return wf_fail_null("weft_pointer_get", "out");
    WF_TRY(context->plugin->device->query_pointer(context->device, pointer, &info));
    return wf_abi_info_write("weft_pointer_info", &info, sizeof info, out);
}

weft_status weft_memory_copy(weft_context *context, const void *source, void *target,
                             uint64_t bytes, weft_stream *stream)
{
    WF_TRY(wf_context_check(context, "weft_memory_copy"));
    if (bytes > 0 && (target == NULL || source == NULL))
        return wf_fail_null("weft_memory_copy", target == NULL ? "target" : "source");
    WF_TRY(wf_stream_check(context, stream, "weft_memory_copy"));
    if (atomic_load_explicit(&context->reported, memory_order_relaxed) != 0)
        wf_posts_acknowledge(context, stream);
    return context->plugin->device->copy(context->device, target, source, bytes, stream);
}

weft_status weft_memory_fill(weft_context *context, void *target, uint8_t byte, uint64_t bytes,
                             weft_stream *stream)
{
    WF_TRY(wf_context_check(context, "weft_memory_fill"));
    if (bytes > 0 && target == NULL) return wf_fail_null("weft_memory_fill", "target");
    WF_TRY(wf_stream_check(context, stream, "weft_memory_fill"));
    if (atomic_load_explicit(&context->reported, memory_order_relaxed) != 0)
        wf_posts_acknowledge(context, stream);
    return context->plugin->device->fill(context->device, target, byte, bytes, stream);
}

weft_status weft_context_bind_thread(weft_context *context)
{
    WF_TRY(wf_context_check(context, "weft_context_bind_thread"));
    if (WF_HAS(context->plugin->device, bind_thread))
        WF_TRY(context->plugin->device->bind_thread(context->device));
    return wf_modules_bind_thread(context);
}

/* ---- streams: the plugin's own handles under our type ---- */

/* A stream that was not released when its context ended is destroyed, and the plugin may use its
 * address for another one.  The user still releases it, so that the new one needs another address:
 * create streams until one has it.  TRIES bounds that, for a plugin with few addresses. */
static weft_status make_unlike(weft_context *context, bool is_wrapped, void *native, int tries,
                               void **out)
{
    const weft_device_table *device = context->plugin->device;
    void *made;

    WF_TRY(is_wrapped ? device->stream_wrap(context->device, native, &made)
                      : device->stream_create(context->device, &made));
    if (tries > 0 && wf_stream_maker(made) != NULL) {
        weft_status status = make_unlike(context, is_wrapped, native, tries - 1, out);

        device->stream_destroy(context->device, made);
        return status;
    }
    *out = made;
    return WEFT_OK;
}

static weft_status make_stream(weft_context *context, bool is_wrapped, void *native,
                               weft_stream **out)
{
    struct wf_stream_note *note = wf_alloc(sizeof *note);
    weft_status status;

    if (note == NULL) return wf_fail_memory(sizeof *note);
    note->is_wrapped = is_wrapped;
    note->name = 0;
    status = make_unlike(context, is_wrapped, native, 64, &note->stream);
    if (status != WEFT_OK) {
        wf_free(note);
        return status;
    }
    wf_stream_add(context, note);
    *out = note->stream;
    return WEFT_OK;
}

weft_status weft_stream_create(weft_context *context, weft_stream **out)
{
    WF_TRY(wf_context_check(context, "weft_stream_create"));
    if (out == NULL) return wf_fail_null("weft_stream_create", "out");
    return make_stream(context, false, NULL, out);
}

void weft_stream_release(weft_stream **stream)
{
    struct wf_span span;
    weft_stream *mine;
    weft_context *context;

    if (stream == NULL || *stream == NULL) return;
    mine = *stream;
    *stream = NULL;
    context = wf_stream_maker(mine);
    if (context != NULL && context->made == wf_ended(WF_KIND_CONTEXT)) {
        wf_stream_forget(mine);
        return;
    }
    if (wf_stream_context(mine, "weft_stream_release", &context) != WEFT_OK) {
        if (!wf_streams_are_parents()) wf_log(WF_LOG_WARNING, "%s", weft_last_error());
        return;
    }
    wf_modules_stream_ends(context, mine);
    span = wf_span_begin(context, mine);
    context->plugin->device->stream_destroy(context->device, mine);
    if (context->timing != NULL) wf_timing_forget(context->timing, mine);
    if (context->trace->export != NULL)
        wf_export_forget_stream(context->trace->export, wf_stream_number(context, mine));
    wf_span_drop(context, &span);
    wf_stream_remove(context, mine);
}

weft_status weft_stream_wrap(weft_context *context, void *native, weft_stream **out)
{
    WF_TRY(wf_context_check(context, "weft_stream_wrap"));
    if (out == NULL) return wf_fail_null("weft_stream_wrap", "out");
    if (!WF_HAS(context->plugin->device, stream_wrap))
        return wf_fail(WEFT_ERR_UNSUPPORTED,
                       "weft_stream_wrap: backend %s does not support vendor streams",
                       context->plugin->name);
    return make_stream(context, true, native, out);
}

void *weft_stream_native(weft_stream *stream)
{
    weft_context *context = stream != NULL ? wf_stream_maker(stream) : NULL;

    if (context == NULL || !wf_is_usable(context->made, WF_KIND_CONTEXT) ||
        !WF_HAS(context->plugin->device, stream_native))
        return NULL;
    return context->plugin->device->stream_native(context->device, stream);
}

static weft_status judge(weft_context *context, const struct wf_span *span, weft_status status)
{
    status = wf_modules_check_wait(context, span->stream, false, status);
    return wf_span_judge(context, span, status);
}

weft_status weft_stream_test(weft_stream *stream)
{
    struct wf_span span;
    weft_status status;
    weft_context *context;

    WF_TRY(wf_stream_context(stream, "weft_stream_test", &context));
    span = wf_span_begin(context, stream);
    status = context->plugin->device->stream_query(context->device, stream);
    if (status == WEFT_IN_PROGRESS) return status;
    return judge(context, &span, status);
}

static void log_positions(weft_context *context)
{
    weft_comm *unfinished[4];
    size_t count = 0;

    pthread_mutex_lock(&context->describe_lock);
    pthread_mutex_lock(&context->lock);
    for (weft_comm *comm = context->comms; comm != NULL && count < WF_COUNT(unfinished);
         comm = comm->next)
        if (atomic_load(&comm->recent.posted) != atomic_load(&comm->recent.finished))
            unfinished[count++] = comm;
    pthread_mutex_unlock(&context->lock);
    for (size_t i = 0; i < count; i++)
        wf_position_log(unfinished[i]);
    pthread_mutex_unlock(&context->describe_lock);
}

weft_status wf_context_waited(weft_context *context, const char *function, const char *stream,
                              int64_t timeout_ns)
{
    char limit[32];

    if (timeout_ns >= WORTH_LOGGING_NS) log_positions(context);
    if (timeout_ns < 1000)
        snprintf(limit, sizeof limit, "%d ns", timeout_ns > 0 ? (int)timeout_ns : 0);
    else if (timeout_ns < 1000000)
        kit_print(limit, sizeof limit, "%.1f us", (double)timeout_ns * 1e-3);
    else
        kit_print(limit, sizeof limit, "%.3f s", (double)timeout_ns * 1e-9);
    return wf_fail(WEFT_ERR_TIMEOUT, "%s on rank %d: the work%s%s is not complete after %s",
                   function, context->rank, stream[0] != '\0' ? " on stream " : "", stream, limit);
}

weft_status wf_limit_check(const char *function, int64_t timeout_ns)
{
    if (timeout_ns >= WEFT_FOREVER) return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID,
                   "%s: timeout_ns is %lld; it must be 0, positive or WEFT_FOREVER", function,
                   (long long)timeout_ns);
}

/* STREAM is one of CONTEXT. */
static weft_status wait_for(weft_context *context, weft_stream *stream, int64_t timeout_ns,
                            const char *function)
{
    struct wf_span span = wf_span_begin(context, stream);
    weft_status status;

    status = context->plugin->device->stream_wait(context->device, stream, timeout_ns);
    if (status == WEFT_ERR_TIMEOUT && /* the wait's own, or that of work on the stream? */
        context->plugin->device->stream_query(context->device, stream) != WEFT_ERR_TIMEOUT)
        return wf_context_waited(context, function, wf_stream_name(context, stream), timeout_ns);
    return judge(context, &span, status);
}

weft_status weft_stream_wait(weft_stream *stream, int64_t timeout_ns)
{
    weft_context *context;

    WF_TRY(wf_stream_context(stream, "weft_stream_wait", &context));
    WF_TRY(wf_limit_check("weft_stream_wait", timeout_ns));
    return wait_for(context, stream, timeout_ns, "weft_stream_wait");
}

weft_status weft_context_wait(weft_context *context, weft_stream *stream, int64_t timeout_ns)
{
    WF_TRY(wf_context_check(context, "weft_context_wait"));
    WF_TRY(wf_stream_check(context, stream, "weft_context_wait"));
    WF_TRY(wf_limit_check("weft_context_wait", timeout_ns));
    return wait_for(context, stream, timeout_ns, "weft_context_wait");
}

/* ---- the end of the context ---- */

static bool is_busy(const weft_context *context)
{
    for (const struct wf_stream_note *note = context->streams; note != NULL; note = note->next)
        if (!note->is_wrapped && context->plugin->device->stream_query(
                                     context->device, note->stream) == WEFT_IN_PROGRESS)
            return true;
    return false;
}

void wf_streams_stop(weft_context *context)
{
    if (context->device == NULL || !is_busy(context)) return;
    pthread_mutex_lock(&context->lock);
    for (weft_comm *comm = context->comms; comm != NULL; comm = comm->next)
        wf_comm_fail_locked(comm, WEFT_ERR_ABORTED,
                            "the context was released with work on its streams");
    pthread_mutex_unlock(&context->lock);
}
