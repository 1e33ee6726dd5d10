/* run.c - the steps of resharding, done by threads. */
#include "checkpoint/reshard/journal.h"
#include "checkpoint/writer.h"

#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { PROGRESS_MS = 100, RECORD_MS = 500 };

struct run {
    weft_reshard *reshard;
    weft_checkpoint_writer *writer;
    _Atomic uint64_t next, done; /* the next step; bytes that are written, with replicas */
    atomic_bool stop;
    pthread_mutex_t guard;
    pthread_cond_t ended; /* `running` changed */
    int32_t running;
    weft_status status; /* of the first failure */
    char error[2048];
    bool journals; /* there is a journal, and a thread that records */
    bool keeps;    /* after a failure, the journal and the files stay */
    struct wf_journal journal;
    pthread_cond_t recorder; /* `ending` changed */
    bool ending;
    uint64_t *codes; /* of failures, by process; NULL for one process */
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

/* ---- steps ---- */

/* The box of step NUMBER, and its bytes. */
static uint64_t find_step(const weft_reshard *reshard, const struct wf_reshard_tensor *tensor,
                          uint64_t number, int64_t *offset, int64_t *sizes)
{
    const struct wf_tensor *source = &reshard->from->tensors[tensor->index];
    int64_t bytes = 0;

    wf_cut_box(&tensor->cut, source->dims, source->shape, number - tensor->first, offset, sizes);
    return wf_file_bytes(source->dtype, source->dims, sizes, &bytes) ? (uint64_t)bytes : 0;
}

static weft_status run_step(struct run *run, uint64_t number, char *buffer)
{
    struct wf_reshard_tensor *tensor = wf_reshard_find(run->reshard, number);
    const struct wf_tensor *source = &run->reshard->from->tensors[tensor->index];
    int64_t offset[WEFT_MAX_DIMS], sizes[WEFT_MAX_DIMS];
    uint64_t bytes = find_step(run->reshard, tensor, number, offset, sizes), sum = 0;

    WF_TRY(weft_checkpoint_read(run->reshard->from, tensor->index, offset, sizes, buffer));
    WF_TRY(weft_checkpoint_writer_write(run->writer, tensor->index, offset, sizes, buffer));
    if (run->reshard->options.checksums) sum = wf_checksum_box(source, offset, sizes, buffer);
    atomic_fetch_add(&tensor->sum, sum);
    if (run->journals) wf_journal_add(&run->journal, number, sum);
    atomic_fetch_add(&run->done, bytes * tensor->copies);
    return WEFT_OK;
}

/* The steps of the run that is resumed count as done; each for the process whose step it is now. */
static void take_done(struct run *run)
{
    uint64_t part = (uint64_t)run->reshard->options.part,
             parts = (uint64_t)run->reshard->options.parts;

    for (uint64_t number = 0; number < run->reshard->steps; number++) {
        struct wf_reshard_tensor *tensor;
        int64_t offset[WEFT_MAX_DIMS], sizes[WEFT_MAX_DIMS];
        uint64_t bytes;
        if (number % parts != part || !wf_journal_has(&run->journal, number)) continue;
        tensor = wf_reshard_find(run->reshard, number);
        bytes = find_step(run->reshard, tensor, number, offset, sizes);
        atomic_fetch_add(&run->done, bytes * tensor->copies);
        atomic_fetch_add(&run->writer->tensors[tensor->index].written, (int64_t)bytes);
        if (run->journal.sums != NULL)
            atomic_fetch_add(&tensor->sum, atomic_load(&run->journal.sums[number]));
    }
    run->reshard->resumed = atomic_load(&run->done);
}

static weft_status run_steps(struct run *run)
{
    uint64_t part = (uint64_t)run->reshard->options.part,
             parts = (uint64_t)run->reshard->options.parts;
    char *buffer = wf_alloc(run->reshard->buffer);
    weft_status status = buffer != NULL ? WEFT_OK : wf_fail_memory(run->reshard->buffer);

    while (status == WEFT_OK && !atomic_load(&run->stop)) {
        uint64_t number = atomic_fetch_add(&run->next, 1);
        if (number >= run->reshard->steps) break;
        if (number % parts != part) continue; /* another process does it */
        if (run->journals && wf_journal_has(&run->journal, number)) continue;
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

/* Wait for WAKE, MS milliseconds at most, with the guard held. */
static void wait_for(struct run *run, pthread_cond_t *wake, long ms)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += ms * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    pthread_cond_timedwait(wake, &run->guard, &until);
}

/* Record what is done, twice a second. */
static void *recorder_main(void *argument)
{
    struct run *run = argument;

    pthread_mutex_lock(&run->guard);
    while (!run->ending) {
        weft_status status;
        wait_for(run, &run->recorder, RECORD_MS);
        if (run->ending) break;
        pthread_mutex_unlock(&run->guard);
        status = wf_journal_record(&run->journal, &run->writer->output);
        if (status != WEFT_OK) fail_run(run, status);
        pthread_mutex_lock(&run->guard);
    }
    pthread_mutex_unlock(&run->guard);
    return NULL;
}

/* Report progress until all jobs have ended, and then once more: the caller hears of the last bytes
 * and can stop also a run whose jobs ended at once. */
static void wait_for_jobs(struct run *run)
{
    const weft_reshard_options *options = &run->reshard->options;
    bool ended;

    pthread_mutex_lock(&run->guard);
    do {
        if (run->running > 0) wait_for(run, &run->ended, PROGRESS_MS);
        ended = run->running == 0;
        if (options->progress == NULL || atomic_load(&run->stop)) continue;
        pthread_mutex_unlock(&run->guard);
        if (!options->progress(options->user, atomic_load(&run->done), run->reshard->written)) {
            wf_fail(WEFT_ERR_ABORTED, "resharding was stopped");
            fail_run(run, WEFT_ERR_ABORTED);
        }
        pthread_mutex_lock(&run->guard);
    } while (!ended);
    pthread_mutex_unlock(&run->guard);
}

/* Start a thread without signals: those are the caller's. */
static int start_thread(struct run *run, void *(*main)(void *), pthread_t *out)
{
    sigset_t all, before;
    int error;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(out, NULL, main, run);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

static void end_recorder(struct run *run, pthread_t recorder)
{
    pthread_mutex_lock(&run->guard);
    run->ending = true;
    pthread_cond_signal(&run->recorder);
    pthread_mutex_unlock(&run->guard);
    pthread_join(recorder, NULL);
}

static int32_t start_jobs(struct run *run, pthread_t *threads)
{
    int32_t started = 0;

    for (; started < run->reshard->options.jobs; started++) {
        int error;
        pthread_mutex_lock(&run->guard);
        run->running++;
        pthread_mutex_unlock(&run->guard);
        error = start_thread(run, job_main, &threads[started]);
        if (error == 0) continue;
        pthread_mutex_lock(&run->guard);
        run->running--;
        pthread_mutex_unlock(&run->guard);
        if (started == 0) {
            wf_fail(WEFT_ERR_SYSTEM, "cannot start a thread: %s", kit_error_text(error));
            fail_run(run, WEFT_ERR_SYSTEM);
        }
        break; /* fewer jobs do the work too */
    }
    return started;
}

static weft_status run_jobs(struct run *run)
{
    size_t bytes = (size_t)run->reshard->options.jobs * sizeof(pthread_t);
    pthread_t *threads = wf_alloc(bytes), recorder;
    pthread_condattr_t monotonic;
    int32_t started;
    bool records;

    if (threads == NULL) return wf_fail_memory(bytes);
    pthread_mutex_init(&run->guard, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&run->ended, &monotonic);
    pthread_cond_init(&run->recorder, &monotonic);
    pthread_condattr_destroy(&monotonic);
    records = run->journals && start_thread(run, recorder_main, &recorder) == 0;
    started = start_jobs(run, threads);
    wait_for_jobs(run);
    for (int32_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    if (records) end_recorder(run, recorder);
    pthread_cond_destroy(&run->recorder);
    pthread_cond_destroy(&run->ended);
    pthread_mutex_destroy(&run->guard);
    wf_free(threads);
    return run->status == WEFT_OK ? WEFT_OK : wf_fail(run->status, "%s", run->error);
}

weft_status wf_reshard_writer(const weft_reshard *reshard, enum wf_outputs_mode mode,
                              weft_checkpoint_writer **out)
{
    const weft_checkpoint *from = reshard->from;
    weft_checkpoint_writer_options options = {.struct_size = sizeof options,
                                              .format = reshard->options.format,
                                              .replace = reshard->options.replace,
                                              .mesh =
                                                  weft_layout_file_mesh(reshard->options.layout),
                                              .file_bytes = reshard->options.file_bytes};
    weft_checkpoint_pair *pairs = NULL;
    weft_status status;

    if (from->pair_count > 0) { /* keep the metadata of the source */
        pairs = wf_calloc(from->pair_count, sizeof *pairs);
        if (pairs == NULL) return wf_fail_memory(from->pair_count * sizeof *pairs);
        for (size_t i = 0; i < from->pair_count; i++)
            pairs[i] = (weft_checkpoint_pair){from->pairs[i].key, from->pairs[i].value};
        options.metadata = pairs;
        options.metadata_count = from->pair_count;
    }
    status = wf_writer_create(reshard->path, reshard->count, reshard->entries, &options, mode, out);
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

static weft_status begin_journal(struct run *run)
{
    const weft_reshard *reshard = run->reshard;
    struct wf_journal_plan plan = {reshard->digest, reshard->buffer, reshard->steps};

    if (!reshard->options.keep && !reshard->resume) return WEFT_OK;
    WF_TRY(wf_journal_begin(&run->journal, reshard->path, reshard->options.part,
                            reshard->options.parts, &plan, reshard->options.checksums,
                            reshard->resume));
    run->journals = true;
    if (reshard->resume) take_done(run);
    return WEFT_OK;
}

/* ---- several processes ---- */

/* Some processes have failed, this one with STATUS and the error in RUN: all get the error of the
 * first. */
static weft_status share_failure(const struct run *run, weft_status status)
{
    const weft_reshard_options *options = &run->reshard->options;
    uint64_t *codes = run->codes, text[sizeof run->error / 8] = {0};
    int32_t first = 0;

    memset(codes, 0, (size_t)options->parts * sizeof *codes);
    codes[options->part] = (uint64_t) - (int64_t)status; /* of WEFT_OK: 0 */
    WF_TRY(options->combine(options->user, (size_t)options->parts, codes));
    while (first < options->parts - 1 && codes[first] == 0)
        first++;
    if (first == options->part) memcpy(text, run->error, sizeof text);
    WF_TRY(options->combine(options->user, WF_COUNT(text), text));
    return wf_fail((weft_status) - (int64_t)codes[first], "process %d of %d: %.*s", first,
                   options->parts, (int)sizeof text - 1, (const char *)text);
}

/* All processes have come here; if one has failed, all fail. */
static weft_status meet(struct run *run, weft_status status)
{
    const weft_reshard_options *options = &run->reshard->options;
    uint64_t failed = status != WEFT_OK;

    if (failed != 0) snprintf(run->error, sizeof run->error, "%s", weft_last_error());
    WF_TRY(options->combine(options->user, 1, &failed));
    return failed == 0 ? WEFT_OK : share_failure(run, status);
}

/* Bytes and checksums of the steps of all processes. */
static weft_status combine_parts(struct run *run)
{
    weft_reshard *reshard = run->reshard;
    size_t count = reshard->count;
    uint64_t *values = wf_calloc(2 * count + 1, sizeof *values);
    weft_status status = values != NULL ? WEFT_OK : wf_fail_memory(2 * count * sizeof *values);

    status = meet(run, status);
    for (size_t i = 0; i < count && status == WEFT_OK; i++) {
        values[2 * i] = atomic_load(&reshard->tensors[i].sum);
        values[2 * i + 1] = (uint64_t)atomic_load(&run->writer->tensors[i].written);
    }
    if (status == WEFT_OK) {
        values[2 * count] = reshard->resumed;
        status = reshard->options.combine(reshard->options.user, 2 * count + 1, values);
    }
    if (status == WEFT_OK) reshard->resumed = values[2 * count];
    for (size_t i = 0; i < count && status == WEFT_OK; i++) {
        atomic_store(&reshard->tensors[i].sum, values[2 * i]);
        atomic_store(&run->writer->tensors[i].written, (int64_t)values[2 * i + 1]);
    }
    wf_free(values);
    return status;
}

static weft_status finish(struct run *run)
{
    weft_reshard *reshard = run->reshard;

    if (reshard->options.checksums) WF_TRY(write_sums(reshard, run->writer));
    return weft_checkpoint_writer_commit(run->writer);
}

/* All processes have found a run to resume, or none. */
static weft_status agree_to_resume(struct run *run)
{
    const weft_reshard_options *options = &run->reshard->options;
    uint64_t resume = run->reshard->resume;

    WF_TRY(options->combine(options->user, 1, &resume));
    if (resume == 0 || resume == (uint64_t)options->parts) return WEFT_OK;
    return wf_fail(
        WEFT_ERR_MISMATCH,
        "%d of %d processes have found a run to resume at %s; all must see the same files",
        (int32_t)resume, options->parts, run->reshard->path);
}

/* Flush what this process has done, and record it, also if it failed with STATUS: when one process
 * has ended, a launcher may end the others. */
static weft_status record_part(struct run *run, weft_status status)
{
    struct wf_outputs *output = &run->writer->output;
    weft_status flushed;
    char error[2048];

    snprintf(error, sizeof error, "%s", weft_last_error());
    flushed = run->journals ? wf_journal_record(&run->journal, output)
                            : wf_outputs_flush(output, NULL, NULL);
    return status != WEFT_OK ? wf_fail(status, "%s", error) : flushed;
}

/* The first process makes the files and commits them. */
static weft_status run_part(struct run *run)
{
    weft_reshard *reshard = run->reshard;
    bool is_first = reshard->options.part == 0;
    weft_status status = WEFT_OK;

    WF_TRY(agree_to_resume(run));
    if (is_first)
        status = wf_reshard_writer(reshard, reshard->resume ? WF_OUTPUT_RESUME : WF_OUTPUT_NEW,
                                   &run->writer);
    if (is_first && status == WEFT_OK) status = begin_journal(run);
    WF_TRY(meet(run, status));
    if (!is_first) status = wf_reshard_writer(reshard, WF_OUTPUT_JOIN, &run->writer);
    if (!is_first && status == WEFT_OK) status = begin_journal(run);
    WF_TRY(meet(run, status));
    status = record_part(run, run_jobs(run));
    WF_TRY(meet(run, status));
    WF_TRY(combine_parts(run));
    if (is_first) status = finish(run);
    return meet(run, status);
}

static weft_status run_plan(struct run *run)
{
    weft_reshard *reshard = run->reshard;

    if (reshard->options.parts > 1) {
        size_t parts = (size_t)reshard->options.parts;
        run->codes = wf_calloc(parts, sizeof *run->codes);
        return run->codes != NULL ? run_part(run) : wf_fail_memory(parts * sizeof *run->codes);
    }
    WF_TRY(wf_reshard_writer(reshard, reshard->resume ? WF_OUTPUT_RESUME : WF_OUTPUT_NEW,
                             &run->writer));
    WF_TRY(begin_journal(run));
    WF_TRY(run_jobs(run));
    return finish(run);
}

/* After a failure: record what is done, or remove it if nothing is. */
static void keep_done(struct run *run, weft_status status)
{
    struct wf_outputs *output = &run->writer->output;
    char error[2048];

    if (!run->journals || output->committed) return;
    snprintf(error, sizeof error, "%s", weft_last_error());
    if (wf_journal_record(&run->journal, output) != WEFT_OK)
        wf_log(WF_LOG_WARNING, "the journal could not be written: %s", weft_last_error());
    run->keeps = run->journal.recorded > 0 || run->reshard->options.parts > 1;
    output->keep = run->keeps;
    run->reshard->kept = run->journal.recorded;
    wf_fail(status, "%s", error);
}

weft_status weft_reshard_run(weft_reshard *reshard)
{
    struct run run = {.reshard = reshard, .journal = {.fd = -1}};
    weft_status status;

    WF_TRY(wf_require_kind(reshard, WF_KIND_RESHARD, "weft_reshard_run: reshard"));
    for (size_t i = 0; i < reshard->count; i++)
        atomic_store(&reshard->tensors[i].sum, 0);
    reshard->resumed = reshard->kept = 0;
    status = run_plan(&run);
    if (status != WEFT_OK && run.writer != NULL) keep_done(&run, status);
    wf_free(run.codes);
    if (run.journals) wf_journal_end(&run.journal, run.keeps);
    weft_checkpoint_writer_release(&run.writer);
    return wf_fail_named(status, "weft_reshard_run");
}
