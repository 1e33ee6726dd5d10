/* release.c - the end of windows: all ranks release one together, or it ends with its communicator.
 * Until then its memory cannot be freed. */
#include "symm.h"

#include "comm/recording.h"
#include "weft/status.h"

#include <inttypes.h>
#include <stdio.h>

/* How long to wait for the cause of another rank's failed release. */
#define CAUSE_NS WF_SECOND_NS

/* Memory of CONTEXT ends: communicators ask the device again for the memory that they know. */
static void forget_rooms(weft_context *context)
{
    atomic_fetch_add_explicit(&context->ledger.frees, 1, memory_order_relaxed);
}

static void delist(weft_symm *symm, weft_context *context)
{
    weft_symm **at = &wf_symm_state(context)->windows;

    pthread_mutex_lock(&context->lock);
    while (*at != NULL && *at != symm)
        at = &(*at)->next;
    if (*at != NULL) *at = symm->next;
    pthread_mutex_unlock(&context->lock);
}

/* With WEFT_CHECK: fails unless all ranks release the same window.  STATUS is this rank's. */
static weft_status agree_on_end(const weft_symm *symm, weft_status status)
{
    weft_comm *comm = symm->comm;
    struct wf_gathered got;
    char label[160];

    if (!comm->context->config->check) return status;
    snprintf(label, sizeof label, "the release of symmetric memory #%" PRIu64 " on %s",
             symm->number, comm->name);
    WF_TRY(wf_comm_agree(comm, label, status, (weft_blob){"", 0}, &got));
    wf_gathered_free(&got);
    return WEFT_OK;
}

/* The plugin failed to end the window, with STATUS: fail the communicator on all ranks, with the
 * cause.  All ranks may time out at once; a rank with pending waits knows the cause, so the others
 * wait for its report. */
static void break_off(const weft_symm *symm, weft_status status, const char *waits)
{
    weft_comm *symm_comm = symm->symm_comm;
    bool waited = waits != NULL && waits[0] != '\0';
    char own[512], text[1024];

    snprintf(own, sizeof own, "%s", weft_last_error());
    if (!waited) wf_comm_wait_cause(symm_comm, CAUSE_NS);
    snprintf(text, sizeof text, "weft_symm_release on %s: rank %d%s%.400s%s: %s", symm_comm->name,
             symm_comm->context->rank, waited ? ", with a wait for " : "", waited ? waits : "",
             waited ? " on a stream" : "", own);
    if (!wf_comm_has_failed(symm_comm)) wf_symm_report(symm_comm, status, text);
    wf_comm_fail(symm_comm, status, text);
    (void)wf_comm_cause(symm_comm);
    wf_log(WF_LOG_WARNING, "symmetric memory #%" PRIu64 " is not freed: %s", symm->number,
           weft_last_error());
}

/* This rank does not take part in the release.  REASON may be known only here. */
static void stay_away(const weft_comm *symm_comm, weft_status status, const char *reason)
{
    char text[1024];

    if (status == WEFT_ERR_ABORTED || status == WEFT_ERR_PEER) return; /* all ranks know of these */
    snprintf(text, sizeof text, "weft_symm_release on %s: rank %d: %.800s", symm_comm->name,
             symm_comm->context->rank, reason);
    wf_symm_report(symm_comm, status, text);
}

static weft_status end_window(weft_symm *symm)
{
    weft_comm *symm_comm = symm->symm_comm;
    bool had_failed = !wf_comm_may_begin(symm_comm);
    weft_status status, ended;
    struct wf_text waits = {0};
    char text[1024];

    status = agree_on_end(symm, had_failed ? wf_comm_fail_limited(symm_comm) : WEFT_OK);
    if (status != WEFT_OK) {
        snprintf(text, sizeof text, "%s", weft_last_error());
        if (!had_failed) wf_log(WF_LOG_WARNING, "weft_symm_release: %s", text);
        wf_comm_fail(symm_comm, status, text); /* ends waits for signals */
        if (had_failed) stay_away(symm_comm, status, text);
    }
    pthread_mutex_lock(&symm_comm->context->lock);
    wf_symm_list_waits(symm, NULL, &waits);
    pthread_mutex_unlock(&symm_comm->context->lock);
    ended = symm->table->window_destroy(symm->window);
    if (ended != WEFT_OK && status == WEFT_OK) break_off(symm, ended, waits.data);
    wf_text_free(&waits);
    return status != WEFT_OK ? status : ended;
}

void weft_symm_release(weft_symm **held)
{
    struct wf_submitted record;
    weft_context *context;
    weft_symm *symm;

    if (held == NULL || *held == NULL) return;
    symm = *held;
    *held = NULL;
    if (!wf_is_usable(symm->made, WF_KIND_SYMM)) {
        wf_warn_unusable("weft_symm_release", symm->made, WF_KIND_SYMM);
        return;
    }
    if (symm->window == NULL) { /* its context may have ended */
        symm->made = wf_released(WF_KIND_SYMM);
        wf_free(symm);
        return;
    }
    context = symm->comm->context;
    delist(symm, context);
    record = wf_record_creation(symm->comm, WEFT_RECORD_RELEASE, "weft_symm_release", NULL, 0);
    (void)wf_record_created(symm->comm, record, end_window(symm));
    forget_rooms(context);
    symm->window = NULL;
    symm->made = wf_released(WF_KIND_SYMM);
    wf_remnant_keep(context, symm);
}

/* The context's lock is held. */
static void stop_waits(const weft_symm *symm, const char *cause)
{
    char text[256];

    if (symm->wait_count == 0) return;
    snprintf(text, sizeof text, "%s ended with waits for signals on its symmetric memory", cause);
    wf_comm_fail_locked(symm->symm_comm, WEFT_ERR_ABORTED, text);
}

void wf_symm_comm_ends(weft_comm *comm, const char *cause)
{
    weft_context *context = comm->context;
    weft_symm **at = &wf_symm_state(context)->windows;

    pthread_mutex_lock(&context->lock);
    while (*at != NULL) {
        weft_symm *symm = *at;

        if (symm->comm != comm) {
            at = &symm->next;
            continue;
        }
        stop_waits(symm, comm->name);
        *at = symm->next;
        symm->window = NULL;
        forget_rooms(context);
        snprintf(symm->ended, sizeof symm->ended, "%s", cause);
        wf_log(comm->generation > 0 ? WF_LOG_DEBUG : WF_LOG_WARNING,
               "communicator %s ends, but its symmetric memory is not released", comm->name);
    }
    pthread_mutex_unlock(&context->lock);
}

void wf_symm_stop(weft_context *context)
{
    pthread_mutex_lock(&context->lock);
    for (weft_symm *symm = wf_symm_state(context)->windows; symm != NULL; symm = symm->next)
        stop_waits(symm, "the job");
    pthread_mutex_unlock(&context->lock);
}

/* ---- memory that is in use ---- */

/* The memory that freeing POINTER would free, as far as the backend knows. */
static void find_extent(weft_context *context, const void *pointer, uintptr_t *start,
                        uint64_t *bytes)
{
    weft_pointer_info info = {.struct_size = sizeof info};

    *start = (uintptr_t)pointer;
    *bytes = 1;
    if (context->plugin->device->query_pointer(context->device, pointer, &info) != WEFT_OK) return;
    if (info.base == pointer && info.bytes > 0) *bytes = info.bytes;
}

static bool overlaps(const weft_symm *symm, uintptr_t start, uint64_t bytes)
{
    uintptr_t local = (uintptr_t)symm->local;
    uint64_t room = symm->bytes > 0 ? symm->bytes : 1;

    return start < local + room && local < start + bytes;
}

weft_status wf_symm_check_register(weft_context *context, const void *memory, uint64_t bytes)
{
    weft_status status = WEFT_OK;
    const weft_symm *symm;

    pthread_mutex_lock(&context->lock);
    symm = wf_symm_state(context)->windows;
    while (symm != NULL && (symm->registered || !overlaps(symm, (uintptr_t)memory, bytes)))
        symm = symm->next;
    if (symm != NULL)
        status = wf_fail(WEFT_ERR_INVALID,
                         "weft_symm_register: %p belongs to symmetric memory that weft_symm_create "
                         "allocated on %s",
                         memory, symm->comm->name);
    pthread_mutex_unlock(&context->lock);
    return status;
}

weft_status wf_symm_check_free(weft_context *context, const void *pointer)
{
    weft_status status = WEFT_OK;
    const weft_symm *symm;
    uintptr_t start;
    uint64_t bytes;

    pthread_mutex_lock(&context->lock);
    symm = wf_symm_state(context)->windows;
    pthread_mutex_unlock(&context->lock);
    if (symm == NULL) return WEFT_OK;
    find_extent(context, pointer, &start, &bytes);
    pthread_mutex_lock(&context->lock);
    symm = wf_symm_state(context)->windows;
    while (symm != NULL && !overlaps(symm, start, bytes))
        symm = symm->next;
    if (symm != NULL && symm->registered)
        status = wf_fail(WEFT_ERR_INVALID,
                         "weft_free: the memory at %p is registered as symmetric memory on %s; "
                         "call weft_symm_release first",
                         pointer, symm->comm->name);
    else if (symm != NULL)
        status = wf_fail(WEFT_ERR_INVALID,
                         "weft_free: %p belongs to symmetric memory on %s; weft_symm_release frees "
                         "it",
                         pointer, symm->comm->name);
    pthread_mutex_unlock(&context->lock);
    return status;
}
