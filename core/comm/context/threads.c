/* threads.c - ranks as threads of one process: a rendezvous that listens nowhere. */
#include "comm/comm.h"

#include "weft/status.h"

#include <stdio.h>
#include <string.h>

static _Thread_local weft_threads *current;
static _Thread_local int32_t current_rank;

weft_threads *wf_threads_current(int32_t *rank)
{
    *rank = current_rank;
    return current;
}

/* On behalf of FUNCTION, which the user called. */
static weft_status create(const char *function, int32_t size, weft_threads **out)
{
    struct wf_server_options options = {.size = size, .serving_rank = -1};
    weft_threads *threads;
    struct wf_config *config;
    weft_status status;

    if (size < 1)
        return wf_fail(WEFT_ERR_INVALID, "%s: size is %d; it must be at least 1", function, size);
    wf_claims_prepare();
    WF_TRY(wf_config_read(&config));
    options.join_timeout_ns = config->join_timeout_ns;
    wf_config_release(&config);
    threads = wf_calloc(1, sizeof *threads);
    if (threads == NULL) return wf_fail_memory(sizeof *threads);
    threads->made = wf_made_now(WF_KIND_THREADS);
    threads->size = size;
    wf_random_bytes(&threads->key, sizeof threads->key);
    options.key = threads->key;
    status = wf_server_create(&options, NULL, &threads->server);
    if (status == WEFT_OK) status = wf_server_start(threads->server);
    if (status != WEFT_OK) {
        wf_server_release(&threads->server);
        wf_free(threads);
        return status;
    }
    *out = threads;
    return WEFT_OK;
}

weft_status weft_threads_create(int32_t size, weft_threads **out)
{
    if (out == NULL) return wf_fail_null("weft_threads_create", "out");
    return create("weft_threads_create", size, out);
}

void weft_threads_release(weft_threads **threads)
{
    weft_threads *mine;

    if (threads == NULL || *threads == NULL) return;
    mine = *threads;
    *threads = NULL;
    if (!wf_is_usable(mine->made, WF_KIND_THREADS)) return; /* a parent process's */
    wf_server_release(&mine->server);
    wf_free(mine);
}

/* ---- running ---- */

/* One run of weft_threads_run. */
struct run {
    weft_threads *threads;
    weft_status (*rank_main)(void *);
    void *argument;
    pthread_mutex_t lock;
    weft_status status; /* of the rank that failed first */
    char text[1600];
};

struct rank {
    struct run *run;
    int32_t rank;
    pthread_t thread;
};

static void note_failure(struct run *run, int32_t rank, weft_status status)
{
    char text[512];

    pthread_mutex_lock(&run->lock);
    if (run->status == WEFT_OK) {
        run->status = status;
        snprintf(run->text, sizeof run->text, "rank %d: %s", rank, weft_last_error());
    }
    pthread_mutex_unlock(&run->lock);
    snprintf(text, sizeof text, "is gone: it returned an error: %.400s", weft_last_error());
    wf_server_report_gone(run->threads->server, rank, text);
}

/* True if STATUS is an error of weft whose text was set after wf_failure_count was BEFORE. */
static bool has_text(weft_status status, uint64_t before)
{
    return status < 0 && strcmp(weft_status_name(status), "unknown") != 0 &&
           wf_failure_count() != before;
}

static void *run_rank(void *argument)
{
    struct rank *self = argument;
    uint64_t before = wf_failure_count();
    weft_status status;

    current = self->run->threads;
    current_rank = self->rank;
    status = self->run->rank_main(self->run->argument);
    if (status != WEFT_OK && !has_text(status, before))
        status = wf_fail_callback(status, before, "rank_main");
    if (status != WEFT_OK) note_failure(self->run, self->rank, status);
    current = NULL;
    return NULL;
}

static void run_all(struct run *run, struct rank *ranks, int32_t size)
{
    int32_t started = 0;

    for (; started < size; started++) {
        ranks[started] = (struct rank){.run = run, .rank = started};
        int code = pthread_create(&ranks[started].thread, NULL, run_rank, &ranks[started]);
        if (code == 0) continue;
        (void)wf_fail(WEFT_ERR_SYSTEM, "cannot start a thread: %s", kit_error_text(code));
        for (int32_t rank = started; rank < size; rank++)
            note_failure(run, rank, WEFT_ERR_SYSTEM);
        break;
    }
    for (int32_t rank = 0; rank < started; rank++)
        pthread_join(ranks[rank].thread, NULL);
}

weft_status weft_threads_run(int32_t size, weft_status (*rank_main)(void *), void *argument)
{
    struct run run = {.rank_main = rank_main, .argument = argument};
    struct rank *ranks;

    if (rank_main == NULL) return wf_fail_null("weft_threads_run", "rank_main");
    WF_TRY(create("weft_threads_run", size, &run.threads));
    ranks = wf_calloc((size_t)size, sizeof *ranks);
    if (ranks == NULL) {
        weft_threads_release(&run.threads);
        return wf_fail_memory((size_t)size * sizeof *ranks);
    }
    pthread_mutex_init(&run.lock, NULL);
    run_all(&run, ranks, size);
    pthread_mutex_destroy(&run.lock);
    wf_free(ranks);
    weft_threads_release(&run.threads);
    return run.status == WEFT_OK ? WEFT_OK : wf_fail(run.status, "%s", run.text);
}
