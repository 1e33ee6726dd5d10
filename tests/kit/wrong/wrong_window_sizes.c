/* wrong_window_sizes.c - only the rank that differs gets the error.
 * Runs: --only symm/mismatch/bytes --comm-timeout 1
 * Fails: symm/mismatch/bytes */
#include "wrong.h"

static weft_status window_create(void *self, uint64_t bytes, uint32_t signals, void **window,
                                 void **local)
{
    struct example_comm *comm = self;
    weft_status status = right.symm.window_create(comm, bytes, signals, window, local);

    if (status != WEFT_ERR_MISMATCH || comm->rank != 0) return status;
    return right.symm.window_create(comm, bytes, signals, window, local);
}

INSTALL(wrong.symm.window_create = window_create)
