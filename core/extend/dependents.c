/* dependents.c - objects of other libraries that end with a communicator. */
#include "comm/comm.h"

#include "weft/extend.h"

struct weft_dependent {
    struct wf_dependent link; /* first: `end` gets it */
    weft_comm *comm;
    const weft_dependent_calls *calls;
    void *user;
};

/* ---- what was found ---- */

/* CALLS has another newest dependent of COMM.  The lock is held. */
static void forget(weft_comm *comm, const weft_dependent_calls *calls)
{
    for (size_t i = 0; i < WF_COUNT(comm->found); i++)
        if (atomic_load_explicit(&comm->found[i].calls, memory_order_relaxed) == calls)
            atomic_store_explicit(&comm->found[i].user, NULL, memory_order_release);
}

/* The next weft_dependent_find takes no lock.  An entry stays that of its calls.  The lock is
 * held. */
static void remember(weft_comm *comm, const weft_dependent_calls *calls, void *user)
{
    for (size_t i = 0; i < WF_COUNT(comm->found); i++) {
        const void *of = atomic_load_explicit(&comm->found[i].calls, memory_order_relaxed);

        if (of != NULL && of != calls) continue;
        atomic_store_explicit(&comm->found[i].user, user, memory_order_release);
        atomic_store_explicit(&comm->found[i].calls, calls, memory_order_release);
        return;
    }
}

static void *find_remembered(weft_comm *comm, const weft_dependent_calls *calls)
{
    for (size_t i = 0; i < WF_COUNT(comm->found); i++)
        if (atomic_load_explicit(&comm->found[i].calls, memory_order_acquire) == calls)
            return atomic_load_explicit(&comm->found[i].user, memory_order_acquire);
    return NULL;
}

/* ---- dependents ---- */

static void change(weft_comm *comm, const weft_dependent_calls *calls)
{
    pthread_mutex_lock(&comm->context->lock);
    forget(comm, calls);
    pthread_mutex_unlock(&comm->context->lock);
}

static void end(struct wf_dependent *self, const char *cause)
{
    const weft_dependent *dependent = (const weft_dependent *)self;

    change(dependent->comm, dependent->calls);
    if (dependent->calls->end != NULL) dependent->calls->end(dependent->user, cause);
}

static void leave(struct wf_dependent *self)
{
    const weft_dependent *dependent = (const weft_dependent *)self;

    if (dependent->calls->leave != NULL) dependent->calls->leave(dependent->user);
}

weft_status weft_dependent_create(weft_comm *comm, const weft_dependent_calls *calls, void *user,
                                  weft_dependent **out)
{
    weft_dependent *dependent;

    if (comm == NULL || !wf_is_usable(comm->made, WF_KIND_SIMULATED_COMM))
        WF_TRY(wf_comm_check(comm, "weft_dependent_create"));
    WF_TRY(wf_require(calls, "weft_dependent_create: calls"));
    WF_TRY(wf_require(out, "weft_dependent_create: out"));
    dependent = wf_calloc(1, sizeof *dependent);
    if (dependent == NULL) return wf_fail_memory(sizeof *dependent);
    dependent->comm = comm;
    dependent->calls = calls;
    dependent->user = user;
    dependent->link.end = end;
    dependent->link.leave = leave;
    wf_dependent_add(&dependent->link, comm);
    change(comm, calls);
    *out = dependent;
    return WEFT_OK;
}

void *weft_dependent_find(weft_comm *comm, const weft_dependent_calls *calls)
{
    void *found;

    if (comm == NULL || comm->context == NULL) return NULL;
    found = find_remembered(comm, calls);
    if (found != NULL) return found;
    pthread_mutex_lock(&comm->context->lock);
    for (struct wf_dependent *at = comm->dependents; at != NULL && found == NULL; at = at->next)
        if (at->end == end && ((const weft_dependent *)at)->calls == calls)
            found = ((const weft_dependent *)at)->user;
    if (found != NULL) remember(comm, calls, found);
    pthread_mutex_unlock(&comm->context->lock);
    return found;
}

void weft_dependent_release(weft_dependent **dependent)
{
    if (dependent == NULL || *dependent == NULL) return;
    if ((*dependent)->link.comm != NULL) {
        wf_dependent_remove(&(*dependent)->link);
        change((*dependent)->comm, (*dependent)->calls);
    }
    wf_free(*dependent);
    *dependent = NULL;
}
