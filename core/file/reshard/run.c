/* run.c - the steps of resharding, done by threads. */
#include "file/reshard/reshard.h"
#include "file/writer.h"

#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { PROGRESS_MS = 100 };

struct run {
    weft_reshard *reshard;
    weft_checkpoint_writer *writer;
    _Atomic uint64_t next, done; /* the next step; bytes that are written */
    atomic_bool stop;
    pthread_mutex_t guard;
    pthread_cond_t ended; /* `running` changed */
    int32_t running;
    weft_status status; /* of the first failure */
    char error[2048];
};

static void fail_run(struct run *run, weft_status status)
{
    atomic_store(&run->stop, true);
    pthread_mutex_lock(&run->guard);
    if (run->status == WEFT_OK) {
        run->status = status;
        snprintf(run->error, sizeof run->error, "%s", weft_last_error());
    }
    pthread_mutex_unlock(&run->guard);
}

static weft_status run_step(struct run *run, uint64_t number, char *buffer)
{
    struct wf_reshard_tensor *tensor = wf_reshard_find(run->reshard, number);
    const struct wf_tensor *source = &run->reshard->from->tensors[tensor->index];
    int64_t offset[WEFT_MAX_DIMS], sizes[WEFT_MAX_DIMS], bytes = 0;

    wf_reshard_step(run->reshard, tensor, number - tensor->first, offset, sizes);
    WF_TRY(weft_checkpoint_read(run->reshard->from, tensor->index, offset, sizes, buffer));
    WF_TRY(weft_checkpoint_write(run->writer, tensor->index, offset, sizes, buffer));
    if (run->reshard->options.checksums)
        atomic_fetch_add(&tensor->sum, wf_checksum_box(source, offset, sizes, buffer));
    if (wf_file_bytes(source->dtype, source->dims, sizes, &bytes))
        atomic_fetch_add(&run->done, (uint64_t)bytes);
    return WEFT_OK;
}

static weft_status run_steps(struct run *run)
{
    char *buffer = wf_alloc(run->reshard->buffer);
    weft_status status = buffer != NULL ? WEFT_OK : wf_fail_memory(run->reshard->buffer);

    while (status == WEFT_OK && !atomic_load(&run->stop)) {
        uint64_t number = atomic_fetch_add(&run->next, 1);
        if (number >= run->reshard->steps) break;
        status = run_step(run, number, buffer);
    }
    wf_free(buffer);
    return status;
}

static void *job_main(void *argument)
{
    struct run *run = argument;
    weft_status status = run_steps(run);

    if (status != WEFT_OK) fail_run(run, status);
    pthread_mutex_lock(&run->guard);
    run->running--;
    pthread_cond_signal(&run->ended);
    pthread_mutex_unlock(&run->guard);
    return NULL;
}

/* Report progress until all jobs have ended. */
static void wait_for_jobs(struct run *run)
{
    const weft_reshard_options *options = &run->reshard->options;
    struct timespec until;

    pthread_mutex_lock(&run->guard);
    while (run->running > 0) {
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += PROGRESS_MS * 1000000L;
        until.tv_sec += until.tv_nsec / 1000000000L;
        until.tv_nsec %= 1000000000L;
        pthread_cond_timedwait(&run->ended, &run->guard, &until);
        if (options->progress == NULL || atomic_load(&run->stop)) continue;
        pthread_mutex_unlock(&run->guard);
        if (!options->progress(options->state, atomic_load(&run->done), run->reshard->read)) {
            wf_fail(WEFT_ERR_ABORTED, "resharding was stopped");
            fail_run(run, WEFT_ERR_ABORTED);
        }
        pthread_mutex_lock(&run->guard);
    }
    pthread_mutex_unlock(&run->guard);
}

/* Start the jobs, without signals: those are the caller's. */
static int32_t start_jobs(struct run *run, pthread_t *threads)
{
    sigset_t all, before;
    int32_t started = 0;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (; started < run->reshard->options.jobs; started++) {
        int error;
        pthread_mutex_lock(&run->guard);
        run->running++;
        pthread_mutex_unlock(&run->guard);
        error = pthread_create(&threads[started], NULL, job_main, run);
        if (error == 0) continue;
        pthread_mutex_lock(&run->guard);
        run->running--;
        pthread_mutex_unlock(&run->guard);
        if (started == 0) {
            wf_fail(WEFT_ERR_SYSTEM, "cannot start a thread: %s", strerror(error));
            fail_run(run, WEFT_ERR_SYSTEM);
        }
        break; /* fewer jobs do the work too */
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

static weft_status run_jobs(struct run *run)
{
    size_t bytes = (size_t)run->reshard->options.jobs * sizeof(pthread_t);
    pthread_t *threads = wf_alloc(bytes);
    pthread_condattr_t monotonic;
    int32_t started;

    if (threads == NULL) return wf_fail_memory(bytes);
    pthread_mutex_init(&run->guard, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&run->ended, &monotonic);
    pthread_condattr_destroy(&monotonic);
    started = start_jobs(run, threads);
    wait_for_jobs(run);
    for (int32_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    pthread_cond_destroy(&run->ended);
    pthread_mutex_destroy(&run->guard);
    wf_free(threads);
    return run->status == WEFT_OK ? WEFT_OK : wf_fail(run->status, "%s", run->error);
}

static weft_status create_writer(weft_reshard *reshard, weft_checkpoint_writer **out)
{
    const weft_checkpoint *from = reshard->from;
    weft_checkpoint_options options = {.struct_size = sizeof options,
                                       .format = reshard->options.format,
                                       .replace = reshard->options.replace,
                                       .mesh = weft_layout_mesh(reshard->options.layout),
                                       .file_bytes = reshard->options.file_bytes};
    weft_checkpoint_pair *pairs = NULL;
    weft_status status;

    if (from->pair_count > 0) { /* keep the metadata of the source */
        pairs = wf_calloc(from->pair_count, sizeof *pairs);
        if (pairs == NULL) return wf_fail_memory(from->pair_count * sizeof *pairs);
        for (size_t i = 0; i < from->pair_count; i++)
            pairs[i] = (weft_checkpoint_pair){from->pairs[i].key, from->pairs[i].value};
        options.metadata = pairs;
        options.pairs = from->pair_count;
    }
    status = weft_checkpoint_create(reshard->path, reshard->entries, reshard->count, &options, out);
    wf_free(pairs);
    return status;
}

/* {"checksum": "weft-1", "tensors": {"NAME": "0123456789abcdef"}} */
static weft_status write_sums(const weft_reshard *reshard, weft_checkpoint_writer *writer)
{
    struct wf_text text = {0};
    weft_status status;

    wf_text_add(&text, "{\n \"checksum\": \"weft-1\",\n \"tensors\": {");
    for (size_t i = 0; i < reshard->count; i++) {
        wf_text_add(&text, "%s\n  ", i > 0 ? "," : "");
        wf_header_quote(&text, reshard->entries[i].name);
        wf_text_add(&text, ": \"%016" PRIx64 "\"", atomic_load(&reshard->tensors[i].sum));
    }
    wf_text_add(&text, "\n }\n}\n");
    status = wf_text_status(&text);
    if (status == WEFT_OK) status = wf_outputs_add_sums(&writer->output, text.data, text.length);
    wf_text_free(&text);
    return status;
}

weft_status weft_reshard_run(weft_reshard *reshard)
{
    struct run run = {.reshard = reshard};
    weft_status status;

    WF_TRY(wf_require_kind(reshard, WF_KIND_RESHARD, "weft_reshard_run: reshard"));
    for (size_t i = 0; i < reshard->count; i++)
        atomic_store(&reshard->tensors[i].sum, 0);
    status = create_writer(reshard, &run.writer);
    if (status == WEFT_OK) status = run_jobs(&run);
    if (status == WEFT_OK && reshard->options.checksums) status = write_sums(reshard, run.writer);
    if (status == WEFT_OK) status = weft_checkpoint_commit(run.writer);
    weft_checkpoint_writer_close(&run.writer);
    return wf_fail_named(status, "weft_reshard_run");
}
