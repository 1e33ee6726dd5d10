/* saving.c - tensors are saved while the caller goes on.
 *
 * A context lists its savings.  It waits for them before it leaves the job, because their threads
 * meet the other ranks. */
#include "store.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

struct weft_saving {
    uint64_t made;        /* of fork.h */
    struct savings *list; /* NULL: its thread has ended and was joined */
    weft_saving *next;
    struct wf_save save;
    pthread_t thread;
    int64_t copy_ns;
    pthread_mutex_t guard;
    pthread_cond_t changed; /* `ended` */
    bool ended, was_told;
    weft_status status;
    char error[2048];
};

/* A context's. */
struct savings {
    pthread_mutex_t guard;
    weft_saving *first;
};

/* ---- the thread ---- */

static void *saving_main(void *argument)
{
    weft_saving *saving = argument;
    weft_status status = wf_save_finish(&saving->save);

    pthread_mutex_lock(&saving->guard);
    saving->status = status;
    if (status != WEFT_OK) snprintf(saving->error, sizeof saving->error, "%s", weft_last_error());
    saving->ended = true;
    pthread_cond_broadcast(&saving->changed);
    pthread_mutex_unlock(&saving->guard);
    return NULL;
}

/* Without a thread, the calling one does the work: the other ranks expect this one. */
static void start(weft_saving *saving, struct savings *list)
{
    sigset_t all, before;
    int error;

    sigfillset(&all); /* signals are the caller's */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&saving->thread, NULL, saving_main, saving);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error != 0) {
        saving_main(saving);
        return;
    }
    pthread_mutex_lock(&list->guard);
    saving->list = list;
    saving->next = list->first;
    list->first = saving;
    pthread_mutex_unlock(&list->guard);
}

/* Wait for the thread, and take SAVING out of its list. */
static void join(weft_saving *saving)
{
    struct savings *list = saving->list;

    if (list == NULL) return;
    pthread_join(saving->thread, NULL);
    pthread_mutex_lock(&list->guard);
    for (weft_saving **at = &list->first; *at != NULL; at = &(*at)->next)
        if (*at == saving) {
            *at = saving->next;
            break;
        }
    pthread_mutex_unlock(&list->guard);
    saving->list = NULL;
}

/* ---- the public functions ---- */

static weft_status make_saving(weft_saving **out)
{
    weft_saving *saving = wf_calloc(1, sizeof *saving);
    pthread_condattr_t monotonic;

    if (saving == NULL) return wf_fail_memory(sizeof *saving);
    saving->made = wf_made_now(WF_KIND_SAVING);
    pthread_mutex_init(&saving->guard, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&saving->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    *out = saving;
    return WEFT_OK;
}

static void free_saving(weft_saving *saving)
{
    wf_save_end(&saving->save);
    pthread_cond_destroy(&saving->changed);
    pthread_mutex_destroy(&saving->guard);
    saving->made = wf_released(WF_KIND_SAVING);
    wf_free(saving);
}

weft_status weft_save_begin(weft_context *context, const char *path, weft_tensor *const *tensors,
                            size_t count, const weft_save_options *options, weft_saving **out)
{
    static const char what[] = "weft_save_begin";
    uint64_t begun = wf_now_ns();
    struct wf_store_call call;
    weft_saving *saving = NULL;
    weft_status status;

    WF_TRY(wf_store_check(context, what));
    wf_store_begin(&call, context, WEFT_OP_SAVE, what);
    status = out != NULL ? make_saving(&saving) : wf_fail_null(what, "out");
    if (status == WEFT_OK) {
        saving->save.call = call;
        status = wf_save_prepare(&saving->save, path, tensors, count, options, true);
    } else { /* the other ranks learn of it */
        status = wf_store_compare(&call, "save", status, &(struct wf_store_digest){0});
    }
    status = wf_store_end(&call, status);
    if (status != WEFT_OK) {
        if (saving != NULL) free_saving(saving);
        return status;
    }
    saving->copy_ns = (int64_t)(wf_now_ns() - begun);
    start(saving, context->kept[WF_MODULE_STORE]);
    *out = saving;
    return WEFT_OK;
}

static weft_status check_saving(const weft_saving *saving, const char *function)
{
    if (saving == NULL) return wf_fail_null(function, "saving");
    if (wf_is_usable(saving->made, WF_KIND_SAVING)) return WEFT_OK;
    return wf_fail_unusable(function, "saving", saving->made, WF_KIND_SAVING);
}

weft_status weft_saving_get(weft_saving *saving, weft_saving_info *out)
{
    weft_saving_info info = {.struct_size = sizeof info};

    WF_TRY(check_saving(saving, "weft_saving_get"));
    WF_TRY(wf_require(out, "weft_saving_get: out"));
    pthread_mutex_lock(&saving->guard);
    info.ended = saving->ended;
    pthread_mutex_unlock(&saving->guard);
    info.bytes = saving->save.pieces.bytes;
    info.written = atomic_load(&saving->save.written);
    info.copy_ns = saving->copy_ns;
    return wf_info_write("weft_saving_info", &info, sizeof info, out);
}

static bool wait_for_end(weft_saving *saving, int64_t timeout_ns)
{
    uint64_t deadline = wf_deadline(timeout_ns);
    struct timespec until = {.tv_sec = (time_t)(deadline / WF_SECOND_NS),
                             .tv_nsec = (long)(deadline % WF_SECOND_NS)};
    int error = 0;

    while (!saving->ended && error == 0)
        error = timeout_ns < 0 ? pthread_cond_wait(&saving->changed, &saving->guard)
                               : pthread_cond_timedwait(&saving->changed, &saving->guard, &until);
    return saving->ended;
}

/* Wait, with a record for the case that it takes long.  The guard is held, but not meanwhile. */
static bool wait_for_long(weft_saving *saving, int64_t timeout_ns)
{
    weft_comm *world = saving->save.call.context->world;
    struct wf_submitted record;
    weft_status status;
    bool ended;

    pthread_mutex_unlock(&saving->guard);
    record = wf_record_saving_wait(world, saving->save.call.sequence);
    wf_record_set_bytes(record, saving->save.pieces.bytes);
    pthread_mutex_lock(&saving->guard);
    ended = wait_for_end(saving, timeout_ns);
    status = ended ? saving->status : WEFT_OK;
    pthread_mutex_unlock(&saving->guard);
    (void)wf_record_created(world, record, status);
    pthread_mutex_lock(&saving->guard);
    return ended;
}

weft_status weft_saving_wait(weft_saving *saving, int64_t timeout_ns)
{
    bool ended;

    WF_TRY(check_saving(saving, "weft_saving_wait"));
    pthread_mutex_lock(&saving->guard);
    ended = saving->ended || (timeout_ns != 0 && wait_for_long(saving, timeout_ns));
    saving->was_told = saving->was_told || ended;
    pthread_mutex_unlock(&saving->guard);
    if (!ended)
        return wf_fail(WEFT_ERR_TIMEOUT, "weft_saving_wait: %s is not complete yet",
                       saving->save.path);
    return saving->status == WEFT_OK ? WEFT_OK : wf_fail(saving->status, "%s", saving->error);
}

void weft_saving_release(weft_saving **saving)
{
    weft_saving *object = saving != NULL ? *saving : NULL;

    if (object == NULL) return;
    if (!wf_is_usable(object->made, WF_KIND_SAVING)) {
        wf_warn_unusable("weft_saving_release", object->made, WF_KIND_SAVING);
        return;
    }
    *saving = NULL;
    join(object);
    if (object->status != WEFT_OK && !object->was_told)
        wf_log(WF_LOG_WARNING, "weft_saving_release: %s", object->error);
    free_saving(object);
}

/* ---- the context ---- */

static weft_status create(weft_context *context)
{
    struct savings *list = wf_calloc(1, sizeof *list);

    if (list == NULL) return wf_fail_memory(sizeof *list);
    pthread_mutex_init(&list->guard, NULL);
    context->kept[WF_MODULE_STORE] = list;
    return WEFT_OK;
}

static void leave(weft_context *context)
{
    const struct savings *list = context->kept[WF_MODULE_STORE];

    while (list->first != NULL)
        join(list->first);
}

static void destroy(weft_context *context)
{
    struct savings *list = context->kept[WF_MODULE_STORE];

    pthread_mutex_destroy(&list->guard);
    wf_free(list);
    context->kept[WF_MODULE_STORE] = NULL;
}

const struct wf_module wf_store_module = {.create = create, .leave = leave, .destroy = destroy};
