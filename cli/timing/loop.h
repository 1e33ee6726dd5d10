/* loop.h - how an operation that several ranks do together is timed.
 *
 * Knows neither weft nor any other library: bench/peers compiles the same file over MPI and Gloo,
 * so that everything in one table was measured in the same way.
 *
 * A sample is a batch of calls long enough for the clock, begun after a barrier; its time is that
 * of the slowest rank, divided by the calls in it. */
#ifndef WEFT_CLI_BENCH_LOOP_H
#define WEFT_CLI_BENCH_LOOP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How a rank synchronizes with the others between samples.  A function returns 0, or a code that
 * bench_time returns to its caller. */
struct bench_ranks {
    int rank, size;
    void *self;
    int (*barrier)(void *self);
    /* Replace each of COUNT values by the greatest of all ranks, on all ranks. */
    int (*maximum)(void *self, uint64_t *values, size_t count);
};

struct bench_times {
    uint64_t min_ns, median_ns, p99_ns; /* of one call */
    uint64_t samples, calls;            /* how many samples, and calls in each */
};

enum { BENCH_NO_MEMORY = -1000 }; /* differs from the codes of the caller's functions */

/* Time OPERATION for about BUDGET_NS.  Collective; all ranks get the same times. */
int bench_time(const struct bench_ranks *ranks, int (*operation)(void *), void *argument,
               uint64_t budget_ns, struct bench_times *out);

/* Time OPERATION in exactly SAMPLES samples of one call each. */
int bench_repeat(const struct bench_ranks *ranks, int (*operation)(void *), void *argument,
                 uint64_t samples, struct bench_times *out);

/* The speed at which all ranks copy at once with memcpy, each BYTES within its own memory, in GB/s
 * of bytes written by all of them together.  Ranks that share a core share its speed.
 * Collective. */
int bench_memcpy(const struct bench_ranks *ranks, size_t bytes, uint64_t budget_ns, double *gbps);

/* Keep this thread on one core: ranks take the allowed cores in turn. */
void bench_pin(int rank);

#ifdef __cplusplus
}
#endif
#endif
