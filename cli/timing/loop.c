/* loop.c - see loop.h. */
#include "timing/loop.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    MAX_SAMPLES = 4096,
    CHUNK = 32,     /* most samples between checks of the budget; each check is an exchange */
    MIN_SAMPLES = 3 /* even where one call takes longer than the budget */
};
static const uint64_t batch_ns = 10000;    /* so that the 50 ns of the clock are half a percent */
static const uint64_t turns_ns = 20000000; /* several time slices of processes that share a core */

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int sample(const struct bench_ranks *ranks, int (*operation)(void *), void *argument,
                  uint64_t calls, uint64_t *ns)
{
    int status = ranks->barrier(ranks->self);
    uint64_t begin = now_ns();

    for (uint64_t i = 0; status == 0 && i < calls; i++)
        status = operation(argument);
    *ns = now_ns() - begin;
    return status;
}

/* Find the number of calls in a batch from the duration of the third call, which uses warm
 * buffers and connections. */
static int calibrate(const struct bench_ranks *ranks, int (*operation)(void *), void *argument,
                     uint64_t *calls)
{
    uint64_t ns = 0;
    uint64_t count = 1;

    for (int i = 0; i < 3; i++) {
        int status = sample(ranks, operation, argument, 1, &ns);
        if (status != 0) return status;
    }
    for (;;) {
        int status = ranks->maximum(ranks->self, &ns, 1);
        if (status != 0) return status;
        if (ns >= batch_ns || count >= 4096) break;
        count *= 2;
        status = sample(ranks, operation, argument, count, &ns);
        if (status != 0) return status;
    }
    *calls = count;
    return 0;
}

static int ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static void summarise(uint64_t *ns, uint64_t samples, uint64_t calls, struct bench_times *out)
{
    qsort(ns, samples, sizeof *ns, ascending);
    out->min_ns = (ns[0] + calls / 2) / calls;
    out->median_ns = (ns[samples / 2] + calls / 2) / calls;
    out->p99_ns = (ns[samples * 99 / 100] + calls / 2) / calls;
    out->samples = samples;
    out->calls = calls;
}

/* Number of samples until the next check of the budget, after SAMPLES samples in SPENT.  Their
 * barriers count: on busy cores a barrier lasts longer than the operation. */
static uint64_t next_chunk(uint64_t budget_ns, uint64_t spent, uint64_t samples)
{
    uint64_t fit =
        spent < budget_ns && samples > 0 ? (budget_ns - spent) / (spent / samples + 1) : 0;
    uint64_t most = 2 * samples < CHUNK ? 2 * samples : CHUNK;

    if (fit > most) fit = most;
    return fit > 0 ? fit : 1;
}

int bench_time(const struct bench_ranks *ranks, int (*operation)(void *), void *argument,
               uint64_t budget_ns, struct bench_times *out)
{
    uint64_t *ns = malloc(MAX_SAMPLES * sizeof *ns);
    uint64_t calls, spent = 0, begin, samples = 0;
    int status = ns == NULL ? BENCH_NO_MEMORY : calibrate(ranks, operation, argument, &calls);

    begin = now_ns();
    while (status == 0 && samples < MAX_SAMPLES && (spent < budget_ns || samples < MIN_SAMPLES)) {
        uint64_t chunk = next_chunk(budget_ns, spent, samples);

        for (uint64_t i = 0; status == 0 && i < chunk && samples < MAX_SAMPLES; i++)
            status = sample(ranks, operation, argument, calls, &ns[samples++]);
        spent = now_ns() - begin;
        if (status == 0) status = ranks->maximum(ranks->self, &spent, 1);
    }
    if (status == 0) status = ranks->maximum(ranks->self, ns, samples);
    if (status == 0) summarise(ns, samples, calls, out);
    free(ns);
    return status;
}

int bench_repeat(const struct bench_ranks *ranks, int (*operation)(void *), void *argument,
                 uint64_t samples, struct bench_times *out)
{
    uint64_t *ns = malloc(samples * sizeof *ns);
    int status = ns == NULL ? BENCH_NO_MEMORY : 0;

    for (uint64_t i = 0; status == 0 && i < samples; i++)
        status = sample(ranks, operation, argument, 1, &ns[i]);
    if (status == 0) status = ranks->maximum(ranks->self, ns, samples);
    if (status == 0) summarise(ns, samples, 1, out);
    free(ns);
    return status;
}

struct copy {
    char *target;
    const char *source;
    size_t bytes;
    int repeat; /* small copies are too short for the clock one by one */
};

static int copy_once(void *argument)
{
    const struct copy *copy = argument;

    for (int i = 0; i < copy->repeat; i++) {
        memcpy(copy->target, copy->source, copy->bytes);
        __asm__ volatile("" : : "r"(copy->target) : "memory"); /* it may not be dropped */
    }
    return 0;
}

/* The cores that ranks may use; bench_pin leaves each rank one of them. */
static int core_count;

static int cores(void)
{
    cpu_set_t allowed;

    if (core_count == 0 && sched_getaffinity(0, sizeof allowed, &allowed) == 0)
        core_count = CPU_COUNT(&allowed);
    return core_count > 0 ? core_count : 1;
}

/* Ranks that share a core run in time slices of some milliseconds.  A call shorter than a slice
 * would be measured as if its rank had the core alone, so one call copies for many slices. *CALL_NS
 * becomes the time of a call on a core of its own. */
static int share_cores(const struct bench_ranks *ranks, struct copy *copy, uint64_t *call_ns)
{
    uint64_t ns = UINT64_MAX;
    int status, times;

    for (int i = 0; i < 8; i++) { /* the fastest copy was not interrupted */
        uint64_t begin = now_ns(), took;
        copy_once(copy);
        took = now_ns() - begin;
        if (took < ns) ns = took;
    }
    status = ranks->maximum(ranks->self, &ns, 1);
    times = ns < turns_ns ? (int)(turns_ns / (ns + 1)) + 1 : 1;
    copy->repeat *= times;
    *call_ns = ns * (uint64_t)times + 1;
    return status;
}

/* Copies on shared cores are long and warm, so every one of them is a sample. */
static int time_copies(const struct bench_ranks *ranks, struct copy *copy, uint64_t budget_ns,
                       struct bench_times *out)
{
    uint64_t per_core = ((uint64_t)ranks->size + (uint64_t)cores() - 1) / (uint64_t)cores();
    uint64_t call_ns, samples;
    int status;

    if (per_core == 1) return bench_time(ranks, copy_once, copy, budget_ns, out);
    status = share_cores(ranks, copy, &call_ns);
    if (status != 0) return status;
    samples = budget_ns / (call_ns * per_core);
    return bench_repeat(ranks, copy_once, copy, samples > MIN_SAMPLES ? samples : MIN_SAMPLES, out);
}

int bench_memcpy(const struct bench_ranks *ranks, size_t bytes, uint64_t budget_ns, double *gbps)
{
    char *memory = malloc(2 * bytes + 1);
    struct copy copy = {.target = memory, .bytes = bytes};
    double copied;
    struct bench_times times;
    uint64_t failed = memory == NULL;
    int status = ranks->maximum(ranks->self, &failed, 1);

    if (status == 0 && (failed || memory == NULL)) status = BENCH_NO_MEMORY;
    if (status == 0) {
        memset(memory, 1, 2 * bytes + 1);
        copy.source = memory + bytes;
        copy.repeat = bytes < 65536 ? (int)(65536 / (bytes + 1)) : 1;
        status = time_copies(ranks, &copy, budget_ns, &times);
    }
    free(memory);
    if (status != 0) return status;
    copied = (double)bytes * copy.repeat * ranks->size;
    *gbps = copied / (double)(times.median_ns > 0 ? times.median_ns : 1);
    return 0;
}

void bench_pin(int rank)
{
    cpu_set_t allowed, mine;
    int turn;

    cores(); /* counts the cores before the affinity changes */
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
    turn = rank % CPU_COUNT(&allowed);
    CPU_ZERO(&mine);
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &allowed) && turn-- == 0) CPU_SET(cpu, &mine);
    sched_setaffinity(0, sizeof mine, &mine);
}
