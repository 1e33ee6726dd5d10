/* wrong_forgets_plans.c - does not compare which bound plan a call belongs to.
 * Runs: --only errors/mismatch
 * Fails: errors/mismatch/plan */
#include "wrong.h"

static weft_status collective(void *comm, const weft_collective_args *args)
{
    weft_collective_args other = *args;

    other.plan = other.binding = other.step = 0;
    return run_right(comm, &other);
}

INSTALL(wrong.comm.collective = collective)
