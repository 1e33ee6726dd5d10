/* alone.c - measures operations of one process. */
#include "timing/alone.h"

static int barrier(void *self)
{
    (void)self;
    return 0;
}

static int maximum(void *self, uint64_t *values, size_t count)
{
    (void)self, (void)values, (void)count;
    return 0;
}

weft_status bench_alone(int (*operation)(void *), void *argument, uint64_t budget_ns,
                        struct bench_times *out)
{
    static const struct bench_ranks alone = {
        .rank = 0, .size = 1, .self = NULL, .barrier = barrier, .maximum = maximum};
    int status = bench_time(&alone, operation, argument, budget_ns, out);

    return status == BENCH_NO_MEMORY ? wf_fail_memory(0) : (weft_status)status;
}
