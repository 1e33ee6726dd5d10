/* saving.c - tensors are saved while the caller goes on.
 *
 * A saving depends on the world communicator: a rank waits for it before it leaves the job, because
 * its thread meets the other ranks. */
#include "store.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

struct weft_saving {
    weft_object object;
    weft_dependent *dependent;
    bool has_thread; /* that was not joined */
    struct wf_save save;
    pthread_t thread;
    int64_t copy_ns;
    pthread_mutex_t guard;
    pthread_cond_t changed; /* `ended` */
    bool ended, was_told;
    weft_status status;
    char error[2048];
};

/* The record of what FUNCTION does for SAVING after weft_save_begin has returned. */
static void continue_record(const weft_saving *saving, const char *function, weft_open_record *out)
{
    weft_record_continue(&saving->save.call.record, function, out);
    weft_record_set_bytes(out, saving->save.pieces.bytes);
}

/* ---- the thread ---- */

static void *saving_main(void *argument)
{
    weft_saving *saving = argument;
    weft_open_record record;
    weft_status status;

    continue_record(saving, "weft_saving", &record);
    status = weft_record_end(&record, wf_save_finish(&saving->save));
    pthread_mutex_lock(&saving->guard);
    saving->status = status;
    if (status != WEFT_OK) snprintf(saving->error, sizeof saving->error, "%s", weft_last_error());
    saving->ended = true;
    pthread_cond_broadcast(&saving->changed);
    pthread_mutex_unlock(&saving->guard);
    return NULL;
}

/* Without a thread, the calling one does the work: the other ranks expect this one. */
static void start(weft_saving *saving)
{
    sigset_t all, before;
    int error;

    sigfillset(&all); /* signals are the caller's */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&saving->thread, NULL, saving_main, saving);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    saving->has_thread = error == 0;
    if (error != 0) saving_main(saving);
}

static void join(void *user)
{
    weft_saving *saving = user;

    if (saving->has_thread) pthread_join(saving->thread, NULL);
    saving->has_thread = false;
}

static const weft_dependent_calls calls = {.struct_size = sizeof calls, .leave = join};

/* ---- the public functions ---- */

static weft_status make_saving(weft_context *context, weft_saving **out)
{
    weft_saving *saving = wf_calloc(1, sizeof *saving);
    pthread_condattr_t monotonic;
    weft_status status;

    if (saving == NULL) return wf_fail_memory(sizeof *saving);
    status = weft_dependent_create(weft_world(context), &calls, saving, &saving->dependent);
    if (status != WEFT_OK) {
        wf_free(saving);
        return status;
    }
    weft_object_begin(&saving->object, "weft_saving");
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
    weft_dependent_release(&saving->dependent);
    wf_save_end(&saving->save);
    pthread_cond_destroy(&saving->changed);
    pthread_mutex_destroy(&saving->guard);
    wf_free(saving);
}

weft_status weft_save_begin(weft_context *context, const char *path, size_t count,
                            weft_tensor *const *tensors, const weft_save_options *options,
                            weft_saving **out)
{
    static const char what[] = "weft_save_begin";
    uint64_t begun = wf_now_ns();
    struct wf_store_call call;
    weft_saving *saving = NULL;
    weft_status status;

    WF_TRY(wf_store_check(context, what));
    wf_store_begin(&call, context, WEFT_RECORD_SAVE, what);
    status = out != NULL ? make_saving(context, &saving) : wf_fail_null(what, "out");
    if (status == WEFT_OK) {
        saving->save.call = call;
        status = wf_save_prepare(&saving->save, path, tensors, count, options, true);
    } else { /* the other ranks learn of it */
        status = wf_store_compare(&call, "save", status, &(struct wf_store_digest){0}, NULL);
    }
    status = wf_store_end(&call, status);
    if (status != WEFT_OK) {
        if (saving != NULL) free_saving(saving);
        return status;
    }
    saving->copy_ns = (int64_t)(wf_now_ns() - begun);
    start(saving);
    *out = saving;
    return WEFT_OK;
}

static weft_status check_saving(const weft_saving *saving, const char *function)
{
    return weft_object_check(saving, "weft_saving", function, "saving");
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
    weft_open_record record;
    weft_status status;
    bool ended;

    pthread_mutex_unlock(&saving->guard);
    continue_record(saving, "weft_saving_wait", &record);
    pthread_mutex_lock(&saving->guard);
    ended = wait_for_end(saving, timeout_ns);
    status = ended ? saving->status : WEFT_OK;
    pthread_mutex_unlock(&saving->guard);
    (void)weft_record_end(&record, status);
    pthread_mutex_lock(&saving->guard);
    return ended;
}

weft_status weft_saving_wait(weft_saving *saving, int64_t timeout_ns)
{
    bool ended;

    WF_TRY(check_saving(saving, "weft_saving_wait"));
    if (timeout_ns < WEFT_FOREVER)
        return wf_fail(WEFT_ERR_INVALID,
                       "weft_saving_wait: timeout_ns is %lld; it must be 0, positive or "
                       "WEFT_FOREVER",
                       (long long)timeout_ns);
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
    if (!weft_object_end(&object->object, "weft_saving", "weft_saving_release")) return;
    *saving = NULL;
    join(object);
    if (object->status != WEFT_OK && !object->was_told)
        wf_log(WF_LOG_WARNING, "weft_saving_release: %s", object->error);
    free_saving(object);
}
