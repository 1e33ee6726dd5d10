/* posts.c - work that communicators have posted to streams, and its outcome. */
#include "comm.h"
#include "comm/context/timing.h"

#include "weft/status.h"

#include <stdio.h>

/* How long to wait for work of a failed communicator.  It ends soon, unless it is queued behind
 * other work. */
#define DRAIN_NS (2 * WF_SECOND_NS)

static uint64_t load(_Atomic uint64_t *number)
{
    return atomic_load_explicit(number, memory_order_relaxed);
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t tick(weft_context *context)
{
    return atomic_fetch_add(&context->clock, 1) + 1;
}

/* ---- called by the posting thread ---- */

static bool is_settled(struct wf_posts *posts)
{
    return load(&posts->last) < load(&posts->settled);
}

static struct wf_posts *find_kept(struct wf_posts_list *list, const void *stream)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (list->kept[i].stream == stream) return &list->kept[i];
    return NULL;
}

/* A free or settled record, for STREAM; without one, the record for all other streams.  The
 * context's lock is held. */
static struct wf_posts *make_room(struct wf_posts_list *list, const void *stream)
{
    struct wf_posts *room = NULL;

    if (list->count < WF_POST_STREAMS) room = &list->kept[list->count++];
    for (uint32_t i = 0; i < WF_POST_STREAMS && room == NULL; i++)
        if (is_settled(&list->kept[i]) && list->kept[i].failed_until == 0) room = &list->kept[i];
    if (room == NULL) return &list->overflow;
    *room = (struct wf_posts){.stream = stream, .settled = 1};
    return room;
}

void wf_posts_begin(struct wf_posts_list *list)
{
    list->overflow = (struct wf_posts){.settled = 1, .is_overflow = true};
}

void wf_posts_find(weft_comm *comm, const void *stream)
{
    weft_context *context = comm->context;
    struct wf_posts *found = find_kept(&comm->posts, stream);

    if (load(&context->reported) != 0) wf_posts_acknowledge(context, stream);
    if (found == NULL) {
        pthread_mutex_lock(&context->lock);
        found = make_room(&comm->posts, stream);
        atomic_store(&context->uses_streams, true);
        pthread_mutex_unlock(&context->lock);
    }
    comm->posts.recent = found;
}

void wf_posts_add_onesided(weft_comm *comm, const void *stream)
{
    weft_context *context = comm->context;
    struct wf_posts *found;

    if (comm->done_on_return && stream == NULL) return;
    if (load(&context->reported) != 0) wf_posts_acknowledge(context, stream);
    pthread_mutex_lock(&context->lock);
    found = find_kept(&comm->onesided_posts, stream);
    if (found == NULL) found = make_room(&comm->onesided_posts, stream);
    wf_posts_extend(found, atomic_load(&context->clock));
    atomic_store(&context->uses_streams, true);
    pthread_mutex_unlock(&context->lock);
}

void wf_posts_start_group(weft_comm *comm)
{
    uint64_t now = atomic_load(&comm->context->clock);

    for (uint32_t i = 0; i < comm->posts.count; i++) {
        struct wf_posts *posts = &comm->posts.kept[i];

        if (!posts->in_group) continue;
        posts->in_group = false;
        wf_posts_extend(posts, now);
    }
}

/* ---- called by a waiting thread with the context's lock held ---- */

static bool is_on(const struct wf_posts *posts, const struct wf_span *span)
{
    return span->any || posts->is_overflow || posts->stream == span->stream;
}

/* True if SPAN covers unsettled work of POSTS.  With FAILED, the stream itself reports a failure,
 * and work that has failed counts too. */
static bool is_covered(struct wf_posts *posts, const struct wf_span *span, bool failed)
{
    if (!is_on(posts, span)) return false;
    if (posts->failed_until > 0 && posts->failed_from < span->until &&
        (failed || span->until <= posts->failed_until))
        return true;
    return !is_settled(posts) && later(load(&posts->first), load(&posts->settled)) < span->until;
}

static struct wf_posts *list_at(struct wf_posts_list *list, uint32_t i)
{
    return i < list->count ? &list->kept[i] : &list->overflow;
}

/* The owner of work on streams: a communicator, or the remains of a released one. */
struct owner {
    weft_comm *comm;
    struct wf_remains *remains;
};

static struct owner first_owner(const weft_context *context)
{
    return (struct owner){context->comms, context->comms == NULL ? context->remains : NULL};
}

static struct owner next_owner(const weft_context *context, const struct owner *owner)
{
    weft_comm *next = owner->comm != NULL ? owner->comm->next : NULL;

    if (owner->remains != NULL) return (struct owner){NULL, owner->remains->next};
    return (struct owner){next, next == NULL ? context->remains : NULL};
}

static bool is_owner(const struct owner *owner)
{
    return owner->comm != NULL || owner->remains != NULL;
}

#define FOR_OWNERS(owner, context)                                                                 \
    for (struct owner owner = first_owner(context); is_owner(&(owner));                            \
         (owner) = next_owner(context, &(owner)))

/* The I-th record of OWNER, NULL after the last. */
static struct wf_posts *posts_at(const struct owner *owner, uint32_t i)
{
    weft_comm *comm = owner->comm;
    struct wf_posts_list *posts = comm != NULL ? &comm->posts : &owner->remains->posts;
    struct wf_posts_list *onesided =
        comm != NULL ? &comm->onesided_posts : &owner->remains->onesided_posts;

    if (i <= posts->count) return list_at(posts, i);
    i -= posts->count + 1;
    return i <= onesided->count ? list_at(onesided, i) : NULL;
}

static bool has_part(const struct owner *owner, const struct wf_span *span, bool failed)
{
    struct wf_posts *posts;

    for (uint32_t i = 0; (posts = posts_at(owner, i)) != NULL; i++)
        if (is_covered(posts, span, failed)) return true;
    return false;
}

/* True if OWNER has failed.  *CAUSE is the plugin's error if the communicator does not know of it
 * yet. */
static bool has_failed(const struct owner *owner, weft_status *cause)
{
    weft_comm *comm = owner->comm;

    *cause = WEFT_OK;
    if (comm == NULL || atomic_load_explicit(&comm->cause, memory_order_acquire) != WEFT_OK)
        return true;
    *cause = comm->table->async_error(comm->handle);
    return *cause != WEFT_OK;
}

static struct owner find_failed(weft_context *context, const struct wf_span *span, bool failed,
                                weft_status *cause)
{
    FOR_OWNERS(owner, context)
    if (has_part(&owner, span, failed) && has_failed(&owner, cause)) return owner;
    return (struct owner){NULL, NULL};
}

static void settle(weft_context *context, const struct wf_span *span)
{
    struct wf_posts *posts;

    FOR_OWNERS(owner, context)
    for (uint32_t i = 0; (posts = posts_at(&owner, i)) != NULL; i++)
        if (!posts->is_overflow && posts->stream == span->stream &&
            load(&posts->settled) < span->until)
            atomic_store(&posts->settled, span->until);
}

/* Works recorded on POSTS' stream before UNTIL have failed.  Later ones are not affected. */
static void mark_failed(struct wf_posts *posts, uint64_t until)
{
    if (posts->failed_until == 0)
        posts->failed_from = later(load(&posts->first), load(&posts->settled));
    posts->failed_until = later(posts->failed_until, until);
    posts->reported_at = 0;
    atomic_store(&posts->settled, later(load(&posts->settled), until));
}

/* The caller is about to return the failure of SPAN. */
static void note_reported(weft_context *context, const struct wf_span *span)
{
    uint64_t now = tick(context);
    struct wf_posts *posts;

    FOR_OWNERS(owner, context)
    {
        if (owner.comm != NULL && atomic_load(&owner.comm->cause) == WEFT_OK) continue;
        for (uint32_t i = 0; (posts = posts_at(&owner, i)) != NULL; i++)
            if (posts->reported_at == 0 && is_covered(posts, span, false) && !is_settled(posts)) {
                posts->reported_at = now;
                atomic_fetch_add(&context->reported, 1);
            }
    }
}

/* ---- the calls ---- */

struct wf_span wf_span_begin(weft_context *context, const void *stream)
{
    struct wf_trace *trace = atomic_load_explicit(&context->tracing, memory_order_relaxed);
    struct wf_span span = {.stream = stream};

    if (trace != NULL) {
        span.number = wf_stream_number(context, stream);
        span.newest =
            atomic_load_explicit(wf_trace_chain(trace, span.number), memory_order_acquire);
    }
    if (atomic_load_explicit(&context->uses_streams, memory_order_acquire))
        span.until = tick(context);
    return span;
}

/* Report why COMM failed.  `describe_lock` is held, so COMM is not released meanwhile. */
static weft_status explain(weft_comm *comm, const struct wf_span *span, weft_status cause)
{
    const char *stream = span->any ? "" : wf_stream_name(comm->context, span->stream);
    char what[3 * WF_RUNS_TEXT];

    if (cause == WEFT_OK) return wf_comm_cause(comm);
    wf_runs_describe_last(comm, stream, what, sizeof what);
    return wf_comm_fault(comm, cause, what);
}

static weft_status blame(weft_context *context, const struct wf_span *span, weft_status status)
{
    weft_status cause = WEFT_OK;
    struct owner failed_owner;

    pthread_mutex_lock(&context->describe_lock);
    pthread_mutex_lock(&context->lock);
    failed_owner = find_failed(context, span, status != WEFT_OK, &cause);
    if (failed_owner.remains != NULL)
        status = wf_fail(failed_owner.remains->status, "%s", failed_owner.remains->text);
    pthread_mutex_unlock(&context->lock);
    if (failed_owner.comm != NULL) status = explain(failed_owner.comm, span, cause);
    if (is_owner(&failed_owner)) {
        pthread_mutex_lock(&context->lock);
        note_reported(context, span);
        pthread_mutex_unlock(&context->lock);
    }
    pthread_mutex_unlock(&context->describe_lock);
    return status;
}

/* The work in SPAN has ended: complete, or with an error of some of its communicators. */
static void end_records(weft_context *context, const struct wf_span *span, weft_status status)
{
    if (span->any) return;
    if (status == WEFT_OK)
        wf_trace_finish_chain(context->trace, span->newest, span->number, false);
    else
        wf_trace_fail_chain(context->trace, span->newest, span->number);
}

static weft_status judge_posts(weft_context *context, const struct wf_span *span,
                               weft_status status)
{
    struct owner failed_owner;
    weft_status cause;

    if (span->until == 0) return status;
    pthread_mutex_lock(&context->lock);
    failed_owner = find_failed(context, span, status != WEFT_OK, &cause);
    if (!is_owner(&failed_owner) && status == WEFT_OK && !span->any) settle(context, span);
    pthread_mutex_unlock(&context->lock);
    return is_owner(&failed_owner) ? blame(context, span, status) : status;
}

weft_status wf_span_judge(weft_context *context, const struct wf_span *span, weft_status status)
{
    status = judge_posts(context, span, status);
    if (status == WEFT_OK && context->timing != NULL)
        wf_timing_collect(context->timing, span->stream, span->any);
    if (span->newest != 0) end_records(context, span, status);
    return status;
}

void wf_span_drop(weft_context *context, const struct wf_span *span)
{
    struct wf_posts *posts;
    weft_status cause;

    if (span->until == 0) return;
    pthread_mutex_lock(&context->lock);
    FOR_OWNERS(owner, context)
    {
        if (!has_part(&owner, span, false) || !has_failed(&owner, &cause)) continue;
        for (uint32_t i = 0; (posts = posts_at(&owner, i)) != NULL; i++) {
            if (posts->is_overflow || posts->stream != span->stream || is_settled(posts)) continue;
            if (posts->reported_at > 0) atomic_fetch_sub(&context->reported, 1);
            mark_failed(posts, span->until);
        }
    }
    settle(context, span);
    pthread_mutex_unlock(&context->lock);
}

/* ---- work in progress after a failure ---- */

/* True if COMM or its groups have unsettled work on STREAM, or with ANY on any stream. */
static bool is_used(weft_comm *comm, const void *stream, bool any)
{
    struct wf_span all = {.stream = stream, .until = UINT64_MAX, .any = any};
    bool used;

    pthread_mutex_lock(&comm->context->lock);
    used = has_part(&(struct owner){comm, NULL}, &all, false);
    for (weft_comm *group = comm->groups; group != NULL && !used; group = group->next_group)
        used = has_part(&(struct owner){group, NULL}, &all, false);
    pthread_mutex_unlock(&comm->context->lock);
    return used;
}

/* True if COMM or one of its groups has failed.  Then all of them fail, so that their work ends. */
static bool family_failed(weft_comm *comm)
{
    bool failed = weft_comm_async_error(comm) != WEFT_OK;

    for (weft_comm *group = comm->groups; group != NULL; group = group->next_group)
        if (!failed) failed = weft_comm_async_error(group) != WEFT_OK;
    return failed;
}

/* The I-th stream of CONTEXT, from 1; the 0th is NULL.  False: there are fewer. */
static bool stream_at(weft_context *context, uint32_t i, struct wf_stream_note *out)
{
    const struct wf_stream_note *note;

    *out = (struct wf_stream_note){.stream = NULL};
    if (i == 0) return true;
    pthread_mutex_lock(&context->lock);
    for (note = context->streams; note != NULL && i > 1; i--)
        note = note->next;
    if (note != NULL) *out = *note;
    pthread_mutex_unlock(&context->lock);
    return out->stream != NULL;
}

static bool drain_streams(weft_comm *comm)
{
    weft_context *context = comm->context;
    const weft_device_table *table = context->plugin->device;
    uint64_t deadline_ns = wf_deadline(DRAIN_NS);
    struct wf_stream_note note;

    if (!family_failed(comm)) return true;
    for (uint32_t i = 0; stream_at(context, i, &note); i++) {
        if (note.is_wrapped || !is_used(comm, note.stream, false)) continue;
        (void)table->stream_wait(context->device, note.stream, wf_time_left(deadline_ns));
        if (table->stream_query(context->device, note.stream) == WEFT_IN_PROGRESS) return false;
    }
    return true;
}

bool wf_posts_drain(weft_comm *comm)
{
    char text[2048], vendor[32];
    const char *named;
    int64_t code;
    bool drained;

    if (!is_used(comm, NULL, true)) return true;
    /* The caller may be about to return this error; what follows has errors of its own. */
    snprintf(text, sizeof text, "%s", weft_last_error());
    named = weft_last_error_vendor(&code);
    snprintf(vendor, sizeof vendor, "%s", named != NULL ? named : "");
    drained = drain_streams(comm);
    wf_fail_vendor(WEFT_OK, named != NULL ? vendor : NULL, code, text);
    return drained;
}

/* ---- ended communicators ---- */

/* True if OWNER has unsettled work.  Settles work whose failure was reported. */
static bool is_left(weft_context *context, const struct owner *owner)
{
    uint64_t now = tick(context);
    struct wf_posts *posts;
    bool found = false;

    for (uint32_t i = 0; (posts = posts_at(owner, i)) != NULL; i++) {
        if (posts->reported_at > 0) {
            atomic_fetch_sub(&context->reported, 1);
            posts->reported_at = 0;
            atomic_store(&posts->settled, now);
        }
        if (!is_settled(posts)) found = true;
    }
    return found;
}

static void drop_oldest(weft_context *context)
{
    struct wf_remains **at = &context->remains;
    struct wf_posts *posts;

    for (int i = 0; *at != NULL && i < WF_REMAINS - 1; i++)
        at = &(*at)->next;
    while (*at != NULL) {
        struct wf_remains *oldest = *at;

        for (uint32_t i = 0; (posts = posts_at(&(struct owner){NULL, oldest}, i)) != NULL; i++)
            if (posts->reported_at > 0) atomic_fetch_sub(&context->reported, 1);
        *at = oldest->next;
        wf_free(oldest);
    }
}

/* Keep the cause of COMM, which has failed, beyond its end. */
static void describe_failure(weft_comm *comm, weft_status cause, struct wf_remains *out)
{
    out->status = cause != WEFT_OK ? cause : atomic_load(&comm->cause);
    snprintf(out->text, sizeof out->text, "%s",
             cause != WEFT_OK ? weft_last_error() : comm->cause_text);
}

void wf_posts_end(weft_comm *comm)
{
    weft_context *context = comm->context;
    struct owner owner = {comm, NULL};
    struct wf_remains *remains;
    weft_status cause;

    if (!is_left(context, &owner) || !has_failed(&owner, &cause)) return;
    remains = wf_alloc(sizeof *remains);
    if (remains == NULL) {
        wf_log(WF_LOG_WARNING, "out of memory: waits for streams will not report that %s failed",
               comm->name);
        return;
    }
    *remains = (struct wf_remains){.posts = comm->posts, .onesided_posts = comm->onesided_posts};
    describe_failure(comm, cause, remains);
    drop_oldest(context);
    remains->next = context->remains;
    context->remains = remains;
}

void wf_remains_free(weft_context *context)
{
    while (context->remains != NULL) {
        struct wf_remains *next = context->remains->next;

        wf_free(context->remains);
        context->remains = next;
    }
}

void wf_posts_acknowledge(weft_context *context, const void *stream)
{
    struct wf_posts *posts;

    pthread_mutex_lock(&context->lock);
    FOR_OWNERS(owner, context)
    for (uint32_t i = 0; (posts = posts_at(&owner, i)) != NULL; i++) {
        if (posts->reported_at == 0 || (!posts->is_overflow && posts->stream != stream)) continue;
        atomic_fetch_sub(&context->reported, 1);
        mark_failed(posts, posts->reported_at);
    }
    pthread_mutex_unlock(&context->lock);
}
