/* ranks.c - ranks as threads or as processes, with a rendezvous in shared memory. */
#include "ranks.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXCHANGE_MAX 32768

struct ranks_shared {
    pthread_barrier_t barrier, survivors;
    unsigned char data[2][RANKS_MAX][EXCHANGE_MAX];
    struct ranks_options options;
};

static _Thread_local char last_error[1024];
static struct {
    const char *name, *value;
} knobs[16];

static void set_error(weft_status status, const char *vendor, int64_t code, const char *text)
{
    (void)status;
    (void)vendor;
    (void)code;
    snprintf(last_error, sizeof last_error, "%s", text);
}

static void print_log(int32_t level, const char *text)
{
    if (level < 2) fprintf(stderr, "%s\n", text);
}

static const char *find_knob(const char *name)
{
    for (int i = 0; i < 16; i++)
        if (knobs[i].value != NULL && strcmp(knobs[i].name, name) == 0) return knobs[i].value;
    /* The thread sanitizer leaves little address space. */
    if (strcmp(name, "WEFT_CPU_HEAP") == 0) return RANKS_SANITIZED ? "256M" : "1G";
    return NULL;
}

void ranks_knob(const char *name, const char *value)
{
    int i = 0;

    while (i < 15 && knobs[i].name != NULL && strcmp(knobs[i].name, name) != 0)
        i++;
    knobs[i].name = name;
    knobs[i].value = value;
}

static const weft_host host = {.struct_size = sizeof host,
                               .abi_major = WEFT_ABI_MAJOR,
                               .abi_minor = WEFT_ABI_MINOR,
                               .log = print_log,
                               .set_error = set_error,
                               .allocate = malloc,
                               .release = free,
                               .knob = find_knob};

const char *ranks_network(void)
{
    const char *given = getenv("WEFT_TEST_NETWORK");

    return given != NULL ? given : "gloo";
}

const char *ranks_error(void)
{
    return last_error;
}

_Noreturn void ranks_fail(struct rank *rank, const char *file, int line, const char *text)
{
    fprintf(stderr, "%s:%d: rank %d of %d (%s): %s\n", file, line, rank->number, rank->size,
            rank->shared->options.threads ? "threads" : "processes", text);
    /* Peers would wait for an ended thread, so the whole process exits. */
    _exit(3);
}

_Noreturn void ranks_fail_status(struct rank *rank, const char *file, int line, const char *text,
                                 weft_status status)
{
    char whole[2048];

    snprintf(whole, sizeof whole, "%s gave %d: %s", text, (int)status, last_error);
    ranks_fail(rank, file, line, whole);
}

static weft_status all_gather(void *self, const void *mine, void *all, uint64_t bytes)
{
    struct rank *rank = self;
    unsigned char(*data)[EXCHANGE_MAX] = rank->shared->data[rank->round++ % 2];

    if (bytes > EXCHANGE_MAX) abort();
    memcpy(data[rank->number], mine, bytes);
    pthread_barrier_wait(&rank->shared->barrier);
    for (int p = 0; p < rank->size; p++)
        memcpy((unsigned char *)all + (uint64_t)p * bytes, data[p], bytes);
    for (int p = 0; rank->forge != NULL && rank->step > 0 && p < rank->size; p++)
        if (p != rank->number) rank->forge(rank, (unsigned char *)all + (uint64_t)p * bytes, bytes);
    rank->step++;
    return WEFT_OK;
}

void ranks_meet(struct rank *rank)
{
    pthread_barrier_wait(&rank->shared->barrier);
}

void ranks_meet_survivors(struct rank *rank)
{
    pthread_barrier_wait(&rank->shared->survivors);
}

weft_status ranks_comm(struct rank *rank, const char *name, void **out)
{
    int32_t world[RANKS_MAX];
    uint64_t hosts[RANKS_MAX];
    struct packed {
        uint64_t bytes;
        unsigned char data[512];
    } mine, all[RANKS_MAX];
    weft_blob blobs[RANKS_MAX], blob;
    weft_exchange exchange = {.user = rank, .all_gather = all_gather};
    weft_comm_options options = {.struct_size = sizeof options,
                                 .flags = rank->shared->options.flags,
                                 .rank = rank->number,
                                 .size = rank->size,
                                 .world_ranks = world,
                                 .host_ids = hosts,
                                 .name = name,
                                 .job = 7,
                                 .timeout_ns = rank->shared->options.timeout_ns};
    weft_status status;
    void *comm;

    for (int p = 0; p < rank->size; p++) {
        world[p] = p;
        hosts[p] = 11 + (uint64_t)rank->shared->options.host_of[p];
    }
    status = rank->plugin->comm->prepare(rank->device, &options, &comm, &blob);
    if (status != WEFT_OK) return status;
    mine.bytes = blob.bytes;
    if (blob.bytes > sizeof mine.data) abort();
    memcpy(mine.data, blob.data, blob.bytes);
    rank->step = 0;
    all_gather(rank, &mine, all, sizeof mine);
    rank->step = 0;
    for (int p = 0; p < rank->size; p++) /* the last word is what its memory must begin with */
        if (p != rank->number && (rank->shared->options.hidden >> p & 1) != 0)
            all[p].data[all[p].bytes - 1] ^= 1;
    for (int p = 0; rank->forge != NULL && p < rank->size; p++)
        if (p != rank->number) rank->forge(rank, all[p].data, all[p].bytes);
    rank->step = 1;
    for (int p = 0; p < rank->size; p++)
        blobs[p] = (weft_blob){.data = all[p].data, .bytes = all[p].bytes};
    status = rank->plugin->comm->commit(comm, blobs, &exchange);
    if (status == WEFT_OK)
        *out = comm;
    else
        rank->plugin->comm->destroy(comm);
    return status;
}

static void *run_rank(void *argument)
{
    struct rank *rank = argument;
    weft_device_options options = {
        .struct_size = sizeof options, .local_rank = rank->number, .device = -1};

    RANK_OK(rank->plugin->device->open(&options, &rank->device));
    RANK_OK(ranks_comm(rank, "world", &rank->comm));
    rank->shared->options.body(rank);
    rank->plugin->comm->destroy(rank->comm);
    rank->plugin->device->close(rank->device);
    return NULL;
}

static int run_threads(struct rank *ranks, int size)
{
    pthread_t threads[RANKS_MAX];

    for (int p = 0; p < size; p++)
        if (pthread_create(&threads[p], NULL, run_rank, &ranks[p]) != 0) abort();
    for (int p = 0; p < size; p++)
        pthread_join(threads[p], NULL);
    return 0;
}

static int run_processes(struct rank *ranks, int size)
{
    pid_t children[RANKS_MAX];
    int failed = 0, status;

    fflush(NULL);
    for (int p = 0; p < size; p++) {
        children[p] = fork();
        if (children[p] == 0) {
            run_rank(&ranks[p]);
            exit(0);
        }
    }
    for (int p = 0; p < size; p++) {
        pid_t ended = wait(&status);

        if (ended < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0) failed++;
    }
    return failed;
}

int ranks_run(const struct ranks_options *options)
{
    struct rank ranks[RANKS_MAX];
    pthread_barrierattr_t attributes;
    struct ranks_shared *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    const weft_plugin *plugin = weft_plugin_entry(&host);
    int failed;

    if (shared == MAP_FAILED) abort();
    shared->options = *options;
    pthread_barrierattr_init(&attributes);
    pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&shared->barrier, &attributes, (unsigned)options->size);
    if (options->size > 1)
        pthread_barrier_init(&shared->survivors, &attributes, (unsigned)options->size - 1);
    for (int p = 0; p < options->size; p++)
        ranks[p] =
            (struct rank){.number = p, .size = options->size, .plugin = plugin, .shared = shared};
    failed =
        options->threads ? run_threads(ranks, options->size) : run_processes(ranks, options->size);
    munmap(shared, sizeof *shared);
    return failed;
}
