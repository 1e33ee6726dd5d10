/* wrong_misaligned.c - rounds addresses down to the vector alignment.
 * Runs: --only collectives/all_gather/f32
 * Fails: collectives/all_gather/f32/misaligned/count=31/ranks=all */
#include "wrong.h"

static weft_status collective(void *comm, const weft_collective_args *args)
{
    weft_collective_args other = *args;

    if (args->collective == WEFT_COLL_ALL_GATHER)
        other.recv = (void *)((uintptr_t)args->recv & ~(uintptr_t)15);
    return run_right(comm, &other);
}

INSTALL(wrong.comm.collective = collective)
