/* waits.c - waits for signals: their description, and a record of those on streams, so that a
 * failed one can be named. */
#include "symm.h"

#include "kit/signals.h"
#include "weft/status.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const signs[] = {
    [WEFT_COMPARE_EQ] = "==", [WEFT_COMPARE_NE] = "!=", [WEFT_COMPARE_GE] = ">=",
    [WEFT_COMPARE_GT] = ">",  [WEFT_COMPARE_LE] = "<=", [WEFT_COMPARE_LT] = "<"};

uint64_t wf_symm_slot(const weft_symm *symm, uint32_t channel, int32_t from)
{
    uint64_t *pad = symm->handle.signals[symm->comm->rank];

    return atomic_load((_Atomic(uint64_t) *)&pad[wf_symm_index(symm, channel, from)]);
}

void wf_symm_print_wait(const weft_symm *symm, const struct wf_symm_wait *wait, struct wf_text *out)
{
    wf_text_add(out, "channel %" PRIu32 " of rank %d to be %s %" PRIu64, wait->channel,
                symm->comm->world_ranks[wait->peer], signs[wait->compare], wait->value);
    if (symm->host_memory)
        wf_text_add(out, " (it is %" PRIu64 ")", wf_symm_slot(symm, wait->channel, wait->peer));
}

void wf_symm_note_wait(weft_symm *symm, const struct wf_symm_wait *wait)
{
    weft_context *context = symm->comm->context;

    pthread_mutex_lock(&context->lock);
    symm->waits[symm->wait_count++ % WF_SYMM_WAITS] = *wait;
    atomic_fetch_add_explicit(&wf_symm_state(context)->noted_waits, 1, memory_order_relaxed);
    pthread_mutex_unlock(&context->lock);
}

/* True if WAIT is on STREAM (NULL: on any stream) and may be unsatisfied. */
static bool is_suspect(const weft_symm *symm, const struct wf_symm_wait *wait, const void *stream)
{
    if (stream != NULL && wait->stream != stream) return false;
    return !symm->host_memory || !kit_signal_matches(wf_symm_slot(symm, wait->channel, wait->peer),
                                                     wait->compare, wait->value);
}

void wf_symm_list_waits(const weft_symm *symm, const void *stream, struct wf_text *out)
{
    uint64_t count = symm->wait_count < WF_SYMM_WAITS ? symm->wait_count : WF_SYMM_WAITS;

    for (uint64_t i = symm->wait_count - count; i < symm->wait_count; i++) {
        const struct wf_symm_wait *wait = &symm->waits[i % WF_SYMM_WAITS];

        if (!is_suspect(symm, wait, stream)) continue;
        wf_text_add(out, "%s", out->length > 0 ? ", or for " : "");
        wf_symm_print_wait(symm, wait, out);
    }
}

/* Forget the waits on STREAM, which has drained.  The context's lock is held. */
static void forget_waits(weft_symm *symm, const void *stream)
{
    uint64_t kept = 0,
             first = symm->wait_count > WF_SYMM_WAITS ? symm->wait_count % WF_SYMM_WAITS : 0;
    uint64_t count = symm->wait_count < WF_SYMM_WAITS ? symm->wait_count : WF_SYMM_WAITS;
    struct wf_symm_wait waits[WF_SYMM_WAITS];

    for (uint64_t i = 0; i < count; i++) {
        const struct wf_symm_wait *wait = &symm->waits[(first + i) % WF_SYMM_WAITS];
        if (wait->stream != stream) waits[kept++] = *wait;
    }
    memcpy(symm->waits, waits, kept * sizeof *waits);
    symm->wait_count = kept;
}

static bool waits_on(const weft_symm *symm, const void *stream, bool any)
{
    uint64_t count = symm->wait_count < WF_SYMM_WAITS ? symm->wait_count : WF_SYMM_WAITS;
    bool found = false;

    for (uint64_t i = 0; i < count && !found; i++)
        found = any || symm->waits[i].stream == stream;
    return found;
}

/* A window with waits on STREAM whose communicator failed, or NULL.  Adds to *PENDING the waits
 * that are left. */
static weft_symm *find_failed(weft_context *context, const void *stream, bool any,
                              weft_status *status, uint64_t *pending)
{
    for (weft_symm *symm = wf_symm_state(context)->windows; symm != NULL; symm = symm->next) {
        if (!waits_on(symm, stream, any)) {
            *pending += symm->wait_count;
            continue;
        }
        *status = symm->symm_comm->table->async_error(symm->symm_comm->handle);
        if (*status != WEFT_OK) return symm;
        if (!any) forget_waits(symm, stream);
        *pending += symm->wait_count;
    }
    return NULL;
}

void wf_symm_report(const weft_comm *symm_comm, weft_status status, const char *text)
{
    if (symm_comm->context->client != NULL && symm_comm->size > 1)
        wf_client_abort(symm_comm->context->client, symm_comm->number, symm_comm->world_ranks,
                        symm_comm->size,
                        status == WEFT_ERR_TIMEOUT ? WEFT_ERR_TIMEOUT : WEFT_ERR_ABORTED, text);
}

/* Work on STREAM (NULL: on some stream) timed out.  If signal waits may be the cause, name them and
 * fail their communicator.  Returns WEFT_ERR_TIMEOUT. */
static weft_status blame_waits(weft_context *context, const void *stream)
{
    struct wf_text text = {0};
    weft_comm *symm_comm = NULL;
    char words[1024] = "out of memory";

    pthread_mutex_lock(&context->lock);
    for (weft_symm *symm = wf_symm_state(context)->windows; symm != NULL; symm = symm->next) {
        size_t before = text.length;

        wf_symm_list_waits(symm, stream, &text);
        if (text.length == before) continue;
        if (symm_comm == NULL) symm_comm = symm->symm_comm;
        symm->wait_count = 0; /* reported once */
    }
    if (symm_comm != NULL && !text.failed) {
        snprintf(words, sizeof words, "weft_symm_wait_from on %s: rank %d waited for %s: %s",
                 symm_comm->name, context->rank, text.data, weft_last_error());
        wf_comm_fail_locked(symm_comm, WEFT_ERR_TIMEOUT, words);
        (void)wf_fail(WEFT_ERR_TIMEOUT, "%s", words);
    }
    pthread_mutex_unlock(&context->lock);
    wf_text_free(&text);
    if (symm_comm != NULL) wf_symm_report(symm_comm, WEFT_ERR_TIMEOUT, words);
    return WEFT_ERR_TIMEOUT;
}

/* STREAM has drained: fails if a signal wait on it did. */
static weft_status check_drained(weft_context *context, const void *stream, bool any)
{
    struct wf_symm_state *state = wf_symm_state(context);
    weft_status status = WEFT_OK;
    weft_comm *symm_comm = NULL;
    weft_symm *failed;
    uint64_t pending = 0;

    if (atomic_load_explicit(&state->noted_waits, memory_order_relaxed) == 0) return WEFT_OK;
    pthread_mutex_lock(&context->lock);
    failed = find_failed(context, stream, any, &status, &pending);
    if (failed == NULL) atomic_store_explicit(&state->noted_waits, pending, memory_order_relaxed);
    if (failed != NULL) symm_comm = failed->symm_comm;
    if (failed != NULL && status != WEFT_ERR_TIMEOUT) failed->wait_count = 0; /* reported once */
    pthread_mutex_unlock(&context->lock);
    if (symm_comm == NULL) return WEFT_OK;
    if (status == WEFT_ERR_TIMEOUT) return blame_waits(context, any ? NULL : stream);
    return wf_comm_fault(symm_comm, status, "weft_symm_wait_from");
}

weft_status wf_symm_check_wait(weft_context *context, const void *stream, bool any,
                               weft_status status)
{
    if (status == WEFT_OK) return check_drained(context, stream, any);
    if (status == WEFT_ERR_TIMEOUT) return blame_waits(context, any ? NULL : stream);
    return status;
}
