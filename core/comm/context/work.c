/* work.c - handles on posted work.
 *
 * A work is an event of the backend.  The context keeps released works for reuse, in slots that are
 * swapped atomically, so the steady state neither locks nor allocates.  Until its reuse, a released
 * work is marked as released. */
#include "comm/comm.h"

#include <string.h>

static weft_work *take_spare(weft_context *context)
{
    for (size_t i = 0; i < WF_SPARE_WORKS; i++) {
        weft_work *work = NULL;

        if (atomic_load_explicit(&context->spare_works[i], memory_order_relaxed) == NULL) continue;
        work = atomic_exchange_explicit(&context->spare_works[i], NULL, memory_order_acquire);
        if (work == NULL) continue;
        work->made = wf_made_now(WF_KIND_WORK);
        return work;
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

static void enlist(weft_work *work)
{
    weft_context *context = work->context;

    pthread_mutex_lock(&context->lock);
    work->before = NULL;
    work->next = context->works;
    if (work->next != NULL) work->next->before = work;
    context->works = work;
    pthread_mutex_unlock(&context->lock);
}

/* Destroy the event, and leave an object without a context. */
static void end(weft_work *work)
{
    weft_context *context = work->context;

    pthread_mutex_lock(&context->lock);
    if (work->next != NULL) work->next->before = work->before;
    if (work->before != NULL)
        work->before->next = work->next;
    else
        context->works = work->next;
    pthread_mutex_unlock(&context->lock);
    context->plugin->device->event_destroy(context->device, work->event);
    work->event = NULL;
    work->context = NULL;
}

static void destroy(weft_work *work)
{
    weft_context *context = work->context;

    end(work);
    wf_remnant_keep(context, work);
}

/* "3 of weft_work_record, 1 of weft_redistribute" */
static void count_makers(const weft_work *works, struct wf_text *out)
{
    static const char *const makers[] = {"weft_work_record", "weft_work_wrap", "weft_redistribute",
                                         "weft_redistribute_batch", "weft_move"};

    for (size_t i = 0; i < WF_COUNT(makers); i++) {
        unsigned long long count = 0;

        for (const weft_work *work = works; work != NULL; work = work->next)
            if (strcmp(work->maker, makers[i]) == 0) count++;
        if (count == 0) continue;
        wf_text_add(out, "%s%llu of %s", out->length > 0 ? ", " : "", count, makers[i]);
    }
}

void wf_works_end(weft_context *context)
{
    struct wf_text makers = {0};
    weft_work *work;

    while ((work = take_spare(context)) != NULL) {
        end(work);
        wf_free(work);
    }
    if (context->works == NULL) return;
    count_makers(context->works, &makers);
    wf_log(WF_LOG_WARNING, "weft_context_release: works not released: %s",
           makers.failed || makers.data == NULL ? "some" : makers.data);
    wf_text_free(&makers);
    while (context->works != NULL)
        end(context->works);
}

static weft_status create(weft_context *context, weft_work **out)
{
    weft_work *work = wf_alloc(sizeof *work);
    weft_status status;

    if (work == NULL) return wf_fail_memory(sizeof *work);
    work->made = wf_made_now(WF_KIND_WORK);
    work->context = context;
    work->is_wrapped = false;
    status = context->plugin->device->event_create(context->device, &work->event);
    if (status != WEFT_OK) {
        wf_free(work);
        return status;
    }
    enlist(work);
    *out = work;
    return WEFT_OK;
}

weft_status wf_work_record(weft_context *context, weft_stream *stream, const char *maker,
                           weft_work **out)
{
    weft_work *work;
    weft_status status;

    work = take_spare(context);
    if (work == NULL) WF_TRY(create(context, &work));
    work->maker = maker;
    work->span = wf_span_begin(context, stream);
    status = context->plugin->device->event_record(context->device, work->event, stream);
    if (status != WEFT_OK) {
        weft_work_release(&work);
        return status;
    }
    *out = work;
    return WEFT_OK;
}

weft_status weft_work_record(weft_context *context, weft_stream *stream, weft_work **out)
{
    WF_TRY(wf_context_check(context, "weft_work_record"));
    if (out == NULL) return wf_fail_null("weft_work_record", "out");
    WF_TRY(wf_stream_check(context, stream, "weft_work_record"));
    return wf_work_record(context, stream, "weft_work_record", out);
}

void weft_work_release(weft_work **held)
{
    weft_work *work;

    if (held == NULL || *held == NULL) return;
    work = *held;
    *held = NULL;
    if (!wf_is_usable(work->made, WF_KIND_WORK)) {
        wf_warn_unusable("weft_work_release", work->made, WF_KIND_WORK);
        return;
    }
    work->made = wf_released(WF_KIND_WORK);
    if (work->context == NULL)
        wf_free(work);
    else if (work->is_wrapped || !put_spare(work->context, work))
        destroy(work);
}

/* OK if WORK can be used. */
static weft_status check(const weft_work *work, const char *function, const char *argument)
{
    if (work == NULL) return wf_fail_null(function, argument);
    if (!wf_is_usable(work->made, WF_KIND_WORK))
        return wf_fail_unusable(function, argument, work->made, WF_KIND_WORK);
    if (work->context == NULL)
        return wf_fail(WEFT_ERR_INVALID,
                       "%s: the context of this work was released; the work is from %s", function,
                       work->maker);
    return wf_context_check(work->context, function);
}

weft_status weft_work_wrap(weft_context *context, void *native, weft_work **out)
{
    weft_work *work;
    weft_status status;

    WF_TRY(wf_context_check(context, "weft_work_wrap"));
    if (native == NULL || out == NULL)
        return wf_fail_null("weft_work_wrap", native == NULL ? "native" : "out");
    if (!WF_HAS(context->plugin->device, event_wrap))
        return wf_fail(WEFT_ERR_UNSUPPORTED,
                       "weft_work_wrap: backend %s does not support vendor events",
                       context->plugin->name);
    work = wf_alloc(sizeof *work);
    if (work == NULL) return wf_fail_memory(sizeof *work);
    *work = (weft_work){.made = wf_made_now(WF_KIND_WORK),
                        .context = context,
                        .is_wrapped = true,
                        .maker = "weft_work_wrap"};
    status = context->plugin->device->event_wrap(context->device, native, &work->event);
    if (status != WEFT_OK) {
        wf_free(work);
        return status;
    }
    enlist(work);
    *out = work;
    return WEFT_OK;
}

void *weft_work_native(weft_work *work)
{
    if (work == NULL || !wf_is_usable(work->made, WF_KIND_WORK) || work->context == NULL ||
        !WF_HAS(work->context->plugin->device, event_native))
        return NULL;
    return work->context->plugin->device->event_native(work->context->device, work->event);
}

/* The posts that WORK covers.  It is not known on which stream a wrapped event was recorded. */
static struct wf_span span_of(const weft_work *work)
{
    struct wf_span span = work->is_wrapped ? wf_span_begin(work->context, NULL) : work->span;

    span.any = work->is_wrapped;
    return span;
}

/* The stream that WORK was recorded on may have waited for work on any other stream. */
static weft_status judge(const weft_work *work, weft_status status)
{
    struct wf_span span = span_of(work);

    status = wf_modules_check_wait(work->context, NULL, true, status);
    return wf_span_judge(work->context, &span, status);
}

weft_status weft_work_test(weft_work *work)
{
    weft_status status;

    WF_TRY(check(work, "weft_work_test", "work"));
    status = work->context->plugin->device->event_query(work->context->device, work->event);
    return status == WEFT_IN_PROGRESS ? status : judge(work, status);
}

weft_status weft_work_wait(weft_work *work, int64_t timeout_ns)
{
    weft_status status;

    WF_TRY(check(work, "weft_work_wait", "work"));
    WF_TRY(wf_limit_check("weft_work_wait", timeout_ns));
    status =
        work->context->plugin->device->event_wait(work->context->device, work->event, timeout_ns);
    if (status == WEFT_ERR_TIMEOUT && /* the wait's own, or that of the work? */
        work->context->plugin->device->event_query(work->context->device, work->event) !=
            WEFT_ERR_TIMEOUT)
        return wf_context_waited(
            work->context, "weft_work_wait",
            work->is_wrapped ? "" : wf_stream_name(work->context, work->span.stream), timeout_ns);
    return judge(work, status);
}

weft_status weft_stream_wait_work(weft_stream *stream, weft_work *work)
{
    WF_TRY(check(work, "weft_stream_wait_work", "work"));
    WF_TRY(wf_stream_check(work->context, stream, "weft_stream_wait_work"));
    return work->context->plugin->device->stream_wait_event(work->context->device, stream,
                                                            work->event);
}

weft_status weft_work_elapsed(weft_work *from, weft_work *to, int64_t *nanoseconds)
{
    WF_TRY(check(from, "weft_work_elapsed", "from"));
    WF_TRY(check(to, "weft_work_elapsed", "to"));
    if (nanoseconds == NULL) return wf_fail_null("weft_work_elapsed", "nanoseconds");
    if (from->context != to->context)
        return wf_fail(WEFT_ERR_INVALID,
                       "weft_work_elapsed: from and to belong to different contexts");
    if (!WF_HAS(from->context->plugin->device, event_elapsed))
        return wf_fail(WEFT_ERR_UNSUPPORTED,
                       "weft_work_elapsed: backend %s does not support timing",
                       from->context->plugin->name);
    return from->context->plugin->device->event_elapsed(from->context->device, from->event,
                                                        to->event, nanoseconds);
}
