/* embed.c - weft inside an engine that has its own threads, its own log and its own loop of events.
 *
 *     ./embed
 *
 * The engine starts a thread for each of its devices.  Each thread is a rank of one job.  Lines of
 * weft go to the engine's log.  The devices share the host's processors.  A sum over all ranks is
 * posted to a stream, in bf16 if the backend adds such numbers itself, and the loop of events looks
 * now and then whether it is there. */
#include <weft/log.h>
#include <weft/trace.h>
#include <weft/weft.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { DEVICES = 3, COUNT = 1 << 16, ONE = 0x3f80 /* 1 in bf16 */, THREE = 0x4040 };

#define MUST(call)                                                                                 \
    do {                                                                                           \
        if ((call) != WEFT_OK) {                                                                   \
            fprintf(stderr, "%s: %s\n", #call, weft_last_error());                                 \
            exit(EXIT_FAILURE);                                                                    \
        }                                                                                          \
    } while (0)

struct engine {
    weft_threads *threads;
    atomic_int lines; /* in the log */
};

struct device {
    struct engine *engine;
    pthread_t thread;
    int number;
    long processors; /* for its own threads */
    long events;
    float sum;
};

static void to_log(void *user, enum weft_log_level level, const char *text)
{
    struct engine *engine = user;

    (void)text; /* an engine would write it */
    (void)level;
    atomic_fetch_add(&engine->lines, 1);
}

/* Handle events until the work on STREAM is complete. */
static long loop(weft_stream *stream)
{
    weft_status status;
    long events = 0;

    while ((status = weft_stream_test(stream)) == WEFT_IN_PROGRESS)
        events++; /* an engine would do something else meanwhile */
    MUST(status);
    return events;
}

/* Set COUNT numbers at MEMORY to 1, add up those of all ranks, and return the last sum. */
static float add_up(weft_context *ctx, void *memory, weft_stream *stream, long *events)
{
    enum weft_support_level level;
    uint16_t *narrow = memory;
    float *wide = memory;
    bool is_narrow;

    MUST(weft_comm_support(weft_world(ctx), WEFT_COLL_ALL_REDUCE, WEFT_DTYPE_BF16, WEFT_REDUCE_SUM,
                           &level));
    is_narrow = level == WEFT_SUPPORT_NATIVE;
    for (int i = 0; i < COUNT; i++)
        if (is_narrow)
            narrow[i] = ONE;
        else
            wide[i] = 1;
    MUST(weft_all_reduce(weft_world(ctx), memory, memory, COUNT,
                         is_narrow ? WEFT_DTYPE_BF16 : WEFT_DTYPE_F32, WEFT_REDUCE_SUM, stream));
    *events = loop(stream);
    return is_narrow ? (narrow[COUNT - 1] == THREE ? 3 : 0) : wide[COUNT - 1];
}

/* The share of a rank in the processors of its host. */
static long share_of_processors(const weft_context *ctx)
{
    long share = sysconf(_SC_NPROCESSORS_ONLN) / weft_local_size(ctx);

    return share > 1 ? share : 1;
}

static void *run_device(void *argument)
{
    struct device *device = argument;
    weft_init_options options = {
        .struct_size = sizeof options, .threads = device->engine->threads, .rank = device->number};
    weft_context *ctx;
    weft_stream *stream;
    void *memory;

    MUST(weft_init(&options, &ctx));
    device->processors = share_of_processors(ctx);
    MUST(weft_alloc(ctx, COUNT * sizeof(float), WEFT_MEMORY_PINNED, &memory));
    MUST(weft_stream_create(ctx, &stream));
    MUST(weft_stream_set_name(ctx, stream, "sums")); /* in messages, dumps and traces */
    device->sum = add_up(ctx, memory, stream, &device->events);
    weft_stream_release(&stream);
    MUST(weft_free(ctx, memory));
    weft_context_release(&ctx);
    return NULL;
}

int main(void)
{
    enum weft_log_level before = weft_log_level();
    struct device devices[DEVICES] = {{0}};
    struct engine engine = {0};
    bool is_right = true;

    weft_log_to(to_log, &engine);
    weft_log_set_level(WEFT_LOG_DEBUG);
    MUST(weft_threads_create(DEVICES, &engine.threads));
    for (int i = 0; i < DEVICES; i++) {
        devices[i] = (struct device){.engine = &engine, .number = i};
        if (pthread_create(&devices[i].thread, NULL, run_device, &devices[i]) != 0) abort();
    }
    for (int i = 0; i < DEVICES; i++) {
        pthread_join(devices[i].thread, NULL);
        is_right = is_right && devices[i].sum == DEVICES;
    }
    weft_threads_release(&engine.threads);
    weft_log_set_level(before);
    weft_log_to(NULL, NULL);
    printf("the sum is %s on all devices, of %ld processors each; weft logged %s\n",
           is_right ? "right" : "wrong", devices[0].processors,
           atomic_load(&engine.lines) > 0 ? "to the engine" : "nothing");
    return is_right && atomic_load(&engine.lines) > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
