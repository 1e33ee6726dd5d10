/* wrong_forgets_divisors.c - does not compare the divisors of averages.
 * Runs: --only errors/mismatch
 * Fails: errors/mismatch/divisor */
#include "wrong.h"

static weft_status collective(void *comm, const weft_collective_args *args)
{
    weft_collective_args other = *args;

    other.divisor = 0;
    return run_right(comm, &other);
}

INSTALL(wrong.comm.collective = collective)
