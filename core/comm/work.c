/* work.c - handles on what a stream was given.
 *
 * A work is an event of the backend.  Released works wait in the context for the next one, in
 * slots that are swapped atomically, so the steady state neither locks nor allocates. */
#include "comm.h"

static weft_work *take_spare(weft_context *context)
{
    for (size_t i = 0; i < WF_SPARE_WORKS; i++) {
        weft_work *work = NULL;

        if (atomic_load_explicit(&context->spare_works[i], memory_order_relaxed) == NULL) continue;
        work = atomic_exchange_explicit(&context->spare_works[i], NULL, memory_order_acquire);
        if (work != NULL) return work;
    }
    return NULL;
}

static bool put_spare(weft_context *context, weft_work *work)
{
    for (size_t i = 0; i < WF_SPARE_WORKS; i++) {
        weft_work *empty = NULL;

        if (atomic_compare_exchange_strong_explicit(&context->spare_works[i], &empty, work,
                                                    memory_order_release, memory_order_relaxed))
            return true;
    }
    return false;
}

static void destroy(weft_work *work)
{
    work->context->plugin->device->event_destroy(work->context->device, work->event);
    wf_free(work);
}

void wf_works_free(weft_context *context)
{
    weft_work *work;

    while ((work = take_spare(context)) != NULL)
        destroy(work);
}

static weft_status create(weft_context *context, weft_work **out)
{
    weft_work *work = wf_alloc(sizeof *work);
    weft_status status;

    if (work == NULL) return wf_fail_memory(sizeof *work);
    work->context = context;
    work->is_wrapped = false;
    status = context->plugin->device->event_create(context->device, &work->event);
    if (status != WEFT_OK) {
        wf_free(work);
        return status;
    }
    *out = work;
    return WEFT_OK;
}

weft_status weft_work_record(weft_context *context, weft_stream *stream, weft_work **out)
{
    weft_work *work;
    weft_status status;

    if (context == NULL || out == NULL)
        return wf_fail_null("weft_work_record", context == NULL ? "context" : "out");
    work = take_spare(context);
    if (work == NULL) WF_TRY(create(context, &work));
    work->span = wf_span_begin(context, stream);
    status = context->plugin->device->event_record(context->device, work->event, stream);
    if (status != WEFT_OK) {
        weft_work_release(&work);
        return status;
    }
    *out = work;
    return WEFT_OK;
}

void weft_work_release(weft_work **work)
{
    if (work == NULL || *work == NULL) return;
    if ((*work)->is_wrapped || !put_spare((*work)->context, *work)) destroy(*work);
    *work = NULL;
}

weft_status weft_work_wrap(weft_context *context, void *native, weft_work **out)
{
    weft_work *work;
    weft_status status;

    if (context == NULL || native == NULL || out == NULL)
        return wf_fail_null("weft_work_wrap", context == NULL  ? "context"
                                              : native == NULL ? "native"
                                                               : "out");
    if (!WF_HAS(context->plugin->device, event_wrap))
        return wf_fail(WEFT_ERR_UNSUPPORTED, "%s has no events of a vendor to wrap",
                       context->plugin->name);
    work = wf_alloc(sizeof *work);
    if (work == NULL) return wf_fail_memory(sizeof *work);
    *work = (weft_work){.context = context, .is_wrapped = true};
    status = context->plugin->device->event_wrap(context->device, native, &work->event);
    if (status == WEFT_OK)
        *out = work;
    else
        wf_free(work);
    return status;
}

void *weft_work_native(weft_work *work)
{
    if (work == NULL || !WF_HAS(work->context->plugin->device, event_native)) return NULL;
    return work->context->plugin->device->event_native(work->context->device, work->event);
}

/* Of what was recorded; who recorded a wrapped one, and where, is not known. */
static struct wf_span span_of(const weft_work *work)
{
    struct wf_span span = work->is_wrapped ? wf_span_begin(work->context, NULL) : work->span;

    span.any = work->is_wrapped;
    return span;
}

/* A wait for a signal that ran out may have been on any stream. */
static weft_status judge(const weft_work *work, weft_status status)
{
    struct wf_span span = span_of(work);

    if (status == WEFT_OK)
        status = wf_symm_settle(work->context, NULL, true);
    else if (status == WEFT_ERR_TIMEOUT)
        status = wf_symm_waited(work->context, status, NULL);
    return wf_span_judge(work->context, &span, status);
}

weft_status weft_work_test(weft_work *work)
{
    weft_status status;

    if (work == NULL) return wf_fail_null("weft_work_test", "work");
    status = work->context->plugin->device->event_query(work->context->device, work->event);
    return status == WEFT_IN_PROGRESS ? status : judge(work, status);
}

weft_status weft_work_wait(weft_work *work, int64_t timeout_ns)
{
    weft_status status;

    if (work == NULL) return wf_fail_null("weft_work_wait", "work");
    status =
        work->context->plugin->device->event_wait(work->context->device, work->event, timeout_ns);
    if (status == WEFT_ERR_TIMEOUT && /* the wait's own, or that of the work? */
        work->context->plugin->device->event_query(work->context->device, work->event) !=
            WEFT_ERR_TIMEOUT)
        return wf_context_waited(work->context, status, timeout_ns);
    return judge(work, status);
}

weft_status weft_stream_wait_work(weft_stream *stream, weft_work *work)
{
    if (work == NULL) return wf_fail_null("weft_stream_wait_work", "work");
    return work->context->plugin->device->stream_wait_event(work->context->device, stream,
                                                            work->event);
}

weft_status weft_work_elapsed(weft_work *from, weft_work *to, int64_t *nanoseconds)
{
    if (from == NULL || to == NULL || nanoseconds == NULL)
        return wf_fail_null("weft_work_elapsed", from == NULL ? "from"
                                                 : to == NULL ? "to"
                                                              : "nanoseconds");
    if (!WF_HAS(from->context->plugin->device, event_elapsed))
        return wf_fail(WEFT_ERR_UNSUPPORTED, "%s does not time its work",
                       from->context->plugin->name);
    return from->context->plugin->device->event_elapsed(from->context->device, from->event,
                                                        to->event, nanoseconds);
}
