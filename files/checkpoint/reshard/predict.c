/* predict.c - how long a run of resharding will take, from a sample of its steps.
 *
 * The sample reads steps that are spread over the plan, with as many threads as the run, and writes
 * them to a file without a name beside the target. */
#include "checkpoint/io/at.h"
#include "checkpoint/reshard/reshard.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SAMPLE = 64 << 20, MOST_STEPS = 4096 };

struct sample {
    const weft_reshard *reshard;
    int fd;
    uint64_t steps;                     /* of the sample */
    _Atomic uint64_t next, bytes;       /* the next one; bytes that were read and written */
    _Atomic uint64_t read_ns, write_ns; /* of all threads */
    pthread_mutex_t guard;
    weft_status status; /* of the first failure */
    char error[1024];
};

static weft_status run_step(struct sample *sample, uint64_t number, char *buffer)
{
    const struct wf_reshard_tensor *tensor = wf_reshard_find(sample->reshard, number);
    const struct wf_tensor *source = &sample->reshard->from->tensors[tensor->index];
    int64_t offset[WEFT_MAX_DIMS], sizes[WEFT_MAX_DIMS], bytes = 0;
    uint64_t begun = wf_now_ns(), read;

    wf_cut_box(&tensor->cut, source->dims, source->shape, number - tensor->first, offset, sizes);
    WF_TRY(weft_checkpoint_read(sample->reshard->from, tensor->index, offset, sizes, buffer));
    read = wf_now_ns();
    if (!wf_file_bytes(source->dtype, source->dims, sizes, &bytes)) bytes = 0;
    if (!wf_write_at(sample->fd, buffer, (size_t)bytes,
                     atomic_fetch_add(&sample->bytes, (uint64_t)bytes)))
        return wf_fail(WEFT_ERR_SYSTEM, "%s: %s", sample->reshard->path, kit_error_text(errno));
    atomic_fetch_add(&sample->read_ns, read - begun);
    atomic_fetch_add(&sample->write_ns, wf_now_ns() - read);
    return WEFT_OK;
}

static void *job_main(void *argument)
{
    struct sample *sample = argument;
    char *buffer = wf_alloc(sample->reshard->buffer);
    weft_status status = buffer != NULL ? WEFT_OK : wf_fail_memory(sample->reshard->buffer);

    while (status == WEFT_OK) {
        uint64_t i = atomic_fetch_add(&sample->next, 1);
        if (i >= sample->steps) break;
        status = run_step(sample, i * (sample->reshard->steps / sample->steps), buffer);
    }
    wf_free(buffer);
    pthread_mutex_lock(&sample->guard);
    if (status != WEFT_OK && sample->status == WEFT_OK) {
        sample->status = status;
        snprintf(sample->error, sizeof sample->error, "%s", weft_last_error());
    }
    pthread_mutex_unlock(&sample->guard);
    return NULL;
}

/* A file without a name in the folder of PATH. */
static weft_status open_nameless(const char *path, int *out)
{
    char *own = wf_output_path(path, WF_SAMPLE), *slash;

    if (own == NULL) return wf_fail_memory(strlen(path) + sizeof WF_SAMPLE);
    *out = open(own, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (*out >= 0) unlink(own);
    slash = strrchr(own, '/');
    if (slash != NULL) *slash = '\0';
    if (*out < 0)
        wf_fail(WEFT_ERR_SYSTEM, "%s: %s", slash != NULL ? own : ".", kit_error_text(errno));
    wf_free(own);
    return *out >= 0 ? WEFT_OK : WEFT_ERR_SYSTEM;
}

static uint64_t share(uint64_t nanoseconds, uint64_t of, uint64_t bytes)
{
    return (uint64_t)((double)nanoseconds / (double)of * (double)bytes);
}

static weft_status run_sample(struct sample *sample, uint64_t *nanoseconds)
{
    const weft_reshard *reshard = sample->reshard;
    uint64_t jobs = (uint64_t)reshard->options.jobs * (uint64_t)reshard->options.parts, begun,
             bytes;

    wf_jobs_run(reshard->options.jobs, job_main, sample);
    if (sample->status != WEFT_OK) return wf_fail(sample->status, "%s", sample->error);
    begun = wf_now_ns();
    if (fdatasync(sample->fd) != 0)
        return wf_fail(WEFT_ERR_SYSTEM, "%s: %s", reshard->path, kit_error_text(errno));
    bytes = atomic_load(&sample->bytes);
    *nanoseconds = bytes == 0
                       ? 0
                       : share(atomic_load(&sample->read_ns), bytes, reshard->bytes) / jobs +
                             share(atomic_load(&sample->write_ns), bytes, reshard->written) / jobs +
                             share(wf_now_ns() - begun, bytes, reshard->written);
    return WEFT_OK;
}

weft_status weft_reshard_predict(weft_reshard *reshard, uint64_t *nanoseconds)
{
    struct sample sample = {.reshard = reshard, .fd = -1};
    weft_status status;
    uint64_t each;

    WF_TRY(wf_require_kind(reshard, WF_KIND_RESHARD, "weft_reshard_predict: reshard"));
    WF_TRY(wf_require(nanoseconds, "weft_reshard_predict: nanoseconds"));
    if (reshard->steps == 0) {
        *nanoseconds = 0;
        return WEFT_OK;
    }
    each = reshard->bytes / reshard->steps + 1;
    sample.steps = SAMPLE / each + 1;
    if (sample.steps > MOST_STEPS) sample.steps = MOST_STEPS;
    if (sample.steps > reshard->steps) sample.steps = reshard->steps;
    WF_TRY(wf_fail_named(open_nameless(reshard->path, &sample.fd), "weft_reshard_predict"));
    pthread_mutex_init(&sample.guard, NULL);
    status = run_sample(&sample, nanoseconds);
    pthread_mutex_destroy(&sample.guard);
    close(sample.fd);
    return wf_fail_named(status, "weft_reshard_predict");
}
