/* ended.c - objects that outlive their context or communicator.
 *
 * The end of a context or communicator frees all resources of the backend, also those of objects
 * that the user still has.  Such an object refuses every call until the user releases it.  Streams
 * are the backend's own handles, so a context with unreleased streams is kept until they are
 * released. */
#include "comm/comm.h"

#include <stdio.h>

/* Contexts that were released before their streams and memory. */
static pthread_mutex_t ended_lock = PTHREAD_MUTEX_INITIALIZER;
static weft_context *ended;

weft_status wf_context_refuse(const weft_context *context, const char *function)
{
    if (context == NULL)
        return wf_fail(
            WEFT_ERR_INVALID,
            "%s: context is NULL: weft_init did not make it, or weft_context_release released it",
            function);
    if (context->made == WF_BETWEEN_GENERATIONS)
        return wf_fail(WEFT_ERR_INVALID,
                       "%s: generation %llu of the job has ended, and the next one was not made; "
                       "call weft_context_next or weft_context_release",
                       function, (unsigned long long)context->generation);
    if (context->made == wf_ended(WF_KIND_CONTEXT))
        return wf_fail(WEFT_ERR_INVALID, "%s: the context was released", function);
    return wf_fail_unusable(function, "context", context->made, WF_KIND_CONTEXT);
}

weft_status wf_comm_refuse(const weft_comm *comm, const char *function)
{
    if (comm == NULL)
        return wf_fail(WEFT_ERR_INVALID,
                       "%s: comm is NULL: a rank outside a communicator gets NULL from "
                       "weft_comm_along, weft_comm_create and weft_comm_split",
                       function);
    if (comm->made == wf_ended(WF_KIND_COMM) && comm->generation > 0)
        return wf_fail(WEFT_ERR_INVALID,
                       "%s on %s: generation %llu of the job has ended; its communicators ended "
                       "with it",
                       function, comm->name, (unsigned long long)comm->generation);
    if (comm->made == wf_ended(WF_KIND_COMM))
        return wf_fail(WEFT_ERR_INVALID,
                       "%s on %s: the context was released; its communicators ended with it",
                       function, comm->name);
    if (wf_is_usable(comm->made, WF_KIND_SIMULATED_COMM))
        return wf_fail(WEFT_ERR_UNSUPPORTED,
                       "%s on %s: the %d ranks of this context are simulated in one process and "
                       "cannot communicate; move tensors (weft_tensor_move), or start the ranks "
                       "(weft run -n %d)",
                       function, comm->name, comm->size, comm->size);
    return wf_fail_unusable(function, "comm", comm->made, WF_KIND_COMM);
}

/* ---- released objects ---- */

void wf_remnant_keep(weft_context *context, void *object)
{
    void **place, *oldest;

    pthread_mutex_lock(&context->lock);
    place = &context->remnants[context->remnant_count++ % WF_REMNANTS];
    oldest = *place;
    *place = object;
    pthread_mutex_unlock(&context->lock);
    wf_free(oldest);
}

void wf_remnants_free(weft_context *context)
{
    for (size_t i = 0; i < WF_REMNANTS; i++)
        wf_free(context->remnants[i]);
}

/* ---- dependents of a communicator ---- */

void wf_dependent_add(struct wf_dependent *dependent, weft_comm *comm)
{
    pthread_mutex_lock(&comm->context->lock);
    dependent->comm = comm;
    dependent->next = comm->dependents;
    dependent->at = &comm->dependents;
    if (dependent->next != NULL) dependent->next->at = &dependent->next;
    comm->dependents = dependent;
    pthread_mutex_unlock(&comm->context->lock);
}

void wf_dependent_remove(struct wf_dependent *dependent)
{
    weft_comm *comm = dependent->comm;

    if (comm == NULL) return;
    pthread_mutex_lock(&comm->context->lock);
    *dependent->at = dependent->next;
    if (dependent->next != NULL) dependent->next->at = dependent->at;
    dependent->comm = NULL;
    pthread_mutex_unlock(&comm->context->lock);
}

void wf_dependents_end(weft_comm *comm, const char *cause)
{
    while (comm->dependents != NULL) {
        struct wf_dependent *dependent = comm->dependents;

        wf_dependent_remove(dependent);
        dependent->end(dependent, cause);
    }
}

/* NULL: all have left.  The lock is held. */
static struct wf_dependent *next_to_leave(const weft_context *context)
{
    for (const weft_comm *comm = context->comms; comm != NULL; comm = comm->next)
        for (struct wf_dependent *at = comm->dependents; at != NULL; at = at->next)
            if (at->leave != NULL && !at->has_left) return at;
    return NULL;
}

void wf_dependents_leave(weft_context *context)
{
    struct wf_dependent *next;

    do {
        pthread_mutex_lock(&context->lock);
        next = next_to_leave(context);
        if (next != NULL) next->has_left = true;
        pthread_mutex_unlock(&context->lock);
        if (next != NULL) next->leave(next);
    } while (next != NULL);
}

/* ---- streams ---- */

/* The streams of all contexts that were not released, by wf_stream_place; also those of contexts
 * that have ended.  LOCK is taken after a context's. */
static struct {
    pthread_mutex_t lock;
    struct wf_stream_note *at[WF_STREAM_PLACES];
    _Atomic uint32_t generation; /* that made them */
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

void wf_stream_add(weft_context *context, struct wf_stream_note *note)
{
    struct wf_stream_note **at = &table.at[wf_stream_place(note->stream)];

    note->context = context;
    pthread_mutex_lock(&context->lock);
    note->number = ++context->stream_count;
    note->next = context->streams;
    context->streams = note;
    pthread_mutex_unlock(&context->lock);
    pthread_mutex_lock(&table.lock);
    atomic_store_explicit(&table.generation, atomic_load(&wf_generation), memory_order_relaxed);
    note->next_alike = *at;
    *at = note;
    pthread_mutex_unlock(&table.lock);
}

/* NULL: no context has such a stream.  The note is valid until the stream is released. */
static struct wf_stream_note *find_in_table(const void *stream)
{
    struct wf_stream_note *note;

    pthread_mutex_lock(&table.lock);
    note = table.at[wf_stream_place(stream)];
    while (note != NULL && note->stream != stream)
        note = note->next_alike;
    pthread_mutex_unlock(&table.lock);
    return note;
}

bool wf_streams_are_parents(void)
{
    return atomic_load_explicit(&table.generation, memory_order_relaxed) !=
           atomic_load_explicit(&wf_generation, memory_order_relaxed);
}

weft_context *wf_stream_maker(const void *stream)
{
    const struct wf_stream_note *note = wf_streams_are_parents() ? NULL : find_in_table(stream);

    return note != NULL ? note->context : NULL;
}

weft_status wf_stream_context(const void *stream, const char *function, weft_context **out)
{
    weft_context *context;

    if (stream == NULL)
        return wf_fail(WEFT_ERR_INVALID,
                       "%s: stream is NULL; for the default stream, use weft_context_wait",
                       function);
    context = wf_stream_maker(stream);
    if (context == NULL && wf_streams_are_parents()) return wf_fail_fork(function);
    if (context == NULL)
        return wf_fail(WEFT_ERR_INVALID, "%s: the stream was released, or is not a weft_stream",
                       function);
    WF_TRY(wf_context_check(context, function));
    *out = context;
    return WEFT_OK;
}

/* NULL: CONTEXT has no such stream.  The lock is held. */
static struct wf_stream_note *find_note(weft_context *context, const void *stream)
{
    struct wf_stream_note *note = find_in_table(stream);

    return note != NULL && note->context == context ? note : NULL;
}

weft_status wf_stream_find(weft_context *context, const void *stream, const char *function)
{
    size_t place = wf_stream_place(stream);
    const struct wf_stream_note *note;

    pthread_mutex_lock(&context->lock);
    note = find_note(context, stream);
    if (note != NULL)
        atomic_store_explicit(&context->known_streams[place], stream, memory_order_relaxed);
    pthread_mutex_unlock(&context->lock);
    if (note != NULL) return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID,
                   "%s: the stream does not belong to this context; it belongs to another context, "
                   "or was released",
                   function);
}

/* ---- their numbers and names ---- */

/* Increased when a stream is released: then the numbers that threads remember may be wrong. */
static _Atomic uint64_t streams_ended = 1;

static __thread struct {
    const weft_context *context;
    const void *stream;
    uint64_t ended, number;
} recent_stream;

uint64_t wf_stream_number_find(weft_context *context, const void *stream)
{
    uint64_t now = atomic_load_explicit(&streams_ended, memory_order_relaxed);
    const struct wf_stream_note *note;
    uint64_t number;

    if (recent_stream.stream == stream && recent_stream.context == context &&
        recent_stream.ended == now)
        return recent_stream.number;
    pthread_mutex_lock(&context->lock);
    note = find_note(context, stream);
    number = note != NULL ? note->number : 0;
    pthread_mutex_unlock(&context->lock);
    if (number == 0) return 0; /* a stream that another thread has released */
    recent_stream.context = context;
    recent_stream.stream = stream;
    recent_stream.ended = now;
    recent_stream.number = number;
    return number;
}

/* Where the name of STREAM is kept; NULL: CONTEXT has no such stream.  The lock is held. */
static uint32_t *find_name(weft_context *context, const void *stream)
{
    struct wf_stream_note *note;

    if (stream == NULL) return &context->default_stream_name;
    note = find_note(context, stream);
    return note != NULL ? &note->name : NULL;
}

const char *wf_stream_name(weft_context *context, const void *stream)
{
    const uint32_t *found;
    uint32_t name;

    pthread_mutex_lock(&context->lock);
    found = find_name(context, stream);
    name = found != NULL ? *found : 0;
    pthread_mutex_unlock(&context->lock);
    return wf_trace_text(context->trace, name);
}

#define STREAM_NAME_MOST 31

weft_status weft_stream_set_name(weft_context *context, weft_stream *stream, const char *name)
{
    uint32_t *found, text;

    WF_TRY(wf_context_check(context, "weft_stream_set_name"));
    WF_TRY(wf_stream_check(context, stream, "weft_stream_set_name"));
    if (name == NULL) return wf_fail_null("weft_stream_set_name", "name");
    text = wf_trace_intern_long(context->trace, name, STREAM_NAME_MOST);
    pthread_mutex_lock(&context->lock);
    found = find_name(context, stream);
    if (found != NULL) *found = text;
    pthread_mutex_unlock(&context->lock);
    wf_trace_name_stream(context->trace, wf_stream_number(context, stream), text);
    if (context->trace->export != NULL)
        wf_export_name_stream(context->trace->export, wf_stream_number(context, stream));
    return WEFT_OK;
}

static struct wf_stream_note *take_note(weft_context *context, const void *stream)
{
    struct wf_stream_note **at = &context->streams, *note;
    size_t place = wf_stream_place(stream);

    while (*at != NULL && (*at)->stream != stream)
        at = &(*at)->next;
    note = *at;
    if (note == NULL) return NULL;
    *at = note->next;
    pthread_mutex_lock(&table.lock);
    at = &table.at[place];
    while (*at != note)
        at = &(*at)->next_alike;
    *at = note->next_alike;
    pthread_mutex_unlock(&table.lock);
    atomic_store_explicit(&context->known_streams[place], NULL, memory_order_relaxed);
    atomic_fetch_add_explicit(&streams_ended, 1, memory_order_relaxed);
    return note;
}

void wf_stream_remove(weft_context *context, const void *stream)
{
    struct wf_stream_note *note;

    pthread_mutex_lock(&context->lock);
    note = take_note(context, stream);
    pthread_mutex_unlock(&context->lock);
    wf_free(note);
}

void wf_streams_end(weft_context *context)
{
    for (struct wf_stream_note *note = context->streams; note != NULL; note = note->next)
        context->plugin->device->stream_destroy(context->device, note->stream);
}

/* ---- contexts ---- */

/* NAMES: of some of them, "" or "; these have names: copy". */
static void warn_of(uint64_t count, const char *what, const char *names)
{
    if (count > 0)
        wf_log(WF_LOG_WARNING, "weft_context_release: %s not released: %llu%s", what,
               (unsigned long long)count, names);
}

#define LISTED_TENSORS 4

/* Tensors are dependents of the world.  Describes the newest ones.  Returns how many there are. */
static uint64_t warn_of_tensors(const weft_context *context)
{
    const struct wf_dependent *next = context->world != NULL ? context->world->dependents : NULL;
    struct wf_text list = {0}, one = {0};
    uint64_t count = 0;

    for (; next != NULL; next = next->next) {
        if (next->tensor == NULL ||
            !next->tensor->describe(next, count < LISTED_TENSORS ? &one : NULL))
            continue;
        if (count < LISTED_TENSORS && !one.failed)
            wf_text_add(&list, "%s%s", count == 0 ? ": " : ", ", one.data);
        wf_text_free(&one);
        count++;
    }
    if (count > LISTED_TENSORS)
        wf_text_add(&list, " and %llu more", (unsigned long long)(count - LISTED_TENSORS));
    warn_of(count, "tensors", list.failed || list.length == 0 ? "" : list.data);
    wf_text_free(&list);
    return count;
}

void wf_context_warn(weft_context *context)
{
    char names[256] = "";
    uint64_t streams = 0;
    size_t used = 0;

    for (const struct wf_stream_note *note = context->streams; note != NULL; note = note->next) {
        streams++;
        if (note->name == 0 || used >= sizeof names) continue;
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s",
                                 used == 0 ? "; these have names: " : ", ",
                                 wf_trace_text(context->trace, note->name));
    }
    warn_of(atomic_load(&context->live_bound), "bound plans", "");
    warn_of(streams, "streams", names);
    warn_of(wf_ledger_count(&context->ledger), "pieces of memory",
            warn_of_tensors(context) > 0 ? ", with the memory of tensors" : "");
}

static bool is_awaited(weft_context *context)
{
    return context->streams != NULL || wf_ledger_count(&context->ledger) > 0;
}

void wf_context_bury(weft_context *context)
{
    if (!is_awaited(context)) {
        wf_free(context);
        return;
    }
    pthread_mutex_lock(&ended_lock);
    context->next_ended = ended;
    ended = context;
    pthread_mutex_unlock(&ended_lock);
}

void wf_stream_forget(const void *stream)
{
    struct wf_stream_note *note = NULL;
    weft_context **at;

    pthread_mutex_lock(&ended_lock);
    for (at = &ended; *at != NULL; at = &(*at)->next_ended) {
        weft_context *context = *at;

        note = take_note(context, stream);
        if (note == NULL) continue;
        if (!is_awaited(context)) {
            *at = context->next_ended;
            wf_free(context);
        }
        break;
    }
    pthread_mutex_unlock(&ended_lock);
    wf_free(note);
}
