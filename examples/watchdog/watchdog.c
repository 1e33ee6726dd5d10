/* watchdog.c - a job that hangs says why, and ends.
 *
 *     weft run -n 3 ./watchdog [FOLDER [SECONDS]]
 *
 * In step 3 the loader of rank 1 waits for data that never come, and the other ranks wait for rank
 * 1.  A thread of each rank watches.  When no step ends for SECONDS (5, or half of weft's time
 * limit if that is less), or when another rank has stopped the job, it prints the rank's recent
 * operations, dumps the recorder to FOLDER/hang.RANK and FOLDER/hang-RANK.json, and aborts the
 * context.  Every rank then ends in its own way, also the one that waits outside of weft, where no
 * time limit of weft ends the wait. */
#include <weft/trace.h>
#include <weft/weft.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { STEPS = 10, HANGS_IN = 3, HANGS = 1, COUNT = 1000, RECENT = 4, TICK_MS = 100 };

#define TRY(call)                                                                                  \
    do {                                                                                           \
        weft_status try_status = (call);                                                           \
        if (try_status != WEFT_OK) return try_status;                                              \
    } while (0)

struct watchdog {
    weft_context *ctx;
    const char *folder;
    double seconds;
    pthread_t thread;
    atomic_int steps;   /* that have ended */
    atomic_bool done;   /* all of them */
    atomic_bool barked; /* the job is being stopped */
    weft_observation *observation;
    pthread_mutex_t lock; /* of the fields below */
    weft_record recent[RECENT];
    size_t count; /* operations so far; number i is at place i % RECENT */
};

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

/* ---- what this rank did ---- */

static void on_submitted(void *user, const weft_record *record)
{
    struct watchdog *dog = user;

    pthread_mutex_lock(&dog->lock);
    dog->recent[dog->count++ % RECENT] = *record;
    pthread_mutex_unlock(&dog->lock);
}

static void on_finished(void *user, const weft_record *record)
{
    struct watchdog *dog = user;

    pthread_mutex_lock(&dog->lock);
    for (int i = 0; i < RECENT; i++)
        if (dog->recent[i].id == record->id) dog->recent[i] = *record;
    pthread_mutex_unlock(&dog->lock);
}

static double seconds_since(uint64_t ticks)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9 - (double)weft_ticks_to_ns(ticks) * 1e-9;
}

/* "rank 0: all-reduce world 3.9 KiB, call 3 on world, begun 5.1 s ago, waits": by the number of the
 * call, which is the same on all ranks, one sees who has not made it. */
static void print_record(weft_context *ctx, const weft_record *record)
{
    static const char *const states[] = {[WEFT_RECORD_SUBMITTED] = "waits",
                                         [WEFT_RECORD_FINISHED] = "ended",
                                         [WEFT_RECORD_FAILED] = "failed"};
    char text[128] = "";

    if (weft_record_print(ctx, record, text, sizeof text, NULL) != WEFT_OK) return;
    printf("rank %d: %s, call %llu on %s, begun %.1f s ago, %s\n", weft_rank(ctx), text,
           (unsigned long long)record->sequence, weft_trace_text(ctx, record->comm_name),
           seconds_since(record->submitted), states[record->state]);
}

static void print_recent(struct watchdog *dog)
{
    pthread_mutex_lock(&dog->lock);
    for (size_t i = dog->count > RECENT ? dog->count - RECENT : 0; i < dog->count; i++)
        print_record(dog->ctx, &dog->recent[i % RECENT]);
    pthread_mutex_unlock(&dog->lock);
}

/* ---- the watchdog ---- */

static void bark(struct watchdog *dog)
{
    char prefix[4096];

    print_recent(dog);
    snprintf(prefix, sizeof prefix, "%s/hang", dog->folder);
    if (weft_dump(dog->ctx, prefix) != WEFT_OK) fprintf(stderr, "%s\n", weft_last_error());
    weft_context_abort(dog->ctx); /* what waits in weft returns, here and on the other ranks */
    atomic_store(&dog->barked, true);
}

static void *watch(void *user)
{
    struct watchdog *dog = user;
    weft_comm *world = weft_world(dog->ctx);
    int seen = 0, ticks = 0;

    if (weft_context_bind_thread(dog->ctx) != WEFT_OK) abort();
    while (!atomic_load(&dog->done)) {
        int steps = atomic_load(&dog->steps);

        ticks = steps == seen ? ticks + 1 : 0;
        seen = steps;
        if (ticks * TICK_MS > (int)(dog->seconds * 1000) ||
            weft_comm_async_error(world) != WEFT_OK) {
            bark(dog);
            break;
        }
        pause_ms(TICK_MS);
    }
    return NULL;
}

static weft_status begin_watch(struct watchdog *dog)
{
    weft_observer observer = {.struct_size = sizeof observer,
                              .user = dog,
                              .submitted = on_submitted,
                              .finished = on_finished};

    if (pthread_mutex_init(&dog->lock, NULL) != 0) abort();
    TRY(weft_observe(dog->ctx, &observer, &dog->observation));
    if (pthread_create(&dog->thread, NULL, watch, dog) != 0) abort();
    return WEFT_OK;
}

/* STATUS: why the steps ended.  After an error the watchdog sees it too, and barks. */
static void end_watch(struct watchdog *dog, weft_status status)
{
    if (status == WEFT_OK) atomic_store(&dog->done, true);
    pthread_join(dog->thread, NULL);
    weft_observation_release(&dog->observation);
    pthread_mutex_destroy(&dog->lock);
}

/* ---- the job ---- */

/* Load the numbers of STEP, or wait until the watchdog barks. */
static weft_status load(struct watchdog *dog, int step, float *numbers)
{
    while (step == HANGS_IN && weft_rank(dog->ctx) == HANGS) {
        if (atomic_load(&dog->barked))
            return weft_fail(WEFT_ERR_ABORTED, "the loader of rank %d was stopped", HANGS);
        pause_ms(TICK_MS);
    }
    for (int i = 0; i < COUNT; i++)
        numbers[i] = (float)step;
    return WEFT_OK;
}

static weft_status run_steps(struct watchdog *dog)
{
    static float numbers[COUNT];

    for (int step = 1; step <= STEPS; step++) {
        TRY(load(dog, step, numbers));
        TRY(weft_all_reduce(weft_world(dog->ctx), numbers, numbers, COUNT, WEFT_DTYPE_F32,
                            WEFT_REDUCE_SUM, NULL));
        TRY(weft_context_wait(dog->ctx, NULL, WEFT_FOREVER));
        atomic_fetch_add(&dog->steps, 1);
    }
    return WEFT_OK;
}

/* The watchdog is to bark before a wait of weft ends by itself. */
static double default_seconds(const weft_comm *world)
{
    int64_t limit = weft_comm_timeout(world);

    return limit == WEFT_FOREVER || limit > 10000000000 ? 5 : (double)limit / 2e9;
}

int main(int argc, char **argv)
{
    struct watchdog dog = {.folder = argc > 1 ? argv[1] : "."};
    weft_status status = weft_init(NULL, &dog.ctx);

    dog.seconds = argc > 2 ? atof(argv[2]) : default_seconds(weft_world(dog.ctx));
    if (status == WEFT_OK) status = begin_watch(&dog);
    if (status != WEFT_OK) {
        fprintf(stderr, "%s\n", weft_last_error());
        return EXIT_FAILURE;
    }
    status = run_steps(&dog);
    printf("rank %d: %d steps, then %s (%s)%s%s\n", weft_rank(dog.ctx), atomic_load(&dog.steps),
           weft_status_name(status), weft_status_text(status), status != WEFT_OK ? ": " : "",
           status != WEFT_OK ? weft_last_error() : "");
    end_watch(&dog, status);
    weft_context_release(&dog.ctx);
    if (!atomic_load(&dog.barked)) return status == WEFT_OK ? EXIT_SUCCESS : EXIT_FAILURE;
    return status == WEFT_ERR_ABORTED ? EXIT_SUCCESS : EXIT_FAILURE;
}
